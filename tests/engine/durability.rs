//! SIGKILL at random moments: every finished trial is kept, none runs twice, and nothing is left on the engine.
//!
//! `SWEEP_KILLS` says how often (5), `SWEEP_SEED` from which seed; both are printed.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use rand::{RngExt as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::running::Running;
use crate::support::{Bench, ENVOY, assert_nothing_left, containers, exit_code_for, trials_in};

/// Columns that say which trial a row is and what was asked of it.
const ASKED: [&str; 16] = [
    "position",
    "cell",
    "repetition",
    "block",
    "control",
    "cpu_millis",
    "memory_bytes",
    "swap_bytes",
    "cpu_period_usec",
    "workers",
    "page_cache_asked",
    "warmup_us",
    "duration_us",
    "seed",
    "offered_rate_rps",
    "load.connections",
];

fn small_matrix() -> String {
    format!(
        "name = \"kill\"\nseed = 11\nrepetitions = 1\nwarmup = \"100ms\"\nduration = \"200ms\"\n\n\
         [matrix]\ncpu = [\"500m\", \"1\"]\n\"load.connections\" = [2, 4]\n\n\
         [proxy]\nimage = \"{ENVOY}\"\n\n[load]\nrate = 100\nhandshake_rate = 10\n"
    )
}

/// The header of a run's `trials.csv`, and of each row what was asked.
fn asked(results: &Path) -> (Vec<String>, Vec<BTreeMap<String, String>>) {
    let mut reader = csv::Reader::from_path(results.join("trials.csv")).expect("trials.csv");
    let header: Vec<String> = reader
        .headers()
        .expect("a header")
        .iter()
        .map(str::to_owned)
        .collect();
    for name in ASKED {
        assert!(
            header.iter().any(|h| h == name),
            "there is no column {name}"
        );
    }
    let rows = reader.records().map(|row| {
        let row = row.expect("a row");
        header
            .iter()
            .zip(row.iter())
            .filter(|(name, _)| ASKED.contains(&name.as_str()))
            .map(|(name, value)| (name.clone(), value.to_owned()))
            .collect()
    });
    let rows = rows.collect();
    (header, rows)
}

/// Whole lines of `trials.jsonl`; a torn one is not a trial.
fn whole_lines(results: &Path) -> Vec<String> {
    let text = fs_err::read(results.join("trials.jsonl")).unwrap_or_default();
    let whole = text
        .split_inclusive(|b| *b == b'\n')
        .filter(|l| l.ends_with(b"\n"));
    whole
        .map(|l| String::from_utf8(l.to_vec()).expect("UTF-8"))
        .collect()
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|e| panic!("{variable}={text}: {e}")),
    )
}

/// Starts the run, or goes on with what there is of it.
fn start(bench: &Bench, out: &str) -> Running {
    let with = if bench.path(out).join("manifest.json").exists() {
        "--resume"
    } else {
        "--out"
    };
    bench.start(&["run", "matrix.toml", "--json", with, out])
}

/// Kills a sweep until it has come to its end, or `kills` are used up and it may; returns how many were.
fn kill_until_it_ends(
    bench: &Bench,
    out: &str,
    kills: u64,
    whole: Duration,
    random: &mut Xoshiro256PlusPlus,
) -> u64 {
    let results = bench.path(out);
    let mut used = 0;
    loop {
        let before = whole_lines(&results);
        let mut running = start(bench, out);
        let moment = whole.mul_f64(random.random::<f64>());
        let time = if used < kills {
            moment
        } else {
            Duration::from_secs(120)
        };
        let ended = running.ends_within(time);
        if !ended {
            assert!(used < kills, "it did not come to its end");
            running.signal("KILL");
            used += 1;
        }
        let (code, stderr, events) = running.end_with_events();
        let told = events
            .iter()
            .filter(|e| e["event"] == "trial_ended")
            .count();
        let after = whole_lines(&results);
        assert!(
            after.starts_with(&before),
            "killed after {moment:?}: a finished trial was lost or changed"
        );
        assert!(
            after.len() >= before.len() + told,
            "killed after {moment:?}: {told} trials were told of and not kept"
        );
        if ended {
            assert_eq!(code, Some(exit_code_for(&trials_in(results))), "{stderr}");
            return used;
        }
    }
}

#[test]
#[expect(clippy::print_stderr, reason = "a failure is repeated from the seed")]
fn engine_killed_at_random_moments_a_sweep_loses_nothing_and_runs_nothing_twice() {
    let kills = number("SWEEP_KILLS").unwrap_or(5);
    let seed = number("SWEEP_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    eprintln!("SWEEP_KILLS={kills} SWEEP_SEED={seed}");
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let bench = Bench::new(&small_matrix());

    let began = Instant::now();
    let (code, stderr) = start(&bench, "whole").end();
    let whole = began.elapsed();
    let reference = trials_in(bench.path("whole"));
    assert_eq!(code, Some(exit_code_for(&reference)), "{stderr}");
    assert_eq!(reference.len(), 4);
    let expected = asked(&bench.path("whole"));

    let (mut done, mut sweeps) = (0, 0);
    while done < kills {
        sweeps += 1;
        let out = format!("cut-{sweeps}");
        done += kill_until_it_ends(&bench, &out, kills - done, whole, &mut random);
        assert_eq!(asked(&bench.path(&out)), expected, "{out}");
        let trials = trials_in(bench.path(&out));
        assert_nothing_left(&trials[0].run);
        assert_eq!(containers("label=sweep.run"), [].into(), "{out}");
    }
    eprintln!("{done} kills in {sweeps} sweeps of {whole:?}, each gone on with to its end");
}
