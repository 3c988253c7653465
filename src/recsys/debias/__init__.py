"""What a metric would be if every relevant item had been observed, and what a policy would have earned.

Clicks and ratings are not missing at random: popular items are seen, and so judged, more often. Weighting
each observed item by one over its chance of being observed corrects that on average, at the cost of variance,
so every estimate comes with an interval and the effective sample size. Names load when first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recsys.records.registry import lazy_names

if TYPE_CHECKING:
    from recsys.debias.policy_values import off_policy
    from recsys.debias.propensities import (
        Debiased,
        Diagnostics,
        effective_sample_size,
        popularity_propensities,
    )
    from recsys.debias.propensity_metrics import evaluate

__all__ = [
    "Debiased",
    "Diagnostics",
    "effective_sample_size",
    "evaluate",
    "off_policy",
    "popularity_propensities",
]
__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "policy_values": ("off_policy",),
        "propensities": ("Debiased", "Diagnostics", "effective_sample_size", "popularity_propensities"),
        "propensity_metrics": ("evaluate",),
    },
)
