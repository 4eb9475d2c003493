//! A latency by the levels of one factor, with intervals, a line for each level of a second, a chart for each
//! combination of the rest.

use std::fmt::Write as _;

use super::scale::LogScale;
use crate::record::trial::{Control, Factor};
use crate::report::analysis::{Analysis, CellReport};
use crate::report::summary::Summary;
use crate::report::table::varied;
use crate::report::text::html as escape;
use crate::verdict::boundary::{ascending, quantity};
use crate::verdict::controls::belongs;
use crate::verdict::words::significant;

const WIDTH: f64 = 560.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 56.0;
const RIGHT: f64 = 120.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = 44.0;
/// Colours of the style sheet.
const SERIES: usize = 6;
/// Height of a row of lost cells.
const LOST_ROW: f64 = 15.0;
/// Charts of one latency; more would hide the table.
const MAX_CHARTS: usize = 6;

/// The charts of one latency; empty when there is nothing to draw.
pub(super) fn section(analysis: &Analysis<'_>, title: &str, column: &str) -> String {
    let Some(axes) = Axes::of(analysis) else {
        return String::new();
    };
    let facets = axes.facets(analysis);
    let charts: Vec<String> = facets
        .iter()
        .take(MAX_CHARTS)
        .filter_map(|f| chart(analysis, &axes, f, title, column))
        .collect();
    if charts.is_empty() {
        return String::new();
    }
    let more = facets.len().saturating_sub(MAX_CHARTS);
    let more = if more > 0 {
        let what = if more == 1 {
            "combination is"
        } else {
            "combinations are"
        };
        format!(" {more} more {what} in the table.")
    } else {
        String::new()
    };
    format!(
        "<h2>{}</h2>\n<div class=\"charts\">\n{}</div>\n<p class=\"dim\">Medians with 95 % intervals, logarithmic; ▲ at least.{more}</p>\n",
        escape(title),
        charts.concat()
    )
}

/// Which factor lies along x, and which makes the lines.
struct Axes {
    x: (String, Vec<String>),
    series: Option<(String, Vec<String>)>,
}

impl Axes {
    fn of(analysis: &Analysis<'_>) -> Option<Self> {
        let mut names = varied(analysis);
        // The limits first, whatever their order in the matrix.
        names.sort_by_key(|n| match *n {
            "cpu" => 0,
            "memory" => 1,
            "swap" => 2,
            _ => 3,
        });
        let levels = |name: &&str| {
            let factor = analysis
                .manifest
                .factors
                .iter()
                .find(|f| f.name == **name)?;
            Some((factor.name.clone(), ascending(&factor.levels)))
        };
        let x = names
            .first()
            .and_then(levels)
            .filter(|(_, levels)| !levels.is_empty())?;
        Some(Self {
            x,
            series: names.get(1).and_then(levels),
        })
    }

    /// Combinations of all factors but the two.
    fn facets(&self, analysis: &Analysis<'_>) -> Vec<Vec<Factor>> {
        let mut facets: Vec<Vec<Factor>> = Vec::new();
        for cell in analysis.cells.iter().filter(|c| c.control.is_none()) {
            let rest: Vec<Factor> = cell
                .factors
                .iter()
                .filter(|f| self.is_rest(&f.name))
                .cloned()
                .collect();
            if !facets.contains(&rest) {
                facets.push(rest);
            }
        }
        facets
    }

    fn is_rest(&self, name: &str) -> bool {
        name != self.x.0 && self.series.as_ref().is_none_or(|s| name != s.0)
    }

    fn cell<'a>(
        &self,
        analysis: &'a Analysis<'_>,
        facet: &[Factor],
        x: &str,
        series: Option<&str>,
    ) -> Option<&'a CellReport> {
        let level = |cell: &'a CellReport, name: &str| {
            cell.factors
                .iter()
                .find(|f| f.name == name)
                .map(|f| f.level.as_str())
        };
        analysis
            .cells
            .iter()
            .filter(|c| c.control.is_none())
            .find(|c| {
                level(c, &self.x.0) == Some(x)
                    && self
                        .series
                        .as_ref()
                        .is_none_or(|s| level(c, &s.0) == series)
                    && facet
                        .iter()
                        .all(|f| level(c, &f.name) == Some(f.level.as_str()))
            })
    }
}

