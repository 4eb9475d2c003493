//! What is done with containers, from create to remove.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bollard::models::ContainerStateStatusEnum;
use bollard::query_parameters as query;
use futures_util::StreamExt as _;

use super::archive::Archive;
use super::container::ContainerSpec;
use super::engine::{Engine, LONG, SHORT};
use super::error::EngineError;
use super::lines::LineStream;
use super::owner::Owner;
use crate::record::trial::ContainerEnd;

/// A created container.
#[derive(Debug, Clone)]
pub struct Created {
    /// Full id.
    pub id: String,
    /// What the engine warned of: each may be a limit that was dropped.
    pub warnings: Vec<String>,
}

/// How waiting for a container's end went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitOutcome {
    /// It exited with this code.
    Exited(i64),
    /// It still ran at the deadline.
    StillRunning,
}

impl Engine {
    /// Creates a container.
    ///
    /// # Errors
    /// The engine's refusal (a bad value, a taken name, a missing image), or its silence.
    pub async fn create(
        &self,
        spec: &ContainerSpec,
        owner: &Owner,
    ) -> Result<Created, EngineError> {
        let guard = Arc::clone(&self.creating).read_owned().await;
        let (engine, name, body) = (self.clone(), spec.name.clone(), spec.body(owner));
        // A task of its own: the engine goes on with a create whose caller was interrupted, and the container must be
        // there before the run's are listed for removal.
        let create = tokio::spawn(async move {
            let _guard = guard;
            let options = query::CreateContainerOptionsBuilder::new()
                .name(&name)
                .build();
            let future = engine.docker.create_container(Some(options), body);
            engine
                .call("create the container", &name, LONG, future)
                .await
        });
        let answer = create.await.map_err(|e| EngineError::Broken {
            operation: "create the container",
            subject: spec.name.clone(),
            cause: e.to_string(),
        })??;
        Ok(Created {
            id: answer.id,
            warnings: answer.warnings,
        })
    }

    /// Uploads files into a created container.
    ///
    /// # Errors
    /// The engine's refusal or silence.
    pub async fn upload(&self, id: &str, archive: Archive) -> Result<(), EngineError> {
        let options = query::UploadToContainerOptionsBuilder::new()
            .path("/")
            .build();
        let body = bollard::body_full(archive.finish().into());
        self.call(
            "upload files to",
            id,
            LONG,
            self.docker.upload_to_container(id, Some(options), body),
        )
        .await
    }

    /// Starts a container.
    ///
    /// # Errors
    /// The engine's or the runtime's refusal, or its silence.
    pub async fn start(&self, id: &str) -> Result<(), EngineError> {
        self.call(
            "start the container",
            id,
            LONG,
            self.docker.start_container(id, None),
        )
        .await
    }

    /// Attaches to a created container's output before it starts, so that no line depends on a log driver.
    ///
    /// # Errors
    /// The engine's refusal or silence.
    pub async fn attach(&self, id: &str) -> Result<LineStream, EngineError> {
        let options = query::AttachContainerOptionsBuilder::new()
            .stream(true)
            .stdout(true)
            .stderr(true)
            .build();
        let attached = self
            .call(
                "attach to",
                id,
                SHORT,
                self.docker.attach_container(id, Some(options)),
            )
            .await?;
        Ok(LineStream::new(attached.output))
    }

    /// What the engine says of a container now; `None` if it is gone.
    ///
    /// # Errors
    /// The engine's silence.
    pub async fn state(&self, id: &str) -> Result<Option<ContainerEnd>, EngineError> {
        let future = self.docker.inspect_container(id, None);
        let answer = match self.call("inspect", id, SHORT, future).await {
            Ok(answer) => answer,
            Err(e) if e.status() == Some(404) => return Ok(None),
            Err(e) => return Err(e),
        };
        let state = answer.state.unwrap_or_default();
        let ended = matches!(
            state.status,
            Some(
                ContainerStateStatusEnum::EXITED
                    | ContainerStateStatusEnum::DEAD
                    | ContainerStateStatusEnum::CREATED
            )
        );
        Ok(Some(ContainerEnd {
            id: id.to_owned(),
            state: state
                .status
                .map(|s| s.to_string())
                .filter(|s| !s.is_empty()),
            exit_code: state.exit_code.filter(|_| ended),
            oom_killed: state.oom_killed,
            error: state.error.filter(|e| !e.is_empty()),
            log_tail: None,
        }))
    }

