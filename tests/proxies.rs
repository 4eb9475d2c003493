//! Real proxies, started in containers from what `proxy::launch` makes, and asked over TLS by a curl in a container of its
//! own: images, uploads, users, capabilities and every handshake setting at once.

#[path = "support/docker.rs"]
mod docker;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use docker::{Container, Image, docker_with};
use sweep::certs::{RunCertificates, SERVER_NAME};
use sweep::image::{Extra, ExtraContent, bundle};
use sweep::proxy::{ProxyLaunch, TlsFiles, launch};
use sweep::spec::settings::*;
use sweep::units::{Bytes, Micros, RatePerSecond};

/// Imported by `make test` (scripts/get-envoy).
const ENVOY_IMAGE: &str = "sweep-envoy:1.40.0";

const KEYS: [CertificateKey; 4] = [
    CertificateKey::EcdsaP256,
    CertificateKey::Rsa2048,
    CertificateKey::Rsa4096,
    CertificateKey::Ed25519,
];

fn settings(kind: ProxyKind) -> Settings {
    Settings {
        warmup: Micros(1),
        duration: Micros(1),
        limits: Limits::default(),
        proxy: Proxy {
            kind,
            image: String::new(),
            workers: 1,
            nofile: 16384,
            page_cache: PageCache::Warm,
            backlog: None,
            config: None,
            command: Vec::new(),
            files: BTreeMap::new(),
            port: 8443,
            admin_port: Some(9901),
            ready_path: "/".to_owned(),
            max_pending_requests: None,
            max_connections: None,
        },
        upstream: Upstream {
            delay: Micros(200),
            delay_distribution: DelayDistribution::Constant,
            delay_high: Micros(200),
            delay_high_share: 0.0,
            body: Bytes(1024),
        },
        load: Load {
            mode: LoadMode::Open,
            rate: RatePerSecond(1.0),
            arrivals: Arrivals::Constant,
            users: 1,
            connections: 1,
            requests_per_connection: None,
            streams: 1,
            handshake_rate: RatePerSecond(0.0),
            protocol: Protocol::H1,
            method: "GET".to_owned(),
            path: "/".to_owned(),
            headers: BTreeMap::new(),
            body: Bytes(0),
            timeout: Micros(1),
            connect_timeout: Micros(1),
            threads: 1,
        },
        tls: Tls {
            version: TlsVersion::V1_3,
            certificate: CertificateKey::EcdsaP256,
            key_exchange: KeyExchange::X25519,
            resumption: false,
            mutual: false,
            verify: Verify::Ca,
        },
        placement: Placement::default(),
    }
}

/// Image of a program of this machine.
fn host_image(program: &str) -> Image {
    let bundle = bundle(Path::new(program), &[]).unwrap_or_else(|error| panic!("{error}"));
    let mut rootfs = Vec::new();
    bundle.write_rootfs(&mut rootfs).expect("archive");
    Image::import(&bundle.name, &rootfs, &bundle.changes())
}

/// curl, and the certificates that it needs to ask a proxy of this run.
struct Client {
    image: Image,
}

impl Client {
    fn new(certs: &RunCertificates) -> Self {
        let file = |target: &str, text: &str| Extra {
            target: target.to_owned(),
            content: ExtraContent::Bytes(text.as_bytes().to_vec()),
        };
        let extra = [
            file("/ca.pem", &certs.ca_pem),
            file("/client.pem", &certs.client.cert_pem),
            file("/client.key", &certs.client.key_pem),
        ];
        let bundle = bundle(Path::new("/usr/bin/curl"), &extra).expect("curl is installed");
        let mut rootfs = Vec::new();
        bundle.write_rootfs(&mut rootfs).expect("archive");
        Self {
            image: Image::import("curl", &rootfs, &bundle.changes()),
        }
    }

