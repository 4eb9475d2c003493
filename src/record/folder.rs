//! The folder of one run on disk: made, locked, written atomically.

use std::ffi::OsStr;
use std::fmt;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use fs_err::{self as fs, File, OpenOptions};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::atomic::{
    Sync, TEMPORARY_PREFIX, is_temporary, remove_leftovers, sync_folder, write_atomically,
};
use super::error::RecordError;
use super::made::Made;
use super::manifest::Manifest;
use super::trial::{SCHEMA_VERSION, TrialRecord};
use super::trials::{self, TrialLog, Trials};
use super::{LOCK, MANIFEST, TRIALS};

/// Who holds a folder: written into the lock file, to be shown to whoever finds it locked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockOwner {
    /// Process id on `host`.
    pub pid: u32,
    /// Host name.
    pub host: String,
    /// When the lock was taken, RFC 3339 UTC.
    pub started_at: String,
}

impl LockOwner {
    /// This process, now.
    #[must_use]
    pub fn this_process() -> Self {
        let host = rustix::system::uname();
        Self {
            pid: std::process::id(),
            host: host.nodename().to_string_lossy().into_owned(),
            started_at: jiff::Timestamp::now().to_string(),
        }
    }
}

impl fmt::Display for LockOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            pid,
            host,
            started_at,
        } = self;
        write!(f, "process {pid} on {host} since {started_at}")
    }
}

/// A results folder, for reading. Writing trials needs the lock: [`Folder::lock`].
#[derive(Debug, Clone)]
pub struct Folder {
    path: PathBuf,
    made: Made,
}

impl Folder {
    /// Makes the folder (and its parents). One may exist already that is empty, or holds what a run left that was cut
    /// before its manifest was written, and so before its first trial.
    ///
    /// # Errors
    /// When it holds a run or anything else, or cannot be made.
    pub fn create(path: impl Into<PathBuf>) -> Result<Self, RecordError> {
        let path = path.into();
        let made = Made::with_parents(&path)?;
        if path.join(MANIFEST).exists() {
            return Err(RecordError::Exists { path });
        }
        for entry in fs::read_dir(&path)? {
            let entry = entry?;
            let name = entry.file_name();
            let of_a_cut_start = name == OsStr::new(LOCK)
                || is_temporary(&name)
                || (name == OsStr::new(TRIALS) && entry.metadata()?.len() == 0);
            if !of_a_cut_start {
                let found = name.to_string_lossy().into_owned();
                return Err(RecordError::Foreign { path, found });
            }
        }
        Ok(Self { path, made })
    }

    /// Removes what [`create`](Self::create) made, as far as nothing is in it: a run that is refused leaves no folder.
    pub fn remove_if_empty(&self) {
        self.made.remove_empty();
    }

    /// Writes something and removes it again, so that a folder in which no trial could be kept is refused before the
    /// first one runs.
    ///
    /// # Errors
    /// When the operating system refuses.
    pub fn check_writable(&self) -> Result<(), RecordError> {
        // As large as a trial may be: an empty file can be made on a full disk too.
        let bytes = vec![0; 256 * 1024];
        let path = self.path.join(format!("{TEMPORARY_PREFIX}writable"));
        let written = fs::write(&path, bytes).and_then(|()| File::open(&path)?.sync_all());
        let removed = match fs::remove_file(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        };
        Ok(written.and(removed)?)
    }

    /// Opens a folder that holds a run.
    ///
    /// # Errors
    /// When there is no manifest.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, RecordError> {
        let path = path.into();
        if path.join(MANIFEST).is_file() {
            let made = Made::default();
            Ok(Self { path, made })
        } else {
            Err(RecordError::NotAFolder { path })
        }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the manifest.
    ///
    /// # Errors
    /// When it is missing, not a manifest, or of a newer schema.
    pub fn manifest(&self) -> Result<Manifest, RecordError> {
        let path = self.path.join(MANIFEST);
        let text = fs::read_to_string(&path)?;
        let bad = |e: serde_json::Error| RecordError::BadManifest {
            path: path.clone(),
            problem: e.to_string(),
        };
        let head: ManifestHead = serde_json::from_str(&text).map_err(bad)?;
        if head.schema > SCHEMA_VERSION {
            let writer = head.sweep_version.as_deref().unwrap_or("of its writer");
            return Err(RecordError::NewerSchema {
                found: head.schema,
                known: SCHEMA_VERSION,
                needs: format!("sweep {writer} or newer"),
                path,
            });
        }
        serde_json::from_str(&text).map_err(bad)
    }

