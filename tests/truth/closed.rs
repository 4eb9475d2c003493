//! Closed loop: users that wait for answers.

use std::thread::sleep;
use std::time::Duration;

use sweep::load::report::{BottleneckKind, ErrorClass};
use sweep::spec::settings::LoadMode;
use sweep::units::Micros;

use crate::job::{assert_near, faults, job, load, ms, run, tell};
use crate::server::plain;

#[test]
fn users_and_latency_make_the_throughput() {
    let server = plain(|| sleep(Duration::from_millis(20)));
    let mut job = job(server.address, load());
    job.load.mode = LoadMode::Closed;
    job.load.users = 6;
    job.load.connections = 6;
    let report = run(&job);
    assert_eq!(report.offered_rate_rps, None);
    assert_near("achieved", report.achieved_rate_rps, 6.0 / 0.0205, 25.0);
    assert_near("response", ms(&report.response_time, 0.5), 20.5, 3.0);
    assert_near("users", report.littles_law_users.unwrap(), 6.0, 0.3);
    assert_near("in flight", report.in_flight_mean.unwrap(), 6.0, 0.3);
    assert_eq!(faults(&report), [], "{}", tell(&report));
}

#[test]
fn more_users_than_connections_wait_and_the_wait_counts() {
    let server = plain(|| sleep(Duration::from_millis(20)));
    let mut job = job(server.address, load());
    job.load.mode = LoadMode::Closed;
    job.load.users = 10;
    job.load.connections = 5;
    let report = run(&job);
    assert_near("response", ms(&report.response_time, 0.5), 41.0, 5.0);
    assert_near("service", ms(&report.service_time, 0.5), 20.5, 3.0);
    assert_near("users", report.littles_law_users.unwrap(), 10.0, 0.5);
    assert_near("in flight", report.in_flight_mean.unwrap(), 5.0, 0.3);
}

#[test]
fn failures_take_users_time_too() {
    let server = plain(|| sleep(Duration::from_millis(20)));
    let mut job = job(server.address, load());
    job.load.mode = LoadMode::Closed;
    job.load.users = 4;
    job.load.connections = 4;
    job.load.timeout = Micros(10_000);
    let report = run(&job);
    // An answer may come late and still before the clock is looked at.
    assert!(report.requests < report.errors[&ErrorClass::Timeout] / 10);
    assert!(
        report.errors[&ErrorClass::Timeout] > 100,
        "{}",
        tell(&report)
    );
    assert!(
        report
            .bottlenecks
            .iter()
            .all(|found| found.kind != BottleneckKind::LittlesLaw),
        "{}",
        tell(&report)
    );
}
