//! Resumption and the post-quantum key exchange, by a rustls client that enters the proxy's network namespace.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::time::Duration;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use rustls::client::Resumption;
use rustls::crypto::aws_lc_rs::{default_provider, kx_group};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, HandshakeKind, NamedGroup, RootCertStore};
use sweep::certs::{RunCertificates, SERVER_NAME};
use sweep::spec::settings::{KeyExchange, ProxyKind, TlsVersion};

use crate::docker::{self, Container};
use crate::launch::{Stand, settings};

/// What one connection negotiated.
#[derive(Debug, Clone, Copy)]
struct Negotiated {
    kind: HandshakeKind,
    group: Option<NamedGroup>,
}

/// Connects twice with one session store, a request on each, from within `proxy`'s namespace (which needs root).
fn connect_twice(proxy: &Container, certs: &RunCertificates) -> [Negotiated; 2] {
    let pid = docker::docker(&["inspect", "--format", "{{.State.Pid}}", &proxy.0]);
    let namespace = fs_err::File::open(format!("/proc/{pid}/ns/net")).expect("namespace");
    let config = Arc::new(client(certs));
    std::thread::scope(|scope| {
        let inside = scope.spawn(|| {
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))
                .expect("root may enter a namespace");
            [connect(&config), connect(&config)]
        });
        inside.join().expect("client")
    })
}

/// X25519 before P-256, which TLS 1.2 needs for the certificate; ML-KEM last, so that only a server that wants it gets it.
fn client(certs: &RunCertificates) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_slice(certs.ca_pem.as_bytes()).expect("CA"))
        .expect("CA");
    let mut provider = default_provider();
    provider.kx_groups = vec![
        kx_group::X25519,
        kx_group::SECP256R1,
        kx_group::X25519MLKEM768,
    ];
    let mut config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.resumption = Resumption::in_memory_sessions(8);
    config
}

fn connect(config: &Arc<ClientConfig>) -> Negotiated {
    let mut tcp = TcpStream::connect("127.0.0.1:8443").expect("connect");
    tcp.set_read_timeout(Some(Duration::from_secs(10)))
        .expect("timeout");
    let name = ServerName::try_from(SERVER_NAME).expect("name");
    let mut tls = ClientConnection::new(Arc::clone(config), name).expect("client");
    let mut stream = rustls::Stream::new(&mut tls, &mut tcp);
    stream
        .write_all(b"GET / HTTP/1.1\r\nHost: sweep.test\r\nConnection: close\r\n\r\n")
        .expect("request");
    let mut answer = Vec::new();
    // Proxies may close without a close_notify; what was read by then holds the session tickets.
    let _ = stream.read_to_end(&mut answer);
    assert!(answer.starts_with(b"HTTP/1.1 50"), "{answer:?}");
    Negotiated {
        kind: tls.handshake_kind().expect("finished"),
        group: tls
            .negotiated_key_exchange_group()
            .map(|group| group.name()),
    }
}

/// "Off" must be off in both versions, and "on" must really resume: figures of either would lie otherwise.
fn resumption_is_as_asked(kind: ProxyKind) {
    let stand = Stand::new(kind);
    for version in [TlsVersion::V1_2, TlsVersion::V1_3] {
        for resumption in [false, true] {
            let mut wanted = settings(kind);
            wanted.tls.version = version;
            wanted.tls.resumption = resumption;
            let (proxy, _) = stand.answering(&wanted, &[]);
            let [first, second] = connect_twice(&proxy, &stand.certs);
            assert_eq!(first.kind, HandshakeKind::Full);
            let expected = if resumption {
                HandshakeKind::Resumed
            } else {
                HandshakeKind::Full
            };
            assert_eq!(
                second.kind, expected,
                "{kind:?}, {version:?}, resumption {resumption}"
            );
            if second.kind == HandshakeKind::Full {
                assert_eq!(
                    second.group,
                    Some(NamedGroup::X25519),
                    "{kind:?}, {version:?}"
                );
            }
        }
    }
}

#[test]
fn engine_envoy_resumes_only_when_asked() {
    resumption_is_as_asked(ProxyKind::Envoy);
}

#[test]
fn engine_nginx_resumes_only_when_asked() {
    resumption_is_as_asked(ProxyKind::Nginx);
}

#[test]
fn engine_haproxy_resumes_only_when_asked() {
    resumption_is_as_asked(ProxyKind::Haproxy);
}

/// The client prefers others, so only a server that takes nothing else ends with it.
#[test]
fn engine_envoy_insists_on_the_post_quantum_group() {
    let stand = Stand::new(ProxyKind::Envoy);
    let mut wanted = settings(ProxyKind::Envoy);
    wanted.tls.key_exchange = KeyExchange::X25519MlKem768;
    let proxy = stand.start(&wanted);
    stand.wait_for_listener(&proxy, 8443);
    for one in connect_twice(&proxy, &stand.certs) {
        assert_eq!(one.group, Some(NamedGroup::X25519MLKEM768));
    }
}
