//! Limits as the kernel held them, at the start and at the end of the window. `inf` is "no limit", empty is unknown.

use super::{Builder, Cell, Column, Kind};
use crate::probe::report::{CgroupLimits, CgroupVersion, Limit, LimitsInForce, ProbeReport};
use crate::record::derived;
use crate::verdict::effective;

pub(super) fn columns() -> Vec<Column> {
    let mut b = Builder::default();
    b.add(
        "cgroup_version",
        "",
        Kind::Fact,
        "cgroup version found for the proxy: 1 or 2.",
        |t| {
            derived::probe(t)?.cgroup_version.map(|v| match v {
                CgroupVersion::V1 => 1u64,
                CgroupVersion::V2 => 2,
            })
        },
    );
    side(&mut b, "start", |p| p.limits_start.as_ref());
    side(&mut b, "end", |p| p.limits_end.as_ref());
    in_effect(&mut b);
    b.columns
}

fn limit(value: Limit) -> Cell {
    match value {
        Limit::Max => Cell::Float(f64::INFINITY),
        Limit::Of(value) => value.into(),
    }
}

fn side(b: &mut Builder, when: &'static str, find: fn(&ProbeReport) -> Option<&LimitsInForce>) {
    let mut own =
        |name: &str, unit: &'static str, what: &str, get: fn(&CgroupLimits) -> Option<Cell>| {
            let doc = format!("{what} of the proxy's own cgroup at the {when} of the window.");
            b.add(format!("{name}_{when}"), unit, Kind::Fact, doc, move |t| {
                derived::probe(t).and_then(find).and_then(|l| get(&l.own))
            });
        };
    own("cpu_quota_usec", "usec", "CFS quota per period", |l| {
        l.cpu_quota_usec.map(limit)
    });
    own("cpu_period_usec", "usec", "CFS period", |l| {
        l.cpu_period_usec.map(Cell::from)
    });
    own(
        "memory_limit_bytes",
        "bytes",
        "Memory limit, without swap,",
        |l| l.memory_bytes.map(limit),
    );
    own(
        "swap_limit_bytes",
        "bytes",
        "Swap limit, on top of memory,",
        |l| l.swap_bytes.map(limit),
    );
}

fn in_effect(b: &mut Builder) {
    b.add(
        "cpu_effective_millis",
        "millicpu",
        Kind::Fact,
        "CPU limit in effect at the end: the smallest quota ÷ period of the proxy's cgroup and its ancestors.",
        |t| {
            let limits = derived::probe(t)?.limits_end.as_ref()?;
            Some(effective::cpu_millis(limits)?.map_or(Cell::Float(f64::INFINITY), Cell::from))
        },
    );
    b.add(
        "memory_effective_bytes",
        "bytes",
        Kind::Fact,
        "Memory limit in effect at the end: the smallest of the proxy's cgroup and its ancestors.",
        |t| {
            let limits = derived::probe(t)?.limits_end.as_ref()?;
            effective::memory(limits).map(limit)
        },
    );
}
