//! Limits as the kernel holds them, of a cgroup and of all above it.

use std::path::Path;

use super::{Hierarchies, Location, Mount};
use crate::probe::report::{CgroupLimits, CgroupVersion, Limit, LimitsInForce};
use crate::probe::text::{cpu_max, keyed, limit_v1, limit_v2, quota_v1, single, swap_limit_v1};

/// Path that stands for groups above the mounted root, which only v1 tells about, and only their tightest limit.
pub(crate) const ABOVE_ROOT: &str = "(above the mounted root)";

/// Reads the limits of the group and of its ancestors below the root (which has none), nearest first.
pub(crate) fn limits_in_force(hierarchies: &Hierarchies, location: &Location) -> LimitsInForce {
    let own = limits_of(hierarchies, &location.path);
    let mut ancestors: Vec<_> = parents(&location.path)
        .map(|path| limits_of(hierarchies, path))
        .collect();
    ancestors.extend(hidden_ancestor(hierarchies, location, &own, &ancestors));
    LimitsInForce { own, ancestors }
}

fn parents(path: &str) -> impl Iterator<Item = &str> {
    let above = Path::new(path).ancestors().skip(1);
    above
        .filter_map(Path::to_str)
        .take_while(|parent| !matches!(*parent, "/" | ""))
}

fn limits_of(hierarchies: &Hierarchies, path: &str) -> CgroupLimits {
    let read = |mount: Mount, file: &str| {
        let base = hierarchies.get(mount)?;
        fs_err::read_to_string(base.join(path.trim_start_matches('/')).join(file)).ok()
    };
    let mut limits = CgroupLimits {
        path: path.to_owned(),
        ..CgroupLimits::default()
    };
    match hierarchies.version {
        CgroupVersion::V1 => {
            let limit = |file| read(Mount::Memory, file).as_deref().and_then(limit_v1);
            limits.cpu_quota_usec = read(Mount::Cpu, "cpu.cfs_quota_us")
                .as_deref()
                .and_then(quota_v1);
            limits.cpu_period_usec = read(Mount::Cpu, "cpu.cfs_period_us")
                .as_deref()
                .and_then(single);
            limits.memory_bytes = limit("memory.limit_in_bytes");
            limits.swap_bytes = limits
                .memory_bytes
                .zip(limit("memory.memsw.limit_in_bytes"))
                .and_then(|(memory, both)| swap_limit_v1(memory, both));
        }
        CgroupVersion::V2 => {
            let limit = |file| read(Mount::Memory, file).as_deref().and_then(limit_v2);
            if let Some((quota, period)) = read(Mount::Cpu, "cpu.max").as_deref().and_then(cpu_max)
            {
                limits.cpu_quota_usec = Some(quota);
                limits.cpu_period_usec = Some(period);
            }
            limits.memory_bytes = limit("memory.max");
            limits.swap_bytes = limit("memory.swap.max");
        }
    }
    limits
}

