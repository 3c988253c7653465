"""Decisions a metric's definition leaves open, as values that are printed with every result.

A `Conventions` is a frozen value: compare it, hash it, print it, change one decision with `but`.
`DECISIONS` is the only place that lists the choices of each decision and describes them; the named sets
that reproduce other libraries are rows of `presets.py`.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from recsys.errors import ConventionError, Fix, Phrase, UnknownNameError

DECISIONS: dict[str, dict[str, str]] = {
    "gain": {
        "grade": "the gain of a hit is its grade",
        "binary": "the gain of a hit is 1 whatever its grade",
        "exp2": "the gain of a hit is 2^grade - 1",
        "exp2_next": "the gain of a hit is 2^(grade + 1) - 1",
    },
    "discount": {
        "log2": "place r is discounted by log2(r + 1)",
        "log2_max2": "place r is discounted by log2(max(r, 2)), so the first two places count in full",
        "reciprocal": "place r is discounted by r",
    },
    "ideal": {
        "reachable": "the ideal list holds min(k, relevant) hits",
        "k": "the ideal assumes k hits of gain 1, more than a case with fewer relevant items can reach",
        "list": "the ideal list is no longer than the list that was given",
        "all": "the ideal list holds every relevant item, beyond k too",
    },
    "recall_over": {
        "relevant": "recall divides by the number of relevant items",
        "min": "recall divides by min(k, relevant)",
    },
    "precision_over": {
        "k": "precision divides by k, however short the list",
        "list": "precision divides by the length of the list when it is shorter than k",
        "min": "precision divides by min(k, relevant)",
    },
    "ap_over": {
        "min": "average precision divides by min(k, relevant)",
        "relevant": "average precision divides by the number of relevant items",
        "hits": "average precision divides by the hits in the list",
        "k": "average precision divides by k",
        "list": "average precision divides by min(k, relevant, length of the list)",
    },
    "accuracy_over": {
        "list": "accuracy and mcc take a list shorter than k for one that shows fewer items",
        "k": "accuracy and mcc count k items as shown, however short the list",
    },
    "f1_of": {
        "case": "F is taken per case, then averaged",
        "means": "F is taken of the average precision and the average recall",
    },
    "gini_over": {
        "catalogue": "Gini counts every item of the catalogue, never-recommended ones as zero",
        "recommended": "Gini counts recommended items only",
    },
    "no_truth": {
        "skip": "a case without relevant items is left out of the mean",
        "zero": "a case without relevant items counts as 0",
        "unjudged": "a case without judgements is left out, one judged without a relevant item counts as 0",
        "error": "a case without relevant items is an error",
    },
    "no_list": {
        "empty": "a case without recommendations gets the metric's value for an empty list, mostly 0",
        "skip": "a case without recommendations is left out of the mean",
        "error": "a case without recommendations is an error",
    },
    "ties": {
        "by_id": "equal scores are ordered by item id, ascending",
        "by_id_desc": "equal scores are ordered by item id, descending",
        "given": "equal scores keep the order they were given in",
        "best": "equal scores are in the order that is best for each metric and case",
        "worst": "equal scores are in the order that is worst for each metric and case",
        "expected": "the value is the expectation over all orders of equal scores",
    },
    "duplicates": {
        "first": "an item listed twice counts once, at its first place; the repeat is a miss",
        "all": "an item listed twice counts twice",
        "collapse": "an item listed twice is listed at its first place only, and the list closes up",
        "error": "an item listed twice is an error",
    },
    "rank_gaps": {
        "closed": "places are counted without the ranks that a list leaves out",
        "kept": "a rank that a list leaves out is an empty place",
    },
    "unknown_items": {
        "miss": "a relevant item outside the catalogue stays in the truth, as a miss",
        "drop": "a relevant item outside the catalogue is taken out of the truth",
        "error": "a relevant item outside the catalogue is an error",
    },
    "seen_truth": {
        "miss": "a relevant item the user had already seen stays in the truth",
        "drop": "a relevant item the user had already seen is taken out of the truth",
        "error": "a relevant item the user had already seen is an error",
    },
    "judged_only": {
        "no": "a list keeps its unjudged items: they take their places as misses",
        "yes": "items without a judgement are taken out of the lists before places are given",
    },
    "negative_grades": {
        "error": "a negative grade is an error",
        "unjudged": "an item with a negative grade counts as unjudged",
    },
    "average": {
        "macro": "every case weighs the same",
        "pooled": "numerators and denominators are added over the cases before dividing",
    },
}
"""Every decision: {name: {value: what it means}}; the first value is the default."""

Gain = str | tuple[tuple[float, float], ...] | Callable[..., Any]
Discount = str | tuple[float, ...] | Callable[..., Any]


@dataclass(frozen=True)
class Conventions:
    """All decisions at once; the defaults are ours.

    `gain` may also be a mapping of grades to gains or a function of an array of grades, and `discount` the
    weights of places 1, 2, … or a function of an array of places. `per_metric` holds exceptions: {metric:
    {decision: value}}; a parameter of a request, as in "ndcg(gain=exp2)@10", comes before both.

    >>> Conventions().but(ap_over="relevant").diff(Conventions())
    {'ap_over': ('relevant', 'min')}
    >>> print(Conventions(gain="exp2"))
    default but gain=exp2
    """

    relevant_from: float | None = None
    gain: Gain = "grade"
    max_grade: float | None = None
    discount: Discount = "log2"
    ideal: str = "reachable"
    recall_over: str = "relevant"
    precision_over: str = "k"
    ap_over: str = "min"
    accuracy_over: str = "list"
    f1_of: str = "case"
    gini_over: str = "catalogue"
    no_truth: str = "skip"
    no_list: str = "empty"
    ties: str = "by_id"
    duplicates: str = "first"
    rank_gaps: str = "closed"
    unknown_items: str = "miss"
    seen_truth: str = "miss"
    judged_only: str = "no"
    negative_grades: str = "error"
    average: str = "macro"
    per_metric: tuple[tuple[str, tuple[tuple[str, Any], ...]], ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        for name, choices in DECISIONS.items():
            value = getattr(self, name)
            if isinstance(value, str) and value in choices:
                continue
            if isinstance(value, str) or name not in ("gain", "discount"):
                raise UnknownNameError(f"value of convention {name!r}", value, choices)
            if not callable(value):
                object.__setattr__(self, name, (_gain_table if name == "gain" else _place_weights)(value))
        for name in ("relevant_from", "max_grade"):
            value = getattr(self, name)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int | float) or not -1e300 < value < 1e300:
                raise ConventionError(
                    Phrase("{} is not a finite number.", Fix(name, value)), hint="Pass a number, or none."
                )
            object.__setattr__(self, name, float(value))
        per_metric: Any = self.per_metric
        if not isinstance(per_metric, tuple):
            object.__setattr__(self, "per_metric", _decisions_per_metric(per_metric, self._field_names()))

    @classmethod
    def named(cls, name: str) -> Conventions:
        """Return the conventions of a preset, by its name or an alias, such as "trec_eval".

        Raises:
            UnknownNameError: no preset has this name.
        """
        from recsys.conventions.presets import preset

        return preset(name).conventions

    @classmethod
    def of(cls, value: AnyConventions) -> Conventions:
        """Conventions from any form a caller may pass.

        Args:
            value: None for the defaults, the name of a preset, a mapping of decisions, or conventions.

        Raises:
            ConventionError: `value` is not one of these.
            UnknownNameError: no preset or decision has this name.
        """
        if value is None:
            return _DEFAULT
        if isinstance(value, cls):
            return value
        if isinstance(value, str):
            return _DEFAULT if value == "default" else cls.named(value)
        if isinstance(value, Mapping):
            for name in value:
                if not isinstance(name, str):
                    raise UnknownNameError("convention", name, cls._field_names())
            return cls().but(**value)
        raise ConventionError(
            f"conventions came as {type(value).__name__}.",
            hint="Pass a preset's name, Conventions(...), or a dict such as {'ap_over': 'relevant'}.",
        )

    def but(self, **changes: Any) -> Conventions:
        """Return the same conventions with some decisions changed, for every metric."""
        known = self._field_names()
        for name in changes:
            if name not in known:
                raise UnknownNameError("convention", name, known)
        if self.per_metric and "per_metric" not in changes:
            overrides = {m: {n: v for n, v in rows if n not in changes} for m, rows in self.per_metric}
            changes["per_metric"] = {m: rows for m, rows in overrides.items() if rows}
        return replace(self, **changes)

    def diff(self, other: Conventions) -> dict[str, tuple[Any, Any]]:
        """Return the decisions that differ: {name: (mine, theirs)}."""
        return {n: (a, b) for n in self._field_names() if (a := getattr(self, n)) != (b := getattr(other, n))}

    def for_metric(self, name: str) -> Conventions:
        """These conventions as the metric `name` sees them: some libraries decide differently per metric."""
        for metric, overrides in self.per_metric:
            if metric == name:
                return replace(self, per_metric=(), **dict(overrides))
        return replace(self, per_metric=()) if self.per_metric else self

    def to_dict(self) -> dict[str, Any]:
        """Return values that a JSON file can hold; a function is replaced by its name."""
        from recsys.records.json_values import json_value

        return {name: json_value(value) for name, value in self.items()}

    def items(self) -> Iterator[tuple[str, Any]]:
        return ((name, getattr(self, name)) for name in self._field_names())

    def __str__(self) -> str:
        from recsys.conventions.presets import preset_name
        from recsys.records.json_values import json_value

        name = preset_name(self)
        if name is not None:
            return name
        parts = [
            f"{n}={json_value(a)}" for n, (a, _) in self.diff(Conventions()).items() if n != "per_metric"
        ]
        if self.per_metric:
            parts.append("per_metric(" + ", ".join(name for name, _ in self.per_metric) + ")")
        return "default but " + ", ".join(parts)

    @classmethod
    def _field_names(cls) -> list[str]:
        return [f.name for f in fields(cls)]


_DEFAULT = Conventions()
AnyConventions = Conventions | str | Mapping[str, Any] | None
"""What `conventions=` takes: a value, the name of a preset, decisions by name, or None for the default."""


def relevant(grades: Any, least: float | None) -> Any:
    """Return which grades of an array are relevant: those of at least `least`, and never 0 or less."""
    return grades > 0 if least is None or least <= 0 else grades >= least


def describe(name: str, value: Any) -> str:
    """Describe what a decision means.

    >>> describe("ideal", "k")
    'the ideal assumes k hits of gain 1, more than a case with fewer relevant items can reach'
    >>> describe("relevant_from", 4.0)
    'an item is relevant from grade 4 on'
    >>> describe("per_metric", Conventions(per_metric={"f": {"no_truth": "zero"}}).per_metric)
    'for f only: a case without relevant items counts as 0'
    """
    if name == "relevant_from" and value is None:
        return "an item is relevant when its grade is above 0"
    if name == "relevant_from":
        return f"an item is relevant from grade {value:g} on"
    if name == "max_grade":
        return "the highest grade is " + ("the truth's own" if value is None else f"{value:g}")
    if name == "per_metric":
        by_change: dict[Any, list[str]] = {}
        for metric, changes in value:
            by_change.setdefault(changes, []).append(metric)
        return (
            "; ".join(
                f"for {', '.join(metrics)} only: {', '.join(describe(n, v) for n, v in changes)}"
                for changes, metrics in by_change.items()
            )
            or "no metric decides otherwise than the rest"
        )
    from recsys.records.json_values import json_value

    if isinstance(value, str) and value in DECISIONS.get(name, {}):
        return DECISIONS[name][value]
    return f"{name} is {json_value(value)}"


def _decisions_per_metric(
    per_metric: Any, known: list[str]
) -> tuple[tuple[str, tuple[tuple[str, Any], ...]], ...]:
    rows: list[tuple[Any, Any]] = [*per_metric.items()] if isinstance(per_metric, Mapping) else [(None, None)]
    if not all(isinstance(metric, str) and isinstance(changes, Mapping) for metric, changes in rows):
        raise ConventionError(
            f"per_metric={per_metric!r} must map metrics to decisions.",
            hint="Pass a dict such as {'map': {'ap_over': 'relevant'}}.",
        )
    for _, changes in rows:
        for name in changes:
            if name not in known:
                raise UnknownNameError("convention", name, known)
    return tuple((metric, tuple(sorted(changes.items()))) for metric, changes in sorted(rows))


def _gain_table(gain: Any) -> tuple[tuple[float, float], ...]:
    pairs: tuple[tuple[float, float], ...] = ()
    if isinstance(gain, Mapping | tuple):
        with contextlib.suppress(
            TypeError, ValueError, OverflowError
        ):  # the message below says what is expected
            pairs = tuple(sorted((float(g), float(v)) for g, v in dict(gain).items()))
    if not pairs or not all(0 <= v < math.inf for _, v in pairs):
        raise ConventionError(
            Phrase("{gain=} must map each grade to a finite gain of at least 0.", gain=gain),
            hint="Pass a name, a function of the grades, or a dict such as {1: 1, 2: 3}.",
        )
    return pairs


def _place_weights(discount: Any) -> tuple[float, ...]:
    weights: tuple[float, ...] = ()
    if isinstance(discount, list | tuple) or len(getattr(discount, "shape", ())) == 1:
        with contextlib.suppress(
            TypeError, ValueError, OverflowError
        ):  # the message below says what is expected
            weights = tuple(float(w) for w in discount)
    if not weights or not all(0 <= w < math.inf for w in weights):
        raise ConventionError(
            Phrase("{} must be a name, a function or weights of places 1, 2, …", Fix("discount", discount)),
            hint="Weights are finite and at least 0, such as (1, 0.5, 0.25).",
        )
    return weights
