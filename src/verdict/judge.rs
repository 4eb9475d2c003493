//! The verdict of one trial.

use super::controls::{ControlStats, value};
use super::effect::{self, Effect};
use super::{Judgement, Verdict, signs, validity};
use crate::record::derived;
use crate::record::trial::{Control, FailureKind, TrialRecord, TrialStatus};

/// Judges a trial by its own record and the controls of its cell. The first failure mode that applies is the verdict;
/// the signs of later ones follow in the evidence as `also: …`.
#[must_use]
pub fn judge(trial: &TrialRecord, controls: &ControlStats) -> Judgement {
    let reasons = invalid_because(trial);
    if !reasons.is_empty() {
        return Judgement::new(Verdict::Invalid, reasons);
    }
    let effect = effect::of(trial, controls);
    let mut found: Vec<(Verdict, Vec<String>)> = Vec::new();
    for (verdict, evidence) in candidates(trial, controls, &effect) {
        if let Some(evidence) = evidence {
            found.push((verdict, evidence));
        }
    }
    let mut found = found.into_iter();
    match found.next() {
        Some((verdict, mut evidence)) => {
            evidence.extend(
                found
                    .flat_map(|(_, signs)| signs)
                    .map(|sign| format!("also: {sign}")),
            );
            dedup(&mut evidence);
            Judgement::new(verdict, evidence)
        }
        None => Judgement {
            verdict: Verdict::Ok,
            evidence: nothing_found(trial, &effect),
            uncertain: effect.hurts(),
        },
    }
}

/// Why a trial's numbers must not be used: what the record says, and what was decided when it was written. Empty when they
/// may be.
#[must_use]
pub fn invalid_because(trial: &TrialRecord) -> Vec<String> {
    let mut reasons = validity::findings(trial).reasons;
    let harness = matches!(
        trial.failure,
        Some(FailureKind::Engine | FailureKind::Harness)
    );
    if harness || trial.status == TrialStatus::Invalid {
        reasons.extend(trial.reasons.iter().cloned());
        if reasons.is_empty() {
            reasons.push("marked invalid when it was recorded".to_owned());
        }
    }
    dedup(&mut reasons);
    reasons
}

/// Every failure mode in the order of precedence, with its signs if it applies.
fn candidates(
    trial: &TrialRecord,
    controls: &ControlStats,
    effect: &Effect,
) -> Vec<(Verdict, Option<Vec<String>>)> {
    if trial.control == Some(Control::Direct) {
        return vec![(Verdict::Application, signs::application(trial, controls))];
    }
    let descriptors = signs::descriptors(trial);
    // Both are what running out of descriptors looks like from outside.
    let unless_out_of_descriptors =
        |signs: Option<Vec<String>>| signs.filter(|_| descriptors.is_none());
    let hurt = effect.hurts();
    // Signs of a short resource make a verdict only if something got worse by it.
    let with_effect = |signs: Option<Vec<String>>| {
        signs.filter(|_| hurt).map(|mut signs| {
            signs.extend(effect.words.iter().cloned());
            signs
        })
    };
    let (cpu, memory) = (signs::cpu(trial), signs::memory(trial));
    let memory_first = cpu.is_some() && memory.is_some() && signs::stalls_on_memory_more(trial);
    let mut resources = vec![
        (Verdict::Cpu, with_effect(cpu)),
        (Verdict::Memory, with_effect(memory)),
    ];
    if memory_first {
        resources.reverse();
    }
    let mut all = vec![
        (Verdict::Oom, signs::oom(trial)),
        (
            Verdict::StartFailed,
            unless_out_of_descriptors(signs::start_failed(trial)),
        ),
        (Verdict::Hung, unless_out_of_descriptors(signs::hung(trial))),
        (Verdict::FdLimit, descriptors.clone()),
        (
            Verdict::AcceptOverflow,
            signs::accept_overflow(trial).filter(|_| !signs::stuck(trial)),
        ),
        (Verdict::Policy, signs::policy(trial, hurt)),
    ];
    all.extend(resources);
    all.push((Verdict::Swap, with_effect(signs::swap(trial))));
    all.push((Verdict::Application, signs::application(trial, controls)));
    // Nothing says what a silent proxy was short of.
    all.push((
        Verdict::Hung,
        unless_out_of_descriptors(signs::silent(trial)),
    ));
    all.push((Verdict::AcceptOverflow, signs::accept_overflow(trial)));
    all
}

fn nothing_found(trial: &TrialRecord, effect: &Effect) -> Vec<String> {
    if effect.hurts() {
        let mut evidence = vec!["unexplained: no limit shows signs of being the cause".to_owned()];
        evidence.extend(effect.words.iter().cloned());
        evidence.extend(signs::faults_without_limit(trial));
        return evidence;
    }
    let mut evidence = effect.words.clone();
    if let Some(share) = derived::throttled_share(trial).filter(|&s| s >= signs::THROTTLED_SHARE) {
        evidence.push(format!(
            "{} of periods throttled, without an effect on what the client sees",
            super::words::percent(share)
        ));
    }
    if evidence.is_empty()
        && let Some(p99) = value(trial, "response_time_p99_us").number()
    {
        evidence.push(format!("p99 {} ms", super::words::ms(p99)));
    }
    evidence
}

fn dedup(texts: &mut Vec<String>) {
    let mut seen = std::collections::BTreeSet::new();
    texts.retain(|t| seen.insert(t.trim_start_matches("also: ").to_owned()));
}

#[cfg(test)]
mod tests;
