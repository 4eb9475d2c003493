//! Was the generator the bottleneck? Pure: bounds against what was measured.

use super::report::{Bottleneck, BottleneckKind, ErrorClass, LoadReport};
use crate::units::counted;

/// Share of the offered requests that may be missed by the generator's own fault. A time slice of somebody else at the
/// window's end is a few milliseconds of some seconds; a generator that cannot keep up misses far more.
pub const OWN_MISS_SHARE: f64 = 0.01;
/// Share of its CPU time beyond which queueing in the generator itself is likely.
pub const CPU_SHARE: f64 = 0.9;
/// An agent whose threads were runnable without a CPU in this share of the time cannot tell whether the proxy would have
/// answered: lateness is measured only on what was sent, and a starved one sends nothing.
pub const CPU_WAIT_SHARE: f64 = 0.5;
/// Little's law may be off by this share.
pub const LITTLES_LAW_SHARE: f64 = 0.05;

/// What the judgement needs beside the report.
#[derive(Debug, Clone, Copy)]
pub struct Circumstances {
    /// `pacing_lag` p99 may be this long, microseconds. The agent shares cores with what it measures on small machines,
    /// where a time slice of the scheduler is a few milliseconds; the default of a millisecond is what the peers call
    /// accurate.
    pub max_pacing_lag_us: u64,
    /// Requests that were sent after the window though a connection was free before its end.
    pub own_misses: u64,
    /// CPUs that the generator could use.
    pub cpus: f64,
    /// Threads that generated the load.
    pub threads: usize,
    /// Users of a closed loop.
    pub users: Option<u32>,
    /// Mean age of ended requests, microseconds; requests at the edges of the window blur Little's law by this much.
    pub mean_outstanding_us: Option<f64>,
}

