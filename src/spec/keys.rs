//! The keys of a matrix: for each its meaning, what it takes, how it is read and how it is printed.
//!
//! One table drives the parser, the factors, the errors' remedies, the cell ids and the reference in docs/matrix.md.

mod load;
mod proxy;
mod rest;

use std::fmt;
use std::sync::Arc;

use super::raw::Scalar;
use super::read::Wrong;
use super::settings::Settings;

/// Reads a file that the matrix refers to, by the path as written; the error is the cause.
pub(crate) type ReadFile<'a> = &'a mut dyn FnMut(&str) -> Result<String, String>;

type Parse = fn(&Scalar, ReadFile<'_>) -> Result<Reading, Wrong>;

/// A scalar key. Each one may be a factor.
pub(crate) struct Key {
    /// Its path: `load.rate`.
    pub(crate) path: &'static str,
    /// One sentence.
    pub(crate) meaning: &'static str,
    /// Type, unit and range, as a noun phrase that follows "give".
    pub(crate) takes: &'static str,
    parse: Parse,
    show: fn(&Settings) -> String,
}

/// A change of one setting.
#[derive(Clone)]
pub(crate) struct Patch(Arc<dyn Fn(&mut Settings) + Send + Sync>);

impl Patch {
    pub(crate) fn apply(&self, settings: &mut Settings) {
        (self.0)(settings);
    }
}

impl fmt::Debug for Patch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Patch")
    }
}

/// What a scalar became.
#[derive(Debug, Clone)]
pub(crate) struct Reading {
    pub(crate) patch: Patch,
    /// The canonical text where it cannot be told from the settings (the path of a file).
    text: Option<String>,
}

/// A reading that puts a value into the settings.
fn put<T: Clone + Send + Sync + 'static>(
    value: Result<T, Wrong>,
    put: fn(&mut Settings, T),
) -> Result<Reading, Wrong> {
    let value = value?;
    Ok(Reading {
        patch: Patch(Arc::new(move |settings| put(settings, value.clone()))),
        text: None,
    })
}

/// The text of a value, or the word for its absence.
fn or<T: fmt::Display>(word: &str, value: Option<T>) -> String {
    value.map_or_else(|| word.to_owned(), |value| value.to_string())
}

/// A value of a key: its canonical text, and what it does.
#[derive(Debug, Clone)]
pub(crate) struct Setting {
    pub(crate) text: String,
    pub(crate) patch: Patch,
}

impl Key {
    pub(crate) fn parse(&self, raw: &Scalar, files: ReadFile<'_>) -> Result<Setting, Wrong> {
        let reading = (self.parse)(raw, files)?;
        let text = match reading.text {
            Some(text) => text,
            None => {
                let mut settings = super::defaults::settings();
                reading.patch.apply(&mut settings);
                self.show(&settings)
            }
        };
        Ok(Setting {
            text,
            patch: reading.patch,
        })
    }

    /// The canonical text of this key's value.
    pub(crate) fn show(&self, settings: &Settings) -> String {
        (self.show)(settings)
    }

    /// Its name as a factor: `cpu`, `memory` and `swap` are short, every other is its path.
    pub(crate) fn factor_name(&self) -> &'static str {
        SHORT
            .iter()
            .find(|(_, path)| *path == self.path)
            .map_or(self.path, |(short, _)| *short)
    }

    pub(crate) fn section(&self) -> &'static str {
        self.path.split_once('.').map_or("", |(section, _)| section)
    }

    pub(crate) fn leaf(&self) -> &'static str {
        self.path.rsplit('.').next().unwrap_or(self.path)
    }
}

/// Short names of factors.
const SHORT: [(&str, &str); 3] = [
    ("cpu", "limits.cpu"),
    ("memory", "limits.memory"),
    ("swap", "limits.swap"),
];

/// The tables of the file that hold scalar keys.
pub(crate) const SECTIONS: [&str; 6] = ["limits", "proxy", "upstream", "load", "tls", "placement"];

/// Every scalar key, in the order of the reference.
pub(crate) fn all() -> impl Iterator<Item = &'static Key> {
    rest::WINDOWS
        .iter()
        .chain(rest::LIMITS)
        .chain(proxy::KEYS)
        .chain(rest::UPSTREAM)
        .chain(load::KEYS)
        .chain(rest::TLS)
        .chain(rest::PLACEMENT)
}

/// The key of a path, or of a factor's short name.
pub(crate) fn find(name: &str) -> Option<&'static Key> {
    let path = SHORT
        .iter()
        .find(|(short, _)| *short == name)
        .map_or(name, |(_, path)| *path);
    all().find(|key| key.path == path)
}

/// A key that holds more than a scalar, or that is not a setting of a trial; never a factor.
pub(crate) struct OtherKey {
    pub(crate) path: &'static str,
    pub(crate) meaning: &'static str,
    pub(crate) takes: &'static str,
    pub(crate) default: &'static str,
}

/// The keys that cannot be factors.
pub(crate) const OTHER: &[OtherKey] = &[
    OtherKey {
        path: "name",
        meaning: "Name of the matrix; part of the name of the results folder",
        takes: "letters, digits, \".\", \"_\" and \"-\", at most 64, beginning with a letter or digit",
        default: "the file's name",
    },
    OtherKey {
        path: "seed",
        meaning: "Seed of the order of trials and of random arrivals",
        takes: "a whole number, 0 to 9223372036854775807",
        default: "1",
    },
    OtherKey {
        path: "repetitions",
        meaning: "Repetitions of every cell, one in each block",
        takes: "a whole number, 1 to 10000",
        default: "3",
    },
    OtherKey {
        path: "controls",
        meaning: "Controls to run in every block: `direct` (no proxy) and `unlimited` (the proxy without limits)",
        takes: "an array of \"direct\" and \"unlimited\", each at most once",
        default: "[]",
    },
    OtherKey {
        path: "matrix",
        meaning: "The factors: each key is a factor, each value its levels; every combination is a cell",
        takes: "a table of arrays",
        default: "no factor, and so one cell",
    },
    OtherKey {
        path: "proxy.command",
        meaning: "Command line of a proxy of `kind = \"custom\"`",
        takes: "an array of strings without NUL, at most 1000",
        default: "[], the image's own",
    },
    OtherKey {
        path: "proxy.files",
        meaning: "Files for a proxy of `kind = \"custom\"`, uploaded before it starts: each key is the absolute path in the container",
        takes: "a table; each value the path of a local text file (relative to the matrix), or `{ text = \"…\" }`",
        default: "{}",
    },
    OtherKey {
        path: "load.headers",
        meaning: "Further request headers",
        takes: "a table of strings: names of letters, digits and \"-\", values of visible ASCII and spaces; not those that HTTP itself needs",
        default: "{}",
    },
];
