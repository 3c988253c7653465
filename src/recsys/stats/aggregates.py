"""Aggregates: the median, a percentile or a trimmed mean of the values per case, with intervals.

They are functions of the sorted values, so a histogram gives the same number as the rows do. A percentile is
the least value that this share of the cases does not exceed, always a value that some case has: of an even
number of cases, the median is the lower of the two in the middle.

The interval of a percentile at the level q runs from the j-th to the k-th of n ascending values, where j and
k - 1 are the alpha / 2 and the 1 - alpha / 2 quantile of a binomial number of n trials of chance q (David and
Nagaraja, Order Statistics, 7.1). A mean without a share g at either end has the standard error

    s / ((1 - 2 g) sqrt(n))

where s is that of the winsorised values, with n (1 - 2 g) - 1 degrees of freedom (Tukey and McLaughlin 1963).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from recsys.errors import ConventionError, NoRowsError, UnknownNameError
from recsys.kernels.exact_sums import exact_mean
from recsys.records.arrays import Float, PerCase, Sums
from recsys.records.facts import Note, note
from recsys.stats.bootstrap import collapse
from recsys.stats.results import (
    Estimate,
    Interval,
    SmallSampleWarning,
    ZeroVarianceWarning,
    caution,
    check_confidence,
    t_interval,
)
from recsys.stats.samples import Sample
from recsys.stats.sums import CaseValues

_TRIMMED = re.compile(r"trimmed\(\s*(\d*\.?\d+)\s*\)", re.ASCII)
_PERCENTILE = re.compile(r"p(\d{1,2}(?:\.\d+)?)", re.ASCII)


@dataclass(frozen=True)
class Aggregate:
    """A statistic of the values per case: a percentile at the level `share`, or a mean without both ends.

    >>> Aggregate.of("p90"), Aggregate.of("mean")
    (Aggregate(name='p90', share=0.9, trims=False), None)
    >>> Aggregate.of("median")(np.array([0.0, 0.5, 1.0, 1.0])), Aggregate.of("trimmed(0.25)")(np.arange(4.0))
    (0.5, 1.5)
    """

    name: str
    share: float
    trims: bool = False

    @classmethod
    def of(cls, aggregate: Any) -> Aggregate | None:
        """The aggregate of this name; None for the mean."""
        if aggregate is None or isinstance(aggregate, cls):
            return aggregate
        text = aggregate.strip() if isinstance(aggregate, str) else ""
        percentile, trimmed = _PERCENTILE.fullmatch(text), _TRIMMED.fullmatch(text)
        if text == "mean":
            return None
        if text == "median":
            return cls("median", 0.5)
        if percentile and float(percentile[1]) > 0:
            return cls(f"p{float(percentile[1]):g}", float(Fraction(percentile[1]) / 100))
        if trimmed and 0 < float(trimmed[1]) < 0.5:
            return cls(f"trimmed({float(trimmed[1]):g})", float(trimmed[1]), trims=True)
        known = ["mean", "median", "p90", "trimmed(0.1)"]
        hint = "Write median, p90 (a percentile between 0 and 100) or trimmed(0.1) (a share below 0.5)."
        raise UnknownNameError("aggregate", aggregate, known, hint=hint)

    def __str__(self) -> str:
        return self.name

    @property
    def words(self) -> str:
        """The aggregate in a sentence.

        >>> Aggregate.of("trimmed(0.1)").words, Aggregate.of("p90").words
        ('10% trimmed mean', '90th percentile')
        """
        if self.trims:
            return f"{100 * self.share:g}% trimmed mean"
        if self.name == "median":
            return "median"
        level = f"{100 * self.share:g}"
        teens = level[-2:] in ("11", "12", "13")
        ending = "th" if teens or "." in level else {"1": "st", "2": "nd", "3": "rd"}.get(level[-1], "th")
        return f"{level}{ending} percentile"

    def __call__(self, values: Float, weights: Float | None = None, **params: Any) -> float:
        """The aggregate of values without NaN; NaN if there are none. The metric's parameters are ignored."""
        del params
        return self.value(CaseValues.of(values, weights))

    def value(self, cases: CaseValues) -> float:
        """The same of the values of cases."""
        if not self.trims:
            return cases.quantiles([self.share])[0]
        if cases.is_weighted:
            raise ConventionError(
                f"aggregate={self.name!r} cannot be computed with case_weights.",
                hint="Leave out case_weights, or use a percentile or the mean.",
            )
        return exact_mean(np.repeat(cases.values, self._kept(cases.shares).astype(np.int64)))

    def estimate(self, rows: PerCase, column: Float, confidence: float) -> Estimate:
        """The aggregate of a column with its interval, over clusters where there are any.

        NaN is left out.
        """
        present = ~np.isnan(column)
        if rows.weights is not None:
            present &= rows.weights > 0
        at = np.flatnonzero(present)
        at = at[np.argsort(column[at], kind="stable")]
        weights, clusters = (None if one is None else one[at] for one in (rows.weights, rows.clusters))
        cases = CaseValues(column[at], np.ones(len(at)) if weights is None else weights, weights is not None)
        keys = np.zeros(len(at), dtype=np.uint64)  # they only matter for resampling
        return self._estimate(
            cases,
            lambda values: Sample.row(collapse(values[None, :], clusters, keys=keys, weights=weights)),
            equal_cases=clusters is None and bool((cases.shares == cases.shares[:1]).all()),
            confidence=confidence,
        )

    def estimate_from(self, sums: Sums, confidence: float) -> Estimate:
        """The same from the histogram of the values.

        Raises:
            NoRowsError: only the rows could tell.
        """
        if sums.extremes.keys() != {"x"}:
            raise NoRowsError("an interval over users who have weights or several cases")
        cases = CaseValues.of_sums(sums)
        return self._estimate(
            cases,
            lambda values: Sample.of(values, counts=cases.shares),
            equal_cases=True,
            confidence=confidence,
        )

    def _estimate(
        self,
        cases: CaseValues,
        sample_of: Callable[[Float], Sample],
        *,
        equal_cases: bool,
        confidence: float,
    ) -> Estimate:
        """Of the values of cases, and what makes a sample of one number per value."""
        check_confidence(confidence)
        value, values = self.value(cases), cases.values
        if not len(values):
            nothing = Interval(math.nan, math.nan, confidence, "order statistics")
            return Estimate(math.nan, math.nan, nothing, 0, (note("no_values", noun="user"),))
        if self.trims:
            return self._trimmed_estimate(value, cases, sample_of, confidence=confidence)
        sample = sample_of((values <= value).astype(np.float64))
        n = sample.n
        size = n if equal_cases else min(_effective_size(sample, confidence), len(values))
        tail = (1.0 - confidence) / 2.0
        first = _binomial_quantile(tail, size, self.share)
        last = _binomial_quantile(1.0 - tail, size, self.share) + 1
        low, high = cases.quantiles([first / size, min(last / size, 1.0)])
        notes: tuple[Note, ...] = ()
        if first == 0 or last > size:
            low, high = (low if first else -math.inf), (high if last <= size else math.inf)
            lost = ["lower"] * (first == 0) + ["upper"] * (last > size)
            facts = {"n": n, "noun": "user", "ends": lost, "of": self.words}
            notes = (caution(SmallSampleWarning, "few_for_percentile", **facts),)
        error = (high - low) / (2.0 * t_interval(0.0, 1.0, math.inf, confidence).high)
        interval = Interval(low, high, confidence, "order statistics")
        return Estimate(value, error if math.isfinite(error) else math.nan, interval, n, notes)

    def _trimmed_estimate(
        self,
        value: float,
        cases: CaseValues,
        sample_of: Callable[[Float], Sample],
        *,
        confidence: float,
    ) -> Estimate:
        """By the winsorised variance: one number per value, whose mean is the trimmed mean."""
        values, counts, _ = cases
        kept = self._kept(counts)
        inside = values[kept > 0]
        winsorised = np.clip(values, inside[0], inside[-1])
        share = float(kept.sum() / counts.sum())
        centre = float((winsorised * counts).sum() / counts.sum())
        sample = sample_of(value + (winsorised - centre) / share)
        n, error, df = sample.n, sample.error, (sample.df + 1.0) * share - 1.0
        interval = replace(t_interval(value, error, df, confidence), method="Tukey-McLaughlin")
        notes: tuple[Note, ...] = ()
        if n < 3:
            notes = (caution(SmallSampleWarning, "few_units", n=n, noun="user", so="little"),)
        elif error == 0:
            interval = replace(interval, low=-math.inf, high=math.inf)
            notes = (caution(ZeroVarianceWarning, "kept_values_equal"),)
        return Estimate(value, error, interval, n, notes)

    def _kept(self, counts: Float) -> Float:
        """How many of each of the ascending values are not left out."""
        ends = np.cumsum(counts)
        left_out = math.floor(self.share * ends[-1] + 1e-9) if len(ends) else 0  # 0.29 of 100 are 29
        kept: Float = np.minimum(ends, ends[-1:] - left_out) - np.maximum(ends - counts, left_out)
        return np.maximum(kept, 0.0)


def _effective_size(sample: Sample, confidence: float) -> int:
    """How many independent cases of equal weight tell as much about the share that these units have."""
    share, error = sample.mean, sample.error
    if not error > 0 or not 0 < share < 1:  # as if the cases of a unit were all the same
        squares = sample.n if sample.weights is None else (sample.times * sample.weights**2).sum()
        return max(int(sample.weight**2 / squares), 1)
    normal, t = (t_interval(0.0, 1.0, dof, confidence).high for dof in (math.inf, sample.df))
    return max(int(share * (1.0 - share) / error**2 * (normal / t) ** 2), 1)


def _binomial_quantile(level: float, n: int, p: float) -> int:
    """The least number of successes that is not exceeded with this probability."""
    from scipy.special import bdtr

    low, high = 0, n
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if bdtr(middle, n, p) >= level else (middle + 1, high)
    return low
