"""Models and test sets from folders, as seed 000's examples load them.

A model is two matrices under names that say which is which. People do exchange them, so the row counts are
held against whatever is known about them: metadata beside the model, and the ids of the data.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from recsys.cf.evaluation.translation import ITEM, USER, EvaluationData, as_dict, by_index, history_of
from recsys.errors import FileError, InputError, SwappedFactorsWarning, warn
from recsys.inputs.files import read_file
from recsys.inputs.files.matrices import SUFFIXES, read_arrays, read_facts
from recsys.models.baselines import training_counts
from recsys.types import Array, Interactions

_USERS = re.compile(
    r"(?:^|[_./-])(?:u|users?|user_(?:factors?|embeddings?|matrix))(?:\.weight)?$", re.IGNORECASE
)
_ITEMS = re.compile(
    r"(?:^|[_./-])(?:v|items?|item_(?:factors?|embeddings?|matrix))(?:\.weight)?$", re.IGNORECASE
)
_N_USERS = ("num_users", "n_users")
_N_ITEMS = ("num_items", "n_items")
_BESIDE = ("metadata", "meta", "config", "params")


class FactorPair(NamedTuple):
    """User factors and item factors."""

    U: Array
    V: Array


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
        n_users: how many users there are, to tell exchanged matrices; also read from JSON beside them.
        n_items: how many items there are, likewise.
        needs: data the rows must reach for.

    Exchanged matrices (rows of U = number of items) are put right with a SwappedFactorsWarning. Nothing is
    unpickled.
    """
    place = Path(path)
    arrays, facts = _found(place)
    pair = FactorPair(_one(arrays, _USERS, name, place, "user"), _one(arrays, _ITEMS, name, place, "item"))
    if pair.U.ndim != 2 or pair.V.ndim != 2 or pair.U.shape[1] != pair.V.shape[1]:
        raise InputError(
            f"{place}: the matrices have shapes {pair.U.shape} and {pair.V.shape}.",
            hint="Store one row a user and one row an item, both with as many columns as there are factors.",
        )
    known = _counted(facts, _N_USERS, n_users), _counted(facts, _N_ITEMS, n_items)
    return _put_right(pair, known, _reach(needs), place)


load_cf_model = load_model


def _found(place: Path) -> tuple[dict[str, Array], dict[str, Any]]:
    if place.is_file():
        return read_arrays(place), read_facts(place.parent, (place.stem, *_BESIDE))
    if not place.is_dir():
        raise FileError(f"there is no model at {place}.", hint="Name a folder, or a file of matrices.")
    arrays: dict[str, Array] = {}
    for one in sorted(p for p in place.iterdir() if p.suffix.lower() in SUFFIXES):
        arrays.update(read_arrays(one))
    return arrays, read_facts(place)


def _one(
    arrays: Mapping[str, Array], form: re.Pattern[str], name: str | None, place: Path, what: str
) -> Array:
    models = {key: key[: found.start()] for key in arrays if (found := form.search(key))}
    exact = name in models.values()
    fitting = [
        k for k, own in models.items() if name is None or (own == name if exact else k.startswith(name))
    ]
    if len(fitting) > 1:  # ids may lie beside the matrices
        fitting = [key for key in fitting if arrays[key].ndim == 2] or fitting
    if len(fitting) == 1:
        return arrays[fitting[0]]
    if not fitting:
        raise FileError(
            f"{place} holds no {what} matrix; found {', '.join(sorted(arrays)) or 'no matrix at all'}.",
            hint="Call the files or arrays U and V, als_U and als_V, or user_factors and item_factors.",
        )
    raise FileError(
        f"{place} holds several {what} matrices: {', '.join(sorted(fitting))}.",
        hint=f"Say which model: name={models[min(fitting)]!r}.",
    )


def _counted(facts: Mapping[str, Any], names: Sequence[str], given: int | None) -> int | None:
    held = [facts[name] for name in names if type(facts.get(name)) is int]
    return given if given is not None else next(iter(held), None)


