//! One connection: HTTP/1.1 or HTTP/2 with prior knowledge, told apart by its first bytes.

use std::cell::RefCell;
use std::future::Future;
use std::io;
use std::rc::Rc;
use std::sync::Arc;

use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use hyper::rt::Executor;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode, Version};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use crate::body::FixedBody;
use crate::config::Config;
use crate::delay::{DelaySampler, nanos};
use crate::path::{PathWishes, parse_path};
use crate::stats::Stats;
use crate::stream::{Answer, ConnectionClock, TimedStream};
use crate::timer::DelayTimer;
use crate::units::UnitError;

const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

// Windows wide enough that a request's body never waits for the server.
const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 1 << 24;
const CONCURRENT_STREAMS: u32 = 4096;

/// What all connections of a serving thread share.
pub(crate) struct Service {
    stats: Arc<Stats>,
    timer: DelayTimer,
    sampler: RefCell<DelaySampler>,
    body: u64,
    http1: http1::Builder,
    http2: http2::Builder<LocalExecutor>,
}

#[derive(Clone, Copy)]
struct LocalExecutor;

impl<F> Executor<F> for LocalExecutor
where
    F: Future + 'static,
    F::Output: 'static,
{
    fn execute(&self, future: F) {
        tokio::task::spawn_local(future);
    }
}

impl Service {
    /// The service of serving thread `thread`.
    #[must_use]
    pub(crate) fn new(
        config: &Config,
        stats: Arc<Stats>,
        timer: DelayTimer,
        thread: usize,
    ) -> Self {
        let mut http2 = http2::Builder::new(LocalExecutor);
        http2
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_concurrent_streams(CONCURRENT_STREAMS);
        Self {
            stats,
            timer,
            sampler: RefCell::new(DelaySampler::new(config.delay, config.seed, thread)),
            body: config.body,
            http1: http1::Builder::new(),
            http2,
        }
    }

    /// Serves a connection to its end.
    pub(crate) async fn serve(self: Rc<Self>, tcp: TcpStream) {
        self.stats.connected();
        if self.serve_to_end(tcp).await.is_err() {
            self.stats.connection_failed();
        }
    }

    async fn serve_to_end(
        self: &Rc<Self>,
        tcp: TcpStream,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let prefix = read_prefix(&tcp).await?;
        if prefix.is_empty() {
            return Ok(());
        }
        let clock = Rc::new(ConnectionClock::new(Arc::clone(&self.stats)));
        let is_http2 = prefix == PREFACE;
        let stream = TokioIo::new(TimedStream::new(tcp, prefix, Rc::clone(&clock)));
        let handler = service_fn(|request| {
            let (service, clock) = (Rc::clone(self), Rc::clone(&clock));
            // Now, not when the future is polled first: the socket may have been read again by then.
            let read_at = clock.last_read();
            async move { service.handle(request, read_at, &clock).await }
        });
        if is_http2 {
            self.http2.serve_connection(stream, handler).await?;
        } else {
            self.http1.serve_connection(stream, handler).await?;
        }
        Ok(())
    }

    async fn handle(
        &self,
        request: Request<Incoming>,
        mut read_at: u64,
        clock: &ConnectionClock,
    ) -> Result<Response<FixedBody>, hyper::Error> {
        let (head, mut body) = request.into_parts();
        if !body.is_end_stream() {
            while let Some(frame) = body.frame().await {
                frame?;
            }
            read_at = clock.last_read();
        }
        self.stats.arrivals.record(read_at);
        let wishes = match parse_path(head.uri.path()) {
            Ok(wishes) => wishes,
            Err(error) => {
                self.stats.refused();
                return Ok(bad_request(&error, &head.method));
            }
        };
        let asked = self.delay_of(&wishes);
        // In HTTP/1 a pipelined request's turn comes when the one before it has been answered.
        let began_at = if head.version == Version::HTTP_2 {
            read_at
        } else {
            read_at.max(clock.last_write())
        };
        self.timer.sleep_until(began_at + asked).await;
        clock.answer(Answer { began_at, asked });
        let size = wishes.size.unwrap_or(self.body);
        Ok(respond(
            StatusCode::OK,
            FixedBody::of_size(size),
            &head.method,
        ))
    }

    fn delay_of(&self, wishes: &PathWishes) -> u64 {
        match wishes.delay {
            Some(delay) => nanos(delay),
            None => self.sampler.borrow_mut().next_ns(),
        }
    }
}

/// Reads as much as tells HTTP/2 from anything else: the whole preface, or up to the first byte that differs. Empty if
/// the peer closed without a byte.
async fn read_prefix(tcp: &TcpStream) -> io::Result<Vec<u8>> {
    let mut prefix = [0; PREFACE.len()];
    let mut length = 0;
    while length < PREFACE.len() && prefix[..length] == PREFACE[..length] {
        tcp.readable().await?;
        match tcp.try_read(&mut prefix[length..]) {
            Ok(0) => break,
            Ok(read) => length += read,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(prefix[..length].to_vec())
}

fn bad_request(error: &UnitError, method: &Method) -> Response<FixedBody> {
    let body = FixedBody::of_text(format!("{error}\n"));
    respond(StatusCode::BAD_REQUEST, body, method)
}

fn respond(status: StatusCode, body: FixedBody, method: &Method) -> Response<FixedBody> {
    let length = body.length();
    let body = if method == Method::HEAD {
        FixedBody::of_size(0)
    } else {
        body
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    response
}
