//! The rules.

use super::super::settings::{
    DelayDistribution, KeyExchange, LoadMode, Protocol, ProxyKind, Settings, TlsVersion,
};
use super::super::syntax;
use super::{Clash, Conditional, Rule};
use crate::units::Micros;

fn clash(message: impl Into<String>, remedy: impl Into<String>) -> Option<Clash> {
    Some(Clash {
        message: message.into(),
        remedy: remedy.into(),
    })
}

pub(super) const RULES: &[Rule] = &[
    Rule {
        keys: &["limits.swap", "limits.memory"],
        only_warns: false,
        check: |s| match s.limits.memory {
            None if s.limits.swap.0 > 0 => clash(
                format!("swap {} without a memory limit", s.limits.swap),
                "give a memory limit, or swap 0: swap is a limit on top of memory",
            ),
            _ => None,
        },
    },
    Rule {
        keys: &["limits.cpu_period", "limits.cpu"],
        only_warns: false,
        check: quota,
    },
    Rule {
        keys: &["load.streams", "load.protocol"],
        only_warns: false,
        check: |s| match s.load.protocol {
            Protocol::H1 if s.load.streams > 1 => clash(
                format!("{} streams on an HTTP/1.1 connection", s.load.streams),
                "give load.protocol \"h2\", or load.streams 1",
            ),
            _ => None,
        },
    },
    Rule {
        keys: &["proxy.admin_port", "proxy.port"],
        only_warns: false,
        check: |s| match s.proxy.admin_port {
            Some(port) if port == s.proxy.port => clash(
                format!("proxy.admin_port and proxy.port are both {port}"),
                "give different ports",
            ),
            _ => None,
        },
    },
    Rule {
        keys: &["proxy.kind", "proxy.image"],
        only_warns: false,
        check: |s| match s.proxy.kind {
            ProxyKind::Custom if s.proxy.image.is_empty() => {
                clash("a custom proxy has no default image", "give proxy.image")
            }
            _ => None,
        },
    },
    Rule {
        keys: &["proxy.command", "proxy.kind"],
        only_warns: false,
        check: |s| match s.proxy.kind {
            ProxyKind::Custom => None,
            _ if s.proxy.command.is_empty() => None,
            _ => clash(
                "proxy.command is only for a custom proxy",
                "give proxy.kind \"custom\", or remove it; proxy.config changes the others",
            ),
        },
    },
    Rule {
        keys: &["proxy.files", "proxy.kind"],
        only_warns: false,
        check: |s| match s.proxy.kind {
            ProxyKind::Custom => None,
            _ if s.proxy.files.is_empty() => None,
            _ => clash(
                "proxy.files is only for a custom proxy",
                "give proxy.kind \"custom\", or remove it; proxy.config changes the others",
            ),
        },
    },
    Rule {
        keys: &[
            "upstream.delay_high",
            "upstream.delay_distribution",
            "upstream.delay",
        ],
        only_warns: false,
        check: |s| {
            let up = &s.upstream;
            let varies = up.delay_distribution != DelayDistribution::Constant;
            if varies && up.delay_high < up.delay {
                return clash(
                    format!(
                        "upstream.delay_high {} is below upstream.delay {}",
                        up.delay_high, up.delay
                    ),
                    "give an upstream.delay_high that is not below upstream.delay",
                );
            }
            None
        },
    },
    Rule {
        keys: &["tls.key_exchange", "tls.version"],
        only_warns: false,
        check: |s| match (s.tls.key_exchange, s.tls.version) {
            (KeyExchange::X25519MlKem768, TlsVersion::V1_2) => clash(
                "x25519mlkem768 does not exist in TLS 1.2",
                "give tls.version \"1.3\", or another tls.key_exchange",
            ),
            _ => None,
        },
    },
    Rule {
        keys: &["load.rate", "duration", "load.mode"],
        only_warns: false,
        check: |s| {
            let expected = s.load.rate.0 * s.duration.secs_f64();
            if s.load.mode == LoadMode::Open && expected < 1.0 {
                return clash(
                    format!(
                        "load.rate {} sends no request in a window of {}",
                        s.load.rate, s.duration
                    ),
                    "give a higher rate or a longer duration",
                );
            }
            None
        },
    },
    Rule {
        keys: &["proxy.nofile", "load.connections", "load.handshake_rate"],
        only_warns: true,
        check: descriptors,
    },
    Rule {
        keys: &["placement.agent", "placement.proxy"],
        only_warns: true,
        check: |s| shared("agent", s.placement.agent.list(), s),
    },
    Rule {
        keys: &["placement.upstream", "placement.proxy"],
        only_warns: true,
        check: |s| shared("upstream", s.placement.upstream.list(), s),
    },
    Rule {
        keys: &["limits.cpu", "placement.proxy"],
        only_warns: true,
        check: placed_limit,
    },
];

