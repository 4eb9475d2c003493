//! Keys of `[load]`.

use super::{Key, put};
use crate::spec::read::{self, Choice};
use crate::spec::settings::{Arrivals, LoadMode, Protocol, Wait};
use crate::spec::syntax;
use crate::units::{Bytes, Micros};

const UNLIMITED: &[&str] = &["unlimited", "max"];

pub(super) const KEYS: &[Key] = &[
    Key {
        path: "load.mode",
        meaning: "`open`: requests follow a schedule that never waits for answers; `closed`: users that wait for each answer",
        takes: "\"open\" or \"closed\"",
        parse: |raw, _| put(read::choice::<LoadMode>(raw), |s, v| s.load.mode = v),
        show: |s| s.load.mode.word().to_owned(),
    },
    Key {
        path: "load.rate",
        meaning: "Requests per second offered, open loop",
        takes: "a number of requests per second, 0.01 to 10000000",
        parse: |raw, _| put(read::rate(raw, 0.01, 1e7), |s, v| s.load.rate = v),
        show: |s| s.load.rate.to_string(),
    },
    Key {
        path: "load.arrivals",
        meaning: "Gaps between requests, open loop: all equal, or exponential from the trial's seed",
        takes: "\"constant\" or \"poisson\"",
        parse: |raw, _| put(read::choice::<Arrivals>(raw), |s, v| s.load.arrivals = v),
        show: |s| s.load.arrivals.word().to_owned(),
    },
    Key {
        path: "load.users",
        meaning: "Users without think time, closed loop",
        takes: "a whole number, 1 to 100000",
        parse: |raw, _| put(read::count32(raw, 1, 100_000), |s, v| s.load.users = v),
        show: |s| s.load.users.to_string(),
    },
    Key {
        path: "load.connections",
        meaning: "Persistent connections",
        takes: "a whole number, 1 to 100000",
        parse: |raw, _| {
            put(read::count32(raw, 1, 100_000), |s, v| {
                s.load.connections = v
            })
        },
        show: |s| s.load.connections.to_string(),
    },
    Key {
        path: "load.requests_per_connection",
        meaning: "Requests on one connection before it is replaced; 1 is a new connection for every request",
        takes: "a whole number, 1 to 4294967295, or \"unlimited\"",
        parse: |raw, _| {
            put(
                read::or_word(raw, UNLIMITED, |raw| read::count32(raw, 1, u32::MAX)),
                |s, v| s.load.requests_per_connection = v,
            )
        },
        show: |s| super::or("unlimited", s.load.requests_per_connection),
    },
    Key {
        path: "load.streams",
        meaning: "Concurrent streams on one HTTP/2 connection; HTTP/1.1 has one",
        takes: "a whole number, 1 to 10000",
        parse: |raw, _| put(read::count32(raw, 1, 10_000), |s, v| s.load.streams = v),
        show: |s| s.load.streams.to_string(),
    },
    Key {
        path: "load.handshake_rate",
        meaning: "New connections per second beside the requests, whose handshakes are timed; 0 for none",
        takes: "a number of connections per second, 0, or 0.01 to 100000",
        parse: |raw, _| {
            put(read::rate_or_zero(raw, 0.01, 1e5), |s, v| {
                s.load.handshake_rate = v;
            })
        },
        show: |s| s.load.handshake_rate.to_string(),
    },
    Key {
        path: "load.protocol",
        meaning: "HTTP version between client and proxy: HTTP/1.1 or HTTP/2",
        takes: "\"h1\" or \"h2\"",
        parse: |raw, _| put(read::choice::<Protocol>(raw), |s, v| s.load.protocol = v),
        show: |s| s.load.protocol.word().to_owned(),
    },
    Key {
        path: "load.method",
        meaning: "Request method",
        takes: "an HTTP method, letters first, such as \"GET\", but not \"CONNECT\"",
        parse: |raw, _| {
            put(read::text(raw).and_then(syntax::method), |s, v| {
                s.load.method = v;
            })
        },
        show: |s| s.load.method.clone(),
    },
    Key {
        path: "load.path",
        meaning: "Request path with query",
        takes: "a path that begins with \"/\", of visible ASCII without \"#\", at most 8192 bytes",
        parse: |raw, _| {
            put(read::text(raw).and_then(syntax::path), |s, v| {
                s.load.path = v
            })
        },
        show: |s| s.load.path.clone(),
    },
    Key {
        path: "load.body",
        meaning: "Size of the request body",
        takes: "a size, 0 to 1Gi",
        parse: |raw, _| {
            put(read::bytes(raw, Bytes(0), Bytes(1 << 30)), |s, v| {
                s.load.body = v;
            })
        },
        show: |s| s.load.body.to_string(),
    },
    Key {
        path: "load.timeout",
        meaning: "After this long without its answer a request counts as timed out",
        takes: "a duration, 1ms to 1h",
        parse: |raw, _| {
            put(
                read::micros(raw, Micros::from_millis(1), Micros::from_secs(3600)),
                |s, v| s.load.timeout = v,
            )
        },
        show: |s| s.load.timeout.to_string(),
    },
    Key {
        path: "load.connect_timeout",
        meaning: "After this long a connect counts as timed out; keep it above the kernel's SYN retransmissions (1 s, 3 s, 7 s, 15 s)",
        takes: "a duration, 1ms to 1h",
        parse: |raw, _| {
            put(
                read::micros(raw, Micros::from_millis(1), Micros::from_secs(3600)),
                |s, v| s.load.connect_timeout = v,
            )
        },
        show: |s| s.load.connect_timeout.to_string(),
    },
    Key {
        path: "load.max_pacing_lag",
        meaning: "The generator may send this late at p99 though a connection was free; beyond it the trial is invalid. Raise it only where latencies of this size do not matter, such as on an emulated machine",
        takes: "a duration, 10us to 1s",
        parse: |raw, _| {
            put(
                read::micros(raw, Micros(10), Micros::from_secs(1)),
                |s, v| s.load.max_pacing_lag = v,
            )
        },
        show: |s| s.load.max_pacing_lag.to_string(),
    },
    Key {
        path: "load.threads",
        meaning: "Threads of the load generator, each with its share of the connections",
        takes: "a whole number, 1 to 256",
        parse: |raw, _| put(read::count32(raw, 1, 256), |s, v| s.load.threads = v),
        show: |s| s.load.threads.to_string(),
    },
    Key {
        path: "load.wait",
        meaning: "How the generator waits for answers and arrivals. `spin` takes a CPU to see them at once; `sleep` sees them when the kernel wakes it, some 50 us later on an idle virtual CPU; `auto` spins where the agent has CPUs of its own, one more than `load.threads`",
        takes: "\"auto\", \"sleep\" or \"spin\"",
        parse: |raw, _| put(read::choice::<Wait>(raw), |s, v| s.load.wait = v),
        show: |s| s.load.wait.word().to_owned(),
    },
];
