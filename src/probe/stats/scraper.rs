//! Reading the statistics page on a thread of its own.

use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use super::{Page, Reading};
use crate::probe::http::get;
use crate::probe::{envoy, haproxy, nginx};
use crate::spec::settings::ProxyKind;

/// For one page. A proxy at 0.05 CPU needs some 100 ms; a hung one never answers.
const PAGE_LIMIT: Duration = Duration::from_millis(1500);
/// Envoy's workers have merged their histograms this long after a flush.
const MERGE: Duration = Duration::from_millis(60);
/// Longest wait for Envoy's histograms after the window: a flush interval of one second, and some.
const FLUSH_LIMIT: Duration = Duration::from_millis(1300);

/// Which of the two readings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    /// Before the window, not before this moment.
    Start(Instant),
    /// Gauges alone, not before this moment: while the load is still on.
    Gauges(Instant),
    /// After the window.
    End,
}

/// A reading under way.
#[derive(Debug)]
pub(crate) struct Scraper {
    answer: Receiver<Reading>,
}

impl Scraper {
    /// Starts a reading; `None` for a proxy without statistics that we know.
    pub(crate) fn start(kind: ProxyKind, address: SocketAddr, when: When) -> Option<Self> {
        if kind == ProxyKind::Custom {
            return None;
        }
        let (sender, answer) = channel();
        let reader = move || {
            if let When::Start(at) | When::Gauges(at) = when {
                std::thread::sleep(at.saturating_duration_since(Instant::now()));
            }
            let mut missing = Vec::new();
            let page = read(kind, address, when, &mut missing);
            let at = Instant::now();
            // Nobody waits for it any more: then it is not needed.
            let _ = sender.send(Reading { page, at, missing });
        };
        let spawned = std::thread::Builder::new()
            .name("probe-stats".to_owned())
            .spawn(reader);
        // A thread that could not be started drops the sender, which the receiver will tell.
        drop(spawned);
        Some(Self { answer })
    }

    /// The reading, waited for until `deadline`.
    pub(crate) fn finish(self, deadline: Instant) -> Reading {
        let left = deadline.saturating_duration_since(Instant::now());
        self.answer.recv_timeout(left).unwrap_or_else(|error| {
            let why = match error {
                RecvTimeoutError::Timeout => "the proxy did not answer in time",
                RecvTimeoutError::Disconnected => "the reading thread failed",
            };
            Reading {
                page: None,
                at: Instant::now(),
                missing: vec![why.to_owned()],
            }
        })
    }
}

fn read(
    kind: ProxyKind,
    address: SocketAddr,
    when: When,
    missing: &mut Vec<String>,
) -> Option<Page> {
    match kind {
        ProxyKind::Envoy => read_envoy(address, when, missing),
        ProxyKind::Nginx => read_text(address, nginx::PATH, nginx::parse, missing),
        ProxyKind::Haproxy => read_text(address, haproxy::PATH, haproxy::parse, missing),
        ProxyKind::Custom => None,
    }
}

fn read_text(
    address: SocketAddr,
    path: &str,
    parse: fn(&str) -> Option<Page>,
    missing: &mut Vec<String>,
) -> Option<Page> {
    let page = fetch(address, path, missing, |text| {
        parse(text).ok_or_else(|| "not the expected page".to_owned())
    })?;
    Some(page)
}

fn read_envoy(address: SocketAddr, when: When, missing: &mut Vec<String>) -> Option<Page> {
    if let When::Gauges(_) = when {
        let gauges = fetch(address, envoy::GAUGES, missing, |text| {
            envoy::gauges(text).map_err(|e| e.to_string())
        })?;
        return Some(Page {
            gauges,
            ..Page::default()
        });
    }
    // Starts a flush where flushing is on demand; see the module's text.
    fetch(address, envoy::PRIME, missing, |_| Ok(()))?;
    std::thread::sleep(MERGE);
    let give_up = Instant::now() + FLUSH_LIMIT;
    loop {
        let mut page = Page {
            histograms: fetch(address, envoy::HISTOGRAMS, missing, |text| {
                envoy::histograms(text).map_err(|e| e.to_string())
            })?,
            counters: fetch(address, envoy::COUNTERS, missing, |text| {
                envoy::counters(text).map_err(|e| e.to_string())
            })?,
            ..Page::default()
        };
        let settled = envoy::is_flushed(&page) == Some(true) || Instant::now() >= give_up;
        if settled || matches!(when, When::Start(_)) {
            if when == When::End {
                page.gauges = fetch(address, envoy::GAUGES, missing, |text| {
                    envoy::gauges(text).map_err(|e| e.to_string())
                })
                .unwrap_or_default();
            }
            return Some(page);
        }
        std::thread::sleep(MERGE);
    }
}

/// A page, parsed; what went wrong is put into words.
fn fetch<T>(
    address: SocketAddr,
    path: &str,
    missing: &mut Vec<String>,
    parse: impl FnOnce(&str) -> Result<T, String>,
) -> Option<T> {
    let read = get(address, path, PAGE_LIMIT).map_err(|error| error.to_string());
    match read.and_then(|text| parse(&text)) {
        Ok(value) => Some(value),
        Err(error) => {
            missing.push(format!("read {path} of {address}: {error}"));
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_proxy_that_is_not_there_is_missing_not_zero() {
        // Bound and dropped, so that nobody listens.
        let address = TcpListener::bind("127.0.0.1:0")
            .and_then(|listener| listener.local_addr())
            .expect("a free port");
        let scraper = Scraper::start(ProxyKind::Envoy, address, When::End).expect("a reading");
        let reading = scraper.finish(Instant::now() + Duration::from_secs(10));
        assert_eq!(reading.page, None);
        assert_eq!(reading.missing.len(), 1);
        assert!(
            reading.missing[0].contains("refused"),
            "{:?}",
            reading.missing
        );
    }

    #[test]
    fn a_hung_proxy_is_not_waited_for() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
        let address = listener.local_addr().expect("address");
        let scraper = Scraper::start(ProxyKind::Nginx, address, When::End).expect("a reading");
        let reading = scraper.finish(Instant::now() + Duration::from_millis(100));
        assert_eq!(reading.page, None);
        assert_eq!(reading.missing, ["the proxy did not answer in time"]);
    }

    #[test]
    fn a_custom_proxy_has_none() {
        let address = "127.0.0.1:1".parse().expect("address");
        assert!(Scraper::start(ProxyKind::Custom, address, When::End).is_none());
    }
}
