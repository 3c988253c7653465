"""Effect sizes with intervals: how large is the difference, whatever the number of users.

Intervals come from each case's influence on the effect, summed within clusters, so they hold for the
zero-inflated, skewed values of recommender metrics, where normal-theory formulas do not. Cases weigh as much
as in the mean they belong to.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from recsys.errors import UnknownNameError
from recsys.stats.alignment import Differences
from recsys.stats.inference_results import Interval, t_interval
from recsys.stats.paired_samples import as_differences
from recsys.stats.statistics_warnings import ZeroVarianceWarning, caution, too_few
from recsys.stats.tests import has_spread, without_rounding
from recsys.types import Array, Float

STANDARDISED = ((0.2, "small (negligible)"), (0.5, "small"), (0.8, "medium"))
DOMINANCE = ((0.147, "negligible"), (0.33, "small"), (0.474, "medium"))


@dataclass(frozen=True)
class Effect:
    """An effect size: which one, its value, interval and the customary word for it."""

    name: str
    value: float
    interval: Interval
    label: str
    n: int


def label_of(value: float, steps: tuple[tuple[float, str], ...] = STANDARDISED) -> str:
    """The customary word for an effect of this size.

    >>> label_of(-0.6)
    'medium'
    """
    if math.isnan(value):
        return "undefined"
    return next((word for below, word in steps if abs(value) < below), "large")


def _effect(
    name: str,
    value: float,
    influence: Float,
    clusters: Array | None,
    *,
    shares: Float | None = None,
    confidence: float,
    steps: tuple[tuple[float, str], ...] = STANDARDISED,
) -> Effect:
    n = len(influence)
    if shares is not None:
        influence = shares * influence
    if clusters is not None:
        _, codes = np.unique(clusters, return_inverse=True)
        influence = np.bincount(codes, weights=influence).astype(np.float64)
    units = len(influence)
    error = math.nan
    if units > 1 and math.isfinite(value):
        error = math.sqrt(float((influence**2).sum()) * units / (units - 1)) / n
    return Effect(name, value, t_interval(value, error, units - 1, confidence), label_of(value, steps), n)


def _scaled(numerator: float, scale: float) -> float:
    if scale > 0:
        return numerator / scale
    return math.nan if numerator == 0 or math.isnan(scale) else math.copysign(math.inf, numerator)


def deviation(values: Float, shares: Float | None = None) -> float:
    """Standard deviation (n - 1); exactly 0 where what varies is rounding only, NaN for one value."""
    if len(values) < 2:
        return math.nan
    if not has_spread(values):
        return 0.0
    if shares is None:
        return float(values.std(ddof=1))
    return math.sqrt(float(shares @ (values - _mean(values, shares)) ** 2) / (len(values) - 1.0))


def _mean(values: Float, shares: Float | None) -> float:
    return float(values.mean() if shares is None else shares @ values / len(values))


def _weighed(d: Differences) -> tuple[Differences, Float | None]:
    """The cases that count, and their weights scaled to a mean of 1; None where all weigh the same."""
    if d.weights is None:
        return d, None
    here = d.weights != 0
    kept = replace(
        d,
        first=d.first[here],
        second=d.second[here],
        clusters=None if d.clusters is None else d.clusters[here],
        weights=d.weights[here],
    )
    return kept, None if kept.weights is None else kept.weights / kept.weights.mean()


def effect_notes(effect: Effect) -> tuple[str, ...]:
    """Cautions about an effect: too few units, or no spread to measure the difference in."""
    notes: tuple[str, ...] = ()
    if effect.n < 3:
        notes += (too_few(effect.n, "an effect size means little here"),)
    elif not math.isfinite(effect.value):
        notes += (caution(ZeroVarianceWarning, "zero variance: there is no spread to measure an effect in"),)
    return notes


def d_z(differences: Differences | npt.ArrayLike, *, confidence: float = 0.95) -> Effect:
    """Cohen's d for pairs: mean difference over the standard deviation of the differences."""
    d, shares = _weighed(as_differences(differences))
    values = d.values
    mean, scale = _mean(values, shares), deviation(values, shares)
    effect = _scaled(mean, scale)
    centred = (values - mean) / scale if scale > 0 else np.zeros_like(values)
    influence = centred - effect / 2.0 * (centred**2 - 1.0) if math.isfinite(effect) else centred
    return _effect("d_z", effect, influence, d.clusters, shares=shares, confidence=confidence)


def pooled_d(differences: Differences, *, confidence: float = 0.95) -> Effect:
    """Cohen's d with the pooled standard deviation of the two sides; pairing narrows the interval."""
    return _two_sided_scale("d (pooled)", differences, (0.5, 0.5), confidence=confidence)


def glass_delta(differences: Differences, *, confidence: float = 0.95) -> Effect:
    """Mean difference over the standard deviation of the second side, the baseline."""
    return _two_sided_scale("Glass's delta", differences, (0.0, 1.0), confidence=confidence)


