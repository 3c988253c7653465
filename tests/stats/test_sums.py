"""Sums over users: histograms, quantiles, and the intervals that they give in place of the rows."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

from recsys.errors import MergeError, NoRowsError
from recsys.records.arrays import PerCase, Sums
from recsys.stats import sums as module
from recsys.stats.intervals import mean_interval
from recsys.stats.results import SkewWarning
from recsys.stats.sums import (
    CaseValues,
    add_sums,
    combination_from,
    interval_from,
    mean_from,
)


def numbers(n: int, step: float = 1.0) -> np.ndarray:
    """n numbers between 0 and 1 without an order."""
    return np.modf(np.abs(np.sin(step * np.arange(1, n + 1)) * 1000.0))[0]


def sums_of(
    values: np.ndarray, terms=None, only=None, *, whole_users: bool = True, **known: np.ndarray
) -> Sums:
    rows = PerCase(np.arange(len(values)), {"x": values}, **known)
    return module.sums_of(rows, values, terms, only, whole_users=whole_users)


def without_histogram(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "histogram_of", lambda *_: None)


def test_sums_are_exact_and_of_the_cases_with_a_value():
    values = np.array([0.5, 0.25, math.nan, 1.0, 0.125])
    found = sums_of(values)
    assert (found.n_cases, found.n_units) == (4, 4)
    assert found.totals == {"x": (15, 8), "xx": np.nansum(values**2).item().as_integer_ratio()}
    assert found.extremes == {"x": (0.125, 1.0)}
    assert mean_from(found) == 1.875 / 4
    part = sums_of(values, only=np.array([True, False, True, True, False]))
    assert (mean_from(part), part.n_cases) == (0.75, 2)
    assert math.isnan(mean_from(sums_of(np.full(3, math.nan))))


def test_weights_and_users_make_units():
    values, weights = np.array([0.5, 0.25, 1.0, 0.0]), np.array([2.0, 0.0, 1.0, 5.0])
    found = sums_of(values, weights=weights)
    assert mean_from(found) == (0.5 * 2 + 1.0) / 8
    assert found.extremes == {"x": (0.0, 1.0), "w": (1.0, 5.0)}
    assert found.n_units == 3
    assert found.n_cases == 4
    users = np.array([7, 7, 8, 8])
    found = sums_of(values, clusters=users)
    assert mean_from(found) == 1.75 / 4
    assert found.units.rows.tolist() == [[0.75, 2.0], [1.0, 2.0]]
    assert found.n_units == 2
    assert sums_of(values, clusters=users, whole_users=False).n_units is None
    assert sums_of(values, whole_users=False).n_units == 4
    cancelled = sums_of(np.array([0.1, 0.2, -0.3, 0.5]), clusters=np.array([1, 1, 1, 2]))
    assert cancelled.units.rows[0].tolist() == [0.0, 3.0]


def test_two_terms_are_averaged_before_they_are_combined():
    first, second = np.array([1.0, 2.0, 0.0]), np.array([2.0, 4.0, 3.0])
    found = sums_of(first / second, (first, second))
    combination = combination_from(found, lambda a, b: a / b)
    assert combination.value == pytest.approx(1 / 3)
    assert list(combination.means) == [1.0, 3.0]
    assert combination.slopes == pytest.approx([1 / 3, -1 / 9])
    fixed = combination_from(sums_of(first, (first, np.full(3, 2.0))), lambda a, b: a / b)
    assert fixed.slopes == pytest.approx([1 / 2, 0.0])


def test_parts_add_up_to_the_whole():
    values, weights = numbers(40).round(1), np.floor(1.0 + 3.0 * numbers(40, 0.7))
    for known in ({}, {"weights": weights}):
        rows = [
            PerCase(np.arange(40)[s], {}, **{n: w[s] for n, w in known.items()})
            for s in (slice(15), slice(15, 40))
        ]
        parts = [
            module.sums_of(row, values[s]) for row, s in zip(rows, (slice(15), slice(15, 40)), strict=True)
        ]
        whole, added = sums_of(values, **known), add_sums(parts)
        assert mean_from(added) == mean_from(whole)
        assert added.n_cases == whole.n_cases
        assert added.extremes == whole.extremes
        assert interval_from(added) == interval_from(whole)
        found, expected = (CaseValues.of_sums(one).quantiles([0.1, 0.5]) for one in (added, whole))
        assert found == expected
    with pytest.raises(MergeError):
        add_sums([sums_of(values), sums_of(values, weights=weights)])
    unknown = add_sums([sums_of(values), sums_of(values, clusters=np.arange(40), whole_users=False)][:1])
    assert unknown.n_units is not None


def test_sums_of_parts_with_and_without_histograms(monkeypatch):
    values = numbers(900)
    whole_rows = mean_interval(values)
    first = sums_of(values[:400])
    without_histogram(monkeypatch)
    second = module.sums_of(PerCase(np.arange(400, 900), {}), values[400:])
    both = add_sums([first, second])
    found = interval_from(both)
    assert both.units is None
    assert found.value == pytest.approx(whole_rows.value)
    assert found.standard_error == pytest.approx(whole_rows.standard_error, rel=1e-12)
    assert found.interval.low == pytest.approx(whole_rows.interval.low, rel=1e-12)


@pytest.mark.parametrize("method", ["t", "normal"])
@pytest.mark.parametrize("kind", ["plain", "weights", "clusters", "terms"])
def test_sums_alone_give_the_interval_of_the_histogram(kind, method, monkeypatch):
    n = 3000
    values = numbers(n)
    known = {"weights": {"weights": 1.0 + numbers(n, 0.7)}, "clusters": {"clusters": np.arange(n) // 2}}.get(
        kind, {}
    )
    terms = (values, 1.0 + numbers(n, 0.3)) if kind == "terms" else None
    combine = (lambda a, b: a / b) if terms else None
    of_rows = interval_from(sums_of(values, terms, **known), combine, method=method, confidence=0.9)
    without_histogram(monkeypatch)
    found = interval_from(sums_of(values, terms, **known), combine, method=method, confidence=0.9)
    assert found.value == pytest.approx(of_rows.value, rel=1e-12)
    if kind == "weights" and method == "t":  # no unit has more than a thousandth of the weight
        assert of_rows.standard_error < found.standard_error < of_rows.standard_error * 1.001
        assert found.interval.low < of_rows.interval.low < of_rows.interval.high < found.interval.high
        assert found.interval.low == pytest.approx(of_rows.interval.low, rel=1e-4)
    else:
        assert found.standard_error == pytest.approx(of_rows.standard_error, rel=1e-12)
        assert found.interval.low == pytest.approx(of_rows.interval.low, rel=1e-12)
        assert found.interval.high == pytest.approx(of_rows.interval.high, rel=1e-12)
    assert (found.n, found.interval.confidence, found.interval.method) == (of_rows.n, 0.9, method)
    assert [(one.code, one.warning) for one in found.notes] == [("spread_unknown", None)]
    with pytest.raises(NoRowsError):
        CaseValues.of_sums(sums_of(values, terms, **known)).quantiles([0.5])


def test_beyond_the_histogram_a_known_range_gives_the_interval_of_t(monkeypatch):
    values = numbers(3000)
    without_histogram(monkeypatch)
    found, plain = (interval_from(sums_of(values), bounds=ends) for ends in ((0.0, 1.0), None))
    assert found == plain
    assert found.interval.method == "t"
    assert "the interval is that of t" in str(found.notes[0])
    assert "per_user='folder/'" in str(found.notes[0])


@pytest.mark.parametrize("large", [3.0, 25.0, 40.0, 400.0, -400.0])
def test_a_few_large_values_are_a_caution_without_the_values_too(large, monkeypatch):
    values = np.append(numbers(2000), large)

    def warned(sums: Sums) -> bool:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            interval_from(sums)
        return any(issubclass(w.category, SkewWarning) for w in caught)

    of_rows = warned(sums_of(values))
    without_histogram(monkeypatch)
    assert warned(sums_of(values)) == of_rows == (abs(large) > 10)


def test_what_only_rows_can_tell_is_refused(monkeypatch):
    values = numbers(50)
    for method in ("studentised", "bca", "percentile"):
        with pytest.raises(NoRowsError):
            interval_from(sums_of(values), method=method)
    with pytest.raises(NoRowsError, match="several pieces"):
        interval_from(sums_of(values, clusters=np.arange(50), whole_users=False))
    without_histogram(monkeypatch)
    with pytest.raises(NoRowsError, match="thousandth"):
        interval_from(sums_of(values, weights=1.0 + numbers(50, 0.7)))
    assert interval_from(sums_of(values, weights=np.full(50, 2.0))).n == 50


def test_quantiles_are_the_least_values_that_reach_a_share():
    values, weights = np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0, 0.0, 2.0, 1.0])
    assert CaseValues(values, weights).quantiles([0.0, 0.25, 0.26, 0.75, 0.76, 1.0]) == [1, 1, 3, 3, 4, 4]
    assert math.isnan(CaseValues(values, np.zeros(4)).quantiles([0.5])[0])
    tenth = CaseValues(np.arange(10.0), np.full(10, 0.1))  # sums of tenths are a little off
    assert tenth.quantiles([0.3, 0.7]) == [2.0, 6.0]
    found = sums_of(np.array([0.5, 0.5, 1.0, 0.0]), weights=np.array([1.0, 2.0, 4.0, 1.0]))
    cases = CaseValues.of_sums(found)
    assert (cases.values.tolist(), cases.shares.tolist()) == ([0.0, 0.5, 0.5, 1.0], [1.0, 1.0, 2.0, 4.0])
    assert CaseValues.of_sums(found).quantiles([0.1, 0.5, 0.51]) == [0.0, 0.5, 1.0]
    assert CaseValues.of_sums(sums_of(np.array([3.0, 1.0, 2.0]))).quantiles([0.5]) == [2.0]
