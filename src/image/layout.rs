//! Files and their places, and the archive that they make.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};

use super::ImageError;

/// A file or folder of this machine that goes into an image besides the executable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extra {
    /// Absolute path in the image.
    pub target: String,
    /// What goes there.
    pub content: ExtraContent,
}

/// What an [`Extra`] is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExtraContent {
    /// A file, or a folder with everything below it, of this machine.
    Path(PathBuf),
    /// The bytes themselves.
    Bytes(Vec<u8>),
    /// An empty folder with this mode.
    Folder(u32),
}

impl Extra {
    /// Parses `SOURCE` (same place in the image) or `SOURCE=TARGET`, as a command line gives it.
    ///
    /// # Errors
    /// When a place is not an absolute path.
    pub fn parse(text: &str) -> Result<Self, ImageError> {
        let (source, target) = text.rsplit_once('=').unwrap_or((text, text));
        let extra = Self {
            target: target.to_owned(),
            content: ExtraContent::Path(PathBuf::from(source)),
        };
        extra.check_target()?;
        Ok(extra)
    }

    fn refuse(&self, cause: &str) -> ImageError {
        let source_path = match &self.content {
            ExtraContent::Path(path) => path.display().to_string(),
            ExtraContent::Bytes(bytes) => format!("{} bytes", bytes.len()),
            ExtraContent::Folder(_) => "a folder".to_owned(),
        };
        ImageError::Extra {
            source_path,
            target: self.target.clone(),
            cause: cause.to_owned(),
        }
    }

    fn check_target(&self) -> Result<(), ImageError> {
        if !self.target.starts_with('/') {
            return Err(self.refuse("its place must be an absolute path: SOURCE=/TARGET"));
        }
        if self.target.split('/').any(|part| part == "..") {
            return Err(self.refuse("its place must not contain `..`"));
        }
        if self.target.contains('\0') {
            return Err(self.refuse("a path cannot contain a zero byte"));
        }
        Ok(())
    }

    /// Adds this and, for a folder, all below it.
    pub(super) fn expand(&self, entries: &mut BTreeMap<String, Entry>) -> Result<(), ImageError> {
        self.check_target()?;
        let target = tidy(&self.target);
        if target == "/" {
            return Err(self.refuse("its place must be below the root"));
        }
        match &self.content {
            ExtraContent::Bytes(bytes) => {
                entries.insert(
                    target,
                    Entry {
                        mode: 0o644,
                        source: Source::Bytes(bytes.clone()),
                    },
                );
            }
            ExtraContent::Folder(mode) => {
                entries.insert(target, Entry::dir(*mode));
            }
            ExtraContent::Path(path) => add_path(path, &target, entries)?,
        }
        Ok(())
    }
}

/// One member of the archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) mode: u32,
    pub(super) source: Source,
}

/// Where a member's content comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Source {
    Dir,
    File(PathBuf),
    Link(PathBuf),
    Bytes(Vec<u8>),
}

impl Entry {
    pub(super) fn dir(mode: u32) -> Self {
        Self {
            mode,
            source: Source::Dir,
        }
    }

    pub(super) fn file(path: &Path, mode: u32) -> Self {
        Self {
            mode,
            source: Source::File(path.to_path_buf()),
        }
    }
}

/// The path without doubled, trailing or `.` parts.
fn tidy(path: &str) -> String {
    let parts: Vec<&str> = path
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".")
        .collect();
    format!("/{}", parts.join("/"))
}

