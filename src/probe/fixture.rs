//! Directories that look like the kernel's.

use tempfile::TempDir;

use crate::probe::FsRoot;

pub(crate) const ID: &str = "485fb7b11622c261a0c954e6a16a063d26a575c4cd2e94da35a3e9eee1b3bf04";
pub(crate) const OTHER_ID: &str =
    "395eb1cf17d3cca168fff2f94ed671bc4b2a4718c4cc9c81041dec18d78ef9d1";

pub(crate) struct Tree {
    folder: TempDir,
    pub(crate) root: FsRoot,
}

impl Tree {
    pub(crate) fn new(directories: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("temporary folder");
        let root = FsRoot {
            proc: folder.path().join("proc"),
            cgroup: folder.path().join("cgroup"),
            sys: folder.path().join("sys"),
        };
        let tree = Self { folder, root };
        for directory in directories {
            tree.directory(directory);
        }
        tree
    }

    /// Files with their texts, by path.
    pub(crate) fn with(files: &[(&str, &str)]) -> Self {
        let tree = Self::new(&[]);
        for (path, text) in files {
            tree.write(path, text);
        }
        tree
    }

    /// v1 hierarchies and, beside them, the unified one.
    pub(crate) fn hybrid() -> Self {
        let tree = Self::new(&["cgroup/cpu", "cgroup/cpuacct", "cgroup/memory"]);
        tree.write("cgroup/unified/cgroup.controllers", "");
        tree
    }

    pub(crate) fn v2() -> Self {
        let tree = Self::new(&[]);
        tree.write("cgroup/cgroup.controllers", "cpu io memory\n");
        tree
    }

    pub(crate) fn directory(&self, path: &str) {
        fs_err::create_dir_all(self.folder.path().join(path)).expect("directory");
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.folder.path().join(path);
        fs_err::create_dir_all(path.parent().expect("a parent")).expect("directory");
        fs_err::write(path, text).expect("file");
    }

    pub(crate) fn remove_file(&self, path: &str) {
        fs_err::remove_file(self.folder.path().join(path)).expect("removed");
    }

    pub(crate) fn remove(&self, path: &str) {
        fs_err::remove_dir_all(self.folder.path().join(path)).expect("removed");
    }
}
