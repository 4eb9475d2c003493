//! Signals, death and return: nothing finished is lost, nothing is left.

use std::collections::BTreeSet;

use crate::support::{
    Bench, assert_code, assert_measured, assert_nothing_left, containers, exit_code_for, matrix,
};

const RUN: [&str; 5] = ["run", "matrix.toml", "--json", "--out", "out"];

#[test]
fn engine_an_interrupted_run_keeps_its_trials_and_can_be_resumed() {
    let bench = Bench::new(&matrix(2, "cpu = [\"500m\", \"1\"]", ""));
    for signal in ["INT", "TERM"] {
        let running = bench.start(if signal == "INT" {
            &RUN
        } else {
            &["run", "matrix.toml", "--json", "--resume", "out"]
        });
        let run = running.until("run_started")["run"]
            .as_str()
            .expect("an id")
            .to_owned();
        running.until("trial_ended");
        running.until("trial_phase");
        running.signal(signal);
        let (code, stderr) = running.end();
        assert_eq!(code, Some(5), "{stderr}");
        assert!(
            stderr.contains("--resume out"),
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
    let run = running.until("run_started")["run"]
        .as_str()
        .expect("an id")
        .to_owned();
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
        crate::support::ENVOY,
    ];
    let made = std::process::Command::new("docker")
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
    std::process::Command::new("docker")
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
