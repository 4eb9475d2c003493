//! Walks a plan: one trial after the other, each on disk before its containers are removed; stops cleanly when asked.

mod error;
mod leftovers;
mod lock;
mod needs;
mod notices;
mod preflight;
mod trials;

use std::any::Any;
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use tokio_util::sync::CancellationToken;

pub use error::RunError;
pub use lock::EngineLock;
pub use needs::Needs;
pub(crate) use notices::notices;
pub(crate) use preflight::faults;
pub use preflight::{Preflight, inspect_host};

use crate::certs::RunCertificates;
use crate::plan::{self, Plan};
use crate::progress::{Event, Progress};
use crate::record::manifest::Manifest;
use crate::record::trial::TrialRecord;
use crate::record::{Folder, RunFolder, SET_ASIDE, TrialKey};
use crate::runtime::{Engine, Owner};
use crate::spec::Matrix;
use crate::trial::TrialContext;
use crate::units::counted;

/// What to run and how.
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// Where results go: a new folder, or one to resume.
    pub target: Target,
    /// Wait for a sweep that runs already, in place of refusing.
    pub wait: bool,
    /// Begin no trial that would not end within this.
    pub time_budget: Option<Duration>,
    /// When a folder is resumed, run its invalid trials again too.
    pub retry_invalid: bool,
    /// Overrides of the command line, for the manifest.
    pub overrides: Vec<String>,
}

/// A new results folder or an old one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// Make it.
    New(PathBuf),
    /// Go on with it.
    Resume(PathBuf),
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunEnd {
    /// Its results.
    pub folder: PathBuf,
    /// Why it ended before its last trial; `None` if it did not.
    pub stopped: Option<Stopped>,
    /// Trials that are not valid, in the whole folder.
    pub not_valid: u64,
}

/// Why a run ended early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// A signal.
    Interrupted,
    /// `--time-budget`.
    TimeBudget,
}

/// Runs a matrix, or what is left of it.
///
/// # Errors
/// [`RunError`], each of which has its exit code. Finished trials are on disk in every case.
pub async fn run(
    matrix: &Matrix,
    options: &RunOptions,
    progress: &dyn Progress,
    cancel: &CancellationToken,
) -> Result<RunEnd, RunError> {
    let started = Instant::now();
    let plan = plan::build(matrix);
    let needs = Needs::of(matrix, &plan);
    let engine = Engine::connect().await?;
    let facts = engine.facts().await?;
    if let Some(reason) = facts.unsupported() {
        return Err(RunError::Environment(vec![reason]));
    }
    matrix.check_engine(facts.cpus.map_or(f64::INFINITY, |n| n as f64))?;
    let _lock = lock::acquire(&engine, &facts, options.wait, progress, cancel).await?;
    let (folder, old) = open_folder(&options.target)?;
    let run_id = old.as_ref().map_or_else(new_run_id, |m| m.run.clone());
    let owner = Owner::current(&run_id);
    let results = folder.clone();
    let work = async {
        leftovers::reap(&engine, progress).await?;
        let preflight = tokio::select! {
            prepared = preflight::prepare(&engine, &owner, &needs, facts) => prepared?,
            () = cancel.cancelled() => return Err(RunError::Interrupted),
        };
        let run = Prepared {
            matrix,
            plan: &plan,
            needs: &needs,
            engine: &engine,
            owner: &owner,
            preflight: &preflight,
            options,
        };
        run.walk(folder, old.as_ref(), progress, cancel, started)
            .await
    };
    // Not even a bug may leave containers behind.
    let result = AssertUnwindSafe(work)
        .catch_unwind()
        .await
        .unwrap_or_else(|panic| Err(RunError::Bug(panic_text(panic.as_ref()))));
    leftovers::clean_up(&engine, &owner, progress).await;
    result.map_err(|error| {
        results.remove_if_empty();
        error.cut_in(&results)
    })
}

/// What a panic said.
fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "a panic without words".to_owned())
}

/// A run whose engine, images and host have been looked at.
struct Prepared<'a> {
    matrix: &'a Matrix,
    plan: &'a Plan,
    needs: &'a Needs,
    engine: &'a Engine,
    owner: &'a Owner,
    preflight: &'a Preflight,
    options: &'a RunOptions,
}

