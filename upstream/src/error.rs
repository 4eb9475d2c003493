//! What keeps the server from running.

use std::io;
use std::net::SocketAddr;

use crate::config::ConfigError;

/// Why the server cannot run.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The settings cannot work together.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Config(Vec<ConfigError>),
    /// The address cannot be used.
    #[error("cannot listen on {addr}: {source}; choose a free port on an address of this machine")]
    Listen {
        /// The address.
        addr: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// The system gives no thread, event loop or timer.
    #[error("cannot run thread {thread}: {source}; raise the limits on processes and open files")]
    Thread {
        /// Its name.
        thread: String,
        /// Why.
        source: io::Error,
    },
}
