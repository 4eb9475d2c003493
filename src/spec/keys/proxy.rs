//! Keys of `[proxy]`.

use std::sync::Arc;

use super::{Key, Patch, Reading, put};
use crate::spec::raw::Scalar;
use crate::spec::read::{self, Choice, Wrong};
use crate::spec::settings::{PageCache, ProxyKind};
use crate::spec::syntax;

const UNLIMITED: &[&str] = &["unlimited", "max"];

pub(super) const KEYS: &[Key] = &[
    Key {
        path: "proxy.kind",
        meaning: "Which proxy, and so which configuration template and statistics; `custom` is anything else",
        takes: "\"envoy\", \"nginx\", \"haproxy\" or \"custom\"",
        parse: |raw, _| put(read::choice::<ProxyKind>(raw), |s, v| s.proxy.kind = v),
        show: |s| s.proxy.kind.word().to_owned(),
    },
    Key {
        path: "proxy.image",
        meaning: "Image of the proxy; by default that of its kind (`nginx:1.28`, `haproxy:3.2`), and needed for `custom`",
        takes: "an image reference of letters, digits and \"._/:@-\", at most 512",
        parse: |raw, _| {
            put(read::text(raw).and_then(syntax::image), |s, v| {
                s.proxy.image = v
            })
        },
        show: |s| s.proxy.image.clone(),
    },
    Key {
        path: "proxy.workers",
        meaning: "Worker threads (or processes) of the proxy; always passed, since proxies' own defaults change with the CPU limit",
        takes: "a whole number, 1 to 1024",
        parse: |raw, _| put(read::count32(raw, 1, 1024), |s, v| s.proxy.workers = v),
        show: |s| s.proxy.workers.to_string(),
    },
    Key {
        path: "proxy.nofile",
        meaning: "Limit of open file descriptors of the proxy, soft and hard",
        takes: "a whole number, 16 to 1073741816",
        parse: |raw, _| {
            put(read::count(raw, 16, 1_073_741_816), |s, v| {
                s.proxy.nofile = v
            })
        },
        show: |s| s.proxy.nofile.to_string(),
    },
    Key {
        path: "proxy.page_cache",
        meaning: "State of the page cache for the proxy's files before each trial: read by somebody else before (`warm`), or not in memory (`cold`), so that the proxy pays for every page",
        takes: "\"warm\" or \"cold\"",
        parse: |raw, _| {
            put(read::choice::<PageCache>(raw), |s, v| {
                s.proxy.page_cache = v
            })
        },
        show: |s| s.proxy.page_cache.word().to_owned(),
    },
    Key {
        path: "proxy.backlog",
        meaning: "Accept backlog: `net.core.somaxconn` of the network namespace and the listener's own",
        takes: "a whole number, 1 to 65535, or \"default\" for the kernel's",
        parse: |raw, _| {
            put(
                read::or_word(raw, &["default"], |raw| read::count32(raw, 1, 65_535)),
                |s, v| s.proxy.backlog = v,
            )
        },
        show: |s| super::or("default", s.proxy.backlog),
    },
    Key {
        path: "proxy.config",
        meaning: "Your own configuration in place of the built-in one",
        takes: "the path of a text file (relative to the matrix), or \"built-in\"",
        parse: config,
        show: |s| match &s.proxy.config {
            None => BUILT_IN.to_owned(),
            Some(text) => text.clone(),
        },
    },
    Key {
        path: "proxy.port",
        meaning: "Port on which the proxy serves TLS, on 127.0.0.1",
        takes: "a port, 1 to 65535, but not 8080 or 8081, which are the upstream's",
        parse: |raw, _| put(read::port(raw), |s, v| s.proxy.port = v),
        show: |s| s.proxy.port.to_string(),
    },
    Key {
        path: "proxy.admin_port",
        meaning: "Port of the proxy's own statistics, on 127.0.0.1; a `custom` proxy has none by default",
        takes: "a port, 1 to 65535, but not 8080 or 8081, or \"none\"",
        parse: |raw, _| {
            put(read::or_word(raw, &["none"], read::port), |s, v| {
                s.proxy.admin_port = v;
            })
        },
        show: |s| super::or("none", s.proxy.admin_port),
    },
    Key {
        path: "proxy.ready_path",
        meaning: "Path that answers 200 through the proxy once it is ready",
        takes: "a path that begins with \"/\", of visible ASCII without \"#\", at most 8192 bytes",
        parse: |raw, _| {
            put(read::text(raw).and_then(syntax::path), |s, v| {
                s.proxy.ready_path = v;
            })
        },
        show: |s| s.proxy.ready_path.clone(),
    },
    Key {
        path: "proxy.max_pending_requests",
        meaning: "Circuit breaker of the built-in Envoy configuration: requests that may wait for an upstream connection",
        takes: "a whole number, 1 to 4294967295, or \"unlimited\"",
        parse: |raw, _| {
            put(
                read::or_word(raw, UNLIMITED, |raw| read::count32(raw, 1, u32::MAX)),
                |s, v| s.proxy.max_pending_requests = v,
            )
        },
        show: |s| super::or("unlimited", s.proxy.max_pending_requests),
    },
    Key {
        path: "proxy.max_connections",
        meaning: "Circuit breaker of the built-in Envoy configuration: connections to the upstream",
        takes: "a whole number, 1 to 4294967295, or \"unlimited\"",
        parse: |raw, _| {
            put(
                read::or_word(raw, UNLIMITED, |raw| read::count32(raw, 1, u32::MAX)),
                |s, v| s.proxy.max_connections = v,
            )
        },
        show: |s| super::or("unlimited", s.proxy.max_connections),
    },
];

const BUILT_IN: &str = "built-in";

/// The level of a configuration is its path: its text would not do as the name of a cell.
fn config(raw: &Scalar, files: super::ReadFile<'_>) -> Result<Reading, Wrong> {
    let path = read::text(raw)?;
    let content = if path == BUILT_IN {
        None
    } else {
        syntax::file_path(path)?;
        Some(files(path).map_err(|cause| format!("cannot be read: {cause}"))?)
    };
    Ok(Reading {
        patch: Patch(Arc::new(move |s| s.proxy.config.clone_from(&content))),
        text: Some(path.to_owned()),
    })
}
