//! Made-up but realistic trials for the tests of everything that reads them.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use super::manifest::{EngineFacts, FactorLevels, HostFacts, ImageFacts, Manifest, PlannedCell};
use super::trial::{
    ContainerEnd, Control, Factor, FailureKind, SCHEMA_VERSION, TrialRecord, TrialStatus,
};
use crate::agent::job::{AgentOutcome, AgentResult, UpstreamReport};
use crate::hdr::LatencyHistogram;
use crate::load::report::{BacklogSample, ErrorClass, HandshakeReport, LoadReport};
use crate::probe::report::{
    CgroupLimits, CgroupVersion, Counters, HostNoise, Limit, LimitsInForce, MemoryGauges,
    ProbeReport, ProxyStats, Queues, Sample,
};
use crate::spec::settings::{
    Arrivals, CertificateKey, DelayDistribution, KeyExchange, Limits, Load, LoadMode, PageCache,
    Placement, Protocol, Proxy, ProxyKind, Settings, Tls, TlsVersion, Upstream, Verify, Wait,
};
use crate::units::{Bytes, Micros, MilliCpus, RatePerSecond};

pub(crate) const MIB: u64 = 1 << 20;
pub(crate) const WINDOW_US: u64 = 10_000_000;

/// A histogram of `(microseconds, how often)`.
pub(crate) fn histogram(values: &[(u64, u64)]) -> LatencyHistogram {
    let mut histogram = LatencyHistogram::default();
    for &(us, count) in values {
        for _ in 0..count {
            histogram.record_us(us);
        }
    }
    histogram
}

/// 1,000 latencies with these p50, p99 and p99.9.
pub(crate) fn latencies(p50: u64, p99: u64, p999: u64) -> LatencyHistogram {
    histogram(&[
        (p50 * 9 / 10, 300),
        (p50, 400),
        (p50 * 6 / 5, 280),
        (p99, 11),
        (p999, 9),
    ])
}

/// A cell's limits and what it did to the latencies.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) cpu_millis: Option<u64>,
    pub(crate) memory_mib: Option<u64>,
    pub(crate) swap_mib: u64,
    pub(crate) p50_us: u64,
    pub(crate) p99_us: u64,
    pub(crate) throttled: u64,
}

impl Shape {
    pub(crate) fn limited(cpu_millis: u64, memory_mib: u64) -> Self {
        let starved = cpu_millis < 1000;
        Self {
            cpu_millis: Some(cpu_millis),
            memory_mib: Some(memory_mib),
            swap_mib: 0,
            p50_us: if starved { 2_150 } else { 960 },
            p99_us: if starved {
                77_000 * (1000 - cpu_millis) / 750
            } else {
                2_610
            },
            throttled: if starved { 98 } else { 0 },
        }
    }

    pub(crate) fn control(control: Control) -> Self {
        let direct = control == Control::Direct;
        Self {
            cpu_millis: None,
            memory_mib: None,
            swap_mib: 0,
            p50_us: if direct { 290 } else { 950 },
            p99_us: if direct { 410 } else { 2_590 },
            throttled: 0,
        }
    }

    fn limits(&self) -> Limits {
        Limits {
            cpu: self.cpu_millis.map(MilliCpus),
            cpu_period: Micros(100_000),
            memory: self.memory_mib.map(|m| Bytes(m * MIB)),
            swap: Bytes(self.swap_mib * MIB),
        }
    }

    fn factors(&self) -> Vec<Factor> {
        let (Some(cpu), Some(memory)) = (self.cpu_millis, self.memory_mib) else {
            return Vec::new();
        };
        let factor = |name: &str, level: String| Factor {
            name: name.to_owned(),
            level,
        };
        let cpu = if cpu % 1000 == 0 {
            (cpu / 1000).to_string()
        } else {
            format!("{cpu}m")
        };
        let swap = if self.swap_mib == 0 {
            "0".to_owned()
        } else {
            format!("{}Mi", self.swap_mib)
        };
        vec![
            factor("cpu", cpu),
            factor("memory", format!("{memory}Mi")),
            factor("swap", swap),
        ]
    }
}

/// A valid trial of a cell of the matrix.
pub(crate) fn valid(shape: Shape, repetition: u32) -> TrialRecord {
    let factors = shape.factors();
    let cell: Vec<String> = factors
        .iter()
        .map(|f| format!("{}={}", f.name, f.level))
        .collect();
    trial(&cell.join(","), factors, None, shape, repetition)
}

