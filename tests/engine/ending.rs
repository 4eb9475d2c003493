//! Signals, death and return: nothing finished is lost, nothing is left.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use sweep::progress::{Event, Progress};
use sweep::runner::{self, RunError, RunOptions, Target};
use tokio_util::sync::CancellationToken;

use crate::running::Running;
use crate::support::{
    Bench, ENVOY, assert_code, assert_measured, assert_nothing_left, containers, exit_code_for,
    matrix, wait_until,
};

const RUN: [&str; 5] = ["run", "matrix.toml", "--json", "--out", "out"];
const RESUME: [&str; 5] = ["run", "matrix.toml", "--json", "--resume", "out"];

#[test]
fn engine_an_interrupted_run_keeps_its_trials_and_can_be_resumed() {
    let bench = Bench::new(&matrix(2, "cpu = [\"500m\", \"1\"]", ""));
    for signal in ["INT", "TERM", "HUP"] {
        let running = bench.start(if signal == "INT" { &RUN } else { &RESUME });
        let run = running.run_id();
        running.until("trial_ended");
        running.until("trial_phase");
        let since = Instant::now();
        running.signal(signal);
        let (code, stderr) = running.end();
        assert!(since.elapsed() < Duration::from_secs(10), "{signal}");
        assert_eq!(code, Some(5), "{signal}: {stderr}");
        assert!(
            stderr.contains("sweep run matrix.toml --resume out"),
            "it must say how to go on: {stderr}"
        );
        assert_nothing_left(&run);
    }
    let before = bench.trials();
    assert!(
        !before.is_empty() && before.len() < 4,
        "{} trials",
        before.len()
    );
    let output = bench.sweep(&["run", "matrix.toml", "--resume", "out"]);
    let after = bench.trials();
    assert_code(&output, exit_code_for(&after));
    after.iter().for_each(assert_measured);
    let keys: BTreeSet<_> = after
        .iter()
        .map(|t| (t.cell.clone(), t.repetition))
        .collect();
    assert_eq!((after.len(), keys.len()), (4, 4), "every trial once");
    for (kept, found) in before.iter().zip(&after) {
        assert_eq!(
            kept.started_at, found.started_at,
            "a finished trial is not run again"
        );
    }
}

#[test]
fn engine_what_a_killed_run_left_is_removed_by_the_next_and_a_strangers_is_not() {
    let bench = Bench::new(&matrix(1, "cpu = [\"1\"]", ""));
    let running = bench.start(&RUN);
    let run = running.run_id();
    // Its containers run by then.
    while running.until("trial_phase")["phase"] != "warmup" {}
    running.signal("KILL");
    assert_eq!(running.end().0, None, "killed");
    let left = containers(&format!("label=sweep.run={run}"));
    assert!(!left.is_empty(), "the test needs something left behind");

    let stranger = "sweep-0000000000-0-1-proxy";
    let create = [
        "create",
        "--name",
        stranger,
        "--label",
        "sweep.run=elsewhere",
        "--label",
        "sweep.host=another-machine",
        ENVOY,
    ];
    let made = Command::new("docker")
        .args(create)
        .output()
        .expect("docker");
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );

    let output = bench.sweep(&["clean"]);
    let still_there = containers(&format!("name=^{stranger}$"));
    Command::new("docker")
        .args(["rm", "-f", stranger])
        .output()
        .expect("docker");
    assert_code(&output, 0);
    assert_nothing_left(&run);
    assert_eq!(
        still_there,
        BTreeSet::from([stranger.to_owned()]),
        "a stranger's container was touched"
    );
}

#[test]
fn engine_two_sweeps_at_once_are_refused_with_who_has_it() {
    let bench = Bench::new(&matrix(1, "cpu = [\"1\"]", ""));
    let running = bench.start(&RUN);
    running.until("run_started");
    let second = bench.sweep(&["run", "matrix.toml", "--out", "second"]);
    assert_code(&second, 7);
    let text = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(
        text.contains("process") && text.contains("--wait"),
        "{text}"
    );
    let (code, stderr) = running.end();
    let trials = bench.trials();
    assert_eq!(code, Some(exit_code_for(&trials)), "{stderr}");
    trials.iter().for_each(assert_measured);
}

