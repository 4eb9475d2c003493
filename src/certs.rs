//! The certificates of one run: a CA, the proxy's certificate for each kind of key, and the client's certificate.
//!
//! They live in memory only. The proxy gets its key as an upload readable by its user alone, the agent gets the client's
//! with its job; neither is ever written to the results.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, PKCS_ED25519,
    PKCS_RSA_SHA256, RsaKeySize,
};

use crate::agent::job::ClientIdentity;
use crate::spec::settings::CertificateKey;

/// Name that the proxy's certificate is made for: SNI and `Host` of every request.
pub const SERVER_NAME: &str = "sweep.test";

/// Further names in the proxy's certificate, so that it can also be asked by address.
const OTHER_NAMES: [&str; 2] = ["localhost", "127.0.0.1"];

/// Validity starts this long before now: the clock of an engine's virtual machine may be behind.
const BEFORE: Duration = Duration::from_secs(24 * 3600);

/// Validity ends this long after now: longer than any run, short enough to be worthless afterwards.
const AFTER: Duration = Duration::from_secs(14 * 24 * 3600);

/// A certificate could not be made.
#[derive(Debug, thiserror::Error)]
#[error("make the {what}: {source}; this is a bug in sweep or in its cryptographic library")]
pub struct CertError {
    what: &'static str,
    source: rcgen::Error,
}

/// A certificate with its private key, both PEM.
#[derive(Clone)]
pub struct ServerIdentity {
    /// Certificate, PEM. The chain is this certificate alone: the CA signs it directly.
    pub cert_pem: String,
    /// Private key, PEM (PKCS#8).
    pub key_pem: String,
}

impl std::fmt::Debug for ServerIdentity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ServerIdentity { key: not shown }")
    }
}

/// The certificates of a run.
#[derive(Clone)]
pub struct RunCertificates {
    /// The CA's certificate, PEM. Its key is dropped once everything is signed.
    pub ca_pem: String,
    /// What the client shows in mutual TLS.
    pub client: ClientIdentity,
    servers: BTreeMap<&'static str, ServerIdentity>,
}

impl std::fmt::Debug for RunCertificates {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunCertificates")
            .field("servers", &self.servers.keys())
            .finish_non_exhaustive()
    }
}

impl RunCertificates {
    /// Makes a CA (ECDSA P-256), a client certificate, and a server certificate for each of `keys`.
    ///
    /// An RSA-4096 key takes up to some seconds of CPU; ask only for what the run's cells use, before the first trial.
    ///
    /// # Errors
    /// When the cryptographic library refuses, which no input of a user can cause.
    pub fn generate(
        keys: impl IntoIterator<Item = CertificateKey>,
        now: SystemTime,
    ) -> Result<Self, CertError> {
        let ca = authority(now).map_err(|source| CertError {
            what: "run's CA",
            source,
        })?;
        let (cert_pem, key_pem) =
            leaf(&ca, now, CertificateKey::EcdsaP256, Role::Client).map_err(|source| {
                CertError {
                    what: "client's certificate",
                    source,
                }
            })?;
        let mut servers = BTreeMap::new();
        for key in keys {
            if servers.contains_key(key_name(key)) {
                continue;
            }
            let (cert_pem, key_pem) =
                leaf(&ca, now, key, Role::Server).map_err(|source| CertError {
                    what: "proxy's certificate",
                    source,
                })?;
            servers.insert(key_name(key), ServerIdentity { cert_pem, key_pem });
        }
        Ok(Self {
            ca_pem: ca.pem(),
            client: ClientIdentity { cert_pem, key_pem },
            servers,
        })
    }

    /// The proxy's certificate with a key of this kind, if [`RunCertificates::generate`] was asked for it.
    #[must_use]
    pub fn server(&self, key: CertificateKey) -> Option<&ServerIdentity> {
        self.servers.get(key_name(key))
    }
}

#[derive(Clone, Copy)]
enum Role {
    Server,
    Client,
}

fn key_name(key: CertificateKey) -> &'static str {
    match key {
        CertificateKey::EcdsaP256 => "ecdsa-p256",
        CertificateKey::Rsa2048 => "rsa-2048",
        CertificateKey::Rsa4096 => "rsa-4096",
        CertificateKey::Ed25519 => "ed25519",
    }
}

fn key_pair(key: CertificateKey) -> Result<KeyPair, rcgen::Error> {
    match key {
        CertificateKey::EcdsaP256 => KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256),
        CertificateKey::Rsa2048 => KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048),
        CertificateKey::Rsa4096 => KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_4096),
        CertificateKey::Ed25519 => KeyPair::generate_for(&PKCS_ED25519),
    }
}

fn named(common_name: &str, now: SystemTime) -> CertificateParams {
    let mut params = CertificateParams::default();
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common_name);
    params.distinguished_name = name;
    params.not_before = (now - BEFORE).into();
    params.not_after = (now + AFTER).into();
    params
}

fn authority(now: SystemTime) -> Result<CertifiedIssuer<'static, KeyPair>, rcgen::Error> {
    let mut params = named("sweep run CA", now);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    CertifiedIssuer::self_signed(params, key_pair(CertificateKey::EcdsaP256)?)
}

fn leaf(
    ca: &CertifiedIssuer<'static, KeyPair>,
    now: SystemTime,
    key: CertificateKey,
    role: Role,
) -> Result<(String, String), rcgen::Error> {
    let mut params = match role {
        Role::Server => {
            let names: Vec<String> = std::iter::once(SERVER_NAME)
                .chain(OTHER_NAMES)
                .map(String::from)
                .collect();
            let mut params = named(SERVER_NAME, now);
            params.subject_alt_names = CertificateParams::new(names)?.subject_alt_names;
            params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
            params
        }
        Role::Client => {
            let mut params = named("sweep client", now);
            params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
            params
        }
    };
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.use_authority_key_identifier_extension = true;
    let key = key_pair(key)?;
    let certificate = params.signed_by(&key, ca)?;
    Ok((certificate.pem(), private_pem(&key)))
}

/// The key as PKCS#8 version 1. For Ed25519 the library writes version 2 (RFC 5958, with the public key inside), which
/// OpenSSL 3.0, and so nginx and HAProxy on many systems, cannot read.
fn private_pem(key: &KeyPair) -> String {
    use base64::Engine as _;
    // SEQUENCE { INTEGER 1, SEQUENCE { OID 1.3.101.112 }, OCTET STRING { OCTET STRING (32 bytes) } … }: RFC 8410, 7.
    const V2: [u8; 16] = [
        0x30, 0x51, 2, 1, 1, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20,
    ];
    const SEED: usize = 32;
    let der = key.serialized_der();
    match der.strip_prefix(&V2) {
        Some(rest) if rest.len() > SEED => {
            let mut v1 = V2;
            v1[1] = (V2.len() - 2 + SEED) as u8;
            v1[4] = 0;
            let text =
                base64::engine::general_purpose::STANDARD.encode([&v1, &rest[..SEED]].concat());
            format!("-----BEGIN PRIVATE KEY-----\n{text}\n-----END PRIVATE KEY-----\n")
        }
        _ => key.serialize_pem(),
    }
}

#[cfg(test)]
mod tests;
