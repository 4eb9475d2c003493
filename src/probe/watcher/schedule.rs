//! When to sample.

use std::time::Duration;

/// Sample times of a window: one in each interval, on an absolute schedule that does not drift, at a different place in each.
///
/// A CFS period is 100 ms on the same clock, so samples at exact multiples of 50 ms would see a throttled proxy at the same
/// two moments of its cycle for the whole window, and a queue that fills and drains with it would be misjudged. Golden-ratio
/// steps (the additive recurrence of least discrepancy) spread the samples evenly over every phase of any period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Schedule {
    interval: Duration,
}

/// Fractional part of the golden ratio.
const STEP: f64 = 0.618_033_988_749_894_9;

impl Schedule {
    /// An interval below a millisecond is raised to it.
    pub(crate) fn new(interval: Duration) -> Self {
        let interval = interval.max(Duration::from_millis(1));
        Self { interval }
    }

    /// Time of a sample since the window began: within `[index, index + 1)` intervals.
    pub(crate) fn at(self, index: u32) -> Duration {
        let place = (f64::from(index) * STEP + 0.5).fract();
        self.interval.saturating_mul(index) + self.interval.mul_f64(place)
    }

    /// Index of the first sample whose time has not come yet after `elapsed`, no lower than `next`.
    pub(crate) fn first_after(self, elapsed: Duration, next: u32) -> u32 {
        let current =
            (elapsed.as_nanos() / self.interval.as_nanos()).min(u128::from(u32::MAX - 2)) as u32;
        let mut index = current.max(next);
        while self.at(index) <= elapsed {
            index += 1;
        }
        index
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_millis(50);

    #[test]
    fn one_sample_in_each_interval() {
        let schedule = Schedule::new(INTERVAL);
        for index in 0..10_000 {
            let at = schedule.at(index);
            assert!(at >= INTERVAL * index && at < INTERVAL * (index + 1));
        }
    }

    #[test]
    fn samples_see_every_phase_of_a_cfs_period() {
        let schedule = Schedule::new(INTERVAL);
        let mut phases = [0_u32; 10];
        for index in 0..600 {
            let phase = schedule.at(index).as_micros() % 100_000 / 10_000;
            phases[phase as usize] += 1;
        }
        assert!(phases.iter().all(|n| (55..=65).contains(n)), "{phases:?}");
    }

    #[test]
    fn missed_samples_are_passed_over() {
        let schedule = Schedule::new(INTERVAL);
        assert_eq!(schedule.first_after(Duration::ZERO, 0), 0);
        assert_eq!(schedule.first_after(schedule.at(3), 1), 4);
        assert_eq!(schedule.first_after(INTERVAL * 10, 2), 10);
        assert_eq!(schedule.first_after(Duration::ZERO, 7), 7);
    }
}
