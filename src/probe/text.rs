//! Parsers of the kernel's texts. They are pure, tolerate unknown keys and garbage, and answer `None` for what is not there.

use super::report::Limit;

/// Lines of `key value`; lines that are not are skipped.
pub fn flat_keyed(text: &str) -> impl Iterator<Item = (&str, u64)> {
    text.lines().filter_map(|line| {
        let (key, value) = line.split_once([' ', '\t'])?;
        Some((key, value.trim().parse().ok()?))
    })
}

/// The value of `key` in lines of `key value`.
#[must_use]
pub fn keyed(text: &str, key: &str) -> Option<u64> {
    flat_keyed(text).find_map(|(k, v)| (k == key).then_some(v))
}

/// A text that is one number.
#[must_use]
pub fn single(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

/// cgroup v2 limit file (`memory.max`, `memory.swap.max`): `max` or a number.
#[must_use]
pub fn limit_v2(text: &str) -> Option<Limit> {
    match text.trim() {
        "max" => Some(Limit::Max),
        number => number.parse().ok().map(Limit::Of),
    }
}

/// cgroup v2 `cpu.max`: quota and period, microseconds.
#[must_use]
pub fn cpu_max(text: &str) -> Option<(Limit, u64)> {
    let mut words = text.split_whitespace();
    let quota = limit_v2(words.next()?)?;
    // The kernel's default period, which it prints; a text without one is from no kernel that we know.
    let period = words.next()?.parse().ok()?;
    Some((quota, period))
}

/// cgroup v1 `memory.limit_in_bytes` and `memory.memsw.limit_in_bytes`. "No limit" is the largest signed number rounded down
/// to a page (9223372036854771712 with 4 KiB pages, less with larger ones).
#[must_use]
pub fn limit_v1(text: &str) -> Option<Limit> {
    const LARGEST_PAGE: u64 = 1 << 20;
    let bytes = single(text)?;
    Some(if bytes > i64::MAX as u64 - LARGEST_PAGE {
        Limit::Max
    } else {
        Limit::Of(bytes)
    })
}

/// cgroup v1 `cpu.cfs_quota_us`: −1 is no limit.
#[must_use]
pub fn quota_v1(text: &str) -> Option<Limit> {
    let quota: i64 = text.trim().parse().ok()?;
    Some(u64::try_from(quota).map_or(Limit::Max, Limit::Of))
}

/// Swap on top of memory from v1's two limits, of memory and of memory + swap.
#[must_use]
pub fn swap_limit_v1(memory: Limit, memory_and_swap: Limit) -> Option<Limit> {
    match (memory, memory_and_swap) {
        (_, Limit::Max) => Some(Limit::Max),
        (Limit::Of(memory), Limit::Of(both)) => both.checked_sub(memory).map(Limit::Of),
        (Limit::Max, Limit::Of(_)) => None,
    }
}

/// Totals of a pressure file (`some …total=N`, `full …total=N`), microseconds.
#[must_use]
pub fn pressure(text: &str) -> Pressure {
    let total = |kind: &str| {
        let line = text
            .lines()
            .find(|line| line.split_whitespace().next() == Some(kind))?;
        line.split_whitespace()
            .find_map(|word| word.strip_prefix("total=")?.parse().ok())
    };
    Pressure {
        some: total("some"),
        full: total("full"),
    }
}

/// What [`pressure`] finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pressure {
    /// Time in which at least one task waited.
    pub some: Option<u64>,
    /// Time in which all of them waited.
    pub full: Option<u64>,
}

/// A counter of `/proc/net/netstat` or `/proc/net/snmp`: pairs of lines `Table: names…` and `Table: values…`.
#[must_use]
pub fn net_counter(text: &str, table: &str, name: &str) -> Option<u64> {
    let mut rows = text
        .lines()
        .filter_map(|line| line.split_once(':'))
        .filter_map(|(label, rest)| (label == table).then_some(rest));
    let names = rows.next()?;
    let values = rows.next()?;
    let column = names.split_whitespace().position(|n| n == name)?;
    values.split_whitespace().nth(column)?.parse().ok()
}

/// The path of this process in a `/proc/PID/cgroup` text, for one v1 controller or (`None`) the unified hierarchy.
#[must_use]
pub fn cgroup_path<'t>(text: &'t str, controller: Option<&str>) -> Option<&'t str> {
    text.lines().find_map(|line| {
        let (number, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        let here = match controller {
            None => number == "0" && controllers.is_empty(),
            Some(controller) => controllers.split(',').any(|c| c == controller),
        };
        here.then_some(path)
    })
}

/// Sum of the sizes in `/proc/swaps`, KiB: 0 when none is on, `None` when the text is not that table.
#[must_use]
pub fn swap_total_kib(text: &str) -> Option<u64> {
    let mut lines = text.lines();
    let size = lines
        .next()?
        .split_whitespace()
        .position(|name| name == "Size")?;
    // A file name may hold blanks (as "\040"), never raw ones, so columns can be counted.
    lines
        .filter(|line| !line.trim().is_empty())
        .map(|line| line.split_whitespace().nth(size)?.parse::<u64>().ok())
        .try_fold(0_u64, |sum, kib| sum.checked_add(kib?))
}

