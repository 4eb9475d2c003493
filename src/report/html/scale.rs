//! A logarithmic axis.

/// Maps positive values to pixels, larger values further up.
pub(super) struct LogScale {
    low: f64,
    high: f64,
    top: f64,
    bottom: f64,
}

impl LogScale {
    /// Covers these values with some room; `None` without a positive one.
    pub(super) fn covering(values: &[f64], top: f64, bottom: f64) -> Option<Self> {
        let positive = || values.iter().copied().filter(|v| v.is_finite() && *v > 0.0);
        let low = positive().reduce(f64::min)?;
        let high = positive().reduce(f64::max)?;
        Some(Self {
            low: (low / 1.3).log10(),
            high: (high * 1.3).log10(),
            top,
            bottom,
        })
    }

    /// Pixel of a value.
    pub(super) fn y(&self, value: f64) -> f64 {
        let share = (value.log10() - self.low) / (self.high - self.low);
        self.bottom - share.clamp(0.0, 1.0) * (self.bottom - self.top)
    }

    /// Round values on the axis: 1, 2 and 5 of each decade, or the decades alone when there are many.
    pub(super) fn ticks(&self) -> Vec<f64> {
        let steps: &[f64] = if self.high - self.low > 3.0 {
            &[1.0]
        } else {
            &[1.0, 2.0, 5.0]
        };
        let decades = self.low.floor() as i32..=self.high.ceil() as i32;
        let all = decades.flat_map(|d| steps.iter().map(move |s| s * 10f64.powi(d)));
        all.filter(|t| (self.low..=self.high).contains(&t.log10()))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_lie_between_the_ends_in_order() {
        let scale = LogScale::covering(&[0.4, 52.0], 10.0, 210.0).expect("scale");
        assert!(scale.y(0.4) < 210.0 && scale.y(52.0) > 10.0 && scale.y(52.0) < scale.y(0.4));
        assert_eq!(scale.ticks(), [0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0]);
        assert_eq!(
            LogScale::covering(&[0.001, 1000.0], 0.0, 1.0)
                .expect("scale")
                .ticks()
                .len(),
            7
        );
        assert!(LogScale::covering(&[0.0, f64::NAN], 0.0, 1.0).is_none());
        let flat = LogScale::covering(&[5.0], 0.0, 100.0).expect("scale");
        assert!((flat.y(5.0) - 50.0).abs() < 1e-9);
    }
}
