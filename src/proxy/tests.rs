#![allow(clippy::unwrap_used)]

use std::io::Read as _;

use super::*;
use crate::spec::settings::{
    CertificateKey, KeyExchange, Protocol, ProxyKind, Settings, TlsVersion,
};

fn settings(kind: ProxyKind) -> Settings {
    let mut settings = crate::spec::defaults::settings();
    settings.proxy.kind = kind;
    settings.proxy.workers = 2;
    settings
}

fn launched(settings: &Settings) -> ProxyLaunch {
    let server = ServerIdentity {
        cert_pem: "CERT\n".to_owned(),
        key_pem: "KEY\n".to_owned(),
    };
    let tls = TlsFiles {
        server: &server,
        ca_pem: "CA\n",
    };
    launch(settings, tls, "127.0.0.1:8080".parse().unwrap())
}

fn text<'a>(launch: &'a ProxyLaunch, path: &str) -> &'a str {
    std::str::from_utf8(&launch.files[path].bytes).unwrap()
}

/// Everything that a matrix can turn on.
fn everything(kind: ProxyKind) -> Settings {
    let mut all = settings(kind);
    all.proxy.backlog = Some(64);
    all.proxy.max_connections = Some(4);
    all.proxy.max_pending_requests = Some(20);
    all.load.protocol = Protocol::H2;
    all.tls.version = TlsVersion::V1_2;
    all.tls.key_exchange = KeyExchange::P256;
    all.tls.mutual = true;
    all
}

#[test]
fn built_in_configurations_have_no_placeholder_left() {
    for (kind, path) in [
        (ProxyKind::Envoy, "/etc/sweep/envoy.yaml"),
        (ProxyKind::Nginx, "/etc/sweep/nginx.conf"),
        (ProxyKind::Haproxy, "/etc/sweep/haproxy.cfg"),
    ] {
        for settings in [settings(kind), everything(kind)] {
            let launch = launched(&settings);
            let config: String = text(&launch, path)
                .lines()
                .filter(|line| !line.trim_start().starts_with('#'))
                .collect();
            assert!(!config.contains("{{"), "{config}");
        }
    }
}

#[test]
fn envoy_is_started_by_arguments_alone_with_explicit_workers() {
    let launch = launched(&settings(ProxyKind::Envoy));
    assert_eq!(launch.entrypoint, None);
    assert_eq!(
        launch.cmd.join(" "),
        "-c /etc/sweep/envoy.yaml --concurrency 2 --disable-hot-restart -l warning"
    );
    assert_eq!(launch.user.as_deref(), Some("65532:65532"));
    assert!(launch.sysctls.is_empty());
}

#[test]
fn factors_reach_the_envoy_bootstrap() {
    let plain = launched(&settings(ProxyKind::Envoy));
    let plain = text(&plain, "/etc/sweep/envoy.yaml");
    for expected in [
        "alpn_protocols: [http/1.1]",
        "tls_minimum_protocol_version: TLSv1_3",
        "ecdh_curves: [X25519]",
        "disable_stateless_session_resumption: true",
        "disable_stateful_session_resumption: true",
        "max_pending_requests: 4294967295",
    ] {
        assert!(plain.contains(expected), "{expected} in {plain}");
    }
    assert!(!plain.contains("tcp_backlog_size") && !plain.contains("trusted_ca"));
    let mut all = everything(ProxyKind::Envoy);
    all.tls.resumption = true;
    let all = launched(&all);
    assert_eq!(all.sysctls["net.core.somaxconn"], "4096");
    let all = text(&all, "/etc/sweep/envoy.yaml");
    for expected in [
        "tcp_backlog_size: 64",
        "alpn_protocols: [h2]",
        "tls_maximum_protocol_version: TLSv1_2",
        "ecdh_curves: [P-256]",
        "require_client_certificate: true",
        "trusted_ca: { filename: /etc/sweep/tls/ca.pem }",
        "max_connections: 4\n",
        "max_pending_requests: 20",
    ] {
        assert!(all.contains(expected), "{expected} in {all}");
    }
    assert!(!all.contains("session_resumption"), "{all}");
}

#[test]
fn a_users_configuration_replaces_the_template_and_gets_the_same_values() {
    let mut own = settings(ProxyKind::Envoy);
    own.proxy.config =
        Some("p={{port}} u={{upstream}} k={{key}} w={{workers}} other={{ .Values.x }}".to_owned());
    own.proxy.backlog = Some(64);
    let launch = launched(&own);
    assert_eq!(
        text(&launch, "/etc/sweep/envoy.yaml"),
        "p=8443 u=127.0.0.1:8080 k=/etc/sweep/tls/key.pem w=2 other={{ .Values.x }}"
    );
    assert_eq!(
        launch.sysctls["net.core.somaxconn"], "64",
        "nothing else can set the backlog"
    );
}

