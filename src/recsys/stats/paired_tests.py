"""Tests of one paired comparison: of a difference, of equivalence, and the probability of worse and better.

The tests are t, sign-flip permutation, Wilcoxon, sign, studentised and BCa bootstrap, and the permutation of
any statistic. All take Differences (or plain differences, one per unit) and work on units, so clustered cases
never count as independent. The null hypothesis is a mean difference of zero, unless a test says otherwise.

Equivalence and non-inferiority need a margin that was chosen before looking at the data; the Bayesian
comparison needs a region of practical equivalence (ROPE).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from recsys.errors import InputError, check_choice
from recsys.records.arrays import Bool, Float
from recsys.records.checks import is_number, to_floats
from recsys.records.facts import Note, note
from recsys.stats.gaffke import METHOD
from recsys.stats.inference_results import (
    Alternative,
    Estimate,
    Interval,
    RankTestWarning,
    SmallSampleWarning,
    TestResult,
    caution,
    check_alternative,
    check_confidence,
    t_interval,
    t_ratio,
    t_tail,
)
from recsys.stats.intervals import check_bounds, check_not_nan
from recsys.stats.mean_inference import (
    bounded_mean_test,
    infer_mean,
    skew_notes,
    spread_notes,
    tail_notes,
    too_sparse_note,
)
from recsys.stats.pairing import Differences, Paired, as_differences, as_paired, pair
from recsys.stats.resampling import (
    BOOTSTRAP_FROM,
    Resampler,
    Rng,
    Units,
    bernoulli_signs,
    check_resamples,
    replicate,
    seed_from_rng,
)
from recsys.stats.samples import Sample
from recsys.stats.sign_flips import METHOD as FLIPS
from recsys.stats.sign_flips import SignFlips

# From this sample size on, rank tests reject because of asymmetry rather than a better mean.
LARGE_SAMPLE = 500
_ALPHA = 0.05  # where a note says that a rank test and a test of the mean disagree
EXACT_WILCOXON = 50
EQUAL_WITHIN = 1e-12  # of the largest difference: what float64 makes of equal differences
# Shapiro and Wilk's coefficients are accurate up to this sample size.
SHAPIRO_UP_TO = 5000


def paired_t(
    differences: Paired | npt.ArrayLike,
    *,
    alternative: Alternative = "two-sided",
    confidence: float = 0.95,
) -> TestResult:
    """Paired t-test over units (cluster-robust when cases are clustered).

    If all units differ by the same amount, t is infinite and p is that of sign flips, 2^(1 - n) two-sided.
    """
    check_alternative(alternative)
    d = as_paired(differences)
    return infer_mean(d.sample, 0.0, alternative, confidence=confidence, spent=d.spent or 0).test(d.notes)


def sign_flip(
    differences: Paired | npt.ArrayLike,
    *,
    alternative: Alternative = "two-sided",
    confidence: float = 0.95,
) -> TestResult:
    """Permutation test that swaps the two sides of each unit, and the interval of means it does not reject.

    The null hypothesis is that the two sides are exchangeable, so that differences are symmetric around zero.
    Nothing is drawn: p is that of all signs, exactly where few units differ (see `sign_flips`).

    >>> sign_flip([0.5, 0.5, 0.25, 0.5, 0.25, 1.0]).p_value
    0.03125
    """
    d = as_paired(differences)
    sample = d.sample
    flips = SignFlips.of(sample)
    notes = d.notes + spread_notes(sample) + (skew_notes(sample, alternative) or tail_notes(sample))
    interval, p, mean = flips.interval(confidence, alternative), flips.p_value(alternative), sample.mean
    return TestResult(FLIPS, mean, mean, p, sample.n, alternative, interval, notes=notes)


def rank_notes(n: int) -> tuple[Note, ...]:
    """The caution about rank tests on large samples."""
    return (caution(RankTestWarning, "rank_test"),) if n >= LARGE_SAMPLE else ()


def wilcoxon(
    differences: Differences | npt.ArrayLike,
    *,
    alternative: Alternative = "two-sided",
    method: str = "auto",
    equal_within: float = EQUAL_WITHIN,
) -> TestResult:
    """Signed-rank test; exact (ties included) for few units, else normal with continuity correction.

    Zero differences are dropped. It tests symmetry around zero, not a mean of zero; where a t-test of the
    mean decides otherwise at 5 %, a caution says so from 500 units on.

    Differences whose sizes differ by no more than `equal_within` times the largest are tied, and those that
    close to zero are zero: 0.8 - 0.6 and 0.3 - 0.1 are both a fifth, though not the same float64. SciPy and
    R compare them as they are, which is `equal_within=0`.

    >>> differences = [0.8 - 0.6, 0.1 - 0.3, 0.5]
    >>> wilcoxon(differences).p_value, wilcoxon(differences, equal_within=0).p_value
    (0.75, 0.5)
    """
    check_alternative(alternative)
    check_choice("Wilcoxon method", method, ("auto", "exact", "normal"))
    d = as_differences(differences)
    means = without_rounding(d.unit_means, equal_within)
    notes = d.notes + spread_notes(Sample.of(means))
    nonzero = means[means != 0]
    n = len(nonzero)
    mean = d.sample.mean
    if n == 0:
        return TestResult("Wilcoxon", mean, 0.0, 1.0, 0, alternative, notes=notes)
    ranks = _midranks(np.abs(nonzero))
    positive_sum = float(ranks[nonzero > 0].sum())
    exact = method == "exact" or (method == "auto" and n <= EXACT_WILCOXON)
    if exact and n > 1000:
        raise InputError(f"the exact Wilcoxon test is for few units, got {n}.", hint="Use method='normal'.")
    p = (
        _exact_rank_p(ranks, positive_sum, alternative)
        if exact
        else _normal_rank_p(ranks, positive_sum, alternative)
    )
    p_of_mean = t_tail(t_ratio(mean, d.sample.error), d.sample.df - (d.spent or 0), alternative)
    if (p < _ALPHA) != (p_of_mean < _ALPHA):
        notes += rank_notes(len(means))
    name = "Wilcoxon (exact)" if exact else "Wilcoxon (normal, continuity correction)"
    return TestResult(name, mean, positive_sum, p, n, alternative, notes=notes)


def signed_rank_sums(
    differences: Differences | npt.ArrayLike, *, equal_within: float = EQUAL_WITHIN
) -> tuple[float, float]:
    """W+ and W-: the sums of the ranks of positive and of negative differences, zeros dropped.

    `equal_within` as in `wilcoxon`.

    >>> signed_rank_sums([1.0, 2.0, -3.0, 0.0])
    (3.0, 3.0)
    """
    means = without_rounding(as_differences(differences).unit_means, equal_within)
    nonzero = means[means != 0]
    ranks = _midranks(np.abs(nonzero))
    return float(ranks[nonzero > 0].sum()), float(ranks[nonzero < 0].sum())


def without_rounding(values: Float, equal_within: float = EQUAL_WITHIN) -> Float:
    """Make values equal whose sizes differ by rounding only, so that they are tied.

    Rounding is a difference of up to `equal_within` times the largest size; 0 leaves the values as they are.

    >>> without_rounding(np.array([0.8 - 0.6, 0.1 - 0.3, 0.1 + 0.2 - 0.3])).tolist()
    [0.19999999999999998, -0.19999999999999998, 0.0]
    """
    if not (is_number(equal_within) and 0.0 <= equal_within < 1.0):
        raise InputError(
            f"equal_within={equal_within!r} is not a share of the largest difference.",
            hint="Use 1e-12 for rounding only, or 0 to compare differences as they are.",
        )
    sizes = np.abs(values)
    order = np.argsort(sizes, kind="stable")
    ordered = sizes[order]
    starts_level = np.diff(ordered, prepend=0.0) > equal_within * ordered.max(initial=0.0)
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


def sign_test(
    differences: Paired | npt.ArrayLike,
    *,
    dead_zone: float = 0.0,
    alternative: Alternative = "two-sided",
) -> TestResult:
    """Test whether more units are better than worse; differences within the dead zone are ties, left out.

    It tests the share of winners, not the mean; `statistic` is the number of winners.
    """
    from scipy.stats import binomtest

    check_alternative(alternative)
    if not (is_number(dead_zone) and dead_zone >= 0):
        raise InputError(f"dead_zone must be zero or positive, got {dead_zone!r}.")
    d = as_paired(differences)
    sample = d.sample
    wins, ties, losses = sample.wins_ties_losses(dead_zone)
    n = wins + losses
    notes = d.notes + spread_notes(sample) + rank_notes(sample.n)
    # Few wins are many losses: SciPy rounds the two tails differently.
    tail: Alternative = "greater" if alternative == "less" else alternative
    count = losses if alternative == "less" else wins
    p = float(binomtest(count, n, 0.5, alternative=tail).pvalue) if n else 1.0
    notes += (note("wins", wins=wins, ties=ties, losses=losses),)
    return TestResult("sign", sample.mean, float(wins), p, n, alternative, notes=notes)


def bootstrap_test(
    differences: Differences | npt.ArrayLike,
    *,
    method: str = "studentised",
    alternative: Alternative = "two-sided",
    confidence: float = 0.95,
    n_resamples: int = 10_000,
    rng: Rng = 0,
) -> TestResult:
    """Studentised or BCa bootstrap of the mean difference; the test is the inversion of the interval.

    If most units do not differ and fewer than 60 do, bootstraps reject too often: the test is then that of
    sign flips, and a note says so.
    """
    check_choice("bootstrap test", method, ("studentised", "bca"))
    d = as_differences(differences)
    sample = d.sample
    if sample.few_are_not_zero(BOOTSTRAP_FROM):
        flips = sign_flip(d, alternative=alternative, confidence=confidence)
        statistic = t_ratio(sample.mean, sample.error)
        return replace(flips, statistic=statistic, notes=(*flips.notes, too_sparse_note(sample)))
    notes = d.notes + spread_notes(sample) + tail_notes(sample)
    present = d.units.weights[0] != 0
    units = Units(d.units.keys[present], d.units.totals[:, present], d.units.weights[:, present])
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
        notes += (caution(SmallSampleWarning, "few_units", n=n, noun="unit", so="no_test"),)
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
    slack = 1e-12 * abs(observed)  # values that are equal but for rounding are equal
    if alternative == "greater":
        is_extreme = permuted >= observed - slack
    elif alternative == "less":
        is_extreme = permuted <= observed + slack
    else:
        is_extreme = np.abs(permuted) >= abs(observed) - slack
    count = int(np.count_nonzero(is_extreme))
    p = count / len(permuted) if exact else (1.0 + count) / (1.0 + len(permuted))
    name = f"paired permutation ({'exact' if exact else f'{n_resamples} draws'})"
    return TestResult(name, float(d.values.mean()), observed, p, n, alternative, notes=notes)


def normality(values: npt.ArrayLike) -> TestResult:
    """Shapiro-Wilk test, or D'Agostino-Pearson beyond 5,000 values; NaN if values are too few or constant."""
    from scipy.stats import normaltest, shapiro

    d = pair(values)
    sample = d.first
    n = len(sample)
    notes = d.notes + spread_notes(d.sample, "value")
    method = "Shapiro-Wilk" if n <= SHAPIRO_UP_TO else "D'Agostino-Pearson"
    mean = float(sample.mean())
    if n < 3 or not d.sample.varies:
        return TestResult(method, mean, math.nan, math.nan, n, notes=notes)
    result = shapiro(sample) if n <= SHAPIRO_UP_TO else normaltest(sample)
    return TestResult(method, mean, float(result.statistic), float(result.pvalue), n, notes=notes)


