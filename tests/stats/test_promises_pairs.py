"""What compare, margins and the gate promise when few users differ.

Hits of two models are wins, ties and losses, so how often something happens is summed over all outcomes: no
chance is left in those rates. Graded metrics are simulated, with a tolerance of three standard errors.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest
from scipy import stats

import recsys
from recsys.stats import Options, Row, compare_tables
from recsys.types import PerCase
from worlds.metric_values import MARGINALS, correlated, evaluation_of

HIT = {"hit@1": (0.0, 1.0)}

pytestmark = pytest.mark.filterwarnings("ignore::recsys.stats.StatisticsWarning")


def outcomes(n: int, new: float, old: float, correlation: float) -> Iterator[tuple[float, int, int]]:
    """Wins and losses of two models with these hit rates among n users, and how likely they are."""
    both = 0.0
    if new > 0:
        cut = stats.norm.ppf([new, old])
        both = stats.multivariate_normal([0, 0], [[1, correlation], [correlation, 1]]).cdf(cut)
    shares = new - both, old - both, 1 - new - old + 2 * both
    for differing in range(n + 1):
        for wins in range(differing + 1):
            counts = wins, differing - wins, n - differing
            chance = stats.multinomial.pmf(counts, n, shares)
            if chance > 1e-5:
                yield chance, *counts[:2]
        if stats.binom.sf(differing, n, shares[0] + shares[1]) < 1e-5:
            return


def hits(n: int, wins: int, losses: int, both: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Hits of the new and of the old model."""
    new, old = np.zeros(n), np.zeros(n)
    new[:wins] = old[wins : wins + losses] = 1.0
    new[n - both :] = old[n - both :] = 1.0
    return new, old


def row_of(new: np.ndarray, old: np.ndarray, *, options: Options | None = None, **columns) -> Row:
    tables = {
        name: PerCase(np.arange(len(new)), {"hit@1": values}, **columns)
        for name, values in (("old", old), ("new", new))
    }
    return compare_tables(tables, baseline="old", options=options, ranges=HIT).rows[0]


def gate_of(new: np.ndarray, old: np.ndarray, margin: str | float) -> recsys.Gate:
    sides = [evaluation_of("hit", values[None, :]) for values in (new, old)]
    return recsys.gate(*sides, {"hit@1": margin})


@pytest.mark.parametrize(("n", "correlation"), [(30, 0.2), (30, 0.99), (100, 0.8), (100, 0.99), (300, 0.99)])
def test_a_model_at_the_margin_passes_the_gate_in_5_of_100_worlds_at_most(n, correlation):
    rate = sum(
        chance * gate_of(*hits(n, wins, losses), 0.01).passed
        for chance, wins, losses in outcomes(n, 0.01, 0.02, correlation)
    )
    assert rate <= 0.05


def test_a_model_that_never_hits_does_not_pass_the_gate():
    for n in (30, 100):
        rate = sum(
            chance * gate_of(*hits(n, wins, losses), 0.001).passed
            for chance, wins, losses in outcomes(n, 0.0, 0.02, 0.0)
        )
        assert rate <= 0.05


def test_a_relative_margin_is_not_passed_on_ties():
    # Strongly paired hits of 2 %, a tenth of them lost: most samples have no user who differs.
    rate = 0.0
    for hits_of_both in range(1, 6):
        share = stats.binom.pmf(hits_of_both, 100, 0.018)
        rate += share * gate_of(*hits(100, 0, 0, hits_of_both), "10%").passed
    assert rate <= 0.05


def test_rare_large_losses_do_not_pass_the_gate():
    # 2 % of the users lose 0.65, 3 % gain a little: the mean is lower by the margin of 0.01.
    rng, worlds = np.random.default_rng(1), 100
    for n in (100, 1000):
        losses = rng.choice([0.0, 0.1, -0.65], (worlds, n), p=[0.95, 0.03, 0.02])
        old = np.where(losses < 0, 0.65, 0.0)
        new, base = (evaluation_of("ndcg", values) for values in (old + losses, old))
        rate = np.mean([check.passed for check in recsys.gate(new, base, dict.fromkeys(new, 0.01)).checks])
        assert rate <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / worlds)


def test_ties_pass_the_gate_only_if_they_are_enough():
    for n, margin, passes in ((30, 1e-9, False), (30, 0.01, False), (290, 0.01, False), (320, 0.01, True)):
        found = gate_of(*hits(n, 0, 0), margin)
        assert found.passed == passes
        assert f"hit@1: none of {n} users differs: " in str(found)
    words = "nothing can be concluded yet; about 270 more would be needed"
    assert words in str(gate_of(*hits(30, 0, 0), 0.01))
    assert gate_of(*hits(1000, 0, 0, 500), "1%").passed
    assert not gate_of(*hits(400, 0, 0, 200), "1%").passed


