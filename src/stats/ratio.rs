//! Ratios to a control, paired by block, so that drift between blocks cancels.

use super::{
    Estimate, Method, ORDER_STATISTICS_FROM, Sample, order_statistics, t_interval_of_logarithms,
};

/// Median of `measured / control` over the pairs, with the interval of the ratio's median: Student's t on the
/// logarithms of the ratios, order statistics of the ratios from six pairs on.
///
/// Pairs with a value that is not positive and finite have no ratio; they are left out, and `n` tells. `None` when no
/// pair is left.
#[must_use]
pub fn paired_ratio(pairs: impl IntoIterator<Item = (f64, f64)>) -> Option<Estimate> {
    let positive = |v: f64| v.is_finite() && v > 0.0;
    let ratios = pairs
        .into_iter()
        .filter(|&(measured, control)| positive(measured) && positive(control))
        .map(|(measured, control)| measured / control)
        .filter(|&ratio| positive(ratio));
    let sample = Sample::new(ratios)?;
    let interval = match sample.n() {
        0 | 1 => None,
        n if n < ORDER_STATISTICS_FROM => {
            t_interval_of_logarithms(&sample, Method::StudentTLogPaired)
        }
        _ => order_statistics(&sample, Method::OrderStatisticsPaired),
    };
    Some(Estimate {
        n: sample.n(),
        median: sample.median(),
        interval,
    })
}
