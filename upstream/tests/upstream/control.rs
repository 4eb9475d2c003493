//! The control port.

use serde_json::json;
use sweep_upstream::monotonic_ns;

use crate::client::{Answer, Raw, get, server};

fn reset(raw: &mut Raw) -> Answer {
    raw.send("POST /reset HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n");
    raw.answer()
}

#[test]
fn statistics_are_unknown_until_something_was_served() {
    let server = server(|_| {});
    let addr = server.control_addr().expect("a control port");
    let stats = get(addr, "/stats");
    assert_eq!(stats.header("content-type"), Some("application/json"));
    let stats = stats.json();
    assert_eq!(stats["requests"], 0);
    for key in [
        "delay_p50_us",
        "delay_p99_us",
        "delay_max_us",
        "late_p50_us",
    ] {
        assert!(
            stats[key].is_null() && stats.get(key).is_some(),
            "{key}: {stats}"
        );
    }
}

#[test]
fn a_reset_tells_of_the_window_that_it_ends() {
    let server = server(|_| {});
    let mut control = Raw::connect(server.control_addr().expect("a control port"));
    for _ in 0..7 {
        get(server.addr(), "/delay/20ms");
    }
    assert_eq!(control.get("/stats").json()["requests"], 7);
    let ended = reset(&mut control);
    assert_eq!((ended.status, &ended.json()["requests"]), (200, &json!(7)));
    assert!(ended.json()["delay_p50_us"].as_u64() >= Some(20_000));
    assert_eq!(control.get("/stats").json()["requests"], 0);
    assert_eq!(control.get("/arrivals").body, b"[]");

    get(server.addr(), "/");
    let stats = control.get("/stats").json();
    assert_eq!(stats["requests"], 1);
    assert!(stats["delay_max_us"].as_u64() < Some(20_000), "{stats}");
}

#[test]
fn arrivals_lie_between_the_client_s_own_stamps() {
    let server = server(|config| config.record_arrivals = 3);
    let mut control = Raw::connect(server.control_addr().expect("a control port"));
    let mut raw = Raw::connect(server.addr());
    let mut stamps = vec![monotonic_ns()];
    for _ in 0..5 {
        raw.get("/");
        stamps.push(monotonic_ns());
    }
    let arrivals: Vec<u64> =
        serde_json::from_value(control.get("/arrivals").json()).expect("numbers");
    assert_eq!(arrivals.len(), 3, "as many as there is room for");
    for (arrival, between) in arrivals.iter().zip(stamps.windows(2)) {
        assert!((between[0]..=between[1]).contains(arrival));
    }
    assert_eq!(server.arrivals(), arrivals);
    assert_eq!(control.get("/stats").json()["arrivals"], 5);

    let binary: Vec<u64> = control
        .get("/arrivals?format=binary")
        .body
        .chunks_exact(8)
        .map(|bytes| u64::from_le_bytes(bytes.try_into().expect("eight bytes")))
        .collect();
    assert_eq!(binary, arrivals);
}

#[test]
fn the_histogram_holds_what_was_served() {
    let server = server(|_| {});
    let mut control = Raw::connect(server.control_addr().expect("a control port"));
    let empty = control.get("/histogram").json();
    get(server.addr(), "/");
    let one = control.get("/histogram").json();
    assert_eq!(one["overflow"], 0);
    assert_ne!(one["hdr_v2"], empty["hdr_v2"]);
}

#[test]
fn what_it_does_not_know_is_refused() {
    let server = server(|_| {});
    let mut control = Raw::connect(server.control_addr().expect("a control port"));
    let unknown = control.get("/");
    assert_eq!(unknown.status, 404);
    assert!(String::from_utf8_lossy(&unknown.body).contains("GET /stats"));
    let wrong = control.get("/reset");
    assert_eq!((wrong.status, wrong.header("allow")), (405, Some("POST")));
    assert_eq!(control.get("/arrivals?format=xml").status, 400);
    // The data port has none of it.
    assert_eq!(get(server.addr(), "/stats").body.len(), 1024);
}
