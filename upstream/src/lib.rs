//! A fixed-delay HTTP server whose delay is true to tens of microseconds.
//!
//! It stands behind a proxy under test, so what it adds must be known: it measures its own delay and tells it. The data
//! path is one event loop per thread (hyper on tokio), with delays from a `timerfd` and a short spin; statistics are counters without locks,
//! read by the control port's own thread.
//!
//! ```
//! let server = sweep_upstream::serve(&sweep_upstream::Config::default())?;
//! println!("requests to http://{}", server.addr());
//! let report = server.shutdown();
//! assert_eq!((report.requests, report.delay_p50_us), (0, None));
//! # Ok::<(), sweep_upstream::ServeError>(())
//! ```

mod arrivals;
mod body;
pub mod cli;
mod clock;
mod config;
mod connection;
mod control;
mod delay;
mod error;
mod histogram;
mod path;
pub mod program;
mod schedule;
mod server;
mod stats;
mod stream;
mod threads;
mod timer;
mod units;

pub use clock::monotonic_ns;
pub use config::{Config, ConfigError, DelayModel};
pub use error::ServeError;
pub use schedule::prefer_short_slices;
pub use server::{Server, serve};
pub use stats::Report;
