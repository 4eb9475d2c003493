//! The table that people read first, for a terminal of 120 columns.

mod layout;

use layout::Layout;

use super::analysis::{Analysis, CellReport, Judged};
use super::summary::Summary;
use super::text::plain;
use crate::record::columns::control_name;
use crate::record::trial::{Control, FailureKind, TrialStatus};
use crate::units::counted;
use crate::verdict::Verdict;
use crate::verdict::words::{count, ms, percent, significant};

/// Width that the table fits.
pub const WIDTH: u16 = 120;

/// Nothing was measured, or it does not apply.
const NOTHING: &str = "–";

/// The whole report for a terminal: headline, table, what was left out, notices. No colours, no control characters.
#[must_use]
pub fn render(analysis: &Analysis<'_>) -> String {
    let mut out = String::new();
    for sentence in &analysis.boundary.headline {
        push_wrapped(&mut out, "", &plain(sentence));
    }
    if !analysis.boundary.headline.is_empty() {
        out.push('\n');
    }
    out.push_str(&table(analysis));
    out.push('\n');
    out.push_str(&legend(analysis));
    for line in left_out_shortly(analysis) {
        push_wrapped(&mut out, "", &line);
    }
    for notice in &analysis.notices {
        push_wrapped(&mut out, "Note: ", &plain(notice));
    }
    out
}

/// Factors with more than one level; the others stand in the legend.
pub(crate) fn varied<'a>(analysis: &'a Analysis<'_>) -> Vec<&'a str> {
    let factors = &analysis.manifest.factors;
    let varied: Vec<&str> = factors
        .iter()
        .filter(|f| f.levels.len() > 1)
        .map(|f| f.name.as_str())
        .collect();
    if varied.is_empty() {
        factors.iter().take(1).map(|f| f.name.as_str()).collect()
    } else {
        varied
    }
}

fn table(analysis: &Analysis<'_>) -> String {
    let factors = varied(analysis);
    let labels = factors.len().max(1);
    let build = |intervals: bool| {
        let mut rows = vec![header(&factors, intervals)];
        rows.extend(
            analysis
                .cells
                .iter()
                .map(|cell| row(cell, &factors, labels, intervals)),
        );
        Layout { rows, labels }
    };
    let full = build(true);
    for gap in [2, 1] {
        if full.width(gap) <= WIDTH.into() {
            return full.render(gap);
        }
    }
    let mut layout = build(false);
    layout.narrow_labels(WIDTH.into());
    layout.render(1)
}

fn header(factors: &[&str], intervals: bool) -> Vec<String> {
    let mut header: Vec<String> = factors.iter().map(|f| plain(f).into_owned()).collect();
    if header.is_empty() {
        header.push("cell".to_owned());
    }
    let (p99, p999) = if intervals {
        ("p99 ms [95 % CI]", "p99.9 ms [95 % CI]")
    } else {
        ("p99 ms", "p99.9 ms")
    };
    let measured = [
        "hs p50", "hs p99", "accept", p99, p999, "thrott.", "mem MiB", "errors", "verdict",
    ];
    header.extend(measured.map(str::to_owned));
    header
}

fn row(cell: &CellReport, factors: &[&str], labels: usize, intervals: bool) -> Vec<String> {
    let mut row = Vec::new();
    match cell.control {
        Some(control) => {
            row.push(control_name(control).to_owned());
            row.extend((1..labels).map(|i| own_level(cell, factors, i)));
        }
        None if factors.is_empty() => row.push(plain(&cell.cell).into_owned()),
        None => row.extend((0..labels).map(|i| own_level(cell, factors, i))),
    }
    let latency = |column: &str| short(cell.summary(column));
    let tail = |column: &str| {
        if intervals {
            with_interval(cell.summary(column))
        } else {
            latency(column)
        }
    };
    let value = |column: &str, text: fn(f64) -> String| {
        cell.summary(column)
            .map_or(NOTHING.to_owned(), |s| text(s.median))
    };
    row.extend([
        latency("handshake_total_p50_us"),
        latency("handshake_total_p99_us"),
        value("accept_queue_max", count),
        tail("response_time_p99_us"),
        tail("response_time_p999_us"),
        value("throttled_share", percent),
        memory(cell).map_or(NOTHING.to_owned(), |b| significant(b / f64::from(1 << 20))),
        value("errors", count),
        status(cell),
    ]);
    row
}