/// A valid trial of a control.
pub(crate) fn control(control: Control, repetition: u32) -> TrialRecord {
    let name = match control {
        Control::Direct => "direct",
        Control::Unlimited => "unlimited",
    };
    trial(
        name,
        Vec::new(),
        Some(control),
        Shape::control(control),
        repetition,
    )
}

fn trial(
    cell: &str,
    factors: Vec<Factor>,
    control: Option<Control>,
    shape: Shape,
    repetition: u32,
) -> TrialRecord {
    let direct = control == Some(Control::Direct);
    TrialRecord {
        schema: SCHEMA_VERSION,
        run: "01-quick".to_owned(),
        position: u64::from(repetition - 1) * 6,
        cell: cell.to_owned(),
        factors,
        control,
        repetition,
        block: repetition,
        seed: 1000 + u64::from(repetition),
        started_at: format!("2026-11-30T12:0{repetition}:00Z"),
        wall_us: 13_250_000,
        warmup_us: 2_000_000,
        duration_us: WINDOW_US,
        limits: shape.limits(),
        workers: 1,
        rate: Some(RatePerSecond(100.0)),
        nofile: (!direct).then_some(16_384),
        upstream_delay_us: Some(200),
        page_cache_asked: PageCache::Warm,
        page_cache_shared: Some(true),
        status: TrialStatus::Valid,
        reasons: Vec::new(),
        failure: None,
        verdict: None,
        agent: Some(AgentResult {
            outcome: AgentOutcome::Measured,
            ready_after_us: Some(310_000),
            load: Some(load(shape, repetition, direct)),
            probe: if direct {
                ProbeReport {
                    host: quiet_host(),
                    ..Default::default()
                }
            } else {
                probe(shape)
            },
            upstream: Some(UpstreamReport {
                requests: 10_500,
                delay_p50_us: Some(204),
                delay_p99_us: Some(231),
                delay_max_us: Some(702),
            }),
            agent_cpu_usec: Some(1_900_000),
        }),
        proxy: (!direct).then(|| ContainerEnd {
            id: "4f1c".repeat(16),
            state: Some("running".to_owned()),
            exit_code: None,
            oom_killed: Some(false),
            error: None,
            log_tail: None,
        }),
        engine_warnings: Vec::new(),
        attempts: 1,
        retried_because: None,
    }
}

fn load(shape: Shape, repetition: u32, direct: bool) -> LoadReport {
    // Repetitions differ by a few per cent, as real ones do.
    let vary = |us: u64| us * u64::from(98 + 2 * (repetition % 3)) / 100;
    let (p50, p99) = (vary(shape.p50_us), vary(shape.p99_us));
    let response_time = latencies(p50, p99, p99 * 5 / 4);
    LoadReport {
        window_us: WINDOW_US,
        offered_rate_rps: Some(100.0),
        achieved_rate_rps: 100.0,
        scheduled: 1000,
        sent: 1000,
        requests: 1000,
        service_time: response_time.clone(),
        response_time,
        send_lag: latencies(12, 48, 90),
        pacing_lag: latencies(12, 48, 90),
        censored: LatencyHistogram::default(),
        errors: BTreeMap::new(),
        connection_errors: BTreeMap::new(),
        connections_opened: 0,
        status_codes: BTreeMap::from([(200, 1000)]),
        handshake: handshake(p50, p99, direct),
        backlog: (0..200)
            .map(|i| BacklogSample {
                t_us: i * 50_000,
                unsent: i % 2,
                in_flight: 2,
            })
            .collect(),
        in_flight_mean: Some(1.9),
        littles_law_users: None,
        bytes_received: 1_250_000,
        bottlenecks: Vec::new(),
        generator_cpu_usec: Some(1_500_000),
        generator_cpu_wait_usec: Some(20_000),
        negotiated: BTreeMap::from([("TLSv1_3 TLS13_AES_256_GCM_SHA384 X25519".to_owned(), 64)]),
    }
}

fn handshake(p50: u64, p99: u64, direct: bool) -> HandshakeReport {
    let phase = |share: u64| latencies(p50 * share / 10, p99 * share / 10, p99 * share / 8);
    HandshakeReport {
        scheduled: 1000,
        completed: 1000,
        tcp: latencies(60, 95, 140),
        server_hello: if direct {
            LatencyHistogram::default()
        } else {
            phase(7)
        },
        finished: if direct {
            LatencyHistogram::default()
        } else {
            phase(2)
        },
        settings: LatencyHistogram::default(),
        first_byte: phase(10),
        total: phase(20),
        start_lag: latencies(10, 40, 80),
        errors: BTreeMap::new(),
        censored: LatencyHistogram::default(),
        syn_retries: BTreeMap::from([(0, 1000)]),
        full: if direct { 0 } else { 1000 },
        resumed: 0,
    }
}

