"""Evaluate users in random order, block by block, until confidence sequences give a clear answer.

Looking after every block is free: the error rate holds at all times at once and covers all watched metrics.
The estimand is the mean over this test set; metrics that are not means over users are reported, not watched.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from recsys.conventions.decisions import Conventions
from recsys.errors import ConventionError, InputError, NotDefinedError, TieWarning
from recsys.evaluation.partials import merge
from recsys.metrics.requests import Request
from recsys.stats.inference_results import Interval, check_confidence, is_whole
from recsys.stats.resampling import Rng, random_order
from recsys.stats.sequential import Bounds, ConfidenceSequence
from recsys.types import Array, Float, Ids, Interactions, Lists, Partial, entries_of_cases

_MIN_BLOCK = 100
_LOOKS = 50
_GROWTH = 0.125

Data = TypeVar("Data", Interactions, Lists)


@dataclass(frozen=True)
class StopWhen:
    """The rule that says when enough users have been evaluated.

    Args:
        half_width: stop when no interval is longer than twice this: one number, or {metric: number}. For a
            race: when every open difference is known this well.
        threshold: {metric: value}: stop when it is clear on which side of the value each metric lies.
        against: an evaluation of another model on the same users: stop when it is clear which is better (or
            the difference is known to half_width).
        metrics: which metrics are watched; by default those named above, or all that are means over users.
        confidence: of all intervals together, at all times.
        block: users between two looks; by default a fiftieth of the test set (at least 100), and more as more
            have been seen.
        rng: seed of the order in which users are taken.
    """

    half_width: float | Mapping[str, float] | None = None
    threshold: Mapping[str, float] | None = None
    against: Any = None
    metrics: Sequence[str] | None = None
    confidence: float = 0.95
    block: int | None = None
    rng: Rng = 0

    def __post_init__(self) -> None:
        check_confidence(self.confidence)
        widths = self.half_width.values() if isinstance(self.half_width, Mapping) else [self.half_width]
        if any(width is not None and not width > 0 for width in widths):
            raise InputError(f"half_width must be positive, got {self.half_width!r}.")
        if self.block is not None and not (is_whole(self.block) and self.block >= 1):
            raise InputError(f"block must be a whole number of at least 1, got {self.block!r}.")
        if self.threshold is not None and not isinstance(self.threshold, Mapping):
            raise InputError(
                f"threshold={self.threshold!r} does not say of which metric.", hint="Try {'ndcg@10': 0.3}."
            )
        if self.against is not None and not hasattr(self.against, "per_case"):
            raise InputError(
                f"against= came as {type(self.against).__name__}.", hint="Pass what recsys.evaluate returned."
            )
        if self.against is not None and self.threshold is not None:
            raise InputError("a threshold is for one model; against= is between two.")

    @classmethod
    def of(cls, value: Any) -> StopWhen:
        """A StopWhen, or the half-width alone."""
        if isinstance(value, cls):
            return value
        if isinstance(value, int | float) and not isinstance(value, bool):
            if not value > 0:
                raise InputError(
                    f"stop_when={value!r} is not a half-width.", hint="Try a positive number, such as 0.01."
                )
            return cls(half_width=float(value))
        raise InputError(
            f"stop_when={value!r} is neither a half-width nor a StopWhen.",
            hint="Try stop_when=0.01, or recsys.StopWhen(threshold={'ndcg@10': 0.3}).",
        )

    def named(self) -> list[str] | None:
        """The metrics it names, in full; None for all that can be watched."""
        names = list(self.metrics or [])
        for option in (self.half_width, self.threshold):
            names += list(option) if isinstance(option, Mapping) and not self.metrics else []
        return [str(Request.parse(name)) for name in dict.fromkeys(names)] or None

    def width_of(self, metric: str) -> float | None:
        """The half-width required of this metric."""
        if not isinstance(self.half_width, Mapping):
            return self.half_width
        return {str(Request.parse(n)): w for n, w in self.half_width.items()}.get(metric)

    def threshold_of(self, metric: str) -> float | None:
        """The value that the interval of this metric must exclude."""
        return {str(Request.parse(n)): v for n, v in (self.threshold or {}).items()}.get(metric)

    def enough(self, metric: str, interval: Interval) -> bool:
        """Whether the interval answers the question about this metric."""
        width, threshold = self.width_of(metric), self.threshold_of(metric)
        narrow = width is None or interval.high - interval.low <= 2.0 * width
        if self.against is not None:
            return 0.0 not in interval or (width is not None and narrow)
        return narrow and (threshold is None or not interval.low <= threshold <= interval.high)


@dataclass(frozen=True, eq=False)
class SteppedEvaluation:
    """An evaluation in parts: all cases, those with truth, and a function that evaluates some of them."""

    cases: Ids
    judged: Ids
    partial: Callable[[Ids], Partial]
    requests: Sequence[Request]
    conventions: Conventions
    largest_weight: float | None = None

    def blocks(self, stop: StopWhen) -> Iterator[Array]:
        """The ids of the cases in random order, one block at a time."""
        order = random_order(self.cases.values, stop.rng, purpose="stop_when")
        min_block = max(_MIN_BLOCK, -(-len(order) // _LOOKS))
        start = 0
        while start < len(order):
            # The cost of a look grows with the number of cases seen, so looks get rarer.
            stop_at = start + (stop.block or max(min_block, int(_GROWTH * start)))
            yield self.cases.values[order[start:stop_at]]
            start = stop_at

    def evaluate_block(self, block: Array, *, first: bool) -> Partial:
        """The result of a block; ties are warned about for the first block only."""
        with warnings.catch_warnings():
            if not first:
                warnings.simplefilter("ignore", TieWarning)
            return self.partial(Ids(np.sort(block)))

    def relative_weights(self, part: Partial, block: Array) -> Float | None:
        """Weights of a block's cases relative to the largest weight, in the order of the block."""
        weights = part.per_case.weights
        if weights is None or not self.largest_weight:
            return None
        return np.nan_to_num(_align_to_block(part, weights, block) / self.largest_weight)


