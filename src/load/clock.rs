//! Monotonic time as nanoseconds in a `u64`: one comparison per deadline, no `Duration` arithmetic in the hot path.

use rustix::time::{ClockId, Timespec, clock_gettime};

/// Nanoseconds in a microsecond.
pub(crate) const US: u64 = 1_000;
/// Nanoseconds in a millisecond.
pub(crate) const MS: u64 = 1_000_000;
/// Nanoseconds in a second.
pub(crate) const SEC: u64 = 1_000_000_000;
/// Later than any deadline.
pub(crate) const NEVER: u64 = u64::MAX;

/// `CLOCK_MONOTONIC` now.
pub(crate) fn now() -> u64 {
    nanos(clock_gettime(ClockId::Monotonic))
}

/// CPU time of the calling thread.
pub(crate) fn thread_cpu() -> u64 {
    nanos(clock_gettime(ClockId::ThreadCPUTime))
}

/// Time that the calling thread has spent runnable without a CPU, by the scheduler's own account, nanoseconds; `None`
/// where the kernel keeps none (`CONFIG_SCHED_INFO`).
pub(crate) fn thread_cpu_wait() -> Option<u64> {
    let text = fs_err::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().nth(1)?.parse().ok()
}

fn nanos(time: Timespec) -> u64 {
    time.tv_sec as u64 * SEC + time.tv_nsec as u64
}

/// A span of nanoseconds for the kernel.
pub(crate) fn timespec(nanos: u64) -> Timespec {
    Timespec {
        tv_sec: (nanos / SEC) as i64,
        tv_nsec: (nanos % SEC) as _,
    }
}

/// Timers of the calling thread fire without the default slack of 50 us, and it runs soon after it wakes even beside a
/// busy proxy on the same CPU. Where either is refused, sends are late and `pacing_lag` says so.
pub(crate) fn precise_timers() {
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    let _ = sweep_upstream::prefer_short_slices();
}

/// Sleeps until `deadline`, looking at `stop` every 20 ms; `false` if it was stopped.
pub(crate) fn sleep_until(deadline: u64, stop: impl Fn() -> bool) -> bool {
    loop {
        if stop() {
            return false;
        }
        let now = now();
        if now >= deadline {
            return true;
        }
        std::thread::sleep(std::time::Duration::from_nanos(
            (deadline - now).min(20 * MS),
        ));
    }
}
