//! The value of every key that a matrix does not give. The one place where defaults are written down.

use std::collections::BTreeMap;

use super::settings::{
    Arrivals, CertificateKey, DelayDistribution, KeyExchange, Limits, Load, LoadMode, PageCache,
    Placement, Protocol, Proxy, ProxyKind, Settings, Tls, TlsVersion, Upstream, Verify, Wait,
};
use crate::units::{Bytes, Micros, RatePerSecond};

/// Repetitions of every cell.
pub const REPETITIONS: u32 = 3;
/// Seed of the order and of every trial's arrivals.
pub const SEED: u64 = 1;

/// The settings of an empty matrix.
#[must_use]
pub fn settings() -> Settings {
    Settings {
        warmup: Micros::from_secs(5),
        duration: Micros::from_secs(30),
        limits: Limits {
            cpu: None,
            // The period of Docker's `NanoCpus` and of Kubernetes.
            cpu_period: Micros::from_millis(100),
            memory: None,
            // Kubernetes' own default: no swap.
            swap: Bytes(0),
        },
        proxy: proxy(),
        upstream: Upstream {
            delay: Micros(200),
            delay_distribution: DelayDistribution::Constant,
            delay_high: Micros(0),
            delay_high_share: 0.0,
            body: Bytes(1024),
        },
        load: load(),
        tls: Tls {
            version: TlsVersion::V1_3,
            certificate: CertificateKey::EcdsaP256,
            key_exchange: KeyExchange::X25519,
            // Silent resumption would mix two kinds of handshake in one figure.
            resumption: false,
            mutual: false,
            verify: Verify::Ca,
        },
        placement: Placement::default(),
    }
}

fn proxy() -> Proxy {
    Proxy {
        kind: ProxyKind::Envoy,
        image: image(ProxyKind::Envoy).unwrap_or_default().to_owned(),
        workers: 1,
        // Engines that cannot raise a hard limit (nested ones) refuse more; see docs/matrix.md.
        nofile: 16_384,
        page_cache: PageCache::Warm,
        backlog: None,
        config: None,
        command: Vec::new(),
        files: BTreeMap::new(),
        port: 8443,
        admin_port: admin_port(ProxyKind::Envoy),
        ready_path: "/".to_owned(),
        max_pending_requests: None,
        max_connections: None,
    }
}

fn load() -> Load {
    Load {
        mode: LoadMode::Open,
        rate: RatePerSecond(1000.0),
        arrivals: Arrivals::Constant,
        users: 64,
        connections: 64,
        requests_per_connection: None,
        streams: 1,
        handshake_rate: RatePerSecond(50.0),
        protocol: Protocol::H1,
        method: "GET".to_owned(),
        path: "/".to_owned(),
        headers: BTreeMap::new(),
        body: Bytes(0),
        timeout: Micros::from_secs(10),
        // Longer than the first five SYN retransmissions (1, 2, 3, 4 and 5 s, or 1, 3, 7 and 15 s).
        connect_timeout: Micros::from_secs(30),
        max_pacing_lag: Micros::from_millis(1),
        threads: 1,
        wait: Wait::Auto,
    }
}

/// The image of a proxy when `proxy.image` is not given; `None` where it must be.
#[must_use]
pub fn image(kind: ProxyKind) -> Option<&'static str> {
    match kind {
        ProxyKind::Envoy => Some("envoyproxy/envoy:v1.40-latest"),
        ProxyKind::Nginx => Some("nginx:1.28"),
        ProxyKind::Haproxy => Some("haproxy:3.2"),
        ProxyKind::Custom => None,
    }
}

/// The port of a proxy's own statistics when `proxy.admin_port` is not given.
#[must_use]
pub fn admin_port(kind: ProxyKind) -> Option<u16> {
    match kind {
        ProxyKind::Envoy | ProxyKind::Nginx | ProxyKind::Haproxy => Some(9901),
        ProxyKind::Custom => None,
    }
}
