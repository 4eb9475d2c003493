//! Keys of the top level, `[limits]`, `[upstream]`, `[tls]` and `[placement]`.

use super::{Key, put};
use crate::spec::read::{self, Choice};
use crate::spec::settings::{CertificateKey, DelayDistribution, KeyExchange, TlsVersion, Verify};
use crate::spec::syntax;
use crate::units::{Bytes, Micros};

const NO_LIMIT: &[&str] = &["max", "unlimited"];
const DAY: Micros = Micros::from_secs(86_400);
const HOUR: Micros = Micros::from_secs(3_600);

pub(super) const WINDOWS: &[Key] = &[
    Key {
        path: "warmup",
        meaning: "Time under load before the measured window",
        takes: "a duration, 1ms to 24h",
        parse: |raw, _| {
            put(read::micros(raw, Micros::from_millis(1), DAY), |s, v| {
                s.warmup = v;
            })
        },
        show: |s| s.warmup.to_string(),
    },
    Key {
        path: "duration",
        meaning: "Length of the measured window",
        takes: "a duration, 100ms to 24h",
        parse: |raw, _| {
            put(read::micros(raw, Micros::from_millis(100), DAY), |s, v| {
                s.duration = v;
            })
        },
        show: |s| s.duration.to_string(),
    },
];

pub(super) const LIMITS: &[Key] = &[
    Key {
        path: "limits.cpu",
        meaning: "CPU bandwidth of the proxy",
        takes: "a Kubernetes quantity or a number of CPUs in steps of 1m, 10m to 8192 (such as \"250m\" or 0.25), or \"max\" for no limit",
        parse: |raw, _| {
            put(read::or_word(raw, NO_LIMIT, read::cpu), |s, v| {
                s.limits.cpu = v
            })
        },
        show: |s| super::or("max", s.limits.cpu),
    },
    Key {
        path: "limits.cpu_period",
        meaning: "CFS period: how often the CPU budget is refilled, and so how long a throttled proxy waits",
        takes: "a duration, 1ms to 1s",
        parse: |raw, _| {
            put(
                read::micros(raw, Micros::from_millis(1), Micros::from_secs(1)),
                |s, v| s.limits.cpu_period = v,
            )
        },
        show: |s| s.limits.cpu_period.to_string(),
    },
    Key {
        path: "limits.memory",
        meaning: "Memory limit of the proxy, as `memory.max` counts it (without swap)",
        takes: "a Kubernetes quantity or bytes, 6Mi to 1Pi (such as \"64Mi\"), or \"max\" for no limit",
        parse: |raw, _| {
            put(
                read::or_word(raw, NO_LIMIT, |raw| {
                    read::bytes(raw, read::MIN_MEMORY, read::MAX_MEMORY)
                }),
                |s, v| s.limits.memory = v,
            )
        },
        show: |s| super::or("max", s.limits.memory),
    },
    Key {
        path: "limits.swap",
        meaning: "Swap on top of memory, as Kubernetes and cgroup v2 count it",
        takes: "a Kubernetes quantity or bytes, 0 to 1Pi (such as \"256Mi\")",
        parse: |raw, _| {
            put(read::bytes(raw, Bytes(0), read::MAX_MEMORY), |s, v| {
                s.limits.swap = v;
            })
        },
        show: |s| s.limits.swap.to_string(),
    },
];

