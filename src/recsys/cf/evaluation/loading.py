"""Models and test sets from folders, as the examples of document 000 load them.

A model is two matrices whose names say which is which. They are easily exchanged, so the row counts are
checked against the metadata beside the model and the ids of the data.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

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
from recsys.errors import FileError, InputError, MissingFileError, SwappedFactorsWarning, warn
from recsys.inputs.files import read_file
from recsys.inputs.files.matrices import SUFFIXES, read_arrays, read_facts
from recsys.models.baselines import training_counts
from recsys.models.model_files import is_model_file
from recsys.types import Array, Ids, Interactions

_USER_NAMES = re.compile(
    r"(?:^|[_./-])(?:u|users?|user_(?:factors?|embeddings?|matrix))(?:\.weight)?$", re.IGNORECASE
)
_ITEM_NAMES = re.compile(
    r"(?:^|[_./-])(?:v|items?|item_(?:factors?|embeddings?|matrix))(?:\.weight)?$", re.IGNORECASE
)
_USER_COUNT_KEYS = ("num_users", "n_users")
_ITEM_COUNT_KEYS = ("num_items", "n_items")
_METADATA_STEMS = ("metadata", "meta", "config", "params")
_ROW_NAMES = ("i_idx", "item", "item_ids", "product_ids")


class FactorPair(NamedTuple):
    """User factors and item factors."""

    U: Array
    V: Array


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
    return load_factors_and_arrays(path, name=name, n_users=n_users, n_items=n_items, needs=needs)[0]


load_cf_model = load_model


def load_factors_and_arrays(
    path: str | Path,
    *,
    name: str | None = None,
    n_users: int | None = None,
    n_items: int | None = None,
    needs: Sequence[Interactions | None] = (),
) -> tuple[FactorPair, dict[str, Array]]:
    """What `load_model` gives, and every array beside the two matrices, such as the ids of their rows."""
    source = path_of(path, "path")
    arrays: dict[str, Array] = {}
    if source.is_file():
        files, facts = [source], read_facts(source.parent, (source.stem, *_METADATA_STEMS))
    elif source.is_dir():
        files = sorted(file for file in source.iterdir() if file.suffix.lower() in SUFFIXES)
        facts = read_facts(source)
    else:
        raise MissingFileError(
            f"there is no model at {source}.", hint="Name a folder, or a file of matrices."
        )
    if is_model_file(source):
        pair = _model_factors(source)
    else:
        for file in files:
            arrays.update(read_arrays(file))
        pair = FactorPair(
            _pick_matrix(arrays, _USER_NAMES, name, source, "user"),
            _pick_matrix(arrays, _ITEM_NAMES, name, source, "item"),
        )
    if pair.U.ndim != 2 or pair.V.ndim != 2 or pair.U.shape[1] != pair.V.shape[1]:
        raise InputError(
            f"{source}: the matrices have shapes {pair.U.shape} and {pair.V.shape}.",
            hint="Store one row per user and one row per item, both with one column per factor.",
        )
    tables = [interactions for interactions in needs if interactions is not None]
    users = _RowCount("users", n_users, facts, _USER_COUNT_KEYS, [table.cases for table in tables])
    items = _RowCount("items", n_items, facts, _ITEM_COUNT_KEYS, [table.items for table in tables])
    if users.fits(pair.U) and items.fits(pair.V):
        return pair, arrays
    sizes = " and ".join(text for text in (str(users), str(items)) if text)
    if not (users.fits(pair.V) and items.fits(pair.U)):
        raise InputError(
            f"{source}: {len(pair.U):,} user rows and {len(pair.V):,} item rows do not fit {sizes}.",
            hint="Check that model and data use the same numbering.",
        )
    warn(
        SwappedFactorsWarning,
        f"{source}: there are {len(pair.U):,} user rows and {len(pair.V):,} item rows, which is "
        f"the other way round for {sizes}; they were exchanged.",
    )
    return FactorPair(pair.V, pair.U), arrays


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


def _pick_matrix(
    arrays: Mapping[str, Array], pattern: re.Pattern[str], name: str | None, source: Path, what: str
) -> Array:
    """The one matrix whose key matches the pattern and, if a name is given, belongs to that model."""
    model_by_key = {key: key[: match.start()] for key in arrays if (match := pattern.search(key))}
    exact = name in model_by_key.values()
    keys = [
        key
        for key, model in model_by_key.items()
        if name is None or (model == name if exact else key.startswith(name))
    ]
    if len(keys) > 1:  # ids may be stored beside the matrices
        keys = [key for key in keys if arrays[key].ndim == 2] or keys
    if len(keys) == 1:
        return arrays[keys[0]]
    if not keys:
        raise FileError(
            f"{source} holds no {what} matrix; found {', '.join(sorted(arrays)) or 'no matrix at all'}.",
            hint="Call the files or arrays U and V, als_U and als_V, or user_factors and item_factors.",
        )
    raise FileError(
        f"{source} holds several {what} matrices: {', '.join(sorted(keys))}.",
        hint=f"Say which model: name={model_by_key[min(keys)]!r}.",
    )


class _RowCount:
    """How many rows a matrix has, as far as it is known: a number, or the largest id that needs a row."""

    def __init__(
        self, what: str, count: int | None, facts: Mapping[str, Any], keys: Sequence[str], ids: list[Ids]
    ) -> None:
        stored = [facts[key] for key in keys if type(facts.get(key)) is int]
        self.what = what
        self.count = count if count is not None else next(iter(stored), None)
        numbers = [int(one.values[-1]) for one in ids if len(one) and one.kind == "int"]
        self.least = max(numbers, default=-1) + 1

    def fits(self, rows: Array) -> bool:
        return len(rows) >= self.least and self.count in (None, len(rows))

    def __str__(self) -> str:
        if self.count is not None:
            return f"{self.count:,} {self.what}"
        return f"{self.what} up to number {self.least - 1:,}" if self.least else ""


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
