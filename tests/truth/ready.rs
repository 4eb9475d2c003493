//! Readiness, and ending early.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use sweep::load::{Generator, probe_ready};
use sweep::units::{Micros, RatePerSecond};

use crate::job::{assert_near, job, load, tls, tls_settings};
use crate::server::{Identity, Server, over_tls, plain, read_request};

#[test]
fn ready_is_an_answer_of_2xx_not_a_port() {
    let count = AtomicU64::new(0);
    let server = Server::start(move |mut stream, _| {
        use std::io::Write as _;
        while read_request(&mut stream) {
            let status = if count.fetch_add(1, Ordering::SeqCst) < 3 {
                503
            } else {
                200
            };
            let _ = write!(stream, "HTTP/1.1 {status} x\r\nContent-Length: 0\r\n\r\n");
        }
    });
    let job = job(server.address, load());
    let deadline = Instant::now() + Duration::from_secs(10);
    assert!(probe_ready(&job, deadline, || false).unwrap());
    assert_eq!(server.connections.load(Ordering::SeqCst), 4);
}

#[test]
fn ready_over_tls_once_somebody_listens() {
    let identity = Identity::new();
    let address = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let mut job = job(address, load());
    job.tls = Some(tls(&identity, tls_settings()));
    let config = identity.server_config(b"http/1.1", false);
    let started = Instant::now();
    let server = thread::spawn(move || {
        thread::sleep(Duration::from_millis(300));
        let config = Arc::new(config);
        Server::on(TcpListener::bind(address).unwrap(), move |stream, _| {
            let connection = rustls::ServerConnection::new(config.clone()).unwrap();
            crate::server::serve(rustls::StreamOwned::new(connection, stream), || {});
        })
    });
    assert!(probe_ready(&job, started + Duration::from_secs(10), || false).unwrap());
    assert!(started.elapsed() >= Duration::from_millis(300));
    drop(server.join().unwrap());
}

#[test]
fn not_ready_by_the_deadline_or_when_stopped() {
    let server = plain(|| thread::sleep(Duration::from_secs(30)));
    let job = job(server.address, load());
    let started = Instant::now();
    assert!(!probe_ready(&job, started + Duration::from_millis(300), || false).unwrap());
    assert_near("deadline", started.elapsed().as_secs_f64(), 0.3, 0.1);
    let started = Instant::now();
    let stop = || started.elapsed() > Duration::from_millis(200);
    assert!(!probe_ready(&job, started + Duration::from_secs(60), stop).unwrap());
    assert!(started.elapsed() < Duration::from_secs(2));
}

#[test]
fn a_run_that_is_stopped_reports_the_window_so_far() {
    let identity = Identity::new();
    let server = over_tls(identity.server_config(b"http/1.1", false), || {});
    let mut job = job(server.address, load());
    job.tls = Some(tls(&identity, tls_settings()));
    job.load.rate = RatePerSecond(200.0);
    job.duration = Micros(60_000_000);
    let stop = Arc::new(AtomicBool::new(false));
    let stopper = stop.clone();
    thread::spawn(move || {
        thread::sleep(Duration::from_millis(1200));
        stopper.store(true, Ordering::SeqCst);
    });
    let mut phases = Vec::new();
    let started = Instant::now();
    let report = Generator::new(&job)
        .unwrap()
        .run(&mut |phase| phases.push((phase, started.elapsed())), &stop)
        .unwrap();
    assert!(started.elapsed() < Duration::from_secs(5));
    assert_near("window", report.window_us as f64 / 1e6, 1.0, 0.1);
    assert_near("requests", report.requests as f64, 200.0, 25.0);
    assert_near("achieved", report.achieved_rate_rps, 200.0, 20.0);
    assert_eq!(phases.len(), 3, "{phases:?}");
}