    /// The last lines of a container's log, at most 16 KiB; `None` if they cannot be had.
    pub async fn log_tail(&self, id: &str) -> Option<String> {
        let options = query::LogsOptionsBuilder::new()
            .stdout(true)
            .stderr(true)
            .tail("50")
            .build();
        let mut stream = self.docker.logs(id, Some(options));
        let collect = async {
            let mut text = String::new();
            while let Some(Ok(chunk)) = stream.next().await {
                text.push_str(&String::from_utf8_lossy(&chunk.into_bytes()));
            }
            text
        };
        let text = tokio::time::timeout(SHORT, collect).await.ok()?;
        let start = text
            .char_indices()
            .rev()
            .nth(16 * 1024)
            .map_or(0, |(i, _)| i);
        Some(text[start..].trim_end().to_owned()).filter(|t| !t.is_empty())
    }

    /// Waits until a container has exited.
    ///
    /// # Errors
    /// The engine's refusal, or a broken connection.
    pub async fn wait(&self, id: &str, deadline: Duration) -> Result<WaitOutcome, EngineError> {
        use bollard::errors::Error as E;
        let mut stream = self.docker.wait_container(id, None);
        match tokio::time::timeout(deadline, stream.next()).await {
            Err(_) => Ok(WaitOutcome::StillRunning),
            Ok(Some(Ok(answer))) => Ok(WaitOutcome::Exited(answer.status_code)),
            // bollard reports every exit code but 0 as an error of this kind.
            Ok(Some(Err(E::DockerContainerWaitError { error, code }))) if error.is_empty() => {
                Ok(WaitOutcome::Exited(code))
            }
            Ok(Some(Err(e))) => Err(EngineError::from_bollard("wait for", id, e)),
            Ok(None) => match self.state(id).await?.and_then(|s| s.exit_code) {
                Some(code) => Ok(WaitOutcome::Exited(code)),
                None => Ok(WaitOutcome::StillRunning),
            },
        }
    }

    /// Kills and removes a container and its anonymous volumes; one that is gone already is a success.
    ///
    /// # Errors
    /// The engine's refusal or silence.
    pub async fn remove(&self, id: &str) -> Result<(), EngineError> {
        let options = query::RemoveContainerOptionsBuilder::new()
            .force(true)
            .v(true)
            .build();
        match self
            .call(
                "remove the container",
                id,
                SHORT,
                self.docker.remove_container(id, Some(options)),
            )
            .await
        {
            Err(e) if e.status() == Some(404) => Ok(()),
            // 409: a removal is in progress already; wait for its end by looking.
            Err(e) if e.status() == Some(409) => self.wait_until_gone(id, e).await,
            other => other,
        }
    }

    async fn wait_until_gone(&self, id: &str, refusal: EngineError) -> Result<(), EngineError> {
        let deadline = tokio::time::Instant::now() + SHORT;
        while tokio::time::Instant::now() < deadline {
            if self.state(id).await?.is_none() {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Err(refusal)
    }

    /// Containers with these labels: id, name, labels.
    ///
    /// # Errors
    /// The engine's refusal or silence.
    pub(super) async fn labelled(
        &self,
        label: &str,
    ) -> Result<Vec<(String, String, HashMap<String, String>)>, EngineError> {
        let filters = HashMap::from([("label".to_owned(), vec![label.to_owned()])]);
        let options = query::ListContainersOptionsBuilder::new()
            .all(true)
            .filters(&filters)
            .build();
        let list = self
            .call(
                "list",
                "containers",
                SHORT,
                self.docker.list_containers(Some(options)),
            )
            .await?;
        Ok(list
            .into_iter()
            .filter_map(|c| {
                let name = c
                    .names
                    .unwrap_or_default()
                    .into_iter()
                    .next()
                    .unwrap_or_default();
                Some((
                    c.id?,
                    name.trim_start_matches('/').to_owned(),
                    c.labels.unwrap_or_default(),
                ))
            })
            .collect())
    }
}
