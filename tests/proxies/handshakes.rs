//! Every handshake setting that a matrix can vary, for every kind of proxy, asked by curl.

use sweep::spec::settings::{KeyExchange, Protocol, ProxyKind, TlsVersion};

use crate::docker;
use crate::launch::{ENVOY_IMAGE, KEYS, Stand, launch_of, listen_backlog, settings, start};

/// Keys, key exchanges, and all the rest together.
fn handshakes(kind: ProxyKind) {
    let stand = Stand::new(kind);
    for key in KEYS {
        let mut wanted = settings(kind);
        wanted.tls.certificate = key;
        stand.answering(&wanted, &["--http1.1"]);
    }
    // curl's OpenSSL on Debian 12 has no ML-KEM; `sessions` asks for that group.
    for (group, only, other) in [
        (KeyExchange::X25519, "X25519", "P-256"),
        (KeyExchange::P256, "P-256", "X25519"),
    ] {
        let mut wanted = settings(kind);
        wanted.tls.key_exchange = group;
        let (proxy, _) = stand.answering(&wanted, &["--curves", only]);
        let (ok, text) = stand.client.ask_https(&proxy, &["--curves", other]);
        assert!(
            !ok,
            "{kind:?} took {other} where only {only} is set: {text}"
        );
    }
    everything(&stand);
}

/// TLS 1.2, HTTP/2, mutual TLS and a backlog, together.
fn everything(stand: &Stand) {
    let mut wanted = settings(stand.kind);
    wanted.tls.version = TlsVersion::V1_2;
    wanted.tls.mutual = true;
    wanted.load.protocol = Protocol::H2;
    wanted.proxy.backlog = Some(64);
    let identity = ["--http2", "--cert", "/client.pem", "--key", "/client.key"];
    let (proxy, text) = stand.answering(&wanted, &identity);
    assert!(text.contains("HTTP/2 "), "{text}");
    assert!(text.contains("TLSv1.2"), "{text}");
    // nginx answers 400 to a client without a certificate, the others end the handshake.
    let (_, text) = stand.client.ask_https(&proxy, &["--http2"]);
    assert!(!stand.went_through(&text), "{text}");
    let newer = [&["--tlsv1.3"], &identity[..]].concat();
    let (ok, text) = stand.client.ask_https(&proxy, &newer);
    assert!(
        !ok,
        "{:?} took TLS 1.3 where 1.2 is set: {text}",
        stand.kind
    );
    assert_eq!(listen_backlog(&proxy, 8443), Some(64), "{:?}", stand.kind);
}

#[test]
fn engine_envoy_serves_every_handshake_setting() {
    handshakes(ProxyKind::Envoy);
}

#[test]
fn engine_nginx_serves_every_handshake_setting() {
    handshakes(ProxyKind::Nginx);
}

#[test]
fn engine_haproxy_serves_every_handshake_setting() {
    handshakes(ProxyKind::Haproxy);
}

/// An Envoy that cannot make sense of a setting says so and exits.
#[test]
fn engine_envoy_accepts_breakers_and_no_admin() {
    let stand = Stand::new(ProxyKind::Envoy);
    let mut all = settings(ProxyKind::Envoy);
    all.proxy.admin_port = None;
    all.proxy.max_connections = Some(4);
    all.proxy.max_pending_requests = Some(20);
    let mut launch = launch_of(&all, &stand.certs);
    let validate = ["--mode", "validate"].map(str::to_owned);
    launch.cmd.extend(validate);
    let proxy = start(ENVOY_IMAGE, &launch);
    let code = docker::docker(&["wait", &proxy.0]);
    assert_eq!(code, "0", "{}", proxy.logs());
}

#[test]
fn engine_statistics_of_each_kind_answer_at_their_address() {
    for (kind, path, expected) in [
        (
            ProxyKind::Envoy,
            "/stats?filter=server.concurrency",
            "server.concurrency: 1",
        ),
        (ProxyKind::Nginx, "/stub_status", "Active connections"),
        (ProxyKind::Haproxy, "/stats;csv", "# pxname"),
    ] {
        let stand = Stand::new(kind);
        let (proxy, _) = stand.answering(&settings(kind), &[]);
        let url = format!("http://127.0.0.1:9901{path}");
        let (ok, text) = stand.client.ask(&proxy, &[&url]);
        assert!(ok && text.contains(expected), "{kind:?}: {text}");
    }
}
