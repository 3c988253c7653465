"""Several comparisons at once: corrections of p-values, Friedman with Nemenyi, and resampled max-T.

Adjusted p-values are for a stated family: compare each with the level for the whole family. All corrections
are monotone (a smaller p never gets a larger adjusted one), capped at 1 and in the given order. NaN (nothing
to test) stays NaN and is not counted. Max-T (Westfall and Young) uses the dependence between the comparisons
instead of assuming the worst, so it rejects more than Holm at the same error rate; it shares its draws with
the other tests.

Of the i-th of m ascending p-values, Holm (1979) takes the greatest (m - i + 1) p up to it, Hochberg (1988)
the least from it on; Benjamini and Hochberg (1995) take the least m p / i from it on, and Benjamini and
Yekutieli (2001) that times 1 + 1/2 + ... + 1/m. With the mean ranks R of k models over n units,

    chi2 = 12 n / (k (k + 1)) sum (R - (k + 1) / 2)^2, F = (n - 1) chi2 / (n (k - 1) - chi2)

are the statistics of Friedman, which is corrected for ties, and of Iman and Davenport (1980). Nemenyi's
critical difference of ranks is q sqrt(k (k + 1) / (12 n)) with a quantile q of the studentised range.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from recsys.errors import InputError, UnknownNameError, check_choice
from recsys.records.arrays import Bool, Float, PerCase
from recsys.records.checks import to_floats
from recsys.records.facts import Note, note
from recsys.stats.bootstrap import Resampler, Units, replicate
from recsys.stats.pairing import Differences, align
from recsys.stats.rank_tests import rank_notes
from recsys.stats.results import check_alpha
from recsys.stats.samples import FEW, Sample
from recsys.stats.sign_flips import SignFlips

CORRECTIONS = ("none", "bonferroni", "holm", "hochberg", "bh", "by")
_CONFIDENCE = 0.95  # of intervals that hold together


def adjust(p_values: npt.ArrayLike, method: str = "holm") -> Float:
    """Adjusted p-values: Bonferroni, Holm and Hochberg bound any false rejection, BH and BY their share.

    >>> adjust([0.010, 0.011, 0.012], "holm").round(3).tolist()
    [0.03, 0.03, 0.03]
    """
    name: object = method
    if not isinstance(name, str) or name not in CORRECTIONS:
        is_max_t = isinstance(name, str) and name == "max-t"
        hint = "max-T needs the draws: compare(..., correction='max-t')." if is_max_t else ""
        raise UnknownNameError("correction of p-values", method, CORRECTIONS, hint=hint)
    p = to_floats(p_values, "p-values", "Such as [0.01, 0.2].")
    if p.ndim != 1:
        raise InputError(f"p-values must be one-dimensional, got shape {p.shape}.")
    outside = (p < 0) | (p > 1)
    if outside.any():
        raise InputError(
            f"a p-value lies outside 0 to 1: {p[outside][0]}.", row=int(np.flatnonzero(outside)[0])
        )
    adjusted = p.copy()
    # NaN is sorted to the end and stays out.
    m = int(np.count_nonzero(~np.isnan(p)))
    if method == "none" or m == 0:
        return adjusted
    order = np.argsort(p, kind="stable")[:m]
    ordered = p[order]
    rank = np.arange(1, m + 1)
    if method == "bonferroni":
        steps = ordered * m
    elif method == "holm":
        steps = np.maximum.accumulate(ordered * (m - rank + 1))
    elif method == "hochberg":
        steps = _running_minimum_from_end(ordered * (m - rank + 1))
    else:
        harmonic = float((1.0 / rank).sum()) if method == "by" else 1.0
        steps = _running_minimum_from_end(ordered * (m / rank) * harmonic)
    adjusted[order] = np.minimum(steps, 1.0)
    return adjusted


def adjust_best(p_values: Float, metrics: Sequence[str]) -> Float:
    """Adjusted p-values of the best of several models against each other, in Holm's steps.

    The best was chosen by the same data, so that any two of the models still in question may be the pair that
    chance pulled apart: where r others are not decided on a metric, p counts r (r + 1) / 2 times, as many as
    there are pairs of the r + 1. This is the closed test in which each set of equal models is tested by its
    most different pair (Bonferroni). On a single metric p is at most the largest of all: that the best beats
    every other is false only if it does not beat one of them, so no correction is needed where each p is
    below the level. `metrics` are those of the p-values.

    >>> adjust_best(np.array([0.001, 0.02, 0.03]), ["ndcg"] * 3).round(3).tolist()
    [0.006, 0.03, 0.03]
    >>> adjust_best(np.array([0.001, 0.02, 0.3]), ["ndcg"] * 3).round(3).tolist()
    [0.006, 0.06, 0.3]
    """
    adjusted = np.array(p_values, dtype=np.float64)
    left = Counter(metric for metric, p in zip(metrics, p_values.tolist(), strict=True) if not math.isnan(p))
    reached = 0.0
    for row in np.argsort(p_values, kind="stable")[: left.total()].tolist():
        n_pairs = sum(r * (r + 1) // 2 for r in left.values())
        reached = max(reached, min(1.0, float(p_values[row]) * n_pairs))
        adjusted[row] = reached
        left[metrics[row]] -= 1
    return np.minimum(adjusted, np.nanmax(p_values)) if len(left) == 1 else adjusted


def flips_together(differences: Sequence[Differences]) -> tuple[list[float], float]:
    """P-values of sign flips, and the confidence of each interval, that hold for several at once (95%).

    Such as of one pair of models in every group of users. P-values are adjusted by Holm, intervals of sign
    flips hold together by Bonferroni.

    >>> from recsys.stats.pairing import pair
    >>> flips_together([pair([0.5, -0.5, 0.0]), pair([0.5] * 9)])
    ([1.0, 0.0078125], 0.975)
    """
    p_values = adjust([SignFlips.of(one.sample).p_value() for one in differences], "holm")
    return p_values.tolist(), 1.0 - (1.0 - _CONFIDENCE) / max(len(p_values), 1)


def pairwise_confidence(n_means: int) -> float:
    """The confidence of each difference of two of so many independent means that all hold together (Tukey).

    >>> round(pairwise_confidence(2), 9), round(pairwise_confidence(8), 4)
    (0.95, 0.9976)
    """
    from scipy.special import ndtr
    from scipy.stats import studentized_range

    widest = float(studentized_range.isf(1.0 - _CONFIDENCE, n_means, np.inf))
    return 1.0 - 2.0 * float(ndtr(-widest / math.sqrt(2.0)))


def _running_minimum_from_end(steps: Float) -> Float:
    """Running minimum from the largest p down: the step-up rule."""
    return np.minimum.accumulate(steps[::-1])[::-1]


@dataclass(frozen=True)
class FriedmanResult:
    """Whether the models differ at all (by ranks within each unit), and which pairs do (Nemenyi)."""

    names: tuple[str, ...]
    mean_ranks: tuple[float, ...]
    statistic: float
    p_value: float
    f_statistic: float
    f_p_value: float
    critical_difference: float
    pairs: dict[tuple[str, str], float]
    n: int
    notes: tuple[Note, ...] = ()


def friedman(
    scores: npt.ArrayLike, names: Sequence[str] | None = None, *, alpha: float = 0.05
) -> FriedmanResult:
    """Friedman's test on units x models, with Iman and Davenport's F and Nemenyi's p for all pairs.

    The best model has the highest mean rank. Ranks show how often a model is better, not by how much.
    """
    from scipy.special import chdtrc, fdtrc

    table = to_floats(scores, "the scores", "Pass units x models, and names= of the models.")
    if table.ndim != 2 or table.shape[1] < 3 or table.shape[0] < 2:
        raise InputError(f"friedman needs units x models with at least 2 x 3, got shape {table.shape}.")
    if not np.isfinite(table).all():
        raise InputError("friedman needs a finite score for every unit and model.")
    check_alpha(alpha)
    n, k = table.shape
    try:
        labels = tuple(f"model {j + 1}" for j in range(k)) if names is None else tuple(names)
        n_different = len(set(labels))
    except TypeError:
        raise InputError(f"names came as {names!r}.", hint="Pass one name per model.") from None
    if n_different != k or len(labels) != k:
        raise InputError(f"{k} models need {k} different names, got {list(labels)}.")
    # Midranks within each row, 1 the lowest.
    n_below, n_equal = np.zeros_like(table), np.zeros_like(table)
    for j in range(k):
        n_below += table[:, [j]] < table
        n_equal += table[:, [j]] == table
    means = (n_below + (n_equal + 1.0) / 2.0).mean(axis=0)
    # Each member of a group of t ties adds t^2 - 1, so the group adds t^3 - t.
    tie_correction = 1.0 - float((n_equal**2 - 1.0).sum()) / (n * k * (k * k - 1.0))
    uncorrected = 12.0 * n / (k * (k + 1.0)) * float(((means - (k + 1) / 2) ** 2).sum())
    chi2 = uncorrected / tie_correction if tie_correction > 0 else 0.0
    f_denominator = n * (k - 1.0) - chi2
    f = (n - 1.0) * chi2 / f_denominator if f_denominator > 0 else math.inf
    critical, pairs = _nemenyi(means, labels, n, alpha)
    return FriedmanResult(
        labels,
        tuple(float(r) for r in means),
        chi2,
        float(chdtrc(k - 1, chi2)),
        f,
        float(fdtrc(k - 1, (k - 1) * (n - 1), f)) if math.isfinite(f) else 0.0,
        critical,
        pairs,
        n,
        rank_notes(n) or (note("rank_test"),),
    )


def omnibus(
    tables: Mapping[str, PerCase], metric: str, *, alpha: float = 0.05, lower_is_better: bool = False
) -> FriedmanResult:
    """Friedman's test of all models on one metric, over the units all models have; a high rank is good."""
    aligned = align(tables, [metric])
    values = np.stack([aligned.tables[name][metric] for name in tables])
    everywhere: Bool = ~np.any(np.isnan(values), axis=0)
    if not everywhere.any():
        raise InputError(f"no case has a value of {metric!r} from every model.", column=metric)
    units = aligned.units(values, everywhere)
    present = units.weights[0] != 0
    means = (units.totals[:, present] / units.weights[:, present]).T
    return friedman(-means if lower_is_better else means, tuple(tables), alpha=alpha)


