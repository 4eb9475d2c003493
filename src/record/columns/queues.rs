//! Where requests waited, and how long by Little's law.

use super::{Builder, Cell, Column, Kind};
use crate::probe::report::Queues;
use crate::record::derived::{
    self, accept_depth, backlog_growth, backlog_trend, littles_wait_us, mean, per_second,
    queue_values,
};
use crate::record::trial::TrialRecord;

pub(super) fn columns() -> Vec<Column> {
    let mut b = Builder::default();
    accept(&mut b);
    gauge(&mut b, "half_open", "connections in SYN_RECV", |q| {
        q.half_open
    });
    gauge(
        &mut b,
        "established",
        "established connections on the proxy's port",
        |q| q.established,
    );
    gauge(
        &mut b,
        "unread",
        "established connections with data that the proxy has not read: the queue in which keep-alive load waits",
        |q| q.unread,
    );
    gauge(
        &mut b,
        "unread_bytes",
        "bytes that the proxy has not read",
        |q| q.unread_bytes,
    );
    waits(&mut b);
    backlog(&mut b);
    b.columns
}

fn gauge(
    b: &mut Builder,
    name: &str,
    what: &str,
    get: impl Fn(&Queues) -> Option<u64> + Copy + Send + Sync + 'static,
) {
    let kind = if name.ends_with("bytes") {
        Kind::Bytes
    } else {
        Kind::Count
    };
    let unit = if kind == Kind::Bytes {
        "bytes"
    } else {
        "count"
    };
    let (mean_name, max_name) = match name.strip_suffix("_bytes") {
        Some(stem) => (format!("{stem}_mean_bytes"), format!("{stem}_max_bytes")),
        None => (format!("{name}_mean"), format!("{name}_max")),
    };
    b.add(
        mean_name,
        unit,
        kind,
        format!("Mean over the samples of: {what}."),
        move |t| mean(&queue_values(t, get)),
    );
    b.add(
        max_name,
        unit,
        kind,
        format!("Largest sample of: {what}."),
        move |t| queue_values(t, get).into_iter().max(),
    );
}

fn accept(b: &mut Builder) {
    gauge(
        b,
        "accept_queue",
        "depth of the accept queue, summed over the proxy's listening sockets (one per worker with SO_REUSEPORT)",
        accept_depth,
    );
    b.add(
        "accept_queue_socket_max",
        "count",
        Kind::Count,
        "Largest depth of one listening socket.",
        |t| {
            queue_values(t, |q| q.accept.iter().max().map(|&d| u64::from(d)))
                .into_iter()
                .max()
        },
    );
    b.add(
        "accept_queue_limit",
        "count",
        Kind::Fact,
        "Smallest limit of a listening socket; a queue is full at one more.",
        |t| {
            queue_values(t, |q| q.accept_limit.iter().min().map(|&d| u64::from(d)))
                .into_iter()
                .min()
        },
    );
    b.add(
        "accept_queue_sockets",
        "count",
        Kind::Fact,
        "Listening sockets on the proxy's port.",
        |t| {
            queue_values(t, |q| {
                (!q.accept.is_empty()).then_some(q.accept.len() as u64)
            })
            .into_iter()
            .max()
        },
    );
    for (name, doc, get) in [
        (
            "listen_overflows",
            "Packets dropped because an accept queue was full, in the pod's network namespace (retransmissions count again).",
            (|c| c.listen_overflows) as fn(&crate::probe::report::Counters) -> Option<u64>,
        ),
        (
            "listen_drops",
            "Packets to listening sockets dropped for any reason, overflows included.",
            |c| c.listen_drops,
        ),
        (
            "tcp_timeouts",
            "TCP retransmission timeouts in the pod's network namespace, the generator's included.",
            |c| c.tcp_timeouts,
        ),
        (
            "tcp_retrans_segs",
            "TCP segments sent again in the pod's network namespace, the generator's included.",
            |c| c.retrans_segs,
        ),
    ] {
        b.add(name, "count", Kind::Count, doc, move |t| {
            derived::over_window(t, get)
        });
    }
    b.add(
        "expected_syn_retry_ms",
        "",
        Kind::Text,
        "When the kernel's settings make a client send its SYN again, counted from the first, while an accept queue is full; in ms, joined by `; `. Modes of `handshake_tcp` near these are retransmissions.",
        |t| {
            let sysctls = &derived::probe(t)?.sysctls;
            if sysctls.is_empty() {
                return None;
            }
            let times = crate::probe::sysctls::syn_retransmit_times(sysctls);
            let times: Vec<String> = times.iter().map(|d| d.as_millis().to_string()).collect();
            Some(times.join("; "))
        },
    );
}

