//! Which syntax errors are told: those that are no consequence of one before.

use std::collections::HashSet;

use super::fault::Fault;
use super::raw;

/// Errors after this many are told as they are: each costs one reading of the text.
const MOST: usize = 10;

/// For each error, in the order of the text, whether it is told. A missing bracket makes the parser stumble over every
/// line that follows, so an error is told only if it is there too when the text begins behind the line of the last one
/// told.
pub(super) fn told(text: &str, errors: &[Fault]) -> Vec<bool> {
    let mut told = vec![true; errors.len()];
    let mut from = 0;
    let mut readings = 0;
    let mut there: Option<HashSet<(usize, String)>> = None;
    for (error, told) in errors.iter().zip(&mut told) {
        let start = error.at.start;
        *told = start >= from
            && there
                .as_ref()
                .is_none_or(|there| there.contains(&(start, error.message.clone())));
        if *told && readings < MOST {
            readings += 1;
            from = behind_line(text, start);
            there = Some(errors_from(text, from));
        }
    }
    told
}

/// Where the line after this one begins.
fn behind_line(text: &str, at: usize) -> usize {
    let rest = text.get(at..).and_then(|rest| rest.find('\n'));
    rest.map_or(text.len(), |end| at + end + 1)
}

fn errors_from(text: &str, from: usize) -> HashSet<(usize, String)> {
    let rest = text.get(from..).unwrap_or("");
    raw::syntax_errors(rest)
        .1
        .into_iter()
        .map(|(span, message)| (from + span.start, message))
        .collect()
}
