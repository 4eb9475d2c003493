//! Texts with a syntax of their own: names, image references, request lines, headers, CPU lists.

use super::placement::CpuSet;
use super::raw::Scalar;
use super::read::{self, Wrong};
use super::text::is_harmful;

/// A name that is safe as part of a path, in a shell, a table, CSV and HTML.
pub(super) fn name(text: &str) -> Result<String, Wrong> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if !text.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        return Err("does not begin with a letter or digit".to_owned());
    }
    if text.len() > MAX_NAME {
        return Err(format!("is longer than {MAX_NAME} characters"));
    }
    match text.chars().find(|c| !allowed(*c)) {
        None => Ok(text.to_owned()),
        Some(c) => Err(format!("holds {c:?}")),
    }
}

const MAX_NAME: usize = 64;

/// A name made from a file's: everything that a name cannot hold becomes `-`.
pub(super) fn name_from(file: &str) -> String {
    let base = file.rsplit(['/', '\\']).next().unwrap_or(file);
    let stem = base.strip_suffix(".toml").unwrap_or(base);
    let made: String = stem
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-') {
                c
            } else {
                '-'
            }
        })
        .take(MAX_NAME)
        .collect();
    name(&made).unwrap_or_else(|_| "matrix".to_owned())
}

pub(super) fn image(text: &str) -> Result<String, Wrong> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "._/:@-".contains(c);
    if text.is_empty() {
        return Err("is empty".to_owned());
    }
    if text.len() > 512 {
        return Err("is too long".to_owned());
    }
    if !text.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        return Err("does not begin with a letter or digit".to_owned());
    }
    match text.chars().find(|c| !allowed(*c)) {
        None => Ok(text.to_owned()),
        Some(c) => Err(format!("holds {c:?}")),
    }
}

/// `token` of RFC 9110, section 5.6.2.
fn is_token(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}

pub(super) fn method(text: &str) -> Result<String, Wrong> {
    let begins = text.starts_with(|c: char| c.is_ascii_alphabetic());
    if !is_token(text) || !begins || text.len() > 32 {
        return Err("is not a method".to_owned());
    }
    if text == "CONNECT" {
        return Err("asks for a tunnel, not for an answer".to_owned());
    }
    Ok(text.to_owned())
}

pub(super) fn path(text: &str) -> Result<String, Wrong> {
    if !text.starts_with('/') {
        return Err("does not begin with \"/\"".to_owned());
    }
    if text.len() > 8192 {
        return Err("is longer than 8192 bytes".to_owned());
    }
    match text.chars().find(|c| !c.is_ascii_graphic() || *c == '#') {
        None => Ok(text.to_owned()),
        Some(c) => Err(format!("holds {c:?}")),
    }
}

/// Headers that the generator sets itself, or that would break its framing.
const OWN_HEADERS: [&str; 10] = [
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "keep-alive",
    "upgrade",
    "proxy-connection",
    "te",
    "trailer",
    "expect",
];

pub(super) fn header_name(text: &str) -> Result<String, Wrong> {
    if !is_token(text) || text.len() > 256 {
        return Err("is not a header name".to_owned());
    }
    let lower = text.to_ascii_lowercase();
    if OWN_HEADERS.contains(&lower.as_str()) {
        return Err("is set by the generator itself".to_owned());
    }
    Ok(lower)
}

/// Visible ASCII, spaces and tabs (RFC 9110, section 5.5, without its obsolete bytes), not at either end.
pub(super) fn header_value(text: &str) -> Result<String, Wrong> {
    if text.len() > 16_384 {
        return Err("is longer than 16384 bytes".to_owned());
    }
    if text != text.trim() {
        return Err("begins or ends with a space".to_owned());
    }
    match text
        .chars()
        .find(|c| !(c.is_ascii_graphic() || matches!(c, ' ' | '\t')))
    {
        None => Ok(text.to_owned()),
        Some(c) => Err(format!("holds {c:?}")),
    }
}

/// The local path of a file: what remains of it shows in cell ids, so nothing that could do harm there.
pub(super) fn file_path(text: &str) -> Result<(), Wrong> {
    if text.is_empty() {
        return Err("is empty".to_owned());
    }
    if text.len() > 1024 {
        return Err("is longer than 1024 bytes".to_owned());
    }
    // A spreadsheet would read it as a formula, a command as an option.
    if text.starts_with(['=', '+', '-', '@']) {
        return Err("begins with a sign; put \"./\" before it".to_owned());
    }
    match text.chars().find(|c| is_harmful(*c)) {
        None => Ok(()),
        Some(c) => Err(format!("holds {c:?}")),
    }
}

