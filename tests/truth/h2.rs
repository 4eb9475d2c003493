//! HTTP/2.

use std::convert::Infallible;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use sweep::load::probe_ready;
use sweep::load::report::ErrorClass;
use sweep::spec::settings::{LoadMode, Protocol};
use sweep::units::{Bytes as Size, Micros, RatePerSecond};

use crate::job::{assert_near, job, load, ms, run, tell, tls, tls_settings};
use crate::server::{Delays, Identity, Server, accept_slowly};

/// hyper's HTTP/2 server, over TLS if there is an identity. Answers 503 to `/fail`, and echoes the length of bodies.
fn hyper_server(identity: Option<&Identity>, delay: Duration, streams: u32) -> SocketAddr {
    let config = identity.map(|identity| Arc::new(identity.server_config(b"h2", false)));
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let service = move |request: hyper::Request<Incoming>| async move {
        let status = if request.uri().path() == "/fail" {
            503
        } else {
            200
        };
        let body = request.into_body().collect().await.unwrap().to_bytes();
        tokio::time::sleep(delay).await;
        let answer = Full::new(Bytes::from(format!("{} bytes", body.len())));
        Ok::<_, Infallible>(
            hyper::Response::builder()
                .status(status)
                .body(answer)
                .unwrap(),
        )
    };
    thread::spawn(move || {
        runtime.block_on(async move {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                stream.set_nodelay(true).unwrap();
                let config = config.clone();
                tokio::spawn(async move {
                    let mut http = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                    http.max_concurrent_streams(streams);
                    let service = service_fn(service);
                    match config {
                        Some(config) => {
                            let acceptor = tokio_rustls::TlsAcceptor::from(config);
                            if let Ok(stream) = acceptor.accept(stream).await {
                                let _ = http.serve_connection(TokioIo::new(stream), service).await;
                            }
                        }
                        None => {
                            let _ = http.serve_connection(TokioIo::new(stream), service).await;
                        }
                    }
                });
            }
        });
    });
    address
}

/// A server by hand, one request at a time: what `answer` writes for a stream.
fn by_hand(
    mut stream: impl Read + Write,
    settings: Duration,
    mut answer: impl FnMut(u32) -> Vec<u8>,
) -> std::io::Result<()> {
    let mut preface = [0; 24];
    stream.read_exact(&mut preface)?;
    thread::sleep(settings);
    stream.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0])?;
    stream.flush()?;
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head)?;
        let mut payload = vec![0; usize::from(head[1]) << 8 | usize::from(head[2])];
        stream.read_exact(&mut payload)?;
        if head[3] == 1 {
            let id = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
            stream.write_all(&answer(id))?;
            stream.flush()?;
        }
    }
}

fn ok(stream: u32) -> Vec<u8> {
    let mut frames = vec![0, 0, 1, 1, 5];
    frames.extend(stream.to_be_bytes());
    frames.push(0x88);
    frames
}

#[test]
fn streams_share_connections() {
    let identity = Identity::new();
    let address = hyper_server(Some(&identity), Duration::from_millis(100), 100);
    let mut job = job(address, load());
    job.tls = Some(tls(&identity, tls_settings()));
    job.load.protocol = Protocol::H2;
    job.load.connections = 2;
    job.load.streams = 10;
    job.load.handshake_rate = RatePerSecond(20.0);
    let report = run(&job);
    assert_eq!(
        (report.requests, report.errors.len()),
        (200, 0),
        "{}",
        tell(&report)
    );
    assert_near("response", ms(&report.response_time, 0.5), 102.0, 10.0);
    assert_near("in flight", report.in_flight_mean.unwrap(), 10.2, 1.0);
    assert_eq!(report.handshake.completed, 40);
    assert_eq!(report.handshake.settings.count(), 40);
    assert!(
        probe_ready(
            &job,
            std::time::Instant::now() + Duration::from_secs(5),
            || false
        )
        .unwrap()
    );
}

#[test]
fn the_servers_limit_of_streams_is_kept() {
    let address = hyper_server(None, Duration::from_millis(20), 3);
    let mut job = job(address, load());
    job.load.protocol = Protocol::H2;
    job.load.mode = LoadMode::Closed;
    job.load.users = 12;
    job.load.connections = 2;
    job.load.streams = 10;
    let report = run(&job);
    assert_eq!(report.errors.len(), 0, "{}", tell(&report));
    assert_near("in flight", report.in_flight_mean.unwrap(), 6.0, 0.4);
    assert_near("users", report.littles_law_users.unwrap(), 12.0, 0.6);
}

