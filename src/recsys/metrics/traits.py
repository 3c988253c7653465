"""What single rooms must know of a metric, one small record for each; no room looks for a metric by its name.

A declaration names the fields of all records as they are, such as `tie_order="set"`; `records_of` puts each
into its record.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from recsys.records.arrays import Bool, Float

TieRule = Literal["linear", "own", "refuse", "shown"]


def quotient(numerator: float, denominator: float, **params: Any) -> float:
    """Return a ratio from its averaged terms; parameters of the metric are ignored."""
    return numerator / denominator if denominator else 0.0


@dataclass(frozen=True)
class Between:
    """The numbers that a parameter may be.

    >>> 1.0 in Between(0, 1), 1.0 in Between(0, 1, closed=True), str(Between(1, whole=True, closed=True))
    (False, True, 'a whole number of at least 1')
    """

    low: float
    high: float = math.inf
    closed: bool = False  # the two ends are among them
    whole: bool = False

    def __contains__(self, value: Any) -> bool:
        inside = isinstance(value, float | int) and (
            self.low < value < self.high or (self.closed and value in (self.low, self.high))
        )
        return inside and (not self.whole or float(value).is_integer())

    def __str__(self) -> str:
        low, high = f"{self.low:g}", f"{self.high:g}"
        ends = f"from {low} to {high}" if self.closed else f"between {low} and {high}"
        if math.isinf(self.high):
            ends = f"of at least {low}" if self.closed else f"above {low}"
        return f"a {'whole ' if self.whole else ''}number {ends}"


UNIT = Between(0, 1)


@dataclass(frozen=True)
class EqualScores:
    """What the engine and best_and_worst_order.py do with equal scores.

    `tie_order` says how their best and their worst order is found. "relevance": hits worth most on top;
    "number": the same, and how many are in the first k places matters too; "items": by the value of each item
    as a list of its own; "set": only which items are in the first k places matters; "unknown". A function
    (reading, k, conventions, best=, **params) gives a number per relevant hit, or per list entry if the
    metric is about the items shown: the highest on top are best, and at the end worst.
    """

    ties: TieRule = "linear"
    tie_order: str | Callable[..., Float | None] = "relevance"


@dataclass(frozen=True)
class Pooling:
    """How the engine makes one number of all cases: by default their mean."""

    summary: Callable[..., float] | None = None
    combine: Callable[..., float] = quotient  # of the means of two `Terms`
    combine_if: tuple[str, str] | Literal["always"] | None = None  # a convention and its value, or always


@dataclass(frozen=True)
class Attainable:
    """What ranges.py and evaluation/bounds know of the values in the data at hand."""

    range: Callable[..., tuple[float, float]] | None = None  # finite bounds found in the data; see ranges.py
    best_lists: str | Callable[..., Any] = ""  # what builds them: a name in evaluation/bounds
    sum_over_places: bool = False  # a cut-off beyond the end of the list changes nothing


@dataclass(frozen=True)
class ItemsShown:
    """What a metric makes of the items shown: for bounds, intervals and the exposure of the catalogue."""

    mean_of_items: bool = False
    counts_items: Literal["", "number", "share"] = ""  # it is the number or share of different items shown
    which_items: Callable[..., Bool] | None = None  # those that count, of `ItemFacts`; None if all do
    exposure: str = "none"  # the weight of a place, where no parameter `weight` says it
    zero_of_none: bool = False  # it is 0, and not undefined, where no judged item is shown

    @property
    def best_lists(self) -> str:
        """How to build the best lists, where this decides it."""
        return (
            "highest_values"
            if self.mean_of_items
            else "even_exposure.most_items"
            if self.counts_items
            else ""
        )


@dataclass(frozen=True)
class TruthRead:
    """What a metric reads of the truth besides which items are relevant."""

    weighted: bool = False  # it has a form with item weights
    reads_judgements: bool = False  # it tells judged items that are not relevant from unjudged ones
    reads_pool: bool = False  # it tells items of a negative grade, pooled and not judged, from the others


@dataclass(frozen=True)
class Additivity:
    """Whether debias can weigh the relevant items one by one."""

    additive: bool | Literal["one item"] = False  # a sum over relevant items, or over the only one
    not_additive: str = "it is not a sum over the relevant items"
    against_others: bool = False  # it compares the relevant items with all others


_RECORDS = {
    "tied": EqualScores,
    "pooling": Pooling,
    "attainable": Attainable,
    "shown": ItemsShown,
    "truth": TruthRead,
    "additivity": Additivity,
}
_RECORD_OF = {field.name: name for name, record in _RECORDS.items() for field in fields(record)}


def records_of(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts of a declaration with those of each record inside it.

    >>> records_of({"better": "lower", "ties": "own"})
    {'better': 'lower', 'tied': EqualScores(ties='own', tie_order='relevance')}
    """
    out = {name: value for name, value in facts.items() if name not in _RECORD_OF}
    for name, record in _RECORDS.items():
        own = {fact: value for fact, value in facts.items() if _RECORD_OF.get(fact) == name}
        if own:
            out[name] = record(**own)
    return out
