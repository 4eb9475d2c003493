use std::collections::BTreeMap;

use super::*;
use crate::hdr::LatencyHistogram;
use crate::load::report::{Bottleneck, BottleneckKind, ErrorClass, LoadReport};
use crate::probe::report::{Counters, Limit, ProbeReport};
use crate::record::sample::{self, MIB, Shape};
use crate::units::{Bytes, MilliCpus};
use crate::verdict::Baseline;

fn controls() -> ControlStats {
    let baseline = |p99: f64, handshake: f64| {
        Some(Baseline {
            n: 3,
            response_p99_us: Some(p99),
            handshake_p99_us: Some(handshake),
            achieved_rps: Some(100.0),
            achieved_share: Some(1.0),
            error_share: Some(0.0),
        })
    };
    ControlStats {
        direct: baseline(410.0, 820.0),
        unlimited: baseline(2_590.0, 5_180.0),
    }
}

fn starved() -> TrialRecord {
    sample::valid(Shape::limited(250, 64), 1)
}

fn healthy() -> TrialRecord {
    sample::valid(Shape::limited(1000, 64), 1)
}

fn load(trial: &mut TrialRecord) -> &mut LoadReport {
    trial
        .agent
        .as_mut()
        .and_then(|a| a.load.as_mut())
        .expect("load")
}

fn probe(trial: &mut TrialRecord) -> &mut ProbeReport {
    &mut trial.agent.as_mut().expect("agent").probe
}

fn counters_end(trial: &mut TrialRecord) -> &mut Counters {
    probe(trial).counters_end.as_mut().expect("end")
}

/// Makes the tail long without any throttling.
fn slow(trial: &mut TrialRecord, p99_us: u64) {
    load(trial).response_time = sample::latencies(2_000, p99_us, p99_us * 5 / 4);
}

#[track_caller]
fn assert_verdict(trial: &TrialRecord, verdict: Verdict, evidence: &[&str]) {
    let judgement = judge(trial, &controls());
    assert_eq!(judgement.verdict, verdict, "{:?}", judgement.evidence);
    assert_eq!(judgement.evidence, evidence);
    assert!(!judgement.uncertain);
}

#[test]
fn ok_tells_the_comparison() {
    assert_verdict(
        &healthy(),
        Verdict::Ok,
        &[
            "p99 2.61 ms against 2.59 unlimited and 0.410 direct (1.01×)",
            "handshake p99 5.22 ms against 5.18 unlimited (1.01×)",
        ],
    );
}

#[test]
fn cpu_needs_throttling_and_an_effect() {
    assert_verdict(
        &starved(),
        Verdict::Cpu,
        &[
            "98 % of periods throttled at 250m CPU",
            "p99 77.1 ms against 2.59 unlimited and 0.410 direct (29.8×)",
            "handshake p99 154 ms against 5.18 unlimited (29.8×)",
        ],
    );
    // Throttled, but nobody notices: a proxy that works in bursts within its budget.
    let mut trial = starved();
    load(&mut trial).response_time = sample::latencies(960, 2_610, 3_000);
    load(&mut trial).handshake.total = sample::latencies(1_900, 5_200, 6_000);
    assert_verdict(
        &trial,
        Verdict::Ok,
        &[
            "p99 2.61 ms against 2.59 unlimited and 0.410 direct (1.01×)",
            "handshake p99 5.20 ms against 5.18 unlimited (1.00×)",
            "98 % of periods throttled, without an effect on what the client sees",
        ],
    );
    // Slow, but not throttled: the CPU limit is not to blame.
    let mut trial = healthy();
    slow(&mut trial, 20_000);
    let judgement = judge(&trial, &controls());
    assert_eq!((judgement.name(), judgement.uncertain), ("ok?", true));
    assert_eq!(
        judgement.evidence[0],
        "unexplained: no limit shows signs of being the cause"
    );
}

#[test]
fn a_microscopic_difference_is_no_effect() {
    let mut trial = starved();
    load(&mut trial).response_time = sample::latencies(200, 600, 700);
    load(&mut trial).handshake.total = LatencyHistogram::default();
    let mut fast = controls();
    fast.unlimited.as_mut().expect("unlimited").response_p99_us = Some(300.0);
    let judgement = judge(&trial, &fast);
    assert_eq!(
        judgement.verdict,
        Verdict::Ok,
        "twice as long, but by 0.3 ms: {:?}",
        judgement.evidence
    );
}

