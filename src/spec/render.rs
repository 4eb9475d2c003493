//! Errors for people: each fault with its line underlined.

use std::fmt;

use miette::{
    Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, NamedSource, Severity,
    SourceCode, ThemeCharacters, ThemeStyles,
};

use super::Matrix;
use super::fault::{SpecError, SpecErrors};
use super::text::{Sources, masked};

/// Longer lines are not quoted; the fault's own line says where it is.
const LONGEST_LINE: usize = 240;
const WIDTH: usize = 120;

impl SpecErrors {
    /// The errors with their lines underlined, with terminal colours if asked. Whatever the file holds, the text holds
    /// no control characters but line feeds and those of the colours.
    #[must_use]
    pub fn render(&self, colour: bool) -> String {
        let mut out = render(&self.errors, &self.sources, Severity::Error, colour);
        if self.omitted > 0 {
            out.push_str(&format!("and {} more\n", self.omitted));
        }
        out
    }
}

impl Matrix {
    /// The warnings, as errors are rendered; empty if there are none.
    #[must_use]
    pub fn render_warnings(&self, colour: bool) -> String {
        render(&self.warnings, &self.sources, Severity::Warning, colour)
    }
}

fn render(errors: &[SpecError], sources: &Sources, severity: Severity, colour: bool) -> String {
    let theme = GraphicalTheme {
        characters: ThemeCharacters::unicode(),
        styles: if colour {
            ThemeStyles::ansi()
        } else {
            ThemeStyles::none()
        },
    };
    let handler = GraphicalReportHandler::new_themed(theme)
        .with_links(false)
        .with_context_lines(1)
        .with_width(WIDTH);
    let file = masked(&sources.file);
    let named = NamedSource::new(super::printable(&sources.file_name), file.clone());
    let mut out = String::new();
    for error in errors {
        let override_text = masked(sources.text(&error.at));
        let set = NamedSource::new("--set", override_text.clone());
        let (text, source) = match error.at.source {
            0 => (&file, &named),
            _ => (&override_text, &set),
        };
        let shown = Shown {
            error,
            severity,
            source: quotable(text, error).then_some(source as &dyn SourceCode),
        };
        if handler.render_report(&mut out, &shown).is_err() {
            // Writing to a string does not fail; a span that miette refuses leaves the plain line.
            out.push_str(&format!("{error}\n"));
        }
        out.push('\n');
    }
    out
}

/// Whether the lines of a span are short enough to quote.
fn quotable(text: &str, error: &SpecError) -> bool {
    let (start, end) = (error.at.start, error.at.end.max(error.at.start));
    let (Some(before), Some(inside), Some(after)) =
        (text.get(..start), text.get(start..end), text.get(end..))
    else {
        return false;
    };
    // The lines of the span, and one of context on either side.
    let lead: Vec<&str> = before.rsplitn(3, '\n').take(2).collect();
    let tail: Vec<&str> = after.splitn(3, '\n').take(2).collect();
    let short = |lines: &[&str]| lines.iter().all(|line| line.len() <= LONGEST_LINE);
    !text.is_empty()
        && short(&lead)
        && short(&tail)
        && inside.len() <= LONGEST_LINE
        && inside.matches('\n').count() < 8
}

struct Shown<'a> {
    error: &'a SpecError,
    severity: Severity,
    source: Option<&'a dyn SourceCode>,
}

impl fmt::Debug for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Shown")
    }
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.source.is_none() {
            f.write_str(&self.error.source)?;
            if let (Some(line), Some(column)) = (self.error.line, self.error.column) {
                write!(f, ":{line}:{column}")?;
            }
            f.write_str(": ")?;
        }
        f.write_str(&self.error.message)
    }
}

impl std::error::Error for Shown<'_> {}

impl Diagnostic for Shown<'_> {
    fn severity(&self) -> Option<Severity> {
        Some(self.severity)
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(&self.error.remedy))
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.source
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        self.source?;
        let at = &self.error.at;
        let span = LabeledSpan::new(None, at.start, at.end.saturating_sub(at.start));
        Some(Box::new(std::iter::once(span)))
    }
}