fn probe(shape: Shape) -> ProbeReport {
    let limits = in_force(shape);
    let memory = MemoryGauges {
        current_bytes: Some(17 * MIB),
        peak_bytes: Some(19 * MIB),
        anon_bytes: Some(14 * MIB),
        file_bytes: Some(0),
        sock_bytes: Some(4096),
        kernel_bytes: Some(MIB),
        swap_bytes: Some(0),
        swap_peak_bytes: None,
    };
    let counters = |t_us: u64, periods: u64| Counters {
        t_us,
        cpu_usage_usec: Some(200_000 + periods * 20_000),
        nr_periods: Some(10 + periods),
        nr_throttled: Some(1 + periods * shape.throttled / 100),
        throttled_usec: Some(periods * shape.throttled * 700),
        pgfault: Some(9_000 + periods),
        pgmajfault: Some(0),
        pgscan: Some(0),
        pgsteal: Some(0),
        workingset_refault_anon: Some(0),
        workingset_refault_file: Some(0),
        memory_max_events: Some(0),
        oom: Some(0),
        oom_kill: Some(0),
        psi_usec: BTreeMap::from([("cpu_some".to_owned(), 1000 * t_us / 100_000)]),
        listen_overflows: Some(0),
        listen_drops: Some(0),
        tcp_timeouts: Some(0),
        retrans_segs: Some(0),
    };
    let end = counters(3_000_000 + WINDOW_US, 100);
    ProbeReport {
        cgroup_version: Some(CgroupVersion::V2),
        limits_start: Some(limits.clone()),
        limits_end: Some(limits),
        memory_at_ready: Some(memory),
        counters_start: Some(counters(3_000_000, 0)),
        counters_end: Some(end.clone()),
        counters_last: Some(end),
        samples: (0..200).map(|i| sample(i, memory)).collect(),
        gaps: BTreeMap::new(),
        probe_cpu_usec: Some(40_000),
        proxy_stats: Some(envoy_stats()),
        nofile_limit: Some(16_384),
        host: quiet_host(),
        sysctls: BTreeMap::from([("net.core.somaxconn".to_owned(), 4096)]),
    }
}

fn sample(i: u64, memory: MemoryGauges) -> Sample {
    Sample {
        t_us: i * 50_000,
        memory,
        cpu_usage_usec: Some(200_000 + i * 10_000),
        nr_throttled: Some(1 + i / 2),
        nr_periods: Some(10 + i / 2),
        queues: Some(Queues {
            accept: vec![(i % 4) as u32],
            accept_limit: vec![4096],
            half_open: Some(0),
            established: Some(64),
            unread: Some(i % 2),
            unread_bytes: Some((i % 2) * 180),
        }),
        open_fds: Some(120),
        open_fds_max: Some(120),
    }
}

fn in_force(shape: Shape) -> LimitsInForce {
    let of = |value: Option<u64>| Some(value.map_or(Limit::Max, Limit::Of));
    LimitsInForce {
        own: CgroupLimits {
            path: "/system.slice/docker-4f1c.scope".to_owned(),
            cpu_quota_usec: of(shape.cpu_millis.map(|m| m * 100)),
            cpu_period_usec: Some(100_000),
            memory_bytes: of(shape.memory_mib.map(|m| m * MIB)),
            swap_bytes: of(shape.memory_mib.map(|_| shape.swap_mib * MIB)),
        },
        ancestors: vec![CgroupLimits {
            path: "/system.slice".to_owned(),
            cpu_quota_usec: Some(Limit::Max),
            cpu_period_usec: Some(100_000),
            memory_bytes: Some(Limit::Max),
            swap_bytes: Some(Limit::Max),
        }],
    }
}

pub(crate) fn quiet_host() -> HostNoise {
    HostNoise {
        cpus: Some(2),
        steal_share: Some(0.0),
        busy_share: Some(0.31),
        other_cpu_usec: Some(150_000),
        load1: Some(0.8),
        cpu_khz_mean: Some(2_450_000.0),
        thermal_throttle_events: Some(0),
        suspended_us: Some(0),
        clock_step_us: Some(3),
        swap_total_bytes: Some(0),
        on_battery: None,
        psi_usec: BTreeMap::new(),
    }
}

