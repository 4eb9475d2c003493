//! Factors → cells → trials in seeded blocks, with an estimate of the time.
//!
//! A block is one repetition of every cell and every control, each block in its own random order, so that drift of the
//! machine spreads over all cells instead of looking like an effect. The same matrix and seed give the same plan for
//! ever: see [`order`] for the algorithm, which golden tests hold in place.

mod cells;
mod order;
#[cfg(test)]
mod tests;
mod view;

pub use cells::Cell;
pub use view::{CellView, PlanView, TrialView};

use crate::spec::Matrix;
use crate::units::Micros;

/// Time of a trial beside its warm-up and window: create, start, readiness, drain, evidence, removal.
pub const TRIAL_OVERHEAD: Micros = Micros::from_millis(2_500);

/// All that a run will do.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Cells of the matrix first, in the order of the file (the last factor varies fastest), then the controls.
    pub cells: Vec<Cell>,
    /// In the order of the run.
    pub trials: Vec<Trial>,
    /// Expected time of the whole run.
    pub estimate: Micros,
}

/// One repetition of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trial {
    /// Position in the run, from 0.
    pub position: u64,
    /// Index into [`Plan::cells`].
    pub cell: usize,
    /// From 1.
    pub repetition: u32,
    /// From 1; equals the repetition.
    pub block: u32,
    /// Of this trial, from the run's seed, the cell's id and the repetition: it does not change when cells are added
    /// or removed.
    pub seed: u64,
}

impl Plan {
    /// Expected time of one trial of a cell.
    #[must_use]
    pub fn trial_time(matrix: &Matrix, cell: &Cell) -> Micros {
        let (warmup, duration) = matrix.windows(cell);
        Micros(warmup.0 + duration.0 + TRIAL_OVERHEAD.0)
    }
}

/// Plans a matrix. A validated one has at most [`crate::spec::MAX_TRIALS`] trials, and so has the plan.
#[must_use]
pub fn build(matrix: &Matrix) -> Plan {
    let cells = cells::all(matrix);
    let mut trials = Vec::with_capacity(cells.len() * matrix.repetitions as usize);
    for block in 1..=matrix.repetitions {
        for cell in order::of_block(matrix.seed, block, cells.len()) {
            let id = cells.get(cell).map_or("", Cell::id);
            trials.push(Trial {
                position: trials.len() as u64,
                cell,
                repetition: block,
                block,
                seed: order::trial_seed(matrix.seed, id, block),
            });
        }
    }
    let one_block: u64 = cells
        .iter()
        .map(|cell| Plan::trial_time(matrix, cell).0)
        .sum();
    Plan {
        estimate: Micros(one_block.saturating_mul(u64::from(matrix.repetitions))),
        cells,
        trials,
    }
}
