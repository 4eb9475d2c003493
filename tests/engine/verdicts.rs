//! Each verdict made on purpose by a real trial, with the kernel's and the proxy's figures that it rests on. Those that
//! need a memory limit are in `verdicts_memory`, those of unusable numbers in `verdicts_invalid`.

use crate::rows::{assert_evidence, assert_within, cell_verdict, judged, rows};
use crate::support::{Bench, ENVOY};

/// Windows that are short, but hold some thirty CFS periods. The effects here are tens of milliseconds, so a generator
/// that is a few late on a busy machine tells them as well.
pub(crate) fn short(top: &str, table: &str, proxy: &str, load: &str, rest: &str) -> String {
    format!(
        "name = \"verdicts\"\nseed = 7\nrepetitions = 1\nwarmup = \"1s\"\nduration = \"3s\"\n{top}\n\n\
         [matrix]\n{table}\n\n[proxy]\nimage = \"{ENVOY}\"\n{proxy}\n\n\
         [load]\nmax_pacing_lag = \"10ms\"\n{load}\n\n{rest}\n"
    )
}

const LIGHT: &str = "rate = 400\nconnections = 64\nhandshake_rate = 20";

#[test]
fn engine_a_starved_proxy_a_slow_application_and_a_sound_cell_are_told_apart() {
    let bench = Bench::new(&short(
        "controls = [\"direct\", \"unlimited\"]",
        "cpu = [\"100m\", \"1\"]\n\"upstream.delay\" = [\"200us\", \"50ms\"]",
        "",
        LIGHT,
        "",
    ));
    bench.run_usable();
    let (results, rows) = (bench.results(), rows(&bench.results()));

    for (delay, throttled_p99_us) in [("200us", 10_000.0), ("50ms", 75_000.0)] {
        let cell = format!("cpu=100m,upstream.delay={delay}");
        let starved = judged(&rows, &cell, "cpu");
        assert_within(starved, "nr_periods", 20.0, 40.0);
        assert_within(starved, "throttled_share", 0.5, 1.0);
        assert_within(starved, "throttled_usec", 500_000.0, 1e9);
        assert_within(starved, "cpu_usage_cpus", 0.05, 0.12);
        assert_within(starved, "response_time_p99_us", throttled_p99_us, 10e6);
        assert_evidence(starved, &["periods throttled at 100m CPU", "unlimited"]);
        assert_eq!(cell_verdict(&results, &cell), "cpu");
    }

    let sound = judged(&rows, "cpu=1,upstream.delay=200us", "ok");
    assert_within(sound, "throttled_share", 0.0, 0.049);
    assert_eq!(sound.number("oom_kill"), 0.0);
    assert_eq!(sound.number("listen_overflows"), 0.0);
    assert_eq!(sound.number("errors"), 0.0);

    for cell in [
        "cpu=1,upstream.delay=50ms",
        "unlimited,upstream.delay=50ms",
        "direct,upstream.delay=50ms",
    ] {
        let slow = judged(&rows, cell, "application");
        assert_within(slow, "upstream_delay_p50_us", 49_900.0, 52_000.0);
        assert_within(slow, "response_time_p50_us", 50_000.0, 70_000.0);
        assert_eq!(cell_verdict(&results, cell), "application");
    }
    let slow = judged(&rows, "cpu=1,upstream.delay=50ms", "application");
    assert_within(slow, "throttled_share", 0.0, 0.049);
    assert_evidence(slow, &["direct"]);
    judged(&rows, "direct,upstream.delay=200us", "ok");
    judged(&rows, "unlimited,upstream.delay=200us", "ok");
}

