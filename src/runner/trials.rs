//! The walk over the plan's trials.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::{RunError, Stopped};
use crate::plan::{Plan, Trial};
use crate::progress::{Event, Progress, TrialSummary};
use crate::record::trial::{FailureKind, TrialRecord, TrialStatus};
use crate::record::{RunFolder, TrialKey};
use crate::runtime::Engine;
use crate::spec::Matrix;
use crate::trial::{self, PageCacheHelpers, Pod, TrialContext};

/// A trial that the engine or the harness spoiled is tried again, this often in all.
const ATTEMPTS: u32 = 2;
/// How long an engine that went away (a restart of its daemon) may stay away.
const ENGINE_RETURN: Duration = Duration::from_secs(120);
const ENGINE_LOOK: Duration = Duration::from_millis(500);

/// A trial's identity in the results.
pub(super) fn key(plan: &Plan, trial: &Trial) -> TrialKey {
    TrialKey {
        cell: plan.cells[trial.cell].id().to_owned(),
        repetition: trial.repetition,
    }
}

/// Trials by how they ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) valid: u64,
    pub(super) invalid: u64,
    pub(super) failed: u64,
    pub(super) not_run: u64,
}

impl Tally {
    pub(super) fn of(records: &[TrialRecord], plan: &Plan) -> Self {
        let count = |status| records.iter().filter(|r| r.status == status).count() as u64;
        Self {
            valid: count(TrialStatus::Valid),
            invalid: count(TrialStatus::Invalid),
            failed: count(TrialStatus::Failed),
            not_run: (plan.trials.len() as u64).saturating_sub(records.len() as u64),
        }
    }
}

/// Everything that the walk needs.
pub(super) struct Walk<'a> {
    pub(super) matrix: &'a Matrix,
    pub(super) plan: &'a Plan,
    pub(super) context: &'a TrialContext<'a>,
    pub(super) progress: &'a dyn Progress,
    pub(super) cancel: &'a CancellationToken,
    /// Trials that run again, and why.
    pub(super) again: &'a BTreeMap<TrialKey, String>,
    pub(super) deadline: Option<Instant>,
}

