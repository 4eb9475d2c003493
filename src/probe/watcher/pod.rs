//! CPU time of the pod's other containers, so that the host's remaining load can be told.

use crate::probe::FsRoot;
use crate::probe::cgroup::{CpuUsage, Finder, Hierarchies};
use crate::probe::report::CgroupVersion;
use crate::probe::text::cgroup_path;

/// Length of a container id, hexadecimal.
const ID_LENGTH: usize = 64;

/// The agent's container and the upstream's.
#[derive(Debug)]
pub(super) struct Pod {
    /// `None` when one of the containers was not found: then the sum is unknown.
    usages: Option<Vec<CpuUsage>>,
    at_start: Option<u64>,
}

impl Pod {
    /// Finds the cgroups of the containers with these ids and, by `/proc/self/cgroup`, of the one this process runs in.
    pub(super) fn find(root: &FsRoot, hierarchies: &Hierarchies, ids: &[String]) -> Self {
        let of_others = ids.iter().map(|id| {
            let finder = Finder::new(root, hierarchies, id);
            finder.look().or_else(|| finder.walk()).map(|l| l.path)
        });
        let paths: Option<Vec<String>> = std::iter::once(own_container(root, hierarchies.version))
            .chain(of_others)
            .collect();
        let usages = paths.map(|mut paths| {
            paths.sort_unstable();
            paths.dedup();
            let usages = paths.iter().map(|path| CpuUsage::open(hierarchies, path));
            usages.collect()
        });
        Self {
            usages,
            at_start: None,
        }
    }

    pub(super) fn begin(&mut self) {
        self.at_start = self.sum();
    }

    /// CPU time since `begin`, microseconds.
    pub(super) fn used_usec(&mut self) -> Option<u64> {
        crate::probe::delta::since(self.at_start, self.sum())
    }

    fn sum(&mut self) -> Option<u64> {
        let usages = self.usages.as_mut()?;
        usages.iter_mut().map(CpuUsage::usec).sum()
    }
}

/// The cgroup of this process if it is a container's. Outside of one (in tests, on a developer's machine) it is a session's or
/// the root, with other work in it.
fn own_container(root: &FsRoot, version: CgroupVersion) -> Option<String> {
    let text = fs_err::read_to_string(root.proc.join("self/cgroup")).ok()?;
    let controller = match version {
        CgroupVersion::V1 => Some("cpuacct"),
        CgroupVersion::V2 => None,
    };
    let path = cgroup_path(&text, controller)?;
    let is_id =
        |part: &str| part.len() == ID_LENGTH && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    path.split(['/', '-', '.'])
        .any(is_id)
        .then(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::fixture::Tree;

    fn fixture(own: &str, usages: &[(&str, &str)]) -> Tree {
        let tree = Tree::v2();
        tree.write("proc/self/cgroup", &format!("0::{own}\n"));
        for (path, text) in usages {
            tree.write(&format!("cgroup{path}/cpu.stat"), text);
        }
        tree
    }

    #[test]
    fn sums_the_agent_and_the_upstream() {
        let agent = format!("/docker/{}", "a".repeat(64));
        let upstream = "b".repeat(64);
        let upstream_path = format!("/docker/{upstream}");
        let tree = fixture(
            &agent,
            &[
                (&agent, "usage_usec 100\n"),
                (&upstream_path, "usage_usec 5\n"),
            ],
        );
        let hierarchies = Hierarchies::detect(&tree.root);
        let mut pod = Pod::find(&tree.root, &hierarchies, std::slice::from_ref(&upstream));
        assert_eq!(pod.used_usec(), None, "no beginning, no difference");
        pod.begin();
        tree.write(
            &format!("cgroup{upstream_path}/cpu.stat"),
            "usage_usec 25\n",
        );
        assert_eq!(pod.used_usec(), Some(20));
    }

    #[test]
    fn unknown_outside_of_a_container_or_without_the_upstream() {
        let tree = fixture("/user.slice/session-1.scope", &[]);
        let mut pod = Pod::find(&tree.root, &Hierarchies::detect(&tree.root), &[]);
        pod.begin();
        assert_eq!(pod.used_usec(), None);
        let agent = format!("/system.slice/docker-{}.scope", "a".repeat(64));
        let tree = fixture(&agent, &[(&agent, "usage_usec 100\n")]);
        let mut pod = Pod::find(
            &tree.root,
            &Hierarchies::detect(&tree.root),
            &["c".repeat(64)],
        );
        pod.begin();
        assert_eq!(pod.used_usec(), None);
    }
}
