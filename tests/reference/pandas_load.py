#!/usr/bin/env python3
"""Loads the CSV files of a results folder into pandas without options, and checks that numbers came as numbers.

    /tmp/reference/bin/pip install pandas
    /tmp/reference/bin/python tests/reference/pandas_load.py results/RUN

The columns that hold text are those of kind `text` in docs/columns.md, and those of further factors.
"""

import pathlib
import re
import sys

import pandas as pd

folder = pathlib.Path(sys.argv[1])
page = (pathlib.Path(__file__).parents[2] / "docs" / "columns.md").read_text()
kinds = dict(re.findall(r"^\| `(\w+)` \|[^|]*\| (\w+) \|", page, re.M))

trials = pd.read_csv(folder / "trials.csv")
missing = [c for c in kinds if c not in trials.columns]
assert not missing, f"documented, but not in trials.csv: {missing}"
wrong = [
    c for c in trials.columns
    if kinds.get(c, "text") != "text" and not pd.api.types.is_numeric_dtype(trials[c])
]
assert not wrong, f"not numbers: {wrong}"
assert (trials["status"].isin(["valid", "invalid", "failed"])).all()
valid = trials[trials["status"] == "valid"]
assert (valid["response_time_p99_us"].notna() | (valid["response_time_censored"] > 0)).all()
assert trials["run"].map(type).eq(str).all(), "the run's id came as a number"

summary = pd.read_csv(folder / "summary.csv")
if len(summary):
    for column in ["n", "median", "ci95_low", "ci95_high", "ci_level"]:
        assert pd.api.types.is_numeric_dtype(summary[column]), column
    wide = summary.pivot_table(index="cell", columns="metric", values="median")
    assert "achieved_rate_rps" in wide
else:
    assert not (trials["status"] == "valid").any(), "valid trials, but no summary"

samples = pd.read_csv(folder / "samples.csv")
text = {"cell", "control"}
wrong = [c for c in samples.columns if c not in text and not pd.api.types.is_numeric_dtype(samples[c])]
assert not wrong, f"not numbers: {wrong}"
print(f"pandas {pd.__version__}: {len(trials)} trials, {len(summary)} summaries, {len(samples)} samples")
