//! The last values seen, for a proxy whose cgroup is gone.

use crate::probe::cgroup::Reading;
use crate::probe::report::{Counters, MemoryGauges};

/// Keeps every value that was read, and the older one of those that were not. The time is that of the last reading in which the
/// cgroup was there.
pub(super) fn keep(counters: &mut Counters, memory: &mut MemoryGauges, now: &Reading) {
    keep_counters(counters, &now.counters);
    if is_deserted(&now.memory) && memory.anon_bytes.is_some_and(|bytes| bytes > 0) {
        memory.peak_bytes = now.memory.peak_bytes.or(memory.peak_bytes);
    } else {
        keep_memory(memory, &now.memory);
    }
}

/// Whether the memory is that of a group whose processes are gone. On v2 it can be read until the runtime removes it, and
/// tells of some pages of the kernel's instead of the proxy.
fn is_deserted(memory: &MemoryGauges) -> bool {
    // A process that runs has pages of its own, in memory or else in swap. Where no swap is accounted for, in memory.
    memory.anon_bytes == Some(0) && memory.swap_bytes.is_none_or(|bytes| bytes == 0)
}

fn saw_cgroup(counters: &Counters) -> bool {
    counters.cpu_usage_usec.is_some() || counters.pgfault.is_some() || counters.oom_kill.is_some()
}

fn keep_counters(last: &mut Counters, now: &Counters) {
    if saw_cgroup(now) {
        last.t_us = now.t_us;
    }
    let pairs = [
        (&mut last.cpu_usage_usec, now.cpu_usage_usec),
        (&mut last.nr_periods, now.nr_periods),
        (&mut last.nr_throttled, now.nr_throttled),
        (&mut last.throttled_usec, now.throttled_usec),
        (&mut last.pgfault, now.pgfault),
        (&mut last.pgmajfault, now.pgmajfault),
        (&mut last.pgscan, now.pgscan),
        (&mut last.pgsteal, now.pgsteal),
        (
            &mut last.workingset_refault_anon,
            now.workingset_refault_anon,
        ),
        (
            &mut last.workingset_refault_file,
            now.workingset_refault_file,
        ),
        (&mut last.memory_max_events, now.memory_max_events),
        (&mut last.oom, now.oom),
        (&mut last.oom_kill, now.oom_kill),
        (&mut last.listen_overflows, now.listen_overflows),
        (&mut last.listen_drops, now.listen_drops),
        (&mut last.tcp_timeouts, now.tcp_timeouts),
        (&mut last.retrans_segs, now.retrans_segs),
    ];
    for (old, new) in pairs {
        *old = new.or(*old);
    }
    for (key, total) in &now.psi_usec {
        last.psi_usec.insert(key.clone(), *total);
    }
}

fn keep_memory(last: &mut MemoryGauges, now: &MemoryGauges) {
    let pairs = [
        (&mut last.current_bytes, now.current_bytes),
        (&mut last.peak_bytes, now.peak_bytes),
        (&mut last.anon_bytes, now.anon_bytes),
        (&mut last.file_bytes, now.file_bytes),
        (&mut last.sock_bytes, now.sock_bytes),
        (&mut last.kernel_bytes, now.kernel_bytes),
        (&mut last.swap_bytes, now.swap_bytes),
        (&mut last.swap_peak_bytes, now.swap_peak_bytes),
    ];
    for (old, new) in pairs {
        *old = new.or(*old);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(
        t_us: u64,
        cpu: Option<u64>,
        overflows: Option<u64>,
        current: Option<u64>,
    ) -> Reading {
        let mut reading = Reading::default();
        reading.counters.t_us = t_us;
        reading.counters.cpu_usage_usec = cpu;
        reading.counters.listen_overflows = overflows;
        reading.memory.current_bytes = current;
        reading
    }

    #[test]
    fn what_a_dead_cgroup_no_longer_tells_stays_as_it_was() {
        let (mut counters, mut memory) = Default::default();
        keep(
            &mut counters,
            &mut memory,
            &reading(5, Some(70), None, Some(4096)),
        );
        keep(&mut counters, &mut memory, &reading(9, None, Some(3), None));
        assert_eq!(counters.t_us, 5);
        assert_eq!(counters.cpu_usage_usec, Some(70));
        assert_eq!(counters.listen_overflows, Some(3));
        assert_eq!(memory.current_bytes, Some(4096));
        keep(
            &mut counters,
            &mut memory,
            &reading(12, Some(80), Some(3), None),
        );
        assert_eq!((counters.t_us, counters.cpu_usage_usec), (12, Some(80)));
    }

    #[test]
    fn memory_is_the_proxys_and_not_what_it_left_behind() {
        let at = |current, anon| {
            let mut reading = reading(1, Some(1), None, Some(current));
            reading.memory.anon_bytes = Some(anon);
            reading.memory.peak_bytes = Some(8 << 20);
            reading.memory.swap_bytes = Some(0);
            reading
        };
        let (mut counters, mut memory) = Default::default();
        keep(&mut counters, &mut memory, &at(6 << 20, 5 << 20));
        // Killed: read after the last process, before the group was removed.
        let mut dead = at(86_016, 0);
        dead.counters.oom_kill = Some(1);
        keep(&mut counters, &mut memory, &dead);
        assert_eq!(memory.current_bytes, Some(6 << 20));
        assert_eq!(memory.anon_bytes, Some(5 << 20));
        assert_eq!(memory.peak_bytes, Some(8 << 20));
        assert_eq!(counters.oom_kill, Some(1));
        // One that swapped all it has is there.
        let mut swapped = at(4096, 0);
        swapped.memory.swap_bytes = Some(9 << 20);
        keep(&mut counters, &mut memory, &swapped);
        assert_eq!(memory.current_bytes, Some(4096));
    }
}
