//! From the settings of a trial to a proxy that can be started: configuration files, command line, user, sysctls.
//!
//! Pure: templates and values in, bytes out. The templates lie in `envoy/`; a user's own configuration takes the same
//! placeholders.
//!
//! Every proxy runs as the user [`PROXY_UID`], which no image knows, with all capabilities dropped: what is uploaded is
//! readable by that user, and keys by that user alone. The entrypoint script of Envoy's official image would change user
//! itself (`su-exec`) if it were started as root, which needs capabilities; started as another user it just executes what it
//! is given, and puts `envoy` before arguments that begin with `-`. An image made by [`crate::image`] has the executable
//! itself as its entrypoint. Arguments alone, and no entrypoint of our own, so start either. The official images of nginx
//! and HAProxy have scripts that do more (rewriting configuration, a master process), so for these the entrypoint is the
//! program, found on the image's `PATH`.

mod template;
mod upload;
mod values;

use std::collections::BTreeMap;
use std::net::SocketAddr;

use crate::certs::ServerIdentity;
use crate::spec::settings::{Proxy, ProxyKind, Settings};
pub use template::fill;
pub use upload::UploadFile;
use values::Values;

/// User and group of every proxy. The number of `nonroot` in distroless images, and outside of what images assign.
pub const PROXY_UID: u64 = 65532;

/// The same as the engine takes it, `uid:gid`.
#[must_use]
pub fn proxy_user() -> String {
    format!("{PROXY_UID}:{PROXY_UID}")
}

/// Folder of the uploaded configuration.
pub const CONFIG_DIR: &str = "/etc/sweep";

/// Folder that the proxy may write to.
pub const STATE_DIR: &str = "/var/lib/sweep";

/// `somaxconn` of a current kernel, which [`Settings`]' backlog raises but never lowers for other listeners of the pod.
const KERNEL_SOMAXCONN: u32 = 4096;

const ENVOY: &str = include_str!("../envoy/bootstrap.yaml");
const NGINX: &str = include_str!("../envoy/nginx.conf");
const HAPROXY: &str = include_str!("../envoy/haproxy.cfg");

/// PEM texts for the proxy.
#[derive(Debug, Clone, Copy)]
pub struct TlsFiles<'a> {
    /// The proxy's certificate and key.
    pub server: &'a ServerIdentity,
    /// The CA that client certificates are checked against.
    pub ca_pem: &'a str,
}

/// How to start a proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxyLaunch {
    /// Files to upload before the start, by absolute path; see [`ProxyLaunch::archive`].
    pub files: BTreeMap<String, UploadFile>,
    /// Folders that the proxy may write to, made by the upload.
    pub folders: Vec<String>,
    /// Replaces the image's entrypoint; `None` keeps it.
    pub entrypoint: Option<Vec<String>>,
    /// Arguments; empty keeps the image's own.
    pub cmd: Vec<String>,
    /// `uid:gid`.
    pub user: Option<String>,
    /// Environment, `NAME=value`.
    pub env: Vec<String>,
    /// Sysctls of the pod's network namespace, and so of the container that owns it.
    pub sysctls: BTreeMap<String, String>,
}

/// Makes the launch of the proxy that `settings` describe, in front of `upstream`.
#[must_use]
pub fn launch(settings: &Settings, tls: TlsFiles<'_>, upstream: SocketAddr) -> ProxyLaunch {
    let values = Values::new(settings, upstream);
    let proxy = &settings.proxy;
    let mut files = upload::tls_files(tls);
    let mut folders = Vec::new();
    let config = |built_in: &str| {
        let text = proxy.config.as_deref().unwrap_or(built_in);
        UploadFile::text(fill(text, |name| values.get(name)))
    };
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let workers = proxy.workers.to_string();
    let (entrypoint, cmd): (Option<Vec<String>>, Vec<String>) = match proxy.kind {
        ProxyKind::Envoy => {
            let path = format!("{CONFIG_DIR}/envoy.yaml");
            files.insert(path.clone(), config(ENVOY));
            // A second Envoy in the pod's namespaces would fail over the hot restart socket.
            let cmd = words(&[
                "-c",
                &path,
                "--concurrency",
                &workers,
                "--disable-hot-restart",
                "-l",
                "warning",
            ]);
            (None, cmd)
        }
        ProxyKind::Nginx => {
            let path = format!("{CONFIG_DIR}/nginx.conf");
            files.insert(path.clone(), config(NGINX));
            folders.push(STATE_DIR.to_owned());
            let cmd = words(&["-p", STATE_DIR, "-e", "stderr", "-c", &path]);
            (Some(words(&["nginx"])), cmd)
        }
        ProxyKind::Haproxy => {
            let path = format!("{CONFIG_DIR}/haproxy.cfg");
            files.insert(path.clone(), config(HAPROXY));
            (Some(words(&["haproxy"])), words(&["-db", "-f", &path]))
        }
        ProxyKind::Custom => {
            if let Some(text) = &proxy.config {
                let filled = UploadFile::text(fill(text, |name| values.get(name)));
                files.insert(values::CUSTOM_CONFIG.to_owned(), filled);
            }
            folders.push(STATE_DIR.to_owned());
            let cmd = proxy
                .command
                .iter()
                .map(|word| fill(word, |name| values.get(name)))
                .collect();
            (None, cmd)
        }
    };
    for (path, text) in &proxy.files {
        let filled = UploadFile::text(fill(text, |name| values.get(name)));
        files.insert(path.clone(), filled);
    }
    ProxyLaunch {
        files,
        folders,
        entrypoint,
        cmd,
        user: Some(proxy_user()),
        // Entrypoint scripts of older official Envoy images ask this before they look at who they are.
        env: match proxy.kind {
            ProxyKind::Envoy => vec!["ENVOY_UID=0".to_owned()],
            _ => Vec::new(),
        },
        sysctls: sysctls(proxy),
    }
}

/// A backlog that the configuration sets on the listener needs a `somaxconn` that allows it, and the upstream in the same
/// namespace must keep its own. A configuration that is not ours sets no backlog, so that `somaxconn` alone has to.
fn sysctls(proxy: &Proxy) -> BTreeMap<String, String> {
    let mut sysctls = BTreeMap::new();
    let ours = proxy.config.is_none() && proxy.kind != ProxyKind::Custom;
    if let Some(backlog) = proxy.backlog {
        let value = if ours {
            backlog.max(KERNEL_SOMAXCONN)
        } else {
            backlog
        };
        sysctls.insert("net.core.somaxconn".to_owned(), value.to_string());
    }
    if proxy.port < 1024 {
        sysctls.insert(
            "net.ipv4.ip_unprivileged_port_start".to_owned(),
            "0".to_owned(),
        );
    }
    sysctls
}

#[cfg(test)]
mod tests;
