//! The settings of one trial, after defaults, overrides and factor levels are applied and everything is validated.
//!
//! A factor is any scalar here, named by its path (`load.rate`, `proxy.workers`); `cpu`, `memory` and `swap` are short
//! for `limits.cpu`, `limits.memory` and `limits.swap`. Later code never re-checks a value.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use super::placement::{CpuSet, Placement};
use crate::units::{Bytes, Micros, MilliCpus, RatePerSecond};

/// Everything that one trial needs to know.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Time under load before the measured window.
    pub warmup: Micros,
    /// The measured window.
    pub duration: Micros,
    /// Limits of the proxy's container.
    pub limits: Limits,
    /// The proxy under test.
    pub proxy: Proxy,
    /// The fixed-delay server behind the proxy.
    pub upstream: Upstream,
    /// What the generator sends.
    pub load: Load,
    /// How client and proxy speak TLS.
    pub tls: Tls,
    /// Which CPUs each role may use.
    pub placement: Placement,
}

/// Resource limits of the proxy; `None` is "no limit".
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Limits {
    /// CPU bandwidth.
    pub cpu: Option<MilliCpus>,
    /// CFS period; 100 ms unless asked otherwise.
    pub cpu_period: Micros,
    /// Memory, as `memory.max` counts it (without swap).
    pub memory: Option<Bytes>,
    /// Swap on top of memory, as Kubernetes and cgroup v2 count it.
    pub swap: Bytes,
}

/// The proxy under test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Proxy {
    /// Which proxy, and so which configuration template and statistics.
    pub kind: ProxyKind,
    /// Image reference.
    pub image: String,
    /// Worker threads; always passed explicitly.
    pub workers: u32,
    /// `RLIMIT_NOFILE`, soft and hard.
    pub nofile: u64,
    /// Page cache of the image's files before the trial.
    pub page_cache: PageCache,
    /// Accept backlog: `net.core.somaxconn` of the pod and the listener's own; `None` leaves the kernel's.
    pub backlog: Option<u32>,
    /// The user's own configuration (text), in place of the built-in template. Read from `proxy.config` (a path).
    pub config: Option<String>,
    /// Command line for `kind = "custom"`; empty means the image's own.
    pub command: Vec<String>,
    /// Files to upload into the container for `kind = "custom"`: absolute path → text.
    pub files: BTreeMap<String, String>,
    /// Port on which the proxy serves TLS, on 127.0.0.1.
    pub port: u16,
    /// Port of the proxy's own statistics; `None` if it has none.
    pub admin_port: Option<u16>,
    /// Path that answers 200 through the proxy once it is ready.
    pub ready_path: String,
    /// Circuit breaker `max_pending_requests` of the built-in Envoy template; `None` is as good as unlimited.
    pub max_pending_requests: Option<u32>,
    /// Circuit breaker `max_connections` to the upstream of the built-in Envoy template; `None` is as good as unlimited.
    pub max_connections: Option<u32>,
}

/// A proxy that `sweep` knows how to configure and ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProxyKind {
    /// Envoy, by the built-in bootstrap or the user's.
    Envoy,
    /// nginx.
    Nginx,
    /// HAProxy.
    Haproxy,
    /// Anything else: image, command, files and a readiness path are the user's.
    Custom,
}

/// State of the page cache for the proxy's files when a trial starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PageCache {
    /// Read by somebody else before, so charged elsewhere.
    Warm,
    /// Not in memory: the proxy reads, and pays for, every page that it touches.
    Cold,
}

/// The fixed-delay server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Upstream {
    /// Delay between the end of a request and its response. See `delay_*` for distributions.
    pub delay: Micros,
    /// Shape of the delay.
    pub delay_distribution: DelayDistribution,
    /// Second value of a distribution: upper end (uniform), slow mode (bimodal). Unused when constant.
    pub delay_high: Micros,
    /// Share of slow answers, 0..=1, for `bimodal`.
    pub delay_high_share: f64,
    /// Body size of a response.
    pub body: Bytes,
}