fn chart(
    analysis: &Analysis<'_>,
    axes: &Axes,
    facet: &[Factor],
    title: &str,
    column: &str,
) -> Option<String> {
    let controls: Vec<(&'static str, f64)> = [
        (Control::Direct, "direct"),
        (Control::Unlimited, "unlimited"),
    ]
    .into_iter()
    .filter_map(|(control, name)| {
        let cell = analysis
            .cells
            .iter()
            .find(|c| c.control == Some(control) && belongs(control, &c.factors, facet))?;
        Some((name, cell.summary(column)?.median / 1000.0))
    })
    .collect();
    let of_series: Vec<Option<&str>> = match &axes.series {
        Some((_, levels)) => levels.iter().map(|l| Some(l.as_str())).collect(),
        None => vec![None],
    };
    let mut values: Vec<f64> = controls.iter().map(|c| c.1).collect();
    for x in &axes.x.1 {
        for series in &of_series {
            if let Some(s) = axes
                .cell(analysis, facet, x, *series)
                .and_then(|c| c.summary(column))
            {
                values.push(s.median / 1000.0);
                values.extend(
                    s.interval
                        .iter()
                        .flat_map(|i| [i.low / 1000.0, i.high / 1000.0]),
                );
            }
        }
    }
    // Cells without latencies stand in rows of their own above the plot, one a series.
    let lost = |series: &Option<&str>| {
        let of_levels = axes
            .x
            .1
            .iter()
            .filter_map(|x| axes.cell(analysis, facet, x, *series));
        of_levels.into_iter().any(|c| c.summary(column).is_none())
    };
    let rows: Vec<bool> = of_series.iter().map(lost).collect();
    let band = LOST_ROW * rows.iter().filter(|r| **r).count() as f64;
    let scale = LogScale::covering(&values, TOP + band, HEIGHT - BOTTOM)?;
    let mut svg = frame(axes, facet, title, &scale);
    for (name, value) in &controls {
        let y = scale.y(*value);
        let _ = writeln!(
            svg,
            "<line class=\"control\" x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/><text class=\"dim\" x=\"{:.1}\" y=\"{:.1}\">{name}</text>",
            WIDTH - RIGHT,
            WIDTH - RIGHT + 6.0,
            y + 4.0
        );
    }
    for (index, series) in of_series.iter().enumerate() {
        let row = rows[..index].iter().filter(|r| **r).count();
        let lost_y = TOP + 4.0 + LOST_ROW * row as f64;
        line(
            &mut svg,
            analysis,
            axes,
            facet,
            Series {
                index,
                of: of_series.len(),
                level: *series,
                lost_y,
            },
            column,
            &scale,
        );
    }
    svg.push_str("</svg>\n");
    let caption: Vec<String> = facet
        .iter()
        .map(|f| escape(&format!("{} {}", f.name, f.level)))
        .collect();
    Some(format!(
        "<figure>\n{svg}<figcaption>{}</figcaption></figure>\n",
        caption.join(", ")
    ))
}

/// A line of a chart: which of how many, its level, and where its lost cells stand.
struct Series<'a> {
    index: usize,
    of: usize,
    level: Option<&'a str>,
    lost_y: f64,
}

fn frame(axes: &Axes, facet: &[Factor], title: &str, scale: &LogScale) -> String {
    let named: Vec<String> = facet
        .iter()
        .map(|f| format!("{} {}", f.name, f.level))
        .collect();
    let label = escape(&format!("{title} by {} {}", axes.x.0, named.join(", ")));
    let mut svg = format!(
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" role=\"img\" aria-label=\"{label}\">\n"
    );
    for tick in scale.ticks() {
        let y = scale.y(tick);
        let _ = writeln!(
            svg,
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/><text class=\"dim\" text-anchor=\"end\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            WIDTH - RIGHT,
            LEFT - 6.0,
            y + 4.0,
            tick_text(tick)
        );
    }
    let _ = writeln!(
        svg,
        "<text class=\"dim\" x=\"{:.1}\" y=\"14\">ms</text>",
        LEFT - 24.0
    );
    for (i, level) in axes.x.1.iter().enumerate() {
        let _ = writeln!(
            svg,
            "<text text-anchor=\"middle\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            x_of(i, axes.x.1.len()),
            HEIGHT - BOTTOM + 18.0,
            escape(&shorten(level))
        );
    }
    let _ = writeln!(
        svg,
        "<text class=\"dim\" text-anchor=\"middle\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
        (LEFT + WIDTH - RIGHT) / 2.0,
        HEIGHT - 8.0,
        escape(&axes.x.0)
    );
    svg
}