#[test]
fn lost_throughput_and_failed_requests_are_effects_too() {
    let mut trial = starved();
    load(&mut trial).response_time = sample::latencies(960, 2_610, 3_000);
    load(&mut trial).handshake.total = LatencyHistogram::default();
    load(&mut trial).achieved_rate_rps = 60.0;
    load(&mut trial).errors = BTreeMap::from([(ErrorClass::Timeout, 50)]);
    let judgement = judge(&trial, &controls());
    assert_eq!(judgement.verdict, Verdict::Cpu);
    assert!(
        judgement.evidence.contains(
            &"60.0 requests/s against 100 scheduled, of which unlimited answers 100 %".to_owned()
        ),
        "{judgement:?}"
    );
    assert!(
        judgement
            .evidence
            .contains(&"5.0 % of requests failed or were still open at the end against the unlimited control's 0 %".to_owned())
    );
}

/// At low rates random arrivals differ by more than the bound from trial to trial; nothing is lost by that.
#[test]
fn fewer_requests_because_fewer_were_scheduled_are_no_lost_throughput() {
    for controls in [controls(), ControlStats::default()] {
        let mut trial = starved();
        load(&mut trial).response_time = sample::latencies(960, 2_610, 3_000);
        load(&mut trial).handshake.total = LatencyHistogram::default();
        load(&mut trial).scheduled = 900;
        load(&mut trial).achieved_rate_rps = 89.5;
        let judgement = judge(&trial, &controls);
        assert_eq!(judgement.verdict, Verdict::Ok, "{judgement:?}");
        assert!(!judgement.uncertain, "{judgement:?}");
        load(&mut trial).achieved_rate_rps = 85.0;
        let judgement = judge(&trial, &controls);
        assert_eq!(judgement.verdict, Verdict::Cpu, "{judgement:?}");
        let told = |e: &String| e.starts_with("85.0 requests/s against 90.0 ");
        assert!(judgement.evidence.iter().any(told), "{judgement:?}");
    }
}

#[test]
fn an_upstream_whose_delay_is_unknown_is_not_one_without_delay() {
    let none = ControlStats::default();
    let mut trial = starved();
    load(&mut trial).response_time = sample::latencies(960, 52_000, 55_000);
    trial.agent.as_mut().expect("agent").upstream = None;
    trial.upstream_delay_us = Some(50_000);
    let asked = judge(&trial, &none);
    assert_eq!((asked.verdict, asked.uncertain), (Verdict::Ok, false));
    trial.upstream_delay_us = Some(200);
    assert_eq!(judge(&trial, &none).verdict, Verdict::Cpu);
    trial.upstream_delay_us = None;
    assert_eq!(
        judge(&trial, &none).verdict,
        Verdict::Ok,
        "nothing is known"
    );
}

#[test]
fn without_controls_an_absolute_bound_holds() {
    let none = ControlStats::default();
    let judgement = judge(&starved(), &none);
    assert_eq!(judgement.verdict, Verdict::Cpu);
    assert_eq!(
        judgement.evidence[1],
        "p99 77.1 ms (no unlimited control; bound 10.2 ms)"
    );
    let mut trial = starved();
    load(&mut trial).response_time = sample::latencies(960, 9_000, 9_900);
    assert_eq!(judge(&trial, &none).verdict, Verdict::Ok);
}

#[test]
fn a_tail_of_unknown_length_is_an_effect() {
    let mut trial = starved();
    load(&mut trial).censored = sample::histogram(&[(4_000_000, 50)]);
    let judgement = judge(&trial, &controls());
    assert_eq!(judgement.verdict, Verdict::Cpu);
    assert!(
        judgement.evidence[1].starts_with("p99 ≥400"),
        "{judgement:?}"
    );
}

