"""The package five design documents describe: their names and result keys, computed by `recsys.evaluate`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recsys.records.registry import lazy_names

if TYPE_CHECKING:
    from recsys.cf import evaluation as evaluation
    from recsys.cf import metrics as metrics

__getattr__, __dir__, __all__ = lazy_names(__name__)
