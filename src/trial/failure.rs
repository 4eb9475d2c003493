//! Why a trial could not be measured, and whose doing that was: only what the proxy did itself is a finding.

use super::outcome::of_start_failure;
use super::pod::{Ends, Pod};
use crate::record::trial::{ContainerEnd, FailureKind};
use crate::runtime::{Engine, EngineError, Role};

/// Why a trial could not be measured.
#[derive(Debug)]
pub(super) struct TrialFailure {
    pub(super) kind: FailureKind,
    pub(super) reason: String,
}

impl TrialFailure {
    /// Of a call that has nothing to do with what the proxy is.
    pub(super) fn engine(error: &EngineError) -> Self {
        Self {
            kind: FailureKind::Engine,
            reason: error.to_string(),
        }
    }

    /// Of a create, or an upload into what was created.
    pub(super) fn create(role: Role, error: &EngineError) -> Self {
        let kind = if role == Role::Proxy && is_impossible(error) {
            FailureKind::StartFailed
        } else {
            FailureKind::Engine
        };
        Self {
            kind,
            reason: error.to_string(),
        }
    }

    /// Of the proxy's start; `end` is its container after that.
    pub(super) fn start(error: &EngineError, end: Option<&ContainerEnd>) -> Self {
        let outcome = of_start_failure(&error.to_string(), !is_impossible(error), end);
        Self {
            kind: outcome.failure.unwrap_or(FailureKind::StartFailed),
            reason: outcome.reasons.join("; "),
        }
    }

    pub(super) fn harness(reason: String) -> Self {
        Self {
            kind: FailureKind::Harness,
            reason,
        }
    }
}

/// The engine refused what it was asked for, and would again: no such program in the image, a value that it does not
/// take. A container or an image that somebody removed (404) and a name that somebody took (409) say nothing of the
/// proxy.
fn is_impossible(error: &EngineError) -> bool {
    error.status() == Some(400)
}

/// The agent's line broke off: with the containers that are not there any more, which is mostly why.
pub(super) async fn of_the_harness(engine: &Engine, pod: &Pod, reason: String) -> TrialFailure {
    let mut reasons = vec![reason];
    let roles = [
        (Role::Agent, &pod.agent),
        (Role::Upstream, &pod.upstream),
        (Role::Proxy, &pod.proxy),
    ];
    for (role, id) in roles {
        let Some(id) = id else { continue };
        match engine.state(id).await {
            Ok(end) if is_removed(end.as_ref()) => reasons.push(removed(role)),
            Ok(end) => reasons.extend(exited(role, end.as_ref())),
            // An engine that does not answer for one container will not for the others.
            Err(error) => {
                reasons.push(error.to_string());
                return TrialFailure {
                    kind: FailureKind::Engine,
                    reason: reasons.join("; "),
                };
            }
        }
    }
    TrialFailure::harness(reasons.join("; "))
}

/// What the containers say after a trial that the agent reported as it should: without the upstream, or with a proxy that
/// somebody took away, there is nothing to judge.
pub(super) fn of_ends(ends: &Ends) -> Option<TrialFailure> {
    if ends.has_proxy && is_removed(ends.proxy.as_ref()) {
        return Some(TrialFailure {
            kind: FailureKind::Engine,
            reason: removed(Role::Proxy),
        });
    }
    if is_removed(ends.upstream.as_ref()) {
        return Some(TrialFailure::harness(removed(Role::Upstream)));
    }
    exited(Role::Upstream, ends.upstream.as_ref()).map(TrialFailure::harness)
}

/// Gone, or on its way: `docker rm -f` kills first and removes then.
fn is_removed(end: Option<&ContainerEnd>) -> bool {
    end.is_none_or(|end| matches!(end.state.as_deref(), Some("removing" | "dead")))
}

fn removed(role: Role) -> String {
    format!(
        "the {}'s container was removed by somebody else during the trial",
        role.as_str()
    )
}

/// That the container ended, if it did.
fn exited(role: Role, end: Option<&ContainerEnd>) -> Option<String> {
    let end = end.filter(|end| end.state.as_deref() == Some("exited"))?;
    let code = match end.exit_code {
        // The agent ends when it has said what it had to say.
        Some(0) if role == Role::Agent => return None,
        Some(code) => format!(", exit code {code}"),
        None => String::new(),
    };
    let oom = match end.oom_killed {
        Some(true) => ", OOM-killed",
        _ => "",
    };
    Some(format!(
        "the {}'s container ended during the trial{code}{oom}",
        role.as_str()
    ))
}

#[cfg(test)]
mod tests;