#[test]
fn invalid_comes_first() {
    let mut trial = sample::oom_killed(Shape::limited(250, 8), 1);
    let own = &mut probe(&mut trial).limits_start.as_mut().expect("start").own;
    own.memory_bytes = Some(Limit::Max);
    assert_verdict(
        &trial,
        Verdict::Invalid,
        &["memory limit not applied: memory.max is max, wanted 8388608"],
    );

    let mut trial = starved();
    load(&mut trial).bottlenecks = vec![Bottleneck {
        kind: BottleneckKind::CpuSaturated,
        detail: "0.98 of 1 CPU".to_owned(),
    }];
    assert_verdict(
        &trial,
        Verdict::Invalid,
        &["generator: its CPU was saturated: 0.98 of 1 CPU"],
    );

    let mut trial = sample::failed(Shape::limited(250, 64), 1, FailureKind::Engine);
    trial.reasons = vec!["the engine went away".to_owned()];
    assert_verdict(&trial, Verdict::Invalid, &["the engine went away"]);

    let mut trial = healthy();
    trial.status = TrialStatus::Invalid;
    assert_verdict(
        &trial,
        Verdict::Invalid,
        &["marked invalid when it was recorded"],
    );
}

#[test]
fn oom_by_flag_by_counter_and_by_the_runtimes_word() {
    let trial = sample::oom_killed(Shape::limited(1000, 8), 1);
    let flag = "the engine's OOM flag is set";
    assert_verdict(
        &trial,
        Verdict::Oom,
        &[flag, "exit code 137", "memory limit 8.00 MiB"],
    );

    // A child was killed, the proxy lives on.
    let mut trial = healthy();
    probe(&mut trial)
        .counters_last
        .as_mut()
        .expect("last")
        .oom_kill = Some(1);
    assert_eq!(judge(&trial, &controls()).evidence[0], "oom_kill 1");
    assert_eq!(judge(&trial, &controls()).verdict, Verdict::Oom);

    let mut trial = sample::failed(Shape::limited(1000, 6), 1, FailureKind::OomKilled);
    let proxy = trial.proxy.as_mut().expect("proxy");
    proxy.error = Some("container init was OOM-killed (memory limit too low?)".to_owned());
    proxy.exit_code = Some(128);
    assert_verdict(
        &trial,
        Verdict::Oom,
        &[
            "the runtime says: container init was OOM-killed (memory limit too low?)",
            "exit code 128",
            "memory limit 6.00 MiB",
        ],
    );

    // Killed by somebody else: exit code 137 alone is no OOM.
    let mut trial = sample::failed(Shape::limited(1000, 64), 1, FailureKind::Exited);
    trial.proxy.as_mut().expect("proxy").exit_code = Some(137);
    assert_verdict(
        &trial,
        Verdict::StartFailed,
        &["exited with code 137 before its first answer"],
    );
}

#[test]
fn start_failed_with_the_engines_word() {
    let mut trial = sample::failed(Shape::limited(1000, 64), 1, FailureKind::StartFailed);
    trial.proxy.as_mut().expect("proxy").error = Some("exec: no such file".to_owned());
    assert_verdict(
        &trial,
        Verdict::StartFailed,
        &["the engine could not start it", "exec: no such file"],
    );
}

#[test]
fn hung_before_the_first_answer_and_in_the_window() {
    let trial = sample::hung(Shape::limited(1000, 8), 1);
    assert_verdict(
        &trial,
        Verdict::Hung,
        &[
            "alive, but no answer before the deadline",
            "87,000 major faults",
            "0.9 % of periods throttled",
        ],
    );
    let mut trial = silent(healthy());
    let stats = probe(&mut trial).proxy_stats.as_mut().expect("stats");
    stats
        .counters
        .retain(|name, _| !name.ends_with("downstream_cx_total"));
    load(&mut trial).handshake.completed = 0;
    load(&mut trial).connections_opened = 0;
    assert_eq!(
        judge(&trial, &controls()).evidence[0],
        "alive, but none of 1,000 requests was answered"
    );
    assert_eq!(judge(&trial, &controls()).verdict, Verdict::Hung);
    // A queue that nobody takes from overflows.
    counters_end(&mut trial).listen_overflows = Some(6_580);
    let judgement = judge(&trial, &controls());
    assert_eq!(judgement.verdict, Verdict::Hung);
    let also = "also: 6,580 overflows of the accept queue".to_owned();
    assert!(judgement.evidence.contains(&also), "{judgement:?}");
}

