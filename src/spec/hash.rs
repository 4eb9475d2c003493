//! The identity of a matrix.

use serde::Serialize;
use sha2::{Digest, Sha256};

use super::settings::Settings;
use super::{FactorLevels, Level, Matrix, defaults};
use crate::record::trial::Control;

/// What decides what is measured, and nothing else.
#[derive(Serialize)]
struct Resolved<'a> {
    seed: u64,
    repetitions: u32,
    controls: &'a [Control],
    factors: Vec<Factor<'a>>,
    base: Settings,
}

#[derive(Serialize)]
struct Factor<'a> {
    name: &'a str,
    levels: Vec<LevelContent<'a>>,
}

#[derive(Serialize)]
struct LevelContent<'a> {
    text: &'a str,
    /// The text of the file that a level of `proxy.config` names.
    content: Option<String>,
}

impl Matrix {
    /// SHA-256 of everything that decides what is measured, in lowercase hex. Equal for two files that differ in
    /// comments, order of tables, spelling of quantities, or in giving a default. The name does not count; the text of
    /// the files that the matrix refers to does.
    #[must_use]
    pub fn hash(&self) -> String {
        let mut base = self.base.clone();
        self.implied.resolve(&mut base);
        let resolved = Resolved {
            seed: self.seed,
            repetitions: self.repetitions,
            controls: &self.controls,
            factors: self.factors.iter().map(factor).collect(),
            base,
        };
        // Strings, whole numbers and finite floats always serialize.
        let json = serde_json::to_vec(&resolved).unwrap_or_default();
        let digest = Sha256::digest(json);
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

fn factor(factor: &FactorLevels) -> Factor<'_> {
    let content = |level: &Level| {
        let mut settings = defaults::settings();
        level.patch.apply(&mut settings);
        settings.proxy.config
    };
    Factor {
        name: &factor.name,
        levels: factor
            .levels
            .iter()
            .map(|level| LevelContent {
                text: &level.text,
                content: content(level),
            })
            .collect(),
    }
}
