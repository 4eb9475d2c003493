#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::record::trial::Control;
use crate::spec;

fn matrix(text: &str) -> Matrix {
    spec::parse("matrix.toml", text, &[], &mut |_| Ok(String::new())).unwrap()
}

fn ids(plan: &Plan) -> Vec<&str> {
    plan.cells.iter().map(Cell::id).collect()
}

const SMALL: &str = r#"
name = "small"
repetitions = 2
warmup = "1s"
duration = "5s"
controls = ["direct", "unlimited"]
[matrix]
cpu = ["250m", "1"]
"proxy.workers" = [1, 2]
"load.rate" = [500, 2000]
[limits]
memory = "64Mi"
swap = "64Mi"
"#;

#[test]
fn cells_and_controls_by_the_factors_that_matter() {
    insta::assert_snapshot!(ids(&build(&matrix(SMALL))).join("\n"), @r"
    cpu=250m,proxy.workers=1,load.rate=500
    cpu=250m,proxy.workers=1,load.rate=2000
    cpu=250m,proxy.workers=2,load.rate=500
    cpu=250m,proxy.workers=2,load.rate=2000
    cpu=1,proxy.workers=1,load.rate=500
    cpu=1,proxy.workers=1,load.rate=2000
    cpu=1,proxy.workers=2,load.rate=500
    cpu=1,proxy.workers=2,load.rate=2000
    direct,load.rate=500
    direct,load.rate=2000
    unlimited,proxy.workers=1,load.rate=500
    unlimited,proxy.workers=1,load.rate=2000
    unlimited,proxy.workers=2,load.rate=500
    unlimited,proxy.workers=2,load.rate=2000
    ");
}

#[test]
fn controls_have_no_limits() {
    let matrix = matrix(SMALL);
    let plan = build(&matrix);
    for cell in &plan.cells {
        let settings = matrix.settings(cell);
        let limited = settings.limits.cpu.is_some();
        assert_eq!(limited, cell.control().is_none(), "{}", cell.id());
        assert_eq!(settings.limits.memory.is_some(), limited);
        assert_eq!(settings.limits.swap.0 > 0, limited);
    }
    let last = plan.cells.last().unwrap();
    assert_eq!(last.control(), Some(Control::Unlimited));
    let settings = matrix.settings(last);
    assert_eq!((settings.proxy.workers, settings.load.rate.0), (2, 2000.0));
}

#[test]
fn every_cell_finds_its_controls() {
    let plan = build(&matrix(SMALL));
    for cell in plan.cells.iter().filter(|cell| cell.control().is_none()) {
        let own: Vec<&str> = plan
            .cells
            .iter()
            .filter(|other| other.is_control_of(cell))
            .map(Cell::id)
            .collect();
        let (workers_and_rate, rate) = (
            cell.id().split_once(',').unwrap().1,
            cell.id().rsplit(',').next().unwrap(),
        );
        assert_eq!(
            own,
            [
                format!("direct,{rate}"),
                format!("unlimited,{workers_and_rate}")
            ]
        );
    }
}

#[test]
fn a_matrix_without_factors_is_one_cell() {
    let matrix = matrix("controls = [\"direct\"]");
    let plan = build(&matrix);
    assert_eq!(ids(&plan), ["base", "direct"]);
    assert_eq!(plan.trials.len(), 6);
}

#[test]
fn separators_in_levels_cannot_make_equal_ids() {
    let plan = build(&matrix(
        "[matrix]\n\"load.path\" = [\"/a,load.method=B\", \"/a\", \"/%2C\"]\n\"load.method\" = [\"B\", \"C\"]",
    ));
    let unique: BTreeSet<&str> = ids(&plan).into_iter().collect();
    assert_eq!(unique.len(), plan.cells.len());
    assert_eq!(
        ids(&plan).first().unwrap(),
        &"load.path=/a%2Cload.method%3DB,load.method=B"
    );
}

#[test]
fn the_estimate_counts_every_window() {
    let one = build(&matrix(
        "repetitions = 1\nwarmup = \"1s\"\nduration = \"5s\"",
    ));
    assert_eq!(one.estimate, Micros::from_millis(8_500));
    let varied = build(&matrix(
        "repetitions = 2\nwarmup = \"1s\"\n[matrix]\nduration = [\"5s\", \"10s\"]",
    ));
    assert_eq!(varied.estimate, Micros::from_millis(2 * (8_500 + 13_500)));
}

#[test]
fn more_repetitions_keep_the_blocks_before() {
    let few = build(&matrix("repetitions = 2\n[matrix]\ncpu = [1, 2, 3, 4, 5]"));
    let more = build(&matrix("repetitions = 3\n[matrix]\ncpu = [1, 2, 3, 4, 5]"));
    assert_eq!(few.trials, more.trials.get(..10).unwrap());
}

#[test]
fn the_text_of_a_plan() {
    let matrix = matrix(SMALL);
    insta::assert_snapshot!(build(&matrix).text(&matrix, 6), @r"
    small: 28 trials in 2 blocks of 8 cells and 6 controls: 1s + 5s each, about 3m 58s
      cpu: 250m, 1
      proxy.workers: 1, 2
      load.rate: 500, 2000

     cell  cpu   proxy.workers  load.rate
     1     250m  1              500
     2     250m  1              2000
     3     250m  2              500
     4     250m  2              2000
     5     1     1              500
     6     1     1              2000
     and 8 cells more

    Order (seed 1):
         1  block 1  cpu=250m,proxy.workers=1,load.rate=500
         2  block 1  cpu=1,proxy.workers=2,load.rate=2000
         3  block 1  direct,load.rate=2000
         4  block 1  unlimited,proxy.workers=1,load.rate=500
         5  block 1  cpu=250m,proxy.workers=2,load.rate=500
         6  block 1  cpu=1,proxy.workers=2,load.rate=500
            and 22 trials more
    ");
}

#[test]
fn the_json_of_a_plan() {
    let matrix = matrix(
        "name = \"one\"\nrepetitions = 1\ncontrols = [\"direct\"]\n[matrix]\ncpu = [\"250m\"]",
    );
    let mut view = build(&matrix).view(&matrix);
    assert_eq!(view.matrix_hash, matrix.hash());
    view.matrix_hash = "(hash)".to_owned();
    insta::assert_snapshot!(serde_json::to_string_pretty(&view).unwrap(), @r#"
    {
      "name": "one",
      "matrix_hash": "(hash)",
      "seed": 1,
      "repetitions": 1,
      "estimate_seconds": 75.0,
      "cells": [
        {
          "id": "cpu=250m",
          "control": null,
          "factors": [
            {
              "name": "cpu",
              "level": "250m"
            }
          ],
          "estimate_seconds": 37.5
        },
        {
          "id": "direct",
          "control": "direct",
          "factors": [],
          "estimate_seconds": 37.5
        }
      ],
      "trials": [
        {
          "position": 0,
          "cell": "direct",
          "repetition": 1,
          "block": 1,
          "seed": 5609246205992565681
        },
        {
          "position": 1,
          "cell": "cpu=250m",
          "repetition": 1,
          "block": 1,
          "seed": 5298484703535985122
        }
      ]
    }
    "#);
}

fn any_matrix() -> impl Strategy<Value = String> {
    let levels = |most: u32| prop::collection::btree_set(1..=most, 1..5);
    (any::<u32>(), 1u32..6, 0usize..4, levels(900), levels(8), levels(5000)).prop_map(
        |(seed, repetitions, controls, cpu, workers, rate)| {
            let controls = ["[]", "[\"direct\"]", "[\"unlimited\"]", "[\"direct\", \"unlimited\"]"]
                .get(controls)
                .unwrap();
            let list = |set: BTreeSet<u32>| set.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
            let cpu: Vec<String> = cpu.into_iter().map(|n| format!("\"{}m\"", n + 10)).collect();
            format!(
                "seed = {seed}\nrepetitions = {repetitions}\ncontrols = {controls}\n[matrix]\ncpu = [{}]\n\"proxy.workers\" = [{}]\n\"load.rate\" = [{}]",
                cpu.join(","), list(workers), list(rate)
            )
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn blocks_are_permutations_of_all_cells(text in any_matrix()) {
        let matrix = matrix(&text);
        let plan = build(&matrix);
        let cells = plan.cells.len();
        prop_assert_eq!(plan.trials.len(), cells * matrix.repetitions as usize);
        for (n, block) in plan.trials.chunks(cells).enumerate() {
            let in_block: BTreeSet<usize> = block.iter().map(|trial| trial.cell).collect();
            prop_assert_eq!(in_block.len(), cells);
            prop_assert!(block.iter().all(|trial| trial.block as usize == n + 1 && trial.repetition == trial.block));
        }
        let unique: BTreeSet<&str> = ids(&plan).into_iter().collect();
        prop_assert_eq!(unique.len(), cells);
        let seeds: BTreeSet<u64> = plan.trials.iter().map(|trial| trial.seed).collect();
        prop_assert_eq!(seeds.len(), plan.trials.len());
        prop_assert!(plan.trials.iter().enumerate().all(|(n, trial)| trial.position == n as u64));
        // Made again, it is the same.
        prop_assert_eq!(plan, build(&matrix));
    }

    #[test]
    fn the_order_depends_on_the_seed(a in any::<u32>(), b in any::<u32>()) {
        prop_assume!(a != b);
        let of = |seed: u32| {
            let text = format!("seed = {seed}\nrepetitions = 1\n[matrix]\n\"load.users\" = [{}]\n[load]\nmode = \"closed\"", (1..=30).map(|n| n.to_string()).collect::<Vec<_>>().join(","));
            build(&matrix(&text)).trials.iter().map(|t| t.cell).collect::<Vec<_>>()
        };
        prop_assert_ne!(of(a), of(b));
    }
}