/// The kernel's peak, or the largest sample where the kernel keeps none.
pub(crate) fn memory(cell: &CellReport) -> Option<f64> {
    let peak = cell
        .summary("memory_peak_bytes")
        .or_else(|| cell.summary("memory_max_bytes"));
    peak.map(|s| s.median)
}

fn own_level(cell: &CellReport, factors: &[&str], index: usize) -> String {
    let level = factors
        .get(index)
        .and_then(|name| cell.factors.iter().find(|f| f.name == *name));
    level.map_or(String::new(), |f| plain(&f.level).into_owned())
}

fn short(summary: Option<&Summary>) -> String {
    summary.map_or(NOTHING.to_owned(), |s| {
        format!("{}{}", bound(s), ms(s.median))
    })
}

fn bound(summary: &Summary) -> &'static str {
    if summary.at_least { "≥" } else { "" }
}

/// `52.0 [49.1, 55.2]`.
pub(crate) fn with_interval(summary: Option<&Summary>) -> String {
    let Some(s) = summary else {
        return NOTHING.to_owned();
    };
    match s.interval {
        Some(i) => format!("{} [{}, {}]", ms(s.median), ms(i.low), ms(i.high)),
        None => short(Some(s)),
    }
}

/// The verdict, and how many repetitions are behind it when it is not all that were planned.
pub(crate) fn status(cell: &CellReport) -> String {
    let counts = cell.counts;
    let ended = counts.valid + counts.invalid + counts.failed;
    let Some(judgement) = &cell.judgement else {
        return format!("0/{} run", counts.planned);
    };
    let name = judgement.name();
    let usable = if judgement.verdict == Verdict::Invalid {
        counts.valid
    } else {
        counts.valid + counts.failed
    };
    if usable == counts.planned && ended == counts.planned {
        name.to_owned()
    } else {
        format!("{name} {usable}/{}", counts.planned)
    }
}

fn legend(analysis: &Analysis<'_>) -> String {
    let mut out = String::new();
    let factors = varied(analysis);
    let constant: Vec<String> = analysis
        .manifest
        .factors
        .iter()
        .filter(|f| !factors.contains(&f.name.as_str()))
        .filter_map(|f| Some(format!("{}={}", plain(&f.name), plain(f.levels.first()?))))
        .collect();
    let mut text = format!(
        "Medians of {}; latencies in ms at the client (hs: whole handshake of a new connection, to its first byte); accept: largest depth of the accept queue.",
        counted(analysis.manifest.repetitions, "repetition")
    );
    if !constant.is_empty() {
        text.push_str(&format!(" Everywhere: {}.", constant.join(", ")));
    }
    push_wrapped(&mut out, "", &text);
    out
}

/// Reasons that the terminal shows; report.md has them all.
const MAX_REASONS: usize = 12;
/// Longest reason that the terminal shows.
const MAX_REASON: usize = 240;

/// [`left_out`], cut to what a terminal can take.
fn left_out_shortly(analysis: &Analysis<'_>) -> Vec<String> {
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

/// Appends text wrapped at [`WIDTH`], later lines indented by two more than the first.
fn push_wrapped(out: &mut String, prefix: &str, text: &str) {
    let indent = text.len() - text.trim_start().len();
    let mut line = format!("{}{prefix}", " ".repeat(indent));
    let mut width = line.chars().count();
    let mut first = true;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if !first && width + 1 + length > usize::from(WIDTH) {
            out.push_str(line.trim_end());
            out.push('\n');
            line = " ".repeat(indent + 2);
            width = indent + 2;
        } else if !first {
            line.push(' ');
            width += 1;
        }
        line.push_str(word);
        width += length;
        first = false;
    }
    out.push_str(line.trim_end());
    out.push('\n');
}

/// Whether a row is a control's.
#[must_use]
pub fn is_control(cell: &CellReport) -> bool {
    matches!(cell.control, Some(Control::Direct | Control::Unlimited))
}

#[cfg(test)]
mod tests;
