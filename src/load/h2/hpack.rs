//! HPACK (RFC 7541), as much as a load generator needs: requests are encoded once, and of responses only the status is
//! read. Pure.
//!
//! The decoder allows no dynamic table (`SETTINGS_HEADER_TABLE_SIZE` 0), so that a block means the same whatever came
//! before it, and header fields other than the status can be skipped without decoding them.

use crate::load::http1::RequestTemplate;

/// Size of the peer's table before its SETTINGS say otherwise.
pub(super) const DEFAULT_TABLE: usize = 4096;
/// Entries of the static table.
const STATIC: usize = 61;
/// Bookkeeping that each entry of a table counts for (section 4.1).
const ENTRY_OVERHEAD: usize = 32;

/// Why a header block cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HpackError {
    /// The block ends within a field.
    #[error("header block ends within a field")]
    Truncated,
    /// An index or length that is out of range.
    #[error("integer in a header block is out of range")]
    Range,
    /// A field of the dynamic table, which has no room.
    #[error("header block refers to the dynamic table, which was disabled")]
    Dynamic,
    /// A status that is not three digits.
    #[error("status is not a number")]
    Status,
}

/// The value of `:status` in a header block; `None` in trailers.
pub(super) fn status(mut block: &[u8]) -> Result<Option<u16>, HpackError> {
    let mut status = None;
    while let Some(&first) = block.first() {
        let (prefix, literal) = match first {
            0x80.. => (7, false),
            0x40.. => (6, true),
            // Change of the table's size.
            0x20.. => {
                integer(&mut block, 5)?;
                continue;
            }
            _ => (4, true),
        };
        let index = integer(&mut block, prefix)?;
        if index > STATIC || (index == 0 && !literal) {
            return Err(HpackError::Dynamic);
        }
        if !literal {
            if let Some(value) = static_status(index) {
                status = Some(value);
            }
            continue;
        }
        let is_status = if index == 0 {
            let (huffman, name) = string(&mut block)?;
            !huffman && name == b":status"
        } else {
            static_status(index).is_some()
        };
        let (huffman, value) = string(&mut block)?;
        if is_status {
            status = Some(parse_status(huffman, value)?);
        }
    }
    Ok(status)
}

/// Entries 8 to 14 of the static table (appendix A).
fn static_status(index: usize) -> Option<u16> {
    [200, 204, 206, 304, 400, 404, 500]
        .get(index.checked_sub(8)?)
        .copied()
}

fn integer(block: &mut &[u8], prefix: u32) -> Result<usize, HpackError> {
    let (&first, mut rest) = block.split_first().ok_or(HpackError::Truncated)?;
    let mask = (1usize << prefix) - 1;
    let mut value = usize::from(first) & mask;
    if value == mask {
        let mut shift = 0;
        loop {
            let (&byte, more) = rest.split_first().ok_or(HpackError::Truncated)?;
            rest = more;
            value += usize::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                break;
            }
            if shift > 21 {
                return Err(HpackError::Range);
            }
        }
    }
    *block = rest;
    Ok(value)
}

/// A string as it stands, and whether it is Huffman-coded.
fn string<'a>(block: &mut &'a [u8]) -> Result<(bool, &'a [u8]), HpackError> {
    let huffman = block.first().ok_or(HpackError::Truncated)? & 0x80 != 0;
    let length = integer(block, 7)?;
    if length > block.len() {
        return Err(HpackError::Truncated);
    }
    let (value, rest) = block.split_at(length);
    *block = rest;
    Ok((huffman, value))
}

fn parse_status(huffman: bool, value: &[u8]) -> Result<u16, HpackError> {
    let mut digits = [0u8; 3];
    if huffman {
        huffman_digits(value, &mut digits).ok_or(HpackError::Status)?;
    } else {
        digits = value.try_into().map_err(|_| HpackError::Status)?;
    }
    digits.iter().try_fold(0u16, |sum, byte| {
        if byte.is_ascii_digit() {
            Ok(sum * 10 + u16::from(byte - b'0'))
        } else {
            Err(HpackError::Status)
        }
    })
}

