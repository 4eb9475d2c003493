//! HTTP/1.1, client side: the request's bytes, made once, and an incremental reader of responses. Pure.

use std::fmt::Write as _;

use crate::spec::settings::Load;

/// Longest response head that is accepted.
const MAX_HEAD: usize = 64 * 1024;
const MAX_HEADERS: usize = 128;

/// What makes up a request, whatever the HTTP version.
#[derive(Debug, Clone)]
pub struct RequestTemplate {
    /// Method, upper case.
    pub method: String,
    /// Path with query.
    pub path: String,
    /// `Host` or `:authority`.
    pub authority: String,
    /// Further headers; names as given.
    pub headers: Vec<(String, String)>,
    /// Length of the body.
    pub body: usize,
}

impl RequestTemplate {
    /// The request of a job's load.
    #[must_use]
    pub fn of(load: &Load, authority: &str) -> Self {
        Self {
            method: load.method.clone(),
            path: load.path.clone(),
            authority: authority.to_owned(),
            headers: load
                .headers
                .iter()
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
            body: load.body.0 as usize,
        }
    }

    /// The whole request as HTTP/1.1, body included.
    #[must_use]
    pub fn http1(&self) -> Vec<u8> {
        let mut head = format!("{} {} HTTP/1.1\r\n", self.method, self.path);
        let has = |name: &str| {
            self.headers
                .iter()
                .any(|(n, _)| n.eq_ignore_ascii_case(name))
        };
        if !has("host") {
            let _ = write!(head, "Host: {}\r\n", self.authority);
        }
        for (name, value) in &self.headers {
            let _ = write!(head, "{name}: {value}\r\n");
        }
        if self.body > 0 && !has("content-length") {
            let _ = write!(head, "Content-Length: {}\r\n", self.body);
        }
        head.push_str("\r\n");
        let mut bytes = head.into_bytes();
        bytes.extend(body_bytes(self.body));
        bytes
    }
}

/// A request body: printable, so that a capture can be read.
pub(crate) fn body_bytes(length: usize) -> impl Iterator<Item = u8> {
    (0..length).map(|i| b'a' + (i % 26) as u8)
}

/// A response that has been read to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Response {
    /// Status code.
    pub status: u16,
    /// Whether the connection may carry another request.
    pub keep_alive: bool,
}

/// Why bytes are not a valid response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ResponseError {
    /// The head does not parse.
    #[error("response head is not HTTP/1.1")]
    Head,
    /// The head does not end.
    #[error("response head is longer than {MAX_HEAD} bytes")]
    TooLong,
    /// Contradicting or unreadable framing.
    #[error("response length is not valid")]
    Length,
    /// A chunk header does not parse.
    #[error("chunk header is not valid")]
    Chunk,
    /// Bytes after the end of the response, though nothing else was asked.
    #[error("bytes after the end of the response")]
    Excess,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Head,
    Body { left: u64 },
    Chunks(ChunkState),
    UntilClose,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChunkState {
    /// Hex digits so far, and whether there was any.
    Size {
        value: u64,
        digits: u8,
    },
    /// After the size, up to its line feed.
    Extension {
        value: u64,
    },
    Data {
        left: u64,
    },
    /// CR LF after the data.
    DataEnd,
    /// Trailer lines; `empty` while nothing but CR was seen on the line.
    Trailer {
        empty: bool,
    },
}

/// Reads the responses of one connection, one after the other.
#[derive(Debug)]
pub struct ResponseReader {
    state: State,
    status: u16,
    keep_alive: bool,
    head_request: bool,
    partial: Vec<u8>,
}

impl ResponseReader {
    /// A reader; after a `HEAD` request no response has a body.
    #[must_use]
    pub fn new(head_request: bool) -> Self {
        Self {
            state: State::Head,
            status: 0,
            keep_alive: true,
            head_request,
            partial: Vec::new(),
        }
    }

    /// Whether the connection may carry another request, by the last response.
    #[must_use]
    pub fn keeps_alive(&self) -> bool {
        self.keep_alive
    }

