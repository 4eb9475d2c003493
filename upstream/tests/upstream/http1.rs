//! HTTP/1.1, byte by byte.

use std::time::{Duration, Instant};

use sweep_upstream::DelayModel;

use crate::client::{Raw, eventually, get, server};

#[test]
fn a_connection_serves_many_requests() {
    let server = server(|_| {});
    let mut raw = Raw::connect(server.addr());
    for size in [0, 1, 1024, 65_536, 65_537, 3_000_000, 10] {
        let answer = raw.get(&format!("/size/{size}"));
        assert_eq!((answer.status, answer.body.len()), (200, size));
        assert!(answer.body.iter().all(|b| *b == b'x'));
    }
    assert_eq!(raw.get("/any/other/path?size=7").body.len(), 1024);
    let report = server.report();
    assert_eq!((report.requests, report.connections), (8, 1));
}

#[test]
fn a_request_may_come_one_byte_at_a_time() {
    let server = server(|_| {});
    // The second begins like the preface of HTTP/2.
    for request in [
        "GET /size/5 HTTP/1.1\r\nhost: x\r\n\r\n",
        "PRI * HTTP/1.1\r\nhost: x\r\n\r\n",
        "PUT /size/5 HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n\r\nabc",
    ] {
        let mut raw = Raw::connect(server.addr());
        for byte in request.as_bytes() {
            raw.send([*byte]);
            // Lets the server read it alone, most of the time.
            std::thread::sleep(Duration::from_micros(300));
        }
        assert_eq!(raw.answer().status, 200, "{request}");
    }
}

#[test]
fn pipelined_requests_are_answered_in_turn_each_after_its_delay() {
    let server = server(|config| config.delay = DelayModel::Constant(Duration::from_millis(200)));
    let mut raw = Raw::connect(server.addr());
    let start = Instant::now();
    raw.send(
        [1, 2, 3]
            .map(|size| format!("GET /size/{size} HTTP/1.1\r\nhost: x\r\n\r\n"))
            .concat(),
    );
    for size in [1, 2, 3] {
        assert_eq!(raw.answer().body.len(), size);
        assert!(start.elapsed() >= Duration::from_millis(200) * size as u32);
    }
    let report = server.report();
    assert_eq!(report.requests, 3);
    assert!(report.delay_p50_us >= Some(200_000));
    // A delay that counted from the common read would make the third one 600 ms.
    assert!(report.delay_max_us < Some(500_000), "{report:?}");
}

#[test]
fn bodies_are_read_to_their_end() {
    let server = server(|_| {});
    let mut raw = Raw::connect(server.addr());
    let body = vec![b'b'; 5_000_000];
    raw.send(format!(
        "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n",
        body.len()
    ));
    raw.send(&body);
    assert_eq!(raw.answer().status, 200);

    raw.send("POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n");
    raw.send("5\r\nabcde\r\n0\r\n\r\n");
    assert_eq!(raw.answer().status, 200);

    raw.send("POST / HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 3\r\n\r\n");
    assert_eq!(raw.answer_without_body().status, 100);
    raw.send("abc");
    assert_eq!(raw.answer().status, 200);
    assert_eq!(server.report().requests, 3);
}

#[test]
fn the_delay_counts_from_the_end_of_the_body() {
    let server = server(|config| config.delay = DelayModel::Constant(Duration::from_millis(40)));
    let mut raw = Raw::connect(server.addr());
    raw.send("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\na");
    std::thread::sleep(Duration::from_millis(200));
    let end = Instant::now();
    raw.send("b");
    assert_eq!(raw.answer().status, 200);
    assert!(end.elapsed() >= Duration::from_millis(40));
    assert!(server.report().delay_max_us < Some(200_000));
}

#[test]
fn head_has_the_length_and_no_body() {
    let server = server(|_| {});
    let mut raw = Raw::connect(server.addr());
    raw.send("HEAD /size/2KiB HTTP/1.1\r\nhost: x\r\n\r\n");
    let answer = raw.answer_without_body();
    assert_eq!(
        (answer.status, answer.header("content-length")),
        (200, Some("2048"))
    );
    assert_eq!(raw.get("/size/3").body, b"xxx", "nothing came between");
}

#[test]
fn connections_close_when_asked() {
    let server = server(|_| {});
    for request in [
        "GET /size/3 HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n",
        "GET /size/3 HTTP/1.0\r\n\r\n",
    ] {
        let mut raw = Raw::connect(server.addr());
        raw.send(request);
        let response = String::from_utf8(raw.rest()).expect("text");
        assert!(response.ends_with("\r\n\r\nxxx"), "{response}");
    }
    assert_eq!(server.report().connection_errors, 0);
}

#[test]
fn wishes_that_cannot_be_served_are_refused_with_their_remedy() {
    let server = server(|_| {});
    let mut raw = Raw::connect(server.addr());
    for (path, remedy) in [
        ("/size/big", "give bytes"),
        ("/size/2GiB", "at most 1GiB"),
        ("/delay/50", "with its unit"),
        ("/delay/2h", "at most 100s"),
    ] {
        let answer = raw.get(path);
        assert_eq!(answer.status, 400);
        let text = String::from_utf8(answer.body).expect("text");
        assert!(text.contains(remedy), "{text}");
    }
    assert_eq!(raw.get("/").status, 200, "the connection lives on");
    let report = server.report();
    assert_eq!((report.bad_requests, report.requests), (4, 1));
}

#[test]
fn what_is_not_http_ends_its_connection_only() {
    let server = server(|_| {});
    let mut kept = Raw::connect(server.addr());
    assert_eq!(kept.get("/").status, 200);
    let client_hello = [0x16, 3, 1, 0, 5, 1, 0, 0, 1, 0, b'\r', b'\n', b'\r', b'\n'];
    for garbage in [
        &client_hello[..],
        b"\0\0\0\0\r\n\r\n",
        b"GET\r\n\r\n",
        b"PRI * HTTP/2.0\r\n",
    ] {
        let mut raw = Raw::connect(server.addr());
        raw.send(garbage);
        raw.finish_sending();
        let response = raw.rest();
        assert!(
            response.is_empty() || response.starts_with(b"HTTP/1.1 400"),
            "{garbage:?}: {response:?}"
        );
    }
    eventually("four failed connections", || {
        server.report().connection_errors == 4
    });
    assert_eq!(kept.get("/").status, 200);
    assert_eq!(server.report().requests, 2);
}

#[test]
fn a_connection_without_a_byte_is_no_error() {
    let server = server(|_| {});
    drop(Raw::connect(server.addr()));
    assert_eq!(get(server.addr(), "/").status, 200);
    let report = server.report();
    assert_eq!((report.connections, report.connection_errors), (2, 0));
}

#[test]
fn a_client_that_leaves_is_not_served() {
    let server = server(|_| {});
    let mut raw = Raw::connect(server.addr());
    raw.send("GET /delay/100s HTTP/1.1\r\nhost: x\r\n\r\n");
    eventually("the request was read", || server.arrivals().len() == 1);
    drop(raw);
    eventually("its end was seen", || {
        server.report().connection_errors == 1
    });
    assert_eq!(server.report().requests, 0);
}

#[test]
fn threads_share_the_connections() {
    let server = server(|config| config.threads = 3);
    let mut connections: Vec<_> = (0..12).map(|_| Raw::connect(server.addr())).collect();
    for _ in 0..5 {
        for raw in &mut connections {
            assert_eq!(raw.get("/size/7").body.len(), 7);
        }
    }
    let report = server.shutdown();
    assert_eq!((report.requests, report.connections), (60, 12));
}
