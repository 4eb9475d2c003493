//! How connections are used.

use std::sync::atomic::Ordering;

use sweep::load::report::{BottleneckKind, ErrorClass};
use sweep::spec::settings::LoadMode;
use sweep::units::{Micros, RatePerSecond};

use crate::job::{assert_near, faults, job, load, ms, run, tell, tls, tls_settings};
use crate::server::{Delays, Identity, over_tls, phased, plain};

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
        server_hello: std::time::Duration::from_millis(200),
        ..Delays::default()
    };
    let server = phased(identity.server_config(b"http/1.1", false), delays);
    let mut job = job(server.address, load());
    job.tls = Some(tls(&identity, tls_settings()));
    job.load.requests_per_connection = Some(1);
    job.load.connections = 60;
    let report = run(&job);
    assert!(server.connections.load(Ordering::SeqCst) >= 200);
    assert_eq!(
        (report.requests, report.errors.len()),
        (200, 0),
        "{}",
        tell(&report)
    );
    assert_near("response", ms(&report.response_time, 0.5), 220.0, 60.0);
    assert_near("service", ms(&report.service_time, 0.5), 220.0, 60.0);
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

/// Runs this test again in a process of its own behind a shell command; `None` in that process.
fn apart(test: &str, prepare: &str) -> Option<std::process::ExitStatus> {
    if std::env::var_os("SWEEP_TEST_APART").is_some() {
        return None;
    }
    let status = std::process::Command::new("unshare")
        .args(["-rn", "sh", "-c"])
        .arg(format!(
            "{prepare}; exec \"$0\" --exact connections::{test}"
        ))
        .arg(std::env::current_exe().unwrap())
        .env("SWEEP_TEST_APART", "1")
        .status();
    Some(status.unwrap())
}

/// Sockets in TIME_WAIT towards a port.
fn in_time_wait(port: u16) -> usize {
    let table = fs_err::read_to_string("/proc/net/tcp").unwrap();
    let (remote, time_wait) = (format!(":{port:04X}"), "06");
    table
        .lines()
        .filter(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            fields[2].ends_with(&remote) && fields[3] == time_wait
        })
        .count()
}

#[test]
fn closed_connections_keep_no_port() {
    let identity = Identity::new();
    let server = over_tls(identity.server_config(b"http/1.1", false), || {});
    let mut job = job(server.address, load());
    job.tls = Some(tls(&identity, tls_settings()));
    job.load.handshake_rate = RatePerSecond(200.0);
    let report = run(&job);
    assert_eq!(report.handshake.completed, 400, "{}", tell(&report));
    assert_eq!(in_time_wait(server.address.port()), 0);
}

#[test]
fn sixteen_source_addresses_stretch_the_ports() {
    // 32 ports in a network namespace of its own: 16 addresses make 512 connections to one server, and no more.
    let few_ports = "ip link set lo up; echo 40000 40031 > /proc/sys/net/ipv4/ip_local_port_range";
    if let Some(status) = apart("sixteen_source_addresses_stretch_the_ports", few_ports) {
        assert!(status.success());
        return;
    }
    let server = plain(|| {});
    let mut job = job(server.address, load());
    job.load.connections = 400;
    job.load.rate = RatePerSecond(400.0);
    job.duration = Micros(1_000_000);
    let report = run(&job);
    assert_eq!(
        (report.requests, report.connection_errors.len()),
        (400, 0),
        "{}",
        tell(&report)
    );
    assert_eq!(server.connections.load(Ordering::SeqCst), 400);
    job.load.connections = 600;
    let report = run(&job);
    assert!(
        report.connection_errors[&ErrorClass::PortExhausted] > 0,
        "{}",
        tell(&report)
    );
    assert!(faults(&report).contains(&BottleneckKind::PortsExhausted));
}

#[test]
fn running_out_of_descriptors_is_the_generators_fault() {
    let test = "running_out_of_descriptors_is_the_generators_fault";
    if let Some(status) = apart(test, "ip link set lo up; ulimit -n 40") {
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
    assert!(faults(&report).contains(&BottleneckKind::DescriptorsExhausted));
}
