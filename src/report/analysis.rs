//! Everything that the reports show, from the manifest and the trials alone. Pure.

use crate::hdr::LatencyHistogram;
use crate::record::columns::{self, Cell, Column, Kind, METRICS, Row};
use crate::record::derived;
use crate::record::manifest::{Manifest, PlannedCell};
use crate::record::trial::{Control, Factor, TrialRecord, TrialStatus};
use crate::stats::paired_ratio;
use crate::verdict::boundary::{self, Boundary};
use crate::verdict::cell::{CellNumbers, judge_cell};
use crate::verdict::controls::belongs;
use crate::verdict::{ControlStats, Judgement, judge};

use super::notices;
use super::summary::{Summary, from_estimate, summarise};

/// A trial with its verdict.
#[derive(Debug)]
pub struct Judged<'a> {
    /// The trial.
    pub trial: &'a TrialRecord,
    /// Its verdict.
    pub judgement: Judgement,
    /// Its values, in the order of [`columns::all`].
    pub values: Vec<Cell>,
}

/// A column's summary in a cell.
#[derive(Debug)]
pub struct ColumnSummary {
    /// The column.
    pub column: &'static Column,
    /// Over the valid repetitions.
    pub summary: Summary,
    /// As ratios to the controls, paired by block; latencies only.
    pub ratios: Vec<(Control, Summary)>,
}

/// A cell of the matrix, or a control.
#[derive(Debug)]
pub struct CellReport {
    /// Cell id.
    pub cell: String,
    /// Its levels.
    pub factors: Vec<Factor>,
    /// `None` for a cell of the matrix.
    pub control: Option<Control>,
    /// Valid, invalid and failed repetitions.
    pub counts: Counts,
    /// Reasons of the repetitions that are not valid, each once.
    pub reasons: Vec<String>,
    /// The verdict; `None` before the first repetition ended.
    pub judgement: Option<Judgement>,
    /// What the verdict rests on.
    pub numbers: CellNumbers,
    /// Summaries, in the order of the columns; empty without a valid repetition.
    pub columns: Vec<ColumnSummary>,
    /// Histograms of the valid repetitions, merged: metric, successes, requests of unknown length.
    pub merged: Vec<(&'static str, LatencyHistogram, LatencyHistogram)>,
}

/// Repetitions by status.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Counts {
    /// Planned.
    pub planned: u32,
    /// Valid.
    pub valid: u32,
    /// Invalid.
    pub invalid: u32,
    /// Failed.
    pub failed: u32,
}

impl CellReport {
    /// The summary of a column.
    #[must_use]
    pub fn summary(&self, column: &str) -> Option<&Summary> {
        self.columns
            .iter()
            .find(|c| c.column.name == column)
            .map(|c| &c.summary)
    }

    /// The ratio of a column to a control.
    #[must_use]
    pub fn ratio(&self, column: &str, control: Control) -> Option<&Summary> {
        let column = self.columns.iter().find(|c| c.column.name == column)?;
        column
            .ratios
            .iter()
            .find(|(c, _)| *c == control)
            .map(|(_, s)| s)
    }
}

/// A run, analysed.
#[derive(Debug)]
pub struct Analysis<'a> {
    /// The manifest.
    pub manifest: &'a Manifest,
    /// Every trial, in the run's order.
    pub trials: Vec<Judged<'a>>,
    /// Controls first, then the cells in the order of the plan.
    pub cells: Vec<CellReport>,
    /// Where along each axis the verdict leaves `ok`.
    pub boundary: Boundary,
    /// What a reader must know of the numbers, each once.
    pub notices: Vec<String>,
}

/// Analyses a run.
#[must_use]
pub fn analyse<'a>(manifest: &'a Manifest, records: &'a [TrialRecord]) -> Analysis<'a> {
    let mut ordered: Vec<&TrialRecord> = records.iter().collect();
    ordered.sort_by_key(|t| (t.position, t.repetition));
    let mut controls: Vec<(&[Factor], ControlStats)> = Vec::new();
    let trials: Vec<Judged<'a>> = ordered
        .into_iter()
        .map(|trial| {
            let known = controls
                .iter()
                .position(|(factors, _)| *factors == trial.factors);
            let known = known.unwrap_or_else(|| {
                controls.push((&trial.factors, ControlStats::of(&trial.factors, records)));
                controls.len() - 1
            });
            judged(trial, &controls[known].1)
        })
        .collect();
    let mut planned = planned_cells(manifest, &trials);
    planned.sort_by_key(|c| match c.control {
        Some(Control::Direct) => 0,
        Some(Control::Unlimited) => 1,
        None => 2,
    });
    let cells: Vec<CellReport> = planned
        .into_iter()
        .map(|p| cell_report(manifest, p, &trials, records))
        .collect();
    let boundary = boundary::find(
        &manifest.factors,
        &boundary_cells(&cells),
        &notices::inert(&trials),
    );
    let mut notices = notices::of_trials(manifest, &trials);
    notices.extend(notices::across_trials(&trials, &cells));
    Analysis {
        manifest,
        trials,
        cells,
        boundary,
        notices,
    }
}

fn judged<'a>(trial: &'a TrialRecord, controls: &ControlStats) -> Judged<'a> {
    let judgement = judge(trial, &controls.for_trial(trial.control));
    let row = Row {
        trial,
        judgement: Some(&judgement),
    };
    let values = columns::all().map(|c| c.get(&row)).collect();
    Judged {
        trial,
        judgement,
        values,
    }
}

fn boundary_cells(cells: &[CellReport]) -> Vec<boundary::JudgedCell<'_>> {
    cells
        .iter()
        .filter(|c| c.control.is_none())
        .filter_map(|c| {
            let judgement = c.judgement.as_ref()?;
            Some(boundary::JudgedCell {
                factors: &c.factors,
                judgement,
                numbers: &c.numbers,
            })
        })
        .collect()
}