def _two_sided_scale(
    name: str, differences: Differences, parts: tuple[float, float], *, confidence: float
) -> Effect:
    """Mean difference over the root of the two sides' variances, each with its part in the sum."""
    d, shares = _weighed(differences)
    a, b = d.first - _mean(d.first, shares), d.second - _mean(d.second, shares)
    spread = (deviation(d.first, shares) ** 2, deviation(d.second, shares) ** 2)
    scale = math.sqrt(parts[0] * spread[0] + parts[1] * spread[1])
    effect = _scaled(_mean(d.values, shares), scale)
    if not math.isfinite(effect):
        return _effect(name, effect, np.zeros_like(a), d.clusters, confidence=confidence)
    moved = (parts[0] * a**2 + parts[1] * b**2) / scale**2 - 1.0
    influence = (a - b) / scale - effect / 2.0 * moved
    return _effect(name, effect, influence, d.clusters, shares=shares, confidence=confidence)


def hedges_g(differences: Differences, *, kind: str = "pooled", confidence: float = 0.95) -> Effect:
    """Cohen's d without its small-sample bias; `pooled` or `paired` says which d."""
    from scipy.special import gammaln

    if kind not in ("pooled", "paired"):
        raise UnknownNameError("kind of Hedges' g", kind, ("pooled", "paired"))
    plain = (
        d_z(differences, confidence=confidence)
        if kind == "paired"
        else pooled_d(differences, confidence=confidence)
    )
    n = plain.n
    df = n - 1 if kind == "paired" else 2 * n - 2
    factor = math.nan
    if df > 1:
        factor = math.exp(gammaln(df / 2.0) - gammaln((df - 1) / 2.0)) / math.sqrt(df / 2.0)
    value = plain.value * factor
    low, high = plain.interval.low * factor, plain.interval.high * factor
    interval = Interval(low, high, confidence, plain.interval.method)
    return Effect(f"Hedges' g ({kind})", value, interval, label_of(value), n)


def cliffs_delta(differences: Differences, *, paired: bool = True, confidence: float = 0.95) -> Effect:
    """P(first > second) - P(first < second) for a case of each side drawn at random; n log n.

    The pairing does not move the value, but `paired` decides whether the interval may use it.
    """
    d, shares = _weighed(differences)
    n = len(d.first)
    each = np.ones(n) if shares is None else shares
    above, below = _dominance(d.first, d.second, each), -_dominance(d.second, d.first, each)
    # Whole numbers until here where all cases weigh the same: no difference is exactly 0.
    value = float(above @ each) / n**2
    over, under = above / n, below / n
    if paired:
        return _effect(
            "Cliff's delta", value, over + under - 2.0 * value, d.clusters,
            shares=shares, confidence=confidence, steps=DOMINANCE,
        )  # fmt: skip
    squares = float(((each * (over - value)) ** 2 + (each * (under - value)) ** 2).sum())
    error = math.sqrt(squares / (n - 1.0) / n) if n > 1 else math.nan
    interval = t_interval(value, error, n - 1, confidence)
    return Effect("Cliff's delta", value, interval, label_of(value, DOMINANCE), n)


def _dominance(values: Float, others: Float, shares: Float) -> Float:
    """For each value, the weight of the others below less the weight above."""
    order = np.argsort(others, kind="stable")
    ordered, running = others[order], np.concatenate([[0.0], np.cumsum(shares[order])])
    lower = running[np.searchsorted(ordered, values, side="left")]
    not_above = running[np.searchsorted(ordered, values, side="right")]
    net: Float = lower + not_above - running[-1]
    return net


def rank_biserial(differences: Differences | npt.ArrayLike, *, confidence: float = 0.95) -> Effect:
    """Matched-pairs rank-biserial correlation: (W+ - W-) / (W+ + W-); the effect behind Wilcoxon's test."""
    d, shares = _weighed(as_differences(differences))
    values = without_rounding(d.values)
    moved = values != 0
    values = values[moved]
    clusters = None if d.clusters is None else d.clusters[moved]
    n = len(values)
    if n == 0:
        return _effect("rank-biserial", 0.0, np.zeros(0), None, confidence=confidence, steps=DOMINANCE)
    each = np.ones(n) if shares is None else shares[moved]
    total = float(each.sum())
    # W+ - W- counts the signs of all pairwise sums, each case with itself included once.
    net = -_dominance(-values, values, each)
    signs = float(each**2 @ np.sign(values))
    value = (float(net @ each) + signs) / (total**2 + float((each**2).sum()))
    pairs = net / total
    influence = 2.0 * (pairs - float(pairs @ each) / total) * n / total
    return _effect(
        "rank-biserial", value, influence, clusters,
        shares=None if shares is None else each, confidence=confidence, steps=DOMINANCE,
    )  # fmt: skip
