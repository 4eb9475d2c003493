//! HTTP/2 frames (RFC 9113, section 4). Pure.

/// Length of a frame's head.
pub(super) const HEAD: usize = 9;
/// Largest payload that is accepted: `SETTINGS_MAX_FRAME_SIZE` is left at its default.
pub(super) const MAX_PAYLOAD: usize = 16_384;

pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
pub(super) const RST_STREAM: u8 = 3;
pub(super) const SETTINGS: u8 = 4;
pub(super) const PUSH_PROMISE: u8 = 5;
pub(super) const PING: u8 = 6;
pub(super) const GOAWAY: u8 = 7;
pub(super) const WINDOW_UPDATE: u8 = 8;
pub(super) const CONTINUATION: u8 = 9;

pub(super) const ACK: u8 = 0x1;
pub(super) const END_STREAM: u8 = 0x1;
pub(super) const END_HEADERS: u8 = 0x4;
pub(super) const PADDED: u8 = 0x8;
pub(super) const PRIORITY: u8 = 0x20;

/// A frame's head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) length: usize,
    pub(super) kind: u8,
    pub(super) flags: u8,
    pub(super) stream: u32,
}

impl Head {
    pub(super) fn parse(bytes: &[u8; HEAD]) -> Self {
        Self {
            length: usize::from(bytes[0]) << 16
                | usize::from(bytes[1]) << 8
                | usize::from(bytes[2]),
            kind: bytes[3],
            flags: bytes[4],
            stream: u32::from_be_bytes([bytes[5], bytes[6], bytes[7], bytes[8]]) & 0x7fff_ffff,
        }
    }

    pub(super) fn bytes(self) -> [u8; HEAD] {
        let length = (self.length as u32).to_be_bytes();
        let stream = self.stream.to_be_bytes();
        [
            length[1], length[2], length[3], self.kind, self.flags, stream[0], stream[1],
            stream[2], stream[3],
        ]
    }
}

/// Appends a frame.
pub(super) fn put(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    let head = Head {
        length: payload.len(),
        kind,
        flags,
        stream,
    };
    out.extend_from_slice(&head.bytes());
    out.extend_from_slice(payload);
}

/// Cuts a stream of bytes into frames. Payloads of DATA are passed on piece by piece, others as a whole.
#[derive(Debug, Default)]
pub(super) struct FrameReader {
    head: [u8; HEAD],
    /// Bytes of the head that are here.
    have: usize,
    /// Bytes of the payload still to come, once the head is whole.
    left: usize,
    payload: Vec<u8>,
}

/// What comes out of a [`FrameReader`].
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    /// Some or all of a DATA frame's payload; `last` with its end.
    Data {
        head: Head,
        length: usize,
        last: bool,
    },
    /// Any other frame.
    Frame { head: Head, payload: &'a [u8] },
}

/// The peer's frame is larger than allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TooLarge;

impl FrameReader {
    /// Takes bytes; `sink` gets each piece, and its error ends it.
    pub(super) fn feed<E: From<TooLarge>>(
        &mut self,
        mut data: &[u8],
        mut sink: impl FnMut(Piece<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        loop {
            if self.have < HEAD {
                let take = data.len().min(HEAD - self.have);
                self.head[self.have..self.have + take].copy_from_slice(&data[..take]);
                self.have += take;
                data = &data[take..];
                if self.have < HEAD {
                    return Ok(());
                }
                self.left = Head::parse(&self.head).length;
                if self.left > MAX_PAYLOAD {
                    return Err(TooLarge.into());
                }
            }
            let head = Head::parse(&self.head);
            let take = data.len().min(self.left);
            let (now, later) = data.split_at(take);
            self.left -= take;
            let last = self.left == 0;
            if head.kind == DATA {
                if take > 0 || last {
                    sink(Piece::Data {
                        head,
                        length: take,
                        last,
                    })?;
                }
            } else if last && self.payload.is_empty() {
                // The common case: the payload is whole, and nothing is copied.
                sink(Piece::Frame { head, payload: now })?;
            } else {
                self.payload.extend_from_slice(now);
                if last {
                    let payload = std::mem::take(&mut self.payload);
                    sink(Piece::Frame {
                        head,
                        payload: &payload,
                    })?;
                }
            }
            if !last {
                return Ok(());
            }
            self.have = 0;
            data = later;
            if data.is_empty() {
                return Ok(());
            }
        }
    }
}

/// The part of a HEADERS or DATA payload without padding and priority; `None` if the lengths contradict each other.
pub(super) fn unpadded(head: Head, mut payload: &[u8]) -> Option<&[u8]> {
    let mut padding = 0;
    if head.flags & PADDED != 0 {
        let (&first, rest) = payload.split_first()?;
        padding = usize::from(first);
        payload = rest;
    }
    if head.kind == HEADERS && head.flags & PRIORITY != 0 {
        payload = payload.get(5..)?;
    }
    payload.get(..payload.len().checked_sub(padding)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Debug, PartialEq)]
    struct Failed;
    impl From<TooLarge> for Failed {
        fn from(_: TooLarge) -> Self {
            Self
        }
    }

