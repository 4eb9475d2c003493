//! The host around a trial: what else ran, how fast the CPUs were, whether time itself jumped.

mod clocks;
mod frequency;
mod power;
mod stat;

use std::collections::BTreeMap;

use clocks::Offsets;
use frequency::Frequency;
use stat::CpuTimes;

use super::FsRoot;
use super::delta::since_each;
use super::report::HostNoise;
use super::text::{pressure, swap_total_kib};

/// Observes the host over the window.
#[derive(Debug)]
pub(crate) struct HostProbe {
    root: FsRoot,
    frequency: Frequency,
    begin: Option<Snapshot>,
}

#[derive(Debug)]
struct Snapshot {
    cpu: Option<CpuTimes>,
    thermal: Option<u64>,
    offsets: Offsets,
    psi: BTreeMap<String, u64>,
}

impl Snapshot {
    fn take(root: &FsRoot) -> Self {
        let stat = fs_err::read_to_string(root.proc.join("stat")).ok();
        Self {
            cpu: stat.as_deref().and_then(stat::cpu_times),
            thermal: power::thermal_throttle_events(root),
            offsets: Offsets::now(),
            psi: psi_totals(root),
        }
    }
}

impl HostProbe {
    pub(crate) fn new(root: &FsRoot) -> Self {
        Self {
            root: root.clone(),
            frequency: Frequency::new(root),
            begin: None,
        }
    }

    pub(crate) fn begin(&mut self) {
        self.begin = Some(Snapshot::take(&self.root));
        self.frequency.reset();
        self.frequency.sample();
    }

    /// About once a second in the window.
    pub(crate) fn sample(&mut self) {
        self.frequency.sample();
    }

    /// What the window saw. `pod_cpu_usec` is the CPU time that the pod's own containers used in it, where all are known.
    pub(crate) fn end(&mut self, pod_cpu_usec: Option<u64>) -> HostNoise {
        let end = Snapshot::take(&self.root);
        self.frequency.sample();
        let root = &self.root;
        let text = |name: &str| fs_err::read_to_string(root.proc.join(name)).ok();
        let mut noise = HostNoise {
            cpus: end.cpu.map(|cpu| cpu.cpus),
            load1: text("loadavg").as_deref().and_then(stat::load1),
            cpu_khz_mean: self.frequency.mean(),
            swap_total_bytes: text("swaps")
                .as_deref()
                .and_then(swap_total_kib)
                .map(|kib| kib.saturating_mul(1024)),
            on_battery: power::on_battery(root),
            ..HostNoise::default()
        };
        let Some(begin) = self.begin.take() else {
            return noise;
        };
        if let Some(used) = begin.cpu.zip(end.cpu).and_then(|(a, b)| b.since(&a)) {
            noise.steal_share = used.steal_share();
            noise.busy_share = used.busy_share();
            noise.other_cpu_usec = pod_cpu_usec.map(|pod| used.busy_usec().saturating_sub(pod));
        }
        noise.thermal_throttle_events = super::delta::since(begin.thermal, end.thermal);
        noise.suspended_us = Some(end.offsets.suspended_since(&begin.offsets));
        noise.clock_step_us = Some(end.offsets.step_since(&begin.offsets));
        noise.psi_usec = since_each(&begin.psi, &end.psi);
        noise
    }
}

fn psi_totals(root: &FsRoot) -> BTreeMap<String, u64> {
    let mut totals = BTreeMap::new();
    for resource in ["cpu", "memory", "io"] {
        let path = root.proc.join("pressure").join(resource);
        let Ok(text) = fs_err::read_to_string(path) else {
            continue;
        };
        let found = pressure(&text);
        for (kind, total) in [("some", found.some), ("full", found.full)] {
            totals.extend(total.map(|total| (format!("{resource}_{kind}"), total)));
        }
    }
    totals
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn this_host_over_a_short_window() {
        let mut probe = HostProbe::new(&FsRoot::default());
        probe.begin();
        let spin = std::time::Instant::now();
        while spin.elapsed() < Duration::from_millis(300) {
            std::hint::black_box(0);
        }
        let noise = probe.end(Some(0));
        assert!(noise.cpus > Some(0));
        assert!(noise.busy_share > Some(0.0) && noise.busy_share <= Some(1.0));
        assert!(noise.other_cpu_usec >= Some(100_000), "{noise:?}");
        assert_eq!(noise.suspended_us, Some(0));
        assert!(noise.load1.is_some() && noise.swap_total_bytes.is_some());
    }

    #[test]
    fn a_host_that_shows_nothing_is_unknown() {
        let empty = tempfile::tempdir().expect("temporary folder");
        let path = empty.path().to_owned();
        let root = FsRoot {
            proc: path.clone(),
            cgroup: path.clone(),
            sys: path,
        };
        let mut probe = HostProbe::new(&root);
        probe.begin();
        let noise = probe.end(Some(5));
        let clocks_only = HostNoise {
            suspended_us: Some(0),
            clock_step_us: noise.clock_step_us,
            ..HostNoise::default()
        };
        assert_eq!(noise, clocks_only);
    }
}
