//! Folders that are made for a run, and removed again should the run be refused.

use std::io;
use std::path::{Path, PathBuf};

use fs_err as fs;

/// Folders that did not exist before, innermost first.
#[derive(Debug, Clone, Default)]
pub(super) struct Made(Vec<PathBuf>);

impl Made {
    /// Makes a folder and its parents, as far as they are missing.
    pub(super) fn with_parents(path: &Path) -> io::Result<Self> {
        let missing = |folder: &&Path| !folder.as_os_str().is_empty() && !folder.exists();
        let folders: Vec<&Path> = path.ancestors().take_while(missing).collect();
        let mut made = Self::default();
        for folder in folders.into_iter().rev() {
            match fs::create_dir(folder) {
                Ok(()) => made.0.insert(0, folder.to_owned()),
                // Somebody else made it in between: it is not this run's to remove.
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => {
                    made.remove_empty();
                    return Err(e);
                }
            }
        }
        // Nothing is left to make; a file in the folder's place is refused here, in the system's words.
        fs::create_dir_all(path)?;
        Ok(made)
    }

    /// Removes them up to the first that has something in it, which the system itself sees to.
    pub(super) fn remove_empty(&self) {
        let _ = self.0.iter().try_for_each(fs::remove_dir);
    }
}
