"""Stop when the winner is clear: confidence sequences that hold at every time at once.

The estimand is the mean over this finite test set, whose users are evaluated in random order without
replacement. Bounded metrics are bet against (Waudby-Smith and Ramdas), which is exact; for others a normal
mixture is used and labelled asymptotic. The error is spread over everything that is watched.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from recsys.errors import InputError
from recsys.stats.outcomes import Interval
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
        self._low, self._high = bounds if bounds is not None else (-math.inf, math.inf)

    @property
    def n_seen(self) -> int:
        return len(self._seen)

    @property
    def mean(self) -> float:
        return float(self._seen.mean()) if self.n_seen else math.nan

    @property
    def interval(self) -> Interval:
        method = "asymptotic" if self.bounds is None else "betting"
        return Interval(self._low, self._high, 1.0 - self.alpha, f"confidence sequence ({method})")

    def update(self, values: npt.ArrayLike) -> Interval:
        """Take in the next block; the interval only ever shrinks."""
        block = np.asarray(values, dtype=np.float64).ravel()
        if not np.isfinite(block).all():
            raise InputError(
                "a confidence sequence needs a finite value for every unit.",
                hint="Leave out excluded cases beforehand: who has no truth is known before ranking.",
            )
        if self.bounds is not None and len(block) and not _within(block, self.bounds):
            raise InputError(
                f"a value lies outside the bounds {self.bounds}: {block.min()} to {block.max()}."
            )
        if self.n_seen + len(block) > self.n_total:
            raise InputError(f"more values ({self.n_seen + len(block)}) than n_total ({self.n_total}).")
        self._seen = np.concatenate([self._seen, block])
        low, high = self._limits()
        shrunk = max(self._low, low), min(self._high, high)
        # Limits that exclude each other mean an earlier one was wrong; the newest knows most.
        self._low, self._high = shrunk if shrunk[0] <= shrunk[1] else (low, high)
        return self.interval

    def _limits(self) -> Bounds:
        if self.n_seen == 0:
            return -math.inf, math.inf
        if self.n_seen == self.n_total:
            return self.mean, self.mean
        if self.bounds is None:
            return asymptotic_limits(self._seen, self.n_total, self.alpha)
        low, high = self.bounds
        width = high - low
        start = ((self._low - low) / width, (self._high - low) / width)
        found = betting_limits((self._seen - low) / width, self.n_total, self.alpha, start)
        return low + width * found[0], low + width * found[1]


def _within(block: Float, bounds: Bounds) -> bool:
    slack = 1e-9 * (bounds[1] - bounds[0])
    return bool(block.min() >= bounds[0] - slack and block.max() <= bounds[1] + slack)


def betting_limits(seen: Float, n_total: int, alpha: float, start: Bounds = (0.0, 1.0)) -> Bounds:
    """Interval for the mean of n_total numbers in [0, 1] from the first ones of a random order."""
    t = len(seen)
    seen = np.clip(seen, 0.0, 1.0)
    before = np.concatenate([[0.0], np.cumsum(seen)[:-1]])
    left = n_total - np.arange(t, dtype=np.float64)
    stakes = _stakes(seen, alpha)
    sure_low = (before[-1] + seen[-1]) / n_total
    sure_high = sure_low + (n_total - t) / n_total
    low, high = max(start[0], sure_low), min(start[1], sure_high)
    goal = math.log(2.0 / alpha)

    def richest(mean: float, *, up: bool) -> bool:
        """Whether a gambler against this mean was ever rich enough to rule it out."""
        expected = (n_total * mean - before) / left
        if not up:
            expected = 1.0 - expected
        if expected.min() <= 0.0:
            return True
        stake = np.minimum(stakes, _STAKE / expected)
        gain = (seen if up else 1.0 - seen) - expected
        return bool(np.cumsum(np.log1p(stake * gain)).max() >= goal)

    centre = min(max(float(seen.mean()), low), high)
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


def _stakes(seen: Float, alpha: float) -> Float:
    """How much to bet at each time, from what was seen before it."""
    t = np.arange(1, len(seen) + 1, dtype=np.float64)
    means = (0.5 + np.cumsum(seen)) / (t + 1.0)
    variances = (0.25 + np.cumsum((seen - means) ** 2)) / (t + 1.0)
    earlier = np.concatenate([[0.25], variances[:-1]])
    return np.sqrt(2.0 * math.log(2.0 / alpha) / (earlier * t * np.log1p(t)))


def asymptotic_limits(seen: Float, n_total: int, alpha: float) -> Bounds:
    """Normal-mixture limits for the mean of n_total numbers without known bounds; nothing for few units."""
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

    def update(self, values: Mapping[str, npt.ArrayLike]) -> tuple[Verdict, ...]:
        """Take in the next block of every watched difference."""
        if set(values) != set(self._sequences):
            missing = sorted(set(self._sequences) ^ set(values))
            raise InputError(f"every watched difference needs its block; these do not match: {missing}.")
        for name, block in values.items():
            self._sequences[name].update(block)
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
