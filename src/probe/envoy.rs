//! Envoy's admin interface.
//!
//! Counters are live. Histograms reach the admin interface only at a stats flush: every `stats_flush_interval`, or, with
//! `stats_flush_on_admin`, when the admin interface is asked (and then one question late, because workers merge
//! asynchronously). So a reading asks twice, some time apart. The first reading, under load, is then behind by at most one flush
//! interval: as many requests of the warm-up may be in the window's histograms as fit into it (none to speak of with
//! `stats_flush_on_admin`). The last reading is repeated until each `downstream_rq_time` holds as many values as
//! `downstream_rq_completed` counts, or a flush interval of a second has surely passed: nothing of the window is missing.
//!
//! `totals` of `histogram_buckets=detailed` is the only form that can be subtracted: percentiles cannot, `intervals` holds one flush
//! interval, and the other forms use coarse bounds.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::report::HistogramBucket;
use super::stats::Page;

/// Where a type of statistic is.
pub(crate) const COUNTERS: &str = "/stats?format=json&usedonly&type=Counters";
/// Where the gauges are.
pub(crate) const GAUGES: &str = "/stats?format=json&usedonly&type=Gauges";
/// Where the histograms are.
pub(crate) const HISTOGRAMS: &str =
    "/stats?format=json&usedonly&type=Histograms&histogram_buckets=detailed";
/// The smallest page: asking for it is enough to start a flush.
pub(crate) const PRIME: &str = "/stats?filter=%5Eserver.live%24";

#[derive(Deserialize)]
struct Stats {
    stats: Vec<Stat>,
}

/// A number, a text, or (once) all histograms.
#[derive(Deserialize)]
struct Stat {
    name: Option<String>,
    value: Option<serde_json::Value>,
    histograms: Option<Histograms>,
}

#[derive(Deserialize)]
struct Histograms {
    details: Option<Vec<Detail>>,
}

#[derive(Deserialize)]
struct Detail {
    name: String,
    totals: Option<Vec<Bucket>>,
}

#[derive(Deserialize)]
struct Bucket {
    lower_bound: f64,
    width: f64,
    count: u64,
}

/// Our own questions are not the proxy's work.
fn is_ours(name: &str) -> bool {
    name.starts_with("http.admin.") || name.starts_with("listener.admin.")
}

fn numbers(
    json: &str,
) -> Result<impl Iterator<Item = (String, serde_json::Number)>, serde_json::Error> {
    let stats: Stats = serde_json::from_str(json)?;
    Ok(stats.stats.into_iter().filter_map(|stat| {
        let name = stat.name.filter(|name| !is_ours(name))?;
        match stat.value {
            Some(serde_json::Value::Number(number)) => Some((name, number)),
            _ => None,
        }
    }))
}

/// The page at [`COUNTERS`].
pub(crate) fn counters(json: &str) -> Result<BTreeMap<String, u64>, serde_json::Error> {
    let counters = numbers(json)?.filter_map(|(name, number)| Some((name, number.as_u64()?)));
    Ok(counters.collect())
}

/// The page at [`GAUGES`].
pub(crate) fn gauges(json: &str) -> Result<BTreeMap<String, f64>, serde_json::Error> {
    let gauges = numbers(json)?.filter_map(|(name, number)| Some((name, number.as_f64()?)));
    Ok(gauges.collect())
}

/// The page at [`HISTOGRAMS`].
pub(crate) fn histograms(
    json: &str,
) -> Result<BTreeMap<String, Vec<HistogramBucket>>, serde_json::Error> {
    let stats: Stats = serde_json::from_str(json)?;
    let details = stats
        .stats
        .into_iter()
        .filter_map(|stat| stat.histograms?.details)
        .flatten()
        .filter(|detail| !is_ours(&detail.name));
    let histograms = details.map(|detail| {
        let buckets = detail.totals.unwrap_or_default().into_iter();
        let buckets = buckets.map(|bucket| HistogramBucket {
            lower_bound: bucket.lower_bound,
            width: bucket.width,
            count: bucket.count,
        });
        (detail.name, buckets.collect())
    });
    Ok(histograms.collect())
}

