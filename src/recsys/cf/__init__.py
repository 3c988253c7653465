"""The package five design documents describe: their names and result keys, computed by `recsys.evaluate`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recsys.records.registry import lazy_names

if TYPE_CHECKING:
    from recsys.cf import evaluation, metrics

__all__ = ["evaluation", "metrics"]
__getattr__, __dir__ = lazy_names(__name__, {}, rooms=("evaluation", "metrics"))