@dataclass(frozen=True)
class EquivalenceResult:
    """Two one-sided tests; `p_value` is the larger p, and `interval` must lie inside the margin."""

    method: str
    difference: float
    margin: tuple[float, float]
    p_value: float
    p_above_low: float
    p_below_high: float
    interval: Interval
    n: int
    notes: tuple[Note, ...] = ()


def difference_estimate(differences: Paired | npt.ArrayLike, confidence: float = 0.95) -> Estimate:
    """The mean difference over units with its t interval."""
    d = as_paired(differences)
    sample = d.sample
    interval = t_interval(sample.mean, sample.error, sample.df, confidence)
    return Estimate(sample.mean, sample.error, interval, sample.n, d.notes + spread_notes(sample))


def _one_sided_p(mean: float, bound: float, error: float, df: float, alternative: Alternative) -> float:
    if not error > 0:  # nothing says how far others may be
        return 0.0 if math.isinf(bound) else math.nan
    return t_tail(t_ratio(mean - bound, error), df, alternative)


def equivalence(
    differences: Differences | npt.ArrayLike,
    margin: float | tuple[float, float],
    *,
    confidence: float = 0.95,
    bounds: tuple[float, float] = (-math.inf, math.inf),
) -> EquivalenceResult:
    """TOST of whether the mean difference lies inside the margin; its interval has confidence 1 - 2 alpha.

    `bounds` are the least and the greatest difference, so that the test allows for differences that were not
    seen (see `bounded_mean_test`). Without them it is that of t, and where fewer than 20 units differ nothing
    is shown.

    >>> ties = np.repeat([0.0, 1.0, -1.0], [1997, 2, 1])
    >>> equivalence(ties, 0.01, bounds=(-1, 1)).p_value < 0.001, equivalence(ties, 0.01).p_value
    (True, nan)
    """
    d = as_differences(differences)
    estimate = difference_estimate(d, confidence)
    seen = d.sample, check_bounds(bounds)
    return equivalence_from_estimate(estimate, d.sample.df, margin, confidence=confidence, seen=seen)


