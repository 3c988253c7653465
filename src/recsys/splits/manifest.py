"""A record of a split, so that anyone can make it again and check that it is the same.

Each row is hashed over all its columns, by value: int32 and int64, or pandas and polars, give the same hash.
The hash `content` does not depend on the order of rows, `order` does.
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
from recsys.kernels.keyed_random import Keys, digest, mix_bits, ordered_digest, text_keys
from recsys.splits.split_result import Folds, Split
from recsys.splits.split_table import InteractionTable, as_interaction_table
from recsys.types import Array

FORMAT = "recsys-split-1"
_DECIMAL = re.compile(r"-?(?:0|[1-9][0-9]*)\.[0-9]+")
_MISSING = np.uint64(0x6D697373696E6721)


def build_manifest(split: Split, table: InteractionTable) -> dict[str, Any]:
    """The manifest of a split, as values for JSON."""
    keys = row_keys(table)
    parts = [*split.names, *(["excluded"] if split.reasons else [])]
    return {
        "format": FORMAT,
        "how": split.how,
        "parameters": {name: _json_value(value) for name, value in split.parameters.items()},
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
    """A manifest as JSON text; the same split gives the same bytes."""
    return json.dumps(manifest, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"


def read_manifest(given: Mapping[str, Any] | str | os.PathLike[str]) -> dict[str, Any]:
    """A manifest from a file or a mapping.

    Raises:
        FileError: the file cannot be read or is not JSON.
        ManifestError: it is not the manifest of a split.
    """
    if isinstance(given, Mapping):
        manifest: dict[str, Any] = dict(given)
    else:
        path = Path(given)
        try:
            manifest = dict(json.loads(path.read_text("utf-8")))
        except OSError as error:
            raise FileError(
                f"{path} cannot be read: {error.strerror or error}.", hint="Check the path."
            ) from error
        except (ValueError, TypeError) as error:
            raise FileError(f"{path} is not JSON ({error}).", hint="Write it again.") from error
    needed = {"format", "how", "parameters", "counts", "input", "parts"}
    if manifest.get("format") != FORMAT or needed - set(manifest):
        raise ManifestError(
            f"this is not a manifest of a split ({FORMAT}).", hint="Pass split.manifest, or its file."
        )
    return manifest


def rerun(manifest: Mapping[str, Any] | str | os.PathLike[str], data: Any, *, ordered: bool = False) -> Split:
    """Make a split again from its manifest.

    Args:
        manifest: a manifest, or its file.
        data: the data that was split. In another order of rows, the parts have the same rows in that order.
        ordered: the order of rows must be the same too, so that the parts are the same to the byte.

    Raises:
        ManifestError: the data or a part is not the same; it names which.
    """
    from recsys.splits import split

    stored = read_manifest(manifest)
    parameters = dict(stored["parameters"])
    index = parameters.pop("fold", parameters.pop("window", None))
    if parameters.get("scale") is not None:
        parameters["scale"] = tuple(parameters["scale"])
    table = as_interaction_table(data, parameters.get("columns"))
    keys = row_keys(table)
    _check_hashes(
        {"content": digest(keys), "order": ordered_digest(keys)}, stored["input"], "the data", ordered=ordered
    )
    result = split(table, how=stored["how"], **parameters)
    if isinstance(result, Folds) != (index is not None):
        raise SplitError(f"{stored['how']} gives {'several splits' if index is None else 'one split'}.")
    again: Split = result[index] if isinstance(result, Folds) else result
    for name, hashes in stored["parts"].items():
        if name not in again.manifest["parts"]:
            raise ManifestError(f"the part {name} is not made any more.", differs=[name])
        _check_hashes(again.manifest["parts"][name], hashes, f"the part {name}", ordered=ordered)
    return again


def _check_hashes(actual: Mapping[str, str], stored: Mapping[str, str], what: str, *, ordered: bool) -> None:
    if actual["content"] != stored.get("content"):
        raise ManifestError(
            f"{what} is not what the manifest describes: its content hashes to {actual['content']}, "
            f"the manifest says {stored.get('content')}.",
            differs=[what],
            hint="Use the same file, with the same columns, that was split.",
        )
    if ordered and actual["order"] != stored.get("order"):
        raise ManifestError(
            f"{what} holds the same rows in another order.",
            differs=[f"order of {what}"],
            hint="Sort the rows as they were, or leave out ordered=True.",
        )


def row_keys(table: InteractionTable) -> Keys:
    """One key per row, from the values of all its columns."""
    total = np.zeros(len(table), dtype=np.uint64)
    role_of_column = {table.role(role): role for role in ("user", "item")}
    for name in sorted(table.names):
        if name in role_of_column:
            role = role_of_column[name]
            ids, codes = table.ids(role)
            distinct = _array_keys(ids.values, None, role) if ids.kind == "int" else text_keys(ids.values)
            keys = distinct[codes]
        else:
            keys = _column_keys(table.column(name), name)
        total += mix_bits(keys ^ text_keys([f"column {name}"])[0])
    return mix_bits(total)


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
        keys = mix_bits(values.astype(np.int64, copy=False).view(np.uint64))
    elif values.dtype.kind == "f":
        wide = values.astype(np.float64) + 0.0  # no minus zero
        whole = np.isfinite(wide) & (wide == np.floor(wide)) & (np.abs(wide) < 2.0**53)
        bits = np.where(
            whole, np.where(whole, wide, 0).astype(np.int64).view(np.uint64), wide.view(np.uint64)
        )
        keys = mix_bits(bits)
        missing = np.isnan(wide) if missing is None else missing | np.isnan(wide)
    elif values.dtype.kind == "M":
        keys = mix_bits(values.astype("datetime64[us]").astype(np.int64).view(np.uint64))
    else:
        return _object_keys(values.tolist(), name)
    if missing is not None:
        keys[missing] = _MISSING
    return keys


def _object_keys(values: list[Any], name: str) -> Keys:
    """Keys of text, and of other Python values by their repr; each distinct value is hashed once.

    As in a file, a number written as text counts as the number, and empty text as a missing value.
    """
    texts = [_value_text(value, name) for value in values]
    distinct = {text: at for at, text in enumerate(dict.fromkeys(texts))}
    keys = text_keys(text or "" for text in distinct)
    for text, at in distinct.items():
        if text is None:
            keys[at] = _MISSING
        elif _DECIMAL.fullmatch(text):
            keys[at] = _array_keys(np.array([float(text)]), None, name)[0]
    return keys[np.fromiter((distinct[text] for text in texts), dtype=np.int64, count=len(texts))]


def _value_text(value: Any, name: str) -> str | None:
    """The text that is hashed for a value; None if it is missing."""
    if type(value) is str:
        return value or None
    if value is None or value != value:  # noqa: PLR0124 - NaN, NaT
        return None
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    text = repr(value)
    if " at 0x" in text:
        raise SplitError(
            f"the column {name!r} holds {type(value).__name__} objects, which have no content to hash.",
            table="data",
            column=name,
            hint="Leave the column out of the table, or write it as text.",
        )
    return text


def _json_value(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _json_value(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_json_value(entry) for entry in value]
    if isinstance(value, np.generic):
        return _json_value(value.item())
    if isinstance(value, dt.timedelta):
        return f"{value.total_seconds()}s"
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)
