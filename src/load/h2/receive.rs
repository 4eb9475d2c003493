//! What the server's frames mean.

use super::frame::{self, Head, Piece};
use super::{
    Connection, DEFAULT_TABLE, ERROR_CANCEL, H2Error, HeaderMode, LAST_STREAM, MAX_WINDOW,
    PeerSettings, Request, SETTINGS_HEADER_TABLE_SIZE, SETTINGS_INITIAL_WINDOW_SIZE,
    SETTINGS_MAX_CONCURRENT_STREAMS, SETTINGS_MAX_FRAME_SIZE, Stream, hpack,
};
use crate::load::report::ErrorClass;
use crate::load::signal::Signal;

const ERROR_REFUSED_STREAM: u32 = 7;

impl Connection {
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

/// The 31 or 32 bits at the start of a payload.
fn number(payload: &[u8]) -> Option<u32> {
    payload
        .first_chunk::<4>()
        .map(|bytes| u32::from_be_bytes(*bytes))
}
