//! When the proxy's own statistics are read, and what becomes of the two readings.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::agent::job::WatchedProxy;
use crate::probe::report::ProxyStats;
use crate::probe::stats::{Scraper, When, difference};
use crate::spec::settings::ProxyKind;

/// Before the window: long enough for a reading at 0.05 CPU to be over when it begins.
const AHEAD: Duration = Duration::from_millis(400);
/// Before the window's end: gauges are of interest under load, and a generator with nothing left to wait for closes its
/// connections at once.
const GAUGES_AHEAD: Duration = Duration::from_millis(100);
/// What the proxy is, and not what it is doing: as true after the load as under it.
const CONSTANT: &str = "server.concurrency";
/// How long `finish` waits for readings that are still under way.
const PATIENCE: Duration = Duration::from_millis(2500);

/// Both readings of one trial.
#[derive(Debug)]
pub(super) struct Statistics {
    source: Option<(ProxyKind, SocketAddr)>,
    start: Option<Scraper>,
    gauges: Option<Scraper>,
    end: Option<Scraper>,
    began: Option<Instant>,
    ended: Option<Instant>,
    proxy_was_alive: bool,
}

impl Statistics {
    pub(super) fn new(watched: Option<&WatchedProxy>) -> Self {
        let source = watched
            .filter(|proxy| proxy.kind != ProxyKind::Custom)
            .and_then(|proxy| Some((proxy.kind, proxy.admin?)));
        Self {
            source,
            start: None,
            gauges: None,
            end: None,
            began: None,
            ended: None,
            proxy_was_alive: true,
        }
    }

    fn scrape(&self, when: When) -> Option<Scraper> {
        let (kind, address) = self.source?;
        Scraper::start(kind, address, when)
    }

    pub(super) fn prepare(&mut self, begins_at: Instant) {
        let now = Instant::now();
        let at = begins_at.checked_sub(AHEAD).unwrap_or(now);
        self.start = self.scrape(When::Start(at));
    }

    pub(super) fn begin(&mut self, now: Instant) {
        self.began = Some(now);
        if self.start.is_none() {
            self.start = self.scrape(When::Start(now));
        }
    }

    pub(super) fn prepare_end(&mut self, ends_at: Instant) {
        let at = ends_at.checked_sub(GAUGES_AHEAD).unwrap_or(ends_at);
        self.gauges = self.scrape(When::Gauges(at));
    }

    pub(super) fn end(&mut self, now: Instant, alive: bool) {
        self.ended = Some(now);
        self.proxy_was_alive = alive;
        if alive {
            self.end = self.scrape(When::End);
        }
    }

    /// `None` when there was no window, or the proxy has no statistics that we know.
    pub(super) fn finish(&mut self) -> Option<ProxyStats> {
        let deadline = Instant::now() + PATIENCE;
        self.source?;
        let (began, ended) = (self.began?, self.ended?);
        let start = self.start.take().map(|scraper| scraper.finish(deadline));
        let end = self.end.take().map(|scraper| scraper.finish(deadline));
        let page = |reading: &Option<crate::probe::stats::Reading>| {
            reading.as_ref().and_then(|reading| reading.page.clone())
        };
        let mut stats = difference(page(&start).as_ref(), page(&end).as_ref());
        if let Some(gauges) = self.gauges.take().map(|scraper| scraper.finish(deadline)) {
            // What was read after the window is no substitute: by then the client is gone.
            stats.gauges.retain(|name, _| name == CONSTANT);
            stats
                .gauges
                .extend(gauges.page.map(|page| page.gauges).unwrap_or_default());
            stats
                .missing
                .extend(labelled("gauges in the window", gauges.missing));
        }
        if let Some(start) = start {
            if start.page.is_some() {
                stats.read_start_us = Some(signed_micros(start.at, began));
            }
            stats
                .missing
                .extend(labelled("before the window", start.missing));
        }
        match end {
            Some(end) => {
                if end.page.is_some() {
                    stats.read_end_us = Some(signed_micros(end.at, ended));
                }
                stats
                    .missing
                    .extend(labelled("after the window", end.missing));
            }
            None if !self.proxy_was_alive => {
                stats
                    .missing
                    .push("after the window: the proxy was gone".to_owned());
            }
            None => {}
        }
        Some(stats)
    }
}

fn labelled(when: &str, missing: Vec<String>) -> impl Iterator<Item = String> {
    missing
        .into_iter()
        .map(move |what| format!("{when}: {what}"))
}

fn signed_micros(at: Instant, origin: Instant) -> i64 {
    let micros = |duration: Duration| i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
    match at.checked_duration_since(origin) {
        Some(after) => micros(after),
        None => -micros(origin.saturating_duration_since(at)),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    /// An nginx status page whose counters grow by 10 with every question.
    fn nginx() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
        let address = listener.local_addr().expect("address");
        let count = AtomicU64::new(0);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.expect("accept");
                let _ = stream.read(&mut [0; 1024]);
                let n = count.fetch_add(10, Ordering::Relaxed);
                let body = format!(
                    "Active connections: 1 \nserver accepts handled requests\n {n} {n} {n} \nReading: 0 Writing: 1 Waiting: 0 \n"
                );
                let _ = write!(stream, "HTTP/1.1 200 OK\r\n\r\n{body}");
            }
        });
        address
    }

    fn watched(kind: ProxyKind, admin: Option<SocketAddr>) -> WatchedProxy {
        WatchedProxy {
            container_id: String::new(),
            kind,
            admin,
        }
    }

    #[test]
    fn two_readings_around_the_window() {
        let mut statistics = Statistics::new(Some(&watched(ProxyKind::Nginx, Some(nginx()))));
        statistics.prepare(Instant::now());
        std::thread::sleep(Duration::from_millis(300));
        statistics.begin(Instant::now());
        statistics.end(Instant::now(), true);
        let stats = statistics.finish().expect("statistics");
        assert_eq!(stats.counters["requests"], 10);
        assert_eq!(stats.gauges["writing"], 1.0);
        assert!(
            stats.read_start_us < Some(0) && stats.read_end_us >= Some(0),
            "{stats:?}"
        );
        assert!(stats.missing.is_empty(), "{stats:?}");
    }

    #[test]
    fn a_dead_proxy_is_not_asked() {
        let mut statistics = Statistics::new(Some(&watched(ProxyKind::Nginx, Some(nginx()))));
        statistics.begin(Instant::now());
        statistics.end(Instant::now(), false);
        let stats = statistics.finish().expect("statistics");
        assert!(stats.counters.is_empty() && stats.gauges.is_empty());
        assert_eq!(stats.missing, ["after the window: the proxy was gone"]);
    }

    #[test]
    fn without_window_or_statistics_there_are_none() {
        let mut no_window = Statistics::new(Some(&watched(ProxyKind::Nginx, Some(nginx()))));
        assert_eq!(no_window.finish(), None);
        for proxy in [
            watched(ProxyKind::Custom, Some(nginx())),
            watched(ProxyKind::Envoy, None),
        ] {
            let mut statistics = Statistics::new(Some(&proxy));
            statistics.begin(Instant::now());
            statistics.end(Instant::now(), true);
            assert_eq!(statistics.finish(), None);
        }
    }
}
