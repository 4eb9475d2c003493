//! The page cache of the proxy's files, made as the trial wants it.

use std::collections::HashMap;
use std::time::Duration;

use super::TrialContext;
use crate::runtime::{Archive, ContainerSpec, Engine, EngineError, Owner, Role, WaitOutcome};
use crate::spec::settings::{PageCache, Settings};

const PAGE_CACHE_DEADLINE: Duration = Duration::from_secs(60);

/// Containers that make the page cache of a proxy image's files warm or cold: one per image and state, started again
/// before each trial, since the state must be made anew each time but the upload need not.
#[derive(Debug, Default)]
pub struct PageCacheHelpers {
    by_image: HashMap<(String, PageCache), String>,
    /// Helpers made in this run; the next one's name has it.
    made: usize,
}

impl PageCacheHelpers {
    pub(super) async fn prepare(
        &mut self,
        context: &TrialContext<'_>,
        settings: &Settings,
    ) -> Result<(), EngineError> {
        let engine = context.engine;
        let key = (settings.proxy.image.clone(), settings.proxy.page_cache);
        let id = match self.by_image.get(&key) {
            Some(id) => id.clone(),
            None => {
                // Counted before it is there: a name whose create was given up may be taken all the same.
                self.made += 1;
                let id = Self::create(engine, context.owner, &key, self.made).await?;
                self.by_image.insert(key, id.clone());
                id
            }
        };
        engine.start(&id).await?;
        match engine.wait(&id, PAGE_CACHE_DEADLINE).await? {
            WaitOutcome::Exited(0) => Ok(()),
            other => {
                let log = engine.log_tail(&id).await.unwrap_or_default();
                Err(EngineError::Broken {
                    operation: "set the page cache for",
                    subject: settings.proxy.image.clone(),
                    cause: format!("{other:?}; {log}"),
                })
            }
        }
    }

    /// Removes every helper; the next trials make new ones. To be called after something spoiled a trial, which may have
    /// been a helper that is gone.
    pub async fn discard(&mut self, engine: &Engine) {
        let removals = self.by_image.values().map(|id| engine.remove(id));
        // One that cannot be removed now goes with the run's other containers at its end.
        futures_util::future::join_all(removals).await;
        self.by_image.clear();
    }

    async fn create(
        engine: &Engine,
        owner: &Owner,
        (image, state): &(String, PageCache),
        number: usize,
    ) -> Result<String, EngineError> {
        const FOLDER: &str = ".sweep";
        let bundle = crate::tools::bundle().map_err(|e| EngineError::CannotBuildImage {
            image: "the page-cache helper".to_owned(),
            cause: e.to_string(),
        })?;
        let mut command = bundle.self_contained_command(FOLDER);
        let mut spec = ContainerSpec::new(
            Role::PageCache,
            format!("sweep-{}-page-cache-{number}", owner.run),
            image,
        );
        spec.entrypoint = Some(vec![command.remove(0)]);
        command.extend([
            "page-cache".to_owned(),
            if *state == PageCache::Warm {
                "warm"
            } else {
                "cold"
            }
            .to_owned(),
        ]);
        spec.cmd = command;
        spec.user = Some("0".to_owned());
        let created = engine.create(&spec, owner).await?;
        let mut tar = Vec::new();
        bundle.write_self_contained(FOLDER, &mut tar).map_err(|e| {
            EngineError::CannotBuildImage {
                image: image.clone(),
                cause: e.to_string(),
            }
        })?;
        engine.upload(&created.id, Archive::from_tar(tar)).await?;
        Ok(created.id)
    }
}
