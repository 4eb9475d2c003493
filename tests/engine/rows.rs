//! `trials.csv` and `summary.json` as somebody who was given the results sees them.

use std::collections::BTreeMap;
use std::path::Path;

/// A line of `trials.csv`, by column.
#[derive(Debug)]
pub(crate) struct Row(BTreeMap<String, String>);

/// All lines, in the order of the file.
pub(crate) fn rows(results: &Path) -> Vec<Row> {
    let mut reader = csv::Reader::from_path(results.join("trials.csv")).expect("trials.csv");
    reader
        .deserialize()
        .map(|row| Row(row.expect("a line of trials.csv")))
        .collect()
}

impl Row {
    /// A column's text; empty is unknown.
    #[track_caller]
    pub(crate) fn text(&self, column: &str) -> &str {
        let text = self.0.get(column);
        text.unwrap_or_else(|| panic!("trials.csv has no column {column}"))
    }

    /// A column's number; `None` where the cell is empty.
    #[track_caller]
    pub(crate) fn known(&self, column: &str) -> Option<f64> {
        let text = self.text(column);
        (!text.is_empty()).then(|| {
            text.parse()
                .unwrap_or_else(|_| panic!("{column} is {text:?}, not a number"))
        })
    }

    /// A column's number, which must be known.
    #[track_caller]
    pub(crate) fn number(&self, column: &str) -> f64 {
        self.known(column)
            .unwrap_or_else(|| panic!("{column} is empty: {}", self.told()))
    }

    /// What the trial says of itself, for messages.
    pub(crate) fn told(&self) -> String {
        let part = |column: &str| self.text(column);
        format!(
            "{} {}: {} {} ({}); {}",
            part("cell"),
            part("repetition"),
            part("status"),
            part("verdict"),
            part("evidence"),
            part("reason")
        )
    }
}

/// Every usable trial of the cell has this verdict, and at least one is usable: a busy machine may spoil the others. The
/// first usable one.
#[track_caller]
pub(crate) fn judged<'a>(rows: &'a [Row], cell: &str, verdict: &str) -> &'a Row {
    let found: Vec<&Row> = rows.iter().filter(|r| r.text("cell") == cell).collect();
    let told = || found.iter().map(|r| r.told()).collect::<Vec<_>>();
    let mut usable = found.iter().filter(|r| r.text("verdict") != "invalid");
    let first = usable.clone().next();
    let first = first.unwrap_or_else(|| panic!("{cell}: no usable trial: {:#?}", told()));
    assert!(
        usable.all(|r| r.text("verdict") == verdict),
        "{cell} should be {verdict}: {:#?}",
        told()
    );
    first
}

/// The evidence has these words.
#[track_caller]
pub(crate) fn assert_evidence(row: &Row, words: &[&str]) {
    for word in words {
        assert!(
            row.text("evidence").contains(word),
            "{word:?}: {}",
            row.told()
        );
    }
}

/// A number lies in a range, both ends included.
#[track_caller]
pub(crate) fn assert_within(row: &Row, column: &str, low: f64, high: f64) {
    let value = row.number(column);
    assert!(
        (low..=high).contains(&value),
        "{column} is {value}, not {low} to {high}: {}",
        row.told()
    );
}

/// Verdict of a cell or control by `summary.json`; `ok?` where it is uncertain.
#[track_caller]
pub(crate) fn cell_verdict(results: &Path, cell: &str) -> String {
    let text = fs_err::read_to_string(results.join("summary.json")).expect("summary.json");
    let summary: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let cells = summary["cells"].as_array().expect("cells");
    let found = cells.iter().find(|c| c["cell"] == cell);
    let found = found.unwrap_or_else(|| panic!("no cell {cell} in {summary:#}"));
    let doubt = if found["uncertain"] == true { "?" } else { "" };
    format!("{}{doubt}", found["verdict"].as_str().expect("a verdict"))
}
