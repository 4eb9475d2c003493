//! One sweep at a time on an engine: two would measure each other.

use std::io::{Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use fs_err::{File, OpenOptions};
use rustix::fs::{FlockOperation, flock};
use tokio_util::sync::CancellationToken;

use super::RunError;
use crate::progress::{Event, Progress};
use crate::runtime::{Engine, EngineFacts};

const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Held while a sweep runs; released when dropped, or by the kernel when the process dies.
#[derive(Debug)]
pub struct EngineLock {
    _file: File,
}

/// Takes the engine: the file lock keeps out processes of this machine, the labels of live containers those of others.
pub(super) async fn acquire(
    engine: &Engine,
    facts: &EngineFacts,
    wait: bool,
    progress: &dyn Progress,
    cancel: &CancellationToken,
) -> Result<EngineLock, RunError> {
    let path = lock_path(facts.id.as_deref().unwrap_or(&facts.address));
    let mut told = false;
    loop {
        let holder = match try_lock(&path)? {
            Ok(lock) => match engine.other_live_runs("").await?.first() {
                None => return Ok(lock),
                Some(owner) => format!(
                    "run {} of process {} on machine {}",
                    owner.run, owner.pid, owner.host
                ),
            },
            Err(holder) => holder,
        };
        if !wait {
            return Err(RunError::Busy(holder));
        }
        if !told {
            progress.event(&Event::Notice {
                text: format!("waiting for another sweep: {holder}"),
            });
            told = true;
        }
        tokio::select! {
            () = tokio::time::sleep(LOOK_AGAIN) => {}
            () = cancel.cancelled() => return Err(RunError::Interrupted),
        }
    }
}

fn lock_path(engine: &str) -> PathBuf {
    let name: String = engine
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    // Not TMPDIR, which may be the user's own: two users of one engine must meet.
    Path::new("/tmp").join(format!("sweep-engine-{name}.lock"))
}

fn try_lock(path: &Path) -> Result<Result<EngineLock, String>, RunError> {
    let failed = |e: std::io::Error| {
        let text = format!(
            "cannot lock the engine: {e}; {} must be usable",
            path.display()
        );
        RunError::Environment(vec![text])
    };
    let mut file = match OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
    {
        Ok(file) => file,
        // Another user's file: reading is enough to lock it.
        Err(e) if e.kind() == std::io::ErrorKind::PermissionDenied => {
            OpenOptions::new().read(true).open(path).map_err(failed)?
        }
        Err(e) => return Err(failed(e)),
    };
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(rustix::io::Errno::WOULDBLOCK) => {
            let mut holder = String::new();
            let _ = file.read_to_string(&mut holder);
            let holder = holder.trim();
            return Ok(Err(if holder.is_empty() {
                "an unknown process".to_owned()
            } else {
                holder.to_owned()
            }));
        }
        Err(e) => return Err(failed(e.into())),
    }
    let text = format!(
        "process {} since {}",
        std::process::id(),
        jiff::Timestamp::now()
    );
    // Only for the reader of a refusal; the lock itself is the kernel's.
    let _ = file
        .set_len(0)
        .and_then(|()| file.seek(std::io::SeekFrom::Start(0)))
        .and_then(|_| file.write_all(text.as_bytes()));
    Ok(Ok(EngineLock { _file: file }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_is_told_who_has_it_and_gets_it_after_the_first() {
        let dir = tempfile::tempdir().expect("tempdir");
        let path = dir.path().join("lock");
        let first = try_lock(&path).expect("usable").expect("free");
        let holder = try_lock(&path).expect("usable").expect_err("taken");
        assert!(
            holder.contains(&format!("process {}", std::process::id())),
            "{holder}"
        );
        drop(first);
        try_lock(&path).expect("usable").expect("free again");
    }
}
