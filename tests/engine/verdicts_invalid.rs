//! Numbers that must not be used, made on purpose: limits that somebody changed, a spoiled trial, a generator without a
//! CPU, a noisy host.

use std::process::Command;

use crate::rows::{Row, assert_evidence, cell_verdict, rows};
use crate::running::Running;
use crate::support::{Bench, assert_nothing_left, containers};
use crate::verdicts::short;

const LIGHT: &str = "rate = 400\nconnections = 16\nhandshake_rate = 20";
const RUN: [&str; 5] = ["run", "matrix.toml", "--json", "--out", "out"];

fn docker(args: &[&str]) {
    let output = Command::new("docker").args(args).output().expect("docker");
    assert!(
        output.status.success(),
        "docker {args:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Waits until the trial under way comes to this phase.
fn until_phase(running: &Running, phase: &str) {
    while running.until("trial_phase")["phase"] != phase {}
}

/// The container of the trial under way with this role.
fn container(run: &str, role: &str) -> String {
    let found = containers(&format!("label=sweep.run={run}"));
    let mut of_role = found.into_iter().filter(|name| name.ends_with(role));
    of_role.next().unwrap_or_else(|| panic!("no {role} runs"))
}

fn id_of(running: &Running) -> String {
    let started = running.until("run_started");
    started["run"].as_str().expect("an id").to_owned()
}

#[track_caller]
fn assert_invalid(row: &Row, words: &[&str]) {
    assert_eq!(row.text("verdict"), "invalid", "{}", row.told());
    assert_ne!(row.text("status"), "valid", "{}", row.told());
    assert_evidence(row, words);
}

#[test]
fn engine_a_limit_that_somebody_changed_makes_no_number() {
    let bench = Bench::new(&short("", "cpu = [\"500m\", \"600m\"]", "", LIGHT, ""));
    let running = bench.start(&RUN);
    let run = id_of(&running);
    // Before the window, so that another limit is in force all through it.
    until_phase(&running, "warmup");
    docker(&["update", "--cpus=2", &container(&run, "-proxy")]);
    running.until("trial_ended");
    until_phase(&running, "measure");
    docker(&["update", "--cpus=2", &container(&run, "-proxy")]);
    let (code, stderr) = running.end();
    assert_eq!(code, Some(4), "{stderr}");
    let rows = rows(&bench.results());
    let asked = |row: &Row| 100.0 * row.number("cpu_millis");
    let (before, during) = (&rows[0], &rows[1]);
    let wanted = format!("200000 of 100000 usec in force, {} asked", asked(before));
    assert_invalid(before, &[&wanted]);
    let changed = format!("{} at the start, 200000 at the end", asked(during));
    assert_invalid(during, &["cpu quota changed during the trial", &changed]);
    // Both are in trials.csv with what they measured, and in no median.
    let summary = fs_err::read_to_string(bench.results().join("summary.csv")).expect("summary");
    for row in [before, during] {
        assert!(row.number("response_time_p99_us") > 0.0);
        assert_eq!(cell_verdict(&bench.results(), row.text("cell")), "invalid");
        assert!(!summary.contains(row.text("cell")), "{summary}");
    }
}

#[test]
fn engine_a_trial_that_the_engine_spoiled_twice_says_nothing_of_the_proxy() {
    let bench = Bench::new(&short("", "cpu = [\"1\"]", "", LIGHT, ""));
    let running = bench.start(&RUN);
    let run = id_of(&running);
    for _ in 0..2 {
        until_phase(&running, "measure");
        docker(&["rm", "-f", &container(&run, "-agent")]);
    }
    let (code, stderr) = running.end();
    assert_eq!(code, Some(4), "{stderr}");
    let row = &rows(&bench.results())[0];
    assert_invalid(row, &["agent"]);
    assert_eq!(row.text("failure"), "harness");
    assert_eq!(row.number("attempts"), 2.0);
    assert_eq!(row.known("exit_code"), None, "it did not exit by itself");
    assert_nothing_left(&run);

    // Nobody meddles this time, and what it was is not lost.
    let again = ["run", "matrix.toml", "--resume", "out", "--retry-invalid"];
    let output = bench.sweep(&again);
    // The machine may be busy, but nobody spoiled it.
    assert!(matches!(output.status.code(), Some(0 | 4)), "{output:?}");
    let rows = rows(&bench.results());
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].text("failure"), "", "{}", rows[0].told());
    assert!(rows[0].number("requests") > 0.0, "{}", rows[0].told());
    let why = rows[0].text("retried_because");
    assert!(
        why.starts_with("invalid before: ") && why.contains("agent"),
        "{why}"
    );
    let aside = fs_err::read_to_string(bench.path("out/trials-set-aside.jsonl")).expect("aside");
    assert_eq!(aside.lines().count(), 1);
}

