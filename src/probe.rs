//! Probes: what the kernel and the proxy itself say, read from outside the proxy's cgroup.
//!
//! A [`Watcher`] is made before the proxy's container is started. It waits for the container's cgroup, keeps the last
//! counters current from then on (a killed container takes its cgroup with it), samples gauges in the measured window,
//! and ends as a [`report::ProbeReport`]. Everything blocks and runs on plain threads, so that a busy load generator's
//! runtime can neither delay a sample nor be delayed by one.
//!
//! A value that could not be read is `None`, and counted in [`report::ProbeReport::gaps`]; it is never 0.

pub mod delta;
pub mod report;
pub mod sysctls;
pub mod text;

mod cgroup;
mod descriptors;
mod envoy;
mod file;
#[cfg(test)]
pub(crate) mod fixture;
mod haproxy;
mod host;
mod http;
mod net;
mod nginx;
mod sockets;
mod stats;
mod watcher;

use std::path::PathBuf;

pub use watcher::Watcher;

/// Where the kernel's files are. Tests point it at fixtures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FsRoot {
    /// `/proc`.
    pub proc: PathBuf,
    /// `/sys/fs/cgroup`.
    pub cgroup: PathBuf,
    /// `/sys`.
    pub sys: PathBuf,
}

impl Default for FsRoot {
    fn default() -> Self {
        Self {
            proc: "/proc".into(),
            cgroup: "/sys/fs/cgroup".into(),
            sys: "/sys".into(),
        }
    }
}

/// Limits in force for a running container, of itself and of every ancestor; `None` if its cgroup cannot be found.
#[must_use]
pub fn limits_of_container(root: &FsRoot, container_id: &str) -> Option<report::LimitsInForce> {
    let hierarchies = cgroup::Hierarchies::detect(root);
    let finder = cgroup::Finder::new(root, &hierarchies, container_id);
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(5);
    let location = finder.wait(deadline, &|| false)?;
    Some(cgroup::limits_in_force(&hierarchies, &location))
}

/// cgroup version, by what is mounted; `None` if no hierarchy is.
#[must_use]
pub fn cgroup_version(root: &FsRoot) -> Option<report::CgroupVersion> {
    root.cgroup
        .is_dir()
        .then(|| cgroup::Hierarchies::detect(root).version)
}
