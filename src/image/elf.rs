//! What an executable needs, by its ELF header and its own loader.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use elf::ElfStream;
use elf::abi;
use elf::endian::AnyEndian;

use super::ImageError;

/// First bytes of every ELF file.
const MAGIC: [u8; 4] = [0x7f, b'E', b'L', b'F'];

/// glibc's words for a library that is not there.
const GLIBC_MISSING: &str = ": cannot open shared object file";

/// Longest path that the kernel takes for a loader (`PATH_MAX`).
const PATH_MAX: u64 = 4096;

/// The loader that `executable` names, `None` when it is static.
pub(super) fn loader(executable: &Path) -> Result<Option<PathBuf>, ImageError> {
    let not_elf = |found: String| ImageError::NotElf {
        path: executable.to_path_buf(),
        found,
    };
    if !fs_err::metadata(executable)
        .map_err(io("read", executable))?
        .is_file()
    {
        return Err(not_elf("not a regular file".to_owned()));
    }
    let head = head(executable)?;
    if !head.starts_with(&MAGIC) {
        return Err(not_elf(describe(&head)));
    }
    let file = fs_err::File::open(executable).map_err(io("open", executable))?;
    let stream = ElfStream::<AnyEndian, _>::open_stream(file)
        .map_err(|error| not_elf(format!("its headers are damaged or cut off ({error})")))?;
    let (machine, kind) = (stream.ehdr.e_machine, stream.ehdr.e_type);
    if machine != own_machine() {
        return Err(ImageError::WrongArchitecture {
            path: executable.to_path_buf(),
            found: machine_name(machine),
            expected: std::env::consts::ARCH,
        });
    }
    if kind != abi::ET_EXEC && kind != abi::ET_DYN {
        return Err(not_elf("an object file or core dump".to_owned()));
    }
    let Some(segment) = stream
        .segments()
        .iter()
        .find(|segment| segment.p_type == abi::PT_INTERP)
    else {
        return Ok(None);
    };
    if segment.p_filesz > PATH_MAX {
        return Err(not_elf(
            "its loader's name is longer than a path".to_owned(),
        ));
    }
    let name = read_at(executable, segment.p_offset, segment.p_filesz)?;
    let name = String::from_utf8_lossy(&name);
    let name = name.trim_end_matches('\0');
    if !name.starts_with('/') {
        return Err(not_elf(format!(
            "its loader {name:?} is not an absolute path"
        )));
    }
    Ok(Some(PathBuf::from(name)))
}

/// Whether `path` is an ELF file that a loader can resolve libraries for.
pub(super) fn is_dynamic(path: &Path) -> Result<bool, ImageError> {
    if !head(path)?.starts_with(&MAGIC) {
        return Ok(false);
    }
    let file = fs_err::File::open(path).map_err(io("open", path))?;
    let Ok(stream) = ElfStream::<AnyEndian, _>::open_stream(file) else {
        return Ok(false);
    };
    Ok(stream.ehdr.e_machine == own_machine()
        && stream
            .segments()
            .iter()
            .any(|segment| segment.p_type == abi::PT_DYNAMIC))
}

/// Name → file of every library of `object`, by `loader`'s word.
pub(super) fn libraries(
    loader: &Path,
    object: &Path,
) -> Result<BTreeMap<String, PathBuf>, ImageError> {
    let failed = |cause: String| ImageError::Loader {
        path: object.to_path_buf(),
        loader: loader.to_path_buf(),
        cause,
    };
    let run = |command: &mut Command| {
        command
            .arg(object)
            .env_remove("LD_PRELOAD")
            .stdin(Stdio::null())
            .output()
            .map_err(|error| failed(error.to_string()))
    };
    let output = run(Command::new(loader).arg("--list"))?;
    let complaint = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    let mut listing = parse_listing(&String::from_utf8_lossy(&output.stdout));
    listing.missing.extend(missing_in(&complaint));
    if complaint.contains(GLIBC_MISSING) {
        // glibc's `--list` stops at the first; its trace mode, which only glibc has, names all.
        let traced = run(Command::new(loader).env("LD_TRACE_LOADED_OBJECTS", "1"))?;
        let traced = parse_listing(&String::from_utf8_lossy(&traced.stdout));
        if !traced.missing.is_empty() {
            listing.missing = traced.missing;
        }
    }
    if !listing.missing.is_empty() {
        return Err(ImageError::LibraryNotFound {
            path: object.to_path_buf(),
            missing: listing.missing,
        });
    }
    if !output.status.success() {
        return Err(failed(format!("{}: {complaint}", output.status)));
    }
    listing
        .found
        .into_iter()
        .map(|(name, path)| Ok((name, plain(&path)?)))
        .collect()
}

