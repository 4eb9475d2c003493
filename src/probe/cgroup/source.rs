//! Which file holds what, on each version, as tables; and what a file's text means.

use super::Mount;
use crate::probe::report::{Counters, Limit, MemoryGauges};
use crate::probe::text::{flat_keyed, keyed, limit_v1, pressure, single};

/// Counters and gauges of one reading.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Reading {
    pub(crate) counters: Counters,
    pub(crate) memory: MemoryGauges,
    /// v1: the limit of memory + swap is the limit of memory.
    no_swap_v1: bool,
}

impl Reading {
    /// Takes back a count that says nothing. With no swap allowed, v1 meets the memory+swap limit before the memory limit, and
    /// kernels were seen (6.18) that count this in neither `failcnt`, up to and over an OOM kill.
    pub(crate) fn settle(&mut self) {
        if self.no_swap_v1 && self.counters.memory_max_events == Some(0) {
            self.counters.memory_max_events = None;
        }
    }
}

/// A file's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    CpuStatV1,
    CpuStatV2,
    CpuacctUsage,
    MemoryStatV1,
    MemoryStatV2,
    MemoryCurrent,
    MemoryPeak,
    SwapCurrent,
    SwapPeak,
    EventsV2,
    OomControl,
    /// v1 `memory.failcnt` or `memory.memsw.failcnt`: they add up.
    Failcnt,
    KmemUsage,
    Pressure(&'static str, &'static str),
}

/// How often a file is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cadence {
    /// With every sample.
    Always,
    /// About once a second, and at both ends of the window.
    Slow,
}

/// A row of the tables below.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) mount: Mount,
    pub(crate) file: &'static str,
    pub(crate) source: Source,
    pub(crate) cadence: Cadence,
}

const fn entry(mount: Mount, file: &'static str, source: Source) -> Entry {
    let cadence = Cadence::Always;
    Entry {
        mount,
        file,
        source,
        cadence,
    }
}

const fn slow(mount: Mount, file: &'static str, source: Source) -> Entry {
    let cadence = Cadence::Slow;
    Entry {
        mount,
        file,
        source,
        cadence,
    }
}

const fn psi(file: &'static str, some: &'static str, full: &'static str) -> Entry {
    slow(Mount::Unified, file, Source::Pressure(some, full))
}

const PSI_CPU: Entry = psi("cpu.pressure", "cpu_some", "cpu_full");
const PSI_MEMORY: Entry = psi("memory.pressure", "memory_some", "memory_full");
const PSI_IO: Entry = psi("io.pressure", "io_some", "io_full");

/// cgroup v1. `memory.kmem.tcp.usage_in_bytes` is left out: it stays 0 unless a limit on it is set, so it says nothing.
pub(crate) const SOURCES_V1: &[Entry] = &[
    entry(Mount::Memory, "memory.oom_control", Source::OomControl),
    entry(Mount::Cpu, "cpu.stat", Source::CpuStatV1),
    entry(Mount::Cpuacct, "cpuacct.usage", Source::CpuacctUsage),
    entry(Mount::Memory, "memory.stat", Source::MemoryStatV1),
    entry(
        Mount::Memory,
        "memory.usage_in_bytes",
        Source::MemoryCurrent,
    ),
    entry(
        Mount::Memory,
        "memory.max_usage_in_bytes",
        Source::MemoryPeak,
    ),
    slow(Mount::Memory, "memory.failcnt", Source::Failcnt),
    slow(Mount::Memory, "memory.memsw.failcnt", Source::Failcnt),
    entry(
        Mount::Memory,
        "memory.kmem.usage_in_bytes",
        Source::KmemUsage,
    ),
    PSI_CPU,
    PSI_MEMORY,
    PSI_IO,
];

/// cgroup v2. `memory.peak` is from kernel 5.19, `memory.swap.peak` from 6.5.
pub(crate) const SOURCES_V2: &[Entry] = &[
    entry(Mount::Memory, "memory.events", Source::EventsV2),
    entry(Mount::Cpu, "cpu.stat", Source::CpuStatV2),
    entry(Mount::Memory, "memory.stat", Source::MemoryStatV2),
    entry(Mount::Memory, "memory.current", Source::MemoryCurrent),
    entry(Mount::Memory, "memory.peak", Source::MemoryPeak),
    entry(Mount::Memory, "memory.swap.current", Source::SwapCurrent),
    entry(Mount::Memory, "memory.swap.peak", Source::SwapPeak),
    PSI_CPU,
    PSI_MEMORY,
    PSI_IO,
];

