//! Clients: raw HTTP/1.1 on a blocking socket, and HTTP/2 through hyper.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use sweep_upstream::{Config, DelayModel, Server, serve};

/// Longest wait for anything.
pub(crate) const DEADLINE: Duration = Duration::from_secs(20);

/// A server without delay and with all instruments, changed by `change`.
pub(crate) fn server(change: impl FnOnce(&mut Config)) -> Server {
    let mut config = Config {
        control: Some(SocketAddr::from(([127, 0, 0, 1], 0))),
        delay: DelayModel::Constant(Duration::ZERO),
        record_arrivals: 10_000,
        ..Config::default()
    };
    change(&mut config);
    serve(&config).expect("a loopback server starts")
}

/// Waits until `done`, or fails.
pub(crate) fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < DEADLINE, "timed out: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A response as it came over the wire.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(": ")?;
            key.eq_ignore_ascii_case(name).then_some(value)
        })
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).expect("JSON")
    }
}

/// One HTTP/1.1 connection that sends exactly the bytes it is given.
pub(crate) struct Raw {
    tcp: TcpStream,
    buffered: Vec<u8>,
}

impl Raw {
    pub(crate) fn connect(addr: SocketAddr) -> Self {
        let tcp = TcpStream::connect(addr).expect("connect");
        tcp.set_nodelay(true).expect("nodelay");
        tcp.set_read_timeout(Some(DEADLINE)).expect("timeout");
        Self {
            tcp,
            buffered: Vec::new(),
        }
    }

    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.tcp.write_all(bytes.as_ref()).expect("send");
    }

    pub(crate) fn get(&mut self, path: &str) -> Answer {
        self.send(format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n"));
        self.answer()
    }

    /// The next response, with the body that its length tells.
    pub(crate) fn answer(&mut self) -> Answer {
        let mut answer = self.answer_without_body();
        let length = answer.header("content-length").expect("a length");
        let length = length.parse().expect("a number");
        while self.buffered.len() < length {
            assert!(self.fill() > 0, "closed within a body");
        }
        answer.body = self.buffered.drain(..length).collect();
        answer
    }

    /// The next response's head alone, as HEAD answers it.
    pub(crate) fn answer_without_body(&mut self) -> Answer {
        let end = loop {
            if let Some(end) = find(&self.buffered, b"\r\n\r\n") {
                break end + 4;
            }
            assert!(self.fill() > 0, "closed within a head: {:?}", self.buffered);
        };
        let head = String::from_utf8(self.buffered.drain(..end).collect()).expect("text");
        let status = head.split(' ').nth(1).expect("a status");
        Answer {
            status: status.parse().expect("a number"),
            head,
            body: Vec::new(),
        }
    }

    /// What comes until the server closes.
    pub(crate) fn rest(mut self) -> Vec<u8> {
        while self.fill() > 0 {}
        self.buffered
    }

    pub(crate) fn finish_sending(&self) {
        self.tcp.shutdown(Shutdown::Write).expect("shutdown");
    }

    pub(crate) fn fill(&mut self) -> usize {
        let mut chunk = vec![0; 65_536];
        let read = match self.tcp.read(&mut chunk) {
            Ok(read) => read,
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => 0,
            Err(error) => panic!("nothing to read: {error}"),
        };
        self.buffered.extend_from_slice(&chunk[..read]);
        read
    }

    pub(crate) fn buffered(&self) -> &[u8] {
        &self.buffered
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack
        .windows(needle.len())
        .position(|window| window == needle)
}

/// `GET path` on a connection of its own.
pub(crate) fn get(addr: SocketAddr, path: &str) -> Answer {
    Raw::connect(addr).get(path)
}

/// An HTTP/2 connection, driven by the current runtime.
pub(crate) type Http2 = http2::SendRequest<Full<Bytes>>;

pub(crate) async fn http2(addr: SocketAddr) -> Http2 {
    let tcp = tokio::net::TcpStream::connect(addr).await.expect("connect");
    tcp.set_nodelay(true).expect("nodelay");
    let (sender, connection) = http2::Builder::new(TokioExecutor::new())
        .handshake(TokioIo::new(tcp))
        .await
        .expect("handshake");
    tokio::spawn(connection);
    sender
}

/// Sends one request and reads the whole response.
pub(crate) async fn exchange(
    sender: &Http2,
    method: &str,
    path: &str,
    body: Vec<u8>,
) -> (hyper::http::response::Parts, Bytes) {
    let request = hyper::Request::builder()
        .method(method)
        .uri(format!("http://x{path}"))
        .body(Full::new(Bytes::from(body)))
        .expect("request");
    let response = sender.clone().send_request(request).await.expect("answer");
    let (head, body) = response.into_parts();
    (head, body.collect().await.expect("body").to_bytes())
}
