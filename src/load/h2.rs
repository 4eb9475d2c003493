//! HTTP/2, client side (RFC 9113), without sockets: bytes in, bytes and [`Signal`]s out.
//!
//! Only what a load generator needs: one request, made once and repeated on many streams; response bodies are counted
//! and dropped. Windows towards the server are as large as allowed, so that a response never waits for the generator.

mod frame;
mod hpack;

use frame::{FrameReader, Head, Piece, TooLarge};
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

const ERROR_REFUSED_STREAM: u32 = 7;
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

    /// Takes what the server sent.
    ///
    /// # Errors
    /// When it is not HTTP/2 as agreed.
    pub fn feed(
        &mut self,
        data: &[u8],
        request: &Request,
        now: u64,
        signals: &mut Vec<Signal>,
    ) -> Result<(), H2Error> {
        let mut reader = std::mem::take(&mut self.reader);
        let result = reader.feed(data, |piece| match piece {
            Piece::Data { head, length, last } => self.on_data(head, length, last, now, signals),
            Piece::Frame { head, payload } => self.on_frame(head, payload, request, now, signals),
        });
        self.reader = reader;
        result
    }

    fn on_frame(
        &mut self,
        head: Head,
        payload: &[u8],
        request: &Request,
        now: u64,
        signals: &mut Vec<Signal>,
    ) -> Result<(), H2Error> {
        let invalid = H2Error::Frame(head.kind);
        let expects_continuation = self.continued.is_some();
        if expects_continuation != (head.kind == frame::CONTINUATION) {
            return Err(invalid);
        }
        if self.settings.is_none() && head.kind != frame::SETTINGS {
            // The server's preface is a SETTINGS frame (section 3.4); anything else is another protocol.
            return Err(invalid);
        }
        match head.kind {
            frame::HEADERS => {
                let block = frame::unpadded(head, payload).ok_or(invalid)?;
                if head.flags & frame::END_HEADERS == 0 {
                    self.continued = Some((head, block.to_vec()));
                    return Ok(());
                }
                self.on_headers(head, block, now, signals)
            }
            frame::CONTINUATION => self.on_continuation(head, payload, now, signals),
            frame::SETTINGS if head.flags & frame::ACK == 0 => {
                self.on_settings(payload)?;
                self.send_bodies(request);
                Ok(())
            }
            frame::PING if head.flags & frame::ACK == 0 => {
                frame::put(&mut self.out, frame::PING, frame::ACK, 0, payload);
                Ok(())
            }
            frame::WINDOW_UPDATE => {
                let more = i64::from(number(payload).ok_or(invalid)? & 0x7fff_ffff);
                if head.stream == 0 {
                    self.window += more;
                } else if let Some(stream) = self.stream(head.stream) {
                    stream.window += more;
                }
                self.send_bodies(request);
                Ok(())
            }
            frame::RST_STREAM => {
                let code = number(payload).ok_or(invalid)?;
                self.on_reset(head.stream, code, signals);
                Ok(())
            }
            frame::GOAWAY => {
                let last = number(payload).ok_or(invalid)? & LAST_STREAM;
                self.on_goaway(last, signals);
                Ok(())
            }
            frame::PUSH_PROMISE => Err(invalid),
            _ => Ok(()),
        }
    }

    fn on_continuation(
        &mut self,
        head: Head,
        payload: &[u8],
        now: u64,
        signals: &mut Vec<Signal>,
    ) -> Result<(), H2Error> {
        let Some((first, mut block)) = self.continued.take() else {
            return Err(H2Error::Frame(head.kind));
        };
        if first.stream != head.stream || block.len() > 16 * frame::MAX_PAYLOAD {
            return Err(H2Error::Frame(head.kind));
        }
        block.extend_from_slice(payload);
        if head.flags & frame::END_HEADERS == 0 {
            self.continued = Some((first, block));
            return Ok(());
        }
        self.on_headers(first, &block, now, signals)
    }

    fn on_headers(
        &mut self,
        head: Head,
        block: &[u8],
        now: u64,
        signals: &mut Vec<Signal>,
    ) -> Result<(), H2Error> {
        if !self.first_byte {
            self.first_byte = true;
            signals.push(Signal::FirstByte);
        }
        let status = hpack::status(block)?;
        let ended = head.flags & frame::END_STREAM != 0;
        let Some(stream) = self.stream(head.stream) else {
            // Given up before.
            return Ok(());
        };
        match status {
            // Interim: the real one follows.
            Some(100..=199) if !ended => return Ok(()),
            Some(status) if stream.status == 0 => stream.status = status,
            Some(_) => return Err(H2Error::Frame(head.kind)),
            None if stream.status == 0 => return Err(H2Error::NoStatus),
            // Trailers.
            None => {}
        }
        if ended {
            self.end(head.stream, now, signals);
        }
        Ok(())
    }

    fn on_data(
        &mut self,
        head: Head,
        length: usize,
        last: bool,
        now: u64,
        signals: &mut Vec<Signal>,
    ) -> Result<(), H2Error> {
        if self.continued.is_some() || self.settings.is_none() {
            return Err(H2Error::Frame(head.kind));
        }
        self.received += length as u32;
        if i64::from(self.received) > MAX_WINDOW / 2 {
            frame::put(
                &mut self.out,
                frame::WINDOW_UPDATE,
                0,
                0,
                &self.received.to_be_bytes(),
            );
            self.received = 0;
        }
        let ended = last && head.flags & frame::END_STREAM != 0;
        let Some(index) = self
            .streams
            .iter()
            .position(|stream| stream.id == head.stream)
        else {
            return Ok(());
        };
        let stream = &mut self.streams[index];
        if stream.status == 0 {
            return Err(H2Error::NoStatus);
        }
        if ended {
            self.end(head.stream, now, signals);
            return Ok(());
        }
        stream.received += length as u32;
        if i64::from(stream.received) > MAX_WINDOW / 2 {
            let more = std::mem::take(&mut stream.received);
            frame::put(
                &mut self.out,
                frame::WINDOW_UPDATE,
                0,
                head.stream,
                &more.to_be_bytes(),
            );
        }
        Ok(())
    }

    fn end(&mut self, id: u32, now: u64, signals: &mut Vec<Signal>) {
        if let Some(index) = self.streams.iter().position(|stream| stream.id == id) {
            let stream = self.streams.swap_remove(index);
            if stream.unsent > 0 {
                // Answered before the request was whole: the rest is not wanted.
                frame::put(
                    &mut self.out,
                    frame::RST_STREAM,
                    0,
                    id,
                    &ERROR_CANCEL.to_be_bytes(),
                );
            }
            signals.push(Signal::Answered {
                request: stream.request,
                status: stream.status,
                now,
            });
        }
    }

    fn on_settings(&mut self, payload: &[u8]) -> Result<(), H2Error> {
        let (entries, rest) = payload.as_chunks::<6>();
        if !rest.is_empty() {
            return Err(H2Error::Frame(frame::SETTINGS));
        }
        let mut settings = self.settings.unwrap_or(PeerSettings::DEFAULT);
        for entry in entries {
            let value = u32::from_be_bytes([entry[2], entry[3], entry[4], entry[5]]);
            match u16::from_be_bytes([entry[0], entry[1]]) {
                SETTINGS_HEADER_TABLE_SIZE => settings.table = value as usize,
                SETTINGS_MAX_CONCURRENT_STREAMS => settings.max_streams = value,
                SETTINGS_INITIAL_WINDOW_SIZE => {
                    let change = i64::from(value) - settings.initial_window;
                    settings.initial_window = i64::from(value);
                    for stream in &mut self.streams {
                        stream.window += change;
                    }
                }
                SETTINGS_MAX_FRAME_SIZE => settings.max_frame = value as usize,
                _ => {}
            }
        }
        if settings.table < DEFAULT_TABLE && self.mode == HeaderMode::Again {
            self.mode = HeaderMode::Literal(true);
        }
        self.settings = Some(settings);
        frame::put(&mut self.out, frame::SETTINGS, frame::ACK, 0, &[]);
        Ok(())
    }

    fn on_reset(&mut self, id: u32, code: u32, signals: &mut Vec<Signal>) {
        if let Some(index) = self.streams.iter().position(|stream| stream.id == id) {
            let request = self.streams.swap_remove(index).request;
            signals.push(if code == ERROR_REFUSED_STREAM && self.goaway.is_some() {
                Signal::Unprocessed { request }
            } else {
                Signal::Failed {
                    request,
                    class: ErrorClass::Reset,
                }
            });
        }
    }

    fn on_goaway(&mut self, last: u32, signals: &mut Vec<Signal>) {
        self.goaway = Some(last);
        self.streams.retain(|stream| {
            if stream.id > last {
                signals.push(Signal::Unprocessed {
                    request: stream.request,
                });
            }
            stream.id <= last
        });
    }

    fn stream(&mut self, id: u32) -> Option<&mut Stream> {
        self.streams.iter_mut().find(|stream| stream.id == id)
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

/// The 31 or 32 bits at the start of a payload.
fn number(payload: &[u8]) -> Option<u32> {
    payload
        .first_chunk::<4>()
        .map(|bytes| u32::from_be_bytes(*bytes))
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
