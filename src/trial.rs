//! One trial from create to remove: fresh containers, one job, one record.

mod agent_link;
mod failure;
mod outcome;
mod page_cache;
mod pod;

use std::time::{Duration, Instant};

use failure::TrialFailure;
pub use outcome::{Outcome, of_agent_result, of_start_failure};
pub use page_cache::PageCacheHelpers;
pub use pod::Pod;

use crate::agent::job::{AgentResult, Job, Phase, TlsMaterial, WatchedProxy};
use crate::certs::RunCertificates;
use crate::plan;
use crate::proxy;
use crate::record::trial::{Control, Factor, TrialRecord, TrialStatus};
use crate::runtime::{Engine, EngineError, Owner};
use crate::spec::placement::{Placed, Topology};
use crate::spec::settings::{DelayDistribution, LoadMode, Settings, Wait};
use crate::units::Micros;
use crate::verdict;

/// Where the upstream listens in the pod.
pub const UPSTREAM_PORT: u16 = 8080;
/// Where the upstream's own account of its delay is asked for.
pub const UPSTREAM_CONTROL_PORT: u16 = 8081;
/// How long requests that are open at the window's end may still be answered.
pub const DRAIN: Duration = Duration::from_secs(2);
/// Time between two samples of the probes: 20 Hz.
pub const SAMPLE_INTERVAL: Micros = Micros(50_000);
const READY_BASE: Duration = Duration::from_secs(15);
const READY_PER_CPU: Duration = Duration::from_millis(500);
/// Beyond its own phases, an agent that is silent for this long is taken for lost.
const AGENT_GRACE: Duration = Duration::from_secs(60);

/// What every trial of a run shares.
pub struct TrialContext<'a> {
    /// The engine.
    pub engine: &'a Engine,
    /// Owner of everything that is created.
    pub owner: &'a Owner,
    /// Image of this program.
    pub tools_image: &'a str,
    /// Keys and certificates of the run.
    pub certificates: &'a RunCertificates,
    /// Whether containers share the page cache of an image's files.
    pub page_cache_shared: Option<bool>,
    /// CPUs of the engine's host.
    pub engine_cpus: f64,
    /// CPUs of the roles that the matrix leaves to `sweep`.
    pub placed: &'a Placed,
    /// CPUs of the engine's host, by core; `None` if unknown.
    pub cores: Option<&'a Topology>,
}

/// Id, control and factor levels of the trial's cell.
pub type CellIdentity<'a> = (&'a str, Option<Control>, Vec<Factor>);

/// Something a watcher may want to know while a trial runs.
pub type OnPhase<'a> = dyn Fn(Phase) + Send + Sync + 'a;

/// Deadline for the first answer: a start takes CPU time, so it grows as the limit shrinks.
#[must_use]
pub fn ready_deadline(settings: &Settings) -> Duration {
    let cpus = settings
        .limits
        .cpu
        .map_or(1.0, |c| c.0 as f64 / 1000.0)
        .min(1.0);
    READY_BASE + READY_PER_CPU.div_f64(cpus)
}

/// Runs one trial. Containers are registered in `pod` as they are created and are still there afterwards, so that the
/// record can be made durable before anything is removed; the caller removes the pod, whatever happens here.
pub async fn run(
    context: &TrialContext<'_>,
    trial: &plan::Trial,
    cell: CellIdentity<'_>,
    settings: &Settings,
    helpers: &mut PageCacheHelpers,
    pod: &mut Pod,
    on_phase: &OnPhase<'_>,
) -> TrialRecord {
    let started = Instant::now();
    let control = cell.1;
    let mut record = blank_record(context, trial, cell, settings);
    let measured = measure(
        context,
        trial,
        control,
        settings,
        helpers,
        pod,
        on_phase,
        &mut record,
    )
    .await;
    if let Err(failure) = measured {
        record.status = TrialStatus::Failed;
        record.failure = Some(failure.kind);
        record.reasons.push(failure.reason);
    }
    if record.status == TrialStatus::Valid {
        record
            .reasons
            .extend(verdict::validity::reasons(&record, settings));
        if !record.reasons.is_empty() {
            record.status = TrialStatus::Invalid;
        }
    }
    if record.status != TrialStatus::Valid
        && let (Some(id), Some(end)) = (pod.proxy.as_deref(), record.proxy.as_mut())
    {
        end.log_tail = context.engine.log_tail(id).await;
    }
    record.wall_us = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
    record
}

fn blank_record(
    context: &TrialContext<'_>,
    trial: &plan::Trial,
    (cell, control, factors): CellIdentity<'_>,
    settings: &Settings,
) -> TrialRecord {
    TrialRecord {
        schema: crate::record::trial::SCHEMA_VERSION,
        run: context.owner.run.clone(),
        position: trial.position,
        cell: cell.to_owned(),
        factors,
        control,
        repetition: trial.repetition,
        block: trial.block,
        seed: trial.seed,
        started_at: jiff::Timestamp::now().to_string(),
        wall_us: 0,
        warmup_us: settings.warmup.0,
        duration_us: settings.duration.0,
        limits: settings.limits.clone(),
        workers: settings.proxy.workers,
        nofile: (control != Some(Control::Direct)).then_some(settings.proxy.nofile),
        upstream_delay_us: (settings.upstream.delay_distribution == DelayDistribution::Constant)
            .then_some(settings.upstream.delay.0),
        rate: (settings.load.mode == LoadMode::Open).then_some(settings.load.rate),
        page_cache_asked: settings.proxy.page_cache,
        page_cache_shared: context.page_cache_shared,
        status: TrialStatus::Valid,
        reasons: Vec::new(),
        failure: None,
        verdict: None,
        agent: None,
        proxy: None,
        engine_warnings: Vec::new(),
        attempts: 1,
        retried_because: None,
    }
}