fn cpus(list: &str) -> Vec<u32> {
    syntax::cpu_numbers(list).unwrap_or_default()
}

/// Roles that share a CPU disturb each other, and the generator's delays become the proxy's.
fn shared(role: &str, list: Option<&str>, s: &Settings) -> Option<Clash> {
    let proxy = cpus(s.placement.proxy.list()?);
    let both: Vec<u32> = cpus(list?)
        .into_iter()
        .filter(|cpu| proxy.contains(cpu))
        .collect();
    let first = both.first()?;
    clash(
        format!("placement.{role} and placement.proxy share CPU {first}"),
        "give them different CPUs, unless the machine has too few",
    )
}

fn placed_limit(s: &Settings) -> Option<Clash> {
    let limit = s.limits.cpu?;
    let list = s.placement.proxy.list()?;
    if limit.0 <= cpus(list).len() as u64 * 1000 {
        return None;
    }
    clash(
        format!("cpu {limit} is more than placement.proxy \"{list}\" can give"),
        "give less cpu, or more CPUs",
    )
}

/// The kernel refuses a quota under 1 ms (`min_cfs_quota_period` in kernel/sched/core.c).
fn quota(s: &Settings) -> Option<Clash> {
    let cpu = s.limits.cpu?;
    let quota = cpu.0.saturating_mul(s.limits.cpu_period.0) / 1000;
    if quota >= 1000 {
        return None;
    }
    let least = Micros(1_000_000u64.div_ceil(cpu.0.max(1)));
    clash(
        format!(
            "cpu {cpu} of a period of {} is a quota of {}, below the kernel's least, 1ms",
            s.limits.cpu_period,
            Micros(quota)
        ),
        format!("give a period of at least {least} with this cpu, or more cpu"),
    )
}

/// A connection costs a proxy a descriptor on each side at worst.
fn descriptors(s: &Settings) -> Option<Clash> {
    let connections = u64::from(s.load.connections);
    if s.proxy.nofile >= connections.saturating_add(64) {
        return None;
    }
    clash(
        format!(
            "{connections} connections and proxy.nofile {}: the proxy will run out of file descriptors",
            s.proxy.nofile
        ),
        "give a higher proxy.nofile, unless that is what you want to see",
    )
}

pub(super) const CONDITIONALS: &[Conditional] = &[
    Conditional {
        key: "load.users",
        depends_on: &["load.mode"],
        has_effect: |s| s.load.mode == LoadMode::Closed,
        condition: "only a closed loop has users (load.mode = \"closed\")",
    },
    Conditional {
        key: "load.rate",
        depends_on: &["load.mode"],
        has_effect: |s| s.load.mode == LoadMode::Open,
        condition: "a closed loop has no rate (load.mode = \"open\" has)",
    },
    Conditional {
        key: "load.arrivals",
        depends_on: &["load.mode"],
        has_effect: |s| s.load.mode == LoadMode::Open,
        condition: "a closed loop has no schedule (load.mode = \"open\" has)",
    },
    Conditional {
        key: "upstream.delay_high",
        depends_on: &["upstream.delay_distribution"],
        has_effect: |s| s.upstream.delay_distribution != DelayDistribution::Constant,
        condition: "upstream.delay_distribution is \"constant\"",
    },
    Conditional {
        key: "upstream.delay_high_share",
        depends_on: &["upstream.delay_distribution"],
        has_effect: |s| s.upstream.delay_distribution == DelayDistribution::Bimodal,
        condition: "upstream.delay_distribution is not \"bimodal\"",
    },
    Conditional {
        key: "proxy.max_pending_requests",
        depends_on: &["proxy.kind", "proxy.config"],
        has_effect: has_built_in_envoy,
        condition: "it belongs to the built-in Envoy configuration",
    },
    Conditional {
        key: "proxy.max_connections",
        depends_on: &["proxy.kind", "proxy.config"],
        has_effect: has_built_in_envoy,
        condition: "it belongs to the built-in Envoy configuration",
    },
    Conditional {
        key: "limits.cpu_period",
        depends_on: &["limits.cpu"],
        has_effect: |s| s.limits.cpu.is_some(),
        condition: "no cell has a CPU limit",
    },
];

fn has_built_in_envoy(s: &Settings) -> bool {
    s.proxy.kind == ProxyKind::Envoy && s.proxy.config.is_none()
}
