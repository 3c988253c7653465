"""RecBole's atomic files: .inter, with .item and .user beside it; a header cell is name:type."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from recsys.errors import FileError
from recsys.inputs.files.whole_tables import read_table
from recsys.splits.datasets.dataset import Dataset, Folder, require, where_to_get


def recbole(path: str | os.PathLike[str]) -> Dataset:
    """A folder with one .inter file, or the file itself; columns lose their `:type` and become what it says.

    token stays an id or text, float becomes a number, sequences stay the text they are.
    """
    folder = Folder(path)
    found = folder.ending(".inter")
    if len(found) != 1:
        raise FileError(
            f"{path} holds {len(found)} .inter files, expected one.",
            hint="Name the file." if found else where_to_get(".inter"),
        )
    frame, roles = _typed(folder, found[0])
    require(roles, frame, found[0], "user", "item")
    beside = {}
    for ending in (".item", ".user"):
        own = folder.ending(ending)
        beside[ending] = _typed(folder, own[0])[0] if own else None
    return Dataset(
        folder.name, frame, beside[".item"], beside[".user"], roles, {"format": "inter", **folder.notes}
    )


def _typed(folder: Folder, name: str) -> tuple[Any, dict[str, str]]:
    frame, roles = read_table(folder.source(name), format="inter")
    for column in frame.columns:
        kind = str(column).partition(":")[2]
        if kind == "float" and frame[column].dtype.kind not in "iuf":
            try:
                frame[column] = np.array([float(cell or "nan") for cell in frame[column]])
            except ValueError as error:
                raise FileError(
                    f"{name}: {column} holds a cell that is no number ({error}).", hint="Mend it."
                ) from error
    names = {column: str(column).partition(":")[0] for column in frame.columns}
    if len(set(names.values())) < len(names):
        raise FileError(f"{name}: two columns have one name but for their type.", hint="Rename one of them.")
    return frame.rename(columns=names), {role: names[column] for role, column in roles.items()}
