"""The metrics: one decorated function each, read from Hits only; the registry is the only list of them."""

from recsys.metrics import discounted, full_rank, ranking
from recsys.metrics.registry import METRICS, Metric, Terms, lookup, metric

__all__ = ["METRICS", "Metric", "Terms", "discounted", "full_rank", "lookup", "metric", "ranking"]