/// v1's `hierarchical_memory_limit` also knows of groups above the mounted root; a limit tighter than all visible ones is theirs.
fn hidden_ancestor(
    hierarchies: &Hierarchies,
    location: &Location,
    own: &CgroupLimits,
    ancestors: &[CgroupLimits],
) -> Option<CgroupLimits> {
    if hierarchies.version == CgroupVersion::V2 {
        return None;
    }
    let directory = hierarchies.memory.as_ref()?;
    let stat = directory
        .join(location.path.trim_start_matches('/'))
        .join("memory.stat");
    let text = fs_err::read_to_string(stat).ok()?;
    let effective = keyed(&text, "hierarchical_memory_limit")?;
    let Some(Limit::Of(effective)) = limit_v1(&effective.to_string()) else {
        return None;
    };
    let visible = std::iter::once(own)
        .chain(ancestors)
        .filter_map(|limits| match limits.memory_bytes {
            Some(Limit::Of(bytes)) => Some(bytes),
            _ => None,
        })
        .min();
    let tighter = visible.is_none_or(|visible| effective < visible);
    tighter.then(|| CgroupLimits {
        path: ABOVE_ROOT.to_owned(),
        memory_bytes: Some(Limit::Of(effective)),
        ..CgroupLimits::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::fixture::{ID, Tree};

    fn read(tree: &Tree, path: &str) -> LimitsInForce {
        let location = Location {
            path: path.to_owned(),
            found_in: Mount::Memory,
        };
        limits_in_force(&Hierarchies::detect(&tree.root), &location)
    }

    fn v1_group(tree: &Tree, group: &str, quota: &str, memory: &str, both: &str) {
        tree.write(&format!("cgroup/cpu{group}/cpu.cfs_quota_us"), quota);
        tree.write(&format!("cgroup/cpu{group}/cpu.cfs_period_us"), "100000\n");
        tree.write(
            &format!("cgroup/memory{group}/memory.limit_in_bytes"),
            memory,
        );
        if !both.is_empty() {
            tree.write(
                &format!("cgroup/memory{group}/memory.memsw.limit_in_bytes"),
                both,
            );
        }
    }

    const NONE_V1: &str = "9223372036854771712\n";

    #[test]
    fn v1_own_and_ancestors() {
        let tree = Tree::hybrid();
        v1_group(&tree, "/docker", "-1\n", NONE_V1, NONE_V1);
        let own = format!("/docker/{ID}");
        v1_group(&tree, &own, "25000\n", "67108864\n", "335544320\n");
        let limits = read(&tree, &own);
        let expected = CgroupLimits {
            path: own,
            cpu_quota_usec: Some(Limit::Of(25_000)),
            cpu_period_usec: Some(100_000),
            memory_bytes: Some(Limit::Of(64 << 20)),
            swap_bytes: Some(Limit::Of(256 << 20)),
        };
        assert_eq!(limits.own, expected);
        let above = CgroupLimits {
            path: "/docker".to_owned(),
            cpu_quota_usec: Some(Limit::Max),
            cpu_period_usec: Some(100_000),
            memory_bytes: Some(Limit::Max),
            swap_bytes: Some(Limit::Max),
        };
        assert_eq!(limits.ancestors, [above]);
    }

    #[test]
    fn v1_without_swap_accounting_does_not_know_the_swap_limit() {
        let tree = Tree::hybrid();
        v1_group(&tree, "/docker/x", "-1\n", "67108864\n", "");
        let own = read(&tree, "/docker/x").own;
        assert_eq!(own.memory_bytes, Some(Limit::Of(64 << 20)));
        assert_eq!(own.swap_bytes, None);
    }

    #[test]
    fn a_cap_above_the_mounted_root_shows_in_v1() {
        let tree = Tree::hybrid();
        v1_group(&tree, "/docker", "-1\n", NONE_V1, NONE_V1);
        v1_group(&tree, "/docker/x", "-1\n", "67108864\n", "67108864\n");
        let stat = |effective: &str| {
            let text = format!("hierarchical_memory_limit {effective}\n");
            tree.write("cgroup/memory/docker/x/memory.stat", &text);
            read(&tree, "/docker/x").ancestors
        };
        assert_eq!(stat("67108864").len(), 1);
        let capped = stat("33554432");
        assert_eq!(capped[1].path, ABOVE_ROOT);
        assert_eq!(capped[1].memory_bytes, Some(Limit::Of(32 << 20)));
    }

    fn v2_group(tree: &Tree, group: &str, files: &[(&str, &str)]) {
        for (file, text) in files {
            tree.write(&format!("cgroup{group}/{file}"), text);
        }
    }

    #[test]
    fn v2_a_parent_that_caps_lower() {
        let tree = Tree::v2();
        let own = format!("/sweep.slice/inner.slice/docker-{ID}.scope");
        v2_group(
            &tree,
            &own,
            &[
                ("cpu.max", "50000 100000\n"),
                ("memory.max", "67108864\n"),
                ("memory.swap.max", "0\n"),
            ],
        );
        v2_group(
            &tree,
            "/sweep.slice/inner.slice",
            &[
                ("cpu.max", "max 100000\n"),
                ("memory.max", "max\n"),
                ("memory.swap.max", "max\n"),
            ],
        );
        v2_group(
            &tree,
            "/sweep.slice",
            &[("cpu.max", "20000 100000\n"), ("memory.max", "33554432\n")],
        );
        let limits = read(&tree, &own);
        assert_eq!(limits.own.swap_bytes, Some(Limit::Of(0)));
        let paths: Vec<_> = limits.ancestors.iter().map(|l| l.path.as_str()).collect();
        assert_eq!(paths, ["/sweep.slice/inner.slice", "/sweep.slice"]);
        assert_eq!(limits.ancestors[0].memory_bytes, Some(Limit::Max));
        assert_eq!(limits.ancestors[1].cpu_quota_usec, Some(Limit::Of(20_000)));
        assert_eq!(limits.ancestors[1].memory_bytes, Some(Limit::Of(32 << 20)));
        assert_eq!(
            limits.ancestors[1].swap_bytes, None,
            "the file is not there"
        );
    }

    #[test]
    fn v2_swap_that_the_runtime_left_unlimited() {
        // Seen in the wild: MemorySwap == Memory was asked, and memory.swap.max stayed at max.
        let tree = Tree::v2();
        v2_group(
            &tree,
            "/docker/x",
            &[("memory.max", "2202009600\n"), ("memory.swap.max", "max\n")],
        );
        let own = read(&tree, "/docker/x").own;
        assert_eq!(own.memory_bytes, Some(Limit::Of(2_202_009_600)));
        assert_eq!(own.swap_bytes, Some(Limit::Max));
        assert_eq!(
            own.cpu_quota_usec, None,
            "the cpu controller is not enabled"
        );
    }

    #[test]
    fn a_limit_changed_between_two_readings_shows() {
        let tree = Tree::v2();
        v2_group(&tree, "/docker/x", &[("cpu.max", "50000 100000\n")]);
        let before = read(&tree, "/docker/x");
        v2_group(&tree, "/docker/x", &[("cpu.max", "100000 100000\n")]);
        assert_ne!(before, read(&tree, "/docker/x"));
    }
}