def restrict_to_cases(data: Data, cases: Ids) -> Data:
    """Lists or interactions of these cases only; unknown cases are left out."""
    known = data.cases.code_of(cases.values)
    known_cases = Ids(cases.values[known >= 0])
    place, at = entries_of_cases(data, known_cases)
    sizes = np.bincount(place, minlength=len(known_cases))
    changes: dict[str, Any] = {
        "cases": known_cases,
        "indptr": np.concatenate([[0], np.cumsum(sizes)]),
        "codes": data.codes[at],
    }
    for name in ("grades", "times", "counts", "scores"):
        values = getattr(data, name, None)
        if values is not None:
            changes[name] = values[at]
    if data.clusters is not None:
        changes["clusters"] = data.clusters[known[known >= 0]]
    return replace(data, **changes)


def watched_metrics(
    partial: Partial, requests: Sequence[Request], stop: StopWhen
) -> dict[str, Bounds | None]:
    """The metrics to watch with their bounds (None: unbounded); only means over users can be watched."""
    means = {
        str(r): r.metric.bounds if np.isfinite(r.metric.bounds).all() else None
        for r in requests
        if str(r) in partial.per_case.columns and str(r) not in partial.terms and r.metric.summary is None
    }
    chosen = stop.named()
    for name in chosen or []:
        if name not in means:
            raise NotDefinedError(
                f"{name} cannot be watched: it is not a mean over users, or was not asked for.",
                hint=f"These can: {', '.join(means)}." if means else "Ask for a metric such as ndcg@10.",
            )
    if not means:
        raise NotDefinedError("none of the metrics is a mean over users, so there is nothing to watch.")
    return {name: bounds for name, bounds in means.items() if chosen is None or name in chosen}


