//! The text of a matrix, and of the files that it refers to: bounded in size, and never waiting for a pipe that nobody
//! writes to.

use std::io::{self, Read as _};
use std::path::Path;
use std::time::Duration;

use fs_err::os::unix::fs::OpenOptionsExt as _;
use fs_err::{File, OpenOptions};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::os::unix::fs::FileTypeExt as _;

use super::MAX_FILE;
use super::text::{Sources, printable};
use crate::spec::fault::Place;

/// A pipe that nobody has opened for writing is given up after this. One with a writer is waited for, as programs may
/// take their time.
const PATIENCE: Duration = Duration::from_secs(5);

/// Why a text could not be had, and what helps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unreadable {
    pub(super) cause: String,
    pub(super) remedy: &'static str,
}

const ANOTHER: &str = "give the path of a matrix, such as matrix/quick.toml";
const SMALLER: &str = "a matrix is a small text: give the path of one, such as matrix/quick.toml";
const AS_UTF8: &str = "save it as UTF-8";

fn because(cause: impl Into<String>) -> Unreadable {
    Unreadable {
        cause: cause.into(),
        remedy: ANOTHER,
    }
}

fn said(error: io::Error) -> Unreadable {
    because(match error.kind() {
        io::ErrorKind::NotFound => "no such file".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => printable(&error.to_string()),
    })
}

/// The text of a file of at most [`MAX_FILE`] bytes. Pipes and devices are read like files, since `<(…)` of a shell is a
/// pipe and `/dev/stdin` may be anything.
pub(super) fn read_text(path: &Path) -> Result<String, Unreadable> {
    read_within(path, PATIENCE)
}

fn read_within(path: &Path, patience: Duration) -> Result<String, Unreadable> {
    let found = fs_err::metadata(path).map_err(said)?;
    if found.is_dir() {
        return Err(because("it is a directory"));
    }
    let mut bytes = Vec::new();
    let file = if found.file_type().is_fifo() {
        open_pipe(path, patience, &mut bytes)?
    } else {
        File::open(path).map_err(said)?
    };
    file.take(MAX_FILE as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(said)?;
    if bytes.len() > MAX_FILE {
        return Err(Unreadable {
            cause: too_long(&found),
            remedy: SMALLER,
        });
    }
    String::from_utf8(bytes).map_err(|error| not_utf8(error.as_bytes()))
}

/// A pipe, open for reading, and what was read of it to learn that somebody writes.
fn open_pipe(path: &Path, patience: Duration, bytes: &mut Vec<u8>) -> Result<File, Unreadable> {
    // Without this flag the mere opening would wait for a writer.
    let mut file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)
        .map_err(said)?;
    let system = |error: rustix::io::Errno| said(error.into());
    let timeout = Timespec::try_from(patience).ok();
    let ready = rustix::io::retry_on_intr(|| {
        poll(&mut [PollFd::new(&file, PollFlags::IN)], timeout.as_ref())
    })
    .map_err(system)?;
    if ready == 0 {
        // A writer that is still at work makes a read fail; a pipe without one reads as ended.
        let mut first = [0];
        match file.read(&mut first) {
            Ok(0) => {
                return Err(because(format!(
                    "it is a pipe, and nobody opened it for writing within {}",
                    humantime::format_duration(patience)
                )));
            }
            Ok(_) => bytes.extend(first),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
            Err(e) => return Err(said(e)),
        }
    }
    let flags = rustix::fs::fcntl_getfl(&file).map_err(system)?;
    rustix::fs::fcntl_setfl(&file, flags - rustix::fs::OFlags::NONBLOCK).map_err(system)?;
    Ok(file)
}

fn too_long(found: &std::fs::Metadata) -> String {
    let kind = found.file_type();
    let what = if kind.is_file() {
        return format!(
            "it has {} bytes, above the limit of {MAX_FILE}",
            found.len()
        );
    } else if kind.is_fifo() {
        "pipe"
    } else if kind.is_char_device() || kind.is_block_device() {
        "device"
    } else {
        "special file"
    };
    format!("it is a {what} that goes on after {MAX_FILE} bytes")
}

