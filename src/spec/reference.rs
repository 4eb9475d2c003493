//! The reference of all keys, made from the table that the parser uses, so that the two cannot differ.

use std::fmt::Write as _;

use super::{defaults, keys};

/// Every key with its meaning, what it takes and its default, as Markdown tables: one for the top level, one a section.
#[must_use]
pub fn reference() -> String {
    let defaults = defaults::settings();
    let mut out = String::new();
    for section in std::iter::once("").chain(keys::SECTIONS) {
        let title = match section {
            "" => "Top level".to_owned(),
            section => format!("`[{section}]`"),
        };
        let _ = write!(
            out,
            "### {title}\n\n| key | meaning | takes | default | factor |\n|---|---|---|---|---|\n"
        );
        let prefix = format!("{section}.");
        for other in keys::OTHER {
            let inside = match section {
                "" => !other.path.contains('.'),
                _ => other.path.starts_with(&prefix),
            };
            if inside {
                row(
                    &mut out,
                    [other.path, other.meaning, other.takes, other.default, "no"],
                );
            }
        }
        for key in keys::all().filter(|key| key.section() == section) {
            let name = format!("`{}`", key.factor_name());
            let default = format!("`{}`", key.show(&defaults));
            row(
                &mut out,
                [key.path, key.meaning, key.takes, &default, &name],
            );
        }
        out.push('\n');
    }
    out
}

fn row(out: &mut String, [path, meaning, takes, default, factor]: [&str; 5]) {
    let _ = writeln!(
        out,
        "| `{path}` | {} | {} | {default} | {factor} |",
        cell(meaning),
        cell(takes)
    );
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const BEGIN: &str =
        "<!-- made by `cargo test`, from the table of keys in src/spec/keys -->\n\n";
    const END: &str = "<!-- end of the table -->";

    /// Run with `SWEEP_BLESS=1` to write the tables into the page.
    #[test]
    fn the_page_holds_the_reference() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/matrix.md");
        let page = fs_err::read_to_string(path).unwrap();
        let (before, rest) = page.split_once(BEGIN).unwrap();
        let (tables, after) = rest.split_once(END).unwrap();
        if std::env::var_os("SWEEP_BLESS").is_some() {
            fs_err::write(path, format!("{before}{BEGIN}{}{END}{after}", reference())).unwrap();
            return;
        }
        assert_eq!(
            tables,
            reference(),
            "run SWEEP_BLESS=1 cargo test to renew docs/matrix.md"
        );
    }

    #[test]
    fn every_key_is_there_once() {
        let reference = reference();
        let paths = keys::all().map(|key| key.path);
        for path in paths.chain(keys::OTHER.iter().map(|key| key.path)) {
            let row = format!("\n| `{path}` |");
            assert_eq!(reference.matches(&row).count(), 1, "{path}");
        }
    }

    /// A setting without a key could not be asked for, and would be missing on the page.
    #[test]
    fn every_setting_has_a_key() {
        let settings = serde_json::to_value(defaults::settings()).unwrap();
        let mut missing = Vec::new();
        for (section, value) in settings.as_object().unwrap() {
            match value.as_object() {
                None => missing.push(section.clone()),
                Some(fields) => missing.extend(fields.keys().map(|f| format!("{section}.{f}"))),
            }
        }
        missing.retain(|path| {
            !keys::all().any(|key| key.path == path)
                && !keys::OTHER.iter().any(|key| key.path == path)
        });
        assert!(missing.is_empty(), "{missing:?}");
    }
}
