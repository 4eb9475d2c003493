//! What the controls of a run measured, for comparison.

use crate::record::columns::{self, Cell, Row};
use crate::record::derived;
use crate::record::trial::{Control, Factor, TrialRecord, TrialStatus};
use crate::stats::Sample;

/// The controls that belong to a cell: medians over their valid trials.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ControlStats {
    /// The generator straight to the upstream.
    pub direct: Option<Baseline>,
    /// The proxy without limits.
    pub unlimited: Option<Baseline>,
}

/// Medians of a control's valid trials. `None`: no trial has the value.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Baseline {
    /// Valid trials.
    pub n: usize,
    /// Response time, 99th percentile, microseconds.
    pub response_p99_us: Option<f64>,
    /// Handshake total, 99th percentile, microseconds.
    pub handshake_p99_us: Option<f64>,
    /// Answered requests per second.
    pub achieved_rps: Option<f64>,
    /// Open loop: the same ÷ requests scheduled per second.
    pub achieved_share: Option<f64>,
    /// Errors ÷ requests scheduled.
    pub error_share: Option<f64>,
}

impl ControlStats {
    /// The controls of a cell with these factor levels, from all trials of the run.
    #[must_use]
    pub fn of(factors: &[Factor], trials: &[TrialRecord]) -> Self {
        let baseline = |control| {
            let belong: Vec<&TrialRecord> = trials
                .iter()
                .filter(|t| t.control == Some(control) && t.status == TrialStatus::Valid)
                .filter(|t| belongs(control, &t.factors, factors))
                .collect();
            Baseline::of(&belong)
        };
        Self {
            direct: baseline(Control::Direct),
            unlimited: baseline(Control::Unlimited),
        }
    }

    /// What a trial may be compared with: a control is not compared with itself, nor `direct` with a proxy.
    #[must_use]
    pub fn for_trial(&self, control: Option<Control>) -> Self {
        match control {
            None => self.clone(),
            Some(Control::Unlimited) => Self {
                direct: self.direct.clone(),
                unlimited: None,
            },
            Some(Control::Direct) => Self::default(),
        }
    }
}

impl Baseline {
    fn of(trials: &[&TrialRecord]) -> Option<Self> {
        let median_of = |of: &dyn Fn(&TrialRecord) -> Option<f64>| {
            let values = trials.iter().filter_map(|t| of(t));
            Some(Sample::new(values)?.median())
        };
        let median = |column: &str| median_of(&|t| value(t, column).number());
        (!trials.is_empty()).then(|| Self {
            n: trials.len(),
            response_p99_us: median("response_time_p99_us"),
            handshake_p99_us: median("handshake_total_p99_us"),
            achieved_rps: median("achieved_rate_rps"),
            achieved_share: median_of(&achieved_share),
            error_share: median("error_share"),
        })
    }
}

fn achieved_share(trial: &TrialRecord) -> Option<f64> {
    let load = derived::load(trial)?;
    let scheduled = derived::scheduled_rate(load).filter(|&rate| rate > 0.0)?;
    Some(load.achieved_rate_rps / scheduled)
}

/// A column's value for a trial.
pub(crate) fn value(trial: &TrialRecord, column: &str) -> Cell {
    let row = Row {
        trial,
        judgement: None,
    };
    columns::by_name(column).map_or(Cell::Empty, |c| c.get(&row))
}

/// Whether a control with these levels was measured under a cell's conditions: every factor that can matter to the
/// control has the cell's level.
#[must_use]
pub fn belongs(control: Control, control_factors: &[Factor], cell_factors: &[Factor]) -> bool {
    control_factors
        .iter()
        .filter(|f| matters(control, &f.name))
        .all(|f| {
            cell_factors
                .iter()
                .find(|c| c.name == f.name)
                .is_none_or(|c| c.level == f.level)
        })
}

fn matters(control: Control, factor: &str) -> bool {
    let limit = matches!(factor, "cpu" | "memory" | "swap") || factor.starts_with("limits.");
    let proxy = factor.starts_with("proxy.") || factor.starts_with("tls.");
    match control {
        Control::Unlimited => !limit,
        Control::Direct => !limit && !proxy,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::sample;

    fn factors(levels: &[(&str, &str)]) -> Vec<Factor> {
        levels
            .iter()
            .map(|(name, level)| Factor {
                name: (*name).to_owned(),
                level: (*level).to_owned(),
            })
            .collect()
    }

    #[test]
    fn a_control_belongs_to_the_cells_of_its_own_load() {
        let cell = factors(&[("cpu", "1"), ("load.rate", "500"), ("tls.version", "1.3")]);
        assert!(belongs(Control::Direct, &[], &cell));
        assert!(belongs(
            Control::Direct,
            &factors(&[("load.rate", "500")]),
            &cell
        ));
        assert!(!belongs(
            Control::Direct,
            &factors(&[("load.rate", "2000")]),
            &cell
        ));
        assert!(belongs(
            Control::Unlimited,
            &factors(&[("cpu", "unlimited"), ("load.rate", "500")]),
            &cell
        ));
        assert!(!belongs(
            Control::Unlimited,
            &factors(&[("tls.version", "1.2")]),
            &cell
        ));
        assert!(
            belongs(Control::Direct, &factors(&[("tls.version", "1.2")]), &cell),
            "direct has no TLS"
        );
    }

    #[test]
    fn only_valid_trials_make_a_baseline() {
        let (_, mut trials) = sample::quick_run();
        let stats = ControlStats::of(&[], &trials);
        assert_eq!(stats.direct.as_ref().map(|b| b.n), Some(3));
        let p99 = stats
            .unlimited
            .as_ref()
            .and_then(|b| b.response_p99_us)
            .expect("p99");
        assert!((2_500.0..2_700.0).contains(&p99), "{p99}");
        for trial in trials
            .iter_mut()
            .filter(|t| t.control == Some(Control::Direct))
        {
            trial.status = TrialStatus::Invalid;
        }
        assert_eq!(ControlStats::of(&[], &trials).direct, None);
    }
}
