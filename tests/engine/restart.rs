//! An engine that goes away in the middle of a run: restarted, stopped for good, or there and silent.

use std::time::{Duration, Instant};

use sweep::record::trial::{TrialRecord, TrialStatus};

use crate::daemon::Daemon;
use crate::running::Running;
use crate::support::{Bench, assert_measured, exit_code_for, matrix};

const RUN: [&str; 5] = ["run", "matrix.toml", "--json", "--out", "out"];
const RESUME: [&str; 5] = ["run", "matrix.toml", "--json", "--resume", "out"];

/// Lets a first trial end and a second one measure.
fn into_the_second_trial(running: &Running) {
    running.until("trial_ended");
    while running.until("trial_phase")["phase"] != "measure" {}
}

fn starts(trials: &[TrialRecord]) -> Vec<&str> {
    trials.iter().map(|t| t.started_at.as_str()).collect()
}

#[test]
fn engine_a_restart_of_the_engine_costs_an_attempt_and_the_run_goes_on() {
    let bench = Bench::new(&matrix(3, "cpu = [\"1\"]", ""));
    let mut daemon = Daemon::start();
    let bench = bench.on(daemon.host());
    let running = bench.start(&RUN);
    into_the_second_trial(&running);
    daemon.stop();
    daemon.start_again();
    let (code, stderr) = running.end();

    let trials = bench.trials();
    assert_eq!(trials.len(), 3, "{stderr}");
    assert_eq!(code, Some(exit_code_for(&trials)), "{stderr}");
    let (lost, measured): (Vec<_>, Vec<_>) =
        trials.iter().partition(|t| t.status == TrialStatus::Failed);
    assert!(lost.len() <= 1, "one trial at most: {lost:?}");
    measured.into_iter().for_each(assert_measured);
    let retried: Vec<_> = trials.iter().filter(|t| t.attempts > 1).collect();
    assert_eq!(retried.len(), 1, "the trial that ran was tried again");
    let why = retried[0].retried_because.as_deref().expect("the reason");
    let csv = fs_err::read_to_string(bench.results().join("trials.csv")).expect("trials.csv");
    let first = why.split(['"', ';']).next().expect("words");
    assert!(csv.contains(first), "{first} is not in:\n{csv}");
    assert_eq!(daemon.containers(), "", "nothing is left");
}

#[test]
#[ignore = "takes the two minutes for which an engine is waited for"]
fn engine_one_that_stays_away_ends_the_run_which_can_be_gone_on_with() {
    let bench = Bench::new(&matrix(2, "cpu = [\"1\"]", ""));
    let mut daemon = Daemon::start();
    let bench = bench.on(daemon.host());
    let running = bench.start(&RUN);
    into_the_second_trial(&running);
    daemon.stop();
    let (code, stderr) = running.end();
    assert_eq!(code, Some(3), "{stderr}");
    for needle in ["did not come back within 120 s", "--resume out"] {
        assert!(stderr.contains(needle), "{needle} is not in:\n{stderr}");
    }
    let kept = bench.trials();
    assert_eq!(kept.len(), 1, "the finished trial, and no other");

    daemon.start_again();
    let (code, stderr) = bench.start(&RESUME).end();
    let trials = bench.trials();
    assert_eq!(code, Some(exit_code_for(&trials)), "{stderr}");
    assert_eq!(trials.len(), 2);
    assert_eq!(starts(&kept), starts(&trials)[..1]);
    assert_eq!(daemon.containers(), "", "nothing is left");
}

#[test]
fn engine_one_that_is_silent_does_not_keep_an_interrupted_run() {
    let bench = Bench::new(&matrix(3, "cpu = [\"1\"]", ""));
    let daemon = Daemon::start();
    let bench = bench.on(daemon.host());

    // Once: the removal is given its ten seconds.
    let running = bench.start(&RUN);
    into_the_second_trial(&running);
    daemon.freeze();
    let since = Instant::now();
    running.signal("INT");
    let said = running.until_notice("is left");
    assert!(said.contains("sweep clean"), "{said}");
    let (code, stderr) = running.end();
    assert_eq!(code, Some(5), "{stderr}");
    assert!(stderr.contains("--resume out"), "{stderr}");
    assert!(since.elapsed() < Duration::from_secs(20));
    daemon.thaw();
    let kept = bench.trials();
    assert_eq!(kept.len(), 1);

    // Twice: nothing is waited for any more.
    let running = bench.start(&RESUME);
    into_the_second_trial(&running);
    daemon.freeze();
    running.signal("INT");
    running.until_stderr("SIGINT: ");
    let since = Instant::now();
    running.signal("INT");
    let (code, stderr) = running.end();
    assert!(since.elapsed() < Duration::from_secs(3));
    assert_eq!(code, Some(5), "{stderr}");
    assert!(stderr.contains("sweep clean"), "{stderr}");
    daemon.thaw();
    assert_ne!(daemon.containers(), "", "the test needs something left");

    let clean = bench.sweep(&["clean"]);
    assert_eq!(clean.status.code(), Some(0), "{clean:?}");
    assert_eq!(daemon.containers(), "", "nothing is left");
    let trials = bench.trials();
    assert_eq!(trials.len(), 2);
    assert_eq!(starts(&kept), starts(&trials)[..1]);
}
