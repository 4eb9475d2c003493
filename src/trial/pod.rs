//! The containers of one trial: an upstream that owns a loopback-only network namespace, the proxy, and the agent.

use std::time::Duration;

use super::agent_link::AgentLink;
use super::{TrialContext, UPSTREAM_CONTROL_PORT, UPSTREAM_PORT};
use crate::agent::job::{AgentOutcome, Job};
use crate::proxy::{PROXY_UID, ProxyLaunch, proxy_user};
use crate::record::trial::ContainerEnd;
use crate::runtime::{Archive, ContainerSpec, Engine, EngineError, Role};
use crate::spec::placement::Placed;
use crate::spec::settings::Settings;

/// Descriptors for upstream and agent: as many as an engine without CAP_SYS_RESOURCE is sure to allow.
const HARNESS_NOFILE: u64 = 16_384;
/// The upstream ends by itself this long after the trial should have, should the controller be gone.
const LIFETIME_GRACE: Duration = Duration::from_secs(300);
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
    ) -> Result<(), (Role, EngineError)> {
        let engine = context.engine;
        let of = |role: Role| move |error: EngineError| (role, error);
        let prefix = self.name.clone();
        let name = |role: Role| format!("{prefix}-{}", role.as_str());
        let placed = settings.placement.resolve(context.placed);
        let upstream_spec = upstream_spec(context, name(Role::Upstream), settings, launch, &placed);
        let upstream = engine
            .create(&upstream_spec, context.owner)
            .await
            .map_err(of(Role::Upstream))?;
        self.upstream = Some(upstream.id.clone());

        let agent_spec = agent_spec(
            name(Role::Agent),
            context.tools_image,
            settings,
            &upstream.id,
            &placed,
        );
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
        agent.map_err(of(Role::Agent))?;
        proxy.map_err(of(Role::Proxy))?;
        if let (Some(id), Some(launch)) = (&self.proxy, launch) {
            let packed = launch.archive().map_err(|e| EngineError::Broken {
                operation: "pack the files of",
                subject: settings.proxy.image.clone(),
                cause: e.to_string(),
            });
            let upload = async { engine.upload(id, Archive::from_tar(packed?)).await };
            upload.await.map_err(of(Role::Proxy))?;
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
        archive.file(JOB_PATH, &text, 0o600, PROXY_UID);
        let (started, uploaded) =
            tokio::join!(engine.start(upstream), engine.upload(agent, archive));
        started?;
        uploaded?;
        let lines = engine.attach(agent).await?;
        engine.start(agent).await?;
        Ok(AgentLink::new(lines))
    }

    /// What the engine says of the containers now, before anything is stopped.
    pub(super) async fn ends(
        &self,
        engine: &Engine,
        outcome: AgentOutcome,
    ) -> Result<Ends, EngineError> {
        let upstream = self.upstream.as_deref().unwrap_or_default();
        let proxy = async {
            match self.proxy.as_deref() {
                Some(id) if outcome == AgentOutcome::ProxyGone => settled(engine, id).await,
                Some(id) => engine.state(id).await,
                None => Ok(None),
            }
        };
        let (proxy, upstream) = tokio::join!(proxy, engine.state(upstream));
        Ok(Ends {
            has_proxy: self.proxy.is_some(),
            proxy: proxy?,
            upstream: upstream?,
        })
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

/// Containers after the agent's report; `None` is one that is gone.
pub(super) struct Ends {
    /// `false` in a `direct` control, which has none.
    pub(super) has_proxy: bool,
    pub(super) proxy: Option<ContainerEnd>,
    pub(super) upstream: Option<ContainerEnd>,
}

/// The state of a container whose processes are gone. The agent sees that before the engine does, which may call it
/// running for a moment, and does not know then how it ended.
async fn settled(engine: &Engine, id: &str) -> Result<Option<ContainerEnd>, EngineError> {
    const DEADLINE: Duration = Duration::from_secs(5);
    const LOOK: Duration = Duration::from_millis(20);
    let deadline = tokio::time::Instant::now() + DEADLINE;
    loop {
        let end = engine.state(id).await?;
        let running = end
            .as_ref()
            .is_some_and(|end| end.state.as_deref() == Some("running"));
        if !running || tokio::time::Instant::now() >= deadline {
            return Ok(end);
        }
        tokio::time::sleep(LOOK).await;
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

/// The agent runs as the proxy's user: before kernel 6.2 nobody else may count a process's descriptors.
fn agent_spec(
    name: String,
    image: &str,
    settings: &Settings,
    network_of: &str,
    placed: &Placed,
) -> ContainerSpec {
    let mut spec = ContainerSpec::new(Role::Agent, name, image);
    spec.cmd = vec!["agent".to_owned(), JOB_PATH.to_owned()];
    spec.user = Some(proxy_user());
    spec.join_network_of = Some(network_of.to_owned());
    spec.nofile = Some(HARNESS_NOFILE.max(settings.proxy.nofile));
    spec.cpuset.clone_from(&placed.agent);
    spec.host_view = true;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agent_and_proxy_run_as_one_user() {
        let settings = crate::spec::defaults::settings();
        let placed = Placed::default();
        let agent = agent_spec("a".to_owned(), "tools", &settings, "netns", &placed);
        assert_eq!(agent.user, Some(format!("{PROXY_UID}:{PROXY_UID}")));
        assert!(agent.host_view);
        let launch = ProxyLaunch {
            files: Default::default(),
            folders: Vec::new(),
            entrypoint: None,
            cmd: Vec::new(),
            user: Some(proxy_user()),
            env: Vec::new(),
            sysctls: Default::default(),
        };
        let proxy = proxy_spec("p".to_owned(), &settings, &launch, "netns", &placed);
        assert_eq!(proxy.user, agent.user);
        assert!(!proxy.host_view);
    }
}
