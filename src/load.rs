//! The load generator: arrival schedules, connections, TLS, HTTP, and what became of every request.
//!
//! Each thread is one event loop over its own share of the schedule and of the connections ([`worker`]); there is no
//! runtime between it and the kernel. What is due is sent at its intended time on the connection that has been free the
//! longest; if none is free it waits, and is counted. The pure parts — [`schedule`], [`http1`], [`phases`], [`judge`] —
//! know neither clocks nor sockets.

pub(crate) mod clock;
mod conn;
mod generator;
pub mod h2;
mod http;
pub mod http1;
pub mod judge;
mod meter;
pub mod phases;
mod poller;
mod ready;
pub mod report;
pub mod schedule;
pub mod signal;
mod socket;
mod summary;
mod tls;
mod worker;

pub use generator::Generator;
pub use ready::probe_ready;

/// Why load cannot be generated at all. What happens to single requests and connections is counted in the report instead.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A PEM that the job brought cannot be used.
    #[error("cannot read the {whose} certificate or key of the job: {cause}")]
    Pem {
        /// Whose.
        whose: &'static str,
        /// Why.
        cause: String,
    },
    /// The name is neither a DNS name nor an address.
    #[error("server name {name:?} is not valid for TLS; use a DNS name or an IP address")]
    ServerName {
        /// As in the job.
        name: String,
    },
    /// The hybrid group is defined for TLS 1.3 only.
    #[error(
        "key exchange x25519mlkem768 needs TLS 1.3; choose another group or tls.version = \"1.3\""
    )]
    HybridNeedsTls13,
    /// Mutual TLS without a client certificate.
    #[error("tls.mutual is on, but the job has no client certificate")]
    NoClientIdentity,
    /// rustls refuses the configuration.
    #[error("cannot {operation}: {source}")]
    Tls {
        /// What was tried.
        operation: &'static str,
        /// Why it failed.
        source: rustls::Error,
    },
    /// The kernel refuses.
    #[error("cannot {operation}: {source}")]
    Io {
        /// What was tried.
        operation: &'static str,
        /// Why it failed.
        source: std::io::Error,
    },
    /// No thread.
    #[error("cannot start a generator thread: {source}")]
    Thread {
        /// Why.
        source: std::io::Error,
    },
    /// A bug.
    #[error("a generator thread panicked")]
    Panicked,
}

impl LoadError {
    fn tls(operation: &'static str) -> impl FnOnce(rustls::Error) -> Self {
        move |source| Self::Tls { operation, source }
    }

    fn io(operation: &'static str, errno: rustix::io::Errno) -> Self {
        Self::Io {
            operation,
            source: errno.into(),
        }
    }
}
