"""Medians, percentiles and trimmed means: their values by plain definition, their intervals by coverage."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats as scipy_stats

from recsys.errors import ConventionError, NoRowsError, RecsysError
from recsys.records.arrays import PerCase
from recsys.stats.aggregates import Aggregate
from recsys.stats.results import SmallSampleWarning, ZeroVarianceWarning
from recsys.stats.sums import CaseValues, sums_of

NAMES = ("median", "p90", "p2.5", "trimmed(0.1)", "trimmed(0.25)")


def plain_aggregate(name: str, values: list[float]) -> float:
    """The definition, in exact arithmetic: count from the lowest value upwards."""
    ascending = sorted(values)
    n = len(ascending)
    if name.startswith("trimmed"):
        left_out = int(Fraction(name[8:-1]) * n)
        kept = ascending[left_out : n - left_out]
        return float(sum(map(Fraction, kept)) / len(kept))
    level = Fraction("50" if name == "median" else name[1:]) / 100
    return next(v for place, v in enumerate(ascending, start=1) if Fraction(place, n) >= level)


def rows_of(values, clusters=None, weights=None):
    return PerCase(np.arange(len(values)), {"m": values}, clusters, weights)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n", [1, 2, 7, 40, 100, 333])
def test_it_is_the_definition_of_rows_and_of_histograms(name, n):
    values = np.random.default_rng(n).integers(0, 12, n) / 7.0
    expected = plain_aggregate(name, values.tolist())
    aggregate = Aggregate.of(name)
    assert aggregate(values) == expected
    assert aggregate.value(CaseValues.of_sums(sums_of(rows_of(values), values))) == expected


def test_a_share_counts_as_written():
    values = np.arange(100.0) ** 2
    assert Aggregate.of("trimmed(0.29)")(values) == plain_aggregate("trimmed(0.29)", values.tolist())
    assert Aggregate.of("trimmed(0.1)")(values) == pytest.approx(
        scipy_stats.trim_mean(values, 0.1), rel=1e-15
    )


def test_weights_count_like_repeated_cases():
    values, weights = np.array([0.3, 0.1, 0.9, 0.4]), np.array([3.0, 0.0, 2.0, 1.0])
    repeated = np.repeat(values, weights.astype(int))
    for name in ("median", "p90", "p10"):
        assert Aggregate.of(name)(values, weights) == Aggregate.of(name)(repeated)
    with pytest.raises(ConventionError, match="cannot be computed with case_weights"):
        Aggregate.of("trimmed(0.1)")(values, weights)
    sums = sums_of(rows_of(values, weights=weights), values)
    assert Aggregate.of("median").value(CaseValues.of_sums(sums)) == Aggregate.of("median")(repeated)
    with pytest.raises(ConventionError, match="cannot be computed with case_weights"):
        Aggregate.of("trimmed(0.1)").value(CaseValues.of_sums(sums))


@pytest.mark.parametrize(
    "text",
    ["mode", "p0", "p100", "p９０", "trimmed(0.5)", "trimmed(0)", "trimmed(0.１)", "trimmed", "", 0.5],  # noqa: RUF001
)
def test_an_unknown_name_is_refused(text):
    with pytest.raises(RecsysError, match="aggregate"):
        Aggregate.of(text)


def test_names_print_in_one_way():
    assert [str(Aggregate.of(t)) for t in (" p90 ", "p90.0", "trimmed( 0.10 )")] == [
        "p90",
        "p90",
        "trimmed(0.1)",
    ]
    assert Aggregate.of("mean") is Aggregate.of(None) is None
    ordinals = [Aggregate.of(t).words for t in ("p1", "p12", "p22", "p33", "p99.5")]
    assert ordinals == [f"{o} percentile" for o in ("1st", "12th", "22nd", "33rd", "99.5th")]


def test_the_interval_of_a_percentile_is_that_of_order_statistics():
    values = np.random.default_rng(3).permutation(np.arange(60.0))
    for name, level in (("median", 0.5), ("p90", 0.9)):
        found = Aggregate.of(name).estimate(rows_of(values), values, 0.95).interval
        low, high = int(found.low) + 1, int(found.high) + 1  # places, since the values are 0, 1, …
        binomial = scipy_stats.binom(60, level)
        assert binomial.cdf(low - 1) <= 0.025 < binomial.cdf(low)
        assert binomial.sf(high - 1) <= 0.025 < binomial.sf(high - 2)


def test_the_interval_of_a_trimmed_mean_is_that_of_the_winsorised_variance():
    values = np.random.default_rng(3).exponential(size=50)
    found = Aggregate.of("trimmed(0.1)").estimate(rows_of(values), values, 0.95)
    winsorised = np.asarray(scipy_stats.mstats.winsorize(values, (0.1, 0.1)))
    error = winsorised.std(ddof=1) / (0.8 * math.sqrt(50))
    assert found.standard_error == pytest.approx(error)
    assert found.interval.high == pytest.approx(found.value + scipy_stats.t.ppf(0.975, 39) * error)


@pytest.mark.parametrize("name", NAMES)
def test_a_histogram_gives_the_interval_of_the_rows(name):
    values = np.random.default_rng(5).integers(0, 9, 200) / 8.0
    aggregate = Aggregate.of(name)
    of_rows = aggregate.estimate(rows_of(values), values, 0.9)
    of_sums = aggregate.estimate_from(sums_of(rows_of(values), values), 0.9)
    assert of_rows.value == of_sums.value
    ends = (of_rows.interval.low, of_rows.interval.high, of_rows.standard_error)
    assert (of_sums.interval.low, of_sums.interval.high, of_sums.standard_error) == pytest.approx(ends)
    clustered = rows_of(values, clusters=np.arange(200) // 2)
    with pytest.raises(NoRowsError):
        aggregate.estimate_from(sums_of(clustered, values), 0.9)


@pytest.mark.parametrize(("name", "truth"), [("median", 0.0), ("p90", 1.4328), ("trimmed(0.1)", 0.0)])
def test_intervals_hold_their_level_over_users_with_several_cases(name, truth):
    rng, aggregate, hits, ignoring = np.random.default_rng(8), Aggregate.of(name), 0, 0
    clusters = np.repeat(np.arange(50), 6)
    for _ in range(300):
        values = np.repeat(rng.normal(size=50), 6) + 0.5 * rng.normal(size=300)
        hits += truth in aggregate.estimate(rows_of(values, clusters), values, 0.95).interval
        ignoring += truth in aggregate.estimate(rows_of(values), values, 0.95).interval
    assert 0.92 <= hits / 300 <= 0.995
    assert ignoring / 300 < 0.8


def test_intervals_of_weighted_percentiles_hold_their_level():
    rng, hits = np.random.default_rng(9), 0
    for _ in range(300):
        values, weights = rng.normal(size=150), rng.exponential(size=150)
        hits += (
            0.0 in Aggregate.of("median").estimate(rows_of(values, weights=weights), values, 0.95).interval
        )
    assert 0.92 <= hits / 300 <= 0.995


def test_what_few_or_equal_values_cannot_say():
    values = np.array([0.1, 0.2, 0.3])
    with pytest.warns(SmallSampleWarning, match="too few for the lower and upper end"):
        found = Aggregate.of("median").estimate(rows_of(values), values, 0.95)
    assert (found.value, found.interval.low, found.interval.high) == (0.2, -math.inf, math.inf)
    with pytest.warns(ZeroVarianceWarning, match="not left out are the same"):
        flat = Aggregate.of("trimmed(0.1)").estimate(rows_of(np.ones(30)), np.ones(30), 0.95)
    assert math.isinf(flat.interval.low)
    nothing = Aggregate.of("median").estimate(rows_of(np.full(3, np.nan)), np.full(3, np.nan), 0.95)
    assert math.isnan(nothing.value)
    assert nothing.n == 0
