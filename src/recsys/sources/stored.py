"""Factors from files: two matrices, and ids of their rows from files of their own where they have some."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from recsys.errors import FileError
from recsys.files.arrays import read_arrays
from recsys.sources.factors import Factors

Place = str | os.PathLike[str]


def read_factors(
    users: Place, items: Place, *, user_ids: Place | None = None, item_ids: Place | None = None
) -> Factors:
    """Factors of the matrices in two files (.npy without loading it whole, .npz, .safetensors, .pt).

    Args:
        users: one row of factors a user.
        items: one row of factors an item.
        user_ids: the id of each row of users: one a line, or a .npy; row numbers without.
        item_ids: the id of each row of items.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> np.save(folder / "U.npy", np.ones((2, 3))), np.save(folder / "V.npy", np.ones((4, 3)))
    (None, None)
    >>> read_factors(folder / "U.npy", folder / "V.npy").n_items
    4
    """
    return Factors(
        _matrix(Path(users)),
        _matrix(Path(items)),
        user_ids=None if user_ids is None else _ids(Path(user_ids)),
        item_ids=None if item_ids is None else _ids(Path(item_ids)),
    )


def _matrix(place: Path) -> Any:
    held = {name: array for name, array in read_arrays(place).items() if array.ndim == 2}
    if len(held) != 1:
        names = ", ".join(held) or "none"
        raise FileError(
            f"{place} must hold one matrix; it holds {names}.", hint="Store users and items in two files."
        )
    return next(iter(held.values()))


def _ids(place: Path) -> list[str]:
    """Ids as text, as files give them."""
    try:
        if place.suffix == ".npy":
            return [str(value) for value in np.load(place, allow_pickle=False).tolist()]
        return place.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, ValueError) as error:
        raise FileError(
            f"{place} cannot be read ({error}).", hint="One id a line, or a .npy of ids."
        ) from error
