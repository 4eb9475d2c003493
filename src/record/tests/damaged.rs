//! Lines of `trials.jsonl` that cannot be used.

use super::*;

/// What is told of a file that holds a trial and then these lines.
fn told(dir: &Path, lines: &[&[u8]]) -> String {
    let mut run = run_folder(dir);
    run.append(&trial(1)).expect("append");
    for line in lines {
        append_raw(dir, line);
        append_raw(dir, b"\n");
    }
    let error = run.folder().trials().expect_err("damaged").to_string();
    error.replace(&format!("{}/", dir.display()), "")
}

fn told_of(lines: &[&[u8]]) -> String {
    told(tempfile::tempdir().expect("dir").path(), lines)
}

#[test]
fn a_damaged_line_is_named_with_one_place() {
    insta::assert_snapshot!(told_of(&[b"{\"schema\":1,\"run\":7}"]), @"trials.jsonl:2:19: not a trial: invalid type: integer `7`, expected a string; restore the line from a copy or delete it, and its trial runs again on --resume");
    insta::assert_snapshot!(told_of(&[b"{\"schema\":1,", b"{}"]), @r"
    trials.jsonl: 2 lines cannot be used; restore them from a copy or delete them, and trials that are missing then run again on --resume:
      trials.jsonl:2:12: not a trial: EOF while parsing a value
      trials.jsonl:3:2: not a trial: missing field `schema`
    ");
}

#[test]
fn all_damaged_lines_are_told_but_no_endless_list() {
    let dir = tempfile::tempdir().expect("dir");
    let first = serde_json::to_vec(&trial(1)).expect("json");
    let mut lines: Vec<&[u8]> = vec![b"nonsense", &first];
    lines.extend([&b"{"[..]; 6]);
    insta::assert_snapshot!(told(dir.path(), &lines), @r"
    trials.jsonl: 8 lines cannot be used; restore them from a copy or delete them, and trials that are missing then run again on --resume:
      trials.jsonl:2:2: not a trial: expected ident
      trials.jsonl:3: repetition 1 of cpu=250m,memory=64Mi,swap=0 stands on line 1 already
      trials.jsonl:4:1: not a trial: EOF while parsing an object
      trials.jsonl:5:1: not a trial: EOF while parsing an object
      trials.jsonl:6:1: not a trial: EOF while parsing an object
      and 3 more
    ");
}

#[test]
fn a_whole_last_line_that_is_not_text_is_no_torn_one() {
    insta::assert_snapshot!(told_of(&[b"{\"schema\":1,\xff}"]), @"trials.jsonl:2:13: not a trial: key must be a string; restore the line from a copy or delete it, and its trial runs again on --resume");
    insta::assert_snapshot!(told_of(&[b"\0\xff\xfe"]), @"trials.jsonl:2:1: not a trial: expected value; restore the line from a copy or delete it, and its trial runs again on --resume");
}

#[test]
fn a_trial_that_stands_twice_is_named() {
    let line = serde_json::to_vec(&trial(1)).expect("json");
    insta::assert_snapshot!(told_of(&[&line]), @"trials.jsonl:2: repetition 1 of cpu=250m,memory=64Mi,swap=0 stands on line 1 already; delete one of the two");
}
