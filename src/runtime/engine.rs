//! The connection, with a deadline on every call, and the facts that the engine tells of itself.

use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bollard::Docker;
use serde::{Deserialize, Serialize};
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

/// What the engine and its host are. Kept in the manifest: results across drivers or versions are not comparable.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EngineFacts {
    /// Address, as asked.
    pub address: String,
    /// Unique id of the engine, for the lock.
    pub id: Option<String>,
    /// `Docker Engine`, `Podman Engine`, …
    pub product: Option<String>,
    /// Version.
    pub version: Option<String>,
    /// API version.
    pub api_version: Option<String>,
    /// Storage driver.
    pub storage_driver: Option<String>,
    /// cgroup driver.
    pub cgroup_driver: Option<String>,
    /// `1` or `2`.
    pub cgroup_version: Option<String>,
    /// CPUs of the engine's host.
    pub cpus: Option<u64>,
    /// Memory of the engine's host, bytes.
    pub memory_bytes: Option<u64>,
    /// Kernel of the engine's host.
    pub kernel: Option<String>,
    /// Operating system of the engine's host.
    pub os: Option<String>,
    /// Architecture of the engine's host.
    pub architecture: Option<String>,
    /// Memory limits can be enforced.
    pub memory_limit: Option<bool>,
    /// Swap limits can be enforced.
    pub swap_limit: Option<bool>,
    /// CPU bandwidth limits can be enforced.
    pub cpu_cfs_quota: Option<bool>,
    /// CPU sets can be enforced.
    pub cpu_set: Option<bool>,
    /// Rootless mode.
    pub rootless: bool,
    /// The engine's warnings about itself.
    pub warnings: Vec<String>,
}

impl EngineFacts {
    /// Why trials cannot be run on this engine, whatever the matrix; `None` where nothing is known against it.
    #[must_use]
    pub fn unsupported(&self) -> Option<String> {
        // Seen with Podman 4.3.1. Each of these is silent, so that another version is not taken on trust either.
        (self.product.as_deref() == Some("Podman Engine")).then(|| {
            format!(
                "Podman {} at {} is not supported: through the Docker API it imports images without the tag and with \
                 another entrypoint than asked for, and tells another id of itself at every question, so that neither \
                 what is measured nor who else measures is known; use Docker Engine (DOCKER_HOST selects it)",
                self.version.as_deref().unwrap_or("of unknown version"),
                self.address
            )
        })
    }

    /// Whether containers share the page cache of their image's files: `None` where the driver is not known.
    #[must_use]
    pub fn page_cache_shared(&self) -> Option<bool> {
        match self.storage_driver.as_deref()? {
            "overlay2" | "overlay" | "overlayfs" | "aufs" => Some(true),
            "fuse-overlayfs" | "vfs" | "zfs" | "btrfs" | "devicemapper" => Some(false),
            _ => None,
        }
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
        if address.url.starts_with("ssh://") {
            return Err(unreachable("ssh:// is not supported".to_owned()));
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

    /// Asks what the engine is.
    ///
    /// # Errors
    /// When the engine does not answer.
    pub async fn facts(&self) -> Result<EngineFacts, EngineError> {
        let version = self
            .call(
                "ask the version of",
                "the engine",
                SHORT,
                self.docker.version(),
            )
            .await?;
        let info = self
            .call(
                "ask for the facts of",
                "the engine",
                SHORT,
                self.docker.info(),
            )
            .await?;
        let positive = |n: Option<i64>| n.and_then(|n| u64::try_from(n).ok()).filter(|n| *n > 0);
        let components = version.components.unwrap_or_default();
        let product = ["Podman Engine", "Engine"]
            .into_iter()
            .find(|name| components.iter().any(|c| c.name == *name))
            .map(|name| {
                if name == "Engine" {
                    "Docker Engine".to_owned()
                } else {
                    name.to_owned()
                }
            });
        let security = info.security_options.unwrap_or_default();
        Ok(EngineFacts {
            address: self.address.url.clone(),
            id: info.id.filter(|id| !id.is_empty()),
            product,
            version: version.version,
            api_version: version.api_version,
            storage_driver: info.driver,
            cgroup_driver: info
                .cgroup_driver
                .map(|d| d.to_string())
                .filter(|d| !d.is_empty()),
            cgroup_version: info
                .cgroup_version
                .map(|v| v.to_string())
                .filter(|v| !v.is_empty()),
            cpus: positive(info.ncpu),
            memory_bytes: positive(info.mem_total),
            kernel: info.kernel_version,
            os: info.operating_system,
            architecture: info.architecture,
            memory_limit: info.memory_limit,
            swap_limit: info.swap_limit,
            cpu_cfs_quota: info.cpu_cfs_quota,
            cpu_set: info.cpu_set,
            rootless: security.iter().any(|s| s.contains("rootless")),
            warnings: info.warnings.unwrap_or_default(),
        })
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
    if lower.contains("older than") {
        return "update the engine".to_owned();
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

    #[tokio::test]
    async fn a_missing_socket_names_the_remedy() {
        let address = EngineAddress {
            url: "unix:///nowhere/docker.sock".to_owned(),
            source: "test".to_owned(),
        };
        let error = Engine::connect_to(address)
            .await
            .expect_err("nothing there")
            .to_string();
        assert!(
            error.contains("/nowhere/docker.sock") && error.contains("DOCKER_HOST"),
            "{error}"
        );
    }
}
