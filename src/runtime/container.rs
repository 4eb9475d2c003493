//! A container to create, in the project's terms and in the engine's.

use std::collections::BTreeMap;

use bollard::models::{
    ContainerCreateBody, HostConfig, HostConfigCgroupnsModeEnum, HostConfigLogConfig,
    ResourcesUlimits,
};

use super::owner::Owner;
use crate::spec::settings::Limits;
use crate::units::Micros;

/// What a container is for; part of its name and labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The fixed-delay server; owns the pod's network namespace.
    Upstream,
    /// The proxy under test.
    Proxy,
    /// Load and probes.
    Agent,
    /// Warms or empties the page cache of the proxy's files.
    PageCache,
    /// Tells the facts of the engine's host.
    Facts,
}

impl Role {
    /// As used in names and labels.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Upstream => "upstream",
            Self::Proxy => "proxy",
            Self::Agent => "agent",
            Self::PageCache => "page-cache",
            Self::Facts => "facts",
        }
    }
}

/// A container to create.
#[derive(Debug, Clone)]
pub struct ContainerSpec {
    /// Its role.
    pub role: Role,
    /// Its name; a taken name is an error, never somebody else's container removed.
    pub name: String,
    /// Image reference.
    pub image: String,
    /// In place of the image's entrypoint.
    pub entrypoint: Option<Vec<String>>,
    /// Arguments.
    pub cmd: Vec<String>,
    /// Environment, `KEY=VALUE`.
    pub env: Vec<String>,
    /// User, as `docker run --user`.
    pub user: Option<String>,
    /// Container whose network namespace it joins; `None` gives it its own with loopback only.
    pub join_network_of: Option<String>,
    /// Resource limits.
    pub limits: Limits,
    /// CPU set.
    pub cpuset: Option<String>,
    /// `RLIMIT_NOFILE`, soft and hard.
    pub nofile: Option<u64>,
    /// Kernel settings of its network namespace.
    pub sysctls: BTreeMap<String, String>,
    /// Sees the host's processes and cgroups (read-only); for the agent alone.
    pub host_view: bool,
}

impl ContainerSpec {
    /// A container without limits, joining nothing.
    #[must_use]
    pub fn new(role: Role, name: String, image: &str) -> Self {
        Self {
            role,
            name,
            image: image.to_owned(),
            entrypoint: None,
            cmd: Vec::new(),
            env: Vec::new(),
            user: None,
            join_network_of: None,
            limits: Limits::default(),
            cpuset: None,
            nofile: None,
            sysctls: BTreeMap::new(),
            host_view: false,
        }
    }

    pub(super) fn body(&self, owner: &Owner) -> ContainerCreateBody {
        let (nano_cpus, cpu_period, cpu_quota) = cpu_fields(&self.limits);
        let memory = self.limits.memory.map(|b| to_i64(b.0));
        let memory_swap = self
            .limits
            .memory
            .map(|b| to_i64(b.0.saturating_add(self.limits.swap.0)));
        let ulimits = self.nofile.map(|n| {
            vec![ResourcesUlimits {
                name: Some("nofile".to_owned()),
                soft: Some(to_i64(n)),
                hard: Some(to_i64(n)),
            }]
        });
        let host_config = HostConfig {
            nano_cpus,
            cpu_period,
            cpu_quota,
            memory,
            memory_swap,
            ulimits,
            cpuset_cpus: self.cpuset.clone(),
            network_mode: Some(
                self.join_network_of
                    .as_ref()
                    .map_or("none".to_owned(), |id| format!("container:{id}")),
            ),
            sysctls: (!self.sysctls.is_empty()).then(|| self.sysctls.clone().into_iter().collect()),
            cap_drop: Some(vec!["ALL".to_owned()]),
            security_opt: Some(vec!["no-new-privileges".to_owned()]),
            // The default driver may be `none` or a remote one; a failed proxy's log must be readable.
            log_config: Some(HostConfigLogConfig {
                typ: Some("json-file".to_owned()),
                config: None,
            }),
            pid_mode: self.host_view.then(|| "host".to_owned()),
            cgroupns_mode: self.host_view.then_some(HostConfigCgroupnsModeEnum::HOST),
            binds: self
                .host_view
                .then(|| vec!["/sys/fs/cgroup:/sys/fs/cgroup:ro".to_owned()]),
            ..Default::default()
        };
        ContainerCreateBody {
            image: Some(self.image.clone()),
            entrypoint: self.entrypoint.clone(),
            cmd: (!self.cmd.is_empty()).then(|| self.cmd.clone()),
            env: (!self.env.is_empty()).then(|| self.env.clone()),
            user: self.user.clone(),
            labels: Some(owner.labels(self.role)),
            host_config: Some(host_config),
            ..Default::default()
        }
    }
}

/// `NanoCpus` fixes the period at 100 ms; any other period needs quota and period, and the engine refuses both at once.
fn cpu_fields(limits: &Limits) -> (Option<i64>, Option<i64>, Option<i64>) {
    const DEFAULT_PERIOD: Micros = Micros(100_000);
    match limits.cpu {
        None => (None, None, None),
        Some(cpu) if limits.cpu_period == DEFAULT_PERIOD => {
            (Some(to_i64(cpu.0 * 1_000_000)), None, None)
        }
        Some(cpu) => {
            let period = limits.cpu_period.0;
            (
                None,
                Some(to_i64(period)),
                Some(to_i64(period * cpu.0 / 1000)),
            )
        }
    }
}

fn to_i64(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{Bytes, MilliCpus};

    #[test]
    fn limits_become_the_engines_fields() {
        let mut limits = Limits {
            cpu: Some(MilliCpus(125)),
            cpu_period: Micros(100_000),
            memory: Some(Bytes(64 << 20)),
            swap: Bytes(16 << 20),
        };
        assert_eq!(cpu_fields(&limits), (Some(125_000_000), None, None));
        limits.cpu_period = Micros(10_000);
        assert_eq!(cpu_fields(&limits), (None, Some(10_000), Some(1_250)));
        let spec = ContainerSpec {
            limits,
            ..ContainerSpec::new(Role::Proxy, "n".to_owned(), "i")
        };
        let host = spec
            .body(&Owner::current("run"))
            .host_config
            .expect("host config");
        assert_eq!(
            host.memory_swap,
            Some(80 << 20),
            "swap comes on top of memory"
        );
        assert_eq!(host.network_mode.as_deref(), Some("none"));
        assert_eq!(host.cap_drop, Some(vec!["ALL".to_owned()]));
    }
}
