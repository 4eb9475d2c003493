#!/usr/bin/env python3
"""Writes stats.json: values that the statistics of `sweep` are checked against.

    python3 -m venv /tmp/reference && /tmp/reference/bin/pip install scipy==1.17.1
    /tmp/reference/bin/python tests/reference/stats.py > tests/reference/stats.json

Every value comes from a public function of scipy, none from a formula of our own:
ttest_1samp (t intervals), quantile_test (distribution-free interval of a median), linregress (slope), t.ppf.
"""

import json
import sys

import numpy as np
import scipy
from scipy import stats

LEVEL = 0.95

SAMPLES = {
    "two": [51.2, 49.9],
    "three-latencies": [52_031.0, 49_215.0, 55_103.0],
    "three-skewed": [2_601.0, 2_640.0, 91_007.0],
    "four": [0.98, 0.97, 0.985, 0.99],
    "five": [1.0, 10.0, 100.0, 1_000.0, 10_000.0],
    "six": [5.0, 3.0, 8.0, 1.0, 9.0, 2.0],
    "seven": [101.0, 99.0, 103.5, 98.25, 100.0, 107.0, 96.5],
    "ten": [float(v) for v in (12, 15, 11, 19, 14, 13, 18, 17, 16, 10)],
    "thirty": [float((i * 7919) % 1009 + 1) for i in range(30)],
    "hundred": [float((i * 104_729) % 10_007 + 1) for i in range(100)],
}

PAIRS = {
    "three": ([52_031.0, 49_215.0, 55_103.0], [2_601.0, 2_555.0, 2_710.0]),
    "five": ([10.0, 11.0, 12.5, 9.5, 10.1], [10.2, 10.4, 12.6, 9.9, 9.7]),
}

LINES = {
    "flat": ([0.0, 1.0, 2.0, 3.0, 4.0], [5.0, 4.0, 6.0, 5.0, 5.5]),
    "growing": ([float(i) * 0.05 for i in range(40)], [float(i * 12 + (i * 37) % 11) for i in range(40)]),
    "exact": ([0.0, 1.0, 2.0, 3.0], [1.0, 3.0, 5.0, 7.0]),
}


def one_sample(values):
    x = np.array(values)
    plain = stats.ttest_1samp(x, 0.0).confidence_interval(LEVEL)
    logs = stats.ttest_1samp(np.log(x), 0.0).confidence_interval(LEVEL)
    case = {
        "values": values,
        "median": float(np.median(x)),
        "t": [float(plain.low), float(plain.high)],
        "log_t": [float(np.exp(logs.low)), float(np.exp(logs.high))],
        "order": None,
        "order_level": None,
    }
    if len(values) >= 6:
        order = stats.quantile_test(x, q=0.0, p=0.5).confidence_interval(LEVEL)
        below = int(np.sum(np.sort(x) < order.low))
        case["order"] = [float(order.low), float(order.high)]
        case["order_level"] = float(1 - 2 * stats.binom.cdf(below, len(values), 0.5))
    return case


def pair(measured, control):
    a, b = np.array(measured), np.array(control)
    ci = stats.ttest_1samp(np.log(a) - np.log(b), 0.0).confidence_interval(LEVEL)
    return {
        "measured": measured,
        "control": control,
        "median": float(np.median(a / b)),
        "interval": [float(np.exp(ci.low)), float(np.exp(ci.high))],
    }


def line(x, y):
    fit = stats.linregress(x, y)
    half = float(stats.t.ppf(0.5 + LEVEL / 2, len(x) - 2) * fit.stderr)
    return {
        "x": x,
        "y": y,
        "slope": float(fit.slope),
        "intercept": float(fit.intercept),
        "interval": [float(fit.slope - half), float(fit.slope + half)],
    }


json.dump(
    {
        "origin": f"scipy {scipy.__version__}, numpy {np.__version__}, Python {sys.version.split()[0]}",
        "level": LEVEL,
        "samples": {name: one_sample(v) for name, v in SAMPLES.items()},
        "pairs": {name: pair(*v) for name, v in PAIRS.items()},
        "lines": {name: line(*v) for name, v in LINES.items()},
        "t_quantiles": {str(df): float(stats.t.ppf(0.975, df)) for df in [*range(1, 41), 99, 599, 1000]},
    },
    sys.stdout,
    indent=1,
)
sys.stdout.write("\n")
