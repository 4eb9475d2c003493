#![allow(clippy::unwrap_used, clippy::float_cmp)]

use proptest::prelude::*;
use serde_json::Value;

use super::*;

fn reference() -> Value {
    serde_json::from_str(include_str!("../../tests/reference/stats.json")).expect("reference")
}

fn floats(value: &Value) -> Vec<f64> {
    let items = value.as_array().expect("array");
    items.iter().map(|v| v.as_f64().expect("number")).collect()
}

/// Equal to scipy within 1e-9 of the value's size.
fn close(got: f64, want: f64, what: &str) {
    let error = (got - want).abs() / want.abs().max(1e-3);
    assert!(
        error < 1e-9,
        "{what}: {got} is not {want} (relative error {error:e})"
    );
}

fn sample(values: &[f64]) -> Sample {
    Sample::new(values.iter().copied()).expect("sample")
}

#[test]
fn intervals_equal_scipy() {
    let reference = reference();
    for (name, case) in reference["samples"].as_object().unwrap() {
        let x = sample(&floats(&case["values"]));
        close(x.median(), case["median"].as_f64().unwrap(), name);
        let t = t_interval(&x, Method::StudentT).unwrap();
        let log = t_interval_of_logarithms(&x, Method::StudentTLog).unwrap();
        for (interval, key) in [(t, "t"), (log, "log_t")] {
            let want = floats(&case[key]);
            close(interval.low, want[0], &format!("{name} {key} low"));
            close(interval.high, want[1], &format!("{name} {key} high"));
        }
        if !case["order"].is_null() {
            let want = floats(&case["order"]);
            let order = order_statistics(&x, Method::OrderStatistics).unwrap();
            assert_eq!((order.low, order.high), (want[0], want[1]), "{name} order");
            close(order.level, case["order_level"].as_f64().unwrap(), name);
        }
    }
}

#[test]
fn quantiles_of_t_equal_scipy() {
    for (df, want) in reference()["t_quantiles"].as_object().unwrap() {
        let got = t_quantile(df.parse().unwrap()).unwrap();
        close(got, want.as_f64().unwrap(), &format!("t quantile, df {df}"));
    }
}

#[test]
fn paired_ratios_equal_scipy() {
    for (name, case) in reference()["pairs"].as_object().unwrap() {
        let pairs = floats(&case["measured"])
            .into_iter()
            .zip(floats(&case["control"]));
        let ratio = paired_ratio(pairs).unwrap();
        let (want, interval) = (floats(&case["interval"]), ratio.interval.unwrap());
        close(ratio.median, case["median"].as_f64().unwrap(), name);
        close(interval.low, want[0], name);
        close(interval.high, want[1], name);
        assert_eq!(interval.method.name(), "student-t-log-paired");
    }
}

#[test]
fn slopes_equal_scipy() {
    for (name, case) in reference()["lines"].as_object().unwrap() {
        let points: Vec<_> = floats(&case["x"])
            .into_iter()
            .zip(floats(&case["y"]))
            .collect();
        let fit = trend(&points).unwrap();
        let want = floats(&case["interval"]);
        close(fit.slope, case["slope"].as_f64().unwrap(), name);
        close(fit.intercept, case["intercept"].as_f64().unwrap(), name);
        close(fit.low, want[0], name);
        close(fit.high, want[1], name);
    }
}

#[test]
fn the_method_follows_the_kind_and_the_size() {
    let method = |values: &[f64], scale| estimate(&sample(values), scale).method_name();
    assert_eq!(method(&[5.0], Scale::Logarithmic), "none");
    assert_eq!(method(&[5.0, 6.0], Scale::Logarithmic), "student-t-log");
    assert_eq!(method(&[5.0, 6.0], Scale::Linear), "student-t");
    assert_eq!(method(&[0.0, 6.0], Scale::Logarithmic), "student-t-zeros");
    assert_eq!(
        method(&[1.0, 2.0, 3.0, 4.0, 5.0], Scale::Linear),
        "student-t"
    );
    let six = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    assert_eq!(method(&six, Scale::Logarithmic), "order-statistics");
    let interval = estimate(&sample(&six), Scale::Linear).interval.unwrap();
    assert_eq!((interval.low, interval.high), (1.0, 6.0));
    close(interval.level, 0.96875, "coverage of six");
}

