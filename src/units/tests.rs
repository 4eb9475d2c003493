#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;

fn cpu(text: &str) -> Result<u64, UnitError> {
    text.parse::<MilliCpus>().map(|c| c.0)
}

fn bytes(text: &str) -> Result<u64, UnitError> {
    text.parse::<Bytes>().map(|b| b.0)
}

fn micros(text: &str) -> Result<u64, UnitError> {
    text.parse::<Micros>().map(|m| m.0)
}

#[test]
fn cpu_quantities() {
    for (text, millis) in [
        ("250m", 250),
        ("0.25", 250),
        ("1", 1000),
        ("1.0", 1000),
        ("1000m", 1000),
        ("1.5", 1500),
        ("1e-1", 100),
        ("500000u", 500),
        (" 2 ", 2000),
        ("-0", 0),
        (".5", 500),
    ] {
        assert_eq!(cpu(text), Ok(millis), "{text}");
    }
    assert_eq!(cpu("0.0005"), Err(UnitError::TooFine("1m")));
    assert_eq!(cpu("0.5m"), Err(UnitError::TooFine("1m")));
    assert_eq!(cpu("-1"), Err(UnitError::Negative));
    assert_eq!(cpu(""), Err(UnitError::NotAQuantity));
    assert_eq!(cpu("max"), Err(UnitError::NotAQuantity));
    assert_eq!(cpu("250mi"), Err(UnitError::UnknownUnit("mi".into())));
    assert_eq!(cpu("1e400"), Err(UnitError::TooLarge));
    assert_eq!(cpu("1e-400"), Err(UnitError::TooFine("1m")));
    assert_eq!(cpu(&"9".repeat(500)), Err(UnitError::TooLarge));
}

#[test]
fn byte_quantities() {
    for (text, value) in [
        ("64Mi", 64 << 20),
        ("64MiB", 64 << 20),
        ("1KiB", 1024),
        ("64M", 64_000_000),
        ("64MB", 64_000_000),
        ("1k", 1000),
        ("1K", 1000),
        ("512", 512),
        ("512B", 512),
        ("0.5Gi", 512 << 20),
        ("1E", 1_000_000_000_000_000_000),
        ("1e3", 1000),
        ("64 MiB", 64 << 20),
        ("0", 0),
    ] {
        assert_eq!(bytes(text), Ok(value), "{text}");
    }
    assert!(matches!(bytes("64m"), Err(UnitError::Ambiguous { .. })));
    assert!(matches!(bytes("64mb"), Err(UnitError::Ambiguous { .. })));
    assert_eq!(bytes("0.5"), Err(UnitError::TooFine("1 byte")));
    assert_eq!(bytes("9Ei"), Err(UnitError::TooLarge));
    assert_eq!(bytes("-1Mi"), Err(UnitError::Negative));
    assert_eq!(bytes("64Mib"), Err(UnitError::UnknownUnit("Mib".into())));
}

#[test]
fn durations() {
    for (text, value) in [
        ("200us", 200),
        ("200µs", 200),
        ("5s", 5_000_000),
        ("1m 30s", 90_000_000),
        ("1m30s", 90_000_000),
        ("1.5ms", 1500),
        ("1h", 3_600_000_000),
        ("0", 0),
        ("0s", 0),
    ] {
        assert_eq!(micros(text), Ok(value), "{text}");
    }
    assert_eq!(micros("5"), Err(UnitError::NoUnit));
    assert_eq!(micros("5s 3"), Err(UnitError::NoUnit));
    assert_eq!(
        micros("5 parsecs"),
        Err(UnitError::UnknownUnit("parsecs".into()))
    );
    assert_eq!(micros("0.5us"), Err(UnitError::TooFine("1us")));
    assert_eq!(micros("-5s"), Err(UnitError::Negative));
    assert_eq!(micros("s"), Err(UnitError::NotAQuantity));
    assert_eq!(micros("9999999999999h"), Err(UnitError::TooLarge));
}

#[test]
fn canonical_texts() {
    assert_eq!(MilliCpus(250).to_string(), "250m");
    assert_eq!(MilliCpus(1000).to_string(), "1");
    assert_eq!(MilliCpus(1500).to_string(), "1500m");
    assert_eq!(Bytes(64 << 20).to_string(), "64Mi");
    assert_eq!(Bytes(64_000_000).to_string(), "64M");
    assert_eq!(Bytes(1500).to_string(), "1500");
    assert_eq!(Bytes(0).to_string(), "0");
    assert_eq!(Micros(200).to_string(), "200us");
    assert_eq!(Micros(5_000_000).to_string(), "5s");
    assert_eq!(Micros(90_000_000).to_string(), "1m 30s");
    assert_eq!(Micros(0).to_string(), "0s");
    assert_eq!(RatePerSecond(500.0).to_string(), "500");
    assert_eq!("-0".parse::<RatePerSecond>().unwrap().to_string(), "0");
}

#[test]
fn rates_are_finite() {
    assert_eq!("nan".parse::<RatePerSecond>(), Err(UnitError::NotAQuantity));
    assert_eq!("inf".parse::<RatePerSecond>(), Err(UnitError::TooLarge));
    assert_eq!("2k".parse::<RatePerSecond>(), Err(UnitError::NotAQuantity));
}

proptest! {
    #[test]
    fn canonical_text_reads_back(value in 0u64..=i64::MAX as u64) {
        prop_assert_eq!(cpu(&MilliCpus(value).to_string()), Ok(value));
        prop_assert_eq!(bytes(&Bytes(value).to_string()), Ok(value));
        prop_assert_eq!(micros(&Micros(value).to_string()), Ok(value));
    }

    #[test]
    fn rates_read_back(rate in 0.0f64..1e7) {
        let text = RatePerSecond(rate).to_string();
        prop_assert_eq!(text.parse::<RatePerSecond>(), Ok(RatePerSecond(rate)));
    }

    #[test]
    fn no_text_panics(text in "\\PC{0,40}") {
        let _ = (cpu(&text), bytes(&text), micros(&text), text.parse::<RatePerSecond>());
    }

    #[test]
    fn nearly_quantities_do_not_panic(text in "[-+]?[0-9]{0,40}\\.?[0-9]{0,40}(e[-+]?[0-9]{1,12})?[a-zA-Zµ]{0,3}") {
        let _ = (cpu(&text), bytes(&text), micros(&text));
    }
}
