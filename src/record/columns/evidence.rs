//! The kernel's account of the proxy: CPU, throttling, memory, pressure.

use super::{Builder, Cell, Column, Kind};
use crate::probe::report::{Counters, MemoryGauges};
use crate::record::derived::{
    self, completed_in_window, last_seen, mean, memory_values, over_window, throttled_share,
};
use crate::record::trial::TrialRecord;

type Counter = fn(&Counters) -> Option<u64>;
type Gauge = fn(&MemoryGauges) -> Option<u64>;

pub(super) fn columns() -> Vec<Column> {
    let mut b = Builder::default();
    cpu(&mut b);
    memory(&mut b);
    at_ready(&mut b);
    events(&mut b);
    pressure(&mut b);
    b.columns
}

fn window(b: &mut Builder, name: &str, unit: &'static str, kind: Kind, doc: &str, get: Counter) {
    b.add(name, unit, kind, doc, move |t| over_window(t, get));
}

fn cpu(b: &mut Builder) {
    window(
        b,
        "cpu_usage_usec",
        "usec",
        Kind::Time,
        "CPU time of the proxy over the window, user and system.",
        |c| c.cpu_usage_usec,
    );
    b.add(
        "cpu_usage_cpus",
        "cpus",
        Kind::Ratio,
        "CPU time ÷ wall time between the two readings: mean CPUs in use.",
        |t| {
            let wall = over_window(t, |c| Some(c.t_us)).filter(|&w| w > 0)?;
            Some(over_window(t, |c| c.cpu_usage_usec)? as f64 / wall as f64)
        },
    );
    b.add(
        "cpu_usec_per_request",
        "usec",
        Kind::Time,
        "CPU time ÷ requests completed within the window. The handshakes beside them are in the CPU time.",
        |t| {
            let requests = completed_in_window(derived::load(t)?);
            let usage = over_window(t, |c| c.cpu_usage_usec)?;
            (requests > 0.0).then(|| usage as f64 / requests)
        },
    );
    window(
        b,
        "nr_periods",
        "count",
        Kind::Count,
        "CFS periods in which the proxy ran.",
        |c| c.nr_periods,
    );
    window(
        b,
        "nr_throttled",
        "count",
        Kind::Count,
        "Of these, throttled.",
        |c| c.nr_throttled,
    );
    b.add(
        "throttled_share",
        "share",
        Kind::Ratio,
        "nr_throttled ÷ nr_periods; empty without periods.",
        throttled_share,
    );
    window(
        b,
        "throttled_usec",
        "usec",
        Kind::Time,
        "Time throttled, summed over CPUs: it can exceed the window.",
        |c| c.throttled_usec,
    );
}

fn memory(b: &mut Builder) {
    let current: Gauge = |m| m.current_bytes;
    b.add(
        "memory_mean_bytes",
        "bytes",
        Kind::Bytes,
        "Mean memory of the proxy, page cache included.",
        move |t| mean(&memory_values(t, current)),
    );
    b.add(
        "memory_max_bytes",
        "bytes",
        Kind::Bytes,
        "Largest sample of the proxy's memory.",
        move |t| memory_values(t, current).into_iter().max(),
    );
    b.add(
        "memory_peak_bytes",
        "bytes",
        Kind::Bytes,
        "The kernel's own peak (`memory.peak`, v1 `max_usage_in_bytes`) since the container was made. It may stand above the limit: the runtime's own start counts.",
        peak,
    );
    for (name, what, get) in [
        ("anon", "anonymous memory", (|m| m.anon_bytes) as Gauge),
        ("file", "page cache", |m| m.file_bytes),
        ("sock", "socket buffers", |m| m.sock_bytes),
        ("kernel", "kernel memory", |m| m.kernel_bytes),
        ("swap", "swapped-out memory", |m| m.swap_bytes),
    ] {
        let column = if name == "swap" {
            "swap_max_bytes".to_owned()
        } else {
            format!("memory_{name}_max_bytes")
        };
        b.add(
            column,
            "bytes",
            Kind::Bytes,
            format!("Largest sample of {what}."),
            move |t| memory_values(t, get).into_iter().max(),
        );
    }
    b.add(
        "swap_peak_bytes",
        "bytes",
        Kind::Bytes,
        "The kernel's own peak of swap (`memory.swap.peak`, from Linux 6.5), else the largest sample.",
        |t| {
            let kernel = memory_values(t, |m| m.swap_peak_bytes).into_iter().max();
            kernel.or_else(|| memory_values(t, |m| m.swap_bytes).into_iter().max())
        },
    );
}

