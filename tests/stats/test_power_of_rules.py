"""Level and power of compare, gate and intervals together: none may be had by saying less.

Rates of hits are sums over all wins and losses; graded metrics are simulated, and judged beside SciPy's t.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

import recsys
from recsys.records.arrays import PerCase
from recsys.stats import Options, compare_tables
from worlds.metric_values import DISCOUNTS, MARGINALS, Marginal, correlated, evaluation_of

pytestmark = pytest.mark.filterwarnings("ignore::recsys.stats.StatisticsWarning")

FIFTH = {"hit": Marginal("hit", 0.8), "ndcg": Marginal("ndcg", 0.8, tuple(DISCOUNTS))}


def sides_of(old: Marginal, new: Marginal, correlation: float, worlds: int, n: int):
    """The values of both models, and their evaluations."""
    scores = correlated(np.random.default_rng(8), (worlds, n), correlation)
    values = [marginal.at(z) for marginal, z in zip((old, new), scores, strict=True)]
    return values, [evaluation_of(old.metric, each) for each in values]


@pytest.mark.parametrize(("correlation", "factor"), [(0.8, 1.12), (0.95, 1.06)])
def test_compare_finds_what_the_paired_t_test_finds(correlation, factor):
    old = MARGINALS["ndcg@10, 70% zeros"]
    (a, b), (base, new) = sides_of(old, old.times(factor), correlation, 150, 1000)
    rows = recsys.compare({"old": base, "new": new}, "old", correction="none", cautions="ignore")
    ours = np.array([row.p_value < 0.05 for row in rows])
    theirs = stats.ttest_rel(b, a, axis=1).pvalue < 0.05
    assert 0.3 < theirs.mean() < 0.95
    assert abs(ours.mean() - theirs.mean()) <= 0.01
    reach = stats.t.ppf(0.975, 999) * (b - a).std(axis=1, ddof=1) / math.sqrt(1000)
    widths = np.array([row.own_interval.high - row.own_interval.low for row in rows])
    assert (widths / (2 * reach)).mean() < 1.15
    truth = (factor - 1) * old.mean
    missed = np.mean([truth not in row.own_interval for row in rows])
    assert missed <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 150)


@pytest.mark.parametrize(
    ("name", "correlation", "n", "worlds", "most_lost"),
    [("hit", 0.8, 1000, 200, 0.06), ("ndcg", 0.95, 1000, 200, 0.06), ("ndcg", 0.8, 10_000, 20, 0.01)],
)
def test_a_gate_that_is_always_valid_passes_nearly_as_many_equal_models(
    name, correlation, n, worlds, most_lost
):
    old = FIFTH[name]
    (a, b), (base, new) = sides_of(old, old, correlation, worlds, n)
    checks = recsys.gate(new, base, dict.fromkeys(new, "10%")).checks
    ours = np.array([check.passed for check in checks])
    theirs = stats.ttest_1samp(b - 0.9 * a, 0.0, axis=1, alternative="greater").pvalue <= 0.05
    lost = (theirs & ~ours).mean() - (ours & ~theirs).mean()
    assert lost <= most_lost + 2 * math.sqrt(most_lost / worlds) * (n < 10_000)


def test_intervals_of_hits_are_as_wide_as_those_of_t():
    values = FIFTH["hit"].at(np.random.default_rng(3).standard_normal((40, 1000)))
    found = evaluation_of("hit", values).intervals().values()
    reach = stats.t.ppf(0.975, 999) * values.std(axis=1, ddof=1) / math.sqrt(1000)
    widths = np.array([each.interval.high - each.interval.low for each in found])
    assert (widths / (2 * reach)).max() < 1.1


@pytest.mark.parametrize(
    ("n", "gains", "losses"),
    [(30, 0.03, 0.02), (30, 0.005, 0.015), (100, 0.02, 0.01), (300, 0.0105, 0.0005), (300, 0.005, 0.0)],
)
def test_the_interval_of_a_difference_holds_it_where_few_differ(n, gains, losses):
    missed, contradicted = 0.0, 0.0
    for wins in range(18):
        for lost in range(18):
            chance = stats.multinomial.pmf(
                (wins, lost, n - wins - lost), n, (gains, losses, 1 - gains - losses)
            )
            if chance < 1e-5 or wins + lost > n:
                continue
            new = np.repeat([1.0, 0.0, 0.0], [wins, lost, n - wins - lost])
            old = np.repeat([0.0, 1.0, 0.0], [wins, lost, n - wins - lost])
            tables = {name: PerCase(np.arange(n), {"hit@1": v}) for name, v in (("old", old), ("new", new))}
            (row,) = compare_tables(tables, baseline="old", options=Options(), ranges={"hit@1": (0, 1)}).rows
            missed += chance * (gains - losses not in row.interval)
            contradicted += (0.0 in row.interval) == (row.verdict.kind in ("better", "worse"))
            assert row.interval.low < row.interval.high
    assert missed <= 0.05
    assert contradicted == 0
