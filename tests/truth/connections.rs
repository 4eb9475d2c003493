//! How connections are used.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use sweep::load::report::{BottleneckKind, ErrorClass};
use sweep::spec::settings::LoadMode;
use sweep::units::{Micros, RatePerSecond};

use crate::job::{assert_near, faults, job, load, ms, run, tell, tls, tls_settings};
use crate::server::{Delays, Identity, phased, plain};

#[test]
fn persistent_connections_are_opened_once() {
    let server = plain(|| {});
    let report = run(&job(server.address, load()));
    assert_eq!(report.requests, 200);
    assert_eq!(server.connections.load(Ordering::SeqCst), 8);
    assert_eq!(
        report.connections_opened, 0,
        "all were opened in the warm-up"
    );
}

#[test]
fn a_connection_is_replaced_after_its_share_of_requests() {
    let server = plain(|| {});
    let mut job = job(server.address, load());
    job.load.requests_per_connection = Some(10);
    job.warmup = Micros(0);
    let report = run(&job);
    assert_eq!(
        (report.requests, report.errors.len()),
        (200, 0),
        "{}",
        tell(&report)
    );
    // 200 requests rotate over 8 connections: 25 each, so three sockets for every place.
    assert_eq!(server.connections.load(Ordering::SeqCst), 24);
}

#[test]
fn a_new_connection_per_request_counts_its_handshake() {
    let identity = Identity::new();
    let delays = Delays {
        server_hello: std::time::Duration::from_millis(50),
        ..Delays::default()
    };
    let server = phased(identity.server_config(b"http/1.1", false), delays);
    let mut job = job(server.address, load());
    job.tls = Some(tls(&identity, tls_settings()));
    job.load.requests_per_connection = Some(1);
    let report = run(&job);
    assert_eq!(
        (report.requests, report.errors.len()),
        (200, 0),
        "{}",
        tell(&report)
    );
    // Opened in the window, by the clock; the first and the last may lie across its edges.
    assert_near("opened", report.connections_opened as f64, 200.0, 3.0);
    assert_near("response", ms(&report.response_time, 0.5), 54.0, 10.0);
    assert_near("service", ms(&report.service_time, 0.5), 54.0, 10.0);
    assert_eq!(faults(&report), []);
}

#[test]
fn refused_connections_do_not_spin_a_closed_loop() {
    let address = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let mut job = job(address, load());
    job.load.mode = LoadMode::Closed;
    job.load.users = 8;
    job.load.requests_per_connection = Some(1);
    job.duration = Micros(500_000);
    let report = run(&job);
    assert_eq!(report.requests, 0);
    let refused = report.errors[&ErrorClass::ConnectRefused];
    assert!((50..=4_000).contains(&refused), "{}", tell(&report));
}

#[test]
fn running_out_of_descriptors_is_the_generators_fault() {
    // In a process of its own, whose limit is lowered.
    if std::env::var_os("SWEEP_TEST_FEW_DESCRIPTORS").is_none() {
        let status = std::process::Command::new("sh")
            .args(["-c", "ulimit -n 40; exec \"$0\" --exact connections::running_out_of_descriptors_is_the_generators_fault"])
            .arg(std::env::current_exe().unwrap())
            .env("SWEEP_TEST_FEW_DESCRIPTORS", "1")
            .status()
            .unwrap();
        assert!(status.success());
        return;
    }
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut job = job(silent.local_addr().unwrap(), load());
    job.load.handshake_rate = RatePerSecond(100.0);
    job.duration = Micros(1_000_000);
    job.drain = Micros(100_000);
    let report = run(&job);
    assert!(report.handshake.errors[&ErrorClass::DescriptorsExhausted] > 50);
    let kinds: BTreeMap<_, _> = report
        .bottlenecks
        .iter()
        .map(|found| (format!("{:?}", found.kind), found.detail.clone()))
        .collect();
    assert!(
        kinds.contains_key(&format!("{:?}", BottleneckKind::DescriptorsExhausted)),
        "{kinds:?}"
    );
}
