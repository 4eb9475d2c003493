//! Monotonic time as nanoseconds, so that stamps can be compared between threads and processes of one machine.

use rustix::time::{ClockId, Timespec, clock_gettime};

/// Nanoseconds in a microsecond.
pub(crate) const NANOS_PER_MICRO: u64 = 1_000;
/// Nanoseconds in a second.
pub(crate) const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// `CLOCK_MONOTONIC`, nanoseconds. Costs about 30 ns (vDSO).
#[must_use]
pub fn monotonic_ns() -> u64 {
    to_ns(clock_gettime(ClockId::Monotonic))
}

fn to_ns(time: Timespec) -> u64 {
    // The monotonic clock starts at boot, so neither part is negative.
    time.tv_sec.unsigned_abs() * NANOS_PER_SECOND + time.tv_nsec.unsigned_abs()
}

/// Whole microseconds, to the nearest.
#[must_use]
pub(crate) fn ns_to_us(ns: u64) -> u64 {
    (ns + NANOS_PER_MICRO / 2) / NANOS_PER_MICRO
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn does_not_go_back() {
        let mut last = monotonic_ns();
        for _ in 0..1_000 {
            let now = monotonic_ns();
            assert!(now >= last);
            last = now;
        }
    }

    #[test]
    fn rounds_to_the_nearest_microsecond() {
        assert_eq!(
            [0, 499, 500, 200_499, 200_500].map(ns_to_us),
            [0, 0, 1, 200, 201]
        );
    }
}
