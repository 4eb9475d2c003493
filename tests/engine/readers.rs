//! A real trial beside readers that share nothing with the probes: a shell that reads the proxy's cgroup, and `ss`.
//! Counters must be equal; gauges must lie among the readings around them, since nobody reads at the same moment.

mod shell;

use shell::{Readers, Reading, Readings};
use sweep::probe::report::{Counters, ProbeReport, Sample};

use crate::rows::rows;
use crate::support::{Bench, containers};
use crate::verdicts::short;

/// A trial that is throttled, has a queue and overflows, with what the readers saw of it.
fn trial_with_readers() -> (ProbeReport, Readings, Bench) {
    let bench = Bench::new(&short(
        "",
        "cpu = [\"100m\"]",
        "backlog = 4",
        "rate = 200\nconnections = 16\nhandshake_rate = 120",
        "[limits]\nmemory = \"128Mi\"",
    ));
    let running = bench.start(&["run", "matrix.toml", "--json", "--out", "out"]);
    let started = running.until("run_started");
    let run = started["run"].as_str().expect("an id");
    while running.until("trial_phase")["phase"] != "warmup" {}
    let found = containers(&format!("label=sweep.run={run}"));
    let named = |end: &str| {
        let name = found.iter().find(|name| name.ends_with(end));
        name.unwrap_or_else(|| panic!("no {end} in {found:?}"))
            .clone()
    };
    let readers = Readers::start(&named("-proxy"), &named("-upstream"));
    let (code, stderr) = running.end();
    assert!(matches!(code, Some(0 | 4)), "{stderr}");
    let trial = bench.trials().remove(0);
    let probe = trial.agent.expect("an agent result").probe;
    (probe, readers.end(), bench)
}

#[test]
fn engine_figures_of_a_trial_equal_those_of_a_shell_and_of_ss() {
    let (probe, readings, bench) = trial_with_readers();
    let start = probe.counters_start.as_ref().expect("start");
    let end = probe.counters_end.as_ref().expect("end");
    assert!(readings.cgroup.len() > 200, "{}", readings.cgroup.len());

    // Both edges of the window, to the microsecond: throttling is counted once a period, so a reader that is quicker
    // than that sees every state.
    for edge in [start, end] {
        let seen =
            |r: &Reading| Some((r.periods, r.throttled, r.throttled_usec)) == throttling(edge);
        assert!(readings.cgroup.iter().any(seen), "no shell saw {edge:?}");
    }
    let row = &rows(&bench.results())[0];
    let over = |read: fn(&Counters) -> Option<u64>| {
        read(end).zip(read(start)).map(|(e, s)| (e - s) as f64)
    };
    assert_eq!(row.known("nr_periods"), over(|c| c.nr_periods));
    assert_eq!(row.known("nr_throttled"), over(|c| c.nr_throttled));
    assert_eq!(row.known("throttled_usec"), over(|c| c.throttled_usec));
    assert!(row.number("nr_throttled") > 10.0, "{}", row.told());

    samples_equal(&probe, &readings);
    queues_agree(&probe, &readings);

    // Nobody connects any more when the agent looks for the last time.
    let last = probe.counters_last.as_ref().expect("last");
    let final_ = readings.namespace.last().expect("a reading");
    assert_eq!(last.listen_overflows, Some(final_.listen_overflows));
    assert_eq!(last.listen_drops, Some(final_.listen_drops));
    assert!(last.listen_overflows > Some(0), "nothing was compared");
}

fn throttling(counters: &Counters) -> Option<(u64, u64, u64)> {
    let periods = counters.nr_periods?;
    Some((periods, counters.nr_throttled?, counters.throttled_usec?))
}

fn cpu(sample: &Sample) -> Option<(u64, u64, u64)> {
    let periods = sample.nr_periods?;
    Some((periods, sample.nr_throttled?, sample.cpu_usage_usec?))
}

