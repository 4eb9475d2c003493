//! The generator against servers with injected truths: what it reports must be what was injected.
#![allow(clippy::unwrap_used, unreachable_pub)]

mod closed;
mod connections;
mod errors;
mod h2;
mod job;
mod latency;
mod phases;
mod ready;
mod server;
mod tls;
