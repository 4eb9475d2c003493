//! Numbers as people read them.

/// A latency in milliseconds with three significant digits, without unit: `0.410`, `2.60`, `52.0`, `1234`.
#[must_use]
pub fn ms(us: f64) -> String {
    significant(us / 1000.0)
}

/// Three significant digits, never in exponent notation.
#[must_use]
pub fn significant(value: f64) -> String {
    let size = value.abs();
    let digits = if size >= 99.95 {
        0
    } else if size >= 9.995 {
        1
    } else if size >= 0.9995 || size == 0.0 {
        2
    } else {
        3
    };
    format!("{value:.digits$}")
}

/// Bytes with a binary unit: `512 B`, `15.5 MiB`, `1.50 GiB`.
#[must_use]
pub fn bytes(value: f64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let (mut value, mut unit) = (value, 0);
    while value.abs() >= 1023.5 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 {
        format!("{value:.0} B")
    } else {
        format!("{} {}", significant(value), UNITS[unit])
    }
}

/// A count with thin groups of thousands: `87,000`.
#[must_use]
pub fn count(value: f64) -> String {
    let whole = format!("{:.0}", value.abs());
    let mut out = String::new();
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    if value < 0.0 && out.chars().any(|c| c != '0') {
        format!("-{out}")
    } else {
        out
    }
}

/// A share as per cent, `98 %`; small ones keep a digit, `0.3 %`. Never rounds a share that is not 0 or 1 to 0 or 100.
#[must_use]
pub fn percent(share: f64) -> String {
    let p = share * 100.0;
    if p == 0.0 || p == 100.0 {
        format!("{p:.0} %")
    } else if p < 0.05 {
        "<0.1 %".to_owned()
    } else if (99.5..100.0).contains(&p) {
        if p > 99.95 {
            ">99.9 %".to_owned()
        } else {
            format!("{p:.1} %")
        }
    } else if p < 9.95 {
        format!("{p:.1} %")
    } else {
        format!("{p:.0} %")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(
            [410.0, 2_600.0, 9_996.0, 52_000.0, 1_234_567.0, 0.0].map(ms),
            ["0.410", "2.60", "10.0", "52.0", "1235", "0.00"]
        );
        assert_eq!(
            [512.0, 16_252_928.0, 67_108_864.0, 1.5 * 1024f64.powi(3)].map(bytes),
            ["512 B", "15.5 MiB", "64.0 MiB", "1.50 GiB"]
        );
        assert_eq!(
            [0.0, 999.0, 1_000.0, 87_000.0, -1_234_567.0, -0.2].map(count),
            ["0", "999", "1,000", "87,000", "-1,234,567", "0"]
        );
        assert_eq!(
            [0.0, 0.0001, 0.003, 0.98, 0.997, 0.9999, 1.0].map(percent),
            [
                "0 %", "<0.1 %", "0.3 %", "98 %", "99.7 %", ">99.9 %", "100 %"
            ]
        );
    }
}