/// The cells of the plan, and those that only the trials know.
fn planned_cells(manifest: &Manifest, trials: &[Judged<'_>]) -> Vec<PlannedCell> {
    let mut cells = manifest.cells.clone();
    for judged in trials {
        if cells.iter().all(|c| c.cell != judged.trial.cell) {
            cells.push(PlannedCell {
                cell: judged.trial.cell.clone(),
                factors: judged.trial.factors.clone(),
                control: judged.trial.control,
            });
        }
    }
    cells
}

fn cell_report(
    manifest: &Manifest,
    planned: PlannedCell,
    trials: &[Judged<'_>],
    records: &[TrialRecord],
) -> CellReport {
    let own: Vec<&Judged<'_>> = trials
        .iter()
        .filter(|j| j.trial.cell == planned.cell)
        .collect();
    let valid: Vec<&Judged<'_>> = own
        .iter()
        .copied()
        .filter(|j| j.trial.status == TrialStatus::Valid)
        .collect();
    let columns = summaries(&planned, &valid, trials);
    let controls = ControlStats::of(&planned.factors, records).for_trial(planned.control);
    let mut report = CellReport {
        counts: counts(manifest, &own),
        reasons: reasons(&own),
        judgement: None,
        numbers: CellNumbers::default(),
        columns,
        merged: merged(&valid),
        cell: planned.cell,
        factors: planned.factors,
        control: planned.control,
    };
    report.numbers = numbers(&report, &controls);
    let judgements: Vec<&Judgement> = own.iter().map(|j| &j.judgement).collect();
    report.judgement = judge_cell(&judgements, &report.numbers);
    report
}

fn counts(manifest: &Manifest, own: &[&Judged<'_>]) -> Counts {
    let count = |status| own.iter().filter(|j| j.trial.status == status).count() as u32;
    Counts {
        planned: manifest.repetitions,
        valid: count(TrialStatus::Valid),
        invalid: count(TrialStatus::Invalid),
        failed: count(TrialStatus::Failed),
    }
}

fn reasons(own: &[&Judged<'_>]) -> Vec<String> {
    let mut reasons = Vec::new();
    for judged in own.iter().filter(|j| j.trial.status != TrialStatus::Valid) {
        for reason in &judged.trial.reasons {
            if !reasons.contains(reason) {
                reasons.push(reason.clone());
            }
        }
    }
    reasons
}

fn summaries(
    planned: &PlannedCell,
    valid: &[&Judged<'_>],
    trials: &[Judged<'_>],
) -> Vec<ColumnSummary> {
    columns::all()
        .enumerate()
        .filter_map(|(index, column)| {
            let scale = column.kind.scale()?;
            let values: Vec<Cell> = valid.iter().map(|j| j.values[index].clone()).collect();
            let summary = summarise(&values, scale)?;
            let ratios = if column.kind == Kind::Latency {
                ratios(planned, index, valid, trials)
            } else {
                Vec::new()
            };
            Some(ColumnSummary {
                column,
                summary,
                ratios,
            })
        })
        .collect()
}

/// A latency as ratios to the controls of the same block. A value that is only a lower bound has no ratio.
fn ratios(
    planned: &PlannedCell,
    index: usize,
    valid: &[&Judged<'_>],
    trials: &[Judged<'_>],
) -> Vec<(Control, Summary)> {
    if planned.control == Some(Control::Direct) {
        return Vec::new();
    }
    [Control::Direct, Control::Unlimited]
        .into_iter()
        .filter(|&control| planned.control != Some(control))
        .filter_map(|control| {
            let pairs: Vec<(f64, f64)> = valid
                .iter()
                .filter_map(|j| {
                    let of_block = trials.iter().find(|c| {
                        c.trial.control == Some(control)
                            && c.trial.block == j.trial.block
                            && c.trial.status == TrialStatus::Valid
                            && belongs(control, &c.trial.factors, &planned.factors)
                    })?;
                    Some((j.values[index].number()?, of_block.values[index].number()?))
                })
                .collect();
            Some((control, from_estimate(paired_ratio(pairs)?)))
        })
        .collect()
}

fn merged(valid: &[&Judged<'_>]) -> Vec<(&'static str, LatencyHistogram, LatencyHistogram)> {
    METRICS
        .iter()
        .filter_map(|metric| {
            let (mut successes, mut censored) =
                (LatencyHistogram::default(), LatencyHistogram::default());
            for load in valid.iter().filter_map(|j| derived::load(j.trial)) {
                let (ok, open) = (metric.histograms)(load);
                successes.merge(ok);
                if let Some(open) = open {
                    censored.merge(open);
                }
            }
            (successes.count() + censored.count() > 0).then_some((metric.name, successes, censored))
        })
        .collect()
}

fn numbers(cell: &CellReport, controls: &ControlStats) -> CellNumbers {
    let p99 = "response_time_p99_us";
    let estimate = |s: &Summary| crate::stats::Estimate {
        n: s.n,
        median: s.median,
        interval: s.interval,
    };
    CellNumbers {
        p99: cell
            .summary(p99)
            .map(|s| (s.median, s.at_least, s.interval)),
        unlimited_p99_us: controls.unlimited.as_ref().and_then(|c| c.response_p99_us),
        direct_p99_us: controls.direct.as_ref().and_then(|c| c.response_p99_us),
        response_ratio: cell.ratio(p99, Control::Unlimited).map(estimate),
        handshake_ratio: cell
            .ratio("handshake_total_p99_us", Control::Unlimited)
            .map(estimate),
        throttled_share: cell.summary("throttled_share").map(|s| s.median),
    }
}
