//! Typed values from scalars: each reader says what is wrong; what would be right is the key's to say.

use std::str::FromStr;

use super::raw::Scalar;
use super::settings::{
    Arrivals, CertificateKey, DelayDistribution, KeyExchange, LoadMode, PageCache, Protocol,
    ProxyKind, TlsVersion, Verify, Wait,
};
use crate::units::{Bytes, Micros, MilliCpus, RatePerSecond, UnitError};

/// What is wrong with a value, as the end of a sentence that began with the key and the value.
pub(super) type Wrong = String;

/// The text of a string or number.
fn words(raw: &Scalar) -> Result<&str, Wrong> {
    match raw {
        Scalar::Text(text) | Scalar::Integer(text) | Scalar::Float(text) => Ok(text),
        Scalar::Flag(_) | Scalar::Datetime(_) => Err(format!("is {}", raw.kind())),
    }
}

pub(super) fn text(raw: &Scalar) -> Result<&str, Wrong> {
    match raw {
        Scalar::Text(text) => Ok(text),
        other => Err(format!("is {}", other.kind())),
    }
}

pub(super) fn flag(raw: &Scalar) -> Result<bool, Wrong> {
    match raw {
        Scalar::Flag(flag) => Ok(*flag),
        other => Err(format!("is {}", other.kind())),
    }
}

fn unit<T: FromStr<Err = UnitError>>(raw: &Scalar) -> Result<T, Wrong> {
    words(raw)?.parse::<T>().map_err(|error| error.to_string())
}

/// Whether a scalar is one of the words for "none", "no limit" and so on.
fn is_word(raw: &Scalar, accepted: &[&str]) -> bool {
    matches!(raw, Scalar::Text(text) if accepted.contains(&text.trim()))
}

/// A value, or `None` for one of the words.
pub(super) fn or_word<T>(
    raw: &Scalar,
    accepted: &[&str],
    read: impl FnOnce(&Scalar) -> Result<T, Wrong>,
) -> Result<Option<T>, Wrong> {
    if is_word(raw, accepted) {
        Ok(None)
    } else {
        read(raw).map(Some)
    }
}

fn within<T: PartialOrd + std::fmt::Display>(value: T, low: T, high: T) -> Result<T, Wrong> {
    if value < low {
        Err(format!("is below {low}"))
    } else if value > high {
        Err(format!("is above {high}"))
    } else {
        Ok(value)
    }
}

pub(super) fn cpu(raw: &Scalar) -> Result<MilliCpus, Wrong> {
    let cpu: MilliCpus = unit(raw)?;
    if cpu < MIN_CPU {
        return Err("is below 10m (0.01 CPU), which kernels refuse".to_owned());
    }
    within(cpu, MIN_CPU, MAX_CPU)
}

/// The kernel's smallest quota is 1 ms, a hundredth of the usual period.
const MIN_CPU: MilliCpus = MilliCpus(10);
const MAX_CPU: MilliCpus = MilliCpus(8_192_000);

/// Docker's smallest memory limit.
pub(super) const MIN_MEMORY: Bytes = Bytes(6 << 20);
/// Far above any machine, and safe to add swap to.
pub(super) const MAX_MEMORY: Bytes = Bytes(1 << 50);

pub(super) fn bytes(raw: &Scalar, low: Bytes, high: Bytes) -> Result<Bytes, Wrong> {
    within(unit(raw)?, low, high)
}

pub(super) fn micros(raw: &Scalar, low: Micros, high: Micros) -> Result<Micros, Wrong> {
    let value: Micros = unit(raw)?;
    if value.0 == 0 && low.0 > 0 {
        return Err("is zero".to_owned());
    }
    within(value, low, high)
}

pub(super) fn rate(raw: &Scalar, low: f64, high: f64) -> Result<RatePerSecond, Wrong> {
    let value: RatePerSecond = unit(raw)?;
    if value.0 < 0.0 {
        return Err("is negative".to_owned());
    }
    if value.0 == 0.0 && low > 0.0 {
        return Err("is zero".to_owned());
    }
    within(value, RatePerSecond(low), RatePerSecond(high))
}

/// A rate that may be zero, but not so small that it is zero in all but name.
pub(super) fn rate_or_zero(raw: &Scalar, low: f64, high: f64) -> Result<RatePerSecond, Wrong> {
    match rate(raw, 0.0, high)? {
        zero if zero.0 == 0.0 => Ok(zero),
        value => within(value, RatePerSecond(low), RatePerSecond(high)),
    }
}

