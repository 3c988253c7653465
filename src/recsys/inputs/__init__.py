"""Containers, tables and files to Lists and Interactions over coded ids."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recsys.records.registry import lazy_names

if TYPE_CHECKING:
    from recsys.inputs.containers import read_interactions as read_interactions
    from recsys.inputs.containers import read_lists as read_lists
    from recsys.inputs.files import read_file as read_file

__getattr__, __dir__, __all__ = lazy_names(__name__)
