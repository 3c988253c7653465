"""Metrics of predicted numbers: errors of ratings, log-loss and calibration of clicks, the order of the rows.

Such metrics read rows of predicted and actual numbers, not places, so they have a registry of their own. A
body gets groups of rows and returns one number per group: with all rows in one group it is the pooled metric,
with one group per user the `user_` one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np

from recsys.conventions.decisions import Conventions
from recsys.errors import InputError
from recsys.kernels.exact_sums import exact_sum
from recsys.metrics import full_rank
from recsys.metrics.readings import Reading
from recsys.metrics.registry import Metric, divide_or_nan, divide_or_zero, register_rating
from recsys.metrics.traits import Between, quotient, records_of
from recsys.records.arrays import Array, Bool, Context, Float, Hits, Int, cached_property, runs

Body = Callable[..., Float]
_HERLOCKER = "Herlocker et al., Evaluating collaborative filtering recommender systems (2004)"
_DRAPER = "Draper & Smith, Applied regression analysis (1998)"
# The smallest distance from 0 and 1 a probability is allowed, as in scikit-learn's log_loss.
_SMALLEST_PROBABILITY = 2.0**-52
_EXPECTED = Conventions(ties="expected")
_BINNINGS: dict[str, Any] = {"bins": Between(1, closed=True, whole=True), "binning": ("width", "count")}


class Predictions:
    """Rows of predicted and actual numbers by group, groups ascending; all that a rating metric reads."""

    def __init__(
        self, group: Array, n_groups: int, actual: Float, predicted: Float, user: Array | None = None
    ) -> None:
        self.group = group
        self.n_groups = n_groups
        self.actual = actual
        self.predicted = predicted
        self.user = group if user is None else user
        """The user of each row, ascending; the group by default."""

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
                f"the prediction {self.predicted[np.argmax(wrong)]:g} is not a probability.",
                column="prediction",
                hint="log_loss, normalised_entropy, ece and mce need numbers from 0 to 1; "
                "auc and gauc take any score.",
            )
        return self.predicted


RowValue = Callable[[Predictions], Float]
# By metric: the two sums over the rows of each user that make it, from its values per user.
TERMS: dict[str, Callable[..., tuple[Float, Float]]] = {}


def rating(
    name: str, *, formula: str, reference: str, row_value: RowValue | None = None, **facts: Any
) -> Callable[[Body], Body]:
    """Register a body twice: pooled under its name, and as a mean over users under `user_` and its name.

    Args:
        name: how the metric is requested, such as "rmse".
        formula: its definition in one line.
        reference: the paper or book it comes from.
        row_value: the value averaged over the rows, if the metric is such a mean or a function of one.
        facts: other fields of `Metric` and of its records.
    """

    def register(body: Body) -> Body:
        aliases, combine = facts.pop("aliases", ()), facts.pop("combine", quotient)
        if row_value is not None:
            TERMS[name] = lambda users, _: (users.total(row_value(users)), users.n)
        kind = "rows" if row_value is None else "pooled"
        _register(name, body, formula, reference, kind=kind, aliases=aliases, combine=combine, **facts)
        mean, aliases = f"mean over users of {formula}", [f"user_{alias}" for alias in aliases]
        _register(f"user_{name}", body, mean, reference, aliases=aliases, **facts)
        return body

    return register


def _register(
    name: str, body: Body, formula: str, reference: str, *, aliases: Sequence[str] = (), **facts: Any
) -> None:
    shared: dict[str, Any] = {"at_k": "never", "needs": ("predictions",), "empty": math.nan}
    facts = records_of({**shared, **facts, "aliases": {alias: {} for alias in aliases}})
    register_rating(Metric(name, body, formula, reference, **facts))


def row_mean(name: str, **facts: Any) -> Callable[[RowValue], Body]:
    """Register a value per row as a metric, the mean of that value; arguments as in `rating`."""

    def register(row_value: RowValue) -> Body:
        @wraps(row_value)
        def body(p: Predictions) -> Float:
            return p.mean(row_value(p))

        return rating(name, row_value=row_value, **facts)(body)

    return register


def _root_mean(total: float, n: float) -> float:
    return math.sqrt(total / n) if n else math.nan


@row_mean(
    "mse",
    formula="mean (prediction - actual)^2",
    reference=_HERLOCKER,
    better="lower",
    bounds=(0.0, math.inf),
)
def mse(p: Predictions) -> Float:
    """The mean squared error: an error of four stars weighs sixteen times as much as an error of one."""
    return p.error**2


@rating(
    "rmse",
    formula="sqrt(mean (prediction - actual)^2)",
    reference=_HERLOCKER,
    better="lower",
    bounds=(0.0, math.inf),
    combine=_root_mean,
    row_value=lambda p: p.error**2,
)
def rmse(p: Predictions) -> Float:
    """The root of the mean squared error, in the units of the ratings."""
    return np.sqrt(mse(p))


@row_mean(
    "mae",
    formula="mean |prediction - actual|",
    reference=_HERLOCKER,
    better="lower",
    bounds=(0.0, math.inf),
)
def mae(p: Predictions) -> Float:
    """The mean absolute error: how far off a prediction is on average, in the units of the ratings."""
    return np.abs(p.error)


@row_mean(
    "bias",
    formula="mean (prediction - actual)",
    reference=_DRAPER,
    better="zero",
    bounds=(-math.inf, math.inf),
)
def bias(p: Predictions) -> Float:
    """How much too high predictions are on average; 0 is best, and a negative value is too low."""
    return p.error


@rating(
    "r2",
    formula="1 - sum (prediction - actual)^2 / sum (actual - mean actual)^2",
    reference=_DRAPER,
    bounds=(-math.inf, 1.0),
    aliases=("r_squared",),
)
def r2(p: Predictions) -> Float:
    """How much of the ratings' variation is predicted; predicting their mean gives 0, equal ratings NaN."""
    return 1.0 - divide_or_nan(p.total(p.error**2), p.spread(p.actual))


