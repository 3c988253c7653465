"""Decisions that the definition of a metric leaves open; presets hold the decisions of other libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recsys.records.registry import lazy_names

if TYPE_CHECKING:
    from recsys.conventions.decisions import DECISIONS as DECISIONS
    from recsys.conventions.decisions import AnyConventions as AnyConventions
    from recsys.conventions.decisions import Conventions as Conventions
    from recsys.conventions.presets import PRESETS as PRESETS
    from recsys.conventions.presets import Preset as Preset
    from recsys.conventions.presets import preset as preset

__getattr__, __dir__, __all__ = lazy_names(__name__)
