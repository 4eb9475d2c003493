//! From the texts of the kernel's files and of the engine's answers to the words that a reader gets.

use super::*;
use crate::probe::fixture::{ID, Tree};
use crate::probe::limits_of_container;
use crate::probe::report::LimitsInForce;
use crate::record::sample::{self, MIB, Shape};

const NONE_V1: &str = "9223372036854771712\n";

/// 500m and 64 MiB without swap, on cgroup v1; each file by its hierarchy.
const AS_ASKED_V1: [(&str, &str, &str); 4] = [
    ("cpu", "cpu.cfs_quota_us", "50000\n"),
    ("cpu", "cpu.cfs_period_us", "100000\n"),
    ("memory", "memory.limit_in_bytes", "67108864\n"),
    ("memory", "memory.memsw.limit_in_bytes", "67108864\n"),
];
/// The same on cgroup v2.
const AS_ASKED_V2: [(&str, &str); 3] = [
    ("cpu.max", "50000 100000\n"),
    ("memory.max", "67108864\n"),
    ("memory.swap.max", "0\n"),
];

fn v1(parent: &str, changes: &[(&str, &str, &str)]) -> Tree {
    let tree = Tree::hybrid();
    let group = format!("{parent}/{ID}");
    for (mount, file, text) in [&AS_ASKED_V1[..], changes].concat() {
        tree.write(&format!("cgroup/{mount}{group}/{file}"), text);
    }
    tree
}

fn v2(parent: &str, changes: &[(&str, &str)]) -> Tree {
    let tree = Tree::v2();
    for (file, text) in [&AS_ASKED_V2[..], changes].concat() {
        tree.write(&format!("cgroup{parent}/docker-{ID}.scope/{file}"), text);
    }
    tree
}

fn in_force(tree: &Tree) -> LimitsInForce {
    limits_of_container(&tree.root, ID).expect("the fixture has the container")
}

/// What is said of a trial that asked for 500m and 64 MiB, and found this at the start and this at the end.
fn found(start: LimitsInForce, end: LimitsInForce, host_swap: u64) -> Findings {
    let mut trial = sample::valid(Shape::limited(500, 64), 1);
    let probe = &mut trial.agent.as_mut().expect("agent").probe;
    probe.host.swap_total_bytes = Some(host_swap);
    (probe.limits_start, probe.limits_end) = (Some(start), Some(end));
    findings(&trial)
}

#[track_caller]
fn assert_reasons(tree: &Tree, expected: &[&str]) {
    let limits = in_force(tree);
    assert_eq!(found(limits.clone(), limits, 512 * MIB).reasons, expected);
}

#[test]
fn limits_as_asked_are_nothing_to_speak_of() {
    assert_reasons(&v1("/docker", &[]), &[]);
    assert_reasons(&v2("/system.slice", &[]), &[]);
}

#[test]
fn limits_that_the_kernel_does_not_hold() {
    assert_reasons(
        &v1("/docker", &[("cpu", "cpu.cfs_quota_us", "-1\n")]),
        &["cpu limit not applied: cpu.max is max, wanted 50000 of 100000 usec"],
    );
    assert_reasons(
        &v1(
            "/docker",
            &[
                ("memory", "memory.limit_in_bytes", NONE_V1),
                ("memory", "memory.memsw.limit_in_bytes", NONE_V1),
            ],
        ),
        &[
            "memory limit not applied: memory.max is max, wanted 67108864",
            "swap limit not applied: memory.swap.max is max, wanted 0",
        ],
    );
    // Docker's default where no swap limit is given: as much again.
    assert_reasons(
        &v1(
            "/docker",
            &[("memory", "memory.memsw.limit_in_bytes", "134217728\n")],
        ),
        &["swap limit differs: 67108864 bytes in force, 0 asked"],
    );
    // Seen in the wild: `inspect` echoes MemorySwap == Memory, and the kernel swaps without end.
    assert_reasons(
        &v2("/system.slice", &[("memory.swap.max", "max\n")]),
        &["swap limit not applied: memory.swap.max is max, wanted 0"],
    );
    assert_reasons(
        &v2(
            "/system.slice",
            &[("cpu.max", "max 100000\n"), ("memory.max", "max\n")],
        ),
        &[
            "cpu limit not applied: cpu.max is max, wanted 50000 of 100000 usec",
            "memory limit not applied: memory.max is max, wanted 67108864",
        ],
    );
}