def equivalence_from_estimate(
    estimate: Estimate,
    df: float,
    margin: float | tuple[float, float],
    *,
    confidence: float = 0.95,
    seen: tuple[Sample, tuple[float, float]] | None = None,
) -> EquivalenceResult:
    """TOST of any estimate with a t distribution.

    Where the units that were `seen` and the ends of their range are given, it allows for those that were not.
    """
    low, high = _two_ends(margin, "the margin")
    if not low < high:
        raise InputError(f"the margin must run from a lower to a higher value, got {(low, high)}.")
    check_confidence(confidence)
    mean, error, notes = estimate.value, estimate.standard_error, dict.fromkeys(estimate.notes)
    sides: tuple[tuple[float, Literal["greater", "less"]], ...] = (low, "greater"), (high, "less")
    p_values = [_one_sided_p(mean, end, error, df, side) for end, side in sides]
    interval = t_interval(mean, error, df, max(1e-9, 2.0 * confidence - 1.0), "two-sided")
    ends = [interval.low, interval.high]
    for at, (end, side) in enumerate(sides):
        if seen is None or math.isinf(end):
            continue
        test = bounded_mean_test(seen[0], end, seen[1], side, confidence=confidence)
        if test is not None:
            p_values[at], notes = test.p_value, notes | dict.fromkeys(test.notes)
            ends[at] = test.interval.low if at == 0 else test.interval.high
            if math.isinf(sides[1 - at][0]):
                ends[1 - at] = sides[1 - at][0]
            interval = replace(interval, low=ends[0], high=ends[1], method=METHOD)
    p = math.nan if math.isnan(sum(p_values)) else max(p_values)
    return EquivalenceResult(
        "TOST", mean, (low, high), p, p_values[0], p_values[1], interval, estimate.n, tuple(notes)
    )


