//! The connection, with a deadline on every call.

use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bollard::Docker;
use tokio::sync::RwLock;

use super::connect::EngineAddress;
use super::error::{EngineError, with_sources};

/// bollard's own timeout; longer than every deadline here, since a request that it gives up may still be executed.
pub(super) const CLIENT_TIMEOUT: Duration = Duration::from_secs(300);
/// Deadline of calls that only ask or change the engine's books.
pub(super) const SHORT: Duration = Duration::from_secs(30);
/// Deadline of calls that run a process or move data: a start at 0.01 CPU takes seconds by itself.
pub(super) const LONG: Duration = Duration::from_secs(120);

/// A connection to one engine. Cheap to clone.
#[derive(Clone)]
pub struct Engine {
    pub(super) docker: Docker,
    /// Held for reading by every create in flight, so that a removal can wait until it would see what they made.
    pub(super) creating: Arc<RwLock<()>>,
    address: EngineAddress,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

impl Engine {
    /// Connects to the engine of the environment and asks whether it is there.
    ///
    /// # Errors
    /// [`EngineError::Unreachable`] with the remedy.
    pub async fn connect() -> Result<Self, EngineError> {
        let home = std::env::home_dir();
        let address =
            super::connect::resolve_address(&|key| std::env::var(key).ok(), home.as_deref())
                .map_err(|cause| EngineError::Unreachable {
                    address: "the selected docker context".to_owned(),
                    cause,
                    remedy: "see `docker context ls`".to_owned(),
                })?;
        Self::connect_to(address).await
    }

    /// Connects to one address.
    ///
    /// # Errors
    /// [`EngineError::Unreachable`] with the remedy.
    pub async fn connect_to(address: EngineAddress) -> Result<Self, EngineError> {
        let unreachable = |cause: String| EngineError::Unreachable {
            remedy: remedy_for(&address.url, &cause),
            address: format!("{} ({})", address.url, address.source),
            cause,
        };
        if let Some(scheme) = unsupported_scheme(&address.url) {
            return Err(unreachable(format!("{scheme} is not supported")));
        }
        let timeout = CLIENT_TIMEOUT.as_secs();
        let docker = match address.url.strip_prefix("unix://") {
            Some(path) => Docker::connect_with_unix(path, timeout, bollard::API_DEFAULT_VERSION),
            None => Docker::connect_with_http(&address.url, timeout, bollard::API_DEFAULT_VERSION),
        }
        .map_err(|e| unreachable(with_sources(&e)))?;
        let version = match tokio::time::timeout(SHORT, docker.version()).await {
            Err(_) => {
                return Err(unreachable(format!(
                    "no answer within {} s",
                    SHORT.as_secs()
                )));
            }
            Ok(Err(e)) => return Err(unreachable(with_sources(&e))),
            Ok(Ok(version)) => version,
        };
        let Some(api) = version.api_version else {
            return Err(unreachable(
                "the answer to /version has no ApiVersion: this is not a Docker engine".to_owned(),
            ));
        };
        if older_than(&api, (1, 40)) {
            return Err(unreachable(format!(
                "its API {api} is older than 1.40 (Docker 19.03)"
            )));
        }
        Ok(Self {
            docker,
            creating: Arc::default(),
            address,
        })
    }

    /// Address and how it was found.
    #[must_use]
    pub fn address(&self) -> &EngineAddress {
        &self.address
    }

    /// Whether the engine takes new connections. One that is stopping answers on old ones for a while, and what it is
    /// asked for then is lost.
    ///
    /// # Errors
    /// [`EngineError::Unreachable`] with the remedy.
    pub async fn reachable(&self) -> Result<(), EngineError> {
        Self::connect_to(self.address.clone()).await.map(drop)
    }

    /// One call with a deadline, its error naming the operation and the subject.
    pub(super) async fn call<T>(
        &self,
        operation: &'static str,
        subject: &str,
        deadline: Duration,
        future: impl Future<Output = Result<T, bollard::errors::Error>>,
    ) -> Result<T, EngineError> {
        match tokio::time::timeout(deadline, future).await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(e)) => Err(EngineError::from_bollard(operation, subject, e)),
            Err(_) => Err(EngineError::TimedOut {
                operation,
                subject: subject.to_owned(),
                after: deadline,
            }),
        }
    }
}

fn older_than(api: &str, (major, minor): (u32, u32)) -> bool {
    let mut parts = api.split('.').map(|p| p.parse::<u32>().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) < (major, minor)
}

