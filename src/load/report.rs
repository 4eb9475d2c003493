//! What the generator tells about the measured window.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::hdr::LatencyHistogram;

/// The generator's account of the measured window. Requests belong to the window by their *intended* send time.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LoadReport {
    /// Length of the window.
    pub window_us: u64,
    /// Offered rate by the settings; `None` in closed loop.
    pub offered_rate_rps: Option<f64>,
    /// Completed requests over the window (successes and HTTP errors, not transport errors).
    pub achieved_rate_rps: f64,
    /// Requests whose intended send time lies in the window.
    pub scheduled: u64,
    /// Of these, actually sent.
    pub sent: u64,
    /// Of these, answered with a success (2xx, 3xx).
    pub requests: u64,
    /// Completion − intended send, successes.
    pub response_time: LatencyHistogram,
    /// Completion − actual send, successes.
    pub service_time: LatencyHistogram,
    /// Actual − intended send, all that were sent.
    pub send_lag: LatencyHistogram,
    /// Of the send lag, the part while a connection was free: the generator's own fault.
    pub pacing_lag: LatencyHistogram,
    /// Age (now − intended send) of requests still open or unsent when the drain ended. They are failures of unknown length.
    pub censored: LatencyHistogram,
    /// Requests that did not succeed, by class; none of them is in the histograms of successes.
    pub errors: BTreeMap<ErrorClass, u64>,
    /// Persistent connections that failed or could not be opened in the window, by class. A request that such a failure
    /// took along is in `errors` too.
    #[serde(default)]
    pub connection_errors: BTreeMap<ErrorClass, u64>,
    /// Persistent connections that were opened in the window: replacements, and those on demand.
    #[serde(default)]
    pub connections_opened: u64,
    /// Answers by status code.
    pub status_codes: BTreeMap<u16, u64>,
    /// New connections made for measuring the handshake in the window.
    pub handshake: HandshakeReport,
    /// Unsent requests over time: the generator's queue.
    pub backlog: Vec<BacklogSample>,
    /// Mean requests in flight (sent, unanswered) over the window, time-weighted.
    pub in_flight_mean: Option<f64>,
    /// Closed loop: throughput × mean latency, which should equal `users` (Little's law).
    pub littles_law_users: Option<f64>,
    /// Bytes read from the target in the window.
    pub bytes_received: u64,
    /// Signs that the generator, not the target, set the pace. Any makes the trial invalid.
    pub bottlenecks: Vec<Bottleneck>,
    /// CPU time of the generator's threads in the window.
    pub generator_cpu_usec: Option<u64>,
    /// Time in the window that the generator's threads were runnable without a CPU.
    #[serde(default)]
    pub generator_cpu_wait_usec: Option<u64>,
    /// Version, cipher and key exchange that were really negotiated, as text, by how often.
    pub negotiated: BTreeMap<String, u64>,
}

/// New connections opened to time the handshake, by phase, per connection. Phases are consecutive: `tcp` + `server_hello`
/// + `finished` (+ `settings`) + `first_byte` = `total` for each connection.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct HandshakeReport {
    /// Intended in the window.
    pub scheduled: u64,
    /// Got their first response byte.
    pub completed: u64,
    /// Start of connect → connected.
    pub tcp: LatencyHistogram,
    /// ClientHello sent → ServerHello received (first TLS record of the server).
    pub server_hello: LatencyHistogram,
    /// ServerHello received → handshake finished at the client.
    pub finished: LatencyHistogram,
    /// HTTP/2: finished → the server's SETTINGS.
    pub settings: LatencyHistogram,
    /// Finished (or SETTINGS) → first response byte, request included.
    pub first_byte: LatencyHistogram,
    /// Start of connect → first response byte.
    pub total: LatencyHistogram,
    /// Intended start − actual start of connect.
    pub start_lag: LatencyHistogram,
    /// Failed ones, by class.
    pub errors: BTreeMap<ErrorClass, u64>,
    /// Age of those still open at the end.
    pub censored: LatencyHistogram,
    /// Connects by the number of SYN retransmissions (`TCP_INFO`): key 0 is none.
    pub syn_retries: BTreeMap<u32, u64>,
    /// Full handshakes, by rustls.
    pub full: u64,
    /// Resumed ones.
    pub resumed: u64,
}

/// Why a request or a connection did not succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorClass {
    /// ECONNREFUSED.
    ConnectRefused,
    /// No connection within `connect_timeout`.
    ConnectTimeout,
    /// Other connect failures (network unreachable, …).
    Connect,
    /// EADDRNOTAVAIL: the generator ran out of ports. Its own fault.
    PortExhausted,
    /// EMFILE/ENFILE: the generator ran out of descriptors. Its own fault.
    DescriptorsExhausted,
    /// TLS alert, bad certificate, or garbage where TLS should be.
    Tls,
    /// ECONNRESET or EPIPE.
    Reset,
    /// The peer closed in the middle of an exchange.
    Closed,
    /// Not valid HTTP.
    Protocol,
    /// No answer within `timeout`.
    Timeout,
    /// An answer of 4xx.
    Http4xx,
    /// An answer of 5xx.
    Http5xx,
    /// Still open (or unsent) when the drain ended; its age is in `censored`.
    Aborted,
}

/// Depth of the generator's queue of unsent requests.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BacklogSample {
    /// Since the start of the window.
    pub t_us: u64,
    /// Intended before now, not yet sent.
    pub unsent: u64,
    /// Sent, not yet answered.
    pub in_flight: u64,
}

/// A sign that the generator was the bottleneck.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Bottleneck {
    /// Which bound was passed.
    pub kind: BottleneckKind,
    /// The measured value, the bound and the unit, in words.
    pub detail: String,
}

/// Bounds that the generator holds itself to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BottleneckKind {
    /// Fewer requests sent than offered while connections were free.
    RateNotReached,
    /// `pacing_lag` p99 over its bound.
    PacingLag,
    /// The generator's CPU use is near its share.
    CpuSaturated,
    /// The generator waited for a CPU most of the time.
    CpuStarved,
    /// No ports left.
    PortsExhausted,
    /// No descriptors left.
    DescriptorsExhausted,
    /// Closed loop: Little's law is off by more than 5 %.
    LittlesLaw,
}