fn envoy_stats() -> ProxyStats {
    let counter = |name: &str, value: u64| (name.to_owned(), value);
    let gauge = |name: &str, value: f64| (name.to_owned(), value);
    ProxyStats {
        counters: BTreeMap::from([
            counter("http.ingress_http.downstream_rq_total", 1000),
            counter("listener.ingress.downstream_cx_total", 1000),
            counter("listener.ingress.worker_0.downstream_cx_total", 1000),
            counter("listener.admin.downstream_cx_total", 2),
            counter("cluster.backend.upstream_rq_pending_overflow", 0),
            counter("cluster.backend.upstream_cx_overflow", 0),
        ]),
        gauges: BTreeMap::from([
            gauge("server.concurrency", 1.0),
            gauge("http.ingress_http.downstream_rq_active", 2.0),
            gauge("http.admin.downstream_rq_active", 1.0),
            gauge("cluster.backend.upstream_rq_pending_active", 0.0),
        ]),
        histograms: BTreeMap::new(),
        read_start_us: Some(-2_000),
        read_end_us: Some(3_000),
        missing: Vec::new(),
    }
}

/// A trial whose proxy the kernel killed while starting.
pub(crate) fn oom_killed(shape: Shape, repetition: u32) -> TrialRecord {
    let mut trial = failed(shape, repetition, FailureKind::OomKilled);
    let proxy = trial.proxy.as_mut().unwrap();
    proxy.state = Some("exited".to_owned());
    proxy.exit_code = Some(137);
    proxy.oom_killed = Some(true);
    trial.reasons = vec!["the kernel killed the proxy for memory (exit code 137)".to_owned()];
    trial
}

/// A trial whose proxy lived in reclaim and never answered.
pub(crate) fn hung(shape: Shape, repetition: u32) -> TrialRecord {
    let mut trial = failed(shape, repetition, FailureKind::NotReady);
    let agent = trial.agent.as_mut().unwrap();
    agent.outcome = AgentOutcome::NotReady;
    agent.probe.counters_last.as_mut().unwrap().pgmajfault = Some(87_000);
    trial.reasons = vec!["no answer within 10 s".to_owned()];
    trial
}

/// A trial that failed before the window.
pub(crate) fn failed(shape: Shape, repetition: u32, kind: FailureKind) -> TrialRecord {
    let mut trial = valid(shape, repetition);
    trial.status = TrialStatus::Failed;
    trial.failure = Some(kind);
    trial.reasons = vec![format!("{kind:?}")];
    let agent = trial.agent.as_mut().unwrap();
    agent.outcome = AgentOutcome::ProxyGone;
    agent.ready_after_us = None;
    agent.load = None;
    agent.upstream = None;
    let probe = &mut agent.probe;
    (probe.counters_start, probe.counters_end, probe.limits_end) = (None, None, None);
    probe.samples.clear();
    probe.proxy_stats = None;
    trial
}

/// A trial of which 30 of 1,000 requests timed out.
pub(crate) fn with_errors(mut trial: TrialRecord) -> TrialRecord {
    let load = trial.agent.as_mut().unwrap().load.as_mut().unwrap();
    load.errors = BTreeMap::from([(ErrorClass::Timeout, 28), (ErrorClass::Http5xx, 2)]);
    load.requests = 970;
    load.status_codes = BTreeMap::from([(200, 970), (503, 2)]);
    trial
}

/// The cells of the quick matrix: 2 CPU × 2 memory, three repetitions, both controls.
pub(crate) fn quick_run() -> (Manifest, Vec<TrialRecord>) {
    let shapes: Vec<Shape> = [250, 1000]
        .iter()
        .flat_map(|&cpu| [64, 256].map(|memory| Shape::limited(cpu, memory)))
        .collect();
    let mut trials = Vec::new();
    for repetition in 1..=3 {
        trials.push(control(Control::Direct, repetition));
        trials.push(control(Control::Unlimited, repetition));
        trials.extend(shapes.iter().map(|&shape| valid(shape, repetition)));
    }
    for (position, trial) in (0..).zip(&mut trials) {
        trial.position = position;
    }
    let manifest = manifest(&trials);
    (manifest, trials)
}

