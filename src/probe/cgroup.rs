//! The proxy's cgroup: where it is, what its files say, which limits are in force.

mod find;
mod limits;
mod source;

use std::path::{Path, PathBuf};

pub(crate) use find::{Finder, Location};
pub(crate) use limits::limits_in_force;
pub(crate) use source::Reading;
use source::{Cadence, SOURCES_V1, SOURCES_V2, Source};

use super::FsRoot;
use super::file::{KeptFile, read_once};
use super::report::CgroupVersion;

/// Mount points by what is read from them. On v2 all are the same directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hierarchies {
    pub(crate) version: CgroupVersion,
    pub(crate) cpu: Option<PathBuf>,
    pub(crate) cpuacct: Option<PathBuf>,
    pub(crate) memory: Option<PathBuf>,
    /// Where PSI is: the unified hierarchy, also beside v1 ones ("hybrid").
    pub(crate) unified: Option<PathBuf>,
}

/// One of [`Hierarchies`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mount {
    Cpu,
    Cpuacct,
    Memory,
    Unified,
}

impl Hierarchies {
    /// Finds out what is mounted. A hybrid host mounts v1 hierarchies and, beside them, an empty unified one, so the type of
    /// the root's file system decides, not the presence of a `0::` line or of `unified`.
    pub(crate) fn detect(root: &FsRoot) -> Self {
        let base = &root.cgroup;
        if is_cgroup2(base) {
            let all = Some(base.clone());
            return Self {
                version: CgroupVersion::V2,
                cpu: all.clone(),
                cpuacct: all.clone(),
                memory: all.clone(),
                unified: all,
            };
        }
        let unified = base.join("unified");
        Self {
            version: CgroupVersion::V1,
            cpu: v1_mount(base, "cpu"),
            cpuacct: v1_mount(base, "cpuacct"),
            memory: v1_mount(base, "memory"),
            unified: is_cgroup2(&unified).then_some(unified),
        }
    }

    pub(crate) fn get(&self, mount: Mount) -> Option<&Path> {
        match mount {
            Mount::Cpu => self.cpu.as_deref(),
            Mount::Cpuacct => self.cpuacct.as_deref(),
            Mount::Memory => self.memory.as_deref(),
            Mount::Unified => self.unified.as_deref(),
        }
    }
}

fn is_cgroup2(path: &Path) -> bool {
    const CGROUP2_SUPER_MAGIC: rustix::fs::FsWord = 0x6367_7270;
    let by_type = rustix::fs::statfs(path).is_ok_and(|fs| fs.f_type == CGROUP2_SUPER_MAGIC);
    // A fixture is an ordinary directory; no v1 hierarchy has this file.
    by_type || path.join("cgroup.controllers").is_file()
}

/// The directory of a v1 controller: its own, a link, or one shared with others (`cpu,cpuacct`).
fn v1_mount(base: &Path, controller: &str) -> Option<PathBuf> {
    let own = base.join(controller);
    if own.is_dir() {
        return Some(own);
    }
    fs_err::read_dir(base)
        .ok()?
        .filter_map(Result::ok)
        .find(|entry| {
            let name = entry.file_name();
            name.to_string_lossy().split(',').any(|c| c == controller)
        })
        .map(|entry| entry.path())
}

/// The CPU time of one cgroup.
#[derive(Debug)]
pub(crate) struct CpuUsage {
    source: Source,
    file: KeptFile,
    buffer: Vec<u8>,
}

impl CpuUsage {
    pub(crate) fn open(hierarchies: &Hierarchies, path: &str) -> Self {
        let (mount, name, source) = match hierarchies.version {
            CgroupVersion::V1 => (Mount::Cpuacct, "cpuacct.usage", Source::CpuacctUsage),
            CgroupVersion::V2 => (Mount::Cpu, "cpu.stat", Source::CpuStatV2),
        };
        let base = hierarchies.get(mount).unwrap_or(Path::new("/nonexistent"));
        Self {
            source,
            file: KeptFile::new(base.join(path.trim_start_matches('/')).join(name)),
            buffer: Vec::new(),
        }
    }

    pub(crate) fn usec(&mut self) -> Option<u64> {
        let mut reading = Reading::default();
        self.source
            .apply(self.file.read(&mut self.buffer)?, &mut reading);
        reading.counters.cpu_usage_usec
    }
}

