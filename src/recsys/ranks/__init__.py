"""The places of the judged items: matched in ready lists, or counted among the candidates of a source."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recsys.records.registry import lazy_names

if TYPE_CHECKING:
    from recsys.ranks.sources import Factors, Scores, from_model, read_factors

__all__ = ["Factors", "Scores", "from_model", "read_factors"]
__getattr__, __dir__ = lazy_names(__name__, {"sources": ("Factors", "Scores", "from_model", "read_factors")})
