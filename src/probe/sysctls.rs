//! Kernel settings of the pod's network namespace that decide queues, and what follows from them.

use std::collections::BTreeMap;
use std::time::Duration;

use super::FsRoot;

/// Settings that are one number, by path below `/proc/sys/net`; each is known by its last component.
const SINGLE: [&str; 9] = [
    "core/somaxconn",
    "ipv4/tcp_syn_retries",
    "ipv4/tcp_synack_retries",
    "ipv4/tcp_syn_linear_timeouts",
    "ipv4/tcp_syncookies",
    "ipv4/tcp_max_syn_backlog",
    "ipv4/tcp_abort_on_overflow",
    "ipv4/tcp_tw_reuse",
    "ipv4/tcp_rto_max_ms",
];

/// Reads the settings; one that this kernel does not have is left out.
///
/// Keys are the settings' last components (`somaxconn`, `tcp_syn_retries`, …), and `ip_local_port_range_low`, `…_high`.
#[must_use]
pub fn read(root: &FsRoot) -> BTreeMap<String, i64> {
    let net = root.proc.join("sys/net");
    let text = |path: &str| fs_err::read_to_string(net.join(path)).ok();
    let mut found: BTreeMap<String, i64> = SINGLE
        .iter()
        .filter_map(|path| {
            let value = text(path)?.trim().parse().ok()?;
            let name = path.rsplit('/').next()?;
            Some((name.to_owned(), value))
        })
        .collect();
    if let Some((low, high)) = text("ipv4/ip_local_port_range").as_deref().and_then(pair) {
        found.insert("ip_local_port_range_low".to_owned(), low);
        found.insert("ip_local_port_range_high".to_owned(), high);
    }
    found
}

fn pair(text: &str) -> Option<(i64, i64)> {
    let mut numbers = text.split_whitespace().map(|word| word.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

/// When the kernel sends a SYN again, counted from the first, while nothing answers.
///
/// The first timeout is 1 s (RFC 6298). `tcp_syn_linear_timeouts` (kernel 6.5, default 4) more follow at the same distance, then
/// the distance doubles up to `tcp_rto_max_ms` (120 s). There are `tcp_syn_retries` (default 6) retransmissions beside the linear
/// ones: `tcp_write_timeout()` and `tcp_retransmit_timer()` in net/ipv4/tcp_timer.c. Real times come up to a few per cent late,
/// as timers of this length are coarse.
#[must_use]
pub fn syn_retransmit_times(sysctls: &BTreeMap<String, i64>) -> Vec<Duration> {
    const INITIAL: Duration = Duration::from_secs(1);
    /// Both are bytes in the kernel.
    const MOST: i64 = 255;
    let setting = |name: &str, default: i64| sysctls.get(name).copied().unwrap_or(default);
    let linear = setting("tcp_syn_linear_timeouts", 0).clamp(0, MOST);
    let retries = setting("tcp_syn_retries", 6).clamp(0, MOST) + linear;
    let longest = setting("tcp_rto_max_ms", 120_000).max(1000);
    let longest = Duration::from_millis(longest.unsigned_abs());
    let mut distance = INITIAL;
    let mut at = Duration::ZERO;
    (0..retries)
        .map(|retry| {
            at += distance;
            if retry >= linear {
                distance = (distance * 2).min(longest);
            }
            at
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(settings: &[(&str, i64)]) -> Vec<u64> {
        let sysctls = settings
            .iter()
            .map(|(k, v)| ((*k).to_owned(), *v))
            .collect();
        let times = syn_retransmit_times(&sysctls);
        times.iter().map(Duration::as_secs).collect()
    }

    #[test]
    fn linear_first_then_doubling_as_seen_on_the_wire() {
        // tcpdump on kernel 6.18: 1.01, 2.03, 3.06, 4.08, 5.10, 7.12, 11.34, 19.5 s.
        let new = [("tcp_syn_retries", 6), ("tcp_syn_linear_timeouts", 4)];
        assert_eq!(seconds(&new), [1, 2, 3, 4, 5, 7, 11, 19, 35, 67]);
    }

    #[test]
    fn older_kernels_double_from_the_start() {
        assert_eq!(seconds(&[("tcp_syn_retries", 6)]), [1, 3, 7, 15, 31, 63]);
        assert_eq!(seconds(&[]), [1, 3, 7, 15, 31, 63]);
        assert_eq!(seconds(&[("tcp_syn_retries", 1)]), [1]);
        assert_eq!(seconds(&[("tcp_syn_retries", 0)]), [0_u64; 0]);
    }

    #[test]
    fn the_distance_is_bounded() {
        let times = seconds(&[("tcp_syn_retries", 10)]);
        assert_eq!(times[6..], [127, 247, 367, 487]);
        let short = [("tcp_syn_retries", 4), ("tcp_rto_max_ms", 2000)];
        assert_eq!(seconds(&short), [1, 3, 5, 7]);
    }

    #[test]
    fn reads_what_this_kernel_has() {
        let read = read(&FsRoot::default());
        assert!(read["somaxconn"] > 0);
        assert!(read["ip_local_port_range_low"] < read["ip_local_port_range_high"]);
    }

    #[test]
    fn a_missing_setting_is_left_out() {
        let empty = tempfile::tempdir().expect("temporary folder");
        let root = FsRoot {
            proc: empty.path().to_owned(),
            ..FsRoot::default()
        };
        assert!(super::read(&root).is_empty());
    }

    proptest::proptest! {
        #[test]
        fn any_settings_give_rising_times(retries in i64::MIN.., linear in i64::MIN.., longest in i64::MIN..) {
            let settings = [("tcp_syn_retries", retries), ("tcp_syn_linear_timeouts", linear), ("tcp_rto_max_ms", longest)];
            let times = seconds(&settings);
            proptest::prop_assert!(times.is_sorted());
        }
    }
}
