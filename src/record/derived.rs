//! What follows from one trial's record alone: differences over the window, percentiles with censored requests, queue
//! latencies, the page cache as found. Everything is `None` where a part of it is unknown.

use crate::hdr::{LatencyHistogram, MAX_US};
use crate::load::report::{ErrorClass, LoadReport};
use crate::probe::report::{Counters, MemoryGauges, ProbeReport, Queues};
use crate::stats::{Growth, Trend, batch_means, trend};

use super::trial::TrialRecord;

/// File pages charged to the proxy at its first answer from which the page cache counts as cold. A proxy with a warm
/// cache is charged none (0 seen with Envoy, on both cgroup versions), one with a cold cache for every page it touched
/// (60 MB seen).
pub const COLD_FILE_BYTES: u64 = 2 << 20;

/// Groups into which the generator's queue is averaged before its growth is judged.
const BACKLOG_BATCHES: usize = 10;

/// Growth of the generator's queue, as a share of the offered rate, over which it counts as growing.
pub const BACKLOG_GROWTH_SHARE: f64 = 0.01;

/// The generator's report, if the window was reached.
#[must_use]
pub fn load(trial: &TrialRecord) -> Option<&LoadReport> {
    trial.agent.as_ref()?.load.as_ref()
}

/// The probes' report.
#[must_use]
pub fn probe(trial: &TrialRecord) -> Option<&ProbeReport> {
    Some(&trial.agent.as_ref()?.probe)
}

/// Difference of a counter over the window; `None` when it is unknown at one end, or went backwards.
#[must_use]
pub fn over_window(trial: &TrialRecord, counter: impl Fn(&Counters) -> Option<u64>) -> Option<u64> {
    let probe = probe(trial)?;
    let start = counter(probe.counters_start.as_ref()?)?;
    counter(probe.counters_end.as_ref()?)?.checked_sub(start)
}

/// A counter at its last reading, since the proxy started. The only evidence of a proxy that died or never answered.
#[must_use]
pub fn last_seen(trial: &TrialRecord, counter: impl Fn(&Counters) -> Option<u64>) -> Option<u64> {
    let probe = probe(trial)?;
    [
        &probe.counters_last,
        &probe.counters_end,
        &probe.counters_start,
    ]
    .into_iter()
    .flatten()
    .filter_map(counter)
    .max()
}

/// Share of the periods in which the proxy ran that were throttled, 0..=1; `None` without periods (no CPU limit).
#[must_use]
pub fn throttled_share(trial: &TrialRecord) -> Option<f64> {
    let periods = over_window(trial, |c| c.nr_periods)?;
    let throttled = over_window(trial, |c| c.nr_throttled)?;
    (periods > 0).then(|| throttled as f64 / periods as f64)
}

/// A percentile, when requests of unknown length may reach it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantile {
    /// Known, microseconds.
    Exact(u64),
    /// At least this: requests still open at the end, or beyond the histogram, reach it.
    AtLeast(u64),
}

/// The quantile over successes and censored requests together, a censored one counting with its age.
///
/// It is exact while every censored request is older than it: whatever their true length, they stay above.
#[must_use]
pub fn quantile(
    successes: &LatencyHistogram,
    censored: &LatencyHistogram,
    q: f64,
) -> Option<Quantile> {
    if successes.count() + censored.count() == 0 {
        return None;
    }
    let beyond_scale = Quantile::AtLeast(MAX_US);
    if censored.count() == 0 {
        return Some(
            successes
                .quantile_us(q)
                .map_or(beyond_scale, Quantile::Exact),
        );
    }
    let mut all = successes.clone();
    all.merge(censored);
    let Some(value) = all.quantile_us(q) else {
        return Some(beyond_scale);
    };
    let youngest = censored.quantile_us(0.0).unwrap_or(MAX_US);
    Some(if youngest > value {
        Quantile::Exact(value)
    } else {
        Quantile::AtLeast(value)
    })
}

/// Values of a queue gauge in the window; failed samples are absent.
#[must_use]
pub fn queue_values(trial: &TrialRecord, gauge: impl Fn(&Queues) -> Option<u64>) -> Vec<u64> {
    let samples = probe(trial).map_or(&[][..], |p| &p.samples);
    samples
        .iter()
        .filter_map(|s| gauge(s.queues.as_ref()?))
        .collect()
}

/// Values of a memory gauge in the window; failed samples are absent.
#[must_use]
pub fn memory_values(
    trial: &TrialRecord,
    gauge: impl Fn(&MemoryGauges) -> Option<u64>,
) -> Vec<u64> {
    let samples = probe(trial).map_or(&[][..], |p| &p.samples);
    samples.iter().filter_map(|s| gauge(&s.memory)).collect()
}

