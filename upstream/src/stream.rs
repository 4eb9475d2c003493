//! A connection's socket with stamps: when bytes were read last, and when a response's first bytes were handed over.

use std::cell::{Cell, RefCell};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use crate::clock::monotonic_ns;
use crate::stats::Stats;

/// Times of one connection, shared by its socket and its requests (nanoseconds, `CLOCK_MONOTONIC`).
pub(crate) struct ConnectionClock {
    stats: Arc<Stats>,
    last_read: Cell<u64>,
    last_write: Cell<u64>,
    answers: RefCell<Vec<Answer>>,
}

/// A request whose delay is over; its response is about to be written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Answer {
    /// When its delay began.
    pub(crate) began_at: u64,
    /// The delay it asked for.
    pub(crate) asked: u64,
}

impl ConnectionClock {
    /// Times of a new connection.
    #[must_use]
    pub(crate) fn new(stats: Arc<Stats>) -> Self {
        Self {
            stats,
            last_read: Cell::new(0),
            last_write: Cell::new(0),
            answers: RefCell::default(),
        }
    }

    /// When the socket was last read.
    #[must_use]
    pub(crate) fn last_read(&self) -> u64 {
        self.last_read.get()
    }

    /// When the last response's write began; 0 before the first.
    #[must_use]
    pub(crate) fn last_write(&self) -> u64 {
        self.last_write.get()
    }

    /// The next write carries this answer.
    pub(crate) fn answer(&self, answer: Answer) {
        self.answers.borrow_mut().push(answer);
    }

    fn read(&self) {
        self.last_read.set(monotonic_ns());
    }

    fn write_begins(&self) {
        let now = monotonic_ns();
        self.last_write.set(now);
        for answer in self.answers.borrow_mut().drain(..) {
            self.stats
                .served(now.saturating_sub(answer.began_at), answer.asked);
        }
    }
}

/// The socket; what was read to detect the protocol is read again first.
pub(crate) struct TimedStream {
    tcp: TcpStream,
    prefix: Vec<u8>,
    clock: Rc<ConnectionClock>,
}

impl TimedStream {
    /// Wraps a socket from which `prefix` was read just now.
    #[must_use]
    pub(crate) fn new(tcp: TcpStream, prefix: Vec<u8>, clock: Rc<ConnectionClock>) -> Self {
        clock.read();
        Self { tcp, prefix, clock }
    }

    /// Counts the answers that the next write carries, once the socket has room. Before the write, not after it: a client
    /// that has its response must find it counted.
    fn about_to_write(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.tcp.poll_write_ready(context))?;
        self.clock.write_begins();
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for TimedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.prefix.is_empty() {
            let length = self.prefix.len().min(buffer.remaining());
            buffer.put_slice(&self.prefix[..length]);
            self.prefix.drain(..length);
            return Poll::Ready(Ok(()));
        }
        let filled = buffer.filled().len();
        ready!(Pin::new(&mut self.tcp).poll_read(context, buffer))?;
        if buffer.filled().len() > filled {
            self.clock.read();
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for TimedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.about_to_write(context))?;
        Pin::new(&mut self.tcp).poll_write(context, data)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.about_to_write(context))?;
        Pin::new(&mut self.tcp).poll_write_vectored(context, data)
    }

    fn is_write_vectored(&self) -> bool {
        self.tcp.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_shutdown(context)
    }
}
