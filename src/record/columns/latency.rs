//! Latencies at the client, by percentile.

use super::{Builder, Cell, Column, Kind};
use crate::hdr::LatencyHistogram;
use crate::load::report::LoadReport;
use crate::record::derived::{self, quantile};

/// Percentiles that are columns: their name and quantile.
pub(crate) const PERCENTILES: [(&str, f64); 6] = [
    ("p50", 0.5),
    ("p90", 0.9),
    ("p99", 0.99),
    ("p999", 0.999),
    ("p9999", 0.9999),
    ("max", 1.0),
];

type Histograms = fn(&LoadReport) -> (&LatencyHistogram, Option<&LatencyHistogram>);

/// A latency that is recorded as a histogram.
pub(crate) struct Metric {
    /// Name without percentile and unit, as in file names under `histograms/`.
    pub(crate) name: &'static str,
    doc: &'static str,
    /// The successes, and the requests of unknown length.
    pub(crate) histograms: Histograms,
}

/// All latencies that are recorded as histograms.
pub(crate) const METRICS: [Metric; 11] = [
    Metric {
        name: "response_time",
        doc: "completion − intended send, successes",
        histograms: |l| (&l.response_time, Some(&l.censored)),
    },
    Metric {
        name: "service_time",
        doc: "completion − actual send, successes",
        histograms: |l| (&l.service_time, None),
    },
    Metric {
        name: "send_lag",
        doc: "actual − intended send, all that were sent",
        histograms: |l| (&l.send_lag, None),
    },
    Metric {
        name: "pacing_lag",
        doc: "the part of the send lag while a connection was free: the generator's own fault",
        histograms: |l| (&l.pacing_lag, None),
    },
    Metric {
        name: "handshake_tcp",
        doc: "new connections: start of connect → connected",
        histograms: |l| (&l.handshake.tcp, None),
    },
    Metric {
        name: "handshake_server_hello",
        doc: "new connections: ClientHello sent → ServerHello received",
        histograms: |l| (&l.handshake.server_hello, None),
    },
    Metric {
        name: "handshake_finished",
        doc: "new connections: ServerHello received → handshake finished at the client",
        histograms: |l| (&l.handshake.finished, None),
    },
    Metric {
        name: "handshake_settings",
        doc: "new HTTP/2 connections: finished → the server's SETTINGS",
        histograms: |l| (&l.handshake.settings, None),
    },
    Metric {
        name: "handshake_first_byte",
        doc: "new connections: finished (or SETTINGS) → first response byte, request included",
        histograms: |l| (&l.handshake.first_byte, None),
    },
    Metric {
        name: "handshake_total",
        doc: "new connections: start of connect → first response byte",
        histograms: |l| (&l.handshake.total, Some(&l.handshake.censored)),
    },
    Metric {
        name: "handshake_start_lag",
        doc: "new connections: intended → actual start of connect",
        histograms: |l| (&l.handshake.start_lag, None),
    },
];

pub(super) fn columns() -> Vec<Column> {
    let mut b = Builder::default();
    for metric in &METRICS {
        let get = metric.histograms;
        for (percentile, q) in PERCENTILES {
            let name = format!("{}_{percentile}_us", metric.name);
            let what = if q < 1.0 {
                format!("{} percentile", ordinal(q))
            } else {
                "Largest".to_owned()
            };
            let doc = format!("{what} of: {}.", metric.doc);
            b.add(name, "us", Kind::Latency, doc, move |t| {
                let load = derived::load(t)?;
                let (successes, censored) = get(load);
                match censored {
                    Some(censored) => quantile(successes, censored, q),
                    None => quantile(successes, &LatencyHistogram::default(), q),
                }
            });
        }
    }
    b.add(
        "response_time_mean_us",
        "us",
        Kind::Latency,
        "Arithmetic mean of the response time of successes. For Little's law; it says nothing of a tail.",
        |t| derived::load(t).and_then(|l| l.response_time.mean_us()),
    );
    censored(&mut b);
    b.columns
}

fn ordinal(q: f64) -> &'static str {
    match q {
        q if q <= 0.5 => "50th",
        q if q <= 0.9 => "90th",
        q if q <= 0.99 => "99th",
        q if q <= 0.999 => "99.9th",
        _ => "99.99th",
    }
}

fn censored(b: &mut Builder) {
    b.add(
        "response_time_censored",
        "count",
        Kind::Count,
        "Requests still open or unsent when the drain ended. A percentile that they reach is empty here and printed as `≥` in the tables.",
        |t| derived::load(t).map(|l| l.censored.count()),
    );
    b.add(
        "response_time_overflow",
        "count",
        Kind::Count,
        "Successes over 100 s, beyond the histogram.",
        |t| derived::load(t).map(|l| l.response_time.overflow()),
    );
    b.add(
        "handshake_censored",
        "count",
        Kind::Count,
        "New connections still without their first byte at the end; they count in `handshake_total_*` only.",
        |t| Cell::from(derived::load(t).map(|l| l.handshake.censored.count())),
    );
}
