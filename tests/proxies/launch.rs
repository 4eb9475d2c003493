//! Proxies in containers.

use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use sweep::certs::RunCertificates;
use sweep::image::bundle;
use sweep::proxy::{ProxyLaunch, TlsFiles, launch};
use sweep::spec::settings::{CertificateKey, ProxyKind, Settings};

use crate::curl::Client;
use crate::docker::{self, Container, Image};

/// Imported by `make test` (scripts/get-envoy).
pub(crate) const ENVOY_IMAGE: &str = "sweep-envoy:1.40.0";

pub(crate) const KEYS: [CertificateKey; 4] = [
    CertificateKey::EcdsaP256,
    CertificateKey::Rsa2048,
    CertificateKey::Rsa4096,
    CertificateKey::Ed25519,
];

pub(crate) fn settings(kind: ProxyKind) -> Settings {
    let mut settings = sweep::spec::defaults::settings();
    settings.proxy.kind = kind;
    settings.proxy.admin_port = Some(9901);
    settings
}

/// The image of a kind of proxy: Envoy's from `make test`, the others' from this machine. The second value keeps the latter
/// until it is dropped.
fn image_of(kind: ProxyKind) -> (String, Option<Image>) {
    let host = match kind {
        ProxyKind::Nginx => "/usr/sbin/nginx",
        ProxyKind::Haproxy => "/usr/sbin/haproxy",
        ProxyKind::Envoy | ProxyKind::Custom => return (ENVOY_IMAGE.to_owned(), None),
    };
    let image = host_image(host);
    (image.0.clone(), Some(image))
}

/// What each kind of proxy answers without an upstream, which proves that a request went all the way through it.
fn status_without_upstream(kind: ProxyKind) -> &'static str {
    match kind {
        ProxyKind::Nginx => "502",
        ProxyKind::Envoy | ProxyKind::Haproxy | ProxyKind::Custom => "503",
    }
}

/// Image of a program of this machine.
pub(crate) fn host_image(program: &str) -> Image {
    let bundle = bundle(Path::new(program), &[]).unwrap_or_else(|error| panic!("{error}"));
    let mut rootfs = Vec::new();
    bundle.write_rootfs(&mut rootfs).expect("archive");
    Image::import(&bundle.name, &rootfs, &bundle.changes())
}

pub(crate) fn start(image: &str, launch: &ProxyLaunch) -> Container {
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

/// Backlog of the listener in the container's namespace, by `ss`.
pub(crate) fn listen_backlog(container: &Container, port: u16) -> Option<u64> {
    let pid = docker::docker(&["inspect", "--format", "{{.State.Pid}}", &container.0]);
    let output = std::process::Command::new("nsenter")
        .args(["--net", "--target", &pid, "ss", "-Hltn"])
        .arg(format!("sport = :{port}"))
        .output()
        .expect("nsenter and ss are installed");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.split_whitespace().nth(2)?.parse().ok()
}

/// The launch of a proxy with the certificates of a run; there is no upstream behind it.
pub(crate) fn launch_of(settings: &Settings, certs: &RunCertificates) -> ProxyLaunch {
    let tls = TlsFiles {
        server: certs.server(settings.tls.certificate).expect("made"),
        ca_pem: &certs.ca_pem,
    };
    launch(settings, tls, "127.0.0.1:8080".parse().expect("address"))
}

/// One kind of proxy with all that a test of it needs.
pub(crate) struct Stand {
    pub(crate) kind: ProxyKind,
    pub(crate) certs: RunCertificates,
    pub(crate) client: Client,
    image: String,
    _image: Option<Image>,
}

impl Stand {
    pub(crate) fn new(kind: ProxyKind) -> Self {
        let certs = RunCertificates::generate(KEYS, SystemTime::now()).expect("certificates");
        let client = Client::new(&certs);
        let (image, kept) = image_of(kind);
        Self {
            kind,
            certs,
            client,
            image,
            _image: kept,
        }
    }

    pub(crate) fn start(&self, settings: &Settings) -> Container {
        start(&self.image, &launch_of(settings, &self.certs))
    }

    /// Whether curl's output shows that a request went all the way through the proxy: there is no upstream, and each kind
    /// says so with a status of its own.
    pub(crate) fn went_through(&self, text: &str) -> bool {
        answered(text, status_without_upstream(self.kind))
    }

    /// Starts the proxy and asks until a request goes through.
    pub(crate) fn answering(&self, settings: &Settings, args: &[&str]) -> (Container, String) {
        let proxy = self.start(settings);
        let text = ask_until(
            &self.client,
            &proxy,
            args,
            status_without_upstream(self.kind),
        );
        (proxy, text)
    }

    /// Waits until something listens on the port.
    pub(crate) fn wait_for_listener(&self, proxy: &Container, port: u16) {
        let deadline = Instant::now() + READY;
        while listen_backlog(proxy, port).is_none() {
            assert!(Instant::now() < deadline, "no listener: {}", proxy.logs());
        }
    }
}

/// Longest start of a proxy without limits, on a machine that is busy with other tests.
const READY: Duration = Duration::from_secs(30);

fn answered(text: &str, status: &str) -> bool {
    text.lines()
        .any(|line| line.starts_with("HTTP/") && line.contains(status))
}

/// Asks until the answer has this status.
pub(crate) fn ask_until(client: &Client, proxy: &Container, args: &[&str], status: &str) -> String {
    let deadline = Instant::now() + READY;
    loop {
        let (_, text) = client.ask_https(proxy, args);
        if answered(&text, status) {
            return text;
        }
        assert!(
            Instant::now() < deadline,
            "no {status}: {text}\n{}",
            proxy.logs()
        );
    }
}
