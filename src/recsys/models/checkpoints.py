"""Networks in files: weights, the arguments they were built with, and the ids of their rows. Never a pickle.

`.safetensors` (extra `safetensors`) is the format to share; `.npz` needs NumPy alone.
"""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from recsys.errors import FileError, MissingExtraError
from recsys.inputs.files import write_bytes
from recsys.models.networks import NETWORKS, network
from recsys.models.torch_import import torch
from recsys.types import Array

_METADATA_KEY = "recsys"
_FORMAT = 1


def save_model(model: Any, path: str | Path, *, user_ids: Any = None, item_ids: Any = None) -> Path:
    """Write a network of `recsys.models`, wholly or not at all; ids default to those of the model."""
    name = next((n for n, kind in NETWORKS.items() if type(model) is kind), None)
    if name is None:
        raise FileError(
            f"a {type(model).__name__} is not a network of recsys.models, so it could not be rebuilt.",
            hint="Save its state_dict with safetensors yourself.",
        )
    arrays = {key: value.detach().cpu().numpy() for key, value in model.state_dict().items()}
    metadata: dict[str, Any] = {"format": _FORMAT, "model": name, "shape": model.shape}
    for what, given in (("user_ids", user_ids), ("item_ids", item_ids)):
        ids = getattr(model, what, None) if given is None else given
        if ids is None:
            continue
        values = np.asarray(ids)
        if values.dtype.kind in "iu":
            arrays[f"ids.{what}"] = values.astype(np.int64)
        else:
            metadata[what] = [str(value) for value in values.tolist()]
    target = Path(path)
    write_bytes(target, _to_bytes(arrays, metadata, target))
    return target


def load_model(path: str | Path) -> Any:
    """The network in a file, in evaluation mode, with `user_ids` and `item_ids` where they were saved."""
    source = Path(path)
    arrays, metadata = _read_arrays(source)
    if metadata.get("format") != _FORMAT or metadata.get("model") not in NETWORKS:
        raise FileError(
            f"{source.name} does not hold a model of this version ({metadata.get('model')!r}).",
            hint="It must have been written by recsys.models.save_model.",
        )
    ids = {what: arrays.pop(f"ids.{what}", metadata.get(what)) for what in ("user_ids", "item_ids")}
    try:
        model = network(metadata["model"], **metadata["shape"])
        model.load_state_dict({name: torch.from_numpy(np.array(value)) for name, value in arrays.items()})
    except (RuntimeError, TypeError, KeyError) as error:
        raise FileError(f"{source.name} does not fit its own description: {error}") from error
    for what, values in ids.items():
        if values is not None:
            setattr(
                model, what, np.asarray(values) if not isinstance(values, list) else _object_array(values)
            )
    return model.eval()


def _object_array(values: list[str]) -> Array:
    out: Array = np.empty(len(values), dtype=object)
    out[:] = values
    return out


def _to_bytes(arrays: dict[str, Array], metadata: dict[str, Any], path: Path) -> bytes:
    text = json.dumps(metadata, ensure_ascii=False, sort_keys=True)
    if path.suffix == ".npz":
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as archive:  # np.savez would stamp the time of day into every entry
            for name, value in {
                **arrays,
                _METADATA_KEY: np.frombuffer(text.encode(), dtype=np.uint8),
            }.items():
                entry = io.BytesIO()
                np.lib.format.write_array(entry, np.ascontiguousarray(value), allow_pickle=False)
                archive.writestr(zipfile.ZipInfo(f"{name}.npy"), entry.getvalue())
        return out.getvalue()
    if path.suffix != ".safetensors":
        raise FileError(
            f"{path.name}: models are kept as .safetensors or .npz.", hint="Use one of these suffixes."
        )
    save = _safetensors_function("save")
    content: bytes = save({n: np.ascontiguousarray(v) for n, v in arrays.items()}, {_METADATA_KEY: text})
    return content


def _read_arrays(path: Path) -> tuple[dict[str, Array], dict[str, Any]]:
    if not path.is_file():
        raise FileError(f"there is no file {path}.")
    try:
        if path.suffix == ".npz":
            with np.load(path, allow_pickle=False) as archive:
                arrays = {name: archive[name] for name in archive.files}
            return arrays, json.loads(bytes(arrays.pop(_METADATA_KEY)))
        data = path.read_bytes()
        size = int.from_bytes(data[:8], "little")
        header = json.loads(data[8 : 8 + size])
        load = _safetensors_function("load")
        return dict(load(data)), json.loads(header["__metadata__"][_METADATA_KEY])
    except MissingExtraError:
        raise
    except Exception as error:
        raise FileError(
            f"{path.name} is not a model file: {type(error).__name__}: {error}.",
            hint="It must have been written by recsys.models.save_model.",
        ) from error


def _safetensors_function(name: str) -> Any:
    try:
        from safetensors import numpy
    except ImportError as error:
        raise MissingExtraError("safetensors", "safetensors", "Keeping a model as .safetensors") from error
    return getattr(numpy, name)