#[test]
fn engine_the_proxys_own_breaker_is_policy() {
    let bench = Bench::new(&short(
        "",
        "\"proxy.max_connections\" = [4, \"unlimited\"]",
        "max_pending_requests = 4",
        "rate = 1200\nconnections = 64\nhandshake_rate = 20",
        "[upstream]\ndelay = \"5ms\"",
    ));
    bench.run_usable();
    let rows = rows(&bench.results());
    // Four connections carry some 750 of 1,200 requests a second; four more may wait.
    let refused = judged(&rows, "proxy.max_connections=4", "policy");
    let overflow = refused.number("proxy_upstream_rq_pending_overflow");
    let failed = refused.number("errors_http5xx");
    assert!(overflow > 100.0, "{}", refused.told());
    // The proxy counts from some 0.4 s before the window, the client those of the window.
    assert!(
        (0.75 * overflow..=1.05 * overflow).contains(&failed),
        "{failed} answers of 5xx for {overflow} refusals: {}",
        refused.told()
    );
    assert_evidence(refused, &["circuit breaker for pending requests"]);
    assert_eq!(
        cell_verdict(&bench.results(), "proxy.max_connections=4"),
        "policy"
    );
    let free = judged(&rows, "proxy.max_connections=unlimited", "ok");
    assert_eq!(free.number("errors"), 0.0);
}

#[test]
fn engine_a_proxy_out_of_descriptors_is_fd_limit() {
    let bench = Bench::new(&short(
        "",
        "\"proxy.nofile\" = [128, 4096]",
        "",
        "rate = 400\nconnections = 200\nhandshake_rate = 20",
        "",
    ));
    bench.run_usable();
    let rows = rows(&bench.results());
    let out = judged(&rows, "proxy.nofile=128", "fd_limit");
    assert_eq!(out.number("nofile_limit"), 128.0);
    assert_within(out, "open_fds_max", 124.0, 128.0);
    assert_evidence(out, &["descriptors open, limit 128"]);
    let enough = judged(&rows, "proxy.nofile=4096", "ok");
    assert_eq!(enough.number("nofile_limit"), 4096.0);
    assert_within(enough, "open_fds_max", 200.0, 600.0);
}

#[test]
fn engine_a_full_accept_queue_is_accept_overflow() {
    let bench = Bench::new(&short(
        "",
        "\"proxy.backlog\" = [64, 4096]",
        "",
        "rate = 50\nconnections = 2000\nhandshake_rate = 50",
        // Of the few requests that get through, a delay of 200 us could not be judged.
        "[limits]\ncpu = \"20m\"\n[upstream]\ndelay = \"5ms\"",
    ));
    bench.run_usable();
    let rows = rows(&bench.results());
    let full = judged(&rows, "proxy.backlog=64", "accept_overflow");
    assert_eq!(full.number("accept_queue_limit"), 64.0);
    // The kernel takes one more than the limit.
    assert_within(full, "accept_queue_socket_max", 64.0, 65.0);
    assert_within(full, "listen_overflows", 50.0, 1e6);
    assert!(full.number("listen_drops") >= full.number("listen_overflows"));
    assert_evidence(full, &["overflows of the accept queue", "depth up to"]);
    // With room for all, the same starvation is told as what it is, although no client gets an answer.
    let roomy = judged(&rows, "proxy.backlog=4096", "cpu");
    assert_eq!(roomy.number("listen_overflows"), 0.0);
    assert_within(roomy, "accept_queue_max", 66.0, 4096.0);
    assert_within(roomy, "throttled_share", 0.9, 1.0);
}

#[test]
fn engine_a_proxy_that_refuses_its_configuration_is_start_failed() {
    let text = short("", "cpu = [\"1\"]", "config = \"broken.yaml\"", LIGHT, "");
    let bench = Bench::new(&text);
    let config = bench.results().with_file_name("broken.yaml");
    fs_err::write(config, "static_resources: { listeners: 7 }\n").expect("write");
    bench.run_usable();
    let failed = &rows(&bench.results())[0];
    assert_eq!(failed.text("verdict"), "start_failed", "{}", failed.told());
    assert_eq!(failed.text("status"), "failed");
    assert_eq!(failed.number("exit_code"), 1.0);
    assert_eq!(failed.number("oom_killed"), 0.0);
    assert_eq!(failed.known("response_time_p99_us"), None);
    assert_evidence(failed, &["exited with code 1 before its first answer"]);
    assert_eq!(cell_verdict(&bench.results(), "cpu=1"), "start_failed");
}
