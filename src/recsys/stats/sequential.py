"""Stop when the winner is clear: confidence sequences that hold at every time at once.

The estimand is the mean over this finite test set, whose users are evaluated in random order without
replacement. Bounded metrics are bet against (Waudby-Smith and Ramdas), which is exact; for others a normal
mixture is used and labelled asymptotic. The error is spread over everything that is watched. NaN is a case
that turned out not to be in the mean: it has no weight, and nothing is won or lost on it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from recsys.errors import InputError
from recsys.stats.inference_results import Interval
from recsys.types import Float

# A bet may lose at most this share of the capital; the value balances early and late tightness.
_STAKE = 0.5
# How finely an end of the interval is found, relative to its width; what is left is given to the interval.
_PRECISION = 2.0**-10
# Before this many units a normal approximation says nothing.
_ASYMPTOTIC_FROM = 100

Bounds = tuple[float, float]


class ConfidenceSequence:
    """The mean of a finite set of `n_total` values, seen block by block in random order."""

    def __init__(self, n_total: int, *, bounds: Bounds | None = None, alpha: float = 0.05) -> None:
        if n_total < 1:
            raise InputError(f"the test set must have at least one unit, got n_total={n_total}.")
        if not 0 < alpha < 1:
            raise InputError(f"alpha must lie between 0 and 1, got {alpha!r}.")
        if bounds is not None and not (bounds[0] < bounds[1] and all(map(math.isfinite, bounds))):
            raise InputError(f"bounds must be two finite numbers, the lower first, got {bounds}.")
        self.n_total = n_total
        self.bounds = bounds
        self.alpha = alpha
        self._seen: Float = np.empty(0)
        self._weights: Float = np.empty(0)
        self._low, self._high = bounds if bounds is not None else (-math.inf, math.inf)

    @property
    def n_seen(self) -> int:
        return len(self._seen)

    @property
    def mean(self) -> float:
        total = float(self._weights.sum())
        return float(self._seen @ self._weights) / total if total else math.nan

    @property
    def interval(self) -> Interval:
        method = "asymptotic" if self.bounds is None else "betting"
        return Interval(self._low, self._high, 1.0 - self.alpha, f"confidence sequence ({method})")

    def update(self, values: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> Interval:
        """Take in the next block; the interval only shrinks. Weights are shares of the largest, 0 to 1."""
        block = np.asarray(values, dtype=np.float64).ravel()
        share = np.ones(len(block)) if weights is None else np.asarray(weights, dtype=np.float64).ravel()
        if share.shape != block.shape or not ((share >= 0) & (share <= 1)).all():
            raise InputError("weights must be numbers from 0 to 1, one a value.")
        here = block[~np.isnan(block)]
        if np.isinf(here).any():
            raise InputError("a confidence sequence needs finite values, or NaN for an excluded case.")
        if self.bounds is not None and len(here) and not _within(here, self.bounds):
            raise InputError(f"a value lies outside the bounds {self.bounds}: {here.min()} to {here.max()}.")
        if self.n_seen + len(block) > self.n_total:
            raise InputError(f"more values ({self.n_seen + len(block)}) than n_total ({self.n_total}).")
        absent = np.isnan(block)
        self._seen = np.concatenate([self._seen, np.where(absent, 0.0, block)])
        self._weights = np.concatenate([self._weights, np.where(absent, 0.0, share)])
        low, high = self._limits()
        shrunk = max(self._low, low), min(self._high, high)
        # Limits that exclude each other mean an earlier one was wrong; the newest knows most.
        self._low, self._high = shrunk if shrunk[0] <= shrunk[1] else (low, high)
        return self.interval

    def _limits(self) -> Bounds:
        if math.isnan(self.mean):
            return -math.inf, math.inf
        if self.n_seen == self.n_total:
            # Known but for rounding, which must not pass for a difference.
            slack = 1e-12 * float(np.abs(self._seen).max())
            return self.mean - slack, self.mean + slack
        if self.bounds is None:
            return asymptotic_limits(self._seen, self.n_total, self.alpha, self._weights)
        low, high = self.bounds
        width = high - low
        start = ((self._low - low) / width, (self._high - low) / width)
        seen = (self._seen - low) / width
        found = betting_limits(seen, self.n_total, self.alpha, start, weights=self._weights)
        return low + width * found[0], low + width * found[1]


def _within(block: Float, bounds: Bounds) -> bool:
    slack = 1e-9 * (bounds[1] - bounds[0])
    return bool(block.min() >= bounds[0] - slack and block.max() <= bounds[1] + slack)


def betting_limits(
    seen: Float, n_total: int, alpha: float, start: Bounds = (0.0, 1.0), *, weights: Float | None = None
) -> Bounds:
    """Interval for the mean of n_total numbers in [0, 1] from the first ones of a random order.

    A number of weight w counts as w times itself and 1 - w times the mean in question: the plain mean of
    those is that mean exactly when the weighted mean is, whatever weights the unseen ones will have.
    """
    t = len(seen)
    share = np.ones(t) if weights is None else weights
    known, rest = np.clip(seen, 0.0, 1.0) * share, 1.0 - share
    sums, gone = np.cumsum(known), np.cumsum(rest)
    before, gone_before = sums - known, gone - rest
    left = n_total - np.arange(t, dtype=np.float64)
    stakes = _stakes(known, share, alpha)
    most = n_total - float(gone[-1])
    sure_low = float(sums[-1]) / most
    sure_high = sure_low + (n_total - t) / most
    low, high = max(start[0], sure_low), min(start[1], sure_high)
    goal = math.log(2.0 / alpha)

    def richest(mean: float, *, up: bool) -> bool:
        """Whether a gambler against this mean was ever rich enough to rule it out."""
        value = known + rest * mean
        expected = ((n_total - gone_before) * mean - before) / left
        if not up:
            value, expected = 1.0 - value, 1.0 - expected
        if expected.min() <= 0.0:
            return True
        stake = np.minimum(stakes, _STAKE / expected)
        gain = value - expected
        return bool(np.cumsum(np.log1p(stake * gain)).max() >= goal)

    centre = min(max(float(sums[-1] / share.sum()), low), high)
    return _search(low, centre, lambda m: richest(m, up=True)), _search(
        high, centre, lambda m: richest(m, up=False)
    )


def _search(end: float, centre: float, ruled_out: Callable[[float], bool]) -> float:
    """The last mean on the way from `end` to `centre` that is ruled out; `end` if none is."""
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


def _stakes(known: Float, share: Float, alpha: float) -> Float:
    """How much to bet at each time, from what was seen before it."""
    # What is not there says nothing about the spread; the running mean of what is stands in.
    running = (0.5 + np.cumsum(known)) / (1.0 + np.cumsum(share))
    seen = known + (1.0 - share) * running
    t = np.arange(1, len(seen) + 1, dtype=np.float64)
    means = (0.5 + np.cumsum(seen)) / (t + 1.0)
    variances = (0.25 + np.cumsum((seen - means) ** 2)) / (t + 1.0)
    earlier = np.concatenate([[0.25], variances[:-1]])
    return np.sqrt(2.0 * math.log(2.0 / alpha) / (earlier * t * np.log1p(t)))


def asymptotic_limits(seen: Float, n_total: int, alpha: float, weights: Float | None = None) -> Bounds:
    """Normal-mixture limits for the mean of n_total numbers without known bounds; nothing for few units."""
    if weights is not None and not (weights == 1).all():
        mean, share = float(seen @ weights / weights.sum()), float(weights.mean())
        low, high = asymptotic_limits(weights * (seen - mean), n_total, alpha)
        return mean + low / share, mean + high / share
    t = len(seen)
    if t < _ASYMPTOTIC_FROM:
        return -math.inf, math.inf
    left = n_total - np.arange(t, dtype=np.float64)
    before = np.concatenate([[0.0], np.cumsum(seen)[:-1]])
    # Each value is compared with the mean of what is still unseen: a martingale even without replacement.
    scale = float((n_total / left).sum())
    centre = float((seen + before / left).sum()) / scale
    spread = float(seen.std(ddof=1))
    tuned = -2.0 * math.log(alpha)
    rho2 = (tuned + math.log(tuned + 1.0)) / max(_ASYMPTOTIC_FROM, 0.1 * n_total)
    reach = spread * math.sqrt((t * rho2 + 1.0) / rho2 * (math.log(t * rho2 + 1.0) - 2.0 * math.log(alpha)))
    return centre - reach / scale, centre + reach / scale


@dataclass(frozen=True)
class Verdict:
    """Where one watched difference stands."""

    name: str
    interval: Interval
    mean: float
    decided: str | None


class Watch:
    """Differences (models x metrics) watched together; the error rate covers all of them, at all times."""

    def __init__(self, watched: Mapping[str, Bounds | None], n_total: int, *, alpha: float = 0.05) -> None:
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
    ) -> tuple[Verdict, ...]:
        """Take in the next block of every watched difference; the weights are those of the units."""
        if set(values) != set(self._sequences):
            missing = sorted(set(self._sequences) ^ set(values))
            raise InputError(f"every watched difference needs its block; these do not match: {missing}.")
        for name, block in values.items():
            self._sequences[name].update(block, weights)
        return self.verdicts()

    def verdicts(self) -> tuple[Verdict, ...]:
        return tuple(
            Verdict(name, one.interval, one.mean, _decide(one.interval))
            for name, one in self._sequences.items()
        )

    @property
    def clear(self) -> bool:
        """True once every watched difference is known to be above or below zero."""
        return all(verdict.decided is not None for verdict in self.verdicts())

    @property
    def n_seen(self) -> int:
        return max(one.n_seen for one in self._sequences.values())

    @property
    def share_saved(self) -> float:
        """The share of the test set that was not needed so far."""
        return 1.0 - self.n_seen / self.n_total


def _decide(interval: Interval) -> str | None:
    if interval.low > 0:
        return "above"
    return "below" if interval.high < 0 else None
