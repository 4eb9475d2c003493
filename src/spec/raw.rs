//! TOML text → a tree of values that know where they were written, with the `--set` overrides merged in.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::fault::{Faults, Place};
use super::keys;

/// One `--set KEY=VALUE`, as given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Override(String);

impl From<&str> for Override {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl From<String> for Override {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl Override {
    /// The text as given.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

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
    let (table, errors) = DeTable::parse_recoverable(text);
    for error in errors {
        let at = Place::new(0, error.span().unwrap_or(0..0));
        faults.add(
            &at,
            format!("not valid TOML: {}", error.message()),
            "correct the syntax",
        );
    }
    flatten_matrix(table_of(table.into_inner(), &|span| Place::new(0, span)))
}

const MATRIX: &str = "matrix";

/// Puts the factors of `[matrix]` side by side: `load.rate = […]` and `[matrix.load] rate = […]` both become
/// `"load.rate" = […]`.
fn flatten_matrix(mut root: Table) -> Table {
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

/// Merges one override: tables entry by entry, everything else replaced.
pub(super) fn apply_override(root: &mut Table, source: usize, text: &str, faults: &mut Faults) {
    let all = Place::new(source, 0..text.len());
    let Some((key, value)) = text.split_once('=') else {
        faults.add(
            &all,
            "--set has no \"=\"",
            "give KEY=VALUE, such as load.rate=500",
        );
        return;
    };
    let Some(path) = key_path(key) else {
        faults.add(
            &all,
            "--set has no valid key before its \"=\"",
            "give the path of a key, such as load.rate=500",
        );
        return;
    };
    let Some(node) = override_value(source, key.len() + 1, value, faults) else {
        return;
    };
    let at = Place::new(source, 0..key.len());
    let nested = path.into_iter().rev().fold(node, |node, key| Node {
        at: all.clone(),
        value: Value::Table(vec![Entry {
            key,
            at: at.clone(),
            node,
        }]),
    });
    if let Value::Table(table) = nested.value {
        merge(root, flatten_matrix(table), Names::Keys);
    }
}

/// The parts of a dotted key, by TOML's own rules for quotes.
fn key_path(key: &str) -> Option<Vec<String>> {
    if key.contains(['\n', '#']) {
        return None;
    }
    let probe = format!("{key}=0");
    let (table, errors) = DeTable::parse_recoverable(&probe);
    if !errors.is_empty() {
        return None;
    }
    let mut path = Vec::new();
    let mut table = table.into_inner();
    loop {
        let mut entries = table.into_iter();
        let (key, value) = entries.next()?;
        if entries.next().is_some() {
            return None;
        }
        path.push(key.into_inner().into_owned());
        match value.into_inner() {
            DeValue::Table(inner) => table = inner,
            _ => return Some(path),
        }
    }
}

/// A TOML value, else the text itself; a text that begins like a TOML string, array or table must be one.
fn override_value(source: usize, offset: usize, text: &str, faults: &mut Faults) -> Option<Node> {
    let lead = text.len() - text.trim_start().len();
    let trimmed = text.trim();
    let start = offset + lead;
    let place = move |span: std::ops::Range<usize>| {
        Place::new(source, span.start + start..span.end + start)
    };
    let (value, errors) = DeValue::parse_recoverable(trimmed);
    let Some(error) = errors.first() else {
        return Some(node_of(value, &place));
    };
    if trimmed.starts_with(['"', '\'', '[', '{']) {
        faults.add(
            &place(error.span().unwrap_or(0..0)),
            format!("the value of --set is not valid TOML: {}", error.message()),
            "correct the value, and quote it for the shell",
        );
        return None;
    }
    Some(Node {
        at: place(0..trimmed.len()),
        value: Value::Scalar(Scalar::Text(trimmed.to_owned())),
    })
}

/// What the keys of a table are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Names {
    Keys,
    /// `cpu` and `limits.cpu` are the same one.
    Factors,
}

impl Names {
    fn same(self, a: &str, b: &str) -> bool {
        let path = |name: &str| keys::find(name).map(|key| key.path);
        a == b || (self == Self::Factors && path(a).is_some() && path(a) == path(b))
    }
}

fn merge(into: &mut Table, from: Table, names: Names) {
    for entry in from {
        match into.iter_mut().find(|old| names.same(&old.key, &entry.key)) {
            None => into.push(entry),
            Some(old) => match (&mut old.node.value, entry.node.value) {
                (Value::Table(old), Value::Table(new)) => {
                    let inner = match entry.key.as_str() {
                        MATRIX => Names::Factors,
                        _ => Names::Keys,
                    };
                    merge(old, new, inner);
                }
                (_, value) => {
                    old.at = entry.at;
                    old.node = Node {
                        at: entry.node.at,
                        value,
                    };
                }
            },
        }
    }
}

type Placing<'a> = &'a dyn Fn(std::ops::Range<usize>) -> Place;

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
fn node_of(value: Spanned<DeValue<'_>>, place: Placing<'_>) -> Node {
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
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn find<'t>(table: &'t Table, path: &str) -> &'t Value {
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

    fn with(file: &str, overrides: &[&str]) -> (Table, Faults) {
        let mut faults = Faults::default();
        let mut root = parse_file(file, &mut faults);
        for (n, text) in overrides.iter().enumerate() {
            apply_override(&mut root, n + 1, text, &mut faults);
        }
        (root, faults)
    }

    #[test]
    fn order_is_that_of_the_text() {
        let (root, faults) = with("zebra = 1\napple = 2\n[matrix]\ny = 1\nb = 2", &[]);
        assert!(faults.is_empty());
        let keys: Vec<_> = root.iter().map(|e| e.key.as_str()).collect();
        assert_eq!(keys, ["zebra", "apple", "matrix"]);
    }

    #[test]
    fn numbers_keep_their_text() {
        let (root, _) = with("a = 0.10\nb = 1_000\nc = 0x10\nd = 1e3", &[]);
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
    fn overrides_replace_scalars_and_keep_neighbours() {
        let (root, faults) = with(
            "[load]\nrate = 1\nusers = 2",
            &[
                "load.rate=500",
                "proxy.image=a/b:c",
                "load.headers.\"x-a.b\"=\"1\"",
            ],
        );
        assert!(faults.is_empty());
        assert_eq!(
            *find(&root, "load.rate"),
            Value::Scalar(Scalar::Integer("500".into()))
        );
        assert_eq!(
            *find(&root, "load.users"),
            Value::Scalar(Scalar::Integer("2".into()))
        );
        assert_eq!(
            *find(&root, "proxy.image"),
            Value::Scalar(Scalar::Text("a/b:c".into()))
        );
        let Value::Table(headers) = find(&root, "load.headers") else {
            panic!("a table")
        };
        assert_eq!(headers.first().unwrap().key, "x-a.b");
    }

    #[test]
    fn broken_overrides_are_faults() {
        for text in [
            "",
            "load.rate",
            "=5",
            "a b=5",
            "x=[1",
            "x=\"",
            "a\nb=1",
            "#=1",
            "a..b=1",
        ] {
            let (_, faults) = with("", &[text]);
            assert!(!faults.is_empty(), "{text:?}");
        }
    }

    #[test]
    fn deep_nesting_is_refused_not_followed() {
        let deep = format!("a = {}{}", "[".repeat(100_000), "]".repeat(100_000));
        let (_, faults) = with(&deep, &[]);
        assert!(!faults.is_empty());
    }
}
