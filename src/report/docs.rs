//! `docs/columns.md` and `docs/verdicts.md`, made from the tables and constants that the program itself uses.

use std::fmt::Write as _;

use super::csv::SAMPLE_COLUMNS;
use crate::load::judge;
use crate::record::columns::{GROUPS, Kind};
use crate::record::derived::{BACKLOG_GROWTH_SHARE, COLD_FILE_BYTES};
use crate::verdict::words::{bytes, ms, percent};
use crate::verdict::{effect, signs, validity};

const COLUMNS_HEAD: &str = include_str!("docs/columns.md.in");
const VERDICTS: &str = include_str!("docs/verdicts.md.in");

/// `docs/columns.md`.
#[must_use]
pub fn columns_page() -> String {
    let mut page = COLUMNS_HEAD.to_owned();
    for group in GROUPS.iter() {
        let _ = write!(
            page,
            "\n## {}\n\n| column | unit | kind | meaning |\n|---|---|---|---|\n",
            group.title
        );
        for column in &group.columns {
            let kind = match column.kind {
                Kind::Text => "text",
                kind => kind.name(),
            };
            let doc = column.doc.replace('|', "\\|");
            let _ = writeln!(
                page,
                "| `{}` | {} | {kind} | {doc} |",
                column.name, column.unit
            );
        }
    }
    page.push_str("\n## samples.csv\n\nOne line a sample of the window. `cell`, `control` and `repetition` name the trial; `t_us` is the time since the start of the window.\n\n| column | meaning |\n|---|---|\n");
    for (name, doc, _) in SAMPLE_COLUMNS {
        let _ = writeln!(page, "| `{name}` | {doc} |");
    }
    page.push_str("| `unsent` | Requests intended and not yet sent, at the latest reading of the generator before. |\n| `in_flight` | Requests sent and not yet answered, at the same reading. |\n");
    page
}

/// `docs/verdicts.md`.
#[must_use]
pub fn verdicts_page() -> String {
    let us = |v: f64| format!("{} ms", ms(v));
    let times = |v: f64| format!("{v}×");
    let values: [(&str, String); 26] = [
        ("STEAL_SHARE", percent(validity::STEAL_SHARE)),
        ("CPU_WAIT_SHARE", percent(judge::CPU_WAIT_SHARE)),
        ("OTHER_CPU_SHARE", percent(validity::OTHER_CPU_SHARE)),
        ("HOST_BUSY_SHARE", percent(validity::HOST_BUSY_SHARE)),
        ("SUSPENDED", us(validity::SUSPENDED_US as f64)),
        ("CLOCK_STEP", us(validity::CLOCK_STEP_US as f64)),
        ("UPSTREAM_DELAY", us(validity::UPSTREAM_DELAY_US as f64)),
        (
            "UPSTREAM_DELAY_SHARE",
            percent(validity::UPSTREAM_DELAY_SHARE),
        ),
        ("WINDOW_SHARE", percent(validity::WINDOW_SHARE)),
        (
            "UNLIMITED_MEMORY_FLOOR",
            bytes(validity::UNLIMITED_MEMORY_FLOOR_BYTES as f64),
        ),
        ("COLD_FILE", bytes(COLD_FILE_BYTES as f64)),
        ("THROTTLED_SHARE", percent(signs::THROTTLED_SHARE)),
        ("MAJOR_FAULTS", signs::MAJOR_FAULTS_PER_S.to_string()),
        ("REFAULTS", signs::REFAULTS_PER_S.to_string()),
        ("MEMORY_STALL_SHARE", percent(signs::MEMORY_STALL_SHARE)),
        (
            "AT_MEMORY_LIMIT_SHARE",
            percent(signs::AT_MEMORY_LIMIT_SHARE),
        ),
        ("SWAP_BYTES", bytes(signs::SWAP_BYTES as f64)),
        ("OVERFLOW_SHARE", percent(signs::OVERFLOW_SHARE)),
        ("POLICY_SHARE", percent(signs::POLICY_SHARE)),
        ("DESCRIPTOR_MARGIN", signs::DESCRIPTOR_MARGIN.to_string()),
        ("APPLICATION_SHARE", percent(signs::APPLICATION_SHARE)),
        ("EFFECT_RATIO", times(effect::EFFECT_RATIO)),
        ("EFFECT_US", us(effect::EFFECT_US)),
        ("EFFECT_RATE_SHARE", percent(effect::EFFECT_RATE_SHARE)),
        ("EFFECT_ERROR_SHARE", percent(effect::EFFECT_ERROR_SHARE)),
        ("ABSOLUTE_P99", us(effect::ABSOLUTE_P99_US)),
    ];
    let mut page = VERDICTS.replace("{{BACKLOG_GROWTH_SHARE}}", &percent(BACKLOG_GROWTH_SHARE));
    for (name, value) in values {
        page = page.replace(&format!("{{{{{name}}}}}"), &value);
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(file: &str, page: &str) {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("docs")
            .join(file);
        if std::env::var_os("SWEEP_BLESS").is_some() {
            fs_err::create_dir_all(path.parent().expect("docs")).expect("docs");
            fs_err::write(&path, page).expect("write");
        }
        let found = fs_err::read_to_string(&path).unwrap_or_default();
        assert!(
            found == page,
            "run SWEEP_BLESS=1 cargo test to renew docs/{file}"
        );
    }

    #[test]
    fn columns_are_documented() {
        check("columns.md", &columns_page());
    }

    #[test]
    fn verdicts_are_documented_with_their_thresholds() {
        let page = verdicts_page();
        assert!(
            !page.contains("{{"),
            "a placeholder without a value: {page}"
        );
        check("verdicts.md", &page);
        for verdict in [
            "invalid",
            "oom",
            "start_failed",
            "hung",
            "fd_limit",
            "accept_overflow",
            "policy",
            "cpu",
            "memory",
            "swap",
            "application",
            "ok",
        ] {
            assert!(page.contains(&format!("`{verdict}`")), "{verdict}");
        }
    }
}
