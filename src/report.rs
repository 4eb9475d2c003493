//! Tables and files made from a results folder alone, never from the measuring process.

use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::record::{Folder, RecordError};

pub mod analysis;
pub mod csv;
pub mod histograms;
pub mod summary;
pub mod table;
pub mod text;

/// A report could not be made.
#[derive(Debug, Error)]
pub enum ReportError {
    /// The folder could not be read or written.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A CSV could not be written to memory.
    #[error("failed to write {file}: {cause}")]
    Csv {
        /// The file.
        file: &'static str,
        /// Why.
        cause: csv::CsvError,
    },
}

/// What was made of a results folder.
#[derive(Debug)]
pub struct Rebuilt {
    /// Files written.
    pub files: Vec<PathBuf>,
    /// The table for a terminal.
    pub table: String,
    /// What was repaired or left out while reading.
    pub notices: Vec<String>,
}

/// Writes every derived file of a results folder again, each atomically, from its manifest and its trials alone.
///
/// # Errors
/// When the folder cannot be read (see [`RecordError`]) or written.
pub fn rebuild(folder: &Path) -> Result<Rebuilt, ReportError> {
    let folder = Folder::open(folder)?;
    let manifest = folder.manifest()?;
    let trials = folder.trials()?;
    let analysis = analysis::analyse(&manifest, &trials.records);
    let mut files = Vec::new();
    let tables: [(&'static str, Result<Vec<u8>, csv::CsvError>); 3] = [
        ("trials.csv", csv::trials(&analysis)),
        ("summary.csv", csv::summary(&analysis)),
        ("samples.csv", csv::samples(&analysis)),
    ];
    for (file, bytes) in tables {
        let bytes = bytes.map_err(|cause| ReportError::Csv { file, cause })?;
        files.push(folder.write(file, &bytes)?);
    }
    for (file, bytes) in histograms::files(&analysis) {
        files.push(folder.write(&file, &bytes)?);
    }
    let table = table::render(&analysis);
    Ok(Rebuilt {
        files,
        table,
        notices: trials.notices,
    })
}
