//! Evidence → failure mode.

use serde::{Deserialize, Serialize};

/// What dominated a trial, by precedence: the first that applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The numbers must not be used.
    Invalid,
    /// The kernel killed the proxy for memory.
    Oom,
    /// The proxy did not start for another reason.
    StartFailed,
    /// Alive, not answering, no OOM.
    Hung,
    /// Out of file descriptors.
    FdLimit,
    /// The accept queue overflowed.
    AcceptOverflow,
    /// The proxy's own circuit breaker, connection limit or overload manager.
    Policy,
    /// Throttled by its CPU limit.
    Cpu,
    /// Reclaim and refaults.
    Memory,
    /// Swapping.
    Swap,
    /// The direct control is as bad.
    Application,
    /// None of these.
    Ok,
}
