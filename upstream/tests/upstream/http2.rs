//! HTTP/2 with prior knowledge, on the same port.

use std::time::{Duration, Instant};

use crate::client::{Raw, exchange, get, http2, server};

#[tokio::test]
async fn both_protocols_on_one_port() {
    let server = server(|_| {});
    let sender = http2(server.addr()).await;
    let (head, body) = exchange(&sender, "GET", "/size/2KiB", Vec::new()).await;
    assert_eq!(head.version, hyper::Version::HTTP_2);
    assert_eq!((head.status.as_u16(), body.len()), (200, 2048));
    assert_eq!(get(server.addr(), "/").status, 200);
    assert_eq!(server.report().requests, 2);
}

#[tokio::test]
async fn bodies_of_both_directions_are_whole() {
    let server = server(|_| {});
    let sender = http2(server.addr()).await;
    let (head, body) = exchange(&sender, "POST", "/size/3MiB", vec![b'b'; 5_000_000]).await;
    assert_eq!((head.status.as_u16(), body.len()), (200, 3 << 20));
    let (head, body) = exchange(&sender, "HEAD", "/size/3MiB", Vec::new()).await;
    assert_eq!(
        (head.headers["content-length"].as_bytes(), body.len()),
        (&b"3145728"[..], 0)
    );
    let (head, _) = exchange(&sender, "GET", "/size/none", Vec::new()).await;
    assert_eq!(head.status.as_u16(), 400);
    let report = server.report();
    assert_eq!((report.requests, report.bad_requests), (2, 1));
}

#[tokio::test]
async fn streams_wait_side_by_side() {
    let server = server(|_| {});
    let sender = http2(server.addr()).await;
    let start = Instant::now();
    let streams: Vec<_> = (0..200)
        .map(|_| {
            let sender = sender.clone();
            tokio::spawn(async move {
                let start = Instant::now();
                let (head, _) = exchange(&sender, "GET", "/delay/100ms/size/10", Vec::new()).await;
                assert_eq!(head.status.as_u16(), 200);
                start.elapsed()
            })
        })
        .collect();
    for stream in streams {
        assert!(stream.await.expect("stream") >= Duration::from_millis(100));
    }
    // One after the other they would take 20 s.
    assert!(start.elapsed() < Duration::from_secs(10));
    let report = server.report();
    assert_eq!((report.requests, report.connections), (200, 1));
    assert!(report.delay_p50_us >= Some(100_000));
}

#[test]
fn the_preface_may_come_in_pieces() {
    let server = server(|_| {});
    let mut raw = Raw::connect(server.addr());
    for piece in ["PRI", " * HTTP/2.0\r\n\r\nSM", "\r\n\r\n"] {
        raw.send(piece);
        std::thread::sleep(Duration::from_millis(5));
    }
    raw.send([0, 0, 0, 4, 0, 0, 0, 0, 0]);
    while raw.buffered().len() < 9 {
        assert!(raw.fill() > 0, "closed");
    }
    assert_eq!(raw.buffered()[3], 4, "the first frame is SETTINGS");
}
