//! The control port: statistics and arrivals for the one who measures, from a thread of its own.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::io;
use std::net::TcpListener as StdListener;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use tokio::net::TcpListener;

use crate::body::FixedBody;
use crate::stats::Stats;

const HELP: &str =
    "GET /stats, GET /histogram, GET /arrivals, GET /arrivals?format=binary, POST /reset\n";
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// Answers on the control port for ever.
///
/// # Errors
/// If the socket cannot be watched.
pub(crate) async fn run(listener: StdListener, stats: Arc<Stats>) -> io::Result<Infallible> {
    let listener = TcpListener::from_std(listener)?;
    loop {
        let Ok((tcp, _)) = listener.accept().await else {
            // No descriptor is free; this thread has nothing else to do meanwhile.
            std::thread::sleep(ACCEPT_PAUSE);
            continue;
        };
        let stats = Arc::clone(&stats);
        tokio::task::spawn_local(async move {
            let answer = service_fn(|request: Request<Incoming>| {
                let response = answer(
                    &stats,
                    request.method(),
                    request.uri().path(),
                    request.uri().query(),
                );
                async move { Ok::<_, Infallible>(response) }
            });
            // A peer that goes away within a message needs nothing more.
            let _ = http1::Builder::new()
                .serve_connection(TokioIo::new(tcp), answer)
                .await;
        });
    }
}

fn answer(stats: &Stats, method: &Method, path: &str, query: Option<&str>) -> Response<FixedBody> {
    match (path, method) {
        ("/stats", &Method::GET) => json(&stats.report()),
        ("/histogram", &Method::GET) => json(&stats.delay_histogram()),
        ("/reset", &Method::POST) => json(&stats.reset()),
        ("/arrivals", &Method::GET) => match query {
            None | Some("") | Some("format=json") => json(&stats.arrivals.sorted()),
            Some("format=binary") => binary(&stats.arrivals.sorted()),
            Some(query) => {
                let mut text = String::new();
                let _ = writeln!(
                    text,
                    "`{query}` is not understood; ask ?format=json or ?format=binary"
                );
                with_type(StatusCode::BAD_REQUEST, "text/plain", text.into())
            }
        },
        ("/stats" | "/histogram" | "/arrivals", _) => not_allowed("GET"),
        ("/reset", _) => not_allowed("POST"),
        _ => with_type(StatusCode::NOT_FOUND, "text/plain", HELP.into()),
    }
}

fn json(value: &impl Serialize) -> Response<FixedBody> {
    match serde_json::to_vec(value) {
        Ok(text) => with_type(StatusCode::OK, "application/json", text.into()),
        Err(error) => with_type(
            StatusCode::INTERNAL_SERVER_ERROR,
            "text/plain",
            error.to_string().into(),
        ),
    }
}

fn binary(times: &[u64]) -> Response<FixedBody> {
    let bytes: Vec<u8> = times.iter().flat_map(|at| at.to_le_bytes()).collect();
    with_type(StatusCode::OK, "application/octet-stream", bytes.into())
}

fn not_allowed(method: &'static str) -> Response<FixedBody> {
    let mut response = with_type(StatusCode::METHOD_NOT_ALLOWED, "text/plain", HELP.into());
    response
        .headers_mut()
        .insert(ALLOW, HeaderValue::from_static(method));
    response
}

fn with_type(status: StatusCode, kind: &'static str, body: Bytes) -> Response<FixedBody> {
    let mut response = Response::new(FixedBody::of_text(body));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
