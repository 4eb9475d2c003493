//! Text wrapped for a terminal.

use unicode_width::UnicodeWidthStr as _;

/// Appends a text on lines of at most this width, as far as its words allow: later lines are indented by two more than
/// the first.
pub(crate) fn push_wrapped(out: &mut String, text: &str, width: usize) {
    let indent = text.len() - text.trim_start().len();
    let mut line = " ".repeat(indent);
    let mut used = indent;
    let mut first = true;
    // Not `split_whitespace`: what stands below each other shall stay so.
    for word in text.trim().split(' ') {
        let length = word.width();
        if !first && used + 1 + length > width {
            out.push_str(line.trim_end());
            out.push('\n');
            line = " ".repeat(indent + 2);
            used = indent + 2;
        } else if !first {
            line.push(' ');
            used += 1;
        }
        line.push_str(word);
        used += length;
        first = false;
    }
    out.push_str(line.trim_end());
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_lines_are_indented_and_long_words_stay_whole() {
        let mut out = String::new();
        push_wrapped(&mut out, "  one two three incomprehensibilities", 12);
        assert_eq!(out, "  one two\n    three\n    incomprehensibilities\n");
        out.clear();
        push_wrapped(&mut out, "[  1/100] valid", 80);
        assert_eq!(out, "[  1/100] valid\n");
    }
}
