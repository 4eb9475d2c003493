use std::collections::BTreeSet;

use super::*;
use crate::record::sample::{self, Shape};

#[test]
fn names_are_unique_documented_and_end_in_their_unit() {
    let mut seen = BTreeSet::new();
    for column in all() {
        assert!(seen.insert(&column.name), "{} stands twice", column.name);
        assert!(column.doc.ends_with('.'), "{}: {}", column.name, column.doc);
        let ending = match column.unit {
            "us" | "usec" | "bytes" | "rps" => column.unit,
            "millicpu" => "millis",
            _ => continue,
        };
        // A side (`_start`, `_end`), or `per request`, may follow the unit.
        let name = column
            .name
            .trim_end_matches("_start")
            .trim_end_matches("_end");
        assert!(
            name.ends_with(ending) || name == "cpu_usec_per_request" || name == "bytes_received",
            "{} does not end in {ending}",
            column.name
        );
    }
}

/// The names that scripts and notebooks rely on.
#[test]
fn promised_names_are_there() {
    let mut promised: Vec<String> = "cell repetition block control status reason verdict cpu_millis memory_bytes \
        swap_bytes offered_rate_rps achieved_rate_rps requests errors send_lag_p99_us handshakes accept_queue_mean \
        accept_queue_max accept_queue_limit listen_overflows cpu_usage_usec cpu_usec_per_request nr_periods \
        nr_throttled throttled_usec memory_mean_bytes memory_max_bytes memory_peak_bytes page_cache \
        memory_file_ready_bytes swap_peak_bytes oom_kill memory_pgmajfault exit_code upstream_delay_p50_us \
        errors_timeout backlog_growth_rps response_time_censored cpu_quota_usec_start littles_law_users \
        ready_after_us upstream_requests accept_queue_wait_us"
        .split_whitespace()
        .map(str::to_owned)
        .collect();
    for percentile in ["p50", "p90", "p99", "p999", "max"] {
        promised.push(format!("response_time_{percentile}_us"));
        promised.push(format!("service_time_{percentile}_us"));
    }
    for phase in [
        "tcp",
        "server_hello",
        "finished",
        "settings",
        "first_byte",
        "total",
    ] {
        promised.push(format!("handshake_{phase}_p50_us"));
        promised.push(format!("handshake_{phase}_p99_us"));
    }
    for name in promised {
        assert!(by_name(&name).is_some(), "no column {name}");
    }
}

fn value(name: &str, trial: &TrialRecord) -> Cell {
    let row = Row {
        trial,
        judgement: None,
    };
    by_name(name).expect("column").get(&row)
}

#[test]
fn a_valid_trial_fills_its_columns() {
    let trial = sample::valid(Shape::limited(250, 64), 1);
    let expected: &[(&str, Cell)] = &[
        ("cell", Cell::Text("cpu=250m,memory=64Mi,swap=0".to_owned())),
        ("control", Cell::Empty),
        ("cpu_millis", Cell::Int(250)),
        ("memory_bytes", Cell::Int(64 << 20)),
        ("swap_bytes", Cell::Int(0)),
        ("nr_periods", Cell::Int(100)),
        ("nr_throttled", Cell::Int(98)),
        ("throttled_share", Cell::Float(0.98)),
        ("cpu_quota_usec_start", Cell::Int(25_000)),
        ("cpu_effective_millis", Cell::Float(250.0)),
        ("accept_queue_max", Cell::Int(3)),
        ("accept_queue_mean", Cell::Float(1.5)),
        ("accept_queue_limit", Cell::Int(4096)),
        // 1.5 connections deep, 100 accepted a second by the proxy's own count.
        ("accept_queue_wait_us", Cell::Float(15_000.0)),
        ("unread_wait_us", Cell::Float(5_000.0)),
        ("page_cache", Cell::Text("warm".to_owned())),
        ("proxy_downstream_rq_active", Cell::Float(2.0)),
        ("proxy_downstream_cx", Cell::Int(1000)),
        ("proxy_upstream_rq_active", Cell::Empty),
        ("swap_peak_bytes", Cell::Int(0)),
        ("psi_memory_some_usec", Cell::Empty),
        ("backlog_trend", Cell::Text("stable".to_owned())),
        ("cpu_usec_per_request", Cell::Float(2000.0)),
        ("exit_code", Cell::Empty),
    ];
    for (name, want) in expected {
        assert_eq!(&value(name, &trial), want, "{name}");
    }
}

