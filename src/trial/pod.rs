//! The containers of one trial: an upstream that owns a loopback-only network namespace, the proxy, and the agent.

use std::collections::HashMap;
use std::time::Duration;

use super::agent_link::AgentLink;
use super::{TrialContext, UPSTREAM_CONTROL_PORT, UPSTREAM_PORT};
use crate::agent::job::Job;
use crate::proxy::ProxyLaunch;
use crate::runtime::{Archive, ContainerSpec, Engine, EngineError, Owner, Role, WaitOutcome};
use crate::spec::placement::Placed;
use crate::spec::settings::{PageCache, Settings};

/// Descriptors for upstream and agent: as many as an engine without CAP_SYS_RESOURCE is sure to allow.
const HARNESS_NOFILE: u64 = 16_384;
/// The upstream ends by itself this long after the trial should have, should the controller be gone.
const LIFETIME_GRACE: Duration = Duration::from_secs(300);
const PAGE_CACHE_DEADLINE: Duration = Duration::from_secs(60);
/// Where the job lies in the agent's container.
pub(crate) const JOB_PATH: &str = "/sweep/job.json";

/// Containers of one trial, by role, for removal whatever happens.
#[derive(Debug, Default)]
pub struct Pod {
    name: String,
    /// The upstream's container.
    pub upstream: Option<String>,
    /// The proxy's; `None` in a `direct` control.
    pub proxy: Option<String>,
    /// The agent's.
    pub agent: Option<String>,
    /// The engine's warnings at create.
    pub warnings: Vec<String>,
}

impl Pod {
    /// A pod without containers yet; `name` begins the names of all of them.
    #[must_use]
    pub fn new(name: String) -> Self {
        Self {
            name,
            ..Self::default()
        }
    }

    pub(super) async fn create(
        &mut self,
        context: &TrialContext<'_>,
        settings: &Settings,
        launch: Option<&ProxyLaunch>,
    ) -> Result<(), EngineError> {
        let engine = context.engine;
        let prefix = self.name.clone();
        let name = |role: Role| format!("{prefix}-{}", role.as_str());
        let placed = settings.placement.resolve(context.placed);
        let upstream_spec = upstream_spec(context, name(Role::Upstream), settings, launch, &placed);
        let upstream = engine.create(&upstream_spec, context.owner).await?;
        self.upstream = Some(upstream.id.clone());

        let mut agent_spec =
            ContainerSpec::new(Role::Agent, name(Role::Agent), context.tools_image);
        agent_spec.cmd = vec!["agent".to_owned(), JOB_PATH.to_owned()];
        agent_spec.join_network_of = Some(upstream.id.clone());
        agent_spec.nofile = Some(HARNESS_NOFILE.max(settings.proxy.nofile));
        agent_spec.cpuset.clone_from(&placed.agent);
        agent_spec.host_view = true;

        let proxy_spec =
            launch.map(|l| proxy_spec(name(Role::Proxy), settings, l, &upstream.id, &placed));
        let proxy_create = async {
            match &proxy_spec {
                Some(spec) => engine.create(spec, context.owner).await.map(Some),
                None => Ok(None),
            }
        };
        let (agent, proxy) = tokio::join!(engine.create(&agent_spec, context.owner), proxy_create);
        // Both ids are registered before either error ends the trial, or one container would be forgotten.
        self.agent = agent.as_ref().ok().map(|c| c.id.clone());
        if let Ok(Some(created)) = &proxy {
            self.proxy = Some(created.id.clone());
            self.warnings.clone_from(&created.warnings);
        }
        agent?;
        proxy?;
        if let (Some(id), Some(launch)) = (&self.proxy, launch) {
            let tar = launch.archive().map_err(|e| EngineError::Broken {
                operation: "pack the files of",
                subject: settings.proxy.image.clone(),
                cause: e.to_string(),
            })?;
            engine.upload(id, Archive::from_tar(tar)).await?;
        }
        Ok(())
    }

