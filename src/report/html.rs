//! `report.html`: one file without scripts or outside resources, for light and dark screens.

use std::fmt::Write as _;

use super::analysis::{Analysis, CellReport};
use super::environment;
use super::table::{left_out, memory, status, varied, with_interval};
use super::text::html as escape;
use crate::record::columns::control_name;
use crate::record::trial::Control;
use crate::verdict::words::{bytes, count, percent, significant};

mod chart;
mod scale;

const STYLE: &str = include_str!("html/style.css");
const NOTHING: &str = "–";

/// The whole file as text.
#[must_use]
pub fn render(analysis: &Analysis<'_>) -> String {
    let name = escape(&analysis.manifest.name);
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>sweep: {name}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<h1>{name}</h1>\n"
    );
    list(&mut out, "headline", &analysis.boundary.headline);
    for (title, column) in [
        ("Response time, p99", "response_time_p99_us"),
        (
            "New connection to its first byte, p99",
            "handshake_total_p99_us",
        ),
    ] {
        out.push_str(&chart::section(analysis, title, column));
    }
    cells(&mut out, analysis);
    let left_out: Vec<String> = left_out(analysis)
        .iter()
        .map(|l| l.trim().to_owned())
        .collect();
    section(&mut out, "Left out", &left_out);
    section(&mut out, "Notices", &analysis.notices);
    out.push_str("<h2>Environment</h2>\n<table class=\"facts\">\n");
    for (name, value) in environment::facts(analysis.manifest) {
        let _ = writeln!(out, "<tr><th>{name}</th><td>{}</td></tr>", escape(&value));
    }
    let _ = write!(
        out,
        "</table>\n<h2>Method</h2>\n<p>{}</p>\n</body>\n</html>\n",
        escape(&environment::method(analysis))
    );
    out
}

fn list(out: &mut String, class: &str, items: &[String]) {
    if items.is_empty() {
        return;
    }
    let _ = writeln!(out, "<ul class=\"{class}\">");
    for item in items {
        let _ = writeln!(out, "<li>{}</li>", escape(item));
    }
    out.push_str("</ul>\n");
}

fn section(out: &mut String, title: &str, items: &[String]) {
    if !items.is_empty() {
        let _ = writeln!(out, "<h2>{title}</h2>");
        list(out, "plain", items);
    }
}

fn cells(out: &mut String, analysis: &Analysis<'_>) {
    let factors = varied(analysis);
    out.push_str("<h2>Cells</h2>\n<div class=\"wide\"><table>\n<thead><tr><th>cell</th>");
    for factor in &factors {
        let _ = write!(out, "<th>{}</th>", escape(factor));
    }
    // Beside what it is about: at the right end of a wide table it would be out of sight.
    out.push_str("<th>verdict</th>");
    for title in [
        "handshake p50 ms",
        "handshake p99 ms",
        "accept queue max",
        "p50 ms",
        "p99 ms",
        "p99.9 ms",
        "p99 ÷ unlimited",
        "throttled",
        "memory peak",
        "errors",
    ] {
        let _ = write!(out, "<th class=\"n\">{title}</th>");
    }
    out.push_str("<th>evidence</th></tr></thead>\n<tbody>\n");
    for cell in &analysis.cells {
        row(out, cell, &factors);
    }
    out.push_str("</tbody></table></div>\n");
}

fn row(out: &mut String, cell: &CellReport, factors: &[&str]) {
    let control = cell.control.map_or("", control_name);
    let _ = write!(out, "<tr><td>{control}</td>");
    for name in factors {
        let level = cell.factors.iter().find(|f| f.name == *name);
        let _ = write!(
            out,
            "<td>{}</td>",
            level.map_or(String::new(), |f| escape(&f.level))
        );
    }
    let judgement = cell.judgement.as_ref();
    let class = judgement.map_or("none", |j| {
        if j.uncertain {
            "unsure"
        } else {
            j.verdict.name()
        }
    });
    let _ = write!(
        out,
        "<td><span class=\"verdict {class}\">{}</span></td>",
        escape(&status(cell))
    );
    let value = |column: &str, text: fn(f64) -> String| {
        cell.summary(column)
            .map_or(NOTHING.to_owned(), |s| text(s.median))
    };
    let latency = |column: &str| with_interval(cell.summary(column));
    let ratio = cell.ratio("response_time_p99_us", Control::Unlimited);
    for text in [
        latency("handshake_total_p50_us"),
        latency("handshake_total_p99_us"),
        value("accept_queue_max", count),
        latency("response_time_p50_us"),
        latency("response_time_p99_us"),
        latency("response_time_p999_us"),
        ratio.map_or(NOTHING.to_owned(), |s| significant(s.median)),
        value("throttled_share", percent),
        memory(cell).map_or(NOTHING.to_owned(), bytes),
        value("errors", count),
    ] {
        let _ = write!(out, "<td class=\"n\">{}</td>", escape(&text));
    }
    let evidence = judgement.map_or(String::new(), |j| j.evidence.join("; "));
    let _ = writeln!(
        out,
        "<td class=\"evidence\">{}</td></tr>",
        escape(&evidence)
    );
}

#[cfg(test)]
mod tests;
