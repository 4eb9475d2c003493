//! Pace, by the stamps of the server itself.

use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use sweep::agent::job::Phase;
use sweep::load::Generator;
use sweep::units::{Micros, RatePerSecond};
use sweep_upstream::{Config, DelayModel, monotonic_ns, serve};

use crate::job::{assert_near, job, load, ms};

/// Arrivals at the server within the window, in seconds since its start; and whether the generator says that it kept up.
fn arrivals(rate: f64, seconds: u64) -> (Vec<f64>, bool) {
    let server = serve(&Config {
        delay: DelayModel::Constant(Duration::ZERO),
        record_arrivals: 100_000,
        ..Config::default()
    })
    .unwrap();
    let mut job = job(server.addr(), load());
    job.load.rate = RatePerSecond(rate);
    job.warmup = Micros(500_000);
    job.duration = Micros(seconds * 1_000_000);
    let window = Mutex::new((0, 0));
    let report = Generator::new(&job)
        .unwrap()
        .run(
            &mut |phase| match phase {
                Phase::Measure => window.lock().unwrap().0 = monotonic_ns(),
                Phase::Drain => window.lock().unwrap().1 = monotonic_ns(),
                _ => {}
            },
            &AtomicBool::new(false),
        )
        .unwrap();
    assert_eq!(report.requests, (rate * seconds as f64).round() as u64);
    let (start, end) = *window.lock().unwrap();
    assert_near("window", (end - start) as f64 / 1e9, seconds as f64, 0.1);
    let stamps = server
        .arrivals()
        .iter()
        .filter(|at| (start..end).contains(*at))
        .map(|at| (at - start) as f64 / 1e9)
        .collect();
    (stamps, report.bottlenecks.is_empty())
}

#[test]
fn the_rate_at_the_server_is_the_rate_asked_for() {
    for (rate, seconds) in [(0.5, 6), (2.0, 2), (99.0, 2), (101.0, 2), (1_000.0, 2)] {
        let (stamps, kept_up) = arrivals(rate, seconds);
        if !kept_up && rate > 10.0 {
            // Beside other tests on few cores it may fall behind, but never without saying so.
            continue;
        }
        // One at each edge may lie on the other side of it; more when the machine is busy with other tests.
        let slack = 1.0 + rate * 0.02;
        assert_near(
            "arrivals",
            stamps.len() as f64,
            rate * seconds as f64,
            slack,
        );
        assert!(stamps[0] <= 1.0 / rate + 0.05, "no gap at the start");
        let mut gaps: Vec<f64> = stamps.windows(2).map(|pair| pair[1] - pair[0]).collect();
        gaps.sort_by(f64::total_cmp);
        assert_near("median gap", gaps[gaps.len() / 2] * rate, 1.0, 0.2);
    }
}

#[test]
fn the_delay_of_the_upstream_is_the_response_time() {
    let server = serve(&Config {
        delay: DelayModel::Constant(Duration::from_millis(5)),
        ..Config::default()
    })
    .unwrap();
    let mut job = job(server.addr(), load());
    job.load.rate = RatePerSecond(500.0);
    let report = crate::job::run(&job);
    let served = server.shutdown();
    let served_p50 = served.delay_p50_us.unwrap() as f64 / 1000.0;
    assert_near("p50", ms(&report.response_time, 0.5), served_p50, 1.5);
}
