//! The order of levels.

/// Levels in ascending order of their quantity; those that are no quantity keep the matrix's order.
#[must_use]
pub fn ascending(levels: &[String]) -> Vec<String> {
    let sizes: Option<Vec<f64>> = levels.iter().map(|l| quantity(l)).collect();
    let Some(sizes) = sizes else {
        return levels.to_vec();
    };
    let mut sorted: Vec<(f64, &String)> = sizes.into_iter().zip(levels).collect();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    sorted.into_iter().map(|(_, level)| level.clone()).collect()
}

/// The size of a level, for ordering within one factor: a number with a Kubernetes, byte or time suffix.
#[must_use]
pub fn quantity(level: &str) -> Option<f64> {
    let level = level.trim();
    let digits = level
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(level.len());
    let number: f64 = level[..digits].parse().ok()?;
    let factor = match level[digits..].trim() {
        "" | "B" | "s" => 1.0,
        "m" | "ms" => 1e-3,
        "us" | "µs" => 1e-6,
        "ns" => 1e-9,
        "min" => 60.0,
        "h" => 3600.0,
        "k" | "K" | "kB" | "KB" => 1e3,
        "M" | "MB" => 1e6,
        "G" | "GB" => 1e9,
        "Ki" | "KiB" => 1024.0,
        "Mi" | "MiB" => 1024.0 * 1024.0,
        "Gi" | "GiB" => 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    Some(number * factor)
}
