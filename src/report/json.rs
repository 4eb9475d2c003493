//! `summary.json`: verdicts, boundary and summaries for programs.

use std::collections::BTreeMap;

use serde::Serialize;

use super::analysis::{Analysis, CellReport, Counts};
use super::summary::Summary;
use crate::record::columns::{PERCENTILES, control_name};
use crate::record::derived::{Quantile, quantile};
use crate::record::trial::SCHEMA_VERSION;
use crate::verdict::Verdict;
use crate::verdict::boundary::Boundary;

#[derive(Serialize)]
struct Run<'a> {
    schema: u32,
    sweep_version: &'a str,
    run: &'a str,
    name: &'a str,
    matrix_hash: &'a str,
    seed: u64,
    repetitions: u32,
    trials: Trials,
    headline: &'a [String],
    boundary: &'a Boundary,
    notices: &'a [String],
    cells: Vec<Cell<'a>>,
}

#[derive(Serialize)]
struct Trials {
    planned: u64,
    valid: u32,
    invalid: u32,
    failed: u32,
}

#[derive(Serialize)]
struct Cell<'a> {
    cell: &'a str,
    control: Option<&'static str>,
    factors: BTreeMap<&'a str, &'a str>,
    repetitions: Counts,
    /// `null` before the first repetition ended.
    verdict: Option<Verdict>,
    uncertain: bool,
    evidence: &'a [String],
    reasons: &'a [String],
    metrics: BTreeMap<&'a str, Metric>,
    ratios: BTreeMap<String, BTreeMap<&'static str, Metric>>,
    merged: BTreeMap<&'static str, Merged>,
}

#[derive(Serialize)]
struct Metric {
    #[serde(skip_serializing_if = "Option::is_none")]
    unit: Option<&'static str>,
    n: usize,
    /// `null` when it is no more than a lower bound.
    median: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    median_at_least: Option<f64>,
    ci95_low: Option<f64>,
    ci95_high: Option<f64>,
    ci_level: Option<f64>,
    ci_method: &'static str,
}

/// Percentiles of the histograms of all valid repetitions together, microseconds.
#[derive(Serialize)]
struct Merged {
    count: u64,
    censored: u64,
    percentiles_us: BTreeMap<&'static str, Option<u64>>,
    percentiles_at_least_us: BTreeMap<&'static str, u64>,
}

/// The whole file as text.
///
/// # Errors
/// When a value cannot be written as JSON, which is a bug.
pub fn render(analysis: &Analysis<'_>) -> serde_json::Result<String> {
    let manifest = analysis.manifest;
    let sum = |get: fn(&Counts) -> u32| analysis.cells.iter().map(|c| get(&c.counts)).sum();
    let run = Run {
        schema: SCHEMA_VERSION,
        sweep_version: env!("CARGO_PKG_VERSION"),
        run: &manifest.run,
        name: &manifest.name,
        matrix_hash: &manifest.matrix_hash,
        seed: manifest.seed,
        repetitions: manifest.repetitions,
        trials: Trials {
            planned: manifest.planned_trials,
            valid: sum(|c| c.valid),
            invalid: sum(|c| c.invalid),
            failed: sum(|c| c.failed),
        },
        headline: &analysis.boundary.headline,
        boundary: &analysis.boundary,
        notices: &analysis.notices,
        cells: analysis.cells.iter().map(cell).collect(),
    };
    let mut text = serde_json::to_string_pretty(&run)?;
    text.push('\n');
    Ok(text)
}

fn cell(report: &CellReport) -> Cell<'_> {
    let judgement = report.judgement.as_ref();
    let mut ratios: BTreeMap<String, BTreeMap<&'static str, Metric>> = BTreeMap::new();
    for column in &report.columns {
        for (control, summary) in &column.ratios {
            let of_column = ratios.entry(column.column.name.clone()).or_default();
            of_column.insert(control_name(*control), metric(None, summary));
        }
    }
    Cell {
        cell: &report.cell,
        control: report.control.map(control_name),
        factors: report
            .factors
            .iter()
            .map(|f| (f.name.as_str(), f.level.as_str()))
            .collect(),
        repetitions: report.counts,
        verdict: judgement.map(|j| j.verdict),
        uncertain: judgement.is_some_and(|j| j.uncertain),
        evidence: judgement.map_or(&[], |j| &j.evidence),
        reasons: &report.reasons,
        metrics: report
            .columns
            .iter()
            .map(|c| {
                (
                    c.column.name.as_str(),
                    metric(Some(c.column.unit), &c.summary),
                )
            })
            .collect(),
        ratios,
        merged: report
            .merged
            .iter()
            .map(|(name, successes, censored)| {
                let quantiles = PERCENTILES.map(|(p, q)| (p, quantile(successes, censored, q)));
                let exact = |q: &Option<Quantile>| match q {
                    Some(Quantile::Exact(us)) => Some(*us),
                    _ => None,
                };
                let merged = Merged {
                    count: successes.count(),
                    censored: censored.count(),
                    percentiles_us: quantiles.iter().map(|(p, q)| (*p, exact(q))).collect(),
                    percentiles_at_least_us: quantiles
                        .iter()
                        .filter_map(|(p, q)| match q {
                            Some(Quantile::AtLeast(us)) => Some((*p, *us)),
                            _ => None,
                        })
                        .collect(),
                };
                (*name, merged)
            })
            .collect(),
    }
}

fn metric(unit: Option<&'static str>, summary: &Summary) -> Metric {
    Metric {
        unit,
        n: summary.n,
        median: (!summary.at_least).then_some(summary.median),
        median_at_least: summary.at_least.then_some(summary.median),
        ci95_low: summary.interval.map(|i| i.low),
        ci95_high: summary.interval.map(|i| i.high),
        ci_level: summary.interval.map(|i| i.level),
        ci_method: summary.method,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::sample;
    use crate::report::analysis::analyse;

    #[test]
    fn programs_find_verdict_boundary_and_numbers() {
        let (manifest, records) = sample::quick_run();
        let text = render(&analyse(&manifest, &records)).expect("json");
        let json: serde_json::Value = serde_json::from_str(&text).expect("parse");
        let change = &json["boundary"]["axes"][0]["slices"][0]["change"];
        assert_eq!(change["at"]["level"], "250m");
        assert_eq!(change["at"]["verdict"], "cpu");
        assert_eq!(json["trials"]["valid"], 18);
        let cell = json["cells"]
            .as_array()
            .expect("cells")
            .iter()
            .find(|c| c["factors"]["cpu"] == "250m")
            .expect("cell");
        assert_eq!(cell["verdict"], "cpu");
        assert_eq!(cell["repetitions"]["valid"], 3);
        assert_eq!(
            cell["metrics"]["response_time_p99_us"]["ci_method"],
            "student-t-log"
        );
        assert!(
            cell["ratios"]["response_time_p99_us"]["unlimited"]["median"]
                .as_f64()
                .expect("ratio")
                > 20.0
        );
        assert_eq!(cell["merged"]["response_time"]["count"], 3000);
        assert!(
            cell["merged"]["response_time"]["percentiles_us"]["p99"]
                .as_u64()
                .expect("p99")
                > 70_000
        );
    }
}