#[test]
fn bodies_larger_than_the_windows_arrive() {
    let identity = Identity::new();
    let address = hyper_server(Some(&identity), Duration::ZERO, 100);
    let mut job = job(address, load());
    job.tls = Some(tls(&identity, tls_settings()));
    job.load.protocol = Protocol::H2;
    job.load.method = "POST".into();
    job.load.path = "/fail".into();
    job.load.body = Size(300_000);
    job.load.rate = RatePerSecond(20.0);
    job.load.requests_per_connection = Some(3);
    let report = run(&job);
    assert_eq!(report.status_codes, [(503, 40)].into(), "{}", tell(&report));
    assert!(report.connections_opened >= 8);
}

#[test]
fn settings_that_are_late_move_their_phase_alone() {
    let identity = Identity::new();
    let config = Arc::new(identity.server_config(b"h2", false));
    let server = Server::start(move |stream, _| {
        if let Ok(stream) = accept_slowly(&config, stream, Delays::default()) {
            let _ = by_hand(stream, Duration::from_millis(50), ok);
        }
    });
    let mut job = job(server.address, load());
    job.tls = Some(tls(&identity, tls_settings()));
    job.load.protocol = Protocol::H2;
    job.load.rate = RatePerSecond(1.0);
    job.load.connections = 1;
    job.load.handshake_rate = RatePerSecond(20.0);
    let report = run(&job);
    let handshake = &report.handshake;
    assert_eq!(handshake.completed, 40, "{}", tell(&report));
    assert_near("settings", ms(&handshake.settings, 0.5), 52.0, 15.0);
    assert_near("total", ms(&handshake.total, 0.5), 56.0, 15.0);
    for other in [
        &handshake.tcp,
        &handshake.server_hello,
        &handshake.finished,
        &handshake.first_byte,
    ] {
        assert!(ms(other, 0.5) < 15.0);
    }
}

#[test]
fn a_leaving_server_loses_nothing() {
    // GOAWAY after five requests, naming the fifth as the last: those that crossed it are sent again.
    let server = Server::start(|stream, _| {
        let _ = by_hand(stream, Duration::ZERO, |id| {
            if id > 9 {
                return Vec::new();
            }
            let mut frames = ok(id);
            if id == 9 {
                frames.extend([0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0]);
            }
            frames
        });
    });
    let mut job = job(server.address, load());
    job.load.protocol = Protocol::H2;
    job.load.rate = RatePerSecond(500.0);
    job.load.connections = 2;
    job.load.streams = 4;
    let report = run(&job);
    assert_eq!(
        (report.requests, report.errors.len()),
        (1000, 0),
        "{}",
        tell(&report)
    );
    assert!(report.connections_opened >= 190);
}

#[test]
fn a_stream_that_is_not_answered_times_out_alone() {
    let count = Arc::new(AtomicU64::new(0));
    let server = Server::start(move |stream, _| {
        let count = count.clone();
        let _ = by_hand(stream, Duration::ZERO, move |id| {
            if count.fetch_add(1, Ordering::SeqCst).is_multiple_of(10) {
                Vec::new()
            } else {
                ok(id)
            }
        });
    });
    let mut job = job(server.address, load());
    job.load.protocol = Protocol::H2;
    job.load.connections = 1;
    job.load.streams = 50;
    job.load.timeout = Micros(200_000);
    let report = run(&job);
    assert_eq!(
        report.errors,
        [(ErrorClass::Timeout, 20)].into(),
        "{}",
        tell(&report)
    );
    assert_eq!(report.requests, 180);
    assert_eq!(server.connections.load(Ordering::SeqCst), 1);
}

#[test]
fn another_protocol_is_not_http2() {
    let server = Server::start(|mut stream, _| {
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
        let _ = stream.read(&mut [0; 64]);
        thread::sleep(Duration::from_millis(100));
    });
    let mut job = job(server.address, load());
    job.load.protocol = Protocol::H2;
    job.duration = Micros(500_000);
    let report = run(&job);
    assert_eq!(
        report.errors,
        [(ErrorClass::Protocol, 50)].into(),
        "{}",
        tell(&report)
    );
}
