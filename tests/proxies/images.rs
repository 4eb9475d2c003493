//! Images of executables of this machine.

use std::time::SystemTime;

use sweep::certs::RunCertificates;
use sweep::image::bundle;
use sweep::spec::settings::ProxyKind;

use crate::curl::Client;
use crate::docker::{self, Container, Image};
use crate::launch::{KEYS, ask_until, host_image, launch_of, settings, start};

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
    let proxy = start(&image.0, &launch_of(&custom, &certs));
    ask_until(&client, &proxy, &[], "418");
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
