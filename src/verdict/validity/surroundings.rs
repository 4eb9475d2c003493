//! The generator, the host, the page cache, the upstream and the engine's own warnings.

use super::{Findings, is_measured};
use crate::load::report::{BottleneckKind, ErrorClass, LoadReport};
use crate::probe::report::HostNoise;
use crate::record::columns::proxy_concurrency;
use crate::record::derived::{self, COLD_FILE_BYTES, PageCacheFound};
use crate::record::trial::{Control, TrialRecord};
use crate::spec::settings::PageCache;
use crate::units::counted;

/// Share of CPU time that a hypervisor may take.
pub const STEAL_SHARE: f64 = 0.01;
/// Share of all CPUs' time that others may use, if the host was busier than [`HOST_BUSY_SHARE`].
pub const OTHER_CPU_SHARE: f64 = 0.25;
/// Below this share of CPU time in use, idle CPUs were left and other load took nothing from the pod.
pub const HOST_BUSY_SHARE: f64 = 0.80;
/// Time for which the host may be suspended; readings of the two clocks differ by microseconds.
pub const SUSPENDED_US: u64 = 1_000;
/// Step of the wall clock; slewing by NTP stays far below it.
pub const CLOCK_STEP_US: u64 = 1_000_000;
/// By how much the upstream's median delay may differ from the one asked: this long, …
pub const UPSTREAM_DELAY_US: u64 = 200;
/// … or this share of it, whichever is more.
pub const UPSTREAM_DELAY_SHARE: f64 = 0.20;
/// By which share the measured window may differ from the one asked.
pub const WINDOW_SHARE: f64 = 0.01;

pub(super) fn check(trial: &TrialRecord, findings: &mut Findings) {
    engine(trial, findings);
    page_cache(trial, findings);
    if !is_measured(trial) {
        return;
    }
    let (Some(load), Some(probe)) = (derived::load(trial), derived::probe(trial)) else {
        return;
    };
    generator(trial, load, findings);
    workers(trial, findings);
    upstream(trial, findings);
    noise(trial, load, &probe.host, findings);
}

/// A limit that the engine dropped with only a warning. The kernel's word decides where it was read; this is the word
/// for it where it was not.
fn engine(trial: &TrialRecord, findings: &mut Findings) {
    if trial.control == Some(Control::Direct) {
        return;
    }
    let no_swap = derived::probe(trial).and_then(|p| p.host.swap_total_bytes) == Some(0);
    for warning in &trial.engine_warnings {
        let lower = warning.to_lowercase();
        let dropped = lower.contains("discarded")
            || lower.contains("does not support")
            || lower.contains("not supported");
        if dropped && !(no_swap && lower.contains("swap")) {
            findings.reason(format!("limit dropped by the engine: {}", warning.trim()));
        } else {
            findings.notice(format!("engine: {}", warning.trim()));
        }
    }
}

fn generator(trial: &TrialRecord, load: &LoadReport, findings: &mut Findings) {
    for bottleneck in &load.bottlenecks {
        findings.reason(format!(
            "generator: {}: {}",
            bottleneck_name(bottleneck.kind),
            bottleneck.detail
        ));
    }
    for (class, kind) in [
        (ErrorClass::PortExhausted, BottleneckKind::PortsExhausted),
        (
            ErrorClass::DescriptorsExhausted,
            BottleneckKind::DescriptorsExhausted,
        ),
    ] {
        let count = |errors: &std::collections::BTreeMap<ErrorClass, u64>| {
            errors.get(&class).copied().unwrap_or(0)
        };
        let failed = count(&load.errors) + count(&load.handshake.errors);
        if failed > 0 && load.bottlenecks.iter().all(|b| b.kind != kind) {
            findings.reason(format!(
                "generator: {}: {}",
                bottleneck_name(kind),
                counted(failed, "time")
            ));
        }
    }
    let (asked, measured) = (trial.duration_us as f64, load.window_us as f64);
    if (measured - asked).abs() > WINDOW_SHARE * asked {
        findings.reason(format!(
            "window: {:.3} s measured, {:.3} s asked",
            measured / 1e6,
            asked / 1e6
        ));
    }
}

fn bottleneck_name(kind: BottleneckKind) -> &'static str {
    match kind {
        BottleneckKind::RateNotReached => "rate not reached",
        BottleneckKind::PacingLag => "sends were late",
        BottleneckKind::CpuSaturated => "its CPU was saturated",
        BottleneckKind::CpuStarved => "it had no CPU",
        BottleneckKind::PortsExhausted => "out of ports",
        BottleneckKind::DescriptorsExhausted => "out of descriptors",
        BottleneckKind::LittlesLaw => "Little's law does not hold",
    }
}