/// Readings of the shell in the state in which a sample found the proxy: a throttled one uses no CPU time, and stands
/// still for most of a period.
fn at<'a>(sample: &Sample, readings: &'a Readings) -> Vec<&'a Reading> {
    let state = cpu(sample);
    let same = |r: &&Reading| Some((r.periods, r.throttled, r.cpu_usage_usec)) == state;
    readings.cgroup.iter().filter(same).collect()
}

/// CPU time between the shell's last reading before a sample's period and its first one after it.
fn cpu_around(sample: &Sample, readings: &Readings) -> Option<std::ops::RangeInclusive<u64>> {
    let period = sample.nr_periods?;
    let before = readings.cgroup.iter().rfind(|r| r.periods < period)?;
    let after = readings.cgroup.iter().find(|r| r.periods > period)?;
    Some(before.cpu_usage_usec..=after.cpu_usage_usec)
}

fn samples_equal(probe: &ProbeReport, readings: &Readings) {
    let (mut same_cpu, mut same_memory) = (0, 0);
    for sample in &probe.samples {
        let periods = |r: &Reading| {
            Some((r.periods, r.throttled)) == sample.nr_periods.zip(sample.nr_throttled)
        };
        assert!(
            readings.cgroup.iter().any(periods),
            "no shell saw {sample:?}"
        );
        let around = cpu_around(sample, readings).expect("the shell reads before and after");
        let cpu = sample.cpu_usage_usec.expect("known");
        assert!(around.contains(&cpu), "{cpu} is not in {around:?}");
        let found = at(sample, readings);
        same_cpu += usize::from(!found.is_empty());
        let memory = |r: &&Reading| Some(r.memory_bytes) == sample.memory.current_bytes;
        same_memory += usize::from(found.iter().any(memory));
    }
    // While the proxy runs, two readers differ by what it does in between; most of the time it is throttled.
    let all = probe.samples.len();
    assert!(all > 40, "{all} samples");
    assert!(
        2 * same_cpu >= all,
        "{same_cpu} of {all} have the very CPU time"
    );
    assert!(
        10 * same_memory >= 9 * same_cpu,
        "{same_memory} of {same_cpu} have the memory"
    );
}

/// Seconds around a sample's state in which its queue may have been read: a time slice of somebody else.
const SLACK_S: f64 = 0.01;

/// Every depth lies among those that the shell saw while the proxy was in the sample's state, and `ss` says the same of
/// the deepest.
fn queues_agree(probe: &ProbeReport, readings: &Readings) {
    let (mut compared, mut strangers, mut deepest) = (0, Vec::new(), 0);
    for sample in &probe.samples {
        let found = at(sample, readings);
        let (Some(first), Some(last)) = (found.first(), found.last()) else {
            continue;
        };
        let around = first.at_s - SLACK_S..last.at_s + SLACK_S;
        let within = readings.depths.iter().filter(|q| around.contains(&q.at_s));
        let depths: Vec<u32> = within.map(|q| q.depth).collect();
        let seen = sample.queues.as_ref().expect("queues");
        assert_eq!(seen.accept_limit, [4]);
        let (Some(&low), Some(&high)) = (depths.iter().min(), depths.iter().max()) else {
            continue;
        };
        compared += 1;
        deepest = deepest.max(seen.accept[0]);
        if !(low..=high).contains(&seen.accept[0]) {
            strangers.push((seen.accept[0], depths));
        }
    }
    assert!(compared > 20, "{compared} samples with readings around");
    assert!(
        10 * strangers.len() <= compared,
        "of {compared} depths, the shell did not see: {strangers:?}"
    );
    // The limit and one more: more connect in a period than it holds.
    let by_ss = readings.queues.iter().max().expect("a look of ss");
    assert!(deepest >= 5 && by_ss.0 >= 5, "{deepest}, {by_ss:?} by ss");
    assert!(readings.queues.iter().all(|q| q.1 == 4), "{by_ss:?}");
}