/// Every bound that was passed.
#[must_use]
pub fn bottlenecks(report: &LoadReport, circumstances: &Circumstances) -> Vec<Bottleneck> {
    [
        rate(report, circumstances),
        pacing(report, circumstances),
        cpu(report, circumstances),
        starved(report, circumstances),
        exhausted(
            report,
            ErrorClass::PortExhausted,
            BottleneckKind::PortsExhausted,
            "local ports",
        ),
        exhausted(
            report,
            ErrorClass::DescriptorsExhausted,
            BottleneckKind::DescriptorsExhausted,
            "file descriptors",
        ),
        littles_law(report, circumstances),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn rate(report: &LoadReport, circumstances: &Circumstances) -> Option<Bottleneck> {
    report.offered_rate_rps?;
    let misses = circumstances.own_misses;
    // One request may fall on the edge of the window.
    let bound = (report.scheduled as f64 * OWN_MISS_SHARE).max(1.0);
    (misses as f64 > bound).then(|| Bottleneck {
        kind: BottleneckKind::RateNotReached,
        detail: format!(
            "{misses} of {} requests were sent after the window though a connection was free, over {bound:.0}",
            report.scheduled
        ),
    })
}

fn pacing(report: &LoadReport, circumstances: &Circumstances) -> Option<Bottleneck> {
    if report.pacing_lag.count() == 0 {
        return None;
    }
    let p99 = report.pacing_lag.quantile_us(0.99);
    let bound = circumstances.max_pacing_lag_us;
    let passed = p99.is_none_or(|us| us > bound);
    passed.then(|| Bottleneck {
        kind: BottleneckKind::PacingLag,
        detail: match p99 {
            Some(us) => format!("pacing lag p99 is {us} us, over {bound} us"),
            None => "pacing lag p99 is beyond the scale of 100 s".to_owned(),
        },
    })
}

fn cpu(report: &LoadReport, circumstances: &Circumstances) -> Option<Bottleneck> {
    let used = report.generator_cpu_usec? as f64;
    let available = report.window_us as f64 * circumstances.cpus;
    (available > 0.0 && used >= CPU_SHARE * available).then(|| Bottleneck {
        kind: BottleneckKind::CpuSaturated,
        detail: format!(
            "the generator used {:.0} % of its {:.2} CPUs, over {:.0} %",
            100.0 * used / available,
            circumstances.cpus,
            100.0 * CPU_SHARE
        ),
    })
}

fn starved(report: &LoadReport, circumstances: &Circumstances) -> Option<Bottleneck> {
    let waited = report.generator_cpu_wait_usec? as f64;
    let whole = report.window_us as f64 * circumstances.threads as f64;
    (whole > 0.0 && waited >= CPU_WAIT_SHARE * whole).then(|| Bottleneck {
        kind: BottleneckKind::CpuStarved,
        detail: format!(
            "the generator waited for a CPU in {:.0} % of the window, over {:.0} %",
            100.0 * waited / whole,
            100.0 * CPU_WAIT_SHARE
        ),
    })
}

fn exhausted(
    report: &LoadReport,
    class: ErrorClass,
    kind: BottleneckKind,
    what: &str,
) -> Option<Bottleneck> {
    let count = [
        &report.errors,
        &report.connection_errors,
        &report.handshake.errors,
    ]
    .iter()
    .filter_map(|errors| errors.get(&class))
    .sum::<u64>();
    (count > 0).then(|| Bottleneck {
        kind,
        detail: format!(
            "{} could not be opened for want of {what}",
            counted(count, "connection")
        ),
    })
}

fn littles_law(report: &LoadReport, circumstances: &Circumstances) -> Option<Bottleneck> {
    let users = f64::from(circumstances.users?);
    let found = report.littles_law_users?;
    // Each user may have one request across each edge of the window.
    let blur = circumstances.mean_outstanding_us? / report.window_us.max(1) as f64;
    let bound = LITTLES_LAW_SHARE + blur;
    ((found - users).abs() > bound * users).then(|| Bottleneck {
        kind: BottleneckKind::LittlesLaw,
        detail: format!(
            "throughput x mean latency gives {found:.2} users of {users}, off by over {:.1} %",
            100.0 * bound
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::derived;
    use crate::record::sample::{Shape, valid};

    fn report() -> LoadReport {
        let trial = valid(Shape::limited(1000, 256), 1);
        derived::load(&trial).expect("a load").clone()
    }

    fn found(report: &LoadReport, own_misses: u64) -> Vec<(BottleneckKind, String)> {
        let circumstances = Circumstances {
            max_pacing_lag_us: 1_000_000,
            own_misses,
            cpus: 1.0,
            threads: 2,
            users: None,
            mean_outstanding_us: None,
        };
        bottlenecks(report, &circumstances)
            .into_iter()
            .map(|found| (found.kind, found.detail))
            .collect()
    }

    #[test]
    fn a_sound_generator_has_no_bottleneck() {
        assert_eq!(found(&report(), 0), []);
    }

    #[test]
    fn waiting_for_a_cpu_in_half_of_the_window_is_starvation() {
        let mut report = report();
        // Two threads: the whole is twice the window.
        report.generator_cpu_wait_usec = Some(report.window_us - 1);
        assert_eq!(found(&report, 0), []);
        report.generator_cpu_wait_usec = Some(report.window_us * 3 / 2);
        let words = "the generator waited for a CPU in 75 % of the window, over 50 %";
        assert_eq!(
            found(&report, 0),
            [(BottleneckKind::CpuStarved, words.to_owned())]
        );
        report.generator_cpu_wait_usec = None;
        assert_eq!(found(&report, 0), [], "unknown is not zero, nor too much");
    }

    #[test]
    fn a_busy_generator_and_missed_sends_are_bottlenecks() {
        let mut report = report();
        report.generator_cpu_usec = Some(report.window_us * 95 / 100);
        let missed = report.scheduled / 50;
        let kinds: Vec<_> = found(&report, missed).into_iter().map(|f| f.0).collect();
        assert_eq!(
            kinds,
            [BottleneckKind::RateNotReached, BottleneckKind::CpuSaturated]
        );
    }
}
