"""Tests of one paired comparison: t, sign-flip permutation, Wilcoxon, sign, studentised and BCa bootstrap.

All take Differences (or plain differences, one a unit) and work on units, so clustered cases never pass
for independent ones. The hypothesis is a mean difference of zero, except where a test says otherwise.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from recsys.errors import InputError, UnknownNameError
from recsys.stats.alignment import Differences, Units
from recsys.stats.bootstrap import replicate
from recsys.stats.inference_results import (
    Alternative,
    Interval,
    TestResult,
    check_alternative,
    flat_p,
    t_interval,
    t_of,
    t_tail,
)
from recsys.stats.paired_samples import as_differences
from recsys.stats.resampling import Resampler, Rng, bernoulli_signs, seed_of
from recsys.stats.statistics_warnings import (
    RankTestWarning,
    SkewWarning,
    ZeroVarianceWarning,
    caution,
    too_few,
)
from recsys.types import Float

# From here on a rank test's rejections come from asymmetry rather than from a better mean.
LARGE_SAMPLE = 500
# 2 ** 16 sign assignments are enumerated in a few milliseconds; beyond, they are drawn.
EXACT_FLIPS = 16
EXACT_WILCOXON = 50

RANK_NOTE = (
    "Wilcoxon and sign tests do not test the mean: on samples as large as recommender evaluations their "
    "type-1 error is inflated when differences are skewed; prefer t, permutation or the studentised bootstrap"
)


def spread_notes(values: Float, what: str = "difference") -> tuple[str, ...]:
    """Cautions every test shares: too few units, or no spread at all, so that t is not defined."""
    notes: tuple[str, ...] = ()
    if len(values) < 3:
        notes += (too_few(len(values), "no test can say much here"),)
    if len(values) > 1 and not has_spread(values):
        flips = f"; t is not defined, and sign flips have p = {flat_p(len(values) - 1):.2g}"
        said = f"every {what} is the same: zero variance"
        differs = what == "difference" and values.any()
        notes += (caution(ZeroVarianceWarning, said + flips if differs else said),)
    return notes


def has_spread(values: Float) -> bool:
    """False when what varies is rounding only (0.3 - 0.1 and 0.8 - 0.6 differ in the last bit)."""
    largest = float(np.abs(values).max(initial=0.0))
    return len(values) > 1 and float(np.ptp(values)) > 1e-12 * largest


def t_statistic(values: Float) -> tuple[float, float, float]:
    """Mean, its standard error, and their ratio (infinite without spread, NaN where nothing can be said)."""
    n = len(values)
    mean = float(values.mean())
    if n < 2:
        return mean, math.nan, math.nan
    error = float(values.std(ddof=1)) / math.sqrt(n) if has_spread(values) else 0.0
    return mean, error, t_of(mean, error)


def paired_t(
    differences: Differences | npt.ArrayLike,
    *,
    alternative: Alternative = "two-sided",
    confidence: float = 0.95,
) -> TestResult:
    """Paired t-test over units (cluster-robust when cases are clustered).

    Units that all differ by the same leave t infinite; p is then that of sign flips, 2^(1 - n) two-sided.
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

    Its hypothesis is that the two sides are exchangeable, so that differences are symmetric around zero.
    """
    check_alternative(alternative)
    d = as_differences(differences)
    units = d.units()
    present = units.weights[0] != 0
    totals = units.totals[:, present]
    notes = d.notes + spread_notes(totals[0]) + skew_notes(totals[0], alternative)
    observed = float(totals.sum())
    # Sums that are equal on paper must count as equal whatever order they were added in.
    slack = 1e-12 * float(np.abs(totals).sum())
    n = totals.shape[1]
    if n <= EXACT_FLIPS:
        sums = observed - 2.0 * np.concatenate([bits @ totals[0] for bits in bernoulli_signs(n)])
        p = np.count_nonzero(beyond(sums, observed, slack, alternative)) / len(sums)
        method = "sign-flip permutation (exact)"
    else:
        resampler = Resampler(units.keys[present], n_resamples, seed_of(rng))
        sums = resampler.flipped(totals)[0]
        p = (1 + np.count_nonzero(beyond(sums, observed, slack, alternative))) / (n_resamples + 1)
        method = f"sign-flip permutation ({n_resamples} draws)"
    mean = float(units.estimates()[0])
    return TestResult(method, mean, mean, float(p), n, alternative, notes=notes)


def flip_p(sums: Float, totals: Float) -> float:
    """Two-sided p of one row of totals from its sums under random signs."""
    observed, slack = float(totals.sum()), 1e-12 * float(np.abs(totals).sum())
    return (1.0 + np.count_nonzero(beyond(sums, observed, slack, "two-sided"))) / (len(sums) + 1.0)


def beyond(sums: Float, observed: float, slack: float, alternative: Alternative) -> npt.NDArray[np.bool_]:
    """Which sums lie at least as far out as the one observed; `slack` is what rounding may cost."""
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
    # The skewness itself must be more than what few, heavy values produce by chance.
    if abs(float(cubes.sum())) < 2.0 * math.sqrt(float((cubes**2).sum())):
        return ()
    lean = abs(skewness(values)) / math.sqrt(len(values))
    # One-sided the shift is 0.11 lean; two-sided the tails cancel to first order and lean^2 is left.
    shift = 0.11 * lean if alternative != "two-sided" else 0.2 * lean**2
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
    """The caution of tests by rank on large samples."""
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
    moved = means[means != 0]
    n = len(moved)
    mean = float(d.units().estimates()[0])
    if n == 0:
        return TestResult("Wilcoxon", mean, 0.0, 1.0, 0, alternative, notes=notes)
    ranks, (plus, _) = _midranks(np.abs(moved)), signed_rank_sums(d)
    exact = method == "exact" or (method == "auto" and n <= EXACT_WILCOXON)
    if exact and n > 1000:
        raise InputError(f"the exact Wilcoxon test is for few units, got {n}.", hint="Use method='normal'.")
    p = _exact_rank_p(ranks, plus, alternative) if exact else _normal_rank_p(ranks, plus, alternative)
    name = "Wilcoxon (exact)" if exact else "Wilcoxon (normal, continuity correction)"
    return TestResult(name, mean, plus, p, n, alternative, notes=notes)


def signed_rank_sums(differences: Differences | npt.ArrayLike) -> tuple[float, float]:
    """W+ and W-: ranks of what went up and of what went down, zeros dropped.

    >>> signed_rank_sums([1.0, 2.0, -3.0, 0.0])
    (3.0, 3.0)
    """
    means = without_rounding(as_differences(differences).unit_means())
    moved = means[means != 0]
    ranks = _midranks(np.abs(moved))
    return float(ranks[moved > 0].sum()), float(ranks[moved < 0].sum())


def without_rounding(values: Float) -> Float:
    """Values whose sizes differ by rounding only made equal, so that what is tied on paper is tied.

    >>> without_rounding(np.array([0.8 - 0.6, 0.1 - 0.3, 0.1 + 0.2 - 0.3])).tolist()
    [0.19999999999999998, -0.19999999999999998, 0.0]
    """
    sizes = np.abs(values)
    order = np.argsort(sizes, kind="stable")
    ordered = sizes[order]
    apart = np.diff(ordered, prepend=0.0) > 1e-12 * ordered.max(initial=0.0)
    levels = np.concatenate([[0.0], ordered[apart]])
    merged = np.empty_like(sizes)
    merged[order] = levels[np.cumsum(apart)]
    settled: Float = np.where(merged == 0, 0.0, np.copysign(merged, values))
    return settled


def _midranks(values: Float) -> Float:
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks: Float = (last - (counts - 1) / 2.0)[place]
    return ranks


def _exact_rank_p(ranks: Float, plus: float, alternative: Alternative) -> float:
    """The null distribution of the rank sum by adding one rank at a time; doubled to make midranks whole."""
    doubled = np.rint(2.0 * ranks).astype(np.int64)
    chances = np.zeros(int(doubled.sum()) + 1)
    chances[0] = 1.0
    for rank in doubled:
        shifted = np.zeros_like(chances)
        shifted[rank:] = chances[: len(chances) - rank]
        chances = 0.5 * (chances + shifted)
    at = round(2.0 * plus)
    upper, lower = float(chances[at:].sum()), float(chances[: at + 1].sum())
    return {"greater": upper, "less": lower}.get(alternative, min(1.0, 2.0 * min(upper, lower)))


def _normal_rank_p(ranks: Float, plus: float, alternative: Alternative) -> float:
    from scipy.special import ndtr

    n = len(ranks)
    _, ties = np.unique(ranks, return_counts=True)
    variance = n * (n + 1.0) * (2.0 * n + 1.0) / 24.0 - float((ties.astype(float) ** 3 - ties).sum()) / 48.0
    excess = plus - n * (n + 1.0) / 4.0
    step = {"greater": 0.5, "less": -0.5}.get(alternative, 0.5 * float(np.sign(excess)))
    z = (excess - step) / math.sqrt(variance)
    if alternative == "two-sided":
        return min(1.0, 2.0 * float(ndtr(-abs(z))))
    return float(ndtr(-z if alternative == "greater" else z))


def ups_and_downs(means: Float, dead_zone: float) -> tuple[int, int]:
    """How many lie above and below the dead zone, whose edge belongs to it, also where rounding moved it.

    >>> ups_and_downs(np.array([0.3 - 0.2, 0.4 - 0.3, 0.5, -0.2]), 0.1)
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
    """Are more units better than worse? Differences within the dead zone are ties and left out.

    It tests the share of winners, not the mean; `statistic` is the number of winners.
    """
    from scipy.stats import binomtest

    check_alternative(alternative)
    if not dead_zone >= 0:
        raise InputError(f"dead_zone must be zero or positive, got {dead_zone!r}.")
    d = as_differences(differences)
    means = d.unit_means()
    notes = d.notes + spread_notes(means) + rank_notes(len(means))
    wins, losses = ups_and_downs(means, dead_zone)
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
    """Studentised or BCa bootstrap of the mean difference; test and interval are inversions of each other."""
    if method not in ("studentised", "bca"):
        raise UnknownNameError("bootstrap test", method, ("studentised", "bca"))
    d = as_differences(differences)
    units = _present(d.units())
    notes = d.notes + spread_notes(units.linearised())
    drawn = replicate(units, Resampler(units.keys, n_resamples, seed_of(rng)))
    low, high = drawn.limits(method, confidence)[0]
    estimate, error = float(drawn.estimates[0]), float(drawn.standard_errors[0])
    p = float(drawn.p_values(method, alternative)[0])
    statistic = estimate / error if error > 0 else math.nan
    interval = Interval(float(low), float(high), confidence, method)
    name = f"{method} bootstrap ({n_resamples} {drawn.scheme} draws)"
    return TestResult(name, estimate, statistic, p, int(drawn.n_units[0]), alternative, interval, notes=notes)


def _present(units: Units) -> Units:
    here = units.weights[0] != 0
    return Units(units.keys[here], units.totals[:, here], units.weights[:, here])
