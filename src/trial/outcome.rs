//! What became of a trial, from the engine's word, the agent's word and the kernel's counters. Pure.

use crate::agent::job::{AgentOutcome, AgentResult};
use crate::record::trial::{ContainerEnd, FailureKind, TrialStatus};
use crate::units::counted;

/// Exit code of a process that SIGKILL ended, whoever sent it.
const SIGKILLED: i64 = 128 + 9;

/// How a trial ended, before its numbers are judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Valid (so far) or failed.
    pub status: TrialStatus,
    /// What failed.
    pub failure: Option<FailureKind>,
    /// In words.
    pub reasons: Vec<String>,
}

impl Outcome {
    fn failed(failure: FailureKind, reason: String) -> Self {
        Self {
            status: TrialStatus::Failed,
            failure: Some(failure),
            reasons: vec![reason],
        }
    }
}

/// An error at start, by its text: the runtime's words for a limit too small to start in.
#[must_use]
pub(super) fn start_was_oom(text: &str) -> bool {
    let lower = text.to_lowercase();
    // A limit below what the runtime's own init needs kills the init: its pipe then breaks off, in these words.
    ["oom-killed", "oom killed", "memory limit too low"]
        .iter()
        .any(|t| lower.contains(t))
}

/// The proxy could not be started.
#[must_use]
pub fn of_start_failure(
    message: &str,
    engine_trouble: bool,
    end: Option<&ContainerEnd>,
) -> Outcome {
    if start_was_oom(message) || end.is_some_and(|e| e.oom_killed == Some(true)) {
        return Outcome::failed(
            FailureKind::OomKilled,
            format!("OOM-killed at start: {message}"),
        );
    }
    let kind = if engine_trouble {
        FailureKind::Engine
    } else {
        FailureKind::StartFailed
    };
    Outcome::failed(kind, message.to_owned())
}

/// The agent reported; `end` is the proxy's container just after that and before `sweep` stopped it, `None` in a
/// `direct` control.
#[must_use]
pub fn of_agent_result(
    result: &AgentResult,
    end: Option<&ContainerEnd>,
    ready_deadline_s: f64,
) -> Outcome {
    let oom_kills = result.probe.counters_last.as_ref().and_then(|c| c.oom_kill);
    // A state that the engine does not tell is no exit; the agent's word decides then.
    let exited = end.is_some_and(|e| e.state.as_deref().is_some_and(|state| state != "running"));
    let flagged = end.is_some_and(|e| e.oom_killed == Some(true));
    if flagged || oom_kills.is_some_and(|kills| kills > 0) {
        let exit = end
            .and_then(|e| e.exit_code)
            .map_or(String::new(), |c| format!(", exit code {c}"));
        let flag = if flagged {
            "the engine's OOM flag is set"
        } else {
            "the engine's OOM flag is not set"
        };
        // A killed container takes its cgroup along, often before the count could be read.
        let seen = match oom_kills {
            None => "oom_kill could not be read".to_owned(),
            Some(0) => "oom_kill was still 0 when the cgroup was last read".to_owned(),
            Some(kills) => format!("oom_kill is {kills}"),
        };
        return Outcome::failed(
            FailureKind::OomKilled,
            format!("OOM-killed: {seen}, {flag}{exit}"),
        );
    }
    if exited {
        let reason = match end.and_then(|e| e.exit_code) {
            Some(SIGKILLED) => format!(
                "the proxy was killed with SIGKILL, and nothing says that it was for memory, exit code {SIGKILLED}"
            ),
            Some(code) => format!("the proxy exited by itself, exit code {code}"),
            None => "the proxy exited by itself, exit code unknown".to_owned(),
        };
        return Outcome::failed(FailureKind::Exited, reason);
    }
    match result.outcome {
        AgentOutcome::Measured => Outcome {
            status: TrialStatus::Valid,
            failure: None,
            reasons: Vec::new(),
        },
        AgentOutcome::ProxyGone => Outcome::failed(
            FailureKind::Exited,
            "the proxy's processes were gone before the window ended".to_owned(),
        ),
        AgentOutcome::NotReady => {
            Outcome::failed(FailureKind::NotReady, not_ready(result, ready_deadline_s))
        }
    }
}