@rating(
    "explained_variance",
    formula="1 - Var(prediction - actual) / Var(actual)",
    reference=_DRAPER,
    bounds=(-math.inf, 1.0),
)
def explained_variance(p: Predictions) -> Float:
    """R2 that forgives a constant offset of the predictions; NaN if all ratings are equal."""
    return 1.0 - divide_or_nan(p.spread(p.error), p.spread(p.actual))


@row_mean(
    "log_loss",
    formula="-mean (y ln p + (1 - y) ln(1 - p)), y = 1 if the row was clicked, p = prediction",
    reference="Good, Rational decisions (1952)",
    better="lower",
    bounds=(0.0, math.inf),
    aliases=("logloss", "cross_entropy"),
)
def log_loss(p: Predictions) -> Float:
    """The mean surprise of the clicks under the predicted probabilities, in nats.

    Probabilities are kept 2^-52 away from 0 and 1. A row was clicked if its actual number is 1, and was not
    if it is 0.
    """
    inside = np.clip(p.probability, _SMALLEST_PROBABILITY, 1.0 - _SMALLEST_PROBABILITY)
    return -np.log(np.where(p.clicked, inside, 1.0 - inside))


@rating(
    "normalised_entropy",
    formula="log_loss / -(s ln s + (1 - s) ln(1 - s)), s = share of rows that were clicked",
    reference="He et al., Practical lessons from predicting clicks on ads at Facebook (2014)",
    better="lower",
    bounds=(0.0, math.inf),
    aliases=("ne", "normalized_entropy"),
)
def normalised_entropy(p: Predictions) -> Float:
    """Log-loss over that of always predicting the share of clicks: below 1 is better than that.

    It has no value where all rows were clicked or none was.
    """
    share = p.mean(p.clicked.astype(np.float64))
    with np.errstate(divide="ignore", invalid="ignore"):
        entropy = -(share * np.log(share) + (1.0 - share) * np.log1p(-share))
    return divide_or_nan(log_loss(p), np.nan_to_num(entropy))


