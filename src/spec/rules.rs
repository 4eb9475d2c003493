//! Combinations that cannot be, and settings that have no effect.
//!
//! Each rule names the keys that it looks at. Only combinations of *their* factors are tried, so that a matrix of many
//! cells is judged by few, and a fault is reported once a level and not once a cell.

mod list;

use super::MAX_TRIALS;
use super::fault::{Faults, Place};
use super::keys;
use super::sections::Draft;
use super::settings::Settings;

/// What a rule says of a combination.
pub(super) struct Clash {
    message: String,
    remedy: String,
}

/// A combination that cannot be, or is probably not meant.
struct Rule {
    /// What it looks at; the fault is placed at the first of them that is a factor or was given.
    keys: &'static [&'static str],
    /// Whether the run may go on.
    only_warns: bool,
    check: fn(&Settings) -> Option<Clash>,
}

/// A key that has an effect only under a condition.
struct Conditional {
    key: &'static str,
    depends_on: &'static [&'static str],
    has_effect: fn(&Settings) -> bool,
    condition: &'static str,
}

pub(super) fn check(draft: &Draft, faults: &mut Faults, warnings: &mut Faults) {
    for rule in list::RULES {
        let out = if rule.only_warns {
            &mut *warnings
        } else {
            &mut *faults
        };
        apply(rule, draft, out);
    }
    for conditional in list::CONDITIONALS {
        check_effect(conditional, draft, faults, warnings);
    }
}

fn apply(rule: &Rule, draft: &Draft, out: &mut Faults) {
    if rule.keys.iter().any(|key| draft.broken.contains(key)) {
        return;
    }
    let mut told = std::collections::BTreeSet::new();
    let combinations = Combinations::of(draft, rule.keys);
    combinations.each(&mut |settings, levels| {
        let Some(clash) = (rule.check)(settings) else {
            return;
        };
        let at = rule.keys.iter().find_map(|key| {
            let level = combinations.level_place(key, levels);
            level.or_else(|| draft.given.get(key).cloned())
        });
        let at = at.unwrap_or_default();
        if told.insert(at.clone()) {
            out.add(&at, clash.message, clash.remedy);
        }
    });
}

fn check_effect(
    conditional: &Conditional,
    draft: &Draft,
    faults: &mut Faults,
    warnings: &mut Faults,
) {
    let unknown = |key: &&str| draft.broken.contains(*key);
    if conditional.depends_on.iter().any(unknown) {
        return;
    }
    let mut ever = false;
    Combinations::of(draft, conditional.depends_on)
        .each(&mut |settings, _| ever |= (conditional.has_effect)(settings));
    if ever {
        return;
    }
    let Conditional { key, condition, .. } = conditional;
    let name = keys::find(key).map_or(*key, keys::Key::factor_name);
    if let Some(factor) = draft.factor(key) {
        faults.add(
            &factor.at,
            format!("factor \"{name}\" has no effect: {condition}"),
            "remove it: its levels would be the same trial again",
        );
    } else if let Some(at) = draft.given.get(key) {
        warnings.add(at, format!("{key} has no effect: {condition}"), "remove it");
    }
}

/// The factors among some keys, and all combinations of their levels.
struct Combinations<'d> {
    draft: &'d Draft,
    factors: Vec<&'d super::FactorLevels>,
}

impl<'d> Combinations<'d> {
    fn of(draft: &'d Draft, keys: &[&str]) -> Self {
        let factors = draft
            .factors
            .iter()
            .filter(|factor| keys.contains(&factor.path))
            .collect();
        Self { draft, factors }
    }

    /// Calls `visit` with the settings and the levels of every combination; never more than a whole matrix may have.
    fn each(&self, visit: &mut dyn FnMut(&Settings, &[usize])) {
        let mut base = self.draft.base.clone();
        // No rule reads the texts, and they may be long.
        base.proxy.files.values_mut().for_each(String::clear);
        base.proxy.config = base.proxy.config.map(|_| String::new());
        let implied = self.draft.implied();
        let mut levels = vec![0usize; self.factors.len()];
        if self.factors.iter().any(|factor| factor.levels.is_empty()) {
            return;
        }
        for _ in 0..MAX_TRIALS {
            let mut settings = base.clone();
            for (factor, level) in self.factors.iter().zip(&levels) {
                if let Some(level) = factor.levels.get(*level) {
                    level.patch.apply(&mut settings);
                }
            }
            implied.resolve(&mut settings);
            visit(&settings, &levels);
            if !self.next(&mut levels) {
                return;
            }
        }
    }

    fn next(&self, levels: &mut [usize]) -> bool {
        for (factor, level) in self.factors.iter().zip(levels).rev() {
            *level += 1;
            if *level < factor.levels.len() {
                return true;
            }
            *level = 0;
        }
        false
    }

    fn level_place(&self, key: &str, levels: &[usize]) -> Option<Place> {
        let position = self.factors.iter().position(|factor| factor.path == key)?;
        let level = levels.get(position)?;
        let level = self.factors.get(position)?.levels.get(*level)?;
        Some(level.at.clone())
    }
}
