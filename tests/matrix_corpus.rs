//! What the fuzzer found interesting, and what it found wrong, as tests.
#![allow(clippy::unwrap_used)]

#[path = "../fuzz/check.rs"]
mod check;

#[test]
fn the_corpus_holds() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/corpus/matrix");
    let mut files: Vec<_> = fs_err::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    assert!(files.len() > 20, "the corpus is missing");
    for file in files {
        let data = fs_err::read(&file).unwrap();
        if let Err(panic) = std::panic::catch_unwind(|| check::check(&data)) {
            std::panic::resume_unwind(Box::new(format!("{}: {panic:?}", file.display())));
        }
    }
}
