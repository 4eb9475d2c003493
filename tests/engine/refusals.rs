//! What is refused before anything starts, with its remedy and its exit code.

use crate::support::{Bench, assert_code, containers, matrix};

#[test]
fn engine_a_bad_matrix_is_refused_with_every_fault_and_nothing_starts() {
    let bench =
        Bench::new("[matrix]\ncpu = [0.001, \"1\", \"1000m\"]\nmemory = []\n[load]\nrat = 5\n");
    let output = bench.sweep(&["run", "matrix.toml", "--out", "out"]);
    assert_code(&output, 2);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    for needle in ["0.001", "1000m", "memory", "rat", "rate"] {
        assert!(text.contains(needle), "{needle} is not in:\n{text}");
    }
    assert!(
        !bench.results().exists(),
        "no results folder for a refused matrix"
    );
}

#[test]
fn engine_more_cpus_than_the_engine_has_are_refused() {
    let bench = Bench::new(&matrix(1, "cpu = [\"1\", \"5000\"]", ""));
    let output = bench.sweep(&["run", "matrix.toml", "--out", "out"]);
    assert_code(&output, 2);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        text.contains("5000") && text.contains("matrix.toml:8:"),
        "with value and line:\n{text}"
    );
}

#[test]
fn engine_an_image_that_is_nowhere_is_refused_with_the_remedy() {
    let text = matrix(1, "cpu = [\"1\"]", "").replace(crate::support::ENVOY, "sweep-test-absent:1");
    let bench = Bench::new(&text);
    let output = bench.sweep(&["run", "matrix.toml", "--out", "out"]);
    assert_code(&output, 3);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        text.contains("sweep-test-absent:1") && text.contains("sweep image import"),
        "{text}"
    );
    assert!(containers("name=sweep-test-absent").is_empty());
    assert!(
        !bench.results().exists(),
        "no results folder for a refused run"
    );
}

#[test]
fn engine_none_is_said_with_what_would_help() {
    let bench = Bench::new(&matrix(1, "cpu = [\"1\"]", ""));
    let output = bench
        .command(&["run", "matrix.toml"])
        .env("DOCKER_HOST", "unix:///nowhere/docker.sock")
        .output()
        .expect("start sweep");
    assert_code(&output, 3);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        text.contains("/nowhere/docker.sock") && text.contains("DOCKER_HOST"),
        "{text}"
    );
}

#[test]
fn engine_whose_socket_may_not_be_used_is_said_with_the_group() {
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::process::CommandExt as _;
    const NOBODY: u32 = 65_534;
    let bench = Bench::new(&matrix(1, "cpu = [\"1\"]", ""));
    // Where nobody can reach it, and run by nobody; this test needs root.
    let readable = std::fs::Permissions::from_mode(0o755);
    fs_err::set_permissions(bench.path(""), readable.clone()).expect("chmod");
    let program = bench.path("sweep");
    fs_err::copy(env!("CARGO_BIN_EXE_sweep"), &program).expect("copy");
    fs_err::set_permissions(&program, readable).expect("chmod");
    let output = std::process::Command::new(program)
        .args(["run", "matrix.toml", "--out", "out"])
        .current_dir(bench.path(""))
        .uid(NOBODY)
        .gid(NOBODY)
        .output()
        .expect("start sweep");
    assert_code(&output, 3);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        text.contains("ermission denied") && text.contains("usermod -aG docker"),
        "{text}"
    );
}
