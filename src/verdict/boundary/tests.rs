use super::*;

struct Cells(Vec<(Vec<Factor>, Judgement, CellNumbers)>);

impl Cells {
    /// Cells of a cpu × memory matrix by `(cpu, memory, verdict)`.
    fn new(cells: &[(&str, &str, Verdict)]) -> Self {
        let factor = |name: &str, level: &str| Factor {
            name: name.to_owned(),
            level: level.to_owned(),
        };
        let cells = cells.iter().map(|(cpu, memory, verdict)| {
            let judgement = Judgement::new(
                *verdict,
                vec![
                    format!("evidence of {cpu}/{memory}"),
                    "3 of 3 repetitions".to_owned(),
                ],
            );
            let factors = vec![
                factor("cpu", cpu),
                factor("memory", memory),
                factor("swap", "0"),
            ];
            (factors, judgement, CellNumbers::default())
        });
        Self(cells.collect())
    }

    fn boundary(&self) -> Boundary {
        let mut factors: Vec<FactorLevels> = Vec::new();
        for (levels, _, _) in &self.0 {
            for f in levels {
                match factors.iter_mut().find(|x| x.name == f.name) {
                    Some(known) if known.levels.contains(&f.level) => {}
                    Some(known) => known.levels.push(f.level.clone()),
                    None => factors.push(FactorLevels {
                        name: f.name.clone(),
                        levels: vec![f.level.clone()],
                    }),
                }
            }
        }
        let cells: Vec<JudgedCell<'_>> = self
            .0
            .iter()
            .map(|(factors, judgement, numbers)| JudgedCell {
                factors,
                judgement,
                numbers,
            })
            .collect();
        find(&factors, &cells, &[])
    }
}

use Verdict::{Cpu, Hung, Invalid, Memory, Ok, Oom};

#[test]
fn cpu_matters_and_memory_does_not() {
    let boundary = Cells::new(&[
        ("250m", "64Mi", Cpu),
        ("250m", "256Mi", Cpu),
        ("500m", "64Mi", Cpu),
        ("500m", "256Mi", Cpu),
        ("1", "64Mi", Ok),
        ("1", "256Mi", Ok),
    ])
    .boundary();
    assert_eq!(
        boundary.headline,
        [
            "cpu ≤ 500m: the CPU limit dominates: evidence of 500m/64Mi (at cpu 500m, memory 64Mi).",
            "memory ≥ 64Mi: no effect on the verdict.",
        ]
    );
    let change = boundary.axes[0].slices[0].change.as_ref().expect("change");
    assert_eq!(
        (change.at.level.as_str(), change.before.level.as_str()),
        ("500m", "1")
    );
}

#[test]
fn each_limit_has_its_own_boundary() {
    let boundary = Cells::new(&[
        ("250m", "6Mi", Oom),
        ("250m", "8Mi", Hung),
        ("250m", "64Mi", Cpu),
        ("1", "6Mi", Oom),
        ("1", "8Mi", Hung),
        ("1", "64Mi", Ok),
    ])
    .boundary();
    assert_eq!(
        boundary.headline,
        [
            "cpu = 250m at memory 64Mi: the CPU limit dominates: evidence of 250m/64Mi.",
            "memory = 8Mi: the proxy lives but does not answer: evidence of 250m/8Mi (at cpu 250m, memory 8Mi).",
        ]
    );
}

#[test]
fn a_boundary_holds_where_its_levels_say() {
    let boundary = Cells::new(&[
        ("250m", "8Mi", Hung),
        ("250m", "64Mi", Cpu),
        ("250m", "128Mi", Cpu),
        ("250m", "256Mi", Cpu),
        ("1", "8Mi", Hung),
        ("1", "64Mi", Ok),
        ("1", "128Mi", Ok),
        ("1", "256Mi", Ok),
    ])
    .boundary();
    assert_eq!(
        boundary.headline,
        [
            "cpu = 250m at memory 64Mi, 128Mi, 256Mi: the CPU limit dominates: evidence of 250m/64Mi (at cpu 250m, memory 64Mi).",
            "memory = 8Mi: the proxy lives but does not answer: evidence of 250m/8Mi (at cpu 250m, memory 8Mi).",
        ]
    );
}

#[test]
fn an_inert_factor_has_no_boundary() {
    let factor = |name: &str, level: &str| Factor {
        name: name.to_owned(),
        level: level.to_owned(),
    };
    let judgement = [
        Judgement::new(Cpu, vec!["x".to_owned()]),
        Judgement::new(Ok, Vec::new()),
    ];
    let numbers = CellNumbers::default();
    let mut factors = Vec::new();
    for cpu in ["250m", "1"] {
        for swap in ["0", "64Mi"] {
            factors.push([factor("cpu", cpu), factor("swap", swap)]);
        }
    }
    let cells: Vec<JudgedCell<'_>> = factors
        .iter()
        .enumerate()
        .map(|(i, factors)| JudgedCell {
            factors,
            judgement: &judgement[i / 2],
            numbers: &numbers,
        })
        .collect();
    let levels = |name: &str, levels: [&str; 2]| FactorLevels {
        name: name.to_owned(),
        levels: levels.map(str::to_owned).to_vec(),
    };
    let all = [levels("cpu", ["250m", "1"]), levels("swap", ["0", "64Mi"])];
    assert_eq!(
        find(&all, &cells, &["swap"]).headline,
        [
            "cpu = 250m: the CPU limit dominates: x (at cpu 250m, swap 0).",
            "swap: inert on this host, see the notes.",
        ]
    );
}

