"""Matrices from files: NPY, NPZ, safetensors, torch checkpoints. Nothing in them is ever run.

NumPy's object arrays and pickled checkpoints are refused; torch opens its own files with weights_only.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from recsys.errors import FileError, MissingExtraError
from recsys.types import Array

SUFFIXES = (".npy", ".npz", ".safetensors", ".pt", ".pth")
_NUMBERS = "Store plain numbers: np.save, np.savez, safetensors, or a torch state dict of tensors."


def read_arrays(path: str | Path) -> dict[str, Array]:
    """{name: array} of everything in a file of matrices; a lone matrix is called as the file is.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> np.savez(folder / "model.npz", U=np.ones((2, 3)), V=np.ones((4, 3)))
    >>> {name: array.shape for name, array in read_arrays(folder / "model.npz").items()}
    {'U': (2, 3), 'V': (4, 3)}
    """
    place = Path(path)
    if place.is_dir():
        raise FileError(f"{place} is a folder.", hint="Name one file of matrices.")
    if not place.is_file():
        raise FileError(f"there is no file {place}.", hint="Check the path.")
    suffix = place.suffix.lower()
    if suffix == ".safetensors":
        return _safetensors(place)
    if suffix in (".pt", ".pth"):
        return _torch(place)
    if suffix in (".npy", ".npz"):
        return _numpy(place)
    raise FileError(
        f"{place} is no file of matrices.", hint=f"Its name ends in one of {', '.join(SUFFIXES)}."
    )


def read_facts(folder: str | Path, stems: Collection[str] | None = None) -> dict[str, Any]:
    """What the JSON files of a folder say, merged; nested objects are flattened by their last name.

    `stems` names the files that count, without their ending; all of them without.
    """
    facts: dict[str, Any] = {}
    for place in sorted(Path(folder).glob("*.json")):
        if stems is not None and place.stem not in stems:
            continue
        try:
            held = json.loads(place.read_text(encoding="utf-8"))
        except (ValueError, OSError) as error:
            raise FileError(f"{place} is no readable JSON ({error}).", hint="Mend or remove it.") from error
        facts.update(_flat(held))
    return facts


def _flat(held: Any) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name, value in held.items() if isinstance(held, dict) else ():
        out.update(_flat(value) if isinstance(value, dict) else {name: value})
    return out


def _numpy(place: Path) -> dict[str, Array]:
    try:
        if place.suffix.lower() == ".npy":
            return {place.stem: _plain(np.load(place, mmap_mode="r", allow_pickle=False), place)}
        with np.load(place, allow_pickle=False) as held:
            return {name: _plain(held[name], place) for name in held.files}
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, AttributeError, KeyError) as error:
        if isinstance(error, FileError):
            raise
        # NumPy takes whatever it does not know for a pickle.
        pickled = "pickle" in str(error).lower() or "object" in str(error).lower()
        unknown = "holds no NumPy array, or a pickle: opening one can run any code"
        why = unknown if pickled else f"cannot be read ({error})"
        raise FileError(f"{place} {why}.", hint=_NUMBERS) from error


def _safetensors(place: Path) -> dict[str, Array]:
    try:
        from safetensors import SafetensorError, safe_open
    except ImportError as error:
        raise MissingExtraError("safetensors", "safetensors", "Reading safetensors") from error
    try:
        with safe_open(place, framework="np") as held:
            kinds = {name: held.get_slice(name).get_dtype() for name in held.keys()}  # noqa: SIM118
            plain = {name: held.get_tensor(name) for name, kind in kinds.items() if kind != "BF16"}
        short = _bfloat16(place) if "BF16" in kinds.values() else {}
        return {name: _plain((plain | short)[name], place) for name in kinds}
    except (SafetensorError, OSError, KeyError, TypeError) as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"{place} cannot be read ({error}).", hint=_NUMBERS) from error


def _bfloat16(place: Path) -> dict[str, Array]:
    """Brain floats, which NumPy lacks: the upper half of a float32."""
    from safetensors import deserialize

    return {
        name: (np.frombuffer(view["data"], "<u2").astype("<u4") << 16).view("<f4").reshape(view["shape"])
        for name, view in deserialize(place.read_bytes())  # type: ignore[no-untyped-call]
        if view["dtype"] == "BF16"
    }


def _torch(place: Path) -> dict[str, Array]:
    try:
        import torch
    except ImportError as error:
        raise MissingExtraError("torch", "torch", "Reading a torch checkpoint") from error
    try:
        held = torch.load(place, map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises what it likes for a file it will not open
        raise FileError(f"{place} holds more than tensors, or is damaged.", hint=_NUMBERS) from error
    named = held if isinstance(held, Mapping) else {place.stem: held}
    arrays: dict[str, Array] = {}
    for name, value in named.items():
        if isinstance(value, torch.Tensor):
            arrays[str(name)] = _plain(_of_tensor(value.detach().to_dense()), place)
        elif isinstance(value, list | tuple) and value and all(type(one) in (int, str) for one in value):
            arrays[str(name)] = np.array(value)  # ids beside a matrix
    return arrays


def _of_tensor(tensor: Any) -> Array:
    """The same numbers; floats too short for NumPy (bfloat16, float8) as float32, which holds them."""
    try:
        held: Array = tensor.numpy()
    except TypeError:
        held = tensor.float().numpy()
    return held


def _plain(array: Array, place: Path) -> Array:
    if array.dtype.kind not in "fiub":
        raise FileError(f"{place} holds {array.dtype} values, not numbers.", hint=_NUMBERS)
    return array
