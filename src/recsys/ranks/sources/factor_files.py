"""Factors from files: two matrices, and ids of their rows from files of their own where they have some."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from recsys.errors import FileError
from recsys.inputs.files.matrices import read_arrays
from recsys.inputs.files.reader import IdKind, retyped_ids
from recsys.inputs.ids import encode_strings
from recsys.ranks.sources.factors import Factors
from recsys.types import Array

Place = str | os.PathLike[str]


def read_factors(
    users: Place,
    items: Place,
    *,
    user_ids: Place | None = None,
    item_ids: Place | None = None,
    ids: IdKind | None = None,
) -> Factors:
    """Factors of the matrices in two files (.npy without loading it whole, .npz, .safetensors, .pt).

    Args:
        users: one row of factors a user.
        items: one row of factors an item.
        user_ids: the id of each row of users: one a line, or a .npy; row numbers without.
        item_ids: the id of each row of items.
        ids: what ids are, as in read_file: "str" for text, row numbers included; "int" for whole numbers;
            "auto" for whole numbers where all are. Without, those of files are text, row numbers are numbers.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> np.save(folder / "U.npy", np.ones((2, 3))), np.save(folder / "V.npy", np.ones((4, 3)))
    (None, None)
    >>> read_factors(folder / "U.npy", folder / "V.npy").n_items
    4
    """
    matrices = _matrix(Path(users)), _matrix(Path(items))
    names: list[Any] = []
    for matrix, place, what in zip(matrices, (user_ids, item_ids), ("user", "item"), strict=True):
        if place is not None:
            names.append(_ids(Path(place), what, ids or "str"))
        else:
            names.append([str(row) for row in range(len(matrix))] if ids == "str" else None)
    return Factors(*matrices, user_ids=names[0], item_ids=names[1])


def _matrix(place: Path) -> Any:
    held = {name: array for name, array in read_arrays(place).items() if array.ndim == 2}
    if len(held) != 1:
        names = ", ".join(held) or "none"
        raise FileError(
            f"{place} must hold one matrix; it holds {names}.", hint="Store users and items in two files."
        )
    return next(iter(held.values()))


def _ids(place: Path, what: str, wanted: IdKind) -> Array:
    """Ids as they are asked for: text, as files give them, or whole numbers."""
    try:
        if place.suffix.lower() == ".npy":
            texts = _texts(np.load(place, allow_pickle=False), place)
        else:
            texts = place.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, ValueError) as error:
        if isinstance(error, FileError):
            raise
        raise FileError(
            f"{place} cannot be read ({error}).", hint="One id a line, or a .npy of ids."
        ) from error
    made, codes = encode_strings(np.array(texts, dtype=object), table=str(place), column=what)
    made, codes = retyped_ids(made, codes, wanted, f"{what} ids of {place}", lambda row: f", row {row}")
    return made.values[codes]


def _texts(held: Array, place: Path) -> list[str]:
    """Whole numbers and strings as text: 10.0 would be spelled as no other file spells 10."""
    if held.ndim == 1 and held.dtype.kind == "S":
        return [value.decode() for value in held.tolist()]
    if held.ndim == 1 and held.dtype.kind in "iuU":
        return [str(value) for value in held.tolist()]
    raise FileError(
        f"{place} holds {held.dtype} values of shape {held.shape}, not ids.",
        hint="Save one row of whole numbers or strings: np.save(path, ids.astype(np.int64)).",
    )
