"""Tests of several models, or models x metrics, at once: Friedman with Nemenyi, and resampled max-T.

Max-T (Westfall and Young) uses the dependence between the comparisons instead of assuming the worst, so it
rejects more than Holm at the same error rate; it shares its draws with the other tests.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from recsys.errors import InputError, UnknownNameError
from recsys.stats.alignment import Units, align, collapse
from recsys.stats.bootstrap import replicate
from recsys.stats.resampling import Resampler, unit_keys
from recsys.stats.tests import RANK_NOTE, rank_notes
from recsys.types import Float, PerCase


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
    notes: tuple[str, ...] = ()


def friedman(
    scores: npt.ArrayLike, names: Sequence[str] | None = None, *, alpha: float = 0.05
) -> FriedmanResult:
    """Friedman's test on units x models, with Iman and Davenport's F and Nemenyi's p for all pairs.

    The best model has the highest mean rank. Ranks show how often a model is better, not by how much.
    """
    from scipy.special import chdtrc, fdtrc

    table = _check_scores(scores)
    n, k = table.shape
    labels = tuple(names) if names is not None else tuple(f"model {j + 1}" for j in range(k))
    if len(set(labels)) != k:
        raise InputError(f"{k} models need {k} different names, got {list(labels)}.")
    ranks, tied = _row_ranks(table)
    means = ranks.mean(axis=0)
    tie_correction = 1.0 - tied / (n * k * (k * k - 1.0))
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
        rank_notes(n) or (RANK_NOTE,),
    )


def omnibus(
    tables: Mapping[str, PerCase], metric: str, *, alpha: float = 0.05, lower_is_better: bool = False
) -> FriedmanResult:
    """Friedman's test of all models on one metric, over the units all models have; a high rank is good."""
    aligned = align(tables, [metric])
    values = np.stack([aligned.tables[name][metric] for name in tables])
    everywhere = ~np.isnan(values).any(axis=0)
    if not everywhere.any():
        raise InputError(f"no case has a value of {metric!r} from every model.", column=metric)
    units = collapse(
        values[:, everywhere],
        None if aligned.clusters is None else aligned.clusters[everywhere],
        keys=unit_keys(aligned.ids[everywhere]),
        weights=None if aligned.weights is None else aligned.weights[everywhere],
    )
    present = units.weights[0] != 0
    means = (units.totals[:, present] / units.weights[:, present]).T
    return friedman(-means if lower_is_better else means, tuple(tables), alpha=alpha)


def _check_scores(scores: npt.ArrayLike) -> Float:
    try:
        table = np.asarray(scores, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"friedman got no table of numbers: {error}.",
            hint="Pass units x models, and names= of the models.",
        ) from None
    if table.ndim != 2 or table.shape[1] < 3 or table.shape[0] < 2:
        raise InputError(f"friedman needs units x models with at least 2 x 3, got shape {table.shape}.")
    if not np.isfinite(table).all():
        raise InputError("friedman needs a finite score for every unit and model.")
    return table


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


def _row_ranks(table: Float) -> tuple[Float, float]:
    """Midranks within each row (1 = lowest), and the sum of t^3 - t over tied groups."""
    n_below = np.zeros_like(table)
    n_equal = np.zeros_like(table)
    for j in range(table.shape[1]):
        n_below += table[:, [j]] < table
        n_equal += table[:, [j]] == table
    # Each member of a group of t adds t^2 - 1, so the group adds t^3 - t.
    return n_below + (n_equal + 1.0) / 2.0, float((n_equal**2 - 1.0).sum())


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
    """
    if null not in ("bootstrap", "sign-flip"):
        raise UnknownNameError("max-T null", null, ("bootstrap", "sign-flip"))
    draws, observed = _bootstrap_t(units, resampler) if null == "bootstrap" else _flip_t(units, resampler)
    raw, adjusted = step_down(observed, draws)
    name = f"max-T ({null}, {resampler.n_resamples} draws)"
    return MaxT(observed, raw, adjusted, int(np.count_nonzero(~np.isnan(observed))), name)


def step_down(observed: Float, draws: Float) -> tuple[Float, Float]:
    """Raw and step-down adjusted two-sided p-values from statistics and draws; NaN for NaN statistics."""
    testable = ~np.isnan(observed)
    raw = np.full(len(observed), np.nan)
    adjusted = np.full(len(observed), np.nan)
    if testable.any():
        raw[testable], adjusted[testable] = _step_down(np.abs(observed[testable]), np.abs(draws[testable]))
    return raw, adjusted


def _step_down(observed: Float, draws: Float) -> tuple[Float, Float]:
    n = draws.shape[1]
    slack = np.where(np.isfinite(observed), 1e-12 * observed, 0.0)
    raw = (1.0 + (draws >= (observed - slack)[:, None]).sum(axis=1)) / (n + 1.0)
    order = np.argsort(-observed, kind="stable")
    # For the j-th largest statistic, the maximum is over the hypotheses not yet decided.
    rivals = np.maximum.accumulate(draws[order][::-1], axis=0)[::-1]
    steps = (1.0 + (rivals >= (observed - slack)[order][:, None]).sum(axis=1)) / (n + 1.0)
    adjusted = np.empty_like(raw)
    adjusted[order] = np.maximum.accumulate(steps)
    return raw, adjusted


def _bootstrap_t(units: Units, resampler: Resampler) -> tuple[Float, Float]:
    replicates = replicate(units, resampler)
    with np.errstate(divide="ignore", invalid="ignore"):
        observed = replicates.estimates / replicates.standard_errors
    return replicates.t_values(), observed


def _flip_t(units: Units, resampler: Resampler) -> tuple[Float, Float]:
    """T statistics under sign flips, which keep the sum of squares: t is a function of the flipped sum."""
    n = units.n_units()[:, None].astype(np.float64)
    squares = (units.totals**2).sum(axis=1)[:, None]

    def studentised(sums: Float) -> Float:
        with np.errstate(divide="ignore", invalid="ignore"):
            spread = np.maximum(squares - sums**2 / n, 0.0)
            t: Float = sums / np.sqrt(n * spread / (n - 1.0))
        return t

    draws = studentised(resampler.flipped(units.totals))
    observed = studentised(units.totals.sum(axis=1)[:, None])[:, 0]
    return np.where(np.isnan(draws), 0.0, draws), observed
