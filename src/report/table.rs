//! The table that people read first, as wide as the terminal, but at most 120 columns.

mod layout;
mod left_out;

use layout::Layout;
pub(crate) use left_out::left_out;
use left_out::left_out_shortly;

use super::analysis::{Analysis, CellReport};
use super::summary::Summary;
use super::text::plain;
use crate::record::columns::control_name;
use crate::record::trial::Control;
use crate::units::counted;
use crate::verdict::Verdict;
use crate::verdict::words::{count, ms, percent, significant};
use crate::wrap::push_wrapped;

/// Width of the table where no terminal is narrower.
pub const WIDTH: u16 = 120;
/// Nothing fits a terminal that is narrower still.
const NARROWEST: u16 = 40;

/// Columns that a narrow terminal does without, the first to go first. p99 and the verdict always stay.
const DISPENSABLE: [&str; 7] = [
    "hs p50", "accept", "mem MiB", "p99.9 ms", "errors", "hs p99", "thrott.",
];
/// Labels are cut to this before a column goes, and shorter only when none is left to go.
const READABLE_LABEL: usize = 12;
const SHORTEST_LABEL: usize = 6;

/// Nothing was measured, or it does not apply.
const NOTHING: &str = "–";

/// The whole report for a terminal of this many columns: headline, table, what was left out, notices. No colours, no
/// control characters.
#[must_use]
pub fn render(analysis: &Analysis<'_>, width: u16) -> String {
    let width = usize::from(width.clamp(NARROWEST, WIDTH));
    let mut out = String::new();
    for sentence in &analysis.boundary.headline {
        push_wrapped(&mut out, &plain(sentence), width);
    }
    if !analysis.boundary.headline.is_empty() {
        out.push('\n');
    }
    let (table, missing) = table(analysis, width);
    out.push_str(&table);
    out.push('\n');
    push_wrapped(&mut out, &legend(analysis), width);
    if !missing.is_empty() {
        let missing = missing.join(", ");
        let line = format!("Not shown in {width} columns: {missing}; report.md has them.");
        push_wrapped(&mut out, &line, width);
    }
    for line in left_out_shortly(analysis) {
        push_wrapped(&mut out, &line, width);
    }
    for notice in &analysis.notices {
        push_wrapped(&mut out, &format!("Note: {}", plain(notice)), width);
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

/// The table, and the names of what it has no room for.
fn table(analysis: &Analysis<'_>, width: usize) -> (String, Vec<&'static str>) {
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
    if full.fits(width) {
        return (full.render(width), Vec::new());
    }
    let mut layout = build(false);
    let mut missing = vec!["95 % intervals"];
    layout.narrow_labels(width, READABLE_LABEL);
    for column in DISPENSABLE {
        if layout.fits(width) {
            break;
        }
        layout.remove(column);
        missing.push(column);
    }
    layout.narrow_labels(width, SHORTEST_LABEL);
    (layout.render(width), missing)
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
    text
}

/// Whether a row is a control's.
#[must_use]
pub fn is_control(cell: &CellReport) -> bool {
    matches!(cell.control, Some(Control::Direct | Control::Unlimited))
}

#[cfg(test)]
mod tests;