/// Soft `RLIMIT_NOFILE` in a `/proc/PID/limits` text; "unlimited" is `u64::MAX`.
#[must_use]
pub fn soft_limit_nofile(text: &str) -> Option<u64> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))?;
    match line.split_whitespace().next()? {
        "unlimited" => Some(u64::MAX),
        number => number.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_both_kernels() {
        assert_eq!(limit_v2("max\n"), Some(Limit::Max));
        assert_eq!(limit_v2("67108864\n"), Some(Limit::Of(67_108_864)));
        assert_eq!(limit_v2(""), None);
        assert_eq!(limit_v1("9223372036854771712\n"), Some(Limit::Max));
        assert_eq!(
            limit_v1("9223372036854710272\n"),
            Some(Limit::Max),
            "64 KiB pages"
        );
        assert_eq!(limit_v1("33554432\n"), Some(Limit::Of(33_554_432)));
        assert_eq!(quota_v1("-1\n"), Some(Limit::Max));
        assert_eq!(quota_v1("20000\n"), Some(Limit::Of(20_000)));
        assert_eq!(
            cpu_max("50000 100000\n"),
            Some((Limit::Of(50_000), 100_000))
        );
        assert_eq!(cpu_max("max 100000\n"), Some((Limit::Max, 100_000)));
        assert_eq!(cpu_max("max\n"), None);
    }

    #[test]
    fn swap_of_v1_is_the_difference() {
        let mib = 1 << 20;
        let of = |n: u64| Limit::Of(n * mib);
        assert_eq!(swap_limit_v1(of(64), of(64)), Some(Limit::Of(0)));
        assert_eq!(swap_limit_v1(of(64), of(320)), Some(of(256)));
        assert_eq!(swap_limit_v1(of(64), Limit::Max), Some(Limit::Max));
        assert_eq!(swap_limit_v1(Limit::Max, Limit::Max), Some(Limit::Max));
        assert_eq!(swap_limit_v1(Limit::Max, of(64)), None);
        assert_eq!(swap_limit_v1(of(64), of(32)), None);
    }

    #[test]
    fn pressure_with_and_without_full() {
        let old = "some avg10=2.18 avg60=1.20 avg300=1.73 total=28028338\n";
        assert_eq!(
            pressure(old),
            Pressure {
                some: Some(28_028_338),
                full: None
            }
        );
        let both = "some avg10=0.00 avg60=0.00 avg300=0.00 total=838376\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=835860\n";
        assert_eq!(
            pressure(both),
            Pressure {
                some: Some(838_376),
                full: Some(835_860)
            }
        );
        assert_eq!(pressure(""), Pressure::default());
    }

    #[test]
    fn network_counters_by_name_not_by_place() {
        let text = "TcpExt: SyncookiesSent ListenOverflows ListenDrops\nTcpExt: 0 17 18\nIpExt: InNoRoutes ListenDrops\nIpExt: 5 6\n";
        assert_eq!(net_counter(text, "TcpExt", "ListenOverflows"), Some(17));
        assert_eq!(net_counter(text, "TcpExt", "ListenDrops"), Some(18));
        assert_eq!(net_counter(text, "IpExt", "InNoRoutes"), Some(5));
        assert_eq!(net_counter(text, "TcpExt", "TCPTimeouts"), None);
        assert_eq!(
            net_counter("TcpExt: ListenDrops\n", "TcpExt", "ListenDrops"),
            None
        );
    }

    #[test]
    fn own_path_on_a_hybrid_host() {
        let text = "4:memory:/docker/abc\n3:cpu,cpuacct:/docker/abc\n9:name=systemd:/docker/x\n0::/docker/u\n";
        assert_eq!(cgroup_path(text, Some("memory")), Some("/docker/abc"));
        assert_eq!(cgroup_path(text, Some("cpuacct")), Some("/docker/abc"));
        assert_eq!(cgroup_path(text, None), Some("/docker/u"));
        assert_eq!(cgroup_path("1:cpu:/\n", None), None);
    }

    #[test]
    fn swap_devices_add_up() {
        let header = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n";
        assert_eq!(swap_total_kib(header), Some(0));
        let two =
            format!("{header}/swapfile   file\t524284\t0\t-2\n/dev/zram0 partition 1000 5 100\n");
        assert_eq!(swap_total_kib(&two), Some(525_284));
        assert_eq!(swap_total_kib(""), None);
        assert_eq!(swap_total_kib(&format!("{header}/swapfile file\n")), None);
    }

    #[test]
    fn descriptors_that_a_process_may_have() {
        let text = "Limit                     Soft Limit           Hard Limit           Units     \nMax open files            16384                20000                files     \n";
        assert_eq!(soft_limit_nofile(text), Some(16_384));
        assert_eq!(
            soft_limit_nofile("Max open files unlimited unlimited files"),
            Some(u64::MAX)
        );
        assert_eq!(soft_limit_nofile("Max processes 1 2 p\n"), None);
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(text in "(?s).{0,300}") {
            let _ = flat_keyed(&text).count();
            let _ = (single(&text), limit_v1(&text), limit_v2(&text), quota_v1(&text), cpu_max(&text));
            let _ = (swap_total_kib(&text), soft_limit_nofile(&text));
            let _ = (pressure(&text), net_counter(&text, "TcpExt", "ListenDrops"), cgroup_path(&text, Some("cpu")));
        }

        #[test]
        fn kernel_like_noise_does_not_panic(text in "((some|full|TcpExt:|nr_periods|max|-1|[0-9]{1,25}|total=[0-9]{0,25})[ :\n]){0,40}") {
            let _ = (pressure(&text), net_counter(&text, "TcpExt", "1"), cpu_max(&text), keyed(&text, "nr_periods"));
        }
    }
}
