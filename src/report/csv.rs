//! `trials.csv` (wide), `summary.csv` (tidy) and `samples.csv` (time series), as text.
//!
//! A number is written so that it reads back as the same number; an unknown value is an empty cell; text that a
//! spreadsheet would run is made harmless.

use csv::{QuoteStyle, Writer, WriterBuilder};

use super::analysis::{Analysis, CellReport};
use super::summary::Summary;
use super::text;
use crate::probe::report::{MemoryGauges, Queues, Sample};
use crate::record::columns::{self, Cell, control_name};
use crate::record::derived;
use crate::record::trial::Factor;

/// Factors that have columns of their own already.
fn is_own_column(factor: &str) -> bool {
    matches!(
        factor,
        "cpu" | "memory" | "swap" | "limits.cpu" | "limits.memory" | "limits.swap"
    )
}

/// A CSV could not be written. It is written to memory, so this is a bug or a lack of memory.
pub type CsvError = csv::Error;

/// One line a trial: every column, and one for each further factor.
///
/// # Errors
/// See [`CsvError`].
pub fn trials(analysis: &Analysis<'_>) -> Result<Vec<u8>, CsvError> {
    let further: Vec<&str> = analysis
        .manifest
        .factors
        .iter()
        .map(|f| f.name.as_str())
        .filter(|name| !is_own_column(name) && columns::by_name(name).is_none())
        .collect();
    let mut writer = writer();
    let names = columns::all().map(|c| c.name.clone());
    writer.write_record(names.chain(further.iter().map(|f| text::csv(f))))?;
    for judged in &analysis.trials {
        let values = judged.values.iter().map(cell);
        let levels = further
            .iter()
            .map(|name| level(&judged.trial.factors, name));
        writer.write_record(values.chain(levels))?;
    }
    finish(writer)
}

/// One line a cell and metric, tidy: every summarised column, and every latency as ratio to each control
/// (`…_ratio_unlimited`, `…_ratio_direct`).
///
/// # Errors
/// See [`CsvError`].
pub fn summary(analysis: &Analysis<'_>) -> Result<Vec<u8>, CsvError> {
    let factors: Vec<&str> = analysis
        .manifest
        .factors
        .iter()
        .map(|f| f.name.as_str())
        .collect();
    let mut writer = writer();
    let head = ["cell", "control"].map(str::to_owned).into_iter();
    let tail = [
        "metric",
        "unit",
        "n",
        "median",
        "ci95_low",
        "ci95_high",
        "ci_method",
        "ci_level",
        "median_at_least",
    ];
    writer.write_record(
        head.chain(factors.iter().map(|f| text::csv(f)))
            .chain(tail.map(str::to_owned)),
    )?;
    for cell in &analysis.cells {
        for column in &cell.columns {
            let name = &column.column.name;
            write_summary(
                &mut writer,
                cell,
                &factors,
                name,
                column.column.unit,
                &column.summary,
            )?;
            for (control, ratio) in &column.ratios {
                let name = format!("{name}_ratio_{}", control_name(*control));
                write_summary(&mut writer, cell, &factors, &name, "ratio", ratio)?;
            }
        }
    }
    finish(writer)
}

fn write_summary(
    writer: &mut Writer<Vec<u8>>,
    cell: &CellReport,
    factors: &[&str],
    metric: &str,
    unit: &str,
    summary: &Summary,
) -> Result<(), CsvError> {
    let mut record = vec![
        text::csv(&cell.cell),
        cell.control.map_or("", control_name).to_owned(),
    ];
    record.extend(factors.iter().map(|f| level(&cell.factors, f)));
    let interval = |get: fn(&crate::stats::ConfidenceInterval) -> f64| {
        summary
            .interval
            .as_ref()
            .map(get)
            .map(number)
            .unwrap_or_default()
    };
    let median = number(summary.median);
    let (known, bound) = if summary.at_least {
        (String::new(), median)
    } else {
        (median, String::new())
    };
    record.extend([
        metric.to_owned(),
        unit.to_owned(),
        summary.n.to_string(),
        known,
        interval(|i| i.low),
        interval(|i| i.high),
        summary.method.to_owned(),
        interval(|i| i.level),
        bound,
    ]);
    writer.write_record(record)
}

