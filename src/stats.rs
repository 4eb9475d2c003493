//! Medians and 95 % confidence intervals over repetitions, each with its method named.
//!
//! - **Latencies**: Student's t on logarithms. It is an interval for the median of a log-normal, exp(mean of the
//!   logarithms ± t·s/√n). A sample with a zero has no logarithm: plain Student's t then, and the method says so.
//! - **Everything else** (counts, shares, bytes, rates): Student's t on the values. A share's interval is *not* cut to
//!   0..=1: cutting would claim a coverage that the method does not have.
//! - **Six values or more**: the distribution-free interval of order statistics. Its coverage is exact by the binomial
//!   distribution and is given as the level (96.9 % for six). Five values or fewer cannot reach 95 % (three: 75 %).
//! - **One value**: no interval.
//!
//! The point estimate is always the sample's median. It lies in the interval for every n: a median is never further
//! than one standard deviation from the mean, and t/√n > 1 for the n ≤ 5 at which t is used.

use serde::{Deserialize, Serialize};
use statrs::distribution::{Binomial, ContinuousCDF as _, DiscreteCDF as _, StudentsT};

mod ratio;
mod trend;

pub use ratio::paired_ratio;
pub use trend::{Growth, Trend, batch_means, trend};

/// Confidence level asked for.
pub const LEVEL: f64 = 0.95;

/// Smallest sample for which order statistics reach [`LEVEL`].
pub const ORDER_STATISTICS_FROM: usize = 6;

/// A sample of measured values.
///
/// Invariants: at least one value; every value finite; sorted ascending.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    sorted: Vec<f64>,
}

impl Sample {
    /// `None` when there is no value, or one that is not finite.
    #[must_use]
    pub fn new(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = values.into_iter().collect();
        if sorted.is_empty() || sorted.iter().any(|v| !v.is_finite()) {
            return None;
        }
        sorted.sort_by(f64::total_cmp);
        Some(Self { sorted })
    }

    /// Number of values, at least 1.
    #[must_use]
    pub fn n(&self) -> usize {
        self.sorted.len()
    }

    /// The values, ascending.
    #[must_use]
    pub fn values(&self) -> &[f64] {
        &self.sorted
    }

    /// The middle value, or the mean of the two middle ones.
    #[must_use]
    pub fn median(&self) -> f64 {
        let n = self.n();
        let upper = self.sorted[n / 2];
        if n % 2 == 1 {
            upper
        } else {
            // Halves first: the sum of two finite values can overflow.
            self.sorted[n / 2 - 1] / 2.0 + upper / 2.0
        }
    }

    /// Arithmetic mean.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.sorted.iter().sum::<f64>() / self.n() as f64
    }

    /// Standard deviation with n − 1; `None` for one value.
    #[must_use]
    pub fn standard_deviation(&self) -> Option<f64> {
        if self.n() < 2 {
            return None;
        }
        if self.all_equal() {
            return Some(0.0);
        }
        let mean = self.mean();
        let squares: f64 = self.sorted.iter().map(|v| (v - mean).powi(2)).sum();
        Some((squares / (self.n() - 1) as f64).sqrt())
    }

    fn all_equal(&self) -> bool {
        self.sorted[0] == self.sorted[self.n() - 1]
    }
}

/// What kind of quantity is summarised; it decides the method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Latencies: positive, spread by factors.
    Logarithmic,
    /// Counts, shares, bytes, rates.
    Linear,
}

/// How an interval was computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Student's t on logarithms.
    StudentTLog,
    /// Student's t on the values.
    StudentT,
    /// Student's t on the values of a latency, because one of them is 0 and has no logarithm.
    StudentTZeros,
    /// Order statistics, distribution-free.
    OrderStatistics,
    /// Student's t on the logarithms of the ratios within blocks.
    StudentTLogPaired,
    /// Order statistics of the ratios within blocks.
    OrderStatisticsPaired,
}

impl Method {
    /// Name in `ci_method`; [`NO_METHOD`] stands where there is no interval.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::StudentTLog => "student-t-log",
            Self::StudentT => "student-t",
            Self::StudentTZeros => "student-t-zeros",
            Self::OrderStatistics => "order-statistics",
            Self::StudentTLogPaired => "student-t-log-paired",
            Self::OrderStatisticsPaired => "order-statistics-paired",
        }
    }
}

