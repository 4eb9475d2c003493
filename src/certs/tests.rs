#![allow(clippy::unwrap_used)]

use std::io::{Read as _, Write as _};
use std::process::Command;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection};

use super::*;

const ALL: [CertificateKey; 4] = [
    CertificateKey::EcdsaP256,
    CertificateKey::Rsa2048,
    CertificateKey::Rsa4096,
    CertificateKey::Ed25519,
];

fn roots(pem: &str) -> Arc<RootCertStore> {
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_slice(pem.as_bytes()).unwrap())
        .unwrap();
    Arc::new(roots)
}

fn parsed(cert: &str, key: &str) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
    (
        vec![CertificateDer::from_pem_slice(cert.as_bytes()).unwrap()],
        PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap(),
    )
}

/// A mutual handshake in memory, and four bytes through it.
fn handshake(
    ca_of_client: &str,
    certs: &RunCertificates,
    key: CertificateKey,
    name: &'static str,
) -> Result<(), rustls::Error> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let identity = certs.server(key).unwrap();
    let (chain, private) = parsed(&identity.cert_pem, &identity.key_pem);
    let verifier =
        WebPkiClientVerifier::builder_with_provider(roots(&certs.ca_pem), provider.clone())
            .build()
            .unwrap();
    let server = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain, private)?;
    let (chain, private) = parsed(&certs.client.cert_pem, &certs.client.key_pem);
    let client = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots(ca_of_client))
        .with_client_auth_cert(chain, private)?;
    let mut client =
        ClientConnection::new(Arc::new(client), ServerName::try_from(name).unwrap()).unwrap();
    let mut server = ServerConnection::new(Arc::new(server)).unwrap();
    client.writer().write_all(b"ping").unwrap();
    for _ in 0..10 {
        let mut wire = Vec::new();
        client.write_tls(&mut wire).unwrap();
        server.read_tls(&mut wire.as_slice()).unwrap();
        server.process_new_packets()?;
        wire.clear();
        server.write_tls(&mut wire).unwrap();
        client.read_tls(&mut wire.as_slice()).unwrap();
        client.process_new_packets()?;
    }
    let mut got = [0_u8; 4];
    server.reader().read_exact(&mut got).unwrap();
    assert_eq!(&got, b"ping");
    assert!(
        server.peer_certificates().is_some(),
        "no client certificate"
    );
    Ok(())
}

#[test]
fn every_kind_of_key_makes_a_mutual_handshake_under_each_name() {
    let certs = RunCertificates::generate(ALL, SystemTime::now()).unwrap();
    for key in ALL {
        for name in [SERVER_NAME, "localhost", "127.0.0.1"] {
            handshake(&certs.ca_pem, &certs, key, name)
                .unwrap_or_else(|e| panic!("{} as {name}: {e}", key_name(key)));
        }
    }
}

#[test]
fn another_runs_ca_and_another_name_are_refused() {
    let key = CertificateKey::EcdsaP256;
    let ours = RunCertificates::generate([key], SystemTime::now()).unwrap();
    let other = RunCertificates::generate([key], SystemTime::now()).unwrap();
    let foreign = handshake(&other.ca_pem, &ours, key, SERVER_NAME).unwrap_err();
    assert!(
        matches!(foreign, rustls::Error::InvalidCertificate(_)),
        "{foreign}"
    );
    let misnamed = handshake(&ours.ca_pem, &ours, key, "example.test").unwrap_err();
    assert!(misnamed.to_string().contains("name"), "{misnamed}");
}

#[test]
fn validity_is_around_the_given_moment() {
    let key = CertificateKey::EcdsaP256;
    let long_ago = SystemTime::now() - Duration::from_secs(30 * 24 * 3600);
    let old = RunCertificates::generate([key], long_ago).unwrap();
    let expired = handshake(&old.ca_pem, &old, key, SERVER_NAME).unwrap_err();
    assert!(expired.to_string().contains("expired"), "{expired}");
    let behind = SystemTime::now() + Duration::from_secs(20 * 3600);
    let early = RunCertificates::generate([key], behind).unwrap();
    handshake(&early.ca_pem, &early, key, SERVER_NAME).expect("a clock 20 h behind");
}

#[test]
fn only_the_kinds_asked_for_are_made_and_debug_output_holds_no_key() {
    let certs = RunCertificates::generate([CertificateKey::Ed25519], SystemTime::now()).unwrap();
    assert!(certs.server(CertificateKey::EcdsaP256).is_none());
    let identity = certs.server(CertificateKey::Ed25519).unwrap();
    assert!(!format!("{identity:?} {certs:?}").contains("PRIVATE"));
}

/// An independent judge of chain, purpose and key size.
#[test]
fn openssl_verifies_the_chains() {
    let certs = RunCertificates::generate(ALL, SystemTime::now()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    fs_err::write(path("ca.pem"), &certs.ca_pem).unwrap();
    fs_err::write(path("client.pem"), &certs.client.cert_pem).unwrap();
    let verify = |purpose: &str, file: &str| {
        let out = Command::new("openssl")
            .args(["verify", "-x509_strict", "-purpose", purpose, "-CAfile"])
            .args([path("ca.pem"), path(file)])
            .output()
            .expect("openssl runs (Debian: apt-get install openssl)");
        assert!(out.status.success(), "{file}: {out:?}");
    };
    verify("sslclient", "client.pem");
    for (key, expected) in ALL.into_iter().zip([
        "prime256v1",
        "Public-Key: (2048 bit)",
        "Public-Key: (4096 bit)",
        "ED25519",
    ]) {
        fs_err::write(path("server.pem"), &certs.server(key).unwrap().cert_pem).unwrap();
        verify("sslserver", "server.pem");
        // OpenSSL 3.0 reads version 1 of PKCS#8 only.
        fs_err::write(path("key.pem"), &certs.server(key).unwrap().key_pem).unwrap();
        let readable = Command::new("openssl")
            .args(["pkey", "-noout", "-in"])
            .arg(path("key.pem"))
            .output()
            .unwrap();
        assert!(readable.status.success(), "{readable:?}");
        let text = Command::new("openssl")
            .args(["x509", "-noout", "-text", "-in"])
            .arg(path("server.pem"))
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&text.stdout).into_owned();
        assert!(text.contains(expected), "{expected} in {text}");
        assert!(text.contains("DNS:sweep.test"), "{text}");
        assert!(text.contains("IP Address:127.0.0.1"), "{text}");
    }
}
