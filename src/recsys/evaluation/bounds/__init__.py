"""The range of a metric under the same protocol: the best value of any lists, and the value of random lists.

Every list fills its places with candidates of its user. If that determines a limit, the limit is exact. If a
random ranking has no closed form, random lists are drawn; if the best value cannot be derived, good lists are
built. The ordinary engine measures both: no metric has a second definition here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recsys import lazy_names

if TYPE_CHECKING:
    from recsys.evaluation.bounds.best_and_floor import bounds_of
    from recsys.evaluation.bounds.bounds_table import Bounds, Limits

__all__ = ["Bounds", "Limits", "bounds_of"]
__getattr__, __dir__ = lazy_names(
    __name__, {"best_and_floor": ("bounds_of",), "bounds_table": ("Bounds", "Limits")}
)