#[test]
fn more_of_something_can_be_worse() {
    let boundary = Cells::new(&[
        ("1", "64Mi", Ok),
        ("2", "64Mi", Memory),
        ("4", "64Mi", Memory),
    ])
    .boundary();
    assert_eq!(
        boundary.headline,
        ["cpu ≥ 2: the memory limit dominates: evidence of 2/64Mi."]
    );
}

#[test]
fn one_verdict_everywhere_and_none_at_all() {
    let all_ok = Cells::new(&[("1", "64Mi", Ok), ("2", "64Mi", Ok)]).boundary();
    assert_eq!(
        all_ok.headline,
        ["Every cell is ok: no limit of this matrix has an effect."]
    );
    let mut unclear = Cells::new(&[("1", "64Mi", Ok), ("2", "64Mi", Ok)]);
    unclear.0[0].1.uncertain = true;
    assert_eq!(
        unclear.boundary().headline,
        [
            "Every cell is ok, but 1 of 2 is not explained (ok?): evidence of 1/64Mi, 3 of 3 repetitions.",
        ]
    );
    let starved = Cells::new(&[("50m", "64Mi", Cpu), ("100m", "64Mi", Cpu)]).boundary();
    assert_eq!(
        starved.headline,
        [
            "Always: the CPU limit dominates in every cell; at cpu 50m, memory 64Mi, swap 0: evidence of 50m/64Mi, 3 of 3 repetitions.",
        ]
    );
    assert_eq!(
        Cells::new(&[("1", "64Mi", Invalid)]).boundary().headline,
        ["Nothing can be told: every cell is invalid."]
    );
    assert_eq!(Cells::new(&[]).boundary().headline, Vec::<String>::new());
}

#[test]
fn one_verdict_beside_invalid_cells_is_not_that_of_all() {
    let headline =
        |cells: &[(&str, &str, Verdict)]| Cells::new(cells).boundary().headline.join("\n");
    insta::assert_snapshot!(headline(&[("50m", "64Mi", Invalid), ("100m", "64Mi", Cpu)]), @r"
    1 of 2 cells is invalid and tells nothing.
    In the other cell, at cpu 100m, memory 64Mi, swap 0: the CPU limit dominates: evidence of 100m/64Mi, 3 of 3 repetitions.
    ");
    insta::assert_snapshot!(headline(&[("50m", "64Mi", Invalid), ("100m", "64Mi", Cpu), ("200m", "64Mi", Cpu)]), @r"
    1 of 3 cells is invalid and tells nothing.
    In every other cell: the CPU limit dominates; at cpu 100m, memory 64Mi, swap 0: evidence of 100m/64Mi, 3 of 3 repetitions.
    ");
    insta::assert_snapshot!(headline(&[("50m", "64Mi", Invalid), ("70m", "64Mi", Invalid), ("1", "64Mi", Ok)]), @r"
    2 of 3 cells are invalid and tell nothing.
    The other cell is ok: its limits have no effect.
    ");
    insta::assert_snapshot!(headline(&[("50m", "64Mi", Invalid), ("1", "64Mi", Ok), ("2", "64Mi", Ok)]), @r"
    1 of 3 cells is invalid and tells nothing.
    Every other cell is ok: no limit has an effect there.
    ");
}

#[test]
fn an_invalid_cell_is_a_gap_and_no_boundary() {
    let boundary = Cells::new(&[
        ("250m", "64Mi", Cpu),
        ("500m", "64Mi", Invalid),
        ("1", "64Mi", Ok),
    ])
    .boundary();
    assert_eq!(
        boundary.headline,
        [
            "1 of 3 cells is invalid and tells nothing.",
            "cpu = 250m: the CPU limit dominates: evidence of 250m/64Mi."
        ]
    );
}

#[test]
fn levels_stand_in_the_order_of_their_quantity() {
    let sorted =
        |levels: &[&str]| ascending(&levels.iter().map(|l| (*l).to_owned()).collect::<Vec<_>>());
    assert_eq!(
        sorted(&["1", "250m", "0.5", "2"]),
        ["250m", "0.5", "1", "2"]
    );
    assert_eq!(
        sorted(&["1Gi", "64Mi", "512", "100M"]),
        ["512", "64Mi", "100M", "1Gi"]
    );
    assert_eq!(sorted(&["5ms", "200us", "1s"]), ["200us", "5ms", "1s"]);
    assert_eq!(
        sorted(&["h2", "h1"]),
        ["h2", "h1"],
        "no quantity: as in the matrix"
    );
}