fn not_utf8(bytes: &[u8]) -> Unreadable {
    let good = match std::str::from_utf8(bytes) {
        Ok(_) => bytes.len(),
        Err(error) => error.valid_up_to(),
    };
    let cause = if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        "it is UTF-16, not UTF-8 text".to_owned()
    } else {
        let sources = Sources {
            file: String::from_utf8_lossy(&bytes[..good]).into_owned(),
            ..Sources::default()
        };
        let (line, column) = sources.line_column(&Place::new(0, good..good));
        let byte = bytes.get(good).copied().unwrap_or_default();
        format!("line {line}, column {column}: the byte 0x{byte:02x} is not UTF-8 text")
    };
    Unreadable {
        cause,
        remedy: AS_UTF8,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::io::Write as _;
    use std::os::fd::AsRawFd as _;

    use super::*;

    const SHORTLY: Duration = Duration::from_millis(50);

    fn cause(path: &Path) -> String {
        let error = read_within(path, SHORTLY).unwrap_err();
        format!("{}; {}", error.cause, error.remedy)
    }

    fn cause_of(bytes: &[u8]) -> String {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs_err::write(file.path(), bytes).unwrap();
        cause(file.path())
    }

    #[test]
    fn what_is_not_utf8_is_told_with_its_place() {
        insta::assert_snapshot!(cause_of("name = \"a\"\n# ä\u{e9}".as_bytes().split_last().unwrap().1), @"line 2, column 4: the byte 0xc3 is not UTF-8 text; save it as UTF-8");
        insta::assert_snapshot!(cause_of(b"# caf\xe9\n"), @"line 1, column 6: the byte 0xe9 is not UTF-8 text; save it as UTF-8");
        insta::assert_snapshot!(cause_of(b"\xff\xfen\0a\0"), @"it is UTF-16, not UTF-8 text; save it as UTF-8");
    }

    #[test]
    fn what_is_too_long_is_told_with_its_kind() {
        insta::assert_snapshot!(cause_of(&vec![b' '; MAX_FILE + 1]), @"it has 1048577 bytes, above the limit of 1048576; a matrix is a small text: give the path of one, such as matrix/quick.toml");
        insta::assert_snapshot!(cause(Path::new("/dev/zero")), @"it is a device that goes on after 1048576 bytes; a matrix is a small text: give the path of one, such as matrix/quick.toml");
        assert_eq!(read_text(Path::new("/dev/null")).as_deref(), Ok(""));
    }

    fn fifo(folder: &Path) -> std::path::PathBuf {
        let path = folder.join("pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &path,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
            0,
        )
        .unwrap();
        path
    }

    #[test]
    fn a_pipe_that_nobody_writes_to_is_given_up() {
        let folder = tempfile::tempdir().unwrap();
        insta::assert_snapshot!(cause(&fifo(folder.path())), @"it is a pipe, and nobody opened it for writing within 50ms; give the path of a matrix, such as matrix/quick.toml");
    }

    #[test]
    fn a_pipe_with_a_writer_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = fifo(folder.path());
        // Open for both, so that this does not wait for the reader.
        let mut writer = OpenOptions::new()
            .read(true)
            .write(true)
            .open(&path)
            .unwrap();
        let reader = std::thread::spawn(move || read_within(&path, Duration::ZERO));
        writer.write_all(b"name").unwrap();
        writer.write_all(b" = \"a\"\n").unwrap();
        // The reader has it open once it has read.
        let deadline = std::time::Instant::now() + Duration::from_secs(30);
        while rustix::io::ioctl_fionread(&writer).unwrap() > 0 {
            assert!(std::time::Instant::now() < deadline, "nothing is read");
            std::thread::yield_now();
        }
        drop(writer);
        assert_eq!(reader.join().unwrap().as_deref(), Ok("name = \"a\"\n"));
    }

    #[test]
    fn the_pipe_of_a_shell_is_read() {
        let (reader, mut writer) = io::pipe().unwrap();
        writer.write_all(b"seed = 1\n").unwrap();
        drop(writer);
        let path = format!("/proc/self/fd/{}", reader.as_raw_fd());
        assert_eq!(read_text(Path::new(&path)).as_deref(), Ok("seed = 1\n"));
    }
}
