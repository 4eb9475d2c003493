//! The watcher against real containers of the engine that `docker` talks to, on whichever cgroup version it has.
//!
//! The containers' image is made here from files of this machine: a shell, and this very test program, which also plays the
//! agent inside the pod.

use std::net::{TcpListener, TcpStream};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use sweep::agent::job::WatchedProxy;
use sweep::probe::delta::delta;
use sweep::probe::report::{CgroupVersion, Limit, ProbeReport};
use sweep::probe::{FsRoot, Watcher};
use sweep::spec::settings::ProxyKind;

#[path = "probe_engine/roles.rs"]
mod roles;

const SAMPLE_INTERVAL: Duration = Duration::from_millis(50);
const NO_PORT: u16 = 1;

fn run(program: &str, arguments: &[&str]) -> Output {
    Command::new(program)
        .args(arguments)
        .output()
        .unwrap_or_else(|error| panic!("cannot run {program}: {error}"))
}

fn text(program: &str, arguments: &[&str]) -> String {
    let output = run(program, arguments);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{program} {arguments:?} failed: {error}"
    );
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

fn docker(arguments: &[&str]) -> String {
    text("docker", arguments)
}

/// The image of all containers, removed with the last of them.
struct Image {
    name: String,
}

impl Image {
    /// The one that another test has just made, or a new one.
    fn get() -> Arc<Self> {
        static SHARED: Mutex<Weak<Image>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        shared.upgrade().unwrap_or_else(|| {
            let image = Arc::new(Self::import());
            *shared = Arc::downgrade(&image);
            image
        })
    }

    fn import() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("sweep-test-probe:{}-{count}", std::process::id());
        let folder = tempfile::tempdir().expect("temporary folder");
        let this = std::env::current_exe().expect("own path");
        let this = this.to_str().expect("a path in UTF-8");
        let script = r#"
            set -e
            cd "$1"; mkdir -p bin
            cp -L "$(command -v dash)" bin/sh; cp -L "$(command -v sleep)" bin/sleep; cp "$2" bin/agent
            strip bin/agent 2>/dev/null || true
            for file in bin/sh bin/sleep bin/agent; do
                ldd $file | grep -o '/[^ ]*' | while read -r lib; do
                    mkdir -p ".$(dirname "$lib")"; cp -nL "$lib" ".$lib"
                done
            done
            tar -c . | docker import - "$3" >/dev/null
        "#;
        let folder = folder.path().to_str().expect("a path in UTF-8");
        text("sh", &["-c", script, "sh", folder, this, &name]);
        Self { name }
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        let _ = run("docker", &["rmi", "-f", &self.name]);
    }
}

/// A created container, removed at the end of the test whatever happens.
struct Container {
    id: String,
    _image: Arc<Image>,
}

impl Container {
    fn create(options: &[&str], command: &[&str]) -> Self {
        let mut arguments = vec!["create", "--label", "sweep.test=probe"];
        arguments.extend(options);
        let image = Image::get();
        arguments.push(&image.name);
        arguments.extend(command);
        let answer = docker(&arguments);
        Self {
            id: answer.lines().last().expect("an id").to_owned(),
            _image: image,
        }
    }

    fn start(&self) {
        docker(&["start", &self.id]);
    }

    fn watched(&self) -> WatchedProxy {
        WatchedProxy {
            container_id: self.id.clone(),
            kind: ProxyKind::Custom,
            admin: None,
        }
    }

    /// A watcher that was there before the container was started.
    fn start_watched(&self) -> Watcher {
        self.start_watched_with(NO_PORT)
    }

    fn start_watched_with(&self, port: u16) -> Watcher {
        let root = FsRoot::default();
        let watcher = Watcher::new(Some(&self.watched()), port, SAMPLE_INTERVAL, &root);
        self.start();
        let deadline = Instant::now() + Duration::from_secs(20);
        assert!(
            watcher.find_cgroup(deadline, &|| false),
            "the cgroup of {} was not found",
            self.id
        );
        watcher
    }

