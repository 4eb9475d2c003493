//! From the threads' measurements to one report.

use std::collections::BTreeMap;

use super::clock::{SEC, US};
use super::judge::{self, Circumstances};
use super::meter::{BACKLOG_INTERVAL, Meter, Window};
use super::report::{BacklogSample, HandshakeReport, LoadReport};

/// What the report says beside the measurements.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame {
    pub(crate) window: Window,
    pub(crate) offered_rate_rps: Option<f64>,
    pub(crate) users: Option<u32>,
    /// CPUs that the generator's threads could use.
    pub(crate) cpus: f64,
    pub(crate) max_pacing_lag_us: u64,
}

/// Merges the threads' measurements and judges them.
pub(crate) fn summarize(meters: &[Meter], frame: &Frame) -> LoadReport {
    let sum = |field: fn(&Meter) -> u64| meters.iter().map(field).sum::<u64>();
    let window_ns = frame.window.length();
    let seconds = window_ns as f64 / SEC as f64;
    let per_second = |count: f64| if seconds > 0.0 { count / seconds } else { 0.0 };
    let in_flight: u128 = meters.iter().map(|meter| meter.in_flight_time).sum();
    let outstanding: u128 = meters.iter().map(|meter| meter.outstanding_time).sum();
    let mut report = LoadReport {
        window_us: window_ns / US,
        offered_rate_rps: frame.offered_rate_rps,
        achieved_rate_rps: per_second(sum(|meter| meter.answered_in_window) as f64),
        scheduled: sum(|meter| meter.scheduled),
        sent: sum(|meter| meter.sent),
        requests: sum(|meter| meter.successes),
        response_time: merged(meters, |meter| &meter.response_time),
        service_time: merged(meters, |meter| &meter.service_time),
        send_lag: merged(meters, |meter| &meter.send_lag),
        pacing_lag: merged(meters, |meter| &meter.pacing_lag),
        censored: merged(meters, |meter| &meter.censored),
        errors: BTreeMap::new(),
        connection_errors: BTreeMap::new(),
        connections_opened: sum(|meter| meter.connections_opened),
        status_codes: BTreeMap::new(),
        handshake: HandshakeReport::default(),
        backlog: backlog(meters, frame.window),
        in_flight_mean: (window_ns > 0).then(|| in_flight as f64 / window_ns as f64),
        littles_law_users: (frame.users.is_some() && window_ns > 0)
            .then(|| outstanding as f64 / window_ns as f64),
        bytes_received: sum(|meter| meter.bytes_received),
        bottlenecks: Vec::new(),
        generator_cpu_usec: meters
            .iter()
            .map(|meter| meter.cpu)
            .sum::<Option<u64>>()
            .map(|cpu| cpu / US),
        generator_cpu_wait_usec: meters
            .iter()
            .map(|meter| meter.cpu_wait)
            .sum::<Option<u64>>()
            .map(|wait| wait / US),
        negotiated: BTreeMap::new(),
    };
    for meter in meters {
        add(&mut report.errors, &meter.errors);
        add(&mut report.connection_errors, &meter.connection_errors);
        for (status, count) in meter.status_codes() {
            *report.status_codes.entry(status).or_default() += count;
        }
        for (negotiated, count) in &meter.negotiated {
            *report.negotiated.entry(negotiated.to_string()).or_default() += count;
        }
        merge_handshake(&mut report.handshake, &meter.handshake);
    }
    let ended = report.requests + report.errors.values().sum::<u64>();
    let circumstances = Circumstances {
        max_pacing_lag_us: frame.max_pacing_lag_us,
        own_misses: sum(|meter| meter.own_misses),
        cpus: frame.cpus,
        threads: meters.len(),
        users: frame.users,
        mean_outstanding_us: (ended > 0).then(|| outstanding as f64 / ended as f64 / US as f64),
    };
    report.bottlenecks = judge::bottlenecks(&report, &circumstances);
    report
}

fn merged(
    meters: &[Meter],
    field: fn(&Meter) -> &crate::hdr::LatencyHistogram,
) -> crate::hdr::LatencyHistogram {
    let mut sum = crate::hdr::LatencyHistogram::default();
    for meter in meters {
        sum.merge(field(meter));
    }
    sum
}

fn add<K: Ord + Copy>(sum: &mut BTreeMap<K, u64>, part: &BTreeMap<K, u64>) {
    for (key, count) in part {
        *sum.entry(*key).or_default() += count;
    }
}

fn merge_handshake(sum: &mut HandshakeReport, part: &HandshakeReport) {
    sum.scheduled += part.scheduled;
    sum.completed += part.completed;
    sum.full += part.full;
    sum.resumed += part.resumed;
    sum.tcp.merge(&part.tcp);
    sum.server_hello.merge(&part.server_hello);
    sum.finished.merge(&part.finished);
    sum.settings.merge(&part.settings);
    sum.first_byte.merge(&part.first_byte);
    sum.total.merge(&part.total);
    sum.start_lag.merge(&part.start_lag);
    sum.censored.merge(&part.censored);
    add(&mut sum.errors, &part.errors);
    add(&mut sum.syn_retries, &part.syn_retries);
}

/// Depths of all threads, slot by slot, up to the window's end.
fn backlog(meters: &[Meter], window: Window) -> Vec<BacklogSample> {
    let slots = meters.iter().map(|meter| meter.backlog.len()).max();
    let within = (window.length() / BACKLOG_INTERVAL + 1) as usize;
    (0..slots.unwrap_or(0).min(within))
        .map(|slot| {
            let depths = meters.iter().filter_map(|meter| {
                // A thread that ended early keeps its last depth.
                meter.backlog.get(slot).or(meter.backlog.last())
            });
            let (unsent, in_flight) =
                depths.fold((0, 0), |sum, depth| (sum.0 + depth.0, sum.1 + depth.1));
            BacklogSample {
                t_us: slot as u64 * BACKLOG_INTERVAL / US,
                unsent,
                in_flight,
            }
        })
        .collect()
}
