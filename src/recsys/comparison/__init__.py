"""Comparisons of results: which model is better, why numbers differ, whether a model may ship.

The functions (compare, explain, gate, race, history) are names of `recsys`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recsys.records.registry import lazy_names

if TYPE_CHECKING:
    from recsys.comparison.compare import Comparison
    from recsys.comparison.race import Race

__all__ = ["Comparison", "Race"]
__getattr__, __dir__ = lazy_names(__name__, {"compare": ("Comparison",), "race": ("Race",)})