def test_the_gate_shows_the_caution_of_skewness():
    values = np.full(2000, 0.01)
    values[:25] = -0.4
    zeros = np.zeros((1, 2000))
    skewed, base = evaluation_of("dcg", values[None, :] + 1), evaluation_of("dcg", zeros + 1)
    assert "differences are too skewed" in str(recsys.gate(skewed, base, {"dcg@1": 0.01}))


@pytest.mark.parametrize(("n", "correlation"), [(30, 0.2), (30, 0.99), (100, 0.99)])
def test_margins_hold_for_rare_hits(n, correlation):
    options = Options(no_worse_than=0.01, margin=0.01)
    passed = np.zeros(2)
    for chance, wins, losses in outcomes(n, 0.01, 0.02, correlation):
        row = row_of(*hits(n, wins, losses), options=options)
        assert row.non_inferiority is not None
        assert row.equivalence is not None
        passed += chance * np.array([row.non_inferiority.p_value <= 0.05, row.equivalence.p_value <= 0.05])
    assert (passed <= 0.05).all()


@pytest.mark.parametrize(("n", "correlation"), [(30, 0.2), (30, 0.99), (100, 0.99), (300, 0.99)])
def test_the_interval_of_a_rare_difference_contains_it(n, correlation):
    covered = missed = 0.0
    for chance, wins, losses in outcomes(n, 0.03, 0.02, correlation):
        row = row_of(*hits(n, wins, losses))
        covered += chance * (0.01 in row.interval)
        missed += chance * (0.01 not in row.interval)
        assert row.interval.low < row.interval.high
    assert missed <= 0.05
    assert covered >= 0.95 - 1e-3


@pytest.mark.parametrize("n", [30, 100])
def test_the_interval_of_a_sparse_graded_difference_contains_it(n):
    old, worlds = MARGINALS["ndcg@10, 90% zeros"], 100
    new = old.times(1.1)
    scores = correlated(np.random.default_rng(3), (worlds, n), 0.99)
    sides = {
        name: evaluation_of("ndcg", side.at(values))
        for name, side, values in zip(("old", "new"), (old, new), scores, strict=True)
    }
    rows = recsys.compare(sides, baseline="old")
    rate = np.mean([new.mean - old.mean in row.interval for row in rows])
    assert rate >= 0.95 - 3 * math.sqrt(0.05 * 0.95 / worlds)


def test_few_wins_have_the_p_of_the_sign_test():
    for wins, losses in ((4, 0), (2, 0), (8, 0), (9, 3)):
        row = row_of(*hits(1000, wins, losses))
        assert row.p_value == stats.binomtest(wins, wins + losses).pvalue
        assert row.test == "sign-flip permutation (exact)"
        assert row.interval.method == "Gaffke"
        assert row.verdict.startswith("better" if wins == 8 else "no clear difference")
        assert f"hit@1: {wins + losses} of 1,000 users differ: " in row.notes[-1]
    assert row_of(*hits(1000, 4, 0)).notes[-1].endswith("yet; about 500 more would be needed")


def test_the_verdict_needs_the_interval_too():
    """Six users with small gains: the signs say more than the mean, whose rare losses are not seen."""
    new = np.zeros(100)
    new[:7] = 0.05
    row = row_of(new, np.zeros(100))
    assert row.p_value < 0.05
    assert 0.0 in row.interval
    assert row.verdict.startswith("no clear difference")


def test_ties_are_identical_in_this_sample_only():
    row = row_of(*hits(300, 0, 0, 30), options=Options(margin=0.001, rope=0.001))
    assert row.verdict == "identical in this sample: all 300 units have the same value"
    reach = 1 - 0.025 ** (1 / 300)
    assert (row.interval.low, row.interval.high) == pytest.approx((-reach, reach))
    assert row.relative_interval.low < -0.1 < 0.1 < row.relative_interval.high
    assert row.equivalence is not None
    assert row.equivalence.p_value > 0.5
    row = row_of(*hits(1000, 0, 0, 30), options=Options(margin=0.01, no_worse_than=0.01, rope=0.001))
    assert row.equivalence is not None
    assert row.non_inferiority is not None
    assert row.equivalence.p_value == pytest.approx((1 + 0.01 / 0.99) ** -1000, rel=1e-9)
    assert row.non_inferiority.p_value == row.equivalence.p_value < 0.05
    assert row.bayes is not None
    assert math.isnan(row.bayes.p_equal)


