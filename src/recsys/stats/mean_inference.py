"""What is known about the mean of a sample: the only place where a method is chosen.

Two questions, one rule each.

Where is the mean (intervals), and is it at least c (margins, equivalence, the gate)? Where the range of
the values is known, `infer_mean` answers by Gaffke's bound, which always allows for units that were not seen
(see `gaffke`); else by t, which few units that differ do not support.

Is it better or worse than 0 (`test=`)? That is a test of the units seen, by sign flips, exact where few
differ and close to t where many do (see `sign_flips`). Its interval excludes 0 where the test does; its other
ends allow for units that were not seen, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

from recsys.errors import InputError, check_choice
from recsys.records.facts import Note, note
from recsys.stats.bootstrap import (
    BOOTSTRAP_FROM,
    Replicates,
    Resampler,
    Rng,
    Units,
    replicate,
    seed_from_rng,
)
from recsys.stats.gaffke import METHOD, mean_bounds, mean_p, units_needed
from recsys.stats.results import (
    Alternative,
    Bounds,
    Estimate,
    Interval,
    SkewWarning,
    SmallSampleWarning,
    TestResult,
    ZeroVarianceWarning,
    caution,
    t_interval,
    t_ratio,
    t_tail,
    zero_spread_p,
)
from recsys.stats.samples import FEW, Sample
from recsys.stats.sign_flips import METHOD as FLIPS
from recsys.stats.sign_flips import SignFlips

Method = Literal["gaffke", "t", "normal", "studentised", "bca", "percentile"]
METHODS = ("gaffke", "t", "normal", "studentised", "bca", "percentile")
BOOTSTRAPS = ("studentised", "bca", "percentile")


@dataclass(frozen=True)
class Inference:
    """What is known about a mean, or a difference of means: its interval, and p where a value was tested.

    `method` is that of the test, or of the interval where nothing was tested. `at` gives the interval of a
    difference at any confidence.
    """

    estimate: Estimate
    method: str
    p_value: float = math.nan
    statistic: float = math.nan
    df: float | None = None
    alternative: Alternative = "two-sided"
    at: Callable[[float], Interval] | None = None

    @property
    def interval(self) -> Interval:
        return self.estimate.interval

    @property
    def notes(self) -> tuple[Note, ...]:
        return self.estimate.notes

    @property
    def negative(self) -> Inference:
        """The same of the opposite difference; `alternative` and `at` are left."""
        estimate = replace(self.estimate, value=-self.estimate.value, interval=self.interval.negative)
        return replace(self, estimate=estimate, statistic=-self.statistic)

    def test(self, notes: tuple[Note, ...] = ()) -> TestResult:
        """The result of the test, with notes of others before its own."""
        value, n = self.estimate.value, self.estimate.n
        return TestResult(
            self.method, value, self.statistic, self.p_value, n, self.alternative, self.interval, self.df,
            notes + self.notes,
        )  # fmt: skip


def infer_mean(
    of: Sample | Units,
    c: float | None = None,
    alternative: Alternative = "two-sided",
    *,
    test: str | TestResult | None = None,
    method: str = "gaffke",
    confidence: float = 0.95,
    bounds: Bounds | None = None,
    noun: str = "unit",
    n_resamples: int = 10_000,
    rng: Rng = 0,
    drawn: Replicates | None = None,
    spent: int | None = None,
    n_differing: int | None = None,
) -> Inference:
    """Return the interval of the mean of a sample, or the test of whether it is `c`.

    Args:
        of: the units; of several rows of them the first. A bootstrap needs more than a sample, or `drawn`.
        c: the mean that is tested; by Gaffke's bound if it is one-sided and the range is known, else by t.
        alternative: whether the mean is greater or less than `c`, or either.
        test: of a mean of 0 among the units seen: "permutation" (sign flips), "t", a bootstrap, or the result
            of one by ranks. Where too few differ for a bootstrap, it is by sign flips.
        method: of the interval: "gaffke", "t", "normal" or a bootstrap; of a `test` also "sign flips".
        confidence: how often such intervals hold the mean.
        bounds: the least and the greatest value of a unit, None if unknown; then "gaffke" is t.
        noun: what a unit is called.
        n_resamples: of a bootstrap.
        rng: of a bootstrap.
        drawn: the resamples of a bootstrap, if they were drawn already.
        spent: the degrees of freedom that adjustments have taken; adjusted values are tested by t, not flips.
        n_differing: how many units differ, if not all with a value that is not 0.
    """
    check_choice("interval method", method, METHODS if test is None else (*METHODS, FLIPS))
    sample = of if isinstance(of, Sample) else Sample.row(of)

    def draw() -> Replicates | None:
        if drawn is not None or isinstance(of, Sample) or not {method, str(test)} & set(BOOTSTRAPS):
            return drawn
        return replicate(of, Resampler(of.keys, n_resamples, seed_from_rng(rng)))

    if test is None and c is None:
        return _where(sample, method, confidence=confidence, bounds=bounds, noun=noun, draw=draw)
    if test is None and bounds is not None and alternative != "two-sided":
        found = bounded_mean_test(
            sample, c or 0.0, bounds, alternative, confidence=confidence, n_differing=n_differing
        )
        if found is not None:
            return found
    options: dict[str, Any] = {"confidence": confidence, "bounds": bounds, "spent": spent, "draw": draw}
    options["method"] = "t" if test is None else method
    return _among_seen(sample, c or 0.0, test or "t", alternative, **options)


def _where(
    sample: Sample,
    method: str,
    *,
    confidence: float,
    bounds: Bounds | None,
    noun: str,
    draw: Callable[[], Replicates | None],
) -> Inference:
    """The interval of the mean, and notes on what it cannot know."""
    n, value = sample.n, sample.mean
    if n == 0:
        raise InputError("there is nothing to estimate: every case is excluded (NaN).")
    error, df = (sample.error, sample.df) if method in ("gaffke", "t") else (sample.plain_error, math.inf)
    n_rare = sample.n_rare
    thin, uneven, heavy = _thin_facts(sample, n_rare, noun)
    notes: tuple[Note, ...] = ()
    if n < 3:
        notes += (caution(SmallSampleWarning, "few_units", n=n, noun=noun, so="little"),)
    is_known = bounds is not None and all(map(math.isfinite, bounds))
    is_asked = method == "gaffke" or uneven or heavy
    if bounds is not None and (n_rare is not None or (is_asked and is_known)):
        interval = mean_bounds(sample, *bounds, confidence)
        if sample.weights is None and sample.is_binary and bounds == (0.0, 1.0):
            interval = replace(interval, method="Clopper-Pearson")
        ends = {"lower": interval.low, "upper": interval.high}
        lost = [name for name, end in ends.items() if math.isinf(end)]
        notes += (note(thin[0], **thin[1], so=lost),) if thin else ()
        return Inference(Estimate(value, error, interval, n, notes), interval.method)
    if method == "gaffke":
        method = "t"
    if n >= 3 and error == 0:
        interval = Interval(-math.inf, math.inf, confidence, method)
        notes += (caution(ZeroVarianceWarning, "no_spread"),)
        return Inference(Estimate(value, error, interval, n, notes), method)
    if thin and n >= 3 and n_rare is not None:
        notes += (caution(SmallSampleWarning, thin[0], **thin[1], so="too_narrow"),)
    elif thin and uneven:
        notes += (note(thin[0], **thin[1], so="rough"),)
    elif thin and heavy:
        notes += (caution(SkewWarning, thin[0], **thin[1], so="too_narrow"),)
    interval = t_interval(value, error, df, confidence)
    if (replicates := draw()) is not None:
        interval = replicates.interval(method, confidence)
    return Inference(Estimate(value, error, interval, n, notes), interval.method, df=df)


def _thin_facts(
    sample: Sample, n_rare: int | None, noun: str
) -> tuple[tuple[str, dict[str, Any]] | None, bool, bool]:
    """The note where few units decide; whether few weigh nearly all, whether few deviate most."""
    thin: tuple[str, dict[str, Any]] | None = None
    n, uneven, n_heavy = sample.n, False, math.inf
    if sample.weights is not None:
        squares = sample.weights**2
        # So many units of equal weight would have a spread that is as uncertain.
        n_heavy = float((sample.times * squares).sum() ** 2 / (sample.times * squares**2).sum())
        uneven = n_heavy < min(FEW, n / 2)
    share, effective, is_heavy = sample.tails
    if n_rare is not None:
        thin = "rare_values", {"n_differing": n_rare, "n": n, "noun": noun}
    elif uneven:
        thin = "uneven_weights", {"n_heavy": n_heavy, "noun": noun}
    elif is_heavy:
        facts = {"share": share, "effective": effective, "n": sample.n_not_zero, "noun": "value"}
        thin = "heavy_tails", facts
    return thin, uneven, is_heavy


def bounded_mean_test(
    sample: Sample,
    c: float,
    bounds: tuple[float, float],
    alternative: Literal["greater", "less"],
    *,
    confidence: float = 0.95,
    n_differing: int | None = None,
) -> Inference | None:
    """One-sided test of a mean against `c` that allows for differences that were not seen: Gaffke's bound.

    None where the end of their range is not known and enough units differ for t. Few differences without an
    end to their range show nothing: p is NaN.

    Args:
        sample: the differences.
        c: the mean that is tested.
        bounds: the least and the greatest difference; infinite if it is not known.
        alternative: whether the mean is greater or less than `c`.
        confidence: of the bound.
        n_differing: how many units differ, if not all with a difference that is not 0.
    """
    notes: tuple[Note, ...] = ()
    n, mean = sample.n, sample.mean
    differing, n_uncommon = sample.differing
    differing = differing if n_differing is None else n_differing
    few = min(differing, n_uncommon) < FEW
    if math.isinf(bounds[0] if alternative == "greater" else bounds[1]):
        if not few or 2 * min(differing, n_uncommon) > n:
            return None
        nothing = Interval(-math.inf, math.inf, confidence, METHOD)
        notes = (note("differing", n_differing=differing, n=n, so="range_unknown"),)
        return Inference(Estimate(mean, math.nan, nothing, n, notes), METHOD, alternative=alternative)
    p = mean_p(sample, c, *bounds, alternative)
    interval = mean_bounds(sample, *bounds, confidence, alternative=alternative)
    if few:
        notes = (note("differing", n_differing=differing, n=n, so="bound_allows"),)
        if p > 1.0 - confidence:
            needed = units_needed(sample, c, *bounds, alternative, alpha=1.0 - confidence)
            notes = (note("few_differ", n_differing=differing, n=n, needed=needed),)
    return Inference(Estimate(mean, math.nan, interval, n, notes), METHOD, p, alternative=alternative)


def _among_seen(
    sample: Sample,
    c: float,
    test: str | TestResult,
    alternative: Alternative,
    *,
    method: str,
    confidence: float,
    bounds: Bounds | None,
    spent: int | None,
    draw: Callable[[], Replicates | None],
) -> Inference:
    """The test of the mean of the units seen, which is of 0 but for t, and the interval that goes with it."""
    flips, df, error = SignFlips(sample), sample.df - (spent or 0), sample.error
    t, is_resampled = t_ratio(sample.mean - c, error), test in BOOTSTRAPS or method in BOOTSTRAPS
    is_sparse = is_resampled and sample.few_are_not_zero(BOOTSTRAP_FROM)
    drawn = None if is_sparse else draw()

    def at(level: float) -> Interval:
        if is_sparse or (method == FLIPS and spent is None):
            return _flips_interval(flips, level, alternative, bounds)
        if drawn is not None and method in BOOTSTRAPS:
            return drawn.interval(method, level)
        found = t_interval(sample.mean, error, math.inf if method == "normal" else df, level, alternative)
        return replace(found, method="t" if method == FLIPS else method)

    is_by_t = test == "t" or (test == "permutation" and spent is not None)
    if isinstance(test, TestResult):
        label, t, p, notes = test.method, test.statistic, test.p_value, test.notes
    elif drawn is not None and test in BOOTSTRAPS:
        label = f"{test} bootstrap ({drawn.deviations.shape[1]} {drawn.scheme} draws)"
        p, notes = float(drawn.p_values(test, alternative)[0]), spread_notes(sample) + tail_notes(sample)
    else:
        label, p = (
            ("paired t", t_tail(t, df, alternative)) if is_by_t else (FLIPS, flips.p_value(alternative))
        )
        # Where few differ, the interval allows for values that were not seen.
        is_open = sample.few_decide and bounds is not None and not is_by_t
        skewed = () if is_open else skew_notes(sample, alternative)
        notes = spread_notes(sample) + (skewed or tail_notes(sample))
    if is_sparse:
        few = {"n_differing": sample.n_not_zero, "n": sample.n}
        notes += (caution(SmallSampleWarning, "too_sparse", **few),)
    estimate = Estimate(sample.mean, error, at(confidence), sample.n, notes)
    return Inference(estimate, label, p, t, df, alternative, at)


def _flips_interval(
    flips: SignFlips, level: float, alternative: Alternative, bounds: Bounds | None
) -> Interval:
    """The means that flips do not reject, and those that units not seen allow for, but 0 if rejected.

    Where few units differ, flips alone would miss the mean far too often: they take all ties for equal.
    """
    if bounds is None:
        return flips.interval(level, alternative)
    interval = flips.interval(level, alternative, bounds[1])
    allowed = mean_bounds(flips.sample, *bounds, level, alternative=alternative)
    low = interval.low if interval.low > 0.0 else min(interval.low, allowed.low)
    high = interval.high if interval.high < 0.0 else max(interval.high, allowed.high)
    return replace(interval, low=low, high=high)


def infer_difference(first: Sample, second: Sample, *, confidence: float = 0.95) -> Inference:
    """Test of the difference of two independent means, by Welch's t.

    The degrees of freedom are 1 / (v^2 / (n - 1) + w^2 / (m - 1)), where v and w are the shares of the means
    of n and m units in the variance of their difference (Welch 1947).
    """
    sides = first, second
    difference, error, df = first.mean - second.mean, math.hypot(first.error, second.error), 0.0
    if error > 0 and min(side.n for side in sides) > 1:
        df = 1.0 / sum((side.error / error) ** 4 / (side.n - 1) for side in sides)
    t = t_ratio(difference, error)
    estimate = Estimate(difference, error, t_interval(difference, error, df, confidence), first.n + second.n)
    return Inference(estimate, "Welch's t", t_tail(t, df), t, df)


def spread_notes(sample: Sample, noun: str = "difference") -> tuple[Note, ...]:
    """Cautions common to all tests: too few units, or no spread at all, so that t is not defined."""
    notes: tuple[Note, ...] = ()
    n = sample.n
    if n < 3:
        notes += (caution(SmallSampleWarning, "few_units", n=n, noun="unit", so="no_test"),)
    if n > 1 and not sample.varies:
        p = zero_spread_p(n - 1) if noun == "difference" and sample.n_not_zero else None
        notes += (caution(ZeroVarianceWarning, "equal_values", noun=noun, p=p),)
    return notes


def skew_notes(sample: Sample, alternative: Alternative = "two-sided") -> tuple[Note, ...]:
    """Warn when skewness moves an error rate by more than a tenth of 5 %, by the first Edgeworth term."""
    if sample.n < FEW or not sample.varies:
        return ()
    total, cubes, _, sixths = sample.powers
    cubes = abs(cubes)
    scaled_skewness = cubes / total**1.5  # skewness over the root of n
    # One-sided, the shift is linear; two-sided, the tails cancel to first order and the square is left.
    shift = 0.11 * scaled_skewness if alternative != "two-sided" else 0.2 * scaled_skewness**2
    # Ignore skewness that a few large values produce by chance.
    if shift >= 0.005 and cubes >= 2.0 * math.sqrt(sixths):
        n, differing = sample.n, sample.n_not_zero
        too_few = differing < BOOTSTRAP_FROM and 2 * differing <= n
        return (caution(SkewWarning, "skewed", n_differing=differing, n=n, too_few=too_few),)
    return ()


def tail_notes(sample: Sample) -> tuple[Note, ...]:
    """Warn if a few units make up the spread of the differences: no test of the mean is sure to hold then."""
    share, effective, is_heavy = sample.tails
    if not is_heavy:
        return ()
    facts = {"share": share, "effective": effective, "n": sample.n_not_zero, "noun": "difference"}
    return (caution(SkewWarning, "heavy_tails", **facts, so="tests"),)