/// A manifest that plans exactly the cells of these trials.
pub(crate) fn manifest(trials: &[TrialRecord]) -> Manifest {
    let mut cells: Vec<PlannedCell> = Vec::new();
    let mut factors: Vec<FactorLevels> = Vec::new();
    for trial in trials {
        if cells.iter().all(|c| c.cell != trial.cell) {
            cells.push(PlannedCell {
                cell: trial.cell.clone(),
                factors: trial.factors.clone(),
                control: trial.control,
            });
        }
        for factor in &trial.factors {
            match factors.iter_mut().find(|f| f.name == factor.name) {
                Some(known) if known.levels.contains(&factor.level) => {}
                Some(known) => known.levels.push(factor.level.clone()),
                None => factors.push(FactorLevels {
                    name: factor.name.clone(),
                    levels: vec![factor.level.clone()],
                }),
            }
        }
    }
    let repetitions = trials.iter().map(|t| t.repetition).max().unwrap_or(1);
    Manifest {
        schema: SCHEMA_VERSION,
        sweep_version: env!("CARGO_PKG_VERSION").to_owned(),
        run: "01-quick".to_owned(),
        name: "quick".to_owned(),
        matrix_text: "name = \"quick\"\n".to_owned(),
        matrix_hash: "ab".repeat(32),
        overrides: Vec::new(),
        base: settings(),
        factors,
        planned_trials: cells.len() as u64 * u64::from(repetitions),
        cells,
        seed: 1,
        repetitions,
        images: vec![ImageFacts {
            role: "proxy".to_owned(),
            reference: "sweep-envoy:1.40".to_owned(),
            id: Some("sha256:0123".to_owned()),
            repo_digests: Vec::new(),
            program_version: Some("1.40.0".to_owned()),
        }],
        host: HostFacts {
            kernel: Some("6.12.0".to_owned()),
            os: Some("Debian GNU/Linux 13".to_owned()),
            cpus: Some(2),
            memory_bytes: Some(8 << 30),
            swap_bytes: Some(0),
            cgroup_version: Some("2".to_owned()),
            ..Default::default()
        },
        engine: EngineFacts {
            name: Some("Docker Engine".to_owned()),
            version: Some("26.1.5".to_owned()),
            storage_driver: Some("overlay2".to_owned()),
            cgroup_driver: Some("systemd".to_owned()),
            ..Default::default()
        },
        page_cache_shared: Some(true),
        notices: vec!["the host has no swap: the factor swap is inert".to_owned()],
        started_at: "2026-11-30T12:00:00Z".to_owned(),
        updated_at: "2026-11-30T12:04:00Z".to_owned(),
        finished_at: Some("2026-11-30T12:04:00Z".to_owned()),
    }
}

fn settings() -> Settings {
    Settings {
        warmup: Micros(2_000_000),
        duration: Micros(WINDOW_US),
        limits: Limits {
            cpu_period: Micros(100_000),
            ..Default::default()
        },
        proxy: Proxy {
            kind: ProxyKind::Envoy,
            image: "sweep-envoy:1.40".to_owned(),
            workers: 1,
            nofile: 16_384,
            page_cache: PageCache::Warm,
            backlog: None,
            config: None,
            command: Vec::new(),
            files: BTreeMap::new(),
            port: 8443,
            admin_port: Some(9901),
            ready_path: "/".to_owned(),
            max_pending_requests: None,
            max_connections: None,
        },
        upstream: Upstream {
            delay: Micros(200),
            delay_distribution: DelayDistribution::Constant,
            delay_high: Micros(0),
            delay_high_share: 0.0,
            body: Bytes(1024),
        },
        load: Load {
            mode: LoadMode::Open,
            rate: RatePerSecond(100.0),
            arrivals: Arrivals::Constant,
            users: 1,
            connections: 64,
            requests_per_connection: None,
            streams: 1,
            handshake_rate: RatePerSecond(100.0),
            protocol: Protocol::H1,
            method: "GET".to_owned(),
            path: "/".to_owned(),
            headers: BTreeMap::new(),
            body: Bytes(0),
            timeout: Micros(10_000_000),
            connect_timeout: Micros(30_000_000),
            max_pacing_lag: Micros(1_000),
            threads: 1,
            wait: Wait::Auto,
        },
        tls: Tls {
            version: TlsVersion::V1_3,
            certificate: CertificateKey::EcdsaP256,
            key_exchange: KeyExchange::X25519,
            resumption: false,
            mutual: false,
            verify: Verify::Ca,
        },
        placement: Placement::default(),
    }
}
