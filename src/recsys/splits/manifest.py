"""A record of a split, so that anyone can make it again and check that it is the same; its parts as files.

Each row is hashed over all its columns, by value: int32 and int64, or pandas and polars, give the same hash.
The hash `content` does not depend on the order of rows, `order` does.
"""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from recsys.errors import FileError, ManifestError, SplitError
from recsys.inputs.files import write_text
from recsys.inputs.files.atomic_folder import remove_folder
from recsys.inputs.files.atomic_write import write_errors_of
from recsys.inputs.files.formats import FORMATS, file_sha256, read_text_file
from recsys.inputs.files.reader import write_table
from recsys.inputs.frames import as_frame, column_array
from recsys.kernels.keyed_random import Keys, digest, mix_bits, ordered_digest, text_keys
from recsys.records.arrays import Array
from recsys.records.json_values import json_value
from recsys.splits.split_result import Folds, Split
from recsys.splits.split_table import FrameTable, InteractionTable, as_interaction_table
from recsys.splits.strategies import split

FORMAT = "recsys-split-1"
_DECIMAL = re.compile(r"-?(?:0|[1-9][0-9]*)\.[0-9]+")
_MISSING = np.uint64(0x6D697373696E6721)


def build_manifest(split: Split, table: InteractionTable) -> dict[str, Any]:
    """Return the manifest of a split, as values for JSON."""
    keys = row_keys(table)
    parts = [*split.names, *(["excluded"] if split.reasons else [])]
    return {
        "format": FORMAT,
        "how": split.how,
        "parameters": json_value(split.parameters),
        "seed": int(split.parameters.get("seed", 0)),
        "columns": table.names,
        "counts": {name: count for name, count in split.counts.items() if name != "users_not_in_time_order"},
        "input": _hashes(keys),
        "parts": {name: _hashes(keys[split.mask(name)]) for name in parts},
    }


def _hashes(keys: Keys) -> dict[str, str]:
    return {"content": digest(keys), "order": ordered_digest(keys)}