def _two_ends(given: Any, what: str) -> tuple[float, float]:
    """Both ends of a range that came as two numbers, or as the distance of either end from zero."""
    hint = "Pass one number, or a lower and a higher one."
    ends = to_floats(given, what, hint)
    if ends.shape not in ((), (2,)):
        raise InputError(f"{what} came with shape {ends.shape}.", hint=hint)
    return (float(ends[0]), float(ends[1])) if ends.ndim else (-float(ends), float(ends))


def non_inferiority(
    differences: Differences | npt.ArrayLike,
    margin: float,
    *,
    confidence: float = 0.95,
    bounds: tuple[float, float] = (-math.inf, math.inf),
) -> EquivalenceResult:
    """Test whether the first side is worse by less than the margin (positive, in the metric's units).

    `bounds` as in `equivalence`.
    """
    if not (is_number(margin) and margin > 0):
        raise InputError(f"the margin of non-inferiority must be positive, got {margin!r}.")
    d = as_differences(differences)
    found = equivalence(d, (-margin, math.inf), confidence=confidence, bounds=bounds)
    interval = replace(found.interval, confidence=confidence)
    if interval.method != METHOD:
        interval = t_interval(found.difference, d.sample.error, d.sample.df, confidence, "greater")
    p, method = found.p_above_low, "non-inferiority"
    return replace(found, method=method, p_value=p, p_below_high=0.0, interval=interval)


