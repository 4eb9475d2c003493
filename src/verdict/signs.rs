//! The kernel's and the proxy's signs of each failure mode. Each function gives its evidence in words, or `None`.

use super::controls::{ControlStats, value};
use super::effect::{ABSOLUTE_P99_US, EFFECT_ERROR_SHARE, latency};
use super::words::{bytes, count, ms, percent, significant};
use crate::record::columns::{REFUSALS, accepted_connections};
use crate::record::derived::{self, last_seen, over_window};
use crate::record::trial::{FailureKind, TrialRecord};

/// Share of periods throttled from which CPU can be the verdict.
pub const THROTTLED_SHARE: f64 = 0.05;
/// Major faults per second from which memory or swap can be the verdict.
pub const MAJOR_FAULTS_PER_S: f64 = 10.0;
/// Refaults per second from which memory (file pages) or swap (anonymous pages) can be the verdict.
pub const REFAULTS_PER_S: f64 = 100.0;
/// Share of the window in which a task of the proxy waited for memory, from which memory can be the verdict.
pub const MEMORY_STALL_SHARE: f64 = 0.05;
/// Memory in use, as a share of the limit, from which reclaim can be the limit's doing. A group that is reclaimed from
/// stands within some pages of its limit; below it, files were read for the first time, or the host is short of memory.
pub const AT_MEMORY_LIMIT_SHARE: f64 = 0.90;
/// Swap in use from which swap can be the verdict.
pub const SWAP_BYTES: u64 = 1 << 20;
/// Overflows of the accept queue, as a share of the new connections, from which they are the verdict.
pub const OVERFLOW_SHARE: f64 = 0.01;
/// Refusals by the proxy's own policy, as a share of requests and new connections, from which they are the verdict.
pub const POLICY_SHARE: f64 = 0.001;
/// Descriptors below `proxy.nofile` that count as none left: a proxy keeps a few back, and samples are 50 ms apart.
pub const DESCRIPTOR_MARGIN: u64 = 4;
/// How bad the direct control must be, as a share of the trial's p99 or errors, for the application to be the verdict.
pub const APPLICATION_SHARE: f64 = 0.80;

type Signs = Option<Vec<String>>;

pub(super) fn oom(trial: &TrialRecord) -> Signs {
    let mut signs = Vec::new();
    let kills = last_seen(trial, |c| c.oom_kill).filter(|&k| k > 0);
    if let Some(kills) = kills {
        signs.push(format!("oom_kill {kills}"));
    }
    let proxy = trial.proxy.as_ref();
    if proxy.and_then(|p| p.oom_killed) == Some(true) {
        signs.push("the engine's OOM flag is set".to_owned());
    }
    if trial.failure == Some(FailureKind::OomKilled) && signs.is_empty() {
        let said = proxy
            .and_then(|p| p.error.clone())
            .filter(|e| !e.is_empty());
        signs.push(said.map_or_else(
            || "killed for memory".to_owned(),
            |error| format!("the runtime says: {error}"),
        ));
    }
    if signs.is_empty() {
        return None;
    }
    if let Some(code) = proxy.and_then(|p| p.exit_code) {
        signs.push(format!("exit code {code}"));
    }
    if let Some(limit) = trial.limits.memory {
        signs.push(format!("memory limit {}", bytes(limit.0 as f64)));
    }
    Some(signs)
}

pub(super) fn start_failed(trial: &TrialRecord) -> Signs {
    let proxy = trial.proxy.as_ref();
    let ready = trial
        .agent
        .as_ref()
        .and_then(|a| a.ready_after_us)
        .is_some();
    let mut signs = match trial.failure? {
        FailureKind::StartFailed => vec!["the engine could not start it".to_owned()],
        FailureKind::Exited => {
            let code = proxy.and_then(|p| p.exit_code);
            let code = code.map_or("unknown".to_owned(), |c| c.to_string());
            let when = if ready {
                "after it was ready"
            } else {
                "before its first answer"
            };
            vec![format!("exited with code {code} {when}")]
        }
        _ => return None,
    };
    signs.extend(
        proxy
            .and_then(|p| p.error.clone())
            .filter(|e| !e.is_empty()),
    );
    Some(signs)
}

