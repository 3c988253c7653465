"""Effect sizes with intervals: how large the difference is; and how many users it takes to detect one.

Intervals come from each case's influence on the effect, summed within clusters, so they are valid for the
zero-inflated, skewed values of recommender metrics, where normal-theory formulas are not. Cases have the same
weights as in the mean.

With the influences u of n cases the variance of an effect is sum u^2 / (n (n - 1)) (the delta method). A case
moves d = mean / s by

    u = z - d (z^2 - 1) / 2 where z = (x - mean) / s

Hedges (1981) multiplies d by gamma(df / 2) / (sqrt(df / 2) gamma((df - 1) / 2)). Cliff's delta (1993) is the
mean sign of first - second over all pairs of cases, and the rank-biserial correlation (Kerby 2014) is
(W+ - W-) / (W+ + W-) with Wilcoxon's rank sums.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from recsys.errors import InputError, check_choice
from recsys.records.arrays import Array, Float
from recsys.records.checks import is_number
from recsys.records.facts import Note
from recsys.stats.bootstrap import has_spread
from recsys.stats.pairing import Differences, Paired, as_differences, as_paired
from recsys.stats.rank_tests import EQUAL_WITHIN, without_rounding
from recsys.stats.results import (
    Alternative,
    Interval,
    SmallSampleWarning,
    ZeroVarianceWarning,
    caution,
    check_alpha,
    check_alternative,
    t_interval,
    t_quantile,
    t_ratio,
)

# The columns whose variances make up what a difference is measured in, each with its share.
Parts = Callable[[Differences], Sequence[tuple[float, Float]]]
STANDARDISED = ((0.2, "negligible"), (0.5, "small"), (0.8, "medium"))
DOMINANCE = ((0.147, "negligible"), (0.33, "small"), (0.474, "medium"))


@dataclass(frozen=True)
class Effect:
    """An effect size: its name, value, interval and customary label."""

    name: str
    value: float
    interval: Interval
    label: str
    n: int


def label_of(value: float, steps: tuple[tuple[float, str], ...] = STANDARDISED) -> str:
    """Return the customary word for an effect of this size.

    >>> label_of(-0.6)
    'medium'
    """
    if math.isnan(value):
        return "undefined"
    return next((word for below, word in steps if abs(value) < below), "large")


def _effect_from_influence(
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
    n_units = len(influence)
    error = math.nan
    if n_units > 1 and math.isfinite(value):
        error = math.sqrt(float((influence**2).sum()) * n_units / (n_units - 1)) / n
    return Effect(name, value, t_interval(value, error, n_units - 1, confidence), label_of(value, steps), n)


def deviation(values: Float, shares: Float | None = None) -> float:
    """Standard deviation (n - 1); exactly 0 if values vary by rounding only, NaN for one value."""
    if len(values) < 2:
        return math.nan
    if not has_spread(values):
        return 0.0
    if shares is None:
        return float(values.std(ddof=1))
    return math.sqrt(float(shares @ (values - _weighted_mean(values, shares)) ** 2) / (len(values) - 1.0))


def _weighted_mean(values: Float, shares: Float | None) -> float:
    return float(values.mean() if shares is None else shares @ values / len(values))


def _drop_zero_weights(d: Differences) -> tuple[Differences, Float | None]:
    """Return the cases with a weight above 0, and their weights scaled to a mean of 1; None if unweighted."""
    if not isinstance(d, Differences):
        raise InputError(
            f"this effect looks at both sides, and got {type(d).__name__}.",
            hint="Pass recsys.stats.pair(first, second).",
        )
    if d.weights is None:
        return d, None
    has_weight = d.weights != 0
    clusters = None if d.clusters is None else d.clusters[has_weight]
    weights = d.weights[has_weight]
    kept = replace(
        d, first=d.first[has_weight], second=d.second[has_weight], clusters=clusters, weights=weights
    )
    return kept, weights / weights.mean()


def effect_notes(effect: Effect) -> tuple[Note, ...]:
    """Cautions about an effect: too few units, or no spread to measure the difference in."""
    if effect.n < 3:
        return (caution(SmallSampleWarning, "few_units", n=effect.n, noun="unit", so="no_effect"),)
    return () if math.isfinite(effect.value) else (caution(ZeroVarianceWarning, "no_effect_spread"),)


def d_z(differences: Paired | npt.ArrayLike, *, confidence: float = 0.95) -> Effect:
    """Cohen's d for pairs: mean difference over the standard deviation of the differences."""
    pairs = as_paired(differences)
    if isinstance(pairs, Differences) and pairs.sums is None:
        return _standardised_difference("d_z", pairs, lambda d: [(1.0, d.values)], confidence=confidence)
    sample = pairs.sample  # of units of equal weight: the squared influences are sums of powers
    n, error = sample.n, math.nan
    scale = 0.0 if n > 1 and not sample.varies else sample.deviation
    effect = t_ratio(sample.mean, scale)
    if n > 1 and math.isfinite(effect):
        unit = sample.largest / scale
        squares, cubes, fourths = (sample.powers[at] * unit**power for at, power in enumerate((2, 3, 4)))
        influences = squares - effect * cubes + effect**2 / 4.0 * (fourths - 2.0 * squares + n)
        error = math.sqrt(influences * n / (n - 1)) / n
    return Effect("d_z", effect, t_interval(effect, error, n - 1, confidence), label_of(effect), n)