#[test]
fn unknown_is_empty_and_never_zero() {
    let mut trial = sample::hung(Shape::limited(1000, 8), 1);
    assert_eq!(value("requests", &trial), Cell::Empty);
    assert_eq!(value("errors", &trial), Cell::Empty);
    assert_eq!(value("response_time_p99_us", &trial), Cell::Empty);
    assert_eq!(value("nr_throttled", &trial), Cell::Empty);
    assert_eq!(value("memory_pgmajfault_total", &trial), Cell::Int(87_000));
    trial.agent = None;
    for column in all().filter(|c| c.kind.scale().is_some()) {
        let row = Row {
            trial: &trial,
            judgement: None,
        };
        assert_eq!(column.get(&row), Cell::Empty, "{}", column.name);
    }
}

#[test]
fn no_limit_is_infinite_and_an_unread_one_empty() {
    let mut trial = sample::control(Control::Unlimited, 1);
    assert_eq!(
        value("memory_limit_bytes_start", &trial),
        Cell::Float(f64::INFINITY)
    );
    assert_eq!(value("cpu_millis", &trial), Cell::Empty);
    let agent = trial.agent.as_mut().expect("agent");
    agent
        .probe
        .limits_start
        .as_mut()
        .expect("limits")
        .own
        .memory_bytes = None;
    assert_eq!(value("memory_limit_bytes_start", &trial), Cell::Empty);
}

#[test]
fn a_percentile_that_censored_requests_reach_is_a_bound() {
    let mut trial = sample::valid(Shape::limited(250, 64), 1);
    let load = trial
        .agent
        .as_mut()
        .and_then(|a| a.load.as_mut())
        .expect("load");
    load.censored = sample::histogram(&[(4_000_000, 50)]);
    assert!(matches!(
        value("response_time_p50_us", &trial),
        Cell::Int(_)
    ));
    assert!(matches!(value("response_time_p99_us", &trial), Cell::AtLeast(us) if us > 3.9e6));
    assert_eq!(value("response_time_censored", &trial), Cell::Int(50));
}

use crate::record::trial::Control;

#[test]
fn other_proxies_fill_what_they_have() {
    let mut trial = sample::valid(Shape::limited(250, 64), 1);
    let stats = &mut trial.agent.as_mut().expect("agent").probe.proxy_stats;
    let counters =
        |pairs: &[(&str, u64)]| pairs.iter().map(|(n, v)| ((*n).to_owned(), *v)).collect();
    let gauges = |pairs: &[(&str, f64)]| pairs.iter().map(|(n, v)| ((*n).to_owned(), *v)).collect();
    *stats = Some(crate::probe::report::ProxyStats {
        counters: counters(&[("accepts", 500), ("handled", 480), ("requests", 900)]),
        gauges: gauges(&[("active", 64.0), ("waiting", 60.0)]),
        ..Default::default()
    });
    assert_eq!(value("proxy_nginx_dropped", &trial), Cell::Int(20));
    assert_eq!(value("proxy_nginx_waiting", &trial), Cell::Float(60.0));
    assert_eq!(value("proxy_downstream_rq_active", &trial), Cell::Empty);
    // 1.5 deep, 50 accepted a second.
    assert_eq!(value("accept_queue_wait_us", &trial), Cell::Float(30_000.0));

    let stats = &mut trial.agent.as_mut().expect("agent").probe.proxy_stats;
    *stats = Some(crate::probe::report::ProxyStats {
        counters: counters(&[
            ("ingress.FRONTEND.conn_tot", 1000),
            ("stats.FRONTEND.conn_tot", 7),
            ("ingress.FRONTEND.dreq", 3),
        ]),
        gauges: gauges(&[
            ("backend.s1.qcur", 34.0),
            ("backend.BACKEND.qcur", 34.0),
            ("ingress.FRONTEND.scur", 40.0),
        ]),
        ..Default::default()
    });
    assert_eq!(value("proxy_haproxy_queue", &trial), Cell::Float(34.0));
    assert_eq!(value("proxy_haproxy_denied_requests", &trial), Cell::Int(3));
    assert_eq!(value("accept_queue_wait_us", &trial), Cell::Float(15_000.0));
}

#[test]
fn a_retransmitted_syn_is_expected_when_the_kernel_says() {
    let mut trial = sample::valid(Shape::limited(250, 64), 1);
    let sysctls = &mut trial.agent.as_mut().expect("agent").probe.sysctls;
    sysctls.insert("tcp_syn_linear_timeouts".to_owned(), 4);
    sysctls.insert("tcp_syn_retries".to_owned(), 6);
    let Cell::Text(times) = value("expected_syn_retry_ms", &trial) else {
        panic!("text")
    };
    assert!(
        times.starts_with("1000; 2000; 3000; 4000; 5000; 7000; 11000"),
        "{times}"
    );
}
