//! What a container on the engine's host sees: proves that limits are enforced there, and finds what the engine does not
//! tell (swap devices, the descriptor limit).

use serde::{Deserialize, Serialize};

use crate::probe::FsRoot;
use crate::probe::report::{CgroupVersion, LimitsInForce};

/// Facts of the engine's host, told by a small container with known limits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HostFacts {
    /// cgroup version, by what is mounted.
    pub cgroup_version: Option<CgroupVersion>,
    /// The limits in force for this very container.
    pub limits: Option<LimitsInForce>,
    /// Size of all swap devices.
    pub swap_total_bytes: Option<u64>,
    /// Memory of the host.
    pub memory_total_bytes: Option<u64>,
    /// CPUs online.
    pub cpus: Option<u64>,
    /// Model of the CPU.
    pub cpu_model: Option<String>,
    /// Kernel release.
    pub kernel: String,
    /// Hard limit of descriptors that the engine gives a container by default.
    pub nofile_hard: Option<u64>,
    /// Accept backlog limit of a fresh network namespace.
    pub somaxconn: Option<i64>,
}

/// Reads them, in the container that is to prove its limits.
#[must_use]
pub fn read() -> HostFacts {
    let root = FsRoot::default();
    let text = |path: &str| fs_err::read_to_string(path).ok();
    let own_id = text("/proc/self/cgroup").as_deref().and_then(container_id);
    let limits = own_id.as_deref().and_then(|id| crate::probe::limits_of_container(&root, id));
    let cgroup_version = crate::probe::cgroup_version(&root);
    HostFacts {
        cgroup_version,
        limits,
        swap_total_bytes: text("/proc/meminfo").as_deref().and_then(|t| field_kib(t, "SwapTotal:")),
        memory_total_bytes: text("/proc/meminfo").as_deref().and_then(|t| field_kib(t, "MemTotal:")),
        cpus: std::thread::available_parallelism().ok().map(|n| n.get() as u64),
        cpu_model: text("/proc/cpuinfo").and_then(|t| {
            let line = t.lines().find(|l| l.starts_with("model name"))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        }),
        kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
        nofile_hard: rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum,
        somaxconn: text("/proc/sys/net/core/somaxconn").and_then(|t| t.trim().parse().ok()),
    }
}

fn field_kib(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find(|l| l.starts_with(key))?;
    line.split_ascii_whitespace().nth(1)?.parse::<u64>().ok().map(|kib| kib * 1024)
}

/// The id of the container that a process is in, from its `/proc/self/cgroup` seen from the host's cgroup namespace.
fn container_id(text: &str) -> Option<String> {
    text.lines().filter_map(|line| line.rsplit('/').next()).find_map(|name| {
        let id: String = name
            .split(['-', '.'])
            .find(|part| part.len() == 64 && part.bytes().all(|b| b.is_ascii_hexdigit()))?
            .to_owned();
        Some(id)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_id_is_found_under_every_driver() {
        let id = "0123456789abcdef".repeat(4);
        for path in [
            format!("12:memory:/docker/{id}\n0::/"),
            format!("0::/system.slice/docker-{id}.scope\n"),
            format!("0::/machine.slice/libpod-{id}.scope/container\n0::/user.slice/libpod-{id}.scope"),
        ] {
            assert_eq!(container_id(&path).as_deref(), Some(id.as_str()), "{path}");
        }
        assert_eq!(container_id("0::/init.scope\n"), None);
    }
}
