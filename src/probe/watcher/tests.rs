use std::time::{Duration, Instant};

use super::*;
use crate::probe::fixture::{ID, Tree};
use crate::probe::report::{CgroupVersion, Limit};
use crate::spec::settings::ProxyKind;

const INTERVAL: Duration = Duration::from_millis(20);

fn watcher(tree: &Tree) -> Watcher {
    let proxy = WatchedProxy {
        container_id: ID.to_owned(),
        kind: ProxyKind::Custom,
        admin: None,
    };
    Watcher::new(Some(&proxy), 1, INTERVAL, &tree.root)
}

fn group(tree: &Tree, file: &str, text: &str) {
    tree.write(&format!("cgroup/docker/{ID}/{file}"), text);
}

fn running(tree: &Tree) {
    group(tree, "cgroup.events", "populated 1\n");
    group(
        tree,
        "cpu.stat",
        "usage_usec 1000\nnr_periods 10\nnr_throttled 4\nthrottled_usec 900\n",
    );
    group(tree, "cpu.max", "50000 100000\n");
    group(tree, "memory.max", "67108864\n");
    group(tree, "memory.current", "1000000\n");
    group(tree, "memory.events", "max 0\noom 0\noom_kill 0\n");
}

fn find(watcher: &Watcher) {
    let deadline = Instant::now() + Duration::from_secs(20);
    assert!(watcher.find_cgroup(deadline, &|| false));
}

fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !condition() {
        assert!(Instant::now() < deadline, "{what}: not within 20 s");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_container_that_never_appears_leaves_an_empty_report() {
    let tree = Tree::v2();
    let watcher = watcher(&tree);
    assert!(!watcher.find_cgroup(Instant::now() + Duration::from_millis(20), &|| false));
    assert!(!watcher.find_cgroup(Instant::now() + Duration::from_secs(60), &|| true));
    assert!(watcher.proxy_alive(), "unknown is not dead");
    let report = watcher.finish();
    assert_eq!(report.cgroup_version, Some(CgroupVersion::V2));
    assert_eq!((report.counters_last, report.limits_start), (None, None));
    assert_eq!(report.memory_at_ready, None);
}

#[test]
fn a_window_of_samples_and_both_ends() {
    let tree = Tree::v2();
    let watcher = watcher(&tree);
    running(&tree);
    find(&watcher);
    watcher.mark_ready();
    group(&tree, "memory.current", "2000000\n");
    watcher.begin_window();
    std::thread::sleep(INTERVAL * 10);
    group(
        &tree,
        "cpu.stat",
        "usage_usec 5000\nnr_periods 20\nnr_throttled 9\nthrottled_usec 950\n",
    );
    group(&tree, "cpu.max", "60000 100000\n");
    watcher.end_window();
    let report = watcher.finish();
    let (start, end) = (
        report.counters_start.expect("start"),
        report.counters_end.expect("end"),
    );
    let window = crate::probe::delta::delta(&start, &end);
    assert_eq!(window.throttled_share(), Some(0.5));
    assert_eq!(window.cpu_usage_usec, Some(4000));
    assert_eq!(
        report.memory_at_ready.expect("memory").current_bytes,
        Some(1_000_000)
    );
    assert!(!report.samples.is_empty());
    assert!(
        report
            .samples
            .iter()
            .all(|s| s.memory.current_bytes == Some(2_000_000))
    );
    let taken = report.samples.len() as u64;
    let missed = report.gaps.get("sample").copied().unwrap_or(0);
    assert!(taken + missed >= 10, "taken {taken}, missed {missed}");
    let quota = |limits: Option<crate::probe::report::LimitsInForce>| {
        limits.expect("limits").own.cpu_quota_usec
    };
    assert_eq!(quota(report.limits_start), Some(Limit::Of(50_000)));
    assert_eq!(
        quota(report.limits_end),
        Some(Limit::Of(60_000)),
        "changed during the trial"
    );
    assert!(report.probe_cpu_usec.is_some());
}

#[test]
fn a_proxy_that_dies_before_it_is_ready_leaves_its_last_values() {
    let tree = Tree::v2();
    let watcher = watcher(&tree);
    running(&tree);
    find(&watcher);
    group(&tree, "memory.events", "max 12\noom 1\noom_kill 1\n");
    group(&tree, "memory.current", "67000000\n");
    std::thread::sleep(Duration::from_millis(500));
    group(&tree, "cgroup.events", "populated 0\n");
    until("dead", || !watcher.proxy_alive());
    tree.remove(&format!("cgroup/docker/{ID}"));
    let report = watcher.finish();
    let last = report.counters_last.expect("last counters");
    assert_eq!((last.oom_kill, last.memory_max_events), (Some(1), Some(12)));
    assert_eq!(
        report.memory_at_ready.expect("memory").current_bytes,
        Some(67_000_000)
    );
    let limits = report.limits_start.expect("limits before it died");
    assert_eq!(limits.own.memory_bytes, Some(Limit::Of(64 << 20)));
    assert_eq!((report.counters_start, report.counters_end), (None, None));
}

#[test]
fn a_proxy_that_dies_in_the_window_has_no_end() {
    let tree = Tree::hybrid();
    let watcher = watcher(&tree);
    let stat = "nr_periods 10\nnr_throttled 4\nthrottled_time 9000000\n";
    tree.write(&format!("cgroup/cpu/docker/{ID}/cpu.stat"), stat);
    tree.write(&format!("cgroup/memory/docker/{ID}/cgroup.procs"), "17\n");
    tree.write(
        &format!("cgroup/memory/docker/{ID}/memory.limit_in_bytes"),
        "67108864\n",
    );
    find(&watcher);
    watcher.begin_window();
    std::thread::sleep(INTERVAL * 4);
    tree.remove(&format!("cgroup/memory/docker/{ID}"));
    until("dead", || !watcher.proxy_alive());
    watcher.end_window();
    let report = watcher.finish();
    assert!(report.limits_start.is_some());
    assert_eq!(report.limits_end, None, "there was nothing left to read");
    assert_eq!(
        report.counters_last.expect("last").throttled_usec,
        Some(9000)
    );
}

#[test]
fn a_control_without_proxy_has_the_pods_side_only() {
    let root = FsRoot::default();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("bind");
    let port = listener.local_addr().expect("address").port();
    let watcher = Watcher::new(None, port, INTERVAL, &root);
    assert!(
        watcher.find_cgroup(Instant::now(), &|| true),
        "nothing to wait for"
    );
    watcher.begin_window();
    std::thread::sleep(INTERVAL * 6);
    watcher.end_window();
    let report = watcher.finish();
    assert_eq!((report.cgroup_version, report.counters_last), (None, None));
    assert!(report.counters_end.expect("end").listen_drops.is_some());
    let queues = report.samples.iter().find_map(|s| s.queues.as_ref());
    assert_eq!(queues.expect("queues").accept, [0]);
    assert!(!report.gaps.contains_key("memory") && !report.gaps.contains_key("cpu"));
    assert!(report.host.cpus > Some(0));
}

#[test]
fn a_window_left_open_ends_with_the_report() {
    let tree = Tree::v2();
    running(&tree);
    let watcher = watcher(&tree);
    find(&watcher);
    watcher.begin_window();
    assert!(watcher.finish().counters_end.is_some());
}
