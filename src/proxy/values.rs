//! What the placeholders stand for. `envoy/README.md` lists the ones that are promised to users.

use std::net::SocketAddr;

use super::upload::tls_path;
use super::{CONFIG_DIR, STATE_DIR};
use crate::spec::settings::{CertificateKey, KeyExchange, Protocol, Settings, TlsVersion};

/// Where the text of `proxy.config` goes for `kind = "custom"`.
pub(super) const CUSTOM_CONFIG: &str = "/etc/sweep/config";

/// As good as unlimited for Envoy's 32-bit thresholds.
const UNLIMITED: u32 = u32::MAX;

/// Values of one trial.
pub(super) struct Values<'a> {
    settings: &'a Settings,
    upstream: SocketAddr,
}

impl<'a> Values<'a> {
    pub(super) fn new(settings: &'a Settings, upstream: SocketAddr) -> Self {
        Self { settings, upstream }
    }

    /// The value of a placeholder; `None` for a name that is not one.
    pub(super) fn get(&self, name: &str) -> Option<String> {
        self.public(name)
            .or_else(|| self.envoy(name))
            .or_else(|| self.nginx(name))
            .or_else(|| self.haproxy(name))
    }

    /// Placeholders that users may rely on.
    fn public(&self, name: &str) -> Option<String> {
        let proxy = &self.settings.proxy;
        Some(match name {
            "port" => proxy.port.to_string(),
            "admin_port" => proxy.admin_port?.to_string(),
            "workers" => proxy.workers.to_string(),
            "cert" => tls_path("cert"),
            "key" => tls_path("key"),
            "pem" => tls_path("pair"),
            "ca" => tls_path("ca"),
            "config" => CUSTOM_CONFIG.to_owned(),
            "config_dir" => CONFIG_DIR.to_owned(),
            "state" => STATE_DIR.to_owned(),
            "upstream" => self.upstream.to_string(),
            "upstream_host" => self.upstream.ip().to_string(),
            "upstream_port" => self.upstream.port().to_string(),
            "alpn" => match self.settings.load.protocol {
                Protocol::H1 => "http/1.1".to_owned(),
                Protocol::H2 => "h2".to_owned(),
            },
            _ => return None,
        })
    }

    fn envoy(&self, name: &str) -> Option<String> {
        let (proxy, tls) = (&self.settings.proxy, &self.settings.tls);
        Some(match name {
            "admin" => optional(proxy.admin_port, |port| {
                format!(
                    "admin: {{ address: {{ socket_address: {{ address: 127.0.0.1, port_value: {port} }} }} }}"
                )
            }),
            "tcp_backlog_size" => {
                optional(proxy.backlog, |size| format!("tcp_backlog_size: {size}"))
            }
            "require_client_certificate" => when(tls.mutual, "require_client_certificate: true"),
            "validation_context" => when(
                tls.mutual,
                &format!(
                    "validation_context: {{ trusted_ca: {{ filename: {} }} }}",
                    tls_path("ca")
                ),
            ),
            // Session tickets are stateless, session ids (TLS 1.2) stateful; each has its own switch. Flow style, because
            // one placeholder stands for two keys of the mapping that it is in.
            "disable_session_resumption" => when(
                !tls.resumption,
                "disable_stateless_session_resumption: true\n          \
                 disable_stateful_session_resumption: true",
            ),
            "envoy_tls_version" => match tls.version {
                TlsVersion::V1_2 => "TLSv1_2",
                TlsVersion::V1_3 => "TLSv1_3",
            }
            .to_owned(),
            "envoy_key_exchange" => match tls.key_exchange {
                KeyExchange::X25519 => "X25519",
                KeyExchange::P256 => "P-256",
                KeyExchange::X25519MlKem768 => "X25519MLKEM768",
            }
            .to_owned(),
            "max_connections" => proxy.max_connections.unwrap_or(UNLIMITED).to_string(),
            "max_pending_requests" => proxy.max_pending_requests.unwrap_or(UNLIMITED).to_string(),
            _ => return None,
        })
    }

