"""Estimate metrics on the whole catalogue from ranks among sampled negatives (Krichene & Rendle, KDD 2020).

The rank of a positive among n sampled negatives has a known distribution given its true rank. So a metric of
the true rank can be estimated from sampled ranks, with an error that can be computed before anything is
measured. Names are imported when first used; SciPy only inside the functions that need it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recsys.records.registry import lazy_names

if TYPE_CHECKING:
    from recsys.stats.sampled.estimates import (
        METHODS,
        RankDistribution,
        SampledEstimate,
        estimate,
        estimate_all,
        estimate_weighted,
        fit_ranks,
        inclusion_chances,
        weighted_ranks,
    )
    from recsys.stats.sampled.expected_errors import (
        ExpectedError,
        expected_error,
        negatives_needed,
        winner_probability,
    )

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
__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "estimates": (
            "METHODS",
            "RankDistribution",
            "SampledEstimate",
            "estimate",
            "estimate_all",
            "estimate_weighted",
            "fit_ranks",
            "inclusion_chances",
            "weighted_ranks",
        ),
        "expected_errors": ("ExpectedError", "expected_error", "negatives_needed", "winner_probability"),
    },
)