/// A whole number; `0.0` and quoted digits count, `1.5` does not.
pub(super) fn count(raw: &Scalar, low: u64, high: u64) -> Result<u64, Wrong> {
    let words = words(raw)?.trim();
    let Ok(value) = words.parse::<i128>() else {
        let number = words.parse::<f64>().is_ok();
        return Err(if number {
            "is not a whole number in range"
        } else {
            "is not a number"
        }
        .to_owned());
    };
    if value == 0 && low > 0 {
        return Err("is zero".to_owned());
    }
    let value = within(value, i128::from(low), i128::from(high))?;
    u64::try_from(value).map_err(|_| "is out of range".to_owned())
}

pub(super) fn count32(raw: &Scalar, low: u32, high: u32) -> Result<u32, Wrong> {
    let value = count(raw, u64::from(low), u64::from(high))?;
    u32::try_from(value).map_err(|_| "is out of range".to_owned())
}

pub(super) fn port(raw: &Scalar) -> Result<u16, Wrong> {
    let value = count(raw, 1, u64::from(u16::MAX))?;
    let port = u16::try_from(value).map_err(|_| "is out of range".to_owned())?;
    if UPSTREAM_PORTS.contains(&port) {
        return Err("is a port of the upstream, in the same network namespace".to_owned());
    }
    Ok(port)
}

/// Where the upstream serves, and where it is asked for its statistics.
const UPSTREAM_PORTS: [u16; 2] = [8080, 8081];

/// A share of 0 to 1; a positive one is at least a millionth.
pub(super) fn share(raw: &Scalar) -> Result<f64, Wrong> {
    rate_or_zero(raw, 1e-6, 1.0).map(|share| share.0)
}

/// A closed set of values, each with the word that names it.
pub(super) trait Choice: Copy + PartialEq + 'static {
    const ALL: &'static [(&'static str, Self)];

    fn word(self) -> &'static str {
        Self::ALL
            .iter()
            .find(|(_, value)| *value == self)
            .map_or("", |(word, _)| *word)
    }
}

pub(super) fn choice<T: Choice>(raw: &Scalar) -> Result<T, Wrong> {
    let words = words(raw)?.trim();
    T::ALL
        .iter()
        .find(|(word, _)| *word == words)
        .map(|(_, value)| *value)
        .ok_or_else(|| "is not one of the choices".to_owned())
}

macro_rules! choices {
    ($($type:ident { $($word:literal => $value:ident),+ $(,)? })+) => {
        $(impl Choice for $type {
            const ALL: &'static [(&'static str, Self)] = &[$(($word, Self::$value)),+];
        })+
    };
}

choices! {
    ProxyKind { "envoy" => Envoy, "nginx" => Nginx, "haproxy" => Haproxy, "custom" => Custom }
    PageCache { "warm" => Warm, "cold" => Cold }
    DelayDistribution { "constant" => Constant, "uniform" => Uniform, "bimodal" => Bimodal }
    LoadMode { "open" => Open, "closed" => Closed }
    Arrivals { "constant" => Constant, "poisson" => Poisson }
    Protocol { "h1" => H1, "h2" => H2 }
    TlsVersion { "1.2" => V1_2, "1.3" => V1_3 }
    CertificateKey { "ecdsa-p256" => EcdsaP256, "rsa-2048" => Rsa2048, "rsa-4096" => Rsa4096, "ed25519" => Ed25519 }
    KeyExchange { "x25519" => X25519, "p256" => P256, "x25519mlkem768" => X25519MlKem768 }
    Verify { "ca" => Ca, "pin" => Pin }
    Wait { "auto" => Auto, "sleep" => Sleep, "spin" => Spin }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agree<T: Choice + serde::Serialize>() {
        for (word, value) in T::ALL {
            let json = serde_json::to_string(value).unwrap_or_default();
            assert_eq!(json, format!("\"{word}\""));
        }
    }

    #[test]
    fn words_are_those_of_the_records() {
        agree::<ProxyKind>();
        agree::<PageCache>();
        agree::<DelayDistribution>();
        agree::<LoadMode>();
        agree::<Arrivals>();
        agree::<Protocol>();
        agree::<TlsVersion>();
        agree::<CertificateKey>();
        agree::<KeyExchange>();
        agree::<Verify>();
    }

    #[test]
    fn counts_are_whole_and_in_range() {
        let int = |text: &str| Scalar::Integer(text.to_owned());
        assert_eq!(count(&int("5"), 1, 10), Ok(5));
        assert_eq!(count(&Scalar::Text("5".into()), 1, 10), Ok(5));
        for (raw, wrong) in [
            (int("0"), "is zero"),
            (int("-1"), "is below 1"),
            (int("11"), "is above 10"),
            (
                Scalar::Float("1.5".into()),
                "is not a whole number in range",
            ),
            (Scalar::Text("many".into()), "is not a number"),
            (Scalar::Flag(true), "is true or false"),
            (int(&"9".repeat(100)), "is not a whole number in range"),
        ] {
            assert_eq!(count(&raw, 1, 10), Err(wrong.to_owned()), "{raw:?}");
        }
    }
}
