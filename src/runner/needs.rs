//! What a matrix needs of the machine, over all of its cells.

use std::collections::BTreeSet;

use crate::plan::Plan;
use crate::record::trial::Control;
use crate::spec::Matrix;
use crate::spec::placement::{CpuDemand, Placed, Topology};
use crate::spec::settings::CertificateKey;
use crate::units::Bytes;

/// Needs of a whole matrix.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Needs {
    /// Images of proxies.
    pub proxy_images: BTreeSet<String>,
    /// Keys of the proxies' certificates.
    pub certificates: Vec<CertificateKey>,
    /// Some cell has a CPU limit.
    pub cpu_limits: bool,
    /// Memory limits of all cells.
    pub memory: BTreeSet<Bytes>,
    /// Some cell has swap on top of memory.
    pub swap: bool,
    /// The highest `proxy.nofile`.
    pub nofile: u64,
    /// Every cell places every role on CPUs of its own choice.
    pub placed: bool,
    /// No cell places any role: `sweep` may choose.
    pub unplaced: bool,
    /// CPUs that the cells can use.
    pub cpus: CpuDemand,
}

impl Needs {
    /// Of every cell of a plan.
    #[must_use]
    pub fn of(matrix: &Matrix, plan: &Plan) -> Self {
        let mut needs = Self {
            placed: true,
            unplaced: true,
            ..Self::default()
        };
        for cell in plan
            .cells
            .iter()
            .filter(|c| c.control() != Some(Control::Direct))
        {
            let settings = matrix.settings(cell);
            needs.cpu_limits |= settings.limits.cpu.is_some();
            needs.memory.extend(settings.limits.memory);
            needs.swap |= settings.limits.swap.0 > 0;
            needs.nofile = needs.nofile.max(settings.proxy.nofile);
            let placement = &settings.placement;
            needs.placed &= placement.resolve(&Placed::default()).is_complete();
            needs.unplaced &= placement.is_automatic();
            let limit = settings.limits.cpu.map_or(0, |cpu| cpu.0.div_ceil(1000));
            needs.cpus.proxy = needs
                .cpus
                .proxy
                .max(settings.proxy.workers as usize)
                .max(limit as usize);
            needs.cpus.threads = needs.cpus.threads.max(settings.load.threads as usize);
            needs.proxy_images.insert(settings.proxy.image);
            if !needs.certificates.contains(&settings.tls.certificate) {
                needs.certificates.push(settings.tls.certificate);
            }
        }
        needs
    }

    /// The CPUs of every role where the matrix leaves them to `sweep`; `None` where it does not, or the machine has too
    /// few.
    #[must_use]
    pub fn place(&self, cores: Option<&Topology>) -> Option<Placed> {
        cores.filter(|_| self.unplaced)?.place(self.cpus)
    }
}
