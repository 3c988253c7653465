"""Why two numbers differ: the decisions that differ, in words, and what each does to the value here.

One decision is switched after the other, in a fixed order, on the same lists and truth; the steps add
up to the whole difference.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from recsys.conventions.decisions import Conventions, describe
from recsys.errors import InputError, TieWarning
from recsys.evaluation.evaluate import evaluate
from recsys.evaluation.results import Evaluation
from recsys.evaluation.tables import shown
from recsys.types import Ids

_SAME = 1e-12


@dataclass(frozen=True)
class Step:
    """One decision, switched: what it was, what it became, what that does to each metric."""

    decision: str
    before: Any
    after: Any
    words: str
    moved: Mapping[str, tuple[float, float]] | None = None

    @property
    def effect(self) -> str:
        """What the switch did to the numbers; nothing where there was no data to try it on."""
        if self.moved is None:
            return ""
        moves = [f"{m} {shown(a)} -> {shown(b)}" for m, (a, b) in self.moved.items()]
        return ("; ".join(moves) or "no change here") + ", because "


@dataclass(frozen=True)
class Explanation:
    """What differs between two conventions or results; prints as a readable account."""

    first: str
    second: str
    steps: tuple[Step, ...]
    remarks: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [f"{self.first} -> {self.second}"]
        lines += [f"- {step.decision}: {step.effect}{step.words}" for step in self.steps]
        lines += [f"- {remark}" for remark in self.remarks]
        return "\n".join(lines) if len(lines) > 1 else f"{lines[0]}: no decision differs"

    __repr__ = __str__


_GONE = "the lists behind the results are gone: with lists and truth, each decision is tried on them"


def explain(
    a: Evaluation | Conventions | str,
    b: Evaluation | Conventions | str,
    *,
    lists: Any = None,
    truth: Any = None,
    metrics: Any = None,
    **options: Any,
) -> Explanation:
    """Say which decisions differ between two results or two conventions, and what each one does.

    With a result (or `lists` and `truth`) every decision is tried on that data; with names alone, or results
    whose lists are gone (merged, or read from files), the differences are listed in words.

    >>> lists, truth = {1: [3, 5, 8], 2: [4, 5, 6]}, {1: {3, 8}, 2: {7}}
    >>> print(explain("default", "rectools", lists=lists, truth=truth, metrics=["ndcg@3"]))
    default -> rectools
    - gain: no change here, because the gain of a hit is 1 whatever its grade
    - ideal: ndcg@3 0.4599 -> 0.3520, because the ideal assumes k hits of gain 1, more than a case with fewer relevant items can reach
    - ap_over: no change here, because average precision divides by the number of relevant items
    - ties: no change here, because equal scores keep the order they were given in
    - duplicates: no change here, because an item listed twice counts twice
    """  # noqa: E501 - the printed line is that long
    first, second = _conventions(a), _conventions(b)
    held = [side for side in (a, b) if isinstance(side, Evaluation)]
    start = a if isinstance(a, Evaluation) and a.has_lists else None
    if start is None and lists is not None and truth is not None:
        start = _quiet(lambda: evaluate(lists, truth, metrics, conventions=first, **options))
    elif start is None and isinstance(b, Evaluation) and b.has_lists:
        start = b.under(first)
    steps = _walk(first, second, start)
    gone = (_GONE,) if held and steps and start is None else ()
    return Explanation(_title(a, first), _title(b, second), steps, _remarks(a, b) + gone)


def _walk(first: Conventions, second: Conventions, start: Evaluation | None) -> tuple[Step, ...]:
    steps, here, now = [], first, start
    for name, (before, after) in first.diff(second).items():
        here = replace(here, **{name: after})
        moved: dict[str, tuple[float, float]] | None = None
        if now is not None:
            step_from, step_to = now, here
            then = _quiet(lambda: step_from.under(step_to))  # noqa: B023 - called at once
            moved = {m: (now[m], then[m]) for m in now if not _same(now[m], then[m])}
            now = then
        steps.append(Step(name, before, after, describe(name, after), moved))
    return tuple(steps)


def _remarks(a: Any, b: Any) -> tuple[str, ...]:
    if not (isinstance(a, Evaluation) and isinstance(b, Evaluation)):
        return ()
    remarks = []
    mine, theirs = a.per_case.ids, b.per_case.ids
    if (mine.dtype == object) == (theirs.dtype == object):
        only_a = int((Ids(theirs).code_of(mine) < 0).sum())
        only_b = int((Ids(mine).code_of(theirs) < 0).sum())
        if only_a or only_b:
            remarks.append(
                f"different users: {only_a:,} only in the first result, {only_b:,} only in the second"
            )
    if set(a) != set(b):
        remarks.append(f"different metrics: {', '.join(sorted(set(a) ^ set(b)))} are in one result only")
    if a.conventions == b.conventions and not remarks and not all(_same(a[m], b[m]) for m in a if m in b):
        remarks.append("same decisions and same users: the lists or the truth differ")
    return tuple(remarks)


def _conventions(value: Any) -> Conventions:
    if isinstance(value, Evaluation):
        return value.conventions
    if isinstance(value, Conventions | str):
        return Conventions.of(value)
    raise InputError(
        f"explain got {type(value).__name__}.", hint="Pass two results, two presets' names or Conventions."
    )


def _title(value: Any, conventions: Conventions) -> str:
    return value if isinstance(value, str) else str(conventions)


def _same(a: float, b: float) -> bool:
    return bool(np.isclose(a, b, rtol=_SAME, atol=0, equal_nan=True))


def _quiet(make: Any) -> Evaluation:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TieWarning)
        result: Evaluation = make()
        return result
