//! Which CPUs each role runs on: what the matrix says, and what is sensible where it says nothing.

use serde::{Deserialize, Serialize};

use super::syntax;

/// The CPUs of one role.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(from = "Option<String>", into = "String")]
pub enum CpuSet {
    /// Chosen for the machine, by [`Topology::place`], if no role is placed otherwise.
    #[default]
    Auto,
    /// Any CPU.
    Any,
    /// These, in the kernel's list syntax ("0", "0-1,3").
    List(String),
}

impl CpuSet {
    /// The list, where the matrix gives one.
    #[must_use]
    pub fn list(&self) -> Option<&str> {
        match self {
            Self::List(list) => Some(list),
            Self::Auto | Self::Any => None,
        }
    }

    fn resolve(&self, automatic: Option<&String>) -> Option<String> {
        match self {
            Self::Auto => automatic.cloned(),
            Self::Any => None,
            Self::List(list) => Some(list.clone()),
        }
    }
}

impl std::fmt::Display for CpuSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Any => "any",
            Self::List(list) => list,
        })
    }
}

impl From<Option<String>> for CpuSet {
    /// `None` is how folders of an earlier version say "any".
    fn from(text: Option<String>) -> Self {
        match text.as_deref() {
            None | Some("any") => Self::Any,
            Some("auto") => Self::Auto,
            Some(list) => Self::List(list.to_owned()),
        }
    }
}

impl From<CpuSet> for String {
    fn from(set: CpuSet) -> Self {
        set.to_string()
    }
}

/// What the matrix says of every role.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Placement {
    /// For the proxy.
    pub proxy: CpuSet,
    /// For the upstream.
    pub upstream: CpuSet,
    /// For the agent (load generator and probes).
    pub agent: CpuSet,
}

impl Placement {
    /// Whether the matrix leaves the choice of every role's CPUs to `sweep`.
    #[must_use]
    pub fn is_automatic(&self) -> bool {
        *self == Self::default()
    }

    /// The CPUs of every role, with the automatic choice where the matrix leaves it.
    #[must_use]
    pub fn resolve(&self, automatic: &Placed) -> Placed {
        Placed {
            proxy: self.proxy.resolve(automatic.proxy.as_ref()),
            upstream: self.upstream.resolve(automatic.upstream.as_ref()),
            agent: self.agent.resolve(automatic.agent.as_ref()),
        }
    }
}

/// CPUs of every role as the engine is told them; `None` is any.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Placed {
    /// Of the proxy.
    pub proxy: Option<String>,
    /// Of the upstream.
    pub upstream: Option<String>,
    /// Of the agent.
    pub agent: Option<String>,
}

impl Placed {
    /// Whether every role has CPUs of its own choice.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.proxy.is_some() && self.upstream.is_some() && self.agent.is_some()
    }
}

/// CPUs that one matrix needs, over all of its cells.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuDemand {
    /// CPUs that the proxy can use at once: its workers, or its limit if that is more.
    pub proxy: usize,
    /// Threads of the load generator.
    pub threads: usize,
}

/// The CPUs that containers may use, by physical core: threads of one core disturb each other like one CPU.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Topology(pub Vec<Vec<u32>>);

impl Topology {
    /// CPUs of its own for every role: the agent on the last ones (one more than its threads, for the probes, if there are
    /// enough), the upstream on the one before, the proxy on the rest, and none of its cores used by another. The same
    /// for every cell of a matrix, so that cells differ in nothing but their factors. `None` on a machine that is too
    /// small.
    #[must_use]
    pub fn place(&self, demand: CpuDemand) -> Option<Placed> {
        let generous = self.split(demand, demand.threads + 1);
        generous.or_else(|| self.split(demand, demand.threads))
    }

    fn split(&self, demand: CpuDemand, agent: usize) -> Option<Placed> {
        let mut harness = Vec::new();
        let mut cores = self.0.iter();
        while harness.len() < agent + 1 {
            let mut core = cores.next_back()?.clone();
            core.sort_unstable_by(|a, b| b.cmp(a));
            harness.extend(core);
        }
        let mut proxy: Vec<u32> = cores.flatten().copied().collect();
        if proxy.len() < demand.proxy.max(1) {
            return None;
        }
        let mut upstream = harness.split_off(agent);
        for cpus in [&mut proxy, &mut upstream, &mut harness] {
            cpus.sort_unstable();
        }
        Some(Placed {
            proxy: Some(syntax::shortest_list(&proxy)),
            upstream: Some(syntax::shortest_list(&upstream)),
            agent: Some(syntax::shortest_list(&harness)),
        })
    }

