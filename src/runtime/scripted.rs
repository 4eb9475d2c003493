//! A scripted engine on a unix socket, for the faults that a real one will not produce on demand.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use http_body_util::StreamBody;
use hyper::body::Frame;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tempfile::TempDir;

use super::{Engine, EngineAddress, EngineError};

/// As a status: the engine takes the request and never answers.
pub(crate) const SILENT: u16 = 0;
/// At the end of a body: the engine sends what is before it and then nothing more, without an end.
pub(crate) const STALLS: &str = "(stalls)";
/// At the end of a body: the engine sends what is before it, and the connection breaks.
pub(crate) const BREAKS: &str = "(breaks)";

/// What `/version` says, to be connected to.
pub(crate) const VERSION: (&str, u16, &str) = (
    "GET /version",
    200,
    r#"{"Version":"20.10.24","ApiVersion":"1.41"}"#,
);

type Body = StreamBody<BoxStream<'static, io::Result<Frame<Bytes>>>>;

/// Answers by `METHOD /path`: status and body. Anything else is 404, as the engine says it. Dropped, its socket is gone.
pub(crate) struct Script {
    folder: TempDir,
}

impl Script {
    pub(crate) fn start(answers: &[(&str, u16, &str)]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let listener = tokio::net::UnixListener::bind(folder.path().join("sock")).expect("bind");
        let answers: BTreeMap<String, (u16, String)> = answers
            .iter()
            .map(|(path, status, body)| ((*path).to_owned(), (*status, (*body).to_owned())))
            .collect();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let answers = answers.clone();
                tokio::spawn(async move {
                    let serve = service_fn(move |request: Request<_>| {
                        let (status, body) = find(&answers, &request);
                        async move {
                            if status == SILENT {
                                std::future::pending::<()>().await;
                            }
                            Ok::<_, Infallible>(response(status, &body))
                        }
                    });
                    let connection = hyper::server::conn::http1::Builder::new();
                    let _ = connection
                        .serve_connection(TokioIo::new(stream), serve)
                        .await;
                });
            }
        });
        Self { folder }
    }

    pub(crate) async fn connect(&self) -> Result<Engine, EngineError> {
        Engine::connect_to(EngineAddress {
            url: format!("unix://{}", self.folder.path().join("sock").display()),
            source: "test".to_owned(),
        })
        .await
    }
}

fn find(
    answers: &BTreeMap<String, (u16, String)>,
    request: &Request<hyper::body::Incoming>,
) -> (u16, String) {
    let path = format!("{} {}", request.method(), request.uri().path());
    answers
        .get(&path)
        .cloned()
        .unwrap_or_else(|| (404, r#"{"message":"page not found"}"#.to_owned()))
}

fn response(status: u16, body: &str) -> Response<Body> {
    let frame = |text: &str| {
        let bytes = Bytes::copy_from_slice(text.as_bytes());
        stream::iter([Ok(Frame::data(bytes))])
    };
    let frames: BoxStream<'static, io::Result<Frame<Bytes>>> =
        if let Some(start) = body.strip_suffix(STALLS) {
            frame(start).chain(stream::pending()).boxed()
        } else if let Some(start) = body.strip_suffix(BREAKS) {
            let broken = io::Error::from(io::ErrorKind::ConnectionReset);
            frame(start).chain(stream::iter([Err(broken)])).boxed()
        } else {
            frame(body).boxed()
        };
    let mut response = Response::new(StreamBody::new(frames));
    *response.status_mut() = hyper::StatusCode::from_u16(status).expect("a status");
    response.headers_mut().insert(
        hyper::header::CONTENT_TYPE,
        hyper::header::HeaderValue::from_static("application/json"),
    );
    response
}

#[cfg(test)]
mod tests;
