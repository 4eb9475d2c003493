//! Quantities with their unit in the type: parsing as people write them, and one canonical way to print them.
//!
//! Parsing is exact: numbers are read as decimals, never through binary floating point, so `0.1` CPU is 100 m and
//! `0.0005` CPU is refused instead of rounded. In JSON a quantity is its number; `Display` is the text for people, for
//! cell ids and for levels, and parsing that text gives the same quantity back.

mod counted;
mod decimal;
#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub(crate) use counted::counted;
use decimal::Decimal;

/// Why a text is not a quantity.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    /// Not a number with or without a unit.
    #[error("is not a quantity")]
    NotAQuantity,
    /// A number that needs a unit.
    #[error("has no unit")]
    NoUnit,
    /// A unit that does not exist for this quantity.
    #[error("has the unknown unit {0:?}")]
    UnknownUnit(String),
    /// A unit that means different things to different tools.
    #[error("has the ambiguous unit {unit:?} ({why})")]
    Ambiguous {
        /// The unit.
        unit: String,
        /// What it means to whom.
        why: &'static str,
    },
    /// Not a whole number of the smallest unit.
    #[error("is finer than {0}")]
    TooFine(&'static str),
    /// More than can be counted.
    #[error("is too large")]
    TooLarge,
    /// Below zero.
    #[error("is negative")]
    Negative,
}

/// CPU bandwidth in thousandths of a CPU (Kubernetes `250m`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MilliCpus(pub u64);

impl MilliCpus {
    /// As a number of CPUs.
    #[must_use]
    pub fn cpus(self) -> f64 {
        self.0 as f64 / 1000.0
    }
}

/// `250m`, `1`, `1500m`: whole CPUs without a suffix, as Kubernetes prints them.
impl fmt::Display for MilliCpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_multiple_of(1000) {
            write!(f, "{}", self.0 / 1000)
        } else {
            write!(f, "{}m", self.0)
        }
    }
}

/// A Kubernetes CPU quantity: `250m`, `0.25`, `2`; `u` and `n` where they come out whole.
impl FromStr for MilliCpus {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let (number, unit) = Decimal::split(text.trim())?;
        let scaled = match unit {
            "" => number.shifted(3),
            "m" => number,
            "u" => number.shifted(-3),
            "n" => number.shifted(-6),
            "k" => number.shifted(6),
            other => return Err(UnitError::UnknownUnit(other.to_owned())),
        };
        scaled.times(1, "1m").map(Self)
    }
}

/// Bytes (`64Mi`, `64MiB`, `1KiB`, `64M`, `512`).
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Bytes(pub u64);

const BINARY: [(&str, u64); 6] = [
    ("Ei", 1 << 60),
    ("Pi", 1 << 50),
    ("Ti", 1 << 40),
    ("Gi", 1 << 30),
    ("Mi", 1 << 20),
    ("Ki", 1 << 10),
];
const DECIMAL: [(&str, u64); 6] = [
    ("E", 1_000_000_000_000_000_000),
    ("P", 1_000_000_000_000_000),
    ("T", 1_000_000_000_000),
    ("G", 1_000_000_000),
    ("M", 1_000_000),
    ("k", 1_000),
];

/// The shortest exact Kubernetes quantity, powers of 1024 before powers of 1000: `64Mi`, `64M`, `1500`.
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("0");
        }
        let exact = |units: [(&str, u64); 6]| {
            units
                .into_iter()
                .find(|(_, size)| self.0.is_multiple_of(*size))
                .map(|(unit, size)| format!("{}{unit}", self.0 / size))
        };
        let plain = Some(self.0.to_string());
        let shortest = [exact(BINARY), exact(DECIMAL), plain]
            .into_iter()
            .flatten()
            .min_by_key(String::len);
        f.write_str(&shortest.unwrap_or_default())
    }
}

/// A Kubernetes memory quantity (`64Mi`, `64M`), the same with a `B` (`64MiB`), or plain bytes.
impl FromStr for Bytes {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let (number, unit) = Decimal::split(text.trim())?;
        let size = match unit.strip_suffix('B').unwrap_or(unit) {
            "" => 1,
            "K" => 1_000,
            "m" | "g" | "t" | "p" | "kb" | "mb" | "gb" | "b" => {
                return Err(UnitError::Ambiguous {
                    unit: unit.to_owned(),
                    why: "\"m\" is thousandths to Kubernetes and MiB to Docker",
                });
            }
            known => BINARY
                .iter()
                .chain(&DECIMAL)
                .find(|(name, _)| *name == known)
                .map(|(_, size)| *size)
                .ok_or_else(|| UnitError::UnknownUnit(unit.to_owned()))?,
        };
        number.times(size, "1 byte").map(Self)
    }
}

/// A duration in whole microseconds (`200us`, `5s`, `1m 30s`).
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Micros(pub u64);

impl Micros {
    /// Whole milliseconds.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis * 1_000)
    }

    /// Whole seconds.
    #[must_use]
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs * 1_000_000)
    }

    /// As a standard duration.
    #[must_use]
    pub fn duration(self) -> Duration {
        Duration::from_micros(self.0)
    }

    /// In seconds.
    #[must_use]
    pub fn secs_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }
}

const SPANS: [(&str, u64); 5] = [
    ("h", 3_600_000_000),
    ("m", 60_000_000),
    ("s", 1_000_000),
    ("ms", 1_000),
    ("us", 1),
];

/// Units from hours down, those that are zero left out: `1m 30s`, `200us`; zero is `0s`.
impl fmt::Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("0s");
        }
        let mut rest = self.0;
        let mut gap = "";
        for (unit, size) in SPANS {
            let whole = rest / size;
            if whole > 0 {
                write!(f, "{gap}{whole}{unit}")?;
                gap = " ";
            }
            rest %= size;
        }
        Ok(())
    }
}

/// Numbers with units `us`, `ms`, `s`, `m` and `h`, summed: `5s`, `1.5ms`, `1m 30s`. A bare `0` needs no unit.
impl FromStr for Micros {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let mut rest = text.trim();
        if rest == "0" {
            return Ok(Self(0));
        }
        let mut total: u64 = 0;
        loop {
            let (number, after) = Decimal::prefix(rest)?;
            let after = after.trim_start();
            let end = after
                .find(|c: char| !(c.is_alphabetic() || c == 'µ'))
                .unwrap_or(after.len());
            let unit = after.get(..end).unwrap_or_default();
            let size = match unit {
                "" => return Err(UnitError::NoUnit),
                "µs" | "μs" => 1,
                known => SPANS
                    .iter()
                    .find(|(name, _)| *name == known)
                    .map(|(_, size)| *size)
                    .ok_or_else(|| UnitError::UnknownUnit(unit.to_owned()))?,
            };
            total = total
                .checked_add(number.times(size, "1us")?)
                .ok_or(UnitError::TooLarge)?;
            rest = after.get(end..).unwrap_or_default().trim_start();
            if rest.is_empty() {
                return Ok(Self(total));
            }
        }
    }
}

/// Events per second.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RatePerSecond(pub f64);

/// The shortest number that reads back as the same rate: `500`, `0.5`.
impl fmt::Display for RatePerSecond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A plain finite number.
impl FromStr for RatePerSecond {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let rate: f64 = text.trim().parse().map_err(|_| UnitError::NotAQuantity)?;
        if rate.is_nan() {
            return Err(UnitError::NotAQuantity);
        }
        if rate.is_infinite() {
            return Err(UnitError::TooLarge);
        }
        // -0.0 would print as "-0" and so be another level than "0".
        Ok(Self(if rate == 0.0 { 0.0 } else { rate }))
    }
}
