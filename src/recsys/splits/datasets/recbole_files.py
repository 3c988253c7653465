"""RecBole's atomic files: .inter, with .item and .user beside it; header cells are name:type."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from recsys.errors import FileError
from recsys.inputs.files.whole_tables import read_table
from recsys.splits.datasets.dataset import Dataset, Folder, require, where_to_get


def recbole(path: str | os.PathLike[str]) -> Dataset:
    """A folder with one .inter file, or the file itself; columns are converted to their `:type` and lose it.

    A token stays an id or text, a float becomes a number, a sequence stays text.
    """
    folder = Folder(path)
    inter_files = folder.ending(".inter")
    if len(inter_files) != 1:
        raise FileError(
            f"{path} holds {len(inter_files)} .inter files, expected one.",
            hint="Name the file." if inter_files else where_to_get(".inter"),
        )
    frame, roles = _read_typed_table(folder, inter_files[0])
    require(roles, frame, inter_files[0], "user", "item")
    side_tables = {}
    for ending in (".item", ".user"):
        files = folder.ending(ending)
        side_tables[ending] = _read_typed_table(folder, files[0])[0] if files else None
    return Dataset(
        folder.name,
        frame,
        side_tables[".item"],
        side_tables[".user"],
        roles,
        {"format": "inter", **folder.notes},
    )


def _read_typed_table(folder: Folder, name: str) -> tuple[Any, dict[str, str]]:
    frame, roles = read_table(folder.source(name), format="inter")
    for column in frame.columns:
        kind = str(column).partition(":")[2]
        if kind == "float" and frame[column].dtype.kind not in "iuf":
            try:
                frame[column] = np.array([float(cell or "nan") for cell in frame[column]])
            except ValueError as error:
                raise FileError(
                    f"{name}: {column} holds a cell that is no number ({error}).", hint="Correct the cell."
                ) from error
    names = {column: str(column).partition(":")[0] for column in frame.columns}
    if len(set(names.values())) < len(names):
        raise FileError(f"{name}: two columns differ only in their type.", hint="Rename one of them.")
    return frame.rename(columns=names), {role: names[column] for role, column in roles.items()}
