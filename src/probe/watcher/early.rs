//! Limits of a proxy that has not come to its window, and may never.

use crate::probe::report::{Limit, LimitsInForce};

/// What looks before the window saw. The runtime makes a cgroup first and writes its limits afterwards, one by one, so
/// that a look in between finds none: "no limit" is believed only when it is found twice.
#[derive(Debug, Default)]
pub(super) struct EarlyLimits {
    last: Option<LimitsInForce>,
    /// The limits of the last look; what cannot be believed yet is unknown.
    pub(super) settled: Option<LimitsInForce>,
}

impl EarlyLimits {
    /// Takes in a look.
    pub(super) fn saw(&mut self, limits: LimitsInForce) {
        let mut settled = limits.clone();
        let last = self.last.take().map(|limits| limits.own);
        let last = last.unwrap_or_default();
        let own = &mut settled.own;
        for (now, before) in [
            (&mut own.cpu_quota_usec, last.cpu_quota_usec),
            (&mut own.memory_bytes, last.memory_bytes),
            (&mut own.swap_bytes, last.swap_bytes),
        ] {
            if *now == Some(Limit::Max) && before != Some(Limit::Max) {
                *now = None;
            }
        }
        self.last = Some(limits);
        self.settled = Some(settled);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::report::CgroupLimits;

    fn limits(cpu: Limit, memory: Limit) -> LimitsInForce {
        LimitsInForce {
            own: CgroupLimits {
                cpu_quota_usec: Some(cpu),
                memory_bytes: Some(memory),
                ..CgroupLimits::default()
            },
            ancestors: Vec::new(),
        }
    }

    #[test]
    fn a_cgroup_that_is_being_made_has_unknown_limits() {
        let mut early = EarlyLimits::default();
        let seen = |early: &EarlyLimits| {
            let own = early.settled.clone().expect("a look").own;
            (own.cpu_quota_usec, own.memory_bytes)
        };
        early.saw(limits(Limit::Max, Limit::Of(64)));
        assert_eq!(seen(&early), (None, Some(Limit::Of(64))));
        early.saw(limits(Limit::Of(50_000), Limit::Of(64)));
        assert_eq!(seen(&early), (Some(Limit::Of(50_000)), Some(Limit::Of(64))));
        early.saw(limits(Limit::Max, Limit::Of(64)));
        assert_eq!(seen(&early).0, None);
        early.saw(limits(Limit::Max, Limit::Of(64)));
        assert_eq!(seen(&early).0, Some(Limit::Max), "it really has none");
    }
}
