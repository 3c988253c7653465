"""Models and test sets from folders, as the examples of document 000 load them.

A model is two matrices whose names say which is which. They are easily swapped, so the row counts are
checked against the metadata next to the model and the ids of the data.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from recsys.cf.evaluation.translation import (
    ITEM,
    USER,
    EvaluationData,
    cutoff,
    items_by_user,
    values_by_index,
)
from recsys.errors import FileError, MissingFileError, RecsysWarning, warn
from recsys.inputs.files import read_file
from recsys.inputs.files.formats import read_text_file
from recsys.inputs.files.matrices import read_arrays
from recsys.models.baselines import training_counts
from recsys.models.model_files import is_model_file
from recsys.ranks.sources.factor_files import FactorPair, find_factors, in_order
from recsys.records.arrays import Array, Interactions

_ROW_NAMES = ("i_idx", "item", "item_ids", "product_ids")
_SHOP_IDS = "product_ids"


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
        n_users: how many users there are, to detect swapped matrices; also read from JSON next to them.
        n_items: how many items there are, for the same purpose.
        needs: interactions whose user and item numbers must have a row.

    Swapped matrices (rows of U = number of items) are swapped back with a SwappedFactorsWarning. Nothing is
    unpickled.
    """
    source = Path(path)
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
            f"{path} holds a model of the kind {describe_model(path)['kind']!r}, whose scores are not "
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


def load_item_rows(*places: str | Path) -> dict[str, int] | None:
    """{product id: row of the model}, of the first JSON file with `item_to_idx` or `idx_to_item`, else None.

    Args:
        places: JSON files, or folders whose JSON files are looked through: that of the model, of the data.
    """
    for place in map(Path, places):
        for file in sorted(place.glob("*.json")) if place.is_dir() else [place]:
            try:
                content = json.loads(read_text_file(file))
            except ValueError as error:
                raise FileError(f"{file} is not JSON ({error}).", hint="Write it with json.dump.") from error
            facts = content if isinstance(content, dict) else {}
            if isinstance(facts.get("item_to_idx"), dict):
                return {str(item): int(row) for item, row in facts["item_to_idx"].items()}
            items = facts.get("idx_to_item")
            if isinstance(items, dict | list):
                pairs = items.items() if isinstance(items, dict) else enumerate(items)
                return {str(item): int(row) for row, item in pairs}
    return None


def load_embeddings(
    path: str | Path, item_rows: Mapping[str, int] | None = None, *, n_items: int | None = None
) -> LoadedEmbeddings:
    """The item embeddings of a .npy, .npz, .safetensors or .pt file.

    If there are several arrays, the matrix is `embeddings`, `embedding` or the only one with two dimensions.
    An array `i_idx`, `item` or `item_ids` next to it (the first of these) says which item each row belongs
    to, by the item's row in the model. An array `product_ids` holds the ids of a shop: with the arguments
    below they become rows of the model, without them they stay as they are.

    Args:
        path: the file.
        item_rows: {product id: row of the model}, as `load_item_rows` reads it.
        n_items: how many rows the model has. Without `item_rows`, as many rows of embeddings are taken in
            their order, with a warning.

    Raises:
        FileError: rows have product ids alone, no mapping, and are not as many as those of the model.
    """
    arrays = read_arrays(Path(path))
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
    is_mapped = key == _SHOP_IDS and (item_rows is not None or n_items is not None)
    if row_items.shape != (len(matrix),) or (
        not (is_mapped and row_items.dtype.kind in "US")
        and (row_items.dtype.kind not in "iuf" or (row_items != row_items.astype(np.int64)).any())
    ):
        raise FileError(
            f"{path} names {row_items.size} items ({row_items.dtype}) for {len(matrix)} rows in {key!r}.",
            hint="Name each row by the item's row in the model, or leave the names out.",
        )
    item_to_idx = {item if is_mapped else int(item): row for row, item in enumerate(row_items.tolist())}
    if len(item_to_idx) < len(matrix):
        n_repeated = len(matrix) - len(item_to_idx)
        raise FileError(
            f"{path} names {n_repeated} rows in {key!r} by an item that has another row already.",
            hint="Keep one row per item.",
        )
    return LoadedEmbeddings(
        matrix, _rows_of_products(path, item_to_idx, item_rows, n_items) if is_mapped else item_to_idx
    )


def _rows_of_products(
    path: str | Path, products: Mapping[Any, int], item_rows: Mapping[str, int] | None, n_items: int | None
) -> dict[int, int] | None:
    """{row of the model: row of the embeddings} of product ids; None for rows in the order of the model."""
    if item_rows is None:
        if n_items != len(products):
            raise FileError(
                f"{path} names {len(products):,} rows by product ids, the model has {n_items:,} items, and "
                "no mapping says which are which.",
                hint="Keep idx_to_item or item_to_idx in a JSON file next to the model, or pass item_rows=.",
            )
        warn(
            RecsysWarning,
            f"{path} names its rows by product ids, and no mapping says which item of the model each is; "
            "they were taken in the order of the model's items.",
        )
        return None
    known = {item_rows[str(item)]: row for item, row in products.items() if str(item) in item_rows}
    n_unknown, n_missing = len(products) - len(known), len(item_rows) - len(known)
    if n_unknown or n_missing:
        warn(
            RecsysWarning,
            f"{path}: {n_unknown:,} of {len(products):,} product ids are not in the mapping of the model, "
            f"and {n_missing:,} of its {len(item_rows):,} items have no row.",
        )
    return known


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
    folder, tables = Path(path), []
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
    largest = max(int(counts.ids[-1]), int(test.items.values[-1]))
    size = largest + 1 if n_items is None else cutoff(n_items, "n_items")
    popularity = values_by_index(counts.ids, counts.values, size, "the train table")
    return EvaluationData(items_by_user(test, set), items_by_user(train, set), popularity)
