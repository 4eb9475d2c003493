//! Keys that hold more than a scalar: controls, a command line, headers, files to upload.

use std::collections::BTreeSet;

use super::raw::{Entry, Node, Scalar, Value};
use super::read::{self, Wrong};
use super::sections::{Reader, quoted, shown, takes};
use super::syntax;
use crate::record::trial::Control;

impl Reader<'_> {
    pub(super) fn controls(&mut self, entry: &Entry) {
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

    pub(super) fn command(&mut self, entry: &Entry) {
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

    pub(super) fn headers(&mut self, entry: &Entry) {
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

    pub(super) fn uploads(&mut self, entry: &Entry) {
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
