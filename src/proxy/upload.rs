//! The files of a launch and the archive that carries them into the container.

use std::collections::BTreeMap;

use super::{CONFIG_DIR, PROXY_UID, ProxyLaunch, TlsFiles};

/// A file to be uploaded; it belongs to the proxy's user.
#[derive(Clone, PartialEq, Eq)]
pub struct UploadFile {
    /// Content.
    pub bytes: Vec<u8>,
    /// Permissions: 0444, or 0400 for a key.
    pub mode: u32,
}

impl std::fmt::Debug for UploadFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes, mode {:04o}", self.bytes.len(), self.mode)
    }
}

impl UploadFile {
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self {
            bytes: text.into().into_bytes(),
            mode: 0o444,
        }
    }

    fn secret(text: impl Into<String>) -> Self {
        Self {
            mode: 0o400,
            ..Self::text(text)
        }
    }
}

/// Path of an uploaded PEM file.
pub(super) fn tls_path(name: &str) -> String {
    format!("{CONFIG_DIR}/tls/{name}.pem")
}

pub(super) fn tls_files(tls: TlsFiles<'_>) -> BTreeMap<String, UploadFile> {
    let (cert, key) = (&tls.server.cert_pem, &tls.server.key_pem);
    BTreeMap::from([
        (tls_path("cert"), UploadFile::text(cert)),
        (tls_path("key"), UploadFile::secret(key)),
        (tls_path("ca"), UploadFile::text(tls.ca_pem)),
        // HAProxy wants both in one file.
        (tls_path("pair"), UploadFile::secret(format!("{cert}{key}"))),
    ])
}

impl ProxyLaunch {
    /// The files and folders as a tar archive, to be unpacked at `/` of the created container. Engines keep the owner that
    /// an archive names. Folders above `/etc/sweep` and `/var/lib/sweep` are not in it, so the image's own keep their modes.
    ///
    /// # Errors
    /// When a path cannot be put into an archive (not absolute, or with `..`).
    pub fn archive(&self) -> std::io::Result<Vec<u8>> {
        let mut archive = tar::Builder::new(Vec::new());
        let own = [CONFIG_DIR.to_owned(), format!("{CONFIG_DIR}/tls")];
        for folder in own.iter().chain(&self.folders) {
            let mut header = header(0o755, 0);
            header.set_entry_type(tar::EntryType::Directory);
            archive.append_data(
                &mut header,
                format!("{}/", inside(folder)?),
                std::io::empty(),
            )?;
        }
        for (path, file) in &self.files {
            let mut header = header(file.mode, file.bytes.len() as u64);
            archive.append_data(&mut header, inside(path)?, file.bytes.as_slice())?;
        }
        archive.into_inner()
    }
}

fn header(mode: u32, size: u64) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_mode(mode);
    header.set_size(size);
    header.set_uid(PROXY_UID);
    header.set_gid(PROXY_UID);
    header.set_mtime(0);
    header
}

/// The path as an archive names it.
fn inside(path: &str) -> std::io::Result<&str> {
    match path.strip_prefix('/') {
        Some(rest) if !rest.is_empty() => Ok(rest),
        _ => Err(std::io::Error::new(
            std::io::ErrorKind::InvalidInput,
            format!("upload {path:?}: not an absolute path of a file"),
        )),
    }
}
