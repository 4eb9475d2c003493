//! Evidence → failure mode.

pub mod boundary;
pub mod cell;
pub mod controls;
pub mod effect;
pub mod effective;
mod judge;
pub mod signs;
pub mod validity;
pub mod words;

pub use controls::{Baseline, ControlStats};
pub use judge::{invalid_because, judge};

use serde::{Deserialize, Serialize};

/// What dominated a trial, by precedence: the first that applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The numbers must not be used.
    Invalid,
    /// The kernel killed the proxy for memory.
    Oom,
    /// The proxy did not start for another reason.
    StartFailed,
    /// Alive, not answering, no OOM.
    Hung,
    /// Out of file descriptors.
    FdLimit,
    /// The accept queue overflowed.
    AcceptOverflow,
    /// The proxy's own circuit breaker, connection limit or overload manager.
    Policy,
    /// Throttled by its CPU limit.
    Cpu,
    /// Reclaim and refaults.
    Memory,
    /// Swapping.
    Swap,
    /// The direct control is as bad.
    Application,
    /// None of these.
    Ok,
}

impl Verdict {
    /// As in columns and in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Invalid => "invalid",
            Self::Oom => "oom",
            Self::StartFailed => "start_failed",
            Self::Hung => "hung",
            Self::FdLimit => "fd_limit",
            Self::AcceptOverflow => "accept_overflow",
            Self::Policy => "policy",
            Self::Cpu => "cpu",
            Self::Memory => "memory",
            Self::Swap => "swap",
            Self::Application => "application",
            Self::Ok => "ok",
        }
    }
}

/// A verdict and what it rests on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    /// What dominated.
    pub verdict: Verdict,
    /// The numbers behind it, in words, the deciding ones first.
    pub evidence: Vec<String>,
    /// With `ok`: the client is worse off and nothing explains it, or the signs are not clear of chance. Shown as `ok?`.
    #[serde(default)]
    pub uncertain: bool,
}

impl Judgement {
    /// A verdict without doubt.
    #[must_use]
    pub fn new(verdict: Verdict, evidence: Vec<String>) -> Self {
        Self {
            verdict,
            evidence,
            uncertain: false,
        }
    }

    /// As shown: the verdict's name, or `ok?`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        if self.uncertain && self.verdict == Verdict::Ok {
            "ok?"
        } else {
            self.verdict.name()
        }
    }
}
