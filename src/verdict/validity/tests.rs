use std::collections::BTreeMap;

use super::*;
use crate::load::report::{Bottleneck, BottleneckKind};
use crate::probe::report::{CgroupLimits, Limit, ProbeReport};
use crate::record::sample::{self, MIB, Shape};
use crate::record::trial::Control;
use crate::spec::settings::PageCache;
use crate::units::{Bytes, MilliCpus};

fn trial() -> TrialRecord {
    sample::valid(Shape::limited(500, 64), 1)
}

fn probe(trial: &mut TrialRecord) -> &mut ProbeReport {
    &mut trial.agent.as_mut().expect("agent").probe
}

/// Changes the proxy's own limits at both ends.
fn own(trial: &mut TrialRecord, change: impl Fn(&mut CgroupLimits)) {
    let probe = probe(trial);
    change(&mut probe.limits_start.as_mut().expect("start").own);
    change(&mut probe.limits_end.as_mut().expect("end").own);
}

/// Changes the nearest parent's limits at both ends.
fn parent(trial: &mut TrialRecord, change: impl Fn(&mut CgroupLimits)) {
    let probe = probe(trial);
    change(&mut probe.limits_start.as_mut().expect("start").ancestors[0]);
    change(&mut probe.limits_end.as_mut().expect("end").ancestors[0]);
}

#[track_caller]
fn assert_reasons(trial: &TrialRecord, expected: &[&str]) {
    assert_eq!(findings(trial).reasons, expected);
}

#[track_caller]
fn assert_notices(trial: &TrialRecord, expected: &[&str]) {
    let found = findings(trial);
    assert_eq!(found.reasons, Vec::<String>::new());
    assert_eq!(found.notices, expected);
}

#[test]
fn a_sound_trial_has_nothing_against_it() {
    assert_eq!(findings(&trial()), Findings::default());
    assert_eq!(
        findings(&sample::control(Control::Direct, 1)),
        Findings::default()
    );
    assert_eq!(
        findings(&sample::control(Control::Unlimited, 1)),
        Findings::default()
    );
    assert_reasons(&sample::oom_killed(Shape::limited(1000, 8), 1), &[]);
    assert_reasons(&sample::hung(Shape::limited(1000, 8), 1), &[]);
}

#[test]
fn dropped_limits() {
    let mut t = trial();
    own(&mut t, |l| l.cpu_quota_usec = Some(Limit::Max));
    assert_reasons(
        &t,
        &["cpu limit not applied: cpu.max is max, wanted 50000 of 100000 usec"],
    );
    let mut t = trial();
    own(&mut t, |l| l.memory_bytes = Some(Limit::Max));
    assert_reasons(
        &t,
        &["memory limit not applied: memory.max is max, wanted 67108864"],
    );
    let mut t = trial();
    probe(&mut t).host.swap_total_bytes = Some(512 * MIB);
    own(&mut t, |l| l.swap_bytes = Some(Limit::Max));
    assert_reasons(
        &t,
        &["swap limit not applied: memory.swap.max is max, wanted 0"],
    );
    own(&mut t, |l| l.swap_bytes = None);
    assert_reasons(
        &t,
        &["swap limit not applied: swap accounting is off (boot with swapaccount=1), wanted 0"],
    );
}

#[test]
fn limits_that_differ() {
    let mut t = trial();
    own(&mut t, |l| l.cpu_quota_usec = Some(Limit::Of(40_000)));
    assert_reasons(
        &t,
        &["cpu limit differs: 40000 of 100000 usec in force, 50000 asked"],
    );
    let mut t = trial();
    own(&mut t, |l| {
        (l.cpu_quota_usec, l.cpu_period_usec) = (Some(Limit::Of(5_000)), Some(10_000))
    });
    assert_reasons(
        &t,
        &["cpu period not applied: 10000 usec in force, 100000 asked"],
    );
    let mut t = trial();
    own(&mut t, |l| l.memory_bytes = Some(Limit::Of(32 * MIB)));
    assert_reasons(
        &t,
        &["memory limit differs: 33554432 bytes in force, 67108864 asked"],
    );
    let mut t = trial();
    probe(&mut t).host.swap_total_bytes = Some(512 * MIB);
    own(&mut t, |l| l.swap_bytes = Some(Limit::Of(64 * MIB)));
    assert_reasons(
        &t,
        &["swap limit differs: 67108864 bytes in force, 0 asked"],
    );
    let mut t = trial();
    (t.limits.cpu, t.limits.memory) = (None, None);
    assert_reasons(
        &t,
        &[
            "cpu limit in force though none was asked: 50000 of 100000 usec",
            "memory limit in force though none was asked: 67108864 bytes",
        ],
    );
}

