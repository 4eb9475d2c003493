//! Where along each axis the verdict leaves `ok`.
//!
//! An axis is cut into slices: all cells that differ in this factor alone. In each slice the levels stand in ascending
//! order; the boundary lies between the largest level that is not `ok` and the levels above it. An axis along which no
//! slice changes its verdict has no effect.

use serde::{Deserialize, Serialize};

use super::cell::CellNumbers;
use super::{Judgement, Verdict};
use crate::record::manifest::FactorLevels;
use crate::record::trial::Factor;

mod sentence;

/// A cell with its verdict.
#[derive(Debug, Clone, Copy)]
pub struct JudgedCell<'a> {
    /// Its levels.
    pub factors: &'a [Factor],
    /// Its verdict.
    pub judgement: &'a Judgement,
    /// What it rests on.
    pub numbers: &'a CellNumbers,
}

/// The boundary of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Boundary {
    /// One per factor with at least two levels.
    pub axes: Vec<Axis>,
    /// The headline, one sentence an item.
    pub headline: Vec<String>,
}

/// The boundary along one factor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Axis {
    /// The factor.
    pub factor: String,
    /// Whether the verdict changes along it in any slice.
    pub has_effect: bool,
    /// One per combination of the other factors.
    pub slices: Vec<Slice>,
}

/// The levels of one factor, everything else fixed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Slice {
    /// The other factors.
    pub fixed: Vec<Factor>,
    /// Levels with their verdicts, ascending.
    pub levels: Vec<(String, Verdict)>,
    /// Largest level that is not `ok`; `None` when all are.
    pub largest_not_ok: Option<String>,
    /// Smallest level from which on all are `ok`; `None` when the largest is not.
    pub smallest_ok: Option<String>,
}

/// Finds the boundary. Cells with the verdict `invalid` are passed over: they tell nothing.
#[must_use]
pub fn find(factors: &[FactorLevels], cells: &[JudgedCell<'_>]) -> Boundary {
    let told: Vec<JudgedCell<'_>> = cells
        .iter()
        .copied()
        .filter(|c| c.judgement.verdict != Verdict::Invalid)
        .collect();
    let axes: Vec<Axis> = factors
        .iter()
        .filter(|f| f.levels.len() > 1)
        .map(|factor| axis(factor, &told))
        .filter(|axis| !axis.slices.is_empty())
        .collect();
    let headline = sentence::headline(&axes, &told);
    Boundary { axes, headline }
}

fn axis(factor: &FactorLevels, cells: &[JudgedCell<'_>]) -> Axis {
    let levels = ascending(&factor.levels);
    let mut slices: Vec<Slice> = Vec::new();
    for cell in cells {
        let fixed: Vec<Factor> = cell
            .factors
            .iter()
            .filter(|f| f.name != factor.name)
            .cloned()
            .collect();
        if slices.iter().any(|s| s.fixed == fixed) {
            continue;
        }
        let found: Vec<(String, Verdict)> = levels
            .iter()
            .filter_map(|level| {
                let cell = cells.iter().find(|c| at(c, &factor.name, level, &fixed))?;
                Some((level.clone(), cell.judgement.verdict))
            })
            .collect();
        slices.push(slice(fixed, found));
    }
    let has_effect = slices
        .iter()
        .any(|s| s.levels.windows(2).any(|w| w[0].1 != w[1].1));
    Axis {
        factor: factor.name.clone(),
        has_effect,
        slices,
    }
}

fn slice(fixed: Vec<Factor>, levels: Vec<(String, Verdict)>) -> Slice {
    let last_bad = levels
        .iter()
        .rposition(|(_, verdict)| *verdict != Verdict::Ok);
    let first_ok = last_bad.map_or(0, |i| i + 1);
    Slice {
        fixed,
        largest_not_ok: last_bad.map(|i| levels[i].0.clone()),
        smallest_ok: levels.get(first_ok).map(|(level, _)| level.clone()),
        levels,
    }
}

fn at(cell: &JudgedCell<'_>, factor: &str, level: &str, fixed: &[Factor]) -> bool {
    cell.factors.iter().all(|f| {
        if f.name == factor {
            f.level == level
        } else {
            fixed.iter().any(|x| x == f)
        }
    })
}

/// Levels in ascending order of their quantity; those that are no quantity keep the matrix's order.
#[must_use]
pub fn ascending(levels: &[String]) -> Vec<String> {
    let mut sorted = levels.to_vec();
    if sorted.iter().all(|l| quantity(l).is_some()) {
        sorted.sort_by(|a, b| {
            let (a, b) = (quantity(a).unwrap_or(0.0), quantity(b).unwrap_or(0.0));
            a.total_cmp(&b)
        });
    }
    sorted
}

/// The size of a level, for ordering: a number with a Kubernetes, byte or time suffix.
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
        "k" | "K" | "kB" => 1e3,
        "M" | "MB" => 1e6,
        "G" | "GB" => 1e9,
        "Ki" | "KiB" => 1024.0,
        "Mi" | "MiB" => 1024.0 * 1024.0,
        "Gi" | "GiB" => 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    Some(number * factor)
}
