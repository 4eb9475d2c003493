//! Progress without a terminal: one line an event.

use std::io::Write;
use std::sync::Mutex;

use super::{Event, Progress, TrialSummary, printable};
use crate::record::trial::TrialStatus;
use crate::units::counted;

/// Plain text, one line a trial.
pub struct PlainLines<W: Write + Send> {
    out: Mutex<W>,
}

/// One JSON object a line, every event.
pub struct JsonLines<W: Write + Send> {
    out: Mutex<W>,
}

impl<W: Write + Send> PlainLines<W> {
    /// Writes to `out`.
    pub fn new(out: W) -> Self {
        Self {
            out: Mutex::new(out),
        }
    }
}

impl<W: Write + Send> JsonLines<W> {
    /// Writes to `out`.
    pub fn new(out: W) -> Self {
        Self {
            out: Mutex::new(out),
        }
    }
}

/// A closed pipe must not end a measurement, so write errors are passed over.
fn put(out: &Mutex<impl Write>, line: &str) {
    let mut out = out
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

impl<W: Write + Send> Progress for PlainLines<W> {
    fn event(&self, event: &Event) {
        if let Some(line) = plain(event) {
            put(&self.out, &line);
        }
    }
}

impl<W: Write + Send> Progress for JsonLines<W> {
    fn event(&self, event: &Event) {
        if let Ok(line) = serde_json::to_string(event) {
            put(&self.out, &line);
        }
    }
}

/// The line for an event, if it deserves one.
pub(super) fn plain(event: &Event) -> Option<String> {
    match event {
        Event::RunStarted {
            run,
            results,
            trials,
            finished_before,
            eta_s,
        } => {
            let before = match finished_before {
                0 => String::new(),
                n => format!(", {n} finished before"),
            };
            let eta = seconds(*eta_s);
            Some(format!(
                "run {run}: {}{before}, about {eta}; results in {}",
                counted(*trials, "trial"),
                printable(results)
            ))
        }
        Event::Notice { text } => Some(format!("notice: {}", printable(text))),
        Event::TrialStarted { .. } | Event::TrialPhase { .. } => None,
        Event::TrialEnded(summary) => Some(trial_line(summary)),
        Event::RunEnded {
            valid,
            invalid,
            failed,
            not_run,
            wall_s,
        } => Some(format!(
            "{valid} valid, {invalid} invalid, {failed} failed, {not_run} not run, in {}",
            seconds(*wall_s)
        )),
    }
}

/// One finished trial in a line.
pub(super) fn trial_line(summary: &TrialSummary) -> String {
    let width = summary.of.to_string().len();
    let head = format!(
        "[{:>width$}/{}] {} repetition {}: ",
        summary.number,
        summary.of,
        printable(&summary.cell),
        summary.repetition
    );
    let tail = match (summary.status, summary.response_time_p99_us) {
        (TrialStatus::Valid, Some(p99)) => format!("valid, p99 {:.2} ms", p99 as f64 / 1000.0),
        (TrialStatus::Valid, None) => "valid, p99 unknown".to_owned(),
        (TrialStatus::Invalid, _) => format!("INVALID: {}", printable(&summary.reasons.join("; "))),
        (TrialStatus::Failed, _) => format!("FAILED: {}", printable(&summary.reasons.join("; "))),
    };
    format!("{head}{tail} ({:.1} s)", summary.wall_s)
}

/// Seconds as people say them.
pub(crate) fn seconds(s: f64) -> String {
    let whole = s.max(0.0).round() as u64;
    humantime::format_duration(std::time::Duration::from_secs(whole)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_name_cannot_steer_the_terminal() {
        let event = Event::Notice {
            text: "a\u{1b}[2Jb\n".to_owned(),
        };
        assert_eq!(plain(&event).expect("line"), "notice: a\\u{1b}[2Jb\\n");
    }

    #[test]
    fn json_lines_are_one_object_each() {
        let out = Vec::new();
        let progress = JsonLines::new(out);
        progress.event(&Event::Notice {
            text: "x\ny".to_owned(),
        });
        let written = progress.out.into_inner().expect("not poisoned");
        let text = String::from_utf8(written).expect("utf-8");
        assert_eq!(text.lines().count(), 1);
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&text).expect("json")["event"],
            "notice"
        );
    }
}
