"""Looking while it runs: confidence sequences, always-valid p-values, boundaries.

A confidence sequence holds at every time at once. Its estimand is the mean of the units at large, of which
those seen are a random sample; or that of a finite set whose units come in random order without replacement,
which is known exactly after the last of them. It is the betting method (Waudby-Smith and Ramdas), which holds
for any number of units and needs the range of the values: where a value may be of any size, a single unit
that was not seen yet can move the mean anywhere, and nothing holds at all times. The error rate is divided
among everything that is watched. NaN is a case that turned out not to be in the mean: it has no weight, and
no bet is placed on it. A mean m is ruled out once the capital of a bet has exceeded 2 / alpha, the product of

    1 + stake (x - m)

over the values so far, each with a stake that only knows those before it, or that of a bet on
1 - x and 1 - m.

For an online experiment the mSPRT allows looks at any time; a boundary spends the error rate over the planned
looks (Lan and DeMets 1983) and needs fewer units. Both rest on the normal approximation of the estimate. The
mSPRT of a difference d of variance v, mixed over normal effects of variance t, has the p-value

    sqrt((v + t) / v) exp(-t d^2 / (2 v (v + t)))

or 1 if that is more (Johari, Koomen, Pekelis and Walsh 2017).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from recsys.errors import InputError, check_choice
from recsys.records.arrays import Float
from recsys.records.checks import is_number, to_floats
from recsys.stats.results import Interval, check_alpha, check_confidence

# A bet may lose at most this share of the capital; balances tight intervals early against late.
_STAKE = 0.5
# Precision of an end of the interval, relative to its width; rounded outwards.
_PRECISION = 2.0**-10
_GRID = 801
Bounds = tuple[float, float]


class ConfidenceSequence:
    """The mean of values seen block by block in random order: of units at large, or of `n_total` in all.

    `bounds` are the least and the greatest value there can be, known before the first is seen.
    """

    def __init__(self, n_total: float = math.inf, *, bounds: Bounds, alpha: float = 0.05) -> None:
        if not (is_number(n_total) and n_total >= 1):
            raise InputError(f"the test set must have at least one unit, got n_total={n_total!r}.")
        check_alpha(alpha)
        given: Any = bounds
        ends = np.empty(0) if given is None else to_floats(given, "bounds")
        if not (ends.shape == (2,) and np.isfinite(ends).all() and ends[0] < ends[1]):
            raise InputError(
                f"bounds must be two finite numbers, the lower first, got {bounds!r}.",
                hint="Without bounds, values not seen yet can move the mean anywhere: nothing holds at all "
                "times.",
            )
        self.n_total = n_total
        self.bounds = bounds
        self.alpha = alpha
        self._seen: Float = np.empty(0)
        self._weights: Float = np.empty(0)
        self._low, self._high = bounds

    @property
    def n_seen(self) -> int:
        return len(self._seen)

    @property
    def mean(self) -> float:
        total = float(self._weights.sum())
        return float(self._seen @ self._weights) / total if total else math.nan

    @property
    def interval(self) -> Interval:
        return Interval(self._low, self._high, 1.0 - self.alpha, "confidence sequence (betting)")

    def update(self, values: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> Interval:
        """Add the next block of values; the interval only shrinks. `weights` lie between 0 and 1."""
        block = to_floats(values, "values").ravel()
        block_weights = np.ones(len(block)) if weights is None else to_floats(weights, "weights").ravel()
        if block_weights.shape != block.shape or not ((block_weights >= 0) & (block_weights <= 1)).all():
            raise InputError("weights must be numbers from 0 to 1, one per value.")
        is_missing = np.isnan(block)
        present = block[~is_missing]
        if np.isinf(present).any():
            raise InputError("a confidence sequence needs finite values, or NaN for an excluded case.")
        if len(present):
            slack = 1e-9 * (self.bounds[1] - self.bounds[0])
            if present.min() < self.bounds[0] - slack or present.max() > self.bounds[1] + slack:
                raise InputError(
                    f"a value lies outside the bounds {self.bounds}: {present.min()} to {present.max()}."
                )
        if self.n_seen + len(block) > self.n_total:
            raise InputError(f"more values ({self.n_seen + len(block)}) than n_total ({self.n_total}).")
        self._seen = np.concatenate([self._seen, np.where(is_missing, 0.0, block)])
        self._weights = np.concatenate([self._weights, np.where(is_missing, 0.0, block_weights)])
        low, high = self._limits()
        shrunk = max(self._low, low), min(self._high, high)
        # Contradictory limits mean an earlier one was wrong; the newest uses most data.
        self._low, self._high = shrunk if shrunk[0] <= shrunk[1] else (low, high)
        return self.interval

    def _limits(self) -> Bounds:
        if math.isnan(self.mean):
            return -math.inf, math.inf
        if self.n_seen == self.n_total:
            # The mean is known up to rounding, which must not count as a difference.
            slack = 1e-12 * float(np.abs(self._seen).max())
            return self.mean - slack, self.mean + slack
        low, high = self.bounds
        width = high - low
        unit_limits = ((self._low - low) / width, (self._high - low) / width)
        unit_values = (self._seen - low) / width
        limits = betting_limits(unit_values, self.n_total, self.alpha, unit_limits, weights=self._weights)
        return low + width * limits[0], low + width * limits[1]


def betting_limits(
    seen: Float, n_total: float, alpha: float, start: Bounds = (0.0, 1.0), *, weights: Float | None = None
) -> Bounds:
    """Interval for the mean of n_total numbers in [0, 1], or of endlessly many, from the first at random.

    A number x of weight w counts as w x + (1 - w) m for a candidate mean m: the plain mean of these equals m
    exactly if the weighted mean does, whatever the weights of the unseen numbers.
    """
    t = len(seen)
    weight = np.ones(t) if weights is None else weights
    weighted, weight_missing = np.clip(seen, 0.0, 1.0) * weight, 1.0 - weight
    sums, missing_sums = np.cumsum(weighted), np.cumsum(weight_missing)
    sums_before, missing_before = sums - weighted, missing_sums - weight_missing
    n_before = np.arange(t, dtype=np.float64)
    n_unseen = n_total - n_before
    # The stake of each bet comes from the values before it. Missing weight carries no information on the
    # spread; the running mean stands in for it.
    running_mean = (0.5 + sums) / (1.0 + np.cumsum(weight))
    filled = weighted + weight_missing * running_mean
    place = n_before + 1.0
    means = (0.5 + np.cumsum(filled)) / (place + 1.0)
    variances = (0.25 + np.cumsum((filled - means) ** 2)) / (place + 1.0)
    earlier = np.concatenate([[0.25], variances[:-1]])
    stakes = np.sqrt(2.0 * math.log(2.0 / alpha) / (earlier * place * np.log1p(place)))
    max_weight = n_total - float(missing_sums[-1])
    certain_low = float(sums[-1]) / max_weight
    certain_high = 1.0 - (t - float(missing_sums[-1]) - float(sums[-1])) / max_weight
    low, high = max(start[0], certain_low), min(start[1], certain_high)
    threshold = math.log(2.0 / alpha)

    def ruled_out(mean: float, *, up: bool) -> bool:
        """Return whether the capital of a bet against this mean ever reached the level that rules it out."""
        value = weighted + weight_missing * mean
        # What the unseen numbers must have as their mean; of infinitely many, the mean itself.
        expected = mean + ((n_before - missing_before) * mean - sums_before) / n_unseen
        if not up:
            value, expected = 1.0 - value, 1.0 - expected
        if expected.min() <= 0.0:
            return True
        stake = np.minimum(stakes, _STAKE / expected)
        gain = value - expected
        return bool(np.cumsum(np.log1p(stake * gain)).max() >= threshold)

    centre = min(max(float(sums[-1] / weight.sum()), low), high)
    lowest = _bisect(low, centre, lambda m: ruled_out(m, up=True))
    highest = _bisect(high, centre, lambda m: ruled_out(m, up=False))
    return lowest, highest


def _bisect(end: float, centre: float, ruled_out: Callable[[float], bool]) -> float:
    """Return the last mean between `end` and `centre` that is ruled out; `end` if none is."""
    if end == centre or not ruled_out(end):
        return end
    outside, inside = end, centre
    while abs(inside - outside) > _PRECISION * abs(centre - outside) + 1e-15:
        middle = (outside + inside) / 2.0
        if ruled_out(middle):
            outside = middle
        else:
            inside = middle
    return outside


@dataclass(frozen=True)
class WatchedDifference:
    """The state of one watched difference; `decided` is "above", "below" or None."""

    name: str
    interval: Interval
    mean: float
    decided: str | None


class Watch:
    """Differences (models x metrics) watched together; the error rate covers all of them at all times."""

    def __init__(self, watched: Mapping[str, Bounds], n_total: int, *, alpha: float = 0.05) -> None:
        if not watched:
            raise InputError("there is nothing to watch: name at least one difference.")
        self.n_total = n_total
        self.alpha = alpha
        share = alpha / len(watched)
        self._sequences = {
            name: ConfidenceSequence(n_total, bounds=bounds, alpha=share) for name, bounds in watched.items()
        }

    def update(
        self, values: Mapping[str, npt.ArrayLike], weights: npt.ArrayLike | None = None
    ) -> tuple[WatchedDifference, ...]:
        """Add the next block of every watched difference; `weights` are those of the units."""
        if set(values) != set(self._sequences):
            missing = sorted(set(self._sequences) ^ set(values))
            raise InputError(f"every watched difference needs its block; these do not match: {missing}.")
        for name, block in values.items():
            self._sequences[name].update(block, weights)
        return self.verdicts()

    def verdicts(self) -> tuple[WatchedDifference, ...]:
        verdicts = []
        for name, sequence in self._sequences.items():
            interval = sequence.interval
            decided = "above" if interval.low > 0 else "below" if interval.high < 0 else None
            verdicts.append(WatchedDifference(name, interval, sequence.mean, decided))
        return tuple(verdicts)

    @property
    def clear(self) -> bool:
        """True once every watched difference is known to be above or below zero."""
        return all(verdict.decided is not None for verdict in self.verdicts())

    @property
    def n_seen(self) -> int:
        return max(one.n_seen for one in self._sequences.values())

    @property
    def share_saved(self) -> float:
        """The share of the test set that has not been needed so far."""
        return 1.0 - self.n_seen / self.n_total


def _obrien_fleming(fraction: float, alpha: float) -> float:
    from scipy.special import ndtr, ndtri

    return float(4.0 * ndtr(ndtri(alpha / 4.0) / math.sqrt(fraction)))


SPENDING: dict[str, Callable[[float, float], float]] = {
    "obrien-fleming": _obrien_fleming,
    "pocock": lambda fraction, alpha: alpha * math.log(1.0 + (math.e - 1.0) * fraction),
    "linear": lambda fraction, alpha: alpha * fraction,
}


def boundaries(
    fractions: Sequence[float], *, alpha: float = 0.05, spending: str = "obrien-fleming"
) -> tuple[float, ...]:
    """Return two-sided bounds of |z| for looks at these fractions of planned information (Lan-DeMets)."""
    check_choice("spending function", spending, SPENDING)
    check_alpha(alpha)
    times = np.atleast_1d(to_floats(fractions, "fractions")).ravel().tolist()
    rising = all(b > a for a, b in zip([0.0, *times], times, strict=False))
    if not times or not rising or times[-1] > 1.0 + 1e-12:
        raise InputError(f"fractions must rise from above 0 to at most 1, got {times}.")
    spent = [SPENDING[spending](min(f, 1.0), alpha) for f in times]
    bounds: list[float] = []
    points: Float = np.zeros(1)
    weights: Float = np.ones(1)
    for j, time in enumerate(times):
        step = math.sqrt(time - (times[j - 1] if j else 0.0))
        target = spent[j] - (spent[j - 1] if j else 0.0)
        bound = _bound(points, weights, step, target)
        bounds.append(bound / math.sqrt(time))
        # Grid and Simpson weights of the walk's density after this step, inside the bound.
        grid = np.linspace(-bound, bound, _GRID)
        density = np.exp(-0.5 * ((grid[:, None] - points) / step) ** 2) @ weights
        density /= step * math.sqrt(2.0 * math.pi)
        simpson = np.ones(_GRID)
        simpson[1:-1:2], simpson[2:-1:2] = 4.0, 2.0
        points, weights = grid, density * simpson * (grid[1] - grid[0]) / 3.0
    return tuple(bounds)


def _bound(points: Float, weights: Float, step: float, target: float) -> float:
    """Find the level that the random walk crosses, on either side, with probability `target` here."""
    from scipy.optimize import brentq
    from scipy.special import ndtr

    def excess(level: float) -> float:
        crossing = ndtr((points - level) / step) + ndtr((-points - level) / step)
        return float(weights @ crossing) - target

    return float(brentq(excess, 0.0, 40.0, xtol=1e-12))


def msprt(
    difference: float, variance: float, scale: float, *, confidence: float = 0.95
) -> tuple[float, Interval]:
    """Always-valid p-value and interval of a difference with this variance; `scale` is the expected effect.

    The scale must be fixed beforehand; a wrong one makes the interval wider but not invalid.
    """
    check_confidence(confidence)
    if not all(map(is_number, (difference, variance, scale))) or not (variance > 0 and scale > 0):
        raise InputError(f"mSPRT needs a positive variance and scale, got {variance!r} and {scale!r}.")
    prior = scale**2
    log_ratio = 0.5 * math.log(variance / (variance + prior)) + prior * difference**2 / (
        2.0 * variance * (variance + prior)
    )
    p = min(1.0, math.exp(-log_ratio)) if log_ratio > -700 else 1.0
    alpha = 1.0 - confidence
    reach = math.sqrt(
        variance
        * (variance + prior)
        / prior
        * (math.log((variance + prior) / variance) - 2.0 * math.log(alpha))
    )
    return p, Interval(difference - reach, difference + reach, confidence, "mSPRT (asymptotic)")
