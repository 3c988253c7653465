"""scripts/nominal.py tells what holds from what does not; a slice of its grid, with few worlds."""

from __future__ import annotations

import importlib
import inspect
import sys
import typing
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import recsys
from recsys.comparison.compare_keywords import CompareOptions
from recsys.debias import policy_values, propensity_metrics
from recsys.records.keywords import read_keywords
from recsys.stats import Interval, comparison_table, corrections, mean_inference, sampled, sequential

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


@pytest.fixture(scope="module")
def nominal():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(SCRIPTS)
        yield importlib.import_module("nominal")
    for name in ("nominal", "proofs"):
        sys.modules.pop(name, None)


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
    worlds = (
        "different: ndcg@10, 70% zeros, correlation 0.8",
        "boards: ndcg@10, 70% zeros, 8 models that spread",
    )
    lines += [cell(nominal, f"{name}, 300").run(2) for name in worlds]  # these have power
    assert {promise for line in lines for promise in line["rates"]} == set(nominal.PROMISES)


def test_every_test_interval_correction_and_estimator_has_a_promise(nominal):
    """Whoever adds one to its registry says in PROMISES how often it may be wrong, and simulates it."""
    offered = {
        *comparison_table.TESTS[1:],  # the first are the defaults
        *(f"interval, {method}" for method in mean_inference.METHODS[1:]),
        *(f"difference, {method}" for method in mean_inference.METHODS[1:]),
        *set(corrections.CORRECTIONS) - {"none"},
        *(f"effect, {effect}" for effect in comparison_table.EFFECTS),
        *sequential.SPENDING,
        *sampled.METHODS,
        *policy_values.ESTIMATORS,
        *(f"observed, {estimator}" for estimator in propensity_metrics.ESTIMATORS),
    }
    assert offered <= set(nominal.PROMISES)
    correction = read_keywords({"compare": CompareOptions})["correction"]
    assert set(typing.get_args(correction.type)) <= {*nominal.PROMISES, "none"}
    kinds = typing.get_args(inspect.signature(recsys.ab, eval_str=True).parameters["sequential"].annotation)
    named = {name for kind in kinds for name in typing.get_args(kind)}
    assert named <= set(nominal.PROMISES)


def seen(nominal, world, wrong, *, n=30, promise="gate", cautioned=0):
    """The line of a cell that was wrong so often in 1,000 worlds."""
    rate = nominal.Rate(wrong, 1000, cautioned=cautioned)
    return {"family": "equal", "world": world, "n": n, "rates": {promise: asdict(rate)}}


def test_what_is_documented_not_to_hold_says_why(nominal):
    worlds = ("ndcg@10, other shape, correlation 0.8", "hit, 2%")
    text = nominal.table([seen(nominal, world, 400, promise="sign") for world in worlds])
    assert "**off by 35.0 at 30; documented up to 100%: it does not test the mean, and warns**" in text
    assert "**off by 35.0 at 30**" in text


def test_nothing_excuses_every_promise_or_every_rate(nominal):
    heavy = "heavy, other shape, correlation 0.8"
    text = nominal.table([seen(nominal, heavy, 300, promise="default test")])
    assert "documented up to 40%" in text
    assert "it is more than that" not in text
    text = nominal.table([seen(nominal, heavy, 600, promise="default test")])
    assert "it is more than that" in text
    for promise in ("default test", "msprt", "change points", "gate, relative", "bonferroni"):
        for world in ("heavy, 80% zeros, correlation 0.8", "heavy, t(3)", "revenue, 95% zeros", "AR(1) 0.3"):
            assert nominal.known(promise, world) == (nominal.PROMISES[promise][1], "")
    worlds = {(promise, cell.world) for cell in nominal.grid() for promise in nominal.PROMISES}
    excused = {pair: nominal.known(*pair) for pair in worlds if nominal.known(*pair)[1]}
    # Every entry is of some cell, and excuses more than is promised.
    assert {why for _, why in excused.values()} == {why for *_, why in nominal.KNOWN}
    assert all(ceiling > nominal.PROMISES[promise][1] for (promise, _), (ceiling, _) in excused.items())


