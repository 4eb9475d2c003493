//! What every engine test needs: a matrix on disk, the program, its results, and a look at what is left behind.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sweep::record::Folder;
use sweep::record::trial::{TrialRecord, TrialStatus};
use tempfile::TempDir;

use crate::running::Running;

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

/// What a run of these trials must exit with.
pub(crate) fn exit_code_for(trials: &[TrialRecord]) -> i32 {
    if trials.iter().all(|t| t.status == TrialStatus::Valid) {
        0
    } else {
        4
    }
}

/// What others on the machine, or on its hypervisor, took.
pub(crate) const NOISE: [&str; 2] = ["noise: other programs", "noise: the hypervisor"];

pub(crate) const UPSTREAM: &str = "upstream: median delay";

/// Reasons for which a machine is to blame where others build, or whose hypervisor is short of CPUs.
pub(crate) const BUSY: [&str; 4] = [NOISE[0], NOISE[1], UPSTREAM, "generator: "];

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
        assert!(
            BUSY.iter().any(|b| reason.starts_with(b)),
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
