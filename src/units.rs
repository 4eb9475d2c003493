//! Quantities with their unit in the type: parsing as people write them, and one canonical way to print them.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// CPU bandwidth in thousandths of a CPU (Kubernetes `250m`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MilliCpus(pub u64);

/// Bytes (`64Mi`, `64MiB`, `1KiB`, `64M`, `512`).
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Bytes(pub u64);

/// A duration in whole microseconds (`200us`, `5s`, `1m 30s`).
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Micros(pub u64);

impl Micros {
    /// As a standard duration.
    #[must_use]
    pub fn duration(self) -> Duration {
        Duration::from_micros(self.0)
    }
}

/// Events per second.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RatePerSecond(pub f64);
