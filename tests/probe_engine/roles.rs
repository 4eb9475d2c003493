//! What this test program does inside of containers.

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use sweep::agent::job::WatchedProxy;
use sweep::probe::{FsRoot, Watcher};
use sweep::spec::settings::ProxyKind;

/// How a container starts it.
pub(crate) const COMMAND: [&str; 5] = [
    "/bin/agent",
    "--exact",
    "roles::in_a_container",
    "--ignored",
    "--nocapture",
];
/// The agent is ready for the proxy's start.
pub(crate) const WATCHING: &str = "PROBE-WATCHING";
/// What follows on the line is its report.
pub(crate) const REPORT: &str = "PROBE-REPORT ";
/// Of the listener.
pub(crate) const BACKLOG: u32 = 4;

const PORT: u16 = 8443;
/// A connect on loopback that takes this long has found the queue full.
const NO_PLACE: Duration = Duration::from_millis(800);

#[test]
#[ignore = "runs inside of the containers of the other tests, which set PROBE_ROLE"]
fn in_a_container() {
    match std::env::var("PROBE_ROLE").as_deref() {
        Ok("listener") => listener(),
        Ok("agent") => agent(),
        _ => {}
    }
}

fn address() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, PORT).into()
}

/// A proxy that never accepts, until the container is removed.
fn listener() {
    use rustix::net::{AddressFamily, SocketType, bind, listen, socket};
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).expect("socket");
    bind(&socket, &address()).expect("bind");
    listen(&socket, BACKLOG as i32).expect("listen");
    loop {
        std::thread::sleep(Duration::from_secs(60));
    }
}

#[expect(clippy::print_stdout, reason = "the container's log is how it answers")]
fn agent() {
    let variable = |name| std::env::var(name).expect("set by the test");
    let proxy = WatchedProxy {
        container_id: variable("PROBE_WATCH"),
        kind: ProxyKind::Custom,
        admin: None,
    };
    let interval = Duration::from_millis(50);
    let watcher = Watcher::new(Some(&proxy), PORT, interval, &FsRoot::default());
    println!("\n{WATCHING}");
    let deadline = Instant::now() + Duration::from_secs(30);
    assert!(watcher.find_cgroup(deadline, &|| false), "no cgroup");
    watcher.set_pod_containers(&[variable("PROBE_UPSTREAM")]);
    let mut clients = Vec::new();
    loop {
        assert!(Instant::now() < deadline, "the listener is not there");
        match TcpStream::connect_timeout(&address(), NO_PLACE) {
            Ok(client) => clients.push(client),
            Err(error) if error.kind() == std::io::ErrorKind::TimedOut => break,
            Err(_) => std::thread::sleep(Duration::from_millis(5)),
        }
    }
    assert!(
        clients.len() > BACKLOG as usize,
        "{} connected",
        clients.len()
    );
    watcher.mark_ready();
    watcher.begin_window();
    let refused = TcpStream::connect_timeout(&address(), NO_PLACE);
    assert!(refused.is_err(), "the queue took one more");
    watcher.end_window();
    let report = watcher.finish();
    let json = serde_json::to_string(&report).expect("serialize");
    println!("\n{REPORT}{json}");
}
