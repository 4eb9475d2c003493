//! A file of the kernel that is read again and again.

use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use fs_err::File;

/// Text that one `read` returns whole: `seq_file` hands out a page at a time, and only texts of many records are longer.
const WHOLE: usize = 4000;
const GROWTH: usize = 16 * 1024;

/// A file kept open and re-read from its start: cheaper than opening it each time, and it tells (`ENODEV`) when its cgroup
/// is gone.
#[derive(Debug)]
pub(crate) struct KeptFile {
    path: PathBuf,
    state: State,
}

#[derive(Debug)]
enum State {
    /// Not there yet, or not opened yet.
    Closed,
    Open(File),
    /// It was there, and its cgroup has been removed.
    Gone,
    /// The kernel does not have it (PSI switched off), or does not let us read it.
    Unsupported,
}

impl KeptFile {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self {
            path,
            state: State::Closed,
        }
    }

    /// Whether the file was there once and its cgroup no longer is.
    pub(crate) fn is_gone(&self) -> bool {
        matches!(self.state, State::Gone)
    }

    /// The text now, in `buffer`; `None` when it cannot be read. A file that is not there yet is tried again next time.
    pub(crate) fn read<'b>(&mut self, buffer: &'b mut Vec<u8>) -> Option<&'b str> {
        if matches!(self.state, State::Closed) {
            match File::open(&self.path) {
                Ok(file) => self.state = State::Open(file),
                Err(error) => {
                    self.state = after(&error);
                    return None;
                }
            }
        }
        let State::Open(file) = &self.state else {
            return None;
        };
        match read_whole(file, buffer) {
            Ok(length) => std::str::from_utf8(&buffer[..length]).ok(),
            Err(error) => {
                match after(&error) {
                    // A passing fault of an open file.
                    State::Closed => {}
                    state => self.state = state,
                }
                None
            }
        }
    }
}

/// What an error says about trying again: an absent file may be created yet, and a lack of memory or descriptors may pass.
fn after(error: &io::Error) -> State {
    use rustix::io::Errno;
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::NODEV) => State::Gone,
        Some(Errno::OPNOTSUPP | Errno::ACCESS | Errno::PERM) => State::Unsupported,
        _ => State::Closed,
    }
}

/// The text of a file that must be opened anew each time, in three system calls.
pub(crate) fn read_once<'b>(path: &Path, buffer: &'b mut Vec<u8>) -> io::Result<&'b str> {
    let file = File::open(path)?;
    let length = read_whole(&file, buffer)?;
    std::str::from_utf8(&buffer[..length]).map_err(io::Error::other)
}

fn read_whole(file: &File, buffer: &mut Vec<u8>) -> io::Result<usize> {
    let mut length = 0;
    loop {
        if buffer.len() < length + GROWTH {
            buffer.resize(length + GROWTH, 0);
        }
        match file.file().read_at(&mut buffer[length..], length as u64) {
            Ok(0) => return Ok(length),
            Ok(n) => {
                length += n;
                if n < WHOLE {
                    return Ok(length);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
