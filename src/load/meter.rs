//! What one generator thread saw. Only requests whose intended send time lies in the window count.

use std::collections::BTreeMap;

use super::clock::{MS, US};
use super::phases::Timeline;
use super::report::{ErrorClass, HandshakeReport};
use super::tls::Negotiated;
use crate::hdr::LatencyHistogram;

/// Time between two samples of the backlog.
pub(crate) const BACKLOG_INTERVAL: u64 = 50 * MS;

/// The measured window, nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window {
    pub(crate) start: u64,
    pub(crate) end: u64,
}

impl Window {
    pub(crate) fn contains(&self, moment: u64) -> bool {
        (self.start..self.end).contains(&moment)
    }

    pub(crate) fn length(&self) -> u64 {
        self.end - self.start
    }

    /// Length of the part of `from..to` that lies inside.
    fn overlap(&self, from: u64, to: u64) -> u64 {
        to.min(self.end).saturating_sub(from.max(self.start))
    }
}

/// One thread's measurements.
#[derive(Debug, Clone)]
pub(crate) struct Meter {
    pub(crate) window: Window,
    pub(crate) scheduled: u64,
    pub(crate) sent: u64,
    /// Sent after the window's end though a connection was free before it.
    pub(crate) own_misses: u64,
    pub(crate) successes: u64,
    /// Answers (any status) that came in the window.
    pub(crate) answered_in_window: u64,
    pub(crate) response_time: LatencyHistogram,
    pub(crate) service_time: LatencyHistogram,
    pub(crate) send_lag: LatencyHistogram,
    pub(crate) pacing_lag: LatencyHistogram,
    pub(crate) censored: LatencyHistogram,
    pub(crate) errors: BTreeMap<ErrorClass, u64>,
    pub(crate) connection_errors: BTreeMap<ErrorClass, u64>,
    pub(crate) connections_opened: u64,
    status_codes: Box<[u64; 1000]>,
    pub(crate) handshake: HandshakeReport,
    /// Unsent and in flight, by slot of [`BACKLOG_INTERVAL`].
    pub(crate) backlog: Vec<(u64, u64)>,
    /// Time integral of requests in flight over the window, nanoseconds.
    pub(crate) in_flight_time: u128,
    /// Sum of intended → end over all requests of the window, nanoseconds.
    pub(crate) outstanding_time: u128,
    pub(crate) bytes_received: u64,
    pub(crate) cpu: Option<u64>,
    /// Runnable without a CPU, nanoseconds.
    pub(crate) cpu_wait: Option<u64>,
    pub(crate) negotiated: Vec<(Negotiated, u64)>,
}

impl Meter {
    pub(crate) fn new(window: Window) -> Self {
        Self {
            window,
            scheduled: 0,
            sent: 0,
            own_misses: 0,
            successes: 0,
            answered_in_window: 0,
            response_time: LatencyHistogram::default(),
            service_time: LatencyHistogram::default(),
            send_lag: LatencyHistogram::default(),
            pacing_lag: LatencyHistogram::default(),
            censored: LatencyHistogram::default(),
            errors: BTreeMap::new(),
            connection_errors: BTreeMap::new(),
            connections_opened: 0,
            status_codes: Box::new([0; 1000]),
            handshake: HandshakeReport::default(),
            backlog: Vec::new(),
            in_flight_time: 0,
            outstanding_time: 0,
            bytes_received: 0,
            cpu: None,
            cpu_wait: None,
            negotiated: Vec::new(),
        }
    }

    pub(crate) fn scheduled(&mut self, intended: u64) {
        if self.window.contains(intended) {
            self.scheduled += 1;
        }
    }

    /// A request goes out now; `free_since` is when its connection became free.
    pub(crate) fn sent(&mut self, intended: u64, free_since: u64, now: u64) {
        if !self.window.contains(intended) {
            return;
        }
        self.sent += 1;
        self.send_lag.record_us(now.saturating_sub(intended) / US);
        let could = intended.max(free_since);
        self.pacing_lag.record_us(now.saturating_sub(could) / US);
        if now >= self.window.end && could < self.window.end {
            self.own_misses += 1;
        }
    }

    /// A response was read to its end.
    pub(crate) fn answered(&mut self, intended: u64, sent: u64, now: u64, status: u16) {
        if self.window.contains(now) {
            self.answered_in_window += 1;
        }
        self.in_flight_time += u128::from(self.window.overlap(sent, now));
        if !self.window.contains(intended) {
            return;
        }
        self.outstanding_time += u128::from(now.saturating_sub(intended));
        if let Some(count) = self.status_codes.get_mut(usize::from(status)) {
            *count += 1;
        }
        match status {
            400..=499 => self.count_error(ErrorClass::Http4xx),
            500..=599 => self.count_error(ErrorClass::Http5xx),
            200..=399 => {
                self.successes += 1;
                self.response_time
                    .record_us(now.saturating_sub(intended) / US);
                self.service_time.record_us(now.saturating_sub(sent) / US);
            }
            _ => self.count_error(ErrorClass::Protocol),
        }
    }