impl Prepared<'_> {
    async fn walk(
        &self,
        folder: Folder,
        old: Option<&Manifest>,
        progress: &dyn Progress,
        cancel: &CancellationToken,
        started: Instant,
    ) -> Result<RunEnd, RunError> {
        let run = &self.owner.run;
        let mut manifest =
            self.preflight
                .manifest(self.matrix, self.plan, run, &self.options.overrides);
        if let Some(old) = old {
            preflight::check_resume(old, &manifest)?;
            manifest.started_at.clone_from(&old.started_at);
        }
        let mut folder = folder.lock()?;
        let again = self.set_aside(&mut folder)?;
        folder.write_manifest(&manifest)?;
        self.announce(&folder, &manifest, progress);
        if !again.is_empty() {
            let text = format!(
                "{} invalid before, to run again; the old records are in {SET_ASIDE}",
                counted(again.len(), "trial")
            );
            progress.event(&Event::Notice { text });
        }

        let certificates = RunCertificates::generate(
            self.needs.certificates.iter().copied(),
            std::time::SystemTime::now(),
        )?;
        let context = TrialContext {
            engine: self.engine,
            owner: self.owner,
            tools_image: &self.preflight.tools_image,
            certificates: &certificates,
            page_cache_shared: self.preflight.engine.page_cache_shared(),
            placed: &self.preflight.placed,
            cores: self.preflight.host.cores.as_ref(),
            engine_cpus: self.preflight.engine.cpus.map_or(1.0, |n| n as f64),
        };
        let walk = trials::Walk {
            matrix: self.matrix,
            plan: self.plan,
            context: &context,
            progress,
            cancel,
            again: &again,
            deadline: self.options.time_budget.map(|budget| started + budget),
        };
        let stopped = walk.all(&mut folder).await;
        // Whatever ended the walk, the derived files show what there is.
        let finished = self.finish(&folder, manifest, &stopped, progress, started);
        stopped.and_then(|stopped| {
            let tally = finished?;
            let not_valid = tally.invalid + tally.failed;
            Ok(RunEnd {
                folder: folder.folder().path().to_owned(),
                stopped,
                not_valid,
            })
        })
    }

    /// Trials that run again, and why.
    fn set_aside(&self, folder: &mut RunFolder) -> Result<BTreeMap<TrialKey, String>, RunError> {
        if !self.options.retry_invalid {
            return Ok(BTreeMap::new());
        }
        let why = |trial: &TrialRecord| {
            let reasons = crate::verdict::invalid_because(trial);
            (!reasons.is_empty()).then(|| format!("invalid before: {}", reasons.join("; ")))
        };
        Ok(folder.set_aside(why)?)
    }

    fn announce(&self, folder: &RunFolder, manifest: &Manifest, progress: &dyn Progress) {
        let finished = folder.found().finished();
        let done = self
            .plan
            .trials
            .iter()
            .filter(|t| finished.contains(&trials::key(self.plan, t)))
            .count() as u64;
        let trials = self.plan.trials.len() as u64;
        let left = (trials - done) as f64 / (trials.max(1)) as f64;
        progress.event(&Event::RunStarted {
            run: self.owner.run.clone(),
            results: folder.folder().path().display().to_string(),
            trials,
            finished_before: done,
            eta_s: self.plan.estimate.secs_f64() * left,
        });
        for text in manifest.notices.iter().chain(&folder.found().notices) {
            progress.event(&Event::Notice { text: text.clone() });
        }
    }

    fn finish(
        &self,
        folder: &RunFolder,
        mut manifest: Manifest,
        stopped: &Result<Option<Stopped>, RunError>,
        progress: &dyn Progress,
        started: Instant,
    ) -> Result<trials::Tally, RunError> {
        let now = jiff::Timestamp::now().to_string();
        manifest.updated_at.clone_from(&now);
        manifest.finished_at = matches!(stopped, Ok(None)).then_some(now);
        folder.write_manifest(&manifest)?;
        crate::report::rebuild(folder.folder())?;
        let records = folder.folder().trials()?.records;
        let tally = trials::Tally::of(&records, self.plan);
        progress.event(&Event::RunEnded {
            valid: tally.valid,
            invalid: tally.invalid,
            failed: tally.failed,
            not_run: tally.not_run,
            wall_s: started.elapsed().as_secs_f64(),
        });
        Ok(tally)
    }
}

fn open_folder(target: &Target) -> Result<(Folder, Option<Manifest>), RunError> {
    let (folder, old) = match target {
        Target::New(path) => (Folder::create(path)?, None),
        Target::Resume(path) => {
            let folder = Folder::open(path)?;
            let manifest = folder.manifest()?;
            (folder, Some(manifest))
        }
    };
    folder
        .check_writable()
        .inspect_err(|_| folder.remove_if_empty())?;
    Ok((folder, old))
}

/// Short and unique enough: names of containers begin with it. It starts with a letter, or a notebook would read one that
/// looks like `738139e265` as a number.
fn new_run_id() -> String {
    let now = jiff::Timestamp::now().as_microsecond().unsigned_abs();
    let salt = u64::from(std::process::id());
    let mixed = now.rotate_left(7) ^ salt.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    format!("r{:09x}", mixed & 0xF_FFFF_FFFF)
}
