"""scripts/nominal.py tells what holds from what does not; a slice of its grid, with few worlds."""

from __future__ import annotations

import importlib.util
import inspect
import sys
import typing
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import recsys
from recsys.comparison.compare import CompareOptions
from recsys.debias import policy_values, propensity_metrics
from recsys.stats import Interval, comparison_table, intervals, multiple_comparisons, sampled, sequential

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "nominal.py"


@pytest.fixture(scope="module")
def nominal():
    spec = importlib.util.spec_from_file_location("nominal", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules["nominal"] = module  # dataclasses and worker processes look it up
    spec.loader.exec_module(module)
    yield module
    del sys.modules["nominal"]


def cell(nominal, name):
    return next(one for one in nominal.grid() if one.name == name)


def rates(line):
    return {name: value for name, value in line.items() if name != "seconds"}


def test_an_exact_interval_holds_and_a_normal_one_does_not(nominal):
    hits = np.random.default_rng(1).binomial(30, 0.02, 2000)
    share, tally = hits / 30, nominal.Tally()
    by_count = {k: stats.binomtest(k, 30).proportion_ci(0.95) for k in set(hits.tolist())}
    exact = [by_count[k] for k in hits.tolist()]
    reach = 1.96 * np.sqrt(share * (1 - share) / 30)
    normal = [Interval(m - r, m + r, 0.95, "normal") for m, r in zip(share, reach, strict=True)]
    tally.cover("exact", exact, 0.02)
    tally.cover("normal", normal, 0.02)
    assert tally["exact"].off_by(0.05) == 0
    assert tally["normal"].off_by(0.05) == pytest.approx(np.mean(hits == 0) - 0.05, abs=0.01)
    assert nominal.verdict({30: tally["exact"]}, 0.05) == "holds"
    assert nominal.verdict({30: tally["normal"]}, 0.05).startswith("off by")


def test_power_is_lost_only_if_the_rival_finds_more(nominal):
    found = np.arange(1000) < 300
    for ours, lost in ((found, 0.0), (np.roll(found, 500), 0.0), (found & (np.arange(1000) >= 100), 0.09)):
        tally = nominal.Tally()
        tally.versus("power", ours, found)
        assert tally["power"].off_by(0.01) == pytest.approx(lost)


def test_no_answer_is_not_wrong(nominal):
    tally = nominal.Tally()
    tally.cover("interval", [Interval(np.nan, np.nan, 0.95, "t"), Interval(-np.inf, np.inf, 0.95, "t")], 0.3)
    assert (tally["interval"].wrong, tally["interval"].silent) == (0, 2)
    assert nominal.verdict({30: tally["interval"]}, 0.05) == "holds; mostly no answer at 30"


def test_the_grid_names_every_cell_once_and_has_a_cell_for_every_promise(nominal):
    cells = nominal.grid()
    assert len({one.name for one in cells}) == len(cells)
    small = {}
    for one in sorted(cells, key=lambda one: one.n):
        small.setdefault(one.family, one)
    assert set(small) == set(nominal.FAMILIES)
    lines = [one.run(2) for one in [*small.values(), cell(nominal, "sampled ranks: ranks of Zipf 0.7, 1000")]]
    lines.append(cell(nominal, "different: ndcg@10, 70% zeros, correlation 0.8, 300").run(2))  # has power
    assert {promise for line in lines for promise in line["rates"]} == set(nominal.PROMISES)


def test_every_test_interval_correction_and_estimator_has_a_promise(nominal):
    """Whoever adds one to its registry says in PROMISES how often it may be wrong, and simulates it."""
    offered = {
        *set(comparison_table.TESTS) - {"t"},  # t is the default test, interval and difference
        *(f"interval, {method}" for method in set(intervals.METHODS) - {"t"}),
        *(f"difference, {method}" for method in set(intervals.METHODS) - {"t"}),
        *set(multiple_comparisons.CORRECTIONS) - {"none"},
        *(f"effect, {effect}" for effect in comparison_table.EFFECTS),
        *sequential.SPENDING,
        *sampled.METHODS,
        *policy_values.ESTIMATORS,
        *(f"observed, {estimator}" for estimator in propensity_metrics.ESTIMATORS),
    }
    assert offered <= set(nominal.PROMISES)
    choices = typing.get_type_hints(CompareOptions)
    assert set(typing.get_args(choices["correction"])) <= {*nominal.PROMISES, "none"}
    kinds = typing.get_args(inspect.signature(recsys.ab, eval_str=True).parameters["sequential"].annotation)
    named = {name for kind in kinds for name in typing.get_args(kind)}
    assert named <= set(nominal.PROMISES)


def test_what_is_documented_not_to_hold_says_why(nominal):
    lines = [
        {"world": world, "n": 30, "rates": {"sign": asdict(nominal.Rate(400, 1000))}}
        for world in ("ndcg@10, other shape, correlation 0.8", "hit, 2%")
    ]
    text = nominal.table(lines)
    assert "**off by 35.0 at 30; documented: it does not test the mean, and warns**" in text
    assert "**off by 35.0 at 30**" in text


def test_a_cell_depends_on_its_name_alone(nominal):
    names = [
        "equal: hit, 2%, correlation 0.8, 100",
        "nights: normal, 8",
        "intervals: hit, 10%, clustered, 30",
    ]
    there = [rates(cell(nominal, name).run(30)) for name in names]
    back = [rates(cell(nominal, name).run(30)) for name in reversed(names)]
    assert there == back[::-1]


def test_finished_cells_are_not_run_again(nominal, tmp_path):
    path = tmp_path / "rates.jsonl"
    cells = [cell(nominal, f"nights: normal, {n}") for n in (5, 7)]
    nominal.simulate(cells[:1], path, worlds=20, jobs=1)
    first = path.read_text(encoding="utf-8")
    nominal.simulate(cells, path, worlds=20, jobs=1)
    text = path.read_text(encoding="utf-8")
    assert text.startswith(first)
    assert len(text.splitlines()) == 2
    nominal.simulate(cells, path, worlds=40, jobs=1)
    assert [line["worlds"] for line in nominal.stored(path).values()] == [40, 40]


def test_rows_that_do_not_hold_are_bold(nominal):
    good, bad = (
        {"world": world, "n": 30, "rates": {"gate": asdict(nominal.Rate(wrong, 1000, 0, 0, cautioned))}}
        for world, wrong, cautioned in (("dense", 52, 0), ("rare", 420, 210))
    )
    text = nominal.table([good, bad])
    assert "| dense | 5.2 ± 0.7 | holds |" in text
    assert "| **rare** | **42.0 ± 1.6** | **off by 37.0 at 30; 50% of these with a caution** |" in text


@pytest.mark.parametrize(
    "name",
    [
        "equal: ndcg@10, 70% zeros, correlation 0.8, 100",
        "equal: hit, 2%, correlation 0.99, 300",
        "different: hit, 2%, correlation 0.99, 100",
        "at the margin: hit, 2%, correlation 0.8, 30",
        "at the margin: ndcg@10, 95% zeros, correlation 0.99, 100",
        "never hits: hit, 2%, against a model that never hits, 30",
        "intervals: hit, 2%, 30",
        "intervals: ndcg@10, 90% zeros, 100",
        "resampled: hit, 2%, correlation 0.99, 100",
        "families: ndcg@10, 70% zeros, one metric with 3 hits, 100",
        "nights: flips of one item in 1,000, 20",
        "decisions: rewards of 1%, 300",
        "experiment: conversion 10%, 1000",
    ],
)
def test_promises_hold(nominal, name):
    line = cell(nominal, name).run(60)
    off = {
        promise: rate
        for promise, rate in line["rates"].items()
        if nominal.Rate(**rate).off_by(nominal.PROMISES[promise][1])
    }
    assert not off
