//! A column over the repetitions of a cell.

use crate::record::columns::Cell;
use crate::stats::{ConfidenceInterval, Estimate, NO_METHOD, Sample, Scale, estimate};

/// `ci_method` of a value that requests of unknown length reach in at least one repetition.
pub const CENSORED: &str = "none-censored";

/// Median and interval of a column over valid repetitions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// Repetitions that have the value, lower bounds included.
    pub n: usize,
    /// The median.
    pub median: f64,
    /// The median is only a lower bound.
    pub at_least: bool,
    /// `None` for one repetition, or when one of the values is only a lower bound.
    pub interval: Option<ConfidenceInterval>,
    /// Name of the interval's method, or why there is none.
    pub method: &'static str,
}

/// Summarises the values of a column. `None` when no repetition has one.
#[must_use]
pub fn summarise(values: &[Cell], scale: Scale) -> Option<Summary> {
    let exact: Vec<f64> = values.iter().filter_map(Cell::number).collect();
    let bounds: Vec<f64> = values
        .iter()
        .filter_map(|c| match c {
            Cell::AtLeast(bound) => Some(*bound),
            _ => None,
        })
        .collect();
    if bounds.is_empty() {
        return Some(from_estimate(estimate(&Sample::new(exact)?, scale)));
    }
    let all = Sample::new(exact.into_iter().chain(bounds.iter().copied()))?;
    let upper_middle = all.values()[all.n() / 2];
    Some(Summary {
        n: all.n(),
        median: all.median(),
        // Wherever above its bound the true value lies, it stays above the middle if the bound is.
        at_least: bounds.iter().any(|&b| b <= upper_middle),
        interval: None,
        method: CENSORED,
    })
}

/// An estimate as a summary.
#[must_use]
pub fn from_estimate(estimate: Estimate) -> Summary {
    Summary {
        n: estimate.n,
        median: estimate.median,
        at_least: false,
        interval: estimate.interval,
        method: estimate.interval.map_or(NO_METHOD, |i| i.method.name()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repetition_of_unknown_length_is_not_left_out() {
        let two_and_a_bound = [Cell::Int(10), Cell::Int(12), Cell::AtLeast(50.0)];
        let summary = summarise(&two_and_a_bound, Scale::Logarithmic).expect("summary");
        assert_eq!(
            (summary.n, summary.median, summary.at_least),
            (3, 12.0, false)
        );
        assert_eq!((summary.interval, summary.method), (None, "none-censored"));
        let mostly_bounds = [Cell::Int(10), Cell::AtLeast(40.0), Cell::AtLeast(50.0)];
        let summary = summarise(&mostly_bounds, Scale::Logarithmic).expect("summary");
        assert_eq!((summary.median, summary.at_least), (40.0, true));
        let even = [Cell::Int(10), Cell::AtLeast(40.0)];
        assert!(
            summarise(&even, Scale::Logarithmic)
                .expect("summary")
                .at_least
        );
    }

    #[test]
    fn nothing_known_is_no_summary() {
        assert_eq!(
            summarise(&[Cell::Empty, Cell::Float(f64::INFINITY)], Scale::Linear),
            None
        );
    }
}
