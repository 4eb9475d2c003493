//! What was offered, what was answered, and every failure by class.

use super::{Builder, Cell, Column, Kind};
use crate::load::report::LoadReport;
use crate::record::derived::{self, ERROR_CLASSES};
use crate::record::trial::TrialRecord;

pub(super) fn columns() -> Vec<Column> {
    let mut b = Builder::default();
    rates(&mut b);
    errors(&mut b);
    handshakes(&mut b);
    b.columns
}

fn of<C: Into<Cell>>(get: impl Fn(&LoadReport) -> C) -> impl Fn(&TrialRecord) -> Cell {
    move |t| derived::load(t).map(&get).into()
}

fn rates(b: &mut Builder) {
    b.add(
        "offered_rate_rps",
        "rps",
        Kind::Fact,
        "Rate offered; empty in closed loop.",
        |t| t.rate.map(|r| r.0),
    );
    b.add(
        "achieved_rate_rps",
        "rps",
        Kind::Rate,
        "Answered requests (successes and HTTP errors) per second of the window.",
        of(|l| l.achieved_rate_rps),
    );
    b.add(
        "window_us",
        "us",
        Kind::Fact,
        "Length of the window as measured.",
        of(|l| l.window_us),
    );
    b.add(
        "requests",
        "count",
        Kind::Count,
        "Requests of the window answered with success (2xx, 3xx).",
        of(|l| l.requests),
    );
    b.add(
        "requests_scheduled",
        "count",
        Kind::Count,
        "Requests whose intended send time lies in the window.",
        of(|l| l.scheduled),
    );
    b.add(
        "requests_sent",
        "count",
        Kind::Count,
        "Of these, sent.",
        of(|l| l.sent),
    );
    b.add(
        "bytes_received",
        "bytes",
        Kind::Bytes,
        "Bytes read from the target in the window.",
        of(|l| l.bytes_received),
    );
    b.add(
        "littles_law_users",
        "count",
        Kind::Ratio,
        "Closed loop: throughput × mean latency. It should equal the number of users; over 5 % off makes the trial invalid.",
        of(|l| l.littles_law_users),
    );
    b.add(
        "negotiated",
        "",
        Kind::Text,
        "TLS version, cipher suite and key exchange really negotiated, most frequent first, with counts.",
        of(|l| counted(l.negotiated.iter().map(|(k, v)| (k.clone(), *v)))),
    );
}

/// `a 5; b 2`, most frequent first.
fn counted(entries: impl Iterator<Item = (String, u64)>) -> String {
    let mut entries: Vec<(String, u64)> = entries.collect();
    entries.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let words: Vec<String> = entries.iter().map(|(k, v)| format!("{k} {v}")).collect();
    words.join("; ")
}

fn errors(b: &mut Builder) {
    b.add(
        "errors",
        "count",
        Kind::Count,
        "Requests that did not succeed, all classes. None of them is in a latency histogram of successes.",
        of(|l| l.errors.values().sum::<u64>()),
    );
    b.add(
        "error_share",
        "share",
        Kind::Ratio,
        "Errors ÷ requests scheduled.",
        of(|l| {
            (l.scheduled > 0).then(|| l.errors.values().sum::<u64>() as f64 / l.scheduled as f64)
        }),
    );
    for (class, name) in ERROR_CLASSES {
        b.add(
            format!("errors_{name}"),
            "count",
            Kind::Count,
            format!("Requests that failed: {}.", meaning(name)),
            of(move |l| l.errors.get(&class).copied().unwrap_or(0)),
        );
    }
    b.add(
        "connections_opened",
        "count",
        Kind::Count,
        "Persistent connections opened in the window: replacements, and those on demand.",
        of(|l| l.connections_opened),
    );
    b.add(
        "connection_errors",
        "count",
        Kind::Count,
        "Persistent connections that failed or could not be opened in the window. A request that such a failure took along is in `errors` too.",
        of(|l| l.connection_errors.values().sum::<u64>()),
    );
    b.add(
        "connection_error_classes",
        "",
        Kind::Text,
        "The same by class, most frequent first, with counts.",
        of(|l| {
            let named = ERROR_CLASSES.iter().filter_map(|(class, name)| {
                Some(((*name).to_owned(), *l.connection_errors.get(class)?))
            });
            counted(named)
        }),
    );
    b.add(
        "status_codes",
        "",
        Kind::Text,
        "Answers by status code, most frequent first, with counts.",
        of(|l| counted(l.status_codes.iter().map(|(k, v)| (k.to_string(), *v)))),
    );
}

fn meaning(class: &str) -> &'static str {
    match class {
        "connect_refused" => "connection refused",
        "connect_timeout" => "no connection within `load.connect_timeout`",
        "connect" => "other connect failures",
        "port_exhausted" => "the generator ran out of ports (its own fault: the trial is invalid)",
        "descriptors_exhausted" => {
            "the generator ran out of descriptors (its own fault: the trial is invalid)"
        }
        "tls" => "TLS alert, bad certificate, or garbage where TLS should be",
        "reset" => "connection reset",
        "closed" => "closed in the middle of an exchange",
        "protocol" => "not valid HTTP",
        "timeout" => "no answer within `load.timeout`",
        "http4xx" => "an answer of 4xx",
        "http5xx" => "an answer of 5xx",
        _ => "still open or unsent when the drain ended",
    }
}

fn handshakes(b: &mut Builder) {
    b.add(
        "handshakes",
        "count",
        Kind::Count,
        "New connections that got their first response byte.",
        of(|l| l.handshake.completed),
    );
    b.add(
        "handshakes_scheduled",
        "count",
        Kind::Count,
        "New connections intended in the window.",
        of(|l| l.handshake.scheduled),
    );
    b.add(
        "handshakes_full",
        "count",
        Kind::Count,
        "Full TLS handshakes.",
        of(|l| l.handshake.full),
    );
    b.add(
        "handshakes_resumed",
        "count",
        Kind::Count,
        "Resumed TLS handshakes.",
        of(|l| l.handshake.resumed),
    );
    b.add(
        "handshake_errors",
        "count",
        Kind::Count,
        "New connections that failed, all classes.",
        of(|l| l.handshake.errors.values().sum::<u64>()),
    );
    for (class, name) in ERROR_CLASSES {
        b.add(
            format!("handshake_errors_{name}"),
            "count",
            Kind::Count,
            format!("New connections that failed: {}.", meaning(name)),
            of(move |l| l.handshake.errors.get(&class).copied().unwrap_or(0)),
        );
    }
    for retries in 0..=2u32 {
        b.add(
            format!("handshake_syn_retries_{retries}"),
            "count",
            Kind::Count,
            format!(
                "New connections whose SYN was sent again {}.",
                crate::units::counted(retries, "time")
            ),
            of(move |l| l.handshake.syn_retries.get(&retries).copied().unwrap_or(0)),
        );
    }
    b.add(
        "handshake_syn_retries_more",
        "count",
        Kind::Count,
        "New connections whose SYN was sent again three times or more.",
        of(|l| {
            l.handshake
                .syn_retries
                .range(3..)
                .map(|(_, n)| n)
                .sum::<u64>()
        }),
    );
}