    /// Ready for the first response of another connection.
    pub fn reset(&mut self) {
        self.state = State::Head;
        self.keep_alive = true;
        self.partial.clear();
    }

    /// Takes bytes; tells when they end a response. Nothing may follow it, since only one request is open at a time.
    ///
    /// # Errors
    /// When the bytes are not a valid response.
    pub fn feed(&mut self, mut data: &[u8]) -> Result<Option<Response>, ResponseError> {
        while !data.is_empty() {
            let (used, ended) = match self.state {
                State::Head => self.head(data)?,
                State::Body { left } => self.body(data, left),
                State::Chunks(chunk) => self.chunks(data, chunk)?,
                State::UntilClose => (data.len(), false),
            };
            data = &data[used..];
            if ended {
                self.state = State::Head;
                if !data.is_empty() {
                    return Err(ResponseError::Excess);
                }
                return Ok(Some(Response {
                    status: self.status,
                    keep_alive: self.keep_alive,
                }));
            }
        }
        Ok(None)
    }

    /// The peer closed: the end of a response without a length, else `None`.
    pub fn close(&mut self) -> Option<Response> {
        (self.state == State::UntilClose).then(|| {
            self.state = State::Head;
            self.keep_alive = false;
            Response {
                status: self.status,
                keep_alive: false,
            }
        })
    }

    fn head(&mut self, data: &[u8]) -> Result<(usize, bool), ResponseError> {
        if self.partial.is_empty() {
            // The common case: the head is whole, and nothing is copied.
            if let Some(length) = self.parse_head(data)? {
                return Ok((length, self.ends_at_once()));
            }
            self.partial.extend_from_slice(data);
        } else {
            let before = self.partial.len();
            self.partial.extend_from_slice(data);
            let partial = std::mem::take(&mut self.partial);
            if let Some(length) = self.parse_head(&partial)? {
                return Ok((length - before, self.ends_at_once()));
            }
            self.partial = partial;
        }
        if self.partial.len() > MAX_HEAD {
            return Err(ResponseError::TooLong);
        }
        Ok((data.len(), false))
    }

    fn ends_at_once(&self) -> bool {
        self.state == State::Body { left: 0 }
    }

    /// Parses a head; on success sets the state that follows it and tells its length.
    fn parse_head(&mut self, data: &[u8]) -> Result<Option<usize>, ResponseError> {
        let mut headers = [const { std::mem::MaybeUninit::uninit() }; MAX_HEADERS];
        let mut response = httparse::Response::new(&mut []);
        let parsed = httparse::ParserConfig::default().parse_response_with_uninit_headers(
            &mut response,
            data,
            &mut headers,
        );
        let length = match parsed {
            Ok(httparse::Status::Complete(length)) => length,
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(_) => return Err(ResponseError::Head),
        };
        let status = response.code.ok_or(ResponseError::Head)?;
        let framing = Framing::of(response.headers, response.version == Some(1))?;
        self.status = status;
        self.keep_alive = framing.keep_alive;
        self.state = match status {
            101 => return Err(ResponseError::Head),
            // Interim: the real one follows.
            100..=199 => State::Head,
            204 | 304 => State::Body { left: 0 },
            _ if self.head_request => State::Body { left: 0 },
            _ if framing.chunked => State::Chunks(ChunkState::Size {
                value: 0,
                digits: 0,
            }),
            _ => match framing.length {
                Some(left) => State::Body { left },
                None => State::UntilClose,
            },
        };
        Ok(Some(length))
    }

    fn body(&mut self, data: &[u8], left: u64) -> (usize, bool) {
        let used = (data.len() as u64).min(left);
        self.state = State::Body { left: left - used };
        (used as usize, left == used)
    }

