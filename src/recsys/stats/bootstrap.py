"""Resampling: the units that are resampled, their weights and signs, and the bootstrap of many estimates.

A unit is a cluster (a user with several cases) or a single case. An estimate is always a ratio of two sums
over units, which covers means with excluded cases, weighted means, clustered means and ratio metrics.

One matrix of weights or signs is shared by every metric and model, so comparisons stay paired. Draws are
counter-based and keyed by (seed, purpose, unit id), so neither the order of rows nor their split into shards
or blocks changes them. The matrix never exists as a whole: blocks within a memory budget are generated and
multiplied at once. (The multinomial scheme needs all units together, sorted.)

The ends of a studentised interval are the estimate minus its error times the quantiles of the resampled
deviations in their own errors. Those of a BCa interval (Efron 1987) are quantiles of the resampled estimates
at the levels

    Phi(b + (b + z) / (1 - a (b + z))) where a = sum r^3 / (6 (sum r^2)^1.5)

over the residuals r of the units; z is the normal quantile of the tail, and b that of the share of resamples
below the estimate.
"""

from __future__ import annotations

import hashlib
import math
import operator
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from typing import Literal

import numpy as np
import numpy.typing as npt

from recsys.errors import InputError, UnknownNameError, check_choice
from recsys.kernels.keyed_random import GOLDEN_RATIO
from recsys.kernels.keyed_random import unit_keys as unit_keys  # noqa: PLC0414 - a name of this module too
from recsys.records.arrays import Array, Bool, Float, Int, cached_property
from recsys.records.checks import is_whole
from recsys.stats.results import Alternative, Interval, check_alternative, check_confidence, zero_spread_p

Words = npt.NDArray[np.uint64]
Scheme = Literal["auto", "poisson", "multinomial"]
Rng = int | np.random.Generator
Progress = Callable[[int, int], None]
_ROUNDS = ((np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)), (np.uint64(27), np.uint64(0x94D049BB133111EB)))
_PANEL = 8192
_STRIP = 256
_BUDGET = 64 << 20
_MOST_RESAMPLES = 100_000_000
_BATCH_BYTES = 1 << 30
# With fewer units a Poisson total varies too much around n for small-sample methods.
POISSON_FROM = 1000
# Where 10, 20, 30, 40 or 60 of 1,000 users have a difference, in a graded metric and as often up as down,
# bootstraps at 5 % reject in 15, 11, 9, 7 and 6.5 % of the samples, the t-test and sign flips in 5.
BOOTSTRAP_FROM = 60


def _scramble(words: Words) -> Words:
    """SplitMix64's finaliser, in place: a bijection that turns counters into independent-looking words."""
    scratch = np.empty_like(words)
    for shift, factor in _ROUNDS:
        np.right_shift(words, shift, out=scratch)
        np.bitwise_xor(words, scratch, out=words)
        np.multiply(words, factor, out=words)
    np.right_shift(words, np.uint64(31), out=scratch)
    np.bitwise_xor(words, scratch, out=words)
    return words


