//! The sections of the file → a draft of the matrix, by the table of keys.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::factors::{self, FactorLevels};
use super::fault::{Faults, Place};
use super::keys::{self, Key, ReadFile};
use super::raw::{Entry, Scalar, Table, Value};
use super::read::{self, Wrong};
use super::settings::Settings;
use super::text::{Sources, shortened};
use super::{Implied, Matrix, SpecError, defaults, suggest, syntax};
use crate::record::trial::Control;

/// A matrix that is being read: what was right so far, and what was not.
#[derive(Debug)]
pub(super) struct Draft {
    /// Empty until given.
    pub(super) name: String,
    pub(super) seed: u64,
    pub(super) repetitions: u32,
    pub(super) controls: Vec<Control>,
    pub(super) factors: Vec<FactorLevels>,
    pub(super) base: Settings,
    /// Where each key outside `[matrix]` was given.
    pub(super) given: BTreeMap<&'static str, Place>,
    /// Keys whose value could not be read, so that no combination with them is judged.
    pub(super) broken: BTreeSet<&'static str>,
    /// The key `matrix`.
    pub(super) matrix_at: Place,
}

impl Draft {
    pub(super) fn factor(&self, path: &str) -> Option<&FactorLevels> {
        self.factors.iter().find(|factor| factor.path == path)
    }

    pub(super) fn implied(&self) -> Implied {
        let left = |path: &str| !self.given.contains_key(path) && self.factor(path).is_none();
        Implied {
            image: left("proxy.image"),
            admin_port: left("proxy.admin_port"),
        }
    }

    pub(super) fn into_matrix(self, warnings: Faults, sources: &Arc<Sources>) -> Matrix {
        let mut base = self.base.clone();
        let implied = self.implied();
        implied.resolve(&mut base);
        let warnings: Vec<SpecError> = warnings.into_errors(sources).errors;
        Matrix {
            name: self.name,
            seed: self.seed,
            repetitions: self.repetitions,
            controls: self.controls,
            factors: self.factors,
            base,
            warnings,
            implied,
            given: self.given,
            sources: Arc::clone(sources),
        }
    }
}

/// Reads every section; faults are added, and what is faulty keeps its default.
pub(super) fn read(root: &Table, files: ReadFile<'_>, faults: &mut Faults) -> Draft {
    let mut reader = Reader {
        draft: Draft {
            name: String::new(),
            seed: defaults::SEED,
            repetitions: defaults::REPETITIONS,
            controls: Vec::new(),
            factors: Vec::new(),
            base: defaults::settings(),
            given: BTreeMap::new(),
            broken: BTreeSet::new(),
            matrix_at: Place::default(),
        },
        files,
        faults,
    };
    let (matrix, rest): (Vec<&Entry>, Vec<&Entry>) = root.iter().partition(|e| e.key == "matrix");
    for entry in rest {
        reader.top(entry);
    }
    for entry in matrix {
        reader.draft.matrix_at = entry.at.clone();
        factors::read(&mut reader.draft, &entry.node, reader.files, reader.faults);
    }
    factors::check_overridden(&reader.draft, reader.faults);
    reader.draft
}

/// Reads sections into a draft. Keys that hold more than a scalar are read in [`super::structured`].
pub(super) struct Reader<'a> {
    pub(super) draft: Draft,
    pub(super) files: ReadFile<'a>,
    pub(super) faults: &'a mut Faults,
}

