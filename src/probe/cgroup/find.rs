//! Finding a container's cgroup by the container's id.

use std::collections::VecDeque;
use std::path::Path;
use std::time::{Duration, Instant};

use super::{Hierarchies, Mount};
use crate::probe::FsRoot;
use crate::probe::report::CgroupVersion;
use crate::probe::text::cgroup_path;

/// Between two looks at the candidate paths.
const POLL: Duration = Duration::from_millis(3);
/// Between two walks of the whole tree.
const WALK_EVERY: Duration = Duration::from_millis(200);
const WALK_DEPTH: usize = 10;
const WALK_DIRECTORIES: usize = 5000;

/// Where a container's cgroup is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Location {
    /// Path below the mount point, with a leading slash; the same in every hierarchy.
    pub(crate) path: String,
    /// The hierarchy in which it was seen first.
    pub(crate) found_in: Mount,
}

/// Looks for one container.
#[derive(Debug)]
pub(crate) struct Finder {
    hierarchies: Hierarchies,
    id: String,
    candidates: Vec<String>,
}

impl Finder {
    pub(crate) fn new(root: &FsRoot, hierarchies: &Hierarchies, container_id: &str) -> Self {
        let own = fs_err::read_to_string(root.proc.join("self/cgroup")).unwrap_or_default();
        let controller = match hierarchies.version {
            CgroupVersion::V1 => Some("memory"),
            CgroupVersion::V2 => None,
        };
        Self {
            hierarchies: hierarchies.clone(),
            id: container_id.to_owned(),
            candidates: candidates(container_id, cgroup_path(&own, controller)),
        }
    }

    /// Waits until the container's cgroup is there; `None` once the deadline has passed or `stop` says so.
    pub(crate) fn wait(&self, deadline: Instant, stop: &dyn Fn() -> bool) -> Option<Location> {
        let mut next_walk = Instant::now() + WALK_EVERY / 4;
        loop {
            if let Some(found) = self.look() {
                return Some(found);
            }
            let now = Instant::now();
            if now >= next_walk {
                if let Some(found) = self.walk() {
                    return Some(found);
                }
                next_walk = Instant::now() + WALK_EVERY;
            }
            if now >= deadline || stop() {
                return None;
            }
            std::thread::sleep(POLL.min(deadline - now));
        }
    }

    /// One look at the usual places.
    pub(crate) fn look(&self) -> Option<Location> {
        // The runtime makes one v1 hierarchy's directory after the other; memory is the one that must not be missed.
        let (found_in, base) = self.searched()?;
        self.candidates
            .iter()
            .find(|path| base.join(path.trim_start_matches('/')).is_dir())
            .map(|path| Location {
                path: path.clone(),
                found_in,
            })
    }

    fn searched(&self) -> Option<(Mount, &Path)> {
        [Mount::Memory, Mount::Cpu, Mount::Cpuacct, Mount::Unified]
            .into_iter()
            .find_map(|mount| Some((mount, self.hierarchies.get(mount)?)))
    }

    /// Breadth first through the whole tree, bounded.
    pub(crate) fn walk(&self) -> Option<Location> {
        let (found_in, base) = self.searched()?;
        let mut queue = VecDeque::from([(String::new(), 0)]);
        let mut seen = 0;
        while let Some((parent, depth)) = queue.pop_front() {
            let directory = base.join(parent.trim_start_matches('/'));
            let Ok(entries) = fs_err::read_dir(directory) else {
                continue;
            };
            for entry in entries.filter_map(Result::ok) {
                if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    continue;
                }
                let name = entry.file_name().to_string_lossy().into_owned();
                let path = format!("{parent}/{name}");
                if is_group_of(&name, &self.id) {
                    return Some(Location { path, found_in });
                }
                seen += 1;
                if depth < WALK_DEPTH && seen < WALK_DIRECTORIES {
                    queue.push_back((path, depth + 1));
                }
            }
        }
        None
    }
}

/// Whether a directory of this name is the container's. Podman's monitor lives in `libpod-conmon-ID.scope`, outside the limits.
fn is_group_of(name: &str, id: &str) -> bool {
    name.contains(id) && !name.contains("conmon")
}

