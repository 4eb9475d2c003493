//! TLS as the job asks for it, and nothing else.

use sweep::agent::job::Job;
use sweep::load::report::ErrorClass;
use sweep::load::{Generator, LoadError};
use sweep::spec::settings::{KeyExchange, Tls, TlsVersion, Verify};
use sweep::units::{Micros, RatePerSecond};

use crate::job::{job, load, run, tell, tls, tls_settings};
use crate::server::{Identity, Server, over_tls};

fn tls_job(server: &Server, identity: &Identity, settings: Tls) -> Job {
    let mut job = job(server.address, load());
    job.tls = Some(tls(identity, settings));
    job.load.handshake_rate = RatePerSecond(40.0);
    job.duration = Micros(500_000);
    job
}

#[test]
fn versions_and_groups_are_those_asked_for() {
    let identity = Identity::new();
    let server = over_tls(identity.server_config(b"http/1.1", false), || {});
    for (version, group, verify, expected) in [
        (
            TlsVersion::V1_3,
            KeyExchange::X25519,
            Verify::Pin,
            "TLSv1_3 TLS13_AES_128_GCM_SHA256 X25519 full",
        ),
        (
            TlsVersion::V1_3,
            KeyExchange::P256,
            Verify::Ca,
            "TLSv1_3 TLS13_AES_128_GCM_SHA256 secp256r1 full",
        ),
        (
            TlsVersion::V1_3,
            KeyExchange::X25519MlKem768,
            Verify::Ca,
            "TLSv1_3 TLS13_AES_128_GCM_SHA256 X25519MLKEM768 full",
        ),
        (
            TlsVersion::V1_2,
            KeyExchange::X25519,
            Verify::Ca,
            "TLSv1_2 TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 X25519 full",
        ),
        (
            TlsVersion::V1_2,
            KeyExchange::P256,
            Verify::Pin,
            "TLSv1_2 TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 secp256r1 full",
        ),
    ] {
        let mut settings = tls_settings();
        (settings.version, settings.key_exchange, settings.verify) = (version, group, verify);
        let report = run(&tls_job(&server, &identity, settings));
        assert_eq!(
            (report.requests, report.errors.len()),
            (50, 0),
            "{}",
            tell(&report)
        );
        assert_eq!(
            (report.handshake.completed, report.handshake.full),
            (20, 20),
            "{}",
            tell(&report)
        );
        let found: Vec<&str> = report.negotiated.keys().map(String::as_str).collect();
        assert_eq!(found, [expected]);
    }
}

#[test]
fn sessions_are_resumed_only_when_asked() {
    let identity = Identity::new();
    let server = over_tls(identity.server_config(b"http/1.1", false), || {});
    for version in [TlsVersion::V1_3, TlsVersion::V1_2] {
        for resumption in [true, false] {
            let mut settings = tls_settings();
            (settings.version, settings.resumption) = (version, resumption);
            let report = run(&tls_job(&server, &identity, settings));
            let expected = if resumption { (0, 20) } else { (20, 0) };
            let found = (report.handshake.full, report.handshake.resumed);
            assert_eq!(found, expected, "{version:?}: {}", tell(&report));
            assert_eq!(report.handshake.completed, 20);
        }
    }
}

#[test]
fn mutual_tls_shows_the_clients_certificate() {
    let identity = Identity::new();
    let server = over_tls(identity.server_config(b"http/1.1", true), || {});
    for version in [TlsVersion::V1_3, TlsVersion::V1_2] {
        let mut settings = tls_settings();
        (settings.version, settings.mutual) = (version, true);
        let report = run(&tls_job(&server, &identity, settings.clone()));
        assert_eq!(
            (report.requests, report.errors.len()),
            (50, 0),
            "{}",
            tell(&report)
        );
        settings.mutual = false;
        let mut job = tls_job(&server, &identity, settings);
        job.drain = Micros(500_000);
        let report = run(&job);
        assert_eq!(report.requests, 0);
        let classes: Vec<_> = report.errors.keys().copied().collect();
        assert!(classes.contains(&ErrorClass::Tls), "{}", tell(&report));
    }
}

#[test]
fn another_protocol_in_alpn_is_an_error() {
    let identity = Identity::new();
    let server = over_tls(identity.server_config(b"h2", false), || {});
    let mut job = tls_job(&server, &identity, tls_settings());
    job.drain = Micros(200_000);
    let report = run(&job);
    assert!(
        report.errors.contains_key(&ErrorClass::Tls),
        "{}",
        tell(&report)
    );
    assert_eq!(report.requests, 0);
}

#[test]
fn impossible_jobs_are_refused_with_a_reason() {
    let identity = Identity::new();
    let server = over_tls(identity.server_config(b"http/1.1", false), || {});
    let mut job = tls_job(&server, &identity, tls_settings());
    let material = job.tls.as_mut().unwrap();
    material.settings.version = TlsVersion::V1_2;
    material.settings.key_exchange = KeyExchange::X25519MlKem768;
    assert!(matches!(
        Generator::new(&job),
        Err(LoadError::HybridNeedsTls13)
    ));
    job.tls = Some(tls(&identity, tls_settings()));
    job.server_name = "not a name".into();
    assert!(matches!(
        Generator::new(&job),
        Err(LoadError::ServerName { .. })
    ));
    job.server_name = "proxy.test".into();
    job.tls.as_mut().unwrap().ca_pem = "nothing".into();
    assert!(matches!(
        Generator::new(&job),
        Err(LoadError::Pem { whose: "CA", .. })
    ));
}
