//! Faults of a matrix with their place, collected so that all are reported at once.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use super::cascade;
use super::text::{Sources, printable};

/// Where something was written: a source (0 is the file, n the n-th `--set`) and a byte range in it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct Place {
    pub(super) source: usize,
    pub(super) start: usize,
    pub(super) end: usize,
}

impl Place {
    pub(super) fn new(source: usize, span: Range<usize>) -> Self {
        Self {
            source,
            start: span.start,
            end: span.end,
        }
    }
}

/// What is wrong at a place, and what would be right.
#[derive(Debug, Clone)]
pub(crate) struct Fault {
    pub(super) at: Place,
    pub(super) message: String,
    pub(super) remedy: String,
}

/// More than a person reads; the rest is counted, so that a hostile file cannot make the report grow without bound.
const MOST: usize = 100;

/// Collects faults.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    list: Vec<Fault>,
    omitted: usize,
}

impl Faults {
    pub(super) fn add(
        &mut self,
        at: &Place,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        if self.list.len() >= MOST {
            self.omitted += 1;
            return;
        }
        self.list.push(Fault {
            at: at.clone(),
            message: message.into(),
            remedy: remedy.into(),
        });
    }

    /// Drops what only follows from the first `syntax` faults, the syntax errors: those among them that are a consequence
    /// of another, faults on their lines, and all faults after an error that has consequences or is in a table's header,
    /// since what stands below it was read as part of something else.
    pub(super) fn drop_after_syntax_errors(&mut self, syntax: usize, text: &str) {
        let mut errors: Vec<Fault> = self.list.drain(..syntax.min(self.list.len())).collect();
        errors.sort_by(|a, b| a.at.cmp(&b.at));
        let told = cascade::told(text, &errors);
        let lines: Vec<_> = errors.iter().map(|error| line(text, &error.at)).collect();
        let misleads = |(n, line): (usize, &Range<usize>)| {
            let header = text
                .get(line.clone())
                .is_some_and(|line| line.trim_start().starts_with('['));
            (header || told.get(n + 1) == Some(&false)).then_some(line.start)
        };
        let end = lines.iter().enumerate().filter_map(misleads).min();
        self.list.retain(|fault| {
            let own = fault.at.source > 0;
            let follows = lines.contains(&line(text, &fault.at))
                || end.is_some_and(|end| fault.at.start >= end);
            own || !follows
        });
        let errors = errors.into_iter().zip(told);
        let errors = errors.filter_map(|(error, told)| told.then_some(error));
        self.list.splice(0..0, errors);
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The faults in the order of the text, with their lines and columns.
    pub(super) fn into_errors(mut self, sources: &Arc<Sources>) -> SpecErrors {
        self.list.sort_by(|a, b| a.at.cmp(&b.at));
        SpecErrors {
            errors: self
                .list
                .into_iter()
                .map(|f| SpecError::new(f, sources))
                .collect(),
            omitted: self.omitted,
            sources: Arc::clone(sources),
        }
    }
}

/// The line that a place begins in, without its end.
fn line(text: &str, at: &Place) -> Range<usize> {
    let start = at.start.min(text.len());
    let before = text.get(..start).and_then(|t| t.rfind('\n'));
    let after = text.get(start..).and_then(|t| t.find('\n'));
    before.map_or(0, |n| n + 1)..after.map_or(text.len(), |n| start + n)
}

/// One fault of a matrix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpecError {
    /// The file's name, or `--set`.
    pub source: String,
    /// Line from 1; `None` in a `--set`.
    pub line: Option<usize>,
    /// Column from 1, in characters; `None` in a `--set`.
    pub column: Option<usize>,
    /// The text at fault, shortened; `None` where something is missing.
    pub value: Option<String>,
    /// What is wrong.
    pub message: String,
    /// What would be right.
    pub remedy: String,
    pub(super) at: Place,
}

impl SpecError {
    pub(super) fn new(fault: Fault, sources: &Sources) -> Self {
        let position = (fault.at.source == 0).then(|| sources.line_column(&fault.at));
        Self {
            source: sources.name(&fault.at),
            line: position.map(|(line, _)| line),
            column: position.map(|(_, column)| column),
            value: sources.excerpt(&fault.at),
            message: printable(&fault.message),
            remedy: printable(&fault.remedy),
            at: fault.at,
        }
    }
}

/// `matrix.toml:12:8: message: remedy`, on one line.
impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)?;
        match (self.line, self.column, &self.value) {
            (Some(line), Some(column), _) => write!(f, ":{line}:{column}")?,
            (_, _, Some(value)) => write!(f, " {value}")?,
            _ => {}
        }
        write!(f, ": {}; {}", self.message, self.remedy)
    }
}

impl std::error::Error for SpecError {}

/// Everything that is wrong with a matrix. `Display` is one plain line a fault; see
/// [`render`](SpecErrors::render) for people.
#[derive(Debug, Clone)]
pub struct SpecErrors {
    /// In the order of the text, those of `--set` last. Never empty.
    pub errors: Vec<SpecError>,
    /// Faults beyond those in `errors`.
    pub omitted: usize,
    pub(super) sources: Arc<Sources>,
}

impl fmt::Display for SpecErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, error) in self.errors.iter().enumerate() {
            if n > 0 {
                writeln!(f)?;
            }
            write!(f, "{error}")?;
        }
        if self.omitted > 0 {
            write!(f, "\nand {} more", self.omitted)?;
        }
        Ok(())
    }
}

impl std::error::Error for SpecErrors {}
