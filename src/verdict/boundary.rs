//! Where along each axis the verdict changes: the answer to the question of a run.
//!
//! An axis is cut into slices: all cells that differ in this factor alone, in ascending order of its levels. In each
//! slice one end is the reference: the end that is `ok` (the largest level if both or neither are). The boundary is the
//! level nearest to it whose verdict differs. A slice with one verdict has no boundary, and an axis without any has no
//! effect: what is wrong there is told by another axis.

use serde::{Deserialize, Serialize};

use super::cell::CellNumbers;
use super::{Judgement, Verdict};
use crate::record::manifest::FactorLevels;
use crate::record::trial::Factor;

mod quantity;
mod sentence;

pub use quantity::{ascending, quantity};

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
    pub levels: Vec<LevelVerdict>,
    /// Where the verdict changes; `None` when it does not.
    pub change: Option<Change>,
}

/// A level and the verdict there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LevelVerdict {
    /// The level.
    pub level: String,
    /// The verdict.
    pub verdict: Verdict,
}

/// Where a verdict changes along an axis.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The level nearest to the reference whose verdict differs from the reference's.
    pub at: LevelVerdict,
    /// Whether the levels beyond the boundary are the smaller ones (as with limits) or the larger ones (as with load).
    pub side: Side,
    /// The last level before the boundary, seen from the reference.
    pub before: LevelVerdict,
}

/// A direction along an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// Towards smaller levels.
    Smaller,
    /// Towards larger levels.
    Larger,
}

/// Finds the boundary. Cells with the verdict `invalid` are passed over: they tell nothing. Factors that had no effect to
/// have (swap on a host without swap) are `inert`.
#[must_use]
pub fn find(factors: &[FactorLevels], cells: &[JudgedCell<'_>], inert: &[&str]) -> Boundary {
    let told: Vec<JudgedCell<'_>> = cells
        .iter()
        .copied()
        .filter(|c| c.judgement.verdict != Verdict::Invalid)
        .collect();
    let axes: Vec<Axis> = factors
        .iter()
        .filter(|f| f.levels.len() > 1)
        .map(|factor| axis(factor, &told))
        .filter(|axis| axis.slices.iter().any(|s| s.levels.len() > 1))
        .collect();
    let headline = sentence::headline(&axes, &told, cells.len() - told.len(), inert);
    Boundary { axes, headline }
}

fn axis(factor: &FactorLevels, cells: &[JudgedCell<'_>]) -> Axis {
    let levels = ascending(&factor.levels);
    let mut slices: Vec<Slice> = Vec::new();
    for cell in cells {
        let others = cell.factors.iter().filter(|f| f.name != factor.name);
        let fixed: Vec<Factor> = others.cloned().collect();
        if slices.iter().any(|s| s.fixed == fixed) {
            continue;
        }
        let found = levels.iter().filter_map(|level| {
            let cell = cells.iter().find(|c| at(c, &factor.name, level, &fixed))?;
            Some(LevelVerdict {
                level: level.clone(),
                verdict: cell.judgement.verdict,
            })
        });
        let levels: Vec<LevelVerdict> = found.collect();
        slices.push(Slice {
            change: change(&levels),
            fixed,
            levels,
        });
    }
    Axis {
        factor: factor.name.clone(),
        has_effect: slices.iter().any(|s| s.change.is_some()),
        slices,
    }
}

fn change(levels: &[LevelVerdict]) -> Option<Change> {
    let (first, last) = (levels.first()?, levels.last()?);
    let from_small = first.verdict == Verdict::Ok && last.verdict != Verdict::Ok;
    if from_small {
        let i = levels.iter().position(|l| l.verdict != first.verdict)?;
        return Some(Change {
            at: levels[i].clone(),
            side: Side::Larger,
            before: levels[i - 1].clone(),
        });
    }
    let i = levels.iter().rposition(|l| l.verdict != last.verdict)?;
    Some(Change {
        at: levels[i].clone(),
        side: Side::Smaller,
        before: levels[i + 1].clone(),
    })
}

/// Whether a cell has this level of the factor and these of the others.
fn at(cell: &JudgedCell<'_>, factor: &str, level: &str, fixed: &[Factor]) -> bool {
    cell.factors.iter().all(|f| {
        if f.name == factor {
            f.level == level
        } else {
            fixed.contains(f)
        }
    })
}

#[cfg(test)]
mod tests;
