"""Evaluate users in random order, block by block, until confidence sequences give a clear answer.

Looking after every block is free: the error rate holds at all times at once and covers all watched metrics.
The estimand is the mean of users at large, of whom the test set is a random sample; only where it is asked
for, that of the users of this test set, which are then all there are. Metrics that are not means over users
are reported, not watched, and so are those whose values nothing limits: a user not seen yet could move their
mean anywhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, Literal, TypeVar, get_args

import numpy as np

from recsys.conventions.decisions import Conventions
from recsys.errors import InputError, NotDefinedError, TieWarning, came_as, check_choice, hush
from recsys.evaluation.engine import merge, warn_of_ties
from recsys.evaluation.result_facts import StopFacts, Watched
from recsys.metrics.registry import Request, check_same_decisions
from recsys.records.arrays import Array, Float, Ids, Interactions, Lists, Partial
from recsys.records.checks import is_number, is_whole
from recsys.stats.bootstrap import Rng, random_order
from recsys.stats.results import Interval, check_confidence
from recsys.stats.sequential import Bounds, ConfidenceSequence

_NO_RANGE = (
    "nothing limits the value of one user, so that users not seen yet could move the mean anywhere and no "
    "interval would hold at all times."
)
_MIN_BLOCK = 100
_LOOKS = 50
_GROWTH = 0.125

About = Literal["users at large", "these users"]
Data = TypeVar("Data", Interactions, Lists)


@dataclass(frozen=True)
class StopWhen:
    """The rule that says when enough users have been evaluated.

    Args:
        half_width: stop when no interval is longer than twice this: one number, or {metric: number}. For a
            race: when every open difference is known this well.
        threshold: {metric: value}: stop when it is clear on which side of the value each metric is.
        against: an evaluation of another model on the same users: stop when it is clear which is better (or
            the difference is known to half_width).
        metrics: which metrics are watched; by default those named above, or all that are means over users and
            have a range (`result.ranges`).
        confidence: of all intervals together, at all times.
        block: users between two looks; by default a fiftieth of the test set (at least 100), and more as more
            have been seen.
        rng: seed of the order in which users are taken.
        about: whom the answer is about: "users at large", of whom those of the test set are a random sample,
            or "these users" of the test set alone, about whom everything is known after the last of them.
    """

    half_width: float | Mapping[str, float] | None = None
    threshold: Mapping[str, float] | None = None
    against: Any = None
    metrics: Sequence[str] | None = None
    confidence: float = 0.95
    block: int | None = None
    rng: Rng = 0
    about: About = "users at large"

    def __post_init__(self) -> None:
        check_confidence(self.confidence)
        check_choice("answer to be about", self.about, get_args(About))
        object.__setattr__(self, "confidence", float(self.confidence))
        widths = self.half_width.values() if isinstance(self.half_width, Mapping) else [self.half_width]
        if any(width is not None and not (is_number(width) and width > 0) for width in widths):
            raise InputError(f"half_width must be positive, got {self.half_width!r}.")
        if self.block is not None and not is_whole(self.block, 1):
            raise InputError(f"block must be a whole number of at least 1, got {self.block!r}.")
        if self.threshold is not None and not isinstance(self.threshold, Mapping):
            raise InputError(
                f"threshold={self.threshold!r} does not say of which metric.", hint="Try {'ndcg@10': 0.3}."
            )
        if self.metrics is not None and not (
            isinstance(self.metrics, list | tuple) and all(isinstance(name, str) for name in self.metrics)
        ):
            raise InputError(f"metrics={self.metrics!r} are not names.", hint='Try metrics=["ndcg@10"].')
        if self.against is not None and not hasattr(self.against, "per_case"):
            raise came_as("against=", self.against, hint="Pass what recsys.evaluate returned.")
        if self.against is not None and self.threshold is not None:
            raise InputError("a threshold is for one model; against= is between two.")

    @classmethod
    def of(cls, value: Any) -> StopWhen:
        """Return a StopWhen, or the half-width alone."""
        if isinstance(value, cls):
            return value
        if not isinstance(value, bool) and isinstance(value, Real):
            if not (is_number(value) and float(value) > 0):
                raise InputError(
                    f"stop_when={value!r} is not a half-width.", hint="Try a positive number, such as 0.01."
                )
            return cls(half_width=float(value))
        raise InputError(
            f"stop_when={value!r} is neither a half-width nor a StopWhen.",
            hint="Try stop_when=0.01, or recsys.StopWhen(threshold={'ndcg@10': 0.3}).",
        )

    def named(self) -> list[str] | None:
        """Return the metrics it names, in full; None for all that can be watched."""
        names = list(self.metrics or [])
        for option in (self.half_width, self.threshold):
            names += list(option) if isinstance(option, Mapping) and not self.metrics else []
        return [str(Request.parse(name)) for name in dict.fromkeys(names)] or None

    def width_of(self, metric: str) -> float | None:
        """Return the half-width required of this metric."""
        if not isinstance(self.half_width, Mapping):
            return self.half_width
        return {str(Request.parse(n)): w for n, w in self.half_width.items()}.get(metric)

    def threshold_of(self, metric: str) -> float | None:
        """Return the value that the interval of this metric must exclude."""
        return {str(Request.parse(n)): v for n, v in (self.threshold or {}).items()}.get(metric)

    def enough(self, metric: str, interval: Interval) -> bool:
        """Return whether the interval answers the question about this metric."""
        width, threshold = self.width_of(metric), self.threshold_of(metric)
        narrow = width is None or interval.high - interval.low <= 2.0 * width
        if self.against is not None:
            return 0.0 not in interval or (width is not None and narrow)
        return narrow and (threshold is None or not interval.low <= threshold <= interval.high)


class SteppedEvaluation:
    """An evaluation that takes its cases in random order, block by block, and what it has seen so far."""

    def __init__(
        self,
        cases: Ids,
        evaluate_cases: Callable[[Ids], Partial],
        requests: Sequence[Request],
        conventions: Conventions,
        *,
        stop: StopWhen,
        ranges: Mapping[str, Bounds],
        weights: Float | None = None,
        clusters: Array | None = None,
    ) -> None:
        self.cases, self.requests, self.conventions = cases, requests, conventions
        # The bounds of each metric's values; equal ones are moved apart, as a sequence needs some width.
        self.ranges = {name: (low, high if high > low else low + 1.0) for name, (low, high) in ranges.items()}
        self.parts: list[Partial] = []
        self.n_seen = 0
        self.block: Array = np.empty(0)
        self._evaluate_cases, self._stop = evaluate_cases, stop
        self.n_units: float = len(cases) if stop.about == "these users" else math.inf
        users, self._user_of = cases.values, np.arange(len(cases))
        if clusters is not None and stop.about == "users at large":
            # The cases of one user resemble each other, so they come together, and count as one unit.
            users, self._user_of = np.unique(clusters, return_inverse=True)
        place = np.argsort(random_order(users, stop.rng, purpose="stop_when"))[self._user_of]
        self._order = np.argsort(place, kind="stable")
        self._ends = np.flatnonzero(np.diff(place[self._order], append=-1)) + 1
        given = np.ones(len(cases)) if weights is None else weights
        self._weights = given / (np.bincount(self._user_of, given).max(initial=0.0) or 1.0)

    def advance(self) -> bool:
        """Evaluate the next block; False when there is none. `merged` warns of the ties of all of them."""
        # The cost of a look grows with the number of cases seen, so looks get rarer.
        min_block = max(_MIN_BLOCK, -(-len(self._order) // _LOOKS))
        size = self._stop.block or max(min_block, int(_GROWTH * self.n_seen))
        if self.n_seen == len(self._order):
            return False
        end = self._ends[np.searchsorted(self._ends, min(self.n_seen + size, len(self._order)))]
        self._at = self._order[self.n_seen : end]
        self.block = self.cases.values[self._at]
        with hush(TieWarning):
            self.parts.append(self._evaluate_cases(Ids(np.sort(self.block))))
        self.n_seen += len(self.block)
        return True

    def merged(self) -> Partial:
        """Return what all blocks so far add up to; warns of their ties."""
        partial = merge(self.parts)
        warn_of_ties(partial.counts, self.conventions)
        return partial

    def latest(self, metric: str) -> Float:
        """Return the values of the latest block, in its order."""
        return values_in_order(self.parts[-1], metric, self.block)

    def by_user(self, values: Float) -> tuple[Float, Float]:
        """Values of the latest block as means of users, with their weights relative to the largest."""
        weights = np.where(np.isnan(values), 0.0, self._weights[self._at])
        starts = np.flatnonzero(np.diff(self._user_of[self._at], prepend=-1))
        totals = np.add.reduceat(weights, starts)
        sums = np.add.reduceat(np.where(weights > 0, values, 0.0) * weights, starts)
        return np.divide(sums, totals, out=np.full(len(totals), np.nan), where=totals > 0), totals


def watched_metrics(models: Sequence[SteppedEvaluation], stop: StopWhen) -> tuple[list[str], list[str]]:
    """Return the metrics to watch, and the means over users that cannot be, because a model's have no range.

    Every model has evaluated its first block.
    """
    first, chosen = models[0], stop.named()
    partial = first.parts[0]
    means = [
        str(r)
        for r in first.requests
        if str(r) in partial.rows.columns and str(r) not in partial.terms and r.summary is None
    ]
    limited = [name for name in means if all(np.isfinite(model.ranges[name]).all() for model in models)]
    refused = [name for name in chosen or [] if name not in limited]
    if refused:
        why = _NO_RANGE if refused[0] in means else "it is not a mean over users, or was not asked for."
        raise NotDefinedError(
            f"{refused[0]} cannot be watched: {why}",
            hint=f"These can: {', '.join(limited)}." if limited else "Ask for a metric such as ndcg@10.",
        )
    if not limited:
        raise NotDefinedError(
            f"{', '.join(means)} cannot be watched: {_NO_RANGE}"
            if means
            else "none of the metrics is a mean over users, so there is nothing to watch.",
            hint="Ask for a metric such as ndcg@10, or evaluate a number of users that is fixed beforehand.",
        )
    unlimited = [name for name in means if name not in limited] if chosen is None else []
    return [name for name in limited if chosen is None or name in chosen], unlimited


def describe_users(about: str, n_users: int) -> str:
    """Describe the users an answer is about."""
    return f"these {n_users:,} users" if about == "these users" else about


def format_unlimited(metrics: Sequence[str]) -> list[str]:
    """Return the line about metrics that are not watched; none if there are no such metrics."""
    return [f"not watched, as nothing limits the value of one user: {', '.join(metrics)}"] if metrics else []


def evaluate_until(
    steps: SteppedEvaluation, stop: StopWhen, progress: Callable[[int, int], object] | None
) -> tuple[Partial, StopFacts]:
    """Evaluate blocks until the intervals satisfy `stop`; the merged parts, and how far it went."""
    if stop.half_width is None and stop.threshold is None and stop.against is None:
        raise InputError(
            "stop_when says neither how narrow nor against what.",
            hint="Try StopWhen(half_width=0.01), StopWhen(threshold={'ndcg@10': 0.3}) or against=.",
        )
    other = None if stop.against is None else _comparable_partial(stop.against, steps)
    sequences: dict[str, ConfidenceSequence] = {}
    unlimited: list[str] = []
    n_total, is_clear = len(steps.cases), False
    while not is_clear and steps.advance():
        if not sequences:
            watched, unlimited = watched_metrics([steps], stop)
            share = (1.0 - stop.confidence) / len(watched)
            for name in watched:
                ends = steps.ranges[name]
                if other is not None:
                    ends = difference_bounds(ends, _range_of_result(stop.against, name))
                sequences[name] = ConfidenceSequence(steps.n_units, bounds=ends, alpha=share)
        for name, sequence in sequences.items():
            values = steps.latest(name)
            if other is not None:
                values = values - values_in_order(other, name, steps.block)
            sequence.update(*steps.by_user(values))
        if progress is not None:
            progress(steps.n_seen, n_total)
        is_clear = all(stop.enough(name, s.interval) for name, s in sequences.items())
    if steps.n_seen < n_total:
        reason = "what was asked is clear" if other is None else "the winner is clear"
    elif is_clear or stop.about == "these users":
        reason = "all users were needed"
    else:
        reason = "what was asked needs more users than there are"
    return steps.merged(), _stop_facts(
        steps, sequences, stop, reason=reason, other=other, unlimited=unlimited
    )


def _comparable_partial(against: Any, steps: SteppedEvaluation) -> Partial:
    """Return the other result, checked to be comparable with this evaluation."""
    check_same_decisions(
        steps.requests,
        ("this evaluation", steps.conventions),
        ("the result in against=", against.conventions),
    )
    partial: Partial = against.partial
    missing = [str(r) for r in steps.requests if str(r) not in against.overall]
    if missing:
        raise NotDefinedError(
            f"the result in against= has no {', '.join(missing)}.",
            hint="Evaluate both with the same metrics.",
        )
    if not len(np.intersect1d(partial.rows.ids, steps.cases.values)):
        raise InputError("the result in against= has none of these users.")
    return partial


def _range_of_result(result: Any, metric: str) -> Bounds:
    """Return the range of a metric of a result that is there; where it is not known, that of its values."""
    ends: Bounds = result.ranges[metric]
    if np.isfinite(ends).all():
        return ends
    values = np.nan_to_num(result.per_case.columns[metric])
    return float(values.min(initial=0.0)), float(values.max(initial=0.0))


def difference_bounds(one: Bounds, other: Bounds) -> Bounds:
    """Return the bounds of a value of the first range minus one of the second."""
    return one[0] - other[1], one[1] - other[0]


def values_in_order(part: Partial, name: str, block: Array) -> Float:
    """Return a metric's values in the order of the block; cases missing from the result count as excluded.

    The order matters: within a block, too, each bet is placed before its value is seen.
    """
    at = Ids(part.rows.ids).code_of(block)
    return np.where(at >= 0, part.rows.columns[name][at], np.nan)


def _stop_facts(
    steps: SteppedEvaluation,
    sequences: Mapping[str, ConfidenceSequence],
    stop: StopWhen,
    *,
    reason: str,
    other: Partial | None,
    unlimited: Sequence[str],
) -> StopFacts:
    """Return how far an evaluation went; against another result, each difference has a verdict.

    That is better, worse or undecided.
    """
    n_total = len(steps.cases)
    stopped = StopFacts(
        n_seen=steps.n_seen, n_total=n_total, confidence=stop.confidence, about=stop.about, reason=reason
    )
    lower = {str(r) for r in steps.requests if r.metric.better == "lower"}
    n_shared = 0 if other is None else len(np.intersect1d(other.rows.ids, steps.cases.values))
    whom = describe_users(stop.about, n_total if other is None else n_shared)
    whom += "" if n_shared in (0, n_total) else f" ({n_shared:,} are in both)"
    lines = [f"stopped after {stopped.seen}: {reason}"]
    intervals: dict[str, Watched] = {}
    for name, s in sequences.items():
        low, high, method = s.interval.low, s.interval.high, s.interval.method
        intervals[name] = Watched(s.mean, low, high, method)
        if other is None:
            lines.append(f"{name} for {whom}: [{low:.4f}, {high:.4f}], {method}")
            continue
        better = "better" if (low > 0) != (name in lower) else "worse"
        verdict = better if low > 0 or high < 0 else "undecided"
        intervals[name] = intervals[name]._replace(verdict=verdict)
        lines.append(f"{name} is {verdict}: difference for {whom} in [{low:.4f}, {high:.4f}], {method}")
    lines.append(f"these intervals hold together, at all times, with {stop.confidence:.0%}")
    lines += format_unlimited(unlimited)
    return replace(stopped, intervals=intervals, says="\n".join(lines))