/// Three decimal digits in the code of appendix B: `0`, `1`, `2` are 00000 to 00010, `3` to `9` are 011001 to 011111; the
/// rest of the last byte is filled with ones.
fn huffman_digits(value: &[u8], digits: &mut [u8; 3]) -> Option<()> {
    if value.is_empty() || value.len() > 3 {
        return None;
    }
    let mut bits = value
        .iter()
        .fold(0u32, |bits, byte| bits << 8 | u32::from(*byte))
        << (8 * (4 - value.len()));
    let mut left = 8 * value.len() as u32;
    for digit in digits {
        let length = match bits >> 27 {
            five @ 0..=2 => {
                *digit = b'0' + five as u8;
                5
            }
            _ => {
                let six = bits >> 26;
                *digit = b'3' + six.checked_sub(0b01_1001).filter(|d| *d <= 6)? as u8;
                6
            }
        };
        left = left.checked_sub(length)?;
        bits <<= length;
    }
    let ones = (1u32 << left) - 1;
    (left < 8 && (left == 0 || bits >> (32 - left) == ones)).then_some(())
}

/// A request's header block: what opens a connection, and what repeats.
#[derive(Debug, Clone)]
pub(super) struct RequestBlock {
    /// For the first request: enters its fields into the peer's table.
    pub(super) first: Vec<u8>,
    /// For the following ones: refers to that table.
    pub(super) again: Vec<u8>,
    /// Room in the peer's table that `first` and `again` need.
    pub(super) table: usize,
    /// For any request, without a table.
    pub(super) literal: Vec<u8>,
}

impl RequestBlock {
    pub(super) fn new(template: &RequestTemplate, https: bool) -> Self {
        let mut block = Self {
            first: Vec::new(),
            again: Vec::new(),
            table: 0,
            literal: Vec::new(),
        };
        let mut entered = Vec::new();
        for field in fields(template, https) {
            match field {
                Field::Static(index) => {
                    for out in [&mut block.first, &mut block.literal] {
                        put_integer(out, 0x80, 7, index);
                    }
                    entered.push(Some(index));
                }
                Field::Named(index, name, value) => {
                    put_literal(&mut block.first, 0x40, 6, index, &name, &value);
                    put_literal(&mut block.literal, 0x00, 4, index, &name, &value);
                    block.table += name.len() + value.len() + ENTRY_OVERHEAD;
                    entered.push(None);
                }
            }
        }
        // The newest entry has the smallest index, one beyond the static table.
        let mut older = entered.iter().filter(|field| field.is_none()).count();
        for field in entered {
            let index = field.unwrap_or_else(|| {
                older -= 1;
                STATIC + 1 + older
            });
            put_integer(&mut block.again, 0x80, 7, index);
        }
        block
    }
}

enum Field {
    /// A whole entry of the static table.
    Static(usize),
    /// Index of the name in the static table or 0, name, value.
    Named(usize, String, String),
}

fn fields(template: &RequestTemplate, https: bool) -> Vec<Field> {
    let named =
        |index, name: &str, value: &str| Field::Named(index, name.to_owned(), value.to_owned());
    let host = template
        .headers
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case("host"))
        .map_or(&template.authority, |(_, value)| value);
    let mut fields = vec![
        match template.method.as_str() {
            "GET" => Field::Static(2),
            "POST" => Field::Static(3),
            other => named(2, ":method", other),
        },
        Field::Static(if https { 7 } else { 6 }),
        match template.path.as_str() {
            "/" => Field::Static(4),
            other => named(4, ":path", other),
        },
        named(1, ":authority", host),
    ];
    for (name, value) in &template.headers {
        let name = name.to_ascii_lowercase();
        // Host went into :authority; the others describe an HTTP/1.1 connection (RFC 9113, section 8.2.2).
        let skipped = [
            "host",
            "connection",
            "keep-alive",
            "proxy-connection",
            "transfer-encoding",
            "upgrade",
        ];
        if !skipped.contains(&name.as_str()) {
            fields.push(named(0, &name, value));
        }
    }
    let has_length = template
        .headers
        .iter()
        .any(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    if template.body > 0 && !has_length {
        fields.push(named(28, "content-length", &template.body.to_string()));
    }
    fields
}

