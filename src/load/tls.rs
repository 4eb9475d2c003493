//! The TLS client: rustls configured exactly as the job says, driven without its own buffers.

mod session;
mod tickets;
mod verify;

use std::sync::Arc;

use rustls::client::Resumption;
use rustls::crypto::aws_lc_rs::{self, kx_group};
use rustls::crypto::{CryptoProvider, SupportedKxGroup};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{CipherSuite, ClientConfig, SupportedCipherSuite, SupportedProtocolVersion};

use super::LoadError;
use crate::agent::job::TlsMaterial;
use crate::spec::settings::{CertificateKey, KeyExchange, Protocol, Tls, TlsVersion, Verify};

pub(crate) use session::{Negotiated, TlsError, TlsSession};

/// What new TLS connections of a job have in common.
#[derive(Debug, Clone)]
pub(crate) struct TlsClient {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
    /// Protocol that ALPN must end in.
    protocol: Protocol,
}

impl TlsClient {
    /// Builds the configuration of a job.
    pub(crate) fn new(
        material: &TlsMaterial,
        server_name: &str,
        protocol: Protocol,
    ) -> Result<Self, LoadError> {
        let settings = &material.settings;
        let name =
            ServerName::try_from(server_name.to_owned()).map_err(|_| LoadError::ServerName {
                name: server_name.to_owned(),
            })?;
        let version: &'static SupportedProtocolVersion = match settings.version {
            TlsVersion::V1_2 => &rustls::version::TLS12,
            TlsVersion::V1_3 => &rustls::version::TLS13,
        };
        if settings.version == TlsVersion::V1_2
            && settings.key_exchange == KeyExchange::X25519MlKem768
        {
            return Err(LoadError::HybridNeedsTls13);
        }
        let default = aws_lc_rs::default_provider();
        let provider = Arc::new(CryptoProvider {
            kx_groups: groups(settings),
            cipher_suites: aes128_first(default.cipher_suites),
            ..default
        });
        let verifier = match settings.verify {
            Verify::Ca => verify::chain(certificates(&material.ca_pem, "CA")?, &provider)?,
            Verify::Pin => verify::pinned(
                certificates(&material.server_cert_pem, "server")?,
                &provider,
            )?,
        };
        let builder = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[version])
            .map_err(LoadError::tls("choose the TLS version"))?
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let mut config = match (&material.client, settings.mutual) {
            (Some(identity), true) => builder
                .with_client_auth_cert(
                    certificates(&identity.cert_pem, "client")?,
                    private_key(&identity.key_pem)?,
                )
                .map_err(LoadError::tls("load the client certificate"))?,
            (None, true) => return Err(LoadError::NoClientIdentity),
            (_, false) => builder.with_no_client_auth(),
        };
        config.resumption = if settings.resumption {
            Resumption::store(Arc::new(tickets::Tickets::default()))
        } else {
            Resumption::disabled()
        };
        config.alpn_protocols = vec![alpn(protocol).to_vec()];
        Ok(Self {
            config: Arc::new(config),
            name,
            protocol,
        })
    }

    /// A new connection, with its ClientHello ready.
    pub(crate) fn connect(&self) -> Result<TlsSession, TlsError> {
        TlsSession::new(self.config.clone(), self.name.clone(), self.protocol)
    }
}

/// Name of an HTTP version in ALPN.
pub(crate) fn alpn(protocol: Protocol) -> &'static [u8] {
    match protocol {
        Protocol::H1 => b"http/1.1",
        Protocol::H2 => b"h2",
    }
}

/// The one group of the key exchange. Before TLS 1.3 the same list also names the curves that the server's certificate
/// may have, and OpenSSL keeps to that: its P-256 comes second there, and the agreed group is in the record.
fn groups(settings: &Tls) -> Vec<&'static dyn SupportedKxGroup> {
    let mut groups = vec![group(settings.key_exchange)];
    if settings.version == TlsVersion::V1_2
        && settings.certificate == CertificateKey::EcdsaP256
        && settings.key_exchange != KeyExchange::P256
    {
        groups.push(kx_group::SECP256R1);
    }
    groups
}

fn group(key_exchange: KeyExchange) -> &'static dyn SupportedKxGroup {
    match key_exchange {
        KeyExchange::X25519 => kx_group::X25519,
        KeyExchange::P256 => kx_group::SECP256R1,
        KeyExchange::X25519MlKem768 => kx_group::X25519MLKEM768,
    }
}

/// AES-128-GCM first, as browsers and BoringSSL with AES instructions have it; rustls itself prefers AES-256. Its
/// SHA-256 also costs the client less than SHA-384.
fn aes128_first(mut suites: Vec<SupportedCipherSuite>) -> Vec<SupportedCipherSuite> {
    suites.sort_by_key(|suite| {
        !matches!(
            suite.suite(),
            CipherSuite::TLS13_AES_128_GCM_SHA256
                | CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256
                | CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256
        )
    });
    suites
}

fn certificates(pem: &str, whose: &'static str) -> Result<Vec<CertificateDer<'static>>, LoadError> {
    let parsed: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    match parsed {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        Ok(_) => Err(LoadError::Pem {
            whose,
            cause: "no certificate in it".to_owned(),
        }),
        Err(error) => Err(LoadError::Pem {
            whose,
            cause: error.to_string(),
        }),
    }
}

fn private_key(pem: &str) -> Result<PrivateKeyDer<'static>, LoadError> {
    PrivateKeyDer::from_pem_slice(pem.as_bytes()).map_err(|error| LoadError::Pem {
        whose: "client key",
        cause: error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use rustls::NamedGroup::{X25519, X25519MLKEM768, secp256r1};

    use super::*;

    #[test]
    fn one_group_is_offered_but_where_the_list_also_names_the_curve_of_the_certificate() {
        let offered = |version, certificate, key_exchange| {
            let settings = Tls {
                version,
                certificate,
                key_exchange,
                resumption: false,
                mutual: false,
                verify: Verify::Ca,
            };
            let groups = groups(&settings);
            groups.iter().map(|group| group.name()).collect::<Vec<_>>()
        };
        use {CertificateKey as C, KeyExchange as K, TlsVersion as V};
        assert_eq!(offered(V::V1_3, C::EcdsaP256, K::X25519), [X25519]);
        assert_eq!(
            offered(V::V1_3, C::EcdsaP256, K::X25519MlKem768),
            [X25519MLKEM768]
        );
        assert_eq!(offered(V::V1_2, C::Rsa2048, K::X25519), [X25519]);
        assert_eq!(offered(V::V1_2, C::EcdsaP256, K::P256), [secp256r1]);
        assert_eq!(
            offered(V::V1_2, C::EcdsaP256, K::X25519),
            [X25519, secp256r1]
        );
    }
}
