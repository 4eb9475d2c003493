//! The boundary in sentences.

use super::{Axis, JudgedCell, Slice};
use crate::record::trial::Factor;
use crate::verdict::Verdict;

/// At most this many slices of one axis get a sentence each; the table tells the rest.
const MAX_SENTENCES: usize = 4;

pub(super) fn headline(axes: &[Axis], cells: &[JudgedCell<'_>]) -> Vec<String> {
    if cells.is_empty() {
        return Vec::new();
    }
    if cells.iter().all(|c| c.judgement.verdict == Verdict::Ok) {
        return vec!["No limit of this matrix has an effect: every cell is ok.".to_owned()];
    }
    let mut sentences = Vec::new();
    for axis in axes {
        if axis.has_effect {
            sentences.extend(with_effect(axis, cells));
        } else {
            sentences.push(without_effect(axis));
        }
    }
    if sentences.is_empty() {
        sentences.extend(cells.iter().map(|c| {
            format!(
                "{}: {}.",
                c.judgement.verdict.name(),
                c.judgement.evidence.join(", ")
            )
        }));
    }
    sentences
}

fn without_effect(axis: &Axis) -> String {
    let levels: Vec<&str> = axis
        .slices
        .iter()
        .max_by_key(|s| s.levels.len())
        .map_or_else(Vec::new, |s| {
            s.levels.iter().map(|(l, _)| l.as_str()).collect()
        });
    match levels.as_slice() {
        [] => format!("{}: no effect.", axis.factor),
        [one] => format!("{} {one}: nothing to compare with.", axis.factor),
        [smallest, ..] if super::quantity(smallest).is_some() => {
            format!("{} ≥ {smallest}: no effect on the verdict.", axis.factor)
        }
        all => format!(
            "{} {}: no effect on the verdict.",
            axis.factor,
            all.join(", ")
        ),
    }
}

/// One sentence when every slice has the same boundary, else one for each group of slices that share one.
fn with_effect(axis: &Axis, cells: &[JudgedCell<'_>]) -> Vec<String> {
    let mut groups: Vec<(&Slice, Vec<&Slice>)> = Vec::new();
    for slice in &axis.slices {
        let same = |other: &Slice| {
            other.largest_not_ok == slice.largest_not_ok
                && verdict_at(other, &other.largest_not_ok)
                    == verdict_at(slice, &slice.largest_not_ok)
        };
        match groups.iter_mut().find(|(first, _)| same(first)) {
            Some((_, members)) => members.push(slice),
            None => groups.push((slice, vec![slice])),
        }
    }
    let alone = groups.len() == 1;
    let more = groups.len().saturating_sub(MAX_SENTENCES);
    let mut sentences: Vec<String> = groups
        .iter()
        .take(MAX_SENTENCES)
        .map(|(slice, members)| sentence(axis, slice, members, alone, cells))
        .collect();
    if more > 0 {
        sentences.push(format!(
            "{}: {more} more boundaries, see the table.",
            axis.factor
        ));
    }
    sentences
}

fn verdict_at(slice: &Slice, level: &Option<String>) -> Option<Verdict> {
    let level = level.as_ref()?;
    slice
        .levels
        .iter()
        .find(|(l, _)| l == level)
        .map(|(_, v)| *v)
}

fn sentence(
    axis: &Axis,
    slice: &Slice,
    members: &[&Slice],
    alone: bool,
    cells: &[JudgedCell<'_>],
) -> String {
    let place = if alone {
        String::new()
    } else {
        place(axis, members)
    };
    let Some(level) = &slice.largest_not_ok else {
        let smallest = slice.levels.first().map_or("", |(l, _)| l.as_str());
        return format!("{} ≥ {smallest}{place}: no effect.", axis.factor);
    };
    let verdict = verdict_at(slice, &slice.largest_not_ok).unwrap_or(Verdict::Ok);
    // The worst levels may have other names for it; the boundary is where it starts.
    let relation = if slice.levels.first().is_some_and(|(l, _)| l == level) {
        "="
    } else {
        "≤"
    };
    let relation = if super::quantity(level).is_some() {
        relation
    } else {
        "="
    };
    let mut text = format!(
        "{} {relation} {level}{place}: {}",
        axis.factor,
        what(verdict)
    );
    let cell = cells
        .iter()
        .find(|c| super::at(c, &axis.factor, level, &slice.fixed));
    if let Some(cell) = cell {
        // The count of repetitions and the ratio stand in the table.
        let evidence: Vec<&str> = cell
            .judgement
            .evidence
            .iter()
            .map(String::as_str)
            .filter(|e| !e.ends_with("repetitions") && !e.contains("× unlimited ["))
            .collect();
        if !evidence.is_empty() {
            text.push_str(&format!(": {}", evidence.join(", ")));
        }
        if members.len() > 1 {
            text.push_str(&format!(" (at {})", factors(cell.factors)));
        }
    }
    text.push('.');
    text
}

fn place(axis: &Axis, members: &[&Slice]) -> String {
    let fixed: Vec<String> = members
        .iter()
        .map(|s| factors(&s.fixed))
        .filter(|f| !f.is_empty())
        .collect();
    let mut shown = fixed.iter().take(3).cloned().collect::<Vec<_>>().join("; ");
    if fixed.len() > 3 {
        shown.push_str(&format!(
            "; {} more of {}",
            fixed.len() - 3,
            axis.slices.len()
        ));
    }
    if shown.is_empty() {
        String::new()
    } else {
        format!(" at {shown}")
    }
}

fn factors(factors: &[Factor]) -> String {
    let words: Vec<String> = factors
        .iter()
        .map(|f| format!("{} {}", f.name, f.level))
        .collect();
    words.join(", ")
}

fn what(verdict: Verdict) -> &'static str {
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
        Verdict::Ok => "no effect",
    }
}