/// Whether the histograms hold every request that the counters do; `None` when no pair of them tells.
pub(crate) fn is_flushed(page: &Page) -> Option<bool> {
    let pairs = page.counters.iter().filter_map(|(name, completed)| {
        // `listener.L.http.P.downstream_rq_completed` counts the same once more, without a histogram.
        let prefix = name.strip_suffix(".downstream_rq_completed")?;
        let _ = prefix.strip_prefix("http.")?;
        let histogram = page.histograms.get(&format!("{prefix}.downstream_rq_time"));
        let recorded: u64 = histogram
            .into_iter()
            .flatten()
            .map(|bucket| bucket.count)
            .sum();
        Some(recorded >= *completed)
    });
    pairs.reduce(|all, one| all && one)
}

#[cfg(test)]
mod tests {
    use super::*;

    // Answers of Envoy 1.40.0, shortened.
    const COUNTERS_JSON: &str = r#"{"stats":[{"name":"http.admin.downstream_rq_total","value":1},{"name":"http.ingress_http.downstream_rq_completed","value":50},{"name":"listener.admin.http.admin.downstream_rq_completed","value":1},{"name":"listener.ingress.http.ingress_http.downstream_rq_completed","value":50},{"name":"listener_manager.lds.version_text","value":"x"}]}"#;
    const GAUGES_JSON: &str = r#"{"stats":[{"name":"server.concurrency","value":2},{"name":"server.memory_allocated","value":5064176},{"name":"listener.admin.downstream_cx_active","value":1}]}"#;
    const HISTOGRAMS_JSON: &str = r#"{"stats":[{"histograms":{"supported_percentiles":[0,25],"details":[{"name":"http.ingress_http.downstream_rq_time","totals":[{"lower_bound":0,"width":0,"count":47},{"lower_bound":1,"width":0.1,"count":3}],"intervals":[{"lower_bound":0,"width":0,"count":46}],"percentiles":[{"cumulative":0,"interval":null}]},{"name":"server.initialization_time_ms","totals":[],"intervals":[],"percentiles":[]},{"name":"http.admin.downstream_rq_time","totals":[{"lower_bound":1,"width":0.1,"count":3}]}]}}]}"#;

    #[test]
    fn counters_without_texts_and_our_own() {
        let found = counters(COUNTERS_JSON).expect("counters");
        let names: Vec<_> = found.keys().map(String::as_str).collect();
        let expected = [
            "http.ingress_http.downstream_rq_completed",
            "listener.ingress.http.ingress_http.downstream_rq_completed",
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn gauges_read_back_the_workers() {
        let found = gauges(GAUGES_JSON).expect("gauges");
        assert_eq!(found["server.concurrency"], 2.0);
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn totals_of_histograms() {
        let found = histograms(HISTOGRAMS_JSON).expect("histograms");
        let buckets = &found["http.ingress_http.downstream_rq_time"];
        let counts: Vec<_> = buckets
            .iter()
            .map(|b| (b.lower_bound, b.width, b.count))
            .collect();
        assert_eq!(counts, [(0.0, 0.0, 47), (1.0, 0.1, 3)]);
        assert_eq!(found["server.initialization_time_ms"], []);
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn flushed_when_the_histogram_has_caught_up() {
        let mut page = Page {
            counters: counters(COUNTERS_JSON).expect("counters"),
            histograms: histograms(HISTOGRAMS_JSON).expect("histograms"),
            ..Page::default()
        };
        assert_eq!(is_flushed(&page), Some(true));
        page.counters
            .insert("http.ingress_http.downstream_rq_completed".to_owned(), 51);
        assert_eq!(is_flushed(&page), Some(false));
        assert_eq!(is_flushed(&Page::default()), None);
    }

    proptest::proptest! {
        #[test]
        fn no_answer_panics(text in ".{0,200}", cut in 0_usize..400) {
            let _ = (counters(&text).is_ok(), gauges(&text).is_ok(), histograms(&text).is_ok());
            let _ = histograms(HISTOGRAMS_JSON.get(..cut).unwrap_or_default()).is_ok();
        }
    }
}
