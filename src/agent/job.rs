//! The protocol between `sweep run` and the agent: a job in, JSON lines out.

use serde::{Deserialize, Serialize};

use crate::load::report::LoadReport;
use crate::probe::report::ProbeReport;
use crate::spec::settings::{Load, ProxyKind, Tls};
use crate::units::Micros;

/// What the agent is to do in one trial.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Job {
    /// Where the load goes: the proxy, or the upstream in a `direct` control.
    pub target: std::net::SocketAddr,
    /// Name for SNI, the `Host` header and certificate checks.
    pub server_name: String,
    /// Whether the target speaks TLS (`false` for the `direct` control).
    pub tls: Option<TlsMaterial>,
    /// The load.
    pub load: Load,
    /// Load before the measured window.
    pub warmup: Micros,
    /// The measured window.
    pub duration: Micros,
    /// How long to wait for open requests after the window.
    pub drain: Micros,
    /// Seed of the trial, for Poisson arrivals.
    pub seed: u64,
    /// The upstream's control address (`GET /stats`, `POST /reset`).
    pub upstream_control: std::net::SocketAddr,
    /// Path that answers once the target is ready.
    pub ready_path: String,
    /// After this long without an answer the proxy counts as not ready.
    pub ready_deadline: Micros,
    /// The proxy to watch; `None` in a `direct` control.
    pub proxy: Option<WatchedProxy>,
    /// Full id of the upstream's container, so that the pod's own CPU time can be told from others'.
    #[serde(default)]
    pub upstream_container: Option<String>,
    /// Time between two samples.
    pub sample_interval: Micros,
    /// CPUs that the agent may use, as a count; bounds its own share when judging saturation.
    pub agent_cpus: f64,
    /// Whether the generator's threads spin while an answer or an arrival is near.
    #[serde(default)]
    pub spin: bool,
    /// Port the proxy listens on, whose accept queue is read.
    pub listen_port: u16,
}

/// Keys and certificates that the client needs.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TlsMaterial {
    /// Settings of the handshake.
    pub settings: Tls,
    /// PEM of the run's CA.
    pub ca_pem: String,
    /// PEM of the proxy's certificate, for pinning.
    pub server_cert_pem: String,
    /// PEM of the client's certificate and key, for mutual TLS.
    pub client: Option<ClientIdentity>,
}

/// Certificate and key of the client.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ClientIdentity {
    /// Certificate chain, PEM.
    pub cert_pem: String,
    /// Private key, PEM (PKCS#8).
    pub key_pem: String,
}

/// The proxy's container, as the probes find it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WatchedProxy {
    /// Full container id; its cgroup directory is found by it.
    pub container_id: String,
    /// What statistics it has.
    pub kind: ProxyKind,
    /// Address of its statistics.
    pub admin: Option<std::net::SocketAddr>,
}

/// One line from the agent. Adjacently tagged: with the tag inside, serde would buffer a result, and lose that the keys
/// of its maps are numbers.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "event", content = "data", rename_all = "snake_case")]
pub enum AgentEvent {
    /// The agent runs and watches; the proxy may be started now.
    Watching {
        /// Agent's version, which must equal the controller's.
        version: String,
    },
    /// The proxy answered.
    Ready {
        /// From the moment its cgroup was first seen.
        after_us: u64,
    },
    /// A phase began.
    Phase {
        /// Which.
        phase: Phase,
    },
    /// The trial's measurements; the last line.
    Done(Box<AgentResult>),
    /// The agent could not do its work, and why.
    Failed {
        /// Operation, subject and cause.
        error: String,
    },
}

/// Phases of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Waiting for the first answer.
    Readiness,
    /// Load that is not measured.
    Warmup,
    /// The measured window.
    Measure,
    /// Waiting for open requests.
    Drain,
}

/// How the agent's part of a trial ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentOutcome {
    /// Everything was measured.
    Measured,
    /// The target never answered within the deadline.
    NotReady,
    /// The proxy's processes were gone before the window ended.
    ProxyGone,
}

/// What the agent measured.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AgentResult {
    /// How it ended.
    pub outcome: AgentOutcome,
    /// From first sight of the proxy's cgroup to its first answer.
    pub ready_after_us: Option<u64>,
    /// The generator's report; `None` if the window was never reached.
    pub load: Option<LoadReport>,
    /// The probes' report.
    pub probe: ProbeReport,
    /// What the upstream said of its own delay in the window.
    pub upstream: Option<UpstreamReport>,
    /// CPU time of the agent over the window, all threads.
    pub agent_cpu_usec: Option<u64>,
}

/// The upstream's own account of the measured window (its `GET /stats`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UpstreamReport {
    /// Requests served.
    pub requests: u64,
    /// Served delay (end of request read → start of response written), percentiles in microseconds.
    pub delay_p50_us: Option<u64>,
    /// 99th percentile.
    pub delay_p99_us: Option<u64>,
    /// Largest.
    pub delay_max_us: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::sample;

    #[test]
    fn a_result_survives_its_line() {
        let result = sample::valid(sample::Shape::limited(250, 64), 1)
            .agent
            .expect("an agent result");
        let line =
            serde_json::to_string(&AgentEvent::Done(Box::new(result.clone()))).expect("serialize");
        let AgentEvent::Done(back) = serde_json::from_str(&line).expect("deserialize") else {
            panic!("another event");
        };
        assert!(
            !result.load.as_ref().expect("load").status_codes.is_empty(),
            "the test needs a map with number keys"
        );
        assert_eq!(
            serde_json::to_value(&*back).expect("value"),
            serde_json::to_value(&result).expect("value")
        );
    }
}
