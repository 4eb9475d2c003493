//! `[matrix]`: factors, their levels, and how many trials they make.

use std::collections::BTreeMap;

use serde::Serialize;

use super::MAX_TRIALS;
use super::fault::{Faults, Place};
use super::keys::{self, Key, Patch, ReadFile};
use super::raw::{Entry, Node, Value};
use super::sections::{Draft, shown};
use super::suggest;
use super::text::shortened;
use crate::record::trial::Control;
use crate::units::counted;

/// A factor and its levels, in the order of the file.
#[derive(Debug, Clone, Serialize)]
pub struct FactorLevels {
    /// `cpu`, `memory`, `swap`, or the path of a setting.
    pub name: String,
    /// The path of its setting: `limits.cpu` for `cpu`.
    pub path: &'static str,
    /// At least one; no two are equal.
    pub levels: Vec<Level>,
    /// Levels as written, right or wrong.
    #[serde(skip)]
    pub(super) written: usize,
    /// Of the factor's name.
    #[serde(skip)]
    pub(super) at: Place,
}

/// One level of a factor.
#[derive(Debug, Clone, Serialize)]
pub struct Level {
    /// Canonical text: `250m`, `64Mi`, `500`, `h2`.
    pub text: String,
    #[serde(skip)]
    pub(super) patch: Patch,
    #[serde(skip)]
    pub(super) at: Place,
}

/// Whether a factor changes anything for a control. `direct` has no proxy, so neither limits, nor the proxy's settings,
/// nor TLS, which the upstream does not speak; `unlimited` is the proxy without limits.
pub(crate) fn matters_to(control: Control, path: &str) -> bool {
    let limits = path.starts_with("limits.");
    match control {
        Control::Unlimited => !limits,
        Control::Direct => {
            let proxy = path.starts_with("proxy.") || path.starts_with("tls.");
            !(limits || proxy || path == "placement.proxy")
        }
    }
}

/// The tree has the factors side by side, each under its whole path.
pub(super) fn read(draft: &mut Draft, node: &Node, files: ReadFile<'_>, faults: &mut Faults) {
    match &node.value {
        Value::Table(table) => {
            for entry in table {
                read_factor(draft, entry, files, faults);
            }
        }
        other => faults.add(
            &node.at,
            format!("matrix is {}, not a table", other.kind()),
            "begin it with [matrix], and give each factor an array of levels",
        ),
    }
}

fn read_factor(draft: &mut Draft, entry: &Entry, files: ReadFile<'_>, faults: &mut Faults) {
    let Entry {
        key: name,
        at,
        node,
    } = entry;
    let Some(key) = keys::find(name) else {
        let (message, remedy) = unknown(name);
        faults.add(at, message, remedy);
        return;
    };
    if draft.factor(key.path).is_some() {
        faults.add(
            at,
            format!("factor \"{}\" is given twice", key.factor_name()),
            "put all levels into one array",
        );
        return;
    }
    let Value::Array(items) = &node.value else {
        let written = match &node.value {
            Value::Scalar(raw) => format!(
                "write [{}], or set {} outside [matrix]",
                shown(raw),
                key.path
            ),
            _ => "give an array of levels".to_owned(),
        };
        faults.add(
            &node.at,
            format!(
                "factor \"{}\" is {}, not an array of levels",
                key.factor_name(),
                node.value.kind()
            ),
            written,
        );
        return;
    };
    if items.is_empty() {
        faults.add(
            &node.at,
            format!("factor \"{}\" has no levels", key.factor_name()),
            "give at least one, or remove the factor",
        );
        return;
    }
    let levels = read_levels(key, items, files, faults);
    if levels.len() < items.len() && levels.is_empty() {
        draft.broken.insert(key.path);
    }
    draft.factors.push(FactorLevels {
        name: key.factor_name().to_owned(),
        path: key.path,
        levels,
        written: items.len(),
        at: at.clone(),
    });
}

