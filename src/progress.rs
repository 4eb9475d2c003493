//! What a run tells while it goes: bars on a terminal, plain lines elsewhere, or JSON lines.

mod bars;
mod lines;

use serde::Serialize;

use crate::agent::job::Phase;
use crate::record::trial::{Control, FailureKind, TrialRecord, TrialStatus};

pub use bars::Bars;
pub(crate) use lines::seconds;
pub use lines::{JsonLines, PlainLines};

/// Something that happened in a run.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The run begins.
    RunStarted {
        /// Its id.
        run: String,
        /// Where results go.
        results: String,
        /// Trials to run in all.
        trials: u64,
        /// Of these, finished before (a resumed run).
        finished_before: u64,
        /// Estimate of the time that it takes, seconds.
        eta_s: f64,
    },
    /// Something the reader must know: an inert factor, a shared machine, a retry.
    Notice {
        /// In words.
        text: String,
    },
    /// A trial begins.
    TrialStarted {
        /// Position in the order, from 1.
        number: u64,
        /// Of how many.
        of: u64,
        /// Cell.
        cell: String,
        /// Repetition, from 1.
        repetition: u32,
    },
    /// A trial's phase begins.
    TrialPhase {
        /// Which.
        phase: Phase,
    },
    /// A trial ended and is on disk.
    TrialEnded(TrialSummary),
    /// The run is over.
    RunEnded {
        /// Valid trials.
        valid: u64,
        /// Invalid ones.
        invalid: u64,
        /// Failed ones.
        failed: u64,
        /// Trials not run.
        not_run: u64,
        /// Wall time, seconds.
        wall_s: f64,
    },
}

/// A finished trial, in short.
#[derive(Debug, Clone, Serialize)]
pub struct TrialSummary {
    /// Position in the order, from 1.
    pub number: u64,
    /// Of how many.
    pub of: u64,
    /// Cell.
    pub cell: String,
    /// Control, if it is one.
    pub control: Option<Control>,
    /// Repetition, from 1.
    pub repetition: u32,
    /// How it ended.
    pub status: TrialStatus,
    /// What failed.
    pub failure: Option<FailureKind>,
    /// Why it is not valid.
    pub reasons: Vec<String>,
    /// 99th percentile of the response time, microseconds.
    pub response_time_p99_us: Option<u64>,
    /// Wall time, seconds.
    pub wall_s: f64,
}

impl TrialSummary {
    /// Of a record.
    #[must_use]
    pub fn of(record: &TrialRecord, of: u64) -> Self {
        let load = record.agent.as_ref().and_then(|a| a.load.as_ref());
        Self {
            number: record.position + 1,
            of,
            cell: record.cell.clone(),
            control: record.control,
            repetition: record.repetition,
            status: record.status,
            failure: record.failure,
            reasons: record.reasons.clone(),
            response_time_p99_us: load.and_then(|l| l.response_time.quantile_us(0.99)),
            wall_s: record.wall_us as f64 / 1e6,
        }
    }
}

/// Columns of the terminal behind a stream; `None` where there is none, or it does not tell.
pub(crate) fn columns(stream: impl std::os::fd::AsFd) -> Option<u16> {
    let size = rustix::termios::tcgetwinsize(stream).ok()?;
    Some(size.ws_col).filter(|columns| *columns > 0)
}

/// Takes events.
pub trait Progress: Send + Sync {
    /// One event, in order.
    fn event(&self, event: &Event);
}

/// Says nothing.
#[derive(Debug, Default)]
pub struct Quiet;

impl Progress for Quiet {
    fn event(&self, _: &Event) {}
}

/// Control characters of a text made visible, and those that turn its direction, so that no name from a matrix or a log
/// can steer a terminal.
#[must_use]
pub fn printable(text: &str) -> String {
    let steers = |c: char| {
        c.is_control()
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if steers(c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}