def _nemenyi(
    means: Float, labels: tuple[str, ...], n: int, alpha: float
) -> tuple[float, dict[tuple[str, str], float]]:
    """Critical difference of mean ranks, and the p-value of each pair."""
    from scipy.special import ndtr
    from scipy.stats import studentized_range

    def beyond(q: float) -> float:
        # Far out the numerical integral underflows; the sum of the normal tails of all pairs is its limit.
        p = float(studentized_range.sf(q, k, np.inf))
        return p if p > 1e-10 else min(1.0, k * (k - 1) * float(ndtr(-q / math.sqrt(2.0))))

    k = len(labels)
    # The studentised range is in units of one rank's error; a difference has sqrt(2) times that.
    rank_error = math.sqrt(k * (k + 1.0) / (12.0 * n))
    pairs = {
        (labels[i], labels[j]): beyond(abs(means[i] - means[j]) / rank_error)
        for i, j in itertools.combinations(range(k), 2)
    }
    return float(studentized_range.isf(alpha, k, np.inf)) * rank_error, pairs


@dataclass(frozen=True, eq=False)
class MaxT:
    """Statistics of a family and their p-values, raw and step-down adjusted for the whole family."""

    statistics: Float
    p_values: Float
    adjusted: Float
    family: int
    method: str


