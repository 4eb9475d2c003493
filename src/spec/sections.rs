//! The sections of the file → a draft of the matrix, by the table of keys.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::factors::{self, FactorLevels};
use super::fault::{Faults, Place};
use super::keys::{self, Key, ReadFile};
use super::raw::{Entry, Node, Scalar, Table, Value};
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

struct Reader<'a> {
    draft: Draft,
    files: ReadFile<'a>,
    faults: &'a mut Faults,
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

    fn controls(&mut self, entry: &Entry) {
        let mut seen = BTreeSet::new();
        for item in self.items("controls", entry) {
            let control = match &item.value {
                Value::Scalar(Scalar::Text(text)) if text == "direct" => Control::Direct,
                Value::Scalar(Scalar::Text(text)) if text == "unlimited" => Control::Unlimited,
                Value::Scalar(raw) => {
                    let message = format!("{} is not a control", shown(raw));
                    self.faults.add(&item.at, message, takes("controls"));
                    continue;
                }
                other => {
                    let message = format!("a control is {}", other.kind());
                    self.faults.add(&item.at, message, takes("controls"));
                    continue;
                }
            };
            if !seen.insert(control) {
                self.faults.add(
                    &item.at,
                    "this control is given twice",
                    "remove one of them",
                );
            }
        }
        self.draft.controls = seen.into_iter().collect();
    }

    fn command(&mut self, entry: &Entry) {
        let items = self.items("proxy.command", entry);
        if items.len() > 1000 {
            self.faults.add(
                &entry.node.at,
                "proxy.command is longer than 1000 words",
                takes("proxy.command"),
            );
            return;
        }
        let mut command = Vec::new();
        for item in items {
            let word = match &item.value {
                Value::Scalar(Scalar::Text(word)) if word.contains('\0') => Err("holds NUL"),
                Value::Scalar(Scalar::Text(word)) if word.len() > 65_536 => Err("is too long"),
                Value::Scalar(Scalar::Text(word)) => Ok(word.clone()),
                _ => Err("is not a string"),
            };
            match word {
                Ok(word) => command.push(word),
                Err(wrong) => self.faults.add(
                    &item.at,
                    format!("a word of proxy.command {wrong}"),
                    takes("proxy.command"),
                ),
            }
        }
        self.draft.base.proxy.command = command;
    }

    fn headers(&mut self, entry: &Entry) {
        for header in self.entries("load.headers", entry) {
            let name = match syntax::header_name(&header.key) {
                Ok(name) => name,
                Err(wrong) => {
                    let message = format!("header {} {wrong}", quoted(&header.key));
                    let remedy =
                        "give a name of letters, digits and \"-\" that HTTP itself does not need";
                    self.faults.add(&header.at, message, remedy);
                    continue;
                }
            };
            let value = match &header.node.value {
                Value::Scalar(raw) => read::text(raw).and_then(syntax::header_value),
                other => Err(format!("is {}", other.kind())),
            };
            match value {
                Err(wrong) => {
                    let message = format!("the value of header {name} {wrong}");
                    let remedy = "give a string of visible ASCII and spaces";
                    self.faults.add(&header.node.at, message, remedy);
                }
                Ok(value) => {
                    if self
                        .draft
                        .base
                        .load
                        .headers
                        .insert(name.clone(), value)
                        .is_some()
                    {
                        let message = format!("header {name} is given twice");
                        self.faults.add(&header.at, message, "remove one of them");
                    }
                }
            }
        }
    }

    fn uploads(&mut self, entry: &Entry) {
        for file in self.entries("proxy.files", entry) {
            let path = match syntax::container_path(&file.key) {
                Ok(path) => path,
                Err(wrong) => {
                    let message = format!("the path {} {wrong}", quoted(&file.key));
                    let remedy = "give the absolute path of a file in the container";
                    self.faults.add(&file.at, message, remedy);
                    continue;
                }
            };
            match self.upload(&file.node) {
                Ok(text) => {
                    self.draft.base.proxy.files.insert(path, text);
                }
                Err(wrong) => {
                    let message = format!("the text for {} {wrong}", quoted(&file.key));
                    let remedy = "give the path of a local text file (relative to the matrix), or { text = \"…\" }";
                    self.faults.add(&file.node.at, message, remedy);
                }
            }
        }
    }

    /// A local file's text, or the text itself from `{ text = "…" }`.
    fn upload(&mut self, node: &Node) -> Result<String, Wrong> {
        match &node.value {
            Value::Scalar(raw) => {
                let path = read::text(raw)?;
                syntax::file_path(path)?;
                (self.files)(path).map_err(|cause| format!("cannot be read from {path}: {cause}"))
            }
            Value::Table(table) => match table.as_slice() {
                [Entry { key, node, .. }] if key == "text" => match &node.value {
                    Value::Scalar(Scalar::Text(text)) => Ok(text.clone()),
                    other => Err(format!("is {}", other.kind())),
                },
                _ => Err("is a table with other keys than \"text\"".to_owned()),
            },
            Value::Array(_) => Err("is an array".to_owned()),
        }
    }

    /// The items of an array; a fault and none for anything else.
    fn items<'e>(&mut self, path: &'static str, entry: &'e Entry) -> &'e [Node] {
        self.draft.given.insert(path, entry.node.at.clone());
        match &entry.node.value {
            Value::Array(items) => items,
            other => {
                let message = format!("{path} is {}", other.kind());
                self.faults.add(&entry.node.at, message, takes(path));
                &[]
            }
        }
    }

    /// The entries of a table; a fault and none for anything else.
    fn entries<'e>(&mut self, path: &'static str, entry: &'e Entry) -> &'e [Entry] {
        self.draft.given.insert(path, entry.at.clone());
        match &entry.node.value {
            Value::Table(entries) => entries,
            other => {
                let message = format!("{path} is {}", other.kind());
                self.faults.add(&entry.node.at, message, takes(path));
                &[]
            }
        }
    }
}

fn takes(path: &str) -> String {
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

fn quoted(text: &str) -> String {
    format!("\"{}\"", shortened(text))
}
