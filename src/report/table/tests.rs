use super::*;
use crate::record::sample::{self, Shape};
use crate::record::trial::{Factor, TrialRecord, TrialStatus};
use crate::report::analysis::analyse;

fn rendered(records: &[TrialRecord]) -> String {
    rendered_in(records, WIDTH)
}

fn rendered_in(records: &[TrialRecord], width: u16) -> String {
    let manifest = sample::manifest(records);
    let text = render(&analyse(&manifest, records), width);
    for line in text.lines() {
        assert!(
            line.chars().count() <= usize::from(width),
            "too wide: {line:?}"
        );
    }
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()));
    text
}

#[test]
fn a_quick_run() {
    insta::assert_snapshot!(rendered(&sample::quick_run().1));
}

#[test]
fn failures_and_invalid_trials() {
    let (_, mut records) = sample::quick_run();
    for repetition in 1..=3 {
        records.push(sample::oom_killed(Shape::limited(1000, 6), repetition));
        records.push(sample::hung(Shape::limited(1000, 8), repetition));
    }
    records[2].status = TrialStatus::Invalid;
    records[2].reasons =
        vec!["noise: the hypervisor took 3.4 % of the CPU time (bound 1 %)".to_owned()];
    let last = records
        .iter()
        .position(|t| t.cell.starts_with("cpu=1,memory=256Mi") && t.repetition == 3);
    let errors = last.expect("trial");
    records[errors] = sample::with_errors(records[errors].clone());
    insta::assert_snapshot!(rendered(&records));
}

#[test]
fn many_factors_and_long_levels_still_fit() {
    let mut records = Vec::new();
    for (i, rate) in ["500", "2000"].iter().enumerate() {
        for path in ["/", "/a/rather/long/path/that/goes/on\u{1b}[31m"] {
            for cpu in [250, 1000] {
                let mut trial = sample::valid(Shape::limited(cpu, 64 << i), 1);
                for (name, level) in [
                    ("load.rate", *rate),
                    ("load.path", path),
                    ("tls.version", "1.3"),
                ] {
                    trial.factors.push(Factor {
                        name: name.to_owned(),
                        level: level.to_owned(),
                    });
                }
                trial.cell = format!("{}{rate}{path}", trial.cell);
                records.push(trial);
            }
        }
    }
    insta::assert_snapshot!(rendered(&records));
}

#[test]
fn narrow_terminals_get_less_and_are_told_what() {
    let (_, records) = sample::quick_run();
    insta::assert_snapshot!(rendered_in(&records, 80), @r"
    cpu = 250m: the CPU limit dominates: 98 % of periods throttled, p99 77.1 ms
      [73.3, 81.0] against 2.59 unlimited and 0.410 direct (at cpu 250m, memory
      64Mi).
    memory ≥ 64Mi: no effect on the verdict.

    cpu       memory hs p99 accept p99 ms p99.9 ms thrott. mem MiB errors verdict
    ─────────────────────────────────────────────────────────────────────────────
    direct            0.820      –  0.410    0.512       –       –      0 ok
    unlimited          5.18      3   2.59     3.24     0 %    19.0      0 ok
    250m      64Mi      154      3   77.1     96.3    98 %    19.0      0 cpu
    250m      256Mi     154      3   77.1     96.3    98 %    19.0      0 cpu
    1         64Mi     5.22      3   2.61     3.26     0 %    19.0      0 ok
    1         256Mi    5.22      3   2.61     3.26     0 %    19.0      0 ok

    Medians of 3 repetitions; latencies in ms at the client (hs: whole handshake of
      a new connection, to its first byte); accept: largest depth of the accept
      queue. Everywhere: swap=0.
    Not shown in 80 columns: 95 % intervals, hs p50; report.md has them.
    Note: the host has no swap: the factor swap is inert
    ");
    insta::assert_snapshot!(rendered_in(&records, 60), @r"
    cpu = 250m: the CPU limit dominates: 98 % of periods
      throttled, p99 77.1 ms [73.3, 81.0] against 2.59 unlimited
      and 0.410 direct (at cpu 250m, memory 64Mi).
    memory ≥ 64Mi: no effect on the verdict.

    cpu        memory  hs p99  p99 ms  thrott.  errors  verdict
    ───────────────────────────────────────────────────────────
    direct              0.820   0.410        –       0  ok
    unlimited            5.18    2.59      0 %       0  ok
    250m       64Mi       154    77.1     98 %       0  cpu
    250m       256Mi      154    77.1     98 %       0  cpu
    1          64Mi      5.22    2.61      0 %       0  ok
    1          256Mi     5.22    2.61      0 %       0  ok

    Medians of 3 repetitions; latencies in ms at the client (hs:
      whole handshake of a new connection, to its first byte);
      accept: largest depth of the accept queue. Everywhere:
      swap=0.
    Not shown in 60 columns: 95 % intervals, hs p50, accept, mem
      MiB, p99.9 ms; report.md has them.
    Note: the host has no swap: the factor swap is inert
    ");
    // Wider than people read is no gain, and a terminal that tells nonsense is no harm.
    assert_eq!(rendered_in(&records, 500), rendered(&records));
    let manifest = sample::manifest(&records);
    assert!(render(&analyse(&manifest, &records), 1).contains("verdict"));
}

#[test]
fn one_is_not_many() {
    let mut lost = sample::valid(Shape::limited(250, 64), 1);
    lost.status = TrialStatus::Invalid;
    let mut manifest = sample::manifest(std::slice::from_ref(&lost));
    manifest.repetitions = 1;
    manifest.planned_trials = 1;
    let text = render(&analyse(&manifest, &[lost]), WIDTH);
    assert!(text.contains("Medians of 1 repetition;"), "{text}");
    assert!(text.contains(": 1 of 1 trial."), "{text}");
}

#[test]
fn the_figures_of_one_trial_are_not_told_of_others() {
    let (_, mut records) = sample::quick_run();
    for (index, steal) in [(0, "3.4"), (1, "7.0")] {
        records[index].status = TrialStatus::Invalid;
        records[index].reasons = vec![
            format!("noise: the hypervisor took {steal} % of the CPU time (bound 1 %)"),
            "limits unknown".to_owned(),
        ];
    }
    let manifest = sample::manifest(&records);
    let lines = left_out(&analyse(&manifest, &records));
    insta::assert_snapshot!(lines.join("\n"), @r"
    Invalid, left out of the medians: 2 of 18 trials.
      direct and 1 more cell (2 trials, each with its own figures; the first): noise: the hypervisor took 3.4 % of the CPU time (bound 1 %)
      direct and 1 more cell (2 trials): limits unknown
    ");
}

#[test]
fn nothing_run_yet() {
    let (manifest, _) = sample::quick_run();
    insta::assert_snapshot!(render(&analyse(&manifest, &[]), WIDTH));
}
