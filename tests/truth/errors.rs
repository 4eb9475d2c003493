//! Servers that misbehave: every failure has its class, and none is a latency.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread::sleep;
use std::time::Duration;

use rustix::net::sockopt::set_socket_linger;
use sweep::agent::job::Job;
use sweep::load::report::{ErrorClass, LoadReport};
use sweep::units::{Micros, RatePerSecond};

use crate::job::{assert_near, job, load, ms, run, tell, tls, tls_settings};
use crate::server::{Identity, OK, Server, over_tls, plain, read_request};

fn short(job: &mut Job) {
    job.warmup = Micros(100_000);
    job.duration = Micros(500_000);
    job.drain = Micros(500_000);
    job.load.handshake_rate = RatePerSecond(20.0);
}

/// All requests and all handshakes failed with one class.
#[track_caller]
fn assert_all(report: &LoadReport, class: ErrorClass, requests: u64) {
    assert_eq!(
        report.errors,
        BTreeMap::from([(class, requests)]),
        "{}",
        tell(report)
    );
    assert_eq!(
        report.response_time.count() + report.service_time.count(),
        0
    );
    let handshakes = report.handshake.errors.get(&class).copied().unwrap_or(0);
    assert_eq!(handshakes, report.handshake.scheduled, "{}", tell(report));
    assert_eq!(report.handshake.total.count(), 0);
}

#[test]
fn a_refusing_server() {
    let address = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let mut job = job(address, load());
    short(&mut job);
    let report = run(&job);
    assert_all(&report, ErrorClass::ConnectRefused, 50);
    assert_eq!(report.sent, 0);
    assert!(report.connection_errors[&ErrorClass::ConnectRefused] >= 50);
    // Far more requests than attempts to connect: none waits for a connection that nobody opens.
    job.load.connections = 1;
    job.load.rate = RatePerSecond(10_000.0);
    assert_all(&run(&job), ErrorClass::ConnectRefused, 5_000);
}

#[test]
fn a_resetting_server() {
    let server = Server::start(|mut stream, _| {
        read_request(&mut stream);
        set_socket_linger(&stream, Some(Duration::ZERO)).unwrap();
    });
    let mut job = job(server.address, load());
    short(&mut job);
    assert_all(&run(&job), ErrorClass::Reset, 50);
}

#[test]
fn a_server_that_closes_instead_of_answering() {
    let server = Server::start(|mut stream, _| {
        read_request(&mut stream);
    });
    let mut job = job(server.address, load());
    short(&mut job);
    assert_all(&run(&job), ErrorClass::Closed, 50);
}

#[test]
fn a_server_without_tls_where_tls_should_be() {
    let server = Server::start(|mut stream, _| {
        let mut buffer = [0; 1024];
        let _ = stream.read(&mut buffer);
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
        let _ = stream.read(&mut buffer);
    });
    let identity = Identity::new();
    let mut job = job(server.address, load());
    job.tls = Some(tls(&identity, tls_settings()));
    short(&mut job);
    assert_all(&run(&job), ErrorClass::Tls, 50);
}

#[test]
fn a_certificate_of_another_ca() {
    let (identity, other) = (Identity::new(), Identity::new());
    for verify in [
        sweep::spec::settings::Verify::Ca,
        sweep::spec::settings::Verify::Pin,
    ] {
        let server = over_tls(identity.server_config(b"http/1.1", false), || {});
        let mut job = job(server.address, load());
        let mut settings = tls_settings();
        settings.verify = verify;
        job.tls = Some(tls(&other, settings));
        short(&mut job);
        assert_all(&run(&job), ErrorClass::Tls, 50);
    }
}

#[test]
fn garbage_instead_of_http() {
    let server = Server::start(|mut stream, _| {
        while read_request(&mut stream) {
            let _ = stream.write_all(b"\x00\x01garbage\r\n\r\n");
        }
    });
    let mut job = job(server.address, load());
    short(&mut job);
    job.load.handshake_rate = RatePerSecond(0.0);
    assert_all(&run(&job), ErrorClass::Protocol, 50);
}