def to_json(manifest: Mapping[str, Any]) -> str:
    """Return a manifest as JSON text; the same split gives the same bytes."""
    return json.dumps(manifest, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"


def read_manifest(given: Mapping[str, Any] | str | os.PathLike[str]) -> dict[str, Any]:
    """Return a manifest from a file or a mapping.

    Raises:
        FileError: the file cannot be read or is not JSON.
        ManifestError: it is not the manifest of a split.
    """
    if isinstance(given, Mapping):
        manifest: dict[str, Any] = dict(given)
    else:
        path = Path(given)
        text = read_text_file(path)
        try:
            manifest = dict(json.loads(text))
        except (RecursionError, ValueError, TypeError) as error:
            raise FileError(f"{path} is not JSON ({error}).", hint="Write it again.") from error
    needed = {"format", "how", "parameters", "counts", "input", "parts"}
    tables = [manifest.get(name) for name in ("parameters", "input", "parts")]
    if isinstance(tables[-1], dict):
        tables += tables[-1].values()
    if (
        manifest.get("format") != FORMAT
        or needed - set(manifest)
        or not all(isinstance(table, dict) for table in tables)
    ):
        raise ManifestError(
            f"this is not a manifest of a split ({FORMAT}).", hint="Pass split.manifest, or its file."
        )
    return manifest


def part_file(folder: Path, part: str, manifest: Mapping[str, Any]) -> Path | None:
    """Return the file of a part as the manifest describes it, else train.csv, say; None if there is none.

    Raises:
        FileError: the named file is missing, or several files have the name of the part.
        ManifestError: its content is not what the split wrote.
    """
    files = manifest.get("files")
    named = files if isinstance(files, Mapping) else None
    endings = {f"{part}{suffix}" for entry in FORMATS.load_plugins().values() for suffix in entry.suffixes}
    names = sorted(path.name for path in folder.iterdir()) if named is None else list(named)
    found = [name for name in names if name.removesuffix(".gz") in endings]
    if len(found) > 1:
        raise FileError(
            f"{folder} has several files of the part {part!r}: {', '.join(found)}.",
            hint="Keep one of them in the folder.",
        )
    if not found:
        return None
    file = folder / found[0]
    if named is not None and file_sha256(file) != named[file.name]:
        raise ManifestError(
            f"{file} is not the file that the split wrote: its content has changed.",
            differs=[file.name],
            hint="Split again into a new folder, or put the original back.",
        )
    return file


def rerun(manifest: Mapping[str, Any] | str | os.PathLike[str], data: Any, *, ordered: bool = False) -> Split:
    """Make a split again from its manifest.

    Args:
        manifest: a manifest, or its file.
        data: the data that was split. In another order of rows, the parts have the same rows in that order.
        ordered: the order of rows must be the same too, so that the parts are the same to the byte.

    Raises:
        ManifestError: the data or a part is not the same; it names which.
    """
    stored = read_manifest(manifest)
    parameters = dict(stored["parameters"])
    index = parameters.pop("fold", parameters.pop("window", None))
    if isinstance(parameters.get("scale"), list):
        parameters["scale"] = tuple(parameters["scale"])
    table = as_interaction_table(data, parameters.get("columns"))
    _check_hashes(_hashes(row_keys(table)), stored["input"], "the data", ordered=ordered)
    result = split(table, how=stored["how"], **parameters)
    if isinstance(result, Folds) != (index is not None):
        raise SplitError(f"{stored['how']} gives {'several splits' if index is None else 'one split'}.")
    if isinstance(result, Folds) and (type(index) is not int or not 0 <= index < len(result)):
        raise ManifestError(f"there is no fold {index!r} of {len(result)}.", differs=["fold"])
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


def save(
    made: Split | Iterable[Split],
    folder: str | os.PathLike[str],
    *,
    ending: str = ".parquet",
    rows: Any = None,
) -> list[dict[str, Any]]:
    """Write all parts and manifest.json; several splits go to the folders fold-1, fold-2 and so on.

    Args:
        made: a split of a table, or several.
        folder: a folder that does not exist yet, or is empty.
        ending: .parquet, .csv, .tsv or .inter.
        rows: a table with as many rows from which the parts are taken instead, for example the same rows with
            the text of the original file.

    Returns:
        The manifests, each with the SHA-256 of its files.

    Raises:
        FileError: the folder exists or cannot be written, or the data is not a table.
    """
    target = Path(folder).absolute()
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise FileError(f"{folder} already exists.", hint="Name a new or an empty folder.")
    if not target.parent.is_dir():
        raise FileError(f"there is no folder {target.parent}.", hint="Make it first.")
    splits = [made] if isinstance(made, Split) else list(made)
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(6)}.part")
    try:
        with write_errors_of(Path(folder)):
            temporary.mkdir()
            manifests = [
                _write_split(one, rows, temporary / f"fold-{at}" if len(splits) > 1 else temporary, ending)
                for at, one in enumerate(splits, 1)
            ]
            if target.exists():
                target.rmdir()
            temporary.rename(target)
    finally:
        remove_folder(temporary)
    return manifests


def _write_split(split: Split, rows: Any, folder: Path, ending: str) -> dict[str, Any]:
    """Write the parts and the manifest of one split; the excluded rows get a column with their reason."""
    folder.mkdir(exist_ok=True)
    source = None if rows is None else as_frame(rows)
    n_rows = split.counts["rows"]["input"]
    if rows is not None and (source is None or len(source) != n_rows):
        raise FileError(f"rows= is not a table of {n_rows:,} rows.", hint="Pass the table that was split.")
    files = {}
    for name in [*split.names, *(["excluded"] if split.reasons else [])]:
        part = getattr(split, name) if source is None else FrameTable(source, None).take(split.mask(name))
        if name == "excluded":
            frame = as_frame(part)
            if frame is None:
                raise FileError(f"{type(part).__name__} is not a table.", hint="Save splits of tables.")
            reasons = np.asarray(split.reason_of_row, dtype=object)
            part = frame.to_pandas().assign(excluded_because=reasons)
        target = folder / f"{name}{ending}"
        write_table(target, part)
        files[target.name] = file_sha256(target)
    manifest = {**split.manifest, "files": files}
    write_text(folder / "manifest.json", to_json(manifest))
    return manifest


def row_keys(table: InteractionTable) -> Keys:
    """Return one key per row, from the values of all its columns."""
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
    return _array_keys(column_array(column), missing, name)


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
    """Return the text that is hashed for a value; None if it is missing."""
    if type(value) is str:
        return value or None
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if value is None or value != value:  # noqa: PLR0124 - NaN, NaT
        return None
    text = repr(value)
    if " at 0x" in text:
        raise SplitError(
            f"the column {name!r} holds {type(value).__name__} objects, which have no content to hash.",
            table="data",
            column=name,
            hint="Leave the column out of the table, or write it as text.",
        )
    return text
