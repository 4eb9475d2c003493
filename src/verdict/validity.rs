//! Whether a trial's numbers may be used: limits asked against limits in force, the generator, the host, the page cache.
//!
//! Each bound is a constant here and is told in docs/verdicts.md.

mod limits;
mod surroundings;

use crate::record::trial::TrialRecord;

pub use limits::UNLIMITED_MEMORY_FLOOR_BYTES;
pub use surroundings::{
    CLOCK_STEP_US, HOST_BUSY_SHARE, OTHER_CPU_SHARE, STEAL_SHARE, SUSPENDED_US,
    UPSTREAM_DELAY_SHARE, UPSTREAM_DELAY_US, WINDOW_SHARE,
};

/// What a trial says about itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Findings {
    /// Why its numbers must not be used. Empty: nothing speaks against them.
    pub reasons: Vec<String>,
    /// What a reader must know although the numbers hold (inert swap, unshared page cache, battery, …).
    pub notices: Vec<String>,
}

impl Findings {
    fn reason(&mut self, text: impl Into<String>) {
        self.reasons.push(text.into());
    }

    fn notice(&mut self, text: impl Into<String>) {
        self.notices.push(text.into());
    }
}

/// Why a trial's numbers must not be used, from its record alone. Empty: nothing speaks against them.
#[must_use]
pub fn reasons(trial: &TrialRecord) -> Vec<String> {
    findings(trial).reasons
}

/// Everything that a trial's record says for and against itself.
#[must_use]
pub fn findings(trial: &TrialRecord) -> Findings {
    let mut findings = Findings::default();
    limits::check(trial, &mut findings);
    surroundings::check(trial, &mut findings);
    findings
}

#[cfg(test)]
mod tests;
