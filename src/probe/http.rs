//! A small blocking HTTP/1.1 `GET` with one deadline for everything, for the proxies' own statistics: the proxy may be starved or
//! hung, and waiting for it must end.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use thiserror::Error;

/// More than any statistics page; a proxy that sends without end is stopped here.
const MOST_BYTES: usize = 16 << 20;
const MOST_HEADERS: usize = 64;

/// Why a page could not be read.
#[derive(Debug, Error)]
pub(crate) enum FetchError {
    /// No answer in time.
    #[error("no whole answer within {0:?}")]
    Deadline(Duration),
    /// The connection failed.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// Another status than 200.
    #[error("status {0}")]
    Status(u16),
    /// Not HTTP, or broken off.
    #[error("malformed answer: {0}")]
    Malformed(&'static str),
}

/// The body of `http://address/path`.
pub(crate) fn get(address: SocketAddr, path: &str, limit: Duration) -> Result<String, FetchError> {
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nAccept: */*\r\nConnection: close\r\n\r\n"
    );
    let answer =
        exchange(address, request.as_bytes(), limit).map_err(|error| match error.kind() {
            std::io::ErrorKind::TimedOut | std::io::ErrorKind::WouldBlock => {
                FetchError::Deadline(limit)
            }
            _ => FetchError::Io(error),
        })?;
    parse(&answer)
}

/// Sends, and reads until the answer is whole. Its end does not wait for the peer to close: Envoy takes a second for that
/// (`delayed_close_timeout`).
fn exchange(address: SocketAddr, request: &[u8], limit: Duration) -> std::io::Result<Vec<u8>> {
    let deadline = Instant::now() + limit;
    let left = || -> std::io::Result<Duration> {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            Err(std::io::ErrorKind::TimedOut.into())
        } else {
            Ok(left)
        }
    };
    let mut stream = TcpStream::connect_timeout(&address, left()?)?;
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(left()?))?;
    stream.write_all(request)?;
    let mut answer = Vec::new();
    let mut buffer = vec![0; 64 * 1024];
    while answer.len() < MOST_BYTES {
        stream.set_read_timeout(Some(left()?))?;
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => {
                answer.extend_from_slice(&buffer[..n]);
                if is_whole(&answer) {
                    break;
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(answer)
}

/// Whether nothing more belongs to the answer, by its own word.
fn is_whole(answer: &[u8]) -> bool {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut head = httparse::Response::new(&mut headers);
    let Ok(httparse::Status::Complete(length)) = head.parse(answer) else {
        return false;
    };
    let rest = &answer[length..];
    match Framing::of(&head) {
        // Without looking at every chunk each time: only what ends like the last one can be whole.
        Framing::Chunked => rest.ends_with(b"0\r\n\r\n") && dechunk(rest).is_ok(),
        Framing::Length(body) => rest.len() >= body,
        Framing::UntilClose | Framing::Bad => false,
    }
}

/// How the end of a body is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Framing {
    Chunked,
    Length(usize),
    UntilClose,
    Bad,
}

impl Framing {
    fn of(head: &httparse::Response<'_, '_>) -> Self {
        let header = |name: &str| {
            let found = head
                .headers
                .iter()
                .find(|h| h.name.eq_ignore_ascii_case(name));
            found.and_then(|h| std::str::from_utf8(h.value).ok())
        };
        if header("transfer-encoding").is_some_and(|v| v.eq_ignore_ascii_case("chunked")) {
            return Self::Chunked;
        }
        match header("content-length").map(|v| v.trim().parse()) {
            Some(Ok(length)) => Self::Length(length),
            Some(Err(_)) => Self::Bad,
            None => Self::UntilClose,
        }
    }
}

fn parse(answer: &[u8]) -> Result<String, FetchError> {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut head = httparse::Response::new(&mut headers);
    let length = match head.parse(answer) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => {
            return Err(FetchError::Malformed("broken off in its head"));
        }
        Err(_) => return Err(FetchError::Malformed("its head is not HTTP")),
    };
    match head.code {
        Some(200) => {}
        Some(code) => return Err(FetchError::Status(code)),
        None => return Err(FetchError::Malformed("no status")),
    }
    let rest = &answer[length..];
    let body = match Framing::of(&head) {
        Framing::Chunked => dechunk(rest)?,
        Framing::Length(length) => rest
            .get(..length)
            .ok_or(FetchError::Malformed("broken off in its body"))?
            .to_vec(),
        Framing::UntilClose => rest.to_vec(),
        Framing::Bad => return Err(FetchError::Malformed("bad content-length")),
    };
    String::from_utf8(body).map_err(|_| FetchError::Malformed("not UTF-8"))
}

fn dechunk(mut rest: &[u8]) -> Result<Vec<u8>, FetchError> {
    let broken = FetchError::Malformed("broken off in a chunk");
    let mut body = Vec::new();
    loop {
        let (start, size) = match httparse::parse_chunk_size(rest) {
            Ok(httparse::Status::Complete(found)) => found,
            Ok(httparse::Status::Partial) => return Err(broken),
            Err(_) => return Err(FetchError::Malformed("bad chunk size")),
        };
        if size == 0 {
            return Ok(body);
        }
        let end = usize::try_from(size)
            .ok()
            .and_then(|size| start.checked_add(size));
        let Some(chunk) = end.and_then(|end| rest.get(start..end)) else {
            return Err(broken);
        };
        body.extend_from_slice(chunk);
        rest = rest.get(start + chunk.len() + 2..).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    fn serve(answer: &'static [u8], hold: bool) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
        let address = listener.local_addr().expect("address");
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("accept");
            let _ = stream.read(&mut [0; 1024]);
            let _ = stream.write_all(answer);
            if hold {
                // Until the client gives up.
                let _ = stream.read(&mut [0; 1024]);
            }
        });
        address
    }

    const LIMIT: Duration = Duration::from_secs(5);

    #[test]
    fn bodies_of_each_kind() {
        let plain = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
        assert_eq!(get(serve(plain, false), "/", LIMIT).expect("body"), "hi");
        let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n10;x=y\r\n0123456789abcdef\r\n0\r\n\r\n";
        assert_eq!(
            get(serve(chunked, false), "/", LIMIT).expect("body"),
            "abc0123456789abcdef"
        );
        let until_close = b"HTTP/1.0 200 OK\r\n\r\nall of it";
        assert_eq!(
            get(serve(until_close, false), "/", LIMIT).expect("body"),
            "all of it"
        );
    }

    #[test]
    fn a_whole_answer_does_not_wait_for_the_close() {
        let limit = Duration::from_secs(30);
        let started = Instant::now();
        let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n";
        assert_eq!(get(serve(chunked, true), "/", limit).expect("body"), "hi");
        let plain = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
        assert_eq!(get(serve(plain, true), "/", limit).expect("body"), "hi");
        assert!(started.elapsed() < limit / 2);
    }

    #[test]
    fn what_is_not_whole_is_an_error() {
        let wrong = |answer| {
            get(serve(answer, false), "/", LIMIT)
                .expect_err("an error")
                .to_string()
        };
        assert_eq!(
            wrong(b"HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n"),
            "status 503"
        );
        assert_eq!(wrong(b""), "malformed answer: broken off in its head");
        assert_eq!(
            wrong(b"SSH-2.0-x\r\n\r\n"),
            "malformed answer: its head is not HTTP"
        );
        assert_eq!(
            wrong(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhi"),
            "malformed answer: broken off in its body"
        );
        assert_eq!(
            wrong(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nabc"),
            "malformed answer: broken off in a chunk"
        );
    }

    #[test]
    fn a_hung_server_costs_no_more_than_the_limit() {
        let limit = Duration::from_millis(200);
        let started = Instant::now();
        let address = serve(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhi", true);
        let error = get(address, "/", limit).expect_err("no answer");
        assert!(matches!(error, FetchError::Deadline(_)), "{error}");
        assert!(started.elapsed() < limit + Duration::from_secs(3));
    }

    proptest::proptest! {
        #[test]
        fn no_answer_panics(tail in proptest::collection::vec(0_u8.., 0..200), chunked: bool) {
            let head: &[u8] = if chunked { b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" } else { b"" };
            let _ = parse(&[head, &tail].concat());
        }
    }
}
