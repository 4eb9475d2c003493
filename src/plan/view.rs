//! The plan for people and for programs.

use std::fmt::Write as _;

use comfy_table::{ContentArrangement, Table, presets};
use serde::Serialize;

use super::Plan;
use crate::record::trial::{Control, Factor};
use crate::spec::Matrix;
use crate::units::Micros;
use crate::units::counted;

/// The plan as JSON.
#[derive(Debug, Clone, Serialize)]
pub struct PlanView {
    /// Name of the matrix.
    pub name: String,
    /// [`Matrix::hash`].
    pub matrix_hash: String,
    /// Seed of the order.
    pub seed: u64,
    /// Repetitions, and so blocks.
    pub repetitions: u32,
    /// Expected time of the whole run.
    pub estimate_seconds: f64,
    /// Cells, then controls.
    pub cells: Vec<CellView>,
    /// In the order of the run.
    pub trials: Vec<TrialView>,
}

/// A cell as JSON.
#[derive(Debug, Clone, Serialize)]
pub struct CellView {
    /// Its id.
    pub id: String,
    /// `null` for a cell of the matrix.
    pub control: Option<Control>,
    /// Its levels.
    pub factors: Vec<Factor>,
    /// Expected time of all its trials.
    pub estimate_seconds: f64,
}

/// A trial as JSON.
#[derive(Debug, Clone, Serialize)]
pub struct TrialView {
    /// From 0.
    pub position: u64,
    /// Id of its cell.
    pub cell: String,
    /// From 1.
    pub repetition: u32,
    /// From 1.
    pub block: u32,
    /// Of this trial.
    pub seed: u64,
}

impl Plan {
    /// The plan for programs.
    #[must_use]
    pub fn view(&self, matrix: &Matrix) -> PlanView {
        let cells = self.cells.iter().map(|cell| {
            let one = Plan::trial_time(matrix, cell).secs_f64();
            CellView {
                id: cell.id().to_owned(),
                control: cell.control(),
                factors: cell.factors(matrix),
                estimate_seconds: one * f64::from(matrix.repetitions),
            }
        });
        let trials = self.trials.iter().map(|trial| TrialView {
            position: trial.position,
            cell: self.cell_id(trial.cell).to_owned(),
            repetition: trial.repetition,
            block: trial.block,
            seed: trial.seed,
        });
        PlanView {
            name: matrix.name.clone(),
            matrix_hash: matrix.hash(),
            seed: matrix.seed,
            repetitions: matrix.repetitions,
            estimate_seconds: self.estimate.secs_f64(),
            cells: cells.collect(),
            trials: trials.collect(),
        }
    }

    /// The plan for people: what will run, in what order, and how long it will take. At most `rows` cells and `rows`
    /// trials are listed.
    #[must_use]
    pub fn text(&self, matrix: &Matrix, rows: usize) -> String {
        let mut out = String::new();
        let cells = self
            .cells
            .iter()
            .filter(|cell| cell.control().is_none())
            .count();
        let controls = self.cells.len() - cells;
        let _ = writeln!(
            out,
            "{}: {} in {} of {}: {}, about {}",
            matrix.name,
            counted(self.trials.len(), "trial"),
            counted(matrix.repetitions as usize, "block"),
            match controls {
                0 => counted(cells, "cell"),
                n => format!("{} and {}", counted(cells, "cell"), counted(n, "control")),
            },
            self.windows_text(matrix),
            rounded(self.estimate),
        );
        for factor in &matrix.factors {
            let levels: Vec<&str> = factor.levels.iter().map(|l| l.text.as_str()).collect();
            let _ = writeln!(out, "  {}: {}", factor.name, limited(&levels, 12));
        }
        let _ = writeln!(out, "\n{}", self.cell_table(matrix, rows));
        let _ = writeln!(out, "\nOrder (seed {}):", matrix.seed);
        for trial in self.trials.iter().take(rows) {
            let _ = writeln!(
                out,
                "{:>6}  block {}  {}",
                trial.position + 1,
                trial.block,
                self.cell_id(trial.cell)
            );
        }
        let more = self.trials.len().saturating_sub(rows);
        if more > 0 {
            let _ = writeln!(out, "        and {} more", counted(more, "trial"));
        }
        out
    }

    fn cell_id(&self, index: usize) -> &str {
        self.cells.get(index).map_or("", super::Cell::id)
    }

    fn windows_text(&self, matrix: &Matrix) -> String {
        let mut windows = self.cells.iter().map(|cell| matrix.windows(cell));
        let first = windows.next();
        match first {
            Some((warmup, duration)) if windows.all(|other| Some(other) == first) => {
                format!("{warmup} + {duration} each")
            }
            _ => "windows of several lengths".to_owned(),
        }
    }

    fn cell_table(&self, matrix: &Matrix, rows: usize) -> String {
        let mut table = Table::new();
        table
            .load_style(presets::NOTHING)
            .set_content_arrangement(ContentArrangement::Disabled);
        let names = matrix.factors.iter().map(|factor| factor.name.clone());
        table.set_header(std::iter::once("cell".to_owned()).chain(names));
        for (n, cell) in self.cells.iter().take(rows).enumerate() {
            let label = match cell.control() {
                None => (n + 1).to_string(),
                Some(Control::Direct) => "direct".to_owned(),
                Some(Control::Unlimited) => "unlimited".to_owned(),
            };
            let levels = cell.factors(matrix);
            let columns = matrix.factors.iter().map(|factor| {
                let level = levels.iter().find(|level| level.name == factor.name);
                level.map_or_else(|| "-".to_owned(), |level| level.level.clone())
            });
            table.add_row(std::iter::once(label).chain(columns));
        }
        let lines: Vec<String> = table
            .lines()
            .map(|line| line.trim_end().to_owned())
            .collect();
        let more = self.cells.len().saturating_sub(rows);
        match more {
            0 => lines.join("\n"),
            n => format!("{}\n and {} more", lines.join("\n"), counted(n, "cell")),
        }
    }
}

fn limited(items: &[&str], most: usize) -> String {
    let head = items
        .iter()
        .take(most)
        .copied()
        .collect::<Vec<_>>()
        .join(", ");
    match items.len().saturating_sub(most) {
        0 => head,
        n => format!("{head} and {n} more"),
    }
}

/// A duration to the second, or to the minute from an hour on: an estimate claims no more.
fn rounded(time: Micros) -> Micros {
    let step = match time.0 {
        0..3_600_000_000 => 1_000_000,
        _ => 60_000_000,
    };
    Micros(time.0.div_ceil(step).saturating_mul(step))
}
