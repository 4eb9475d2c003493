//! Differences of two readings.

use std::collections::BTreeMap;

use super::report::Counters;

/// What a window added to the counters. A value is `None` when either reading lacks it, or when the counter went backwards
/// (a restarted container counts from 0 again), never 0 in their place.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Delta {
    /// Time between the two readings, microseconds.
    pub elapsed_us: Option<u64>,
    /// See [`Counters::cpu_usage_usec`].
    pub cpu_usage_usec: Option<u64>,
    /// See [`Counters::nr_periods`].
    pub nr_periods: Option<u64>,
    /// See [`Counters::nr_throttled`].
    pub nr_throttled: Option<u64>,
    /// See [`Counters::throttled_usec`]: summed over CPUs, so it can exceed the window.
    pub throttled_usec: Option<u64>,
    /// See [`Counters::pgfault`].
    pub pgfault: Option<u64>,
    /// See [`Counters::pgmajfault`].
    pub pgmajfault: Option<u64>,
    /// See [`Counters::pgscan`].
    pub pgscan: Option<u64>,
    /// See [`Counters::pgsteal`].
    pub pgsteal: Option<u64>,
    /// See [`Counters::workingset_refault_anon`].
    pub workingset_refault_anon: Option<u64>,
    /// See [`Counters::workingset_refault_file`].
    pub workingset_refault_file: Option<u64>,
    /// See [`Counters::memory_max_events`].
    pub memory_max_events: Option<u64>,
    /// See [`Counters::oom`].
    pub oom: Option<u64>,
    /// See [`Counters::oom_kill`].
    pub oom_kill: Option<u64>,
    /// See [`Counters::psi_usec`]; a key is there only if both readings have it.
    pub psi_usec: BTreeMap<String, u64>,
    /// See [`Counters::listen_overflows`].
    pub listen_overflows: Option<u64>,
    /// See [`Counters::listen_drops`].
    pub listen_drops: Option<u64>,
    /// See [`Counters::tcp_timeouts`].
    pub tcp_timeouts: Option<u64>,
    /// See [`Counters::retrans_segs`].
    pub retrans_segs: Option<u64>,
}

impl Delta {
    /// Share of the periods in which the group ran that were throttled, 0..=1; `None` when it never ran (0 of 0).
    #[must_use]
    pub fn throttled_share(&self) -> Option<f64> {
        share(self.nr_throttled?, self.nr_periods?)
    }

    /// CPUs used on average over the time between the readings.
    #[must_use]
    pub fn cpus_used(&self) -> Option<f64> {
        share(self.cpu_usage_usec?, self.elapsed_us?)
    }
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// `end − start`, value by value.
#[must_use]
pub fn delta(start: &Counters, end: &Counters) -> Delta {
    let difference = |value: fn(&Counters) -> Option<u64>| since(value(start), value(end));
    Delta {
        elapsed_us: end.t_us.checked_sub(start.t_us),
        cpu_usage_usec: difference(|c| c.cpu_usage_usec),
        nr_periods: difference(|c| c.nr_periods),
        nr_throttled: difference(|c| c.nr_throttled),
        throttled_usec: difference(|c| c.throttled_usec),
        pgfault: difference(|c| c.pgfault),
        pgmajfault: difference(|c| c.pgmajfault),
        pgscan: difference(|c| c.pgscan),
        pgsteal: difference(|c| c.pgsteal),
        workingset_refault_anon: difference(|c| c.workingset_refault_anon),
        workingset_refault_file: difference(|c| c.workingset_refault_file),
        memory_max_events: difference(|c| c.memory_max_events),
        oom: difference(|c| c.oom),
        oom_kill: difference(|c| c.oom_kill),
        psi_usec: since_each(&start.psi_usec, &end.psi_usec),
        listen_overflows: difference(|c| c.listen_overflows),
        listen_drops: difference(|c| c.listen_drops),
        tcp_timeouts: difference(|c| c.tcp_timeouts),
        retrans_segs: difference(|c| c.retrans_segs),
    }
}

/// Difference of one counter.
#[must_use]
pub fn since(start: Option<u64>, end: Option<u64>) -> Option<u64> {
    end?.checked_sub(start?)
}

/// Differences of named counters; a name that either side lacks, or that went backwards, is left out.
#[must_use]
pub fn since_each(
    start: &BTreeMap<String, u64>,
    end: &BTreeMap<String, u64>,
) -> BTreeMap<String, u64> {
    end.iter()
        .filter_map(|(key, end)| {
            let difference = since(start.get(key).copied(), Some(*end))?;
            Some((key.clone(), difference))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(periods: Option<u64>, throttled: Option<u64>) -> Counters {
        Counters {
            nr_periods: periods,
            nr_throttled: throttled,
            ..Counters::default()
        }
    }

    #[test]
    fn unknown_stays_unknown() {
        let known = counters(Some(40), Some(30));
        let unknown = counters(None, Some(10));
        assert_eq!(delta(&unknown, &known).nr_periods, None);
        assert_eq!(delta(&known, &unknown).nr_periods, None);
        assert_eq!(delta(&unknown, &known).nr_throttled, Some(20));
    }

    #[test]
    fn a_counter_that_went_backwards_is_unknown() {
        let before = counters(Some(40), Some(30));
        let restarted = counters(Some(4), Some(31));
        let delta = delta(&before, &restarted);
        assert_eq!(delta.nr_periods, None);
        assert_eq!(delta.nr_throttled, Some(1));
        assert_eq!(delta.throttled_share(), None);
    }

    #[test]
    fn throttled_share_of_an_idle_group_is_unknown() {
        let idle = counters(Some(40), Some(30));
        assert_eq!(delta(&idle, &idle).nr_periods, Some(0));
        assert_eq!(delta(&idle, &idle).throttled_share(), None);
        let busy = counters(Some(80), Some(60));
        assert_eq!(delta(&idle, &busy).throttled_share(), Some(0.75));
    }

    #[test]
    fn cpus_used_is_per_second_of_the_readings() {
        let at = |t_us, used| Counters {
            t_us,
            cpu_usage_usec: Some(used),
            ..Counters::default()
        };
        let delta = delta(&at(1_000_000, 0), &at(5_000_000, 1_000_000));
        assert_eq!(delta.cpus_used(), Some(0.25));
    }

    #[test]
    fn named_counters_need_both_ends() {
        let map =
            |pairs: &[(&str, u64)]| pairs.iter().map(|(k, v)| ((*k).to_owned(), *v)).collect();
        let start: BTreeMap<_, _> = map(&[("cpu_some", 5), ("io_some", 9)]);
        let end = map(&[("cpu_some", 7), ("io_some", 8), ("memory_some", 1)]);
        assert_eq!(since_each(&start, &end), map(&[("cpu_some", 2)]));
    }
}
