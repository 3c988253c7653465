"""The metrics: one decorated function each, read from Hits only; the registry is the only list of them."""

from recsys.metrics import (
    against,
    calibration,
    catalogue,
    discounted,
    diversity,
    full_rank,
    intents,
    offered,
    popularity,
    ranking,
    rating,
)
from recsys.metrics.registry import METRICS, RATINGS, Metric, Terms, lookup, lookup_rating, metric
from recsys.metrics.shelf import Shelf

# Metrics are listed as they are imported: those of ratings before those of clicks.
from recsys.metrics import clicks  # isort: skip

__all__ = [
    "METRICS",
    "RATINGS",
    "Metric",
    "Shelf",
    "Terms",
    "against",
    "calibration",
    "catalogue",
    "clicks",
    "discounted",
    "diversity",
    "full_rank",
    "intents",
    "lookup",
    "lookup_rating",
    "metric",
    "offered",
    "popularity",
    "ranking",
    "rating",
]
