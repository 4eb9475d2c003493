//! The one table of columns: name, unit, meaning, and how each follows from a trial. `trials.csv`, `summary.csv` and
//! `docs/columns.md` are made from it.

use std::sync::LazyLock;

use super::derived::Quantile;
use super::trial::TrialRecord;
use crate::stats::Scale;
use crate::verdict::Judgement;

mod evidence;
mod host;
mod identity;
mod latency;
mod limits;
mod load;
mod proxy;
mod queues;

pub(crate) use identity::control_name;
pub(crate) use latency::{METRICS, PERCENTILES};
pub(crate) use proxy::{REFUSALS, accepted_connections, concurrency as proxy_concurrency};

/// A value of a column.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// Unknown or not applicable.
    Empty,
    /// A whole number.
    Int(i64),
    /// A number. Infinity is "no limit".
    Float(f64),
    /// A lower bound: the value was reached by requests of unknown length. Empty in CSV.
    AtLeast(f64),
    /// Text.
    Text(String),
}

impl Cell {
    /// The number, if it is a known and finite one.
    #[must_use]
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Int(i) => Some(*i as f64),
            Self::Float(f) if f.is_finite() => Some(*f),
            _ => None,
        }
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Empty, Into::into)
    }
}

impl From<u64> for Cell {
    fn from(value: u64) -> Self {
        // As digits where it does not fit (a seed): a float would lose the last of them.
        i64::try_from(value).map_or_else(|_| Self::Text(value.to_string()), Self::Int)
    }
}

impl From<u32> for Cell {
    fn from(value: u32) -> Self {
        Self::Int(i64::from(value))
    }
}

impl From<i64> for Cell {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<bool> for Cell {
    fn from(value: bool) -> Self {
        Self::Int(i64::from(value))
    }
}

impl From<f64> for Cell {
    fn from(value: f64) -> Self {
        if value.is_nan() {
            Self::Empty
        } else {
            Self::Float(value)
        }
    }
}

impl From<String> for Cell {
    fn from(value: String) -> Self {
        if value.is_empty() {
            Self::Empty
        } else {
            Self::Text(value)
        }
    }
}

impl From<&str> for Cell {
    fn from(value: &str) -> Self {
        value.to_owned().into()
    }
}

impl From<Quantile> for Cell {
    fn from(value: Quantile) -> Self {
        match value {
            Quantile::Exact(us) => us.into(),
            Quantile::AtLeast(us) => Self::AtLeast(us as f64),
        }
    }
}

/// What a column holds; it decides how repetitions are summarised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Text; not summarised.
    Text,
    /// A number that was asked for or only describes the trial; not summarised.
    Fact,
    /// A latency.
    Latency,
    /// A count of events or things.
    Count,
    /// A share, 0..=1, or another ratio.
    Ratio,
    /// Events per second.
    Rate,
    /// Bytes.
    Bytes,
    /// CPU or stall time.
    Time,
}

impl Kind {
    /// The scale on which repetitions are summarised; `None` if they are not.
    #[must_use]
    pub fn scale(self) -> Option<Scale> {
        match self {
            Self::Text | Self::Fact => None,
            Self::Latency => Some(Scale::Logarithmic),
            Self::Count | Self::Ratio | Self::Rate | Self::Bytes | Self::Time => {
                Some(Scale::Linear)
            }
        }
    }

    /// As in `docs/columns.md`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Fact => "fact",
            Self::Latency => "latency",
            Self::Count => "count",
            Self::Ratio => "ratio",
            Self::Rate => "rate",
            Self::Bytes => "bytes",
            Self::Time => "time",
        }
    }
}

/// What the columns are read from.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    /// The trial.
    pub trial: &'a TrialRecord,
    /// Its verdict with evidence, once every trial of the run is known.
    pub judgement: Option<&'a Judgement>,
}

type Getter = Box<dyn Fn(&Row<'_>) -> Cell + Send + Sync>;

/// A column.
pub struct Column {
    /// Name; ends in its unit where it has one.
    pub name: String,
    /// Unit: `us`, `usec` (kernel counters), `bytes`, `rps`, `share`, `count`, or empty for text.
    pub unit: &'static str,
    /// What it holds.
    pub kind: Kind,
    /// Meaning and source.
    pub doc: String,
    get: Getter,
}

impl Column {
    /// The value for a trial.
    #[must_use]
    pub fn get(&self, row: &Row<'_>) -> Cell {
        (self.get)(row)
    }
}

impl std::fmt::Debug for Column {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Column({})", self.name)
    }
}

/// A named group of columns, in the order of `docs/columns.md`.
#[derive(Debug)]
pub struct Group {
    /// Heading.
    pub title: &'static str,
    /// Its columns.
    pub columns: Vec<Column>,
}

/// Every column but those of further factors, by group, in the order of `trials.csv`.
pub static GROUPS: LazyLock<Vec<Group>> = LazyLock::new(|| {
    vec![
        Group {
            title: "Identity",
            columns: identity::columns(),
        },
        Group {
            title: "Load",
            columns: load::columns(),
        },
        Group {
            title: "Latency",
            columns: latency::columns(),
        },
        Group {
            title: "Queues",
            columns: queues::columns(),
        },
        Group {
            title: "CPU, memory and pressure",
            columns: evidence::columns(),
        },
        Group {
            title: "Limits in force",
            columns: limits::columns(),
        },
        Group {
            title: "The proxy's own statistics",
            columns: proxy::columns(),
        },
        Group {
            title: "Upstream, host and instrument",
            columns: host::columns(),
        },
    ]
});

/// Every column but those of further factors, in the order of `trials.csv`.
pub fn all() -> impl Iterator<Item = &'static Column> {
    GROUPS.iter().flat_map(|g| g.columns.iter())
}

/// The column of this name.
#[must_use]
pub fn by_name(name: &str) -> Option<&'static Column> {
    all().find(|c| c.name == name)
}

/// Collects the columns of a group.
#[derive(Default)]
struct Builder {
    columns: Vec<Column>,
}

impl Builder {
    fn add<C: Into<Cell>>(
        &mut self,
        name: impl Into<String>,
        unit: &'static str,
        kind: Kind,
        doc: impl Into<String>,
        get: impl Fn(&TrialRecord) -> C + Send + Sync + 'static,
    ) {
        self.add_row(name, unit, kind, doc, move |row| get(row.trial).into());
    }

    fn add_row(
        &mut self,
        name: impl Into<String>,
        unit: &'static str,
        kind: Kind,
        doc: impl Into<String>,
        get: impl Fn(&Row<'_>) -> Cell + Send + Sync + 'static,
    ) {
        self.columns.push(Column {
            name: name.into(),
            unit,
            kind,
            doc: doc.into(),
            get: Box::new(get),
        });
    }
}

#[cfg(test)]
mod tests;
