//! The delay of each request, drawn from its distribution.

use rand::{RngExt as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::config::DelayModel;

/// Draws delays; one for each serving thread.
#[derive(Debug)]
pub(crate) struct DelaySampler {
    model: DelayModel,
    rng: Xoshiro256PlusPlus,
}

impl DelaySampler {
    /// The sampler of serving thread `thread`: threads with one seed draw from streams that do not overlap.
    #[must_use]
    pub(crate) fn new(model: DelayModel, seed: u64, thread: usize) -> Self {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        for _ in 0..thread {
            rng.jump();
        }
        Self { model, rng }
    }

    /// The next request's delay, nanoseconds.
    pub(crate) fn next_ns(&mut self) -> u64 {
        let delay = match self.model {
            DelayModel::Constant(delay) => delay,
            DelayModel::Uniform { low, high } => {
                return self.rng.random_range(nanos(low)..=nanos(high));
            }
            DelayModel::Bimodal {
                low,
                high,
                high_share,
            } => {
                if self.rng.random_bool(high_share) {
                    high
                } else {
                    low
                }
            }
        };
        nanos(delay)
    }
}

/// Whole nanoseconds of a delay (validated delays are far below the limit of `u64`).
#[must_use]
pub(crate) fn nanos(delay: std::time::Duration) -> u64 {
    u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const LOW: Duration = Duration::from_micros(200);
    const HIGH: Duration = Duration::from_millis(5);

    fn draw(model: DelayModel, thread: usize) -> Vec<u64> {
        let mut sampler = DelaySampler::new(model, 7, thread);
        (0..100_000).map(|_| sampler.next_ns()).collect()
    }

    #[test]
    fn constant_is_constant() {
        assert!(
            draw(DelayModel::Constant(LOW), 0)
                .iter()
                .all(|ns| *ns == 200_000)
        );
    }

    #[test]
    fn bimodal_keeps_its_share() {
        let model = DelayModel::Bimodal {
            low: LOW,
            high: HIGH,
            high_share: 0.01,
        };
        let drawn = draw(model, 0);
        let slow = drawn.iter().filter(|ns| **ns == 5_000_000).count();
        assert!(drawn.iter().all(|ns| [200_000, 5_000_000].contains(ns)));
        // 100,000 draws at 1 %: standard deviation 31, so six of them either way.
        assert!((810..=1_190).contains(&slow), "{slow} of 100000");
    }

    #[test]
    fn shares_0_and_1_are_exact() {
        for (high_share, expected) in [(0.0, 200_000), (1.0, 5_000_000)] {
            let model = DelayModel::Bimodal {
                low: LOW,
                high: HIGH,
                high_share,
            };
            assert!(draw(model, 0).iter().all(|ns| *ns == expected));
        }
    }

    #[test]
    fn uniform_fills_its_range_evenly() {
        let drawn = draw(
            DelayModel::Uniform {
                low: LOW,
                high: HIGH,
            },
            0,
        );
        assert!(drawn.iter().all(|ns| (200_000..=5_000_000).contains(ns)));
        let width = 4_800_001 / 10;
        for tenth in 0..10 {
            let from = 200_000 + tenth * width;
            let count = drawn
                .iter()
                .filter(|ns| (from..from + width).contains(*ns))
                .count();
            assert!(
                (9_400..=10_600).contains(&count),
                "tenth {tenth} has {count} of 100000"
            );
        }
    }

    #[test]
    fn one_seed_one_sequence_and_threads_differ() {
        let model = DelayModel::Uniform {
            low: LOW,
            high: HIGH,
        };
        assert_eq!(draw(model, 1), draw(model, 1));
        assert_ne!(draw(model, 0), draw(model, 1));
    }
}