@dataclass(frozen=True)
class BayesResult:
    """Posterior of the mean difference: the probabilities of worse, practically equal and better."""

    difference: float
    scale: float
    df: float
    rope: tuple[float, float]
    p_worse: float
    p_equal: float
    p_better: float
    interval: Interval
    n: int
    notes: tuple[Note, ...] = ()


def bayes_paired(
    differences: Differences | npt.ArrayLike,
    rope: float | tuple[float, float] = 0.0,
    *,
    confidence: float = 0.95,
    correlation: float = 0.0,
) -> BayesResult:
    """Posterior under the flat (Jeffreys) prior: Student's t around the mean difference.

    `correlation` widens it for dependent units: for results of k-fold cross-validation, the test share.
    """
    if not (is_number(correlation) and 0.0 <= correlation < 1.0):
        raise InputError(f"correlation must be in [0, 1), got {correlation!r}.")
    d = as_differences(differences)
    estimate = difference_estimate(d, confidence)
    scale = estimate.standard_error * math.sqrt(1.0 + estimate.n * correlation / (1.0 - correlation))
    df = d.sample.df
    return bayes_from_estimate(replace(estimate, standard_error=scale), df, rope, confidence=confidence)


def bayes_from_estimate(
    estimate: Estimate, df: float, rope: float | tuple[float, float], *, confidence: float = 0.95
) -> BayesResult:
    """The posterior of any estimate with a t distribution."""
    from scipy.special import stdtr

    low, high = _two_ends(rope, "the ROPE")
    if not low <= high:
        raise InputError(f"the ROPE must run from a lower to a higher value, got {(low, high)}.")
    mean, scale = estimate.value, estimate.standard_error
    interval = t_interval(mean, scale, df, confidence, "two-sided")
    if math.isnan(scale):
        worse = better = math.nan
    elif scale > 0:
        worse = float(stdtr(df, (low - mean) / scale))
        better = float(stdtr(df, (mean - high) / scale))
    else:
        worse, better = float(mean < low), float(mean > high)
    equal = math.nan if math.isnan(scale) else float(np.clip(1.0 - worse - better, 0.0, 1.0))
    return BayesResult(
        mean, scale, float(df), (low, high), worse, equal, better, interval, estimate.n, estimate.notes
    )
