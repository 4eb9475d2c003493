//! `trials.jsonl`: one line a trial.

use std::collections::BTreeSet;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use fs_err::{self as fs, File, OpenOptions};
use serde::Deserialize;

use super::error::{LineFault, MOST_LINES, RecordError};
use super::trial::{SCHEMA_VERSION, TrialRecord};
use crate::units::counted;

/// What identifies a trial in a run.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TrialKey {
    /// Cell id.
    pub cell: String,
    /// From 1.
    pub repetition: u32,
}

impl TrialKey {
    /// The key of a record.
    #[must_use]
    pub fn of(trial: &TrialRecord) -> Self {
        Self {
            cell: trial.cell.clone(),
            repetition: trial.repetition,
        }
    }
}

/// Trials as read.
#[derive(Debug, Clone, Default)]
pub struct Trials {
    /// In the order in which they ended.
    pub records: Vec<TrialRecord>,
    /// What was repaired or left out, in words.
    pub notices: Vec<String>,
}

impl Trials {
    /// Trials that need not run again.
    #[must_use]
    pub fn finished(&self) -> BTreeSet<TrialKey> {
        self.records.iter().map(TrialKey::of).collect()
    }
}

/// The whole lines of the file, and what follows the last of them.
struct Parsed {
    trials: Trials,
    /// Length of the part that holds whole trials.
    good_len: usize,
    /// The last trial lacks only its line end.
    needs_line_end: bool,
}

pub(super) fn read(path: &Path) -> Result<Trials, RecordError> {
    Ok(parse(path, &read_bytes(path)?)?.trials)
}

pub(super) fn read_bytes(path: &Path) -> Result<Vec<u8>, RecordError> {
    match fs::read(path) {
        Ok(bytes) => Ok(bytes),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(e) => Err(e.into()),
    }
}

fn parse(path: &Path, bytes: &[u8]) -> Result<Parsed, RecordError> {
    let mut trials = Trials::default();
    let mut faults: Vec<LineFault> = Vec::new();
    let mut first_seen: HashMap<TrialKey, usize> = HashMap::new();
    let (mut good_len, mut needs_line_end) = (0, false);
    for (index, line) in bytes.split_inclusive(|b| *b == b'\n').enumerate() {
        let number = index + 1;
        let is_last = good_len + line.len() == bytes.len();
        let ended = line.ends_with(b"\n");
        let parsed = match line.trim_ascii().is_empty() {
            true => Ok(None),
            // Without its end, which the parser would count as a line more.
            false => parse_line(line.trim_ascii_end(), number).map(Some),
        };
        match parsed {
            Ok(None) => {}
            Ok(Some(trial)) => match first_seen.entry(TrialKey::of(&trial)) {
                Entry::Vacant(place) => {
                    place.insert(number);
                    trials.records.push(trial);
                }
                Entry::Occupied(first) => faults.push(LineFault::Twice {
                    line: number,
                    first: *first.get(),
                    cell: trial.cell,
                    repetition: trial.repetition,
                }),
            },
            Err(BadLine::Newer(schema)) => return Err(newer(path, schema, number)),
            Err(BadLine::Fault(_)) if is_last && (!ended || lost_data(line)) => {
                trials.notices.push(format!(
                    "{}:{number}: the last line is torn ({}); its trial counts as not run",
                    path.display(),
                    counted(line.len(), "byte")
                ));
                break;
            }
            Err(BadLine::Fault(fault)) => faults.push(fault),
        }
        good_len += line.len();
        needs_line_end = !ended;
    }
    if !faults.is_empty() {
        let more = faults.len().saturating_sub(MOST_LINES);
        faults.truncate(MOST_LINES);
        let path = path.to_owned();
        return Err(RecordError::BadLines { path, faults, more });
    }
    Ok(Parsed {
        trials,
        good_len,
        needs_line_end,
    })
}

/// A line without its end was being written when the process died; a file system may also keep the length of a whole one
/// and lose the data, which reads as NUL. Anything else was edited or damaged, and is nobody's to drop.
fn lost_data(line: &[u8]) -> bool {
    line.contains(&0) && std::str::from_utf8(line).is_ok()
}

#[derive(Deserialize)]
struct Head {
    schema: u32,
}

/// Why a line is not a trial.
enum BadLine {
    Fault(LineFault),
    Newer(u32),
}

fn parse_line(line: &[u8], number: usize) -> Result<TrialRecord, BadLine> {
    let bad = |error: serde_json::Error| {
        // Its own line number is that within the line, and always 1.
        let place = format!(" at line {} column {}", error.line(), error.column());
        let text = error.to_string();
        BadLine::Fault(LineFault::NotATrial {
            line: number,
            column: error.column().max(1),
            problem: text.strip_suffix(&place).unwrap_or(&text).to_owned(),
        })
    };
    let head: Head = serde_json::from_slice(line).map_err(bad)?;
    if head.schema > SCHEMA_VERSION {
        return Err(BadLine::Newer(head.schema));
    }
    serde_json::from_slice(line).map_err(bad)
}

fn newer(path: &Path, schema: u32, line: usize) -> RecordError {
    RecordError::NewerSchema {
        path: path.to_owned(),
        found: schema,
        known: SCHEMA_VERSION,
        needs: format!("a sweep that reads schema {schema} (line {line})"),
    }
}

/// The file, open for appending.
#[derive(Debug)]
pub(super) struct TrialLog {
    path: PathBuf,
    file: File,
    len: u64,
    trials: usize,
}

impl TrialLog {
    /// Opens (or makes) the file, and cuts off a torn last line.
    pub(super) fn open(path: &Path) -> Result<(Self, Trials), RecordError> {
        let bytes = read_bytes(path)?;
        let parsed = parse(path, &bytes)?;
        let mut file = OpenOptions::new().create(true).append(true).open(path)?;
        if parsed.good_len < bytes.len() {
            file.set_len(parsed.good_len as u64)?;
        }
        let mut len = parsed.good_len as u64;
        if parsed.needs_line_end {
            file.write_all(b"\n")?;
            len += 1;
        }
        file.sync_all()?;
        let trials = parsed.trials.records.len();
        let log = Self {
            path: path.to_owned(),
            file,
            len,
            trials,
        };
        Ok((log, parsed.trials))
    }

    pub(super) fn append(&mut self, trial: &TrialRecord) -> Result<(), RecordError> {
        let mut line = serde_json::to_vec(trial).map_err(|e| {
            let what = format!("failed to write {} as JSON: {e}", self.path.display());
            io::Error::other(what)
        })?;
        // JSON has no NaN: a figure that slipped through as one is written as null and could never be read again.
        let number = self.trials + 1;
        parse_line(&line, number).map_err(|bad| match bad {
            BadLine::Newer(schema) => newer(&self.path, schema, number),
            BadLine::Fault(fault) => RecordError::BadLines {
                path: self.path.clone(),
                faults: vec![fault],
                more: 0,
            },
        })?;
        line.push(b'\n');
        if let Err(e) = self
            .file
            .write_all(&line)
            .and_then(|()| self.file.sync_all())
        {
            // Best effort: should this fail too, the torn line is cut off by the next open.
            let _ = self.file.set_len(self.len);
            return Err(e.into());
        }
        self.len += line.len() as u64;
        self.trials += 1;
        Ok(())
    }
}