impl Source {
    /// Puts what `text` says into `reading`; what it does not say stays as it was.
    pub(crate) fn apply(self, text: &str, reading: &mut Reading) {
        let Reading {
            counters,
            memory,
            no_swap_v1: no_swap,
        } = reading;
        match self {
            Self::CpuStatV1 => cpu_stat_v1(text, counters),
            Self::CpuStatV2 => cpu_stat_v2(text, counters),
            Self::CpuacctUsage => counters.cpu_usage_usec = single(text).map(nanos_to_micros),
            Self::MemoryStatV1 => {
                memory_stat_v1(text, counters, memory);
                *no_swap = no_swap_v1(text);
            }
            Self::MemoryStatV2 => memory_stat_v2(text, counters, memory),
            Self::MemoryCurrent => memory.current_bytes = single(text),
            Self::MemoryPeak => memory.peak_bytes = single(text),
            Self::SwapCurrent => memory.swap_bytes = single(text),
            Self::SwapPeak => memory.swap_peak_bytes = single(text),
            Self::KmemUsage => memory.kernel_bytes = single(text),
            Self::EventsV2 => events_v2(text, counters),
            Self::OomControl => {
                counters.oom_kill = keyed(text, "oom_kill");
            }
            Self::Failcnt => {
                if let Some(n) = single(text) {
                    let sum = counters.memory_max_events.unwrap_or(0).saturating_add(n);
                    counters.memory_max_events = Some(sum);
                }
            }
            Self::Pressure(some, full) => {
                let totals = pressure(text);
                for (key, total) in [(some, totals.some), (full, totals.full)] {
                    if let Some(total) = total {
                        counters.psi_usec.insert(key.to_owned(), total);
                    }
                }
            }
        }
    }
}

fn nanos_to_micros(nanos: u64) -> u64 {
    nanos / 1000
}

fn cpu_stat_v1(text: &str, counters: &mut Counters) {
    for (key, value) in flat_keyed(text) {
        match key {
            "nr_periods" => counters.nr_periods = Some(value),
            "nr_throttled" => counters.nr_throttled = Some(value),
            "throttled_time" => counters.throttled_usec = Some(nanos_to_micros(value)),
            _ => {}
        }
    }
}

fn cpu_stat_v2(text: &str, counters: &mut Counters) {
    for (key, value) in flat_keyed(text) {
        match key {
            "usage_usec" => counters.cpu_usage_usec = Some(value),
            "nr_periods" => counters.nr_periods = Some(value),
            "nr_throttled" => counters.nr_throttled = Some(value),
            "throttled_usec" => counters.throttled_usec = Some(value),
            _ => {}
        }
    }
}

/// The `total_` lines count the group and what is below it, as v2 does; the others count the group alone.
fn memory_stat_v1(text: &str, counters: &mut Counters, memory: &mut MemoryGauges) {
    for (key, value) in flat_keyed(text) {
        match key {
            "total_rss" => memory.anon_bytes = Some(value),
            "total_cache" => memory.file_bytes = Some(value),
            "total_swap" => memory.swap_bytes = Some(value),
            "total_pgfault" => counters.pgfault = Some(value),
            "total_pgmajfault" => counters.pgmajfault = Some(value),
            "total_workingset_refault_anon" => counters.workingset_refault_anon = Some(value),
            // Before kernel 5.9 there was one line for both kinds, and v1 had only file pages in it.
            "total_workingset_refault_file" | "total_workingset_refault" => {
                counters.workingset_refault_file = Some(value);
            }
            _ => {}
        }
    }
}

fn no_swap_v1(text: &str) -> bool {
    let limit = |key| limit_v1(&keyed(text, key)?.to_string());
    match limit("hierarchical_memory_limit") {
        Some(Limit::Of(memory)) => limit("hierarchical_memsw_limit") == Some(Limit::Of(memory)),
        _ => false,
    }
}

fn memory_stat_v2(text: &str, counters: &mut Counters, memory: &mut MemoryGauges) {
    for (key, value) in flat_keyed(text) {
        match key {
            "anon" => memory.anon_bytes = Some(value),
            "file" => memory.file_bytes = Some(value),
            "sock" => memory.sock_bytes = Some(value),
            "kernel" => memory.kernel_bytes = Some(value),
            "pgfault" => counters.pgfault = Some(value),
            "pgmajfault" => counters.pgmajfault = Some(value),
            "pgscan" => counters.pgscan = Some(value),
            "pgsteal" => counters.pgsteal = Some(value),
            "workingset_refault_anon" => counters.workingset_refault_anon = Some(value),
            "workingset_refault_file" | "workingset_refault" => {
                counters.workingset_refault_file = Some(value);
            }
            _ => {}
        }
    }
}

fn events_v2(text: &str, counters: &mut Counters) {
    for (key, value) in flat_keyed(text) {
        match key {
            "max" => counters.memory_max_events = Some(value),
            "oom" => counters.oom = Some(value),
            "oom_kill" => counters.oom_kill = Some(value),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
