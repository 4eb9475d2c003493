//! Limits asked for against limits in force.

use super::{Findings, is_measured};
use crate::probe::report::{CgroupLimits, Limit, LimitsInForce, ProbeReport};
use crate::record::derived;
use crate::record::trial::{Control, TrialRecord};
use crate::verdict::effective::own_cpu_millis;

/// Largest page of the supported kernels: memory limits are rounded down to a whole page.
const PAGE_BYTES: u64 = 64 << 10;

/// A parent's memory cap that a proxy without a limit of its own may live under.
pub const UNLIMITED_MEMORY_FLOOR_BYTES: u64 = 1 << 30;

/// The systemd cgroup driver rounds CPU quotas up to this share of a CPU, thousandths.
const SYSTEMD_STEP_MILLIS: f64 = 10.0;

pub(super) fn check(trial: &TrialRecord, findings: &mut Findings) {
    let Some(probe) = derived::probe(trial).filter(|_| trial.control != Some(Control::Direct))
    else {
        return;
    };
    let measured = is_measured(trial);
    for (when, limits) in [("start", &probe.limits_start), ("end", &probe.limits_end)] {
        match limits {
            None if measured => findings.reason(format!(
                "limits could not be read back from the kernel at the {when} of the window"
            )),
            Some(limits) if when == "start" => in_force(trial, probe, limits, findings),
            _ => {}
        }
    }
    if let (Some(start), Some(end)) = (&probe.limits_start, &probe.limits_end) {
        changed(start, end, findings);
    }
}

fn in_force(
    trial: &TrialRecord,
    probe: &ProbeReport,
    limits: &LimitsInForce,
    findings: &mut Findings,
) {
    cpu(trial, &limits.own, findings);
    memory(trial, &limits.own, findings);
    swap(trial, probe, limits, findings);
    for ancestor in &limits.ancestors {
        cpu_of_parent(trial, probe, ancestor, findings);
        memory_of_parent(trial, ancestor, findings);
    }
}

fn cpu(trial: &TrialRecord, own: &CgroupLimits, findings: &mut Findings) {
    let Some(found) = own.cpu_quota_usec else {
        if trial.limits.cpu.is_some() && is_measured(trial) {
            findings.reason("cpu limit unknown: cpu.max could not be read");
        }
        return;
    };
    let (asked, found) = match (trial.limits.cpu, found) {
        (None, Limit::Max) => return,
        (None, Limit::Of(quota)) => {
            let of = own.cpu_period_usec.map(|period| format!(" of {period}"));
            return findings.reason(format!(
                "cpu limit in force though none was asked: {quota}{} usec",
                of.unwrap_or_default()
            ));
        }
        (Some(asked), Limit::Max) => {
            let period = trial.limits.cpu_period.0;
            let wanted = asked.0 * period / 1000;
            return findings.reason(format!(
                "cpu limit not applied: cpu.max is max, wanted {wanted} of {period} usec"
            ));
        }
        (Some(asked), Limit::Of(quota)) => (asked.0, quota),
    };
    let Some(period) = own.cpu_period_usec else {
        if is_measured(trial) {
            findings.reason("cpu limit unknown: the period could not be read");
        }
        return;
    };
    if period != trial.limits.cpu_period.0 {
        return findings.reason(format!(
            "cpu period not applied: {period} usec in force, {} asked",
            trial.limits.cpu_period.0
        ));
    }
    let wanted = asked as f64 * period as f64 / 1000.0;
    // The kernel's quota is a whole number of microseconds.
    if (found as f64 - wanted).abs() < 1.0 {
        return;
    }
    let rounded = (asked as f64 / SYSTEMD_STEP_MILLIS).ceil() * SYSTEMD_STEP_MILLIS;
    if (found as f64 - rounded * period as f64 / 1000.0).abs() < 1.0 {
        findings.reason(format!(
            "cpu limit rounded to 1 % of a CPU by the systemd cgroup driver: {found} of {period} usec in force, \
             {wanted:.0} asked; use a multiple of 10m"
        ));
    } else {
        findings.reason(format!(
            "cpu limit differs: {found} of {period} usec in force, {wanted:.0} asked"
        ));
    }
}

fn memory(trial: &TrialRecord, own: &CgroupLimits, findings: &mut Findings) {
    let asked = trial.limits.memory.map(|m| m.0);
    match (asked, own.memory_bytes) {
        (None, None | Some(Limit::Max)) => {}
        (Some(_), None) if !is_measured(trial) => {}
        (Some(_), None) => findings.reason("memory limit unknown: memory.max could not be read"),
        (None, Some(Limit::Of(found))) => findings.reason(format!(
            "memory limit in force though none was asked: {found} bytes"
        )),
        (Some(asked), Some(Limit::Max)) => findings.reason(format!(
            "memory limit not applied: memory.max is max, wanted {asked}"
        )),
        (Some(asked), Some(Limit::Of(found))) => {
            if found > asked || asked - found >= PAGE_BYTES {
                findings.reason(format!(
                    "memory limit differs: {found} bytes in force, {asked} asked"
                ));
            }
        }
    }
}

