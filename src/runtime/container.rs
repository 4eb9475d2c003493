//! Containers: one description in the project's terms, and what is done with it.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use bollard::container::LogOutput;
use bollard::models::{
    ContainerCreateBody, ContainerStateStatusEnum, HostConfig, HostConfigCgroupnsModeEnum, HostConfigLogConfig,
    ResourcesUlimits,
};
use bollard::query_parameters as query;
use futures_util::StreamExt as _;

use super::engine::{Engine, LONG, SHORT};
use super::error::EngineError;
use super::owner::Owner;
use crate::record::trial::ContainerEnd;
use crate::spec::settings::Limits;
use crate::units::Micros;

/// What a container is for; part of its name and labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The fixed-delay server; owns the pod's network namespace.
    Upstream,
    /// The proxy under test.
    Proxy,
    /// Load and probes.
    Agent,
    /// Warms or empties the page cache of the proxy's files.
    PageCache,
    /// Tells the facts of the engine's host.
    Facts,
}

impl Role {
    /// As used in names and labels.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Upstream => "upstream",
            Self::Proxy => "proxy",
            Self::Agent => "agent",
            Self::PageCache => "page-cache",
            Self::Facts => "facts",
        }
    }
}

/// A container to create.
#[derive(Debug, Clone)]
pub struct ContainerSpec {
    /// Its role.
    pub role: Role,
    /// Its name; a taken name is an error, never somebody else's container removed.
    pub name: String,
    /// Image reference.
    pub image: String,
    /// In place of the image's entrypoint.
    pub entrypoint: Option<Vec<String>>,
    /// Arguments.
    pub cmd: Vec<String>,
    /// Environment, `KEY=VALUE`.
    pub env: Vec<String>,
    /// User, as `docker run --user`.
    pub user: Option<String>,
    /// Container whose network namespace it joins; `None` gives it its own with loopback only.
    pub join_network_of: Option<String>,
    /// Resource limits.
    pub limits: Limits,
    /// CPU set.
    pub cpuset: Option<String>,
    /// `RLIMIT_NOFILE`, soft and hard.
    pub nofile: Option<u64>,
    /// Kernel settings of its network namespace.
    pub sysctls: BTreeMap<String, String>,
    /// Sees the host's processes and cgroups (read-only); for the agent alone.
    pub host_view: bool,
}

impl ContainerSpec {
    /// A container without limits, joining nothing.
    #[must_use]
    pub fn new(role: Role, name: String, image: &str) -> Self {
        Self {
            role,
            name,
            image: image.to_owned(),
            entrypoint: None,
            cmd: Vec::new(),
            env: Vec::new(),
            user: None,
            join_network_of: None,
            limits: Limits::default(),
            cpuset: None,
            nofile: None,
            sysctls: BTreeMap::new(),
            host_view: false,
        }
    }

    fn body(&self, owner: &Owner) -> ContainerCreateBody {
        let (nano_cpus, cpu_period, cpu_quota) = cpu_fields(&self.limits);
        let memory = self.limits.memory.map(|b| to_i64(b.0));
        let memory_swap = self.limits.memory.map(|b| to_i64(b.0.saturating_add(self.limits.swap.0)));
        let ulimits = self.nofile.map(|n| {
            vec![ResourcesUlimits { name: Some("nofile".to_owned()), soft: Some(to_i64(n)), hard: Some(to_i64(n)) }]
        });
        let host_config = HostConfig {
            nano_cpus,
            cpu_period,
            cpu_quota,
            memory,
            memory_swap,
            ulimits,
            cpuset_cpus: self.cpuset.clone(),
            network_mode: Some(self.join_network_of.as_ref().map_or("none".to_owned(), |id| format!("container:{id}"))),
            sysctls: (!self.sysctls.is_empty()).then(|| self.sysctls.clone().into_iter().collect()),
            cap_drop: Some(vec!["ALL".to_owned()]),
            security_opt: Some(vec!["no-new-privileges".to_owned()]),
            // The default driver may be `none` or a remote one; a failed proxy's log must be readable.
            log_config: Some(HostConfigLogConfig { typ: Some("json-file".to_owned()), config: None }),
            pid_mode: self.host_view.then(|| "host".to_owned()),
            cgroupns_mode: self.host_view.then_some(HostConfigCgroupnsModeEnum::HOST),
            binds: self.host_view.then(|| vec!["/sys/fs/cgroup:/sys/fs/cgroup:ro".to_owned()]),
            ..Default::default()
        };
        ContainerCreateBody {
            image: Some(self.image.clone()),
            entrypoint: self.entrypoint.clone(),
            cmd: (!self.cmd.is_empty()).then(|| self.cmd.clone()),
            env: (!self.env.is_empty()).then(|| self.env.clone()),
            user: self.user.clone(),
            labels: Some(owner.labels(self.role)),
            host_config: Some(host_config),
            ..Default::default()
        }
    }
}

