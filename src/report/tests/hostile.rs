//! Names, levels, reasons and logs are other people's: none may leave its folder, run as a formula, run as a script or
//! steer a terminal.

use super::*;
use crate::record::trial::{ContainerEnd, TrialStatus};

const EVIL: &str = "=cmd|'/C calc'!A0\u{1b}[2J\u{9b}31m\r\n<script>alert(1)</script>\"><img src=x>/../../x`$(reboot)`\u{202e}";

fn is_harmful(c: char) -> bool {
    c.is_control() && c != '\n' || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn hostile_trial(repetition: u32) -> TrialRecord {
    let mut trial = sample::valid(Shape::limited(250, 64), repetition);
    trial.cell = EVIL.to_owned();
    for factor in &mut trial.factors {
        factor.level = EVIL.to_owned();
    }
    trial.status = TrialStatus::Invalid;
    trial.reasons = vec![EVIL.to_owned()];
    trial.engine_warnings = vec![EVIL.to_owned()];
    trial.retried_because = Some(EVIL.to_owned());
    trial.proxy = Some(ContainerEnd {
        id: EVIL.to_owned(),
        state: Some(EVIL.to_owned()),
        exit_code: Some(1),
        oom_killed: Some(false),
        error: Some(EVIL.to_owned()),
        log_tail: Some(EVIL.to_owned()),
    });
    trial
}

fn assert_no_formula(name: &str, bytes: &[u8]) {
    for row in ::csv::Reader::from_reader(bytes).records() {
        for field in &row.expect("a row") {
            let formula = field.starts_with(['=', '+', '-', '@', '\t']);
            assert!(
                !formula || field.parse::<f64>().is_ok(),
                "{name}: {field:?}"
            );
        }
    }
}

#[test]
fn hostile_content_is_harmless_in_every_file_and_in_the_table() {
    let mut records = every_kind_of_trial();
    records.push(hostile_trial(1));
    let mut valid = hostile_trial(2);
    (valid.status, valid.reasons) = (TrialStatus::Valid, Vec::new());
    records.push(valid);
    let mut manifest = sample::manifest(&records);
    for text in [&mut manifest.name, &mut manifest.run] {
        EVIL.clone_into(text);
    }
    manifest.notices.push(EVIL.to_owned());
    manifest.engine.warnings.push(EVIL.to_owned());
    manifest.engine.storage_driver = Some(EVIL.to_owned());
    manifest.host.cpu_model = Some(EVIL.to_owned());

    let outer = tempfile::tempdir().expect("dir");
    let folder = folder_with(&outer.path().join("run"), &records);
    let json = serde_json::to_vec(&manifest).expect("json");
    folder.write("manifest.json", &json).expect("write");
    rebuild(&folder).expect("rebuild");
    let beside = fs::read_dir(outer.path()).expect("read").count();
    assert_eq!(beside, 1, "something was written beside the folder");

    let files = contents(folder.path());
    assert!(
        files.keys().any(|n| n.starts_with("histograms/=cmd")),
        "the hostile cell has its histograms: {:?}",
        files.keys()
    );
    for (name, bytes) in &files {
        assert!(
            !name.contains(is_harmful) && !name.split('/').any(|part| part == ".."),
            "{name:?}"
        );
        if name.ends_with(".hdr") {
            continue;
        }
        let text = std::str::from_utf8(bytes).expect("UTF-8");
        if name.ends_with(".csv") {
            assert_no_formula(name, bytes);
        }
        if name.ends_with(".html") || name.ends_with(".md") {
            assert!(
                !text.contains("<script") && !text.contains("<img"),
                "{name}"
            );
        }
        // JSON is for programs, which know its escapes.
        if !name.contains(".json") && name != ".lock" {
            assert!(!text.contains(is_harmful), "{name}");
        }
    }
    let table = table(&manifest, &records, table::WIDTH);
    assert!(!table.contains(is_harmful), "{table:?}");
}
