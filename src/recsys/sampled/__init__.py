"""What sampled ranks say about the whole catalogue, and what they do not (Krichene & Rendle, KDD 2020).

A positive ranked among n sampled negatives has a rank whose distribution is known once its true rank is. So
a metric of the true rank can be estimated from sampled ranks, better or worse, and the error be known before
anything is measured. Names are imported when first used; SciPy only inside the functions that need it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from recsys.sampled.estimates import METHODS, SampledEstimate, estimate, estimate_all
    from recsys.sampled.importance import estimate_weighted, inclusion_chances, weighted_ranks
    from recsys.sampled.planning import (
        ExpectedError,
        expected_error,
        negatives_needed,
        winner_probability,
    )
    from recsys.sampled.rank_distribution import RankDistribution, fit_ranks

_ROOMS = {
    "estimates": ("METHODS", "SampledEstimate", "estimate", "estimate_all"),
    "importance": ("estimate_weighted", "inclusion_chances", "weighted_ranks"),
    "planning": ("ExpectedError", "expected_error", "negatives_needed", "winner_probability"),
    "rank_distribution": ("RankDistribution", "fit_ranks"),
}
_HOMES = {name: f"recsys.sampled.{room}" for room, names in _ROOMS.items() for name in names}

__all__ = [
    "METHODS",
    "ExpectedError",
    "RankDistribution",
    "SampledEstimate",
    "estimate",
    "estimate_all",
    "estimate_weighted",
    "expected_error",
    "fit_ranks",
    "inclusion_chances",
    "negatives_needed",
    "weighted_ranks",
    "winner_probability",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module 'recsys.sampled' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return list(__all__)
