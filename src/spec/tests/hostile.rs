//! Content that would do harm, or cost out of proportion.

use std::fmt::Write as _;

use proptest::prelude::*;

use super::*;
use crate::plan;
use crate::spec::text::is_harmful;

fn harmless(text: &str) -> bool {
    !text.chars().any(|c| is_harmful(c) && c != '\n')
}

#[test]
fn escapes_stay_harmless() {
    for text in [
        "name = \"\\u001b[31mred\\u0007\"",
        "\"\\u001b]0;title\\u0007\" = 1",
        "[matrix]\n\"\\u202e\" = [1]",
        "[matrix]\ncpu = [\"\\u001b[2J\"]",
        "[load]\nheaders = { \"a\\u001b\" = \"b\" }",
        "[load]\npath = \"/\\u001b\"",
        "name = \"raw \u{1b}[31m\"",
        "# \u{9b}31m\nx = 1",
        "[proxy]\nconfig = \"\\u001b[31m\"",
    ] {
        let errors = wrong(text);
        assert!(harmless(&errors.to_string()), "{errors:?}");
        assert!(harmless(&errors.render(false)), "{errors:?}");
        for error in &errors.errors {
            assert!(harmless(error.value.as_deref().unwrap_or("")), "{error:?}");
        }
    }
    let errors = parse("\u{1b}[31m.toml", "x = 1", &[], &mut files).unwrap_err();
    assert!(harmless(&errors.to_string()) && harmless(&errors.render(false)));
}

#[test]
fn huge_products_do_not_multiply() {
    let mut text = "repetitions = 10000\n[matrix]\n".to_owned();
    let levels: Vec<String> = (1..=100).map(|n| n.to_string()).collect();
    let levels = levels.join(",");
    for key in keys::all().filter(|key| key.takes.starts_with("a whole number, 1")) {
        let _ = writeln!(text, "\"{}\" = [{levels}]", key.path);
    }
    let _ = writeln!(
        text,
        "\"load.rate\" = [{levels}]\n\"load.handshake_rate\" = [{levels}]"
    );
    let errors = wrong(&text).to_string();
    assert!(errors.contains("above the limit of 100000"), "{errors}");
}

#[test]
fn thousands_of_faults_are_counted_not_printed() {
    let mut text = String::new();
    for n in 0..5000 {
        let _ = writeln!(text, "key{n} = 1");
    }
    let errors = wrong(&text);
    assert_eq!(errors.errors.len(), 100);
    assert_eq!(errors.omitted, 4900);
    assert!(errors.to_string().ends_with("and 4900 more"));
    assert!(errors.render(false).len() < 100_000);
}

#[test]
fn long_lines_and_values_are_shortened() {
    let text = format!("name = \"{}\"", "x".repeat(500_000));
    let errors = wrong(&text);
    assert!(errors.to_string().len() < 1000);
    assert!(
        errors.render(false).len() < 1000,
        "{}",
        errors.render(false).len()
    );
    let text = "a".repeat(MAX_FILE + 1);
    assert_eq!(wrong(&text).errors.len(), 1);
}

#[test]
fn a_large_matrix_is_planned_within_bounds() {
    let levels: Vec<String> = (1..=33_000).map(|n| n.to_string()).collect();
    let matrix = right(&format!(
        "[matrix]\n\"load.connections\" = [{}]\n[proxy]\nnofile = 65536",
        levels.join(",")
    ));
    assert_eq!(plan::build(&matrix).trials.len(), 99_000);
}

/// A fifth of what is allowed: quadratic costs would show as minutes.
const LONG: usize = MAX_FILE / 5;

/// Long files whose parts could multiply.
#[test]
fn long_files_of_anything_end() {
    let fill = |piece: &str| piece.repeat(LONG / piece.len());
    let long_key = "k".repeat(LONG / 2);
    let many: String = (0..5_000).map(|n| format!("a{n}=[1]\n")).collect();
    for text in [
        fill("a.") + "b=1",
        fill("[a]\n"),
        fill("[[matrix]]\n"),
        fill("=\n"),
        fill("\""),
        fill("a"),
        "x=".to_owned() + &fill("["),
        "x=".to_owned() + &fill("{a="),
        "[matrix]\ncpu=[".to_owned() + &fill("1,") + "]",
        "[matrix]\ncpu=[".to_owned() + &fill("[],") + "]",
        format!("[matrix.{long_key}]\n{many}"),
        "[load.headers]\n".to_owned() + &many,
    ] {
        check(&text, &[]);
    }
}

