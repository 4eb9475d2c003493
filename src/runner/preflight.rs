//! What is looked at before the first trial: images, the host behind the engine, and whether limits bite there.

use std::collections::BTreeSet;

use super::{Needs, RunError, notices};
use crate::agent::facts::HostFacts;
use crate::plan::Plan;
use crate::probe::report::{CgroupVersion, Limit};
use crate::record::manifest::{self, FactorLevels, ImageFacts, Manifest, PlannedCell};
use crate::record::trial::SCHEMA_VERSION;
use crate::runtime::{ContainerSpec, Engine, EngineError, EngineFacts, Owner, Role};
use crate::spec::Matrix;
use crate::spec::placement::Placed;
use crate::spec::settings::Limits;
use crate::tools;
use crate::units::{Bytes, Micros, MilliCpus};

/// Limits of the container that looks at the host, by which enforcement is proven.
const PROOF: Limits = Limits {
    cpu: Some(MilliCpus(500)),
    cpu_period: Micros(100_000),
    memory: Some(Bytes(64 << 20)),
    swap: Bytes(16 << 20),
};

/// What was found.
#[derive(Debug, Clone)]
pub struct Preflight {
    /// The engine.
    pub engine: EngineFacts,
    /// Its host, as seen from a container.
    pub host: HostFacts,
    /// Reference of this program's image.
    pub tools_image: String,
    /// Images, for the manifest.
    pub images: Vec<ImageFacts>,
    /// What a reader must know of all the numbers.
    pub notices: Vec<String>,
    /// CPUs of the roles that the matrix leaves to `sweep`.
    pub placed: Placed,
}

pub(super) async fn prepare(
    engine: &Engine,
    owner: &Owner,
    needs: &Needs,
    facts: EngineFacts,
) -> Result<Preflight, RunError> {
    let (tools_image, tools_facts) = tools::ensure_image(engine).await?;
    let mut images = vec![image_facts("agent", &tools_image, &tools_facts)];
    for image in &needs.proxy_images {
        let found = engine.ensure_image(image).await?;
        images.push(image_facts("proxy", image, &found));
    }
    let host = inspect_host(engine, owner, &tools_image, &facts).await?;
    let faults = faults(needs, &facts, &host);
    if !faults.is_empty() {
        return Err(RunError::Environment(faults));
    }
    let notices = notices::notices(needs, &facts, &host);
    let placed = needs.place(host.cores.as_ref()).unwrap_or_default();
    Ok(Preflight {
        placed,
        engine: facts,
        host,
        tools_image,
        images,
        notices,
    })
}

fn image_facts(role: &str, reference: &str, found: &crate::runtime::ImageFacts) -> ImageFacts {
    ImageFacts {
        role: role.to_owned(),
        reference: reference.to_owned(),
        id: Some(found.id.clone()).filter(|id| !id.is_empty()),
        repo_digests: found.repo_digests.clone(),
        program_version: (role == "agent").then(|| crate::VERSION.to_owned()),
    }
}

/// Runs a small container with known limits, which tells what it sees.
///
/// # Errors
/// When the engine cannot run it: then it could run no trial either.
pub async fn inspect_host(
    engine: &Engine,
    owner: &Owner,
    tools_image: &str,
    facts: &EngineFacts,
) -> Result<HostFacts, EngineError> {
    let mut spec = ContainerSpec::new(
        Role::Facts,
        format!("sweep-{}-facts", owner.run),
        tools_image,
    );
    spec.host_view = true;
    // A limit that the engine says it cannot enforce would be refused here; the faults below say it better.
    spec.limits = Limits {
        cpu: PROOF.cpu.filter(|_| facts.cpu_cfs_quota != Some(false)),
        memory: PROOF.memory.filter(|_| facts.memory_limit != Some(false)),
        ..PROOF
    };
    spec.cmd = vec!["facts".to_owned()];
    let created = engine.create(&spec, owner).await?;
    let read = async {
        let mut lines = engine.attach(&created.id).await?;
        engine.start(&created.id).await?;
        let broken = |cause: String| EngineError::Broken {
            operation: "inspect the host of",
            subject: "the engine".to_owned(),
            cause,
        };
        let deadline = std::time::Duration::from_secs(60);
        let line = match tokio::time::timeout(deadline, lines.next_line()).await {
            Ok(line) => line?,
            Err(_) => {
                return Err(broken(format!(
                    "its container said nothing within {} s",
                    deadline.as_secs()
                )));
            }
        };
        let text = line.unwrap_or_default();
        serde_json::from_str(&text).map_err(|e| {
            broken(format!(
                "its container said {text:?} ({e}); {}",
                lines.stderr_tail.trim()
            ))
        })
    };
    let result = read.await;
    engine.remove(&created.id).await?;
    result
}

