//! `/proc/stat` and `/proc/loadavg`.

/// CPU time of all CPUs together since boot, in clock ticks, and how many there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct CpuTimes {
    /// CPUs online.
    pub(super) cpus: u64,
    busy: u64,
    idle: u64,
    steal: u64,
}

/// The first line: user, nice, system, idle, iowait, irq, softirq, steal, guest, guest_nice. Guest time is in user and nice too.
pub(super) fn cpu_times(text: &str) -> Option<CpuTimes> {
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let fields: Vec<u64> = line
        .split_whitespace()
        .map(|word| word.parse().ok())
        .collect::<Option<_>>()?;
    let [user, nice, system, idle, rest @ ..] = fields.as_slice() else {
        return None;
    };
    let at = |index: usize| rest.get(index).copied().unwrap_or(0);
    let (iowait, irq, softirq, steal) = (at(0), at(1), at(2), at(3));
    let cpus = text
        .lines()
        .filter_map(|line| line.strip_prefix("cpu"))
        .filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        .count();
    let sum = |parts: &[u64]| parts.iter().fold(0_u64, |sum, n| sum.saturating_add(*n));
    Some(CpuTimes {
        cpus: cpus as u64,
        busy: sum(&[*user, *nice, *system, irq, softirq]),
        idle: sum(&[*idle, iowait]),
        steal,
    })
}

impl CpuTimes {
    /// Times since an earlier reading. Idle and steal time were seen to go back a tick; such a difference counts as none.
    pub(super) fn since(&self, earlier: &Self) -> Option<Self> {
        let same_cpus = self.cpus == earlier.cpus;
        same_cpus.then(|| Self {
            cpus: self.cpus,
            busy: self.busy.saturating_sub(earlier.busy),
            idle: self.idle.saturating_sub(earlier.idle),
            steal: self.steal.saturating_sub(earlier.steal),
        })
    }

    fn share(&self, part: u64) -> Option<f64> {
        let total = self
            .busy
            .saturating_add(self.idle)
            .saturating_add(self.steal);
        (total > 0).then(|| part as f64 / total as f64)
    }

    pub(super) fn steal_share(&self) -> Option<f64> {
        self.share(self.steal)
    }

    pub(super) fn busy_share(&self) -> Option<f64> {
        self.share(self.busy)
    }

    pub(super) fn busy_usec(&self) -> u64 {
        let per_tick = 1_000_000 / rustix::param::clock_ticks_per_second().max(1);
        self.busy.saturating_mul(per_tick)
    }
}

/// The 1-minute load average.
pub(super) fn load1(text: &str) -> Option<f64> {
    let load: f64 = text.split_whitespace().next()?.parse().ok()?;
    load.is_finite().then_some(load)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "cpu  100 0 50 1000 10 0 5 20 0 0\ncpu0 50 0 25 500 5 0 2 10 0 0\ncpu1 50 0 25 500 5 0 3 10 0 0\nintr 5\n";
    const AFTER: &str = "cpu  160 0 70 1080 10 0 5 60 0 0\ncpu0 80 0 35 540 5 0 2 30 0 0\ncpu1 80 0 35 540 5 0 3 30 0 0\nintr 6\n";

    #[test]
    fn shares_over_a_window() {
        let before = cpu_times(BEFORE).expect("times");
        let window = cpu_times(AFTER)
            .expect("times")
            .since(&before)
            .expect("same CPUs");
        assert_eq!(window.cpus, 2);
        assert_eq!(window.busy_share(), Some(0.4));
        assert_eq!(window.steal_share(), Some(0.2));
    }

    #[test]
    fn no_time_passed_is_unknown_not_zero() {
        let now = cpu_times(BEFORE).expect("times");
        assert_eq!(now.since(&now).expect("same CPUs").busy_share(), None);
    }

    #[test]
    fn a_cpu_that_came_or_went_spoils_the_difference() {
        let one = cpu_times("cpu  1 2 3 4\ncpu0 1 2 3 4\n").expect("times");
        assert_eq!(one.cpus, 1);
        assert_eq!(cpu_times(AFTER).expect("times").since(&one), None);
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(text in "(cpu[0-9 ]{0,3}[0-9]{0,25}|[ \n.a-z]|[0-9]{1,25}){0,30}") {
            let times = cpu_times(&text);
            let _ = times.and_then(|t| t.since(&CpuTimes::default())).map(|t| (t.busy_usec(), t.steal_share()));
            let _ = load1(&text);
        }
    }
}