#[test]
fn a_file_that_is_not_there_is_unknown_and_not_unlimited() {
    let tree = v2("/system.slice", &[]);
    tree.remove_file(&format!("cgroup/system.slice/docker-{ID}.scope/cpu.max"));
    assert_reasons(&tree, &["cpu limit unknown: cpu.max could not be read"]);
    let tree = v1("/docker", &[]);
    tree.remove_file(&format!(
        "cgroup/memory/docker/{ID}/memory.memsw.limit_in_bytes"
    ));
    assert_reasons(
        &tree,
        &["swap limit not applied: swap accounting is off (boot with swapaccount=1), wanted 0"],
    );
    let limits = in_force(&tree);
    let without = found(limits.clone(), limits, 0);
    assert_eq!(without, Findings::default(), "there is nothing to swap to");
}

#[test]
fn an_ancestor_that_caps_lower() {
    let tree = v1("/docker", &[]);
    tree.write("cgroup/cpu/docker/cpu.cfs_quota_us", "20000\n");
    tree.write("cgroup/cpu/docker/cpu.cfs_period_us", "100000\n");
    tree.write("cgroup/memory/docker/memory.limit_in_bytes", "33554432\n");
    assert_reasons(
        &tree,
        &[
            "a parent cgroup caps cpu lower: /docker allows 200m, 500m asked",
            "a parent cgroup caps memory lower: /docker allows 33554432 bytes, 67108864 asked",
        ],
    );
    let tree = v2("/ci.slice", &[]);
    tree.write("cgroup/ci.slice/cpu.max", "40000 100000\n");
    tree.write("cgroup/ci.slice/memory.max", "50331648\n");
    assert_reasons(
        &tree,
        &[
            "a parent cgroup caps cpu lower: /ci.slice allows 400m, 500m asked",
            "a parent cgroup caps memory lower: /ci.slice allows 50331648 bytes, 67108864 asked",
        ],
    );
}

#[test]
fn a_limit_that_changed_between_start_and_end() {
    let start = in_force(&v1("/docker", &[]));
    let raised = [
        ("cpu", "cpu.cfs_quota_us", "200000\n"),
        ("memory", "memory.limit_in_bytes", "134217728\n"),
        ("memory", "memory.memsw.limit_in_bytes", "134217728\n"),
    ];
    let end = in_force(&v1("/docker", &raised));
    assert_eq!(
        found(start, end, 512 * MIB).reasons,
        [
            "cpu quota changed during the trial: 50000 at the start, 200000 at the end",
            "memory limit changed during the trial: 67108864 at the start, 134217728 at the end",
        ]
    );
    let start = in_force(&v2("/system.slice", &[]));
    let end = in_force(&v2("/system.slice", &[("cpu.max", "max 100000\n")]));
    assert_eq!(
        found(start, end, 512 * MIB).reasons,
        ["cpu quota changed during the trial: 50000 at the start, max at the end"]
    );
}

/// Every warning that engines are known to answer `create` with (moby `daemon/daemon_unix.go`), and whether it means that
/// a limit is not in force.
#[test]
fn what_engines_warn_of_at_create() {
    let dropped = [
        "Your kernel does not support memory limit capabilities or the cgroup is not mounted. Limitation discarded.",
        "Your kernel does not support swap limit capabilities or the cgroup is not mounted. Memory limited without swap.",
        "Your kernel does not support CPU CFS scheduler. CPU period/quota discarded.",
        "Your kernel does not support CPU cfs period or the cgroup is not mounted. Period discarded.",
        "Your kernel does not support CPU cfs quota or the cgroup is not mounted. Quota discarded.",
        "Your kernel does not support cpuset or the cgroup is not mounted. Cpuset discarded.",
    ];
    let harmless = [
        "IPv4 forwarding is disabled. Networking will not work.",
        "The requested image's platform (linux/arm64) does not match the detected host platform (linux/amd64) and no specific platform was requested",
    ];
    let of = |warning: &str| {
        let mut trial = sample::valid(Shape::limited(500, 64), 1);
        let probe = &mut trial.agent.as_mut().expect("agent").probe;
        probe.host.swap_total_bytes = Some(512 * MIB);
        trial.engine_warnings = vec![warning.to_owned()];
        findings(&trial)
    };
    for warning in dropped {
        let wanted = format!("limit dropped by the engine: {warning}");
        assert_eq!(of(warning).reasons, [wanted]);
    }
    for warning in harmless {
        let found = of(warning);
        assert_eq!(found.reasons, Vec::<String>::new());
        assert_eq!(found.notices, [format!("engine: {warning}")]);
    }
}
