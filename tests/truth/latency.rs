//! Latency of requests.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::sleep;
use std::time::Duration;

use sweep::units::{Micros, RatePerSecond};

use crate::job::{assert_near, job, load, ms, run, tls, tls_settings};
use crate::server::{Identity, over_tls, plain};

#[test]
fn a_constant_delay_is_reported_as_it_is() {
    let server = plain(|| sleep(Duration::from_millis(500)));
    let mut job = job(server.address, load());
    job.load.rate = RatePerSecond(20.0);
    job.load.connections = 20;
    let report = run(&job);
    assert_eq!((report.scheduled, report.requests), (40, 40), "{report:#?}");
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
    assert_eq!(report.requests, 100, "{report:#?}");
    let handshake = &report.handshake;
    assert_eq!(
        (handshake.scheduled, handshake.completed),
        (50, 50),
        "{report:#?}"
    );
    assert_eq!((handshake.full, handshake.resumed), (50, 0));
    assert_eq!(handshake.syn_retries.get(&0), Some(&50));
    assert_eq!(handshake.settings.count(), 0);
    let negotiated: Vec<&String> = report.negotiated.keys().collect();
    assert_eq!(negotiated, ["TLSv1_3 TLS13_AES_256_GCM_SHA384 X25519 full"]);
}
