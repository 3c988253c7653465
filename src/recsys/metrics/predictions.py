"""Rows of predicted and actual numbers, and how a metric of them is registered.

Such metrics look at rows, not at places, so they have a registry of their own. A body sees groups of rows and
gives one number a group; with all rows in one group it is the pooled metric, with a group a user the `user_`
one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from recsys.errors import InputError
from recsys.kernels.exact_sums import exact_sum
from recsys.metrics.registry import Metric, quotient, register_rating
from recsys.types import Array, Bool, Float

Body = Callable[..., Float]
_POOLED = "it is taken over all rows at once and has no value a user; ask for user_{}"


class Predictions:
    """Rows of predicted and actual numbers by group, groups ascending; all a rating metric may look at."""

    def __init__(self, group: Array, n_groups: int, actual: Float, predicted: Float) -> None:
        self.group = group
        self.n_groups = n_groups
        self.actual = actual
        self.predicted = predicted

    @cached_property
    def n(self) -> Float:
        """Rows of each group."""
        return np.bincount(self.group, minlength=self.n_groups).astype(np.float64)

    @cached_property
    def error(self) -> Float:
        return self.predicted - self.actual

    def total(self, values: Float) -> Float:
        """Sum of a value over each group; without rounding where there is one group."""
        if self.n_groups == 1:
            return np.array([float(exact_sum(values))])
        return np.bincount(self.group, weights=values, minlength=self.n_groups).astype(np.float64, copy=False)

    def mean(self, values: Float) -> Float:
        """Mean of a value over each group; NaN of an empty one."""
        return over(self.total(values), self.n)

    def spread(self, values: Float) -> Float:
        """Sum of squared distances from the group's mean."""
        return self.total((values - self.mean(values)[self.group]) ** 2)

    @cached_property
    def clicked(self) -> Bool:
        """The actual numbers as labels; anything but 0 and 1 is an error."""
        wrong = (self.actual != 0) & (self.actual != 1)
        if wrong.any():
            raise InputError(
                f"the label {self.actual[np.argmax(wrong)]:g} is neither 0 nor 1.",
                column="actual",
                hint="Click metrics need labels: 1 for a click, 0 for none.",
            )
        return np.asarray(self.actual == 1)

    @cached_property
    def probability(self) -> Float:
        """The predicted numbers as probabilities; anything outside [0, 1] is an error."""
        wrong = (self.predicted < 0) | (self.predicted > 1)
        if wrong.any():
            raise InputError(
                f"the prediction {self.predicted[np.argmax(wrong)]:g} is no probability.",
                column="prediction",
                hint="log_loss, normalised_entropy, ece and mce need numbers from 0 to 1; "
                "auc and gauc take any score.",
            )
        return self.predicted


RowValue = Callable[[Predictions], Float]
# Of metrics that are a mean over the rows or a function of one: users add up.
ROW_VALUES: dict[str, RowValue] = {}


def over(values: Float, by: Float) -> Float:
    """Values / by, and NaN where there is nothing to divide by."""
    return np.asarray(np.divide(values, by, out=np.full(len(values), np.nan), where=by != 0))


def rating(
    name: str, *, formula: str, reference: str, row_value: RowValue | None = None, **facts: Any
) -> Callable[[Body], Body]:
    """Register a body twice: pooled under its name, and as a mean over users under `user_` and its name.

    `row_value` is what is averaged over the rows, where the metric is such a mean or a function of one.
    """

    def register(body: Body) -> Body:
        aliases = tuple(facts.pop("aliases", ()))
        combine = facts.pop("combine", quotient)
        if facts.get("better") == "zero":
            facts["unpaired"] = "neither more nor less of it is better"
        alone: dict[str, Any] = {}
        if row_value is not None:
            ROW_VALUES[name] = row_value
        elif "unpaired" not in facts:
            alone["unpaired"] = _POOLED.format(name)
        of_both: dict[str, Any] = {
            "at_k": "never",
            "needs": ("predictions",),
            "empty": math.nan,
            "params": own_params(body),
        }
        register_rating(
            Metric(
                name, body, formula, reference, kind="derived", aliases={a: {} for a in aliases},
                combine=combine, **of_both, **facts, **alone,
            )
        )  # fmt: skip
        register_rating(
            Metric(
                f"user_{name}", body, f"mean over users of {formula}", reference, kind="per_case",
                aliases={f"user_{a}": {} for a in aliases}, **of_both, **facts,
            )
        )  # fmt: skip
        return body

    return register


def own_params(body: Body) -> dict[str, Any]:
    """The keyword parameters of a body and their defaults."""
    return dict(body.__kwdefaults__ or {})