    /// Starts upstream and agent, job in hand.
    pub(super) async fn start_harness(
        &self,
        context: &TrialContext<'_>,
        job: &Job,
    ) -> Result<AgentLink, EngineError> {
        let engine = context.engine;
        let upstream = self.upstream.as_deref().unwrap_or_default();
        let agent = self.agent.as_deref().unwrap_or_default();
        let text = serde_json::to_vec(job).expect("a job is plain data");
        let mut archive = Archive::default();
        archive.file(JOB_PATH, &text, 0o600, 0);
        let (started, uploaded) =
            tokio::join!(engine.start(upstream), engine.upload(agent, archive));
        started?;
        uploaded?;
        let lines = engine.attach(agent).await?;
        engine.start(agent).await?;
        Ok(AgentLink::new(lines))
    }

    /// Removes every container of the trial, the proxy and the agent first. Errors are returned as text: the caller
    /// reports them, and the containers' labels let a later run or `sweep clean` find them.
    pub async fn remove(&mut self, engine: &Engine) -> Vec<String> {
        let mut errors = Vec::new();
        let users: Vec<String> = [self.proxy.take(), self.agent.take()]
            .into_iter()
            .flatten()
            .collect();
        let owner = self.upstream.take();
        let removals = users.iter().chain(owner.iter()).map(|id| engine.remove(id));
        for result in futures_util::future::join_all(removals).await {
            errors.extend(result.err().map(|e| e.to_string()));
        }
        errors
    }
}

fn upstream_spec(
    context: &TrialContext<'_>,
    name: String,
    settings: &Settings,
    launch: Option<&ProxyLaunch>,
    placed: &Placed,
) -> ContainerSpec {
    use crate::spec::settings::DelayDistribution as D;
    let upstream = &settings.upstream;
    let distribution = match upstream.delay_distribution {
        D::Constant => "constant",
        D::Uniform => "uniform",
        D::Bimodal => "bimodal",
    };
    let lifetime = super::ready_deadline(settings)
        + settings.warmup.duration()
        + settings.duration.duration()
        + super::DRAIN
        + LIFETIME_GRACE;
    let us = |us: u64| format!("{us}us");
    let mut spec = ContainerSpec::new(Role::Upstream, name, context.tools_image);
    spec.cmd = [
        "upstream".to_owned(),
        format!("--listen=127.0.0.1:{UPSTREAM_PORT}"),
        format!("--control=127.0.0.1:{UPSTREAM_CONTROL_PORT}"),
        format!("--delay={}", us(upstream.delay.0)),
        format!("--body={}", upstream.body.0),
        format!("--distribution={distribution}"),
        format!("--max-lifetime={}s", lifetime.as_secs()),
    ]
    .to_vec();
    if upstream.delay_distribution != D::Constant {
        spec.cmd
            .push(format!("--delay-high={}", us(upstream.delay_high.0)));
    }
    if upstream.delay_distribution == D::Bimodal {
        spec.cmd
            .push(format!("--delay-high-share={}", upstream.delay_high_share));
    }
    spec.nofile = Some(HARNESS_NOFILE);
    spec.cpuset.clone_from(&placed.upstream);
    if let Some(launch) = launch {
        spec.sysctls.clone_from(&launch.sysctls);
    }
    spec
}

fn proxy_spec(
    name: String,
    settings: &Settings,
    launch: &ProxyLaunch,
    network_of: &str,
    placed: &Placed,
) -> ContainerSpec {
    let mut spec = ContainerSpec::new(Role::Proxy, name, &settings.proxy.image);
    spec.entrypoint.clone_from(&launch.entrypoint);
    spec.cmd.clone_from(&launch.cmd);
    spec.env.clone_from(&launch.env);
    spec.user.clone_from(&launch.user);
    spec.join_network_of = Some(network_of.to_owned());
    spec.limits = settings.limits.clone();
    spec.cpuset.clone_from(&placed.proxy);
    spec.nofile = Some(settings.proxy.nofile);
    spec
}

/// Containers that make the page cache of a proxy image's files warm or cold: one per image and state, started again
/// before each trial, since the state must be made anew each time but the upload need not.
#[derive(Debug, Default)]
pub struct PageCacheHelpers {
    by_image: HashMap<(String, PageCache), String>,
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
                let id = Self::create(engine, context.owner, &key, self.by_image.len()).await?;
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
