"""Factors from files: two matrices, and optionally the ids of their rows."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from recsys.errors import FileError
from recsys.inputs.files.matrices import read_arrays
from recsys.inputs.files.reader import IdKind, convert_ids
from recsys.inputs.ids import encode_strings
from recsys.ranks.sources.factors import Factors
from recsys.types import Array

FilePath = str | os.PathLike[str]


def read_factors(
    users: FilePath,
    items: FilePath,
    *,
    user_ids: FilePath | None = None,
    item_ids: FilePath | None = None,
    ids: IdKind | None = None,
) -> Factors:
    """Factors of the matrices in two files (.npy without loading it whole, .npz, .safetensors, .pt).

    Args:
        users: a file with one row of factors per user.
        items: a file with one row of factors per item.
        user_ids: the id of each row of users: one per line, or a .npy; row numbers by default.
        item_ids: the same for the rows of items.
        ids: the type of ids, as in read_file: "str" for text, row numbers included; "int" for whole numbers;
            "auto" for whole numbers if all are. By default ids of files are text, row numbers are numbers.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> np.save(folder / "U.npy", np.ones((2, 3))), np.save(folder / "V.npy", np.ones((4, 3)))
    (None, None)
    >>> read_factors(folder / "U.npy", folder / "V.npy").n_items
    4
    """
    matrices = _read_matrix(Path(users)), _read_matrix(Path(items))
    names: list[Any] = []
    for matrix, file, what in zip(matrices, (user_ids, item_ids), ("user", "item"), strict=True):
        if file is not None:
            names.append(_read_ids(Path(file), what, ids or "str"))
        else:
            names.append([str(row) for row in range(len(matrix))] if ids == "str" else None)
    return Factors(*matrices, user_ids=names[0], item_ids=names[1])


def _read_matrix(file: Path) -> Any:
    matrices = {name: array for name, array in read_arrays(file).items() if array.ndim == 2}
    if len(matrices) != 1:
        names = ", ".join(matrices) or "none"
        raise FileError(
            f"{file} must hold one matrix; it holds {names}.", hint="Store users and items in two files."
        )
    return next(iter(matrices.values()))


def _read_ids(file: Path, what: str, kind: IdKind) -> Array:
    """The ids in a file, as text or whole numbers."""
    try:
        if file.suffix.lower() == ".npy":
            texts = _ids_as_text(np.load(file, allow_pickle=False), file)
        else:
            texts = file.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, ValueError) as error:
        if isinstance(error, FileError):
            raise
        raise FileError(
            f"{file} cannot be read ({error}).", hint="Write one id per line, or a .npy of ids."
        ) from error
    known, codes = encode_strings(np.array(texts, dtype=object), table=str(file), column=what)
    known, codes = convert_ids(known, codes, kind, f"{what} ids of {file}", lambda row: f", row {row}")
    return known.values[codes]


def _ids_as_text(ids: Array, file: Path) -> list[str]:
    """Whole numbers and strings as text; floats are refused, as 10.0 would not match 10 in other files."""
    if ids.ndim == 1 and ids.dtype.kind == "S":
        return [value.decode() for value in ids.tolist()]
    if ids.ndim == 1 and ids.dtype.kind in "iuU":
        return [str(value) for value in ids.tolist()]
    raise FileError(
        f"{file} holds {ids.dtype} values of shape {ids.shape}, not ids.",
        hint="Save one row of whole numbers or strings: np.save(path, ids.astype(np.int64)).",
    )
