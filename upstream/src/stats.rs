//! What the server knows about itself.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use crate::arrivals::Arrivals;
use crate::clock::{NANOS_PER_MICRO, monotonic_ns, ns_to_us};
use crate::config::{Config, DelayModel};
use crate::histogram::{AtomicHistogram, Counts, EncodedHistogram, Latencies};

/// The server's account of the time since its last reset. Unknown is `None` (JSON `null`), never 0.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Requests served: the delay was over and the response's first bytes were handed to the socket.
    pub requests: u64,
    /// Served delay, from the end of the request's read to the start of the response's write: median, microseconds.
    pub delay_p50_us: Option<u64>,
    /// 99th percentile.
    pub delay_p99_us: Option<u64>,
    /// Largest.
    pub delay_max_us: Option<u64>,
    /// Served delays over 100 s, which the percentiles cannot tell.
    pub delay_overflow: u64,
    /// Delay asked for by the settings: `--delay` when the distribution is constant. Paths may ask for others.
    pub delay_asked_us: Option<u64>,
    /// Served minus asked delay of each request, whatever it asked for: median, microseconds.
    pub late_p50_us: Option<u64>,
    /// 99th percentile.
    pub late_p99_us: Option<u64>,
    /// Largest.
    pub late_max_us: Option<u64>,
    /// Requests refused with 400, because their path asked for what cannot be. Not among `requests`.
    pub bad_requests: u64,
    /// Connections accepted.
    pub connections: u64,
    /// Connections that ended with an error: reset by the peer, not HTTP, or cut off within a message.
    pub connection_errors: u64,
    /// Arrivals seen by `--record-arrivals`, kept or not.
    pub arrivals: u64,
    /// Length of the window, microseconds.
    pub window_us: u64,
}

/// Counters that all threads share.
#[derive(Debug)]
pub(crate) struct Stats {
    /// Arrival times.
    pub(crate) arrivals: Arrivals,
    delay_asked_us: Option<u64>,
    served: AtomicHistogram,
    late: AtomicHistogram,
    bad_requests: AtomicU64,
    connections: AtomicU64,
    connection_errors: AtomicU64,
    // Only readers lock it; the data path never does.
    window: Mutex<Reading>,
}

#[derive(Debug, Clone, Default)]
struct Reading {
    at_ns: u64,
    served: Counts,
    late: Counts,
    bad_requests: u64,
    connections: u64,
    connection_errors: u64,
}

impl Stats {
    /// Nothing counted yet.
    #[must_use]
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            arrivals: Arrivals::new(config.record_arrivals),
            delay_asked_us: match config.delay {
                DelayModel::Constant(delay) => u64::try_from(delay.as_micros()).ok(),
                DelayModel::Uniform { .. } | DelayModel::Bimodal { .. } => None,
            },
            served: AtomicHistogram::default(),
            late: AtomicHistogram::default(),
            bad_requests: AtomicU64::new(0),
            connections: AtomicU64::new(0),
            connection_errors: AtomicU64::new(0),
            window: Mutex::new(Reading {
                at_ns: monotonic_ns(),
                ..Reading::default()
            }),
        }
    }

    /// Counts a served request by its delays, nanoseconds.
    pub(crate) fn served(&self, delay_ns: u64, asked_ns: u64) {
        self.served.record_us(ns_to_us(delay_ns));
        self.late
            .record_us(ns_to_us(delay_ns.saturating_sub(asked_ns)));
    }

    /// Counts a refused request.
    pub(crate) fn refused(&self) {
        self.bad_requests.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts an accepted connection.
    pub(crate) fn connected(&self) {
        self.connections.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a connection's end with an error.
    pub(crate) fn connection_failed(&self) {
        self.connection_errors.fetch_add(1, Ordering::Relaxed);
    }

    /// The window so far.
    #[must_use]
    pub(crate) fn report(&self) -> Report {
        let start = self
            .window
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        self.between(&start, &self.reading())
    }

    /// Distribution of the served delay in the window so far.
    #[must_use]
    pub(crate) fn delay_histogram(&self) -> EncodedHistogram {
        let start = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        self.served.counts().since(&start.served).encoded()
    }

    /// Ends the window, begins the next, and tells of the one that ended.
    pub(crate) fn reset(&self) -> Report {
        let mut window = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.reading();
        let report = self.between(&window, &now);
        self.arrivals.reset();
        *window = now;
        report
    }

    fn reading(&self) -> Reading {
        Reading {
            at_ns: monotonic_ns(),
            served: self.served.counts(),
            late: self.late.counts(),
            bad_requests: self.bad_requests.load(Ordering::Relaxed),
            connections: self.connections.load(Ordering::Relaxed),
            connection_errors: self.connection_errors.load(Ordering::Relaxed),
        }
    }

    fn between(&self, start: &Reading, end: &Reading) -> Report {
        let served = end.served.since(&start.served);
        let late = end.late.since(&start.late);
        let at = |latencies: &Latencies, quantile| latencies.quantile_us(quantile);
        Report {
            requests: served.count(),
            delay_p50_us: at(&served, 0.5),
            delay_p99_us: at(&served, 0.99),
            delay_max_us: at(&served, 1.0),
            delay_overflow: served.overflow(),
            delay_asked_us: self.delay_asked_us,
            late_p50_us: at(&late, 0.5),
            late_p99_us: at(&late, 0.99),
            late_max_us: at(&late, 1.0),
            bad_requests: end.bad_requests - start.bad_requests,
            connections: end.connections - start.connections,
            connection_errors: end.connection_errors - start.connection_errors,
            arrivals: self.arrivals.seen() as u64,
            window_us: (end.at_ns - start.at_ns) / NANOS_PER_MICRO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_served_is_unknown() {
        let report = Stats::new(&Config::default()).report();
        assert_eq!(report.requests, 0);
        assert_eq!(
            [
                report.delay_p50_us,
                report.delay_p99_us,
                report.delay_max_us,
                report.late_max_us
            ],
            [None; 4]
        );
        assert_eq!(report.delay_asked_us, Some(200));
        let json = serde_json::to_value(&report).expect("serialize");
        assert!(json["delay_p50_us"].is_null());
    }

    #[test]
    fn a_reset_begins_a_new_window() {
        let stats = Stats::new(&Config {
            record_arrivals: 10,
            ..Config::default()
        });
        stats.connected();
        stats.refused();
        stats.served(50_000_000, 200_000);
        stats.arrivals.record(5);
        let ended = stats.reset();
        assert_eq!(
            (ended.requests, ended.connections, ended.bad_requests),
            (1, 1, 1)
        );
        assert_eq!((ended.late_p50_us, ended.arrivals), (Some(49_823), 1));

        stats.connection_failed();
        for late in [0, 5_000, 10_000] {
            stats.served(200_000 + late, 200_000);
        }
        let report = stats.report();
        assert_eq!(
            (
                report.requests,
                report.connections,
                report.connection_errors,
                report.arrivals
            ),
            (3, 0, 1, 0)
        );
        assert_eq!(
            (report.delay_p50_us, report.delay_max_us),
            (Some(205), Some(210))
        );
        assert_eq!(
            (report.late_p50_us, report.late_max_us),
            (Some(5), Some(10))
        );
    }
}