    /// A file of its cgroup as a shell finds and reads it, independent of the code under test.
    fn cgroup_file(&self, name: &str) -> String {
        let script = r#"
            file=$(find /sys/fs/cgroup -path "*$1*" ! -path "*/unified/*" -name "$2" | head -1)
            cat "$file"
        "#;
        text("sh", &["-c", script, "sh", &self.id, name])
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        let _ = run("docker", &["rm", "-f", &self.id]);
    }
}

fn field(text: &str, key: &str) -> u64 {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix(' '));
    let value = line.unwrap_or_else(|| panic!("no {key} in {text:?}"));
    value.trim().parse().expect("a number")
}

fn until(what: &str, limit: Duration, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + limit;
    while !condition() {
        assert!(Instant::now() < deadline, "{what}: not within {limit:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

const SPIN: [&str; 3] = ["sh", "-c", "while :; do :; done"];

#[test]
fn engine_limits_and_throttling_are_read_from_the_kernel() {
    let container = Container::create(
        &[
            "--network=none",
            // Less than this machine leaves it when others are busy, so that the limit and not they hold it back.
            "--cpus=0.05",
            "--memory=32m",
            "--memory-swap=48m",
        ],
        &SPIN,
    );
    let watcher = container.start_watched();
    until("it was throttled", Duration::from_secs(20), || {
        field(&container.cgroup_file("cpu.stat"), "nr_throttled") > 3
    });
    watcher.mark_ready();
    watcher.begin_window();
    std::thread::sleep(Duration::from_secs(3));
    assert!(watcher.proxy_alive());
    watcher.end_window();
    let report = watcher.finish();

    for limits in [&report.limits_start, &report.limits_end] {
        let own = &limits.as_ref().expect("limits").own;
        assert_eq!(own.cpu_quota_usec, Some(Limit::Of(5_000)));
        assert_eq!(own.cpu_period_usec, Some(100_000));
        assert_eq!(own.memory_bytes, Some(Limit::Of(32 << 20)));
        assert_eq!(own.swap_bytes, Some(Limit::Of(16 << 20)));
        assert!(own.path.contains(&container.id));
    }
    let start = report.counters_start.as_ref().expect("start");
    let end = report.counters_end.as_ref().expect("end");
    let window = delta(start, end);
    let throttled = window.throttled_share().expect("periods");
    assert!(throttled > 0.5, "throttled share {throttled}");
    let cpus = window.cpus_used().expect("CPU use");
    assert!((0.025..0.075).contains(&cpus), "used {cpus} CPUs");
    assert_eq!(end.oom_kill, Some(0));
    assert!(report.memory_at_ready.expect("memory").current_bytes > Some(0));
    check_samples(&report, 60);
}

fn check_samples(report: &ProbeReport, expected: u64) {
    let taken = report.samples.len() as u64;
    let missed = report.gaps.get("sample").copied().unwrap_or(0);
    // The window may end a little late, never early.
    let due = taken + missed;
    assert!(
        (expected..expected + 4).contains(&due),
        "taken {taken}, missed {missed}"
    );
    assert!(taken > expected / 2, "taken {taken}, missed {missed}");
    assert!(report.samples.is_sorted_by_key(|sample| sample.t_us));
    for sample in &report.samples {
        assert!(sample.memory.current_bytes > Some(0));
        assert!(sample.memory.anon_bytes.is_some() && sample.memory.file_bytes.is_some());
        assert!(sample.nr_periods.is_some() && sample.cpu_usage_usec.is_some());
        assert!(sample.queues.is_some());
    }
    assert!(report.samples.is_sorted_by_key(|s| s.cpu_usage_usec));
}

/// A frozen container's counters stand still, so both readers must see the same numbers.
#[test]
fn engine_counters_equal_those_that_a_shell_reads() {
    let container = Container::create(&["--network=none", "--cpus=0.3", "--memory=64m"], &SPIN);
    let watcher = container.start_watched();
    until("it was throttled", Duration::from_secs(20), || {
        field(&container.cgroup_file("cpu.stat"), "nr_throttled") > 3
    });
    docker(&["pause", &container.id]);
    watcher.begin_window();
    std::thread::sleep(Duration::from_millis(1100));
    watcher.end_window();
    let report = watcher.finish();
    let end = report.counters_end.as_ref().expect("end");
    let stat = container.cgroup_file("cpu.stat");
    assert_eq!(end.nr_periods, Some(field(&stat, "nr_periods")));
    assert_eq!(end.nr_throttled, Some(field(&stat, "nr_throttled")));
    assert!(end.nr_throttled > Some(0));
    let memory = container.cgroup_file("memory.stat");
    let sample = report.samples.last().expect("a sample");
    match report.cgroup_version {
        Some(CgroupVersion::V1) => {
            let nanos = field(&stat, "throttled_time");
            assert_eq!(end.throttled_usec, Some(nanos / 1000));
            let usage: u64 = container.cgroup_file("cpuacct.usage").parse().expect("ns");
            assert_eq!(end.cpu_usage_usec, Some(usage / 1000));
            assert_eq!(end.pgfault, Some(field(&memory, "total_pgfault")));
            assert_eq!(sample.memory.anon_bytes, Some(field(&memory, "total_rss")));
            let current = container.cgroup_file("memory.usage_in_bytes");
            assert_eq!(sample.memory.current_bytes, current.parse().ok());
        }
        Some(CgroupVersion::V2) => {
            assert_eq!(end.throttled_usec, Some(field(&stat, "throttled_usec")));
            assert_eq!(end.cpu_usage_usec, Some(field(&stat, "usage_usec")));
            assert_eq!(end.pgfault, Some(field(&memory, "pgfault")));
            assert_eq!(sample.memory.anon_bytes, Some(field(&memory, "anon")));
            let current = container.cgroup_file("memory.current");
            assert_eq!(sample.memory.current_bytes, current.parse().ok());
            let events = container.cgroup_file("memory.events");
            assert_eq!(end.memory_max_events, Some(field(&events, "max")));
        }
        None => panic!("no cgroup version"),
    }
    docker(&["unpause", &container.id]);
}

/// Depth and limit of each listener of the port, by `ss`.
fn queues_by_ss(port: u16) -> Vec<(u32, u32)> {
    let filter = format!("sport = :{port}");
    let lines = text("ss", &["-Hltn", &filter]);
    let mut queues: Vec<_> = lines
        .lines()
        .map(|line| {
            let mut words = line.split_whitespace().skip(1);
            let mut number = || {
                words
                    .next()
                    .and_then(|word| word.parse().ok())
                    .expect("a number")
            };
            (number(), number())
        })
        .collect();
    queues.sort_unstable();
    queues
}

#[test]
fn engine_queues_equal_those_that_ss_shows() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
    rustix::net::listen(&listener, 16).expect("listen");
    let address = listener.local_addr().expect("address");
    let _waiting: Vec<_> = (0..11).map(|_| TcpStream::connect(address)).collect();
    until("eleven wait", Duration::from_secs(10), || {
        queues_by_ss(address.port()) == [(11, 16)]
    });
    let watcher = Watcher::new(None, address.port(), SAMPLE_INTERVAL, &FsRoot::default());
    watcher.begin_window();
    std::thread::sleep(Duration::from_millis(300));
    watcher.end_window();
    let report = watcher.finish();
    assert!(!report.samples.is_empty());
    for sample in &report.samples {
        let queues = sample.queues.as_ref().expect("queues");
        let seen: Vec<_> = queues
            .accept
            .iter()
            .copied()
            .zip(queues.accept_limit.iter().copied())
            .collect();
        assert_eq!(seen, queues_by_ss(address.port()));
    }
    assert_eq!(report.cgroup_version, None, "no proxy was watched");
}

/// What is known of a container whose first process the kernel kills at once.
fn report_of_a_killed_container() -> ProbeReport {
    let grow = "x=0123456789abcdef; while :; do x=$x$x; done";
    let container = Container::create(
        &["--network=none", "--memory=24m", "--memory-swap=24m"],
        &["sh", "-c", grow],
    );
    let watcher = container.start_watched();
    until("the container is dead", Duration::from_secs(20), || {
        !watcher.proxy_alive()
    });
    let report = watcher.finish();
    assert_eq!(
        docker(&["inspect", "-f", "{{.State.OOMKilled}}", &container.id]),
        "true"
    );
    report
}

#[test]
fn engine_an_oom_kill_leaves_the_last_counters() {
    // The engine removes the cgroup some tens of milliseconds after the kill. A sampler that did not get a CPU in between, on a
    // machine full of other work, has not seen it: nearly always it has.
    let reports = (0..5).map(|_| report_of_a_killed_container());
    let seen = |report: &ProbeReport| {
        let last = report.counters_last.as_ref().expect("last counters");
        last.oom_kill == Some(1)
    };
    let mut seen = reports.into_iter().filter(seen);
    let report = seen.next().expect("one of five kills is seen");
    let last = report.counters_last.expect("last counters");
    let hits = last.memory_max_events;
    match report.cgroup_version {
        Some(CgroupVersion::V2) => assert!(hits > Some(0) && last.oom > Some(0), "{last:?}"),
        // Not every kernel counts these on v1; a 0 would be a lie.
        _ => assert_ne!(hits, Some(0)),
    }
    assert!(last.cpu_usage_usec > Some(0) && last.pgfault > Some(0));
    let memory = report.memory_at_ready.expect("last memory");
    assert!(memory.peak_bytes > Some(16 << 20), "{memory:?}");
    let limits = report.limits_start.expect("limits seen before it died");
    assert_eq!(limits.own.memory_bytes, Some(Limit::Of(24 << 20)));
    assert_eq!(limits.own.swap_bytes, Some(Limit::Of(0)));
    assert_eq!(report.counters_start, None, "there was no window");
}

/// The pod as `sweep` builds it: the agent has the host's pid and cgroup namespaces, the cgroup tree read-only, the pod's network
/// namespace, and not one capability.
fn report_of_an_agent(proxy_user: &str) -> ProbeReport {
    let owner = Container::create(&["--network=none"], &["sleep", "120"]);
    owner.start();
    let network = format!("--network=container:{}", owner.id);
    let user = format!("--user={proxy_user}");
    let proxy = Container::create(
        &[
            &network,
            &user,
            "--cap-drop=ALL",
            "--security-opt=no-new-privileges",
            "--ulimit=nofile=1234:2345",
            "--cpus=0.5",
            "--memory=64m",
            "-e",
            "PROBE_ROLE=listener",
        ],
        &roles::COMMAND,
    );
    let watch = format!("PROBE_WATCH={}", proxy.id);
    let upstream = format!("PROBE_UPSTREAM={}", owner.id);
    let agent = Container::create(
        &[
            &network,
            "--cap-drop=ALL",
            "--security-opt=no-new-privileges",
            "--pid=host",
            "--cgroupns=host",
            "-v",
            "/sys/fs/cgroup:/sys/fs/cgroup:ro",
            "-e",
            "PROBE_ROLE=agent",
            "-e",
            &watch,
            "-e",
            &upstream,
        ],
        &roles::COMMAND,
    );
    agent.start();
    let log = || text("sh", &["-c", "docker logs \"$1\" 2>&1", "sh", &agent.id]);
    until("the agent watches", Duration::from_secs(30), || {
        log().contains(roles::WATCHING)
    });
    proxy.start();
    until("the agent is done", Duration::from_secs(60), || {
        docker(&["inspect", "-f", "{{.State.Status}}", &agent.id]) == "exited"
    });
    let log = log();
    let json = log
        .lines()
        .find_map(|line| line.strip_prefix(roles::REPORT));
    let json = json.unwrap_or_else(|| panic!("no report of the agent: {log}"));
    serde_json::from_str(json).expect("a report")
}

fn check_report_of_an_agent(report: &ProbeReport) {
    let limits = report.limits_end.as_ref().expect("limits");
    assert_eq!(limits.own.cpu_quota_usec, Some(Limit::Of(50_000)));
    assert_eq!(limits.own.memory_bytes, Some(Limit::Of(64 << 20)));
    assert!(report.memory_at_ready.expect("memory").anon_bytes > Some(0));
    let start = report.counters_start.as_ref().expect("start");
    let end = report.counters_end.as_ref().expect("end");
    let window = delta(start, end);
    assert!(window.cpu_usage_usec.is_some() && window.nr_periods.is_some());
    // The queue was filled before the window, and one more connect was refused a place in it.
    assert!(window.listen_overflows > Some(0), "{window:?}");
    for sample in &report.samples {
        let queues = sample.queues.as_ref().expect("queues");
        assert_eq!(queues.accept, [roles::BACKLOG + 1]);
        assert_eq!(queues.accept_limit, [roles::BACKLOG]);
    }
    let last = report.samples.last();
    // Connections are walked as often as the probes' CPU budget allows: at least once.
    let queues = report.samples.iter().filter_map(|s| s.queues.as_ref());
    let mut walked = queues.filter(|queues| queues.established.is_some());
    let queues = walked.next_back().expect("a walk over the connections");
    assert_eq!(queues.established, Some(u64::from(roles::BACKLOG) + 1));
    assert_eq!(
        queues.unread,
        Some(0),
        "what is not accepted is no unread request"
    );
    assert_eq!(
        report.nofile_limit,
        Some(1234),
        "{last:?} {:?}",
        report.gaps
    );
    assert!(report.sysctls["somaxconn"] > 0);
    assert!(report.host.busy_share.is_some());
    assert!(report.host.other_cpu_usec.is_some(), "{:?}", report.host);
}

/// In some sample: where descriptors have to be listed, they are counted about once a second.
fn open_fds(report: &ProbeReport) -> Option<u64> {
    report.samples.iter().find_map(|sample| sample.open_fds_max)
}

#[test]
fn engine_an_agent_without_capabilities_sees_everything() {
    let report = report_of_an_agent("0");
    check_report_of_an_agent(&report);
    // Three standard streams and the listener, at least.
    assert!(open_fds(&report) >= Some(4));
}

#[test]
fn engine_a_proxy_of_another_user_hides_descriptors_from_old_kernels_only() {
    let report = report_of_an_agent("1000");
    check_report_of_an_agent(&report);
    let release = text("uname", &["-r"]);
    let mut numbers = release.split('.').map(|part| part.parse::<u32>().ok());
    let version = (numbers.next().flatten(), numbers.next().flatten());
    let told_to_all = version >= (Some(6), Some(2));
    assert_eq!(open_fds(&report).is_some(), told_to_all, "{release}");
}

/// With `--release` on a quiet machine: `cargo test --release --test probe_engine -- --ignored --nocapture engine_cost`.
#[test]
#[ignore = "a measurement: needs a quiet machine and an optimized build"]
#[expect(clippy::print_stdout, reason = "the measured value is wanted")]
fn engine_cost_is_under_a_hundredth_of_a_core() {
    let container = Container::create(&["--network=none", "--cpus=0.2", "--memory=64m"], &SPIN);
    let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
    let address = listener.local_addr().expect("address");
    let _connections: Vec<_> = (0..64)
        .map(|_| (TcpStream::connect(address), listener.accept()))
        .collect();
    let watcher = container.start_watched_with(address.port());
    watcher.begin_window();
    std::thread::sleep(Duration::from_secs(10));
    watcher.end_window();
    let report = watcher.finish();
    let window = delta(
        report.counters_start.as_ref().expect("start"),
        report.counters_end.as_ref().expect("end"),
    );
    let cost = report.probe_cpu_usec.expect("cost") as f64;
    let share = cost / window.elapsed_us.expect("time") as f64;
    let percent = share * 100.0;
    println!(
        "{} samples, {:?}, {percent:.3} % of a core",
        report.samples.len(),
        report.gaps
    );
    assert!(share < 0.01, "{share}");
}