/// The peak over the samples, or at the last look before a proxy without samples was gone.
pub(crate) fn peak(trial: &TrialRecord) -> Option<u64> {
    let at_ready = derived::probe(trial).and_then(|p| p.memory_at_ready?.peak_bytes);
    memory_values(trial, |m| m.peak_bytes)
        .into_iter()
        .chain(at_ready)
        .max()
}

fn at_ready(b: &mut Builder) {
    b.add(
        "page_cache",
        "",
        Kind::Text,
        "Page cache of the proxy's files as found, not as asked: `warm` (under 2 MiB of file pages charged to the proxy at its first answer), `cold`, or `unshared` (the storage driver gives each container its own, always charged).",
        |t| derived::page_cache(t).map(|p| p.name()),
    );
    for (name, what, get) in [
        (
            "memory_ready_bytes",
            "memory",
            (|m| m.current_bytes) as Gauge,
        ),
        ("memory_file_ready_bytes", "page cache", |m| m.file_bytes),
        ("memory_anon_ready_bytes", "anonymous memory", |m| {
            m.anon_bytes
        }),
    ] {
        let doc = format!(
            "The proxy's {what} at its first answer, or at the last look before it was gone."
        );
        b.add(name, "bytes", Kind::Bytes, doc, move |t| {
            derived::probe(t).and_then(|p| get(&p.memory_at_ready?))
        });
    }
}

fn events(b: &mut Builder) {
    let count = Kind::Count;
    window(b, "memory_pgfault", "count", count, "Page faults.", |c| {
        c.pgfault
    });
    window(
        b,
        "memory_pgmajfault",
        "count",
        count,
        "Page faults that needed I/O.",
        |c| c.pgmajfault,
    );
    window(
        b,
        "memory_pgscan",
        "count",
        count,
        "Pages scanned by reclaim (v2 only).",
        |c| c.pgscan,
    );
    window(
        b,
        "memory_pgsteal",
        "count",
        count,
        "Pages reclaimed (v2 only).",
        |c| c.pgsteal,
    );
    window(
        b,
        "memory_refault_anon",
        "count",
        count,
        "Refaults of anonymous pages.",
        |c| c.workingset_refault_anon,
    );
    window(
        b,
        "memory_refault_file",
        "count",
        count,
        "Refaults of file pages.",
        |c| c.workingset_refault_file,
    );
    window(
        b,
        "memory_max_events",
        "count",
        count,
        "Times the memory limit was hit (v1 `failcnt`).",
        |c| c.memory_max_events,
    );
    window(
        b,
        "memory_oom",
        "count",
        count,
        "OOM events (v2 only).",
        |c| c.oom,
    );
    b.add(
        "oom_kill",
        "count",
        count,
        "Processes killed for memory since the proxy started, at the last reading. A cgroup that dies takes its last reading with it: see `oom_killed`, `exit_code`.",
        |t| last_seen(t, |c| c.oom_kill),
    );
    b.add(
        "memory_pgmajfault_total",
        "count",
        count,
        "Page faults that needed I/O since the proxy started, at the last reading: evidence of one that never answered.",
        |t| last_seen(t, |c| c.pgmajfault),
    );
    b.add(
        "open_fds_max",
        "count",
        count,
        "Largest sample of descriptors open in one of the proxy's processes.",
        derived::open_fds,
    );
    b.add(
        "nofile_limit",
        "count",
        Kind::Fact,
        "Descriptor limit in force in the proxy's process when the window began.",
        |t| derived::probe(t).and_then(|p| p.nofile_limit),
    );
}

/// Kinds of pressure stall information.
pub(super) const PRESSURE: [&str; 6] = [
    "cpu_some",
    "cpu_full",
    "memory_some",
    "memory_full",
    "io_some",
    "io_full",
];

fn pressure(b: &mut Builder) {
    for name in PRESSURE {
        let (resource, share) = name.split_once('_').unwrap_or((name, ""));
        let who = if share == "some" {
            "a task"
        } else {
            "every task"
        };
        b.add(
            format!("psi_{name}_usec"),
            "usec",
            Kind::Time,
            format!("Pressure stall of the proxy's cgroup: time in which {who} waited for {resource}; empty where the kernel has none."),
            move |t| Cell::from(over_window(t, |c| c.psi_usec.get(name).copied())),
        );
    }
}
