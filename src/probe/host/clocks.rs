//! Suspends and clock steps, by what separates the kernel's clocks.

use rustix::time::{ClockId, clock_gettime};

/// Distances between clocks, nanoseconds. All three are slewed alike, so only a suspend or a step changes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Offsets {
    boottime: i128,
    realtime: i128,
    /// How far off the readings may be, because the clocks cannot be read at one moment.
    uncertainty: i128,
}

const TRIES: usize = 5;

impl Offsets {
    /// The tightest of some readings.
    pub(super) fn now() -> Self {
        let tries = (0..TRIES).map(|_| Self::read());
        tries
            .min_by_key(|offsets| offsets.uncertainty)
            .unwrap_or_else(Self::read)
    }

    fn read() -> Self {
        let before = nanos(ClockId::Monotonic);
        let boottime = nanos(ClockId::Boottime);
        let realtime = nanos(ClockId::Realtime);
        let after = nanos(ClockId::Monotonic);
        let middle = i128::midpoint(before, after);
        Self {
            boottime: boottime - middle,
            realtime: realtime - middle,
            uncertainty: after - before,
        }
    }

    /// Time suspended since an earlier reading, microseconds.
    pub(super) fn suspended_since(&self, earlier: &Self) -> u64 {
        let grown = self.beyond_doubt(earlier, self.boottime - earlier.boottime);
        u64::try_from(grown).unwrap_or(0)
    }

    /// Step of the wall clock since an earlier reading, microseconds. A suspend moves it too, and is taken out.
    pub(super) fn step_since(&self, earlier: &Self) -> i64 {
        let moved = self.realtime - earlier.realtime;
        let suspended = self.boottime - earlier.boottime;
        let step = self.beyond_doubt(earlier, moved - suspended);
        i64::try_from(step).unwrap_or(i64::MAX)
    }

    /// In microseconds; 0 when it may be an error of reading.
    fn beyond_doubt(&self, earlier: &Self, nanos: i128) -> i128 {
        let doubt = self.uncertainty + earlier.uncertainty;
        if nanos.abs() > doubt { nanos / 1000 } else { 0 }
    }
}

fn nanos(clock: ClockId) -> i128 {
    let time = clock_gettime(clock);
    i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offsets(boottime_ms: i128, realtime_ms: i128) -> Offsets {
        Offsets {
            boottime: boottime_ms * 1_000_000,
            realtime: realtime_ms * 1_000_000,
            uncertainty: 900,
        }
    }

    #[test]
    fn a_suspend_is_no_clock_step() {
        let (before, after) = (offsets(10, 5000), offsets(7010, 12_000));
        assert_eq!(after.suspended_since(&before), 7_000_000);
        assert_eq!(after.step_since(&before), 0);
    }

    #[test]
    fn a_step_in_either_direction() {
        let before = offsets(0, 5000);
        assert_eq!(offsets(0, 4500).step_since(&before), -500_000);
        assert_eq!(offsets(0, 5001).step_since(&before), 1000);
        assert_eq!(offsets(0, 4500).suspended_since(&before), 0);
    }

    #[test]
    fn errors_of_reading_are_nothing() {
        let before = offsets(10, 5000);
        let after = Offsets {
            boottime: before.boottime + 1500,
            realtime: before.realtime - 1500,
            uncertainty: 900,
        };
        assert_eq!(after.suspended_since(&before), 0);
        let now = Offsets::now();
        assert_eq!(Offsets::now().suspended_since(&now), 0);
    }
}
