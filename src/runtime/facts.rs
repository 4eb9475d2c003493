//! The facts that an engine tells of itself.

use serde::{Deserialize, Serialize};

use super::engine::{Engine, SHORT};
use super::error::EngineError;

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
            address: self.address().url.clone(),
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
}