#[test]
fn a_limit_within_the_kernels_rounding_is_as_asked() {
    let mut t = trial();
    t.limits.memory = Some(Bytes(64 * MIB + 1000));
    own(&mut t, |l| l.memory_bytes = Some(Limit::Of(64 * MIB)));
    assert_reasons(&t, &[]);
}

#[test]
fn the_systemd_driver_rounds_up_to_one_per_cent() {
    let mut t = trial();
    t.limits.cpu = Some(MilliCpus(125));
    own(&mut t, |l| l.cpu_quota_usec = Some(Limit::Of(13_000)));
    assert_reasons(
        &t,
        &[
            "cpu limit rounded to 1 % of a CPU by the systemd cgroup driver: 13000 of 100000 usec in force, 12500 asked; \
         use a multiple of 10m",
        ],
    );
    own(&mut t, |l| l.cpu_quota_usec = Some(Limit::Of(12_500)));
    assert_reasons(&t, &[]);
}

#[test]
fn a_parent_that_caps_lower() {
    let mut t = trial();
    parent(&mut t, |l| l.cpu_quota_usec = Some(Limit::Of(20_000)));
    parent(&mut t, |l| l.memory_bytes = Some(Limit::Of(32 * MIB)));
    assert_reasons(
        &t,
        &[
            "a parent cgroup caps cpu lower: /system.slice allows 200m, 500m asked",
            "a parent cgroup caps memory lower: /system.slice allows 33554432 bytes, 67108864 asked",
        ],
    );
    let mut t = sample::control(Control::Unlimited, 1);
    parent(&mut t, |l| l.cpu_quota_usec = Some(Limit::Of(150_000)));
    parent(&mut t, |l| l.memory_bytes = Some(Limit::Of(512 * MIB)));
    assert_reasons(
        &t,
        &[
            "a parent cgroup caps cpu: /system.slice allows 1500m, though no limit was asked",
            "a parent cgroup caps memory: /system.slice allows 536870912 bytes, though no limit was asked",
        ],
    );
    parent(&mut t, |l| l.cpu_quota_usec = Some(Limit::Of(200_000)));
    parent(&mut t, |l| l.memory_bytes = Some(Limit::Of(8192 * MIB)));
    assert_reasons(&t, &[]);
    let mut t = trial();
    t.limits.swap = Bytes(64 * MIB);
    probe(&mut t).host.swap_total_bytes = Some(512 * MIB);
    own(&mut t, |l| l.swap_bytes = Some(Limit::Of(64 * MIB)));
    parent(&mut t, |l| l.swap_bytes = Some(Limit::Of(0)));
    assert_reasons(
        &t,
        &["a parent cgroup caps swap lower: /system.slice allows 0 bytes, 67108864 asked"],
    );
}

#[test]
fn a_limit_that_changed_during_the_trial() {
    let mut t = trial();
    let end = probe(&mut t).limits_end.as_mut().expect("end");
    end.own.cpu_quota_usec = Some(Limit::Max);
    end.ancestors[0].memory_bytes = Some(Limit::Of(1 << 30));
    assert_reasons(
        &t,
        &[
            "cpu quota changed during the trial: 50000 at the start, max at the end",
            "memory limit of /system.slice changed during the trial: max at the start, 1073741824 at the end",
        ],
    );
}

#[test]
fn limits_that_could_not_be_read() {
    let mut t = trial();
    probe(&mut t).limits_end = None;
    own_start_unknown(&mut t);
    assert_reasons(
        &t,
        &[
            "cpu limit unknown: cpu.max could not be read",
            "memory limit unknown: memory.max could not be read",
            "limits could not be read back from the kernel at the end of the window",
        ],
    );
}