def pooled_d(differences: Differences, *, confidence: float = 0.95) -> Effect:
    """Cohen's d with the pooled standard deviation of the two sides; pairing narrows the interval."""
    return _standardised_difference(
        "d (pooled)", differences, lambda d: [(0.5, d.first), (0.5, d.second)], confidence=confidence
    )


def glass_delta(differences: Differences, *, confidence: float = 0.95) -> Effect:
    """Mean difference over the standard deviation of the second side, the baseline."""
    of_baseline: Parts = lambda d: [(1.0, d.second)]  # noqa: E731
    return _standardised_difference("Glass's delta", differences, of_baseline, confidence=confidence)


def _standardised_difference(
    name: str, differences: Differences, parts_of: Parts, *, confidence: float
) -> Effect:
    """Mean difference over the root of the variances of some columns, each with its share."""
    d, shares = _drop_zero_weights(differences)
    mean, parts = _weighted_mean(d.values, shares), parts_of(d)
    scale = math.sqrt(sum(share * deviation(column, shares) ** 2 for share, column in parts))
    effect, influence = t_ratio(mean, scale), np.zeros_like(d.first)
    if math.isfinite(effect):
        squares = sum(
            share * ((column - _weighted_mean(column, shares)) / scale) ** 2 for share, column in parts
        )
        influence = (d.values - mean) / scale - effect / 2.0 * (squares - 1.0)
    return _effect_from_influence(name, effect, influence, d.clusters, shares=shares, confidence=confidence)


def hedges_g(differences: Differences, *, kind: str = "pooled", confidence: float = 0.95) -> Effect:
    """Cohen's d without its small-sample bias; `kind` is `pooled` or `paired`."""
    from scipy.special import gammaln

    check_choice("kind of Hedges' g", kind, ("pooled", "paired"))
    uncorrected = (
        d_z(differences, confidence=confidence)
        if kind == "paired"
        else pooled_d(differences, confidence=confidence)
    )
    n = uncorrected.n
    df = n - 1 if kind == "paired" else 2 * n - 2
    factor = math.nan
    if df > 1:
        factor = math.exp(gammaln(df / 2.0) - gammaln((df - 1) / 2.0)) / math.sqrt(df / 2.0)
    value, interval = uncorrected.value * factor, uncorrected.interval
    interval = replace(interval, low=interval.low * factor, high=interval.high * factor)
    return Effect(f"Hedges' g ({kind})", value, interval, label_of(value), n)


def cliffs_delta(differences: Differences, *, paired: bool = True, confidence: float = 0.95) -> Effect:
    """P(first > second) - P(first < second) for a random case of each side; takes n log n steps.

    The value ignores the pairing; `paired` decides whether the interval uses it.
    """
    d, shares = _drop_zero_weights(differences)
    n = len(d.first)
    weights = np.ones(n) if shares is None else shares
    above, below = _dominance(d.first, d.second, weights), -_dominance(d.second, d.first, weights)
    # Unweighted, these are whole numbers, so that no difference gives exactly 0.
    value = float(above @ weights) / n**2
    influence, clusters = above / n + below / n - 2.0 * value, d.clusters
    if not paired:  # both sides vary by themselves
        influence, clusters = np.hypot(above / n - value, below / n - value), None
    return _effect_from_influence(
        "Cliff's delta", value, influence, clusters, shares=shares, confidence=confidence, steps=DOMINANCE
    )


def _dominance(values: Float, others: Float, shares: Float) -> Float:
    """For each value, the weight of the others below minus the weight of those above."""
    order = np.argsort(others, kind="stable")
    ordered, running = others[order], np.concatenate([[0.0], np.cumsum(shares[order])])
    weight_below = running[np.searchsorted(ordered, values, side="left")]
    weight_up_to = running[np.searchsorted(ordered, values, side="right")]
    net_weight: Float = weight_below + weight_up_to - running[-1]
    return net_weight


