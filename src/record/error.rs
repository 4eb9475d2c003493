//! What can go wrong with a results folder.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::folder::LockOwner;

/// A results folder could not be made, read or written.
#[derive(Debug, Error)]
pub enum RecordError {
    /// The folder holds a run already.
    #[error("{} already holds a run; continue it with --resume, or choose another folder with --out", path.display())]
    Exists {
        /// The folder.
        path: PathBuf,
    },
    /// The folder holds something else.
    #[error("{} is not empty and holds no run (found {found:?}); choose another folder with --out", path.display())]
    Foreign {
        /// The folder.
        path: PathBuf,
        /// One of the things found.
        found: String,
    },
    /// The folder has no manifest.
    #[error(
        "{} is not a results folder: it has no manifest.json. A run that was cut before its first trial has none; \
         start it again with --out {}", path.display(), path.display()
    )]
    NotAFolder {
        /// The folder.
        path: PathBuf,
    },
    /// Another process writes to the folder.
    #[error("{} is in use by {owner}; wait for it, or stop it first", path.display())]
    Locked {
        /// The folder.
        path: PathBuf,
        /// Who holds it.
        owner: LockOwner,
    },
    /// The folder was written by a newer program.
    #[error(
        "{} needs {needs}: it has schema {found}, and this is sweep {} with schema {known}",
        path.display(), env!("CARGO_PKG_VERSION")
    )]
    NewerSchema {
        /// The file.
        path: PathBuf,
        /// Its schema.
        found: u32,
        /// The newest schema that this program knows.
        known: u32,
        /// The program that can read it, in words.
        needs: String,
    },
    /// Lines that are not trials, or trials that stand twice.
    #[error("{}", told(path, faults, *more))]
    BadLines {
        /// The file.
        path: PathBuf,
        /// In the order of the file, at most [`MOST_LINES`].
        faults: Vec<LineFault>,
        /// Faults beyond these.
        more: usize,
    },
    /// A manifest that cannot be read.
    #[error("{}: not a manifest: {problem}", path.display())]
    BadManifest {
        /// The file.
        path: PathBuf,
        /// The parser's word, with line and column.
        problem: String,
    },
    /// The operating system refused. Its text names operation and path.
    #[error("{0}{help}", help = remedy(.0))]
    Io(#[from] io::Error),
}

/// Most faults of one file that are told.
pub(super) const MOST_LINES: usize = 5;

/// What is wrong with a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LineFault {
    /// It is not a trial.
    NotATrial {
        /// From 1.
        line: usize,
        /// From 1, in bytes.
        column: usize,
        /// The parser's word.
        problem: String,
    },
    /// The same trial as on another line.
    Twice {
        /// From 1.
        line: usize,
        /// Where it stood first.
        first: usize,
        /// The cell.
        cell: String,
        /// The repetition.
        repetition: u32,
    },
}

impl LineFault {
    fn told(&self, path: &Path) -> String {
        let path = path.display();
        match self {
            Self::NotATrial {
                line,
                column,
                problem,
            } => format!("{path}:{line}:{column}: not a trial: {problem}"),
            Self::Twice {
                line,
                first,
                cell,
                repetition,
            } => format!(
                "{path}:{line}: repetition {repetition} of {cell} stands on line {first} already"
            ),
        }
    }
}

fn told(path: &Path, faults: &[LineFault], more: usize) -> String {
    if let ([fault], 0) = (faults, more) {
        let remedy = match fault {
            LineFault::NotATrial { .. } => {
                "restore the line from a copy or delete it, and its trial runs again on --resume"
            }
            LineFault::Twice { .. } => "delete one of the two",
        };
        return format!("{}; {remedy}", fault.told(path));
    }
    let mut text = format!(
        "{}: {} lines cannot be used; restore them from a copy or delete them, and trials that are missing then run \
         again on --resume:",
        path.display(),
        faults.len() + more
    );
    for fault in faults {
        text.push_str(&format!("\n  {}", fault.told(path)));
    }
    if more > 0 {
        text.push_str(&format!("\n  and {more} more"));
    }
    text
}

/// What helps against a refusal of the operating system, to be put behind its text.
fn remedy(error: &io::Error) -> &'static str {
    use io::ErrorKind as K;
    match error.kind() {
        K::StorageFull => "; make room on that file system",
        K::QuotaExceeded => "; make room within the quota, or have it raised",
        K::FileTooLarge => "; raise the limit of file sizes (`ulimit -f`)",
        K::ReadOnlyFilesystem | K::PermissionDenied => {
            "; make it writable, or choose another folder with --out"
        }
        _ => "",
    }
}