pub(super) const UPSTREAM: &[Key] = &[
    Key {
        path: "upstream.delay",
        meaning: "Time between the end of a request and its response",
        takes: "a duration, 0s to 1h",
        parse: |raw, _| {
            put(read::micros(raw, Micros(0), HOUR), |s, v| {
                s.upstream.delay = v;
            })
        },
        show: |s| s.upstream.delay.to_string(),
    },
    Key {
        path: "upstream.delay_distribution",
        meaning: "Always `delay`; evenly between `delay` and `delay_high`; or `delay_high` for a share of the answers",
        takes: "\"constant\", \"uniform\" or \"bimodal\"",
        parse: |raw, _| {
            put(read::choice::<DelayDistribution>(raw), |s, v| {
                s.upstream.delay_distribution = v;
            })
        },
        show: |s| s.upstream.delay_distribution.word().to_owned(),
    },
    Key {
        path: "upstream.delay_high",
        meaning: "Upper end (`uniform`) or slow mode (`bimodal`) of the delay",
        takes: "a duration, 0s to 1h, not below upstream.delay",
        parse: |raw, _| {
            put(read::micros(raw, Micros(0), HOUR), |s, v| {
                s.upstream.delay_high = v;
            })
        },
        show: |s| s.upstream.delay_high.to_string(),
    },
    Key {
        path: "upstream.delay_high_share",
        meaning: "Share of slow answers (`bimodal`)",
        takes: "a number, 0, or 0.000001 to 1",
        parse: |raw, _| put(read::share(raw), |s, v| s.upstream.delay_high_share = v),
        show: |s| s.upstream.delay_high_share.to_string(),
    },
    Key {
        path: "upstream.body",
        meaning: "Body size of a response",
        takes: "a size, 0 to 1Gi",
        parse: |raw, _| {
            put(read::bytes(raw, Bytes(0), Bytes(1 << 30)), |s, v| {
                s.upstream.body = v;
            })
        },
        show: |s| s.upstream.body.to_string(),
    },
];

pub(super) const TLS: &[Key] = &[
    Key {
        path: "tls.version",
        meaning: "TLS version between client and proxy",
        takes: "\"1.2\" or \"1.3\"",
        parse: |raw, _| put(read::choice::<TlsVersion>(raw), |s, v| s.tls.version = v),
        show: |s| s.tls.version.word().to_owned(),
    },
    Key {
        path: "tls.certificate",
        meaning: "Key of the proxy's certificate",
        takes: "\"ecdsa-p256\", \"rsa-2048\", \"rsa-4096\" or \"ed25519\"",
        parse: |raw, _| {
            put(read::choice::<CertificateKey>(raw), |s, v| {
                s.tls.certificate = v;
            })
        },
        show: |s| s.tls.certificate.word().to_owned(),
    },
    Key {
        path: "tls.key_exchange",
        meaning: "Key exchange group; `x25519mlkem768` is the post-quantum hybrid",
        takes: "\"x25519\", \"p256\" or \"x25519mlkem768\"",
        parse: |raw, _| {
            put(read::choice::<KeyExchange>(raw), |s, v| {
                s.tls.key_exchange = v;
            })
        },
        show: |s| s.tls.key_exchange.word().to_owned(),
    },
    Key {
        path: "tls.resumption",
        meaning: "Whether new connections resume an earlier session",
        takes: "true or false",
        parse: |raw, _| put(read::flag(raw), |s, v| s.tls.resumption = v),
        show: |s| s.tls.resumption.to_string(),
    },
    Key {
        path: "tls.mutual",
        meaning: "Whether the client shows a certificate, which the proxy checks",
        takes: "true or false",
        parse: |raw, _| put(read::flag(raw), |s, v| s.tls.mutual = v),
        show: |s| s.tls.mutual.to_string(),
    },
    Key {
        path: "tls.verify",
        meaning: "How the client checks the proxy's certificate: chain and name (`ca`), or equality with the run's own (`pin`), which costs the client less",
        takes: "\"ca\" or \"pin\"",
        parse: |raw, _| put(read::choice::<Verify>(raw), |s, v| s.tls.verify = v),
        show: |s| s.tls.verify.word().to_owned(),
    },
];

const CPUS: &str =
    "a list of CPU numbers and ranges, such as \"0\" or \"0-1,3\", or \"any\" or \"auto\"";

macro_rules! placement {
    ($path:literal, $meaning:literal, $field:ident) => {
        Key {
            path: $path,
            meaning: $meaning,
            takes: CPUS,
            parse: |raw, _| put(syntax::cpu_set(raw), |s, v| s.placement.$field = v),
            show: |s| s.placement.$field.to_string(),
        }
    };
}

pub(super) const PLACEMENT: &[Key] = &[
    placement!("placement.proxy", "CPUs that the proxy may use", proxy),
    placement!(
        "placement.upstream",
        "CPUs that the upstream may use",
        upstream
    ),
    placement!(
        "placement.agent",
        "CPUs that the load generator and the probes may use",
        agent
    ),
];
