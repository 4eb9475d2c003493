//! How early to wake for a deadline.

/// Longest time to spin before a deadline, nanoseconds.
const MAX_LEAD_NS: u64 = 50_000;

/// How long before a deadline to wake: a running estimate of a quantile of the wake-ups' lateness, by stochastic
/// approximation (Robbins and Monro, 1951): up by q and down by 1 − q steps is in balance at the quantile q.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Lead {
    ns: u64,
}

impl Default for Lead {
    fn default() -> Self {
        Self { ns: 25_000 }
    }
}

impl Lead {
    // q = UP / (UP + DOWN) = 0.5, the median: half of the wake-ups come in time and spin for the rest of the lead, and the
    // others are late by no more than the timer's own scatter. A higher quantile costs CPU for little truth.
    const UP_NS: u64 = 500;
    const DOWN_NS: u64 = 500;
    const MIN_NS: u64 = 2_000;

    /// Nanoseconds.
    pub(super) fn ns(self) -> u64 {
        self.ns
    }

    /// The estimate after one more wake-up, `late` nanoseconds after the time it was armed for.
    pub(super) fn learned(self, late: u64) -> Self {
        let ns = if late > self.ns {
            self.ns + Self::UP_NS
        } else {
            self.ns.saturating_sub(Self::DOWN_NS)
        };
        Self {
            ns: ns.clamp(Self::MIN_NS, MAX_LEAD_NS),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lead_finds_its_quantile_and_stays_bounded() {
        let mut lead = Lead::default();
        for turn in 0..10_000u64 {
            // 0, 1, … 39 us in a scattered order: the median is 20 us.
            lead = lead.learned(turn * 17 % 40 * 1_000);
        }
        assert!((16_000..=24_000).contains(&lead.ns), "{lead:?}");
        for _ in 0..1_000 {
            lead = lead.learned(1_000_000_000);
        }
        assert_eq!(lead.ns, MAX_LEAD_NS);
        for _ in 0..1_000 {
            lead = lead.learned(0);
        }
        assert_eq!(lead.ns, Lead::MIN_NS);
    }
}
