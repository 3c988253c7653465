"""The metrics, one decorated function each; the registry is the only list of them."""

# Importing a module registers its metrics.
from recsys.metrics import (  # noqa: F401
    calibration,
    catalogue,
    discounted,
    diversity,
    expected_exposure,
    full_rank,
    intents,
    predictions,
    ranking,
    reference_lists,
    retrieval,
    shown_items,
    trec_measures,
)
from recsys.metrics.catalogue import CatalogueReading
from recsys.metrics.registry import METRICS, RATINGS, Metric, Terms, lookup, lookup_rating, metric

__all__ = ["METRICS", "RATINGS", "CatalogueReading", "Metric", "Terms", "lookup", "lookup_rating", "metric"]


def __dir__() -> list[str]:
    return __all__
