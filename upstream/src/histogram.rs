//! A histogram that the data path writes without a lock and that others read without disturbing it.

use std::sync::atomic::{AtomicU64, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer as _, V2Serializer};
use serde::Serialize;

/// Largest recordable value, microseconds (100 s).
pub(crate) const MAX_US: u64 = 100_000_000;
const SIGNIFICANT_DIGITS: u8 = 3;

// The layout of an HdrHistogram of three digits: 2048 buckets of 1 us, then 1024 buckets for each doubling.
const LINEAR: u64 = 2048;
const HALF: u64 = LINEAR / 2;

fn index_of(us: u64) -> usize {
    let index = if us < LINEAR {
        us
    } else {
        let shift = shift_of(us);
        LINEAR + (shift - 1) * HALF + (us >> shift) - HALF
    };
    // At most 18431 for MAX_US.
    index as usize
}

fn shift_of(us: u64) -> u64 {
    u64::from(us.ilog2() - HALF.ilog2())
}

fn value_of(index: usize) -> u64 {
    let index = index as u64;
    if index < LINEAR {
        return index;
    }
    let shift = (index - LINEAR) / HALF + 1;
    ((index - LINEAR) % HALF + HALF) << shift
}

/// Counts of values in microseconds; those over [`MAX_US`] are counted apart.
#[derive(Debug)]
pub(crate) struct AtomicHistogram {
    counts: Box<[AtomicU64]>,
    overflow: AtomicU64,
}

impl Default for AtomicHistogram {
    fn default() -> Self {
        Self {
            counts: (0..=index_of(MAX_US)).map(|_| AtomicU64::new(0)).collect(),
            overflow: AtomicU64::new(0),
        }
    }
}

impl AtomicHistogram {
    /// Counts one value, microseconds.
    pub(crate) fn record_us(&self, us: u64) {
        let counter = self.counts.get(index_of(us)).filter(|_| us <= MAX_US);
        counter
            .unwrap_or(&self.overflow)
            .fetch_add(1, Ordering::Relaxed);
    }

    /// All counts so far.
    #[must_use]
    pub(crate) fn counts(&self) -> Counts {
        Counts {
            counts: self
                .counts
                .iter()
                .map(|count| count.load(Ordering::Relaxed))
                .collect(),
            overflow: self.overflow.load(Ordering::Relaxed),
        }
    }
}

/// Counts at one moment.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counts {
    counts: Vec<u64>,
    overflow: u64,
}

impl Counts {
    /// What was counted since an `earlier` moment, as an HdrHistogram.
    #[must_use]
    pub(crate) fn since(&self, earlier: &Self) -> Latencies {
        let mut inner = Histogram::new_with_bounds(1, MAX_US, SIGNIFICANT_DIGITS)
            .expect("constant bounds are valid");
        for (index, count) in self.counts.iter().enumerate() {
            let new = count.saturating_sub(earlier.counts.get(index).copied().unwrap_or(0));
            if new == 0 {
                continue;
            }
            inner
                .record_n(value_of(index), new)
                .expect("every index lies within the bounds");
        }
        Latencies {
            inner,
            overflow: self.overflow.saturating_sub(earlier.overflow),
        }
    }
}

/// Latencies of a window.
#[derive(Debug, Clone)]
pub(crate) struct Latencies {
    inner: Histogram<u64>,
    overflow: u64,
}

impl Latencies {
    /// Values, overflow included.
    #[must_use]
    pub(crate) fn count(&self) -> u64 {
        self.inner.len() + self.overflow
    }

    /// Values over [`MAX_US`].
    #[must_use]
    pub(crate) fn overflow(&self) -> u64 {
        self.overflow
    }

    /// The value at a quantile (0..=1), microseconds; `None` when empty or when it lies beyond [`MAX_US`].
    #[must_use]
    pub(crate) fn quantile_us(&self, quantile: f64) -> Option<u64> {
        let total = self.count();
        let rank = ((quantile * total as f64).ceil() as u64).clamp(1, total.max(1));
        let mut seen = 0;
        // Not `value_at_quantile`, which turns the rank into a ratio and back and may so land one value further.
        self.inner.iter_recorded().find_map(|step| {
            seen += step.count_since_last_iteration();
            (seen >= rank).then(|| step.value_iterated_to())
        })
    }

    /// The whole distribution, as `{"hdr_v2": base64, "overflow": n}` (HdrHistogram V2, uncompressed).
    #[must_use]
    pub(crate) fn encoded(&self) -> EncodedHistogram {
        let mut bytes = Vec::new();
        V2Serializer::new()
            .serialize(&self.inner, &mut bytes)
            .expect("writing to memory does not fail");
        EncodedHistogram {
            hdr_v2: STANDARD.encode(bytes),
            overflow: self.overflow,
        }
    }
}

/// A histogram as JSON carries it.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct EncodedHistogram {
    /// HdrHistogram V2, base64.
    pub(crate) hdr_v2: String,
    /// Values beyond its scale.
    pub(crate) overflow: u64,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(values: &[u64]) -> Latencies {
        let histogram = AtomicHistogram::default();
        for us in values {
            histogram.record_us(*us);
        }
        histogram.counts().since(&Counts::default())
    }

    #[test]
    fn unknown_when_empty() {
        let empty = of(&[]);
        assert_eq!((empty.count(), empty.quantile_us(0.5)), (0, None));
    }

    #[test]
    fn windows_do_not_see_what_came_before() {
        let histogram = AtomicHistogram::default();
        for _ in 0..1_000 {
            histogram.record_us(90_000);
        }
        let before = histogram.counts();
        histogram.record_us(200);
        histogram.record_us(MAX_US + 1);
        let window = histogram.counts().since(&before);
        assert_eq!((window.count(), window.overflow()), (2, 1));
        assert_eq!(window.quantile_us(0.5), Some(200));
        assert_eq!(
            window.quantile_us(1.0),
            None,
            "the largest is off the scale"
        );
    }

    proptest! {
        #[test]
        fn buckets_hold_their_values_to_three_digits(us in 0..=MAX_US) {
            let low = value_of(index_of(us));
            prop_assert!(low <= us && (us - low) as f64 <= us as f64 / 1_000.0);
            prop_assert_eq!(index_of(low), index_of(us));
        }

        #[test]
        fn agrees_with_an_hdr_histogram(values in prop::collection::vec(0..=MAX_US, 1..50)) {
            let mut reference = Histogram::<u64>::new_with_bounds(1, MAX_US, SIGNIFICANT_DIGITS)
                .expect("bounds");
            for us in &values {
                reference.record(*us).expect("in bounds");
            }
            let buckets = |histogram: &Histogram<u64>| -> Vec<_> {
                histogram
                    .iter_recorded()
                    .map(|step| (step.value_iterated_to(), step.count_at_value()))
                    .collect()
            };
            prop_assert_eq!(buckets(&of(&values).inner), buckets(&reference));
        }

        #[test]
        fn quantiles_are_order_statistics(mut values in prop::collection::vec(0..LINEAR, 1..50), q in 0.0..=1.0f64) {
            values.sort_unstable();
            let rank = ((q * values.len() as f64).ceil() as usize).max(1);
            prop_assert_eq!(of(&values).quantile_us(q), Some(values[rank - 1]));
        }
    }
}