/// What died while its cgroup was being made says nothing of its limits; a limit that was seen to differ still counts.
#[test]
fn limits_of_a_proxy_that_never_came_to_its_window() {
    let mut t = sample::failed(
        Shape::limited(500, 64),
        1,
        crate::record::trial::FailureKind::Exited,
    );
    t.agent = sample::hung(Shape::limited(500, 64), 1).agent;
    assert_reasons(&t, &[]);
    own_start_unknown(&mut t);
    assert_reasons(&t, &[]);
    let own = &mut probe(&mut t).limits_start.as_mut().expect("start").own;
    own.memory_bytes = Some(Limit::Max);
    assert_reasons(
        &t,
        &["memory limit not applied: memory.max is max, wanted 67108864"],
    );
}

/// Killed in its window, or in the warm-up: there is no end of the window to read limits at, and no length to compare.
#[test]
fn a_window_that_the_proxy_did_not_live_to_see() {
    let mut t = trial();
    t.status = crate::record::trial::TrialStatus::Failed;
    t.failure = Some(crate::record::trial::FailureKind::OomKilled);
    probe(&mut t).limits_end = None;
    for window_us in [1_200_000, 0] {
        let load = t.agent.as_mut().and_then(|a| a.load.as_mut());
        load.expect("load").window_us = window_us;
        assert_reasons(&t, &[]);
    }
    let start = probe(&mut t).limits_start.as_mut().expect("start");
    start.own.memory_bytes = Some(Limit::Max);
    assert_reasons(
        &t,
        &["memory limit not applied: memory.max is max, wanted 67108864"],
    );
}

fn own_start_unknown(t: &mut TrialRecord) {
    let own = &mut probe(t).limits_start.as_mut().expect("start").own;
    (own.cpu_quota_usec, own.memory_bytes) = (None, None);
}

#[test]
fn no_swap_device_makes_a_swap_limit_inert() {
    let mut t = trial();
    t.limits.swap = Bytes(256 * MIB);
    assert_notices(&t, &["the host has no swap: swap=268435456 bytes is inert"]);
    probe(&mut t).host.swap_total_bytes = Some(128 * MIB);
    own(&mut t, |l| l.swap_bytes = Some(Limit::Of(256 * MIB)));
    assert_notices(
        &t,
        &["the host has less swap than asked: 134217728 bytes in all, 268435456 asked"],
    );
}

#[test]
fn limits_that_the_engine_dropped_with_a_warning() {
    let swap = "Your kernel does not support swap limit capabilities or the cgroup is not mounted. Memory limited without swap.";
    let cpu =
        "Your kernel does not support CPU cfs quota or the cgroup is not mounted. Quota discarded.";
    let mut t = trial();
    t.engine_warnings = vec![swap.to_owned()];
    assert_notices(&t, &[&format!("engine: {swap}")]);
    t.engine_warnings = vec![cpu.to_owned()];
    assert_reasons(&t, &[&format!("limit dropped by the engine: {cpu}")]);
    probe(&mut t).host.swap_total_bytes = Some(512 * MIB);
    t.engine_warnings = vec![swap.to_owned()];
    assert_reasons(&t, &[&format!("limit dropped by the engine: {swap}")]);
}

#[test]
fn an_unread_period_speaks_against_a_measurement_only() {
    let unread = |own_limits: &mut CgroupLimits| own_limits.cpu_period_usec = None;
    let mut measured = trial();
    own(&mut measured, unread);
    assert_reasons(
        &measured,
        &["cpu limit unknown: the period could not be read"],
    );
    // A proxy that was killed before the window was killed all the same.
    let mut killed = sample::oom_killed(Shape::limited(1000, 8), 1);
    unread(&mut probe(&mut killed).limits_start.as_mut().expect("start").own);
    assert_reasons(&killed, &[]);
    let mut unasked = trial();
    own(&mut unasked, unread);
    unasked.limits.cpu = None;
    assert_reasons(
        &unasked,
        &["cpu limit in force though none was asked: 50000 usec"],
    );
}

#[test]
fn the_generator_was_the_bottleneck() {
    let mut t = trial();
    let load = t
        .agent
        .as_mut()
        .and_then(|a| a.load.as_mut())
        .expect("load");
    load.bottlenecks = vec![Bottleneck {
        kind: BottleneckKind::PacingLag,
        detail: "p99 5012 us, bound 1000 us".to_owned(),
    }];
    load.errors = BTreeMap::from([(ErrorClass::PortExhausted, 7)]);
    load.window_us = 8_000_000;
    assert_reasons(
        &t,
        &[
            "generator: sends were late: p99 5012 us, bound 1000 us",
            "generator: out of ports: 7 times",
            "window: 8.000 s measured, 10.000 s asked",
        ],
    );
}