fn tick_text(tick: f64) -> String {
    if tick >= 1.0 {
        format!("{tick:.0}")
    } else {
        significant(tick).trim_end_matches('0').to_owned()
    }
}

fn shorten(level: &str) -> String {
    if level.chars().count() <= 14 {
        level.to_owned()
    } else {
        level.chars().take(13).chain(['…']).collect()
    }
}

fn x_of(index: usize, levels: usize) -> f64 {
    LEFT + (index as f64 + 0.5) * (WIDTH - RIGHT - LEFT) / levels as f64
}

fn line(
    svg: &mut String,
    analysis: &Analysis<'_>,
    axes: &Axes,
    facet: &[Factor],
    Series {
        index,
        of,
        level: series,
        lost_y,
    }: Series<'_>,
    column: &str,
    scale: &LogScale,
) {
    let class = format!("s{}", index % SERIES);
    // Beside each other, so that equal values do not hide one another.
    let shift = (index as f64 - (of as f64 - 1.0) / 2.0) * 9.0;
    let mut path = String::new();
    let mut marks = String::new();
    let mut last = None;
    for (i, level) in axes.x.1.iter().enumerate() {
        let x = x_of(i, axes.x.1.len()) + shift;
        let Some(cell) = axes.cell(analysis, facet, level, series) else {
            continue;
        };
        let Some(summary) = cell.summary(column) else {
            let verdict = cell.judgement.as_ref().map_or("", |j| j.name());
            let _ = writeln!(
                marks,
                "<text class=\"{class} lost\" text-anchor=\"middle\" x=\"{x:.1}\" y=\"{lost_y:.1}\">✕ {}</text>",
                escape(verdict)
            );
            continue;
        };
        let y = scale.y(summary.median / 1000.0);
        let _ = write!(
            path,
            "{}{x:.1} {y:.1}",
            if path.is_empty() { "M" } else { " L" }
        );
        last = Some(y);
        mark(&mut marks, summary, cell, &class, (x, y), scale);
    }
    let numeric = axes.x.1.iter().all(|l| quantity(l).is_some());
    if numeric && !path.is_empty() {
        let _ = writeln!(svg, "<path class=\"{class}\" d=\"{path}\"/>");
    }
    svg.push_str(&marks);
    if let (Some(series), Some((name, _))) = (series, &axes.series) {
        let y = TOP + 8.0 + 16.0 * index as f64;
        let x = WIDTH - RIGHT + 62.0;
        // Beside the plot when there is room for all, else where the line ends.
        let y = if of <= 14 { y } else { last.unwrap_or(y) };
        let _ = writeln!(
            svg,
            "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{:.1}\" r=\"4\"/><text x=\"{:.1}\" y=\"{y:.1}\">{}<title>{}</title></text>",
            y - 4.0,
            x + 8.0,
            escape(&shorten(series)),
            escape(&format!("{name} {series}"))
        );
    }
}

fn mark(
    svg: &mut String,
    summary: &Summary,
    cell: &CellReport,
    class: &str,
    (x, y): (f64, f64),
    scale: &LogScale,
) {
    if let Some(i) = summary.interval {
        let (low, high) = (scale.y(i.low / 1000.0), scale.y(i.high / 1000.0));
        let _ = writeln!(
            svg,
            "<g class=\"{class} whisker\"><line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{low:.1}\" y2=\"{high:.1}\"/><line x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{low:.1}\" y2=\"{low:.1}\"/><line x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{high:.1}\" y2=\"{high:.1}\"/></g>",
            x - 3.0,
            x + 3.0,
            x - 3.0,
            x + 3.0
        );
    }
    let title = escape(&format!(
        "{}: {} ms",
        cell.cell,
        crate::report::table::with_interval(Some(summary))
    ));
    let shape = if summary.at_least {
        format!(
            "<polygon class=\"{class}\" points=\"{:.1},{:.1} {:.1},{:.1} {x:.1},{:.1}\">",
            x - 5.0,
            y + 4.0,
            x + 5.0,
            y + 4.0,
            y - 6.0
        )
    } else {
        format!("<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\">")
    };
    let end = if summary.at_least {
        "</polygon>"
    } else {
        "</circle>"
    };
    let _ = writeln!(svg, "{shape}<title>{title}</title>{end}");
}