/// `NanoCpus` fixes the period at 100 ms; any other period needs quota and period, and the engine refuses both at once.
fn cpu_fields(limits: &Limits) -> (Option<i64>, Option<i64>, Option<i64>) {
    const DEFAULT_PERIOD: Micros = Micros(100_000);
    match limits.cpu {
        None => (None, None, None),
        Some(cpu) if limits.cpu_period == DEFAULT_PERIOD => (Some(to_i64(cpu.0 * 1_000_000)), None, None),
        Some(cpu) => {
            let period = limits.cpu_period.0;
            (None, Some(to_i64(period)), Some(to_i64(period * cpu.0 / 1000)))
        }
    }
}

fn to_i64(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// A created container.
#[derive(Debug, Clone)]
pub struct Created {
    /// Full id.
    pub id: String,
    /// What the engine warned of: each may be a limit that was dropped.
    pub warnings: Vec<String>,
}

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
        Self { content: ArchiveContent::Building(tar::Builder::new(Vec::new())) }
    }
}

impl Archive {
    /// An archive that is one already.
    #[must_use]
    pub fn from_tar(tar: Vec<u8>) -> Self {
        Self { content: ArchiveContent::Finished(tar) }
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
                .expect("writing a tar to memory fails only for a path that validation has refused");
        }
        self
    }

    fn finish(self) -> Vec<u8> {
        match self.content {
            ArchiveContent::Building(builder) => {
                builder.into_inner().expect("finishing a tar in memory does not fail")
            }
            ArchiveContent::Finished(tar) => tar,
        }
    }
}

/// Lines of a container's standard output; its standard error is kept aside.
pub struct LineStream {
    output: std::pin::Pin<Box<dyn futures_util::Stream<Item = Result<LogOutput, bollard::errors::Error>> + Send>>,
    buffer: Vec<u8>,
    /// Last part of standard error, at most 16 KiB.
    pub stderr_tail: String,
}

impl LineStream {
    /// The next line, or `None` when the container's output has ended.
    ///
    /// # Errors
    /// When the connection to the engine breaks.
    pub async fn next_line(&mut self) -> Result<Option<String>, EngineError> {
        loop {
            if let Some(end) = self.buffer.iter().position(|b| *b == b'\n') {
                let rest = self.buffer.split_off(end + 1);
                let mut line = std::mem::replace(&mut self.buffer, rest);
                line.truncate(end);
                return Ok(Some(String::from_utf8_lossy(&line).into_owned()));
            }
            match self.output.next().await {
                None if self.buffer.is_empty() => return Ok(None),
                None => return Ok(Some(String::from_utf8_lossy(&std::mem::take(&mut self.buffer)).into_owned())),
                Some(Err(e)) => return Err(EngineError::from_bollard("read the output of", "the agent", e)),
                Some(Ok(LogOutput::StdErr { message })) => self.keep_stderr(&message),
                Some(Ok(other)) => self.buffer.extend_from_slice(&other.into_bytes()),
            }
        }
    }

    fn keep_stderr(&mut self, message: &[u8]) {
        const KEEP: usize = 16 * 1024;
        self.stderr_tail.push_str(&String::from_utf8_lossy(message));
        if self.stderr_tail.len() > KEEP {
            let mut cut = self.stderr_tail.len() - KEEP;
            while !self.stderr_tail.is_char_boundary(cut) {
                cut += 1;
            }
            self.stderr_tail.drain(..cut);
        }
    }
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
    pub async fn create(&self, spec: &ContainerSpec, owner: &Owner) -> Result<Created, EngineError> {
        let options = query::CreateContainerOptionsBuilder::new().name(&spec.name).build();
        let future = self.docker.create_container(Some(options), spec.body(owner));
        let answer = self.call("create the container", &spec.name, LONG, future).await?;
        Ok(Created { id: answer.id, warnings: answer.warnings })
    }

