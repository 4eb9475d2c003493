//! Of the proxy's own statistics, those that tell where requests waited or were refused. All of them are in
//! `trials.jsonl`.

use super::{Builder, Column, Kind};
use crate::probe::report::{HistogramBucket, ProxyStats};
use crate::record::derived;
use crate::record::trial::TrialRecord;

/// A statistic: `prefix…suffix`, without those of the admin interface and of single workers.
pub(crate) struct Pattern {
    prefix: &'static str,
    suffix: &'static str,
}

const fn pattern(prefix: &'static str, suffix: &'static str) -> Pattern {
    Pattern { prefix, suffix }
}

impl Pattern {
    fn matches(&self, name: &str) -> bool {
        name.len() >= self.prefix.len() + self.suffix.len()
            && name.starts_with(self.prefix)
            && name.ends_with(self.suffix)
            && !name.contains(".admin.")
            && !name.contains(".worker_")
    }
}

fn stats(trial: &TrialRecord) -> Option<&ProxyStats> {
    derived::probe(trial)?.proxy_stats.as_ref()
}

/// Sum of the counters of this pattern; `None` when the proxy has none.
fn counter(trial: &TrialRecord, pattern: &Pattern) -> Option<u64> {
    let counters = &stats(trial)?.counters;
    let mut found = counters
        .iter()
        .filter(|(n, _)| pattern.matches(n))
        .map(|(_, v)| *v)
        .peekable();
    found.peek()?;
    Some(found.sum())
}

/// Sum of the gauges of this pattern; `None` when the proxy has none.
fn gauge(trial: &TrialRecord, pattern: &Pattern) -> Option<f64> {
    let gauges = &stats(trial)?.gauges;
    let mut found = gauges
        .iter()
        .filter(|(n, _)| pattern.matches(n))
        .map(|(_, v)| *v)
        .peekable();
    found.peek()?;
    Some(found.sum())
}

/// Connections that the proxy accepted in the window, by its own count.
pub(super) fn accepted_connections(trial: &TrialRecord) -> Option<u64> {
    counter(trial, &pattern("listener.", ".downstream_cx_total"))
        .or_else(|| counter(trial, &pattern("", "accepts")))
}

/// Worker threads that the proxy says it runs (Envoy `server.concurrency`).
pub(crate) fn concurrency(trial: &TrialRecord) -> Option<f64> {
    gauge(trial, &pattern("server.concurrency", ""))
}

/// Counters by which a proxy tells that its own policy refused work: the column, the statistic, its meaning.
pub(crate) const REFUSALS: [(&str, Pattern, &str); 8] = [
    (
        "proxy_upstream_rq_pending_overflow",
        pattern("cluster.", ".upstream_rq_pending_overflow"),
        "requests refused by the circuit breaker for pending requests",
    ),
    (
        "proxy_upstream_rq_active_overflow",
        pattern("cluster.", ".upstream_rq_active_overflow"),
        "requests refused by the circuit breaker for active requests",
    ),
    (
        "proxy_upstream_cx_overflow",
        pattern("cluster.", ".upstream_cx_overflow"),
        "connections that the circuit breaker for connections held back (requests then wait, or are refused)",
    ),
    (
        "proxy_downstream_cx_overflow",
        pattern("listener.", ".downstream_cx_overflow"),
        "connections closed by the listener's limit",
    ),
    (
        "proxy_downstream_global_cx_overflow",
        pattern("listener.", ".downstream_global_cx_overflow"),
        "connections closed by the global limit",
    ),
    (
        "proxy_downstream_cx_overload_reject",
        pattern("listener.", ".downstream_cx_overload_reject"),
        "connections refused by the overload manager",
    ),
    (
        "proxy_downstream_rq_overload_close",
        pattern("http.", ".downstream_rq_overload_close"),
        "requests refused by the overload manager",
    ),
    (
        "proxy_overload_shed_load",
        pattern("overload.", ".shed_load_count"),
        "work shed at load shed points of the overload manager",
    ),
];

/// A refusal's count.
pub(crate) fn refusals(trial: &TrialRecord, pattern: &Pattern) -> Option<u64> {
    counter(trial, pattern)
}

