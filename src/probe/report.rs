//! What the probes tell. Every value that could not be read is `None`, never 0.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The probes' account of one trial.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ProbeReport {
    /// cgroup version found for the proxy.
    pub cgroup_version: Option<CgroupVersion>,
    /// Limits in the kernel when the window began, of the container and of every ancestor.
    pub limits_start: Option<LimitsInForce>,
    /// The same when it ended.
    pub limits_end: Option<LimitsInForce>,
    /// Memory of the proxy when it first answered (or at the last look before it died or the deadline passed).
    pub memory_at_ready: Option<MemoryGauges>,
    /// Counters when the window began.
    pub counters_start: Option<Counters>,
    /// Counters when it ended; with `counters_start`, differences over the window.
    pub counters_end: Option<Counters>,
    /// The last counters seen at all, since the proxy started (evidence for one that died or hung).
    pub counters_last: Option<Counters>,
    /// Gauges sampled in the window.
    pub samples: Vec<Sample>,
    /// Samples that failed or came too late, by probe name: gaps.
    pub gaps: BTreeMap<String, u64>,
    /// CPU time that the probes cost over the window.
    pub probe_cpu_usec: Option<u64>,
    /// The proxy's own statistics over the window.
    pub proxy_stats: Option<ProxyStats>,
    /// Soft `RLIMIT_NOFILE` in force in the proxy's process when the window began.
    #[serde(default)]
    pub nofile_limit: Option<u64>,
    /// The host around it.
    pub host: HostNoise,
    /// Kernel settings of the pod that decide queues: somaxconn, tcp_syn_linear_timeouts, tcp_syn_retries, …
    pub sysctls: BTreeMap<String, i64>,
}

/// cgroup version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CgroupVersion {
    /// Separate hierarchies.
    V1,
    /// The unified hierarchy.
    V2,
}

/// Limits as the kernel holds them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LimitsInForce {
    /// The container's own.
    pub own: CgroupLimits,
    /// Its ancestors', nearest first.
    pub ancestors: Vec<CgroupLimits>,
}

/// Limits of one cgroup. For each value: `None` = could not be read; `Some(Limit::Max)` = no limit.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CgroupLimits {
    /// Path below the hierarchy's mount.
    pub path: String,
    /// CFS quota, microseconds per period.
    pub cpu_quota_usec: Option<Limit>,
    /// CFS period.
    pub cpu_period_usec: Option<u64>,
    /// Memory, without swap.
    pub memory_bytes: Option<Limit>,
    /// Swap on top of memory (v1: memory+swap − memory).
    pub swap_bytes: Option<Limit>,
}

/// A limit, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// No limit.
    Max,
    /// This much.
    Of(u64),
}

/// Cumulative counters, kernel names.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counters {
    /// Monotonic time of the reading, microseconds since the agent started.
    pub t_us: u64,
    /// CPU used, user + system.
    pub cpu_usage_usec: Option<u64>,
    /// Periods in which the group ran.
    pub nr_periods: Option<u64>,
    /// Of these, throttled.
    pub nr_throttled: Option<u64>,
    /// Time throttled, summed over CPUs.
    pub throttled_usec: Option<u64>,
    /// Page faults.
    pub pgfault: Option<u64>,
    /// Page faults that needed I/O.
    pub pgmajfault: Option<u64>,
    /// Pages scanned by reclaim (v2 only).
    pub pgscan: Option<u64>,
    /// Pages reclaimed (v2 only).
    pub pgsteal: Option<u64>,
    /// Refaults of anonymous pages.
    pub workingset_refault_anon: Option<u64>,
    /// Refaults of file pages.
    pub workingset_refault_file: Option<u64>,
    /// Times a charge hit the limit (v2 `memory.events` max; v1 `memory.failcnt` + `memory.memsw.failcnt`, because v1 tries
    /// the memory+swap counter first; without swap v1 may count nothing, and then it is `None`).
    pub memory_max_events: Option<u64>,
    /// OOM events (v2 only).
    pub oom: Option<u64>,
    /// Processes killed.
    pub oom_kill: Option<u64>,
    /// PSI totals by `cpu_some`, `cpu_full`, `memory_some`, `memory_full`, `io_some`, `io_full`; absent where the kernel has
    /// none.
    pub psi_usec: BTreeMap<String, u64>,
    /// Of the pod's network namespace.
    pub listen_overflows: Option<u64>,
    /// Of the pod's network namespace.
    pub listen_drops: Option<u64>,
    /// SYN retransmissions and other timeouts, of the pod's network namespace.
    pub tcp_timeouts: Option<u64>,
    /// Retransmitted segments, of the pod's network namespace.
    pub retrans_segs: Option<u64>,
}

