//! Runs that were cut, and folders that cannot be written to.

use super::*;

#[test]
fn a_run_that_was_cut_before_its_manifest_can_be_started_again() {
    let dir = tempfile::tempdir().expect("dir");
    drop(
        Folder::create(dir.path())
            .expect("create")
            .lock()
            .expect("lock"),
    );
    fs::write(dir.path().join(".sweep-tmp-abc"), "{\"schema\":").expect("write");
    let error = Folder::open(dir.path())
        .expect_err("no manifest")
        .to_string();
    assert!(error.contains("--out"), "{error}");

    let run = run_folder(dir.path());
    assert!(run.found().records.is_empty());
    assert!(!dir.path().join(".sweep-tmp-abc").exists());
}

#[test]
fn trials_without_a_manifest_are_nobodys_to_write_over() {
    let dir = tempfile::tempdir().expect("dir");
    let mut run = run_folder(dir.path());
    run.append(&trial(1)).expect("append");
    fs::remove_file(dir.path().join(MANIFEST)).expect("remove");
    let error = Folder::create(dir.path())
        .expect_err("has trials")
        .to_string();
    assert!(error.contains("trials.jsonl"), "{error}");
}

#[test]
fn looking_whether_a_folder_is_writable_leaves_nothing() {
    let dir = tempfile::tempdir().expect("dir");
    let folder = Folder::create(dir.path()).expect("create");
    folder.check_writable().expect("writable");
    assert_eq!(fs::read_dir(dir.path()).expect("read").count(), 0);
    fs::remove_dir(dir.path()).expect("remove");
    let error = folder.check_writable().expect_err("gone").to_string();
    assert!(error.contains(&dir.path().display().to_string()), "{error}");
}

#[test]
fn only_what_was_made_and_is_empty_is_removed_again() {
    let dir = tempfile::tempdir().expect("dir");
    let deep = dir.path().join("results/deep/run");
    Folder::create(&deep).expect("create").remove_if_empty();
    assert!(!dir.path().join("results").exists());

    let folder = Folder::create(&deep).expect("create");
    fs::write(dir.path().join("results/note"), "precious").expect("write");
    folder.remove_if_empty();
    assert!(dir.path().join("results/note").exists() && !dir.path().join("results/deep").exists());

    let run = run_folder(&deep);
    run.folder().remove_if_empty();
    assert!(deep.join(MANIFEST).exists());

    let before = dir.path().join("before");
    fs::create_dir(&before).expect("folder");
    Folder::create(&before).expect("create").remove_if_empty();
    assert!(before.exists());
}

#[test]
fn what_the_operating_system_refuses_comes_with_what_helps() {
    let words = |kind| RecordError::from(std::io::Error::from(kind)).to_string();
    assert!(words(std::io::ErrorKind::StorageFull).ends_with("; make room on that file system"));
    assert!(words(std::io::ErrorKind::ReadOnlyFilesystem).contains("--out"));
    assert!(!words(std::io::ErrorKind::NotFound).contains(';'));
}

#[test]
fn why_a_trial_was_tried_again_is_kept_and_older_records_have_none() {
    let dir = tempfile::tempdir().expect("dir");
    let mut run = run_folder(dir.path());
    run.append(&trial(1)).expect("append");
    let text = fs::read_to_string(dir.path().join(TRIALS)).expect("read");
    assert!(
        !text.contains("retried_because"),
        "a trial without a retry is written as before"
    );
    let mut retried = trial(2);
    (retried.attempts, retried.retried_because) = (2, Some("the agent was removed".to_owned()));
    run.append(&retried).expect("append");
    let trials = run.folder().trials().expect("trials").records;
    let column = columns::by_name("retried_because").expect("a column");
    let value = |trial| {
        column.get(&columns::Row {
            trial,
            judgement: None,
        })
    };
    assert_eq!(value(&trials[0]), columns::Cell::Empty);
    assert_eq!(
        value(&trials[1]),
        columns::Cell::Text("the agent was removed".to_owned())
    );
}

#[test]
fn what_is_to_run_again_is_set_aside_and_not_lost() {
    let dir = tempfile::tempdir().expect("dir");
    let mut run = run_folder(dir.path());
    for repetition in 1..=3 {
        run.append(&trial(repetition)).expect("append");
    }
    drop(run);
    append_raw(dir.path(), b"{");
    let mut run = reopened(dir.path());
    let second = |t: &trial::TrialRecord| (t.repetition == 2).then(|| "noise".to_owned());
    let aside = run.set_aside(second).expect("set aside");
    let key = TrialKey::of(&trial(2));
    assert_eq!(aside, [(key.clone(), "noise".to_owned())].into());
    assert!(!run.found().finished().contains(&key));
    assert_eq!(run.set_aside(second).expect("nothing left"), [].into());
    assert_eq!(run.found().notices.len(), 1, "the torn line is still told");
    let moved = trials::read(&dir.path().join(SET_ASIDE)).expect("read");
    assert_eq!(moved.finished(), [key.clone()].into());

    // What is appended goes into the new file.
    run.append(&trial(2)).expect("append");
    drop(run);
    let trials = Folder::open(dir.path()).expect("open").trials();
    let order: Vec<u32> = trials
        .expect("trials")
        .records
        .iter()
        .map(|t| t.repetition)
        .collect();
    assert_eq!(order, [1, 3, 2]);
}

#[test]
fn a_move_that_was_cut_is_made_again() {
    let dir = tempfile::tempdir().expect("dir");
    let mut run = run_folder(dir.path());
    run.append(&trial(1)).expect("append");
    drop(run);
    // As if the process had died between the two files.
    fs::copy(dir.path().join(TRIALS), dir.path().join(SET_ASIDE)).expect("copy");
    let mut run = reopened(dir.path());
    run.set_aside(|_| Some("noise".to_owned()))
        .expect("set aside");
    assert!(run.found().records.is_empty());
    let text = fs::read_to_string(dir.path().join(SET_ASIDE)).expect("read");
    assert_eq!(text.lines().count(), 2);
}
