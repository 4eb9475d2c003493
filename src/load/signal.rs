//! What happens on a connection, as the HTTP state machines tell it.

use super::report::ErrorClass;

/// A request on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InFlight {
    /// When it should have been sent, nanoseconds.
    pub intended: u64,
    /// When it was.
    pub sent: u64,
}

/// What happened on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// TLS is done.
    Finished,
    /// Requests may be sent.
    Opened,
    /// First byte of a response on this connection.
    FirstByte,
    /// A response was read to its end.
    Answered {
        /// To what.
        request: InFlight,
        /// Status code.
        status: u16,
        /// When.
        now: u64,
    },
    /// One request failed; the connection lives.
    Failed {
        /// Which.
        request: InFlight,
        /// Why.
        class: ErrorClass,
    },
    /// The peer promises not to have looked at this request: it may be sent again on another connection.
    Unprocessed {
        /// Which.
        request: InFlight,
    },
}
