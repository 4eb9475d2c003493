//! Images: here, pulled, or imported from an executable of the host.

use bollard::query_parameters as query;
use futures_util::StreamExt as _;

use super::engine::{Engine, LONG, SHORT};
use super::error::EngineError;

/// An image as found on the engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageFacts {
    /// Id: the digest of its configuration.
    pub id: String,
    /// Digests by which a registry knows it; empty for an imported one.
    pub repo_digests: Vec<String>,
    /// Its entrypoint.
    pub entrypoint: Vec<String>,
    /// Its command.
    pub cmd: Vec<String>,
}

/// A root file system to import.
pub struct ImportRequest {
    /// `name:tag`.
    pub name: String,
    /// The tar.
    pub rootfs: Vec<u8>,
    /// Dockerfile instructions (`ENTRYPOINT ["…"]`).
    pub changes: Vec<String>,
}

impl Engine {
    /// Looks for an image; `None` if it is not on the engine.
    ///
    /// # Errors
    /// The engine's refusal or silence.
    pub async fn image(&self, name: &str) -> Result<Option<ImageFacts>, EngineError> {
        match self.call("inspect the image", name, SHORT, self.docker.inspect_image(name)).await {
            Ok(found) => {
                let config = found.config.unwrap_or_default();
                Ok(Some(ImageFacts {
                    id: found.id.unwrap_or_default(),
                    repo_digests: found.repo_digests.unwrap_or_default(),
                    entrypoint: config.entrypoint.unwrap_or_default(),
                    cmd: config.cmd.unwrap_or_default(),
                }))
            }
            Err(e) if e.status() == Some(404) => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// The image as it is here, else pulled: never a pull for one that is here.
    ///
    /// # Errors
    /// [`EngineError::NoImage`] with what the registry said.
    pub async fn ensure_image(&self, name: &str) -> Result<ImageFacts, EngineError> {
        if let Some(found) = self.image(name).await? {
            return Ok(found);
        }
        self.pull(name).await?;
        self.image(name).await?.ok_or_else(|| no_image(name, "the pull ended without an error and without the image"))
    }

    async fn pull(&self, name: &str) -> Result<(), EngineError> {
        // Without a tag the engine would pull every tag there is.
        let has_tag = name.rsplit('/').next().is_some_and(|last| last.contains(':') || last.contains('@'));
        let mut options = query::CreateImageOptionsBuilder::new().from_image(name);
        if !has_tag {
            options = options.tag("latest");
        }
        let mut stream = self.docker.create_image(Some(options.build()), None, None);
        loop {
            // Between two lines of progress there may be a long download, but not a silent one.
            match tokio::time::timeout(LONG, stream.next()).await {
                Err(_) => return Err(no_image(name, &format!("the pull was silent for {} s", LONG.as_secs()))),
                Ok(None) => return Ok(()),
                Ok(Some(Ok(_))) => {}
                Ok(Some(Err(e))) => {
                    let error = EngineError::from_bollard("pull", name, e);
                    let text = match &error {
                        EngineError::Refused { message, .. } => message.clone(),
                        other => other.to_string(),
                    };
                    return Err(no_image(name, &text));
                }
            }
        }
    }

    /// Imports a root file system as an image.
    ///
    /// # Errors
    /// The engine's refusal (out of disk, …) or silence.
    pub async fn import(&self, request: ImportRequest) -> Result<ImageFacts, EngineError> {
        let (repo, tag) = match request.name.rsplit_once(':') {
            Some((repo, tag)) if !tag.contains('/') => (repo, tag),
            _ => (request.name.as_str(), "latest"),
        };
        let options = query::CreateImageOptionsBuilder::new()
            .from_src("-")
            .repo(repo)
            .tag(tag)
            .changes(request.changes)
            .build();
        let body = bollard::body_full(request.rootfs.into());
        let mut stream = self.docker.create_image(Some(options), Some(body), None);
        let drain = async {
            while let Some(item) = stream.next().await {
                item?;
            }
            Ok(())
        };
        self.call("import the image", &request.name, LONG, drain).await?;
        let name = format!("{repo}:{tag}");
        self.image(&name).await?.ok_or_else(|| EngineError::CannotBuildImage {
            image: name,
            cause: "the import ended without an error and without the image".to_owned(),
        })
    }
}

impl Engine {
    /// Removes the images that `sweep` made of itself and that no container uses, and tells which.
    ///
    /// # Errors
    /// The engine's refusal or silence.
    pub async fn remove_images_of(&self, repository: &str) -> Result<Vec<String>, EngineError> {
        let filters = std::collections::HashMap::from([("reference".to_owned(), vec![repository.to_owned()])]);
        let options = query::ListImagesOptionsBuilder::new().filters(&filters).build();
        let list = self.call("list", "images", SHORT, self.docker.list_images(Some(options))).await?;
        let mut removed = Vec::new();
        for tag in list.into_iter().flat_map(|image| image.repo_tags) {
            let future = self.docker.remove_image(&tag, None::<query::RemoveImageOptions>, None);
            match self.call("remove the image", &tag, SHORT, future).await {
                Ok(_) => removed.push(tag),
                // In use by a live run.
                Err(e) if e.status() == Some(409) => {}
                Err(e) => return Err(e),
            }
        }
        Ok(removed)
    }
}

fn no_image(name: &str, cause: &str) -> EngineError {
    EngineError::NoImage {
        image: name.to_owned(),
        cause: cause.trim().to_owned(),
        remedy: format!(
            "pull it yourself (`docker pull {name}`), or on a machine without a registry make it from an executable: \
             `sweep image import --name {name} PATH`"
        ),
    }
}
