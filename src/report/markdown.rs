//! `report.md`: the report for people and pull requests.

use std::fmt::Write as _;

use super::analysis::{Analysis, CellReport};
use super::environment::{facts, method};
use super::table::{left_out, memory, status, varied, with_interval};
use super::text::markdown as escape;
use crate::record::columns::control_name;
use crate::record::trial::Control;
use crate::verdict::words::{bytes, count, percent, significant};

const NOTHING: &str = "–";

/// The whole file as text.
#[must_use]
pub fn render(analysis: &Analysis<'_>) -> String {
    let mut out = format!("# {}\n\n", escape(&analysis.manifest.name));
    for sentence in &analysis.boundary.headline {
        let _ = writeln!(out, "- **{}**", escape(sentence));
    }
    if !analysis.boundary.headline.is_empty() {
        out.push('\n');
    }
    cells(&mut out, analysis);
    evidence(&mut out, analysis);
    let left_out = left_out(analysis);
    if !left_out.is_empty() {
        out.push_str("\n## Left out\n\n");
        for line in left_out {
            let indent = if line.starts_with(' ') { "  " } else { "" };
            let _ = writeln!(out, "{indent}- {}", escape(line.trim_start()));
        }
    }
    if !analysis.notices.is_empty() {
        out.push_str("\n## Notices\n\n");
        for notice in &analysis.notices {
            let _ = writeln!(out, "- {}", escape(notice));
        }
    }
    environment(&mut out, analysis);
    out
}

fn cells(out: &mut String, analysis: &Analysis<'_>) {
    let factors = varied(analysis);
    let mut header: Vec<String> = vec!["cell".to_owned()];
    header.extend(factors.iter().map(|f| escape(f)));
    let numbers = [
        "handshake p50 ms [95 % CI]",
        "handshake p99 ms [95 % CI]",
        "accept queue max",
        "p50 ms [95 % CI]",
        "p99 ms [95 % CI]",
        "p99.9 ms [95 % CI]",
        "p99 ÷ unlimited",
        "throttled",
        "memory peak",
        "errors",
        "verdict",
    ];
    let labels = header.len();
    header.extend(numbers.map(str::to_owned));
    let _ = writeln!(out, "| {} |", header.join(" | "));
    let alignment: Vec<&str> = (0..header.len())
        .map(|i| {
            if i < labels || i + 1 == header.len() {
                "---"
            } else {
                "---:"
            }
        })
        .collect();
    let _ = writeln!(out, "|{}|", alignment.join("|"));
    for cell in &analysis.cells {
        let _ = writeln!(out, "| {} |", row(cell, &factors).join(" | "));
    }
}

fn row(cell: &CellReport, factors: &[&str]) -> Vec<String> {
    let mut row = vec![match cell.control {
        Some(control) => format!("*{}*", control_name(control)),
        None => String::new(),
    }];
    row.extend(factors.iter().map(|name| {
        let level = cell.factors.iter().find(|f| f.name == *name);
        level.map_or(String::new(), |f| escape(&f.level))
    }));
    let value = |column: &str, text: fn(f64) -> String| {
        cell.summary(column)
            .map_or(NOTHING.to_owned(), |s| text(s.median))
    };
    let ratio = cell.ratio("response_time_p99_us", Control::Unlimited);
    let ratio = ratio.map_or(NOTHING.to_owned(), |s| match s.interval {
        Some(i) => format!(
            "{} [{}, {}]",
            significant(s.median),
            significant(i.low),
            significant(i.high)
        ),
        None => significant(s.median),
    });
    let latency = |column: &str| escape(&with_interval(cell.summary(column)));
    row.extend([
        latency("handshake_total_p50_us"),
        latency("handshake_total_p99_us"),
        value("accept_queue_max", count),
        latency("response_time_p50_us"),
        latency("response_time_p99_us"),
        latency("response_time_p999_us"),
        escape(&ratio),
        value("throttled_share", percent),
        memory(cell).map_or(NOTHING.to_owned(), bytes),
        value("errors", count),
        escape(&status(cell)),
    ]);
    row
}

fn evidence(out: &mut String, analysis: &Analysis<'_>) {
    out.push_str("\n## Verdicts and their evidence\n\n");
    for cell in &analysis.cells {
        if let Some(judgement) = &cell.judgement {
            let evidence: Vec<String> = judgement.evidence.iter().map(|e| escape(e)).collect();
            let _ = writeln!(
                out,
                "- **{}** {}: {}",
                escape(judgement.name()),
                escape(&cell.cell),
                evidence.join("; ")
            );
        }
    }
}

fn environment(out: &mut String, analysis: &Analysis<'_>) {
    out.push_str("\n## Environment\n\n| | |\n|---|---|\n");
    for (name, value) in facts(analysis.manifest) {
        let _ = writeln!(out, "| {name} | {} |", escape(&value));
    }
    let _ = write!(out, "\n## Method\n\n{}\n", method(analysis));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::sample::{self, Shape};
    use crate::report::analysis::analyse;

    #[test]
    fn a_report_with_everything() {
        let (_, mut records) = sample::quick_run();
        records.push(sample::oom_killed(Shape::limited(1000, 6), 1));
        records[2].status = crate::record::trial::TrialStatus::Invalid;
        records[2].reasons = vec!["noise: <script>alert(1)</script> | steal".to_owned()];
        let manifest = sample::manifest(&records);
        let text = render(&analyse(&manifest, &records));
        assert!(!text.contains("<script>"));
        insta::assert_snapshot!(text);
    }
}
