//! Checking the proxy's certificate.
//!
//! - `ca`: chain to the run's CA, validity and name, by webpki; and in every handshake the server's signature, which
//!   proves that it holds the key. A chain whose bytes were found good is not checked again for [`REMEMBER`], since the
//!   answer depends on nothing else but the time.
//! - `pin`: the certificate's bytes equal those that the run made, and no signature is computed. That the server holds
//!   the key is not proved; in a pod without a network nobody else answers. It spares the client a quarter of the
//!   handshake, so that one client CPU can load more of a proxy's.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use crate::load::LoadError;

/// How long a chain that was found good is not checked again.
const REMEMBER: Duration = Duration::from_secs(60);

/// Trust by chain.
pub(super) fn chain(
    cas: Vec<CertificateDer<'static>>,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, LoadError> {
    let mut roots = RootCertStore::empty();
    for ca in cas {
        roots
            .add(ca)
            .map_err(LoadError::tls("trust the run's CA"))?;
    }
    let webpki = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone())
        .build()
        .map_err(|error| LoadError::Pem {
            whose: "CA",
            cause: error.to_string(),
        })?;
    Ok(Arc::new(Verifier {
        trust: Trust::Chain {
            webpki,
            good: Mutex::new(None),
        },
        algorithms: provider.signature_verification_algorithms,
    }))
}

/// Trust by equality with the first certificate of a chain.
pub(super) fn pinned(
    chain: Vec<CertificateDer<'static>>,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, LoadError> {
    let leaf = chain.into_iter().next().ok_or(LoadError::Pem {
        whose: "server",
        cause: "no certificate in it".to_owned(),
    })?;
    Ok(Arc::new(Verifier {
        trust: Trust::Pinned(leaf),
        algorithms: provider.signature_verification_algorithms,
    }))
}

#[derive(Debug)]
struct Verifier {
    trust: Trust,
    algorithms: WebPkiSupportedAlgorithms,
}

#[derive(Debug)]
enum Trust {
    Chain {
        webpki: Arc<WebPkiServerVerifier>,
        good: Mutex<Option<KnownGood>>,
    },
    Pinned(CertificateDer<'static>),
}

/// A chain that was checked, for whom, and when.
#[derive(Debug)]
struct KnownGood {
    leaf: CertificateDer<'static>,
    intermediates: Vec<CertificateDer<'static>>,
    name: ServerName<'static>,
    checked: UnixTime,
}

impl KnownGood {
    fn covers(
        &self,
        leaf: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        now: UnixTime,
    ) -> bool {
        let age = now.as_secs().checked_sub(self.checked.as_secs());
        age.is_some_and(|age| age <= REMEMBER.as_secs())
            && self.leaf == *leaf
            && self.intermediates == intermediates
            && self.name == *name
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match &self.trust {
            Trust::Pinned(pin) if pin == leaf => Ok(ServerCertVerified::assertion()),
            Trust::Pinned(_) => Err(Error::InvalidCertificate(
                CertificateError::ApplicationVerificationFailure,
            )),
            Trust::Chain { webpki, good } => {
                let mut good = good
                    .lock()
                    .unwrap_or_else(std::sync::PoisonError::into_inner);
                if good
                    .as_ref()
                    .is_some_and(|known| known.covers(leaf, intermediates, name, now))
                {
                    return Ok(ServerCertVerified::assertion());
                }
                let verified = webpki.verify_server_cert(leaf, intermediates, name, ocsp, now)?;
                *good = Some(KnownGood {
                    leaf: leaf.clone().into_owned(),
                    intermediates: intermediates
                        .iter()
                        .map(|certificate| certificate.clone().into_owned())
                        .collect(),
                    name: name.to_owned(),
                    checked: now,
                });
                Ok(verified)
            }
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        if let Trust::Pinned(_) = self.trust {
            return Ok(HandshakeSignatureValid::assertion());
        }
        verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        if let Trust::Pinned(_) = self.trust {
            return Ok(HandshakeSignatureValid::assertion());
        }
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
