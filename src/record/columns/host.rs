//! The upstream's own delay, the noise of the host, and what the instrument itself cost.

use super::evidence::PRESSURE;
use super::{Builder, Cell, Column, Kind};
use crate::agent::job::UpstreamReport;
use crate::probe::report::HostNoise;
use crate::record::derived;
use crate::record::trial::TrialRecord;

pub(super) fn columns() -> Vec<Column> {
    let mut b = Builder::default();
    upstream(&mut b);
    noise(&mut b);
    instrument(&mut b);
    b.columns
}

fn upstream(b: &mut Builder) {
    let mut add = |name, unit, kind, doc: &str, get: fn(&UpstreamReport) -> Option<u64>| {
        b.add(name, unit, kind, doc, move |t| {
            t.agent.as_ref()?.upstream.as_ref().and_then(get)
        });
    };
    add(
        "upstream_requests",
        "count",
        Kind::Count,
        "Requests that the upstream served in the window.",
        |u| Some(u.requests),
    );
    add(
        "upstream_delay_p50_us",
        "us",
        Kind::Latency,
        "Delay that the upstream really served, by its own clock: 50th percentile.",
        |u| u.delay_p50_us,
    );
    add(
        "upstream_delay_p99_us",
        "us",
        Kind::Latency,
        "Delay that the upstream really served: 99th percentile.",
        |u| u.delay_p99_us,
    );
    add(
        "upstream_delay_max_us",
        "us",
        Kind::Latency,
        "Delay that the upstream really served: largest.",
        |u| u.delay_max_us,
    );
}

fn of<C: Into<Cell>>(get: impl Fn(&HostNoise) -> C) -> impl Fn(&TrialRecord) -> Cell {
    move |t| {
        derived::probe(t)
            .map(|p| get(&p.host))
            .map_or(Cell::Empty, Into::into)
    }
}

fn noise(b: &mut Builder) {
    b.add(
        "host_cpus",
        "count",
        Kind::Fact,
        "CPUs online.",
        of(|h| h.cpus),
    );
    b.add(
        "host_steal_share",
        "share",
        Kind::Ratio,
        "Share of the host's CPU time that the hypervisor took.",
        of(|h| h.steal_share),
    );
    b.add(
        "host_busy_share",
        "share",
        Kind::Ratio,
        "Share of the host's CPU time in use by anything.",
        of(|h| h.busy_share),
    );
    b.add(
        "host_other_cpu_usec",
        "usec",
        Kind::Time,
        "CPU time outside the pod's containers over the window.",
        of(|h| h.other_cpu_usec),
    );
    b.add(
        "host_load1",
        "",
        Kind::Ratio,
        "1-minute load average at the end.",
        of(|h| h.load1),
    );
    b.add(
        "host_cpu_khz_mean",
        "kHz",
        Kind::Ratio,
        "Mean CPU frequency.",
        of(|h| h.cpu_khz_mean),
    );
    b.add(
        "host_thermal_throttle_events",
        "count",
        Kind::Count,
        "Thermal throttling events.",
        of(|h| h.thermal_throttle_events),
    );
    b.add(
        "host_suspended_us",
        "us",
        Kind::Time,
        "Time for which the host was suspended.",
        of(|h| h.suspended_us),
    );
    b.add(
        "host_clock_step_us",
        "us",
        Kind::Fact,
        "Step of the wall clock.",
        of(|h| h.clock_step_us),
    );
    b.add(
        "host_swap_total_bytes",
        "bytes",
        Kind::Fact,
        "Size of all swap devices.",
        of(|h| h.swap_total_bytes),
    );
    b.add(
        "host_on_battery",
        "",
        Kind::Fact,
        "On battery power: 1 or 0.",
        of(|h| h.on_battery),
    );
    for name in PRESSURE {
        b.add(
            format!("host_psi_{name}_usec"),
            "usec",
            Kind::Time,
            format!("Pressure stall of the whole host over the window: `{name}`."),
            of(move |h| h.psi_usec.get(name).copied()),
        );
    }
    b.add(
        "sysctls",
        "",
        Kind::Text,
        "Kernel settings of the pod that decide queues, `name=value`.",
        |t| {
            derived::probe(t).map(|p| {
                let words: Vec<String> =
                    p.sysctls.iter().map(|(k, v)| format!("{k}={v}")).collect();
                words.join("; ")
            })
        },
    );
}

fn instrument(b: &mut Builder) {
    b.add(
        "agent_cpu_usec",
        "usec",
        Kind::Time,
        "CPU time of the agent over the window.",
        |t| t.agent.as_ref().and_then(|a| a.agent_cpu_usec),
    );
    b.add(
        "generator_cpu_usec",
        "usec",
        Kind::Time,
        "CPU time of the generator's threads over the window, without polls that found nothing.",
        |t| derived::load(t).and_then(|l| l.generator_cpu_usec),
    );
    b.add(
        "generator_cpu_wait_usec",
        "usec",
        Kind::Time,
        "Time that the generator's threads were runnable without a CPU, over the window; at half of the window the trial \
         is invalid.",
        |t| derived::load(t).and_then(|l| l.generator_cpu_wait_usec),
    );
    b.add(
        "probe_cpu_usec",
        "usec",
        Kind::Time,
        "CPU time of the probes over the window.",
        |t| derived::probe(t).and_then(|p| p.probe_cpu_usec),
    );
    b.add(
        "samples",
        "count",
        Kind::Count,
        "Samples of the gauges in the window.",
        |t| {
            derived::load(t)?;
            derived::probe(t).map(|p| p.samples.len() as u64)
        },
    );
    b.add(
        "probe_gaps",
        "count",
        Kind::Count,
        "Samples that failed or came too late, all probes.",
        |t| {
            derived::load(t)?;
            derived::probe(t).map(|p| p.gaps.values().sum::<u64>())
        },
    );
}