def max_t(units: Units, resampler: Resampler, *, null: str = "bootstrap") -> MaxT:
    """Two-sided step-down max-T over the rows of `units`.

    `bootstrap` tests means of zero under any dependence and skew (asymptotically); `sign-flip` is exact if
    the whole vector of differences is symmetric, as when one model is compared with one baseline.

    Rows that are not `fit_for_max_t` do not count in a bootstrapped maximum: they are tested by sign
    flips, and `join_parts` says what they cost the others.
    """
    check_choice("max-T null", null, ("bootstrap", "sign-flip"))
    in_maximum = np.ones(len(units.totals), dtype=bool)
    if null == "bootstrap":
        replicates = replicate(units, resampler)
        draws, observed = replicates.t_values(), replicates.observed_t()
        in_maximum = fit_for_max_t([Sample.row(units, row) for row in range(len(units.totals))])
    else:
        # Sign flips keep the sum of squares, so t is a function of the flipped sum.
        n = units.n_units[:, None].astype(np.float64)
        squares = (units.totals**2).sum(axis=1)[:, None]
        # The last column holds the sums as observed.
        sums = np.hstack([resampler.flipped(units.totals), units.totals.sum(axis=1)[:, None]])
        with np.errstate(divide="ignore", invalid="ignore"):
            t = sums / np.sqrt(n * np.maximum(squares - sums**2 / n, 0.0) / (n - 1.0))
        draws, observed = np.where(np.isnan(t[:, :-1]), 0.0, t[:, :-1]), t[:, -1]
    raw, adjusted = step_down(np.where(in_maximum, observed, np.nan), draws)
    if not in_maximum.all():
        raw[~in_maximum] = [SignFlips.of(totals).p_value() for totals in units.totals[~in_maximum]]
        adjusted = join_parts(adjusted, raw, in_maximum)
    name = f"max-T ({null}, {resampler.n_resamples} draws)"
    return MaxT(observed, raw, adjusted, int(np.count_nonzero(~np.isnan(observed))), name)


