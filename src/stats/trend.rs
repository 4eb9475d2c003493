//! Growth of a queue: the slope of a least-squares line, with its interval.

use super::t_quantile;

/// A least-squares line's slope with its 95 % interval (Student's t, n − 2 degrees of freedom).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trend {
    /// y per x.
    pub slope: f64,
    /// y at x = 0.
    pub intercept: f64,
    /// Lower end of the slope's interval.
    pub low: f64,
    /// Upper end of the slope's interval.
    pub high: f64,
    /// Points.
    pub n: usize,
}

/// Whether a queue grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Growth {
    /// The whole interval lies above the threshold.
    Growing,
    /// The whole interval lies below the negative threshold.
    Shrinking,
    /// Neither.
    Stable,
}

impl Growth {
    /// As text.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Growing => "growing",
            Self::Shrinking => "shrinking",
            Self::Stable => "stable",
        }
    }
}

impl Trend {
    /// Growing or shrinking only if the whole interval lies beyond `threshold` (same unit as the slope, not negative).
    #[must_use]
    pub fn growth(&self, threshold: f64) -> Growth {
        if self.low > threshold {
            Growth::Growing
        } else if self.high < -threshold {
            Growth::Shrinking
        } else {
            Growth::Stable
        }
    }
}

/// Fits a line. `None` for fewer than three points, equal x, or a value that is not finite.
#[must_use]
pub fn trend(points: &[(f64, f64)]) -> Option<Trend> {
    let n = points.len();
    if n < 3 || points.iter().any(|p| !p.0.is_finite() || !p.1.is_finite()) {
        return None;
    }
    let count = n as f64;
    let mean_x = points.iter().map(|p| p.0).sum::<f64>() / count;
    let mean_y = points.iter().map(|p| p.1).sum::<f64>() / count;
    let xx: f64 = points.iter().map(|p| (p.0 - mean_x).powi(2)).sum();
    if xx <= 0.0 {
        return None;
    }
    let xy: f64 = points.iter().map(|p| (p.0 - mean_x) * (p.1 - mean_y)).sum();
    let slope = xy / xx;
    let intercept = mean_y - slope * mean_x;
    let residuals: f64 = points
        .iter()
        .map(|p| (p.1 - intercept - slope * p.0).powi(2))
        .sum();
    let half = t_quantile(count - 2.0)? * (residuals / (count - 2.0) / xx).sqrt();
    Some(Trend {
        slope,
        intercept,
        low: slope - half,
        high: slope + half,
        n,
    })
}

/// Means of `batches` consecutive groups of points.
///
/// Successive readings of a queue resemble each other, which makes the interval of a line through the raw readings far
/// too narrow; means of long groups are nearly independent (the method of batch means, Law & Kelton, *Simulation
/// Modeling and Analysis*). Fewer points than `batches` are returned as they are.
#[must_use]
pub fn batch_means(points: &[(f64, f64)], batches: usize) -> Vec<(f64, f64)> {
    if batches == 0 || points.len() <= batches {
        return points.to_vec();
    }
    (0..batches)
        .map(|b| {
            let group = &points[b * points.len() / batches..(b + 1) * points.len() / batches];
            let n = group.len() as f64;
            (
                group.iter().map(|p| p.0).sum::<f64>() / n,
                group.iter().map(|p| p.1).sum::<f64>() / n,
            )
        })
        .collect()
}
