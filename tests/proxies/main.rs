//! Real proxies, started in containers from what `proxy::launch` makes, and asked over TLS from within their network
//! namespace: images, uploads, users, capabilities and every handshake setting at once.

#[path = "../support/docker.rs"]
mod docker;

mod curl;
mod handshakes;
mod images;
mod launch;
mod sessions;
