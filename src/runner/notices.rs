//! What a reader must know of all the numbers of a run: told by `check`, at the start, in the table and in the manifest.

use super::Needs;
use crate::agent::facts::HostFacts;
use crate::runtime::EngineFacts;
use crate::verdict::words::bytes;

/// Each a whole sentence.
pub(crate) fn notices(needs: &Needs, facts: &EngineFacts, host: &HostFacts) -> Vec<String> {
    let mut notices = Vec::new();
    notices.extend(unreachable_memory(needs, facts, host));
    notices.extend(inert_swap(needs, facts, host));
    if facts.page_cache_shared() == Some(false) {
        notices.push(format!(
            "the storage driver {} gives each container its own page cache, so the proxy pays for every page of its binary \
             that it touches (`page_cache` is `unshared`): small memory limits bite earlier here than on overlay2",
            facts.storage_driver.as_deref().unwrap_or("?")
        ));
    }
    notices.extend(shared_cpus(needs, facts, host));
    notices
}

/// Memory levels that the machine does not have. They are no fault, as CPUs beyond the machine's are, which the engine
/// refuses: the kernel takes them, puts them in force, and never gets there.
fn unreachable_memory(needs: &Needs, facts: &EngineFacts, host: &HostFacts) -> Option<String> {
    let total = host.memory_total_bytes.or(facts.memory_bytes)?;
    let above: Vec<String> = needs
        .memory
        .iter()
        .filter(|level| level.0 >= total)
        .map(ToString::to_string)
        .collect();
    if above.is_empty() {
        return None;
    }
    let (what, act) = match above.len() {
        1 => ("memory limit", "is"),
        _ => ("memory limits", "are"),
    };
    Some(format!(
        "the {what} {} {act} not below the {} of the engine's machine, so the proxy cannot reach {}: the same as \
         \"max\", no limit",
        above.join(", "),
        bytes(total as f64),
        if above.len() == 1 { "it" } else { "them" },
    ))
}

fn inert_swap(needs: &Needs, facts: &EngineFacts, host: &HostFacts) -> Option<String> {
    let why = if !needs.swap {
        return None;
    } else if host.swap_total_bytes == Some(0) {
        "the host has no swap device, so every level of it behaves as 0 (add one with `mkswap` and `swapon`)"
    } else if facts.swap_limit == Some(false) {
        "the engine cannot limit swap (boot with `swapaccount=1`), so the kernel's own policy decides"
    } else {
        return None;
    };
    Some(format!("the factor swap is inert: {why}"))
}

fn shared_cpus(needs: &Needs, facts: &EngineFacts, host: &HostFacts) -> Option<String> {
    if let Some(placed) = needs.place(host.cores.as_ref()) {
        let of = |role: &Option<String>| role.clone().unwrap_or_else(|| "any".to_owned());
        return Some(format!(
            "the proxy runs on CPUs {}, the upstream on {}, the agent on {} (`[placement]` changes that)",
            of(&placed.proxy),
            of(&placed.upstream),
            of(&placed.agent),
        ));
    }
    let few = facts.cpus.is_some_and(|n| n < 3);
    (!needs.placed && (needs.unplaced || few)).then(|| {
        let cpus = match facts.cpus {
            Some(1) => "one CPU".to_owned(),
            Some(n) => format!("{n} CPUs"),
            None => "the machine's CPUs".to_owned(),
        };
        format!(
            "proxy, upstream and agent share {cpus}: a generator that was held up makes its trial invalid, but small \
             latencies include some of their competition"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Bytes;

    const GIB: u64 = 1 << 30;

    fn engine() -> EngineFacts {
        EngineFacts {
            address: "unix:///run/docker.sock".to_owned(),
            id: None,
            product: None,
            version: None,
            api_version: None,
            storage_driver: Some("overlay2".to_owned()),
            cgroup_driver: None,
            cgroup_version: None,
            cpus: Some(2),
            memory_bytes: Some(24 * GIB),
            kernel: None,
            os: None,
            architecture: None,
            memory_limit: None,
            swap_limit: None,
            cpu_cfs_quota: None,
            cpu_set: None,
            rootless: false,
            warnings: Vec::new(),
        }
    }

    fn host(memory: Option<u64>) -> HostFacts {
        HostFacts {
            cgroup_version: None,
            limits: None,
            swap_total_bytes: Some(0),
            memory_total_bytes: memory,
            cpus: Some(2),
            cpu_model: None,
            kernel: "6.1".to_owned(),
            nofile_hard: None,
            cores: None,
            somaxconn: None,
        }
    }

    fn of_levels(levels: &[u64], memory: Option<u64>) -> Vec<String> {
        let needs = Needs {
            memory: levels.iter().map(|level| Bytes(*level)).collect(),
            placed: true,
            ..Needs::default()
        };
        notices(&needs, &engine(), &host(memory))
    }

    #[test]
    fn memory_that_the_machine_does_not_have_is_no_limit_and_said_so() {
        insta::assert_snapshot!(of_levels(&[GIB, 64 * GIB], Some(23 * GIB + GIB / 2)).join("\n"), @r#"the memory limit 64Gi is not below the 23.5 GiB of the engine's machine, so the proxy cannot reach it: the same as "max", no limit"#);
        insta::assert_snapshot!(of_levels(&[64 * GIB, 32 * GIB], None).join("\n"), @r#"the memory limits 32Gi, 64Gi are not below the 24.0 GiB of the engine's machine, so the proxy cannot reach them: the same as "max", no limit"#);
        assert!(of_levels(&[GIB, 23 * GIB], Some(24 * GIB)).is_empty());
    }

    #[test]
    fn swap_without_a_swap_device_is_inert() {
        let needs = Needs {
            swap: true,
            placed: true,
            ..Needs::default()
        };
        insta::assert_snapshot!(notices(&needs, &engine(), &host(None)).join("\n"), @"the factor swap is inert: the host has no swap device, so every level of it behaves as 0 (add one with `mkswap` and `swapon`)");
    }

    #[test]
    fn one_cpu_is_shared_too() {
        let needs = Needs {
            unplaced: true,
            ..Needs::default()
        };
        let mut facts = engine();
        facts.cpus = Some(1);
        insta::assert_snapshot!(notices(&needs, &facts, &host(None)).join("\n"), @"proxy, upstream and agent share one CPU: a generator that was held up makes its trial invalid, but small latencies include some of their competition");
    }
}
