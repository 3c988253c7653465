"""Any table of interactions, and any data set whose format is recognised by its files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from recsys.errors import FileError
from recsys.inputs.files.reader import IdKind
from recsys.inputs.files.whole_tables import read_table
from recsys.splits.datasets.amazon_reviews import amazon
from recsys.splits.datasets.dataset import Dataset, Folder, require
from recsys.splits.datasets.movielens_files import movielens
from recsys.splits.datasets.recbole_files import recbole

_MOVIELENS = ("u.data", "ratings.dat", "ratings.csv")
_INTERACTIONS = ("interactions.parquet", "interactions.csv", "interactions.tsv", "ratings.parquet")
_SIDE_TABLES = {
    "items": ("items.parquet", "items.csv", "movies.parquet", "movies.csv"),
    "users": ("users.parquet", "users.csv"),
}


def table(
    path: str | os.PathLike[str],
    *,
    columns: Mapping[str, str] | None = None,
    ids: IdKind = "auto",
    format: str | None = None,  # noqa: A002 - the word users expect
    encoding: str = "utf-8",
) -> Dataset:
    """Interactions from a CSV, TSV, Parquet, .inter or headerless ratings file, with all its columns.

    `columns` maps roles to columns that are not recognised: {"user": "uid", "item": "sku", "time": "when"}.
    """
    folder = Folder(path)
    frame, roles = read_table(path, columns=columns, ids=ids, format=format, encoding=encoding)
    require(roles, frame, str(path), "user", "item")
    return Dataset(folder.name, frame, None, None, roles, {"rows": len(frame)})


def read(path: str | os.PathLike[str], **options: Any) -> Dataset:
    """A data set of any known format; `options` are those of `table`.

    A MovieLens folder or archive, RecBole's atomic files, Amazon's ratings, a folder with
    interactions.parquet (or .csv), or one table.
    """
    folder = Folder(path)
    if folder.path.is_file() and folder.path.suffix.lower() != ".zip":
        name = folder.path.name
        if name.endswith(".inter") and not options:
            return recbole(path)
        is_amazon = name.lower().removesuffix(".gz").endswith(".csv") and name.lower().startswith("ratings_")
        return amazon(path) if is_amazon and not options else table(path, **options)
    if any(name in folder for name in _MOVIELENS):
        return movielens(path)
    if folder.ending(".inter"):
        return recbole(path)
    interactions = next((name for name in _INTERACTIONS if name in folder), None)
    if interactions is None:
        raise FileError(
            f"{path} holds no data set of a known format.",
            hint=f"Expected one of {', '.join((*_MOVIELENS, *_INTERACTIONS))} or an .inter file.",
        )
    frame, roles = read_table(folder.source(interactions), **options)
    require(roles, frame, interactions, "user", "item")
    side_tables = {
        kind: next((read_table(folder.source(name))[0] for name in names if name in folder), None)
        for kind, names in _SIDE_TABLES.items()
    }
    return Dataset(
        folder.name,
        frame,
        side_tables["items"],
        side_tables["users"],
        roles,
        {"rows": len(frame), **folder.notes},
    )
