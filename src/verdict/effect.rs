//! Whether the client is worse off than without limits. Throttling alone is no failure.

use super::controls::{Baseline, ControlStats, value};
use super::words::{ms, percent, significant};
use crate::record::columns::Cell;
use crate::record::derived;
use crate::record::trial::TrialRecord;

/// How many times the unlimited control's p99 counts as worse, …
pub const EFFECT_RATIO: f64 = 1.5;
/// … if it is also this much longer, microseconds. Below it, differences are the host's scheduling.
pub const EFFECT_US: f64 = 500.0;
/// Share of the rate that the unlimited control makes of the same schedule (else of the rate scheduled) below which the
/// throughput counts as worse.
pub const EFFECT_RATE_SHARE: f64 = 0.95;
/// Errors, as a share of the requests scheduled and above the control's, that count as worse.
pub const EFFECT_ERROR_SHARE: f64 = 0.01;
/// Without an unlimited control: p99 beyond the upstream's own median delay that counts as bad, microseconds. A tenth of
/// the default CFS period.
pub const ABSOLUTE_P99_US: f64 = 10_000.0;

/// What got worse, and the comparison in words.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Effect {
    /// Something got worse.
    worse: bool,
    /// The comparisons, the worse ones first.
    pub words: Vec<String>,
}

impl Effect {
    /// Whether anything got worse.
    #[must_use]
    pub fn hurts(&self) -> bool {
        self.worse
    }

    fn add(&mut self, worse: bool, words: String) {
        if worse {
            let at = if self.worse { self.words.len() } else { 0 };
            self.words.insert(at, words);
            self.worse = true;
        } else {
            self.words.push(words);
        }
    }
}

/// Compares a trial with the unlimited control, or with absolute bounds where there is none.
#[must_use]
pub fn of(trial: &TrialRecord, controls: &ControlStats) -> Effect {
    let mut effect = Effect::default();
    if derived::load(trial).is_none() {
        return effect;
    }
    match &controls.unlimited {
        Some(unlimited) => relative(trial, unlimited, controls.direct.as_ref(), &mut effect),
        None => absolute(trial, &mut effect),
    }
    effect
}

/// A latency, also when it is only a lower bound.
pub(super) fn latency(trial: &TrialRecord, column: &str) -> Option<(f64, &'static str)> {
    match value(trial, column) {
        Cell::AtLeast(us) => Some((us, "≥")),
        cell => Some((cell.number()?, "")),
    }
}

fn relative(
    trial: &TrialRecord,
    unlimited: &Baseline,
    direct: Option<&Baseline>,
    effect: &mut Effect,
) {
    let latencies = [
        (
            "p99",
            "response_time_p99_us",
            unlimited.response_p99_us,
            direct.and_then(|d| d.response_p99_us),
        ),
        (
            "handshake p99",
            "handshake_total_p99_us",
            unlimited.handshake_p99_us,
            None,
        ),
    ];
    for (name, column, base, direct) in latencies {
        let (Some((us, bound)), Some(base)) = (latency(trial, column), base.filter(|&b| b > 0.0))
        else {
            continue;
        };
        let worse = us >= EFFECT_RATIO * base && us - base >= EFFECT_US;
        let direct = direct.map_or(String::new(), |d| format!(" and {} direct", ms(d)));
        effect.add(
            worse,
            format!(
                "{name} {bound}{} ms against {} unlimited{direct} ({bound}{}×)",
                ms(us),
                ms(base),
                significant(us / base)
            ),
        );
    }
    // Arrivals are random: of the requests that this trial's schedule had, not of the control's.
    match scheduled_rate(trial).zip(unlimited.achieved_share) {
        Some((scheduled, share)) => {
            let answered = format!(
                "{} scheduled, of which unlimited answers {}",
                significant(scheduled),
                percent(share)
            );
            throughput(trial, scheduled * share.min(1.0), &answered, effect);
        }
        None if trial.rate.is_some() => {}
        None => {
            if let Some(rps) = unlimited.achieved_rps {
                let answered = format!("{} unlimited", significant(rps));
                throughput(trial, rps, &answered, effect);
            }
        }
    }
    errors(
        trial,
        unlimited.error_share.unwrap_or(0.0),
        " against the unlimited control's",
        effect,
    );
}

fn absolute(trial: &TrialRecord, effect: &mut Effect) {
    // By its own clock, else as asked; of an application whose delay nobody knows nothing can be said.
    let upstream = value(trial, "upstream_delay_p50_us")
        .number()
        .or(trial.upstream_delay_us.map(|us| us as f64));
    if let Some(((us, bound), upstream)) = latency(trial, "response_time_p99_us").zip(upstream) {
        let limit = ABSOLUTE_P99_US + upstream;
        if us >= limit {
            effect.add(
                true,
                format!(
                    "p99 {bound}{} ms (no unlimited control; bound {} ms)",
                    ms(us),
                    ms(limit)
                ),
            );
        }
    }
    if let Some(scheduled) = scheduled_rate(trial) {
        let words = format!("{} scheduled", significant(scheduled));
        throughput(trial, scheduled, &words, effect);
    }
    errors(trial, 0.0, "", effect);
}

fn scheduled_rate(trial: &TrialRecord) -> Option<f64> {
    derived::scheduled_rate(derived::load(trial)?)
}

/// `base` is what would be as good, `words` what it is made of.
fn throughput(trial: &TrialRecord, base: f64, words: &str, effect: &mut Effect) {
    if let Some(achieved) = value(trial, "achieved_rate_rps").number()
        && base > 0.0
        && achieved < EFFECT_RATE_SHARE * base
    {
        let achieved = significant(achieved);
        effect.add(true, format!("{achieved} requests/s against {words}"));
    }
}

fn errors(trial: &TrialRecord, base: f64, against: &str, effect: &mut Effect) {
    if let Some(share) = value(trial, "error_share").number()
        && share >= base + EFFECT_ERROR_SHARE
    {
        let against = if against.is_empty() {
            String::new()
        } else {
            format!("{against} {}", percent(base))
        };
        effect.add(
            true,
            format!(
                "{} of requests failed or were still open at the end{against}",
                percent(share)
            ),
        );
    }
}
