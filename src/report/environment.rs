//! Where and how a run was made, in words.

use super::analysis::Analysis;
use crate::record::manifest::Manifest;
use crate::units::counted;
use crate::verdict::words::{bytes, count};

/// Name and value of each fact about run, host, engine and images.
#[must_use]
pub fn facts(manifest: &Manifest) -> Vec<(&'static str, String)> {
    let unknown = || "unknown".to_owned();
    let text = |value: &Option<String>| value.clone().unwrap_or_else(unknown);
    let number = |value: Option<u64>, show: fn(f64) -> String| {
        value.map_or_else(unknown, |v| show(v as f64))
    };
    let (host, engine) = (&manifest.host, &manifest.engine);
    let ended = manifest
        .finished_at
        .as_deref()
        .map_or("not finished".to_owned(), |t| format!("to {t}"));
    let mut facts = vec![
        (
            "run",
            format!("{}, {} {ended}", manifest.run, manifest.started_at),
        ),
        ("sweep", manifest.sweep_version.clone()),
        (
            "matrix",
            format!("SHA-256 {}, seed {}", manifest.matrix_hash, manifest.seed),
        ),
        (
            "host",
            format!(
                "{}, kernel {}, {} ({}), {} memory, {} swap, cgroup v{}",
                text(&host.os),
                text(&host.kernel),
                match host.cpus {
                    Some(1) => "1 CPU".to_owned(),
                    cpus => format!("{} CPUs", number(cpus, count)),
                },
                text(&host.cpu_model),
                number(host.memory_bytes, bytes),
                number(host.swap_bytes, bytes),
                text(&host.cgroup_version)
            ),
        ),
        (
            "engine",
            format!(
                "{} {}, storage {}, cgroup driver {}",
                text(&engine.name),
                text(&engine.version),
                text(&engine.storage_driver),
                text(&engine.cgroup_driver)
            ),
        ),
    ];
    for image in &manifest.images {
        let version = image
            .program_version
            .as_ref()
            .map_or(String::new(), |v| format!(", version {v}"));
        facts.push((
            "image",
            format!(
                "{}: {} ({}){version}",
                image.role,
                image.reference,
                text(&image.id)
            ),
        ));
    }
    facts
}

/// How the numbers came about.
#[must_use]
pub fn method(analysis: &Analysis<'_>) -> String {
    let summaries = analysis.cells.iter().flat_map(|c| c.columns.iter());
    let mut methods: Vec<&str> = summaries
        .filter(|c| c.summary.interval.is_some())
        .map(|c| c.summary.method)
        .collect();
    methods.sort_unstable();
    methods.dedup();
    let methods = if methods.is_empty() {
        "none: one repetition".to_owned()
    } else {
        methods.join(", ")
    };
    format!(
        "Medians of {} with 95 % confidence intervals ({methods}). Latencies are the client's, from the \
         intended send time; only the measured window counts; requests that failed are in no latency. Cells ran in \
         seeded random order within blocks, controls in every block. Every number is in summary.csv and trials.csv, \
         whose columns docs/columns.md explains; docs/verdicts.md explains the verdicts.",
        counted(analysis.manifest.repetitions, "repetition")
    )
}
