"""Two matrices that others wrote: a file, or a folder, with the factors of users and of items by their names.

They are easily swapped, so the row counts are checked against the metadata next to them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from recsys.errors import FileError, InputError, MissingFileError, SwappedFactorsWarning, warn
from recsys.inputs.files.matrices import SUFFIXES, read_arrays, read_facts
from recsys.records.arrays import Array, Ids, Interactions

_NAMES = {
    "user": re.compile(
        r"(?:^|[_./-])(?:u|users?|user_(?:factors?|embeddings?|matrix))(?:\.weight)?$", re.IGNORECASE
    ),
    "item": re.compile(
        r"(?:^|[_./-])(?:v|items?|item_(?:factors?|embeddings?|matrix))(?:\.weight)?$", re.IGNORECASE
    ),
}
_USER_COUNT_KEYS = ("num_users", "n_users")
_ITEM_COUNT_KEYS = ("num_items", "n_items")
_METADATA_STEMS = ("metadata", "meta", "config", "params")


class FactorPair(NamedTuple):
    """User factors and item factors."""

    U: Array
    V: Array


def find_factors(source: Path, name: str | None = None) -> tuple[FactorPair, dict[str, Array]]:
    """Find the two matrices of a file or folder, and every array next to them, such as the ids of rows."""
    files = [source]
    if os.path.isdir(source):  # noqa: PTH112 - False where a name is too long
        files = sorted(file for file in source.iterdir() if file.suffix.lower() in SUFFIXES)
    elif not os.path.isfile(source):  # noqa: PTH113
        raise MissingFileError(
            f"there is no model at {source}.", hint="Name a folder, or a file of matrices."
        )
    arrays: dict[str, Array] = {}
    for file in files:
        arrays.update(read_arrays(file))
    return FactorPair(*(pick_matrix(arrays, what, source, name) for what in _NAMES)), arrays


def in_order(
    pair: FactorPair,
    source: Path,
    *,
    n_users: int | None = None,
    n_items: int | None = None,
    needs: Sequence[Interactions | None] = (),
) -> FactorPair:
    """Return the matrices, swapped if that is what fits the known numbers of their rows.

    Args:
        pair: the matrices.
        source: the file or folder they are from; JSON next to them may hold the numbers.
        n_users: how many users there are.
        n_items: how many items there are.
        needs: interactions whose user and item numbers must have a row.
    """
    folder, stems = (source, None) if source.is_dir() else (source.parent, (source.stem, *_METADATA_STEMS))
    facts = read_facts(folder, stems)
    if pair.U.ndim != 2 or pair.V.ndim != 2 or pair.U.shape[1] != pair.V.shape[1]:
        raise InputError(
            f"{source}: the matrices have shapes {pair.U.shape} and {pair.V.shape}.",
            hint="Store one row per user and one row per item, both with one column per factor.",
        )
    tables = [interactions for interactions in needs if interactions is not None]
    users = _RowCount("users", n_users, facts, _USER_COUNT_KEYS, [table.cases for table in tables])
    items = _RowCount("items", n_items, facts, _ITEM_COUNT_KEYS, [table.items for table in tables])
    if users.fits(pair.U) and items.fits(pair.V):
        return pair
    sizes = " and ".join(text for text in (str(users), str(items)) if text)
    if not (users.fits(pair.V) and items.fits(pair.U)):
        raise InputError(
            f"{source}: {len(pair.U):,} user rows and {len(pair.V):,} item rows do not fit {sizes}.",
            hint="Check that model and data use the same numbering.",
        )
    warn(
        SwappedFactorsWarning,
        f"{source}: there are {len(pair.U):,} user rows and {len(pair.V):,} item rows, which is "
        f"the other way round for {sizes}; they were swapped.",
    )
    return FactorPair(pair.V, pair.U)


def pick_matrix(arrays: Mapping[str, Array], what: str, source: Path, name: str | None = None) -> Array:
    """Return the one matrix named as one of "user" or "item"; of several models, that of this name."""
    model_by_key = {key: key[: match.start()] for key in arrays if (match := _NAMES[what].search(key))}
    exact = name in model_by_key.values()
    keys = [
        key
        for key, model in model_by_key.items()
        if name is None or (model == name if exact else key.startswith(name))
    ]
    if len(keys) > 1:  # ids may be stored next to the matrices
        keys = [key for key in keys if arrays[key].ndim == 2] or keys
    if len(keys) == 1:
        return arrays[keys[0]]
    if not keys:
        raise FileError(
            f"{source} holds no {what} matrix; found {', '.join(sorted(arrays)) or 'no matrix at all'}.",
            hint="Call the files or arrays U and V, als_U and als_V, or user_factors and item_factors. Two "
            "files are read by recsys.read_factors(U, V) or evaluate --factors U V.",
        )
    raise FileError(
        f"{source} holds several {what} matrices: {', '.join(sorted(keys))}.",
        hint=f"Say which model: name={model_by_key[min(keys)]!r}.",
    )


class _RowCount:
    """How many rows a matrix has, as far as it is known: a number, or the largest id that needs a row."""

    def __init__(
        self, what: str, count: int | None, facts: Mapping[str, Any], keys: Sequence[str], ids: list[Ids]
    ) -> None:
        stored = [facts[key] for key in keys if type(facts.get(key)) is int]
        self.what = what
        self.count = count if count is not None else next(iter(stored), None)
        numbers = [int(one.values[-1]) for one in ids if len(one) and one.kind == "int"]
        self.least = max(numbers, default=-1) + 1

    def fits(self, rows: Array) -> bool:
        return len(rows) >= self.least and self.count in (None, len(rows))

    def __str__(self) -> str:
        if self.count is not None:
            return f"{self.count:,} {self.what}"
        return f"{self.what} up to number {self.least - 1:,}" if self.least else ""
