"""Metrics of predicted click probabilities and scores: log-loss, calibration, the order of the rows."""

from __future__ import annotations

import math

import numpy as np

from recsys.conventions.decisions import Conventions
from recsys.errors import ConventionError
from recsys.metrics import full_rank
from recsys.metrics.case_reading import Reading
from recsys.metrics.predictions import Predictions, own_params, rating
from recsys.metrics.registry import Metric, divide_or_nan, register_rating
from recsys.types import Array, Bool, Context, Float, Hits, Int

# The smallest distance from 0 and 1 a probability is allowed, as in scikit-learn's log_loss.
_SMALLEST_PROBABILITY = 2.0**-52
_EXPECTED = Conventions(ties="expected")


def _log_loss_of_rows(p: Predictions) -> Float:
    inside = np.clip(p.probability, _SMALLEST_PROBABILITY, 1.0 - _SMALLEST_PROBABILITY)
    return -np.log(np.where(p.clicked, inside, 1.0 - inside))


@rating(
    "log_loss",
    formula="-mean (y log p + (1 - y) log(1 - p))",
    reference="Good, Rational decisions (1952)",
    better="lower",
    bounds=(0.0, math.inf),
    aliases=("logloss", "cross_entropy"),
    row_value=_log_loss_of_rows,
)
def log_loss(p: Predictions) -> Float:
    """The mean surprise of the clicks under the predicted probabilities, in nats.

    Probabilities are kept 2^-52 away from 0 and 1.
    """
    return p.mean(_log_loss_of_rows(p))


@rating(
    "normalised_entropy",
    formula="log_loss / entropy of the share of clicks",
    reference="He et al., Practical lessons from predicting clicks on ads at Facebook (2014)",
    better="lower",
    bounds=(0.0, math.inf),
    aliases=("ne", "normalized_entropy"),
)
def normalised_entropy(p: Predictions) -> Float:
    """Log-loss over that of always predicting the share of clicks: below 1 is better than that."""
    share = p.mean(p.clicked.astype(np.float64))
    with np.errstate(divide="ignore", invalid="ignore"):
        entropy = -(share * np.log(share) + (1.0 - share) * np.log1p(-share))
    return divide_or_nan(log_loss(p), np.nan_to_num(entropy))


@rating(
    "ece",
    formula="sum over bins of n_bin / n |mean p - share of clicks|",
    reference="Naeini, Cooper & Hauskrecht, Obtaining well calibrated probabilities (2015)",
    better="lower",
    aliases=("calibration_error", "expected_calibration_error"),
)
def ece(p: Predictions, *, bins: float = 10.0, binning: str = "width") -> Float:
    """How far predicted probabilities are from the shares of clicks among rows predicted alike."""
    gap, _ = _calibration_gaps(p, bins, binning)
    return divide_or_nan(gap.sum(axis=1), p.n)


@rating(
    "mce",
    formula="largest |mean p - share of clicks| of a bin",
    reference="Naeini, Cooper & Hauskrecht, Obtaining well calibrated probabilities (2015)",
    better="lower",
    aliases=("max_calibration_error",),
)
def mce(p: Predictions, *, bins: float = 10.0, binning: str = "width") -> Float:
    """The calibration error of the worst bin."""
    gap, size = _calibration_gaps(p, bins, binning)
    worst = np.divide(gap, size, out=np.zeros_like(gap), where=size > 0).max(axis=1)
    return np.where(p.n > 0, worst, np.nan)


def _calibration_gaps(p: Predictions, bins: float, binning: str) -> tuple[Float, Float]:
    """|sum p - clicks| and the number of rows of each bin, groups x bins.

    A bin is (low, high]; the first also holds 0.
    """
    if bins < 1 or bins != int(bins):
        raise ConventionError(f"bins={bins:g} is not a number of bins.", hint="Write ece(bins=10).")
    n_bins = int(bins)
    if binning == "width":
        # Compared with the edges themselves, because p * bins could round across an edge.
        place = np.searchsorted(np.linspace(0.0, 1.0, n_bins + 1)[1:-1], p.probability, side="left")
    elif binning == "count":
        place = _equal_counts(p, n_bins)
    else:
        raise ConventionError(
            f"binning={binning!r} is neither 'width' nor 'count'.", hint="Write ece(binning=count)."
        )
    cell = p.group.astype(np.int64) * n_bins + place
    cells = Predictions(cell, p.n_groups * n_bins, p.actual, p.probability)
    gap = np.abs(cells.total(p.probability - p.clicked))
    return gap.reshape(p.n_groups, n_bins), cells.n.reshape(p.n_groups, n_bins)


def _equal_counts(p: Predictions, n_bins: int) -> Int:
    """Bins with about equally many rows of a group; equal predictions stay together, in the lower bin."""
    order = np.lexsort((p.probability, p.group))
    group, value = p.group[order], p.probability[order]
    starts = np.concatenate([[0], np.cumsum(p.n)]).astype(np.int64)
    at = np.arange(len(order))
    new = _differs_from_previous(group, value)
    first = np.maximum.accumulate(np.where(new, at, 0)) - starts[group]
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


def gauc(p: Predictions, *, weight: str = "impressions") -> Float:
    """AUC within each user's impressions, averaged so that busy users weigh more.

    `weight=clicks` weighs by clicks, `weight=users` weighs all users the same.

    Users who clicked everything or nothing have no AUC and are left out. The mean without weights is
    `user_auc`.
    """
    if weight not in ("impressions", "clicks", "users"):
        raise ConventionError(
            f"gauc weighs by 'impressions', 'clicks' or 'users', not {weight!r}.",
            hint="Write gauc(weight=clicks).",
        )
    return auc(p)


register_rating(
    Metric(
        "gauc", gauc, "sum over users of w AUC / sum of w, w = impressions or clicks of the user",
        "Zhu et al., Optimized cost per click in Taobao display advertising (2017)",
        at_k="never", kind="ratio", needs=("predictions",), empty=math.nan, params=own_params(gauc),
    )
)  # fmt: skip


def gauc_weights(p: Predictions, weight: str) -> Float:
    """The weight of each user in gauc."""
    if weight == "users":
        return np.ones(p.n_groups)
    return p.n if weight == "impressions" else p.total(p.clicked.astype(np.float64))


def _as_hits(p: Predictions) -> Hits:
    """The rows of each group as a ranking by prediction, in which the clicked ones are relevant."""
    order = np.lexsort((-p.predicted, p.group))
    group, score, clicked = p.group[order], p.predicted[order], p.clicked[order]
    new = _differs_from_previous(group, score)
    first = np.flatnonzero(new)
    tie = np.cumsum(new) - 1
    sizes = np.diff(np.concatenate([first, [len(order)]]))
    starts = np.concatenate([[0], np.cumsum(p.n)]).astype(np.int64)
    n_clicked = np.bincount(group[clicked], minlength=p.n_groups)
    return Hits(
        n_cases=p.n_groups,
        case=group[clicked].astype(np.int32),
        item=np.flatnonzero(clicked).astype(np.int32),
        rank=(first[tie] - starts[group] + 1)[clicked],
        grade=None,
        n_listed=p.n.astype(np.int64),
        truth_indptr=np.concatenate([[0], np.cumsum(n_clicked)]),
        truth_grade=None,
        tied=sizes[tie][clicked],
        n_candidates=p.n.astype(np.int64),
    )


def _differs_from_previous(group: Array, value: Float) -> Bool:
    """Which rows differ from the one before, in group or value."""
    new = np.ones(len(group), dtype=bool)
    new[1:] = (group[1:] != group[:-1]) | (value[1:] != value[:-1])
    return new
