//! Response bodies of any size from one static block: nothing is allocated or copied for a response.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::body::{Body, Bytes, Frame, SizeHint};

static BLOCK: [u8; 64 * 1024] = [b'x'; 64 * 1024];

/// A body of known length: `x` repeated, or a short text.
#[derive(Debug)]
pub(crate) struct FixedBody {
    text: Option<Bytes>,
    remaining: u64,
}

impl FixedBody {
    /// `x`, `size` times.
    #[must_use]
    pub(crate) fn of_size(size: u64) -> Self {
        Self {
            text: None,
            remaining: size,
        }
    }

    /// A text.
    #[must_use]
    pub(crate) fn of_text(text: impl Into<Bytes>) -> Self {
        let text = text.into();
        Self {
            remaining: text.len() as u64,
            text: Some(text),
        }
    }

    /// Bytes not yet sent.
    #[must_use]
    pub(crate) fn length(&self) -> u64 {
        self.remaining
    }
}

impl Body for FixedBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.remaining == 0 {
            return Poll::Ready(None);
        }
        let data = self.text.take().unwrap_or_else(|| {
            let length = usize::try_from(self.remaining)
                .unwrap_or(usize::MAX)
                .min(BLOCK.len());
            Bytes::from_static(&BLOCK[..length])
        });
        self.remaining -= data.len() as u64;
        Poll::Ready(Some(Ok(Frame::data(data))))
    }

    fn is_end_stream(&self) -> bool {
        self.remaining == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.remaining)
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;

    #[tokio::test]
    async fn sizes_are_exact() {
        for size in [0, 1, 1024, 65_535, 65_536, 65_537, 1_000_000] {
            let body = FixedBody::of_size(size);
            assert_eq!(body.size_hint().exact(), Some(size));
            let bytes = body.collect().await.expect("infallible").to_bytes();
            assert_eq!(bytes.len() as u64, size);
            assert!(bytes.iter().all(|b| *b == b'x'));
        }
    }

    #[tokio::test]
    async fn texts_are_whole() {
        let body = FixedBody::of_text("no such size");
        assert_eq!(
            body.collect().await.expect("infallible").to_bytes(),
            "no such size"
        );
    }
}