fn not_ready(result: &AgentResult, ready_deadline_s: f64) -> String {
    let counters = result.probe.counters_last.as_ref();
    let faults = match counters.and_then(|c| c.pgmajfault) {
        Some(n) => counted(n, "major fault"),
        None => "major faults unknown".to_owned(),
    };
    let throttled = match counters.and_then(|c| Some((c.nr_throttled?, c.nr_periods?))) {
        Some((throttled, periods)) => {
            format!(
                ", throttled in {throttled} of {}",
                counted(periods, "period")
            )
        }
        None => String::new(),
    };
    format!(
        "not ready: alive but no answer within {ready_deadline_s:.1} s, not OOM-killed, {faults}{throttled}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::report::{Counters, ProbeReport};

    fn result(
        outcome: AgentOutcome,
        oom_kill: Option<u64>,
        pgmajfault: Option<u64>,
    ) -> AgentResult {
        let counters = Counters {
            oom_kill,
            pgmajfault,
            ..Counters::default()
        };
        AgentResult {
            outcome,
            ready_after_us: None,
            load: None,
            probe: ProbeReport {
                counters_last: Some(counters),
                ..ProbeReport::default()
            },
            upstream: None,
            agent_cpu_usec: None,
        }
    }

    fn end(state: &str, exit_code: Option<i64>, oom_killed: bool) -> ContainerEnd {
        ContainerEnd {
            id: "x".to_owned(),
            state: Some(state.to_owned()),
            exit_code,
            oom_killed: Some(oom_killed),
            error: None,
            log_tail: None,
        }
    }

    #[test]
    fn exit_137_without_an_oom_is_not_an_oom() {
        let killed = of_agent_result(
            &result(AgentOutcome::ProxyGone, Some(0), None),
            Some(&end("exited", Some(137), false)),
            10.0,
        );
        assert_eq!(killed.failure, Some(FailureKind::Exited));
        let oom = of_agent_result(
            &result(AgentOutcome::ProxyGone, Some(1), None),
            Some(&end("exited", Some(137), false)),
            10.0,
        );
        assert_eq!(oom.failure, Some(FailureKind::OomKilled));
        let flag = of_agent_result(
            &result(AgentOutcome::ProxyGone, None, None),
            Some(&end("exited", Some(137), true)),
            10.0,
        );
        assert_eq!(flag.failure, Some(FailureKind::OomKilled));
        assert!(flag.reasons[0].contains("could not be read"), "{flag:?}");
        let mut untold = end("running", None, false);
        untold.state = None;
        let measured = result(AgentOutcome::Measured, Some(0), None);
        let outcome = of_agent_result(&measured, Some(&untold), 10.0);
        assert_eq!(outcome.failure, None, "an unknown state is no exit");
    }

    #[test]
    fn alive_and_silent_is_not_ready_with_its_faults() {
        let outcome = of_agent_result(
            &result(AgentOutcome::NotReady, Some(0), Some(87_000)),
            Some(&end("running", None, false)),
            15.5,
        );
        assert_eq!(outcome.failure, Some(FailureKind::NotReady));
        assert!(
            outcome.reasons[0].contains("87000 major faults"),
            "{outcome:?}"
        );
        let unknown = of_agent_result(
            &result(AgentOutcome::NotReady, None, None),
            Some(&end("running", None, false)),
            15.5,
        );
        assert!(
            unknown.reasons[0].contains("major faults unknown"),
            "{unknown:?}"
        );
    }

    #[test]
    fn the_runtimes_words_for_too_little_memory_are_oom() {
        let text = "OCI runtime create failed: container init was OOM-killed (memory limit too low?): unknown";
        assert_eq!(
            of_start_failure(text, true, None).failure,
            Some(FailureKind::OomKilled)
        );
        assert_eq!(
            of_start_failure("no such file", false, None).failure,
            Some(FailureKind::StartFailed)
        );
    }
}