@rating(
    "ece",
    formula="sum over bins of n_bin / n |mean p - share of clicks|",
    reference="Naeini, Cooper & Hauskrecht, Obtaining well calibrated probabilities (2015)",
    better="lower",
    choices=_BINNINGS,
    aliases=("calibration_error", "expected_calibration_error"),
)
def ece(p: Predictions, *, bins: float = 10.0, binning: str = "width") -> Float:
    """How far predicted probabilities are from the shares of clicks among rows of similar prediction.

    binning=width: bin i of n holds predictions above (i - 1)/n up to i/n, the first one 0 too. binning=count:
    a row is in bin floor(b n / rows), counted from 0, where b rows have a lower prediction.
    """
    gap, _ = _calibration_gaps(p, bins, binning)
    return divide_or_nan(gap.sum(axis=1), p.n)


@rating(
    "mce",
    formula="largest |mean p - share of clicks| of a bin",
    reference="Naeini, Cooper & Hauskrecht, Obtaining well calibrated probabilities (2015)",
    better="lower",
    choices=_BINNINGS,
    aliases=("max_calibration_error",),
)
def mce(p: Predictions, *, bins: float = 10.0, binning: str = "width") -> Float:
    """The calibration error of the worst bin; bins are those of ece, and empty ones do not count."""
    gap, size = _calibration_gaps(p, bins, binning)
    worst = np.divide(gap, size, out=np.zeros_like(gap), where=size > 0).max(axis=1)
    return np.where(p.n > 0, worst, np.nan)


def _calibration_gaps(p: Predictions, bins: float, binning: str) -> tuple[Float, Float]:
    """Return |sum p - clicks| and the number of rows of each bin, groups x bins.

    A bin is (low, high]; the first also holds 0.
    """
    n_bins = int(bins)
    if binning == "width":
        # Compared with the edges themselves, because p * bins could round across an edge.
        place = np.searchsorted(np.arange(1, n_bins) / n_bins, p.probability, side="left")
    else:
        place = _equal_counts(p, n_bins)
    cell = p.group.astype(np.int64) * n_bins + place
    cells = Predictions(cell, p.n_groups * n_bins, p.actual, p.probability)
    gap = np.abs(cells.total(p.probability - p.clicked))
    return gap.reshape(p.n_groups, n_bins), cells.n.reshape(p.n_groups, n_bins)


def _equal_counts(p: Predictions, n_bins: int) -> Int:
    """Bins with about equally many rows of a group; equal predictions stay together, in the lower bin."""
    order = np.lexsort((p.probability, p.group))
    group, value = p.group[order], p.probability[order]
    starts = np.concatenate([[0], np.cumsum(p.n)]).astype(np.int64)
    first = np.repeat(*runs(group, value)) - starts[group]
    place = np.empty(len(order), dtype=np.int64)
    place[order] = first * n_bins // np.maximum(p.n[group].astype(np.int64), 1)
    return place


@rating(
    "auc",
    formula="share of (clicked, not clicked) pairs of rows in the right order, ties a half",
    reference="Hanley & McNeil, The meaning and use of the area under a ROC curve (1982)",
)
def auc(p: Predictions) -> Float:
    """How often a clicked row was given a higher score than one that was not; NaN without both kinds."""
    reading = Reading(_as_hits(p), None, "first", Context(complete=True))
    return full_rank.auc(reading, None, _EXPECTED)


@rating(
    "fcp",
    formula="concordant / (concordant + discordant) pairs of ratings of one user",
    reference="Koren & Sill, Collaborative filtering on ordinal user feedback (2013)",
    choices={"over": ("users", "pairs")},
)
def fcp(p: Predictions, *, over: str = "users") -> Float:
    """The share of pairs of a user's ratings that are predicted in the right order; NaN without such a pair.

    Two different ratings make a pair; it is discordant if the predictions are equal or in the other order.
    Pairs are counted for each user. over=users averages both counts before they are divided, each over the
    users who have such pairs, as Surprise does; over=pairs adds them up.
    """
    first, _ = runs(p.user)
    right, different = _ordered_pairs(p)
    counts = np.stack([np.add.reduceat(n, first) if len(first) else n for n in (right, different - right)])
    # A group is a user, or all of them.
    groups = Predictions(p.group[first], p.n_groups, np.zeros(len(first)), np.zeros(len(first)))
    concordant, discordant = (groups.total(n) for n in counts)
    if over == "users":
        concordant, discordant = (
            divide_or_zero(total, groups.total((n > 0).astype(np.float64)))
            for total, n in ((concordant, counts[0]), (discordant, counts[1]))
        )
    return divide_or_nan(concordant, concordant + discordant)


