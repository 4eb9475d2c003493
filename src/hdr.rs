//! Latency histograms: HdrHistogram, 1 us to 100 s, three significant digits, with an overflow count beside it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer as _, V2Serializer};
use serde::{Deserialize, Serialize};

/// Largest recordable latency, microseconds (100 s).
pub const MAX_US: u64 = 100_000_000;
const SIGNIFICANT_DIGITS: u8 = 3;

/// A histogram of latencies in whole microseconds. Values over [`MAX_US`] are counted apart, never clamped.
#[derive(Debug, Clone, PartialEq)]
pub struct LatencyHistogram {
    inner: Histogram<u64>,
    overflow: u64,
}

impl Default for LatencyHistogram {
    fn default() -> Self {
        let inner = Histogram::new_with_bounds(1, MAX_US, SIGNIFICANT_DIGITS)
            .expect("constant bounds are valid");
        Self { inner, overflow: 0 }
    }
}

impl LatencyHistogram {
    /// Records one latency, microseconds.
    pub fn record_us(&mut self, us: u64) {
        if self.inner.record(us).is_err() {
            self.overflow += 1;
        }
    }

    /// Values recorded, overflow included.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.inner.len() + self.overflow
    }

    /// Values over [`MAX_US`].
    #[must_use]
    pub fn overflow(&self) -> u64 {
        self.overflow
    }

    /// Adds another histogram's values.
    pub fn merge(&mut self, other: &Self) {
        self.inner += &other.inner;
        self.overflow += other.overflow;
    }

    /// The value at a quantile (0..=1), microseconds; `None` when empty or when the quantile lies in the overflow.
    #[must_use]
    pub fn quantile_us(&self, quantile: f64) -> Option<u64> {
        let total = self.count();
        if total == 0 {
            return None;
        }
        // The product of a decimal quantile and a count may lie a rounding error above a whole number.
        let rank = (quantile * total as f64 * (1.0 - 1e-12)).ceil() as u64;
        let rank = rank.clamp(1, total);
        if rank > self.inner.len() {
            return None;
        }
        // By rank, not by `value_at_quantile(rank / len)`, which may round up to the next one.
        let mut seen = 0;
        self.inner.iter_recorded().find_map(|step| {
            seen += step.count_since_last_iteration();
            (seen >= rank).then(|| step.value_iterated_to())
        })
    }

    /// Largest value, microseconds; `None` when empty or overflowed.
    #[must_use]
    pub fn max_us(&self) -> Option<u64> {
        self.quantile_us(1.0)
    }

    /// Mean, microseconds; `None` when empty or overflowed.
    #[must_use]
    pub fn mean_us(&self) -> Option<f64> {
        (self.overflow == 0 && !self.inner.is_empty()).then(|| self.inner.mean())
    }

    /// The histogram itself, without the overflow.
    #[must_use]
    pub fn inner(&self) -> &Histogram<u64> {
        &self.inner
    }

    /// HdrHistogram V2 (uncompressed) bytes.
    #[must_use]
    pub fn to_v2_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        V2Serializer::new()
            .serialize(&self.inner, &mut bytes)
            .expect("writing to memory does not fail");
        bytes
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Encoded {
    hdr_v2: String,
    #[serde(default)]
    overflow: u64,
}

impl Serialize for LatencyHistogram {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Encoded {
            hdr_v2: STANDARD.encode(self.to_v2_bytes()),
            overflow: self.overflow,
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for LatencyHistogram {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::Error as _;
        let encoded = Encoded::deserialize(deserializer)?;
        let bytes = STANDARD.decode(&encoded.hdr_v2).map_err(D::Error::custom)?;
        let inner: Histogram<u64> = Deserializer::new()
            .deserialize(&mut bytes.as_slice())
            .map_err(|e| D::Error::custom(format!("cannot read HdrHistogram V2: {e}")))?;
        let mut histogram = Self {
            overflow: encoded.overflow,
            ..Self::default()
        };
        histogram.inner.add(&inner).map_err(D::Error::custom)?;
        Ok(histogram)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn survives_json_and_counts_overflow() {
        let mut histogram = LatencyHistogram::default();
        for us in [0, 1, 200, 52_000, MAX_US] {
            histogram.record_us(us);
        }
        histogram.record_us(2 * MAX_US);
        let json = serde_json::to_string(&histogram).expect("serialize");
        let back: LatencyHistogram = serde_json::from_str(&json).expect("deserialize");
        assert_eq!(back, histogram);
        assert_eq!((back.count(), back.overflow()), (6, 1));
        assert_eq!(back.quantile_us(0.5), Some(200));
        assert_eq!(
            back.max_us(),
            None,
            "the largest value is beyond the scale, so unknown"
        );
    }

    #[test]
    fn quantiles_are_exact_order_statistics() {
        // Values that a bucket of three significant digits holds exactly.
        for n in [1_u64, 2, 3, 7, 10, 99, 100, 101, 1000, 1200] {
            let mut histogram = LatencyHistogram::default();
            (1..=n).for_each(|us| histogram.record_us(us));
            for (thousandths, quantile) in [(500, 0.5), (900, 0.9), (990, 0.99), (999, 0.999)] {
                let rank = (n * thousandths).div_ceil(1000).max(1);
                assert_eq!(histogram.quantile_us(quantile), Some(rank), "{quantile} of {n}");
            }
        }
    }
}