#[test]
fn engine_a_closed_terminal_ends_a_run_as_a_signal_does() {
    let bench = Bench::new(&matrix(2, "cpu = [\"1\"]", ""));
    // The signal goes to the session's leader, and a shell passes it on to its jobs; this one stays to tell how its job
    // ended. A `wait` ends at the signal too, so there are two.
    let shell = format!(
        "'{}' run matrix.toml --out out & job=$!; trap 'kill -HUP $job' HUP; wait $job; wait $job; echo $? >code",
        env!("CARGO_BIN_EXE_sweep")
    );
    let mut terminal = Command::new("script")
        .args(["--quiet", "--flush", "--command", &shell, "typescript"])
        .current_dir(bench.path(""))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .expect("start script, of bsdutils");
    let first = bench.results().join("trials.jsonl");
    wait_until("a finished trial", Duration::from_secs(60), || {
        fs_err::read(&first).is_ok_and(|text| text.ends_with(b"\n"))
    });
    let since = Instant::now();
    // It holds the terminal's other end.
    terminal.kill().expect("kill");
    terminal.wait().expect("wait");
    let code = bench.path("code");
    wait_until("the run's end", Duration::from_secs(60), || {
        fs_err::read(&code).is_ok_and(|text| text.ends_with(b"\n"))
    });
    assert!(since.elapsed() < Duration::from_secs(10));
    assert_eq!(fs_err::read_to_string(code).expect("read"), "5\n");
    let trials = bench.trials();
    assert_eq!(trials.len(), 1, "the finished one is kept");
    assert_nothing_left(&trials[0].run);
}

#[test]
fn engine_nohup_keeps_a_run_from_ending_with_its_terminal() {
    let bench = Bench::new(&matrix(1, "cpu = [\"1\"]", ""));
    let mut nohup = Command::new("nohup");
    nohup
        .arg(env!("CARGO_BIN_EXE_sweep"))
        .args(RUN)
        .current_dir(bench.path(""))
        .stdin(Stdio::null());
    let running = Running::of(&mut nohup);
    running.until("trial_phase");
    running.signal("HUP");
    let (code, stderr) = running.end();
    let trials = bench.trials();
    assert_eq!(code, Some(exit_code_for(&trials)), "{stderr}");
    trials.iter().for_each(assert_measured);
}

#[test]
fn engine_what_measures_ends_by_itself_when_the_controller_is_gone() {
    let bench = Bench::new(&matrix(1, "cpu = [\"1\"]", ""));
    let running = bench.start(&RUN);
    let run = running.run_id();
    while running.until("trial_phase")["phase"] != "warmup" {}
    running.signal("KILL");
    running.end();
    let inspect = |role: &str, format: &str| {
        let name = format!("sweep-{run}-0-1-{role}");
        let output = Command::new("docker")
            .args(["inspect", "--format", format, &name])
            .output()
            .expect("docker");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    };
    // The agent with its job; the upstream, which would serve for ever, at a deadline that it was given.
    wait_until("the agent's end", Duration::from_secs(30), || {
        inspect("agent", "{{.State.Status}}") == "exited"
    });
    let arguments = inspect("upstream", "{{join .Args \" \"}}");
    let lifetime = arguments
        .split_once("--max-lifetime=")
        .and_then(|(_, rest)| rest.split_once('s')?.0.parse::<u64>().ok());
    assert!(
        lifetime.is_some_and(|s| (60..600).contains(&s)),
        "{arguments}"
    );
    assert_code(&bench.sweep(&["clean"]), 0);
    assert_nothing_left(&run);
}

/// A progress with a bug.
struct Buggy;

impl Progress for Buggy {
    fn event(&self, _: &Event) {
        panic!("a bug of this test's own");
    }
}

#[test]
fn engine_not_even_a_bug_leaves_containers_behind() {
    let bench = Bench::new(&matrix(2, "cpu = [\"1\"]", ""));
    let running = bench.start(&RUN);
    let run = running.run_id();
    running.until("trial_ended");
    while running.until("trial_phase")["phase"] != "warmup" {}
    running.signal("KILL");
    running.end();
    // One that is of the run, and does not tell by whom: what is removed as a dead owner's is not it.
    let label = format!("sweep.run={run}");
    let made = Command::new("docker")
        .args(["create", "--label", &label, ENVOY])
        .output()
        .expect("docker");
    assert!(made.status.success());

    // The removal of the dead owner's containers is told, and there the bug strikes.
    let matrix = sweep::spec::load(&bench.path("matrix.toml"), &[]).expect("a matrix");
    let options = RunOptions {
        target: Target::Resume(bench.results()),
        wait: false,
        time_budget: None,
        retry_invalid: false,
        overrides: Vec::new(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let cancel = CancellationToken::new();
    let ended = runtime.block_on(runner::run(&matrix, &options, &Buggy, &cancel));
    let error = ended.expect_err("a bug");
    assert_eq!(error.exit_code(), 1);
    assert!(error.to_string().contains("a bug of this test's own"));
    assert!(
        matches!(error, RunError::Cut { folder, .. } if folder == bench.results()),
        "it can be gone on with"
    );
    assert_nothing_left(&run);
    assert_eq!(bench.trials().len(), 1, "the finished trial is kept");
}
