"""What a metric would be if every relevant item had been observed, and what a policy would have earned.

Clicks and ratings are not missing at random: popular items are seen, and so judged, more often. Weighting
each observed item by one over its chance of being observed undoes that on average; what it costs is
variance, so every estimate comes with an interval and the effective sample size. Names load when first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from recsys.debias.estimates import Debiased, Diagnostics
    from recsys.debias.off_policy import off_policy
    from recsys.debias.propensities import effective_sample_size, popularity_propensities
    from recsys.debias.ranking import evaluate

_HOMES = {
    "Debiased": "estimates",
    "Diagnostics": "estimates",
    "effective_sample_size": "propensities",
    "evaluate": "ranking",
    "off_policy": "off_policy",
    "popularity_propensities": "propensities",
}

__all__ = [
    "Debiased",
    "Diagnostics",
    "effective_sample_size",
    "evaluate",
    "off_policy",
    "popularity_propensities",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used; a verb may share its module's name."""
    if name not in _HOMES:
        raise AttributeError(f"module 'recsys.debias' has no attribute {name!r}")
    value = getattr(import_module(f"recsys.debias.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__]
