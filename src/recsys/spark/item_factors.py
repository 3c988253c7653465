"""The factors of the items, as workers get them: with the job, or from a file that all of them can read."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from recsys.errors import FileError, InputError
from recsys.ranks.sources import Factors
from recsys.ranks.sources.factors import as_matrix
from recsys.ranks.sources.source import IdRows, read_row_ids
from recsys.records.arrays import Array, Catalogue, Ids
from recsys.spark.cluster_frames import UserFrame, collect, is_frame

MOST_BYTES = 64 << 20
"""The largest matrix of items that is sent to all workers with the job; a larger one must be a file."""


@dataclass(frozen=True, eq=False)
class ItemFactors:
    """The factors of the items: a matrix, or the file it is in; and the id of each row."""

    matrix: Array | str
    ids: Array | None
    n_items: int

    @classmethod
    def of(cls, items: Any, ids: Any) -> ItemFactors:
        if is_frame(items):
            table = UserFrame.open("item_factors", items, None)
            rows = collect(
                items.select(table.cells("item", None), table.cells("vector", None)), "item_factors"
            )
            ids, items = rows.column(0).to_numpy(), matrix_of(rows.column(1), "item_factors")
        if isinstance(items, str | os.PathLike):
            path = str(Path(items).absolute())
            matrix: Array | str = path
            shape = ItemFactors(path, None, 0).rows().shape
        else:
            matrix = as_matrix(items, "item_factors")
            shape = matrix.shape
            if matrix.nbytes > MOST_BYTES:
                raise InputError(
                    f"the factors of the items take {matrix.nbytes >> 20} MB, and at most "
                    f"{MOST_BYTES >> 20} MB are sent with a job.",
                    table="item_factors",
                    hint="np.save them where the driver and all workers can read, and pass the path.",
                )
        ids = None if ids is None else read_row_ids(ids, "item")
        IdRows(shape[0], ids, what="item")
        return cls(matrix, ids, shape[0])

    @property
    def state(self) -> tuple[int, int] | None:
        """The size of the file and when it was changed."""
        if not isinstance(self.matrix, str):
            return None
        found = Path(self.matrix).stat()
        return found.st_size, found.st_mtime_ns

    def rows(self, which: slice = slice(None)) -> Array:
        """Some of the rows; a file is read where it is used."""
        if not isinstance(self.matrix, str):
            return self.matrix[which]
        try:
            rows: Array = np.load(self.matrix, mmap_mode="r", allow_pickle=False)[which]
        except (OSError, ValueError) as error:
            raise FileError(
                f"{self.matrix} cannot be read as a matrix ({error}).",
                hint="np.save the factors of the items where the driver and all workers can read.",
            ) from error
        return as_matrix(rows, "item_factors")

    def model(self, users: Any, which: slice = slice(None)) -> Factors:
        """Return the factors of some users, of a table, and of some items."""
        ids = np.arange(self.n_items)[which] if self.ids is None else self.ids[which]
        named = self.ids is not None or which != slice(None)
        matrix = matrix_of(users.column(1), "user_factors", self.rows().shape[1])
        own = users.column(0).to_numpy()
        return Factors(matrix, self.rows(which), user_ids=own, item_ids=ids if named else None)

    @property
    def id_type(self) -> str:
        """What Spark calls the type of the ids."""
        return "string" if self.ids is not None and self.ids.dtype == object else "bigint"

    def catalogue(self) -> Catalogue:
        """Return all items."""
        rows = Ids(np.arange(self.n_items), is_range=True)
        ids = rows if self.ids is None else Ids(np.unique(self.ids))
        return Catalogue(ids, self.n_items)


def matrix_of(arrays: Any, table: str, n_factors: int = 0) -> Array:
    """Return a column of arrays, which must be equally long and without gaps, as a matrix."""
    chunk = arrays.combine_chunks()
    values = chunk.flatten().to_numpy(zero_copy_only=False)
    sizes = chunk.value_lengths().to_numpy(zero_copy_only=False)
    width = int(sizes[0]) if len(sizes) else n_factors
    if chunk.null_count or (sizes != width).any() or not np.isfinite(values).all():
        wrong = chunk.is_null().to_numpy(zero_copy_only=False) | ~(sizes == width)
        row = int(np.argmax(wrong)) if wrong.any() else int(np.argmax(~np.isfinite(values))) // width
        raise InputError(
            f"a row of {table} is not an array of {width} finite numbers.",
            table=table,
            column="vector",
            row=row,
            hint="All users and items must have as many factors.",
        )
    return np.asarray(values.reshape(len(sizes), width))