/// The names in a loader's complaint about missing libraries: glibc's `PROGRAM: error while loading shared libraries:
/// NAME: cannot open shared object file: …`, musl's `Error loading shared library NAME: …`.
pub(super) fn missing_in(complaint: &str) -> Vec<String> {
    complaint
        .lines()
        .filter_map(|line| {
            let name = if let Some((before, _)) = line.split_once(GLIBC_MISSING) {
                before.rsplit(": ").next()
            } else {
                let (_, after) = line.split_once("Error loading shared library ")?;
                after.split(": ").next()
            };
            name.map(ToOwned::to_owned)
        })
        .collect()
}

/// What a loader's `--list` said.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Listing {
    /// Name → path.
    pub(super) found: BTreeMap<String, PathBuf>,
    /// Names without a file.
    pub(super) missing: Vec<String>,
}

/// Parses the output of glibc's and musl's `--list`: `name => path (address)` or `name => not found`. Lines with one
/// name only are the kernel's vDSO and the loader itself, which is in the image by its own path.
pub(super) fn parse_listing(text: &str) -> Listing {
    let mut listing = Listing::default();
    for line in text.lines() {
        let Some((name, target)) = line.trim().split_once(" => ") else {
            continue;
        };
        let target = match target.rsplit_once(" (0x") {
            Some((path, _)) => path.trim(),
            None => target.trim(),
        };
        // A library that names a file outright ("/opt/x/liby.so => …") is looked for by that path's last part.
        let short = name.rsplit('/').next().unwrap_or(name);
        if target.starts_with('/') {
            listing
                .found
                .insert(short.to_owned(), PathBuf::from(target));
        } else if target == "not found" {
            listing.missing.push(name.to_owned());
        }
    }
    listing
}

/// The path without `..`, which an archive must not hold.
fn plain(path: &Path) -> Result<PathBuf, ImageError> {
    let has_parent = path
        .components()
        .any(|part| part == std::path::Component::ParentDir);
    if has_parent {
        return fs_err::canonicalize(path).map_err(io("find", path));
    }
    Ok(path.components().collect())
}

fn head(path: &Path) -> Result<Vec<u8>, ImageError> {
    read_at(path, 0, 64)
}

fn read_at(path: &Path, offset: u64, length: u64) -> Result<Vec<u8>, ImageError> {
    use std::io::{Seek as _, SeekFrom};
    let mut file = fs_err::File::open(path).map_err(io("open", path))?;
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(offset))
        .and_then(|_| file.take(length).read_to_end(&mut bytes))
        .map_err(io("read", path))?;
    Ok(bytes)
}

/// What a file that is not ELF seems to be, by its first bytes.
fn describe(head: &[u8]) -> String {
    match head {
        [] => "it is empty".to_owned(),
        [b'#', b'!', ..] => "it is a script; give the program that it starts".to_owned(),
        [b'M', b'Z', ..] => "it is a Windows program".to_owned(),
        [0xcf | 0xce, 0xfa, 0xed, 0xfe, ..] | [0xca, 0xfe, 0xba, 0xbe, ..] => {
            "it is a macOS program".to_owned()
        }
        _ => "it does not begin with an ELF header".to_owned(),
    }
}

/// `e_machine` of this program's own architecture.
fn own_machine() -> u16 {
    match std::env::consts::ARCH {
        "x86_64" => abi::EM_X86_64,
        "aarch64" => abi::EM_AARCH64,
        "riscv64" => abi::EM_RISCV,
        "s390x" => abi::EM_S390,
        "powerpc64" => abi::EM_PPC64,
        "arm" => abi::EM_ARM,
        "x86" => abi::EM_386,
        _ => abi::EM_NONE,
    }
}

fn machine_name(machine: u16) -> String {
    match machine {
        abi::EM_X86_64 => "x86_64".to_owned(),
        abi::EM_AARCH64 => "aarch64".to_owned(),
        abi::EM_RISCV => "riscv64".to_owned(),
        abi::EM_S390 => "s390x".to_owned(),
        abi::EM_PPC64 => "powerpc64".to_owned(),
        abi::EM_ARM => "arm".to_owned(),
        abi::EM_386 => "x86".to_owned(),
        other => format!("ELF machine {other}"),
    }
}

fn io(operation: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> ImageError {
    let path = path.to_path_buf();
    move |source| ImageError::Io {
        operation,
        path,
        source,
    }
}