    /// Asks in the namespace of `proxy`; standard error holds curl's account of the handshake.
    fn ask(&self, proxy: &Container, args: &[&str]) -> (bool, String) {
        let network = format!("container:{}", proxy.0);
        let mut all = vec!["run", "--rm", "--network", &network, &self.image.0];
        all.extend(["-sS", "-v", "-i", "--max-time", "10"]);
        all.extend(args);
        let output = docker_with(&all, &[]);
        let text = [output.stdout, output.stderr].concat();
        (
            output.status.success(),
            String::from_utf8_lossy(&text).into_owned(),
        )
    }

    fn ask_https(&self, proxy: &Container, args: &[&str]) -> (bool, String) {
        let resolve = format!("{SERVER_NAME}:8443:127.0.0.1");
        let url = format!("https://{SERVER_NAME}:8443/");
        let mut all = vec!["--cacert", "/ca.pem", "--resolve", &resolve, &url];
        all.extend(args);
        self.ask(proxy, &all)
    }
}

fn start(image: &str, launch: &ProxyLaunch) -> Container {
    let mut args = vec![
        "--network=none",
        "--cap-drop=ALL",
        "--security-opt=no-new-privileges",
        "--ulimit=nofile=16384:16384",
    ];
    let mut options: Vec<String> = Vec::new();
    for (name, value) in &launch.sysctls {
        options.push(format!("--sysctl={name}={value}"));
    }
    for variable in &launch.env {
        options.push(format!("--env={variable}"));
    }
    if let Some(user) = &launch.user {
        options.push(format!("--user={user}"));
    }
    if let Some(entrypoint) = &launch.entrypoint {
        options.push(format!("--entrypoint={}", entrypoint[0]));
    }
    args.extend(options.iter().map(String::as_str));
    args.push(image);
    args.extend(launch.cmd.iter().map(String::as_str));
    let container = Container::create("proxy", &args);
    container.upload(&launch.archive().expect("archive"));
    docker::docker(&["start", &container.0]);
    container
}

/// Starts the proxy and asks until it answers with `status`, which proves that a request went all the way through it: there
/// is no upstream, and each kind of proxy says so with a status of its own.
fn answering(
    image: &str,
    settings: &Settings,
    certs: &RunCertificates,
    client: &Client,
    args: &[&str],
    status: &str,
) -> (Container, String) {
    let tls = TlsFiles {
        server: certs.server(settings.tls.certificate).expect("made"),
        ca_pem: &certs.ca_pem,
    };
    let upstream = "127.0.0.1:8080".parse().expect("address");
    let proxy = start(image, &launch(settings, tls, upstream));
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let (_, text) = client.ask_https(&proxy, args);
        if text
            .lines()
            .any(|line| line.starts_with("HTTP/") && line.contains(status))
        {
            return (proxy, text);
        }
        assert!(
            Instant::now() < deadline,
            "no {status} from {:?} with {settings:?}: {text}\n{}",
            settings.proxy.kind,
            proxy.logs()
        );
    }
}

/// Every combination that a factor can reach, for one proxy: versions, key exchanges, keys, protocols, mutual TLS.
fn handshakes(
    kind: ProxyKind,
    image: &str,
    status: &str,
    keys: &[CertificateKey],
    groups: &[KeyExchange],
) {
    let certs = RunCertificates::generate(KEYS, SystemTime::now()).expect("certificates");
    let client = Client::new(&certs);
    for key in keys {
        let mut wanted = settings(kind);
        wanted.tls.certificate = *key;
        answering(image, &wanted, &certs, &client, &["--http1.1"], status);
    }
    for group in groups {
        let mut wanted = settings(kind);
        wanted.tls.key_exchange = *group;
        let only = match group {
            KeyExchange::X25519 => "X25519",
            KeyExchange::P256 => "P-256",
            KeyExchange::X25519MlKem768 => "X25519MLKEM768",
        };
        let other = if *group == KeyExchange::X25519 {
            "P-256"
        } else {
            "X25519"
        };
        let (proxy, _) = answering(image, &wanted, &certs, &client, &["--curves", only], status);
        let (ok, text) = client.ask_https(&proxy, &["--curves", other]);
        assert!(
            !ok,
            "{kind:?} took {other} where only {only} is configured: {text}"
        );
    }
    everything(kind, image, status, &certs, &client);
}

