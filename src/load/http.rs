//! The HTTP side of a connection, in either version.

use super::h2;
use super::http1::{RequestTemplate, ResponseReader};
use super::phases::Timeline;
use super::report::ErrorClass;
use super::signal::{InFlight, Signal};
use super::tls::TlsClient;
use crate::spec::settings::{Load, Protocol};

/// What connections of one job have in common.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) tls: Option<TlsClient>,
    pub(crate) protocol: Protocol,
    /// Most streams at once on one HTTP/2 connection.
    pub(crate) streams: u32,
    /// The request as HTTP/1.1.
    pub(crate) http1: Vec<u8>,
    /// The request as HTTP/2.
    pub(crate) http2: h2::Request,
    /// Whether the method is `HEAD`, whose responses have no body.
    pub(crate) head: bool,
}

impl Target {
    pub(crate) fn new(tls: Option<TlsClient>, load: &Load, template: &RequestTemplate) -> Self {
        Self {
            protocol: load.protocol,
            streams: load.streams.max(1),
            http1: template.http1(),
            http2: h2::Request::new(template, tls.is_some()),
            head: template.method == "HEAD",
            tls,
        }
    }

    /// Requests that one connection may carry at once, as far as this side is concerned.
    pub(crate) fn places(&self) -> u32 {
        match self.protocol {
            Protocol::H1 => 1,
            Protocol::H2 => self.streams,
        }
    }
}

/// State of one connection.
#[derive(Debug)]
pub(crate) enum Http {
    H1 {
        reader: ResponseReader,
        current: Option<InFlight>,
    },
    H2(Box<h2::Connection>),
}

impl Http {
    pub(crate) fn new(target: &Target) -> Self {
        match target.protocol {
            Protocol::H1 => Self::H1 {
                reader: ResponseReader::new(target.head),
                current: None,
            },
            Protocol::H2 => Self::H2(Box::new(h2::Connection::new(target.streams))),
        }
    }

    /// Back to the state of a new connection.
    pub(crate) fn reset(&mut self, target: &Target) {
        match self {
            Self::H1 { reader, current } => {
                reader.reset();
                *current = None;
            }
            Self::H2(connection) => **connection = h2::Connection::new(target.streams),
        }
    }

    /// Whether the peer's part of the preface is here.
    pub(crate) fn is_ready(&self) -> bool {
        match self {
            Self::H1 { .. } => true,
            Self::H2(connection) => connection.has_settings(),
        }
    }

    pub(crate) fn capacity(&self) -> u32 {
        match self {
            Self::H1 { .. } => 1,
            Self::H2(connection) => connection.capacity(),
        }
    }

    pub(crate) fn has_room(&self) -> bool {
        match self {
            Self::H1 { current, .. } => current.is_none(),
            Self::H2(connection) => connection.has_room(),
        }
    }

    pub(crate) fn is_leaving(&self) -> bool {
        match self {
            Self::H1 { reader, .. } => !reader.keeps_alive(),
            Self::H2(connection) => connection.is_leaving(),
        }
    }

    pub(crate) fn open(&self) -> usize {
        match self {
            Self::H1 { current, .. } => usize::from(current.is_some()),
            Self::H2(connection) => connection.open(),
        }
    }

    pub(crate) fn take_requests(&mut self, into: &mut Vec<InFlight>) {
        match self {
            Self::H1 { current, .. } => into.extend(current.take()),
            Self::H2(connection) => into.extend(connection.take_requests()),
        }
    }

    pub(crate) fn oldest_sent(&self) -> Option<u64> {
        match self {
            Self::H1 { current, .. } => current.map(|request| request.sent),
            Self::H2(connection) => connection.oldest_sent(),
        }
    }

    /// Takes plaintext.
    pub(crate) fn feed(
        &mut self,
        plain: &[u8],
        target: &Target,
        timeline: &mut Timeline,
        now: u64,
        signals: &mut Vec<Signal>,
    ) -> Result<(), ErrorClass> {
        match self {
            Self::H1 { reader, current } => {
                if timeline.first_byte.is_none() {
                    timeline.first_byte = Some(now);
                    signals.push(Signal::FirstByte);
                }
                feed_h1(reader, current, plain, now, signals)
            }
            Self::H2(connection) => {
                let result = connection.feed(plain, &target.http2, now, signals);
                if connection.has_settings() {
                    timeline.settings.get_or_insert(now);
                }
                if connection.has_first_byte() {
                    timeline.first_byte.get_or_insert(now);
                }
                result.map_err(|_| ErrorClass::Protocol)
            }
        }
    }

    /// The peer closed: an answer that ends with the connection, if there is one.
    pub(crate) fn close(&mut self, now: u64) -> Option<Signal> {
        let Self::H1 { reader, current } = self else {
            return None;
        };
        let response = reader.close()?;
        Some(Signal::Answered {
            request: current.take()?,
            status: response.status,
            now,
        })
    }
}

fn feed_h1(
    reader: &mut ResponseReader,
    current: &mut Option<InFlight>,
    plain: &[u8],
    now: u64,
    signals: &mut Vec<Signal>,
) -> Result<(), ErrorClass> {
    if current.is_none() {
        // Nothing was asked: a farewell such as 408 before the peer closes an idle connection.
        return Err(ErrorClass::Protocol);
    }
    match reader.feed(plain) {
        Ok(None) => Ok(()),
        Ok(Some(response)) => {
            if let Some(request) = current.take() {
                signals.push(Signal::Answered {
                    request,
                    status: response.status,
                    now,
                });
            }
            Ok(())
        }
        Err(_) => Err(ErrorClass::Protocol),
    }
}
