"""Amazon reviews, "ratings only": user, item, rating and time without a header.

The edition of 2014 has the user first, those of 2018 and later the item. The content shows which it is:
an item has ten characters, a user (nearly always) more.
"""

from __future__ import annotations

import os

import numpy as np

from recsys.errors import FileError, UnknownNameError
from recsys.inputs.files.content import detect_format
from recsys.inputs.files.reader import RATING_COLUMNS
from recsys.inputs.files.whole_tables import read_table
from recsys.splits.datasets.dataset import Dataset, Folder, check_scale

_ORDERS = {"user_first": RATING_COLUMNS, "item_first": ("item_id", "user_id", "rating", "timestamp")}
_ASIN_LENGTH = 10
_STARS = (1.0, 5.0)


def amazon(path: str | os.PathLike[str], *, order: str | None = None) -> Dataset:
    """A "ratings only" file, gzipped or not.

    `order` is "user_first" or "item_first"; by default the content decides.
    """
    if order is not None and order not in _ORDERS:
        raise UnknownNameError("value of order", order, _ORDERS)
    folder = Folder(path)
    source = folder.source(folder.path.name)
    file_format = detect_format(source)
    if file_format not in ("ratings", "csv"):
        raise FileError(
            f"{path} is {file_format}, not user,item,rating,time.", hint="Use recsys.data.table(path)."
        )
    frame, roles = read_table(source, format="ratings", ids="str", header=_ORDERS[order or "user_first"])
    if order is None and _is_item_first(frame["user_id"].to_numpy(), frame["item_id"].to_numpy()):
        order = "item_first"
        frame = frame.rename(columns={"user_id": "item_id", "item_id": "user_id"})
    check_scale(frame, roles["grade"], _STARS, str(path))
    notes = {"format": "amazon", "order": order or "user_first", "rows": len(frame)}
    return Dataset(folder.name, frame, None, None, roles, notes)


def _is_item_first(first: np.ndarray, second: np.ndarray) -> bool:
    """Whether the first column holds the items: all have ten characters, and most in the second have not."""
    sample = slice(0, 10_000)
    lengths = [np.array([len(cell) for cell in column[sample].tolist()]) for column in (first, second)]
    return bool((lengths[0] == _ASIN_LENGTH).all() and (lengths[1] != _ASIN_LENGTH).mean() > 0.5)
