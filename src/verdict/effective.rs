//! The limit that really binds: the smallest of a cgroup's own and its ancestors'.

use crate::probe::report::{CgroupLimits, Limit, LimitsInForce};

/// CPU bandwidth of one cgroup, thousandths of a CPU: `Some(None)` is no limit, `None` unknown.
#[must_use]
pub fn own_cpu_millis(limits: &CgroupLimits) -> Option<Option<f64>> {
    match limits.cpu_quota_usec? {
        Limit::Max => Some(None),
        Limit::Of(quota) => {
            let period = limits.cpu_period_usec.filter(|&p| p > 0)?;
            Some(Some(quota as f64 * 1000.0 / period as f64))
        }
    }
}

/// CPU bandwidth in effect, thousandths of a CPU: `Some(None)` is no limit, `None` unknown. Ancestors that could not be
/// read are passed over.
#[must_use]
pub fn cpu_millis(limits: &LimitsInForce) -> Option<Option<f64>> {
    let own = own_cpu_millis(&limits.own)?;
    let ancestors = limits
        .ancestors
        .iter()
        .filter_map(|a| own_cpu_millis(a).flatten());
    Some(own.into_iter().chain(ancestors).reduce(f64::min))
}

/// Memory in effect, without swap; `None` unknown. Ancestors that could not be read are passed over.
#[must_use]
pub fn memory(limits: &LimitsInForce) -> Option<Limit> {
    let own = limits.own.memory_bytes?;
    let ancestors = limits.ancestors.iter().filter_map(|a| a.memory_bytes);
    Some(ancestors.fold(own, smaller))
}

/// The smaller of two limits.
#[must_use]
pub fn smaller(a: Limit, b: Limit) -> Limit {
    match (a, b) {
        (Limit::Max, other) | (other, Limit::Max) => other,
        (Limit::Of(a), Limit::Of(b)) => Limit::Of(a.min(b)),
    }
}
