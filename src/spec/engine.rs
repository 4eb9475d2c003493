//! What only the engine can tell of a matrix: whether its machine is large enough.

use super::fault::{Faults, Place};
use super::{Matrix, SpecErrors, syntax};
use crate::units::MilliCpus;

impl Matrix {
    /// Checks limits and placements against the number of CPUs of the engine's machine.
    ///
    /// # Errors
    /// Every CPU level above it, and every placement on a CPU that does not exist.
    pub fn check_engine(&self, cpus: f64) -> Result<(), SpecErrors> {
        let mut faults = Faults::default();
        // A count of CPUs is small and whole, or at least a whole number of thousandths.
        let engine = MilliCpus((cpus.max(0.0) * 1000.0).round() as u64);
        let has = match engine {
            MilliCpus(1000) => "1 CPU".to_owned(),
            _ => format!("{engine} CPUs"),
        };
        self.each_value("limits.cpu", &mut |settings, at| {
            let Some(cpu) = settings.limits.cpu.filter(|cpu| *cpu > engine) else {
                return;
            };
            faults.add(
                at,
                format!("cpu {cpu} is above the {has} of the engine's machine"),
                format!("give at most \"{engine}\", or run on a larger machine"),
            );
        });
        for path in ["placement.proxy", "placement.upstream", "placement.agent"] {
            self.each_value(path, &mut |settings, at| {
                let list = match path {
                    "placement.proxy" => &settings.placement.proxy,
                    "placement.upstream" => &settings.placement.upstream,
                    _ => &settings.placement.agent,
                };
                let highest = list
                    .list()
                    .and_then(syntax::cpu_numbers)
                    .and_then(|cpus| cpus.last().copied());
                let Some(highest) = highest.filter(|n| f64::from(*n) >= cpus) else {
                    return;
                };
                faults.add(
                    at,
                    format!("{path} names CPU {highest}, but the engine's machine has {has}"),
                    format!("give CPUs below {engine}, counted from 0"),
                );
            });
        }
        if faults.is_empty() {
            Ok(())
        } else {
            Err(faults.into_errors(&self.sources))
        }
    }

    /// Visits the values that a setting takes: its levels if it is a factor, else its base value.
    fn each_value(&self, path: &str, visit: &mut dyn FnMut(&super::settings::Settings, &Place)) {
        match self.factors.iter().find(|factor| factor.path == path) {
            None => {
                let at = self.given.get(path).cloned().unwrap_or_default();
                visit(&self.base, &at);
            }
            Some(factor) => {
                for level in &factor.levels {
                    let mut settings = super::defaults::settings();
                    level.patch.apply(&mut settings);
                    visit(&settings, &level.at);
                }
            }
        }
    }
}