/// The files of one cgroup, kept open.
#[derive(Debug)]
pub(crate) struct Group {
    files: Vec<(Source, Cadence, KeptFile)>,
    /// Opened anew for each reading: v1 answers re-reads of an open `cgroup.procs` from a list that it keeps for a second after the
    /// last of them, and so would for ever show the group as it was at first (`cgroup_pidlist_start()`).
    procs: PathBuf,
    /// v2 only: says whether processes are in the group *or below it* (Podman puts them into a child).
    populated: Option<KeptFile>,
    directory: PathBuf,
    seen_alive: bool,
}

impl Group {
    pub(crate) fn open(hierarchies: &Hierarchies, location: &Location) -> Self {
        let table = match hierarchies.version {
            CgroupVersion::V1 => SOURCES_V1,
            CgroupVersion::V2 => SOURCES_V2,
        };
        let directory_of = |mount: Mount| {
            let base = hierarchies.get(mount)?;
            Some(base.join(location.path.trim_start_matches('/')))
        };
        let files = table
            .iter()
            .filter_map(|entry| {
                let file = KeptFile::new(directory_of(entry.mount)?.join(entry.file));
                Some((entry.source, entry.cadence, file))
            })
            .collect();
        let directory = hierarchies
            .get(location.found_in)
            .map(|base| base.join(location.path.trim_start_matches('/')))
            .unwrap_or_default();
        let populated = (hierarchies.version == CgroupVersion::V2)
            .then(|| KeptFile::new(directory.join("cgroup.events")));
        Self {
            files,
            procs: directory.join("cgroup.procs"),
            populated,
            directory,
            seen_alive: false,
        }
    }

    /// Reads the files; with `slow`, also those that matter only as a difference over the window.
    pub(crate) fn read(&mut self, slow: bool, buffer: &mut Vec<u8>) -> Reading {
        let mut reading = Reading::default();
        for (source, cadence, file) in &mut self.files {
            if (slow || *cadence == Cadence::Always)
                && let Some(text) = file.read(buffer)
            {
                source.apply(text, &mut reading);
            }
        }
        reading.settle();
        reading
    }

    /// OOM kills so far, by the one file that tells: cheap enough to be read a hundred times a second.
    pub(crate) fn oom_kill(&mut self, buffer: &mut Vec<u8>) -> Option<u64> {
        let (source, _, file) = self
            .files
            .iter_mut()
            .find(|(source, ..)| matches!(source, Source::OomControl | Source::EventsV2))?;
        let mut reading = Reading::default();
        source.apply(file.read(buffer)?, &mut reading);
        reading.counters.oom_kill
    }

    /// Whether the container has processes. Before the first has entered the new cgroup it counts as alive.
    pub(crate) fn is_alive(&mut self, buffer: &mut Vec<u8>) -> bool {
        let populated = match &mut self.populated {
            Some(file) => file
                .read(buffer)
                .and_then(|text| super::text::keyed(text, "populated"))
                .map(|n| n != 0),
            None => read_once(&self.procs, buffer)
                .ok()
                .map(|text| !text.is_empty()),
        };
        match populated {
            Some(true) => {
                self.seen_alive = true;
                true
            }
            Some(false) => !self.seen_alive,
            None => !self.is_gone(),
        }
    }

    /// Whether asking [`Self::is_alive`] is one read of an open file.
    pub(crate) fn is_cheap_to_ask(&self) -> bool {
        self.populated.is_some()
    }

    /// Whether the files that are kept open have lost their cgroup, by the last look.
    pub(crate) fn lost(&self) -> bool {
        self.files.iter().any(|(.., file)| file.is_gone())
    }

    fn is_gone(&self) -> bool {
        let gone = self.populated.as_ref().is_some_and(KeptFile::is_gone);
        gone || !self.directory.is_dir()
    }

    /// The container's processes, as this process's pid namespace numbers them.
    pub(crate) fn pids(&self, buffer: &mut Vec<u8>) -> Vec<u32> {
        let own = read_once(&self.procs, buffer);
        let own = own.map(parse_pids).unwrap_or_default();
        if !own.is_empty() || !self.seen_alive {
            return own;
        }
        let Ok(children) = fs_err::read_dir(&self.directory) else {
            return own;
        };
        children
            .filter_map(Result::ok)
            .filter_map(|child| fs_err::read_to_string(child.path().join("cgroup.procs")).ok())
            .flat_map(|text| parse_pids(&text))
            .collect()
    }
}

/// Process 0 stands for one outside this pid namespace.
fn parse_pids(text: &str) -> Vec<u32> {
    let numbers = text.lines().filter_map(|line| line.trim().parse().ok());
    numbers.filter(|pid| *pid != 0).collect()
}

#[cfg(test)]
mod tests;
