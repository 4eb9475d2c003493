//! Whole trials of the proxies that are not Envoy, in images made of this machine's programs.

use std::process::Command;

use crate::rows::{Row, assert_within, judged, rows};
use crate::support::{Bench, assert_measured, assert_nothing_left};
use crate::verdicts::short;

/// An image by `sweep image import`, removed with the value.
struct Imported(String);

impl Imported {
    fn of(bench: &Bench, program: &str) -> Self {
        let base = program.rsplit('/').next().expect("a name");
        let image = Self(format!("sweep-test-{base}:{}", std::process::id()));
        let import = bench.sweep(&["image", "import", "--name", &image.0, program]);
        assert!(import.status.success(), "{import:?}");
        image
    }
}

impl Drop for Imported {
    fn drop(&mut self) {
        let _ = Command::new("docker")
            .args(["image", "rm", "-f", &self.0])
            .output();
    }
}

/// Statistics that only one kind of proxy has.
const OF_ENVOY: [&str; 6] = [
    "proxy_downstream_rq",
    "proxy_downstream_cx",
    "proxy_upstream_rq_pending_overflow",
    "proxy_loop_duration_p99_us",
    "proxy_memory_allocated_bytes",
    "proxy_concurrency",
];
const OF_NGINX: [&str; 5] = [
    "proxy_nginx_active",
    "proxy_nginx_reading",
    "proxy_nginx_writing",
    "proxy_nginx_waiting",
    "proxy_nginx_dropped",
];
const OF_HAPROXY: [&str; 4] = [
    "proxy_haproxy_queue",
    "proxy_haproxy_sessions",
    "proxy_haproxy_denied_requests",
    "proxy_haproxy_denied_connections",
];

/// Two CPU limits under a light load; every measured row, and the image until it is dropped.
fn trials_of(kind: &str, cpu: &str, program: &str, proxy: &str, files: &str) -> Vec<Row> {
    let text = |image: &str| {
        short(
            "",
            &format!("cpu = [\"{cpu}\", \"1\"]"),
            &format!("kind = \"{kind}\"\n{proxy}"),
            "rate = 300\nconnections = 32\nhandshake_rate = 10",
            &format!("[limits]\nmemory = \"128Mi\"\n{files}"),
        )
        .replace(crate::support::ENVOY, image)
    };
    let bench = Bench::new("");
    let image = Imported::of(&bench, program);
    fs_err::write(
        bench.results().with_file_name("matrix.toml"),
        text(&image.0),
    )
    .expect("write");
    let trials = bench.run_usable();
    trials.iter().for_each(assert_measured);
    assert_nothing_left(&trials[0].run);
    rows(&bench.results())
}

/// What client and kernel tell is the same for every proxy.
fn check_common(rows: &[Row], cpu: &str) {
    assert_eq!(rows.len(), 2);
    let starved = judged(rows, &format!("cpu={cpu}"), "cpu");
    let free = judged(rows, "cpu=1", "ok");
    assert_within(starved, "throttled_share", 0.5, 1.0);
    assert_within(starved, "cpu_usage_cpus", 0.01, 0.05);
    assert_within(starved, "requests", 100.0, 910.0);
    assert_within(free, "throttled_share", 0.0, 0.049);
    assert_within(free, "requests", 890.0, 910.0);
    assert_within(free, "handshakes", 28.0, 31.0);
    for row in [starved, free] {
        assert_eq!(row.text("status"), "valid", "{}", row.told());
        for phase in ["tcp", "server_hello", "finished", "first_byte", "total"] {
            let column = format!("handshake_{phase}_p50_us");
            assert!(p50(row, &column) > 0.0, "{column}");
        }
        assert!(
            p50(row, "response_time_p50_us") > 200.0,
            "the upstream's delay"
        );
        assert!(row.number("cpu_usec_per_request") > 1.0);
        assert_within(row, "memory_max_bytes", 1e6, 128.0 * 1_048_576.0);
        assert_eq!(row.number("oom_kill"), 0.0);
        assert!(row.number("accept_queue_limit") > 0.0);
        let fds = row.number("open_fds_max");
        assert!(fds > 32.0, "{fds} descriptors for 32 connections");
    }
    let response = |row: &Row| p50(row, "response_time_p50_us");
    assert!(response(free) < 1e6, "{}", free.told());
    assert!(
        response(starved) > 2.0 * response(free),
        "{}",
        starved.told()
    );
}

/// A median; without end where it is unknown because half of them were still open when the trial ended, as a slow machine
/// makes of a starved proxy.
#[track_caller]
fn p50(row: &Row, column: &str) -> f64 {
    row.known(column).unwrap_or(f64::INFINITY)
}

/// Statistics of another kind, or of none, are unknown and not 0.
fn check_empty(rows: &[Row], columns: &[&str]) {
    for row in rows {
        for column in columns {
            assert_eq!(row.known(column), None, "{column}: {}", row.told());
        }
    }
}

#[test]
fn engine_trials_of_nginx() {
    let rows = trials_of("nginx", "20m", "/usr/sbin/nginx", "", "");
    check_common(&rows, "20m");
    for row in &rows {
        assert_within(row, "proxy_nginx_active", 32.0, 64.0);
        assert_within(row, "proxy_nginx_waiting", 1.0, 64.0);
        assert_eq!(row.number("proxy_nginx_dropped"), 0.0);
        row.number("proxy_nginx_reading");
        row.number("proxy_nginx_writing");
    }
    check_empty(&rows, &OF_ENVOY);
    check_empty(&rows, &OF_HAPROXY);
}

#[test]
fn engine_trials_of_haproxy() {
    let rows = trials_of("haproxy", "40m", "/usr/sbin/haproxy", "", "");
    check_common(&rows, "40m");
    for row in &rows {
        assert_within(row, "proxy_haproxy_sessions", 32.0, 64.0);
        row.number("proxy_haproxy_queue");
        assert_eq!(row.number("proxy_haproxy_denied_requests"), 0.0);
        assert_eq!(row.number("proxy_haproxy_denied_connections"), 0.0);
    }
    check_empty(&rows, &OF_ENVOY);
    check_empty(&rows, &OF_NGINX);
}

/// nginx as somebody else's proxy: nothing of it is known but what client and kernel tell.
#[test]
fn engine_trials_of_a_custom_proxy() {
    let rows = trials_of(
        "custom",
        "20m",
        "/usr/sbin/nginx",
        "command = [\"-e\", \"stderr\", \"-c\", \"/opt/my/proxy.conf\"]",
        "[proxy.files.\"/opt/my/proxy.conf\"]\ntext = '''\n\
         daemon off; pid {{state}}/pid; error_log stderr; worker_processes {{workers}};\n\
         events { worker_connections 1024; }\n\
         http { client_body_temp_path {{state}}/1; proxy_temp_path {{state}}/2;\n\
         fastcgi_temp_path {{state}}/3; uwsgi_temp_path {{state}}/4; scgi_temp_path {{state}}/5;\n\
         access_log off; keepalive_requests 1000000; ssl_session_tickets off;\n\
         upstream backend { server {{upstream}}; keepalive 64; }\n\
         server { listen 127.0.0.1:{{port}} ssl; ssl_certificate {{cert}}; ssl_certificate_key {{key}};\n\
         ssl_protocols TLSv1.3;\n\
         location / { proxy_pass http://backend; proxy_http_version 1.1; proxy_set_header Connection \"\"; } } }\n\
         '''\n",
    );
    check_common(&rows, "20m");
    check_empty(&rows, &OF_ENVOY);
    check_empty(&rows, &OF_NGINX);
    check_empty(&rows, &OF_HAPROXY);
}