/// What makes the matrix impossible here.
pub(crate) fn faults(needs: &Needs, facts: &EngineFacts, host: &HostFacts) -> Vec<String> {
    let mut faults = Vec::new();
    let mut must = |wanted: bool, can: Option<bool>, what: &str, remedy: &str| {
        if wanted && can == Some(false) {
            faults.push(format!("the engine cannot enforce {what}: {remedy}"));
        }
    };
    must(
        needs.cpu_limits,
        facts.cpu_cfs_quota,
        "CPU limits",
        "its kernel lacks CONFIG_CFS_BANDWIDTH, or a rootless engine has no `cpu` controller delegated",
    );
    must(
        !needs.memory.is_empty(),
        facts.memory_limit,
        "memory limits",
        "boot with `cgroup_enable=memory`, or delegate the `memory` controller to the rootless engine",
    );
    let own = host.limits.as_ref().map(|l| &l.own);
    if needs.cpu_limits
        && let Some(found) = own.and_then(|l| l.cpu_quota_usec)
        && found != Limit::Of(50_000)
    {
        faults.push(format!("a CPU limit of 500m was asked for and the kernel holds {found:?}: the engine drops CPU limits"));
    }
    if !needs.memory.is_empty()
        && let Some(found) = own.and_then(|l| l.memory_bytes)
        && found != Limit::Of(64 << 20)
    {
        faults.push(format!("a memory limit of 64Mi was asked for and the kernel holds {found:?}: the engine drops memory limits"));
    }
    if own.is_none() {
        faults.push("the limits of a container cannot be read back from /sys/fs/cgroup: sweep would not know what it measures".to_owned());
    }
    faults
}

impl Preflight {
    pub(super) fn manifest(
        &self,
        matrix: &Matrix,
        plan: &Plan,
        run: &str,
        overrides: &[String],
    ) -> Manifest {
        let now = jiff::Timestamp::now().to_string();
        let engine = &self.engine;
        Manifest {
            schema: SCHEMA_VERSION,
            sweep_version: crate::VERSION.to_owned(),
            run: run.to_owned(),
            name: matrix.name.clone(),
            matrix_text: matrix.text().to_owned(),
            matrix_hash: matrix.hash(),
            overrides: overrides.to_vec(),
            base: matrix.base.clone(),
            factors: matrix
                .factors
                .iter()
                .map(|f| FactorLevels {
                    name: f.name.clone(),
                    levels: f.levels.iter().map(|l| l.text.clone()).collect(),
                })
                .collect(),
            cells: plan
                .cells
                .iter()
                .map(|c| PlannedCell {
                    cell: c.id().to_owned(),
                    factors: c.factors(matrix),
                    control: c.control(),
                })
                .collect(),
            seed: matrix.seed,
            repetitions: matrix.repetitions,
            planned_trials: plan.trials.len() as u64,
            images: self.images.clone(),
            host: self.manifest_host(),
            engine: manifest::EngineFacts {
                name: engine.product.clone(),
                id: engine.id.clone(),
                version: engine.version.clone(),
                api_version: engine.api_version.clone(),
                storage_driver: engine.storage_driver.clone(),
                cgroup_driver: engine.cgroup_driver.clone(),
                cgroup_version: engine.cgroup_version.clone(),
                runtime: None,
                security_options: if engine.rootless {
                    vec!["rootless".to_owned()]
                } else {
                    Vec::new()
                },
                warnings: engine.warnings.clone(),
            },
            page_cache_shared: engine.page_cache_shared(),
            notices: self.notices.clone(),
            started_at: now.clone(),
            updated_at: now,
            finished_at: None,
        }
    }

    fn manifest_host(&self) -> manifest::HostFacts {
        let (engine, host) = (&self.engine, &self.host);
        manifest::HostFacts {
            kernel: Some(host.kernel.clone()),
            os: engine.os.clone(),
            architecture: engine.architecture.clone(),
            cpu_model: host.cpu_model.clone(),
            cpus: engine.cpus.or(host.cpus),
            memory_bytes: host.memory_total_bytes.or(engine.memory_bytes),
            swap_bytes: host.swap_total_bytes,
            cgroup_version: host.cgroup_version.map(|v| match v {
                CgroupVersion::V1 => "1".to_owned(),
                CgroupVersion::V2 => "2".to_owned(),
            }),
            virtualization: None,
            sysctls: host
                .somaxconn
                .map(|n| ("net.core.somaxconn".to_owned(), n))
                .into_iter()
                .collect(),
        }
    }
}

/// Refuses to mix what differs in more than time.
pub(super) fn check_resume(old: &Manifest, new: &Manifest) -> Result<(), RunError> {
    let mismatch = |what: &str, was: &str, is: &str| {
        Err(RunError::ResumeMismatch(format!(
            "{what} was {was} and is {is}"
        )))
    };
    if old.matrix_hash != new.matrix_hash {
        return mismatch(
            "the matrix (hash of the resolved settings)",
            &old.matrix_hash,
            &new.matrix_hash,
        );
    }
    if old.sweep_version != new.sweep_version {
        return mismatch("sweep", &old.sweep_version, &new.sweep_version);
    }
    if old.engine.id != new.engine.id {
        let text = |id: &Option<String>| id.clone().unwrap_or_else(|| "unknown".to_owned());
        return mismatch("the engine", &text(&old.engine.id), &text(&new.engine.id));
    }
    let proxies = |m: &Manifest| -> BTreeSet<String> {
        m.images
            .iter()
            .filter(|i| i.role == "proxy")
            .map(|i| format!("{} {}", i.reference, i.id.as_deref().unwrap_or("?")))
            .collect()
    };
    let (was, is) = (proxies(old), proxies(new));
    if was != is {
        let join = |set: &BTreeSet<String>| set.iter().cloned().collect::<Vec<_>>().join(", ");
        return mismatch("the proxy's image", &join(&was), &join(&is));
    }
    Ok(())
}
