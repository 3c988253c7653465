"""Rows of predicted and actual numbers, and how a metric of them is registered.

Such metrics read rows, not places, so they have a registry of their own. A body gets groups of rows and
returns one number per group: with all rows in one group it is the pooled metric, with one group per user the
`user_` one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from recsys.errors import InputError
from recsys.kernels.exact_sums import exact_sum
from recsys.metrics.registry import Metric, divide_or_nan, quotient, register_rating
from recsys.types import Array, Bool, Float

Body = Callable[..., Float]
_POOLED = "it is computed over all rows at once and has no value per user; ask for user_{}"


class Predictions:
    """Rows of predicted and actual numbers by group, groups ascending; all that a rating metric reads."""

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
        """Prediction minus actual, per row."""
        return self.predicted - self.actual

    def total(self, values: Float) -> Float:
        """Sum of one value per row over each group; with a single group the sum is exact."""
        if self.n_groups == 1:
            return np.array([float(exact_sum(values))])
        return np.bincount(self.group, weights=values, minlength=self.n_groups).astype(np.float64, copy=False)

    def mean(self, values: Float) -> Float:
        """Mean of one value per row over each group; NaN for an empty group."""
        return divide_or_nan(self.total(values), self.n)

    def spread(self, values: Float) -> Float:
        """Sum of squared distances from the group's mean."""
        return self.total((values - self.mean(values)[self.group]) ** 2)

    @cached_property
    def clicked(self) -> Bool:
        """Which rows were clicked: the actual numbers as labels.

        Raises:
            InputError: a number is neither 0 nor 1.
        """
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
        """The predicted numbers as probabilities.

        Raises:
            InputError: a number lies outside [0, 1].
        """
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
# By metric that is a mean over rows or a function of one: the value that is averaged. Sums of users add up.
ROW_VALUES: dict[str, RowValue] = {}


def rating(
    name: str, *, formula: str, reference: str, row_value: RowValue | None = None, **facts: Any
) -> Callable[[Body], Body]:
    """Register a body twice: pooled under its name, and as a mean over users under `user_` and its name.

    Args:
        name: how the metric is requested, such as "rmse".
        formula: its definition in one line.
        reference: the paper or book it comes from.
        row_value: the value averaged over the rows, if the metric is such a mean or a function of one.
        facts: other fields of `Metric`.
    """

    def register(body: Body) -> Body:
        aliases = tuple(facts.pop("aliases", ()))
        combine = facts.pop("combine", quotient)
        if facts.get("better") == "zero":
            facts["unpaired"] = "neither more nor less of it is better"
        pooled_only: dict[str, Any] = {}
        if row_value is not None:
            ROW_VALUES[name] = row_value
        elif "unpaired" not in facts:
            pooled_only["unpaired"] = _POOLED.format(name)
        shared: dict[str, Any] = {
            "at_k": "never",
            "needs": ("predictions",),
            "empty": math.nan,
            "params": own_params(body),
        }
        register_rating(
            Metric(
                name, body, formula, reference, kind="derived", aliases={a: {} for a in aliases},
                combine=combine, **shared, **facts, **pooled_only,
            )
        )  # fmt: skip
        register_rating(
            Metric(
                f"user_{name}", body, f"mean over users of {formula}", reference, kind="per_case",
                aliases={f"user_{a}": {} for a in aliases}, **shared, **facts,
            )
        )  # fmt: skip
        return body

    return register


def own_params(body: Body) -> dict[str, Any]:
    """The keyword parameters of a body and their defaults."""
    return dict(body.__kwdefaults__ or {})