/// Largest sample of descriptors open in one of the proxy's processes.
#[must_use]
pub fn open_fds(trial: &TrialRecord) -> Option<u64> {
    let samples = &probe(trial)?.samples;
    samples
        .iter()
        .filter_map(|s| s.open_fds_max.or(s.open_fds))
        .max()
}

/// Mean, `None` of nothing.
#[must_use]
pub fn mean(values: &[u64]) -> Option<f64> {
    (!values.is_empty())
        .then(|| values.iter().map(|&v| v as f64).sum::<f64>() / values.len() as f64)
}

/// Depth of the accept queue, summed over the listening sockets.
#[must_use]
pub fn accept_depth(queues: &Queues) -> Option<u64> {
    (!queues.accept.is_empty()).then(|| queues.accept.iter().map(|&d| u64::from(d)).sum())
}

/// Mean time in a queue by Little's law: mean depth ÷ rate through it, in microseconds. `rate` is in 1/s.
#[must_use]
pub fn littles_wait_us(mean_depth: Option<f64>, rate: Option<f64>) -> Option<f64> {
    let (depth, rate) = (mean_depth?, rate?);
    (rate > 0.0).then(|| depth / rate * 1e6)
}

/// Answered requests (successes and HTTP errors).
#[must_use]
pub fn answered(load: &LoadReport) -> u64 {
    let errors = |class| load.errors.get(&class).copied().unwrap_or(0);
    load.requests + errors(ErrorClass::Http4xx) + errors(ErrorClass::Http5xx)
}

/// Requests completed *within* the window, whenever they were to be sent. [`answered`] counts those that were to be sent
/// within it, also if their answer came in the drain.
#[must_use]
pub fn completed_in_window(load: &LoadReport) -> f64 {
    load.achieved_rate_rps * load.window_us as f64 / 1e6
}

/// Requests that left the generator's queue within the window, per second: those scheduled, less the queue's growth.
#[must_use]
pub fn sent_rate(load: &LoadReport) -> Option<f64> {
    let (first, last) = (load.backlog.first()?, load.backlog.last()?);
    let left = (load.scheduled + first.unsent).checked_sub(last.unsent)?;
    per_second(load, left)
}

/// Open loop: requests that the schedule put into the window, per second. Random arrivals scatter about the rate asked for.
#[must_use]
pub fn scheduled_rate(load: &LoadReport) -> Option<f64> {
    load.offered_rate_rps?;
    per_second(load, load.scheduled)
}

/// Events per second over the window.
#[must_use]
pub fn per_second(load: &LoadReport, events: u64) -> Option<f64> {
    (load.window_us > 0).then(|| events as f64 / (load.window_us as f64 / 1e6))
}

/// Growth of the generator's queue of unsent requests, requests/s, from batch means over the window.
#[must_use]
pub fn backlog_trend(load: &LoadReport) -> Option<Trend> {
    let points: Vec<(f64, f64)> = load
        .backlog
        .iter()
        .map(|b| (b.t_us as f64 / 1e6, b.unsent as f64))
        .collect();
    trend(&batch_means(&points, BACKLOG_BATCHES))
}

/// Whether the generator's queue grew by more than [`BACKLOG_GROWTH_SHARE`] of the offered rate.
#[must_use]
pub fn backlog_growth(load: &LoadReport) -> Option<Growth> {
    let threshold = BACKLOG_GROWTH_SHARE * load.offered_rate_rps?;
    Some(backlog_trend(load)?.growth(threshold))
}

/// The page cache of the proxy's files, as found at its first answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageCacheFound {
    /// Charged elsewhere.
    Warm,
    /// Charged to the proxy.
    Cold,
    /// The storage driver gives each container its own; always charged to the proxy.
    Unshared,
}

impl PageCacheFound {
    /// As in the column `page_cache`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Warm => "warm",
            Self::Cold => "cold",
            Self::Unshared => "unshared",
        }
    }
}

/// How the page cache was found; `None` when the proxy never answered or its memory could not be read.
#[must_use]
pub fn page_cache(trial: &TrialRecord) -> Option<PageCacheFound> {
    if trial.page_cache_shared == Some(false) {
        return Some(PageCacheFound::Unshared);
    }
    // Before the first answer the last look says what was charged so far, not what the cache was.
    trial.agent.as_ref()?.ready_after_us?;
    let charged = probe(trial)?.memory_at_ready?.file_bytes?;
    Some(if charged < COLD_FILE_BYTES {
        PageCacheFound::Warm
    } else {
        PageCacheFound::Cold
    })
}