#[expect(
    clippy::too_many_arguments,
    reason = "one call site; the parts are owned by different layers"
)]
async fn measure(
    context: &TrialContext<'_>,
    trial: &plan::Trial,
    control: Option<Control>,
    settings: &Settings,
    helpers: &mut PageCacheHelpers,
    pod: &mut Pod,
    on_phase: &OnPhase<'_>,
    record: &mut TrialRecord,
) -> Result<(), TrialFailure> {
    let engine = context.engine;
    let direct = control == Some(Control::Direct);
    let certs = context.certificates;
    let server = certs.server(settings.tls.certificate).ok_or_else(|| {
        TrialFailure::harness(format!(
            "no certificate was made for {:?}",
            settings.tls.certificate
        ))
    })?;
    let upstream = std::net::SocketAddr::from(([127, 0, 0, 1], UPSTREAM_PORT));
    let launch = (!direct).then(|| {
        proxy::launch(
            settings,
            proxy::TlsFiles {
                server,
                ca_pem: &certs.ca_pem,
            },
            upstream,
        )
    });

    on_phase(Phase::Readiness);
    pod.create(context, settings, launch.as_ref())
        .await
        .map_err(|(role, error)| TrialFailure::create(role, &error))?;
    record.engine_warnings.clone_from(&pod.warnings);
    if !direct && context.page_cache_shared != Some(false) {
        helpers
            .prepare(context, settings)
            .await
            .map_err(|e| TrialFailure::engine(&e))?;
    }

    let deadline = ready_deadline(settings);
    let job = job(
        context,
        trial,
        settings,
        pod,
        direct,
        deadline,
        TlsMaterial {
            settings: settings.tls.clone(),
            ca_pem: certs.ca_pem.clone(),
            server_cert_pem: server.cert_pem.clone(),
            client: settings.tls.mutual.then(|| certs.client.clone()),
        },
    );
    let mut link = pod
        .start_harness(context, &job)
        .await
        .map_err(|e| TrialFailure::engine(&e))?;
    if let Err(reason) = link.until_watching().await {
        return Err(failure::of_the_harness(engine, pod, reason).await);
    }

    if let Some(id) = pod.proxy.clone()
        && let Err(error) = engine.start(&id).await
    {
        record.proxy = engine.state(&id).await.ok().flatten();
        return Err(TrialFailure::start(&error, record.proxy.as_ref()));
    }
    let budget =
        deadline + settings.warmup.duration() + settings.duration.duration() + DRAIN + AGENT_GRACE;
    let result = match link.result(budget, on_phase).await {
        Ok(result) => result,
        Err(reason) => return Err(failure::of_the_harness(engine, pod, reason).await),
    };
    let ends = pod.ends(engine, result.outcome).await;
    conclude(record, result, ends, deadline)
}

fn conclude(
    record: &mut TrialRecord,
    result: AgentResult,
    ends: Result<pod::Ends, EngineError>,
    deadline: Duration,
) -> Result<(), TrialFailure> {
    let outcome = ends.map_err(|e| TrialFailure::engine(&e)).and_then(|ends| {
        record.proxy.clone_from(&ends.proxy);
        match failure::of_ends(&ends) {
            Some(failure) => Err(failure),
            None => Ok(of_agent_result(
                &result,
                record.proxy.as_ref(),
                deadline.as_secs_f64(),
            )),
        }
    });
    // Kept whatever is said of it: evidence of a trial that was spoiled too.
    record.agent = Some(result);
    let outcome = outcome?;
    record.status = outcome.status;
    record.failure = outcome.failure;
    record.reasons.extend(outcome.reasons);
    Ok(())
}

fn job(
    context: &TrialContext<'_>,
    trial: &plan::Trial,
    settings: &Settings,
    pod: &Pod,
    direct: bool,
    ready_deadline: Duration,
    tls: TlsMaterial,
) -> Job {
    let local = |port: u16| std::net::SocketAddr::from(([127, 0, 0, 1], port));
    let target_port = if direct {
        UPSTREAM_PORT
    } else {
        settings.proxy.port
    };
    let placed = settings.placement.resolve(context.placed);
    let agent_cpus = placed
        .agent
        .as_deref()
        .and_then(crate::spec::cpu_list)
        .map_or(context.engine_cpus, |cpus| cpus.len() as f64);
    let threads = settings.load.threads as usize;
    let may_spin = context
        .cores
        .is_some_and(|cores| cores.agent_is_alone(&placed, threads));
    Job {
        target: local(target_port),
        server_name: crate::certs::SERVER_NAME.to_owned(),
        tls: (!direct).then_some(tls),
        load: settings.load.clone(),
        warmup: settings.warmup,
        duration: settings.duration,
        drain: Micros(DRAIN.as_micros() as u64),
        seed: trial.seed,
        upstream_control: local(UPSTREAM_CONTROL_PORT),
        ready_path: settings.proxy.ready_path.clone(),
        ready_deadline: Micros(ready_deadline.as_micros() as u64),
        proxy: pod.proxy.as_ref().map(|id| WatchedProxy {
            container_id: id.clone(),
            kind: settings.proxy.kind,
            admin: settings.proxy.admin_port.map(local),
        }),
        upstream_container: pod.upstream.clone(),
        sample_interval: SAMPLE_INTERVAL,
        agent_cpus,
        spin: match settings.load.wait {
            Wait::Auto => may_spin,
            Wait::Sleep => false,
            Wait::Spin => true,
        },
        listen_port: target_port,
    }
}
