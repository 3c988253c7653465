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
        pickled = "pickle" in str(error).lower() or "object" in str(error).lower()
        why = "holds a pickle, and opening one can run any code" if pickled else f"cannot be read ({error})"
        raise FileError(f"{place} {why}.", hint=_NUMBERS) from error


def _safetensors(place: Path) -> dict[str, Array]:
    try:
        from safetensors import SafetensorError
        from safetensors.numpy import load_file
    except ImportError as error:
        raise MissingExtraError("safetensors", "safetensors", "Reading safetensors") from error
    try:
        return {name: _plain(array, place) for name, array in load_file(place).items()}
    except (SafetensorError, OSError, KeyError, TypeError) as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"{place} cannot be read ({error}).", hint=_NUMBERS) from error


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
    tensors = {str(name): value for name, value in named.items() if isinstance(value, torch.Tensor)}
    return {name: _plain(t.detach().float().numpy(), place) for name, t in tensors.items()}


def _plain(array: Array, place: Path) -> Array:
    if array.dtype.kind not in "fiub":
        raise FileError(f"{place} holds {array.dtype} values, not numbers.", hint=_NUMBERS)
    return array