    /// Reads every whole trial. A torn last line (of a process that was killed, or is writing at this moment) is left
    /// out and told in [`Trials::notices`]; the file is not changed.
    ///
    /// # Errors
    /// A line that is not a trial, a trial that stands there twice, a newer schema.
    pub fn trials(&self) -> Result<Trials, RecordError> {
        trials::read(&self.path.join(TRIALS))
    }

    /// Takes the folder for writing, until the result is dropped. Removes half-written files and a torn last line that
    /// a killed process left.
    ///
    /// # Errors
    /// When another process has it (with who that is), or the trials cannot be read.
    pub fn lock(self) -> Result<RunFolder, RecordError> {
        let owner = LockOwner::this_process();
        let lock = take_lock(&self.path, &owner)?;
        remove_leftovers(&self.path)?;
        let (log, trials) = TrialLog::open(&self.path.join(TRIALS))?;
        sync_folder(&self.path)?;
        Ok(RunFolder {
            folder: self,
            log,
            found: trials,
            _lock: lock,
        })
    }

    /// Writes a file atomically and syncs it: a reader sees the old one or the new one, whole. `name` may contain folders.
    ///
    /// # Errors
    /// When the operating system refuses; the old file is untouched then.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<PathBuf, RecordError> {
        let (path, parent) = self.place(name)?;
        write_atomically(&parent, &path, bytes, Sync::Now)?;
        sync_folder(&parent)?;
        Ok(path)
    }

    /// Writes a file that can be made again atomically, but without waiting for the disk: a run has thousands of
    /// histograms.
    ///
    /// # Errors
    /// When the operating system refuses; the old file is untouched then.
    pub fn write_unsynced(&self, name: &str, bytes: &[u8]) -> Result<PathBuf, RecordError> {
        let (path, parent) = self.place(name)?;
        write_atomically(&parent, &path, bytes, Sync::Later)?;
        Ok(path)
    }

    fn place(&self, name: &str) -> Result<(PathBuf, PathBuf), RecordError> {
        let path = self.path.join(name);
        let parent = path.parent().unwrap_or(&self.path).to_owned();
        fs::create_dir_all(&parent)?;
        Ok((path, parent))
    }
}

#[derive(Deserialize)]
struct ManifestHead {
    schema: u32,
    sweep_version: Option<String>,
}

/// A results folder that this process alone may write to.
#[derive(Debug)]
pub struct RunFolder {
    pub(super) folder: Folder,
    pub(super) log: TrialLog,
    pub(super) found: Trials,
    _lock: File,
}

impl RunFolder {
    /// The folder, for reading and for derived files.
    #[must_use]
    pub fn folder(&self) -> &Folder {
        &self.folder
    }

    /// The trials that were there when the lock was taken, with a notice if a torn line was removed.
    #[must_use]
    pub fn found(&self) -> &Trials {
        &self.found
    }

    /// Writes the manifest atomically and syncs it.
    ///
    /// # Errors
    /// When the operating system refuses; the old manifest is untouched then.
    pub fn write_manifest(&self, manifest: &Manifest) -> Result<(), RecordError> {
        let mut text = serde_json::to_vec_pretty(manifest).map_err(io::Error::from)?;
        text.push(b'\n');
        self.folder.write(MANIFEST, &text)?;
        Ok(())
    }

    /// Appends one trial and syncs it. Call it before the trial's containers are removed.
    ///
    /// # Errors
    /// When the operating system refuses (disk full, …). What was written of the line is taken back then, so that the
    /// file stays whole.
    pub fn append(&mut self, trial: &TrialRecord) -> Result<(), RecordError> {
        self.log.append(trial)
    }
}

fn take_lock(folder: &Path, owner: &LockOwner) -> Result<File, RecordError> {
    let path = folder.join(LOCK);
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(&path)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(rustix::io::Errno::WOULDBLOCK) => {
            return Err(RecordError::Locked {
                path: folder.to_owned(),
                owner: read_owner(&mut file),
            });
        }
        Err(e) => {
            let cause = io::Error::from(e);
            let message = format!("failed to lock {}: {cause}", path.display());
            return Err(io::Error::new(cause.kind(), message).into());
        }
    }
    file.set_len(0)?;
    file.seek(SeekFrom::Start(0))?;
    serde_json::to_writer(&mut file, owner).map_err(io::Error::from)?;
    file.sync_all()?;
    Ok(file)
}

/// The owner as written; a placeholder when it is just being written.
fn read_owner(file: &mut File) -> LockOwner {
    let mut text = String::new();
    let read = file.read_to_string(&mut text);
    read.ok()
        .and_then(|_| serde_json::from_str(&text).ok())
        .unwrap_or_else(|| LockOwner {
            pid: 0,
            host: "an unknown host".to_owned(),
            started_at: "an unknown time".to_owned(),
        })
}