/// `ci_method` of a value without an interval (one repetition).
pub const NO_METHOD: &str = "none";

/// An interval that covers the median with probability `level`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ConfidenceInterval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Coverage, 0..=1: [`LEVEL`] for t, the exact binomial coverage for order statistics.
    pub level: f64,
    /// How it was computed.
    pub method: Method,
}

/// A median with its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// Values behind it.
    pub n: usize,
    /// The sample's median.
    pub median: f64,
    /// `None` for one value.
    pub interval: Option<ConfidenceInterval>,
}

impl Estimate {
    /// Name of the interval's method, or [`NO_METHOD`].
    #[must_use]
    pub fn method_name(&self) -> &'static str {
        self.interval.map_or(NO_METHOD, |i| i.method.name())
    }
}

/// Median and interval of a sample, by the methods at the head of this module.
#[must_use]
pub fn estimate(sample: &Sample, scale: Scale) -> Estimate {
    Estimate {
        n: sample.n(),
        median: sample.median(),
        interval: interval(sample, scale),
    }
}

fn interval(sample: &Sample, scale: Scale) -> Option<ConfidenceInterval> {
    if sample.n() < 2 {
        return None;
    }
    if sample.n() >= ORDER_STATISTICS_FROM {
        return order_statistics(sample, Method::OrderStatistics);
    }
    match scale {
        Scale::Linear => t_interval(sample, Method::StudentT),
        Scale::Logarithmic if sample.values()[0] > 0.0 => {
            t_interval_of_logarithms(sample, Method::StudentTLog)
        }
        Scale::Logarithmic => t_interval(sample, Method::StudentTZeros),
    }
}

/// mean ± t(n − 1)·s/√n.
fn t_interval(sample: &Sample, method: Method) -> Option<ConfidenceInterval> {
    let deviation = sample.standard_deviation()?;
    let n = sample.n() as f64;
    let half = t_quantile(n - 1.0)? * deviation / n.sqrt();
    // The mean of equal values can differ from them by rounding; the median does not.
    let centre = if sample.all_equal() {
        sample.median()
    } else {
        sample.mean()
    };
    Some(ConfidenceInterval {
        low: centre - half,
        high: centre + half,
        level: LEVEL,
        method,
    })
}

/// The t interval of the logarithms, back on the scale of the values. Every value must be positive.
fn t_interval_of_logarithms(sample: &Sample, method: Method) -> Option<ConfidenceInterval> {
    if sample.all_equal() {
        let value = sample.median();
        return Some(ConfidenceInterval {
            low: value,
            high: value,
            level: LEVEL,
            method,
        });
    }
    let logs = Sample::new(sample.values().iter().map(|v| v.ln()))?;
    let interval = t_interval(&logs, method)?;
    Some(ConfidenceInterval {
        low: interval.low.exp(),
        high: interval.high.exp(),
        ..interval
    })
}

/// [x(k), x(n + 1 − k)] with the largest k for which 2·P(Bin(n, ½) < k) ≤ 1 − [`LEVEL`].
fn order_statistics(sample: &Sample, method: Method) -> Option<ConfidenceInterval> {
    let n = sample.n();
    let binomial = Binomial::new(0.5, n as u64).ok()?;
    let missed = |k: usize| 2.0 * binomial.cdf(k as u64 - 1);
    let k = (1..=n / 2)
        .take_while(|&k| missed(k) <= 1.0 - LEVEL)
        .last()?;
    Some(ConfidenceInterval {
        low: sample.values()[k - 1],
        high: sample.values()[n - k],
        level: 1.0 - missed(k),
        method,
    })
}

/// Two-sided quantile of Student's t at [`LEVEL`].
fn t_quantile(degrees_of_freedom: f64) -> Option<f64> {
    let t = StudentsT::new(0.0, 1.0, degrees_of_freedom).ok()?;
    Some(t.inverse_cdf(0.5 + LEVEL / 2.0))
}

#[cfg(test)]
mod tests;