/// All error classes with their names in columns.
pub const ERROR_CLASSES: [(ErrorClass, &str); 13] = [
    (ErrorClass::ConnectRefused, "connect_refused"),
    (ErrorClass::ConnectTimeout, "connect_timeout"),
    (ErrorClass::Connect, "connect"),
    (ErrorClass::PortExhausted, "port_exhausted"),
    (ErrorClass::DescriptorsExhausted, "descriptors_exhausted"),
    (ErrorClass::Tls, "tls"),
    (ErrorClass::Reset, "reset"),
    (ErrorClass::Closed, "closed"),
    (ErrorClass::Protocol, "protocol"),
    (ErrorClass::Timeout, "timeout"),
    (ErrorClass::Http4xx, "http4xx"),
    (ErrorClass::Http5xx, "http5xx"),
    (ErrorClass::Aborted, "aborted"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::report::BacklogSample;
    use crate::record::sample::{self, Shape, histogram};

    #[test]
    fn a_censored_request_turns_the_percentiles_it_may_reach_into_bounds() {
        let successes = histogram(&[(1_000, 980), (2_000, 10)]);
        let censored = histogram(&[(5_000, 10)]);
        assert_eq!(
            quantile(&successes, &censored, 0.5),
            Some(Quantile::Exact(1_000))
        );
        assert_eq!(
            quantile(&successes, &censored, 0.99),
            Some(Quantile::Exact(2_000))
        );
        let Some(Quantile::AtLeast(bound)) = quantile(&successes, &censored, 0.999) else {
            panic!("p99.9 is reached by the censored requests");
        };
        assert!((4_990..=5_010).contains(&bound));
        // Young ones may still become slow: the median is no more than a bound.
        let young = histogram(&[(10, 10)]);
        assert_eq!(
            quantile(&successes, &young, 0.5),
            Some(Quantile::AtLeast(1_000))
        );
    }

    #[test]
    fn a_quantile_of_nothing_is_unknown_and_one_beyond_the_scale_a_bound() {
        let none = LatencyHistogram::default();
        assert_eq!(quantile(&none, &none, 0.5), None);
        let beyond = histogram(&[(10, 1), (2 * MAX_US, 1)]);
        assert_eq!(quantile(&beyond, &none, 0.5), Some(Quantile::Exact(10)));
        assert_eq!(
            quantile(&beyond, &none, 1.0),
            Some(Quantile::AtLeast(MAX_US))
        );
    }

    #[test]
    fn queue_latency_follows_littles_law() {
        assert_eq!(littles_wait_us(Some(2.0), Some(1000.0)), Some(2000.0));
        assert_eq!(littles_wait_us(Some(2.0), Some(0.0)), None);
        assert_eq!(littles_wait_us(None, Some(1000.0)), None);
    }

    #[test]
    fn the_backlog_grows_by_what_is_offered_over_what_is_served() {
        let mut trial = sample::valid(Shape::limited(250, 64), 1);
        let load = trial
            .agent
            .as_mut()
            .and_then(|a| a.load.as_mut())
            .expect("load");
        assert_eq!(backlog_growth(load), Some(Growth::Stable));
        load.backlog = (0..200)
            .map(|i| BacklogSample {
                t_us: i * 50_000,
                unsent: 5 * i / 2,
                in_flight: 64,
            })
            .collect();
        let slope = backlog_trend(load).expect("trend").slope;
        assert!((slope - 50.0).abs() < 1.0, "{slope}");
        assert_eq!(backlog_growth(load), Some(Growth::Growing));
    }

    #[test]
    fn the_page_cache_is_what_was_found() {
        let mut trial = sample::valid(Shape::limited(1000, 64), 1);
        assert_eq!(page_cache(&trial), Some(PageCacheFound::Warm));
        let probe = &mut trial.agent.as_mut().expect("agent").probe;
        probe.memory_at_ready.as_mut().expect("memory").file_bytes = Some(51_000_000);
        assert_eq!(page_cache(&trial), Some(PageCacheFound::Cold));
        trial.page_cache_shared = Some(false);
        assert_eq!(page_cache(&trial), Some(PageCacheFound::Unshared));
        let hung = sample::hung(Shape::limited(1000, 8), 1);
        assert_eq!(page_cache(&hung), None, "it never answered");
    }

    #[test]
    fn a_counter_that_went_backwards_is_unknown() {
        let mut trial = sample::valid(Shape::limited(250, 64), 1);
        assert_eq!(throttled_share(&trial), Some(0.98));
        let probe = &mut trial.agent.as_mut().expect("agent").probe;
        probe.counters_end.as_mut().expect("end").nr_throttled = Some(0);
        assert_eq!(throttled_share(&trial), None);
    }
}
