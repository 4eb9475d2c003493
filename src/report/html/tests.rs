use super::*;
use crate::record::sample::{self, Shape};
use crate::record::trial::TrialRecord;
use crate::report::analysis::analyse;

fn rendered(records: &[TrialRecord]) -> String {
    let manifest = sample::manifest(records);
    render(&analyse(&manifest, records))
}

#[test]
fn one_self_contained_file() {
    let (_, mut records) = sample::quick_run();
    records.push(sample::oom_killed(Shape::limited(1000, 6), 1));
    let html = rendered(&records);
    for outside in ["http://", "https://", "<script", "src=", "@import", "url("] {
        assert!(!html.contains(outside), "{outside}");
    }
    assert!(html.contains("prefers-color-scheme: dark") && html.contains("</html>"));
    assert_eq!(html.matches("<svg").count(), 2);
    assert_eq!(html.matches("<svg").count(), html.matches("</svg>").count());
    assert!(
        html.contains("✕ oom"),
        "a cell without latencies is drawn as lost"
    );
    assert!(!html.contains("NaN") && !html.contains("inf\""));
}

/// Every element that is opened is closed, in order.
#[test]
fn the_markup_is_balanced() {
    let (_, records) = sample::quick_run();
    let html = rendered(&records);
    let body = &html[html.find("<body>").expect("body")..];
    let mut open: Vec<&str> = Vec::new();
    for tag in body.split('<').skip(1) {
        let (tag, _) = tag.split_once('>').expect("closed tag");
        if let Some(name) = tag.strip_prefix('/') {
            if name != "html" {
                assert_eq!(open.pop(), Some(name), "in {tag}");
            }
        } else if !tag.ends_with('/') {
            open.push(tag.split_whitespace().next().expect("name"));
        }
    }
    assert_eq!(open, Vec::<&str>::new());
}

#[test]
fn hostile_names_stay_text() {
    let mut trial = sample::valid(Shape::limited(250, 64), 1);
    trial.factors[0].level = "<img src=x onerror=alert(1)>".to_owned();
    trial.cell = "\"><script>alert(1)</script>".to_owned();
    let html = rendered(&[trial]);
    assert!(!html.contains("<img") && !html.contains("<script"));
    assert!(html.contains("&lt;img"));
}

#[test]
fn no_trials_no_charts_no_panic() {
    let (manifest, _) = sample::quick_run();
    let html = render(&analyse(&manifest, &[]));
    assert!(!html.contains("<svg") && html.contains("0/3 run"));
}
