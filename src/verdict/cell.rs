//! The verdict of a cell, from its repetitions.

use std::collections::BTreeMap;

use super::words::{ms, percent, significant};
use super::{Judgement, Verdict};
use crate::stats::{ConfidenceInterval, Estimate};
use crate::units::counted;

/// A cell's medians that its verdict rests on. `None`: no valid repetition has the value.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CellNumbers {
    /// Response time p99, microseconds: the median, whether it is only a lower bound, and its interval.
    pub p99: Option<(f64, bool, Option<ConfidenceInterval>)>,
    /// The same of the unlimited control.
    pub unlimited_p99_us: Option<f64>,
    /// The same of the direct control.
    pub direct_p99_us: Option<f64>,
    /// p99 ÷ the unlimited control's, paired by block.
    pub response_ratio: Option<Estimate>,
    /// Handshake p99 ÷ the unlimited control's, paired by block.
    pub handshake_ratio: Option<Estimate>,
    /// Share of periods throttled.
    pub throttled_share: Option<f64>,
}

impl CellNumbers {
    /// `p99 52.0 ms [49.1, 55.2] against 2.60 unlimited and 0.410 direct`.
    #[must_use]
    pub fn comparison(&self) -> Option<String> {
        let (us, bound, interval) = self.p99?;
        let mut text = format!("p99 {}{} ms", if bound { "≥" } else { "" }, ms(us));
        if let Some(i) = interval {
            text.push_str(&format!(" [{}, {}]", ms(i.low), ms(i.high)));
        }
        let controls: Vec<String> = [
            (self.unlimited_p99_us, "unlimited"),
            (self.direct_p99_us, "direct"),
        ]
        .into_iter()
        .filter_map(|(value, name)| Some(format!("{} {name}", ms(value?))))
        .collect();
        if !controls.is_empty() {
            text.push_str(&format!(" against {}", controls.join(" and ")));
        }
        Some(text)
    }

    /// Whether a latency is above the unlimited control's beyond chance: the whole interval of a ratio lies above 1.
    /// `None` when there is no interval (one repetition, no control).
    fn clearly_slower(&self) -> Option<bool> {
        let clear = |ratio: &Option<Estimate>| Some(ratio.as_ref()?.interval?.low > 1.0);
        match (clear(&self.response_ratio), clear(&self.handshake_ratio)) {
            (None, None) => None,
            (a, b) => Some(a == Some(true) || b == Some(true)),
        }
    }
}

/// The verdict of a cell: the most frequent one of its repetitions that are not invalid (the earlier in precedence when
/// two are as frequent). A verdict of cpu, memory or swap must also be clear of chance; see docs/verdicts.md.
/// `None` without repetitions.
#[must_use]
pub fn judge_cell(trials: &[&Judgement], numbers: &CellNumbers) -> Option<Judgement> {
    let usable: Vec<&&Judgement> = trials
        .iter()
        .filter(|j| j.verdict != Verdict::Invalid)
        .collect();
    if trials.is_empty() {
        return None;
    }
    let mut votes: BTreeMap<Verdict, usize> = BTreeMap::new();
    for judgement in &usable {
        *votes.entry(judgement.verdict).or_default() += 1;
    }
    let Some((&verdict, &count)) = votes
        .iter()
        .max_by_key(|(verdict, n)| (**n, std::cmp::Reverse(**verdict)))
    else {
        let mut evidence: Vec<String> = trials.iter().flat_map(|j| j.evidence.clone()).collect();
        evidence.sort();
        evidence.dedup();
        return Some(Judgement::new(Verdict::Invalid, evidence));
    };
    // One repetition in doubt does not put the others in doubt.
    let doubts = |j: &&&Judgement| j.verdict == verdict && j.uncertain;
    let uncertain = 2 * usable.iter().filter(|j| doubts(j)).count() >= count;
    let representative = usable
        .iter()
        .find(|j| j.verdict == verdict && j.uncertain == uncertain);
    let own = representative.map_or_else(Vec::new, |j| j.evidence.clone());
    let votes = format!("{count} of {}", counted(usable.len(), "repetition"));
    let resource = matches!(verdict, Verdict::Cpu | Verdict::Memory | Verdict::Swap);
    if !resource {
        let fine = verdict == Verdict::Ok && !uncertain;
        let mut evidence = match numbers.comparison() {
            // The medians say more than one repetition's own words.
            Some(comparison) if fine => {
                let ratio = numbers.response_ratio.as_ref().and_then(ratio_text);
                std::iter::once(comparison).chain(ratio).collect()
            }
            _ => own,
        };
        if usable.len() > 1 {
            evidence.push(votes);
        }
        return Some(Judgement {
            verdict,
            evidence,
            uncertain,
        });
    }
    Some(resource_verdict(verdict, own, votes, numbers))
}

fn resource_verdict(
    verdict: Verdict,
    own: Vec<String>,
    votes: String,
    numbers: &CellNumbers,
) -> Judgement {
    let mut evidence: Vec<String> = Vec::new();
    if verdict == Verdict::Cpu {
        evidence.extend(
            numbers
                .throttled_share
                .map(|s| format!("{} of periods throttled", percent(s))),
        );
    } else {
        evidence.extend(own.first().cloned());
    }
    evidence.extend(numbers.comparison());
    evidence.extend(numbers.response_ratio.as_ref().and_then(ratio_text));
    evidence.push(votes);
    // Failed requests and lost throughput need no interval of a latency: they are counts of the whole window.
    let counted = own
        .iter()
        .any(|e| e.contains("requests failed") || e.contains("requests/s against"));
    if numbers.clearly_slower() == Some(false) && !counted {
        evidence.insert(
            0,
            format!(
                "looks like {}, but not clear of chance: the ratio's interval includes 1",
                verdict.name()
            ),
        );
        return Judgement {
            verdict: Verdict::Ok,
            evidence,
            uncertain: true,
        };
    }
    Judgement::new(verdict, evidence)
}

fn ratio_text(ratio: &Estimate) -> Option<String> {
    let i = ratio.interval?;
    Some(format!(
        "{}× unlimited [{}, {}]",
        significant(ratio.median),
        significant(i.low),
        significant(i.high)
    ))
}

#[cfg(test)]
mod tests;