def fit_for_max_t(samples: Sequence[Sample]) -> Bool:
    """Samples whose resamples may enter a maximum: those in which 20 units differ and no few of them decide.

    Of three units that differ, one resample in twenty has none: it has no spread and an infinite t, which no
    other row can exceed. A unit that makes up the spread is missing in every third resample.
    """
    return np.array([not (one.few_are_not_zero(FEW) or one.tails[2]) for one in samples], dtype=bool)


def join_parts(adjusted: Float, p_values: Float, in_maximum: Bool) -> Float:
    """Adjusted p-values of a family of which only some rows are in the maximum.

    The others are adjusted by Holm, and both parts are multiplied up to the size of the whole family, which
    is valid under any dependence between them.

    >>> join_parts(np.array([0.01, 0.02, np.nan]), np.array([0.01, 0.02, 0.3]), np.array([True, True, False]))
    array([0.015, 0.03 , 0.9  ])
    """
    joined = np.where(in_maximum, adjusted, np.nan)
    joined[~in_maximum] = adjust(p_values[~in_maximum], "holm")
    for part in (in_maximum, ~in_maximum):
        if part.any():
            joined[part] = np.minimum(1.0, joined[part] * len(joined) / np.count_nonzero(part))
    return joined


def step_down(observed: Float, draws: Float) -> tuple[Float, Float]:
    """Raw and step-down adjusted two-sided p-values from statistics and draws; NaN for NaN statistics."""
    testable = np.flatnonzero(~np.isnan(observed))
    raw = np.full(len(observed), np.nan)
    adjusted = np.full(len(observed), np.nan)
    if not len(testable):
        return raw, adjusted
    sizes, draw_sizes, n = np.abs(observed[testable]), np.abs(draws[testable]), draws.shape[1]
    reached = sizes - np.where(np.isfinite(sizes), 1e-12 * sizes, 0.0)
    raw[testable] = (1.0 + (draw_sizes >= reached[:, None]).sum(axis=1)) / (n + 1.0)
    order = np.argsort(-sizes, kind="stable")
    # For the j-th largest statistic, the maximum is over the hypotheses not yet decided.
    rivals = np.maximum.accumulate(draw_sizes[order][::-1], axis=0)[::-1]
    steps = (1.0 + (rivals >= reached[order][:, None]).sum(axis=1)) / (n + 1.0)
    adjusted[testable[order]] = np.maximum.accumulate(steps)
    return raw, adjusted
