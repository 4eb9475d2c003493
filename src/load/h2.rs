//! HTTP/2, client side (RFC 9113), without sockets: bytes in, bytes and [`Signal`]s out.
//!
//! Only what a load generator needs: one request, made once and repeated on many streams; response bodies are counted
//! and dropped. Windows towards the server are as large as allowed, so that a response never waits for the generator.

mod frame;
mod hpack;
mod receive;

use frame::{FrameReader, Head, TooLarge};
use hpack::{DEFAULT_TABLE, HpackError, RequestBlock};

use super::http1::{RequestTemplate, body_bytes};
use super::report::ErrorClass;
use super::signal::{InFlight, Signal};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Largest window (section 6.9.1).
const MAX_WINDOW: i64 = (1 << 31) - 1;
const DEFAULT_WINDOW: i64 = 65_535;
const DEFAULT_MAX_FRAME: usize = 16_384;
const LAST_STREAM: u32 = (1 << 31) - 1;

const SETTINGS_HEADER_TABLE_SIZE: u16 = 1;
const SETTINGS_ENABLE_PUSH: u16 = 2;
const SETTINGS_MAX_CONCURRENT_STREAMS: u16 = 3;
const SETTINGS_INITIAL_WINDOW_SIZE: u16 = 4;
const SETTINGS_MAX_FRAME_SIZE: u16 = 5;

const ERROR_CANCEL: u32 = 8;

/// Why a connection cannot go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum H2Error {
    /// A frame over the allowed size.
    #[error("frame is larger than SETTINGS_MAX_FRAME_SIZE")]
    TooLarge,
    /// A header block that cannot be read.
    #[error("response headers: {0}")]
    Hpack(#[from] HpackError),
    /// A response that begins without `:status`.
    #[error("response without :status")]
    NoStatus,
    /// A frame that breaks the protocol.
    #[error("frame of type {0} is not valid here")]
    Frame(u8),
}

impl From<TooLarge> for H2Error {
    fn from(_: TooLarge) -> Self {
        Self::TooLarge
    }
}

/// The request of a job in HTTP/2, shared by all connections.
#[derive(Debug, Clone)]
pub struct Request {
    block: RequestBlock,
    body: Vec<u8>,
}