def _digest(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def groups_of(ids: Array, n_groups: int = 64) -> npt.NDArray[np.int64]:
    """The jackknife group of each id, from its key alone, so that exposures of shards add up."""
    return ((unit_keys(ids) >> np.uint64(32)) % np.uint64(n_groups)).astype(np.int64)


def seed_from_rng(rng: Rng) -> int:
    """The seed of an `rng` argument; a Generator advances by one draw."""
    if isinstance(rng, np.random.Generator):
        return int(rng.integers(0, 2**63))
    try:
        return operator.index(rng)
    except TypeError:
        raise InputError(
            f"rng must be an int or a numpy Generator, got {type(rng).__name__}.", hint="Try rng=0."
        ) from None


def check_resamples(n_resamples: int) -> None:
    """Refuse a number of resamples that is not a whole number of at least 1."""
    if not is_whole(n_resamples, 1) or n_resamples > _MOST_RESAMPLES:
        raise InputError(
            f"n_resamples must be a whole number from 1 to {_MOST_RESAMPLES:,}, got {n_resamples!r}."
        )


def random_order(ids: Array, rng: Rng, *, purpose: str = "order") -> npt.NDArray[np.int64]:
    """A random order of the ids that does not depend on their present order."""
    words = _scramble(unit_keys(ids) + np.uint64(_digest(f"{seed_from_rng(rng)}:{purpose}")))
    return np.argsort(words, kind="stable")


@dataclass(frozen=True, eq=False)
class Units:
    """One column per unit, one row per estimate: sum of totals / sum of weights is the estimate.

    What is known about one of the estimates is its sample (see `Sample.row`).
    """

    keys: Words
    totals: Float
    weights: Float

    def estimates(self) -> Float:
        with np.errstate(invalid="ignore", divide="ignore"):
            ratio: Float = self.totals.sum(axis=1) / self.weights.sum(axis=1)
        return ratio

    @cached_property
    def residuals(self) -> Float:
        """The influence of each unit on the estimate, before scaling; sums to zero."""
        residuals: Float = self.totals - self.estimates()[:, None] * self.weights
        # Residuals that are rounding only count as zero.
        largest = np.abs(self.totals).max(axis=1, initial=0.0)
        residuals[np.abs(residuals).max(axis=1, initial=0.0) <= 1e-12 * largest] = 0.0
        return residuals

    @cached_property
    def n_units(self) -> Int:
        return np.asarray((self.weights != 0).sum(axis=1), dtype=np.int64)

    def standard_errors(self) -> Float:
        """Cluster-robust; the textbook s / sqrt(n) when every unit is one case."""
        n = self.n_units
        with np.errstate(invalid="ignore", divide="ignore"):
            spread = np.sqrt((self.residuals**2).sum(axis=1) * n / (n - 1.0))
            errors: Float = spread / np.abs(self.weights.sum(axis=1))
        return errors

    def means(self, row: int = 0) -> Float:
        """The mean of each unit that is present in this row."""
        present = self.weights[row] != 0
        means: Float = self.totals[row, present] / self.weights[row, present]
        return means


def influences(residuals: Float, weights: Float, total: float, n: int) -> tuple[Float, float]:
    """How far each unit moves an estimate, and the factor from the sum of their squares to its variance.

    `residuals` are total - estimate * weight of each unit. A unit that weighs much pulls the estimate towards
    itself, which hides its distance: where weights w differ and W is their sum, the influences are those of
    leaving out the unit (the jackknife), r / (W - w) and the factor (n - 1) / n; else r / W and n / (n - 1).
    """
    present = weights[weights != 0]
    if n < 2 or np.ptp(present) == 0:
        return residuals / total, n / (n - 1.0) if n > 1 else math.nan
    return residuals / np.maximum(total - weights, 1e-12 * total), (n - 1.0) / n


def collapse(
    values: Float, clusters: Array | None = None, *, keys: Words, weights: Float | None = None
) -> Units:
    """Units from cases (rows x cases; NaN: not in the mean of that row); `keys` are those of the cases."""
    present = ~np.isnan(values)
    if np.isinf(values).any():
        raise InputError("values must be finite or NaN (excluded), got an infinite one.")
    share = present.astype(np.float64) if weights is None else present * weights
    totals = np.where(present, values, 0.0) * share
    if clusters is None:
        return Units(keys, totals, share)
    labels, codes = np.unique(np.asarray(clusters), return_inverse=True)
    n = len(labels)

    def summed(rows: Float) -> Float:
        return np.stack([np.bincount(codes, weights=row, minlength=n) for row in rows])

    sums = summed(totals)
    # Cases of a unit that cancel exactly must not leave a rounding error that looks like a difference.
    sums[np.abs(sums) <= 1e-12 * summed(np.abs(totals))] = 0.0
    return Units(unit_keys(labels), sums, summed(share))


@dataclass(frozen=True, eq=False)
class Resampler:
    """How the units are resampled; the same object applies the same draws to every column."""

    keys: Words
    n_resamples: int = 10_000
    seed: int = 0
    scheme: Scheme = "auto"
    budget: int = _BUDGET
    progress: Progress | None = None

    def __post_init__(self) -> None:
        check_choice("resampling scheme", self.scheme, ("auto", "poisson", "multinomial"))
        check_resamples(self.n_resamples)

    @property
    def resolved_scheme(self) -> str:
        if self.scheme != "auto":
            return self.scheme
        return "poisson" if len(self.keys) >= POISSON_FROM else "multinomial"

    def weighted(self, columns: Float) -> Float:
        """The sum of weight times value for each column and resample, from columns x units."""
        if self.resolved_scheme == "multinomial":
            return self._products(columns, self._multinomial_blocks())
        # Poisson(1) for a 16-bit uniform, rounded so that mean 1 and variance 1 are exact.
        table = np.repeat(np.arange(9.0), [24103, 24124, 12046, 4018, 1005, 201, 33, 5, 1])

        def decode(words: Words, out: Float) -> None:
            np.take(table, words.view("<u2"), out=out, mode="clip")

        return self._products(columns, self._panels(4, decode))

    def flipped(self, columns: Float) -> Float:
        """The sum of the values under random signs for each column and resample, from columns x units."""

        def decode(words: Words, out: Float) -> None:
            out[...] = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little")

        total: Float = columns.sum(axis=1)[:, None]
        return total - 2.0 * self._products(columns, self._panels(64, decode))

    def _products(self, columns: Float, blocks: Iterator[tuple[slice, slice, Float]]) -> Float:
        sums = np.zeros((self.n_resamples, columns.shape[0]))
        for units, resamples, block in blocks:
            # In this order BLAS packs the narrow side; the other order takes twice as long for few columns.
            sums[resamples] += block.T @ np.ascontiguousarray(columns[:, units].T)
            if self.progress is not None and units.stop >= len(self.keys):
                self.progress(resamples.stop, self.n_resamples)
        return np.ascontiguousarray(sums.T)

    def _panels(
        self, per_word: int, decode: Callable[[Words, Float], None]
    ) -> Iterator[tuple[slice, slice, Float]]:
        """Blocks of weights (units x resamples); every word holds `per_word` weights.

        Words are generated and decoded in strips that fit a cache, but multiplied in large panels: each
        product wakes the BLAS threads once, which is the main cost on a busy machine.
        """
        n = len(self.keys)
        height = min(n, _PANEL)
        width = max(64, min(self.n_resamples + 63, self.budget // (8 * height)) // 64 * 64)
        keys = _scramble(self.keys + np.uint64(_digest(f"{self.seed}:resample:{per_word}")))
        panel = np.empty((height, width))
        for start in range(0, self.n_resamples, width):
            stop = min(start + width, self.n_resamples)
            first, last = start // per_word, (start + width) // per_word
            counters = np.arange(first, last, dtype=np.uint64) * GOLDEN_RATIO
            for top in range(0, n, height):
                bottom = min(top + height, n)
                for row in range(top, bottom, _STRIP):
                    strip = slice(row, min(row + _STRIP, bottom))
                    words = _scramble(keys[strip, None] + counters).astype("<u8", copy=False)
                    decode(words, panel[row - top : strip.stop - top])
                yield slice(top, bottom), slice(start, stop), panel[: bottom - top, : stop - start]

    def _multinomial_blocks(self) -> Iterator[tuple[slice, slice, Float]]:
        n = len(self.keys)
        width = max(1, min(self.n_resamples, self.budget // (32 * max(n, 1))))
        order = np.argsort(self.keys, kind="stable")
        position_of_unit = np.empty(n, dtype=np.int64)
        position_of_unit[order] = np.arange(n)
        # One stream per resample would cost more than its draws; one stream advanced in order gives the
        # same draws for every block width.
        stream = np.random.Generator(np.random.Philox(key=_digest(f"{self.seed}:multinomial")))
        for start in range(0, self.n_resamples, width):
            n_rows = min(width, self.n_resamples - start)
            draws = stream.integers(0, n, size=(n_rows, n)) + np.arange(n_rows)[:, None] * n
            counts = np.bincount(draws.ravel(), minlength=n_rows * n).reshape(n_rows, n)
            yield slice(0, n), slice(start, start + n_rows), counts[:, position_of_unit].T.astype(np.float64)


def bernoulli_signs(n: int) -> Iterator[Float]:
    """Every assignment of signs to n units, in blocks of rows, as 0/1 bits (1 = flipped)."""
    total = 1 << n
    for start in range(0, total, 1 << 12):
        codes = np.arange(start, min(start + (1 << 12), total), dtype=np.int64)
        yield ((codes[:, None] >> np.arange(n)) & 1).astype(np.float64)


@dataclass(frozen=True, eq=False)
class Replicates:
    """Per estimate (row): value, standard error, acceleration; deviations and errors of its resamples."""

    estimates: Float
    standard_errors: Float
    accelerations: Float
    deviations: Float
    errors: Float
    n_units: Int
    scheme: str

    def row(self, at: int) -> Replicates:
        """One of the estimates alone."""
        parts = {f.name: getattr(self, f.name)[at : at + 1] for f in fields(self) if f.name != "scheme"}
        return Replicates(**parts, scheme=self.scheme)

    def observed_t(self) -> Float:
        """Each estimate over its standard error."""
        with np.errstate(divide="ignore", invalid="ignore"):
            t: Float = self.estimates / self.standard_errors
        return t

    def t_values(self) -> Float:
        """Studentised deviations; infinite for a resample without spread, unless its deviation is 0."""
        with np.errstate(divide="ignore", invalid="ignore"):
            t = self.deviations / self.errors
        return np.where(np.isnan(t), 0.0, t)

    def limits(self, method: str, confidence: float) -> Float:
        """Rows x (low, high); infinite for one unit alone, and for few units without spread."""
        check_confidence(confidence)
        tail = (1.0 - confidence) / 2.0
        values = self.estimates[:, None]
        if method == "percentile":
            limits = values + np.quantile(self.deviations, [tail, 1 - tail], axis=1).T
        elif method == "studentised":
            # Order statistics, not interpolation: a resample without spread has an infinite t.
            t = self.t_values()
            high = np.quantile(t, 1 - tail, axis=1, method="higher")
            low = np.quantile(t, tail, axis=1, method="lower")
            limits = values - np.stack([high, low], axis=1) * self.standard_errors[:, None]
        elif method == "bca":
            rows = zip(self.deviations, self.accelerations, strict=True)
            limits = values + np.array([bca_limits(d, 0.0, a, confidence) for d, a in rows])
        else:
            raise UnknownNameError("bootstrap interval", method, ("percentile", "studentised", "bca"))
        unbounded = (self.n_units < 2) | (self._no_spread & (self._sign_flip_p > 1.0 - confidence))
        return np.where(unbounded[:, None], [[-np.inf, np.inf]], limits)

    def interval(self, method: str, confidence: float) -> Interval:
        """The interval of the first row."""
        low, high = self.limits(method, confidence)[0].tolist()
        return Interval(low, high, confidence, method)

    @property
    def _no_spread(self) -> Bool:
        """Rows without any spread, in which all resamples are equal."""
        return np.asarray(self.standard_errors == 0)

    @property
    def _sign_flip_p(self) -> Float:
        """The two-sided p-value of each row from sign flips alone, as if it had no spread."""
        return np.array([zero_spread_p(n - 1) for n in self.n_units.tolist()])

    def p_values(self, method: str, alternative: Alternative = "two-sided") -> Float:
        """Test the hypothesis that the estimate is zero, by inverting the interval of the same name."""
        check_alternative(alternative)
        t = self.observed_t()
        if method == "studentised":
            replicates = self.t_values()
            upper = _resampled_p(replicates >= t[:, None])
            lower = _resampled_p(replicates <= t[:, None])
        elif method == "bca":
            upper = _bca_levels(self.deviations, self.estimates, self.accelerations)
            lower = 1.0 - upper
        else:
            raise UnknownNameError("bootstrap test", method, ("studentised", "bca"))
        p = {"greater": upper, "less": lower}.get(
            alternative, np.minimum(1.0, 2.0 * np.minimum(upper, lower))
        )
        in_direction = {"greater": t > 0, "less": t < 0}.get(alternative)
        flip_p = (
            self._sign_flip_p
            if in_direction is None
            else np.where(in_direction, self._sign_flip_p / 2.0, 1.0)
        )
        return np.where(np.isnan(t), np.nan, np.where(self._no_spread, np.maximum(flip_p, p), p))


def _resampled_p(exceeds: Bool) -> Float:
    share: Float = (1.0 + exceeds.sum(axis=1)) / (1.0 + exceeds.shape[1])
    return share


def bca_limits(
    replicates: Float, estimate: float, acceleration: float, confidence: float
) -> tuple[float, float]:
    """Bias-corrected and accelerated limits from the replicates of one estimate."""
    from scipy.special import ndtr, ndtri

    tail = (1.0 - confidence) / 2.0
    below = (np.count_nonzero(replicates < estimate) + np.count_nonzero(replicates <= estimate)) / 2.0
    bias = float(ndtri(np.clip(below, 0.5, len(replicates) - 0.5) / len(replicates)))
    shifted = bias + ndtri(np.array([tail, 1.0 - tail]))
    levels = ndtr(bias + shifted / (1.0 - acceleration * shifted))
    low, high = np.quantile(replicates, levels)
    return float(low), float(high)


def _bca_levels(deviations: Float, estimates: Float, accelerations: Float) -> Float:
    """The one-sided confidence level whose BCa limit touches zero: the p-value against larger values."""
    from scipy.special import ndtr, ndtri

    n = deviations.shape[1]
    zero = -estimates[:, None]

    def clipped(count: Float) -> Float:
        share: Float = np.clip(count, 1.0, n) / (n + 1.0)
        return share

    below = ((deviations < 0).sum(axis=1) + (deviations <= 0).sum(axis=1)) / 2.0
    at_zero = ((deviations < zero).sum(axis=1) + (deviations <= zero).sum(axis=1)) / 2.0
    bias = ndtri(clipped(below))
    shifted = ndtri(clipped(at_zero)) - bias
    level = ndtr(shifted / (1.0 + accelerations * shifted) - bias)
    # n resamples cannot give a smaller p-value than this.
    bounded: Float = np.clip(level, 1.0 / (n + 1.0), n / (n + 1.0))
    return bounded


def replicate(units: Units, resampler: Resampler) -> Replicates:
    """Bootstrap all rows of `units` with the same resampling weights."""
    residuals = units.residuals
    n = units.n_units
    square = (residuals**2).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        acceleration = (residuals**3).sum(axis=1) / (6.0 * square**1.5)
    # Rows in batches: repeating the draws for each batch costs less than the memory for all rows.
    batch = max(1, _BATCH_BYTES // (32 * max(1, residuals.shape[1])))
    sums = (
        weighted_sums(residuals[at : at + batch], units.weights[at : at + batch], resampler)
        for at in range(0, len(residuals), batch)
    )
    return replicates_from(
        sums,
        units.estimates(),
        units.standard_errors(),
        acceleration,
        n_units=n,
        scheme=resampler.resolved_scheme,
    )


def replicates_from(
    sums: Iterable[list[Float]],
    estimates: Float,
    standard_errors: Float,
    accelerations: Float,
    *,
    n_units: Int,
    scheme: str,
) -> Replicates:
    """The replicates of all rows, from the `weighted_sums` of one batch of rows after the other."""
    parts = [_deviations_and_errors(*batch) for batch in sums]
    deviations, errors = (np.concatenate(part) for part in zip(*parts, strict=True))
    with np.errstate(divide="ignore", invalid="ignore"):
        errors *= np.sqrt(n_units / (n_units - 1.0))[:, None]
    accelerations = np.where(np.isfinite(accelerations), accelerations, 0.0)
    return Replicates(estimates, standard_errors, accelerations, deviations, errors, n_units, scheme)


def weighted_sums(residuals: Float, weights: Float, resampler: Resampler) -> list[Float]:
    """The sums of residuals, of their squares and of weights, per row and resample.

    Unless all weights are 0 or 1, also those of squared weights and of residuals times weights. With Poisson
    weights, the sums of different units add up.
    """
    m = len(residuals)
    # Most rows have the same weights: each distinct row is resampled once.
    seen: dict[bytes, int] = {}
    row_of = np.array([seen.setdefault(row.tobytes(), len(seen)) for row in weights], dtype=np.int64)
    distinct = weights[[int(np.flatnonzero(row_of == j)[0]) for j in range(len(seen))]]
    indicator = bool(np.isin(distinct, (0.0, 1.0)).all())
    parts = [residuals, residuals**2, distinct]
    if not indicator:
        parts += [distinct**2, residuals * weights]
    sums = resampler.weighted(np.concatenate(parts))
    found = [sums[:m], sums[m : 2 * m], sums[2 * m : 2 * m + len(distinct)][row_of]]
    if not indicator:
        of_weights = sums[2 * m + len(distinct) :]
        found += [of_weights[: len(distinct)][row_of], of_weights[len(distinct) :]]
    return found


def _deviations_and_errors(
    sums_of_residuals: Float, sums_of_squares: Float, total: Float, *of_weights: Float
) -> tuple[Float, Float]:
    """Deviation of the ratio and root of its linearised variance, per row and resample."""
    with np.errstate(divide="ignore", invalid="ignore"):
        deviation = sums_of_residuals / total
        if not of_weights:
            variance = sums_of_squares - sums_of_residuals * deviation
        else:
            squared_weights, products = of_weights
            variance = sums_of_squares - 2.0 * deviation * products + deviation**2 * squared_weights
        # A variance that is rounding only must count as zero.
        variance = np.where(variance <= 1e-13 * sums_of_squares, 0.0, variance)
        error = np.sqrt(variance) / np.abs(total)
    return np.where(np.isfinite(deviation), deviation, 0.0), np.where(np.isfinite(error), error, 0.0)


def has_spread(values: Float) -> bool:
    """Whether values vary by more than rounding (0.3 - 0.1 and 0.8 - 0.6 differ in the last bit)."""
    largest = float(np.abs(values).max(initial=0.0))
    return len(values) > 1 and float(np.ptp(values)) > 1e-12 * largest
