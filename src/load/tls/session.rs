//! One TLS connection, without sockets: bytes in, bytes out. rustls' unbuffered interface, so that an idle connection
//! keeps no buffer and records are encrypted straight into the buffer that is sent.

use std::sync::Arc;

use rustls::client::UnbufferedClientConnection;
use rustls::pki_types::ServerName;
use rustls::unbuffered::{ConnectionState, EncodeError, EncryptError};
use rustls::{ClientConfig, HandshakeKind, NamedGroup, ProtocolVersion};

use super::alpn;
use crate::spec::settings::Protocol;

/// Bytes that a record adds to its plaintext, generously (header 5, nonce 8 in TLS 1.2, type 1, tag 16).
const RECORD_OVERHEAD: usize = 48;
const RECORD_PLAINTEXT: usize = 16 * 1024;

/// Why a TLS connection cannot go on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TlsError {
    /// By rustls.
    #[error("TLS: {0}")]
    Rustls(#[from] rustls::Error),
    /// No more records may be encrypted under this key.
    #[error("TLS: encrypting: {0}")]
    Encrypt(#[from] EncryptError),
    /// A handshake record could not be written.
    #[error("TLS: encoding: {0}")]
    Encode(#[from] EncodeError),
    /// The peer speaks another protocol over TLS than asked.
    #[error("TLS: ALPN chose {0:?}")]
    Alpn(Option<Vec<u8>>),
    /// Application data before the handshake is done.
    #[error("TLS: not ready for application data")]
    NotReady,
}

/// What a handshake agreed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Negotiated {
    version: Option<ProtocolVersion>,
    cipher: Option<rustls::CipherSuite>,
    group: Option<NamedGroup>,
    pub(crate) resumed: bool,
}

impl std::fmt::Display for Negotiated {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = |part: Option<&'static str>| part.unwrap_or("unknown");
        write!(
            f,
            "{} {} {} {}",
            text(self.version.as_ref().and_then(ProtocolVersion::as_str)),
            text(self.cipher.as_ref().and_then(rustls::CipherSuite::as_str)),
            text(self.group.as_ref().and_then(NamedGroup::as_str)),
            if self.resumed { "resumed" } else { "full" },
        )
    }
}

/// How far [`TlsSession::receive`] got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Received {
    /// Bytes used up; the rest is the start of an unfinished record and must come again.
    pub(crate) used: usize,
    /// The handshake finished with these bytes.
    pub(crate) finished: bool,
    /// The peer said that it sends nothing more.
    pub(crate) closed: bool,
}

/// One TLS connection.
pub(crate) struct TlsSession {
    connection: UnbufferedClientConnection,
    protocol: Protocol,
    finished: bool,
}

impl std::fmt::Debug for TlsSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TlsSession")
            .field("protocol", &self.protocol)
            .field("finished", &self.finished)
            .finish_non_exhaustive()
    }
}

impl TlsSession {
    pub(super) fn new(
        config: Arc<ClientConfig>,
        name: ServerName<'static>,
        protocol: Protocol,
    ) -> Result<Self, TlsError> {
        Ok(Self {
            connection: UnbufferedClientConnection::new(config, name)?,
            protocol,
            finished: false,
        })
    }

