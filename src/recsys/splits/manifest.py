"""A split written down so that anyone can make it again, and see that it is the same.

Contents are hashed a row at a time over all columns, by value: int32 and int64, or pandas and polars, make no
difference. `content` does not depend on the order of rows, `order` does.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from recsys.errors import FileError, ManifestError, SplitError
from recsys.kernels.keyed_random import Keys, digest, mixed, ordered_digest, text_keys
from recsys.splits.split_result import Folds, Split
from recsys.splits.split_table import InteractionTable, table_of
from recsys.types import Array

FORMAT = "recsys-split-1"
_DECIMAL = re.compile(r"-?(?:0|[1-9][0-9]*)\.[0-9]+")
_MISSING = np.uint64(0x6D697373696E6721)


def manifest_of(split: Split, table: InteractionTable) -> dict[str, Any]:
    """Everything about a split that JSON can hold."""
    keys = row_keys(table)
    parts = [*split.names, *(["excluded"] if split.reasons else [])]
    return {
        "format": FORMAT,
        "how": split.how,
        "parameters": {name: _plain(value) for name, value in split.parameters.items()},
        "seed": int(split.parameters.get("seed", 0)),
        "columns": table.names,
        "counts": {name: count for name, count in split.counts.items() if name != "users_not_in_time_order"},
        "input": {"content": digest(keys), "order": ordered_digest(keys)},
        "parts": {
            name: {"content": digest(keys[split.mask(name)]), "order": ordered_digest(keys[split.mask(name)])}
            for name in parts
        },
    }


def to_json(manifest: Mapping[str, Any]) -> str:
    """A manifest as text; the same split gives the same bytes."""
    return json.dumps(manifest, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"


def read_manifest(given: Mapping[str, Any] | str | os.PathLike[str]) -> dict[str, Any]:
    """A manifest from a file, or from memory; checked for its form."""
    if isinstance(given, Mapping):
        made: dict[str, Any] = dict(given)
    else:
        path = Path(given)
        try:
            made = dict(json.loads(path.read_text("utf-8")))
        except OSError as error:
            raise FileError(
                f"{path} cannot be read: {error.strerror or error}.", hint="Check the path."
            ) from error
        except (ValueError, TypeError) as error:
            raise FileError(f"{path} is not JSON ({error}).", hint="Write it again.") from error
    needed = {"format", "how", "parameters", "counts", "input", "parts"}
    if made.get("format") != FORMAT or needed - set(made):
        raise ManifestError(
            f"this is not a manifest of a split ({FORMAT}).", hint="Pass split.manifest, or its file."
        )
    return made


def rerun(manifest: Mapping[str, Any] | str | os.PathLike[str], data: Any, *, ordered: bool = False) -> Split:
    """Make a split again from its manifest; an error names what is not the same.

    Rows may come in another order, and the parts then hold the same rows in that order; with `ordered` the
    order counts too, so that the parts are the same to the byte.
    """
    from recsys.splits import split

    stored = read_manifest(manifest)
    parameters = dict(stored["parameters"])
    at = parameters.pop("fold", parameters.pop("window", None))
    if parameters.get("scale") is not None:
        parameters["scale"] = tuple(parameters["scale"])
    table = table_of(data, parameters.get("columns"))
    keys = row_keys(table)
    _compare(
        {"content": digest(keys), "order": ordered_digest(keys)}, stored["input"], "the data", ordered=ordered
    )
    made = split(table, how=stored["how"], **parameters)
    if isinstance(made, Folds) != (at is not None):
        raise SplitError(f"{stored['how']} gives {'several splits' if at is None else 'one split'}.")
    one: Split = made[at] if isinstance(made, Folds) else made
    for name, sums in stored["parts"].items():
        if name not in one.manifest["parts"]:
            raise ManifestError(f"the part {name} is not made any more.", differs=[name])
        _compare(one.manifest["parts"][name], sums, f"the part {name}", ordered=ordered)
    return one


def _compare(found: Mapping[str, str], stored: Mapping[str, str], what: str, *, ordered: bool) -> None:
    if found["content"] != stored.get("content"):
        raise ManifestError(
            f"{what} is not what the manifest describes: its content hashes to {found['content']}, "
            f"the manifest says {stored.get('content')}.",
            differs=[what],
            hint="Use the same file, with the same columns, that was split.",
        )
    if ordered and found["order"] != stored.get("order"):
        raise ManifestError(
            f"{what} holds the same rows in another order.",
            differs=[f"order of {what}"],
            hint="Sort the rows as they were, or leave out ordered=True.",
        )


def row_keys(table: InteractionTable) -> Keys:
    """One key a row, of the values of all its columns."""
    total = np.zeros(len(table), dtype=np.uint64)
    coded = {table.role(role): role for role in ("user", "item")}
    for name in sorted(table.names):
        keys = _id_keys(table, coded[name]) if name in coded else _column_keys(table.column(name), name)
        total += mixed(keys ^ text_keys([f"column {name}"])[0])
    return mixed(total)


def _id_keys(table: InteractionTable, role: str) -> Keys:
    ids, codes = table.ids(role)
    return (_array_keys(ids.values, None, role) if ids.kind == "int" else text_keys(ids.values))[codes]


def _column_keys(column: Any, name: str) -> Keys:
    if isinstance(column, np.ndarray):
        return _array_keys(column, None, name)
    import narwhals.stable.v2 as nw

    missing = column.is_null().to_numpy().astype(bool)
    if column.dtype in (nw.Categorical, nw.Enum):
        column = column.cast(nw.String)
    if column.dtype == nw.Date:
        column = column.cast(nw.Datetime("us"))
    if isinstance(column.dtype, nw.Datetime):
        column = column.dt.timestamp("us")
    if column.dtype == nw.String or not (column.dtype.is_numeric() or column.dtype == nw.Boolean):
        return _object_keys(column.to_list(), name)
    if missing.any():
        column = column.fill_null(False if column.dtype == nw.Boolean else 0)
    return _array_keys(column.to_numpy(), missing, name)


def _array_keys(values: Array, missing: Any, name: str) -> Keys:
    if values.dtype.kind in "iub":
        keys = mixed(values.astype(np.int64, copy=False).view(np.uint64))
    elif values.dtype.kind == "f":
        wide = values.astype(np.float64) + 0.0  # no minus zero
        whole = np.isfinite(wide) & (wide == np.floor(wide)) & (np.abs(wide) < 2.0**53)
        bits = np.where(
            whole, np.where(whole, wide, 0).astype(np.int64).view(np.uint64), wide.view(np.uint64)
        )
        keys = mixed(bits)
        missing = np.isnan(wide) if missing is None else missing | np.isnan(wide)
    elif values.dtype.kind == "M":
        keys = mixed(values.astype("datetime64[us]").astype(np.int64).view(np.uint64))
    else:
        return _object_keys(values.tolist(), name)
    if missing is not None:
        keys[missing] = _MISSING
    return keys


def _object_keys(values: list[Any], name: str) -> Keys:
    """Text, and plain Python values by how they are written; each different one is hashed once.

    Numbers written as text count as the numbers, and an empty cell is a missing one, as a file has both.
    """
    texts = [_text_of(value, name) for value in values]
    distinct = {text: at for at, text in enumerate(dict.fromkeys(texts))}
    keys = text_keys(text or "" for text in distinct)
    for text, at in distinct.items():
        if text is None:
            keys[at] = _MISSING
        elif _DECIMAL.fullmatch(text):
            keys[at] = _array_keys(np.array([float(text)]), None, name)[0]
    return keys[np.fromiter((distinct[text] for text in texts), dtype=np.int64, count=len(texts))]


def _text_of(value: Any, name: str) -> str | None:
    if type(value) is str:
        return value or None
    return None if value is None or value != value else _written(value, name)  # noqa: PLR0124 - NaN, NaT


def _written(value: Any, name: str) -> str:
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    shown = repr(value)
    if " at 0x" in shown:
        raise SplitError(
            f"the column {name!r} holds {type(value).__name__} objects, which have no content to hash.",
            table="data",
            column=name,
            hint="Leave the column out of the table, or write it as text.",
        )
    return shown


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, dt.timedelta):
        return f"{value.total_seconds()}s"
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)
