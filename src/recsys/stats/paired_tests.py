"""Tests of one paired comparison, and how many users they need.

The tests are t, sign-flip permutation, Wilcoxon, sign, studentised and BCa bootstrap, and the permutation of
any statistic. All take Differences (or plain differences, one per unit) and work on units, so clustered cases
never count as independent. The null hypothesis is a mean difference of zero, unless a test says otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from recsys.errors import InputError, UnknownNameError
from recsys.stats.inference_results import (
    Alternative,
    Interval,
    RankTestWarning,
    SkewWarning,
    TestResult,
    ZeroVarianceWarning,
    caution,
    caution_small_sample,
    check_alternative,
    t_interval,
    t_ratio,
    t_tail,
    zero_spread_p,
)
from recsys.stats.intervals import check_not_nan
from recsys.stats.pairing import Differences, as_differences, pair
from recsys.stats.resampling import (
    Resampler,
    Rng,
    Units,
    bernoulli_signs,
    check_resamples,
    has_spread,
    replicate,
    seed_from_rng,
)
from recsys.types import Bool, Float

# From this sample size on, rank tests reject because of asymmetry rather than a better mean.
LARGE_SAMPLE = 500
# 2 ** 16 sign assignments are enumerated in a few milliseconds; for more units they are sampled.
EXACT_FLIPS = 16
EXACT_WILCOXON = 50
RANK_NOTE = (
    "Wilcoxon and sign tests do not test the mean: on samples as large as recommender evaluations their "
    "type-1 error is inflated when differences are skewed; prefer t, permutation or the studentised bootstrap"
)
# Shapiro and Wilk's coefficients are accurate up to this sample size.
SHAPIRO_UP_TO = 5000


def spread_notes(values: Float, noun: str = "difference") -> tuple[str, ...]:
    """Cautions common to all tests: too few units, or no spread at all, so that t is not defined."""
    notes: tuple[str, ...] = ()
    if len(values) < 3:
        notes += (caution_small_sample(len(values), "no test can say much here"),)
    if len(values) > 1 and not has_spread(values):
        flips = f"; t is not defined, and sign flips have p = {zero_spread_p(len(values) - 1):.2g}"
        text = f"every {noun} is the same: zero variance"
        is_difference = noun == "difference" and values.any()
        notes += (caution(ZeroVarianceWarning, text + flips if is_difference else text),)
    return notes


def t_statistic(values: Float) -> tuple[float, float, float]:
    """Mean, its standard error, and their ratio (infinite without spread, NaN if undefined)."""
    n = len(values)
    mean = float(values.mean())
    if n < 2:
        return mean, math.nan, math.nan
    error = float(values.std(ddof=1)) / math.sqrt(n) if has_spread(values) else 0.0
    return mean, error, t_ratio(mean, error)


def paired_t(
    differences: Differences | npt.ArrayLike,
    *,
    alternative: Alternative = "two-sided",
    confidence: float = 0.95,
) -> TestResult:
    """Paired t-test over units (cluster-robust when cases are clustered).

    If all units differ by the same amount, t is infinite and p is that of sign flips, 2^(1 - n) two-sided.
    """
    check_alternative(alternative)
    d = as_differences(differences)
    values = d.units().linearised()
    notes = d.notes + spread_notes(values) + skew_notes(values, alternative)
    n = len(values)
    mean, error, t = t_statistic(values)
    df = n - 1 - d.spent
    interval = t_interval(mean, error, df, confidence, alternative)
    p = t_tail(t, df, alternative)
    return TestResult("paired t", mean, t, p, n, alternative, interval, float(df), notes)


def sign_flip(
    differences: Differences | npt.ArrayLike,
    *,
    alternative: Alternative = "two-sided",
    n_resamples: int = 10_000,
    rng: Rng = 0,
) -> TestResult:
    """Permutation test that swaps the two sides of each unit; exact for few units, never p = 0 otherwise.

    The null hypothesis is that the two sides are exchangeable, so that differences are symmetric around zero.
    """
    check_alternative(alternative)
    d = as_differences(differences)
    units = d.units()
    present = units.weights[0] != 0
    totals = units.totals[:, present]
    notes = d.notes + spread_notes(totals[0]) + skew_notes(totals[0], alternative)
    observed = float(totals.sum())
    # Sums that are equal but for rounding must count as equal.
    slack = 1e-12 * float(np.abs(totals).sum())
    n = totals.shape[1]
    if n <= EXACT_FLIPS:
        sums = observed - 2.0 * np.concatenate([bits @ totals[0] for bits in bernoulli_signs(n)])
        p = np.count_nonzero(at_least_as_extreme(sums, observed, slack, alternative)) / len(sums)
        method = "sign-flip permutation (exact)"
    else:
        resampler = Resampler(units.keys[present], n_resamples, seed_from_rng(rng))
        sums = resampler.flipped(totals)[0]
        p = (1 + np.count_nonzero(at_least_as_extreme(sums, observed, slack, alternative))) / (
            n_resamples + 1
        )
        method = f"sign-flip permutation ({n_resamples} draws)"
    mean = float(units.estimates()[0])
    return TestResult(method, mean, mean, float(p), n, alternative, notes=notes)


def flip_p(sums: Float, totals: Float) -> float:
    """Two-sided p-value of one row of totals, from its sums under random signs."""
    observed, slack = float(totals.sum()), 1e-12 * float(np.abs(totals).sum())
    return (1.0 + np.count_nonzero(at_least_as_extreme(sums, observed, slack, "two-sided"))) / (
        len(sums) + 1.0
    )


def at_least_as_extreme(
    sums: Float, observed: float, slack: float, alternative: Alternative
) -> npt.NDArray[np.bool_]:
    """Which sums are at least as extreme as the observed one; `slack` allows for rounding."""
    if alternative == "greater":
        return sums >= observed - slack
    if alternative == "less":
        return sums <= observed + slack
    return np.abs(sums) >= abs(observed) - slack


def skewness(values: Float) -> float:
    """Third standardised moment; 0 without spread."""
    centred = values - values.mean()
    variance = float((centred**2).mean())
    return float((centred**3).mean() / variance**1.5) if variance > 0 else 0.0


def skew_notes(values: Float, alternative: Alternative = "two-sided") -> tuple[str, ...]:
    """Warn when skewness moves an error rate by more than a tenth of 5 %, by the first Edgeworth term."""
    if len(values) < 20 or not has_spread(values):
        return ()
    cubes = (values - values.mean()) ** 3
    # Ignore skewness that a few large values produce by chance.
    if abs(float(cubes.sum())) < 2.0 * math.sqrt(float((cubes**2).sum())):
        return ()
    scaled_skewness = abs(skewness(values)) / math.sqrt(len(values))
    # One-sided, the shift is linear; two-sided, the tails cancel to first order and the square is left.
    shift = 0.11 * scaled_skewness if alternative != "two-sided" else 0.2 * scaled_skewness**2
    if shift < 0.005:
        return ()
    return (
        caution(
            SkewWarning,
            "differences are too skewed for this sample size: tests with a symmetric reference (t, "
            "sign-flip) miss their level; prefer the studentised bootstrap",
        ),
    )


def rank_notes(n: int) -> tuple[str, ...]:
    """The caution about rank tests on large samples."""
    return (caution(RankTestWarning, RANK_NOTE),) if n >= LARGE_SAMPLE else ()


def wilcoxon(
    differences: Differences | npt.ArrayLike,
    *,
    alternative: Alternative = "two-sided",
    method: str = "auto",
) -> TestResult:
    """Signed-rank test; exact (ties included) for few units, else normal with continuity correction.

    Zero differences are dropped. It tests symmetry around zero, not a mean of zero.
    """
    check_alternative(alternative)
    if method not in ("auto", "exact", "normal"):
        raise UnknownNameError("Wilcoxon method", method, ("auto", "exact", "normal"))
    d = as_differences(differences)
    means = without_rounding(d.unit_means())
    notes = d.notes + spread_notes(means) + rank_notes(len(means))
    nonzero = means[means != 0]
    n = len(nonzero)
    mean = float(d.units().estimates()[0])
    if n == 0:
        return TestResult("Wilcoxon", mean, 0.0, 1.0, 0, alternative, notes=notes)
    ranks, (positive_sum, _) = _midranks(np.abs(nonzero)), signed_rank_sums(d)
    exact = method == "exact" or (method == "auto" and n <= EXACT_WILCOXON)
    if exact and n > 1000:
        raise InputError(f"the exact Wilcoxon test is for few units, got {n}.", hint="Use method='normal'.")
    p = (
        _exact_rank_p(ranks, positive_sum, alternative)
        if exact
        else _normal_rank_p(ranks, positive_sum, alternative)
    )
    name = "Wilcoxon (exact)" if exact else "Wilcoxon (normal, continuity correction)"
    return TestResult(name, mean, positive_sum, p, n, alternative, notes=notes)


def signed_rank_sums(differences: Differences | npt.ArrayLike) -> tuple[float, float]:
    """W+ and W-: the sums of the ranks of positive and of negative differences, zeros dropped.

    >>> signed_rank_sums([1.0, 2.0, -3.0, 0.0])
    (3.0, 3.0)
    """
    means = without_rounding(as_differences(differences).unit_means())
    nonzero = means[means != 0]
    ranks = _midranks(np.abs(nonzero))
    return float(ranks[nonzero > 0].sum()), float(ranks[nonzero < 0].sum())


def without_rounding(values: Float) -> Float:
    """Make values equal whose sizes differ by rounding only, so that they are tied.

    >>> without_rounding(np.array([0.8 - 0.6, 0.1 - 0.3, 0.1 + 0.2 - 0.3])).tolist()
    [0.19999999999999998, -0.19999999999999998, 0.0]
    """
    sizes = np.abs(values)
    order = np.argsort(sizes, kind="stable")
    ordered = sizes[order]
    starts_level = np.diff(ordered, prepend=0.0) > 1e-12 * ordered.max(initial=0.0)
    levels = np.concatenate([[0.0], ordered[starts_level]])
    merged = np.empty_like(sizes)
    merged[order] = levels[np.cumsum(starts_level)]
    signed: Float = np.where(merged == 0, 0.0, np.copysign(merged, values))
    return signed


def _midranks(values: Float) -> Float:
    _, level, counts = np.unique(values, return_inverse=True, return_counts=True)
    last_rank = np.cumsum(counts)
    ranks: Float = (last_rank - (counts - 1) / 2.0)[level]
    return ranks


def _exact_rank_p(ranks: Float, positive_sum: float, alternative: Alternative) -> float:
    """P from the exact null distribution of the rank sum, one rank at a time; doubled, midranks are whole."""
    doubled = np.rint(2.0 * ranks).astype(np.int64)
    chances = np.zeros(int(doubled.sum()) + 1)
    chances[0] = 1.0
    for rank in doubled:
        shifted = np.zeros_like(chances)
        shifted[rank:] = chances[: len(chances) - rank]
        chances = 0.5 * (chances + shifted)
    index = round(2.0 * positive_sum)
    upper, lower = float(chances[index:].sum()), float(chances[: index + 1].sum())
    return {"greater": upper, "less": lower}.get(alternative, min(1.0, 2.0 * min(upper, lower)))


def _normal_rank_p(ranks: Float, positive_sum: float, alternative: Alternative) -> float:
    from scipy.special import ndtr

    n = len(ranks)
    _, ties = np.unique(ranks, return_counts=True)
    variance = n * (n + 1.0) * (2.0 * n + 1.0) / 24.0 - float((ties.astype(float) ** 3 - ties).sum()) / 48.0
    excess = positive_sum - n * (n + 1.0) / 4.0
    continuity = {"greater": 0.5, "less": -0.5}.get(alternative, 0.5 * float(np.sign(excess)))
    z = (excess - continuity) / math.sqrt(variance)
    if alternative == "two-sided":
        return min(1.0, 2.0 * float(ndtr(-abs(z))))
    return float(ndtr(-z if alternative == "greater" else z))


def count_wins_and_losses(means: Float, dead_zone: float) -> tuple[int, int]:
    """How many means lie above and below the dead zone, which includes its edge up to rounding.

    >>> count_wins_and_losses(np.array([0.3 - 0.2, 0.4 - 0.3, 0.5, -0.2]), 0.1)
    (1, 1)
    """
    edge = dead_zone + 1e-12 * float(np.abs(means).max(initial=0.0))
    return int(np.count_nonzero(means > edge)), int(np.count_nonzero(means < -edge))


def sign_test(
    differences: Differences | npt.ArrayLike,
    *,
    dead_zone: float = 0.0,
    alternative: Alternative = "two-sided",
) -> TestResult:
    """Test whether more units are better than worse; differences within the dead zone are ties, left out.

    It tests the share of winners, not the mean; `statistic` is the number of winners.
    """
    from scipy.stats import binomtest

    check_alternative(alternative)
    if not dead_zone >= 0:
        raise InputError(f"dead_zone must be zero or positive, got {dead_zone!r}.")
    d = as_differences(differences)
    means = d.unit_means()
    notes = d.notes + spread_notes(means) + rank_notes(len(means))
    wins, losses = count_wins_and_losses(means, dead_zone)
    n = wins + losses
    p = float(binomtest(wins, n, 0.5, alternative=alternative).pvalue) if n else 1.0
    notes += (f"{wins} wins, {len(means) - n} ties, {losses} losses",)
    return TestResult("sign", float(d.units().estimates()[0]), float(wins), p, n, alternative, notes=notes)


def bootstrap_test(
    differences: Differences | npt.ArrayLike,
    *,
    method: str = "studentised",
    alternative: Alternative = "two-sided",
    confidence: float = 0.95,
    n_resamples: int = 10_000,
    rng: Rng = 0,
) -> TestResult:
    """Studentised or BCa bootstrap of the mean difference; the test is the inversion of the interval."""
    if method not in ("studentised", "bca"):
        raise UnknownNameError("bootstrap test", method, ("studentised", "bca"))
    d = as_differences(differences)
    units = d.units()
    present = units.weights[0] != 0
    units = Units(units.keys[present], units.totals[:, present], units.weights[:, present])
    notes = d.notes + spread_notes(units.linearised())
    replicates = replicate(units, Resampler(units.keys, n_resamples, seed_from_rng(rng)))
    low, high = replicates.limits(method, confidence)[0]
    estimate, error = float(replicates.estimates[0]), float(replicates.standard_errors[0])
    p = float(replicates.p_values(method, alternative)[0])
    statistic = estimate / error if error > 0 else math.nan
    interval = Interval(float(low), float(high), confidence, method)
    name = f"{method} bootstrap ({n_resamples} {replicates.scheme} draws)"
    return TestResult(
        name, estimate, statistic, p, int(replicates.n_units[0]), alternative, interval, notes=notes
    )


def statistic_permutation(
    differences: Differences,
    statistic: Callable[[Any, Any], float],
    *,
    alternative: Alternative = "two-sided",
    n_resamples: int = 10_000,
    rng: Rng = 0,
) -> TestResult:
    """Swap the two sides of random pairs and call `statistic(first, second)` again; all swaps if few.

    A two-sided test uses the distance from zero, so the statistic should change sign when the sides swap.
    """
    check_alternative(alternative)
    check_resamples(n_resamples)
    d, n = differences, len(differences.first)
    notes = d.notes
    if n < 3:
        notes += (caution_small_sample(n, "no test can say much here"),)
    observed = check_not_nan(statistic(d.first, d.second))
    exact = n < 31 and 1 << n <= n_resamples
    swaps: Iterator[Bool]
    if exact:
        swaps = (bits.astype(bool) for bits in bernoulli_signs(n))
    else:
        stream = np.random.default_rng(seed_from_rng(rng))
        swaps = (stream.random((1, n)) < 0.5 for _ in range(n_resamples))
    permuted = np.array(
        [
            float(statistic(np.where(swap, d.second, d.first), np.where(swap, d.first, d.second)))
            for block in swaps
            for swap in block
        ]
    )
    count = np.count_nonzero(at_least_as_extreme(permuted, observed, 1e-12 * abs(observed), alternative))
    p = count / len(permuted) if exact else (1.0 + count) / (1.0 + len(permuted))
    name = "paired permutation (exact)" if exact else f"paired permutation ({n_resamples} draws)"
    return TestResult(name, float(d.values.mean()), observed, float(p), n, alternative, notes=notes)


def normality(values: npt.ArrayLike) -> TestResult:
    """Shapiro-Wilk test, or D'Agostino-Pearson beyond 5,000 values; NaN if values are too few or constant."""
    from scipy.stats import normaltest, shapiro

    d = pair(values)
    sample = d.first
    n = len(sample)
    notes = d.notes + spread_notes(sample, "value")
    method = "Shapiro-Wilk" if n <= SHAPIRO_UP_TO else "D'Agostino-Pearson"
    mean = float(sample.mean())
    if n < 3 or not has_spread(sample):
        return TestResult(method, mean, math.nan, math.nan, n, notes=notes)
    result = shapiro(sample) if n <= SHAPIRO_UP_TO else normaltest(sample)
    return TestResult(method, mean, float(result.statistic), float(result.pvalue), n, notes=notes)