def _reach(needs: Sequence[Interactions | None]) -> tuple[int, int]:
    """How many rows users and items need at least; 0 where ids are texts."""
    held = [rows for rows in needs if rows is not None]
    ends = [
        max((int(ids.values[-1]) + 1 for ids in kinds if len(ids) and ids.kind == "int"), default=0)
        for kinds in ([rows.cases for rows in held], [rows.items for rows in held])
    ]
    return ends[0], ends[1]


def _put_right(
    pair: FactorPair, known: tuple[int | None, int | None], reach: tuple[int, int], place: Path
) -> FactorPair:
    if _fits(pair, known, reach):
        return pair
    turned = FactorPair(pair.V, pair.U)
    if _fits(turned, known, reach):
        warn(
            SwappedFactorsWarning,
            f"{place}: there are {len(pair.U):,} user rows and {len(pair.V):,} item rows, which is "
            f"the other way round for {_said(known, reach)}; they were exchanged.",
        )
        return turned
    raise InputError(
        f"{place}: {len(pair.U):,} user rows and {len(pair.V):,} item rows do not fit {_said(known, reach)}.",
        hint="Check that model and data use the same numbering.",
    )


def _fits(pair: FactorPair, known: tuple[int | None, int | None], reach: tuple[int, int]) -> bool:
    return all(
        len(rows) >= least and n in (None, len(rows))
        for rows, n, least in zip(pair, known, reach, strict=True)
    )


def _said(known: tuple[int | None, int | None], reach: tuple[int, int]) -> str:
    words = [
        f"{n:,} {what}" if n is not None else f"{what} up to number {least - 1:,}"
        for what, n, least in (("users", known[0], reach[0]), ("items", known[1], reach[1]))
        if n is not None or least
    ]
    return " and ".join(words)


class LoadedEmbeddings(NamedTuple):
    """One row an item, and {item: row} where the file says which item each row belongs to."""

    matrix: Array
    item_to_idx: dict[int, int] | None


def load_embeddings(path: str | Path) -> LoadedEmbeddings:
    """The item embeddings of a .npy, .npz, .safetensors or .pt file.

    Of several arrays, `embeddings` (or `embedding`, or the only matrix) is taken; `item`, `item_ids` or
    `i_idx` beside it numbers the rows.
    """
    arrays = read_arrays(path)
    matrices = {name: array for name, array in arrays.items() if array.ndim == 2}
    name = next((n for n in ("embeddings", "embedding") if n in matrices), None)
    if name is None and len(matrices) != 1:
        raise FileError(
            f"{path} holds {len(matrices)} matrices: {', '.join(sorted(matrices)) or 'none'}.",
            hint="Call the one with a row an item 'embeddings'.",
        )
    matrix = matrices[name] if name is not None else next(iter(matrices.values()))
    named = next((arrays[n] for n in ("i_idx", "item", "item_ids") if n in arrays), None)
    if named is None:
        return LoadedEmbeddings(matrix, None)
    if (
        named.shape != (len(matrix),)
        or named.dtype.kind not in "iuf"
        or (named != named.astype(np.int64)).any()
    ):
        raise FileError(
            f"{path} names {named.size} items ({named.dtype}) for {len(matrix)} rows.",
            hint="Name each row by the item's row in the model, or leave the names out.",
        )
    return LoadedEmbeddings(matrix, {int(item): row for row, item in enumerate(named.tolist())})


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
    folder = Path(path)
    columns = {"user": user_col, "item": item_col}
    test, train = (
        read_file(_table(folder, stem), "truth", columns=columns, ids="int") for stem in ("test", "train")
    )
    counts = training_counts(train)
    size = max(int(counts.ids[-1]), int(test.items.values[-1])) + 1 if n_items is None else n_items
    popularity = by_index(counts.ids, counts.values, size, "the train table")
    history = history_of(train)
    return EvaluationData(as_dict(test, set), {} if history is None else as_dict(history, set), popularity)


def _table(folder: Path, stem: str) -> Path:
    for suffix in (".parquet", ".csv", ".tsv"):
        if (folder / f"{stem}{suffix}").is_file():
            return folder / f"{stem}{suffix}"
    raise FileError(
        f"there is no {stem}.parquet, {stem}.csv or {stem}.tsv in {folder}.",
        hint="load_test_data(path) takes the folder that holds them.",
    )
