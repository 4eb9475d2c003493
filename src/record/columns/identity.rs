//! Which trial it is, what was asked for, and how it ended.

use super::{Builder, Cell, Column, Kind};
use crate::record::trial::{Control, FailureKind, TrialStatus};

pub(super) fn columns() -> Vec<Column> {
    let mut b = Builder::default();
    which(&mut b);
    asked(&mut b);
    ended(&mut b);
    b.columns
}

fn which(b: &mut Builder) {
    b.add(
        "run",
        "",
        Kind::Text,
        "Id of the run; with `run-` in front where it would read as a number.",
        |t| {
            if t.run.parse::<f64>().is_ok() {
                format!("run-{}", t.run)
            } else {
                t.run.clone()
            }
        },
    );
    b.add(
        "position",
        "count",
        Kind::Fact,
        "Place in the run's order, from 0.",
        |t| t.position,
    );
    b.add(
        "cell",
        "",
        Kind::Text,
        "Cell: the combination of factor levels, or the control.",
        |t| t.cell.clone(),
    );
    b.add(
        "repetition",
        "count",
        Kind::Fact,
        "Repetition of the cell, from 1.",
        |t| t.repetition,
    );
    b.add(
        "block",
        "count",
        Kind::Fact,
        "Block: one pass over all cells in random order, from 1. Ratios to controls are paired by it.",
        |t| t.block,
    );
    b.add(
        "control",
        "",
        Kind::Text,
        "`direct` (generator straight to the upstream), `unlimited` (the proxy without limits), or empty for a cell of the matrix.",
        |t| t.control.map(control_name),
    );
}

pub(crate) fn control_name(control: Control) -> &'static str {
    match control {
        Control::Direct => "direct",
        Control::Unlimited => "unlimited",
    }
}

fn asked(b: &mut Builder) {
    b.add(
        "cpu_millis",
        "millicpu",
        Kind::Fact,
        "CPU limit asked for, thousandths of a CPU; empty is none.",
        |t| t.limits.cpu.map(|c| c.0),
    );
    b.add(
        "memory_bytes",
        "bytes",
        Kind::Fact,
        "Memory limit asked for, without swap; empty is none.",
        |t| t.limits.memory.map(|m| m.0),
    );
    b.add(
        "swap_bytes",
        "bytes",
        Kind::Fact,
        "Swap limit asked for, on top of memory; empty when memory has no limit.",
        |t| t.limits.memory.map(|_| t.limits.swap.0),
    );
    b.add(
        "cpu_period_usec",
        "usec",
        Kind::Fact,
        "CFS period asked for; empty without a CPU limit.",
        |t| t.limits.cpu.map(|_| t.limits.cpu_period.0),
    );
    b.add(
        "workers",
        "count",
        Kind::Fact,
        "Worker threads of the proxy asked for.",
        |t| t.workers,
    );
    b.add(
        "page_cache_asked",
        "",
        Kind::Text,
        "Page cache of the proxy's files asked for: `warm` or `cold`.",
        |t| match t.page_cache_asked {
            crate::spec::settings::PageCache::Warm => "warm",
            crate::spec::settings::PageCache::Cold => "cold",
        },
    );
    b.add(
        "warmup_us",
        "us",
        Kind::Fact,
        "Load before the measured window.",
        |t| t.warmup_us,
    );
    b.add(
        "duration_us",
        "us",
        Kind::Fact,
        "Length of the measured window asked for.",
        |t| t.duration_us,
    );
    b.add(
        "seed",
        "",
        Kind::Fact,
        "Seed of the trial's arrivals.",
        |t| t.seed,
    );
}

fn ended(b: &mut Builder) {
    b.add(
        "status",
        "",
        Kind::Text,
        "`valid`; `invalid` (measured, but the numbers must not be used); `failed` (the proxy could not be measured: a finding).",
        |t| status_name(t.status),
    );
    b.add(
        "reason",
        "",
        Kind::Text,
        "Why it is not valid; several are joined by `; `.",
        |t| t.reasons.join("; "),
    );
    b.add(
        "failure",
        "",
        Kind::Text,
        "What failed, for a failed trial.",
        |t| t.failure.map(failure_name),
    );
    b.add_row(
        "verdict",
        "",
        Kind::Text,
        "Failure mode of the trial, see docs/verdicts.md.",
        |row| {
            let judged = row.judgement.map(|j| j.verdict);
            judged
                .or(row.trial.verdict)
                .map(crate::verdict::Verdict::name)
                .into()
        },
    );
    b.add_row(
        "evidence",
        "",
        Kind::Text,
        "What the verdict rests on, with the numbers; joined by `; `.",
        |row| row.judgement.map(|j| j.evidence.join("; ")).into(),
    );
    b.add("started_at", "", Kind::Text, "Start, RFC 3339 UTC.", |t| {
        t.started_at.clone()
    });
    b.add(
        "wall_us",
        "us",
        Kind::Fact,
        "Wall time of the trial, from create to its evidence, before the containers are removed.",
        |t| t.wall_us,
    );
    b.add(
        "attempts",
        "count",
        Kind::Fact,
        "How often the trial was tried; 1 is no retry.",
        |t| t.attempts,
    );
    b.add(
        "retried_because",
        "",
        Kind::Text,
        "What the engine or the harness spoiled in the attempt before this one, or why the trial was invalid before \
         `--retry-invalid`; nothing of that attempt is in the row.",
        |t| t.retried_because.clone(),
    );
    b.add(
        "ready_after_us",
        "us",
        Kind::Latency,
        "From the first sight of the proxy's cgroup to its first answer.",
        |t| t.agent.as_ref().and_then(|a| a.ready_after_us),
    );
    b.add(
        "exit_code",
        "",
        Kind::Fact,
        "Exit code of the proxy, if it exited before `sweep` stopped it.",
        |t| t.proxy.as_ref().and_then(|p| p.exit_code),
    );
    b.add(
        "oom_killed",
        "",
        Kind::Fact,
        "The engine's OOM flag: 1 or 0.",
        |t| t.proxy.as_ref().and_then(|p| p.oom_killed),
    );
    b.add(
        "engine_warnings",
        "",
        Kind::Text,
        "Warnings in the engine's answers; joined by `; `.",
        |t| Cell::from(t.engine_warnings.join("; ")),
    );
}

pub(crate) fn status_name(status: TrialStatus) -> &'static str {
    match status {
        TrialStatus::Valid => "valid",
        TrialStatus::Invalid => "invalid",
        TrialStatus::Failed => "failed",
    }
}

pub(crate) fn failure_name(kind: FailureKind) -> &'static str {
    match kind {
        FailureKind::OomKilled => "oom_killed",
        FailureKind::NotReady => "not_ready",
        FailureKind::Exited => "exited",
        FailureKind::StartFailed => "start_failed",
        FailureKind::Engine => "engine",
        FailureKind::Harness => "harness",
    }
}
