use std::io::Write as _;
use std::path::Path;

use fs_err as fs;

use super::sample::{self, Shape};
use super::*;

mod cut;
mod damaged;

fn run_folder(path: &Path) -> RunFolder {
    let folder = Folder::create(path).expect("create");
    let run = folder.lock().expect("lock");
    run.write_manifest(&sample::manifest(&[]))
        .expect("manifest");
    run
}

fn reopened(path: &Path) -> RunFolder {
    Folder::open(path).expect("open").lock().expect("lock")
}

fn trial(repetition: u32) -> trial::TrialRecord {
    sample::valid(Shape::limited(250, 64), repetition)
}

fn append_raw(path: &Path, bytes: &[u8]) {
    let mut file = fs::OpenOptions::new()
        .append(true)
        .open(path.join(TRIALS))
        .expect("open");
    file.write_all(bytes).expect("write");
}

#[test]
fn what_was_written_is_read_back() {
    let dir = tempfile::tempdir().expect("dir");
    let path = dir.path().join("deep/run");
    let mut run = run_folder(&path);
    run.append(&trial(1)).expect("append");
    run.append(&sample::hung(Shape::limited(250, 64), 2))
        .expect("append");
    drop(run);
    let folder = Folder::open(&path).expect("open");
    assert_eq!(folder.manifest().expect("manifest"), sample::manifest(&[]));
    let trials = folder.trials().expect("trials");
    assert_eq!(trials.finished().len(), 2);
    assert!(trials.notices.is_empty());
    let json = |t| serde_json::to_string(t).expect("json");
    assert_eq!(json(&trials.records[0]), json(&trial(1)));
}

#[test]
fn a_folder_with_something_in_it_is_refused() {
    let dir = tempfile::tempdir().expect("dir");
    fs::write(dir.path().join("thesis.tex"), "precious").expect("write");
    let error = Folder::create(dir.path()).expect_err("foreign").to_string();
    assert!(
        error.contains("\"thesis.tex\"") && error.contains("--out"),
        "{error}"
    );
    assert!(matches!(
        Folder::open(dir.path()),
        Err(RecordError::NotAFolder { .. })
    ));
    let run = dir.path().join("run");
    drop(run_folder(&run));
    let error = Folder::create(&run).expect_err("exists").to_string();
    assert!(error.contains("--resume"), "{error}");
}

#[test]
fn a_folder_in_use_says_by_whom() {
    let dir = tempfile::tempdir().expect("dir");
    let run = run_folder(dir.path());
    let error = Folder::open(dir.path())
        .expect("open")
        .lock()
        .expect_err("locked");
    let RecordError::Locked { owner, .. } = &error else {
        panic!("{error}")
    };
    assert_eq!(owner.pid, std::process::id());
    assert!(
        error
            .to_string()
            .contains(&format!("process {} on ", std::process::id())),
        "{error}"
    );
    drop(run);
    Folder::open(dir.path())
        .expect("open")
        .lock()
        .expect("free again");
}

#[test]
fn a_torn_last_line_is_cut_off_with_a_notice() {
    for torn in [
        &b"{\"schema\":1,\"run\":\"01-qu"[..],
        b"{",
        b"{\"schema\":1,\0\0\0\n",
        b"\xff\xfe",
    ] {
        let dir = tempfile::tempdir().expect("dir");
        let mut run = run_folder(dir.path());
        run.append(&trial(1)).expect("append");
        drop(run);
        let whole = fs::read(dir.path().join(TRIALS)).expect("read");
        append_raw(dir.path(), torn);

        let folder = Folder::open(dir.path()).expect("open");
        let seen = folder.trials().expect("read only");
        assert_eq!((seen.records.len(), seen.notices.len()), (1, 1));
        assert!(
            seen.notices[0].contains("trials.jsonl:2: the last line is torn"),
            "{:?}",
            seen.notices
        );

        let mut run = folder.lock().expect("lock");
        assert_eq!(run.found().notices.len(), 1);
        assert_eq!(fs::read(dir.path().join(TRIALS)).expect("read"), whole);
        run.append(&trial(2)).expect("append");
        assert_eq!(run.folder().trials().expect("trials").records.len(), 2);
    }
}

