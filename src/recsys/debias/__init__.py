"""What a metric would be if every relevant item had been observed, and what a policy would have earned.

Clicks and ratings are not missing at random: popular items are seen, and so judged, more often. Weighting
each observed item by one over its chance of being observed corrects that on average, at the cost of variance,
so every estimate comes with an interval and the effective sample size. Names load when first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recsys.records.registry import lazy_names

if TYPE_CHECKING:
    from recsys.debias.policy_values import off_policy as off_policy
    from recsys.debias.propensities import Debiased as Debiased
    from recsys.debias.propensities import Diagnostics as Diagnostics
    from recsys.debias.propensities import effective_sample_size as effective_sample_size
    from recsys.debias.propensities import popularity_propensities as popularity_propensities
    from recsys.debias.propensity_metrics import evaluate as evaluate

__getattr__, __dir__, __all__ = lazy_names(__name__)