impl Reader<'_> {
    fn top(&mut self, entry: &Entry) {
        let section = keys::SECTIONS.iter().find(|name| **name == entry.key);
        match (section, entry.key.as_str()) {
            (Some(section), _) => match &entry.node.value {
                Value::Table(table) => {
                    for inner in table {
                        self.inner(section, inner);
                    }
                }
                other => self.faults.add(
                    &entry.node.at,
                    format!("{section} is {}, not a table", other.kind()),
                    format!("begin it with [{section}]"),
                ),
            },
            (None, "name") => {
                if let Some(name) =
                    self.other("name", entry, |raw| read::text(raw).and_then(syntax::name))
                {
                    self.draft.name = name;
                }
            }
            (None, "seed") => {
                let most = i64::MAX.unsigned_abs();
                if let Some(seed) = self.other("seed", entry, |raw| read::count(raw, 0, most)) {
                    self.draft.seed = seed;
                }
            }
            (None, "repetitions") => {
                let count = self.other("repetitions", entry, |raw| read::count32(raw, 1, 10_000));
                if let Some(count) = count {
                    self.draft.repetitions = count;
                }
            }
            (None, "controls") => self.controls(entry),
            (None, path) => match keys::find(path).filter(|key| key.path == path) {
                Some(key) => self.scalar(key, entry),
                None => self.unknown("", entry),
            },
        }
    }

    fn inner(&mut self, section: &'static str, entry: &Entry) {
        let path = format!("{section}.{}", entry.key);
        match path.as_str() {
            "proxy.command" => self.command(entry),
            "proxy.files" => self.uploads(entry),
            "load.headers" => self.headers(entry),
            _ => match keys::all().find(|key| key.path == path) {
                Some(key) => self.scalar(key, entry),
                None => self.unknown(section, entry),
            },
        }
    }

    fn unknown(&mut self, section: &str, entry: &Entry) {
        let place = match section {
            "" => String::new(),
            section => format!(" in [{section}]"),
        };
        let quoted = (section.is_empty() && entry.key.contains('.'))
            .then(|| keys::all().find(|key| key.path == entry.key))
            .flatten();
        let remedy = match quoted {
            Some(key) => format!("write {} without quotes", key.path),
            None => suggest::key(section, &entry.key),
        };
        let name = shortened(&entry.key);
        self.faults
            .add(&entry.at, format!("unknown key \"{name}\"{place}"), remedy);
    }

    /// A scalar key outside `[matrix]`.
    fn scalar(&mut self, key: &'static Key, entry: &Entry) {
        self.draft.given.insert(key.path, entry.node.at.clone());
        let raw = match &entry.node.value {
            Value::Scalar(raw) => raw,
            other => {
                let also = match other {
                    Value::Array(_) => format!(
                        ", or make it a factor: [matrix] \"{}\" = […]",
                        key.factor_name()
                    ),
                    _ => String::new(),
                };
                self.faults.add(
                    &entry.node.at,
                    format!("{} is {}", key.path, other.kind()),
                    format!("give {}{also}", key.takes),
                );
                self.draft.broken.insert(key.path);
                return;
            }
        };
        match key.parse(raw, self.files) {
            Ok(setting) => setting.patch.apply(&mut self.draft.base),
            Err(wrong) => {
                self.faults.add(
                    &entry.node.at,
                    format!("{} {} {wrong}", key.path, shown(raw)),
                    format!("give {}", key.takes),
                );
                self.draft.broken.insert(key.path);
            }
        }
    }

    /// A scalar that is not a setting of a trial.
    fn other<T>(
        &mut self,
        path: &'static str,
        entry: &Entry,
        parse: impl FnOnce(&Scalar) -> Result<T, Wrong>,
    ) -> Option<T> {
        self.draft.given.insert(path, entry.node.at.clone());
        let wrong = match &entry.node.value {
            Value::Scalar(raw) => match parse(raw) {
                Ok(value) => return Some(value),
                Err(wrong) => format!("{path} {} {wrong}", shown(raw)),
            },
            other => format!("{path} is {}", other.kind()),
        };
        self.faults.add(&entry.node.at, wrong, takes(path));
        self.draft.broken.insert(path);
        None
    }
}

/// The remedy for a key that is no setting.
pub(super) fn takes(path: &str) -> String {
    keys::OTHER
        .iter()
        .find(|key| key.path == path)
        .map_or_else(String::new, |key| format!("give {}", key.takes))
}

/// A scalar as it stands in an error.
pub(super) fn shown(raw: &Scalar) -> String {
    match raw {
        Scalar::Text(text) => quoted(text),
        Scalar::Integer(text) | Scalar::Float(text) | Scalar::Datetime(text) => shortened(text),
        Scalar::Flag(flag) => flag.to_string(),
    }
}

pub(super) fn quoted(text: &str) -> String {
    format!("\"{}\"", shortened(text))
}