/// Text that looks like a matrix, so that it gets far.
fn matrix_text() -> impl Strategy<Value = String> {
    let key = prop_oneof![
        3 => prop::sample::select(keys::all().map(|key| key.path.to_owned()).collect::<Vec<_>>()),
        2 => prop::sample::select(vec!["cpu", "memory", "swap", "name", "seed", "repetitions", "controls", "matrix", "load", "proxy.files", "load.headers", "proxy.command"])
            .prop_map(str::to_owned),
        1 => "\\PC{0,12}".prop_map(|text| format!("{text:?}")),
    ];
    let scalar = prop_oneof![
        prop::sample::select(vec![
            "\"250m\"",
            "1",
            "0.5",
            "\"64Mi\"",
            "\"max\"",
            "\"5s\"",
            "0",
            "-1",
            "\"0\"",
            "true",
            "nan",
            "inf",
            "\"h2\"",
            "\"open\"",
            "\"closed\"",
            "\"custom\"",
            "1e400",
            "99999999999999999999",
            "\"0-1\"",
            "\"/\"",
            "2026-01-01",
            "\"\"",
            "\"envoy.yaml\"",
            "\"unlimited\"",
            "0x7fffffffffffffff",
            "\"1.2\"",
            "1.3",
        ])
        .prop_map(str::to_owned),
        any::<i64>().prop_map(|n| n.to_string()),
        any::<f64>().prop_map(|n| n.to_string()),
        "\\PC{0,12}".prop_map(|text| format!("{text:?}")),
    ];
    let array = prop::collection::vec(scalar.clone(), 0..5)
        .prop_map(|items| format!("[{}]", items.join(", ")));
    let value = prop_oneof![3 => scalar, 3 => array, 1 => Just("{}".to_owned()), 1 => Just("{ a = [1] }".to_owned())];
    let line = prop_oneof![
        6 => (key, value).prop_map(|(key, value)| format!("{key} = {value}")),
        2 => prop::sample::select(vec!["[matrix]", "[load]", "[proxy]", "[limits]", "[tls]", "[upstream]", "[placement]", "[proxy.files]", "[[matrix]]"]).prop_map(str::to_owned),
        1 => "\\PC{0,20}",
    ];
    prop::collection::vec(line, 0..12).prop_map(|lines| lines.join("\n"))
}

/// Whatever the text: no panic, and either a plan within its bounds or positioned, printable errors.
fn check(text: &str, overrides: &[&str]) {
    match parsed(text, overrides) {
        Ok(matrix) => {
            let plan = plan::build(&matrix);
            assert!(!plan.trials.is_empty() && plan.trials.len() as u64 <= MAX_TRIALS);
            for cell in plan.cells.iter().take(50) {
                let _ = matrix.settings(cell);
            }
            assert!(harmless(&plan.text(&matrix, 5)));
            let _ = matrix.check_engine(2.0);
        }
        Err(errors) => {
            assert!(!errors.errors.is_empty());
            for error in &errors.errors {
                assert!(error.line.is_some() || error.source == "--set");
                assert!(!error.message.is_empty() && !error.remedy.is_empty());
            }
            assert!(harmless(&errors.to_string()));
            assert!(harmless(&errors.render(false)));
        }
    }
}

proptest! {
    #[test]
    fn nothing_panics_on_matrix_like_text(text in matrix_text()) {
        check(&text, &[]);
    }

    #[test]
    fn nothing_panics_on_any_text(text in "(?s).{0,200}") {
        check(&text, &[]);
    }

    #[test]
    fn nothing_panics_on_any_override(text in "\\PC{0,30}", key in "[a-z.\"']{0,12}") {
        check("[matrix]\ncpu = [1]", &[&text, &format!("{key}={text}")]);
    }

    /// A canonical text names the same level again.
    #[test]
    fn canonical_levels_read_back(millis in 10u64..8_192_000, mebi in 6u64..100_000, micros in 1_000u64..86_400_000_000, rate in 0.01f64..1e7) {
        let text = format!(
            "[matrix]\ncpu = [\"{millis}m\"]\nmemory = [\"{mebi}Mi\"]\nwarmup = [\"{micros}us\"]\n\"load.rate\" = [{rate:?}]"
        );
        let first = right(&text);
        let mut again = "[matrix]\n".to_owned();
        for factor in &first.factors {
            for level in &factor.levels {
                let _ = writeln!(again, "\"{}\" = [\"{}\"]", factor.name, level.text);
            }
        }
        prop_assert_eq!(first.hash(), right(&again).hash());
    }
}
