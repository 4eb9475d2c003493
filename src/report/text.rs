//! Texts that come from outside (levels, reasons, engine errors, logs), made harmless for where they are shown.

use std::borrow::Cow;

/// One line without control characters: a terminal escape or a line break becomes a visible `\u{1b}`.
#[must_use]
pub fn plain(text: &str) -> Cow<'_, str> {
    // Also the characters that turn the direction of what follows.
    let harmful = |c: char| {
        c.is_control()
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if !text.contains(harmful) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '\n' | '\r' | '\t' => out.push(' '),
            c if harmful(c) => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// For a CSV cell: [`plain`], and a leading `'` before what a spreadsheet would run as a formula. Numbers stay numbers.
#[must_use]
pub fn csv(text: &str) -> String {
    let text = plain(text);
    let formula = text.starts_with(['=', '+', '-', '@']) && text.parse::<f64>().is_err();
    if formula {
        format!("'{text}")
    } else {
        text.into_owned()
    }
}

/// For Markdown: [`plain`], with everything escaped that Markdown or the HTML in it would act on.
#[must_use]
pub fn markdown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in plain(text).chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '|' | '[' | ']' | '#' | '!' | '~' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}

/// For HTML text and quoted attributes: [`plain`], escaped.
#[must_use]
pub fn html(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in plain(text).chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// A file name made of any text: letters, digits and `.=-_` stay, the rest becomes `_`; long ones and those that were
/// changed get a hash of the whole, so that two texts never share a name.
#[must_use]
pub fn file_name(text: &str) -> String {
    use sha2::{Digest as _, Sha256};
    const LONGEST: usize = 120;
    let keep = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '=' | '-' | '_' | ',');
    let mut name: String = text
        .chars()
        .map(|c| if keep(c) { c } else { '_' })
        .collect();
    name.truncate(LONGEST);
    if name != text || name.starts_with('.') || name.is_empty() {
        let hash = Sha256::digest(text.as_bytes());
        let hash: String = hash.iter().take(4).map(|b| format!("{b:02x}")).collect();
        name = format!("{}-{hash}", name.trim_start_matches('.'));
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_text_is_harmless_everywhere() {
        assert_eq!(plain("a\u{1b}[31mb\nc"), "a\\u{1b}[31mb c");
        assert_eq!(plain("abc\u{202e}txt"), "abc\\u{202e}txt");
        assert_eq!(csv("=HYPERLINK(\"x\")"), "'=HYPERLINK(\"x\")");
        assert_eq!(csv("@SUM(1)"), "'@SUM(1)");
        assert_eq!(csv("\t=1+1"), " =1+1");
        assert_eq!(
            [csv("-5"), csv("+1e3"), csv("250m")],
            ["-5", "+1e3", "250m"]
        );
        assert_eq!(markdown("a|b <script>*x*"), "a\\|b &lt;script&gt;\\*x\\*");
        assert_eq!(
            html("<a href='x'>&\""),
            "&lt;a href=&#39;x&#39;&gt;&amp;&quot;"
        );
    }

    #[test]
    fn file_names_stay_in_their_folder_and_apart() {
        assert_eq!(file_name("cpu=250m,memory=64Mi"), "cpu=250m,memory=64Mi");
        let evil = file_name("../../etc/passwd");
        assert!(!evil.contains('/') && !evil.starts_with('.'), "{evil}");
        assert_ne!(file_name("a/b"), file_name("a b"));
        assert_ne!(file_name(&"x".repeat(300)), file_name(&"x".repeat(301)));
        assert!(file_name(&"x".repeat(300)).len() < 140);
        assert!(!file_name("").is_empty());
    }
}
