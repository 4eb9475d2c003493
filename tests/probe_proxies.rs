//! The statistics of real proxies, started here on loopback: counted requests must come back as that many.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use sweep::agent::job::WatchedProxy;
use sweep::probe::report::ProxyStats;
use sweep::probe::{FsRoot, Watcher};
use sweep::spec::settings::ProxyKind;

/// A proxy's process, ended with the test.
struct Proxy {
    child: Child,
    port: u16,
    admin: u16,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Ports that were free a moment ago.
fn free_ports() -> (u16, u16) {
    let bind = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let port = |listener: &TcpListener| listener.local_addr().expect("address").port();
    let (first, second) = (bind(), bind());
    (port(&first), port(&second))
}

impl Proxy {
    fn start(program: &str, arguments: &[&str], port: u16, admin: u16) -> Self {
        let child = Command::new(program)
            .args(arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {program}: {error}"));
        let proxy = Self { child, port, admin };
        let deadline = Instant::now() + Duration::from_secs(30);
        while request(port).is_err() {
            assert!(Instant::now() < deadline, "{program} does not answer");
            std::thread::sleep(Duration::from_millis(20));
        }
        proxy
    }

    /// Statistics of a window in which `inside` requests were sent, after `before` others.
    fn window(&self, kind: ProxyKind, before: usize, inside: usize) -> ProxyStats {
        let watched = WatchedProxy {
            container_id: "not in a container".to_owned(),
            kind,
            admin: Some((Ipv4Addr::LOCALHOST, self.admin).into()),
        };
        let interval = Duration::from_millis(50);
        let watcher = Watcher::new(Some(&watched), self.port, interval, &FsRoot::default());
        self.requests(before);
        // A flush interval of the Envoy below, so that its histograms hold the requests before the window.
        std::thread::sleep(Duration::from_millis(1200));
        watcher.prepare_window(Instant::now());
        std::thread::sleep(Duration::from_millis(600));
        watcher.begin_window();
        self.requests(inside);
        watcher.end_window();
        let stats = watcher.finish().proxy_stats.expect("statistics");
        assert!(stats.missing.is_empty(), "{:?}", stats.missing);
        assert!(stats.read_start_us < Some(0), "{:?}", stats.read_start_us);
        stats
    }

    fn requests(&self, count: usize) {
        for _ in 0..count {
            request(self.port).expect("an answer");
        }
    }
}

fn request(port: u16) -> std::io::Result<()> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(2))?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    stream.write_all(b"GET / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let first = answer.lines().next().unwrap_or_default();
    let good = first.contains(" 200 ");
    good.then_some(())
        .ok_or_else(|| std::io::Error::other(format!("answered {first:?}")))
}

fn write(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    fs_err::write(&path, text).expect("configuration");
    path.to_str().expect("a path in UTF-8").to_owned()
}

#[test]
fn nginx_counts_the_requests_of_the_window() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let (port, admin) = free_ports();
    let home = folder.path().display();
    let config = format!(
        "daemon off; master_process off; pid {home}/pid; error_log {home}/error warn;
        events {{}}
        http {{
          access_log off; client_body_temp_path {home}/b; proxy_temp_path {home}/p; fastcgi_temp_path {home}/f;
          uwsgi_temp_path {home}/u; scgi_temp_path {home}/s;
          server {{ listen 127.0.0.1:{port}; location / {{ return 200 hi; }} }}
          server {{ listen 127.0.0.1:{admin}; location = /stub_status {{ stub_status; }} }}
        }}"
    );
    let config = write(folder.path(), "nginx.conf", &config);
    let proxy = Proxy::start("nginx", &["-c", &config], port, admin);
    let stats = proxy.window(ProxyKind::Nginx, 7, 25);
    // The page counts the question for itself, too.
    assert_eq!(stats.counters["requests"], 26);
    assert!(stats.gauges.contains_key("waiting"));
}

#[test]
fn haproxy_counts_the_requests_of_the_window() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let (port, admin) = free_ports();
    let config = format!(
        "global\n  nbthread 1\ndefaults\n  mode http\n  timeout connect 1s\n  timeout client 5s\n  timeout server 5s\n\
         frontend ingress\n  bind 127.0.0.1:{port}\n  http-request return status 200\n\
         frontend stats\n  bind 127.0.0.1:{admin}\n  stats enable\n  stats uri /stats\n"
    );
    let config = write(folder.path(), "haproxy.cfg", &config);
    let proxy = Proxy::start("haproxy", &["-db", "-f", &config], port, admin);
    let stats = proxy.window(ProxyKind::Haproxy, 7, 25);
    assert_eq!(stats.counters["ingress.FRONTEND.req_tot"], 25);
    assert_eq!(stats.counters["ingress.FRONTEND.hrsp_2xx"], 25);
    assert!(stats.gauges.contains_key("ingress.FRONTEND.scur"));
}

fn envoy(flush: &str) -> ProxyStats {
    let program = std::env::var("SWEEP_TEST_ENVOY").unwrap_or_else(|_| "envoy".to_owned());
    let folder = tempfile::tempdir().expect("temporary folder");
    let (port, admin) = free_ports();
    let config = format!(
        r#"
{flush}
admin: {{ address: {{ socket_address: {{ address: 127.0.0.1, port_value: {admin} }} }} }}
static_resources:
  listeners:
  - name: ingress
    address: {{ socket_address: {{ address: 127.0.0.1, port_value: {port} }} }}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: ingress_http
          delayed_close_timeout: 0s
          route_config:
            virtual_hosts:
            - {{ name: all, domains: ["*"], routes: [ {{ match: {{ prefix: "/" }}, direct_response: {{ status: 200 }} }} ] }}
          http_filters:
          - name: envoy.filters.http.router
            typed_config: {{ "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router }}
"#
    );
    let config = write(folder.path(), "envoy.yaml", &config);
    let arguments = ["-c", &config, "--concurrency", "2", "--disable-hot-restart"];
    let proxy = Proxy::start(&program, &arguments, port, admin);
    proxy.window(ProxyKind::Envoy, 40, 75)
}

fn check_envoy(stats: &ProxyStats) {
    assert_eq!(
        stats.counters["http.ingress_http.downstream_rq_completed"],
        75
    );
    let histogram = &stats.histograms["http.ingress_http.downstream_rq_time"];
    let recorded: u64 = histogram.iter().map(|bucket| bucket.count).sum();
    assert_eq!(recorded, 75, "{histogram:?}");
    assert_eq!(stats.gauges["server.concurrency"], 2.0);
}

#[test]
#[ignore = "needs an Envoy executable: SWEEP_TEST_ENVOY, or envoy on PATH"]
fn envoy_that_flushes_by_interval_is_complete() {
    check_envoy(&envoy("stats_flush_interval: 1s"));
}

#[test]
#[ignore = "needs an Envoy executable: SWEEP_TEST_ENVOY, or envoy on PATH"]
fn envoy_that_flushes_when_asked_is_complete() {
    check_envoy(&envoy("stats_flush_on_admin: true"));
}
