//! What every engine test needs: a matrix on disk, the program, its results, and a look at what is left behind.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use sweep::record::Folder;
use sweep::record::trial::{TrialRecord, TrialStatus};
use tempfile::TempDir;

/// Image of the proxy under test, made by `scripts/get-envoy`.
pub(crate) const ENVOY: &str = "sweep-envoy:1.40.0";

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A matrix in a folder of its own, and the right to use the engine.
pub(crate) struct Bench {
    folder: TempDir,
    engine: Option<String>,
    _turn: MutexGuard<'static, ()>,
}

impl Bench {
    /// With this matrix; short windows and the test's image are added.
    pub(crate) fn new(matrix: &str) -> Self {
        let turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = tempfile::tempdir().expect("a temporary folder");
        fs_err::write(folder.path().join("matrix.toml"), matrix).expect("write the matrix");
        Self {
            folder,
            engine: None,
            _turn: turn,
        }
    }

    /// On another engine than the machine's own.
    pub(crate) fn on(mut self, engine: String) -> Self {
        self.engine = Some(engine);
        self
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn results(&self) -> PathBuf {
        self.path("out")
    }

    /// `sweep ARGS…` in the bench's folder.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sweep"));
        command
            .args(args)
            .current_dir(self.folder.path())
            .stdin(Stdio::null());
        if let Some(engine) = &self.engine {
            command.env("DOCKER_HOST", engine);
        }
        command
    }

    /// Runs to the end.
    pub(crate) fn sweep(&self, args: &[&str]) -> Output {
        self.command(args).output().expect("start sweep")
    }

    /// `sweep run matrix.toml --out out`, to its end.
    pub(crate) fn run(&self) -> Vec<TrialRecord> {
        let output = self.sweep(&["run", "matrix.toml", "--out", "out"]);
        let trials = self.trials();
        assert_code(&output, exit_code_for(&trials));
        trials
    }

    pub(crate) fn trials(&self) -> Vec<TrialRecord> {
        trials_in(self.results())
    }

    /// Starts a run whose events can be waited for.
    pub(crate) fn start(&self, args: &[&str]) -> Running {
        Running::of(&mut self.command(args))
    }
}

pub(crate) fn trials_in(results: PathBuf) -> Vec<TrialRecord> {
    let folder = Folder::open(results).expect("a results folder");
    folder.trials().expect("readable trials").records
}

/// Waits until `done` says yes; panics with `what` when it does not in time.
pub(crate) fn wait_until(what: &str, within: Duration, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + within;
    while !done() {
        assert!(Instant::now() < deadline, "{what}: not within {within:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

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

/// What a run of these trials must exit with.
pub(crate) fn exit_code_for(trials: &[TrialRecord]) -> i32 {
    if trials.iter().all(|t| t.status == TrialStatus::Valid) {
        0
    } else {
        4
    }
}

/// The trial was measured, and nothing but a busy machine speaks against its numbers: tests also run where others build.
/// A limit that is not in force, a wrong handshake or a failed proxy is never excused.
pub(crate) fn assert_measured(trial: &TrialRecord) {
    assert_ne!(
        trial.status,
        TrialStatus::Failed,
        "{}: {:?}",
        trial.cell,
        trial.reasons
    );
    for reason in &trial.reasons {
        let busy = [
            "noise: other programs",
            "noise: the hypervisor",
            "generator: ",
            "upstream: median delay",
        ];
        assert!(
            busy.iter().any(|b| reason.starts_with(b)),
            "{}: {reason}",
            trial.cell
        );
    }
    assert_eq!(
        trial.status == TrialStatus::Valid,
        trial.reasons.is_empty(),
        "{}",
        trial.cell
    );
}

pub(crate) fn assert_code(output: &Output, code: i32) {
    assert_eq!(
        output.status.code(),
        Some(code),
        "stdout:\n{}\nstderr:\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Names of containers with these filters, running or not.
pub(crate) fn containers(filter: &str) -> BTreeSet<String> {
    let output = Command::new("docker")
        .args(["ps", "-a", "--filter", filter, "--format", "{{.Names}}"])
        .output()
        .expect("docker");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .map(str::to_owned)
        .collect()
}

/// Nothing of these trials' run is left on the engine: no container, network or volume.
pub(crate) fn assert_nothing_left(run: &str) {
    assert_eq!(
        containers(&format!("label=sweep.run={run}")),
        BTreeSet::new()
    );
    for kind in ["network", "volume"] {
        let output = Command::new("docker")
            .args([kind, "ls", "-q", "--filter", "label=sweep.run"])
            .output()
            .expect("docker");
        assert_eq!(
            String::from_utf8_lossy(&output.stdout),
            "",
            "{kind}s are left"
        );
    }
}

/// A small matrix around the given `[matrix]` table.
pub(crate) fn matrix(repetitions: u32, table: &str, rest: &str) -> String {
    format!(
        "name = \"test\"\nseed = 7\nrepetitions = {repetitions}\nwarmup = \"500ms\"\nduration = \"2s\"\n\n\
         [matrix]\n{table}\n\n[proxy]\nimage = \"{ENVOY}\"\n\n\
         [load]\nrate = 400\nconnections = 16\nhandshake_rate = 20\n{rest}\n"
    )
}