    proptest! {
        #[test]
        fn frames_come_out_as_they_went_in(
            frames in prop::collection::vec((0u8..10, any::<u8>(), 0u32..1000, prop::collection::vec(any::<u8>(), 0..200)), 1..20),
            cuts in prop::collection::vec(1usize..50, 1..40),
        ) {
            let mut bytes = Vec::new();
            for (kind, flags, stream, payload) in &frames {
                put(&mut bytes, *kind, *flags, *stream, payload);
            }
            let mut reader = FrameReader::default();
            let mut found: Vec<(u8, u8, u32, usize, Vec<u8>)> = Vec::new();
            let mut data_so_far = 0;
            let mut rest = &bytes[..];
            for cut in cuts.iter().cycle() {
                if rest.is_empty() { break; }
                let (now, later) = rest.split_at((*cut).min(rest.len()));
                rest = later;
                reader.feed::<Failed>(now, |piece| {
                    match piece {
                        Piece::Data { head, length, last } => {
                            data_so_far += length;
                            if last {
                                found.push((head.kind, head.flags, head.stream, data_so_far, Vec::new()));
                                data_so_far = 0;
                            }
                        }
                        Piece::Frame { head, payload } => {
                            found.push((head.kind, head.flags, head.stream, payload.len(), payload.to_vec()));
                        }
                    }
                    Ok(())
                }).expect("frames are valid");
            }
            let expected: Vec<_> = frames.iter().map(|(kind, flags, stream, payload)| {
                let content = if *kind == DATA { Vec::new() } else { payload.clone() };
                (*kind, *flags, *stream, payload.len(), content)
            }).collect();
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn padding_never_panics(flags: u8, payload in prop::collection::vec(any::<u8>(), 0..40)) {
            let head = Head { length: payload.len(), kind: HEADERS, flags, stream: 1 };
            let _ = unpadded(head, &payload);
        }
    }

    #[test]
    fn a_frame_that_is_too_large_is_refused() {
        let head = Head {
            length: MAX_PAYLOAD + 1,
            kind: HEADERS,
            flags: 0,
            stream: 1,
        };
        let mut reader = FrameReader::default();
        assert_eq!(
            reader.feed::<Failed>(&head.bytes(), |_| Ok(())),
            Err(Failed)
        );
    }

    #[test]
    fn padding_and_priority_are_cut_off() {
        let head = |flags| Head {
            length: 0,
            kind: HEADERS,
            flags,
            stream: 1,
        };
        assert_eq!(unpadded(head(0), b"abc"), Some(&b"abc"[..]));
        assert_eq!(unpadded(head(PADDED), b"\x02abcxx"), Some(&b"abc"[..]));
        assert_eq!(
            unpadded(head(PADDED | PRIORITY), b"\x01ppppWabcx"),
            Some(&b"abc"[..])
        );
        assert_eq!(unpadded(head(PADDED), b"\x09abc"), None);
        assert_eq!(unpadded(head(PADDED), b""), None);
    }
}
