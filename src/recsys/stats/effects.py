"""Effect sizes with intervals: how large is the difference, whatever the number of users.

Intervals come from each case's influence on the effect, summed within clusters, so they hold for the
zero-inflated, skewed values of recommender metrics, where normal-theory formulas do not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from recsys.errors import UnknownNameError
from recsys.stats.align import Differences, as_differences
from recsys.stats.cautions import SmallSampleWarning, ZeroVarianceWarning, caution
from recsys.stats.outcomes import Interval, t_interval
from recsys.stats.tests import has_spread
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
    confidence: float,
    steps: tuple[tuple[float, str], ...] = STANDARDISED,
) -> Effect:
    n = len(influence)
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


def deviation(values: Float) -> float:
    """Standard deviation (n - 1); exactly 0 where what varies is rounding only, NaN for one value."""
    if len(values) < 2:
        return math.nan
    return float(values.std(ddof=1)) if has_spread(values) else 0.0


def effect_notes(effect: Effect) -> tuple[str, ...]:
    """Cautions about an effect: too few units, or no spread to measure the difference in."""
    notes: tuple[str, ...] = ()
    if effect.n < 3:
        notes += (caution(SmallSampleWarning, f"only {effect.n} unit(s): an effect size means little here"),)
    elif not math.isfinite(effect.value):
        notes += (caution(ZeroVarianceWarning, "zero variance: there is no spread to measure an effect in"),)
    return notes


def d_z(differences: Differences | npt.ArrayLike, *, confidence: float = 0.95) -> Effect:
    """Cohen's d for pairs: mean difference over the standard deviation of the differences."""
    d = as_differences(differences)
    values = d.values
    mean, scale = float(values.mean()), deviation(values)
    effect = _scaled(mean, scale)
    centred = (values - mean) / scale if scale > 0 else np.zeros_like(values)
    influence = centred - effect / 2.0 * (centred**2 - 1.0) if math.isfinite(effect) else centred
    return _effect("d_z", effect, influence, d.clusters, confidence=confidence)


def pooled_d(differences: Differences, *, confidence: float = 0.95) -> Effect:
    """Cohen's d with the pooled standard deviation of the two sides; pairing narrows the interval."""
    scale = math.sqrt((deviation(differences.first) ** 2 + deviation(differences.second) ** 2) / 2.0)
    return _two_sided_scale("d (pooled)", differences, scale, (0.5, 0.5), confidence=confidence)


def glass_delta(differences: Differences, *, confidence: float = 0.95) -> Effect:
    """Mean difference over the standard deviation of the second side, the baseline."""
    scale = deviation(differences.second)
    return _two_sided_scale("Glass's delta", differences, scale, (0.0, 1.0), confidence=confidence)


def _two_sided_scale(
    name: str, d: Differences, scale: float, shares: tuple[float, float], *, confidence: float
) -> Effect:
    a, b = d.first - d.first.mean(), d.second - d.second.mean()
    effect = _scaled(float(d.values.mean()), scale)
    if not math.isfinite(effect):
        return _effect(name, effect, np.zeros_like(a), d.clusters, confidence=confidence)
    moved = (shares[0] * a**2 + shares[1] * b**2) / scale**2 - 1.0
    influence = (a - b) / scale - effect / 2.0 * moved
    return _effect(name, effect, influence, d.clusters, confidence=confidence)


def hedges_g(differences: Differences, *, kind: str = "pooled", confidence: float = 0.95) -> Effect:
    """Cohen's d without its small-sample bias; `pooled` or `paired` says which d."""
    from scipy.special import gammaln

    if kind not in ("pooled", "paired"):
        raise UnknownNameError("kind of Hedges' g", kind, ("pooled", "paired"))
    n = len(differences.first)
    plain = (
        d_z(differences, confidence=confidence)
        if kind == "paired"
        else pooled_d(differences, confidence=confidence)
    )
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
    a, b = differences.first, differences.second
    over = _dominance(a, b)
    under = -_dominance(b, a)
    value = float(over.mean())
    if paired:
        influence, clusters = over + under - 2.0 * value, differences.clusters
        return _effect("Cliff's delta", value, influence, clusters, confidence=confidence, steps=DOMINANCE)
    n = len(a)
    error = math.sqrt((float(over.var(ddof=1)) + float(under.var(ddof=1))) / n) if n > 1 else math.nan
    interval = t_interval(value, error, n - 1, confidence)
    return Effect("Cliff's delta", value, interval, label_of(value, DOMINANCE), n)


def _dominance(values: Float, others: Float) -> Float:
    """For each value, the share of others below less the share above."""
    ordered = np.sort(others)
    below = np.searchsorted(ordered, values, side="left")
    not_above = np.searchsorted(ordered, values, side="right")
    return (below + not_above) / len(others) - 1.0


def rank_biserial(differences: Differences | npt.ArrayLike, *, confidence: float = 0.95) -> Effect:
    """Matched-pairs rank-biserial correlation: (W+ - W-) / (W+ + W-); the effect behind Wilcoxon's test."""
    d = as_differences(differences)
    values = d.values
    moved = values != 0
    values = values[moved]
    clusters = None if d.clusters is None else d.clusters[moved]
    n = len(values)
    if n == 0:
        return _effect("rank-biserial", 0.0, np.zeros(0), None, confidence=confidence, steps=DOMINANCE)
    # W+ - W- counts the signs of all pairwise sums, each case with itself included once.
    pairs = -_dominance(-values, values)
    value = float((pairs.sum() * n + np.sign(values).sum()) / (n * (n + 1.0)))
    influence = 2.0 * (pairs - pairs.mean())
    return _effect("rank-biserial", value, influence, clusters, confidence=confidence, steps=DOMINANCE)
