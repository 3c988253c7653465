"""What compare, margins and the gate promise, also where few users differ or rare losses were not seen.

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
from recsys.records.arrays import PerCase
from recsys.stats import Options, Row, compare_tables
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


def names(n: int) -> list[str]:
    return [f"ndcg@{k}" for k in range(1, n + 1)]


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


@pytest.mark.parametrize(("n", "share"), [(100, 0.01), (300, 0.01), (300, 0.003), (1000, 0.003)])
def test_a_loss_that_few_users_have_does_not_pass_where_all_others_move_a_little(n, share):
    """Every user moves by about a place, a few lose all they had: exactly at the margin."""
    rng, worlds = np.random.default_rng(5), 400
    old = np.where(rng.random((worlds, n)) < 0.5, 0.63, 0.5)
    moved = old + rng.choice([-0.05, 0.0, 0.05], (worlds, n))
    new = np.where(rng.random((worlds, n)) < share, 0.0, moved)
    sides = (evaluation_of("ndcg", values) for values in (new, old))
    margin = share * 0.565
    passed = [check.passed for check in recsys.gate(*sides, dict.fromkeys(names(worlds), margin)).checks]
    assert np.mean(passed) <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / worlds)
    # The same movement without a loss passes where so many users can show the margin.
    sides = (evaluation_of("ndcg", values[:50]) for values in (moved, old))
    passed = [check.passed for check in recsys.gate(*sides, dict.fromkeys(names(50), 0.03)).checks]
    assert np.mean(passed) >= {100: 0.4, 300: 0.99, 1000: 0.99}[n]


def test_ties_pass_the_gate_only_if_they_are_enough():
    for n, margin, passes in ((30, 1e-9, False), (30, 0.01, False), (290, 0.01, False), (320, 0.01, True)):
        found = gate_of(*hits(n, 0, 0), margin)
        assert found.passed == passes
        assert f"hit@1: none of {n} users differs" in str(found)
    text = str(gate_of(*hits(30, 0, 0), 0.01))
    assert "0.01 is too narrow a margin for 30 users: even identical lists need 299" in text
    assert "would be needed" not in text  # one number of users, not two
    assert "too narrow" not in str(gate_of(*hits(320, 0, 0), 0.01))
    assert gate_of(*hits(1000, 0, 0, 500), "1%").passed
    assert not gate_of(*hits(400, 0, 0, 200), "1%").passed


def test_models_pass_the_gate_more_often_the_more_alike_they_are():
    rates = []
    for correlation in (0.8, 0.95, 0.99):
        scores = correlated(np.random.default_rng(6), (300, 1000), correlation)
        new, old = (evaluation_of("ndcg", MARGINALS["ndcg@10, 90% zeros"].at(one)) for one in scores)
        checks = recsys.gate(new, old, dict.fromkeys(new, 0.01)).checks
        rates.append(np.mean([check.passed for check in checks]))
    identical = recsys.gate(old, old, dict.fromkeys(list(old)[:3], 0.01))
    assert rates == sorted(rates)
    assert identical.passed


def test_a_margin_of_nothing_says_where_compare_says_better():
    sides = [evaluation_of("hit", values[None, :]) for values in hits(1000, 9, 1)]
    found = recsys.gate(*sides, {"hit@1": 0})
    better = recsys.compare({"old": sides[1], "new": sides[0]}, baseline="old")[0]
    assert better.verdict.kind == "better"
    assert found.checks[0].passed or "compare calls it better" in str(found)


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


@pytest.mark.parametrize(("n", "correlation"), [(30, 0.2), (30, 0.99), (100, 0.8), (300, 0.99)])
def test_better_and_worse_are_wrong_in_5_of_100_worlds_at_most(n, correlation):
    rate = sum(
        chance * (row_of(*hits(n, wins, losses)).p_value <= 0.05)
        for chance, wins, losses in outcomes(n, 0.03, 0.03, correlation)
    )
    assert rate <= 0.05


def test_there_is_no_cliff_at_a_number_of_users_who_differ():
    """Differences of 0.04, 85% of them gains: a test of signs finds them from sixteen users on."""
    found = {}
    for differing in (6, 8, 11, 16, 18, 19, 20, 21, 30, 60, 200):
        new = np.zeros(1000)
        new[:differing], new[: round(0.15 * differing)] = 0.04, -0.04
        row = row_of(0.5 + new, np.full(1000, 0.5))
        losses = round(0.15 * differing)
        exact = stats.binomtest(losses, differing).pvalue
        # Of up to 19 all signs are tried; the tail of more is close to theirs.
        assert row.p_value == pytest.approx(exact, rel=1e-9 if differing < 20 else 0.15)
        assert (0.0 in row.interval) == (0.0 in row.relative_interval) == (row.p_value > 0.05)
        found[differing] = row.verdict.kind == "better"
    assert [differing for differing, is_found in found.items() if not is_found] == [6, 8, 11]


@pytest.mark.parametrize("n", [30, 100, 300])
def test_the_interval_of_a_difference_is_the_means_its_test_does_not_reject(n):
    old, worlds = MARGINALS["ndcg@10, 90% zeros"], 100
    new = old.times(1.1)
    scores = correlated(np.random.default_rng(3), (worlds, n), 0.99)
    for values in zip(*(side.at(one) for side, one in zip((new, old), scores, strict=True)), strict=True):
        row = row_of(*values, options=Options(interval=None))
        assert (0.0 in row.interval) == (row.p_value > 0.05)
        assert row.interval.low <= row.difference <= row.interval.high


def test_few_wins_have_the_p_of_the_sign_test():
    for wins, losses in ((4, 0), (2, 0), (8, 0), (9, 3)):
        row = row_of(*hits(1000, wins, losses))
        assert row.p_value == stats.binomtest(wins, wins + losses).pvalue
        assert (row.test, row.interval.method) == ("sign flips", "sign flips")
        assert str(row.verdict).startswith("better" if wins == 8 else "no clear difference")
        assert str(row.notes[-1]).startswith(f"hit@1: {wins + losses} of 1,000 users differ")
    assert str(row_of(*hits(1000, 4, 0)).notes[-1]).endswith(
        "no test of the signs of fewer than 6 reaches 5%"
    )


def test_a_note_says_which_losses_a_gain_does_not_exclude():
    """Seven users with small gains: rare losses that none of them had could outweigh these."""
    new = np.zeros(100)
    new[:7] = 0.05
    row = row_of(new, np.zeros(100))
    assert row.verdict.kind == "better"
    assert "hit@1: large losses of fewer than 3 in 100 users are not excluded" in map(str, row.notes)
    turned = row_of(np.zeros(100), new)
    assert "hit@1: large gains of fewer than 3 in 100 users are not excluded" in map(str, turned.notes)
    assert not any("excluded" in str(note) for note in row_of(*hits(100, 20, 2)).notes)


def test_ties_are_identical_in_this_sample_only():
    row = row_of(*hits(300, 0, 0, 30), options=Options(margin=0.001, rope=0.001))
    assert str(row.verdict) == "identical in this sample: all 300 units have the same value"
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


def test_the_same_gain_of_everybody_is_as_sure_as_its_signs():
    row = row_of(np.full(40, 0.35), np.full(40, 0.25))
    assert row.p_value < 1e-10
    assert row.interval.low == pytest.approx(0.1)
    few = row_of(np.full(5, 0.35), np.full(5, 0.25))
    assert few.p_value == 2.0**-4
    assert few.interval.low < 0 < few.interval.high


def test_the_lift_and_the_difference_exclude_zero_together():
    for both in (1, 40):
        for wins in (4, 5, 6, 7):
            row = row_of(*hits(400, wins, 0, both))
            assert (0.0 in row.interval) == (wins < 6)
            if math.isfinite(row.relative_interval.low):
                assert (0.0 in row.relative_interval) == (wins < 6)


def test_clusters_and_weights_count_units():
    new, old = hits(600, 12, 0)
    users = np.repeat(np.arange(100), 6)
    row = row_of(new, old, clusters=users)  # two users have twelve wins
    assert (row.wins, row.losses) == (2, 0)
    assert row.p_value == 0.5
    assert row.verdict.kind == "no_difference"
    weights = np.where(np.arange(600) < 1, 200.0, 1.0)
    row = row_of(*hits(600, 5, 0), weights=weights)
    assert row.verdict.kind == "no_difference"
    assert row.interval.low < 0


def test_runs_and_covariates_make_no_claim_when_few_users_differ():
    new, old = hits(1000, 8, 0)
    ids = np.arange(1000)
    runs = {
        "old": [PerCase(ids, {"hit@1": old})] * 3,
        "new": [PerCase(ids, {"hit@1": np.roll(new, 10 * run)}) for run in range(2)]
        + [PerCase(ids, {"hit@1": old})],
    }
    for lower in (frozenset[str](), frozenset({"hit@1"})):
        options = Options(no_worse_than=0.01, lower_is_better=lower)
        row = compare_tables(runs, baseline="old", ranges=HIT, options=options).rows[0]
        assert row.verdict.kind == "no_difference"
        assert row.interval.low == -math.inf
        assert row.non_inferiority is not None
        assert math.isnan(row.non_inferiority.p_value)
        assert "hit@1: too few users differ for a test over runs" in map(str, row.notes)
    activity = dict(enumerate(np.random.default_rng(0).random(5000)))
    values = zip(("new", "old"), hits(1000, 4, 0), strict=True)
    sides = {name: evaluation_of("hit", side[None, :]) for name, side in values}
    row = recsys.compare(sides, baseline="old", covariates=activity)[0]
    assert row.p_value == 0.125
    assert "hit@1: not adjusted, too few users differ" in map(str, row.notes)


def test_pooled_metrics_make_no_claim_when_few_users_differ():
    truth = {user: set(range(1 + user % 4)) for user in range(400)}
    lists = {user: [0, 20] for user in truth}
    for lost in ((), (5, 9, 11)):
        new, old = (
            recsys.evaluate(side, truth, ["recall@2"], conventions={"average": "pooled"})
            for side in (lists | {user: [20, 21] for user in lost}, lists)
        )
        row = recsys.compare({"old": old, "new": new}, baseline="old", no_worse_than=0.05)[0]
        assert (row.wins, row.losses) == (0, len(lost))
        assert not row.p_value < 0.05
        assert row.non_inferiority is not None
        assert math.isnan(row.non_inferiority.p_value)
        assert not recsys.gate(new, old, {"recall@2": 0.05})


def test_a_metric_without_an_end_shows_nothing_within_a_margin():
    new = np.zeros(200)
    new[:5] = 3.0
    tables = {n: PerCase(np.arange(200), {"m": x}) for n, x in (("old", np.zeros(200)), ("new", new))}
    options = Options(no_worse_than=1.0)
    row = compare_tables(tables, baseline="old", ranges={"m": (0.0, math.inf)}, options=options).rows[0]
    assert math.isnan(row.non_inferiority.p_value)
    assert row.p_value == 2.0**-4
    assert row.interval.low <= 0 < row.interval.high < 1
    seen = compare_tables(tables, baseline="old", options=options).rows[0]
    assert seen.non_inferiority.p_value < 0.05
    assert "m: margins take all values to lie between 0 and 3, as those seen do" in map(str, seen.notes)


def test_where_many_users_differ_the_test_tends_to_the_paired_t():
    rng = np.random.default_rng(7)
    old, new = MARGINALS["ndcg@10, 70% zeros"], MARGINALS["ndcg@10, 70% zeros"].times(1.05)
    scores = correlated(rng, (20, 1000), 0.8)
    values = old.at(scores[0]), new.at(scores[1])
    sides = {name: evaluation_of("ndcg", side) for name, side in zip(("old", "new"), values, strict=True)}
    rows, by_t = (
        recsys.compare(sides, baseline="old", correction="none", test=t) for t in ("permutation", "t")
    )
    expected = stats.ttest_rel(values[1], values[0], axis=1)
    interval = expected.confidence_interval(0.95)
    width = float((interval.high - interval.low).max())
    for found, close in ((by_t, {"rel": 1e-9}), (rows, {"rel": 0.05, "abs": 0.1 * width})):
        assert [row.p_value for row in found] == pytest.approx(expected.pvalue, **close)
        assert [row.interval.low for row in found] == pytest.approx(interval.low, **close)
