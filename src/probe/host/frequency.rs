//! CPU frequency.

use crate::probe::FsRoot;
use crate::probe::file::KeptFile;
use crate::probe::text::single;

/// On larger hosts the first of them stand for all; reading one can interrupt its CPU.
const MOST_CPUS: usize = 64;

/// Mean frequency over CPUs and samples.
#[derive(Debug)]
pub(super) struct Frequency {
    scaling: Vec<KeptFile>,
    cpuinfo: KeptFile,
    buffer: Vec<u8>,
    sum_khz: f64,
    count: u64,
}

impl Frequency {
    pub(super) fn new(root: &FsRoot) -> Self {
        let cpus = root.sys.join("devices/system/cpu");
        let scaling = (0..MOST_CPUS)
            .map(|cpu| cpus.join(format!("cpu{cpu}/cpufreq/scaling_cur_freq")))
            .take_while(|path| path.is_file())
            .map(KeptFile::new)
            .collect();
        Self {
            scaling,
            cpuinfo: KeptFile::new(root.proc.join("cpuinfo")),
            buffer: Vec::new(),
            sum_khz: 0.0,
            count: 0,
        }
    }

    pub(super) fn reset(&mut self) {
        self.sum_khz = 0.0;
        self.count = 0;
    }

    pub(super) fn sample(&mut self) {
        if self.scaling.is_empty() {
            // Without frequency scaling (virtual machines) the text gives the nominal frequency, if anything.
            if let Some(text) = self.cpuinfo.read(&mut self.buffer) {
                for khz in cpuinfo_khz(text) {
                    self.sum_khz += khz;
                    self.count += 1;
                }
            }
            return;
        }
        for file in &mut self.scaling {
            if let Some(khz) = file.read(&mut self.buffer).and_then(single) {
                self.sum_khz += khz as f64;
                self.count += 1;
            }
        }
    }

    /// kHz.
    pub(super) fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum_khz / self.count as f64)
    }
}

fn cpuinfo_khz(text: &str) -> impl Iterator<Item = f64> {
    text.lines().filter_map(|line| {
        let (key, value) = line.split_once(':')?;
        let mhz: f64 = (key.trim() == "cpu MHz").then(|| value.trim().parse().ok())??;
        (mhz.is_finite() && mhz > 0.0).then_some(mhz * 1000.0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::fixture::Tree;

    #[test]
    fn mean_over_cpus_and_samples() {
        let tree = Tree::with(&[
            (
                "sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq",
                "2000000\n",
            ),
            (
                "sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq",
                "3000000\n",
            ),
            ("proc/cpuinfo", "cpu MHz\t\t: 1.0\n"),
        ]);
        let mut frequency = Frequency::new(&tree.root);
        assert_eq!(frequency.mean(), None);
        frequency.sample();
        assert_eq!(frequency.mean(), Some(2_500_000.0));
        tree.write(
            "sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq",
            "1000000\n",
        );
        frequency.sample();
        assert_eq!(frequency.mean(), Some(2_000_000.0));
    }

    #[test]
    fn a_virtual_machine_has_only_cpuinfo() {
        let tree = Tree::with(&[(
            "proc/cpuinfo",
            "processor\t: 0\ncpu MHz\t\t: 2600.000\n\nprocessor\t: 1\ncpu MHz\t\t: 2600.000\n",
        )]);
        let mut frequency = Frequency::new(&tree.root);
        frequency.sample();
        assert_eq!(frequency.mean(), Some(2_600_000.0));
    }
}