#[test]
fn the_proxy_runs_another_number_of_workers() {
    let mut t = trial();
    t.workers = 2;
    assert_reasons(
        &t,
        &["the proxy runs 1 workers, 2 asked (server.concurrency)"],
    );
}

#[test]
fn the_host_was_noisy() {
    let mut t = trial();
    let host = &mut probe(&mut t).host;
    host.steal_share = Some(0.034);
    host.thermal_throttle_events = Some(2);
    host.suspended_us = Some(61_000_000);
    host.clock_step_us = Some(-3_600_000_000);
    host.other_cpu_usec = Some(8_000_000);
    host.busy_share = Some(0.99);
    assert_reasons(
        &t,
        &[
            "noise: the hypervisor took 3.4 % of the CPU time (bound 1 %)",
            "noise: 2 thermal throttling events (bound 0)",
            "noise: the host was suspended for 61.000 s",
            "noise: the wall clock was set by -3600.000 s",
            "noise: other programs used 40 % of the CPU time (bound 25 %) of a host that was 99 % busy (bound 80 %)",
        ],
    );
    let mut t = trial();
    let host = &mut probe(&mut t).host;
    host.other_cpu_usec = Some(8_000_000);
    host.on_battery = Some(true);
    assert_notices(
        &t,
        &["the host runs on battery: its CPU frequency may be held down"],
    );
}

#[test]
fn the_page_cache_was_not_as_asked() {
    let mut t = trial();
    let charge = |t: &mut TrialRecord, bytes| {
        probe(t)
            .memory_at_ready
            .as_mut()
            .expect("memory")
            .file_bytes = Some(bytes);
    };
    charge(&mut t, 51 * MIB);
    let cold = "page cache: warm asked, cold found (51.0 MiB of file pages charged to the proxy at readiness, bound 2)";
    assert_reasons(&t, &[cold]);
    t.page_cache_shared = None;
    assert_notices(&t, &[cold]);
    t.page_cache_shared = Some(false);
    assert_notices(
        &t,
        &[
            "page cache: warm cannot be had, the storage driver gives each container its own; its file pages count against the memory limit",
        ],
    );
    t.page_cache_shared = Some(true);
    t.page_cache_asked = PageCache::Cold;
    assert_reasons(&t, &[]);
    charge(&mut t, 0);
    assert_reasons(
        &t,
        &[
            "page cache: cold asked, warm found (0.0 MiB of file pages charged to the proxy at readiness, bound 2)",
        ],
    );
}

#[test]
fn the_upstream_was_far_off_its_delay() {
    let mut t = trial();
    let upstream = t
        .agent
        .as_mut()
        .and_then(|a| a.upstream.as_mut())
        .expect("upstream");
    upstream.delay_p50_us = Some(1_200);
    assert_reasons(
        &t,
        &["upstream: median delay 1200 us served, 200 us asked (bound 200 us off)"],
    );
    t.upstream_delay_us = Some(1_100);
    assert_reasons(&t, &[]);
}

use crate::load::report::ErrorClass;

#[test]
fn handshakes_were_not_as_asked() {
    let mut settings = sample::manifest(&[]).base;
    let mut t = trial();
    assert_eq!(reasons(&t, &settings), Vec::<String>::new());
    let load = t
        .agent
        .as_mut()
        .and_then(|a| a.load.as_mut())
        .expect("load");
    (load.handshake.full, load.handshake.resumed) = (41, 59);
    load.negotiated
        .insert("TLSv1_2 TLS_ECDHE secp256r1 full".to_owned(), 3);
    assert_eq!(
        reasons(&t, &settings),
        [
            "handshakes: 59 of 100 resumed a session, though resumption is off",
            "handshakes: 3 negotiated TLSv1_2 TLS_ECDHE secp256r1 full, TLSv1_3 asked",
        ]
    );
    settings.tls.resumption = true;
    let mut t = trial();
    let load = t
        .agent
        .as_mut()
        .and_then(|a| a.load.as_mut())
        .expect("load");
    load.handshake.full = 100;
    assert_eq!(
        reasons(&t, &settings),
        ["handshakes: none of 100 resumed a session, though resumption is on"]
    );
}
