//! Images from executables of this machine, for engines without a registry, and for `sweep`'s own agent and upstream.
//!
//! An executable and the shared libraries that it needs are all that an image must hold. [`bundle`] finds them as `ldd`
//! does, by asking the executable's own dynamic loader, and lays them out as a root filesystem that `docker import`
//! takes ([`Bundle::write_rootfs`]) or as one folder that runs inside any other image ([`Bundle::write_self_contained`]).
//! Equal inputs give equal bytes, so an image can be named by [`Bundle::digest`] and made once.
//!
//! Libraries that a program opens by name at run time (`dlopen`) are in no list; add them as an [`Extra`].

mod elf;
mod layout;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};

pub use layout::{Extra, ExtraContent};
use layout::{Entry, Source};

/// Where the executable goes in the image.
const BIN_DIR: &str = "/usr/local/bin";

/// An image could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// The file system refused.
    #[error("{operation} {}: {source}", path.display())]
    Io {
        /// What was tried.
        operation: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// Not a Linux program.
    #[error(
        "{} is not a Linux (ELF) executable: {found}; give the program itself, built for Linux",
        path.display()
    )]
    NotElf {
        /// The file.
        path: PathBuf,
        /// What it is instead.
        found: String,
    },
    /// Built for other hardware.
    #[error(
        "{} is built for {found}, and this machine is {expected}; give the {expected} build, or import it on a machine \
         of its own kind",
        path.display()
    )]
    WrongArchitecture {
        /// The file.
        path: PathBuf,
        /// Its architecture.
        found: String,
        /// Ours.
        expected: &'static str,
    },
    /// A library that the program needs is not on this machine.
    #[error(
        "{} needs shared libraries that this machine lacks: {}; install the packages that hold them, or set \
         LD_LIBRARY_PATH to their folder",
        path.display(), missing.join(", ")
    )]
    LibraryNotFound {
        /// The program.
        path: PathBuf,
        /// Their names.
        missing: Vec<String>,
    },
    /// The program's dynamic loader is missing or failed.
    #[error(
        "list the shared libraries of {} with its loader {}: {cause}; install the C library that it was built for",
        path.display(), loader.display()
    )]
    Loader {
        /// The program.
        path: PathBuf,
        /// The loader that it names.
        loader: PathBuf,
        /// Why it failed.
        cause: String,
    },
    /// An extra file has no place in the image.
    #[error("add {source_path} to the image as {target:?}: {cause}")]
    Extra {
        /// The file on this machine.
        source_path: String,
        /// Its place in the image.
        target: String,
        /// What is wrong.
        cause: String,
    },
}

/// An executable with everything that it needs, ready to be laid out.
#[derive(Debug, Clone)]
pub struct Bundle {
    /// File name of the executable.
    pub name: String,
    executable: PathBuf,
    /// Loader: the path that the executable asks for, which is also where it was found. `None` when static.
    loader: Option<PathBuf>,
    /// Name that the loader looks for → file on this machine.
    libraries: BTreeMap<String, PathBuf>,
    extra: BTreeMap<String, Entry>,
}

/// Finds what `executable` needs to run in an image of its own, with `extra` files beside it.
///
/// The executable's own loader is run with `--list` (as `ldd` does); the executable itself is not.
///
/// # Errors
/// When it is not a Linux executable of this machine's architecture, or a library is missing.
pub fn bundle(executable: &Path, extra: &[Extra]) -> Result<Bundle, ImageError> {
    let executable = fs_err::canonicalize(executable).map_err(|source| ImageError::Io {
        operation: "find",
        path: executable.to_path_buf(),
        source,
    })?;
    let name = executable
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    let loader = elf::loader(&executable)?;
    let mut libraries = BTreeMap::new();
    let mut entries = BTreeMap::new();
    for item in extra {
        item.expand(&mut entries)?;
    }
    if let Some(loader) = &loader {
        libraries = elf::libraries(loader, &executable)?;
        // An added file may be a module that is loaded at run time and needs libraries of its own.
        for entry in entries.values() {
            if let Source::File(path) = &entry.source
                && elf::is_dynamic(path)?
            {
                libraries.extend(elf::libraries(loader, path)?);
            }
        }
    }
    Ok(Bundle {
        name,
        executable,
        loader,
        libraries,
        extra: entries,
    })
}

