//! A client that is nobody's of this project.

use std::path::Path;

use sweep::certs::{RunCertificates, SERVER_NAME};
use sweep::image::{Extra, ExtraContent, bundle};

use crate::docker::{Container, Image, docker_with};

/// curl, and the certificates that it needs to ask a proxy of this run.
pub(crate) struct Client {
    image: Image,
}

impl Client {
    pub(crate) fn new(certs: &RunCertificates) -> Self {
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
    pub(crate) fn ask(&self, proxy: &Container, args: &[&str]) -> (bool, String) {
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

    pub(crate) fn ask_https(&self, proxy: &Container, args: &[&str]) -> (bool, String) {
        let resolve = format!("{SERVER_NAME}:8443:127.0.0.1");
        let url = format!("https://{SERVER_NAME}:8443/");
        let mut all = vec!["--cacert", "/ca.pem", "--resolve", &resolve, &url];
        all.extend(args);
        self.ask(proxy, &all)
    }
}