/// No answer before the deadline.
pub(super) fn hung(trial: &TrialRecord) -> Signs {
    let not_ready = trial.failure == Some(FailureKind::NotReady);
    let signs = vec!["alive, but no answer before the deadline".to_owned()];
    not_ready.then(|| with_stalls(trial, signs))
}

/// No answer in the whole window. Of what the proxy was short is for the signs of resources to say.
pub(super) fn silent(trial: &TrialRecord) -> Signs {
    let load = derived::load(trial)?;
    if load.scheduled == 0 || derived::answered(load) > 0 {
        return None;
    }
    let signs = vec![match load.scheduled {
        1 => "alive, but the only request was not answered".to_owned(),
        n => format!(
            "alive, but none of {} requests was answered",
            count(n as f64)
        ),
    }];
    Some(with_stalls(trial, signs))
}

/// Neither an answer nor a new connection in the whole window: whatever its accept queue did is a consequence.
pub(super) fn stuck(trial: &TrialRecord) -> bool {
    silent(trial).is_some() && !accepts(trial)
}

/// Whether a connection of the window was accepted, by the proxy's own count or by a handshake that the client finished.
fn accepts(trial: &TrialRecord) -> bool {
    let client =
        derived::load(trial).is_some_and(|l| l.connections_opened + l.handshake.completed > 0);
    client || accepted_connections(trial).is_some_and(|n| n > 0)
}

/// What a proxy that does not answer was busy with.
fn with_stalls(trial: &TrialRecord, mut signs: Vec<String>) -> Vec<String> {
    if let Some(faults) = last_seen(trial, |c| c.pgmajfault).filter(|&f| f > 0) {
        signs.push(format!("{} major faults", count(faults as f64)));
    }
    if let Some(refaults) = last_seen(trial, |c| c.workingset_refault_file).filter(|&f| f > 0) {
        signs.push(format!("{} refaults of file pages", count(refaults as f64)));
    }
    let periods = last_seen(trial, |c| c.nr_periods).filter(|&p| p > 0);
    if let (Some(periods), Some(throttled)) = (periods, last_seen(trial, |c| c.nr_throttled)) {
        signs.push(format!(
            "{} of periods throttled",
            percent(throttled as f64 / periods as f64)
        ));
    }
    signs
}

pub(super) fn descriptors(trial: &TrialRecord) -> Signs {
    let in_force = derived::probe(trial).and_then(|p| p.nofile_limit);
    if let Some(limit) = in_force.or(trial.nofile)
        && let Some(open) = derived::open_fds(trial)
        && open + DESCRIPTOR_MARGIN >= limit
    {
        return Some(vec![format!("{open} descriptors open, limit {limit}")]);
    }
    let log = trial.proxy.as_ref()?.log_tail.as_ref()?;
    log.contains("Too many open files")
        .then(|| vec!["its log says: Too many open files".to_owned()])
}

pub(super) fn accept_overflow(trial: &TrialRecord) -> Signs {
    let overflows = over_window(trial, |c| c.listen_overflows).filter(|&o| o > 0)?;
    let load = derived::load(trial)?;
    let accepted = value(trial, "proxy_downstream_cx").number().unwrap_or(0.0);
    let connections = accepted.max((load.handshake.scheduled + load.connections_opened) as f64);
    if (overflows as f64) < OVERFLOW_SHARE * connections {
        return None;
    }
    let mut signs = vec![format!(
        "{} overflows of the accept queue",
        count(overflows as f64)
    )];
    let depth = value(trial, "accept_queue_socket_max").number();
    if let (Some(depth), Some(limit)) = (depth, value(trial, "accept_queue_limit").number()) {
        signs.push(format!("depth up to {} of {}", count(depth), count(limit)));
    }
    let retried: u64 = load.handshake.syn_retries.range(1..).map(|(_, n)| n).sum();
    match retried {
        0 => {}
        1 => signs.push("1 connection sent its SYN again".to_owned()),
        n => signs.push(format!(
            "{} connections sent their SYN again",
            count(n as f64)
        )),
    }
    Some(signs)
}