/// Not one request of the window was answered.
fn silent(mut trial: TrialRecord) -> TrialRecord {
    load(&mut trial).requests = 0;
    load(&mut trial).achieved_rate_rps = 0.0;
    load(&mut trial).response_time = LatencyHistogram::default();
    trial
}

/// Who answers nothing is starved, and of what is known; only where it is not, it is `hung`.
#[test]
fn a_silent_proxy_is_short_of_something() {
    let mut trial = silent(starved());
    load(&mut trial).connections_opened = 183;
    let judgement = judge(&trial, &controls());
    assert_eq!(judgement.verdict, Verdict::Cpu, "{judgement:?}");
    let also = "also: alive, but none of 1,000 requests was answered".to_owned();
    assert!(judgement.evidence.contains(&also), "{judgement:?}");
    counters_end(&mut trial).listen_overflows = Some(6_580);
    assert_eq!(judge(&trial, &controls()).verdict, Verdict::AcceptOverflow);

    let mut trial = silent(healthy());
    load(&mut trial).connections_opened = 183;
    assert_eq!(judge(&trial, &controls()).verdict, Verdict::Hung);
}

#[test]
fn descriptors_explain_a_proxy_that_hangs() {
    let mut trial = healthy();
    probe(&mut trial).nofile_limit = Some(128);
    probe(&mut trial).samples[3].open_fds_max = Some(128);
    load(&mut trial).requests = 0;
    let judgement = judge(&trial, &controls());
    assert_eq!(
        (judgement.verdict, judgement.evidence[0].as_str()),
        (Verdict::FdLimit, "128 descriptors open, limit 128")
    );

    let mut trial = sample::failed(Shape::limited(1000, 64), 1, FailureKind::Exited);
    trial.proxy.as_mut().expect("proxy").log_tail =
        Some("assert failure: Too many open files".to_owned());
    assert_verdict(
        &trial,
        Verdict::FdLimit,
        &["its log says: Too many open files"],
    );
}

#[test]
fn accept_overflow_must_touch_one_connection_in_a_hundred() {
    let mut trial = healthy();
    counters_end(&mut trial).listen_overflows = Some(9);
    assert_eq!(
        judge(&trial, &controls()).verdict,
        Verdict::Ok,
        "9 of 1,000 connections"
    );
    counters_end(&mut trial).listen_overflows = Some(1_103);
    for sample in &mut probe(&mut trial).samples {
        let queues = sample.queues.as_mut().expect("queues");
        (queues.accept, queues.accept_limit) = (vec![65], vec![64]);
    }
    load(&mut trial).handshake.syn_retries = BTreeMap::from([(0, 700), (1, 300)]);
    assert_verdict(
        &trial,
        Verdict::AcceptOverflow,
        &[
            "1,103 overflows of the accept queue",
            "depth up to 65 of 64",
            "300 connections sent their SYN again",
        ],
    );
}

#[test]
fn the_proxys_own_policy() {
    let mut trial = healthy();
    let stats = probe(&mut trial).proxy_stats.as_mut().expect("stats");
    stats.counters.insert(
        "cluster.backend.upstream_rq_pending_overflow".to_owned(),
        15_372,
    );
    assert_verdict(
        &trial,
        Verdict::Policy,
        &["15,372 requests refused by the circuit breaker for pending requests"],
    );
    let stats = probe(&mut trial).proxy_stats.as_mut().expect("stats");
    stats
        .counters
        .insert("cluster.backend.upstream_rq_pending_overflow".to_owned(), 1);
    assert_eq!(
        judge(&trial, &controls()).verdict,
        Verdict::Ok,
        "one in 2,000 is not what dominates"
    );
}

/// A breaker that makes requests wait is only to blame if somebody waits.
#[test]
fn held_back_is_not_refused() {
    let mut trial = healthy();
    let stats = probe(&mut trial).proxy_stats.as_mut().expect("stats");
    stats
        .counters
        .insert("cluster.backend.upstream_cx_overflow".to_owned(), 500);
    assert_eq!(judge(&trial, &controls()).verdict, Verdict::Ok);
    slow(&mut trial, 90_000);
    let judgement = judge(&trial, &controls());
    assert_eq!(judgement.verdict, Verdict::Policy);
    assert!(judgement.evidence[0].starts_with("500 connections that the circuit breaker"));
}

