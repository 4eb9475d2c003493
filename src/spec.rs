//! `matrix.toml` → a validated [`Matrix`], with every fault positioned.
//!
//! Everything here is text in, values or errors out; only [`load`] reads files, in [`mod@file`]. The stages: [`raw`]
//! makes a tree that knows where each value was written, [`overrides`] merges the `--set`s; [`sections`] and [`factors`]
//! read the tree by the table of [`keys`]; [`rules`] looks for combinations that cannot be. Each stage adds to one list
//! of faults, so that a person corrects them all at once.

mod cascade;
pub mod defaults;
mod engine;
mod factors;
mod fault;
mod file;
mod hash;
mod keys;
mod overrides;
pub mod placement;
mod raw;
mod read;
mod reference;
mod render;
mod rules;
mod sections;
pub mod settings;
mod structured;
mod suggest;
mod syntax;
#[cfg(test)]
mod tests;
mod text;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;

pub(crate) use factors::matters_to;
pub use factors::{FactorLevels, Level};
pub use fault::{SpecError, SpecErrors};
pub use overrides::Override;
pub use reference::reference;
pub(crate) use text::printable;

use crate::record::trial::Control;
use fault::{Faults, Place};
use file::{Unreadable, read_text};
use keys::ReadFile;
use settings::Settings;
use text::Sources;

/// Most trials that one matrix may ask for, controls included. At half a minute each this is a month.
pub const MAX_TRIALS: u64 = 100_000;

/// Longest file that is read, in bytes.
pub const MAX_FILE: usize = 1 << 20;

/// A validated matrix. Its serialized form is what the manifest holds as the resolved spec.
#[derive(Debug, Clone, Serialize)]
pub struct Matrix {
    /// Safe as part of a path: letters, digits, `.`, `_` and `-`.
    pub name: String,
    /// Seed of the order and of every trial.
    pub seed: u64,
    /// Repetitions of every cell; one block each.
    pub repetitions: u32,
    /// Controls in every block, in the order of [`Control`].
    pub controls: Vec<Control>,
    /// The factors, in the order of the file.
    pub factors: Vec<FactorLevels>,
    /// The settings before any factor's level is applied.
    pub base: Settings,
    /// What is allowed but probably not meant.
    #[serde(skip)]
    pub warnings: Vec<SpecError>,
    #[serde(skip)]
    implied: Implied,
    #[serde(skip)]
    given: BTreeMap<&'static str, Place>,
    #[serde(skip)]
    sources: Arc<Sources>,
}

/// Settings whose default depends on the proxy's kind, and that the matrix leaves to it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Implied {
    image: bool,
    admin_port: bool,
}

impl Implied {
    fn resolve(self, settings: &mut Settings) {
        let kind = settings.proxy.kind;
        if self.image {
            defaults::image(kind)
                .unwrap_or_default()
                .clone_into(&mut settings.proxy.image);
        }
        if self.admin_port {
            settings.proxy.admin_port = defaults::admin_port(kind);
        }
    }
}

/// Reads a matrix from its text.
///
/// `name` is the file's name as errors show it. `files` reads a file that the matrix refers to, by the path as
/// written, and says why if it cannot.
///
/// # Errors
/// All faults at once.
pub fn parse(
    name: &str,
    text: &str,
    overrides: &[Override],
    files: &mut dyn FnMut(&str) -> Result<String, String>,
) -> Result<Matrix, SpecErrors> {
    // Editors of Windows put a byte order mark before UTF-8; columns count from what is seen.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let sources = Arc::new(Sources {
        file_name: name.to_owned(),
        file: text.to_owned(),
        overrides: overrides.iter().map(|o| o.as_str().to_owned()).collect(),
    });
    let mut faults = Faults::default();
    match read(text, overrides, files, &sources, &mut faults) {
        Some(matrix) if faults.is_empty() => Ok(matrix),
        _ => Err(faults.into_errors(&sources)),
    }
}

fn read(
    text: &str,
    overrides: &[Override],
    files: ReadFile<'_>,
    sources: &Arc<Sources>,
    faults: &mut Faults,
) -> Option<Matrix> {
    let longest = overrides
        .iter()
        .map(|o| o.as_str().len())
        .max()
        .unwrap_or(0);
    if text.len().max(longest) > MAX_FILE {
        faults.add(
            &Place::default(),
            format!("the matrix is longer than {MAX_FILE} bytes"),
            "split it, or give fewer levels",
        );
        return None;
    }
    let mut root = raw::parse_file(text, faults);
    let syntax_errors = faults.len();
    for (n, text) in overrides.iter().enumerate() {
        overrides::apply(&mut root, n + 1, text.as_str(), faults);
    }
    let mut draft = sections::read(&root, files, faults);
    if draft.name.is_empty() {
        draft.name = syntax::name_from(&sources.file_name);
    }
    factors::check_size(&draft, faults);
    let mut warnings = Faults::default();
    // After a syntax error values are missing that the combinations need.
    if syntax_errors == 0 {
        rules::check(&draft, faults, &mut warnings);
    } else {
        faults.drop_after_syntax_errors(syntax_errors, text);
    }
    Some(draft.into_matrix(warnings, sources))
}

/// The CPUs that a list in the kernel's syntax names, in order; `None` if it is not one.
#[must_use]
pub fn cpu_list(list: &str) -> Option<Vec<u32>> {
    syntax::cpu_numbers(list)
}

impl Matrix {
    /// The file's text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.sources.file
    }

    /// The settings with these levels in place, one a factor; `None` leaves the base's value.
    pub(crate) fn with_levels(&self, levels: &[Option<u32>]) -> Settings {
        let mut settings = self.base.clone();
        for (factor, level) in self.factors.iter().zip(levels) {
            let level = level.and_then(|index| factor.levels.get(index as usize));
            if let Some(level) = level {
                level.patch.apply(&mut settings);
            }
        }
        self.implied.resolve(&mut settings);
        settings
    }
}

/// Why a matrix could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file itself.
    #[error("cannot read the matrix {path}: {cause}; {remedy}")]
    Read {
        /// Path as given, made printable.
        path: String,
        /// What the system said, or what is in it.
        cause: String,
        /// What would help.
        remedy: &'static str,
    },
    /// What is in it.
    #[error(transparent)]
    Spec(#[from] SpecErrors),
}

/// Reads the file of a matrix, and the files that it refers to, by their paths relative to it.
///
/// # Errors
/// The file cannot be read, or all faults of what is in it.
pub fn load(path: &Path, overrides: &[Override]) -> Result<Matrix, LoadError> {
    let text = read_text(path).map_err(|Unreadable { cause, remedy }| LoadError::Read {
        path: printable(&path.display().to_string()),
        cause,
        remedy,
    })?;
    let folder = path.parent().map_or_else(PathBuf::new, Path::to_path_buf);
    let mut files =
        |reference: &str| read_text(&folder.join(reference)).map_err(|error| error.cause);
    Ok(parse(
        &path.display().to_string(),
        &text,
        overrides,
        &mut files,
    )?)
}