/// What an address begins with, where that is no way to an engine. A plain `HOST:PORT` is one.
fn unsupported_scheme(url: &str) -> Option<String> {
    match url.split_once("://") {
        Some(("unix" | "tcp" | "http", _)) => None,
        Some((scheme, _)) => Some(format!("{scheme}://")),
        None => url
            .starts_with('/')
            .then(|| "a path without unix://".to_owned()),
    }
}

fn remedy_for(url: &str, cause: &str) -> String {
    let lower = cause.to_lowercase();
    if lower.contains("permission denied") {
        return "add this user to the `docker` group (`sudo usermod -aG docker $USER`, then log in again), \
                or use a rootless engine and set DOCKER_HOST"
            .to_owned();
    }
    if url.starts_with("ssh://") {
        return "forward its socket instead: `ssh -nNT -L /tmp/docker.sock:/var/run/docker.sock HOST`, then \
                DOCKER_HOST=unix:///tmp/docker.sock"
            .to_owned();
    }
    if unsupported_scheme(url).is_some() {
        return "set DOCKER_HOST to unix:///PATH/OF/SOCKET, tcp://HOST:PORT or http://HOST:PORT"
            .to_owned();
    }
    if lower.contains("older than") {
        return "update the engine".to_owned();
    }
    if lower.contains("dns error") {
        return "correct the name of the engine's host, or make it known here; DOCKER_HOST selects another engine"
            .to_owned();
    }
    if let Some(path) = url.strip_prefix("unix://")
        && !Path::new(path).exists()
    {
        return "install Docker Engine and start it (`systemctl start docker`, or `scripts/setup-engine` on Debian and Ubuntu), \
                or set DOCKER_HOST to the socket of yours"
            .to_owned();
    }
    "is the engine running (`systemctl status docker`)? DOCKER_HOST selects another one".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn api_versions_compare_by_number() {
        assert!(older_than("1.9", (1, 40)));
        assert!(!older_than("1.41", (1, 40)));
        assert!(!older_than("2.0", (1, 40)));
    }

    #[test]
    fn a_socket_that_may_not_be_used_names_the_group() {
        let remedy = remedy_for(
            "unix:///var/run/docker.sock",
            "error trying to connect: Permission denied (os error 13)",
        );
        assert!(remedy.contains("usermod -aG docker"), "{remedy}");
    }

    async fn refusal(url: &str) -> String {
        let address = EngineAddress {
            url: url.to_owned(),
            source: "DOCKER_HOST".to_owned(),
        };
        let error = Engine::connect_to(address).await;
        error.expect_err("nothing there").to_string()
    }

    #[tokio::test]
    async fn an_address_that_is_none_names_those_that_are() {
        insta::assert_snapshot!(refusal("bogus://x").await, @"cannot reach the container engine at bogus://x (DOCKER_HOST): bogus:// is not supported; set DOCKER_HOST to unix:///PATH/OF/SOCKET, tcp://HOST:PORT or http://HOST:PORT");
        insta::assert_snapshot!(refusal("/var/run/docker.sock").await, @"cannot reach the container engine at /var/run/docker.sock (DOCKER_HOST): a path without unix:// is not supported; set DOCKER_HOST to unix:///PATH/OF/SOCKET, tcp://HOST:PORT or http://HOST:PORT");
        insta::assert_snapshot!(refusal("ssh://host").await, @"cannot reach the container engine at ssh://host (DOCKER_HOST): ssh:// is not supported; forward its socket instead: `ssh -nNT -L /tmp/docker.sock:/var/run/docker.sock HOST`, then DOCKER_HOST=unix:///tmp/docker.sock");
    }

    #[tokio::test]
    async fn a_refused_connection_is_told_in_the_words_of_the_system() {
        // Nobody listens on a port that was free a moment ago.
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("bind");
        let port = listener.local_addr().expect("address").port();
        drop(listener);
        let text = refusal(&format!("tcp://127.0.0.1:{port}")).await;
        insta::assert_snapshot!(text.replace(&port.to_string(), "PORT"), @"cannot reach the container engine at tcp://127.0.0.1:PORT (DOCKER_HOST): tcp connect error: Connection refused (os error 111); is the engine running (`systemctl status docker`)? DOCKER_HOST selects another one");
    }

    #[tokio::test]
    async fn a_missing_socket_names_the_remedy() {
        let error = refusal("unix:///nowhere/docker.sock").await;
        assert!(
            error.contains("/nowhere/docker.sock") && error.contains("DOCKER_HOST"),
            "{error}"
        );
    }
}