/// Directory names that engines give, and so, below each directory that is likely, the paths to look at.
fn candidates(id: &str, own: Option<&str>) -> Vec<String> {
    let names = [
        id.to_owned(),
        format!("docker-{id}.scope"),
        format!("libpod-{id}.scope"),
        format!("libpod-{id}"),
    ];
    // Containers of one engine are siblings: whatever the cgroup parent, driver or rootless user, it is also above us.
    let beside_us = own.unwrap_or_default();
    let beside_us = Path::new(beside_us).ancestors().skip(1);
    let mut parents: Vec<String> = beside_us
        .filter_map(Path::to_str)
        .map(|path| path.trim_end_matches('/').to_owned())
        .collect();
    let usual = [
        "/docker",
        "/system.slice",
        "/machine.slice",
        "/libpod_parent",
    ];
    parents.extend(usual.map(str::to_owned));
    let mut paths: Vec<String> = Vec::new();
    for parent in parents {
        for name in &names {
            let path = format!("{parent}/{name}");
            if !paths.contains(&path) {
                paths.push(path);
            }
        }
    }
    paths
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::probe::fixture::{ID, OTHER_ID, Tree};

    fn finder(tree: &Tree) -> Finder {
        Finder::new(&tree.root, &Hierarchies::detect(&tree.root), ID)
    }

    fn looked(tree: &Tree) -> Option<String> {
        finder(tree).look().map(|location| location.path)
    }

    fn walked(tree: &Tree) -> Option<String> {
        finder(tree).walk().map(|location| location.path)
    }

    #[test]
    fn usual_places_of_each_engine_and_driver() {
        for path in [
            format!("/docker/{ID}"),
            format!("/system.slice/docker-{ID}.scope"),
            format!("/machine.slice/libpod-{ID}.scope"),
            format!("/libpod_parent/libpod-{ID}"),
        ] {
            let tree = Tree::v2();
            assert_eq!(looked(&tree), None);
            tree.directory(&format!("cgroup{path}"));
            assert_eq!(looked(&tree), Some(path.clone()));
            assert_eq!(walked(&tree), Some(path));
        }
        let tree = Tree::hybrid();
        tree.directory(&format!("cgroup/memory/docker/{ID}"));
        assert_eq!(looked(&tree), Some(format!("/docker/{ID}")));
    }

    #[test]
    fn beside_our_own_cgroup_wherever_that_is() {
        let rootless = "/user.slice/user-1000.slice/user@1000.service/user.slice";
        let tree = Tree::v2();
        tree.write(
            "proc/self/cgroup",
            &format!("0::{rootless}/docker-{OTHER_ID}.scope\n"),
        );
        tree.directory(&format!("cgroup{rootless}/docker-{ID}.scope"));
        assert_eq!(looked(&tree), Some(format!("{rootless}/docker-{ID}.scope")));
        let nested = Tree::hybrid();
        nested.write(
            "proc/self/cgroup",
            &format!("4:memory:/ci/job-7/docker/{OTHER_ID}\n0::/\n"),
        );
        nested.directory(&format!("cgroup/memory/ci/job-7/docker/{ID}"));
        assert_eq!(looked(&nested), Some(format!("/ci/job-7/docker/{ID}")));
    }

    #[test]
    fn anywhere_else_by_walking() {
        let tree = Tree::v2();
        let odd = format!("/kubepods/burstable/pod7/cri-containerd-{ID}.scope");
        tree.directory(&format!("cgroup{odd}"));
        assert_eq!(looked(&tree), None);
        assert_eq!(walked(&tree), Some(odd));
    }

    #[test]
    fn podmans_monitor_is_not_the_container() {
        let tree = Tree::v2();
        tree.directory(&format!("cgroup/machine.slice/libpod-conmon-{ID}.scope"));
        tree.directory(&format!("cgroup/docker/{OTHER_ID}"));
        assert_eq!((looked(&tree), walked(&tree)), (None, None));
    }

    #[test]
    fn waiting_ends_by_finding_by_stop_and_by_deadline() {
        let tree = Tree::v2();
        let finder = finder(&tree);
        let far = Instant::now() + Duration::from_secs(60);
        let looks = AtomicU32::new(0);
        let stop = || looks.fetch_add(1, Ordering::Relaxed) >= 3;
        assert_eq!(finder.wait(far, &stop), None);
        assert_eq!(finder.wait(Instant::now(), &|| false), None);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| finder.wait(far, &|| false));
            tree.directory(&format!("cgroup/docker/{ID}"));
            assert!(waiting.join().expect("no panic").is_some());
        });
    }
}