fn swap(trial: &TrialRecord, probe: &ProbeReport, limits: &LimitsInForce, findings: &mut Findings) {
    if trial.limits.memory.is_none() {
        return;
    }
    let asked = trial.limits.swap.0;
    // Without a swap device no swap limit has an effect, whatever the kernel holds.
    if probe.host.swap_total_bytes == Some(0) {
        if asked > 0 {
            findings.notice(format!("the host has no swap: swap={asked} bytes is inert"));
        }
        return;
    }
    match limits.own.swap_bytes {
        None if !is_measured(trial) => {}
        None => findings.reason(format!(
            "swap limit not applied: swap accounting is off (boot with swapaccount=1), wanted {asked}"
        )),
        Some(Limit::Max) => findings.reason(format!(
            "swap limit not applied: memory.swap.max is max, wanted {asked}"
        )),
        Some(Limit::Of(found)) if found > asked || asked - found >= PAGE_BYTES => findings.reason(
            format!("swap limit differs: {found} bytes in force, {asked} asked"),
        ),
        Some(Limit::Of(_)) => {}
    }
    for ancestor in &limits.ancestors {
        if let Some(Limit::Of(cap)) = ancestor.swap_bytes.filter(|_| asked > 0)
            && cap < asked
        {
            findings.reason(format!(
                "a parent cgroup caps swap lower: {} allows {cap} bytes, {asked} asked",
                ancestor.path
            ));
        }
    }
    if let Some(total) = probe.host.swap_total_bytes
        && total < asked
    {
        findings.notice(format!(
            "the host has less swap than asked: {total} bytes in all, {asked} asked"
        ));
    }
}

fn cpu_of_parent(
    trial: &TrialRecord,
    probe: &ProbeReport,
    ancestor: &CgroupLimits,
    findings: &mut Findings,
) {
    let Some(Some(cap)) = own_cpu_millis(ancestor) else {
        return;
    };
    let path = &ancestor.path;
    match trial.limits.cpu {
        Some(asked) if cap < asked.0 as f64 => findings.reason(format!(
            "a parent cgroup caps cpu lower: {path} allows {cap:.0}m, {}m asked",
            asked.0
        )),
        None => {
            // Workers and the main thread are all that can run at once.
            let usable = u64::from(trial.workers) + 1;
            let usable = probe.host.cpus.map_or(usable, |cpus| cpus.min(usable));
            if cap < usable as f64 * 1000.0 {
                findings.reason(format!(
                    "a parent cgroup caps cpu: {path} allows {cap:.0}m, though no limit was asked"
                ));
            }
        }
        Some(_) => {}
    }
}

fn memory_of_parent(trial: &TrialRecord, ancestor: &CgroupLimits, findings: &mut Findings) {
    let Some(Limit::Of(cap)) = ancestor.memory_bytes else {
        return;
    };
    let path = &ancestor.path;
    match trial.limits.memory {
        Some(asked) if cap < asked.0 => findings.reason(format!(
            "a parent cgroup caps memory lower: {path} allows {cap} bytes, {} asked",
            asked.0
        )),
        None if cap < UNLIMITED_MEMORY_FLOOR_BYTES => findings.reason(format!(
            "a parent cgroup caps memory: {path} allows {cap} bytes, though no limit was asked"
        )),
        _ => {}
    }
}

fn changed(start: &LimitsInForce, end: &LimitsInForce, findings: &mut Findings) {
    let mut compare = |start: &CgroupLimits, end: &CgroupLimits, whose: &str| {
        let pairs = [
            (
                "cpu quota",
                limit_text(start.cpu_quota_usec),
                limit_text(end.cpu_quota_usec),
            ),
            (
                "cpu period",
                number_text(start.cpu_period_usec),
                number_text(end.cpu_period_usec),
            ),
            (
                "memory limit",
                limit_text(start.memory_bytes),
                limit_text(end.memory_bytes),
            ),
            (
                "swap limit",
                limit_text(start.swap_bytes),
                limit_text(end.swap_bytes),
            ),
        ];
        for (what, before, after) in pairs {
            if let (Some(before), Some(after)) = (before, after)
                && before != after
            {
                findings.reason(format!(
                    "{what} {whose}changed during the trial: {before} at the start, {after} at the end"
                ));
            }
        }
    };
    compare(&start.own, &end.own, "");
    for before in &start.ancestors {
        if let Some(after) = end.ancestors.iter().find(|a| a.path == before.path) {
            compare(before, after, &format!("of {} ", before.path));
        }
    }
}

fn limit_text(limit: Option<Limit>) -> Option<String> {
    Some(match limit? {
        Limit::Max => "max".to_owned(),
        Limit::Of(value) => value.to_string(),
    })
}

fn number_text(value: Option<u64>) -> Option<String> {
    value.map(|v| v.to_string())
}
