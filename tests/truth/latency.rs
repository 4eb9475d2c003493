//! Latency of requests.

use std::io::{Read as _, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use sweep::spec::settings::Arrivals;
use sweep::units::{Bytes, Micros, RatePerSecond};

use crate::job::{assert_near, faults, job, load, ms, run, tell, tls, tls_settings};
use crate::server::{Identity, OK, Server, over_tls, plain};

#[test]
fn a_constant_delay_is_reported_as_it_is() {
    let server = plain(|| sleep(Duration::from_millis(500)));
    let mut job = job(server.address, load());
    job.load.rate = RatePerSecond(20.0);
    job.load.connections = 20;
    let report = run(&job);
    assert_eq!(
        (report.scheduled, report.requests),
        (40, 40),
        "{}",
        tell(&report)
    );
    for quantile in [0.5, 0.99, 1.0] {
        assert_near("response", ms(&report.response_time, quantile), 505.0, 25.0);
        assert_near("service", ms(&report.service_time, quantile), 505.0, 25.0);
    }
    assert_near("in flight", report.in_flight_mean.unwrap(), 10.0, 0.8);
}

#[test]
fn one_slow_answer_in_a_hundred_is_the_last_percent() {
    let count = AtomicU64::new(0);
    let server = plain(move || {
        if count.fetch_add(1, Ordering::SeqCst) % 100 == 50 {
            sleep(Duration::from_millis(50));
        }
    });
    let mut job = job(server.address, load());
    job.load.rate = RatePerSecond(500.0);
    job.load.connections = 20;
    let report = run(&job);
    assert_eq!(report.requests, 1000);
    assert!(ms(&report.response_time, 0.95) < 25.0);
    assert_near("p99.5", ms(&report.response_time, 0.995), 52.0, 12.0);
    let slow = report.response_time.inner().count_between(45_000, 200_000);
    assert!((10..=30).contains(&slow), "{slow} slow answers of 10");
}

#[test]
fn tls_and_the_handshake_stream_work_side_by_side() {
    let identity = Identity::new();
    let server = over_tls(identity.server_config(b"http/1.1", false), || {});
    let mut job = job(server.address, load());
    job.tls = Some(tls(&identity, tls_settings()));
    job.load.handshake_rate = RatePerSecond(50.0);
    job.duration = Micros(1_000_000);
    let report = run(&job);
    assert_eq!(report.requests, 100, "{}", tell(&report));
    let handshake = &report.handshake;
    assert_eq!(
        (handshake.scheduled, handshake.completed),
        (50, 50),
        "{}",
        tell(&report)
    );
    assert_eq!((handshake.full, handshake.resumed), (50, 0));
    assert_eq!(handshake.syn_retries.get(&0), Some(&50));
    assert_eq!(handshake.settings.count(), 0);
    let negotiated: Vec<&String> = report.negotiated.keys().collect();
    assert_eq!(negotiated, ["TLSv1_3 TLS13_AES_128_GCM_SHA256 X25519 full"]);
}

/// A server that answers at once in the first half of every 10 s since its start, and not at all in the second.
#[test]
fn a_server_that_stops_for_half_of_the_time() {
    let began = Instant::now();
    let server = plain(move || {
        let into = began.elapsed().as_millis() % 10_000;
        if into >= 5_000 {
            sleep(Duration::from_millis(10_000 - into as u64));
        }
    });
    let mut job = job(server.address, load());
    job.load.rate = RatePerSecond(100.0);
    job.load.connections = 10;
    job.warmup = Micros(0);
    job.duration = Micros(10_000_000);
    let report = run(&job);
    assert_eq!(report.requests, 1000, "{}", tell(&report));
    // Requests intended in the pause wait evenly 0 to 5 s.
    assert!(ms(&report.response_time, 0.48) < 50.0);
    assert_near("p75", ms(&report.response_time, 0.75), 2_500.0, 150.0);
    assert_near("p99", ms(&report.response_time, 0.99), 4_900.0, 150.0);
    assert_near("max", ms(&report.response_time, 1.0), 5_000.0, 150.0);
    // Only the ten requests that were on their way were served slowly.
    let slow = report
        .service_time
        .inner()
        .count_between(4_000_000, 6_000_000);
    assert!((8..=12).contains(&slow), "{slow} slow services");
    assert!(ms(&report.service_time, 0.98) < 100.0);
    assert!(
        ms(&report.pacing_lag, 0.9) < 20.0,
        "waiting was not the generator's fault"
    );
    let deepest = report
        .backlog
        .iter()
        .map(|sample| sample.unsent)
        .max()
        .unwrap();
    assert_near("backlog", deepest as f64, 490.0, 15.0);
    assert_eq!(faults(&report), []);
}

#[test]
fn at_half_the_capacity_waiting_grows_and_service_does_not() {
    let server = plain(|| sleep(Duration::from_millis(20)));
    let mut job = job(server.address, load());
    // Two connections at 20 ms each serve 100/s at most (a little less for the sleep's overshoot); 200/s are offered.
    job.load.rate = RatePerSecond(200.0);
    job.load.connections = 2;
    job.warmup = Micros(0);
    job.duration = Micros(3_000_000);
    job.drain = Micros(10_000_000);
    let report = run(&job);
    assert_eq!(report.requests, 600, "{}", tell(&report));
    assert_near("achieved", report.achieved_rate_rps, 97.0, 6.0);
    let longest = ms(&report.response_time, 1.0);
    assert_near("longest", longest, 3_100.0, 350.0);
    for quantile in [0.25, 0.5, 0.75] {
        let linear = quantile * longest;
        assert_near("linear", ms(&report.response_time, quantile), linear, 120.0);
    }
    assert_near("service", ms(&report.service_time, 0.9), 21.0, 4.0);
    assert_near("in flight", report.in_flight_mean.unwrap(), 2.0, 0.1);
}

#[test]
fn poisson_arrivals_keep_the_rate_and_may_bunch() {
    let server = plain(|| {});
    let mut job = job(server.address, load());
    job.load.arrivals = Arrivals::Poisson;
    job.load.rate = RatePerSecond(1000.0);
    let report = run(&job);
    // Four standard deviations.
    assert_near(
        "requests",
        report.requests as f64,
        2000.0,
        4.0 * 2000f64.sqrt(),
    );
    job.seed = 2;
    assert_ne!(
        run(&job).scheduled,
        report.scheduled,
        "another seed, other arrivals"
    );
}

#[test]
fn threads_share_the_schedule() {
    let server = plain(|| {});
    let mut job = job(server.address, load());
    job.load.threads = 3;
    job.load.connections = 7;
    job.load.rate = RatePerSecond(999.0);
    let report = run(&job);
    assert_eq!(
        (report.scheduled, report.requests),
        (1998, 1998),
        "{}",
        tell(&report)
    );
    assert_eq!(server.connections.load(Ordering::SeqCst), 7);
    assert!(report.generator_cpu_usec.unwrap() > 0);
}

#[test]
fn a_request_is_sent_as_asked() {
    let server = Server::start(|mut stream, _| {
        let mut seen = Vec::new();
        let expected = b"PUT /route?x=1 HTTP/1.1\r\nHost: proxy.test\r\nx-a: b\r\nContent-Length: 30\r\n\r\nabcdefghijklmnopqrstuvwxyzabcd";
        let mut buffer = [0; 4096];
        while let Ok(count) = stream.read(&mut buffer) {
            seen.extend_from_slice(&buffer[..count]);
            if count == 0 || !expected.starts_with(&seen) {
                return;
            }
            if seen == expected {
                seen.clear();
                stream.write_all(OK).unwrap();
            }
        }
    });
    let mut job = job(server.address, load());
    job.load.method = "PUT".into();
    job.load.path = "/route?x=1".into();
    job.load.headers = [("x-a".to_owned(), "b".to_owned())].into();
    job.load.body = Bytes(30);
    job.duration = Micros(500_000);
    let report = run(&job);
    assert_eq!(
        (report.requests, report.errors.len()),
        (50, 0),
        "{}",
        tell(&report)
    );
}
