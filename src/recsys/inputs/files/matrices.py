"""Matrices from files: NPY, NPZ, safetensors, torch checkpoints. Nothing in them is ever run.

NumPy's object arrays and pickled checkpoints are refused; torch opens its own files with weights_only.
"""

from __future__ import annotations

import json
import math
import zipfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.format import MAGIC_PREFIX, read_array_header_1_0, read_array_header_2_0, read_magic

from recsys.errors import FileError, MissingFileError, needs_extra
from recsys.inputs.files.formats import LONGEST_PATH, UNPACKED_RATIO, is_unpacked_too_large, read_text_file
from recsys.records.arrays import Array

SUFFIXES = (".npy", ".npz", ".safetensors", ".pt", ".pth")
_FORMATS_HINT = (
    "Store plain numbers: np.save, np.savez, safetensors, or a torch state dict of tensors. Arrays "
    "user_ids and item_ids may be text: np.array(ids, dtype=str)."
)
_ID_ARRAYS = ("user_ids", "item_ids")


def read_arrays(path: str | Path) -> dict[str, Array]:
    """Read all arrays in a file, {name: array}; the only one of a file without names gets the file's name.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> np.savez(folder / "model.npz", U=np.ones((2, 3)), V=np.ones((4, 3)))
    >>> {name: array.shape for name, array in read_arrays(folder / "model.npz").items()}
    {'U': (2, 3), 'V': (4, 3)}
    """
    file = Path(path)
    if len(str(path)) > LONGEST_PATH:
        raise FileError(f"{path} is not a file: its name is too long.", hint="Check the path.")
    if file.is_dir():
        raise FileError(f"{file} is a folder.", hint="Name one file of matrices.")
    if not file.is_file():
        raise MissingFileError(f"there is no file {file}.", hint="Check the path.")
    suffix = file.suffix.lower()
    if suffix == ".safetensors":
        return _read_safetensors(file)
    if suffix in (".pt", ".pth"):
        return _read_torch(file)
    if suffix in (".npy", ".npz"):
        return _read_numpy(file)
    raise FileError(
        f"{file} is not a file of matrices.", hint=f"Its name ends in one of {', '.join(SUFFIXES)}."
    )


def read_facts(folder: str | Path, stems: Collection[str] | None = None) -> dict[str, Any]:
    """Merge the content of the JSON files of a folder; nested objects are flattened to their last key.

    `stems`: the names of the files to read, without their ending; all of them by default.
    """
    facts: dict[str, Any] = {}
    for file in sorted(Path(folder).glob("*.json")):
        if stems is not None and file.stem not in stems:
            continue
        text = read_text_file(file)
        try:
            content = json.loads(text)
        except (RecursionError, ValueError) as error:
            raise FileError(f"{file} is not readable JSON ({error}).", hint="Fix or remove it.") from error
        facts.update(_flatten(content))
    return facts


def _flatten(content: Any) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name, value in content.items() if isinstance(content, dict) else ():
        out.update(_flatten(value) if isinstance(value, dict) else {name: value})
    return out


def _read_numpy(file: Path) -> dict[str, Array]:
    try:
        if file.suffix.lower() == ".npy":
            array = np.load(file, mmap_mode="r", allow_pickle=False)
            return {file.stem: _check_values(array, file, file.stem)}
        with file.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
            _check_sizes(archive.zip, file)
            return {name: _check_values(archive[name], file, name) for name in archive.files}
    except FileError:
        raise
    except Exception as error:  # damaged headers and archives raise errors of many types
        # NumPy reports any file it does not know as a pickle.
        pickled = "pickle" in str(error).lower() or "object" in str(error).lower()
        unknown = "holds no NumPy array, or a pickle: opening one can run any code"
        problem = unknown if pickled else f"cannot be read ({error})"
        raise FileError(f"{file} {problem}.", hint=_FORMATS_HINT) from error


def _check_sizes(archive: zipfile.ZipFile, file: Path) -> None:
    """Raise an error before memory is taken for arrays that are far larger than the file."""
    members = archive.infolist()
    if is_unpacked_too_large(sum(member.file_size for member in members), file.stat().st_size):
        raise FileError(
            f"{file} unpacks to over {UNPACKED_RATIO} times its size.", hint="Store it with np.savez."
        )
    for member in members:
        with archive.open(member) as stream:
            if stream.read(len(MAGIC_PREFIX)) != MAGIC_PREFIX:
                continue  # no array: NumPy says so
            stream.seek(0)
            version = read_magic(stream)
            read_header = {(1, 0): read_array_header_1_0, (2, 0): read_array_header_2_0}.get(version)
            if read_header is None:
                continue
            shape, _, dtype = read_header(stream)
            if math.prod(shape) * dtype.itemsize > member.file_size:
                raise FileError(
                    f"{file}: {member.filename} says it holds {shape} numbers, but is too short for them.",
                    hint="Copy or write it again.",
                )


def _read_safetensors(file: Path) -> dict[str, Array]:
    with needs_extra("safetensors", "safetensors", "Reading safetensors"):
        from safetensors import SafetensorError, safe_open
    try:
        with safe_open(file, framework="np") as archive:
            dtypes = {name: archive.get_slice(name).get_dtype() for name in archive.keys()}  # noqa: SIM118
            arrays = {name: archive.get_tensor(name) for name, dtype in dtypes.items() if dtype != "BF16"}
        if "BF16" in dtypes.values():  # NumPy has no bfloat16: the same numbers as float32
            from safetensors import deserialize

            arrays |= {
                name: (np.frombuffer(view["data"], "<u2").astype("<u4") << 16)
                .view("<f4")
                .reshape(view["shape"])
                for name, view in deserialize(file.read_bytes())  # type: ignore[no-untyped-call]
                if view["dtype"] == "BF16"
            }
        return {name: _check_values(arrays[name], file, name) for name in dtypes}
    except (SafetensorError, OSError, KeyError, TypeError) as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"{file} cannot be read ({error}).", hint=_FORMATS_HINT) from error


def _read_torch(file: Path) -> dict[str, Array]:
    with needs_extra("torch", "torch", "Reading a torch checkpoint"):
        import torch
    try:
        content = torch.load(file, map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises errors of many types for a file it cannot open
        raise FileError(f"{file} holds more than tensors, or is damaged.", hint=_FORMATS_HINT) from error
    tensors = content if isinstance(content, Mapping) else {file.stem: content}
    arrays: dict[str, Array] = {}
    for name, value in tensors.items():
        if isinstance(value, torch.Tensor):
            tensor = value.detach().to_dense()
            try:
                array: Array = tensor.numpy()
            except TypeError:  # bfloat16 and float8, which NumPy lacks, become float32 without loss
                array = tensor.float().numpy()
            arrays[str(name)] = _check_values(array, file, str(name))
        elif isinstance(value, list | tuple) and value and all(type(entry) in (int, str) for entry in value):
            arrays[str(name)] = np.array(value)  # ids stored with a matrix
    return arrays


def _check_values(array: Array, file: Path, name: str) -> Array:
    """Return the array; raise an error if it holds neither numbers nor, where it is named so, ids."""
    is_text = name in _ID_ARRAYS and array.ndim == 1 and array.dtype.kind in "US"
    if array.dtype.kind not in "fiub" and not is_text:
        raise FileError(f"{file} holds {array.dtype} values, not numbers.", hint=_FORMATS_HINT)
    return array