#[test]
fn a_custom_proxy_gets_its_command_and_files_filled() {
    let mut custom = settings(ProxyKind::Custom);
    custom.proxy.port = 443;
    custom.proxy.command = vec!["serve".to_owned(), "--listen=:{{port}}".to_owned()];
    custom.proxy.config = Some("{{cert}}".to_owned());
    custom
        .proxy
        .files
        .insert("/etc/own.conf".to_owned(), "ca={{ca}}".to_owned());
    let launch = launched(&custom);
    assert_eq!(launch.cmd, ["serve", "--listen=:443"]);
    assert_eq!(text(&launch, "/etc/own.conf"), "ca=/etc/sweep/tls/ca.pem");
    assert_eq!(
        text(&launch, "/etc/sweep/config"),
        "/etc/sweep/tls/cert.pem"
    );
    assert_eq!(launch.sysctls["net.ipv4.ip_unprivileged_port_start"], "0");
}

#[test]
fn archive_gives_keys_to_the_proxys_user_alone() {
    let launch = launched(&settings(ProxyKind::Nginx));
    let bytes = launch.archive().unwrap();
    let mut seen = BTreeMap::new();
    for entry in tar::Archive::new(bytes.as_slice()).entries().unwrap() {
        let mut entry = entry.unwrap();
        assert_eq!(entry.header().uid().unwrap(), PROXY_UID);
        assert_eq!(entry.header().gid().unwrap(), PROXY_UID);
        let mut content = String::new();
        entry.read_to_string(&mut content).unwrap();
        let path = entry.path().unwrap().display().to_string();
        seen.insert(path, (entry.header().mode().unwrap(), content));
    }
    for (path, (mode, content)) in &seen {
        let secret = content.contains("KEY");
        assert_eq!(secret, *mode == 0o400, "{path} has mode {mode:o}");
    }
    assert_eq!(seen["etc/sweep/tls/pair.pem"].1, "CERT\nKEY\n");
    assert!(seen.contains_key("var/lib/sweep/"), "{:?}", seen.keys());
    assert!(!seen.contains_key("etc/"), "{:?}", seen.keys());
    assert!(!format!("{launch:?}").contains("KEY"));
}

#[test]
fn archive_refuses_paths_out_of_the_container() {
    for bad in ["relative", "/", "/a/../../b"] {
        let mut custom = settings(ProxyKind::Custom);
        custom.proxy.files.insert(bad.to_owned(), String::new());
        assert!(launched(&custom).archive().is_err(), "{bad}");
    }
}

#[test]
fn nginx_connections_follow_the_load_within_the_descriptor_limit() {
    let connections = |settings: &Settings| {
        let launch = launched(settings);
        let config = text(&launch, "/etc/sweep/nginx.conf");
        let (_, after) = config.split_once("worker_connections ").unwrap();
        after.split_once(';').unwrap().0.parse::<u64>().unwrap()
    };
    let mut nginx = settings(ProxyKind::Nginx);
    assert_eq!(connections(&nginx), 1024 * 2);
    nginx.load.connections = 2000;
    assert_eq!(connections(&nginx), 8192);
    nginx.proxy.nofile = 128;
    assert_eq!(connections(&nginx), 128);
}

#[test]
fn tls_1_2_names_the_curve_of_the_certificate_too() {
    let mut nginx = settings(ProxyKind::Nginx);
    nginx.tls.version = TlsVersion::V1_2;
    let curves = |settings: &Settings| {
        let launch = launched(settings);
        let config = text(&launch, "/etc/sweep/nginx.conf");
        let (_, after) = config.split_once("ssl_ecdh_curve ").unwrap();
        after.split_once(';').unwrap().0.to_owned()
    };
    assert_eq!(curves(&nginx), "X25519:P-256");
    nginx.tls.certificate = CertificateKey::Rsa2048;
    assert_eq!(curves(&nginx), "X25519");
    nginx.tls.certificate = CertificateKey::EcdsaP256;
    nginx.tls.version = TlsVersion::V1_3;
    assert_eq!(curves(&nginx), "X25519");
}

#[test]
fn filling_leaves_foreign_braces_alone() {
    let value = |name: &str| (name == "a").then(|| "{{b}}".to_owned());
    assert_eq!(fill("{{a}} {{b}} {{", value), "{{b}} {{b}} {{");
    assert_eq!(fill("{{{a}}}", value), "{{{b}}}");
    assert_eq!(fill("{{ {{a}}", value), "{{ {{b}}");
    assert_eq!(fill("é{{a}}é", value), "é{{b}}é");
}

proptest::proptest! {
    #[test]
    fn filling_without_known_names_changes_nothing(text in "[{}a-c é]{0,40}") {
        proptest::prop_assert_eq!(fill(&text, |_| None), text);
    }
}
