//! A file of the kernel that is read again and again.

use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;

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
                    if !passing(&error) {
                        self.state = State::Unsupported;
                    }
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
                self.state = if error.raw_os_error() == Some(ENODEV) {
                    State::Gone
                } else {
                    State::Unsupported
                };
                None
            }
        }
    }
}

const ENODEV: i32 = rustix::io::Errno::NODEV.raw_os_error();

/// The file may be there later: not created yet, or this process is out of descriptors for now.
fn passing(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let code = error.raw_os_error();
    [Errno::NOENT, Errno::MFILE, Errno::NFILE]
        .iter()
        .any(|e| code == Some(e.raw_os_error()))
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
