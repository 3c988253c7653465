"""Metrics of predicted ratings: how far off they are, and how much of the variation they explain."""

from __future__ import annotations

import math

import numpy as np

from recsys.metrics.predictions import Predictions, rating
from recsys.metrics.registry import divide_or_nan
from recsys.types import Float

_HERLOCKER = "Herlocker et al., Evaluating collaborative filtering recommender systems (2004)"
_DRAPER = "Draper & Smith, Applied regression analysis (1998)"


def _squared_errors(p: Predictions) -> Float:
    return p.error**2


def _absolute_errors(p: Predictions) -> Float:
    return np.abs(p.error)


def _errors(p: Predictions) -> Float:
    return p.error


def _root_mean(total: float, n: float) -> float:
    return math.sqrt(total / n) if n else math.nan


@rating(
    "mse",
    formula="mean (prediction - actual)^2",
    reference=_HERLOCKER,
    better="lower",
    bounds=(0.0, math.inf),
    row_value=_squared_errors,
)
def mse(p: Predictions) -> Float:
    """The mean squared error: an error of four stars weighs sixteen times as much as an error of one."""
    return p.mean(_squared_errors(p))


@rating(
    "rmse",
    formula="sqrt(mean (prediction - actual)^2)",
    reference=_HERLOCKER,
    better="lower",
    bounds=(0.0, math.inf),
    combine=_root_mean,
    row_value=_squared_errors,
)
def rmse(p: Predictions) -> Float:
    """The root of the mean squared error, in the units of the ratings."""
    return np.sqrt(mse(p))


@rating(
    "mae",
    formula="mean |prediction - actual|",
    reference=_HERLOCKER,
    better="lower",
    bounds=(0.0, math.inf),
    row_value=_absolute_errors,
)
def mae(p: Predictions) -> Float:
    """The mean absolute error: how far off a prediction is on average, in the units of the ratings."""
    return p.mean(_absolute_errors(p))


@rating(
    "bias",
    formula="mean (prediction - actual)",
    reference=_DRAPER,
    better="zero",
    bounds=(-math.inf, math.inf),
    row_value=_errors,
)
def bias(p: Predictions) -> Float:
    """How much too high predictions are on average; 0 is best, and a negative value is too low."""
    return p.mean(_errors(p))


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
