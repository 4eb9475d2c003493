//! A run in progress: its events, its standard error, its end.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::support::wait_until;

/// A run in progress.
pub(crate) struct Running {
    child: Child,
    events: Receiver<serde_json::Value>,
    stderr: Arc<Mutex<String>>,
    stderr_reader: JoinHandle<()>,
}

impl Running {
    /// Starts a command that prints a run's events.
    pub(crate) fn of(command: &mut Command) -> Self {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("start sweep");
        let stdout = child.stdout.take().expect("piped");
        let (sender, events) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let Ok(event) = serde_json::from_str::<serde_json::Value>(&line) else {
                    continue;
                };
                if sender.send(event).is_err() {
                    return;
                }
            }
        });
        let lines = BufReader::new(child.stderr.take().expect("piped")).lines();
        let stderr = Arc::new(Mutex::new(String::new()));
        let kept = Arc::clone(&stderr);
        let stderr_reader = std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                kept.push_str(&line);
                kept.push('\n');
            }
        });
        Self {
            child,
            events,
            stderr,
            stderr_reader,
        }
    }

    /// Waits for an event of this kind.
    pub(crate) fn until(&self, kind: &str) -> serde_json::Value {
        let deadline = Instant::now() + Duration::from_secs(120);
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let event = self
                .events
                .recv_timeout(left)
                .unwrap_or_else(|e| panic!("no {kind} event: {e}"));
            if event["event"] == kind {
                return event;
            }
        }
    }

    pub(crate) fn signal(&self, name: &str) {
        let status = Command::new("kill")
            .args(["-s", name, &self.child.id().to_string()])
            .status()
            .expect("kill");
        assert!(status.success());
    }

    /// What it wrote to standard error so far.
    fn stderr(&self) -> String {
        let kept = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        kept.clone()
    }

    /// Whether it has ended, waiting for at most this long.
    pub(crate) fn ends_within(&mut self, time: Duration) -> bool {
        let deadline = Instant::now() + time;
        loop {
            if self.child.try_wait().expect("wait").is_some() {
                return true;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            std::thread::sleep(left.min(Duration::from_millis(10)));
        }
    }

    /// Waits for its start, and tells the id of its run.
    pub(crate) fn run_id(&self) -> String {
        let started = self.until("run_started");
        started["run"].as_str().expect("an id").to_owned()
    }

    /// Waits for a notice with these words.
    pub(crate) fn until_notice(&self, words: &str) -> String {
        loop {
            let notice = self.until("notice");
            let text = notice["text"].as_str().expect("a text");
            if text.contains(words) {
                return text.to_owned();
            }
        }
    }

    /// Waits for these words on standard error.
    pub(crate) fn until_stderr(&self, words: &str) {
        wait_until(words, Duration::from_secs(60), || {
            self.stderr().contains(words)
        });
    }

    /// Its exit code and standard error; `None` for a signal.
    pub(crate) fn end(self) -> (Option<i32>, String) {
        let (code, stderr, _) = self.end_with_events();
        (code, stderr)
    }

    /// With every event that was not waited for.
    pub(crate) fn end_with_events(mut self) -> (Option<i32>, String, Vec<serde_json::Value>) {
        let status = self.child.wait().expect("wait");
        self.stderr_reader.join().expect("no panic");
        let stderr = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        (status.code(), stderr.clone(), self.events.iter().collect())
    }
}
