use std::collections::BTreeMap;

use super::*;
use crate::record::columns::Kind;
use crate::record::sample::{self, Shape};
use crate::record::trial::TrialRecord;
use crate::report::analysis::analyse;

type Table = Vec<BTreeMap<String, String>>;

fn parse(bytes: &[u8]) -> Table {
    let mut reader = csv::Reader::from_reader(bytes);
    let names = reader.headers().expect("headers").clone();
    reader
        .records()
        .map(|r| {
            names
                .iter()
                .map(str::to_owned)
                .zip(r.expect("record").iter().map(str::to_owned))
                .collect()
        })
        .collect()
}

fn tables(records: &[TrialRecord]) -> (Table, Table, Table) {
    let manifest = sample::manifest(records);
    let analysis = analyse(&manifest, records);
    let table = |bytes: Result<Vec<u8>, CsvError>| parse(&bytes.expect("csv"));
    (
        table(trials(&analysis)),
        table(summary(&analysis)),
        table(samples(&analysis)),
    )
}

#[test]
fn every_numeric_column_holds_numbers_or_nothing() {
    let (_, mut records) = sample::quick_run();
    records.push(sample::hung(Shape::limited(100, 8), 1));
    records.push(sample::oom_killed(Shape::limited(100, 6), 1));
    let (trials, summary, samples) = tables(&records);
    assert_eq!(trials.len(), records.len());
    for column in columns::all().filter(|c| c.kind != Kind::Text) {
        for row in &trials {
            let value = &row[&column.name];
            assert!(
                value.is_empty() || value.parse::<f64>().is_ok(),
                "{}: {value:?}",
                column.name
            );
        }
    }
    for row in &summary {
        for name in ["n", "median", "ci95_low", "ci95_high"] {
            assert!(
                row[name].is_empty() || row[name].parse::<f64>().is_ok(),
                "{row:?}"
            );
        }
    }
    assert_eq!(
        samples.len(),
        200 * 15,
        "15 trials with a proxy and a window"
    );
    assert_eq!(samples[0]["accept_queue"], "0");
}

#[test]
fn the_summary_names_its_method_and_the_ratios_to_the_controls() {
    let (_, records) = sample::quick_run();
    let (_, summary, _) = tables(&records);
    let find = |cell: &str, metric: &str| {
        summary
            .iter()
            .find(|r| r["cell"] == cell && r["metric"] == metric)
            .unwrap_or_else(|| panic!("{cell} {metric}"))
    };
    let starved = "cpu=250m,memory=64Mi,swap=0";
    let p99 = find(starved, "response_time_p99_us");
    assert_eq!(
        (
            p99["n"].as_str(),
            p99["ci_method"].as_str(),
            p99["unit"].as_str()
        ),
        ("3", "student-t-log", "us")
    );
    assert_eq!(
        (p99["cpu"].as_str(), p99["memory"].as_str()),
        ("250m", "64Mi")
    );
    let value =
        |row: &BTreeMap<String, String>, name: &str| row[name].parse::<f64>().expect("number");
    assert!(
        value(p99, "ci95_low") < value(p99, "median")
            && value(p99, "median") < value(p99, "ci95_high")
    );
    let ratio = find(starved, "response_time_p99_us_ratio_unlimited");
    assert_eq!(
        (ratio["ci_method"].as_str(), ratio["unit"].as_str()),
        ("student-t-log-paired", "ratio")
    );
    assert!((25.0..35.0).contains(&value(ratio, "median")), "{ratio:?}");
    assert_eq!(find(starved, "nr_throttled")["ci_method"], "student-t");
    assert!(
        summary
            .iter()
            .all(|r| r["cell"] != "direct" || !r["metric"].contains("_ratio_"))
    );
}

#[test]
fn invalid_and_failed_trials_are_in_the_rows_but_not_in_the_medians() {
    let (_, mut records) = sample::quick_run();
    let bad = records
        .iter_mut()
        .find(|t| t.control.is_none())
        .expect("cell");
    bad.status = crate::record::trial::TrialStatus::Invalid;
    bad.reasons = vec!["noise".to_owned()];
    let cell = bad.cell.clone();
    let (trials, summary, _) = tables(&records);
    assert_eq!(
        trials
            .iter()
            .filter(|r| r["status"] == "invalid" && r["reason"] == "noise")
            .count(),
        1
    );
    let p99 = summary
        .iter()
        .find(|r| r["cell"] == cell && r["metric"] == "response_time_p99_us")
        .expect("row");
    assert_eq!(p99["n"], "2");
}

#[test]
fn a_percentile_that_censored_requests_reach_is_empty_with_its_bound_beside() {
    let (_, mut records) = sample::quick_run();
    for trial in records
        .iter_mut()
        .filter(|t| t.cell.starts_with("cpu=250m,memory=64Mi"))
    {
        let load = trial
            .agent
            .as_mut()
            .and_then(|a| a.load.as_mut())
            .expect("load");
        load.censored = sample::histogram(&[(4_000_000, 50)]);
    }
    let (trials, summary, _) = tables(&records);
    let row = trials
        .iter()
        .find(|r| r["cell"].starts_with("cpu=250m,memory=64Mi"))
        .expect("row");
    assert_eq!(
        (
            row["response_time_p99_us"].as_str(),
            row["response_time_censored"].as_str()
        ),
        ("", "50")
    );
    let p99 = summary
        .iter()
        .find(|r| {
            r["cell"].starts_with("cpu=250m,memory=64Mi") && r["metric"] == "response_time_p99_us"
        })
        .expect("row");
    assert_eq!(
        (p99["median"].as_str(), p99["ci_method"].as_str()),
        ("", "none-censored")
    );
    assert!(p99["median_at_least"].parse::<f64>().expect("number") > 3.9e6);
}

#[test]
fn further_factors_have_a_column_and_formulas_are_harmless() {
    let mut trial = sample::valid(Shape::limited(250, 64), 1);
    trial.factors.push(Factor {
        name: "load.rate".to_owned(),
        level: "500".to_owned(),
    });
    trial.factors.push(Factor {
        name: "load.path".to_owned(),
        level: "=cmd|' /C calc'!A0".to_owned(),
    });
    trial.reasons = vec!["@SUM(1)\u{1b}[2J".to_owned()];
    let (trials, summary, _) = tables(&[trial]);
    assert_eq!(trials[0]["load.rate"], "500");
    assert_eq!(trials[0]["load.path"], "'=cmd|' /C calc'!A0");
    assert_eq!(trials[0]["reason"], "'@SUM(1)\\u{1b}[2J");
    assert_eq!(summary[0]["load.path"], "'=cmd|' /C calc'!A0");
}

#[test]
fn numbers_read_back() {
    for value in [0.1 + 0.2, 1.0 / 3.0, 12_345_678.9, 1e-7, -4.5, 2.0, 1e15] {
        let read: f64 = number(value).parse().expect("number");
        assert!((read - value).abs() <= 1e-11 * value.abs(), "{value}");
    }
    assert_eq!(
        [number(0.1 + 0.2), number(0.0), number(f64::INFINITY)],
        ["0.3", "0", "inf"]
    );
}