fn read_levels(
    key: &'static Key,
    items: &[Node],
    files: ReadFile<'_>,
    faults: &mut Faults,
) -> Vec<Level> {
    let mut levels = Vec::new();
    let mut seen: BTreeMap<String, String> = BTreeMap::new();
    for item in items {
        let Value::Scalar(raw) = &item.value else {
            faults.add(
                &item.at,
                format!(
                    "a level of \"{}\" is {}",
                    key.factor_name(),
                    item.value.kind()
                ),
                format!("give {}", key.takes),
            );
            continue;
        };
        match key.parse(raw, files) {
            Err(wrong) => faults.add(
                &item.at,
                format!("level {} of \"{}\" {wrong}", shown(raw), key.factor_name()),
                format!("give {}", key.takes),
            ),
            Ok(setting) => {
                if let Some(first) = seen.insert(setting.text.clone(), shown(raw)) {
                    faults.add(
                        &item.at,
                        format!(
                            "level {} of \"{}\" equals {first}",
                            shown(raw),
                            key.factor_name()
                        ),
                        "remove one of them",
                    );
                    continue;
                }
                levels.push(Level {
                    text: setting.text,
                    patch: setting.patch,
                    at: item.at.clone(),
                });
            }
        }
    }
    levels
}

fn unknown(name: &str) -> (String, String) {
    let shown = shortened(name);
    if keys::SECTIONS.contains(&name) || name == "matrix" {
        let members: Vec<&str> = keys::all()
            .filter(|key| key.section() == name)
            .map(keys::Key::factor_name)
            .collect();
        return (
            format!("factor \"{shown}\" names a table"),
            match members.as_slice() {
                [] => "name a scalar key".to_owned(),
                _ => format!("name one of its keys: {}", members.join(", ")),
            },
        );
    }
    if keys::OTHER.iter().any(|key| key.path == name) {
        return (
            format!("\"{shown}\" cannot be a factor"),
            "set it outside [matrix]".to_owned(),
        );
    }
    (format!("unknown factor \"{shown}\""), suggest::factor(name))
}

/// A `--set` of a key that is also a factor would be lost without a word.
pub(super) fn check_overridden(draft: &Draft, faults: &mut Faults) {
    for factor in &draft.factors {
        let Some(at) = draft.given.get(factor.path).filter(|at| at.source > 0) else {
            continue;
        };
        faults.add(
            at,
            format!("{} is a factor, whose levels decide", factor.path),
            format!("set the factor instead: --set 'matrix.{}=[…]'", factor.path),
        );
    }
}

/// The number of cells and controls, by the levels as written; `None` beyond 2^64.
fn cells(draft: &Draft) -> Option<u64> {
    let product = |counts: &dyn Fn(&FactorLevels) -> bool| {
        let mut mattering = draft.factors.iter().filter(|factor| counts(factor));
        mattering.try_fold(1u64, |product, f| product.checked_mul(f.written as u64))
    };
    let mut sum = product(&|_| true)?;
    for control in &draft.controls {
        sum = sum.checked_add(product(&|factor| matters_to(*control, factor.path))?)?;
    }
    Some(sum)
}

pub(super) fn check_size(draft: &Draft, faults: &mut Faults) {
    let cells = cells(draft);
    let trials = cells.and_then(|cells| cells.checked_mul(u64::from(draft.repetitions)));
    if trials.is_some_and(|trials| trials <= MAX_TRIALS) {
        return;
    }
    let amount = match (cells, trials) {
        (Some(cells), Some(trials)) => format!(
            "{} ({} with controls, {})",
            counted(trials, "trial"),
            counted(cells, "cell"),
            counted(draft.repetitions, "repetition")
        ),
        _ => "more trials than can be counted".to_owned(),
    };
    let at = if draft.factors.is_empty() {
        draft.given.get("repetitions").unwrap_or(&draft.matrix_at)
    } else {
        &draft.matrix_at
    };
    faults.add(
        at,
        format!("the matrix makes {amount}, above the limit of {MAX_TRIALS}"),
        "remove levels or repetitions, or split the matrix",
    );
}