impl Request {
    /// Encodes a request; `https` is its scheme.
    #[must_use]
    pub fn new(template: &RequestTemplate, https: bool) -> Self {
        Self {
            block: RequestBlock::new(template, https),
            body: body_bytes(template.body).collect(),
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Stream {
    id: u32,
    request: InFlight,
    /// 0 before the response's head.
    status: u16,
    /// Bytes of the request's body not yet sent.
    unsent: usize,
    /// The server's window for this stream's body.
    window: i64,
    /// Bytes of the response since the last WINDOW_UPDATE.
    received: u32,
}

/// One connection's state.
#[derive(Debug)]
pub struct Connection {
    reader: FrameReader,
    streams: Vec<Stream>,
    next_stream: u32,
    /// What is to be sent.
    pub(crate) out: Vec<u8>,
    held: usize,
    /// Most streams that this side wants.
    wanted: u32,
    settings: Option<PeerSettings>,
    /// How requests' headers are sent.
    mode: HeaderMode,
    /// The server's window for all bodies.
    window: i64,
    received: u32,
    /// Last stream that the server will look at, once it said so.
    goaway: Option<u32>,
    /// A header block that continues, with the head that began it.
    continued: Option<(Head, Vec<u8>)>,
    first_byte: bool,
}

#[derive(Debug, Clone, Copy)]
struct PeerSettings {
    max_streams: u32,
    initial_window: i64,
    max_frame: usize,
    table: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HeaderMode {
    /// The table is still empty.
    First,
    /// The request's fields are in the table.
    Again,
    /// The peer's table is too small; `true` until it was told that its size is 0.
    Literal(bool),
}

impl Connection {
    /// A connection that wants up to `streams` at once. The client's preface is ready in `out`.
    #[must_use]
    pub fn new(streams: u32) -> Self {
        let mut connection = Self {
            reader: FrameReader::default(),
            streams: Vec::with_capacity(streams.min(1024) as usize),
            next_stream: 1,
            out: Vec::with_capacity(128),
            held: 0,
            wanted: streams,
            settings: None,
            mode: HeaderMode::First,
            window: DEFAULT_WINDOW,
            received: 0,
            goaway: None,
            continued: None,
            first_byte: false,
        };
        let out = &mut connection.out;
        out.extend_from_slice(PREFACE);
        let settings: Vec<u8> = [
            (SETTINGS_HEADER_TABLE_SIZE, 0u32),
            (SETTINGS_ENABLE_PUSH, 0),
            (SETTINGS_INITIAL_WINDOW_SIZE, MAX_WINDOW as u32),
        ]
        .iter()
        .flat_map(|(key, value)| key.to_be_bytes().into_iter().chain(value.to_be_bytes()))
        .collect();
        frame::put(out, frame::SETTINGS, 0, 0, &settings);
        let raise = (MAX_WINDOW - DEFAULT_WINDOW) as u32;
        frame::put(out, frame::WINDOW_UPDATE, 0, 0, &raise.to_be_bytes());
        connection
    }

    /// Whether the server's SETTINGS are here.
    #[must_use]
    pub fn has_settings(&self) -> bool {
        self.settings.is_some()
    }

    /// Whether a response has begun.
    #[must_use]
    pub fn has_first_byte(&self) -> bool {
        self.first_byte
    }

    /// Streams that both sides allow at once.
    #[must_use]
    pub fn capacity(&self) -> u32 {
        self.settings
            .map_or(0, |settings| settings.max_streams.min(self.wanted))
    }

    /// Whether another request may begin.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.goaway.is_none()
            && self.next_stream < LAST_STREAM
            && (self.streams.len() as u32) < self.capacity()
    }

    /// Whether the server wants no more requests here.
    #[must_use]
    pub fn is_leaving(&self) -> bool {
        self.goaway.is_some() || self.next_stream >= LAST_STREAM
    }

    /// Begins a request; what is to be sent is in `out`.
    pub fn begin(&mut self, request: &Request, in_flight: InFlight) {
        let settings = self.settings.unwrap_or(PeerSettings::DEFAULT);
        let id = self.next_stream;
        self.next_stream += 2;
        let end = if request.body.is_empty() {
            frame::END_STREAM
        } else {
            0
        };
        let block = &request.block;
        if self.mode == HeaderMode::First
            && (settings.table < DEFAULT_TABLE || block.table > DEFAULT_TABLE)
        {
            self.mode = HeaderMode::Literal(settings.table < DEFAULT_TABLE);
        }
        match self.mode {
            HeaderMode::First => {
                put_headers(&mut self.out, id, end, &block.first, settings.max_frame);
                self.mode = HeaderMode::Again;
            }
            HeaderMode::Again => {
                put_headers(&mut self.out, id, end, &block.again, settings.max_frame)
            }
            HeaderMode::Literal(false) => {
                put_headers(&mut self.out, id, end, &block.literal, settings.max_frame);
            }
            HeaderMode::Literal(true) => {
                // The peer lowered its table's size, which must be acknowledged in the next block (RFC 7541, 4.2).
                let mut with_update = vec![0x20];
                with_update.extend_from_slice(&block.literal);
                put_headers(&mut self.out, id, end, &with_update, settings.max_frame);
                self.mode = HeaderMode::Literal(false);
            }
        }
        self.held += 1;
        self.streams.push(Stream {
            id,
            request: in_flight,
            status: 0,
            unsent: request.body.len(),
            window: settings.initial_window,
            received: 0,
        });
        if !request.body.is_empty() {
            self.send_bodies(request);
        }
    }

    /// Sends request bodies as far as the server's windows allow.
    fn send_bodies(&mut self, request: &Request) {
        let max_frame = self.settings.unwrap_or(PeerSettings::DEFAULT).max_frame;
        for stream in &mut self.streams {
            while stream.unsent > 0 && self.window > 0 && stream.window > 0 {
                let allowed = self.window.min(stream.window) as usize;
                let length = stream.unsent.min(allowed).min(max_frame);
                let from = request.body.len() - stream.unsent;
                stream.unsent -= length;
                stream.window -= length as i64;
                self.window -= length as i64;
                let flags = if stream.unsent == 0 {
                    frame::END_STREAM
                } else {
                    0
                };
                let part = &request.body[from..from + length];
                frame::put(&mut self.out, frame::DATA, flags, stream.id, part);
            }
        }
    }

    /// What was to be sent is on its way.
    pub fn flushed(&mut self) {
        self.out.clear();
        self.held = 0;
    }

    /// Requests begun since the output was last sent.
    #[must_use]
    pub fn held(&self) -> usize {
        self.held
    }

    /// Requests without an end.
    #[must_use]
    pub fn open(&self) -> usize {
        self.streams.len()
    }

    /// Takes all open requests, when the connection is lost.
    pub fn take_requests(&mut self) -> impl Iterator<Item = InFlight> {
        self.streams.drain(..).map(|stream| stream.request)
    }

    /// When the oldest open request was sent.
    #[must_use]
    pub fn oldest_sent(&self) -> Option<u64> {
        self.streams.iter().map(|stream| stream.request.sent).min()
    }

    /// Gives up requests that were sent at or before `sent`.
    pub fn cancel(&mut self, sent: u64, signals: &mut Vec<Signal>) {
        let out = &mut self.out;
        self.streams.retain(|stream| {
            let keep = stream.request.sent > sent;
            if !keep {
                frame::put(
                    out,
                    frame::RST_STREAM,
                    0,
                    stream.id,
                    &ERROR_CANCEL.to_be_bytes(),
                );
                signals.push(Signal::Failed {
                    request: stream.request,
                    class: ErrorClass::Timeout,
                });
            }
            keep
        });
    }
}

impl PeerSettings {
    /// Before the server said otherwise (section 6.5.2).
    const DEFAULT: Self = Self {
        max_streams: u32::MAX,
        initial_window: DEFAULT_WINDOW,
        max_frame: DEFAULT_MAX_FRAME,
        table: DEFAULT_TABLE,
    };
}

/// A header block as HEADERS and, if it does not fit, CONTINUATION.
fn put_headers(out: &mut Vec<u8>, stream: u32, end: u8, block: &[u8], max_frame: usize) {
    let (first, mut rest) = block.split_at(block.len().min(max_frame));
    let last = |rest: &[u8]| {
        if rest.is_empty() {
            frame::END_HEADERS
        } else {
            0
        }
    };
    frame::put(out, frame::HEADERS, end | last(rest), stream, first);
    while !rest.is_empty() {
        let (part, later) = rest.split_at(rest.len().min(max_frame));
        rest = later;
        frame::put(out, frame::CONTINUATION, last(rest), stream, part);
    }
}

#[cfg(test)]
mod tests;