pub(super) fn columns() -> Vec<Column> {
    let mut b = Builder::default();
    counters(&mut b);
    gauges(&mut b);
    for (name, stat, unit) in [
        (
            "proxy_loop_duration_p99_us",
            "dispatcher.loop_duration_us",
            "us",
        ),
        ("proxy_poll_delay_p99_us", "dispatcher.poll_delay_us", "us"),
    ] {
        b.add(
            name,
            unit,
            Kind::Latency,
            format!("Envoy `listener_manager.worker_*.{stat}`, all workers: 99th percentile, upper end of its bucket."),
            move |t| bucket_quantile(stats(t)?, stat, 0.99),
        );
    }
    b.columns
}

fn counters(b: &mut Builder) {
    for (name, stat, doc) in REFUSALS {
        let source = format!(
            "Envoy `{}*{}`: {doc}, over the window.",
            stat.prefix, stat.suffix
        );
        b.add(name, "count", Kind::Count, source, move |t| {
            counter(t, &stat)
        });
    }
    for (name, stat, doc) in [
        (
            "proxy_downstream_rq",
            pattern("http.", ".downstream_rq_total"),
            "requests",
        ),
        (
            "proxy_downstream_cx",
            pattern("listener.", ".downstream_cx_total"),
            "connections accepted",
        ),
        (
            "proxy_ssl_handshakes",
            pattern("listener.", ".ssl.handshake"),
            "TLS handshakes",
        ),
        (
            "proxy_ssl_session_reused",
            pattern("listener.", ".ssl.session_reused"),
            "TLS sessions resumed",
        ),
        (
            "proxy_ssl_connection_error",
            pattern("listener.", ".ssl.connection_error"),
            "TLS errors",
        ),
        (
            "proxy_upstream_rq_pending",
            pattern("cluster.", ".upstream_rq_pending_total"),
            "requests that waited for an upstream connection",
        ),
    ] {
        let source = format!(
            "Envoy `{}*{}`: {doc}, over the window.",
            stat.prefix, stat.suffix
        );
        b.add(name, "count", Kind::Count, source, move |t| {
            counter(t, &stat)
        });
    }
}

fn gauges(b: &mut Builder) {
    for (name, stat, doc) in [
        (
            "proxy_concurrency",
            pattern("server.concurrency", ""),
            "worker threads",
        ),
        (
            "proxy_downstream_rq_active",
            pattern("http.", ".downstream_rq_active"),
            "requests in the proxy",
        ),
        (
            "proxy_downstream_cx_active",
            pattern("http.", ".downstream_cx_active"),
            "connections",
        ),
        (
            "proxy_upstream_rq_pending_active",
            pattern("cluster.", ".upstream_rq_pending_active"),
            "requests waiting for an upstream connection",
        ),
        (
            "proxy_upstream_rq_active",
            pattern("cluster.", ".upstream_rq_active"),
            "requests at the upstream",
        ),
        (
            "proxy_upstream_cx_active",
            pattern("cluster.", ".upstream_cx_active"),
            "connections to the upstream",
        ),
    ] {
        let source = format!(
            "Envoy `{}{}{}`: {doc}, when the window ended.",
            stat.prefix,
            if stat.suffix.is_empty() { "" } else { "*" },
            stat.suffix
        );
        b.add(name, "count", Kind::Count, source, move |t| gauge(t, &stat));
    }
    for (name, stat) in [
        (
            "proxy_memory_allocated_bytes",
            pattern("server.memory_allocated", ""),
        ),
        (
            "proxy_memory_heap_bytes",
            pattern("server.memory_heap_size", ""),
        ),
    ] {
        b.add(
            name,
            "bytes",
            Kind::Bytes,
            format!("Envoy `{}`, when the window ended.", stat.prefix),
            move |t| gauge(t, &stat),
        );
    }
}

/// Upper end of the bucket that holds the quantile, over all histograms whose name ends so.
fn bucket_quantile(stats: &ProxyStats, suffix: &str, q: f64) -> Option<f64> {
    let mut buckets: Vec<&HistogramBucket> = stats
        .histograms
        .iter()
        .filter(|(name, _)| name.ends_with(suffix) && name.contains(".worker_"))
        .flat_map(|(_, buckets)| buckets)
        .collect();
    buckets.sort_by(|a, b| a.lower_bound.total_cmp(&b.lower_bound));
    let total: u64 = buckets.iter().map(|b| b.count).sum();
    let rank = ((q * total as f64).ceil() as u64).max(1);
    let mut seen = 0;
    let bucket = buckets.into_iter().find(|b| {
        seen += b.count;
        seen >= rank
    })?;
    Some(bucket.lower_bound + bucket.width)
}
