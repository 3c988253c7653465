"""Several runs per model: variances that add up, folds corrected."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from recsys.errors import InputError, notes_only
from recsys.records.arrays import PerCase
from recsys.stats.comparison import compare_tables
from recsys.stats.comparison_table import Options
from recsys.stats.results import SmallSampleWarning, ZeroVarianceWarning
from recsys.stats.runs import folds, seeds


def test_seeds_recover_both_variances() -> None:
    rng = np.random.default_rng(0)
    users, runs = rng.normal(0, 1, size=2000), rng.normal(0, 0.5, size=400)
    table = users + runs[:, None] + rng.normal(0, 1, size=(400, 2000))
    result = seeds(table)
    assert result.variance_users * 2000 == pytest.approx(1.0, rel=0.1)
    assert result.variance_runs * 400 == pytest.approx(0.25, rel=0.2)
    assert result.standard_error**2 == pytest.approx(result.variance_users + result.variance_runs, rel=1e-6)


def test_seeds_hold_their_level_where_a_test_over_users_does_not() -> None:
    rng = np.random.default_rng(1)
    ours, naive = 0, 0
    for _ in range(400):
        table = rng.normal(0, 1, 300) + rng.normal(0, 0.2, size=(5, 1)) + rng.normal(0, 0.5, size=(5, 300))
        ours += seeds(table).p_value < 0.05
        naive += stats.ttest_1samp(table.mean(axis=0), 0).pvalue < 0.05
    assert ours / 400 < 0.09
    assert naive / 400 > 0.15


@pytest.mark.parametrize("n", [100, 1000])
@pytest.mark.parametrize("n_runs", [2, 3, 5])
@pytest.mark.parametrize("runs_sd", [0.0, 0.02, 0.1])
def test_seeds_hold_their_level_with_few_runs(n_runs: int, n: int, runs_sd: float) -> None:
    rng = np.random.default_rng([n_runs, n])
    p, n_worlds = [], 400
    for _ in range(n_worlds):
        table = rng.normal(0, 0.3, n) + rng.normal(0, runs_sd, (n_runs, 1)) + rng.normal(0, 0.2, (n_runs, n))
        with notes_only():
            result = seeds(table)
        p.append(result.p_value)
        assert (result.p_value < 0.05) == (0 not in result.interval)
    for level in (0.05, 0.01):
        limit = level + 3 * np.sqrt(level * (1 - level) / n_worlds)
        assert np.mean(np.array(p) < level) <= limit, level


def test_runs_that_hardly_differ_cost_little() -> None:
    rng = np.random.default_rng(3)
    users = rng.normal(0.1, 1, 1000)
    alone = stats.t.interval(0.95, 999, users.mean(), stats.sem(users))
    for n_runs, factor in ((2, 1.1), (3, 1.02), (5, 1.01)):
        with notes_only():
            interval = seeds(users + rng.normal(0, 0.1, (n_runs, 1000))).interval
        assert interval.high - interval.low <= factor * (alone[1] - alone[0])


def sides_of(rng: np.random.Generator, n: int, n_runs: int, lift: float) -> dict[str, list[PerCase]]:
    """Two models whose users have values of their own, and whose runs differ a little."""
    users = {"old": rng.random(n), "new": (1 + lift) * rng.random(n)}
    return {
        name: [PerCase(np.arange(n), {"m": values * rng.normal(1.0, 0.02, n)}) for _ in range(n_runs)]
        for name, values in users.items()
    }


@pytest.mark.parametrize("n", [300, 1000])
def test_the_lift_over_runs_counts_the_noise_of_the_baseline(n: int) -> None:
    rng = np.random.default_rng(n)
    covered, ignoring_the_baseline, n_worlds = 0, 0, 250
    for _ in range(n_worlds):
        row = compare_tables(sides_of(rng, n, 3, 1.0), baseline="old").rows[0]
        covered += 1.0 in row.relative_interval
        ignoring_the_baseline += row.interval.low <= row.baseline_value <= row.interval.high
        assert (0 in row.relative_interval) == (0 in row.interval)
    assert covered / n_worlds >= 0.95 - 3 * np.sqrt(0.95 * 0.05 / n_worlds)
    assert ignoring_the_baseline / n_worlds < 0.91


def test_the_lift_of_one_run_given_several_times_is_fiellers() -> None:
    sides = {name: runs[:1] for name, runs in sides_of(np.random.default_rng(0), 300, 1, 0.5).items()}
    once = compare_tables(sides, baseline="old", options=Options(test="t")).rows[0]
    again = compare_tables({name: runs * 3 for name, runs in sides.items()}, baseline="old").rows[0]
    assert again.runs is not None
    assert again.relative == pytest.approx(once.relative, rel=1e-12)
    for end in ("low", "high"):
        ours, theirs = (getattr(row.relative_interval, end) for row in (again, once))
        assert ours == pytest.approx(theirs, rel=1e-9)


def recipes(rng: np.random.Generator, n: int, n_runs: int, gain: float, *, draws: bool = True) -> list[bool]:
    """In which of 150 worlds two recipes whose seeds spread by 5% are called different."""
    worlds = [f"world {at}" for at in range(150)]
    users, tables = rng.random((150, n)), {}
    for name, mean, is_drawn in (("old", 0.3, draws), ("new", 0.3 * gain, True)):
        runs = n_runs if is_drawn else 1
        means = mean * (1.0 + 0.05 * is_drawn * rng.normal(size=(runs, 150, 1)))
        luck = 0.2 * rng.normal(size=(runs, 150, n))
        hits = [(users + own) % 1.0 < share for share, own in zip(means, luck, strict=True)]
        tables[name] = [PerCase(np.arange(n), dict(zip(worlds, 1.0 * one, strict=True))) for one in hits]
    with notes_only():
        rows = compare_tables(tables, baseline="old", options=Options(correction="none")).rows
    return [row.p_value <= 0.05 for row in rows]


def test_five_seeds_tell_recipes_apart_and_not_seeds() -> None:
    rng = np.random.default_rng(8)
    limit = 0.05 + 3 * np.sqrt(0.05 * 0.95 / 150)
    assert np.mean(recipes(rng, 1000, 5, 1.0)) <= limit
    assert np.mean(recipes(rng, 1000, 5, 1.0, draws=False)) <= limit
    assert np.mean(recipes(rng, 1000, 1, 1.0)) > 0.15  # what one run each comes to
    assert np.mean(recipes(rng, 1000, 5, 1.2)) >= 0.8


def test_models_with_one_run_each_are_compared_as_without_the_runs_of_others() -> None:
    rng = np.random.default_rng(9)
    tables = {n: PerCase(np.arange(200), {"m": rng.random(200) < 0.5}) for n in ("popularity", "knn", "als")}
    several = tables | {"als": [tables["als"], tables["knn"]]}
    with notes_only():
        alone, beside = (compare_tables(t, baseline="popularity").rows for t in (tables, several))
    assert replace(beside[0], adjusted_p=0.0, verdict="") == replace(alone[0], adjusted_p=0.0, verdict="")
    assert beside[0].runs is None
    assert beside[1].runs is not None
    assert "one side has a single run: if its training draws, the spread of that is not counted" in map(
        str, beside[1].notes
    )


def test_clusters_of_unequal_size_count_as_in_one_run() -> None:
    rng = np.random.default_rng(6)
    user = np.sort(rng.integers(0, 40, 300)) ** 2 // 40
    sides = {name: PerCase(np.arange(300), {"m": rng.random(300)}, user) for name in ("old", "new")}
    once = compare_tables(sides, baseline="old", options=Options(test="t")).rows[0]
    again = compare_tables({name: [run] * 3 for name, run in sides.items()}, baseline="old").rows[0]
    assert again.p_value == pytest.approx(once.p_value, rel=1e-9)
    assert again.interval.high == pytest.approx(once.interval.high, rel=1e-9)


def test_the_lift_over_folds_is_fiellers() -> None:
    rng = np.random.default_rng(5)
    old = [PerCase(np.arange(r * 200, r * 200 + 200), {"m": rng.random(200)}) for r in range(5)]
    new = [PerCase(run.ids, {"m": 3 * rng.random(200)}) for run in old]
    row = compare_tables({"old": old, "new": new}, baseline="old").rows[0]
    value, base = (np.array([run.columns["m"].mean() for run in runs]) for runs in (new, old))
    covariance = (1 / 5 + 1 / 4) * np.cov(value, base)
    for end in (row.relative_interval.low, row.relative_interval.high):
        slope = np.array([1.0, -(1.0 + end)])  # the ends are the lifts that the test just does not reject
        t = (value.mean() - (1.0 + end) * base.mean()) / np.sqrt(slope @ covariance @ slope)
        assert abs(t) == pytest.approx(stats.t.ppf(0.975, 4), rel=1e-9)


def test_identical_runs_are_one_run() -> None:
    d = np.random.default_rng(2).normal(0.1, 1, size=200)
    result = seeds(np.stack([d] * 5))
    assert result.standard_error == pytest.approx(stats.sem(d), rel=1e-9)
    assert result.variance_runs == pytest.approx(0, abs=1e-20)
    assert (result.better_in, result.n_runs) == (5, 5)


def test_folds_are_nadeau_and_bengios_formula() -> None:
    d = np.array([0.021, 0.014, 0.030, -0.002, 0.018])
    result = folds(d)
    t = d.mean() / np.sqrt((1 / 5 + 1 / 4) * d.var(ddof=1))
    assert result.p_value == pytest.approx(2 * stats.t.sf(t, 4), rel=1e-10)
    assert result.better_in == 4
    assert result.p_value > stats.ttest_1samp(d, 0).pvalue
    repeated = folds(np.tile(d, 2), test_over_train=0.25)
    plain = np.tile(d, 2)
    t = plain.mean() / np.sqrt((1 / 10 + 0.25) * plain.var(ddof=1))
    assert repeated.p_value == pytest.approx(2 * stats.t.sf(t, 9), rel=1e-10)


def test_cautions_and_refusals() -> None:
    with pytest.warns(SmallSampleWarning, match="2 runs"):
        seeds(np.random.default_rng(0).normal(size=(2, 30)))
    with pytest.warns(ZeroVarianceWarning):
        assert folds([0.1, 0.1, 0.1]).p_value == 2.0**-2
    with pytest.warns(ZeroVarianceWarning):
        assert seeds(np.full((3, 50), 0.1)).p_value == 2.0**-2
    with pytest.raises(InputError, match="runs x units"):
        seeds(np.zeros(5))
    with pytest.raises(InputError, match="finite"):
        seeds(np.full((3, 5), np.nan))
    with pytest.raises(InputError, match="at least 2 folds"):
        folds([0.1])
    with pytest.raises(InputError, match="test_over_train"):
        folds([0.1, 0.2], test_over_train=0)


def tables(means: list[float], *, noise: int = 100) -> list[PerCase]:
    return [
        PerCase(np.arange(200), {"rank": np.random.default_rng(noise + i).normal(mean, 1, 200)})
        for i, mean in enumerate(means)
    ]


def test_lower_is_better_applies_to_runs_and_the_posterior() -> None:
    options = Options(lower_is_better=frozenset({"rank"}), rope=0.05)
    for sides in (
        {"old": tables([5.0] * 5), "new": tables([4.0] * 5, noise=7)},
        {"old": tables([5.0])[0], "new": tables([4.0], noise=7)[0]},
    ):
        row = compare_tables(sides, baseline="old", options=options).rows[0]
        assert row.verdict.kind == "better"
        assert row.bayes is not None
        assert row.bayes.p_better > 0.99
        if row.runs is not None:
            assert "better in 5 of 5 runs" in str(row.verdict)


def test_equivalence_includes_the_spread_between_runs() -> None:
    shifts = [0.3, -0.3, 0.2, -0.25, 0.1]
    sides = {"old": tables([5.0] * 5), "new": tables([5.0 + shift for shift in shifts])}
    with pytest.warns(ZeroVarianceWarning):
        row = compare_tables(sides, baseline="old", options=Options(margin=0.1, rope=0.1)).rows[0]
    assert row.equivalence is not None
    assert row.bayes is not None
    assert row.equivalence.p_value > 0.2
    assert row.bayes.p_equal < 0.6