/// The path of a file in the container.
pub(super) fn container_path(text: &str) -> Result<String, Wrong> {
    file_path(text)?;
    if !text.starts_with('/') {
        return Err("is not absolute".to_owned());
    }
    if text.ends_with('/') || text.split('/').any(|part| part == ".." || part == ".") {
        return Err("is not the plain path of a file".to_owned());
    }
    Ok(text.to_owned())
}

/// More than any kernel is built for.
const MAX_CPU_NUMBER: u32 = 8191;

/// The kernel's CPU list in its shortest form: `3,0-1,2` → `0-3`.
pub(super) fn cpu_list(raw: &Scalar) -> Result<String, Wrong> {
    let text = match raw {
        Scalar::Integer(text) => text,
        other => read::text(other)?,
    };
    let cpus = cpu_numbers(text).ok_or_else(|| "is not a list of CPUs".to_owned())?;
    Ok(shortest_list(&cpus))
}

/// A list, or a word for who chooses.
pub(super) fn cpu_set(raw: &Scalar) -> Result<CpuSet, Wrong> {
    match raw {
        Scalar::Text(text) if text.trim() == "auto" => Ok(CpuSet::Auto),
        Scalar::Text(text) if text.trim() == "any" => Ok(CpuSet::Any),
        list => cpu_list(list).map(CpuSet::List),
    }
}

/// The CPUs of a list, in order, each once.
pub(super) fn cpu_numbers(text: &str) -> Option<Vec<u32>> {
    if text.len() > 4096 {
        return None;
    }
    let mut cpus = std::collections::BTreeSet::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (cpu_number(first)?, cpu_number(last)?);
        if first > last {
            return None;
        }
        cpus.extend(first..=last);
    }
    Some(cpus.into_iter().collect())
}

fn cpu_number(text: &str) -> Option<u32> {
    let text = text.trim();
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    text.parse().ok().filter(|n| *n <= MAX_CPU_NUMBER)
}

pub(super) fn shortest_list(cpus: &[u32]) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for cpu in cpus {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == *cpu => *last = *cpu,
            _ => ranges.push((*cpu, *cpu)),
        }
    }
    let parts: Vec<String> = ranges
        .into_iter()
        .map(|(first, last)| match first == last {
            true => first.to_string(),
            false => format!("{first}-{last}"),
        })
        .collect();
    parts.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_names_are_refused() {
        for text in [
            "",
            "../x",
            "a/b",
            "a b",
            "-rf",
            ".hidden",
            "=cmd()",
            "<b>",
            "a\u{1b}[0m",
            "$(id)",
            "ä",
            &"x".repeat(65),
        ] {
            assert!(name(text).is_err(), "{text:?}");
        }
        assert_eq!(name("article-2.1_b").as_deref(), Ok("article-2.1_b"));
    }

    #[test]
    fn file_names_become_names() {
        assert_eq!(name_from("/a/b/quick.toml"), "quick");
        assert_eq!(name_from("my matrix.toml"), "my-matrix");
        assert_eq!(name_from("../.toml"), "matrix");
        assert_eq!(name_from("-"), "matrix");
    }

    #[test]
    fn cpu_lists() {
        let list = |text: &str| cpu_list(&Scalar::Text(text.to_owned()));
        assert_eq!(list("3,0-1,2").as_deref(), Ok("0-3"));
        assert_eq!(list("0").as_deref(), Ok("0"));
        assert_eq!(list("5, 1, 7-8").as_deref(), Ok("1,5,7-8"));
        for text in [
            "",
            "a",
            "1-",
            "-1",
            "3-1",
            "0-9999999",
            "0,,1",
            "+1",
            "0-3:2",
        ] {
            assert!(list(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn requests_cannot_be_split() {
        assert!(path("/a b").is_err());
        assert!(path("/a\r\nX: y").is_err());
        assert!(path("a").is_err());
        assert!(path("/?q=1&r=%20").is_ok());
        assert!(header_value("a\r\nb").is_err());
        assert!(header_name("x\r\n").is_err());
        assert!(header_name("Host").is_err());
        assert_eq!(header_name("X-Route").as_deref(), Ok("x-route"));
        assert!(method("GET ").is_err());
        assert!(method("CONNECT").is_err());
        assert!(method("-X").is_err());
        assert!(file_path("=cmd|x").is_err());
        assert!(file_path("./=cmd").is_ok());
        assert!(container_path("/etc/../x").is_err());
    }
}
