//! Progress on a terminal: what runs now, how far the sweep is, and the time left.

use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use super::lines::{plain, seconds, trial_line};
use super::{Event, Progress, printable};
use crate::agent::job::Phase;

/// Two lines at the bottom of the terminal; finished trials scroll above them.
pub struct Bars {
    all: MultiProgress,
    sweep: ProgressBar,
    trial: ProgressBar,
}

impl Default for Bars {
    fn default() -> Self {
        let all = MultiProgress::new();
        let style = |template: &str| {
            ProgressStyle::with_template(template).expect("the template is constant").progress_chars("█▉ ")
        };
        let trial = all.add(ProgressBar::new_spinner().with_style(style("{spinner} {wide_msg}")));
        let sweep = all.add(
            ProgressBar::new(0).with_style(style("{bar:30} {pos}/{len} trials, {elapsed} passed, {msg}")),
        );
        trial.enable_steady_tick(Duration::from_millis(200));
        sweep.enable_steady_tick(Duration::from_millis(1000));
        Self { all, sweep, trial }
    }
}

impl Progress for Bars {
    fn event(&self, event: &Event) {
        match event {
            Event::RunStarted { trials, finished_before, eta_s, .. } => {
                self.print(event);
                self.sweep.set_length(*trials);
                self.sweep.set_position(*finished_before);
                self.sweep.set_message(format!("about {} left", seconds(*eta_s)));
            }
            Event::Notice { .. } => self.print(event),
            Event::TrialStarted { cell, repetition, .. } => {
                self.trial.set_prefix(format!("{} repetition {repetition}", printable(cell)));
                self.trial.set_message(format!("{}: creating", self.trial.prefix()));
            }
            Event::TrialPhase { phase } => {
                let what = match phase {
                    Phase::Readiness => "waiting for the first answer",
                    Phase::Warmup => "warming up",
                    Phase::Measure => "measuring",
                    Phase::Drain => "draining",
                };
                self.trial.set_message(format!("{}: {what}", self.trial.prefix()));
            }
            Event::TrialEnded(summary) => {
                let _ = self.all.println(trial_line(summary));
                self.sweep.inc(1);
                self.sweep.set_message(self.time_left());
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
            let _ = self.all.println(line);
        }
    }

    fn time_left(&self) -> String {
        format!("about {} left", seconds(self.sweep.eta().as_secs_f64()))
    }
}