def _ordered_pairs(p: Predictions) -> tuple[Float, Float]:
    """Count each row's pairs with a lower rating of its user: those that it is predicted above, and all.

    A merge sort that counts: blocks of a user's rows, by rating, are merged two by two, and each row of the
    right block finds how many predictions of the left block lie below its own.
    """
    order = np.lexsort((-p.predicted, p.actual, p.user))
    start, sizes = runs(p.user[order])
    place = np.arange(len(order)) - np.repeat(start, sizes)
    levels, level = np.unique(p.predicted, return_inverse=True)
    level = level.reshape(-1)[order]
    right_order = np.zeros(len(order))
    for width in 2 ** np.arange(int(sizes.max(initial=1)).bit_length()):
        block = (np.repeat(start, sizes) + place // (2 * width)) * len(levels)
        is_right = place // width % 2 == 1
        left = np.sort((block + level)[~is_right])
        below = np.searchsorted(left, (block + level)[is_right]) - np.searchsorted(left, block[is_right])
        right_order[is_right] += below
    equal, n_equal = runs(p.user[order], p.actual[order])
    lower = np.repeat(equal, n_equal) - np.repeat(start, sizes)
    out = np.zeros((2, len(order)))
    out[:, order] = right_order, lower
    return out[0], out[1]


def gauc(p: Predictions, *, weight: str = "impressions") -> Float:
    """AUC within each user's impressions, averaged so that busy users weigh more.

    `weight=clicks` weighs by clicks, `weight=users` weighs all users the same.

    Users who clicked everything or nothing have no AUC and are left out. The mean without weights is
    `user_auc`.
    """
    return auc(p)


def _gauc_terms(p: Predictions, values: Float, *, weight: str) -> tuple[Float, Float]:
    """Return the AUC of each user times its weight, and the weight; NaN for a user without an AUC."""
    weights = p.n if weight == "impressions" else p.total(p.clicked.astype(np.float64))
    weights = np.ones(p.n_groups) if weight == "users" else weights
    return values * weights, np.where(np.isnan(values), np.nan, weights)


TERMS["gauc"] = _gauc_terms
_register(
    "gauc",
    gauc,
    "sum over users of w AUC / sum of w, w = impressions or clicks of the user",
    "Zhu et al., Optimized cost per click in Taobao display advertising (2017)",
    choices={"weight": ("impressions", "clicks", "users")},
)


def _as_hits(p: Predictions) -> Hits:
    """Return the rows of each group as a ranking by prediction, in which the clicked ones are relevant."""
    order = np.lexsort((-p.predicted, p.group))
    group, score, clicked = p.group[order], p.predicted[order], p.clicked[order]
    first, sizes = runs(group, score)
    starts = np.concatenate([[0], np.cumsum(p.n)]).astype(np.int64)
    n_clicked = np.bincount(group[clicked], minlength=p.n_groups)
    return Hits(
        n_cases=p.n_groups,
        case=group[clicked].astype(np.int32),
        item=np.flatnonzero(clicked).astype(np.int32),
        rank=(np.repeat(first, sizes) - starts[group] + 1)[clicked],
        grade=None,
        n_listed=p.n.astype(np.int64),
        truth_indptr=np.concatenate([[0], np.cumsum(n_clicked)]),
        truth_grade=None,
        tied=np.repeat(sizes, sizes)[clicked],
        n_candidates=p.n.astype(np.int64),
    )