/// TLS 1.2, HTTP/2, mutual TLS, a backlog, and no resumption, together.
fn everything(
    kind: ProxyKind,
    image: &str,
    status: &str,
    certs: &RunCertificates,
    client: &Client,
) {
    let mut wanted = settings(kind);
    wanted.tls.version = TlsVersion::V1_2;
    wanted.tls.mutual = true;
    wanted.load.protocol = Protocol::H2;
    wanted.proxy.backlog = Some(64);
    let identity = ["--http2", "--cert", "/client.pem", "--key", "/client.key"];
    let (proxy, text) = answering(image, &wanted, certs, client, &identity, status);
    assert!(text.contains("HTTP/2 "), "{text}");
    assert!(text.contains("TLSv1.2"), "{text}");
    let (_, refused) = client.ask_https(&proxy, &["--http2"]);
    // nginx answers 400 to a client without a certificate, the others end the handshake.
    assert!(
        !refused
            .lines()
            .any(|line| line.starts_with("HTTP/") && line.contains(status)),
        "{refused}"
    );
    let (ok, text) = client.ask_https(&proxy, &[&["--tlsv1.3"], &identity[..]].concat());
    assert!(!ok, "{kind:?} took TLS 1.3 where 1.2 is configured: {text}");
    assert_eq!(listen_backlog(&proxy, 8443), Some(64), "{kind:?}");
}

/// Backlog of the listener in the container's namespace, by `ss`.
fn listen_backlog(container: &Container, port: u16) -> Option<u64> {
    let pid = docker::docker(&["inspect", "--format", "{{.State.Pid}}", &container.0]);
    let output = std::process::Command::new("nsenter")
        .args(["--net", "--target", &pid, "ss", "-Hltn"])
        .arg(format!("sport = :{port}"))
        .output()
        .expect("nsenter and ss are installed");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.split_whitespace().nth(2)?.parse().ok()
}

#[test]
fn engine_envoy_serves_every_handshake_setting() {
    // curl's OpenSSL on Debian 12 has no ML-KEM; that group is asked by the generator's own tests.
    let groups = [KeyExchange::X25519, KeyExchange::P256];
    handshakes(ProxyKind::Envoy, ENVOY_IMAGE, "503", &KEYS, &groups);
}

/// An Envoy that would be mistaken about a setting says so in its log and exits; this asks for the ones that curl cannot.
#[test]
fn engine_envoy_validates_settings_that_curl_cannot_ask_for() {
    let certs = RunCertificates::generate(KEYS, SystemTime::now()).expect("certificates");
    let mut all = settings(ProxyKind::Envoy);
    all.tls.key_exchange = KeyExchange::X25519MlKem768;
    all.tls.resumption = true;
    all.proxy.admin_port = None;
    all.proxy.max_connections = Some(4);
    all.proxy.max_pending_requests = Some(20);
    let tls = TlsFiles {
        server: certs.server(all.tls.certificate).expect("made"),
        ca_pem: &certs.ca_pem,
    };
    let mut launch = launch(&all, tls, "127.0.0.1:8080".parse().expect("address"));
    launch
        .cmd
        .extend(["--mode".to_owned(), "validate".to_owned()]);
    let proxy = start(ENVOY_IMAGE, &launch);
    let code = docker::docker(&["wait", &proxy.0]);
    assert_eq!(code, "0", "{}", proxy.logs());
}

#[test]
fn engine_nginx_serves_every_handshake_setting() {
    let image = host_image("/usr/sbin/nginx");
    let groups = [KeyExchange::X25519, KeyExchange::P256];
    handshakes(ProxyKind::Nginx, &image.0, "502", &KEYS, &groups);
}

#[test]
fn engine_haproxy_serves_every_handshake_setting() {
    let image = host_image("/usr/sbin/haproxy");
    let groups = [KeyExchange::X25519, KeyExchange::P256];
    handshakes(ProxyKind::Haproxy, &image.0, "503", &KEYS, &groups);
}

