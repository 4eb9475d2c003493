//! `sweep check`: the file, and whether this machine can run it. Every fault is told, not only the first.

use super::args::CheckArgs;
use super::{Failure, print_line};
use crate::agent::facts::HostFacts;
use crate::plan;
use crate::runner::{self, Needs};
use crate::runtime::{Engine, EngineFacts, Owner};
use crate::tools;
use crate::units::counted;

/// One line of the answer.
struct Finding {
    mark: &'static str,
    what: &'static str,
    text: String,
}

struct Findings(Vec<Finding>);

impl Findings {
    fn ok(&mut self, what: &'static str, text: impl Into<String>) {
        self.0.push(Finding {
            mark: "ok",
            what,
            text: text.into(),
        });
    }

    fn note(&mut self, what: &'static str, text: impl Into<String>) {
        self.0.push(Finding {
            mark: "note",
            what,
            text: text.into(),
        });
    }

    fn fault(&mut self, what: &'static str, text: impl Into<String>) {
        self.0.push(Finding {
            mark: "FAULT",
            what,
            text: text.into(),
        });
    }

    fn conclude(self) -> Result<u8, Failure> {
        let faults = self.0.iter().filter(|f| f.mark == "FAULT").count();
        for Finding { mark, what, text } in &self.0 {
            print_line(&format!("{mark:<5} {what:<12} {text}"))?;
        }
        if faults > 0 {
            return Err(Failure::new(
                3,
                format!(
                    "{}: this machine cannot run the matrix",
                    counted(faults, "fault")
                ),
            ));
        }
        print_line("this machine can run the matrix")
    }
}

pub(super) async fn check(args: CheckArgs) -> Result<u8, Failure> {
    let matrix = super::run::load(&args.matrix)?;
    let mut findings = Findings(Vec::new());
    let plan = plan::build(&matrix);
    findings.ok(
        "matrix",
        format!(
            "{}, {}, about {}",
            counted(plan.cells.len(), "cell"),
            counted(plan.trials.len(), "trial"),
            crate::progress::seconds(plan.estimate.secs_f64())
        ),
    );
    let engine = match Engine::connect().await {
        Ok(engine) => engine,
        Err(e) => {
            findings.fault("engine", e.to_string());
            return findings.conclude();
        }
    };
    let facts = engine.facts().await.map_err(|e| Failure::new(3, e))?;
    engine_findings(&mut findings, &facts);
    if let Some(reason) = facts.unsupported() {
        findings.fault("engine", reason);
        return findings.conclude();
    }
    if let Some(cpus) = facts.cpus {
        matrix
            .check_engine(cpus as f64)
            .map_err(|errors| Failure::rendered(2, errors.render(super::stderr_is_terminal())))?;
        findings.ok(
            "cpus",
            format!("{cpus} on the engine's host; no level asks for more"),
        );
    }
    let needs = Needs::of(&matrix, &plan);
    images(&mut findings, &engine, &needs).await;
    match host(&engine, &facts).await {
        Ok(host) => host_findings(&mut findings, &needs, &facts, &host),
        Err(e) => findings.fault("host", e),
    }
    findings.conclude()
}

fn engine_findings(findings: &mut Findings, facts: &EngineFacts) {
    let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "unknown".to_owned());
    findings.ok(
        "engine",
        format!(
            "{} {} (API {}) at {}",
            text(&facts.product),
            text(&facts.version),
            text(&facts.api_version),
            facts.address
        ),
    );
    let storage = text(&facts.storage_driver);
    match facts.page_cache_shared() {
        Some(true) => findings.ok("storage", format!("{storage}: containers share the page cache of an image's files")),
        Some(false) => findings.note(
            "storage",
            format!("{storage}: every container has its own page cache, so `page_cache` will be `unshared`"),
        ),
        None => findings.note("storage", format!("{storage}: not known to share the page cache; it is read off each trial")),
    }
    findings.ok(
        "cgroup",
        format!(
            "version {}, driver {}",
            text(&facts.cgroup_version),
            text(&facts.cgroup_driver)
        ),
    );
    for warning in &facts.warnings {
        findings.note("engine says", crate::progress::printable(warning));
    }
}

async fn images(findings: &mut Findings, engine: &Engine, needs: &Needs) {
    for image in &needs.proxy_images {
        match engine.image(image).await {
            Ok(Some(found)) => findings.ok("image", format!("{image} is here: {}", found.id)),
            Ok(None) => findings.note(
                "image",
                format!("{image} is not here; `run` will pull it, or make it: sweep image import --name {image} PATH"),
            ),
            Err(e) => findings.fault("image", e.to_string()),
        }
    }
}

async fn host(engine: &Engine, facts: &EngineFacts) -> Result<HostFacts, String> {
    let (tools_image, _) = tools::ensure_image(engine)
        .await
        .map_err(|e| e.to_string())?;
    let owner = Owner::current(&format!("check{}", std::process::id()));
    runner::inspect_host(engine, &owner, &tools_image, facts)
        .await
        .map_err(|e| e.to_string())
}

fn host_findings(findings: &mut Findings, needs: &Needs, facts: &EngineFacts, host: &HostFacts) {
    let faults = runner::faults(needs, facts, host);
    if faults.is_empty() {
        findings.ok(
            "limits",
            "a container with cpu 500m and memory 64Mi has exactly these in the kernel",
        );
    }
    for fault in faults {
        findings.fault("limits", fault);
    }
    match host.swap_total_bytes {
        Some(0) => findings.note(
            "swap",
            "none on the engine's host: a swap limit above 0 has no effect",
        ),
        Some(bytes) => findings.ok("swap", format!("{} MiB on the engine's host", bytes >> 20)),
        None => findings.note("swap", "unknown"),
    }
    if let Some(limit) = host.nofile_hard {
        let asked = needs.nofile;
        if limit < asked {
            findings.note("descriptors", format!("containers may have {limit} by default and proxy.nofile asks for {asked}: an engine without CAP_SYS_RESOURCE refuses that"));
        } else {
            findings.ok(
                "descriptors",
                format!("{asked} asked for, {limit} by default"),
            );
        }
    }
    for notice in runner::notices(needs, facts, host) {
        findings.note("notice", notice);
    }
}