/// Programs that do nothing but use CPUs, as containers beside the pod; ended with the value.
struct Busy {
    image: String,
    names: Vec<String>,
}

impl Busy {
    /// One for each of these CPUs, with this weight (1024 is a container's default).
    fn on(bench: &Bench, cpus: &[&str], shares: u32) -> Self {
        let image = format!("sweep-test-busy:{}", std::process::id());
        let import = bench.sweep(&["image", "import", "--name", &image, "/bin/dash"]);
        assert!(import.status.success(), "{import:?}");
        let mut busy = Self {
            image,
            names: Vec::new(),
        };
        for cpu in cpus {
            let name = format!("sweep-test-busy-{}-{cpu}", std::process::id());
            busy.names.push(name.clone());
            docker(&[
                "run",
                "--detach",
                "--name",
                &name,
                "--network=none",
                &format!("--cpuset-cpus={cpu}"),
                &format!("--cpu-shares={shares}"),
                &busy.image,
                "-c",
                "while :; do :; done",
            ]);
        }
        busy
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let force = |args: &[&str]| drop(Command::new("docker").args(args).output());
        for name in &self.names {
            force(&["rm", "-f", name]);
        }
        force(&["image", "rm", "-f", &self.image]);
    }
}

/// One CPU for the agent and a busy program of this weight, and the default bound on lateness.
fn beside_a_busy_program(shares: u32) -> Vec<Row> {
    let text = short(
        "",
        "cpu = [\"1\"]",
        "",
        "rate = 2000\nconnections = 16\nhandshake_rate = 20",
        "[placement]\nagent = \"0\"\nproxy = \"1\"\nupstream = \"1\"",
    );
    let bench = Bench::new(&text.replace("max_pacing_lag = \"10ms\"", ""));
    let _busy = Busy::on(&bench, &["0"], shares);
    let trials = bench.run();
    assert_nothing_left(&trials[0].run);
    rows(&bench.results())
}

#[test]
fn engine_a_generator_on_a_busy_core_is_no_measurement() {
    let row = &beside_a_busy_program(8 * 1024)[0];
    assert_invalid(row, &["generator: "]);
    assert!(row.number("pacing_lag_p99_us") > 1000.0, "{}", row.told());
    assert!(row.number("host_busy_share") > 0.5, "{}", row.told());
}

/// No answer is `hung`, unless it was the agent that could not ask: whether it gets as far as the window, with nothing
/// sent in it, or not even to the first answer.
#[test]
fn engine_an_agent_without_a_cpu_does_not_make_a_proxy_hang() {
    let row = &beside_a_busy_program(128 * 1024)[0];
    if row.text("failure") == "harness" {
        assert_invalid(row, &["the agent itself waited for a CPU in"]);
        assert_eq!(row.known("response_time_p99_us"), None);
    } else {
        assert_invalid(
            row,
            &["generator: it had no CPU: the generator waited for a CPU in"],
        );
        let waited = row.number("generator_cpu_wait_usec");
        assert!(waited > 1e6, "{waited} of 3 s: {}", row.told());
    }
}

#[test]
fn engine_other_programs_on_every_cpu_are_noise() {
    let bench = Bench::new(&short("", "cpu = [\"1\"]", "", LIGHT, ""));
    // They take only what is left over, so that nothing but the host's own account tells of them.
    let _busy = Busy::on(&bench, &["0", "1"], 2);
    bench.run();
    let row = &rows(&bench.results())[0];
    assert_invalid(row, &["noise: other programs used"]);
    assert!(row.number("host_busy_share") > 0.8, "{}", row.told());
    let others = row.number("host_other_cpu_usec") / 1e6;
    assert!(others > 1.5, "{others} s of CPU time: {}", row.told());
}