    /// Uploads files into a created container.
    ///
    /// # Errors
    /// The engine's refusal or silence.
    pub async fn upload(&self, id: &str, archive: Archive) -> Result<(), EngineError> {
        let options = query::UploadToContainerOptionsBuilder::new().path("/").build();
        let body = bollard::body_full(archive.finish().into());
        self.call("upload files to", id, LONG, self.docker.upload_to_container(id, Some(options), body)).await
    }

    /// Starts a container.
    ///
    /// # Errors
    /// The engine's or the runtime's refusal, or its silence.
    pub async fn start(&self, id: &str) -> Result<(), EngineError> {
        self.call("start the container", id, LONG, self.docker.start_container(id, None)).await
    }

    /// Attaches to a created container's output before it starts, so that no line depends on a log driver.
    ///
    /// # Errors
    /// The engine's refusal or silence.
    pub async fn attach(&self, id: &str) -> Result<LineStream, EngineError> {
        let options = query::AttachContainerOptionsBuilder::new().stream(true).stdout(true).stderr(true).build();
        let attached = self.call("attach to", id, SHORT, self.docker.attach_container(id, Some(options))).await?;
        Ok(LineStream { output: attached.output, buffer: Vec::new(), stderr_tail: String::new() })
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
            Some(ContainerStateStatusEnum::EXITED | ContainerStateStatusEnum::DEAD | ContainerStateStatusEnum::CREATED)
        );
        Ok(Some(ContainerEnd {
            id: id.to_owned(),
            state: state.status.map(|s| s.to_string()).filter(|s| !s.is_empty()),
            exit_code: state.exit_code.filter(|_| ended),
            oom_killed: state.oom_killed,
            error: state.error.filter(|e| !e.is_empty()),
            log_tail: None,
        }))
    }

    /// The last lines of a container's log, at most 16 KiB; `None` if they cannot be had.
    pub async fn log_tail(&self, id: &str) -> Option<String> {
        let options = query::LogsOptionsBuilder::new().stdout(true).stderr(true).tail("50").build();
        let mut stream = self.docker.logs(id, Some(options));
        let collect = async {
            let mut text = String::new();
            while let Some(Ok(chunk)) = stream.next().await {
                text.push_str(&String::from_utf8_lossy(&chunk.into_bytes()));
            }
            text
        };
        let text = tokio::time::timeout(SHORT, collect).await.ok()?;
        let start = text.char_indices().rev().nth(16 * 1024).map_or(0, |(i, _)| i);
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
        let options = query::RemoveContainerOptionsBuilder::new().force(true).v(true).build();
        match self.call("remove the container", id, SHORT, self.docker.remove_container(id, Some(options))).await {
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
        let options = query::ListContainersOptionsBuilder::new().all(true).filters(&filters).build();
        let list = self.call("list", "containers", SHORT, self.docker.list_containers(Some(options))).await?;
        Ok(list
            .into_iter()
            .filter_map(|c| {
                let name = c.names.unwrap_or_default().into_iter().next().unwrap_or_default();
                Some((c.id?, name.trim_start_matches('/').to_owned(), c.labels.unwrap_or_default()))
            })
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{Bytes, MilliCpus};

    #[test]
    fn limits_become_the_engines_fields() {
        let mut limits = Limits {
            cpu: Some(MilliCpus(125)),
            cpu_period: Micros(100_000),
            memory: Some(Bytes(64 << 20)),
            swap: Bytes(16 << 20),
        };
        assert_eq!(cpu_fields(&limits), (Some(125_000_000), None, None));
        limits.cpu_period = Micros(10_000);
        assert_eq!(cpu_fields(&limits), (None, Some(10_000), Some(1_250)));
        let spec = ContainerSpec { limits, ..ContainerSpec::new(Role::Proxy, "n".to_owned(), "i") };
        let host = spec.body(&Owner::current("run")).host_config.expect("host config");
        assert_eq!(host.memory_swap, Some(80 << 20), "swap comes on top of memory");
        assert_eq!(host.network_mode.as_deref(), Some("none"));
        assert_eq!(host.cap_drop, Some(vec!["ALL".to_owned()]));
    }
}
