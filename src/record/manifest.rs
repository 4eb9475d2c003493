//! `manifest.json`: what was asked for, of what, on which machine. Unknown facts are `None` (`null`), never guessed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::trial::{Control, Factor};
use crate::spec::settings::Settings;

/// Everything about a run that is not a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`super::trial::SCHEMA_VERSION`] of the writer.
    pub schema: u32,
    /// Version of `sweep` that wrote it.
    pub sweep_version: String,
    /// Id of the run.
    pub run: String,
    /// Name of the matrix.
    pub name: String,
    /// Text of `matrix.toml`.
    pub matrix_text: String,
    /// SHA-256 of the *resolved* matrix (defaults and overrides applied), lower-case hex.
    pub matrix_hash: String,
    /// Overrides of the command line, `key=value`.
    #[serde(default)]
    pub overrides: Vec<String>,
    /// Settings of every cell before its factor levels are applied.
    pub base: Settings,
    /// Factors in the matrix's order.
    pub factors: Vec<FactorLevels>,
    /// Every planned cell, controls included, in the order of the tables.
    #[serde(default)]
    pub cells: Vec<PlannedCell>,
    /// Seed of the order and of the arrivals.
    pub seed: u64,
    /// Repetitions of every cell.
    pub repetitions: u32,
    /// Trials planned, controls included.
    pub planned_trials: u64,
    /// Images by role (`proxy`, `upstream`, `agent`; several proxies when the image is a factor).
    pub images: Vec<ImageFacts>,
    /// The host that ran the containers.
    pub host: HostFacts,
    /// The engine.
    pub engine: EngineFacts,
    /// Whether containers of one image share the page cache of its files.
    pub page_cache_shared: Option<bool>,
    /// What a reader must know of all the numbers (inert factors, shared CPUs, …), as whole sentences.
    #[serde(default)]
    pub notices: Vec<String>,
    /// Start, RFC 3339 UTC.
    pub started_at: String,
    /// Last change, RFC 3339 UTC.
    pub updated_at: String,
    /// End, RFC 3339 UTC; `None` while trials are missing.
    #[serde(default)]
    pub finished_at: Option<String>,
}

/// A factor and its levels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FactorLevels {
    /// `cpu`, `memory`, `swap`, or the path of a setting.
    pub name: String,
    /// Levels as canonical text, in the matrix's order.
    pub levels: Vec<String>,
}

/// A cell of the plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedCell {
    /// Cell id, as in [`super::trial::TrialRecord::cell`].
    pub cell: String,
    /// Its levels.
    pub factors: Vec<Factor>,
    /// `None` for a cell of the matrix.
    pub control: Option<Control>,
}

/// An image that was used.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ImageFacts {
    /// `proxy`, `upstream` or `agent`.
    pub role: String,
    /// Reference as asked for.
    pub reference: String,
    /// Content id (`sha256:…`).
    pub id: Option<String>,
    /// Digests in registries.
    #[serde(default)]
    pub repo_digests: Vec<String>,
    /// Version that the program in it tells of itself.
    pub program_version: Option<String>,
}

/// The host that ran the containers (the virtual machine, where there is one).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct HostFacts {
    /// Kernel release.
    pub kernel: Option<String>,
    /// Name of the operating system.
    pub os: Option<String>,
    /// Machine architecture.
    pub architecture: Option<String>,
    /// Model of the CPU.
    pub cpu_model: Option<String>,
    /// CPUs that the engine sees.
    pub cpus: Option<u64>,
    /// Memory, bytes.
    pub memory_bytes: Option<u64>,
    /// Size of all swap devices, bytes.
    pub swap_bytes: Option<u64>,
    /// `1` or `2`.
    pub cgroup_version: Option<String>,
    /// Hypervisor or kind of machine, if known.
    pub virtualization: Option<String>,
    /// Kernel settings that decide queues and ports.
    #[serde(default)]
    pub sysctls: BTreeMap<String, i64>,
}

/// The engine.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct EngineFacts {
    /// Product (`Docker Engine`, `Podman Engine`).
    pub name: Option<String>,
    /// Id of the daemon.
    pub id: Option<String>,
    /// Version.
    pub version: Option<String>,
    /// API version spoken.
    pub api_version: Option<String>,
    /// Storage driver.
    pub storage_driver: Option<String>,
    /// `cgroupfs` or `systemd`.
    pub cgroup_driver: Option<String>,
    /// `1` or `2`, by the engine's word.
    pub cgroup_version: Option<String>,
    /// OCI runtime.
    pub runtime: Option<String>,
    /// Security options (`name=rootless`, …).
    #[serde(default)]
    pub security_options: Vec<String>,
    /// The engine's own warnings.
    #[serde(default)]
    pub warnings: Vec<String>,
}
