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
    /// Accept backlog limit of a fresh network namespace.
    pub somaxconn: Option<i64>,
}

/// Reads them, for the container with this id.
#[must_use]
pub fn read(container_id: &str) -> HostFacts {
    let root = FsRoot::default();
    let text = |path: &str| fs_err::read_to_string(path).ok();
    let (cgroup_version, limits) = crate::probe::limits_of_container(&root, container_id);
    HostFacts {
        cgroup_version,
        limits,
        swap_total_bytes: text("/proc/swaps").as_deref().and_then(crate::probe::text::swaps_total_bytes),
        memory_total_bytes: text("/proc/meminfo").as_deref().and_then(|t| field_kib(t, "MemTotal:")),
        cpus: std::thread::available_parallelism().ok().map(|n| n.get() as u64),
        cpu_model: text("/proc/cpuinfo").and_then(|t| {
            let line = t.lines().find(|l| l.starts_with("model name"))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        }),
        kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
        somaxconn: text("/proc/sys/net/core/somaxconn").and_then(|t| t.trim().parse().ok()),
    }
}

fn field_kib(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find(|l| l.starts_with(key))?;
    line.split_ascii_whitespace().nth(1)?.parse::<u64>().ok().map(|kib| kib * 1024)
}
