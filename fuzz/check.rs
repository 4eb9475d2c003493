//! What must hold for any bytes as a matrix: used by the fuzzer, and by the test that runs its corpus.

use sweep::spec::{self, Override};
use sweep::{plan, spec::MAX_TRIALS};

/// The bytes up to the first NUL are the file; what follows, split at NUL, are `--set` overrides.
pub(crate) fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let mut parts = text.split('\0');
    let file = parts.next().unwrap_or_default();
    let overrides: Vec<Override> = parts.take(8).map(Override::from).collect();
    let mut files = |path: &str| match path.len() % 2 {
        0 => Ok(path.to_owned()),
        _ => Err(path.to_owned()),
    };
    match spec::parse("matrix.toml", file, &overrides, &mut files) {
        Ok(matrix) => check_right(&matrix),
        Err(errors) => check_wrong(&errors),
    }
}

/// A matrix that was accepted is planned within its bounds, and everything printed of it is harmless.
fn check_right(matrix: &spec::Matrix) {
    let cells = matrix
        .factors
        .iter()
        .map(|factor| factor.levels.len() as u64);
    let trials = cells.product::<u64>() * u64::from(matrix.repetitions);
    assert!(trials <= MAX_TRIALS);
    // Long plans are slow, and like short ones.
    if trials > 500 {
        return;
    }
    let plan = plan::build(matrix);
    assert!(!plan.trials.is_empty() && plan.trials.len() as u64 <= MAX_TRIALS);
    assert_eq!(
        plan.trials.len(),
        plan.cells.len() * matrix.repetitions as usize
    );
    let mut ids = std::collections::BTreeSet::new();
    for cell in &plan.cells {
        assert!(ids.insert(cell.id()), "two cells of one id: {}", cell.id());
        assert!(harmless(cell.id()));
    }
    for cell in plan.cells.iter().rev().take(20) {
        let settings = matrix.settings(cell);
        assert!(settings.limits.memory.is_some() || settings.limits.swap.0 == 0);
        assert!(!settings.proxy.image.is_empty());
        assert!(
            settings.duration.0 > 0 && settings.proxy.workers > 0 && settings.load.rate.0 > 0.0
        );
    }
    assert!(harmless(&matrix.name) && !matrix.name.contains('/'));
    assert!(harmless(&plan.text(matrix, 5)));
    assert!(harmless(&matrix.render_warnings(false)));
    assert_eq!(matrix.hash().len(), 64);
    if let Err(errors) = matrix.check_engine(2.0) {
        check_wrong(&errors);
    }
}

/// A matrix that was refused says where, what, and what would be right, in few and harmless words.
fn check_wrong(errors: &spec::SpecErrors) {
    assert!(!errors.errors.is_empty() && errors.errors.len() <= 100);
    for error in &errors.errors {
        assert!(error.source == "--set" || (error.line.is_some() && error.column.is_some()));
        assert!(!error.message.is_empty() && !error.remedy.is_empty());
    }
    let (plain, rendered) = (errors.to_string(), errors.render(false));
    assert!(harmless(&plain), "{plain:?}");
    assert!(harmless(&rendered), "{rendered:?}");
    assert!(plain.len() < 200_000 && rendered.len() < 500_000);
}

/// Nothing that moves a cursor, colours a terminal or reorders what is read.
fn harmless(text: &str) -> bool {
    !text.chars().any(|c| {
        (c.is_control() && c != '\n')
            || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
    })
}
