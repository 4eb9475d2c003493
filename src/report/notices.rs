//! What a reader must know of a run's numbers.

use std::collections::BTreeMap;

use super::analysis::{CellReport, Judged};
use crate::record::derived;
use crate::record::manifest::Manifest;
use crate::stats::Sample;
use crate::units::counted;
use crate::verdict::validity;
use crate::verdict::words::percent;

/// Factors that had no effect to have: swap, when no trial's host had any.
pub(super) fn inert(trials: &[Judged<'_>]) -> Vec<&'static str> {
    let mut totals = trials
        .iter()
        .filter_map(|j| derived::probe(j.trial)?.host.swap_total_bytes)
        .peekable();
    if totals.peek().is_some() && totals.all(|total| total == 0) {
        vec!["swap", "limits.swap"]
    } else {
        Vec::new()
    }
}

/// Mean CPU frequency may differ by this share between trials before it is told.
pub(super) const FREQUENCY_SHARE: f64 = 0.10;

/// What only all trials together tell.
pub(super) fn across_trials(trials: &[Judged<'_>], cells: &[CellReport]) -> Vec<String> {
    let mut notices = Vec::new();
    let failing: Vec<&str> = cells
        .iter()
        .filter(|c| c.summary("error_share").is_some_and(|s| s.median >= 0.01))
        .map(|c| c.cell.as_str())
        .collect();
    if let Some(first) = failing.first() {
        let more = failing.len() - 1;
        let more = if more > 0 {
            format!(
                " and {more} more {}",
                if more == 1 { "cell" } else { "cells" }
            )
        } else {
            String::new()
        };
        notices.push(format!(
            "in {first}{more} at least 1 % of the requests failed; the percentiles are those of the others"
        ));
    }
    notices.extend(gaps(trials));
    let frequencies = trials
        .iter()
        .filter_map(|j| derived::probe(j.trial)?.host.cpu_khz_mean);
    let frequencies: Vec<f64> = frequencies.filter(|f| *f > 0.0).collect();
    if let Some(sample) = Sample::new(frequencies) {
        let median = sample.median();
        let off = sample
            .values()
            .iter()
            .filter(|f| (*f / median - 1.0).abs() > FREQUENCY_SHARE)
            .count();
        if off > 0 {
            notices.push(format!(
                "the CPU frequency of {off} of {} was more than {} away from the median of {:.2} GHz",
                counted(sample.n(), "trial"),
                percent(FREQUENCY_SHARE),
                median / 1e6
            ));
        }
    }
    notices
}

/// Samples that a probe skipped or lost, by probe.
fn gaps(trials: &[Judged<'_>]) -> Vec<String> {
    let mut by_probe: BTreeMap<&str, (usize, u64, usize)> = BTreeMap::new();
    let measured = trials.iter().filter(|j| derived::load(j.trial).is_some());
    for probe in measured.filter_map(|j| derived::probe(j.trial)) {
        for (name, &gaps) in probe.gaps.iter().filter(|(_, gaps)| **gaps > 0) {
            let (count, most, samples) = by_probe.entry(name).or_default();
            *count += 1;
            if gaps > *most {
                // A whole sample that was lost is none of those that were taken.
                let lost = if name == "sample" { gaps as usize } else { 0 };
                (*most, *samples) = (gaps, probe.samples.len() + lost);
            }
        }
    }
    let text = |(name, (count, most, samples)): (&str, (usize, u64, usize))| {
        let why = if name == "connections" {
            "skipped to keep probing cheap, or lost"
        } else {
            "skipped or lost"
        };
        format!(
            "probe {name}: up to {most} of {} {why} ({})",
            counted(samples, "sample"),
            counted(count, "trial")
        )
    };
    by_probe.into_iter().map(text).collect()
}

/// The manifest's notices and the trials' own, each once with how often it was seen.
pub(super) fn of_trials(manifest: &Manifest, trials: &[Judged<'_>]) -> Vec<String> {
    let mut notices = manifest.notices.clone();
    let mut seen: Vec<(String, usize)> = Vec::new();
    for judged in trials {
        for notice in validity::findings(judged.trial).notices {
            // Told once for the run, not again for each level.
            if notice.contains("is inert") && notices.iter().any(|n| n.contains("no swap")) {
                continue;
            }
            match seen.iter_mut().find(|(n, _)| *n == notice) {
                Some((_, count)) => *count += 1,
                None => seen.push((notice, 1)),
            }
        }
    }
    for (notice, count) in seen {
        if !notices.contains(&notice) {
            notices.push(if count == trials.len() || trials.len() == 1 {
                notice
            } else {
                format!("{notice} ({count} of {} trials)", trials.len())
            });
        }
    }
    notices
}
