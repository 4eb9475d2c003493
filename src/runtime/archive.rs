//! Files for a container, as a tar archive.

/// Files to upload into a created container, as a tar archive.
pub struct Archive {
    content: ArchiveContent,
}

enum ArchiveContent {
    Building(tar::Builder<Vec<u8>>),
    Finished(Vec<u8>),
}

impl Default for Archive {
    fn default() -> Self {
        Self {
            content: ArchiveContent::Building(tar::Builder::new(Vec::new())),
        }
    }
}

impl Archive {
    /// An archive that is one already.
    #[must_use]
    pub fn from_tar(tar: Vec<u8>) -> Self {
        Self {
            content: ArchiveContent::Finished(tar),
        }
    }

    /// Adds a file (absolute path) with its mode and owner.
    pub fn file(&mut self, path: &str, contents: &[u8], mode: u32, uid: u64) -> &mut Self {
        let mut header = tar::Header::new_gnu();
        header.set_size(contents.len() as u64);
        header.set_mode(mode);
        header.set_uid(uid);
        header.set_gid(uid);
        header.set_mtime(0);
        if let ArchiveContent::Building(builder) = &mut self.content {
            builder
                .append_data(&mut header, path.trim_start_matches('/'), contents)
                .expect(
                    "writing a tar to memory fails only for a path that validation has refused",
                );
        }
        self
    }

    pub(super) fn finish(self) -> Vec<u8> {
        match self.content {
            ArchiveContent::Building(builder) => builder
                .into_inner()
                .expect("finishing a tar in memory does not fail"),
            ArchiveContent::Finished(tar) => tar,
        }
    }
}
