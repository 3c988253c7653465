"""Containers, tables and files to Lists and Interactions over coded ids."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from recsys import lazy_names
from recsys.inputs.containers import rows_of_container
from recsys.inputs.rows import Rows, to_interactions, to_lists
from recsys.types import Interactions, Lists

if TYPE_CHECKING:
    from recsys.inputs.files import read_file

__all__ = ["read_file", "read_interactions", "read_lists"]
__getattr__, _ = lazy_names(__name__, {"files": ("read_file",)})

_CONTAINERS = (dict, list, tuple, set, frozenset, np.ndarray, str)


def read_lists(data: Any, *, columns: Mapping[str, str] | None = None, table: str = "lists") -> Lists:
    """Recommendation lists from a table or container.

    `columns` maps roles to column names; `table` is the name that error messages use.
    """
    if isinstance(data, Lists):
        return data
    return to_lists(_read_rows(data, ("case", "user", "item", "score", "rank"), columns, table))


def read_interactions(
    data: Any, *, columns: Mapping[str, str] | None = None, table: str = "truth", bare: bool = False
) -> Interactions:
    """Truth, training data or seen items from a table or container; `bare`: without grades and times."""
    if isinstance(data, Interactions):
        return data
    roles = ("case", "user", "item") if bare else ("case", "user", "item", "grade", "time")
    return to_interactions(_read_rows(data, roles, columns, table))


def _read_rows(data: Any, roles: tuple[str, ...], columns: Mapping[str, str] | None, table: str) -> Rows:
    if not isinstance(data, _CONTAINERS):
        from recsys.inputs.frames import as_frame, rows_of_frame

        frame = as_frame(data)
        if frame is not None:
            return rows_of_frame(frame, roles, columns, table)
    return rows_of_container(data, ordered="rank" in roles, table=table)


def __dir__() -> list[str]:
    return __all__
