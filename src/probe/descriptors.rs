//! Open descriptors of the proxy's processes, and how many they may have.
//!
//! Since kernel 6.2 `stat` of `/proc/PID/fd` gives the number as the size, to anybody. Before, the directory has to be listed,
//! which the kernel allows to the directory's owner, the process's user: so proxy and agent run as one user.

use std::path::Path;

use super::FsRoot;
use super::text::soft_limit_nofile;

/// Descriptors of several processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OpenFds {
    pub(crate) sum: u64,
    pub(crate) max: u64,
}

/// Counts descriptors.
#[derive(Debug)]
pub(crate) struct Descriptors {
    root: FsRoot,
    /// `stat` tells the number.
    by_size: bool,
}

impl Descriptors {
    pub(crate) fn new(root: &FsRoot) -> Self {
        Self {
            by_size: size_is_count(&root.proc.join("self/fd")),
            root: root.clone(),
        }
    }

    /// Whether counting costs the same however many descriptors are open.
    pub(crate) fn is_cheap(&self) -> bool {
        self.by_size
    }

    /// `None` if any process could not be counted, or there is none.
    pub(crate) fn count(&self, pids: &[u32]) -> Option<OpenFds> {
        let counts: Option<Vec<u64>> = pids.iter().map(|pid| self.of_process(*pid)).collect();
        let counts = counts?;
        Some(OpenFds {
            max: counts.iter().copied().max()?,
            sum: counts.iter().sum(),
        })
    }

    fn of_process(&self, pid: u32) -> Option<u64> {
        let directory = self.root.proc.join(pid.to_string()).join("fd");
        if self.by_size {
            return fs_err::metadata(directory).ok().map(|found| found.len());
        }
        let entries = fs_err::read_dir(directory).ok()?;
        Some(entries.count() as u64)
    }

    /// The smallest soft `RLIMIT_NOFILE` among the processes.
    pub(crate) fn limit(&self, pids: &[u32]) -> Option<u64> {
        let limits = pids.iter().filter_map(|pid| {
            let path = self.root.proc.join(pid.to_string()).join("limits");
            soft_limit_nofile(&fs_err::read_to_string(path).ok()?)
        });
        limits.min()
    }
}

/// This process has descriptors, so a size of 0 is an older kernel's; and only procfs gives a number here at all.
fn size_is_count(own: &Path) -> bool {
    let is_procfs =
        rustix::fs::statfs(own).is_ok_and(|fs| fs.f_type == rustix::fs::PROC_SUPER_MAGIC);
    is_procfs && fs_err::metadata(own).is_ok_and(|found| found.len() > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_descriptors_by_both_ways() {
        let by_default = Descriptors::new(&FsRoot::default());
        let by_list = Descriptors {
            by_size: false,
            ..Descriptors::new(&FsRoot::default())
        };
        let held: Vec<_> = (0..200)
            .map(|_| fs_err::File::open("/proc/self/stat").expect("open"))
            .collect();
        let pid = [std::process::id()];
        let with = by_default.count(&pid).expect("own count");
        assert!(with.sum >= 200 && with.sum == with.max);
        // Other tests open and close files meanwhile.
        let listed = by_list.count(&pid).expect("own list").sum;
        assert!(listed.abs_diff(with.sum) < 100, "{listed} or {}", with.sum);
        assert!(by_default.limit(&pid) >= Some(with.max));
        drop(held);
    }

    #[test]
    fn a_process_that_is_not_there_is_unknown() {
        let descriptors = Descriptors::new(&FsRoot::default());
        assert_eq!(descriptors.count(&[u32::MAX]), None);
        assert_eq!(descriptors.count(&[]), None);
        assert_eq!(descriptors.limit(&[u32::MAX]), None);
    }
}