#[test]
fn engine_statistics_of_each_kind_answer_at_their_address() {
    let certs = RunCertificates::generate(KEYS, SystemTime::now()).expect("certificates");
    let client = Client::new(&certs);
    let (nginx, haproxy) = (
        host_image("/usr/sbin/nginx"),
        host_image("/usr/sbin/haproxy"),
    );
    for (kind, image, status, path, expected) in [
        (
            ProxyKind::Envoy,
            ENVOY_IMAGE,
            "503",
            "/stats?filter=server.concurrency",
            "server.concurrency: 1",
        ),
        (
            ProxyKind::Nginx,
            nginx.0.as_str(),
            "502",
            "/stub_status",
            "Active connections",
        ),
        (
            ProxyKind::Haproxy,
            haproxy.0.as_str(),
            "503",
            "/stats;csv",
            "# pxname",
        ),
    ] {
        let (proxy, _) = answering(image, &settings(kind), &certs, &client, &[], status);
        let (ok, text) = client.ask(&proxy, &[&format!("http://127.0.0.1:9901{path}")]);
        assert!(ok && text.contains(expected), "{kind:?}: {text}");
    }
}

/// nginx as somebody else's proxy: own command, own files.
#[test]
fn engine_custom_proxy_runs_with_its_own_command_and_files() {
    let image = host_image("/usr/sbin/nginx");
    let certs = RunCertificates::generate(KEYS, SystemTime::now()).expect("certificates");
    let client = Client::new(&certs);
    let mut custom = settings(ProxyKind::Custom);
    custom.proxy.command = ["-e", "stderr", "-c", "/opt/my/proxy.conf"]
        .map(str::to_owned)
        .to_vec();
    custom.proxy.files.insert(
        "/opt/my/proxy.conf".to_owned(),
        "daemon off; pid {{state}}/pid; error_log stderr; worker_processes {{workers}}; events {} http {\n\
         client_body_temp_path {{state}}/1; proxy_temp_path {{state}}/2; fastcgi_temp_path {{state}}/3;\n\
         uwsgi_temp_path {{state}}/4; scgi_temp_path {{state}}/5; access_log off;\n\
         server { listen 127.0.0.1:{{port}} ssl; ssl_certificate {{cert}}; ssl_certificate_key {{key}};\n\
         location / { return 418; } } }\n"
            .to_owned(),
    );
    answering(&image.0, &custom, &certs, &client, &[], "418");
}

/// What a newcomer does by hand: an executable of this machine, imported and run.
#[test]
fn engine_runs_an_imported_executable_and_the_self_contained_folder() {
    let own = std::env::current_exe().expect("path");
    let bundled = bundle(&own, &[]).expect("bundle");
    let mut rootfs = Vec::new();
    bundled.write_rootfs(&mut rootfs).expect("archive");
    let image = Image::import("self", &rootfs, &bundled.changes());
    let list = ["--list", "--exact", "no-such-test"];
    let run = docker::docker(&[&["run", "--rm", "--network=none", &image.0], &list[..]].concat());
    assert!(run.contains("0 tests"), "{run}");

    // In an image that has another program and none of our libraries but curl's.
    let foreign = host_image("/usr/bin/curl");
    let command = bundled.self_contained_command("sweep");
    let command: Vec<&str> = command.iter().map(String::as_str).collect();
    let entrypoint = format!("--entrypoint={}", command[0]);
    let mut args = vec!["--network=none", "--cap-drop=ALL", &entrypoint, &foreign.0];
    args.extend(&command[1..]);
    args.extend(list);
    let container = Container::create("toucher", &args);
    let mut folder = Vec::new();
    bundled
        .write_self_contained("sweep", &mut folder)
        .expect("archive");
    container.upload(&folder);
    docker::docker(&["start", &container.0]);
    assert_eq!(
        docker::docker(&["wait", &container.0]),
        "0",
        "{}",
        container.logs()
    );
    assert!(container.logs().contains("0 tests"), "{}", container.logs());
}