impl Walk<'_> {
    /// Runs every trial that is not in the folder yet. `Some` tells why it stopped before the end.
    pub(super) async fn all(&self, folder: &mut RunFolder) -> Result<Option<Stopped>, RunError> {
        let finished = folder.found().finished();
        let mut helpers = PageCacheHelpers::default();
        for trial in &self.plan.trials {
            if finished.contains(&key(self.plan, trial)) {
                continue;
            }
            if self.cancel.is_cancelled() {
                return Ok(Some(Stopped::Interrupted));
            }
            if self.deadline.is_some_and(|deadline| {
                Instant::now()
                    + Plan::trial_time(self.matrix, &self.plan.cells[trial.cell]).duration()
                    > deadline
            }) {
                return Ok(Some(Stopped::TimeBudget));
            }
            if !self.one(trial, &mut helpers, folder).await? {
                return Ok(Some(Stopped::Interrupted));
            }
        }
        Ok(None)
    }

    /// One trial with its retries; `false` when it was interrupted, and then it is not in the folder.
    async fn one(
        &self,
        trial: &Trial,
        helpers: &mut PageCacheHelpers,
        folder: &mut RunFolder,
    ) -> Result<bool, RunError> {
        let of = self.plan.trials.len() as u64;
        let cell = &self.plan.cells[trial.cell];
        self.progress.event(&Event::TrialStarted {
            number: trial.position + 1,
            of,
            cell: cell.id().to_owned(),
            repetition: trial.repetition,
        });
        let mut retried_because = self.again.get(&key(self.plan, trial)).cloned();
        for attempt in 1..=ATTEMPTS {
            let name = format!(
                "sweep-{}-{}-{attempt}",
                self.context.owner.run, trial.position
            );
            let mut pod = Pod::new(name);
            let Some(mut record) = self.attempt(trial, helpers, &mut pod).await else {
                // The run's clean-up removes the pod by its labels.
                return Ok(false);
            };
            record.attempts = attempt;
            record.retried_because = retried_because.take();
            let spoiled = matches!(
                record.failure,
                Some(FailureKind::Engine | FailureKind::Harness)
            );
            let ended = !spoiled || attempt == ATTEMPTS;
            if ended {
                folder.append(&record)?;
            } else {
                let why = record.reasons.join("; ");
                self.notice(format!(
                    "{} repetition {} is tried again: {why}",
                    record.cell, record.repetition
                ));
                retried_because = Some(why);
            }
            if spoiled {
                if !await_engine(self.context.engine, self.cancel).await? {
                    return Ok(false);
                }
                helpers.discard(self.context.engine).await;
            }
            self.remove(&mut pod).await;
            if ended {
                self.progress
                    .event(&Event::TrialEnded(TrialSummary::of(&record, of)));
                return Ok(true);
            }
        }
        unreachable!("the last attempt always returns")
    }

    /// One attempt at a trial; `None` when it was interrupted.
    async fn attempt(
        &self,
        trial: &Trial,
        helpers: &mut PageCacheHelpers,
        pod: &mut Pod,
    ) -> Option<TrialRecord> {
        let cell = &self.plan.cells[trial.cell];
        let settings = self.matrix.settings(cell);
        let on_phase = |phase| self.progress.event(&Event::TrialPhase { phase });
        let run = trial::run(
            self.context,
            trial,
            (cell.id(), cell.control(), cell.factors(self.matrix)),
            &settings,
            helpers,
            pod,
            &on_phase,
        );
        tokio::select! {
            record = run => Some(record),
            () = self.cancel.cancelled() => None,
        }
    }

    async fn remove(&self, pod: &mut Pod) {
        for error in pod.remove(self.context.engine).await {
            self.notice(error);
        }
    }

    fn notice(&self, text: String) {
        self.progress.event(&Event::Notice { text });
    }
}

/// Waits until the engine answers again; `false` when that was interrupted.
async fn await_engine(engine: &Engine, cancel: &CancellationToken) -> Result<bool, RunError> {
    let deadline = tokio::time::Instant::now() + ENGINE_RETURN;
    let look = async {
        loop {
            match engine.reachable().await {
                Ok(()) => return Ok(true),
                Err(error) if tokio::time::Instant::now() >= deadline => {
                    return Err(RunError::EngineGone(format!(
                        "the engine did not come back within {} s: {error}",
                        ENGINE_RETURN.as_secs()
                    )));
                }
                Err(_) => tokio::time::sleep(ENGINE_LOOK).await,
            }
        }
    };
    tokio::select! {
        answered = look => answered,
        () = cancel.cancelled() => Ok(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::scripted::{Script, VERSION};

    /// The clock is paused, so that the minutes are passed over.
    #[tokio::test(start_paused = true)]
    async fn an_engine_that_does_not_come_back_is_given_up_in_the_end() {
        let script = Script::start(&[VERSION]);
        let engine = script.connect().await.expect("connected");
        let cancel = CancellationToken::new();
        let there = await_engine(&engine, &cancel).await;
        assert!(there.expect("no error"), "it is there");

        drop(script);
        let before = tokio::time::Instant::now();
        let error = await_engine(&engine, &cancel)
            .await
            .expect_err("gone for good");
        assert!(before.elapsed() >= ENGINE_RETURN);
        assert!(matches!(&error, RunError::EngineGone(_)), "{error}");
        assert_eq!(error.exit_code(), 3);
        let text = error.to_string();
        assert!(
            text.contains("did not come back within 120 s") && text.contains("DOCKER_HOST"),
            "{text}"
        );

        cancel.cancel();
        let interrupted = await_engine(&engine, &cancel).await;
        assert!(!interrupted.expect("no error"), "nobody waits any more");
    }
}
