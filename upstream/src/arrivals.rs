//! When requests arrived, one stamp each: the server's own record of a load generator's pace.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Arrival times (`CLOCK_MONOTONIC`, nanoseconds), up to a fixed number.
#[derive(Debug)]
pub(crate) struct Arrivals {
    slots: Box<[AtomicU64]>,
    seen: AtomicUsize,
}

impl Arrivals {
    /// Room for `capacity` arrivals, 8 bytes each; 0 records nothing.
    #[must_use]
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            slots: (0..capacity).map(|_| AtomicU64::new(0)).collect(),
            seen: AtomicUsize::new(0),
        }
    }

    /// Keeps one arrival if there is room.
    pub(crate) fn record(&self, at_ns: u64) {
        if self.slots.is_empty() {
            return;
        }
        let index = self.seen.fetch_add(1, Ordering::Relaxed);
        if let Some(slot) = self.slots.get(index) {
            slot.store(at_ns, Ordering::Release);
        }
    }

    /// Arrivals since the last reset, whether or not there was room.
    #[must_use]
    pub(crate) fn seen(&self) -> usize {
        self.seen.load(Ordering::Relaxed)
    }

    /// The kept arrivals, earliest first.
    #[must_use]
    pub(crate) fn sorted(&self) -> Vec<u64> {
        let mut times: Vec<u64> = self
            .used()
            .iter()
            .map(|slot| slot.load(Ordering::Acquire))
            // An index is taken before its slot is written.
            .filter(|at| *at != 0)
            .collect();
        times.sort_unstable();
        times
    }

    /// Forgets all. An arrival that is being recorded meanwhile may remain.
    pub(crate) fn reset(&self) {
        for slot in self.used() {
            slot.store(0, Ordering::Relaxed);
        }
        self.seen.store(0, Ordering::Release);
    }

    fn used(&self) -> &[AtomicU64] {
        &self.slots[..self.seen().min(self.slots.len())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_first_ones_and_counts_all() {
        let arrivals = Arrivals::new(3);
        for at in [30, 10, 20, 40] {
            arrivals.record(at);
        }
        assert_eq!((arrivals.sorted(), arrivals.seen()), (vec![10, 20, 30], 4));
        arrivals.reset();
        assert_eq!((arrivals.sorted(), arrivals.seen()), (vec![], 0));
        arrivals.record(50);
        assert_eq!(arrivals.sorted(), [50]);
    }

    #[test]
    fn without_room_nothing_is_recorded() {
        let arrivals = Arrivals::new(0);
        arrivals.record(1);
        assert_eq!((arrivals.sorted(), arrivals.seen()), (vec![], 0));
    }
}
