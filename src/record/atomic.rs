//! Files that are whole or not there, whatever happens to the writer.

use std::ffi::OsStr;
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use fs_err::{self as fs, File};

use super::error::RecordError;

/// Prefix of files that are being written; what a killed process left of them is removed by the next lock.
pub(super) const TEMPORARY_PREFIX: &str = ".sweep-tmp-";

/// Whether to wait for the disk.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Sync {
    Now,
    Later,
}

pub(super) fn write_atomically(
    parent: &Path,
    path: &Path,
    bytes: &[u8],
    sync: Sync,
) -> Result<(), RecordError> {
    let named =
        |e: io::Error| io::Error::new(e.kind(), format!("failed to write {}: {e}", path.display()));
    let mut file = tempfile::Builder::new()
        .prefix(TEMPORARY_PREFIX)
        // Readable by whom the umask allows, as results are; the default would be the user alone.
        .permissions(std::fs::Permissions::from_mode(0o666))
        .tempfile_in(parent)
        .map_err(named)?;
    file.write_all(bytes).map_err(named)?;
    if sync == Sync::Now {
        file.as_file().sync_all().map_err(named)?;
    }
    file.persist(path).map_err(|e| named(e.error))?;
    Ok(())
}

/// Removes what a killed process was writing, here and in the folders below.
pub(super) fn remove_leftovers(folder: &Path) -> Result<(), RecordError> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        // A link is not followed: it may lead out of the results.
        if entry.file_type()?.is_dir() {
            remove_leftovers(&entry.path())?;
        } else if is_temporary(&entry.file_name()) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Something that was being written.
pub(super) fn is_temporary(name: &OsStr) -> bool {
    name.to_string_lossy().starts_with(TEMPORARY_PREFIX)
}

/// Makes a new or renamed entry survive a power loss.
pub(super) fn sync_folder(path: &Path) -> Result<(), RecordError> {
    File::open(path)?.sync_all()?;
    Ok(())
}