/// One line a sample of the window: every gauge, with the generator's queue at the nearest earlier moment.
///
/// # Errors
/// See [`CsvError`].
pub fn samples(analysis: &Analysis<'_>) -> Result<Vec<u8>, CsvError> {
    let mut writer = writer();
    let head = ["cell", "control", "repetition", "t_us"].into_iter();
    writer.write_record(
        head.chain(SAMPLE_COLUMNS.iter().map(|c| c.0))
            .chain(["unsent", "in_flight"]),
    )?;
    for judged in &analysis.trials {
        let trial = judged.trial;
        let Some(probe) = derived::probe(trial) else {
            continue;
        };
        let backlog = derived::load(trial).map_or(&[][..], |l| &l.backlog);
        let mut next = 0;
        for sample in &probe.samples {
            while next < backlog.len() && backlog[next].t_us <= sample.t_us {
                next += 1;
            }
            let queue = next.checked_sub(1).map(|i| backlog[i]);
            let mut record = vec![
                text::csv(&trial.cell),
                trial.control.map_or("", control_name).to_owned(),
                trial.repetition.to_string(),
                sample.t_us.to_string(),
            ];
            record.extend(SAMPLE_COLUMNS.iter().map(|c| optional(c.2(sample))));
            record.push(optional(queue.map(|q| q.unsent)));
            record.push(optional(queue.map(|q| q.in_flight)));
            writer.write_record(record)?;
        }
    }
    finish(writer)
}

fn memory(get: fn(&MemoryGauges) -> Option<u64>, sample: &Sample) -> Option<u64> {
    get(&sample.memory)
}

fn queue(get: fn(&Queues) -> Option<u64>, sample: &Sample) -> Option<u64> {
    sample.queues.as_ref().and_then(get)
}

type Gauge = fn(&Sample) -> Option<u64>;

/// Gauges of `samples.csv`: name, meaning, value.
pub(crate) const SAMPLE_COLUMNS: &[(&str, &str, Gauge)] = &[
    (
        "memory_bytes",
        "Memory of the proxy, page cache included.",
        |s| memory(|m| m.current_bytes, s),
    ),
    ("memory_peak_bytes", "The kernel's own peak so far.", |s| {
        memory(|m| m.peak_bytes, s)
    }),
    ("memory_anon_bytes", "Anonymous memory.", |s| {
        memory(|m| m.anon_bytes, s)
    }),
    ("memory_file_bytes", "Page cache.", |s| {
        memory(|m| m.file_bytes, s)
    }),
    ("memory_sock_bytes", "Socket buffers.", |s| {
        memory(|m| m.sock_bytes, s)
    }),
    ("memory_kernel_bytes", "Kernel memory.", |s| {
        memory(|m| m.kernel_bytes, s)
    }),
    ("swap_bytes", "Swapped-out memory.", |s| {
        memory(|m| m.swap_bytes, s)
    }),
    ("cpu_usage_usec", "CPU time since the proxy started.", |s| {
        s.cpu_usage_usec
    }),
    ("nr_periods", "CFS periods since the proxy started.", |s| {
        s.nr_periods
    }),
    ("nr_throttled", "Of these, throttled.", |s| s.nr_throttled),
    (
        "accept_queue",
        "Depth of the accept queue, summed over the listening sockets.",
        |s| queue(derived::accept_depth, s),
    ),
    (
        "accept_queue_socket_max",
        "Largest depth of one listening socket.",
        |s| queue(|q| q.accept.iter().max().map(|&d| u64::from(d)), s),
    ),
    ("half_open", "Connections in SYN_RECV.", |s| {
        queue(|q| q.half_open, s)
    }),
    (
        "established",
        "Established connections on the proxy's port.",
        |s| queue(|q| q.established, s),
    ),
    (
        "unread",
        "Of these, with data that the proxy has not read.",
        |s| queue(|q| q.unread, s),
    ),
    ("unread_bytes", "Bytes that the proxy has not read.", |s| {
        queue(|q| q.unread_bytes, s)
    }),
    ("open_fds", "Descriptors open in the proxy.", |s| s.open_fds),
];

fn level(factors: &[Factor], name: &str) -> String {
    factors
        .iter()
        .find(|f| f.name == name)
        .map(|f| text::csv(&f.level))
        .unwrap_or_default()
}

fn cell(value: &Cell) -> String {
    match value {
        Cell::Empty | Cell::AtLeast(_) => String::new(),
        Cell::Int(i) => i.to_string(),
        Cell::Float(f) => number(*f),
        Cell::Text(t) => text::csv(t),
    }
}

/// The shortest text that reads back as this number, rounded to 12 significant digits: the last bits of a double differ
/// between two ways to add the same values.
pub(crate) fn number(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return if value == 0.0 {
            "0".to_owned()
        } else {
            value.to_string()
        };
    }
    format!("{value:.11e}")
        .parse::<f64>()
        .unwrap_or(value)
        .to_string()
}

fn optional(value: Option<u64>) -> String {
    value.map(|v| v.to_string()).unwrap_or_default()
}

fn writer() -> Writer<Vec<u8>> {
    WriterBuilder::new()
        .quote_style(QuoteStyle::Necessary)
        .from_writer(Vec::new())
}

fn finish(writer: Writer<Vec<u8>>) -> Result<Vec<u8>, CsvError> {
    writer
        .into_inner()
        .map_err(|e| csv::Error::from(e.into_error()))
}

#[cfg(test)]
mod tests;
