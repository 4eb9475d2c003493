//! A real sweep: limits in force, throttling where it must be, every file, nothing left.

use sweep::probe::report::Limit;
use sweep::record::trial::TrialRecord;
use sweep::report;

use crate::support::{Bench, assert_measured, assert_nothing_left, matrix};

fn counter(
    trial: &TrialRecord,
    read: impl Fn(&sweep::probe::report::Counters) -> Option<u64>,
) -> u64 {
    let probe = &trial.agent.as_ref().expect("an agent result").probe;
    let at = |c: &Option<sweep::probe::report::Counters>| {
        read(c.as_ref().expect("counters")).expect("a value")
    };
    at(&probe.counters_end) - at(&probe.counters_start)
}

#[test]
fn engine_limits_are_in_force_and_the_cpu_limit_shows() {
    let bench = Bench::new(&matrix(
        2,
        "cpu = [\"100m\", \"1\"]\nmemory = [\"128Mi\"]\nswap = [0]",
        "",
    ));
    let trials = bench.run();
    assert_eq!(trials.len(), 4);
    for trial in &trials {
        assert_measured(trial);
        let probe = &trial.agent.as_ref().expect("result").probe;
        for limits in [&probe.limits_start, &probe.limits_end] {
            let own = &limits.as_ref().expect("read back").own;
            let cpu = trial.limits.cpu.expect("a cpu level").0;
            assert_eq!(
                own.cpu_quota_usec,
                Some(Limit::Of(cpu * 100)),
                "{}",
                trial.cell
            );
            assert_eq!(own.memory_bytes, Some(Limit::Of(128 << 20)));
        }
        let load = trial
            .agent
            .as_ref()
            .expect("result")
            .load
            .as_ref()
            .expect("load");
        assert!(
            load.requests > 700,
            "about 800 requests in 2 s, got {}",
            load.requests
        );
        assert!(
            load.handshake.completed > 30,
            "about 40 handshakes, got {}",
            load.handshake.completed
        );
        assert_eq!(load.handshake.resumed, 0);
        assert_eq!(load.handshake.full, load.handshake.completed);
    }
    let of = |cpu: u64| {
        trials
            .iter()
            .filter(move |t| t.limits.cpu.is_some_and(|c| c.0 == cpu))
    };
    let p99 = |t: &TrialRecord| {
        t.agent
            .as_ref()
            .and_then(|a| a.load.as_ref()?.response_time.quantile_us(0.99))
            .expect("p99")
    };
    for starved in of(100) {
        assert!(
            counter(starved, |c| c.nr_throttled) > 5,
            "throttled at 100m"
        );
        for free in of(1000) {
            assert!(
                p99(starved) > p99(free),
                "{} against {}",
                p99(starved),
                p99(free)
            );
        }
    }
    assert_nothing_left(&trials[0].run);
}

#[test]
fn engine_every_file_is_there_and_can_be_made_again() {
    let bench = Bench::new(&matrix(
        1,
        "cpu = [\"500m\"]\n\"load.rate\" = [100, 200]",
        "",
    ));
    let trials = bench.run();
    trials.iter().for_each(assert_measured);
    let names = [
        "manifest.json",
        "trials.jsonl",
        "trials.csv",
        "summary.csv",
        "samples.csv",
        "report.md",
    ];
    let read = |name: &str| {
        fs_err::read(bench.results().join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    };
    let before: Vec<Vec<u8>> = names.iter().map(|name| read(name)).collect();
    for name in &names[2..] {
        fs_err::remove_file(bench.results().join(name)).expect("remove");
    }
    report::rebuild(&sweep::record::Folder::open(bench.results()).expect("folder"))
        .expect("rebuild");
    for (name, bytes) in names.iter().zip(&before) {
        assert!(!bytes.is_empty(), "{name} is empty");
        assert_eq!(&read(name), bytes, "{name} differs when made again");
    }
    assert!(
        fs_err::read_dir(bench.results().join("histograms"))
            .expect("histograms")
            .count()
            >= trials.len()
    );
}
