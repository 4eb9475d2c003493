use super::*;
use crate::stats::paired_ratio;

fn judgement(verdict: Verdict, evidence: &str) -> Judgement {
    Judgement::new(verdict, vec![evidence.to_owned()])
}

fn numbers(pairs: &[(f64, f64)]) -> CellNumbers {
    CellNumbers {
        p99: Some((52_000.0, false, None)),
        unlimited_p99_us: Some(2_600.0),
        direct_p99_us: Some(410.0),
        response_ratio: paired_ratio(pairs.iter().copied()),
        throttled_share: Some(0.98),
        ..Default::default()
    }
}

fn judged(trials: &[Judgement], numbers: &CellNumbers) -> Judgement {
    let trials: Vec<&Judgement> = trials.iter().collect();
    judge_cell(&trials, numbers).expect("judgement")
}

#[test]
fn cpu_that_is_clear_of_chance() {
    let clear = numbers(&[
        (52_000.0, 2_600.0),
        (49_000.0, 2_550.0),
        (55_000.0, 2_700.0),
    ]);
    let cell = judged(
        &vec![judgement(Verdict::Cpu, "98 % of periods throttled at 500m CPU"); 3],
        &clear,
    );
    assert_eq!(cell.verdict, Verdict::Cpu);
    assert_eq!(
        cell.evidence[..2],
        [
            "98 % of periods throttled",
            "p99 52.0 ms against 2.60 unlimited and 0.410 direct"
        ]
    );
    assert!(
        cell.evidence[2].starts_with("20.0× unlimited [18."),
        "{cell:?}"
    );
    assert_eq!(cell.evidence[3], "3 of 3 repetitions");
}

#[test]
fn one_doubtful_repetition_does_not_make_the_cell_doubtful() {
    let doubtful = Judgement {
        uncertain: true,
        ..judgement(Verdict::Ok, "unexplained")
    };
    let ok = judgement(Verdict::Ok, "p99 1.74 ms");
    let none = CellNumbers::default();
    let cell = judged(&[doubtful.clone(), ok.clone(), ok.clone()], &none);
    assert_eq!(
        (cell.name(), cell.evidence[0].as_str()),
        ("ok", "p99 1.74 ms")
    );
    let cell = judged(&[ok, doubtful.clone(), doubtful], &none);
    assert_eq!(
        (cell.name(), cell.evidence[0].as_str()),
        ("ok?", "unexplained")
    );
}

#[test]
fn cpu_that_may_be_chance_is_ok_with_a_question_mark() {
    let wide = numbers(&[(52_000.0, 2_600.0), (2_600.0, 2_550.0), (3_000.0, 2_700.0)]);
    let cell = judged(&vec![judgement(Verdict::Cpu, "x"); 3], &wide);
    assert_eq!(cell.name(), "ok?");
    assert_eq!(
        cell.evidence[0],
        "looks like cpu, but not clear of chance: the ratio's interval includes 1"
    );
    let counted = judged(
        &vec![
            Judgement::new(
                Verdict::Cpu,
                vec!["x".into(), "5.0 % of requests failed".into()]
            );
            3
        ],
        &wide,
    );
    assert_eq!(
        counted.verdict,
        Verdict::Cpu,
        "failed requests need no interval of a latency"
    );
}

#[test]
fn one_repetition_or_no_control_cannot_be_tested_for_chance() {
    let one = numbers(&[(52_000.0, 2_600.0)]);
    assert_eq!(
        judged(&[judgement(Verdict::Cpu, "x")], &one).verdict,
        Verdict::Cpu
    );
    let none = CellNumbers::default();
    assert_eq!(
        judged(&vec![judgement(Verdict::Cpu, "x"); 3], &none).verdict,
        Verdict::Cpu
    );
}

#[test]
fn the_most_frequent_verdict_wins_and_precedence_breaks_ties() {
    use Verdict::{Hung, Invalid, Oom};
    let of = |verdicts: &[Verdict]| {
        let trials: Vec<Judgement> = verdicts.iter().map(|v| judgement(*v, v.name())).collect();
        judged(&trials, &CellNumbers::default())
    };
    assert_eq!(of(&[Hung, Oom, Hung]).verdict, Hung);
    assert_eq!(
        of(&[Hung, Oom, Hung]).evidence,
        ["hung", "2 of 3 repetitions"]
    );
    assert_eq!(of(&[Hung, Oom]).verdict, Oom);
    assert_eq!(
        of(&[Invalid, Invalid, Verdict::Ok]).verdict,
        Verdict::Ok,
        "invalid ones tell nothing"
    );
    assert_eq!(of(&[Invalid, Invalid]).evidence, ["invalid"]);
    assert_eq!(judge_cell(&[], &CellNumbers::default()), None);
}