def test_the_same_gain_of_everybody_is_no_point():
    row = row_of(np.full(40, 0.35), np.full(40, 0.25))
    assert row.interval.low < 0.1 < row.interval.high
    assert row.relative_interval.low < 0.4 < row.relative_interval.high


def test_the_lift_and_the_difference_exclude_zero_together():
    for both in (1, 40):
        for wins in (4, 5, 6, 7):
            row = row_of(*hits(400, wins, 0, both))
            assert (0.0 in row.interval) == (0.0 in row.relative_interval) == (wins < 6)


def test_clusters_and_weights_count_units():
    new, old = hits(600, 12, 0)
    users = np.repeat(np.arange(100), 6)
    row = row_of(new, old, clusters=users)  # two users have twelve wins
    assert row.n_differing == 2
    assert row.p_value == 0.5
    assert row.verdict.startswith("no clear difference")
    weights = np.where(np.arange(600) < 1, 200.0, 1.0)
    row = row_of(*hits(600, 5, 0), weights=weights)
    assert row.verdict.startswith("no clear difference")
    assert row.interval.low < 0


def test_runs_and_covariates_make_no_claim_when_few_users_differ():
    new, old = hits(1000, 8, 0)
    ids = np.arange(1000)
    runs = {
        "old": [PerCase(ids, {"hit@1": old})] * 3,
        "new": [PerCase(ids, {"hit@1": np.roll(new, 10 * run)}) for run in range(2)]
        + [PerCase(ids, {"hit@1": old})],
    }
    row = compare_tables(runs, baseline="old", ranges=HIT, options=Options(no_worse_than=0.01)).rows[0]
    assert row.verdict.startswith("no clear difference")
    assert row.interval.low == -math.inf
    assert any("of 1,000 users differ: nothing can be concluded yet" in note for note in row.notes)
    activity = dict(enumerate(np.random.default_rng(0).random(5000)))
    values = zip(("new", "old"), hits(1000, 4, 0), strict=True)
    sides = {name: evaluation_of("hit", side[None, :]) for name, side in values}
    row = recsys.compare(sides, baseline="old", covariates=activity)[0]
    assert row.p_value == 0.125
    assert "hit@1: not adjusted, too few users differ" in row.notes


def test_pooled_metrics_make_no_claim_when_few_users_differ():
    truth = {user: set(range(1 + user % 4)) for user in range(400)}
    lists = {user: [0, 20] for user in truth}
    for lost in ((), (5, 9, 11)):
        new, old = (
            recsys.evaluate(side, truth, ["recall@2"], conventions={"average": "pooled"})
            for side in (lists | {user: [20, 21] for user in lost}, lists)
        )
        row = recsys.compare({"old": old, "new": new}, baseline="old", no_worse_than=0.05)[0]
        assert row.n_differing == len(lost)
        assert row.interval.low == -math.inf
        assert row.non_inferiority is not None
        assert math.isnan(row.non_inferiority.p_value)
        assert not recsys.gate(new, old, {"recall@2": 0.05})


def test_a_metric_without_an_end_has_no_interval():
    new = np.zeros(200)
    new[:5] = 3.0
    tables = {n: PerCase(np.arange(200), {"m": x}) for n, x in (("old", np.zeros(200)), ("new", new))}
    row = compare_tables(tables, baseline="old", ranges={"m": (0.0, math.inf)}).rows[0]
    assert (row.interval.low, row.interval.high) == (-math.inf, math.inf)
    assert "m: no interval, the range of its values is not known" in row.notes
    seen = compare_tables(tables, baseline="old").rows[0]
    assert "m: the interval takes all values to lie between 0 and 3, as those seen do" in seen.notes


def test_where_many_users_differ_the_test_is_the_paired_t():
    rng = np.random.default_rng(7)
    old, new = MARGINALS["ndcg@10, 70% zeros"], MARGINALS["ndcg@10, 70% zeros"].times(1.05)
    scores = correlated(rng, (20, 1000), 0.8)
    values = old.at(scores[0]), new.at(scores[1])
    sides = {name: evaluation_of("ndcg", side) for name, side in zip(("old", "new"), values, strict=True)}
    rows = recsys.compare(sides, baseline="old", correction="none")
    expected = stats.ttest_rel(values[1], values[0], axis=1)
    assert [row.p_value for row in rows] == pytest.approx(expected.pvalue, rel=1e-9)
    interval = expected.confidence_interval(0.95)
    assert [row.interval.low for row in rows] == pytest.approx(interval.low, rel=1e-9)
    assert [row.n_differing for row in rows] == [None] * 20
