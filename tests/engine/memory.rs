//! Memory limits that are too small: killed, hung, or fine; never a crash of the sweep.

use sweep::record::trial::{FailureKind, TrialRecord, TrialStatus};

use crate::rows::{assert_evidence, judged, rows};
use crate::support::{Bench, assert_measured, assert_nothing_left, matrix};

fn storage_driver() -> String {
    let output = std::process::Command::new("docker")
        .args(["info", "--format", "{{.Driver}}"])
        .output()
        .expect("docker info");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

fn of_memory(trials: &[TrialRecord], mebibytes: u64) -> &TrialRecord {
    trials
        .iter()
        .find(|t| t.limits.memory.is_some_and(|m| m.0 == mebibytes << 20))
        .unwrap_or_else(|| panic!("no trial at {mebibytes} MiB"))
}

#[test]
fn engine_a_killed_and_a_hung_proxy_are_findings_and_the_rest_is_valid() {
    let bench = Bench::new(&matrix(1, "memory = [\"6Mi\", \"8Mi\", \"128Mi\"]", ""));
    let trials = bench.run_usable();
    assert_eq!(trials.len(), 3, "the sweep goes on");
    assert_measured(of_memory(&trials, 128));

    let killed = of_memory(&trials, 6);
    assert_eq!(
        (killed.status, killed.failure),
        (TrialStatus::Failed, Some(FailureKind::OomKilled)),
        "{killed:?}"
    );

    let rows = rows(&bench.results());
    let row = judged(&rows, "memory=6Mi", "oom");
    assert_evidence(row, &["memory limit 6.00 MiB"]);
    assert_eq!(row.known("response_time_p99_us"), None);

    let small = of_memory(&trials, 8);
    if storage_driver() == "fuse-overlayfs" {
        // Each container has its own page cache there: reclaim always finds file pages, and nothing is killed.
        assert_eq!(
            small.failure,
            Some(FailureKind::NotReady),
            "{:?}",
            small.reasons
        );
        let counters = small
            .agent
            .as_ref()
            .and_then(|a| a.probe.counters_last.as_ref())
            .expect("last counters");
        assert!(counters.pgmajfault.expect("known") > 1000, "{counters:?}");
        assert!(
            small.reasons[0].contains("major faults"),
            "{:?}",
            small.reasons
        );
        let row = judged(&rows, "memory=8Mi", "hung");
        assert_evidence(row, &["no answer before the deadline", "major faults"]);
        assert!(row.number("memory_pgmajfault_total") > 1000.0);
        assert_eq!(row.number("oom_kill"), 0.0);
    } else {
        assert_eq!(
            small.failure,
            Some(FailureKind::OomKilled),
            "{:?}",
            small.reasons
        );
        judged(&rows, "memory=8Mi", "oom");
    }
    assert_nothing_left(&trials[0].run);
}