    /// Takes what the peer sent. Handshake answers are appended to `out`; plaintext goes to `sink`, whose error ends it.
    pub(crate) fn receive<E: From<TlsError>>(
        &mut self,
        incoming: &mut [u8],
        out: &mut Vec<u8>,
        mut sink: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<Received, E> {
        let mut received = Received {
            used: 0,
            finished: false,
            closed: false,
        };
        loop {
            let status = self
                .connection
                .process_tls_records(&mut incoming[received.used..]);
            let discard = status.discard;
            let mut more = true;
            match status.state.map_err(TlsError::from)? {
                ConnectionState::ReadTraffic(mut traffic) => {
                    while let Some(record) = traffic.next_record() {
                        sink(record.map_err(TlsError::from)?.payload)?;
                    }
                }
                ConnectionState::EncodeTlsData(mut data) => {
                    append(out, 512, |space| match data.encode(space) {
                        Ok(written) => Ok(Ok(written)),
                        Err(EncodeError::InsufficientSize(size)) => Ok(Err(size.required_size)),
                        Err(error) => Err(TlsError::from(error)),
                    })?;
                }
                // The bytes are in `out` and will be sent by the caller, in order.
                ConnectionState::TransmitTlsData(data) => data.done(),
                ConnectionState::PeerClosed => received.closed = true,
                ConnectionState::Closed => {
                    received.closed = true;
                    more = false;
                }
                ConnectionState::WriteTraffic(_) => more = false,
                _ => more = false,
            }
            received.used += discard;
            if !more {
                break;
            }
        }
        if !self.finished && !self.connection.is_handshaking() {
            self.finished = true;
            received.finished = true;
            self.check_alpn()?;
        }
        Ok(received)
    }

    /// The first flight, appended to `out`.
    pub(crate) fn start(&mut self, out: &mut Vec<u8>) -> Result<(), TlsError> {
        self.receive::<TlsError>(&mut [], out, |_| Ok(()))
            .map(|_| ())
    }

    /// Encrypts application data, appended to `out`.
    pub(crate) fn encrypt(&mut self, plaintext: &[u8], out: &mut Vec<u8>) -> Result<(), TlsError> {
        if plaintext.is_empty() {
            return Ok(());
        }
        loop {
            let status = self.connection.process_tls_records(&mut []);
            match status.state? {
                ConnectionState::WriteTraffic(mut traffic) => {
                    let records = plaintext.len() / RECORD_PLAINTEXT + 1;
                    let estimate = plaintext.len() + records * RECORD_OVERHEAD;
                    return append(out, estimate, |space| {
                        match traffic.encrypt(plaintext, space) {
                            Ok(written) => Ok(Ok(written)),
                            Err(EncryptError::InsufficientSize(size)) => {
                                Ok(Err(size.required_size))
                            }
                            Err(error) => Err(TlsError::from(error)),
                        }
                    });
                }
                ConnectionState::EncodeTlsData(mut data) => {
                    append(out, 512, |space| match data.encode(space) {
                        Ok(written) => Ok(Ok(written)),
                        Err(EncodeError::InsufficientSize(size)) => Ok(Err(size.required_size)),
                        Err(error) => Err(TlsError::from(error)),
                    })?;
                }
                ConnectionState::TransmitTlsData(data) => data.done(),
                _ => return Err(TlsError::NotReady),
            }
        }
    }

    /// What was agreed on; known once the handshake is finished.
    pub(crate) fn negotiated(&self) -> Negotiated {
        Negotiated {
            version: self.connection.protocol_version(),
            cipher: self
                .connection
                .negotiated_cipher_suite()
                .map(|suite| suite.suite()),
            group: self
                .connection
                .negotiated_key_exchange_group()
                .map(|group| group.name()),
            resumed: self.connection.handshake_kind() == Some(HandshakeKind::Resumed),
        }
    }

    /// HTTP/2 needs the peer's consent; HTTP/1.1 is also what a peer without ALPN speaks.
    fn check_alpn(&self) -> Result<(), TlsError> {
        let chosen = self.connection.alpn_protocol();
        let wanted = alpn(self.protocol);
        if chosen == Some(wanted) || (chosen.is_none() && self.protocol == Protocol::H1) {
            return Ok(());
        }
        Err(TlsError::Alpn(chosen.map(<[u8]>::to_vec)))
    }
}

/// Appends what `write` puts into spare space; it answers with the bytes written, or with the space that it needs.
fn append(
    out: &mut Vec<u8>,
    estimate: usize,
    mut write: impl FnMut(&mut [u8]) -> Result<Result<usize, usize>, TlsError>,
) -> Result<(), TlsError> {
    let start = out.len();
    out.resize(start + estimate, 0);
    let mut outcome = write(&mut out[start..]);
    if let Ok(Err(required)) = outcome {
        out.resize(start + required, 0);
        outcome = write(&mut out[start..]);
    }
    match outcome {
        Ok(Ok(written)) => {
            out.truncate(start + written);
            Ok(())
        }
        Ok(Err(_)) => {
            out.truncate(start);
            Err(TlsError::NotReady)
        }
        Err(error) => {
            out.truncate(start);
            Err(error)
        }
    }
}