def power(
    effect: float, n: int, *, sd: float = 1.0, alpha: float = 0.05, alternative: Alternative = "two-sided"
) -> float:
    """Probability that a paired t-test with n users detects a mean difference of `effect`.

    >>> round(power(0.2, 199), 3)
    0.802
    """
    _check_plan(alpha, sd, n, alternative)
    from scipy.special import stdtrit

    if math.isnan(effect):
        raise InputError("the effect is NaN.")
    df = n - 1
    shift = effect / sd * math.sqrt(n)
    if alternative == "two-sided":
        reach = -float(stdtrit(df, alpha / 2.0))
        return min(1.0, _upper_tail(df, shift, reach) + _upper_tail(df, -shift, reach))
    reach = -float(stdtrit(df, alpha))
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
    """The smallest mean difference that n users detect with the given power."""
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
    """The fewest users that detect a mean difference of `effect` with the given power.

    >>> users_needed(0.2)
    199
    """
    _check_plan(alpha, sd, 2, alternative)
    _check_power(power, alpha)
    wrong_way = (
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
    if not 0 < alpha < 1:
        raise InputError(f"alpha must lie between 0 and 1, got {alpha!r}.")
    if not (sd > 0 and math.isfinite(sd)):
        raise InputError(f"the standard deviation must be positive, got {sd!r}.")
    if n < 2:
        raise InputError(f"at least 2 users are needed, got {n}.")


def _check_power(power: float, alpha: float) -> None:
    if not alpha < power < 1:
        raise InputError(f"power must lie between alpha ({alpha}) and 1, got {power!r}.")