#[test]
fn every_cut_of_the_file_leaves_the_whole_trials() {
    let dir = tempfile::tempdir().expect("dir");
    let mut run = run_folder(dir.path());
    for repetition in 1..=2 {
        run.append(&trial(repetition)).expect("append");
    }
    drop(run);
    let path = dir.path().join(TRIALS);
    let whole = fs::read(&path).expect("read");
    let first = whole.iter().position(|&b| b == b'\n').expect("line") + 1;
    for cut in (0..whole.len())
        .step_by(997)
        .chain([first - 1, first, first + 1, whole.len() - 1])
    {
        fs::write(&path, &whole[..cut]).expect("write");
        let run = reopened(dir.path());
        // A line that lacks only its end is whole.
        let want = usize::from(cut >= first - 1) + usize::from(cut >= whole.len() - 1);
        assert_eq!(run.found().records.len(), want, "cut at {cut}");
        let kept = fs::read(&path).expect("read");
        assert!(
            whole.starts_with(&kept) && (kept.is_empty() || kept.ends_with(b"\n")),
            "cut at {cut}"
        );
    }
}

#[test]
fn a_newer_schema_is_refused_with_what_it_needs() {
    let dir = tempfile::tempdir().expect("dir");
    let mut manifest = sample::manifest(&[]);
    (manifest.schema, manifest.sweep_version) = (9, "3.4.0".to_owned());
    let run = Folder::create(dir.path())
        .expect("create")
        .lock()
        .expect("lock");
    run.write_manifest(&manifest).expect("write");
    let error = run.folder().manifest().expect_err("newer").to_string();
    assert!(
        error.contains("needs sweep 3.4.0 or newer: it has schema 9"),
        "{error}"
    );
    append_raw(dir.path(), b"{\"schema\":9,\"shape\":\"unknown\"}\n");
    let error = run.folder().trials().expect_err("newer").to_string();
    assert!(error.contains("schema 9"), "{error}");
}

#[test]
fn a_trial_that_could_not_be_read_back_is_not_written() {
    let dir = tempfile::tempdir().expect("dir");
    let mut run = run_folder(dir.path());
    let mut bad = trial(1);
    bad.agent
        .as_mut()
        .and_then(|a| a.load.as_mut())
        .expect("load")
        .achieved_rate_rps = f64::NAN;
    run.append(&bad).expect_err("NaN");
    assert_eq!(fs::read(dir.path().join(TRIALS)).expect("read"), b"");
}

#[test]
fn leftovers_of_a_killed_writer_go_and_results_are_readable_by_others() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().expect("dir");
    drop(run_folder(dir.path()));
    let below = dir.path().join("histograms/cell");
    fs::create_dir_all(&below).expect("folder");
    for folder in [dir.path(), &below] {
        fs::write(folder.join(".sweep-tmp-abc"), "half").expect("write");
    }
    let run = reopened(dir.path());
    for folder in [dir.path(), &below] {
        assert!(!folder.join(".sweep-tmp-abc").exists());
    }
    let written = run.folder().write("histograms/x.hdr", b"y").expect("write");
    let mode = fs::metadata(&written)
        .expect("metadata")
        .permissions()
        .mode();
    let own = fs::metadata(dir.path().join(TRIALS))
        .expect("metadata")
        .permissions()
        .mode();
    assert_eq!(mode, own, "as the umask allows");
}

/// The file size limit of a process makes a write fail in the middle of a line, as a full disk does. The limit holds for
/// the whole process, so this test runs itself again as a child under it.
#[test]
fn a_write_that_fails_half_way_is_taken_back() {
    const CHILD: &str = "SWEEP_TEST_SMALL_DISK";
    if let Some(path) = std::env::var_os(CHILD) {
        let mut run = reopened(Path::new(&path));
        let failed = (1..1000).find_map(|repetition| run.append(&trial(repetition)).err());
        let error = failed.expect("the limit is reached").to_string();
        assert!(
            error.contains("trials.jsonl") && error.contains("File too large"),
            "{error}"
        );
        return;
    }
    let dir = tempfile::tempdir().expect("dir");
    drop(run_folder(dir.path()));
    let status = std::process::Command::new("sh")
        .args(["-c", "ulimit -f 1000; trap '' XFSZ; exec \"$0\" --exact record::tests::a_write_that_fails_half_way_is_taken_back"])
        .arg(std::env::current_exe().expect("exe"))
        .env(CHILD, dir.path())
        .output()
        .expect("child");
    assert!(
        status.status.success(),
        "{}",
        String::from_utf8_lossy(&status.stdout)
    );
    let left = fs::read(dir.path().join(TRIALS)).expect("read");
    assert!(left.ends_with(b"}\n"), "only whole lines");
    let trials = Folder::open(dir.path())
        .expect("open")
        .trials()
        .expect("trials");
    assert!(!trials.records.is_empty() && trials.notices.is_empty());
}
