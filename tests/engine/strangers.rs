//! Other users of the engine: containers taken away, names taken, and whose containers `sweep clean` removes.

use std::process::Command;

use sweep::record::trial::TrialRecord;
use sweep::runtime::Owner;

use crate::support::{
    Bench, ENVOY, assert_code, assert_measured, assert_nothing_left, containers, exit_code_for,
    matrix,
};

const RUN: [&str; 5] = ["run", "matrix.toml", "--json", "--out", "out"];

fn docker(args: &[&str]) {
    let output = Command::new("docker").args(args).output().expect("docker");
    assert!(
        output.status.success(),
        "{args:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// A container of somebody else, removed when the test ends.
struct Stranger(String);

impl Stranger {
    fn create(name: &str, labels: &[(&str, &str)]) -> Self {
        let labels: Vec<String> = labels
            .iter()
            .map(|(k, v)| format!("--label={k}={v}"))
            .collect();
        let mut args = vec!["create", "--name", name];
        args.extend(labels.iter().map(String::as_str));
        args.push(ENVOY);
        docker(&args);
        Self(name.to_owned())
    }

    fn is_there(&self) -> bool {
        containers(&format!("name=^{}$", self.0)).contains(&self.0)
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        let _ = Command::new("docker").args(["rm", "-f", &self.0]).output();
    }
}

fn only(bench: &Bench) -> TrialRecord {
    let mut trials = bench.trials();
    assert_eq!(trials.len(), 1);
    trials.remove(0)
}

#[test]
fn engine_a_container_that_somebody_removes_costs_an_attempt_and_the_row_says_which() {
    for role in ["proxy", "upstream", "agent"] {
        let bench = Bench::new(&matrix(1, "cpu = [\"1\"]", ""));
        let running = bench.start(&RUN);
        let run = running.run_id();
        while running.until("trial_phase")["phase"] != "measure" {}
        docker(&["rm", "-f", &format!("sweep-{run}-0-1-{role}")]);
        let (code, stderr) = running.end();
        let trial = only(&bench);
        assert_eq!(
            code,
            Some(exit_code_for(std::slice::from_ref(&trial))),
            "{stderr}"
        );
        assert_eq!(trial.attempts, 2, "{role}");
        assert_measured(&trial);
        let why = trial.retried_because.as_deref().expect("the reason");
        let words = format!("the {role}'s container was removed by somebody else");
        assert!(why.contains(&words), "{role}: {why}");
        assert_nothing_left(&run);
    }
}

#[test]
fn engine_a_name_that_somebody_took_costs_an_attempt_and_his_container_stays() {
    let bench = Bench::new(&matrix(2, "cpu = [\"1\"]", ""));
    let running = bench.start(&RUN);
    let run = running.run_id();
    running.until("trial_ended");
    running.signal("INT");
    assert_eq!(running.end().0, Some(5));

    let stranger = Stranger::create(&format!("sweep-{run}-1-1-proxy"), &[]);
    let output = bench.sweep(&["run", "matrix.toml", "--resume", "out"]);
    let trials = bench.trials();
    assert_code(&output, exit_code_for(&trials));
    assert_eq!((trials.len(), trials[1].attempts), (2, 2));
    assert_measured(&trials[1]);
    let why = trials[1].retried_because.as_deref().expect("the reason");
    assert!(
        why.contains("already in use") && why.contains("left alone"),
        "{why}"
    );
    assert!(stranger.is_there(), "it was not ours to remove");
    assert_nothing_left(&run);
}

#[test]
fn engine_only_what_a_dead_owner_of_this_machine_left_is_removed() {
    let bench = Bench::new(&matrix(1, "cpu = [\"1\"]", ""));
    let me = Owner::current("rtest");
    let (pid, other) = (me.pid.to_string(), me.boot.replace(|c| c != '-', "0"));
    let create = |name: &str, host: &str, boot: &str, start: &str| {
        Stranger::create(
            &format!("sweep-test-{name}-{pid}"),
            &[
                ("sweep.run", name),
                ("sweep.role", "proxy"),
                ("sweep.host", host),
                ("sweep.boot", boot),
                ("sweep.pid", &pid),
                ("sweep.pid_start", start),
            ],
        )
    };
    // A pid that another process has now, and one of before the last boot.
    let dead = create("dead", &me.host, &me.boot, "1");
    let rebooted = create("rebooted", &me.host, &other, &me.pid_start);
    let alive = create("alive", &me.host, &me.boot, &me.pid_start);
    let elsewhere = create("elsewhere", "another-machine", &me.boot, "1");
    let unlabelled = Stranger::create(&format!("sweep-test-unlabelled-{pid}"), &[]);
    let unknown = Stranger::create(
        &format!("sweep-test-unknown-{pid}"),
        &[("sweep.run", "unknown")],
    );

    let output = bench.sweep(&["clean"]);
    assert_code(&output, 0);
    let there: Vec<bool> = [&dead, &rebooted, &alive, &elsewhere, &unlabelled, &unknown]
        .map(Stranger::is_there)
        .to_vec();
    assert_eq!(there, [false, false, true, true, true, true]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    for needle in [
        format!("removed {} of run dead", dead.0),
        format!("left alone: run alive of process {pid}"),
        "left alone: run elsewhere".to_owned(),
    ] {
        assert!(text.contains(&needle), "{needle} is not in:\n{text}");
    }
    // The live one is another sweep on this engine, wherever its process is.
    let refused = bench.sweep(&["run", "matrix.toml", "--out", "out"]);
    assert_code(&refused, 7);
}
