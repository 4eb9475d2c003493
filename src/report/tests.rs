use std::collections::BTreeMap;
use std::path::Path;

use fs_err as fs;

use super::*;
use crate::record::sample::{self, Shape};

mod hostile;

fn folder_with(path: &Path, records: &[TrialRecord]) -> Folder {
    let mut run = Folder::create(path).expect("create").lock().expect("lock");
    run.write_manifest(&sample::manifest(records))
        .expect("manifest");
    for record in records {
        run.append(record).expect("append");
    }
    run.folder().clone()
}

fn contents(path: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![path.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("read") {
            let entry = entry.expect("entry").path();
            if entry.is_dir() {
                folders.push(entry);
            } else {
                let name = entry
                    .strip_prefix(path)
                    .expect("prefix")
                    .to_string_lossy()
                    .into_owned();
                found.insert(name, fs::read(&entry).expect("read"));
            }
        }
    }
    found
}

fn every_kind_of_trial() -> Vec<TrialRecord> {
    let (_, mut records) = sample::quick_run();
    records.push(sample::oom_killed(Shape::limited(1000, 6), 1));
    records.push(sample::hung(Shape::limited(1000, 8), 1));
    for (position, record) in (0..).zip(&mut records) {
        record.position = position;
    }
    records
}

#[test]
fn rebuilding_is_complete_and_repeatable() {
    let dir = tempfile::tempdir().expect("dir");
    let folder = folder_with(dir.path(), &every_kind_of_trial());
    let written = rebuild(&folder).expect("rebuild");
    let first = contents(dir.path());
    for name in [
        "trials.csv",
        "summary.csv",
        "samples.csv",
        "summary.json",
        "report.md",
        "report.html",
    ] {
        assert!(
            written.contains(&dir.path().join(name)) && first.contains_key(name),
            "{name}"
        );
    }
    // What was truncated, lost or edited comes back the same.
    fs::write(dir.path().join("trials.csv"), "cell,rep").expect("write");
    fs::remove_file(dir.path().join("summary.json")).expect("remove");
    fs::remove_dir_all(dir.path().join("histograms")).expect("remove");
    rebuild(&folder).expect("rebuild");
    assert_eq!(contents(dir.path()), first);
}

/// Trials end in another order after a resume; everything that is made of them is the same.
#[test]
fn the_order_in_which_trials_ended_does_not_matter() {
    let records = every_kind_of_trial();
    let mut shuffled = records.clone();
    shuffled.rotate_left(7);
    shuffled.swap(0, 5);
    let (one, two) = (
        tempfile::tempdir().expect("dir"),
        tempfile::tempdir().expect("dir"),
    );
    let manifest = sample::manifest(&records);
    for (dir, records) in [(&one, &records), (&two, &shuffled)] {
        let folder = folder_with(dir.path(), records);
        folder
            .write(
                "manifest.json",
                &serde_json::to_vec(&manifest).expect("json"),
            )
            .expect("write");
        rebuild(&folder).expect("rebuild");
        fs::remove_file(dir.path().join("trials.jsonl")).expect("remove");
        fs::remove_file(dir.path().join(".lock")).expect("remove");
    }
    let (one, two) = (contents(one.path()), contents(two.path()));
    let differ: Vec<&String> = one.keys().filter(|k| one.get(*k) != two.get(*k)).collect();
    assert_eq!(differ, Vec::<&String>::new());
    assert_eq!(one.len(), two.len());
}

#[test]
fn a_torn_last_line_does_not_stop_a_report() {
    let dir = tempfile::tempdir().expect("dir");
    let folder = folder_with(dir.path(), &every_kind_of_trial());
    let path = dir.path().join("trials.jsonl");
    let mut bytes = fs::read(&path).expect("read");
    bytes.truncate(bytes.len() - 100);
    fs::write(&path, &bytes).expect("write");
    rebuild(&folder).expect("rebuild");
    assert_eq!(
        fs::read(&path).expect("read"),
        bytes,
        "a report changes no record"
    );
    let page = fs::read_to_string(dir.path().join("report.md")).expect("read");
    assert!(page.contains("the last line is torn"), "{page}");
}

/// A real pandas, where there is one: `SWEEP_PYTHON=/path/to/python cargo test` (see tests/reference/pandas_load.py).
#[test]
fn pandas_loads_every_csv_without_options() {
    let Some(python) = std::env::var_os("SWEEP_PYTHON") else {
        return;
    };
    let dir = tempfile::tempdir().expect("dir");
    rebuild(&folder_with(dir.path(), &every_kind_of_trial())).expect("rebuild");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/pandas_load.py");
    let ran = std::process::Command::new(python)
        .arg(script)
        .arg(dir.path())
        .output()
        .expect("python");
    assert!(
        ran.status.success(),
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );
}
