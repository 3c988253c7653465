"""Models and test sets from folders, as the examples of document 000 load them.

A model is two matrices whose names say which is which. They are easily exchanged, so the row counts are
checked against the metadata beside the model and the ids of the data.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from recsys.cf.evaluation.arguments import WHOLE, explained
from recsys.cf.evaluation.translation import (
    ITEM,
    USER,
    EvaluationData,
    items_by_user,
    path_of,
    values_by_index,
)
from recsys.errors import FileError, MissingFileError
from recsys.inputs.files import read_file
from recsys.inputs.files.matrices import read_arrays
from recsys.models.baselines import training_counts
from recsys.models.model_files import is_model_file
from recsys.ranks.sources.factor_files import FactorPair, find_factors, in_order
from recsys.types import Array, Interactions

_ROW_NAMES = ("i_idx", "item", "item_ids", "product_ids")


@explained(n_items=WHOLE)
def load_model(
    path: str | Path,
    *,
    name: str | None = None,
    n_users: int | None = None,
    n_items: int | None = None,
    needs: Sequence[Interactions | None] = (),
) -> FactorPair:
    """U and V of a model: a folder of `*_U.npy` and `*_V.npy`, or an .npz, .safetensors or .pt file of both.

    Args:
        path: the folder or the file.
        name: which model, where a folder holds several (`name="als"` for `als_U.npy`).
        n_users: how many users there are, to detect exchanged matrices; also read from JSON beside them.
        n_items: how many items there are, for the same purpose.
        needs: interactions whose user and item numbers must have a row.

    Exchanged matrices (rows of U = number of items) are swapped back with a SwappedFactorsWarning. Nothing is
    unpickled.
    """
    source = path_of(path, "path")
    pair = _model_factors(source) if is_model_file(source) else find_factors(source, name)[0]
    return in_order(pair, source, n_users=n_users, n_items=n_items, needs=needs)


load_cf_model = load_model


def _model_factors(path: Path) -> FactorPair:
    """Factors whose products are the scores of a model of `recsys train`, with weights and biases."""
    from recsys.models.model_files import describe_model
    from recsys.models.model_files import load_model as load_source
    from recsys.ranks.sources import Factors

    source = load_source(path)
    if not isinstance(source, Factors):
        raise FileError(
            f"{path} holds a model of the kind {describe_model(path)['kind']!r}, whose scores are no "
            "products of factors.",
            hint="recsys.models.load_model(path) reads it, and recsys.evaluate takes that.",
        )
    if source.item_bias is None:
        return FactorPair(source.users, source.items)
    one = np.ones((len(source.users), 1), dtype=source.users.dtype)
    return FactorPair(np.hstack([source.users, one]), np.hstack([source.items, source.item_bias[:, None]]))


class LoadedEmbeddings(NamedTuple):
    """One row per item, and {item: row} if the file says which item each row belongs to."""

    matrix: Array
    item_to_idx: dict[int, int] | None


def load_embeddings(path: str | Path) -> LoadedEmbeddings:
    """The item embeddings of a .npy, .npz, .safetensors or .pt file.

    If there are several arrays, the matrix is `embeddings`, `embedding` or the only one with two dimensions;
    an array `i_idx`, `item`, `item_ids` or `product_ids` beside it (the first of these) says which item each
    row belongs to, by the item's row in the model.
    """
    arrays = read_arrays(path_of(path, "path"))
    matrices = {name: array for name, array in arrays.items() if array.ndim == 2}
    name = next((n for n in ("embeddings", "embedding") if n in matrices), None)
    if name is None and len(matrices) != 1:
        raise FileError(
            f"{path} holds {len(matrices)} matrices: {', '.join(sorted(matrices)) or 'none'}.",
            hint="Call the one with one row per item 'embeddings'.",
        )
    matrix = matrices[name] if name is not None else next(iter(matrices.values()))
    key = next((name for name in _ROW_NAMES if name in arrays), None)
    if key is None:
        return LoadedEmbeddings(matrix, None)
    row_items = arrays[key]
    if (
        row_items.shape != (len(matrix),)
        or row_items.dtype.kind not in "iuf"
        or (row_items != row_items.astype(np.int64)).any()
    ):
        raise FileError(
            f"{path} names {row_items.size} items ({row_items.dtype}) for {len(matrix)} rows in {key!r}.",
            hint="Name each row by the item's row in the model, or leave the names out.",
        )
    item_to_idx = {int(item): row for row, item in enumerate(row_items.tolist())}
    if len(item_to_idx) < len(matrix):
        n_repeated = len(matrix) - len(item_to_idx)
        raise FileError(
            f"{path} names {n_repeated} rows in {key!r} by an item that has another row already.",
            hint="Keep one row per item.",
        )
    return LoadedEmbeddings(matrix, item_to_idx)


@explained(n_items=WHOLE)
def load_test_data(
    path: str | Path = "data/processed",
    *,
    user_col: str = USER,
    item_col: str = ITEM,
    n_items: int | None = None,
) -> EvaluationData:
    """The test set, each user's training items and each item's training count, from a folder.

    The folder holds `test` and `train` tables (.parquet, .csv, .tsv) with user and item row numbers. The
    result unpacks as `test_data, user_pos_train, item_popularity`.
    """
    folder, tables = path_of(path, "path"), []
    for stem in ("test", "train"):
        files = [folder / f"{stem}{suffix}" for suffix in (".parquet", ".csv", ".tsv")]
        file = next((file for file in files if file.is_file()), None)
        if file is None:
            raise MissingFileError(
                f"there is no {stem}.parquet, {stem}.csv or {stem}.tsv in {folder}.",
                hint="load_test_data(path) takes the folder that holds them.",
            )
        tables.append(read_file(file, "truth", columns={"user": user_col, "item": item_col}, ids="int"))
    test, train = tables
    counts = training_counts(train)
    size = max(int(counts.ids[-1]), int(test.items.values[-1])) + 1 if n_items is None else n_items
    popularity = values_by_index(counts.ids, counts.values, size, "the train table")
    return EvaluationData(items_by_user(test, set), items_by_user(train, set), popularity)
