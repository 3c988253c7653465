"""Containers, tables and files to Lists and Interactions over coded ids."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recsys import lazy_names

if TYPE_CHECKING:
    from recsys.inputs.files import read_file
    from recsys.inputs.frames import read_interactions, read_lists

__all__ = ["read_file", "read_interactions", "read_lists"]
__getattr__, __dir__ = lazy_names(
    __name__, {"files": ("read_file",), "frames": ("read_interactions", "read_lists")}
)
