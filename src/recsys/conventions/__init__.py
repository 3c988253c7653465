"""Decisions that the definition of a metric leaves open; presets hold the decisions of other libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recsys.records.registry import lazy_names

if TYPE_CHECKING:
    from recsys.conventions.decisions import DECISIONS, AnyConventions, Conventions
    from recsys.conventions.presets import PRESETS, Preset, preset

__all__ = ["DECISIONS", "PRESETS", "AnyConventions", "Conventions", "Preset", "preset"]
__getattr__, __dir__ = lazy_names(
    __name__,
    {"decisions": ("DECISIONS", "AnyConventions", "Conventions"), "presets": ("PRESETS", "Preset", "preset")},
)