    fn chunks(&mut self, data: &[u8], chunk: ChunkState) -> Result<(usize, bool), ResponseError> {
        if let ChunkState::Data { left } = chunk {
            let used = (data.len() as u64).min(left);
            self.state = State::Chunks(if used == left {
                ChunkState::DataEnd
            } else {
                ChunkState::Data { left: left - used }
            });
            return Ok((used as usize, false));
        }
        let (next, ended) = chunk.step(data[0])?;
        self.state = State::Chunks(next);
        Ok((1, ended))
    }
}

impl ChunkState {
    /// One byte of the framing between chunks; `true` after the last.
    fn step(self, byte: u8) -> Result<(Self, bool), ResponseError> {
        let next = match (self, byte) {
            (Self::Size { value, digits }, _) if byte.is_ascii_hexdigit() && digits < 15 => {
                let digit = (byte as char).to_digit(16).ok_or(ResponseError::Chunk)?;
                Self::Size {
                    value: value * 16 + u64::from(digit),
                    digits: digits + 1,
                }
            }
            (Self::Size { digits: 0, .. }, _) => return Err(ResponseError::Chunk),
            (Self::Size { value, .. }, b';' | b' ' | b'\t' | b'\r') => Self::Extension { value },
            (Self::Extension { value: 0 }, b'\n') => Self::Trailer { empty: true },
            (Self::Extension { value }, b'\n') => Self::Data { left: value },
            (Self::Extension { value }, _) => Self::Extension { value },
            (Self::DataEnd, b'\r') => Self::DataEnd,
            (Self::DataEnd, b'\n') => Self::Size {
                value: 0,
                digits: 0,
            },
            (Self::Trailer { empty: true }, b'\n') => return Ok((self, true)),
            (Self::Trailer { .. }, b'\n') => Self::Trailer { empty: true },
            (Self::Trailer { empty }, b'\r') => Self::Trailer { empty },
            (Self::Trailer { .. }, _) => Self::Trailer { empty: false },
            _ => return Err(ResponseError::Chunk),
        };
        Ok((next, false))
    }
}

struct Framing {
    length: Option<u64>,
    chunked: bool,
    keep_alive: bool,
}

impl Framing {
    fn of(headers: &[httparse::Header<'_>], http11: bool) -> Result<Self, ResponseError> {
        let mut framing = Self {
            length: None,
            chunked: false,
            keep_alive: http11,
        };
        for header in headers {
            // Lengths first: comparing names without case is the cost of this loop.
            match header.name.len() {
                14 if header.name.eq_ignore_ascii_case("content-length") => {
                    let length = parse_length(header.value).ok_or(ResponseError::Length)?;
                    if framing.length.is_some_and(|other| other != length) {
                        return Err(ResponseError::Length);
                    }
                    framing.length = Some(length);
                }
                17 if header.name.eq_ignore_ascii_case("transfer-encoding") => {
                    framing.chunked = ends_with_token(header.value, b"chunked");
                    if !framing.chunked {
                        return Err(ResponseError::Length);
                    }
                }
                10 if header.name.eq_ignore_ascii_case("connection") => {
                    if has_token(header.value, b"close") {
                        framing.keep_alive = false;
                    } else if has_token(header.value, b"keep-alive") {
                        framing.keep_alive = true;
                    }
                }
                _ => {}
            }
        }
        Ok(framing)
    }
}

fn parse_length(value: &[u8]) -> Option<u64> {
    let digits = value.trim_ascii();
    if digits.is_empty() || digits.len() > 18 {
        return None;
    }
    digits.iter().try_fold(0u64, |sum, byte| {
        byte.is_ascii_digit()
            .then(|| sum * 10 + u64::from(byte - b'0'))
    })
}

fn tokens(value: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> {
    value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii)
}

fn has_token(value: &[u8], token: &[u8]) -> bool {
    tokens(value).any(|t| t.eq_ignore_ascii_case(token))
}

fn ends_with_token(value: &[u8], token: &[u8]) -> bool {
    tokens(value)
        .next_back()
        .is_some_and(|t| t.eq_ignore_ascii_case(token))
}

#[cfg(test)]
mod tests;
