"""What tells a value from others, the same in every process: of arrays, tables, models, files and options."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import os
from collections.abc import Iterator, Mapping
from glob import glob
from pathlib import Path
from types import CodeType, FunctionType, MethodType, NoneType
from typing import Any

import numpy as np

from recsys.errors import InputError, Phrase
from recsys.inputs.containers import as_array
from recsys.inputs.frames import as_frame
from recsys.ranks.sources.source import IdRows

_AT_ONCE = 1 << 16
_PLAIN = {NoneType, bool, int, float, complex, str, bytes, range}


def digest(value: Any) -> str:
    """Equal for equal values; of a path, a glob or a folder, that of the files' bytes.

    Functions are distinguished by their name and code, objects by what they hold.

    >>> digest({"a": np.arange(3), "b": [1, "x"]}) == digest({"b": [1, "x"], "a": np.arange(3)})
    True
    """
    content = hashlib.blake2b(digest_size=16)
    files = _files(value) if isinstance(value, str | os.PathLike) else []
    for file in files:
        with file.open("rb") as data:
            content.update(hashlib.file_digest(data, "blake2b").digest())
    try:
        for chunk in () if files else _chunks(value):
            content.update(chunk)
    except RecursionError as error:
        raise InputError(
            f"a {type(value).__name__} cannot be identified by its content, so it cannot be checkpointed.",
            hint=Phrase("Leave out {checkpoint=}, or pass arrays, tables or files."),
        ) from error
    return content.hexdigest()


def _files(path: str | os.PathLike[str]) -> list[Path]:
    """Return the files that a path, a folder or a glob names; none if it is only text."""
    place = Path(path)
    try:
        found = place.rglob("*") if place.is_dir() else map(Path, glob(str(path), recursive=True))  # noqa: PTH207
        return sorted(file for file in found if file.is_file())
    except (OSError, ValueError):  # no path at all
        return []


def _chunks(value: Any) -> Iterator[bytes]:
    yield f"<{type(value).__name__}>".encode()
    if isinstance(value, np.ndarray) and value.dtype != object:
        yield f"{value.dtype.str}{value.shape}".encode()
        for start in range(0, len(value) if value.ndim else 0, _AT_ONCE):
            yield np.ascontiguousarray(value[start : start + _AT_ONCE]).tobytes()
        if not value.ndim:
            yield value.tobytes()
    elif type(value) in _PLAIN or isinstance(value, np.generic | os.PathLike):
        yield repr(value).encode()
    elif isinstance(value, list | tuple):
        yield str(len(value)).encode()
        if set(map(type, value)) <= _PLAIN:
            for start in range(0, len(value), _AT_ONCE):
                yield repr(value[start : start + _AT_ONCE]).encode()
        else:
            for part in value:
                yield from _chunks(part)
    else:
        yield from _chunks(_parts(value))


def _parts(value: Any) -> Any:
    """Return what a value is made of, as lists, arrays and plain values, in an order of its own."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        keys = _sorted([*value])
        return keys, [value[key] for key in keys]
    if isinstance(value, set | frozenset):
        return _sorted([*value])
    if isinstance(value, CodeType):
        return value.co_code, value.co_names, value.co_consts
    if isinstance(value, IdRows):
        return value.size, value.ids.values[value.rank] if value.named else None
    if hasattr(value, "detach"):
        return as_array(value)
    if hasattr(value, "tocsr"):
        rows = value.tocsr()
        return rows.shape, rows.indptr, rows.indices, rows.data
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [(field.name, getattr(value, field.name)) for field in dataclasses.fields(value)]
    if (frame := as_frame(value)) is not None:
        return [(name, frame[name].to_numpy()) for name in frame.columns]
    if callable(value):
        return _parts_of_function(value)
    attributes = vars(value) if hasattr(value, "__dict__") else {"": repr(value)}
    kinds = {name: type(getattr(type(value), name, None)).__name__ for name in attributes}
    return _parts({name: part for name, part in attributes.items() if kinds[name] != "cached_property"})


def _parts_of_function(value: Any) -> Any:
    """Return the name and code of a function, and the values that it brings along."""
    if isinstance(value, functools.partial):
        return value.func, value.args, value.keywords
    name = f"{value.__module__}.{getattr(value, '__qualname__', type(value).__qualname__)}"
    if isinstance(value, MethodType):
        return name, value.__self__, value.__func__
    if not isinstance(value, FunctionType):
        return name, {} if isinstance(value, type) else getattr(value, "__dict__", {})
    cells = [cell.cell_contents for cell in value.__closure__ or ()]
    return name, value.__code__, value.__defaults__, cells


def _sorted(values: list[Any]) -> list[Any]:
    try:
        return sorted(values)
    except TypeError:  # of several types
        return sorted(values, key=repr)
