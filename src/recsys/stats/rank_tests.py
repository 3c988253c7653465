"""Rank tests of one paired comparison: Wilcoxon's signed ranks and the sign test.

They take Differences (or plain differences, one per unit) and work on units, so clustered cases never count
as independent. They test whether differences are symmetric around zero, or as often above as below, not a
mean. With the ranks r of n differences that are not zero, by size, W+ = sum of r over the positive ones has

    mean n (n + 1) / 4 and variance n (n + 1) (2 n + 1) / 24 - sum (t^3 - t) / 48

over the numbers t of differences of the same size (Wilcoxon 1945); few have the exact distribution instead.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from recsys.errors import InputError, check_choice
from recsys.records.arrays import Float
from recsys.records.checks import is_number
from recsys.records.facts import Note, note
from recsys.stats.mean_inference import (
    spread_notes,
)
from recsys.stats.pairing import Differences, Paired, as_differences, as_paired
from recsys.stats.results import (
    Alternative,
    RankTestWarning,
    TestResult,
    caution,
    check_alternative,
    t_ratio,
    t_tail,
)
from recsys.stats.samples import Sample

# From this sample size on, rank tests reject because of asymmetry rather than a better mean.
LARGE_SAMPLE = 500
_ALPHA = 0.05  # where a note says that a rank test and a test of the mean disagree
EXACT_WILCOXON = 50
EQUAL_WITHIN = 1e-12  # of the largest difference: what float64 makes of equal differences


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
    means = without_rounding(d.units.means(), equal_within)
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
    means = without_rounding(as_differences(differences).units.means(), equal_within)
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