/// Memory of the proxy by kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct MemoryGauges {
    /// `memory.current` (v1 `usage_in_bytes`).
    pub current_bytes: Option<u64>,
    /// `memory.peak` (v1 `max_usage_in_bytes`).
    pub peak_bytes: Option<u64>,
    /// Anonymous.
    pub anon_bytes: Option<u64>,
    /// Page cache.
    pub file_bytes: Option<u64>,
    /// Socket buffers.
    pub sock_bytes: Option<u64>,
    /// Kernel.
    pub kernel_bytes: Option<u64>,
    /// Swapped out.
    pub swap_bytes: Option<u64>,
    /// `memory.swap.peak`.
    pub swap_peak_bytes: Option<u64>,
}

/// Gauges at one moment of the window.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Sample {
    /// Since the start of the window.
    pub t_us: u64,
    /// Memory.
    pub memory: MemoryGauges,
    /// CPU counters at this moment, so that a time series can be drawn.
    pub cpu_usage_usec: Option<u64>,
    /// Throttled periods so far.
    pub nr_throttled: Option<u64>,
    /// Periods so far.
    pub nr_periods: Option<u64>,
    /// Accept queue and what surrounds it.
    pub queues: Option<Queues>,
    /// Descriptors open in the proxy's processes, summed.
    pub open_fds: Option<u64>,
    /// Descriptors open in the one of them that has most, to be compared with [`ProbeReport::nofile_limit`].
    #[serde(default)]
    pub open_fds_max: Option<u64>,
}

/// Queues of the proxy's listening port.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Queues {
    /// Depth of each listening socket (one per worker with SO_REUSEPORT).
    pub accept: Vec<u32>,
    /// Limit of each listening socket.
    pub accept_limit: Vec<u32>,
    /// SYN_RECV sockets; `None` like the three below in a sample that skipped the walk over connections (it costs time in
    /// proportion to their number, and is thinned out to stay within the probes' CPU budget).
    pub half_open: Option<u64>,
    /// Established sockets on the port, those still in the accept queue included.
    pub established: Option<u64>,
    /// Of these, accepted by the proxy and with data that it has not read: the queue in which keep-alive load waits.
    pub unread: Option<u64>,
    /// Unread bytes in them.
    pub unread_bytes: Option<u64>,
}

/// The proxy's own statistics over the window.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ProxyStats {
    /// Counters: difference over the window, by the proxy's own name.
    pub counters: BTreeMap<String, u64>,
    /// Gauges under load, 0.1 s before the window's end.
    pub gauges: BTreeMap<String, f64>,
    /// Histograms: difference over the window.
    pub histograms: BTreeMap<String, Vec<HistogramBucket>>,
    /// When the first reading was complete, microseconds after the window began (negative: before).
    #[serde(default)]
    pub read_start_us: Option<i64>,
    /// When the last reading was complete, microseconds after the window ended.
    #[serde(default)]
    pub read_end_us: Option<i64>,
    /// What could not be read, in words.
    pub missing: Vec<String>,
}

/// One bucket of a proxy's histogram.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct HistogramBucket {
    /// Lower bound, in the proxy's unit.
    pub lower_bound: f64,
    /// Width.
    pub width: f64,
    /// Values in it.
    pub count: u64,
}

/// The host during the window.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct HostNoise {
    /// CPUs online.
    pub cpus: Option<u64>,
    /// Share of CPU time stolen by the hypervisor, 0..=1.
    pub steal_share: Option<f64>,
    /// Share of CPU time used by anything, 0..=1.
    pub busy_share: Option<f64>,
    /// CPU time of the host outside the pod's three containers, microseconds, when known.
    pub other_cpu_usec: Option<u64>,
    /// 1-minute load average at the end.
    pub load1: Option<f64>,
    /// Mean frequency over CPUs and samples, kHz.
    pub cpu_khz_mean: Option<f64>,
    /// Thermal throttling events over the window.
    pub thermal_throttle_events: Option<u64>,
    /// Growth of BOOTTIME − MONOTONIC: time suspended.
    pub suspended_us: Option<u64>,
    /// Change of REALTIME − MONOTONIC: a clock step.
    pub clock_step_us: Option<i64>,
    /// Swap devices' total size.
    pub swap_total_bytes: Option<u64>,
    /// On battery power.
    pub on_battery: Option<bool>,
    /// Host PSI totals over the window, as in [`Counters::psi_usec`].
    pub psi_usec: BTreeMap<String, u64>,
}