/// Samples of the window in which the proxy's memory was this large.
fn memory_in_use(trial: &mut TrialRecord, mebibytes: u64) {
    for sample in &mut probe(trial).samples {
        sample.memory.current_bytes = Some(mebibytes * MIB);
    }
}

/// A binary that is read from disk for the first time has major faults too.
#[test]
fn faults_far_below_the_limit_are_not_its_doing() {
    let mut trial = sample::valid(Shape::limited(1000, 48), 1);
    counters_end(&mut trial).pgmajfault = Some(3_373);
    slow(&mut trial, 142_000);
    memory_in_use(&mut trial, 30);
    let judgement = judge(&trial, &controls());
    assert_eq!(judgement.name(), "ok?");
    assert!(
        judgement
            .evidence
            .contains(&"337 major faults per second, but memory was not at a limit".to_owned()),
        "{judgement:?}"
    );
    memory_in_use(&mut trial, 48);
    assert_eq!(judge(&trial, &controls()).verdict, Verdict::Memory);
    trial.limits.memory = None;
    let own = |l: &mut Option<crate::probe::report::LimitsInForce>| {
        l.as_mut().expect("limits").own.memory_bytes = Some(Limit::Max);
    };
    own(&mut probe(&mut trial).limits_start);
    own(&mut probe(&mut trial).limits_end);
    assert_eq!(judge(&trial, &controls()).name(), "ok?", "no limit at all");
}

#[test]
fn memory_by_reclaim_and_an_effect() {
    let mut trial = sample::valid(Shape::limited(1000, 48), 1);
    memory_in_use(&mut trial, 48);
    counters_end(&mut trial).workingset_refault_file = Some(29_000);
    counters_end(&mut trial).pgmajfault = Some(3_373);
    assert_eq!(
        judge(&trial, &controls()).verdict,
        Verdict::Ok,
        "reclaim without an effect"
    );
    slow(&mut trial, 142_000);
    assert_verdict(
        &trial,
        Verdict::Memory,
        &[
            "2,900 refaults of file pages per second",
            "337 major faults per second",
            "memory up to 48.0 MiB of 48.0 MiB",
            "p99 142 ms against 2.59 unlimited and 0.410 direct (54.9×)",
            "handshake p99 5.22 ms against 5.18 unlimited (1.01×)",
        ],
    );
}

#[test]
fn cpu_and_memory_together_go_by_the_longer_stall() {
    let mut trial = sample::valid(Shape::limited(250, 48), 1);
    memory_in_use(&mut trial, 48);
    counters_end(&mut trial).workingset_refault_file = Some(29_000);
    let judgement = judge(&trial, &controls());
    assert_eq!(
        judgement.verdict,
        Verdict::Cpu,
        "pressure unknown: the order of precedence"
    );
    assert!(
        judgement
            .evidence
            .contains(&"also: 2,900 refaults of file pages per second".to_owned()),
        "{judgement:?}"
    );
    let stall = |trial: &mut TrialRecord, usec| {
        let probe = probe(trial);
        for (counters, usec) in [
            (&mut probe.counters_start, 0),
            (&mut probe.counters_end, usec),
        ] {
            counters
                .as_mut()
                .expect("counters")
                .psi_usec
                .insert("memory_some".to_owned(), usec);
        }
    };
    // 98 periods × 70 ms were throttled.
    stall(&mut trial, 6_000_000);
    assert_eq!(judge(&trial, &controls()).verdict, Verdict::Cpu);
    stall(&mut trial, 9_000_000);
    let judgement = judge(&trial, &controls());
    assert_eq!(judgement.verdict, Verdict::Memory);
    assert!(
        judgement
            .evidence
            .contains(&"also: 98 % of periods throttled at 250m CPU".to_owned()),
        "{judgement:?}"
    );
}

