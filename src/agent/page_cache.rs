//! Makes the page cache of every file of this container's image warm or cold.
//!
//! Who reads a file first pays for its pages; a proxy whose 100 MB binary is warm needs a fifth of the memory of the same
//! proxy when it is cold. This runs in a throwaway container of the *proxy's* image, so that on a storage driver whose
//! containers share their lower files, the proxy finds what was made here.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::spec::settings::PageCache;

/// Reads (warm) or evicts (cold) every regular file of the root file system; other mounts are left alone. Returns the
/// bytes handled.
///
/// # Errors
/// When the root folder cannot be read. A single unreadable file is skipped: it is not one that the proxy can run.
pub fn apply(state: PageCache, root: &Path) -> std::io::Result<u64> {
    let device = fs_err::metadata(root)?.dev();
    let mut folders: Vec<PathBuf> = vec![root.to_owned()];
    let mut bytes = 0;
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs_err::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            let Ok(meta) = entry.path().symlink_metadata() else { continue };
            if meta.is_dir() && meta.dev() == device {
                folders.push(entry.path());
            } else if meta.is_file() {
                bytes += handle(state, &entry.path()).unwrap_or(0);
            }
        }
    }
    Ok(bytes)
}

fn handle(state: PageCache, path: &Path) -> std::io::Result<u64> {
    let mut file = File::open(path)?;
    match state {
        PageCache::Warm => {
            let mut buffer = vec![0; 1 << 20];
            let mut bytes = 0;
            loop {
                match file.read(&mut buffer)? {
                    0 => return Ok(bytes),
                    n => bytes += n as u64,
                }
            }
        }
        PageCache::Cold => {
            rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)?;
            Ok(file.metadata()?.len())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_below_the_root_is_handled() {
        let dir = tempfile::tempdir().expect("tempdir");
        fs_err::create_dir(dir.path().join("a")).expect("dir");
        fs_err::write(dir.path().join("a/one"), vec![1; 3000]).expect("write");
        fs_err::write(dir.path().join("two"), vec![2; 70_000]).expect("write");
        std::os::unix::fs::symlink("/etc/passwd", dir.path().join("link")).expect("symlink");
        for state in [PageCache::Warm, PageCache::Cold] {
            assert_eq!(apply(state, dir.path()).expect("apply"), 73_000);
        }
    }
}
