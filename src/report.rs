//! Tables and files made from a results folder alone, never from the measuring process.

use std::io;
use std::path::PathBuf;

use crate::record::manifest::Manifest;
use crate::record::trial::TrialRecord;
use crate::record::{Folder, RecordError};

pub mod analysis;
pub mod csv;
pub mod docs;
pub mod environment;
pub mod histograms;
pub mod html;
pub mod json;
pub mod markdown;
mod notices;
pub mod summary;
pub mod table;
pub mod text;

/// The table for a terminal of this many columns, with headline, what was left out, and notices.
#[must_use]
pub fn table(manifest: &Manifest, trials: &[TrialRecord], width: u16) -> String {
    table::render(&analysis::analyse(manifest, trials), width)
}

/// Writes every derived file of a results folder again, each atomically, from its manifest and its trials alone; tells
/// which.
///
/// # Errors
/// When the folder cannot be read or written.
pub fn rebuild(folder: &Folder) -> Result<Vec<PathBuf>, RecordError> {
    let manifest = folder.manifest()?;
    let trials = folder.trials()?;
    let mut analysis = analysis::analyse(&manifest, &trials.records);
    analysis.notices.extend(trials.notices);
    let mut files = Vec::new();
    for (name, bytes) in [
        ("trials.csv", csv::trials(&analysis)),
        ("summary.csv", csv::summary(&analysis)),
        ("samples.csv", csv::samples(&analysis)),
    ] {
        files.push(folder.write(name, &bytes.map_err(io::Error::other)?)?);
    }
    let summary = json::render(&analysis).map_err(io::Error::from)?;
    for (name, text) in [
        ("summary.json", summary),
        ("report.md", markdown::render(&analysis)),
        ("report.html", html::render(&analysis)),
    ] {
        files.push(folder.write(name, text.as_bytes())?);
    }
    for (name, bytes) in histograms::files(&analysis) {
        files.push(folder.write_unsynced(&name, &bytes)?);
    }
    Ok(files)
}

#[cfg(test)]
mod tests;