fn put_integer(out: &mut Vec<u8>, flags: u8, prefix: u32, value: usize) {
    let mask = (1usize << prefix) - 1;
    if value < mask {
        out.push(flags | value as u8);
        return;
    }
    out.push(flags | mask as u8);
    let mut rest = value - mask;
    while rest >= 0x80 {
        out.push((rest & 0x7f) as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

fn put_literal(out: &mut Vec<u8>, flags: u8, prefix: u32, index: usize, name: &str, value: &str) {
    put_integer(out, flags, prefix, index);
    if index == 0 {
        put_integer(out, 0, 7, name.len());
        out.extend_from_slice(name.as_bytes());
    }
    put_integer(out, 0, 7, value.len());
    out.extend_from_slice(value.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_the_status_of_rfc_7541() {
        // C.6.1: Huffman-coded, with fields that would enter the table.
        let block = hex(
            "488264025885aec3771a4b6196d07abe941054d444a8200595040b8166e082a62d1bff6e919d29ad171863c78f0b97c8e9ae82ae43d3",
        );
        assert_eq!(status(&block), Ok(Some(302)));
        // C.5.1: the same without Huffman coding.
        let block = hex(
            "4803333032580770726976617465611d4d6f6e2c203231204f637420323031332032303a31333a323120474d546e1768747470733a2f2f7777772e6578616d706c652e636f6d",
        );
        assert_eq!(status(&block), Ok(Some(302)));
        assert_eq!(status(&[0x20, 0x88]), Ok(Some(200)));
        assert_eq!(status(&[0x8d]), Ok(Some(404)));
        assert_eq!(status(b"\x00\x07:status\x03503"), Ok(Some(503)));
        assert_eq!(status(b"\x00\x01a\x01b"), Ok(None));
    }

    #[test]
    fn refuses_what_it_cannot_know() {
        assert_eq!(status(&[0xbe]), Err(HpackError::Dynamic));
        assert_eq!(status(&[0x80]), Err(HpackError::Dynamic));
        assert_eq!(status(b"\x08\x03abc"), Err(HpackError::Status));
        assert_eq!(status(b"\x08\x0450"), Err(HpackError::Truncated));
        assert_eq!(
            status(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff]),
            Err(HpackError::Range)
        );
    }

    proptest! {
        #[test]
        fn every_status_survives_huffman_coding(code in 100u16..1000) {
            let text = code.to_string();
            let mut bits = String::new();
            for digit in text.bytes() {
                match digit {
                    b'0'..=b'2' => bits.push_str(&format!("{:05b}", digit - b'0')),
                    _ => bits.push_str(&format!("{:06b}", 0b01_1001 + digit - b'3')),
                }
            }
            while !bits.len().is_multiple_of(8) {
                bits.push('1');
            }
            let bytes: Vec<u8> = (0..bits.len() / 8)
                .map(|i| u8::from_str_radix(&bits[8 * i..8 * i + 8], 2).expect("bits"))
                .collect();
            let mut block = vec![0x08, 0x80 | bytes.len() as u8];
            block.extend(&bytes);
            prop_assert_eq!(status(&block), Ok(Some(code)));
        }

        #[test]
        fn garbage_never_panics(block in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = status(&block);
        }

        #[test]
        fn integers_survive(value in 0usize..1_000_000, prefix in 4u32..8) {
            let mut bytes = Vec::new();
            put_integer(&mut bytes, 0, prefix, value);
            let mut rest = &bytes[..];
            prop_assert_eq!(integer(&mut rest, prefix), Ok(value));
            prop_assert!(rest.is_empty());
        }
    }

    fn hex(text: &str) -> Vec<u8> {
        (0..text.len() / 2)
            .map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).expect("hex digits"))
            .collect()
    }

    #[test]
    fn a_request_repeats_by_index() {
        let template = RequestTemplate {
            method: "GET".into(),
            path: "/".into(),
            authority: "a.test".into(),
            headers: vec![
                ("X-One".into(), "1".into()),
                ("Connection".into(), "close".into()),
            ],
            body: 0,
        };
        let block = RequestBlock::new(&template, true);
        assert_eq!(block.first, b"\x82\x87\x84\x41\x06a.test\x40\x05x-one\x011");
        assert_eq!(block.again, [0x82, 0x87, 0x84, 63 | 0x80, 62 | 0x80]);
        assert_eq!(
            block.literal,
            b"\x82\x87\x84\x01\x06a.test\x00\x05x-one\x011"
        );
        assert_eq!(block.table, 10 + 6 + 32 + 5 + 1 + 32);
    }
}
