"""Arrays and the types made of them as JSON, and back: the contents of result files.

A result file must be readable as text, small, and safe to open: arrays are packed (little-endian,
compressed, base64) beside a checksum, ids stay JSON strings, and only the types listed here are built.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import hashlib
import json
import math
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from recsys import types
from recsys.errors import FileError
from recsys.types import Array

_TYPES = {
    kind.__name__: kind
    for kind in vars(types).values()
    if dataclasses.is_dataclass(kind) and isinstance(kind, type)
}
_DTYPES = {np.dtype(name).str for name in ("<f8", "<i8", "<i4", "<u8", "<u4", "<u2", "<u1", "|b1")}
_DAMAGED = "Write the result again."


def pack(value: Any) -> Any:
    """A value made of arrays, dataclasses, mappings, tuples and scalars as a JSON value.

    >>> pack(np.array([1.0, 2.0]))["dtype"], pack({"a": (1, None)})
    ('<f8', {'map': [['a', {'tuple': [1, None]}]]})
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray):
        return _pack_array(value)
    if dataclasses.is_dataclass(value) and type(value).__name__ in _TYPES:
        fields = {f.name: pack(getattr(value, f.name)) for f in dataclasses.fields(value)}
        return {"type": type(value).__name__, "fields": fields}
    if isinstance(value, Mapping):
        return {"map": [[pack(key), pack(content)] for key, content in value.items()]}
    if isinstance(value, tuple | list):
        return {"tuple": [pack(content) for content in value]}
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise FileError(f"a {type(value).__name__} cannot be kept in a result file.")


def unpack(value: Any) -> Any:
    """The value that was packed; anything else raises a FileError, and no code from the file runs.

    >>> unpack(pack({"a": (1, np.array([True, False]))}))
    {'a': (1, array([ True, False]))}
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, dict):
        for key, read in _READERS.items():
            if key in value:
                return read(value)
    raise FileError("the result file holds something this version does not know.", hint=_DAMAGED)


def fingerprint(value: Any) -> str:
    """The sha256 of a JSON value, independent of how it is written.

    >>> fingerprint({"a": 1, "b": 2}) == fingerprint({"b": 2, "a": 1})
    True
    """
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _pack_array(array: Array) -> dict[str, Any]:
    if array.dtype == object:
        return {"names": [str(name) for name in array.tolist()]}
    little_endian = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    data = little_endian.tobytes()
    return {
        "dtype": little_endian.dtype.str,
        "shape": list(little_endian.shape),
        "sha256": hashlib.sha256(data).hexdigest(),
        "zlib": base64.b64encode(zlib.compress(data, 6)).decode("ascii"),
    }


def _read_array(value: dict[str, Any]) -> Array:
    dtype, shape = value.get("dtype"), value.get("shape")
    if (
        dtype not in _DTYPES
        or not isinstance(shape, list)
        or not all(type(n) is int and n >= 0 for n in shape)
    ):
        raise FileError(f"a column of the result file has dtype {dtype!r}, shape {shape!r}.", hint=_DAMAGED)
    size = math.prod(shape) * np.dtype(dtype).itemsize
    try:
        unpacker = zlib.decompressobj()
        # One byte more than announced: a longer column is damaged, and is not unpacked to its end.
        data = unpacker.decompress(base64.b64decode(value["zlib"], validate=True), size + 1)
    except (KeyError, TypeError, binascii.Error, zlib.error) as error:
        raise FileError("a column of the result file cannot be unpacked.", hint=_DAMAGED) from error
    if len(data) != size or hashlib.sha256(data).hexdigest() != value.get("sha256"):
        raise FileError("a column of the result file does not match its checksum.", hint=_DAMAGED)
    return np.frombuffer(data, dtype=dtype).reshape(shape).astype(np.dtype(dtype).newbyteorder("="))


def _read_names(value: dict[str, Any]) -> Array:
    out = np.empty(len(value["names"]), dtype=object)
    out[:] = [str(name) for name in value["names"]]
    return out


def _read_dataclass(value: dict[str, Any]) -> Any:
    kind, fields = _TYPES.get(value["type"]), value.get("fields")
    if kind is None or not isinstance(fields, dict):
        raise FileError(f"the result file holds a {value['type']!r}, unknown here.", hint=_DAMAGED)
    try:
        return kind(**{name: unpack(content) for name, content in fields.items()})
    except TypeError as error:
        raise FileError(
            f"the result file's {value['type']} has other fields than this version's ({error}).",
            hint="It was written by another version of recsys.",
        ) from error


def _read_mapping(value: dict[str, Any]) -> dict[Any, Any]:
    pairs = value["map"]
    if not isinstance(pairs, list) or not all(isinstance(p, list) and len(p) == 2 for p in pairs):
        raise FileError("a table of the result file is damaged.", hint=_DAMAGED)
    return {unpack(key): unpack(content) for key, content in pairs}


def _read_float(value: dict[str, Any]) -> float:
    if value["float"] not in ("nan", "inf", "-inf"):
        raise FileError(f"{value['float']!r} is not a number.", hint=_DAMAGED)
    return float(value["float"])


_READERS = {
    "dtype": _read_array,
    "names": _read_names,
    "type": _read_dataclass,
    "map": _read_mapping,
    "tuple": lambda value: tuple(map(unpack, value["tuple"])),
    "float": _read_float,
}