#[test]
fn one_value_has_no_interval_and_none_is_no_sample() {
    assert_eq!(estimate(&sample(&[7.0]), Scale::Linear).interval, None);
    assert_eq!(Sample::new([]), None);
    assert_eq!(Sample::new([1.0, f64::NAN]), None);
    assert_eq!(Sample::new([1.0, f64::INFINITY]), None);
    assert_eq!(paired_ratio([(1.0, 0.0), (0.0, 1.0)]), None);
}

#[test]
fn pairs_without_a_ratio_are_left_out_and_counted() {
    let ratio = paired_ratio([(10.0, 5.0), (10.0, 0.0), (12.0, 6.0)]).unwrap();
    assert_eq!((ratio.n, ratio.median), (2, 2.0));
}

#[test]
fn a_queue_grows_only_if_the_whole_interval_does() {
    let noisy: Vec<_> = (0..10).map(|i| (f64::from(i), f64::from(i % 3))).collect();
    assert_eq!(trend(&noisy).unwrap().growth(0.0), Growth::Stable);
    let rising: Vec<_> = (0..10)
        .map(|i| (f64::from(i), f64::from(100 * i + i % 3)))
        .collect();
    assert_eq!(trend(&rising).unwrap().growth(1.0), Growth::Growing);
    assert_eq!(trend(&rising).unwrap().growth(1e4), Growth::Stable);
    assert_eq!(trend(&[(0.0, 1.0), (1.0, 2.0)]), None);
    assert_eq!(trend(&[(1.0, 1.0), (1.0, 2.0), (1.0, 3.0)]), None);
}

#[test]
fn batches_cover_all_points_once() {
    let points: Vec<_> = (0..23).map(|i| (f64::from(i), 1.0)).collect();
    let means = batch_means(&points, 10);
    assert_eq!(means.len(), 10);
    assert!(means.windows(2).all(|w| w[0].0 < w[1].0));
    assert!(means.iter().all(|m| m.1 == 1.0));
    assert_eq!(batch_means(&points[..3], 10), points[..3]);
}

/// Draws from a known log-normal: the interval covers the true median about 95 times in 100.
#[test]
fn the_interval_of_a_log_normal_covers_its_median() {
    use rand::{RngExt as _, SeedableRng as _};
    let mut random = rand_xoshiro::Xoshiro256PlusPlus::seed_from_u64(7);
    let mut covered = 0;
    for _ in 0..4000 {
        let draw: Vec<f64> = (0..3)
            .map(|_| {
                let (u, v): (f64, f64) = (random.random(), random.random());
                let normal = (-2.0 * (1.0 - u).ln()).sqrt() * (std::f64::consts::TAU * v).cos();
                (10.0 + 0.3 * normal).exp()
            })
            .collect();
        let interval = estimate(&sample(&draw), Scale::Logarithmic)
            .interval
            .unwrap();
        covered += usize::from(interval.low <= 10f64.exp() && 10f64.exp() <= interval.high);
    }
    let share = covered as f64 / 4000.0;
    assert!((0.935..0.965).contains(&share), "covered {share}");
}

proptest! {
    #[test]
    fn the_median_lies_in_its_interval(values in prop::collection::vec(0.0..1e9f64, 2..40), log: bool) {
        let scale = if log { Scale::Logarithmic } else { Scale::Linear };
        let estimate = estimate(&sample(&values), scale);
        let interval = estimate.interval.unwrap();
        let slack = 1e-9 * estimate.median.abs();
        prop_assert!(interval.low <= estimate.median + slack && estimate.median <= interval.high + slack);
        prop_assert!(interval.level >= LEVEL);
    }

    #[test]
    fn equal_values_have_no_width(value in 0.0..1e12f64, n in 2..12usize, log: bool) {
        let scale = if log { Scale::Logarithmic } else { Scale::Linear };
        let interval = estimate(&sample(&vec![value; n]), scale).interval.unwrap();
        prop_assert_eq!((interval.low, interval.high), (value, value));
    }

    #[test]
    fn a_unit_changes_nothing_but_the_scale(values in prop::collection::vec(1.0..1e6f64, 2..12)) {
        let scaled: Vec<f64> = values.iter().map(|v| v * 1000.0).collect();
        let (a, b) = (estimate(&sample(&values), Scale::Logarithmic), estimate(&sample(&scaled), Scale::Logarithmic));
        let (a, b) = (a.interval.unwrap(), b.interval.unwrap());
        prop_assert!((a.low * 1000.0 - b.low).abs() <= 1e-6 * b.low);
        prop_assert!((a.high * 1000.0 - b.high).abs() <= 1e-6 * b.high);
    }
}
