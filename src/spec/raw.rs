//! TOML text → a tree of values that know where they were written.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::fault::{Faults, Place};

/// A value and where it was written.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    pub(super) at: Place,
    pub(super) value: Value,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Scalar(Scalar),
    Array(Vec<Node>),
    Table(Table),
}

/// A value without parts. Numbers keep their text, so that they are read exactly.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Scalar {
    Text(String),
    Integer(String),
    Float(String),
    Flag(bool),
    Datetime(String),
}

impl Value {
    /// The kind of value, with its article.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Scalar(scalar) => scalar.kind(),
            Self::Array(_) => "an array",
            Self::Table(_) => "a table",
        }
    }
}

impl Scalar {
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "a string",
            Self::Integer(_) => "a whole number",
            Self::Float(_) => "a number",
            Self::Flag(_) => "true or false",
            Self::Datetime(_) => "a date",
        }
    }
}

/// Entries in the order of the text.
pub(super) type Table = Vec<Entry>;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry {
    pub(super) key: String,
    /// Of the key.
    pub(super) at: Place,
    pub(super) node: Node,
}

/// The file's tree. Syntax errors go to `faults`; what could be read is returned all the same.
pub(super) fn parse_file(text: &str, faults: &mut Faults) -> Table {
    let (table, errors) = syntax_errors(text);
    for (span, message) in errors {
        faults.add(&Place::new(0, span), message, "correct the syntax");
    }
    flatten_matrix(table_of(table, &|span| Place::new(0, span)))
}

/// What could be read of a text, and what could not, each with its place.
pub(super) fn syntax_errors(text: &str) -> (DeTable<'_>, Vec<(Range<usize>, String)>) {
    let (table, errors) = DeTable::parse_recoverable(text);
    let errors = errors.into_iter().map(|error| {
        let message = format!("not valid TOML: {}", error.message());
        (error.span().unwrap_or(0..0), message)
    });
    (table.into_inner(), errors.collect())
}

pub(super) const MATRIX: &str = "matrix";

/// Puts the factors of `[matrix]` side by side: `load.rate = […]` and `[matrix.load] rate = […]` both become
/// `"load.rate" = […]`.
pub(super) fn flatten_matrix(mut root: Table) -> Table {
    for entry in root.iter_mut().filter(|entry| entry.key == MATRIX) {
        if let Value::Table(table) = &mut entry.node.value {
            let mut flat = Vec::new();
            flatten("", std::mem::take(table), &mut flat);
            *table = flat;
        }
    }
    root
}

fn flatten(prefix: &str, table: Table, flat: &mut Table) {
    for mut entry in table {
        if !prefix.is_empty() {
            // No factor's name is that long, and a long prefix would be copied for every entry below it.
            let prefix: String = prefix.chars().take(64).collect();
            entry.key = format!("{prefix}.{}", entry.key);
        }
        match entry.node.value {
            Value::Table(inner) if !inner.is_empty() => flatten(&entry.key, inner, flat),
            value => {
                entry.node.value = value;
                flat.push(entry);
            }
        }
    }
}

pub(super) type Placing<'a> = &'a dyn Fn(Range<usize>) -> Place;

fn table_of(table: DeTable<'_>, place: Placing<'_>) -> Table {
    let mut entries: Table = table
        .into_iter()
        .map(|(key, value)| Entry {
            at: place(key.span()),
            key: key.into_inner().into_owned(),
            node: node_of(value, place),
        })
        .collect();
    entries.sort_by(|a, b| a.at.cmp(&b.at));
    entries
}

/// The parser bounds the nesting (80 levels), and so the recursion here.
pub(super) fn node_of(value: Spanned<DeValue<'_>>, place: Placing<'_>) -> Node {
    let at = place(value.span());
    let value = match value.into_inner() {
        DeValue::String(text) => Value::Scalar(Scalar::Text(text.into_owned())),
        DeValue::Integer(number) => Value::Scalar(integer(number.as_str(), number.radix())),
        DeValue::Float(number) => Value::Scalar(Scalar::Float(number.as_str().to_owned())),
        DeValue::Boolean(flag) => Value::Scalar(Scalar::Flag(flag)),
        DeValue::Datetime(date) => Value::Scalar(Scalar::Datetime(date.to_string())),
        DeValue::Array(items) => {
            Value::Array(items.into_iter().map(|item| node_of(item, place)).collect())
        }
        DeValue::Table(table) => Value::Table(table_of(table, place)),
    };
    Node { at, value }
}

/// Hexadecimal, octal and binary integers become decimal; too long ones keep their text and fail as numbers later.
fn integer(text: &str, radix: u32) -> Scalar {
    if radix == 10 {
        return Scalar::Integer(text.to_owned());
    }
    match i128::from_str_radix(text, radix) {
        Ok(number) => Scalar::Integer(number.to_string()),
        Err(_) => Scalar::Integer(text.to_owned()),
    }
}

#[cfg(test)]
pub(super) mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// A value by its dotted path.
    pub(in crate::spec) fn find<'t>(table: &'t Table, path: &str) -> &'t Value {
        let mut node: Option<&Value> = None;
        for key in path.split('.') {
            let table = match node {
                None => table,
                Some(Value::Table(table)) => table,
                _ => panic!("no table at {key}"),
            };
            node = Some(&table.iter().find(|e| e.key == key).unwrap().node.value);
        }
        node.unwrap()
    }

    fn read(file: &str) -> (Table, Faults) {
        let mut faults = Faults::default();
        let root = parse_file(file, &mut faults);
        (root, faults)
    }

    #[test]
    fn order_is_that_of_the_text() {
        let (root, faults) = read("zebra = 1\napple = 2\n[matrix]\ny = 1\nb = 2");
        assert!(faults.is_empty());
        let keys: Vec<_> = root.iter().map(|e| e.key.as_str()).collect();
        assert_eq!(keys, ["zebra", "apple", "matrix"]);
    }

    #[test]
    fn numbers_keep_their_text() {
        let (root, _) = read("a = 0.10\nb = 1_000\nc = 0x10\nd = 1e3");
        assert_eq!(
            *find(&root, "a"),
            Value::Scalar(Scalar::Float("0.10".into()))
        );
        assert_eq!(
            *find(&root, "b"),
            Value::Scalar(Scalar::Integer("1000".into()))
        );
        assert_eq!(
            *find(&root, "c"),
            Value::Scalar(Scalar::Integer("16".into()))
        );
        assert_eq!(
            *find(&root, "d"),
            Value::Scalar(Scalar::Float("1e3".into()))
        );
    }

    #[test]
    fn deep_nesting_is_refused_not_followed() {
        let deep = format!("a = {}{}", "[".repeat(100_000), "]".repeat(100_000));
        let (_, faults) = read(&deep);
        assert!(!faults.is_empty());
    }
}
