//! Jobs for the tests, and running them.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;

use sweep::agent::job::{Job, Phase, TlsMaterial};
use sweep::load::Generator;
use sweep::load::report::{BottleneckKind, LoadReport};
use sweep::spec::settings::{
    Arrivals, CertificateKey, KeyExchange, Load, LoadMode, Protocol, Tls, TlsVersion, Verify, Wait,
};
use sweep::units::{Bytes, Micros, RatePerSecond};

use crate::server::Identity;

pub const SERVER_NAME: &str = "proxy.test";

pub fn load() -> Load {
    Load {
        mode: LoadMode::Open,
        rate: RatePerSecond(100.0),
        arrivals: Arrivals::Constant,
        users: 1,
        connections: 8,
        requests_per_connection: None,
        streams: 1,
        handshake_rate: RatePerSecond(0.0),
        protocol: Protocol::H1,
        method: "GET".into(),
        path: "/".into(),
        headers: BTreeMap::new(),
        body: Bytes(0),
        timeout: Micros(30_000_000),
        connect_timeout: Micros(15_000_000),
        max_pacing_lag: Micros(1_000),
        threads: 1,
        wait: Wait::Auto,
    }
}

pub fn job(target: SocketAddr, load: Load) -> Job {
    Job {
        target,
        server_name: SERVER_NAME.into(),
        tls: None,
        load,
        warmup: Micros(200_000),
        duration: Micros(2_000_000),
        drain: Micros(5_000_000),
        seed: 1,
        upstream_control: target,
        ready_path: "/".into(),
        ready_deadline: Micros(5_000_000),
        proxy: None,
        upstream_container: None,
        sample_interval: Micros(50_000),
        agent_cpus: 2.0,
        spin: false,
        listen_port: target.port(),
    }
}

pub fn tls_settings() -> Tls {
    Tls {
        version: TlsVersion::V1_3,
        certificate: CertificateKey::EcdsaP256,
        key_exchange: KeyExchange::X25519,
        resumption: false,
        mutual: false,
        verify: Verify::Ca,
    }
}

pub fn tls(identity: &Identity, settings: Tls) -> TlsMaterial {
    TlsMaterial {
        settings,
        ca_pem: identity.ca_pem.clone(),
        server_cert_pem: identity.server_pem.clone(),
        client: Some(identity.client.clone()),
    }
}

pub fn run(job: &Job) -> LoadReport {
    let mut phases = Vec::new();
    let report = Generator::new(job)
        .unwrap()
        .run(&mut |phase| phases.push(phase), &AtomicBool::new(false))
        .unwrap();
    assert_eq!(phases, [Phase::Warmup, Phase::Measure, Phase::Drain]);
    let ended = report.requests + report.errors.values().sum::<u64>();
    assert_eq!(
        report.scheduled,
        ended,
        "every scheduled request ends once: {}",
        tell(&report)
    );
    report
}

/// A report without its histograms.
pub fn tell(report: &LoadReport) -> String {
    let handshake = &report.handshake;
    format!(
        "scheduled {} sent {} requests {} achieved {:.2}/s in flight {:?} errors {:?} connection errors {:?} opened {} \
         status {:?} users {:?} bottlenecks {:?} negotiated {:?} handshake: scheduled {} completed {} full {} resumed {} \
         errors {:?} SYN retries {:?}",
        report.scheduled,
        report.sent,
        report.requests,
        report.achieved_rate_rps,
        report.in_flight_mean,
        report.errors,
        report.connection_errors,
        report.connections_opened,
        report.status_codes,
        report.littles_law_users,
        report.bottlenecks,
        report.negotiated,
        handshake.scheduled,
        handshake.completed,
        handshake.full,
        handshake.resumed,
        handshake.errors,
        handshake.syn_retries,
    )
}

/// Bottlenecks that a machine busy with other tests does not excuse.
pub fn faults(report: &LoadReport) -> Vec<BottleneckKind> {
    report
        .bottlenecks
        .iter()
        .map(|found| found.kind)
        .filter(|kind| {
            !matches!(
                kind,
                BottleneckKind::PacingLag
                    | BottleneckKind::CpuSaturated
                    | BottleneckKind::CpuStarved
            )
        })
        .collect()
}

/// A quantile in milliseconds.
pub fn ms(histogram: &sweep::hdr::LatencyHistogram, quantile: f64) -> f64 {
    histogram.quantile_us(quantile).unwrap() as f64 / 1000.0
}

#[track_caller]
pub fn assert_near(what: &str, found: f64, expected: f64, tolerance: f64) {
    assert!(
        (found - expected).abs() <= tolerance,
        "{what}: {found}, expected {expected} ± {tolerance}"
    );
}
