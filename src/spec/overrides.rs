//! `--set KEY=VALUE`, merged into the tree of the file.

use toml::de::{DeTable, DeValue};

use super::fault::{Faults, Place};
use super::keys;
use super::raw::{Entry, MATRIX, Node, Scalar, Table, Value, flatten_matrix, node_of};

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

/// Merges one override: tables entry by entry, everything else replaced.
pub(super) fn apply(root: &mut Table, source: usize, text: &str, faults: &mut Faults) {
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::super::raw::{parse_file, tests::find};
    use super::*;

    fn with(file: &str, overrides: &[&str]) -> (Table, Faults) {
        let mut faults = Faults::default();
        let mut root = parse_file(file, &mut faults);
        for (n, text) in overrides.iter().enumerate() {
            apply(&mut root, n + 1, text, &mut faults);
        }
        (root, faults)
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
}