/// Connections accepted per second: by the proxy's own count, else as many as the generator opened.
fn accept_rate(trial: &TrialRecord) -> Option<f64> {
    let load = derived::load(trial)?;
    let counted = super::proxy::accepted_connections(trial);
    per_second(
        load,
        counted.unwrap_or(load.handshake.completed + load.connections_opened),
    )
}

fn waits(b: &mut Builder) {
    b.add(
        "accept_queue_wait_us",
        "us",
        Kind::Latency,
        "Mean time in the accept queue by Little's law: mean depth ÷ connections accepted per second (the proxy's own count, else completed handshakes and persistent connections opened).",
        |t| littles_wait_us(mean(&queue_values(t, accept_depth)), accept_rate(t)),
    );
    b.add(
        "unread_wait_us",
        "us",
        Kind::Latency,
        "Mean time of a request in the socket before the proxy reads it, by Little's law: mean connections with unread data ÷ requests answered per second. For HTTP/2 a lower bound: one connection may hold several.",
        |t| {
            let load = derived::load(t)?;
            littles_wait_us(mean(&queue_values(t, |q| q.unread)), Some(load.achieved_rate_rps))
        },
    );
}

fn backlog(b: &mut Builder) {
    let unsent = |t: &TrialRecord| -> Vec<u64> {
        derived::load(t).map_or_else(Vec::new, |l| l.backlog.iter().map(|s| s.unsent).collect())
    };
    b.add(
        "backlog_mean",
        "count",
        Kind::Count,
        "Mean number of unsent requests at the generator.",
        move |t| mean(&unsent(t)),
    );
    b.add(
        "backlog_max",
        "count",
        Kind::Count,
        "Largest number of unsent requests at the generator.",
        move |t| unsent(t).into_iter().max(),
    );
    b.add(
        "backlog_wait_us",
        "us",
        Kind::Latency,
        "Mean time of a request at the generator by Little's law: mean unsent ÷ requests that left the queue per second. A queue that grows (`backlog_trend`) has no such mean: it is then no more than a scale.",
        move |t| {
            let load = derived::load(t)?;
            littles_wait_us(mean(&unsent(t)), derived::sent_rate(load))
        },
    );
    b.add(
        "backlog_growth_rps",
        "rps",
        Kind::Rate,
        "Growth of the generator's queue: slope of a least-squares line through ten means over the window.",
        |t| derived::load(t).and_then(backlog_trend).map(|l| l.slope),
    );
    b.add(
        "backlog_growth_low_rps",
        "rps",
        Kind::Fact,
        "Lower end of its 95 % interval.",
        |t| derived::load(t).and_then(backlog_trend).map(|l| l.low),
    );
    b.add(
        "backlog_growth_high_rps",
        "rps",
        Kind::Fact,
        "Upper end of its 95 % interval.",
        |t| derived::load(t).and_then(backlog_trend).map(|l| l.high),
    );
    b.add(
        "backlog_trend",
        "",
        Kind::Text,
        "`growing` or `shrinking` if the whole interval lies beyond 1 % of the offered rate, else `stable`.",
        |t| derived::load(t).and_then(backlog_growth).map(|g| g.name()),
    );
    b.add(
        "in_flight_mean",
        "count",
        Kind::Count,
        "Mean requests sent and not yet answered, weighted by time.",
        |t| Cell::from(derived::load(t).and_then(|l| l.in_flight_mean)),
    );
}