    /// A request failed; `sent` if it had been sent.
    pub(crate) fn failed(&mut self, intended: u64, sent: Option<u64>, now: u64, class: ErrorClass) {
        if let Some(sent) = sent {
            self.in_flight_time += u128::from(self.window.overlap(sent, now));
        }
        if self.window.contains(intended) {
            self.outstanding_time += u128::from(now.saturating_sub(intended));
            self.count_error(class);
        }
    }

    /// A request was still open or unsent at the end.
    pub(crate) fn aborted(&mut self, intended: u64, sent: Option<u64>, now: u64) {
        self.failed(intended, sent, now, ErrorClass::Aborted);
        if self.window.contains(intended) {
            self.censored.record_us(now.saturating_sub(intended) / US);
        }
    }

    fn count_error(&mut self, class: ErrorClass) {
        *self.errors.entry(class).or_default() += 1;
    }

    /// A persistent connection failed, or could not be opened.
    pub(crate) fn connection_failed(&mut self, class: ErrorClass, now: u64) {
        if self.window.contains(now) {
            *self.connection_errors.entry(class).or_default() += 1;
        }
    }

    /// A persistent connection is open.
    pub(crate) fn connection_opened(&mut self, now: u64) {
        if self.window.contains(now) {
            self.connections_opened += 1;
        }
    }

    pub(crate) fn received(&mut self, bytes: usize, now: u64) {
        if self.window.contains(now) {
            self.bytes_received += bytes as u64;
        }
    }

    pub(crate) fn negotiated(&mut self, negotiated: Negotiated) {
        match self.negotiated.iter_mut().find(|(n, _)| *n == negotiated) {
            Some((_, count)) => *count += 1,
            None => self.negotiated.push((negotiated, 1)),
        }
    }

    pub(crate) fn handshake_scheduled(&mut self, intended: u64) {
        if self.window.contains(intended) {
            self.handshake.scheduled += 1;
        }
    }

    pub(crate) fn handshake_started(&mut self, intended: u64, now: u64) {
        if self.window.contains(intended) {
            self.handshake
                .start_lag
                .record_us(now.saturating_sub(intended) / US);
        }
    }

    pub(crate) fn handshake_connected(&mut self, intended: u64, retransmissions: Option<u32>) {
        if let (true, Some(count)) = (self.window.contains(intended), retransmissions) {
            *self.handshake.syn_retries.entry(count).or_default() += 1;
        }
    }

    pub(crate) fn handshake_finished(&mut self, intended: u64, negotiated: Negotiated) {
        if self.window.contains(intended) {
            if negotiated.resumed {
                self.handshake.resumed += 1;
            } else {
                self.handshake.full += 1;
            }
        }
    }

    /// The first byte of the response of a connection that was opened to be timed.
    pub(crate) fn handshake_completed(&mut self, intended: u64, timeline: &Timeline) {
        let (true, Some(phases)) = (self.window.contains(intended), timeline.phases()) else {
            return;
        };
        let report = &mut self.handshake;
        report.completed += 1;
        report.tcp.record_us(phases.tcp);
        for (histogram, length) in [
            (&mut report.server_hello, phases.server_hello),
            (&mut report.finished, phases.finished),
            (&mut report.settings, phases.settings),
        ] {
            if let Some(length) = length {
                histogram.record_us(length);
            }
        }
        report.first_byte.record_us(phases.first_byte);
        report.total.record_us(phases.total);
    }

    pub(crate) fn handshake_failed(&mut self, intended: u64, class: ErrorClass) {
        if self.window.contains(intended) {
            *self.handshake.errors.entry(class).or_default() += 1;
        }
    }

    pub(crate) fn handshake_aborted(&mut self, intended: u64, now: u64) {
        self.handshake_failed(intended, ErrorClass::Aborted);
        if self.window.contains(intended) {
            self.handshake
                .censored
                .record_us(now.saturating_sub(intended) / US);
        }
    }

    /// Notes the depth of the queue. Slots that a late thread skipped get the same value.
    pub(crate) fn sample(&mut self, now: u64, unsent: u64, in_flight: u64) {
        if now < self.window.start {
            return;
        }
        let last = (now.min(self.window.end) - self.window.start) / BACKLOG_INTERVAL;
        while (self.backlog.len() as u64) <= last {
            self.backlog.push((unsent, in_flight));
        }
    }

    /// Status codes that were seen, with their counts.
    pub(crate) fn status_codes(&self) -> impl Iterator<Item = (u16, u64)> {
        self.status_codes
            .iter()
            .enumerate()
            .filter(|(_, count)| **count > 0)
            .map(|(status, count)| (status as u16, *count))
    }
}