def rank_biserial(
    differences: Differences | npt.ArrayLike,
    *,
    confidence: float = 0.95,
    equal_within: float = EQUAL_WITHIN,
) -> Effect:
    """Matched-pairs rank-biserial correlation: (W+ - W-) / (W+ + W-); goes with Wilcoxon's test.

    `equal_within` as in `wilcoxon`.
    """
    d, shares = _drop_zero_weights(as_differences(differences))
    values = without_rounding(d.values, equal_within)
    nonzero = values != 0
    values = values[nonzero]
    clusters = None if d.clusters is None else d.clusters[nonzero]
    n = len(values)
    if n == 0:
        return _effect_from_influence(
            "rank-biserial", 0.0, np.zeros(0), None, confidence=confidence, steps=DOMINANCE
        )
    weights = np.ones(n) if shares is None else shares[nonzero]
    total = float(weights.sum())
    # W+ - W- adds the signs of all pairwise sums, including each case with itself once.
    net = -_dominance(-values, values, weights)
    signs = float(weights**2 @ np.sign(values))
    value = (float(net @ weights) + signs) / (total**2 + float((weights**2).sum()))
    mean_signs = net / total
    influence = 2.0 * (mean_signs - float(mean_signs @ weights) / total) * n / total
    return _effect_from_influence(
        "rank-biserial", value, influence, clusters,
        shares=None if shares is None else weights, confidence=confidence, steps=DOMINANCE,
    )  # fmt: skip


def power(
    effect: float, n: int, *, sd: float = 1.0, alpha: float = 0.05, alternative: Alternative = "two-sided"
) -> float:
    """Probability that a paired t-test with n users detects a mean difference of `effect`.

    >>> round(power(0.2, 199), 3)
    0.802
    """
    _check_plan(alpha, sd, n, alternative)
    if not is_number(effect) or math.isnan(effect):
        raise InputError(f"the effect is not a number: {effect!r}.")
    df = n - 1
    shift = effect / sd * math.sqrt(n)
    if alternative == "two-sided":
        reach = t_quantile(alpha / 2.0, df)
        return min(1.0, _upper_tail(df, shift, reach) + _upper_tail(df, -shift, reach))
    reach = t_quantile(alpha, df)
    return _upper_tail(df, shift if alternative == "greater" else -shift, reach)


def _upper_tail(df: int, shift: float, reach: float) -> float:
    """Probability that a t statistic with noncentrality `shift` lies above `reach`."""
    from scipy.special import nctdtr, ndtr

    p = float(nctdtr(df, -shift, -reach))
    # Far out in a tail the noncentral t is NaN; the normal distribution is accurate enough there.
    return p if not math.isnan(p) else float(ndtr(shift - reach))


def minimal_effect(
    n: int,
    *,
    sd: float = 1.0,
    alpha: float = 0.05,
    power: float = 0.8,
    alternative: Alternative = "two-sided",
) -> float:
    """Return the smallest mean difference that n users detect with the given power."""
    from scipy.optimize import brentq

    _check_plan(alpha, sd, n, alternative)
    _check_power(power, alpha)
    sign = -1.0 if alternative == "less" else 1.0

    def lacking(effect: float) -> float:
        return _power(sign * effect, n, alpha, alternative) - power

    high = 1.0 / math.sqrt(n)
    while lacking(high) < 0:
        high *= 2.0
    return float(brentq(lacking, 0.0, high, xtol=1e-14, rtol=1e-13)) * sd


def users_needed(
    effect: float,
    *,
    sd: float = 1.0,
    alpha: float = 0.05,
    power: float = 0.8,
    alternative: Alternative = "two-sided",
) -> int:
    """Return the fewest users that detect a mean difference of `effect` with the given power.

    >>> users_needed(0.2)
    199
    """
    _check_plan(alpha, sd, 2, alternative)
    _check_power(power, alpha)
    wrong_way = not is_number(effect) or (
        effect == 0 or (alternative == "greater" and effect < 0) or (alternative == "less" and effect > 0)
    )
    if wrong_way or not math.isfinite(effect):
        raise InputError(
            f"no number of users finds an effect of {effect!r} with alternative {alternative!r}."
        )
    low, high = 1, 2
    while _power(effect / sd, high, alpha, alternative) < power:
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        if _power(effect / sd, middle, alpha, alternative) < power:
            low = middle
        else:
            high = middle
    return high


# `power` is also a keyword of the two functions above, so they call the function by this name.
def _power(effect: float, n: int, alpha: float, alternative: Alternative) -> float:
    return power(effect, n, alpha=alpha, alternative=alternative)


def _check_plan(alpha: float, sd: float, n: int, alternative: str) -> None:
    check_alternative(alternative)
    check_alpha(alpha)
    if not (is_number(sd) and 0 < sd < math.inf):
        raise InputError(f"the standard deviation must be positive, got {sd!r}.")
    if not (is_number(n) and 2 <= n < math.inf):
        raise InputError(f"at least 2 users are needed, got {n!r}.")


def _check_power(power: float, alpha: float) -> None:
    if not (is_number(power) and alpha < power < 1):
        raise InputError(f"power must lie between alpha ({alpha}) and 1, got {power!r}.")
