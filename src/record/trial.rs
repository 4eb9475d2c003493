//! One line of `trials.jsonl`: everything that is known about one trial.

use serde::{Deserialize, Serialize};

use crate::agent::job::AgentResult;
use crate::spec::settings::{Limits, PageCache};
use crate::units::RatePerSecond;
use crate::verdict::Verdict;

/// Version of `trials.jsonl` and `manifest.json`. Raised when an older `sweep` could misread a newer file.
pub const SCHEMA_VERSION: u32 = 1;

/// One trial.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TrialRecord {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema: u32,
    /// Id of the run.
    pub run: String,
    /// Position in the run's order, from 0.
    pub position: u64,
    /// Cell id, stable for equal factor levels: `cpu=250m,memory=64Mi,swap=0`; `direct`, `unlimited` variants for controls.
    pub cell: String,
    /// Factor levels of the cell, in the matrix's order.
    pub factors: Vec<Factor>,
    /// `None` for a cell of the matrix.
    pub control: Option<Control>,
    /// From 1.
    pub repetition: u32,
    /// From 1; equals the repetition.
    pub block: u32,
    /// Seed of this trial.
    pub seed: u64,
    /// Start, RFC 3339 UTC.
    pub started_at: String,
    /// Wall time of the trial from create to its evidence; the removal comes after the record is on disk.
    pub wall_us: u64,
    /// Warm-up and window asked for.
    pub warmup_us: u64,
    /// Window asked for.
    pub duration_us: u64,
    /// Limits asked for.
    pub limits: Limits,
    /// Worker threads of the proxy.
    pub workers: u32,
    /// Offered rate asked for; `None` in closed loop.
    pub rate: Option<RatePerSecond>,
    /// `RLIMIT_NOFILE` of the proxy asked for; `None` in a `direct` control.
    #[serde(default)]
    pub nofile: Option<u64>,
    /// Delay asked of the upstream, microseconds; `None` where its distribution has no single value.
    #[serde(default)]
    pub upstream_delay_us: Option<u64>,
    /// Page cache asked for.
    pub page_cache_asked: PageCache,
    /// Whether the storage driver lets containers share the page cache of the image's files.
    pub page_cache_shared: Option<bool>,
    /// How the trial ended.
    pub status: TrialStatus,
    /// Why it is not valid; empty when it is.
    pub reasons: Vec<String>,
    /// What failed, for a failed trial.
    pub failure: Option<FailureKind>,
    /// Evidence turned into a failure mode.
    pub verdict: Option<Verdict>,
    /// What the agent measured.
    pub agent: Option<AgentResult>,
    /// The proxy's container at the end; `None` in a `direct` control.
    pub proxy: Option<ContainerEnd>,
    /// Warnings in the engine's answers.
    pub engine_warnings: Vec<String>,
    /// How often the trial was tried (1 = no retry).
    pub attempts: u32,
    /// What the engine or the harness spoiled in the attempt before this one, or why the trial was invalid before
    /// `--retry-invalid`; `None` without a retry, and in records of a `sweep` that did not keep it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retried_because: Option<String>,
}

/// A factor and its level.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Factor {
    /// `cpu`, `memory`, `swap`, or the path of a setting.
    pub name: String,
    /// The level as its canonical text (`250m`, `64Mi`, `500`, `h2`).
    pub level: String,
}

/// A control, measured in every block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Control {
    /// The generator straight to the upstream.
    Direct,
    /// The proxy without limits.
    Unlimited,
}

/// How a trial ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TrialStatus {
    /// Measured, and nothing speaks against the numbers.
    Valid,
    /// Measured, but the numbers must not be used (limit not in force, generator too slow, noise, …).
    Invalid,
    /// The proxy could not be measured: killed, hung, not started. A finding, not a fault of `sweep`.
    Failed,
}

/// What failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// The kernel killed the proxy for memory (OOM flag, `oom_kill`, or the runtime's word for it at start).
    OomKilled,
    /// Alive, but no answer before the deadline.
    NotReady,
    /// The proxy exited by itself or by a signal that is not the OOM killer's.
    Exited,
    /// The engine could not start it, for a reason other than memory.
    StartFailed,
    /// The engine failed or went away.
    Engine,
    /// The agent or the upstream failed.
    Harness,
}

/// A container at its end, by the engine's word.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ContainerEnd {
    /// Full id.
    pub id: String,
    /// State before `sweep` stopped it (`running`, `exited`, `created`, …).
    pub state: Option<String>,
    /// Exit code, if it exited before `sweep` stopped it.
    pub exit_code: Option<i64>,
    /// The engine's OOM flag.
    pub oom_killed: Option<bool>,
    /// The engine's error text.
    pub error: Option<String>,
    /// Last lines of its log, for a trial that is not valid.
    pub log_tail: Option<String>,
}
