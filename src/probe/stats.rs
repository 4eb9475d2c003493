//! The proxy's own statistics: a reading before the window, one after it, and their difference.
//!
//! A reading costs the proxy CPU time of its own budget, so there is none in between; and each runs on a thread of its own, so
//! that a proxy that answers late delays neither end of the window. Every reading is stamped, and what could not be read is said
//! in words.

mod scraper;

use std::collections::BTreeMap;
use std::time::Instant;

pub(crate) use scraper::{Scraper, When};

use super::report::{HistogramBucket, ProxyStats};

/// One reading.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Page {
    pub(crate) counters: BTreeMap<String, u64>,
    pub(crate) gauges: BTreeMap<String, f64>,
    /// Counts since the proxy's start.
    pub(crate) histograms: BTreeMap<String, Vec<HistogramBucket>>,
}

/// A reading, when it was complete, and what went wrong with it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Reading {
    pub(crate) page: Option<Page>,
    pub(crate) at: Instant,
    pub(crate) missing: Vec<String>,
}

/// Counters and histograms as differences, gauges as they were at the end.
///
/// A statistic that the first reading lacks counts from 0: the proxies list a counter from its first use on.
pub(crate) fn difference(start: Option<&Page>, end: Option<&Page>) -> ProxyStats {
    let mut stats = ProxyStats::default();
    let Some(end) = end else {
        return stats;
    };
    stats.gauges = end.gauges.clone();
    let Some(start) = start else {
        return stats;
    };
    for (name, value) in &end.counters {
        let before = start.counters.get(name).copied().unwrap_or(0);
        match value.checked_sub(before) {
            Some(added) => {
                stats.counters.insert(name.clone(), added);
            }
            None => stats.missing.push(format!("counter {name} went backwards")),
        }
    }
    for (name, buckets) in &end.histograms {
        let before = start.histograms.get(name).map_or(&[][..], Vec::as_slice);
        match subtract(before, buckets) {
            Some(added) => {
                stats.histograms.insert(name.clone(), added);
            }
            None => stats
                .missing
                .push(format!("histogram {name} went backwards")),
        }
    }
    stats
}

/// Bucket by bucket, matched by lower bound and width; `None` when one lost values.
fn subtract(before: &[HistogramBucket], after: &[HistogramBucket]) -> Option<Vec<HistogramBucket>> {
    let key = |bucket: &HistogramBucket| (bucket.lower_bound.to_bits(), bucket.width.to_bits());
    let mut old: BTreeMap<_, u64> = BTreeMap::new();
    for bucket in before {
        *old.entry(key(bucket)).or_default() += bucket.count;
    }
    let mut added = Vec::new();
    for bucket in after {
        let count = bucket
            .count
            .checked_sub(old.remove(&key(bucket)).unwrap_or(0))?;
        if count > 0 {
            added.push(HistogramBucket { count, ..*bucket });
        }
    }
    old.is_empty().then_some(added)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bucket(lower_bound: f64, count: u64) -> HistogramBucket {
        HistogramBucket {
            lower_bound,
            width: 0.1,
            count,
        }
    }

    fn page(counter: u64, buckets: &[HistogramBucket]) -> Page {
        Page {
            counters: BTreeMap::from([("rq_total".to_owned(), counter)]),
            gauges: BTreeMap::from([("active".to_owned(), counter as f64)]),
            histograms: BTreeMap::from([("rq_time".to_owned(), buckets.to_vec())]),
        }
    }

    #[test]
    fn the_window_alone() {
        let start = page(100, &[bucket(1.0, 60), bucket(2.0, 40)]);
        let end = page(175, &[bucket(1.0, 100), bucket(2.0, 40), bucket(90.0, 35)]);
        let stats = difference(Some(&start), Some(&end));
        assert_eq!(stats.counters["rq_total"], 75);
        assert_eq!(stats.gauges["active"], 175.0);
        assert_eq!(
            stats.histograms["rq_time"],
            [bucket(1.0, 40), bucket(90.0, 35)]
        );
        assert!(stats.missing.is_empty());
    }

    #[test]
    fn a_statistic_first_used_in_the_window_counts_from_zero() {
        let stats = difference(Some(&Page::default()), Some(&page(7, &[bucket(1.0, 7)])));
        assert_eq!(stats.counters["rq_total"], 7);
        assert_eq!(stats.histograms["rq_time"], [bucket(1.0, 7)]);
    }

    #[test]
    fn without_a_first_reading_there_is_no_difference() {
        let stats = difference(None, Some(&page(7, &[])));
        assert!(stats.counters.is_empty() && stats.histograms.is_empty());
        assert_eq!(stats.gauges["active"], 7.0);
        assert_eq!(difference(Some(&page(7, &[])), None), ProxyStats::default());
    }

    #[test]
    fn a_restarted_proxy_is_not_subtracted() {
        let start = page(100, &[bucket(1.0, 60)]);
        let stats = difference(Some(&start), Some(&page(5, &[bucket(1.0, 5)])));
        assert!(stats.counters.is_empty() && stats.histograms.is_empty());
        assert_eq!(
            stats.missing,
            [
                "counter rq_total went backwards",
                "histogram rq_time went backwards"
            ]
        );
        let vanished = difference(Some(&start), Some(&page(100, &[bucket(2.0, 60)])));
        assert_eq!(vanished.missing, ["histogram rq_time went backwards"]);
    }
}
