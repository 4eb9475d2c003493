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
            // HAProxy's own page.
            && !name.starts_with("stats.")
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
pub(crate) fn accepted_connections(trial: &TrialRecord) -> Option<u64> {
    counter(trial, &pattern("listener.", ".downstream_cx_total"))
        .or_else(|| counter(trial, &pattern("accepts", "")))
        .or_else(|| counter(trial, &pattern("", ".FRONTEND.conn_tot")))
}

/// Worker threads that the proxy says it runs (Envoy `server.concurrency`).
pub(crate) fn concurrency(trial: &TrialRecord) -> Option<f64> {
    gauge(trial, &pattern("server.concurrency", ""))
}

/// A way in which a proxy's own policy refuses or delays work.
pub(crate) struct Refusal {
    column: &'static str,
    /// The statistic, with the proxy that has it.
    source: &'static str,
    /// What was refused, after a number: `15 requests refused by …`.
    pub(crate) meaning: &'static str,
    /// The work is done later, and not refused.
    pub(crate) only_delays: bool,
    /// How often in the window; `None` when the proxy does not tell.
    pub(crate) count: fn(&TrialRecord) -> Option<u64>,
}

/// Every refusal that a proxy tells of.
pub(crate) const REFUSALS: [Refusal; 11] = [
    Refusal {
        column: "proxy_upstream_rq_pending_overflow",
        source: "Envoy `cluster.*.upstream_rq_pending_overflow`",
        meaning: "requests refused by the circuit breaker for pending requests",
        only_delays: false,
        count: |t| counter(t, &pattern("cluster.", ".upstream_rq_pending_overflow")),
    },
    Refusal {
        column: "proxy_upstream_rq_active_overflow",
        source: "Envoy `cluster.*.upstream_rq_active_overflow`",
        meaning: "requests refused by the circuit breaker for active requests",
        only_delays: false,
        count: |t| counter(t, &pattern("cluster.", ".upstream_rq_active_overflow")),
    },
    Refusal {
        column: "proxy_upstream_cx_overflow",
        source: "Envoy `cluster.*.upstream_cx_overflow`",
        meaning: "connections that the circuit breaker for connections held back (requests then wait, or are refused)",
        only_delays: true,
        count: |t| counter(t, &pattern("cluster.", ".upstream_cx_overflow")),
    },
    Refusal {
        column: "proxy_downstream_cx_overflow",
        source: "Envoy `listener.*.downstream_cx_overflow`",
        meaning: "connections closed by the listener's limit",
        only_delays: false,
        count: |t| counter(t, &pattern("listener.", ".downstream_cx_overflow")),
    },
    Refusal {
        column: "proxy_downstream_global_cx_overflow",
        source: "Envoy `listener.*.downstream_global_cx_overflow`",
        meaning: "connections closed by the global limit",
        only_delays: false,
        count: |t| counter(t, &pattern("listener.", ".downstream_global_cx_overflow")),
    },
    Refusal {
        column: "proxy_downstream_cx_overload_reject",
        source: "Envoy `listener.*.downstream_cx_overload_reject`",
        meaning: "connections refused by the overload manager",
        only_delays: false,
        count: |t| counter(t, &pattern("listener.", ".downstream_cx_overload_reject")),
    },
    Refusal {
        column: "proxy_downstream_rq_overload_close",
        source: "Envoy `http.*.downstream_rq_overload_close`",
        meaning: "requests refused by the overload manager",
        only_delays: false,
        count: |t| counter(t, &pattern("http.", ".downstream_rq_overload_close")),
    },
    Refusal {
        column: "proxy_overload_shed_load",
        source: "Envoy `overload.*.shed_load_count`",
        meaning: "work shed at load shed points of the overload manager",
        only_delays: false,
        count: |t| counter(t, &pattern("overload.", ".shed_load_count")),
    },
    Refusal {
        column: "proxy_nginx_dropped",
        source: "nginx `accepts` − `handled`",
        meaning: "connections dropped by nginx's limit of worker_connections",
        only_delays: false,
        count: |t| {
            let accepts = counter(t, &pattern("accepts", ""))?;
            Some(accepts.saturating_sub(counter(t, &pattern("handled", ""))?))
        },
    },
    Refusal {
        column: "proxy_haproxy_denied_requests",
        source: "HAProxy `FRONTEND.dreq`",
        meaning: "requests denied by HAProxy's rules",
        only_delays: false,
        count: |t| counter(t, &pattern("", ".FRONTEND.dreq")),
    },
    Refusal {
        column: "proxy_haproxy_denied_connections",
        source: "HAProxy `FRONTEND.dcon`",
        meaning: "connections denied by HAProxy's rules",
        only_delays: false,
        count: |t| counter(t, &pattern("", ".FRONTEND.dcon")),
    },
];

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
    for refusal in &REFUSALS {
        let doc = format!("{}: {}, over the window.", refusal.source, refusal.meaning);
        b.add(refusal.column, "count", Kind::Count, doc, refusal.count);
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
            "Envoy `{}{}{}`: {doc}, 0.1 s before the window ended.",
            stat.prefix,
            if stat.suffix.is_empty() { "" } else { "*" },
            stat.suffix
        );
        b.add(name, "count", Kind::Count, source, move |t| gauge(t, &stat));
    }
    for (name, stat, source, doc) in OTHERS {
        let doc = format!("{source}: {doc}, 0.1 s before the window ended.");
        b.add(name, "count", Kind::Count, doc, move |t| gauge(t, &stat));
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
            format!("Envoy `{}`, 0.1 s before the window ended.", stat.prefix),
            move |t| gauge(t, &stat),
        );
    }
}

/// Gauges of the other proxies: column, statistic, who has it, meaning.
const OTHERS: [(&str, Pattern, &str, &str); 6] = [
    (
        "proxy_nginx_active",
        pattern("active", ""),
        "nginx `Active connections`",
        "connections",
    ),
    (
        "proxy_nginx_reading",
        pattern("reading", ""),
        "nginx `Reading`",
        "connections whose request header is being read",
    ),
    (
        "proxy_nginx_writing",
        pattern("writing", ""),
        "nginx `Writing`",
        "connections whose answer is being written",
    ),
    (
        "proxy_nginx_waiting",
        pattern("waiting", ""),
        "nginx `Waiting`",
        "idle connections",
    ),
    (
        "proxy_haproxy_queue",
        pattern("", ".BACKEND.qcur"),
        "HAProxy `BACKEND.qcur`",
        "requests waiting for a server",
    ),
    (
        "proxy_haproxy_sessions",
        pattern("", ".FRONTEND.scur"),
        "HAProxy `FRONTEND.scur`",
        "sessions",
    ),
];

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
