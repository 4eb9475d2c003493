//! `sweep` measures what CPU, memory and swap limits do to a containerized sidecar proxy.
//!
//! Data flows one way: `matrix.toml` → [`spec`] → [`plan`] → [`runner`] → [`trial`] → [`record`] → [`stats`] →
//! [`report`]. The pure parts (units, spec, plan, stats, verdict, report and every parser) do no I/O; sockets and files
//! are touched in [`runtime`], [`agent`], [`load`], [`probe`] and [`record`] only.

/// Version of this program.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

pub mod agent;
pub mod certs;
pub mod cli;
pub mod hdr;
pub mod image;
pub mod load;
pub mod plan;
pub mod probe;
pub mod progress;
pub mod proxy;
pub mod record;
pub mod report;
pub mod runner;
pub mod runtime;
pub mod spec;
pub mod stats;
pub mod tools;
pub mod trial;
pub mod units;
pub mod verdict;
mod wrap;
