//! The boundary in sentences.

use super::{Axis, Change, JudgedCell, Side, Slice, at, quantity};
use crate::record::trial::Factor;
use crate::verdict::Verdict;

/// At most this many boundaries of one axis get a sentence each; the table tells the rest.
const MAX_SENTENCES: usize = 4;
/// At most this many combinations of the other factors are named in one sentence.
const MAX_PLACES: usize = 3;

pub(super) fn headline(
    axes: &[Axis],
    cells: &[JudgedCell<'_>],
    invalid: usize,
    inert: &[&str],
) -> Vec<String> {
    let Some(first) = cells.first() else {
        return match invalid {
            0 => Vec::new(),
            _ => vec!["Nothing can be told: every cell is invalid.".to_owned()],
        };
    };
    let mut sentences = Vec::new();
    if invalid > 0 {
        let of = cells.len() + invalid;
        let (is, tells) = if invalid == 1 {
            ("is", "tells")
        } else {
            ("are", "tell")
        };
        sentences.push(format!(
            "{invalid} of {of} cells {is} invalid and {tells} nothing."
        ));
    }
    let verdict = first.judgement.verdict;
    if cells.iter().all(|c| c.judgement.verdict == verdict) {
        sentences.push(one_verdict(first, cells, invalid > 0));
        return sentences;
    }
    for axis in axes {
        if inert.contains(&axis.factor.as_str()) {
            sentences.push(format!(
                "{}: inert on this host, see the notes.",
                axis.factor
            ));
        } else if axis.has_effect {
            sentences.extend(with_effect(axis, axes, cells));
        } else {
            sentences.push(without_effect(axis));
        }
    }
    sentences
}

/// `gaps`: there are invalid cells, too.
fn one_verdict(first: &JudgedCell<'_>, cells: &[JudgedCell<'_>], gaps: bool) -> String {
    let number = cells.len();
    let verdict = first.judgement.verdict;
    if verdict == Verdict::Ok {
        let whole = match (number, gaps) {
            (1, false) => "The cell is ok",
            (1, true) => "The other cell is ok",
            (_, false) => "Every cell is ok",
            (_, true) => "Every other cell is ok",
        };
        let mut unclear = cells.iter().filter(|c| c.judgement.uncertain);
        let Some(one) = unclear.next() else {
            // Of an invalid cell it is not known.
            return match (number, gaps) {
                (_, false) => format!("{whole}: no limit of this matrix has an effect."),
                (1, true) => format!("{whole}: its limits have no effect."),
                (_, true) => format!("{whole}: no limit has an effect there."),
            };
        };
        let evidence = one.judgement.evidence.join(", ");
        let unclear = 1 + unclear.count();
        let verb = if unclear == 1 { "is" } else { "are" };
        return format!(
            "{whole}, but {unclear} of {number} {verb} not explained (ok?): {evidence}."
        );
    }
    let place = words(first.factors.iter());
    let meaning = meaning(verdict);
    let evidence = first.judgement.evidence.join(", ");
    match (number, gaps) {
        (1, false) => format!("Always: {meaning}: {evidence}."),
        (1, true) => format!("In the other cell, at {place}: {meaning}: {evidence}."),
        (_, false) => format!("Always: {meaning} in every cell; at {place}: {evidence}."),
        (_, true) => format!("In every other cell: {meaning}; at {place}: {evidence}."),
    }
}

fn without_effect(axis: &Axis) -> String {
    let longest = axis.slices.iter().max_by_key(|s| s.levels.len());
    let levels: Vec<&str> = longest.map_or_else(Vec::new, |s| {
        s.levels.iter().map(|l| l.level.as_str()).collect()
    });
    match levels.first() {
        Some(smallest) if quantity(smallest).is_some() => {
            format!("{} ≥ {smallest}: no effect on the verdict.", axis.factor)
        }
        _ => format!(
            "{} {}: no effect on the verdict.",
            axis.factor,
            levels.join(", ")
        ),
    }
}

