//! This program as an image: upstream and agent run from it, so every trial is measured by the version that planned it.

use crate::image::{self, Bundle, ImageError};
use crate::runtime::{Engine, EngineError, ImageFacts, ImportRequest};

/// Repository name of the image.
pub const REPOSITORY: &str = "sweep-tools";

/// The running executable with the libraries that it needs.
///
/// # Errors
/// When the executable or one of its libraries cannot be read.
pub fn bundle() -> Result<Bundle, ImageError> {
    let path = std::env::current_exe().map_err(|source| ImageError::Io {
        operation: "find",
        path: "the running executable".into(),
        source,
    })?;
    image::bundle(&path, &[])
}

/// The image of this program, imported unless the engine has the very same one already.
///
/// # Errors
/// When it cannot be made or imported.
pub async fn ensure_image(engine: &Engine) -> Result<(String, ImageFacts), EngineError> {
    let failed = |e: ImageError| EngineError::CannotBuildImage {
        image: REPOSITORY.to_owned(),
        cause: e.to_string(),
    };
    let bundle = bundle().map_err(failed)?;
    let digest = bundle.digest().map_err(failed)?;
    let name = format!("{REPOSITORY}:{}", &digest[..12]);
    if let Some(found) = engine.image(&name).await? {
        return Ok((name, found));
    }
    let mut rootfs = Vec::new();
    bundle.write_rootfs(&mut rootfs).map_err(failed)?;
    let facts = engine
        .import(ImportRequest { name: name.clone(), rootfs, changes: bundle.changes() })
        .await?;
    Ok((name, facts))
}