    /// Whether the agent may keep a CPU busy without taking time from anybody: it has cores that no other role may use,
    /// and one CPU more than the generator's threads.
    #[must_use]
    pub fn agent_is_alone(&self, placed: &Placed, threads: usize) -> bool {
        let cpus = |list: &Option<String>| list.as_deref().and_then(syntax::cpu_numbers);
        let (Some(proxy), Some(upstream), Some(agent)) = (
            cpus(&placed.proxy),
            cpus(&placed.upstream),
            cpus(&placed.agent),
        ) else {
            return false;
        };
        let others = |cpu: &u32| proxy.contains(cpu) || upstream.contains(cpu);
        let known = |cpu: &u32| self.0.iter().any(|core| core.contains(cpu));
        let shares_core = self
            .0
            .iter()
            .any(|core| core.iter().any(|cpu| agent.contains(cpu)) && core.iter().any(others));
        agent.len() > threads && !shares_core && agent.iter().all(known)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// `cores` cores of `threads` CPUs each, numbered as Linux does on most machines: siblings are `cores` apart.
    fn machine(cores: u32, threads: u32) -> Topology {
        Topology(
            (0..cores)
                .map(|core| (0..threads).map(|thread| core + thread * cores).collect())
                .collect(),
        )
    }

    fn demand(proxy: usize, threads: usize) -> CpuDemand {
        CpuDemand { proxy, threads }
    }

    fn placed(proxy: &str, upstream: &str, agent: &str) -> Placed {
        Placed {
            proxy: Some(proxy.to_owned()),
            upstream: Some(upstream.to_owned()),
            agent: Some(agent.to_owned()),
        }
    }

    #[test]
    fn small_machines_share_and_larger_ones_are_divided() {
        assert_eq!(machine(2, 1).place(demand(2, 1)), None);
        assert_eq!(machine(3, 1).place(demand(2, 1)), None);
        let four = machine(4, 1).place(demand(2, 1)).expect("fits");
        assert_eq!(four, placed("0-1", "2", "3"));
        let eight = machine(8, 1).place(demand(2, 1)).expect("fits");
        assert_eq!(eight, placed("0-4", "5", "6-7"));
        // Four cores of two: agent on both threads of the last core, upstream on the whole one before.
        let threads = machine(4, 2).place(demand(2, 1)).expect("fits");
        assert_eq!(threads, placed("0-1,4-5", "2,6", "3,7"));
        // A proxy that may use every CPU must not lose one in some cells and not in others.
        assert_eq!(machine(4, 1).place(demand(4, 1)), None);
    }

    #[test]
    fn the_agent_is_alone_only_on_cores_of_its_own_with_one_to_spare() {
        let machine = machine(4, 2);
        let alone = |proxy: &str, upstream: &str, agent: &str| {
            machine.agent_is_alone(&placed(proxy, upstream, agent), 1)
        };
        assert!(alone("0-1,4-5", "2,6", "3,7"));
        assert!(!alone("0-1,4-5", "2,6", "3"), "no CPU for the probes");
        assert!(!alone("0-1,4-5", "2,7", "3,6"), "siblings");
        assert!(!alone("0-3", "4", "2,6"), "the proxy's CPU");
        assert!(!alone("0", "1", "8-9"), "unknown CPUs");
        assert!(!machine.agent_is_alone(&Placed::default(), 1));
    }

    #[test]
    fn what_the_matrix_says_comes_first() {
        let automatic = placed("0-1", "2", "3");
        let said = Placement {
            proxy: CpuSet::Any,
            upstream: CpuSet::List("0".to_owned()),
            agent: CpuSet::Auto,
        };
        let resolved = said.resolve(&automatic);
        assert_eq!(resolved.proxy, None);
        assert_eq!(resolved.upstream.as_deref(), Some("0"));
        assert_eq!(resolved.agent.as_deref(), Some("3"));
        assert!(!said.is_automatic() && Placement::default().is_automatic());
    }

    #[test]
    fn sets_survive_the_manifest_and_old_ones_are_understood() {
        for set in [CpuSet::Auto, CpuSet::Any, CpuSet::List("0-1,3".to_owned())] {
            let text = serde_json::to_string(&set).expect("text");
            assert_eq!(serde_json::from_str::<CpuSet>(&text).expect("set"), set);
        }
        assert_eq!(
            serde_json::from_str::<CpuSet>("null").expect("set"),
            CpuSet::Any
        );
    }

    proptest! {
        #[test]
        fn no_two_roles_meet_on_a_core_and_everybody_has_enough(
            cores in 1u32..40, threads in 1u32..5, proxy in 0usize..20, generator in 1usize..8,
        ) {
            let machine = machine(cores, threads);
            let Some(placed) = machine.place(demand(proxy, generator)) else {
                return Ok(());
            };
            let cpus = |list: &Option<String>| {
                syntax::cpu_numbers(list.as_deref().expect("placed")).expect("a list")
            };
            let (p, u, a) = (cpus(&placed.proxy), cpus(&placed.upstream), cpus(&placed.agent));
            prop_assert_eq!(p.len() + u.len() + a.len(), (cores * threads) as usize);
            prop_assert!(p.len() >= proxy && !u.is_empty() && a.len() >= generator);
            for core in &machine.0 {
                let of_proxy = core.iter().filter(|cpu| p.contains(cpu)).count();
                prop_assert!(of_proxy == 0 || of_proxy == core.len());
            }
        }
    }
}
