//! Sizes and delays as people write them.

use std::time::Duration;

/// Longest delay: as much as the histogram holds.
pub(crate) const MAX_DELAY: Duration = Duration::from_secs(100);
/// Largest body, bytes (1 GiB).
pub(crate) const MAX_BODY: u64 = 1 << 30;

/// A size or delay that cannot be understood or served.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum UnitError {
    /// Not a size.
    #[error(
        "`{value}` is not a size; give bytes, or a number with Ki, Mi, Gi, K or M, for example 512 or 10KiB"
    )]
    NotASize {
        /// As given.
        value: String,
    },
    /// More than [`MAX_BODY`].
    #[error("size `{value}` is more than 1GiB; give at most 1GiB")]
    SizeTooLarge {
        /// As given.
        value: String,
    },
    /// Not a delay.
    #[error(
        "`{value}` is not a delay; give a number with its unit, for example 200us, 1.5ms or 2s"
    )]
    NotADelay {
        /// As given.
        value: String,
    },
    /// More than [`MAX_DELAY`].
    #[error("delay `{value}` is longer than 100s; give at most 100s")]
    DelayTooLong {
        /// As given.
        value: String,
    },
}

/// Parses a body size: `512`, `1KiB`, `1Ki` (1024 bytes), `1K`, `1kB` (1000 bytes); at most [`MAX_BODY`].
///
/// # Errors
/// If it is not a whole number of bytes in range.
pub(crate) fn parse_size(value: &str) -> Result<u64, UnitError> {
    let not_a_size = || UnitError::NotASize {
        value: value.to_owned(),
    };
    let text = value.trim();
    let digits_end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, unit) = text.split_at(digits_end);
    let factor: u64 = match unit.trim_start().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" => 1_000,
        "m" | "mb" => 1_000_000,
        "g" | "gb" => 1_000_000_000,
        "ki" | "kib" => 1 << 10,
        "mi" | "mib" => 1 << 20,
        "gi" | "gib" => 1 << 30,
        _ => return Err(not_a_size()),
    };
    if digits.is_empty() {
        return Err(not_a_size());
    }
    digits
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(factor))
        .filter(|bytes| *bytes <= MAX_BODY)
        .ok_or_else(|| UnitError::SizeTooLarge {
            value: value.to_owned(),
        })
}

/// Parses a delay: humantime (`200us`, `1.5ms`, `1s 500ms`) or `0`; at most
/// [`MAX_DELAY`].
///
/// # Errors
/// If it is not a delay in range.
pub(crate) fn parse_delay(value: &str) -> Result<Duration, UnitError> {
    let delay = parse_duration(value).ok_or_else(|| UnitError::NotADelay {
        value: value.to_owned(),
    })?;
    if delay > MAX_DELAY {
        return Err(UnitError::DelayTooLong {
            value: value.to_owned(),
        });
    }
    Ok(delay)
}

/// Parses any duration, without an upper bound.
#[must_use]
pub(crate) fn parse_duration(value: &str) -> Option<Duration> {
    let text = value.trim();
    if text == "0" {
        return Some(Duration::ZERO);
    }
    humantime::parse_duration(text).ok()
}

/// A delay as people read it (`1ms 500us`).
#[must_use]
pub(crate) fn format_delay(delay: Duration) -> String {
    humantime::format_duration(delay).to_string()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sizes_as_people_write_them() {
        for (text, bytes) in [
            ("0", 0),
            ("512", 512),
            ("512B", 512),
            ("1K", 1_000),
            ("1kB", 1_000),
            ("1Ki", 1_024),
            ("1KiB", 1_024),
            ("10 KiB", 10_240),
            ("2MiB", 2 << 20),
            ("3M", 3_000_000),
            ("1GiB", MAX_BODY),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn sizes_that_cannot_be() {
        for text in ["", "Ki", "-1", "1.5Ki", "1 Kib b", "1Q", "0x10"] {
            assert!(
                matches!(parse_size(text), Err(UnitError::NotASize { .. })),
                "{text}"
            );
        }
        for text in [
            "2GiB",
            "1073741825",
            "99999999999999999999",
            "18446744073709551615Ki",
        ] {
            assert!(
                matches!(parse_size(text), Err(UnitError::SizeTooLarge { .. })),
                "{text}"
            );
        }
    }

    #[test]
    fn delays_as_people_write_them() {
        for (text, micros) in [
            ("0", 0),
            ("0us", 0),
            ("200us", 200),
            ("1.5ms", 1_500),
            ("0.25s", 250_000),
            ("1s 500ms", 1_500_000),
            ("50ms", 50_000),
            ("100s", 100_000_000),
        ] {
            assert_eq!(
                parse_delay(text),
                Ok(Duration::from_micros(micros)),
                "{text}"
            );
        }
    }

    #[test]
    fn delays_that_cannot_be() {
        for text in ["", "200", "us", "-1ms", "1.5", "1 fortnight"] {
            assert!(
                matches!(parse_delay(text), Err(UnitError::NotADelay { .. })),
                "{text}"
            );
        }
        assert!(matches!(
            parse_delay("101s"),
            Err(UnitError::DelayTooLong { .. })
        ));
    }

    proptest! {
        #[test]
        fn never_panics(text in "\\PC{0,24}") {
            let _ = parse_size(&text);
            let _ = parse_delay(&text);
        }

        #[test]
        fn printed_delays_parse_back(micros in 0u64..100_000_000) {
            let delay = Duration::from_micros(micros);
            prop_assert_eq!(parse_delay(&format_delay(delay)), Ok(delay));
        }
    }
}
