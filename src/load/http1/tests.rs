#![allow(clippy::unwrap_used)]
use proptest::prelude::*;

use super::*;

fn whole(text: &str) -> Result<Option<Response>, ResponseError> {
    ResponseReader::new(false).feed(text.as_bytes())
}

const fn ok(status: u16, keep_alive: bool) -> Result<Option<Response>, ResponseError> {
    Ok(Some(Response { status, keep_alive }))
}

#[test]
fn reads_the_framings_of_rfc_9112() {
    assert_eq!(
        whole("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc"),
        ok(200, true)
    );
    assert_eq!(
        whole("HTTP/1.1 503 No\r\ncontent-length:0\r\nConnection: Close\r\n\r\n"),
        ok(503, false)
    );
    assert_eq!(
        whole("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n"),
        ok(200, false)
    );
    assert_eq!(
        whole("HTTP/1.0 200 OK\r\nContent-Length: 0\r\nConnection: keep-alive\r\n\r\n"),
        ok(200, true)
    );
    assert_eq!(whole("HTTP/1.1 204 No Content\r\n\r\n"), ok(204, true));
    assert_eq!(
        whole(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4;x=y\r\nabcd\r\n0\r\nTrailer: 1\r\n\r\n"
        ),
        ok(200, true)
    );
    assert_eq!(
        whole("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx"),
        ok(200, true)
    );
    assert_eq!(
        ResponseReader::new(true).feed(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n"),
        ok(200, true)
    );
}

#[test]
fn a_response_without_a_length_ends_with_the_connection() {
    let mut reader = ResponseReader::new(false);
    assert_eq!(reader.close(), None);
    assert_eq!(reader.feed(b"HTTP/1.1 200 OK\r\n\r\nabc"), Ok(None));
    assert_eq!(
        reader.close(),
        Some(Response {
            status: 200,
            keep_alive: false
        })
    );
}

#[test]
fn refuses_what_is_not_a_response() {
    assert_eq!(whole("SSH-2.0-OpenSSH_9.2\r\n"), Err(ResponseError::Head));
    assert_eq!(
        whole("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"),
        Err(ResponseError::Length)
    );
    assert_eq!(
        whole("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"),
        Err(ResponseError::Length)
    );
    assert_eq!(
        whole("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
        Err(ResponseError::Chunk)
    );
    assert_eq!(
        whole("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nxy"),
        Err(ResponseError::Excess)
    );
    let endless = format!("HTTP/1.1 200 OK\r\nA: {}", "x".repeat(MAX_HEAD + 1));
    assert_eq!(whole(&endless), Err(ResponseError::TooLong));
}

#[test]
fn request_bytes_hold_what_was_asked() {
    let template = RequestTemplate {
        method: "POST".into(),
        path: "/a?b=c".into(),
        authority: "proxy.test".into(),
        headers: vec![("x-route".into(), "one".into())],
        body: 3,
    };
    assert_eq!(
        String::from_utf8(template.http1()).unwrap(),
        "POST /a?b=c HTTP/1.1\r\nHost: proxy.test\r\nx-route: one\r\nContent-Length: 3\r\n\r\nabc"
    );
    let own_host = RequestTemplate {
        headers: vec![("host".into(), "other".into())],
        body: 0,
        ..template
    };
    assert_eq!(
        String::from_utf8(own_host.http1()).unwrap(),
        "POST /a?b=c HTTP/1.1\r\nhost: other\r\n\r\n"
    );
}

/// A response in one of the framings, and its status.
fn response() -> impl Strategy<Value = (Vec<u8>, u16)> {
    let body = prop::collection::vec(any::<u8>(), 0..300);
    (
        200u16..600,
        prop::collection::vec(body, 0..4),
        any::<bool>(),
    )
        .prop_map(|(status, chunks, chunked)| {
            let mut bytes = format!("HTTP/1.1 {status} Reason\r\nX-Any: thing\r\n").into_bytes();
            if chunked && status != 204 && status != 304 {
                bytes.extend(b"Transfer-Encoding: chunked\r\n\r\n");
                for chunk in chunks.iter().filter(|c| !c.is_empty()) {
                    bytes.extend(format!("{:x}\r\n", chunk.len()).bytes());
                    bytes.extend(chunk);
                    bytes.extend(b"\r\n");
                }
                bytes.extend(b"0\r\n\r\n");
            } else {
                let body = if status == 204 || status == 304 {
                    Vec::new()
                } else {
                    chunks.concat()
                };
                bytes.extend(format!("Content-Length: {}\r\n\r\n", body.len()).bytes());
                bytes.extend(body);
            }
            (bytes, status)
        })
}

proptest! {
    #[test]
    fn how_the_bytes_arrive_does_not_matter(
        responses in prop::collection::vec(response(), 1..4),
        cuts in prop::collection::vec(1usize..40, 1..50),
    ) {
        let mut reader = ResponseReader::new(false);
        let mut cut = cuts.iter().cycle();
        for (bytes, status) in responses {
            let mut rest = &bytes[..];
            let mut ended = None;
            while !rest.is_empty() {
                prop_assert_eq!(ended, None);
                let (now, later) = rest.split_at((*cut.next().unwrap()).min(rest.len()));
                ended = reader.feed(now).unwrap();
                rest = later;
            }
            prop_assert_eq!(ended, Some(Response { status, keep_alive: true }));
        }
    }

    #[test]
    fn garbage_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..400), prefix in any::<bool>()) {
        let mut reader = ResponseReader::new(false);
        if prefix {
            let _ = reader.feed(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        }
        let _ = reader.feed(&bytes);
        let _ = reader.close();
    }
}
