//! A session store that keeps many tickets of the proxy, newest first.
//!
//! rustls' own store keeps eight per server and gives each TLS 1.3 ticket away once (RFC 8446, appendix C.4). A stream
//! of new connections would run out of them whenever more handshakes overlap, and full and resumed handshakes would be
//! mixed. Servers send about two tickets per connection, so that a larger stock, once filled, never runs out.

use std::collections::{HashMap, VecDeque};
use std::sync::Mutex;

use rustls::NamedGroup;
use rustls::client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls::pki_types::ServerName;

/// Tickets kept by server name.
const STOCK: usize = 1024;

#[derive(Debug, Default)]
struct Entry {
    group: Option<NamedGroup>,
    tls12: Option<Tls12ClientSessionValue>,
    tls13: VecDeque<Tls13ClientSessionValue>,
}

/// Tickets by server name.
#[derive(Debug, Default)]
pub(super) struct Tickets(Mutex<HashMap<ServerName<'static>, Entry>>);

impl Tickets {
    fn with<T>(&self, name: ServerName<'static>, change: impl FnOnce(&mut Entry) -> T) -> T {
        // A thread that panicked while it held the lock left whole values: each change is one assignment.
        let mut entries = self
            .0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        change(entries.entry(name).or_default())
    }
}

impl ClientSessionStore for Tickets {
    fn set_kx_hint(&self, name: ServerName<'static>, group: NamedGroup) {
        self.with(name, |entry| entry.group = Some(group));
    }

    fn kx_hint(&self, name: &ServerName<'_>) -> Option<NamedGroup> {
        self.with(name.to_owned(), |entry| entry.group)
    }

    fn set_tls12_session(&self, name: ServerName<'static>, value: Tls12ClientSessionValue) {
        self.with(name, |entry| entry.tls12 = Some(value));
    }

    fn tls12_session(&self, name: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        self.with(name.to_owned(), |entry| entry.tls12.clone())
    }

    fn remove_tls12_session(&self, name: &ServerName<'static>) {
        self.with(name.clone(), |entry| entry.tls12 = None);
    }

    fn insert_tls13_ticket(&self, name: ServerName<'static>, value: Tls13ClientSessionValue) {
        self.with(name, |entry| {
            if entry.tls13.len() == STOCK {
                entry.tls13.pop_front();
            }
            entry.tls13.push_back(value);
        });
    }

    fn take_tls13_ticket(&self, name: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.with(name.clone(), |entry| entry.tls13.pop_back())
    }
}
