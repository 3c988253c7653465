"""Containers, tables and files to Lists and Interactions over coded ids."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recsys.inputs.containers import read_interactions, read_lists
from recsys.records.registry import lazy_names

if TYPE_CHECKING:
    from recsys.inputs.files import read_file

__all__ = ["read_file", "read_interactions", "read_lists"]
__getattr__, _ = lazy_names(__name__, {"files": ("read_file",)})


def __dir__() -> list[str]:
    return __all__