#[test]
fn a_half_closed_connection_still_gets_its_answer() {
    // The server ends its side after each answer: the answer counts, and the connection is replaced.
    let server = Server::start(|mut stream: TcpStream, _| {
        read_request(&mut stream);
        let _ = stream.write_all(OK);
        let _ = stream.shutdown(Shutdown::Write);
        let _ = stream.read(&mut [0; 64]);
    });
    let mut job = job(server.address, load());
    short(&mut job);
    let report = run(&job);
    assert_eq!(
        (report.requests, report.errors.len()),
        (50, 0),
        "{}",
        tell(&report)
    );
    assert!(report.connections_opened >= 40, "{}", tell(&report));
    assert_eq!(report.handshake.completed, 10);
}

#[test]
fn a_silent_server_times_out() {
    let server = Server::start(|mut stream, _| {
        read_request(&mut stream);
        let _ = stream.read(&mut [0; 64]);
    });
    let mut job = job(server.address, load());
    short(&mut job);
    job.load.timeout = Micros(100_000);
    job.load.connections = 50;
    job.drain = Micros(1_000_000);
    let report = run(&job);
    assert_all(&report, ErrorClass::Timeout, 50);
}

#[test]
fn what_is_still_open_at_the_end_is_censored_with_its_age() {
    let server = Server::start(|mut stream, _| {
        read_request(&mut stream);
        let _ = stream.read(&mut [0; 64]);
    });
    let mut job = job(server.address, load());
    short(&mut job);
    job.load.connections = 2;
    let report = run(&job);
    assert_all(&report, ErrorClass::Aborted, 50);
    assert_eq!(report.censored.count(), 50);
    assert_near("oldest", ms(&report.censored, 1.0), 1000.0, 30.0);
    assert_near("youngest", ms(&report.censored, 0.0), 510.0, 30.0);
    assert_near(
        "handshakes",
        ms(&report.handshake.censored, 1.0),
        1000.0,
        50.0,
    );
    let last = report.backlog.last().unwrap();
    // The warm-up's ten requests are in the queue too; two of all are in flight.
    assert_eq!(
        (last.unsent, last.in_flight),
        (58, 2),
        "{:?}",
        report.backlog
    );
}

#[test]
fn errors_of_http_are_counted_by_status() {
    let count = std::sync::atomic::AtomicU64::new(0);
    let server = Server::start(move |mut stream, _| {
        while read_request(&mut stream) {
            let answer: &[u8] = match count.fetch_add(1, std::sync::atomic::Ordering::SeqCst) % 2 {
                0 => b"HTTP/1.1 503 Unavailable\r\nContent-Length: 0\r\n\r\n",
                _ => b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
            };
            let _ = stream.write_all(answer);
        }
    });
    let mut job = job(server.address, load());
    short(&mut job);
    job.load.handshake_rate = RatePerSecond(0.0);
    let report = run(&job);
    assert_eq!(report.status_codes, BTreeMap::from([(404, 25), (503, 25)]));
    assert_eq!(
        report.errors,
        BTreeMap::from([(ErrorClass::Http4xx, 25), (ErrorClass::Http5xx, 25)])
    );
    assert_eq!(report.response_time.count(), 0);
    assert_near("achieved", report.achieved_rate_rps, 100.0, 3.0);
}

#[test]
fn a_hung_server_under_a_flood_costs_no_memory() {
    let server = plain(|| sleep(Duration::from_secs(60)));
    let mut job = job(server.address, load());
    short(&mut job);
    job.load.handshake_rate = RatePerSecond(0.0);
    job.load.rate = RatePerSecond(4_000_000.0);
    let before = resident_kib();
    let report = run(&job);
    let grown = resident_kib().saturating_sub(before);
    assert_eq!(
        report.errors,
        BTreeMap::from([(ErrorClass::Aborted, 2_000_000)])
    );
    assert!(grown < 64 * 1024, "grew by {grown} KiB");
}

fn resident_kib() -> u64 {
    let status = fs_err::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
