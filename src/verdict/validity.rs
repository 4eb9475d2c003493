//! Whether a trial's numbers may be used: limits asked against limits in force, the generator, the host, the page cache.
//!
//! Each bound is a constant here and is told in docs/verdicts.md.

mod handshakes;
mod limits;
mod surroundings;

use crate::record::derived;
use crate::record::trial::TrialRecord;
use crate::spec::settings::Settings;

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

/// Why a trial's numbers must not be used: by its record, and by the settings that it was to run with. Empty: nothing
/// speaks against them.
#[must_use]
pub fn reasons(trial: &TrialRecord, settings: &Settings) -> Vec<String> {
    let mut findings = findings(trial);
    handshakes::check(trial, &settings.tls, &mut findings);
    findings.reasons
}

/// Everything that a trial's record says for and against itself.
#[must_use]
pub fn findings(trial: &TrialRecord) -> Findings {
    let mut findings = Findings::default();
    limits::check(trial, &mut findings);
    surroundings::check(trial, &mut findings);
    findings
}

/// Whether there is a whole window whose numbers could be wrong. A proxy that failed in it, or in the warm-up before it, is
/// a finding by itself; that the window was cut short is its consequence and no objection to it.
fn is_measured(trial: &TrialRecord) -> bool {
    trial.failure.is_none() && derived::load(trial).is_some()
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod texts;