fn workers(trial: &TrialRecord, findings: &mut Findings) {
    if let Some(found) = proxy_concurrency(trial)
        && found != f64::from(trial.workers)
    {
        findings.reason(format!(
            "the proxy runs {found} workers, {} asked (server.concurrency)",
            trial.workers
        ));
    }
}

fn upstream(trial: &TrialRecord, findings: &mut Findings) {
    let served = trial
        .agent
        .as_ref()
        .and_then(|a| a.upstream.as_ref()?.delay_p50_us);
    let (Some(asked), Some(served)) = (trial.upstream_delay_us, served) else {
        return;
    };
    let bound = (asked as f64 * UPSTREAM_DELAY_SHARE).max(UPSTREAM_DELAY_US as f64);
    if served.abs_diff(asked) as f64 > bound {
        findings.reason(format!(
            "upstream: median delay {served} us served, {asked} us asked (bound {bound:.0} us off)"
        ));
    }
}

fn page_cache(trial: &TrialRecord, findings: &mut Findings) {
    if trial.control == Some(Control::Direct) {
        return;
    }
    let charged = derived::probe(trial)
        .and_then(|p| p.memory_at_ready?.file_bytes)
        .map_or(0.0, |b| b as f64 / f64::from(1 << 20));
    let bound = COLD_FILE_BYTES >> 20;
    match (trial.page_cache_asked, derived::page_cache(trial)) {
        (PageCache::Warm, Some(PageCacheFound::Cold)) => {
            let text = format!(
                "page cache: warm asked, cold found ({charged:.1} MiB of file pages charged to the proxy at readiness, bound {bound})"
            );
            // Where it is not known whether containers share the cache, a cold one may be all that can be had.
            if trial.page_cache_shared.is_some() {
                findings.reason(text);
            } else {
                findings.notice(text);
            }
        }
        (PageCache::Cold, Some(PageCacheFound::Warm)) => findings.reason(format!(
            "page cache: cold asked, warm found ({charged:.1} MiB of file pages charged to the proxy at readiness, bound {bound})"
        )),
        (PageCache::Warm, Some(PageCacheFound::Unshared)) => findings.notice(
            "page cache: warm cannot be had, the storage driver gives each container its own; its file pages count against the memory limit",
        ),
        _ => {}
    }
}

fn noise(trial: &TrialRecord, load: &LoadReport, host: &HostNoise, findings: &mut Findings) {
    if let Some(steal) = host.steal_share.filter(|&s| s > STEAL_SHARE) {
        findings.reason(format!(
            "noise: the hypervisor took {:.1} % of the CPU time (bound {:.0} %)",
            steal * 100.0,
            STEAL_SHARE * 100.0
        ));
    }
    if let Some(events) = host.thermal_throttle_events.filter(|&e| e > 0) {
        findings.reason(format!(
            "noise: {events} thermal throttling events (bound 0)"
        ));
    }
    if let Some(us) = host.suspended_us.filter(|&s| s > SUSPENDED_US) {
        findings.reason(format!(
            "noise: the host was suspended for {:.3} s",
            us as f64 / 1e6
        ));
    }
    if let Some(us) = host
        .clock_step_us
        .filter(|s| s.unsigned_abs() > CLOCK_STEP_US)
    {
        findings.reason(format!(
            "noise: the wall clock was set by {:+.3} s",
            us as f64 / 1e6
        ));
    }
    other_load(load, host, findings);
    if host.on_battery == Some(true) {
        findings.notice("the host runs on battery: its CPU frequency may be held down");
    }
    if host.steal_share.is_none() && trial.control.is_none() {
        findings.notice("CPU time stolen by a hypervisor is unknown");
    }
}

fn other_load(load: &LoadReport, host: &HostNoise, findings: &mut Findings) {
    let (Some(other), Some(cpus), Some(busy)) = (host.other_cpu_usec, host.cpus, host.busy_share)
    else {
        return;
    };
    let available = load.window_us as f64 * cpus as f64;
    if available <= 0.0 {
        return;
    }
    let share = other as f64 / available;
    if share > OTHER_CPU_SHARE && busy > HOST_BUSY_SHARE {
        findings.reason(format!(
            "noise: other programs used {:.0} % of the CPU time (bound {:.0} %) of a host that was {:.0} % busy (bound {:.0} %)",
            share * 100.0,
            OTHER_CPU_SHARE * 100.0,
            busy * 100.0,
            HOST_BUSY_SHARE * 100.0
        ));
    }
}