impl Bundle {
    /// Path of the executable in the image.
    #[must_use]
    pub fn entrypoint(&self) -> String {
        format!("{BIN_DIR}/{}", self.name)
    }

    /// The image's configuration, as Dockerfile instructions for `docker import --change`.
    ///
    /// `LD_LIBRARY_PATH` names every folder with a library: the image has no `ld.so.cache`, and an executable that finds
    /// its libraries relative to itself has moved.
    #[must_use]
    pub fn changes(&self) -> Vec<String> {
        let entrypoint = serde_json::json!([self.entrypoint()]);
        let mut changes = vec![format!("ENTRYPOINT {entrypoint}")];
        let folders: BTreeSet<String> = self
            .libraries
            .values()
            .filter_map(|path| path.parent())
            .map(|folder| folder.to_string_lossy().into_owned())
            .collect();
        if !folders.is_empty() {
            let folders = folders.into_iter().collect::<Vec<_>>().join(":");
            changes.push(format!("ENV LD_LIBRARY_PATH={}", docker_quote(&folders)));
        }
        changes
    }

    /// Writes the root filesystem as a tar archive: everything owned by root, dated 1970, sorted by path.
    ///
    /// # Errors
    /// When a file cannot be read or `out` cannot be written.
    pub fn write_rootfs(&self, out: impl Write) -> Result<(), ImageError> {
        let mut entries = BTreeMap::new();
        entries.insert("/tmp".to_owned(), Entry::dir(0o1777));
        entries.insert(self.entrypoint(), Entry::file(&self.executable, 0o755));
        for path in self.loader.iter().chain(self.libraries.values()) {
            entries.insert(
                path.to_string_lossy().into_owned(),
                Entry::file(path, 0o755),
            );
        }
        entries.extend(self.extra.clone());
        layout::write_tar(&entries, out)
    }

    /// Writes a folder `/{folder}` that holds the executable, its loader and its libraries, as a tar archive to be
    /// unpacked at the root of any container. It is started by [`Bundle::self_contained_command`] and touches nothing of
    /// the image that it runs in.
    ///
    /// # Errors
    /// When a file cannot be read or `out` cannot be written.
    pub fn write_self_contained(&self, folder: &str, out: impl Write) -> Result<(), ImageError> {
        let mut entries = BTreeMap::new();
        entries.insert(
            format!("/{folder}/bin/{}", self.name),
            Entry::file(&self.executable, 0o755),
        );
        if let Some(loader) = &self.loader {
            entries.insert(format!("/{folder}/ld.so"), Entry::file(loader, 0o755));
        }
        for (name, path) in &self.libraries {
            entries.insert(format!("/{folder}/lib/{name}"), Entry::file(path, 0o755));
        }
        layout::write_tar(&entries, out)
    }

    /// The command that starts the executable from the folder of [`Bundle::write_self_contained`].
    #[must_use]
    pub fn self_contained_command(&self, folder: &str) -> Vec<String> {
        let program = format!("/{folder}/bin/{}", self.name);
        match self.loader {
            None => vec![program],
            Some(_) => vec![
                format!("/{folder}/ld.so"),
                "--library-path".to_owned(),
                format!("/{folder}/lib"),
                program,
            ],
        }
    }

    /// SHA-256 of the root filesystem and the configuration, in hexadecimal: equal digests, equal images.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn digest(&self) -> Result<String, ImageError> {
        use sha2::Digest as _;
        let mut hash = sha2::Sha256::new();
        self.write_rootfs(&mut hash)?;
        for change in self.changes() {
            hash.update(change.as_bytes());
        }
        Ok(hash
            .finalize()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect())
    }
}

/// Quotes a value for a Dockerfile instruction, where `$` would be a variable.
fn docker_quote(value: &str) -> String {
    let mut quoted = String::from("\"");
    for c in value.chars() {
        if matches!(c, '"' | '\\' | '$') {
            quoted.push('\\');
        }
        quoted.push(c);
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests;
