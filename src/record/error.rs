//! What can go wrong with a results folder.

use std::io;
use std::path::PathBuf;

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
    /// A line that is not a trial.
    #[error("{}:{line}: not a trial: {problem}; restore the line from a copy or delete it, and its trial runs again on --resume", path.display())]
    BadLine {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// The parser's word.
        problem: String,
    },
    /// The same trial twice.
    #[error("{}:{line}: repetition {repetition} of {cell} stands on line {first} already; delete one of the two", path.display())]
    Duplicate {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// Where it stood first.
        first: usize,
        /// The cell.
        cell: String,
        /// The repetition.
        repetition: u32,
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