/// `hurt`: the client is worse off. Work that was only held back, and then done, is no failure without it.
pub(super) fn policy(trial: &TrialRecord, hurt: bool) -> Signs {
    let load = derived::load(trial)?;
    let attempts = (load.scheduled + load.handshake.scheduled) as f64;
    let found: Vec<(&str, u64)> = REFUSALS
        .iter()
        .filter(|refusal| hurt || !refusal.only_delays)
        .filter_map(|refusal| Some((refusal.meaning, (refusal.count)(trial)?)))
        .filter(|(_, n)| *n > 0)
        .collect();
    let total: u64 = found.iter().map(|(_, n)| n).sum();
    if total == 0 || (total as f64) < POLICY_SHARE * attempts {
        return None;
    }
    Some(
        found
            .into_iter()
            .map(|(what, n)| format!("{} {what}", count(n as f64)))
            .collect(),
    )
}

pub(super) fn cpu(trial: &TrialRecord) -> Signs {
    let share = derived::throttled_share(trial).filter(|&s| s >= THROTTLED_SHARE)?;
    let mut sign = format!("{} of periods throttled", percent(share));
    if let Some(limit) = trial.limits.cpu {
        sign.push_str(&format!(" at {}m CPU", limit.0));
    }
    Some(vec![sign])
}

/// Events per second of the window.
fn rate(trial: &TrialRecord, events: Option<u64>) -> Option<f64> {
    derived::per_second(derived::load(trial)?, events?)
}

/// Whether memory in use came up to its limit. Use that is unknown does not speak against it; without a limit there is
/// nothing that the resource policy could have done.
fn at_memory_limit(trial: &TrialRecord) -> bool {
    let Some(limit) = trial.limits.memory else {
        return false;
    };
    let largest = value(trial, "memory_max_bytes").number();
    largest.is_none_or(|used| used >= AT_MEMORY_LIMIT_SHARE * limit.0 as f64)
}

/// Reading from disk or swap that no memory limit explains, for a reader who looks for a cause.
pub(super) fn faults_without_limit(trial: &TrialRecord) -> Option<String> {
    let faults = rate(trial, over_window(trial, |c| c.pgmajfault));
    let faults = faults.filter(|&r| r >= MAJOR_FAULTS_PER_S && !at_memory_limit(trial))?;
    Some(format!(
        "{} major faults per second, but memory was not at a limit",
        count(faults)
    ))
}

pub(super) fn memory(trial: &TrialRecord) -> Signs {
    if !at_memory_limit(trial) {
        return None;
    }
    let file = rate(trial, over_window(trial, |c| c.workingset_refault_file));
    let anon = rate(trial, over_window(trial, |c| c.workingset_refault_anon));
    let swapping = swap(trial).is_some();
    // What comes back from swap is told by the verdict `swap`.
    if swapping && anon.unwrap_or(0.0) >= file.unwrap_or(0.0) {
        return None;
    }
    let mut signs = Vec::new();
    if let Some(rate) = file.filter(|&r| r >= REFAULTS_PER_S) {
        signs.push(format!("{} refaults of file pages per second", count(rate)));
    }
    let faults = rate(trial, over_window(trial, |c| c.pgmajfault));
    if let Some(rate) = faults.filter(|&r| r >= MAJOR_FAULTS_PER_S && !swapping) {
        signs.push(format!("{} major faults per second", count(rate)));
    }
    if let Some(share) = memory_stall_share(trial).filter(|&s| s >= MEMORY_STALL_SHARE) {
        signs.push(format!(
            "waiting for memory in {} of the window",
            percent(share)
        ));
    }
    if signs.is_empty() {
        return None;
    }
    if let (Some(limit), Some(peak)) = (
        trial.limits.memory,
        value(trial, "memory_max_bytes").number(),
    ) {
        signs.push(format!(
            "memory up to {} of {}",
            bytes(peak),
            bytes(limit.0 as f64)
        ));
    }
    Some(signs)
}

