//! Results folders that cannot be written to: refused at the start, or left whole when they fill up in mid-run.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::support::{
    Bench, assert_code, assert_measured, assert_nothing_left, exit_code_for, matrix,
};

const RUN: [&str; 5] = ["run", "matrix.toml", "--json", "--out", "out"];
const RESUME: [&str; 4] = ["run", "matrix.toml", "--resume", "out"];

/// A small file system of its own.
struct Disk(PathBuf);

impl Disk {
    fn mount(path: PathBuf) -> Self {
        fs_err::create_dir(&path).expect("create");
        let disk = Self(path);
        disk.command("mount", &["-t", "tmpfs", "-o", "size=2m", "tmpfs"]);
        disk
    }

    fn make_read_only(&self) {
        self.command("mount", &["-o", "remount,ro"]);
    }

    fn command(&self, program: &str, args: &[&str]) {
        let output = Command::new(program).args(args).arg(&self.0).output();
        let output = output.expect("start it; this test needs root");
        assert!(
            output.status.success(),
            "{program} {args:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }

    /// Takes all the room there is; gives it back when the file is removed.
    fn fill(&self) -> PathBuf {
        let path = self.0.join("filler");
        let mut file = fs_err::File::create(&path).expect("create");
        let mut size = 64 * 1024;
        while size > 0 {
            if file.write_all(&vec![b'x'; size]).is_err() {
                size /= 2;
            }
        }
        path
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

fn assert_says(output: &Output, needles: &[&str]) {
    let text = String::from_utf8_lossy(&output.stderr);
    for needle in needles {
        assert!(text.contains(needle), "{needle} is not in:\n{text}");
    }
}

/// Containers of ours that were created since then, by the engine's own account.
fn created_since(start: &jiff::Timestamp) -> String {
    let since = start.as_second().to_string();
    let until = jiff::Timestamp::now().as_second() + 1;
    let output = Command::new("docker")
        .args(["events", "--since", &since, "--until", &until.to_string()])
        .args(["--filter", "event=create", "--filter", "label=sweep.run"])
        .output()
        .expect("docker");
    assert!(output.status.success());
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn lines(path: &Path) -> Vec<String> {
    let text = fs_err::read_to_string(path).expect("readable");
    assert!(text.ends_with('\n'), "only whole lines");
    text.lines().map(str::to_owned).collect()
}

#[test]
fn engine_a_disk_that_fills_up_stops_the_run_and_loses_nothing() {
    let bench = Bench::new(&matrix(3, "cpu = [\"1\"]", ""));
    let disk = Disk::mount(bench.results());
    let running = bench.start(&RUN);
    let run = running.run_id();
    running.until("trial_ended");
    let filler = disk.fill();
    let (code, stderr) = running.end();
    assert_eq!(code, Some(3), "{stderr}");
    for needle in [
        "out/trials.jsonl",
        "No space left on device",
        "make room",
        "--resume out",
    ] {
        assert!(stderr.contains(needle), "{needle} is not in:\n{stderr}");
    }
    assert_nothing_left(&run);
    let path = bench.results().join("trials.jsonl");
    let kept = lines(&path);
    assert_eq!(bench.trials().len(), kept.len(), "every line is a trial");
    assert!(!kept.is_empty() && kept.len() < 3, "{} trials", kept.len());

    let start = jiff::Timestamp::now();
    let refused = bench.sweep(&RESUME);
    assert_code(&refused, 3);
    assert_says(&refused, &["No space left on device", "make room"]);
    assert_eq!(created_since(&start), "", "a trial that could not be kept");

    fs_err::remove_file(filler).expect("remove");
    let output = bench.sweep(&RESUME);
    let trials = bench.trials();
    assert_code(&output, exit_code_for(&trials));
    assert_eq!(trials.len(), 3);
    trials.iter().for_each(assert_measured);
    assert_eq!(lines(&path)[..kept.len()], kept, "nothing is run twice");
    let csv = fs_err::read_to_string(bench.results().join("trials.csv")).expect("trials.csv");
    assert_eq!(csv.lines().count(), 4);
}

#[test]
fn engine_a_read_only_folder_is_refused_before_anything_starts() {
    let bench = Bench::new(&matrix(1, "cpu = [\"1\"]", ""));
    let disk = Disk::mount(bench.results());
    disk.make_read_only();
    let start = jiff::Timestamp::now();
    for out in ["out", "out/below"] {
        let output = bench.sweep(&["run", "matrix.toml", "--out", out]);
        assert_code(&output, 3);
        assert_says(&output, &["Read-only file system", "`out", "--out"]);
    }
    assert_eq!(created_since(&start), "", "something was started");
}