/// One sentence for each group of slices with the same boundary.
fn with_effect(axis: &Axis, axes: &[Axis], cells: &[JudgedCell<'_>]) -> Vec<String> {
    let mut groups: Vec<(&Change, Vec<&Slice>)> = Vec::new();
    let mut unchanged = 0;
    for slice in axis.slices.iter().filter(|s| s.levels.len() > 1) {
        let Some(change) = &slice.change else {
            unchanged += 1;
            continue;
        };
        match groups
            .iter_mut()
            .find(|(c, _)| c.at == change.at && c.side == change.side)
        {
            Some((_, members)) => members.push(slice),
            None => groups.push((change, vec![slice])),
        }
    }
    let everywhere = groups.len() == 1 && unchanged == 0;
    let mut sentences: Vec<String> = groups
        .iter()
        .take(MAX_SENTENCES)
        .map(|(change, members)| sentence(axis, axes, change, members, everywhere, cells))
        .collect();
    if let Some(more) = groups.len().checked_sub(MAX_SENTENCES).filter(|&m| m > 0) {
        let what = if more == 1 { "boundary" } else { "boundaries" };
        sentences.push(format!(
            "{}: {more} more {what}, see the table.",
            axis.factor
        ));
    }
    sentences
}

fn sentence(
    axis: &Axis,
    axes: &[Axis],
    change: &Change,
    members: &[&Slice],
    everywhere: bool,
    cells: &[JudgedCell<'_>],
) -> String {
    let varied = |factors: &[Factor]| {
        words(
            factors
                .iter()
                .filter(|f| axes.iter().any(|a| a.factor == f.name)),
        )
    };
    let mut text = range(axis, members[0], change);
    if !everywhere {
        text.push_str(&place(axis, axes, members));
    }
    text.push_str(&format!(": {}", meaning(change.at.verdict)));
    let first = members[0];
    let cell = cells
        .iter()
        .find(|c| at(c, &axis.factor, &change.at.level, &first.fixed));
    if let Some(cell) = cell {
        // The count of repetitions and the ratio stand in the reports.
        let evidence = cell.judgement.evidence.iter().map(String::as_str);
        let evidence: Vec<&str> = evidence
            .filter(|e| {
                !e.ends_with("repetitions")
                    && !e.ends_with("repetition")
                    && !e.contains("× unlimited [")
            })
            .collect();
        if !evidence.is_empty() {
            text.push_str(&format!(": {}", evidence.join(", ")));
        }
        if members.len() > 1 {
            text.push_str(&format!(" (at {})", varied(cell.factors)));
        }
    }
    text.push('.');
    text
}

/// `cpu ≤ 500m`, or `cpu = 500m` where levels beyond it have another verdict.
fn range(axis: &Axis, slice: &Slice, change: &Change) -> String {
    let level = &change.at.level;
    let place = slice
        .levels
        .iter()
        .position(|l| *l == change.at)
        .unwrap_or(0);
    let beyond = match change.side {
        Side::Smaller => &slice.levels[..place],
        Side::Larger => &slice.levels[place + 1..],
    };
    let relation = if beyond.is_empty() || quantity(level).is_none() {
        "="
    } else if beyond.iter().all(|l| l.verdict == change.at.verdict) {
        match change.side {
            Side::Smaller => "≤",
            Side::Larger => "≥",
        }
    } else {
        "="
    };
    format!("{} {relation} {level}", axis.factor)
}

/// Where a boundary holds: ` at memory 64Mi, 256Mi`. Factors of which every level belongs to it are left out.
fn place(axis: &Axis, axes: &[Axis], members: &[&Slice]) -> String {
    let mut parts = Vec::new();
    let mut combinations = 1;
    for other in axes.iter().filter(|a| a.factor != axis.factor) {
        let levels_in = |slices: &mut dyn Iterator<Item = &Slice>| {
            let mut levels: Vec<String> = Vec::new();
            for slice in slices {
                let level = slice
                    .fixed
                    .iter()
                    .find(|f| f.name == other.factor)
                    .map(|f| &f.level);
                if let Some(level) = level.filter(|l| !levels.contains(l)) {
                    levels.push(level.clone());
                }
            }
            levels
        };
        let own = levels_in(&mut members.iter().copied());
        combinations *= own.len().max(1);
        if own.len() < levels_in(&mut axis.slices.iter()).len() {
            parts.push(format!(
                "{} {}",
                other.factor,
                super::ascending(&own).join(", ")
            ));
        }
    }
    // Only a full product of levels is told by its levels; anything else by its combinations.
    if combinations == members.len() {
        return if parts.is_empty() {
            String::new()
        } else {
            format!(" at {}", parts.join("; "))
        };
    }
    let varied = |f: &&Factor| axes.iter().any(|a| a.factor == f.name);
    let places: Vec<String> = members
        .iter()
        .map(|s| words(s.fixed.iter().filter(varied)))
        .collect();
    let mut shown = places[..places.len().min(MAX_PLACES)].join("; ");
    if places.len() > MAX_PLACES {
        shown.push_str(&format!("; and {} more", places.len() - MAX_PLACES));
    }
    format!(" at {shown}")
}

fn words<'a>(factors: impl Iterator<Item = &'a Factor>) -> String {
    let words: Vec<String> = factors.map(|f| format!("{} {}", f.name, f.level)).collect();
    words.join(", ")
}

fn meaning(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Invalid => "the numbers must not be used",
        Verdict::Oom => "the kernel kills the proxy for memory",
        Verdict::StartFailed => "the proxy does not start",
        Verdict::Hung => "the proxy lives but does not answer",
        Verdict::FdLimit => "the proxy runs out of descriptors",
        Verdict::AcceptOverflow => "the accept queue overflows",
        Verdict::Policy => "the proxy's own policy refuses work",
        Verdict::Cpu => "the CPU limit dominates",
        Verdict::Memory => "the memory limit dominates",
        Verdict::Swap => "swapping dominates",
        Verdict::Application => "the application dominates",
        Verdict::Ok => "ok",
    }
}