fn memory_stall_share(trial: &TrialRecord) -> Option<f64> {
    let stalled = over_window(trial, |c| c.psi_usec.get("memory_some").copied())?;
    let wall = over_window(trial, |c| Some(c.t_us)).filter(|&w| w > 0)?;
    Some(stalled as f64 / wall as f64)
}

/// Whether the proxy waited longer for memory than it was throttled. Unknown (no PSI) is no.
pub(super) fn stalls_on_memory_more(trial: &TrialRecord) -> bool {
    let memory = over_window(trial, |c| c.psi_usec.get("memory_some").copied());
    let cpu = over_window(trial, |c| c.throttled_usec);
    matches!((memory, cpu), (Some(memory), Some(cpu)) if memory > cpu)
}

pub(super) fn swap(trial: &TrialRecord) -> Signs {
    if !at_memory_limit(trial) {
        return None;
    }
    let used = derived::memory_values(trial, |m| m.swap_bytes)
        .into_iter()
        .max()?;
    if used < SWAP_BYTES {
        return None;
    }
    let anon = rate(trial, over_window(trial, |c| c.workingset_refault_anon));
    let faults = rate(trial, over_window(trial, |c| c.pgmajfault));
    let mut signs = Vec::new();
    if let Some(rate) = anon.filter(|&r| r >= REFAULTS_PER_S) {
        signs.push(format!(
            "{} pages per second came back from swap",
            count(rate)
        ));
    }
    if let Some(rate) = faults.filter(|&r| r >= MAJOR_FAULTS_PER_S) {
        signs.push(format!("{} major faults per second", count(rate)));
    }
    (!signs.is_empty()).then(|| {
        signs.push(format!("{} in swap", bytes(used as f64)));
        signs
    })
}

/// Bad without any limit's help: the direct control, or the upstream by its own clock, is (nearly) as bad.
pub(super) fn application(trial: &TrialRecord, controls: &ControlStats) -> Signs {
    let mut signs = Vec::new();
    let upstream = value(trial, "upstream_delay_p99_us").number();
    if let Some((us, bound)) =
        latency(trial, "response_time_p99_us").filter(|l| l.0 >= ABSOLUTE_P99_US)
    {
        let direct = controls.direct.as_ref().and_then(|d| d.response_p99_us);
        if let Some(direct) = direct.filter(|&d| d >= APPLICATION_SHARE * us) {
            signs.push(format!(
                "p99 {bound}{} ms, of which {} direct",
                ms(us),
                ms(direct)
            ));
        } else if let Some(own) = upstream.filter(|&d| d >= APPLICATION_SHARE * us) {
            signs.push(format!(
                "p99 {bound}{} ms, of which {} in the upstream by its own clock",
                ms(us),
                ms(own)
            ));
        }
    }
    if let Some(share) = value(trial, "error_share")
        .number()
        .filter(|&s| s >= EFFECT_ERROR_SHARE)
        && let Some(direct) = controls.direct.as_ref().and_then(|d| d.error_share)
        && direct >= APPLICATION_SHARE * share
    {
        signs.push(format!(
            "{} of requests failed, {} direct",
            percent(share),
            percent(direct)
        ));
    }
    if let Some(users) = value(trial, "littles_law_users")
        .number()
        .filter(|_| !signs.is_empty())
    {
        signs.push(format!("{} users in the system", significant(users)));
    }
    (!signs.is_empty()).then_some(signs)
}