#[test]
fn swap_by_pages_that_come_back() {
    let mut trial = sample::valid(
        Shape {
            swap_mib: 64,
            ..Shape::limited(1000, 24)
        },
        1,
    );
    probe(&mut trial).host.swap_total_bytes = Some(512 * MIB);
    for sample in &mut probe(&mut trial).samples {
        sample.memory.swap_bytes = Some(27 * MIB);
    }
    memory_in_use(&mut trial, 24);
    counters_end(&mut trial).workingset_refault_anon = Some(8_000);
    counters_end(&mut trial).pgmajfault = Some(2_000);
    slow(&mut trial, 90_000);
    assert_verdict(
        &trial,
        Verdict::Swap,
        &[
            "800 pages per second came back from swap",
            "200 major faults per second",
            "27.0 MiB in swap",
            "p99 90.0 ms against 2.59 unlimited and 0.410 direct (34.8×)",
            "handshake p99 5.22 ms against 5.18 unlimited (1.01×)",
        ],
    );
}

#[test]
fn the_application_is_as_bad_without_a_proxy() {
    let mut slow_upstream = controls();
    slow_upstream
        .direct
        .as_mut()
        .expect("direct")
        .response_p99_us = Some(50_300.0);
    slow_upstream
        .unlimited
        .as_mut()
        .expect("unlimited")
        .response_p99_us = Some(52_500.0);
    let mut trial = healthy();
    slow(&mut trial, 53_000);
    let judgement = judge(&trial, &slow_upstream);
    assert_eq!(judgement.verdict, Verdict::Application);
    assert_eq!(judgement.evidence, ["p99 53.0 ms, of which 50.3 direct"]);
    // Without the control, the upstream's own clock tells.
    trial
        .agent
        .as_mut()
        .and_then(|a| a.upstream.as_mut())
        .expect("upstream")
        .delay_p99_us = Some(50_100);
    let judgement = judge(
        &trial,
        &ControlStats {
            direct: None,
            ..slow_upstream
        },
    );
    assert_eq!(
        judgement.evidence,
        ["p99 53.0 ms, of which 50.1 in the upstream by its own clock"]
    );
}

#[test]
fn controls_are_judged_by_what_applies_to_them() {
    let all = controls();
    let direct = sample::control(Control::Direct, 1);
    assert_eq!(
        judge(&direct, &all.for_trial(direct.control)).verdict,
        Verdict::Ok
    );
    let unlimited = sample::control(Control::Unlimited, 1);
    let stats = all.for_trial(unlimited.control);
    assert_eq!(
        (stats.unlimited.is_none(), stats.direct.is_some()),
        (true, true)
    );
    assert_eq!(judge(&unlimited, &stats).verdict, Verdict::Ok);
}

/// Whatever a record holds, there is a verdict with evidence, and no panic.
#[test]
fn every_gap_in_the_record_is_survived() {
    let whole = serde_json::to_value(starved()).expect("json");
    let mut judged = 0;
    let optional = [
        "load",
        "upstream",
        "ready_after_us",
        "probe.counters_start",
        "probe.counters_end",
        "probe.counters_last",
        "probe.limits_start",
        "probe.limits_end",
        "probe.memory_at_ready",
        "probe.proxy_stats",
    ];
    for mask in (0..1u32 << optional.len()).filter(|m| m.count_ones() <= 2) {
        let mut value = whole.clone();
        for (bit, path) in optional.iter().enumerate() {
            if mask & (1 << bit) != 0 {
                let pointer = format!("/agent/{}", path.replace('.', "/"));
                *value.pointer_mut(&pointer).expect(path) = serde_json::Value::Null;
            }
        }
        let trial: TrialRecord = serde_json::from_value(value).expect("record");
        assert!(
            !judge(&trial, &controls()).evidence.is_empty()
                || trial.agent.as_ref().is_some_and(|a| a.load.is_none())
        );
        judged += 1;
    }
    assert_eq!(judged, 1 + 10 + 45);
    let mut trial = starved();
    trial.agent = None;
    trial.limits.cpu = Some(MilliCpus(0));
    trial.limits.memory = Some(Bytes(0));
    assert_eq!(judge(&trial, &controls()).verdict, Verdict::Ok);
}