def test_a_cell_that_was_not_run_is_said_to_be_missing(nominal):
    missing = [nominal.Cell("equal", world, 100) for world in ("dense", "rare")]
    text = nominal.table([seen(nominal, "dense", 52), seen(nominal, "thin", 52)], missing)
    assert "| **dense** | **5.2 ± 0.7** | **not run** | **not run at 100** |" in text
    assert "| **rare** |  | **not run** | **not run at 100** |" in text
    assert "| 5.2% | 1 of 3 worlds |" in text


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
    nominal.simulate(cells[:1], nominal.Finished(path, nominal.SOURCES), worlds=20, jobs=1)
    first = path.read_text(encoding="utf-8")
    path.write_text(first + '{"piece": "nights: normal, 7", "wor', encoding="utf-8")  # cut off by a kill
    nominal.simulate(cells, nominal.Finished(path, nominal.SOURCES), worlds=20, jobs=1)
    text = path.read_text(encoding="utf-8")
    assert text.startswith(first)
    assert len(text.splitlines()) == 2
    nominal.simulate(cells, nominal.Finished(path, nominal.SOURCES), worlds=40, jobs=1)
    done = nominal.Finished(path, nominal.SOURCES).done
    assert [line["worlds"] for line in done.values()] == [40, 40]


def test_only_cells_of_these_sources_and_of_enough_worlds_are_written(nominal, tmp_path, monkeypatch, capsys):
    """With all of them, whatever the pattern; with a part of them, the pages are left alone."""
    pages = [tmp_path / "nominal.md", tmp_path / "statistics.md"]
    for page in pages:
        page.write_text(f"a\n{nominal.BEGIN}\nstale\n{nominal.END}\nb\n", encoding="utf-8")
    cells = [cell(nominal, f"nights: normal, {n}") for n in (5, 7)]
    monkeypatch.setattr(nominal, "PAGE", pages[0])
    monkeypatch.setattr(nominal, "grid", lambda: cells)
    path = tmp_path / "rates.jsonl"
    nominal.Finished(path, [SCRIPTS / "proofs.py"]).add(cells[0].run(20))
    nominal.Finished(path, nominal.SOURCES).add(cells[0].run(5))

    def written(*arguments):
        monkeypatch.setattr(sys, "argv", ["nominal.py", str(path), "--table", "--jobs", "1", *arguments])
        nominal.main()
        return "stale" not in pages[0].read_text(encoding="utf-8")

    assert not written("--worlds", "20", "--cells", "normal, 7")
    assert "left as they are: 1 cells" in capsys.readouterr().out
    assert written("--worlds", "20", "--cells", "normal, 5")
    assert "| normal | 0.0 ± 2.2 | 0.0 ± 2.2 | holds |" in pages[0].read_text(encoding="utf-8")
    assert "| 0.0% | 1 of 1 worlds |" in pages[1].read_text(encoding="utf-8")


def test_a_margin_that_is_refused_lets_nobody_pass(nominal):
    def ask(names):
        if "b" in names:
            raise recsys.errors.InputError("no model can fail the margin")
        return [name.upper() for name in names]

    assert nominal.per_world("abc", ask) == ["A", None, "C"]


def test_rows_that_do_not_hold_are_bold(nominal):
    text = nominal.table([seen(nominal, "dense", 52), seen(nominal, "rare", 420, cautioned=210)])
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
        "few differ: 12 users differ, 100",
        "rare losses: all move a little, 1.0% lose everything, 100",
        "alike: hit, 20%, correlation 0.8, 1000",
        "never hits: hit, 2%, against a model that never hits, 30",
        "intervals: hit, 2%, 30",
        "intervals: ndcg@10, 90% zeros, 100",
        "resampled: hit, 2%, correlation 0.99, 100",
        "families: ndcg@10, 70% zeros, one metric with 3 hits, 100",
        "nights: flips of one item in 1,000, 20",
        "decisions: rewards of 1%, 300",
        "decisions: rewards of 10%, few decisions weigh most, 300",
        "experiment: conversion 10%, 1000",
    ],
)
def test_promises_hold(nominal, name):
    line = cell(nominal, name).run(60)
    off = {
        promise: rate
        for promise, rate in line["rates"].items()
        if nominal.Rate(**rate).off_by(nominal.known(promise, line["world"])[0])
    }
    assert not off
