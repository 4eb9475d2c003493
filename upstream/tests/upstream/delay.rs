//! That delays are what was asked: never less, and in their distribution. How much more they are depends on the machine,
//! so the bounds above are wide here; see `examples/paced.rs` for a measurement.

use std::time::{Duration, Instant};

use sweep_upstream::{Config, DelayModel};

use crate::client::{Raw, exchange, http2, server};

#[test]
fn never_less_than_asked() {
    let server = server(|config| config.delay = DelayModel::Constant(Duration::from_millis(50)));
    let mut raw = Raw::connect(server.addr());
    for _ in 0..10 {
        let start = Instant::now();
        assert_eq!(raw.get("/").status, 200);
        assert!(start.elapsed() >= Duration::from_millis(50));
    }
    let report = server.report();
    assert_eq!((report.requests, report.delay_asked_us), (10, Some(50_000)));
    let (p50, max) = (report.delay_p50_us, report.delay_max_us);
    assert!(p50 >= Some(50_000) && p50 < Some(250_000), "{report:?}");
    assert!(max >= p50 && report.delay_p99_us == max, "{report:?}");
}

#[test]
fn a_short_delay_is_not_rounded_up_to_a_millisecond() {
    let server = server(|config| config.delay = DelayModel::Constant(Duration::from_micros(200)));
    let mut raw = Raw::connect(server.addr());
    for _ in 0..200 {
        raw.get("/");
    }
    let report = server.report();
    assert!(report.delay_p50_us >= Some(200), "{report:?}");
    // A timer of 1 ms cannot do this even on an idle machine.
    assert!(report.delay_p50_us < Some(1_000), "{report:?}");
}

#[test]
fn the_path_decides_for_its_request_alone() {
    let server = server(|_| {});
    let mut raw = Raw::connect(server.addr());
    let start = Instant::now();
    assert_eq!(raw.get("/delay/300ms/size/3").body.len(), 3);
    assert!(start.elapsed() >= Duration::from_millis(300));
    let start = Instant::now();
    assert_eq!(raw.get("/").body.len(), 1024);
    assert!(start.elapsed() < Duration::from_millis(300));
    // Lateness is against what each request asked.
    assert!(server.report().late_max_us < Some(300_000));
}

async fn delays(model: DelayModel, count: usize) -> Vec<Duration> {
    let server = server(|config: &mut Config| {
        config.delay = model;
        config.body = 0;
    });
    let sender = http2(server.addr()).await;
    let requests: Vec<_> = (0..count)
        .map(|_| {
            let sender = sender.clone();
            tokio::spawn(async move {
                let start = Instant::now();
                exchange(&sender, "GET", "/", Vec::new()).await;
                start.elapsed()
            })
        })
        .collect();
    let mut delays = Vec::new();
    for request in requests {
        delays.push(request.await.expect("request"));
    }
    delays
}

#[tokio::test]
async fn a_bimodal_delay_keeps_its_share() {
    let (low, high) = (Duration::ZERO, Duration::from_millis(500));
    let high_share = 0.25;
    let model = DelayModel::Bimodal {
        low,
        high,
        high_share,
    };
    let slow = delays(model, 400).await;
    let slow = slow.iter().filter(|delay| **delay >= high).count();
    // 100 expected, standard deviation 8.7.
    assert!((50..=150).contains(&slow), "{slow} of 400 were slow");
}

#[tokio::test]
async fn a_uniform_delay_spreads_over_its_range() {
    let (low, high) = (Duration::from_millis(100), Duration::from_millis(600));
    let mut delays = delays(DelayModel::Uniform { low, high }, 200).await;
    delays.sort_unstable();
    assert!(delays[0] >= low);
    // 100 of 200 expected below the middle, standard deviation 7; lateness can only lower the count.
    let below = delays
        .iter()
        .filter(|delay| **delay < (low + high) / 2)
        .count();
    assert!(
        (30..=150).contains(&below),
        "{below} of 200 were in the lower half"
    );
}
