//! Trials that are in no median, and why.

use super::super::analysis::{Analysis, Judged};
use super::super::text::plain;
use crate::record::trial::{FailureKind, TrialStatus};
use crate::units::counted;

/// Reasons that the terminal shows; report.md has them all.
const MAX_REASONS: usize = 12;
/// Longest reason that the terminal shows.
const MAX_REASON: usize = 240;

/// [`left_out`], cut to what a terminal can take.
pub(super) fn left_out_shortly(analysis: &Analysis<'_>) -> Vec<String> {
    let (mut lines, reasons): (Vec<String>, Vec<String>) = left_out(analysis)
        .into_iter()
        .partition(|l| !l.starts_with(' '));
    let more = reasons.len().saturating_sub(MAX_REASONS);
    lines.extend(reasons.into_iter().take(MAX_REASONS).map(|reason| {
        match reason.char_indices().nth(MAX_REASON) {
            Some((end, _)) => format!("{}…", &reason[..end]),
            None => reason,
        }
    }));
    if more > 0 {
        let what = if more == 1 {
            "reason is"
        } else {
            "reasons are"
        };
        lines.push(format!("  {more} more {what} in report.md."));
    }
    lines
}

/// Trials that are in no median, and why, each reason once.
pub(crate) fn left_out(analysis: &Analysis<'_>) -> Vec<String> {
    let count =
        |get: &dyn Fn(&Judged<'_>) -> bool| analysis.trials.iter().filter(|j| get(j)).count();
    let ended = analysis.trials.len();
    let spoiled = |j: &Judged<'_>| {
        matches!(
            j.trial.failure,
            Some(FailureKind::Engine | FailureKind::Harness)
        )
    };
    let failed = |j: &Judged<'_>| j.trial.status == TrialStatus::Failed;
    let planned = usize::try_from(analysis.manifest.planned_trials).unwrap_or(usize::MAX);
    let mut lines = Vec::new();
    if planned > ended {
        let of = counted(planned, "trial");
        lines.push(format!("Not run: {} of {of}.", planned - ended));
    }
    for (what, number) in [
        (
            "Invalid, left out of the medians",
            count(&|j| j.trial.status == TrialStatus::Invalid),
        ),
        (
            "Failed (a finding, no latencies)",
            count(&|j| failed(j) && !spoiled(j)),
        ),
        (
            "Spoiled by the engine or by sweep itself",
            count(&|j| failed(j) && spoiled(j)),
        ),
    ] {
        if number > 0 {
            let of = counted(ended, "trial");
            lines.push(format!("{what}: {number} of {of}."));
        }
    }
    lines.extend(grouped_reasons(analysis));
    lines
}

/// Reasons that differ in nothing but their numbers, together: how many trials, where, and the first one's words.
fn grouped_reasons(analysis: &Analysis<'_>) -> Vec<String> {
    struct Group<'a> {
        shape: String,
        first: &'a str,
        cells: Vec<&'a str>,
        trials: usize,
        /// In their numbers too.
        alike: bool,
    }
    let mut groups: Vec<Group<'_>> = Vec::new();
    let lost = analysis
        .trials
        .iter()
        .filter(|j| j.trial.status != TrialStatus::Valid);
    for (trial, reason) in lost.flat_map(|j| j.trial.reasons.iter().map(|r| (j.trial, r))) {
        let shape: String = reason
            .split(|c: char| c.is_ascii_digit())
            .filter(|p| !p.is_empty())
            .collect();
        let known = groups.iter().position(|g| g.shape == shape);
        let group = match known {
            Some(index) => &mut groups[index],
            None => {
                groups.push(Group {
                    shape,
                    first: reason,
                    cells: Vec::new(),
                    trials: 0,
                    alike: true,
                });
                let last = groups.len() - 1;
                &mut groups[last]
            }
        };
        group.trials += 1;
        group.alike &= group.first == reason;
        if !group.cells.contains(&trial.cell.as_str()) {
            group.cells.push(&trial.cell);
        }
    }
    let text = |group: &Group<'_>| {
        let mut place = plain(group.cells[0]).into_owned();
        let more = group.cells.len() - 1;
        if more > 0 {
            place.push_str(&format!(
                " and {more} more {}",
                if more == 1 { "cell" } else { "cells" }
            ));
        }
        // The figures are one trial's, and must not be read as those of all.
        let trials = match (group.trials, group.alike) {
            (1, _) => String::new(),
            (n, true) => format!(" ({n} trials)"),
            (n, false) => format!(" ({n} trials, each with its own figures; the first)"),
        };
        format!("  {place}{trials}: {}", plain(group.first))
    };
    groups.iter().map(text).collect()
}
