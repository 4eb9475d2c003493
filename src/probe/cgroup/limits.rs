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