    fn nginx(&self, name: &str) -> Option<String> {
        let (proxy, tls) = (&self.settings.proxy, &self.settings.tls);
        Some(match name {
            "worker_connections" => self.worker_connections().to_string(),
            "upstream_keepalive" => {
                let load = &self.settings.load;
                let open = u64::from(load.connections.max(load.users)) * u64::from(load.streams);
                open.max(64).to_string()
            }
            // A parameter of `listen` since 1.9.5 and, though deprecated in 1.25, in every version since; the directive
            // `http2` is unknown before that.
            "nginx_http2" => when(self.settings.load.protocol == Protocol::H2, " http2"),
            "nginx_backlog" => optional(proxy.backlog, |size| format!(" backlog={size}")),
            "nginx_tls_version" => self.dotted_tls_version(),
            "openssl_key_exchange" => self.openssl_groups(),
            "nginx_resumption" => if tls.resumption {
                "ssl_session_cache shared:sweep:16m; ssl_session_tickets on;"
            } else {
                "ssl_session_cache off; ssl_session_tickets off;"
            }
            .to_owned(),
            "nginx_client_certificate" => when(
                tls.mutual,
                &format!(
                    "ssl_verify_client on; ssl_client_certificate {};",
                    tls_path("ca")
                ),
            ),
            "nginx_status" => optional(proxy.admin_port, |port| {
                format!(
                    "server {{ listen 127.0.0.1:{port}; location = /stub_status {{ stub_status; }} }}"
                )
            }),
            _ => return None,
        })
    }

    fn haproxy(&self, name: &str) -> Option<String> {
        let (proxy, tls) = (&self.settings.proxy, &self.settings.tls);
        Some(match name {
            "haproxy_tls_version" => self.dotted_tls_version(),
            "haproxy_session_cache" => when(!tls.resumption, "tune.ssl.cachesize 0"),
            "haproxy_tickets" => when(!tls.resumption, " no-tls-tickets"),
            "haproxy_client_certificate" => when(
                tls.mutual,
                &format!(" ca-file {} verify required", tls_path("ca")),
            ),
            "haproxy_backlog" => optional(proxy.backlog, |size| format!(" backlog {size}")),
            "haproxy_stats" => optional(proxy.admin_port, |port| {
                format!(
                    "frontend stats\n  bind 127.0.0.1:{port}\n  stats enable\n  stats uri /stats"
                )
            }),
            _ => return None,
        })
    }

    fn dotted_tls_version(&self) -> String {
        match self.settings.tls.version {
            TlsVersion::V1_2 => "TLSv1.2",
            TlsVersion::V1_3 => "TLSv1.3",
        }
        .to_owned()
    }

    /// Groups as OpenSSL names them. In TLS 1.2 the list is also that of curves that a certificate may have (RFC 8422, 5.1),
    /// so an ECDSA certificate needs its own in it, after the one that is meant for the key exchange.
    fn openssl_groups(&self) -> String {
        let tls = &self.settings.tls;
        let ecdsa = tls.version == TlsVersion::V1_2 && tls.certificate == CertificateKey::EcdsaP256;
        match tls.key_exchange {
            KeyExchange::X25519 if ecdsa => "X25519:P-256",
            KeyExchange::X25519 => "X25519",
            KeyExchange::P256 => "P-256",
            KeyExchange::X25519MlKem768 => "X25519MLKEM768",
        }
        .to_owned()
    }

    /// Connections of one nginx worker, clients and upstreams together. All are allocated at the start (about 400 bytes
    /// each), so it follows the load, with room for every connection on one worker and some seconds of new ones.
    fn worker_connections(&self) -> u64 {
        let load = &self.settings.load;
        let persistent = u64::from(load.connections.max(load.users)) * u64::from(load.streams);
        let passing = (load.handshake_rate.0.max(0.0) * 4.0).ceil() as u64;
        let wanted = 2 * (persistent + passing) + 512;
        wanted
            .next_power_of_two()
            .max(1024)
            .min(self.settings.proxy.nofile)
    }
}

fn when(condition: bool, text: &str) -> String {
    if condition {
        text.to_owned()
    } else {
        String::new()
    }
}

fn optional<T>(value: Option<T>, text: impl FnOnce(T) -> String) -> String {
    value.map(text).unwrap_or_default()
}
