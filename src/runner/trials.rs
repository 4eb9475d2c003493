//! The walk over the plan's trials.

use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::{RunError, Stopped};
use crate::plan::{Plan, Trial};
use crate::progress::{Event, Progress, TrialSummary};
use crate::record::trial::{FailureKind, TrialRecord, TrialStatus};
use crate::record::{RunFolder, TrialKey};
use crate::spec::Matrix;
use crate::trial::{self, PageCacheHelpers, Pod, TrialContext};

/// A trial that the engine or the harness spoiled is tried again, this often in all.
const ATTEMPTS: u32 = 2;
/// How long an engine that went away (a restart of its daemon) may stay away.
const ENGINE_RETURN: Duration = Duration::from_secs(120);
const ENGINE_LOOK: Duration = Duration::from_millis(500);

/// A trial's identity in the results.
pub(super) fn key(plan: &Plan, trial: &Trial) -> TrialKey {
    TrialKey { cell: plan.cells[trial.cell].id().to_owned(), repetition: trial.repetition }
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
            if self.deadline.is_some_and(|deadline| Instant::now() + Plan::trial_time(self.matrix, &self.plan.cells[trial.cell]).duration() > deadline) {
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
        let cell = &self.plan.cells[trial.cell];
        let settings = self.matrix.settings(cell);
        let of = self.plan.trials.len() as u64;
        self.progress.event(&Event::TrialStarted {
            number: trial.position + 1,
            of,
            cell: cell.id().to_owned(),
            repetition: trial.repetition,
        });
        for attempt in 1..=ATTEMPTS {
            let name = format!("sweep-{}-{}-{attempt}", self.context.owner.run, trial.position);
            let mut pod = Pod::new(name);
            let on_phase = |phase| self.progress.event(&Event::TrialPhase { phase });
            let run = trial::run(self.context, trial, (cell.id(), cell.control(), cell.factors(self.matrix)), &settings, helpers, &mut pod, &on_phase);
            let record = tokio::select! {
                record = run => Some(record),
                () = self.cancel.cancelled() => None,
            };
            let Some(mut record) = record else {
                // The run's clean-up removes the pod by its labels.
                return Ok(false);
            };
            record.attempts = attempt;
            let spoiled = matches!(record.failure, Some(FailureKind::Engine | FailureKind::Harness));
            if spoiled && attempt < ATTEMPTS {
                self.notice(format!(
                    "{} repetition {} is tried again: {}",
                    record.cell,
                    record.repetition,
                    record.reasons.join("; ")
                ));
                self.await_engine().await?;
                *helpers = PageCacheHelpers::default();
                self.remove(&mut pod).await;
                continue;
            }
            folder.append(&record)?;
            self.remove(&mut pod).await;
            self.progress.event(&Event::TrialEnded(TrialSummary::of(&record, of)));
            if record.failure == Some(FailureKind::Engine) {
                self.await_engine().await?;
            }
            return Ok(true);
        }
        unreachable!("the last attempt always returns")
    }

    async fn remove(&self, pod: &mut Pod) {
        for error in pod.remove(self.context.engine).await {
            self.notice(error);
        }
    }

    /// Waits until the engine answers again.
    async fn await_engine(&self) -> Result<(), RunError> {
        let deadline = Instant::now() + ENGINE_RETURN;
        loop {
            match self.context.engine.facts().await {
                Ok(_) => return Ok(()),
                Err(error) if Instant::now() >= deadline => {
                    return Err(RunError::EngineGone(format!(
                        "the engine did not come back within {} s: {error}",
                        ENGINE_RETURN.as_secs()
                    )));
                }
                Err(_) => tokio::select! {
                    () = tokio::time::sleep(ENGINE_LOOK) => {}
                    () = self.cancel.cancelled() => return Err(RunError::Interrupted),
                },
            }
        }
    }

    fn notice(&self, text: String) {
        self.progress.event(&Event::Notice { text });
    }
}
