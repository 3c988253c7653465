"""What a number could have been under the same protocol: the best any lists reach, and what chance gives.

Every list fills its places with candidates of its user. Where a limit follows from that it is exact; where
chance has no closed form random lists are drawn, and where the best cannot be worked out a list is built.
Both are measured by the ordinary engine: no metric has a second definition here.
"""

from recsys.evaluation.bounds.best_and_floor import bounds_of
from recsys.evaluation.bounds.bounds_table import Bounds, Limits

__all__ = ["Bounds", "Limits", "bounds_of"]


def __dir__() -> list[str]:
    return __all__
