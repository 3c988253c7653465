"""explain(): why two numbers differ: the decisions that differ, what they mean and the effect of each.

Decisions are switched one after the other, in a fixed order, on the same lists and truth; the steps add
up to the whole difference.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Unpack

import numpy as np

from recsys.conventions.decisions import Conventions, describe
from recsys.display.cells import format_cell
from recsys.errors import InputError, TieWarning, hush
from recsys.evaluation.evaluate import evaluate
from recsys.evaluation.evaluate_keywords import RunKeywords
from recsys.evaluation.results import Evaluation
from recsys.records.arrays import Ids

_TOLERANCE = 1e-12


@dataclass(frozen=True)
class Step:
    """One switched decision: its value before and after, and its effect on each metric."""

    decision: str
    before: Any
    after: Any
    words: str
    moved: Mapping[str, tuple[float, float]] | None = None

    @property
    def effect(self) -> str:
        """The effect on the numbers; empty if there was no data to try it on."""
        if self.moved is None:
            return ""
        moves = [f"{m} {format_cell(a)} -> {format_cell(b)}" for m, (a, b) in self.moved.items()]
        return ("; ".join(moves) or "no change here") + ", because "


@dataclass(frozen=True)
class Explanation:
    """The differences between two conventions or results; prints as readable text."""

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


_LISTS_GONE = "the lists behind the results are gone: with lists and truth, each decision is tried on them"


def explain(
    a: Evaluation | Conventions | str,
    b: Evaluation | Conventions | str,
    *,
    lists: Any = None,
    truth: Any = None,
    metrics: Any = None,
    **options: Unpack[RunKeywords],
) -> Explanation:
    """List the decisions that differ between two results or two conventions, and the effect of each.

    With a result (or `lists` and `truth`) every decision is tried on that data; with names alone, or results
    whose lists are gone (merged, or read from files), the differences are only listed.

    >>> lists, truth = {1: [3, 5, 8], 2: [4, 5, 6]}, {1: {3, 8}, 2: {7}}
    >>> print(explain("default", "rectools", lists=lists, truth=truth, metrics=["ndcg@3"]))
    default -> rectools
    - gain: no change here, because the gain of a hit is 1 whatever its grade
    - ideal: ndcg@3 0.4599 -> 0.3520, because the ideal assumes k hits of gain 1, more than a case with fewer relevant items can reach
    - ap_over: no change here, because average precision divides by the number of relevant items
    - accuracy_over: no change here, because accuracy and mcc count k items as shown, however short the list
    - ties: no change here, because equal scores keep the order they were given in
    - duplicates: no change here, because an item listed twice counts twice
    - rank_gaps: no change here, because a rank that a list leaves out is an empty place
    """  # noqa: E501 - the printed line is that long
    first, second = _conventions_of(a), _conventions_of(b)
    results = [side for side in (a, b) if isinstance(side, Evaluation)]
    start = a if isinstance(a, Evaluation) and a.has_lists else None
    if start is None and lists is not None and truth is not None:
        with hush(TieWarning):
            start = evaluate(lists, truth, metrics, conventions=first, **options)
    elif start is None and isinstance(b, Evaluation) and b.has_lists:
        start = b.under(first)
    steps, conventions, current = [], first, start
    for name, (before, after) in first.diff(second).items():
        conventions = replace(conventions, **{name: after})
        moved: dict[str, tuple[float, float]] | None = None
        if current is not None:
            with hush(TieWarning):
                switched = current.under(conventions)
            moved = {m: (current[m], switched[m]) for m in current if not _equal(current[m], switched[m])}
            current = switched
        steps.append(Step(name, before, after, describe(name, after), moved))
    missing_lists = (_LISTS_GONE,) if results and steps and start is None else ()
    title_a, title_b = (side if isinstance(side, str) else str(c) for side, c in ((a, first), (b, second)))
    return Explanation(title_a, title_b, tuple(steps), _remarks(a, b) + missing_lists)


def _remarks(a: Any, b: Any) -> tuple[str, ...]:
    if not (isinstance(a, Evaluation) and isinstance(b, Evaluation)):
        return ()
    remarks = []
    ids_a, ids_b = a.per_case.ids, b.per_case.ids
    if (ids_a.dtype == object) == (ids_b.dtype == object):
        only_a = int((Ids(ids_b).code_of(ids_a) < 0).sum())
        only_b = int((Ids(ids_a).code_of(ids_b) < 0).sum())
        if only_a or only_b:
            remarks.append(
                f"different users: {only_a:,} only in the first result, {only_b:,} only in the second"
            )
    if set(a) != set(b):
        remarks.append(f"different metrics: {', '.join(sorted(set(a) ^ set(b)))} are in one result only")
    if a.aggregate != b.aggregate:
        stated = [one.aggregate.words if one.aggregate else "mean" for one in (a, b)]
        remarks.append(f"different aggregates: the {stated[0]} and the {stated[1]} over users")
    if a.conventions == b.conventions and not remarks and not all(_equal(a[m], b[m]) for m in a if m in b):
        remarks.append("same decisions and same users: the lists or the truth differ")
    return tuple(remarks)


def _conventions_of(value: Any) -> Conventions:
    if isinstance(value, Evaluation):
        return value.conventions
    if isinstance(value, Conventions | str):
        return Conventions.of(value)
    raise InputError(
        f"explain got {type(value).__name__}.", hint="Pass two results, two presets' names or Conventions."
    )


def _equal(a: float, b: float) -> bool:
    return bool(np.isclose(a, b, rtol=_TOLERANCE, atol=0, equal_nan=True))
