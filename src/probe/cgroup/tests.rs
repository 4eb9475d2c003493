use super::*;
use crate::probe::fixture::{ID, Tree};

#[test]
fn a_hybrid_host_is_v1() {
    let tree = Tree::hybrid();
    let found = Hierarchies::detect(&tree.root);
    assert_eq!(found.version, CgroupVersion::V1);
    assert_eq!(found.memory, Some(tree.root.cgroup.join("memory")));
    assert_eq!(found.unified, Some(tree.root.cgroup.join("unified")));
}

#[test]
fn controllers_that_share_a_hierarchy() {
    let tree = Tree::new(&["cgroup/cpu,cpuacct/x", "cgroup/memory/x"]);
    let found = Hierarchies::detect(&tree.root);
    let shared = Some(tree.root.cgroup.join("cpu,cpuacct"));
    assert_eq!((&found.cpu, &found.cpuacct), (&shared, &shared));
    assert_eq!(found.unified, None);
}

#[test]
fn the_unified_hierarchy_is_v2() {
    let tree = Tree::v2();
    let found = Hierarchies::detect(&tree.root);
    assert_eq!(found.version, CgroupVersion::V2);
    assert_eq!(found.memory, Some(tree.root.cgroup.clone()));
}

fn open(tree: &Tree, path: &str) -> Group {
    let location = Location {
        path: path.to_owned(),
        found_in: Mount::Memory,
    };
    Group::open(&Hierarchies::detect(&tree.root), &location)
}

#[test]
fn all_files_of_a_v1_group_together() {
    let tree = Tree::hybrid();
    let group = format!("docker/{ID}");
    let write = |mount: &str, file: &str, text: &str| {
        tree.write(&format!("cgroup/{mount}/{group}/{file}"), text);
    };
    write(
        "cpu",
        "cpu.stat",
        "nr_periods 11\nnr_throttled 10\nthrottled_time 777506878\n",
    );
    write("cpuacct", "cpuacct.usage", "123456789\n");
    write("memory", "memory.usage_in_bytes", "2000000\n");
    write("memory", "memory.max_usage_in_bytes", "3000000\n");
    write("memory", "memory.failcnt", "4\n");
    write(
        "memory",
        "memory.oom_control",
        "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n",
    );
    write(
        "memory",
        "memory.stat",
        "total_rss 61440\ntotal_cache 1605632\ntotal_swap 0\ntotal_pgfault 9\n",
    );
    write(
        "unified",
        "cpu.pressure",
        "some avg10=0.00 avg60=0.00 avg300=0.00 total=77\n",
    );
    let mut group = open(&tree, &format!("/{group}"));
    let mut buffer = Vec::new();
    let Reading {
        counters, memory, ..
    } = group.read(true, &mut buffer);
    assert_eq!(counters.cpu_usage_usec, Some(123_456));
    assert_eq!(counters.throttled_usec, Some(777_506));
    assert_eq!(
        (counters.memory_max_events, counters.oom_kill),
        (Some(4), Some(2))
    );
    assert_eq!(counters.oom, None, "v1 does not count it");
    assert_eq!(counters.psi_usec.get("cpu_some"), Some(&77));
    assert_eq!(
        (memory.current_bytes, memory.peak_bytes),
        (Some(2_000_000), Some(3_000_000))
    );
    assert_eq!(
        (memory.anon_bytes, memory.file_bytes),
        (Some(61_440), Some(1_605_632))
    );
    assert_eq!((memory.sock_bytes, memory.swap_peak_bytes), (None, None));
    assert!(group.read(false, &mut buffer).counters.psi_usec.is_empty());
}

#[test]
fn all_files_of_a_v2_group_together() {
    let tree = Tree::v2();
    let group = format!("system.slice/docker-{ID}.scope");
    let write = |file: &str, text: &str| tree.write(&format!("cgroup/{group}/{file}"), text);
    write(
        "cpu.stat",
        "usage_usec 5000\nnr_periods 7\nnr_throttled 3\nthrottled_usec 91\n",
    );
    write("memory.current", "18800640\n");
    write(
        "memory.stat",
        "anon 14000000\nfile 60000000\nkernel 400000\nsock 4096\npgmajfault 400\npgscan 12\npgsteal 11\n",
    );
    write(
        "memory.events",
        "low 0\nhigh 0\nmax 56\noom 1\noom_kill 1\n",
    );
    write("memory.swap.current", "7000000\n");
    let mut group = open(&tree, &format!("/{group}"));
    let Reading {
        counters, memory, ..
    } = group.read(true, &mut Vec::new());
    assert_eq!(counters.throttled_usec, Some(91));
    assert_eq!((counters.pgscan, counters.pgsteal), (Some(12), Some(11)));
    assert_eq!(
        (counters.memory_max_events, counters.oom),
        (Some(56), Some(1))
    );
    assert_eq!(
        (memory.sock_bytes, memory.kernel_bytes),
        (Some(4096), Some(400_000))
    );
    assert_eq!(memory.swap_bytes, Some(7_000_000));
    assert_eq!(
        memory.peak_bytes, None,
        "an older kernel has no memory.peak"
    );
}

#[test]
fn a_group_lives_from_its_first_process_to_its_last() {
    let tree = Tree::v2();
    let events = format!("cgroup/docker/{ID}/cgroup.events");
    tree.write(&events, "populated 0\nfrozen 0\n");
    let mut group = open(&tree, &format!("/docker/{ID}"));
    let mut buffer = Vec::new();
    assert!(group.is_alive(&mut buffer), "not begun is not dead");
    tree.write(&events, "populated 1\nfrozen 0\n");
    assert!(group.is_alive(&mut buffer));
    tree.write(&events, "populated 0\nfrozen 0\n");
    assert!(!group.is_alive(&mut buffer));
}

#[test]
fn a_v1_group_is_dead_when_empty_or_removed() {
    let tree = Tree::hybrid();
    let procs = format!("cgroup/memory/docker/{ID}/cgroup.procs");
    tree.write(&procs, "");
    let mut group = open(&tree, &format!("/docker/{ID}"));
    let mut buffer = Vec::new();
    assert!(group.is_alive(&mut buffer));
    tree.write(&procs, "17\n0\n18\n");
    assert!(group.is_alive(&mut buffer));
    assert_eq!(
        group.pids(&mut Vec::new()),
        [17, 18],
        "0 is a process that this namespace cannot name"
    );
    tree.remove(&format!("cgroup/memory/docker/{ID}"));
    assert!(!group.is_alive(&mut buffer));
}

#[test]
fn processes_of_podman_are_one_level_down() {
    let tree = Tree::v2();
    let group = format!("machine.slice/libpod-{ID}.scope");
    tree.write(&format!("cgroup/{group}/cgroup.events"), "populated 1\n");
    tree.write(&format!("cgroup/{group}/cgroup.procs"), "");
    tree.write(&format!("cgroup/{group}/container/cgroup.procs"), "42\n");
    let mut group = open(&tree, &format!("/{group}"));
    assert!(group.is_alive(&mut Vec::new()));
    assert_eq!(group.pids(&mut Vec::new()), [42]);
}
