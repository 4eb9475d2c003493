//! What a request's path asks for: `/delay/50ms`, `/size/2KiB`, or both in either order.

use std::time::Duration;

use crate::units::{UnitError, parse_delay, parse_size};

/// A path's own wishes; `None` leaves the server's setting.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PathWishes {
    /// Delay before the response.
    pub(crate) delay: Option<Duration>,
    /// Body size, bytes.
    pub(crate) size: Option<u64>,
}

/// Reads leading `/delay/D` and `/size/S` pairs; what follows them, or a path without them, asks for nothing, so that
/// routes can be exercised with any path. The last of equal keys counts.
///
/// # Errors
/// If a pair has no value or one that cannot be served.
pub(crate) fn parse_path(path: &str) -> Result<PathWishes, UnitError> {
    let mut wishes = PathWishes::default();
    let mut segments = path.split('/').skip(1);
    loop {
        match segments.next() {
            Some("delay") => {
                wishes.delay = Some(parse_delay(segments.next().unwrap_or_default())?);
            }
            Some("size") => wishes.size = Some(parse_size(segments.next().unwrap_or_default())?),
            _ => return Ok(wishes),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn wishes(delay_us: Option<u64>, size: Option<u64>) -> PathWishes {
        PathWishes {
            delay: delay_us.map(Duration::from_micros),
            size,
        }
    }

    #[test]
    fn paths_and_their_wishes() {
        for (path, expected) in [
            ("/", wishes(None, None)),
            ("", wishes(None, None)),
            ("*", wishes(None, None)),
            ("/api/size/2KiB", wishes(None, None)),
            ("/delay/50ms", wishes(Some(50_000), None)),
            ("/size/2KiB", wishes(None, Some(2048))),
            ("/size/2KiB/", wishes(None, Some(2048))),
            ("/delay/1ms/size/10KiB", wishes(Some(1_000), Some(10_240))),
            (
                "/size/10KiB/delay/1ms/index.html",
                wishes(Some(1_000), Some(10_240)),
            ),
            ("/delay/1ms/delay/2ms", wishes(Some(2_000), None)),
        ] {
            assert_eq!(parse_path(path), Ok(expected), "{path}");
        }
    }

    #[test]
    fn wishes_that_cannot_be() {
        for path in [
            "/delay",
            "/delay/",
            "/size/big",
            "/size/1/delay/x",
            "/delay/1h",
        ] {
            assert!(parse_path(path).is_err(), "{path}");
        }
    }

    proptest! {
        #[test]
        fn never_panics(path in "\\PC{0,40}") {
            let _ = parse_path(&path);
        }
    }
}