/// Shape of the upstream's delay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DelayDistribution {
    /// Always `delay`.
    Constant,
    /// Evenly between `delay` and `delay_high`.
    Uniform,
    /// `delay`, or `delay_high` with probability `delay_high_share`.
    Bimodal,
}

/// What the generator sends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// Open loop (a schedule that never waits) or closed loop (users that wait for an answer).
    pub mode: LoadMode,
    /// Requests per second offered, open loop.
    pub rate: RatePerSecond,
    /// Arrival process, open loop.
    pub arrivals: Arrivals,
    /// Users, closed loop, zero think time.
    pub users: u32,
    /// Persistent connections.
    pub connections: u32,
    /// Requests on one connection before it is replaced; `None` is unlimited, 1 is a connection per request.
    pub requests_per_connection: Option<u32>,
    /// Concurrent streams on one HTTP/2 connection; 1 for HTTP/1.1.
    pub streams: u32,
    /// New TLS connections per second beside the requests; 0 for none.
    pub handshake_rate: RatePerSecond,
    /// HTTP version.
    pub protocol: Protocol,
    /// Request method.
    pub method: String,
    /// Request path with query.
    pub path: String,
    /// Further request headers.
    pub headers: BTreeMap<String, String>,
    /// Size of the request body.
    pub body: Bytes,
    /// After this a request counts as timed out.
    pub timeout: Micros,
    /// After this a connect counts as timed out; longer than the SYN retransmission ladder.
    pub connect_timeout: Micros,
    /// The generator may send this late at p99 by its own fault; beyond it the trial is invalid.
    pub max_pacing_lag: Micros,
    /// Generator threads.
    pub threads: u32,
    /// How the generator's threads wait for answers and for the next arrival.
    #[serde(default)]
    pub wait: Wait,
}

/// How requests arise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LoadMode {
    /// A schedule that never waits for answers.
    Open,
    /// N users with zero think time.
    Closed,
}

/// Arrival process of the open loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arrivals {
    /// Every 1/rate seconds.
    Constant,
    /// Exponential gaps, from the trial's seed.
    Poisson,
}

/// HTTP version between client and proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// HTTP/1.1.
    H1,
    /// HTTP/2.
    H2,
}

/// TLS between client and proxy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tls {
    /// Protocol version.
    pub version: TlsVersion,
    /// Key of the proxy's certificate.
    pub certificate: CertificateKey,
    /// Key exchange group.
    pub key_exchange: KeyExchange,
    /// Session resumption.
    pub resumption: bool,
    /// The client shows a certificate, and the proxy checks it.
    pub mutual: bool,
    /// How the client checks the proxy's certificate.
    pub verify: Verify,
}

/// TLS version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum TlsVersion {
    /// TLS 1.2.
    #[serde(rename = "1.2")]
    V1_2,
    /// TLS 1.3.
    #[serde(rename = "1.3")]
    V1_3,
}

/// Key of a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CertificateKey {
    /// ECDSA over P-256.
    #[serde(rename = "ecdsa-p256")]
    EcdsaP256,
    /// RSA, 2048 bits.
    #[serde(rename = "rsa-2048")]
    Rsa2048,
    /// RSA, 4096 bits.
    #[serde(rename = "rsa-4096")]
    Rsa4096,
    /// Ed25519.
    Ed25519,
}

/// Key exchange group of the handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum KeyExchange {
    /// X25519.
    #[serde(rename = "x25519")]
    X25519,
    /// NIST P-256.
    #[serde(rename = "p256")]
    P256,
    /// Hybrid post-quantum X25519 with ML-KEM 768.
    #[serde(rename = "x25519mlkem768")]
    X25519MlKem768,
}

/// How the generator's threads wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wait {
    /// Spin where the agent has CPUs of its own, else sleep.
    #[default]
    Auto,
    /// Sleep until the kernel wakes the thread, some tens of microseconds late on an idle virtual CPU.
    Sleep,
    /// Keep asking the kernel while an answer or an arrival is near.
    Spin,
}

/// How the client checks the proxy's certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verify {
    /// Chain to the run's CA, and the name.
    Ca,
    /// The certificate's bytes equal the run's; cheaper for the client, since no signature is computed, neither the CA's
    /// nor the server's.
    Pin,
}