def evaluate_until(
    steps: SteppedEvaluation, stop: StopWhen, progress: Callable[[int, int], object] | None
) -> tuple[Partial, Any]:
    """Evaluate blocks until the intervals satisfy `stop`; the merged parts, and the note about stopping."""
    if stop.half_width is None and stop.threshold is None and stop.against is None:
        raise InputError(
            "stop_when says neither how narrow nor against what.",
            hint="Try StopWhen(half_width=0.01), StopWhen(threshold={'ndcg@10': 0.3}) or against=.",
        )
    other = None if stop.against is None else _comparable_partial(stop.against, steps)
    parts: list[Partial] = []
    sequences: dict[str, ConfidenceSequence] = {}
    n_total, n_seen, reason = len(steps.cases), 0, "all users were needed"
    for block in steps.blocks(stop):
        part = steps.evaluate_block(block, first=not parts)
        parts.append(part)
        n_seen += len(block)
        if not sequences:
            watched = watched_metrics(part, steps.requests, stop)
            share = (1.0 - stop.confidence) / len(watched)
            sequences = {
                name: ConfidenceSequence(
                    n_total, bounds=bounds if other is None else difference_bounds(bounds), alpha=share
                )
                for name, bounds in watched.items()
            }
        for name, sequence in sequences.items():
            values = values_in_order(part, name, block)
            if other is not None:
                values = values - values_in_order(other, name, block)
            sequence.update(values, steps.relative_weights(part, block))
        if progress is not None:
            progress(n_seen, n_total)
        if all(stop.enough(name, s.interval) for name, s in sequences.items()) and n_seen < n_total:
            reason = "what was asked is clear" if other is None else "the winner is clear"
            break
    note = _stop_note(sequences, n_seen, n_total, stop.confidence, reason=reason)
    if other is not None:
        shared = len(np.intersect1d(other.per_case.ids, steps.cases.values))
        _add_verdicts(note, steps.requests, "all users" if shared == n_total else f"{shared:,} users of both")
    return merge(parts), note


def _comparable_partial(against: Any, steps: SteppedEvaluation) -> Partial:
    """The other result, checked to be comparable with this evaluation."""
    if against.conventions != steps.conventions:
        raise ConventionError(
            f"the result in against= has other conventions ({against.conventions}) than this evaluation "
            f"({steps.conventions}).",
            hint="recsys.explain(a, b) says what differs.",
        )
    partial: Partial = against.partial
    missing = [str(r) for r in steps.requests if str(r) not in against.overall]
    if missing:
        raise NotDefinedError(
            f"the result in against= has no {', '.join(missing)}.",
            hint="Evaluate both with the same metrics.",
        )
    if not len(np.intersect1d(partial.per_case.ids, steps.cases.values)):
        raise InputError("the result in against= has none of these users.")
    return partial


def _add_verdicts(note: dict[str, Any], requests: Sequence[Request], over: str) -> None:
    """Add to each difference a verdict: better, worse or not settled."""
    lower = {str(r) for r in requests if r.metric.better == "lower"}
    lines = note["says"].split("\n")
    for at, (name, interval) in enumerate(note["intervals"].items(), 1):
        settled = interval["low"] > 0 or interval["high"] < 0
        better = (interval["low"] > 0) != (name in lower)
        interval["verdict"] = ("better" if better else "worse") if settled else "not settled"
        difference = f"[{interval['low']:.4f}, {interval['high']:.4f}]"
        lines[at] = (
            f"{name} is {interval['verdict']}: difference over {over} in {difference}, {interval['method']}"
        )
    note["says"] = "\n".join(lines)


def difference_bounds(bounds: Bounds | None) -> Bounds | None:
    """The bounds of a difference."""
    return None if bounds is None else (bounds[0] - bounds[1], bounds[1] - bounds[0])


def values_in_order(part: Partial, name: str, block: Array) -> Float:
    """A metric's values in the order of the block; cases missing from the result count as excluded.

    The order matters: within a block, too, each bet is placed before its value is seen.
    """
    return _align_to_block(part, part.per_case.columns[name], block)


def _align_to_block(part: Partial, column: Float, block: Array) -> Float:
    at = Ids(part.per_case.ids).code_of(block)
    return np.where(at >= 0, column[at], np.nan)


def _stop_note(
    sequences: Mapping[str, ConfidenceSequence], n_seen: int, n_total: int, confidence: float, *, reason: str
) -> dict[str, Any]:
    """The note about stopping that a result carries: JSON values, so that it can be saved."""
    saved = 1.0 - n_seen / n_total if n_total else 0.0
    lines = [f"stopped after {n_seen:,} of {n_total:,} users ({saved:.1%} of the work saved): {reason}"]
    intervals = {}
    for name, s in sequences.items():
        low, high, method = s.interval.low, s.interval.high, s.interval.method
        intervals[name] = {"value": s.mean, "low": low, "high": high, "method": method}
        lines.append(f"{name} over all {n_total:,} users: [{low:.4f}, {high:.4f}], {method}")
    lines.append(f"these intervals hold together, at all times, with {confidence:.0%}")
    return {
        "n_seen": n_seen,
        "n_total": n_total,
        "share_saved": saved,
        "reason": reason,
        "confidence": confidence,
        "intervals": intervals,
        "says": "\n".join(lines),
    }