/// Adds a file with its content, or a folder with everything below it. A link to a file becomes that file (its own name
/// may lie outside of what is added); a link to a folder stays a link, which also ends loops.
fn add_path(
    path: &Path,
    target: &str,
    entries: &mut BTreeMap<String, Entry>,
) -> Result<(), ImageError> {
    let io = |operation| {
        let path = path.to_path_buf();
        move |source| ImageError::Io {
            operation,
            path,
            source,
        }
    };
    let metadata = fs_err::metadata(path).map_err(io("read"))?;
    if metadata.is_file() {
        let mode = mode_of(&metadata);
        entries.insert(target.to_owned(), Entry::file(path, mode));
        return Ok(());
    }
    if !metadata.is_dir() {
        return Err(ImageError::Extra {
            source_path: path.display().to_string(),
            target: target.to_owned(),
            cause: "it is neither a file nor a folder".to_owned(),
        });
    }
    entries.insert(target.to_owned(), Entry::dir(mode_of(&metadata)));
    for child in fs_err::read_dir(path).map_err(io("list"))? {
        let child = child.map_err(io("list"))?;
        let below = format!("{target}/{}", child.file_name().to_string_lossy());
        let kind = child.file_type().map_err(io("list"))?;
        if kind.is_symlink() && child.path().is_dir() {
            let to = fs_err::read_link(child.path()).map_err(io("read the link"))?;
            let link = Entry {
                mode: 0o777,
                source: Source::Link(to),
            };
            entries.insert(below, link);
        } else {
            add_path(&child.path(), &below, entries)?;
        }
    }
    Ok(())
}

/// Readable for everybody: the proxy runs as a user that the image does not know.
fn mode_of(metadata: &std::fs::Metadata) -> u32 {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = metadata.permissions().mode();
    if metadata.is_dir() || mode & 0o111 != 0 {
        0o755
    } else {
        0o644
    }
}

/// Writes the members, sorted, with every folder above them.
pub(super) fn write_tar(
    entries: &BTreeMap<String, Entry>,
    out: impl Write,
) -> Result<(), ImageError> {
    let mut folders = BTreeSet::new();
    for path in entries.keys() {
        let mut above = path.as_str();
        while let Some((parent, _)) = above.rsplit_once('/') {
            if parent.is_empty() || !folders.insert(parent.to_owned()) {
                break;
            }
            above = parent;
        }
    }
    let dir = Entry::dir(0o755);
    let mut all: BTreeMap<&str, &Entry> =
        folders.iter().map(|path| (path.as_str(), &dir)).collect();
    all.extend(entries.iter().map(|(path, entry)| (path.as_str(), entry)));
    let mut archive = tar::Builder::new(out);
    for (path, entry) in all {
        if folders.contains(path) && !matches!(entry.source, Source::Dir) {
            return Err(ImageError::Extra {
                source_path: "a file".to_owned(),
                target: path.to_owned(),
                cause: "another file's folder has this path".to_owned(),
            });
        }
        append(&mut archive, path, entry)?;
    }
    archive.finish().map_err(|source| ImageError::Io {
        operation: "finish the archive at",
        path: PathBuf::from("/"),
        source,
    })
}

fn append<W: Write>(
    archive: &mut tar::Builder<W>,
    path: &str,
    entry: &Entry,
) -> Result<(), ImageError> {
    let mut header = tar::Header::new_gnu();
    header.set_mode(entry.mode);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_size(0);
    let name = path.trim_start_matches('/');
    let result = match &entry.source {
        Source::Dir => {
            header.set_entry_type(tar::EntryType::Directory);
            archive.append_data(&mut header, format!("{name}/"), std::io::empty())
        }
        Source::Link(to) => {
            header.set_entry_type(tar::EntryType::Symlink);
            archive.append_link(&mut header, name, to)
        }
        Source::Bytes(bytes) => {
            header.set_size(bytes.len() as u64);
            archive.append_data(&mut header, name, bytes.as_slice())
        }
        Source::File(file) => fs_err::File::open(file).and_then(|content| {
            // The size of what is open, so that a file replaced meanwhile cannot shift the archive.
            header.set_size(content.metadata()?.len());
            archive.append_data(&mut header, name, content)
        }),
    };
    result.map_err(|source| ImageError::Io {
        operation: "put into the archive",
        path: PathBuf::from(path),
        source,
    })
}
