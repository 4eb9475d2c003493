//! Progress on a terminal: what runs now, how far the sweep is, and the time left.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use super::lines::{plain, seconds, trial_line};
use super::{Event, Progress, columns, printable};
use crate::agent::job::Phase;
use crate::wrap::push_wrapped;

/// Two lines at the bottom of the terminal; finished trials scroll above them.
pub struct Bars {
    all: MultiProgress,
    sweep: ProgressBar,
    trial: ProgressBar,
    pace: Mutex<Option<Pace>>,
}

/// How fast trials go by: the plan's estimate until the first has ended, then what they took.
#[derive(Debug, Clone, Copy)]
struct Pace {
    estimate_s: f64,
    begun: Instant,
    last_end: Instant,
    ended: u64,
    left: u64,
}

impl Pace {
    fn new(estimate_s: f64, left: u64, now: Instant) -> Self {
        Self {
            estimate_s,
            begun: now,
            last_end: now,
            ended: 0,
            left,
        }
    }

    fn trial_ended(&mut self, now: Instant) {
        self.last_end = now;
        self.ended += 1;
        self.left = self.left.saturating_sub(1);
    }

    fn seconds_left(&self, now: Instant) -> f64 {
        let whole = if self.ended == 0 {
            self.estimate_s
        } else {
            (self.last_end - self.begun).as_secs_f64() / self.ended as f64 * self.left as f64
        };
        (whole - (now - self.last_end).as_secs_f64()).max(0.0)
    }
}

const SWEEP: &str = "{bar:30} {pos}/{len} trials, {elapsed} passed, {msg}";

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template)
        .expect("the template is constant")
        .progress_chars("█▉ ")
}

impl Default for Bars {
    fn default() -> Self {
        let all = MultiProgress::new();
        let trial = all.add(ProgressBar::new_spinner().with_style(style("{spinner} {wide_msg}")));
        trial.set_message("preparing: the engine, the images, the host");
        // Without a bar until it is known of how much.
        let sweep = all.add(ProgressBar::new(0).with_style(style("{elapsed} passed")));
        trial.enable_steady_tick(Duration::from_millis(200));
        sweep.enable_steady_tick(Duration::from_millis(1000));
        Self {
            all,
            sweep,
            trial,
            pace: Mutex::new(None),
        }
    }
}

impl Progress for Bars {
    fn event(&self, event: &Event) {
        match event {
            Event::RunStarted {
                trials,
                finished_before,
                eta_s,
                ..
            } => {
                self.print(event);
                self.sweep.set_length(*trials);
                self.sweep.set_position(*finished_before);
                let noun = if *trials == 1 { "trial" } else { "trials" };
                self.sweep.set_style(style(&SWEEP.replace("trials", noun)));
                let left = trials.saturating_sub(*finished_before);
                *self.pace() = Some(Pace::new(*eta_s, left, Instant::now()));
                self.show_time_left();
            }
            Event::Notice { .. } => self.print(event),
            Event::TrialStarted {
                cell, repetition, ..
            } => {
                self.trial
                    .set_prefix(format!("{} repetition {repetition}", printable(cell)));
                self.trial
                    .set_message(format!("{}: creating", self.trial.prefix()));
            }
            Event::TrialPhase { phase } => {
                let what = match phase {
                    Phase::Readiness => "waiting for the first answer",
                    Phase::Warmup => "warming up",
                    Phase::Measure => "measuring",
                    Phase::Drain => "draining",
                };
                self.trial
                    .set_message(format!("{}: {what}", self.trial.prefix()));
                self.show_time_left();
            }
            Event::TrialEnded(summary) => {
                self.print_line(&trial_line(summary));
                self.sweep.inc(1);
                if let Some(pace) = self.pace().as_mut() {
                    pace.trial_ended(Instant::now());
                }
                self.show_time_left();
            }
            Event::RunEnded { .. } => {
                self.trial.finish_and_clear();
                self.sweep.finish_and_clear();
                self.print(event);
            }
        }
    }
}

impl Bars {
    fn print(&self, event: &Event) {
        if let Some(line) = plain(event) {
            self.print_line(&line);
        }
    }

    /// Wrapped between words, where the terminal itself would cut them.
    fn print_line(&self, line: &str) {
        let mut wrapped = String::new();
        let width = columns(std::io::stderr()).map_or(usize::MAX, usize::from);
        push_wrapped(&mut wrapped, line, width);
        let _ = self.all.println(wrapped.trim_end());
    }

    fn pace(&self) -> std::sync::MutexGuard<'_, Option<Pace>> {
        self.pace.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn show_time_left(&self) {
        let left = self.pace().map(|pace| pace.seconds_left(Instant::now()));
        if let Some(left) = left {
            self.sweep
                .set_message(format!("about {} left", seconds(left)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_is_the_estimate_and_then_what_trials_took() {
        let begun = Instant::now();
        let at = |s: u64| begun + Duration::from_secs(s);
        // Four trials are left of a resumed run, by the plan 10 s each.
        let mut pace = Pace::new(40.0, 4, begun);
        assert_eq!(pace.seconds_left(at(4)), 36.0);
        pace.trial_ended(at(20));
        assert_eq!(pace.seconds_left(at(20)), 60.0);
        assert_eq!(pace.seconds_left(at(25)), 55.0);
        for end in [30, 45, 60] {
            pace.trial_ended(at(end));
        }
        assert_eq!(pace.seconds_left(at(61)), 0.0);
    }
}
