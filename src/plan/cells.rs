//! The cells of a matrix and its controls.

use crate::record::trial::{Control, Factor};
use crate::spec::settings::Settings;
use crate::spec::{Matrix, matters_to};
use crate::units::{Bytes, Micros};

/// One combination of factor levels, or a control under one combination of those that matter to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    id: String,
    control: Option<Control>,
    /// One a factor of the matrix: an index into its levels, or `None` where the factor does not matter to a control.
    levels: Vec<Option<u32>>,
}

impl Cell {
    /// Equal for equal levels: `cpu=250m,memory=64Mi,swap=0`; `direct` or `direct,load.rate=500`; `base` for the one
    /// cell of a matrix without factors.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// `None` for a cell of the matrix.
    #[must_use]
    pub fn control(&self) -> Option<Control> {
        self.control
    }

    /// The factors with their levels, in the order of the matrix; those that do not matter to a control are left out.
    #[must_use]
    pub fn factors(&self, matrix: &Matrix) -> Vec<Factor> {
        matrix
            .factors
            .iter()
            .zip(&self.levels)
            .filter_map(|(factor, level)| {
                let level = factor.levels.get((*level)? as usize)?;
                Some(Factor {
                    name: factor.name.clone(),
                    level: level.text.clone(),
                })
            })
            .collect()
    }

    /// Whether this control is the one to compare a cell with: equal in all that matters to the control.
    #[must_use]
    pub fn is_control_of(&self, cell: &Self) -> bool {
        self.control.is_some()
            && cell.control.is_none()
            && self
                .levels
                .iter()
                .zip(&cell.levels)
                .all(|(own, other)| own.is_none() || own == other)
    }
}

impl Matrix {
    /// The settings of a cell of this matrix. For the `unlimited` and `direct` controls the limits are gone.
    #[must_use]
    pub fn settings(&self, cell: &Cell) -> Settings {
        let mut settings = self.with_levels(&cell.levels);
        if cell.control.is_some() {
            settings.limits.cpu = None;
            settings.limits.memory = None;
            settings.limits.swap = Bytes(0);
        }
        settings
    }

    /// Warm-up and window of a cell, without making all of its settings where no factor changes them.
    pub(super) fn windows(&self, cell: &Cell) -> (Micros, Micros) {
        let varies = |path: &str| self.factors.iter().any(|factor| factor.path == path);
        if varies("warmup") || varies("duration") {
            let settings = self.with_levels(&cell.levels);
            (settings.warmup, settings.duration)
        } else {
            (self.base.warmup, self.base.duration)
        }
    }
}

/// Every cell, then every control.
pub(super) fn all(matrix: &Matrix) -> Vec<Cell> {
    let mut cells = combinations(matrix, None);
    for control in &matrix.controls {
        cells.extend(combinations(matrix, Some(*control)));
    }
    cells
}

fn combinations(matrix: &Matrix, control: Option<Control>) -> Vec<Cell> {
    let counts: Vec<Option<u32>> = matrix
        .factors
        .iter()
        .map(|factor| {
            let matters = control.is_none_or(|control| matters_to(control, factor.path));
            // A validated matrix has far fewer levels than fit.
            matters.then(|| u32::try_from(factor.levels.len()).unwrap_or(u32::MAX))
        })
        .collect();
    let mut levels: Vec<Option<u32>> = counts.iter().map(|count| count.map(|_| 0)).collect();
    let mut cells = Vec::new();
    loop {
        cells.push(Cell {
            id: id(matrix, control, &levels),
            control,
            levels: levels.clone(),
        });
        if !next(&mut levels, &counts) {
            return cells;
        }
    }
}

/// Counts up, the last factor fastest; `false` after the last combination.
fn next(levels: &mut [Option<u32>], counts: &[Option<u32>]) -> bool {
    for (level, count) in levels.iter_mut().zip(counts).rev() {
        if let (Some(level), Some(count)) = (level.as_mut(), count) {
            *level += 1;
            if *level < *count {
                return true;
            }
            *level = 0;
        }
    }
    false
}

fn id(matrix: &Matrix, control: Option<Control>, levels: &[Option<u32>]) -> String {
    let name = control.map(|control| match control {
        Control::Direct => "direct".to_owned(),
        Control::Unlimited => "unlimited".to_owned(),
    });
    let factors = matrix
        .factors
        .iter()
        .zip(levels)
        .filter_map(|(factor, level)| {
            let level = factor.levels.get((*level)? as usize)?;
            Some(format!("{}={}", factor.name, escaped(&level.text)))
        });
    let parts: Vec<String> = name.into_iter().chain(factors).collect();
    if parts.is_empty() {
        "base".to_owned()
    } else {
        parts.join(",")
    }
}

/// A level as it stands in an id: the separators of ids are percent-encoded, so that different levels cannot make
/// equal ids.
fn escaped(level: &str) -> String {
    let mut out = String::with_capacity(level.len());
    for c in level.chars() {
        match c {
            '%' => out.push_str("%25"),
            ',' => out.push_str("%2C"),
            '=' => out.push_str("%3D"),
            c => out.push(c),
        }
    }
    out
}
