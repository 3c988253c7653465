"""Bootstraps, max-T and the warning of skewness where few users differ or a few users decide the mean."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from recsys.errors import notes_only
from recsys.records.arrays import PerCase
from recsys.stats import SmallSampleWarning, bootstrap_test, mean_interval
from recsys.stats.bootstrap import Resampler
from recsys.stats.comparison import compare_tables
from recsys.stats.comparison_table import Options
from recsys.stats.corrections import max_t
from recsys.stats.paired_tests import paired_t
from recsys.stats.results import SkewWarning
from recsys.stats.samples import Sample
from worlds.metric_values import MARGINALS, Marginal, correlated
from worlds.statistics import ALPHA, alone, upper

HIT, NDCG = MARGINALS["hit, 2%"], MARGINALS["ndcg@10, 90% zeros"]
# Equal means, but large values are rarer for one of the models.
RARE = Marginal("value", 0.95, tail=1.5, level=4.0)
COMMON = Marginal("value", 0.8, tail=1.5)


def tables(new, old):
    """Two models with one metric per row."""
    users = np.arange(new.shape[1])
    columns = [{f"m{j}": row for j, row in enumerate(rows)} for rows in (new, old)]
    return {"new": PerCase(users, columns[0]), "old": PerCase(users, columns[1])}


def compared(new, old, **options):
    with notes_only():
        return compare_tables(tables(new, old), baseline="old", options=Options(**options)).rows


@pytest.mark.parametrize("test", ["studentised", "bca"])
@pytest.mark.parametrize(
    ("metric", "n", "correlation"),
    [(HIT, 1000, 0.99), (HIT, 100, 0.2), (NDCG, 100, 0.99), (NDCG, 300, 0.99)],
)
def test_bootstraps_of_sparse_differences_hold_their_level(test, metric, n, correlation) -> None:
    worlds = 400
    new, old = (
        metric.at(scores) for scores in correlated(np.random.default_rng(1), (worlds, n), correlation)
    )
    with notes_only():
        results = [bootstrap_test(row, method=test, n_resamples=199) for row in new - old]
    rejected = np.mean([result.p_value <= ALPHA for result in results])
    missed = np.mean([not result.interval.low <= 0 <= result.interval.high for result in results])
    assert rejected <= upper(ALPHA, worlds)
    assert missed <= upper(ALPHA, worlds)
    rows = compared(new[:5], old[:5], test=test, correction="none", n_resamples=199)
    assert [row.p_value for row in rows] == pytest.approx(
        [result.p_value for result in results[:5]], nan_ok=True
    )


def test_two_wins_of_a_thousand_users_are_no_evidence() -> None:
    differences = np.repeat([1.0, 0.0], [2, 998])
    for method in ("studentised", "bca"):
        with pytest.warns(SmallSampleWarning, match="2 of 1,000 users differ, too few for a bootstrap"):
            result = bootstrap_test(differences, method=method)
        assert (result.method, result.p_value) == ("sign flips", 0.5)
        assert result.interval.low <= 0
        (row,) = compared(differences[None], np.zeros((1, 1000)), test=method)
        assert row.p_value >= 0.5
        assert "too few for a bootstrap" in " ".join(map(str, row.notes))


def test_from_sixty_users_on_a_bootstrap_is_one() -> None:
    rng = np.random.default_rng(2)
    for n, differing, bootstrapped in [(1000, 59, False), (1000, 60, True), (60, 40, True), (12, 12, True)]:
        differences = np.zeros(n)
        differences[:differing] = rng.normal(size=differing)
        with notes_only():
            result = bootstrap_test(differences, n_resamples=99)
        assert result.method.startswith("studentised bootstrap" if bootstrapped else "sign flips")


@pytest.mark.parametrize("discordant", [3, 5, 8, 12])
def test_a_sparse_metric_does_not_silence_max_t(discordant: int) -> None:
    rng = np.random.default_rng(4)
    differences = np.stack([rng.normal(0.31, 1.0, size=1000), np.zeros(1000)])
    differences[1, :discordant] = np.resize([1.0, -1.0], discordant)
    assert max_t(alone(differences), Resampler(alone(differences).keys, 1999)).adjusted[0] == 2 / 2000
    rows = compared(differences, np.zeros_like(differences), correction="max-t", n_resamples=1999)
    assert rows[0].statistic > 9
    assert rows[0].adjusted_p == 1 / 2000  # the metric that decides is not charged for the other
    assert rows[1].adjusted_p > 0.5


@pytest.mark.parametrize("n", [100, 300])
def test_max_t_bounds_the_error_of_families_with_a_sparse_metric(n: int) -> None:
    rng = np.random.default_rng(5)
    worlds, family = 400, [MARGINALS[f"ndcg@10, {zeros}% zeros"] for zeros in (70, 90)] * 2 + [HIT]
    wrong = sparse = 0
    for world in range(worlds):
        new, old = correlated(rng, (n,), 0.8)
        noise = 0.5 * rng.standard_normal((2, 5, n))
        pairs = zip(family, (new + noise[0]) / 1.25**0.5, (old + noise[1]) / 1.25**0.5, strict=True)
        units = alone(np.stack([metric.at(a) - metric.at(b) for metric, a, b in pairs]))
        sparse += int(Sample.row(units, 4).few_are_not_zero(20))
        wrong += np.nanmin(max_t(units, Resampler(units.keys, 199, world)).adjusted) <= ALPHA
    assert sparse > 0.7 * worlds
    assert 0.01 < wrong / worlds <= upper(ALPHA, worlds)


def test_a_unit_that_makes_up_the_spread_does_not_silence_max_t() -> None:
    rng = np.random.default_rng(9)
    rows = np.stack([rng.normal(0.2, 1.0, size=1000), rng.normal(size=1000)])
    rows[1, 0] = 400.0
    assert max_t(alone(rows), Resampler(alone(rows).keys, 1999)).adjusted[0] == 2 / 2000


def warned(rows, word: str) -> float:
    """The share of rows with such a note of the t-test, among those in which 20 users differ."""
    many = [row for row in rows if np.count_nonzero(row) >= 20]
    with notes_only():
        return float(np.mean([any(word in str(note) for note in paired_t(row).notes) for row in many]))


@pytest.mark.parametrize(("n", "most"), [(100, 0.45), (300, 0.7), (1000, 0.8)])
@pytest.mark.parametrize("correlation", [0.2, 0.8, 0.99])
def test_heavy_tails_warn_where_the_test_errs(n: int, most: float, correlation: float) -> None:
    new, old = correlated(np.random.default_rng(6), (400, n), correlation)
    rows = RARE.at(new) - COMMON.at(old)
    p = stats.ttest_1samp(rows, 0, axis=1).pvalue
    assert np.mean(p <= ALPHA) > ALPHA
    assert warned(rows, "heavy tails") > most


@pytest.mark.parametrize("n", [100, 300, 1000])
def test_heavy_tails_rarely_warn_elsewhere(n: int) -> None:
    rng = np.random.default_rng(7)
    assert warned(rng.normal(size=(250, n)), "heavy tails") == 0
    for correlation in (0.2, 0.8, 0.99):
        new, old = correlated(rng, (250, n), correlation)
        for name in ("ndcg@10, 70% zeros", "ndcg@10, 90% zeros", "recall, 80% zeros"):
            rows = MARGINALS[name].at(new) - MARGINALS[name].at(old)
            assert (np.count_nonzero(rows, axis=1) < 20).all() or warned(rows, "heavy tails") < 0.02


def test_skewness_recommends_the_test_that_holds() -> None:
    differences = np.concatenate([np.full(40, 0.1), [-1.0] * 6, np.zeros(954)])
    with pytest.warns(SkewWarning, match="46 of 1,000 users differ, too few for a bootstrap"):
        paired_t(differences)
    lucky = np.random.default_rng(8).random(400) < 0.05
    with pytest.warns(SkewWarning, match="prefer the studentised bootstrap"):
        paired_t(np.where(lucky, 1.0, -1 / 19))
    # Tiny differences are as skewed as large ones.
    with pytest.warns(SkewWarning, match="prefer the studentised bootstrap"):
        paired_t(1e-160 * np.where(lucky, 1.0, -1 / 19))


def test_bootstraps_of_heavy_differences_warn_too() -> None:
    differences = np.random.default_rng(11).normal(size=(1, 100))
    differences[0, 0] = 30.0
    with pytest.warns(SkewWarning, match="heavy tails: about 1 of 100 differences make up the spread"):
        bootstrap_test(differences[0], n_resamples=99)
    (row,) = compared(differences, np.zeros((1, 100)), test="bca", n_resamples=99)
    assert row.test.startswith("bca")
    assert any("heavy tails" in str(note) for note in row.notes)


def test_intervals_of_heavy_values_warn() -> None:
    """The interval of such a mean covers it in 91 % of the samples of 1,000 users, and in 83 % of 300."""
    rng = np.random.default_rng(10)
    for n, most in ((300, 0.7), (1000, 0.75)):
        with notes_only():
            results = [mean_interval(row) for row in COMMON.at(rng.standard_normal((300, n)))]
        assert (
            np.mean([any("heavy tails" in str(note) for note in result.notes) for result in results]) > most
        )
    with pytest.warns(SkewWarning, match="heavy tails: about 1 of 100 values make up the spread"):
        mean_interval([1e9, *rng.normal(size=99)])
