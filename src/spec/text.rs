//! The texts that a matrix was read from, and how parts of them are shown without harm.

use super::fault::Place;

/// The file and the `--set` overrides, as written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Sources {
    pub(super) file_name: String,
    pub(super) file: String,
    pub(super) overrides: Vec<String>,
}

/// Longest excerpt of a value in an error, in characters.
const EXCERPT: usize = 60;

impl Sources {
    pub(super) fn text(&self, at: &Place) -> &str {
        match at.source.checked_sub(1) {
            None => &self.file,
            Some(n) => self.overrides.get(n).map_or("", String::as_str),
        }
    }

    pub(super) fn name(&self, at: &Place) -> String {
        if at.source == 0 {
            printable(&self.file_name)
        } else {
            "--set".to_owned()
        }
    }

    /// Line and column, from 1, columns in characters.
    pub(super) fn line_column(&self, at: &Place) -> (usize, usize) {
        let text = self.text(at);
        let before = text.get(..at.start.min(text.len())).unwrap_or(text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or(before).chars().count() + 1;
        (line, column)
    }

    /// The text of a place: for an override all of it, since it has no other address.
    pub(super) fn excerpt(&self, at: &Place) -> Option<String> {
        let text = self.text(at);
        let part = if at.source == 0 {
            text.get(at.start..at.end).unwrap_or("")
        } else {
            text
        };
        let part = part.trim();
        (!part.is_empty()).then(|| shortened(part))
    }
}

/// At most 60 printable characters of a text, on one line.
pub(super) fn shortened(text: &str) -> String {
    let mut head: String = text.chars().take(EXCERPT).collect();
    if head.len() < text.len() {
        head.push('…');
    }
    printable(&head)
}

/// A text with everything escaped that could move a cursor, colour a terminal, ring a bell or reorder what is read.
pub(crate) fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_harmful(c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

/// Control characters (C0, DEL, C1), line and paragraph separators, and the bidirectional controls.
pub(crate) fn is_harmful(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// The same text, byte for byte as long, with harmful characters masked, for quoting whole lines by byte offsets. The
/// line ends of Windows are no harm and not shown.
pub(super) fn masked(text: &str) -> String {
    let mut rest = text.chars();
    std::iter::from_fn(|| Some((rest.next()?, rest.as_str().starts_with('\n'))))
        .map(|(c, ends_line)| match (c, c.len_utf8()) {
            ('\r', _) if ends_line => ' ',
            ('\n' | '\t', _) => c,
            (c, _) if !is_harmful(c) => c,
            (_, 1) => '?',
            (_, 2) => '¿',
            _ => '\u{fffd}',
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_lose_their_power_and_offsets_stay() {
        let hostile = "a\u{1b}[31mb\u{9b}c\u{202e}d\r\n\te\u{7}\r";
        assert_eq!(masked(hostile).len(), hostile.len());
        assert_eq!(masked(hostile), "a?[31mb¿c\u{fffd}d \n\te??");
        assert!(!printable(hostile).chars().any(is_harmful));
    }

    #[test]
    fn columns_are_characters() {
        let sources = Sources {
            file_name: "m.toml".into(),
            file: "a = 1\nä = 2".into(),
            overrides: vec![],
        };
        let at = Place::new(0, 11..12);
        assert_eq!(sources.line_column(&at), (2, 5));
        assert_eq!(sources.excerpt(&at).as_deref(), Some("2"));
        // Offsets past the end or inside a character cannot panic.
        assert_eq!(sources.line_column(&Place::new(0, 7..999)).0, 2);
        assert_eq!(sources.line_column(&Place::new(0, 999..999)), (2, 6));
    }
}
