//! What a container on the engine's host sees: proves that limits are enforced there, and finds what the engine does not
//! tell (swap devices, the descriptor limit).

use serde::{Deserialize, Serialize};

use crate::probe::FsRoot;
use crate::probe::report::{CgroupVersion, LimitsInForce};
use crate::spec::placement::Topology;

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
    /// The CPUs that a container may use, by physical core.
    #[serde(default)]
    pub cores: Option<Topology>,
    /// Accept backlog limit of a fresh network namespace.
    pub somaxconn: Option<i64>,
}

/// Reads them, in the container that is to prove its limits.
#[must_use]
pub fn read() -> HostFacts {
    let root = FsRoot::default();
    let text = |path: &str| fs_err::read_to_string(path).ok();
    let own_id = text("/proc/self/cgroup").as_deref().and_then(container_id);
    let limits = own_id
        .as_deref()
        .and_then(|id| crate::probe::limits_of_container(&root, id));
    let cgroup_version = crate::probe::cgroup_version(&root);
    HostFacts {
        cgroup_version,
        limits,
        swap_total_bytes: text("/proc/meminfo")
            .as_deref()
            .and_then(|t| field_kib(t, "SwapTotal:")),
        memory_total_bytes: text("/proc/meminfo")
            .as_deref()
            .and_then(|t| field_kib(t, "MemTotal:")),
        // Not `available_parallelism`, which counts this container's own CPU limit in.
        cpus: usable_cpus().map(|cpus| cpus.len() as u64),
        cores: usable_cpus().map(|cpus| by_core(&cpus, siblings)),
        cpu_model: text("/proc/cpuinfo").and_then(|t| {
            let line = t.lines().find(|l| l.starts_with("model name"))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        }),
        kernel: rustix::system::uname()
            .release()
            .to_string_lossy()
            .into_owned(),
        nofile_hard: rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum,
        somaxconn: text("/proc/sys/net/core/somaxconn").and_then(|t| t.trim().parse().ok()),
    }
}

fn usable_cpus() -> Option<Vec<u32>> {
    let set = rustix::thread::sched_getaffinity(None).ok()?;
    let cpus = (0..rustix::thread::CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu));
    Some(cpus.map(|cpu| cpu as u32).collect())
}

/// The CPUs of one core, the given one among them; `None` where the kernel does not tell.
fn siblings(cpu: u32) -> Option<Vec<u32>> {
    let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
    crate::spec::cpu_list(fs_err::read_to_string(path).ok()?.trim())
}

/// Groups CPUs by core; one whose siblings are unknown is a core of its own.
fn by_core(cpus: &[u32], siblings: impl Fn(u32) -> Option<Vec<u32>>) -> Topology {
    let mut cores: Vec<Vec<u32>> = Vec::new();
    for &cpu in cpus {
        if cores.iter().any(|core| core.contains(&cpu)) {
            continue;
        }
        let mut core = siblings(cpu).unwrap_or_default();
        core.retain(|sibling| cpus.contains(sibling));
        if !core.contains(&cpu) {
            core = vec![cpu];
        }
        cores.push(core);
    }
    Topology(cores)
}

fn field_kib(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find(|l| l.starts_with(key))?;
    line.split_ascii_whitespace()
        .nth(1)?
        .parse::<u64>()
        .ok()
        .map(|kib| kib * 1024)
}

/// The id of the container that a process is in, from its `/proc/self/cgroup` seen from the host's cgroup namespace.
fn container_id(text: &str) -> Option<String> {
    text.lines()
        .filter_map(|line| line.rsplit('/').next())
        .find_map(|name| {
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
    fn cores_are_those_of_the_usable_cpus() {
        let pairs = |cpu: u32| Some(vec![cpu % 4, cpu % 4 + 4]);
        assert_eq!(by_core(&[1, 2, 5], pairs).0, [vec![1, 5], vec![2]]);
        assert_eq!(by_core(&[0, 1], |_| None).0, [vec![0], vec![1]]);
        assert!(usable_cpus().is_some_and(|cpus| !cpus.is_empty()));
    }

    #[test]
    fn the_own_id_is_found_under_every_driver() {
        let id = "0123456789abcdef".repeat(4);
        for path in [
            format!("12:memory:/docker/{id}\n0::/"),
            format!("0::/system.slice/docker-{id}.scope\n"),
            format!(
                "0::/machine.slice/libpod-{id}.scope/container\n0::/user.slice/libpod-{id}.scope"
            ),
        ] {
            assert_eq!(container_id(&path).as_deref(), Some(id.as_str()), "{path}");
        }
        assert_eq!(container_id("0::/init.scope\n"), None);
    }
}
