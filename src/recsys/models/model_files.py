"""What is in the file of a network: weights, description and the ids of its rows; read without PyTorch."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

from recsys.errors import FileError
from recsys.inputs.files.matrices import read_arrays
from recsys.types import Array

METADATA_KEY = "recsys"


def is_model_file(path: str | Path) -> bool:
    """Whether `recsys.models.save_model` or `recsys train` wrote a file, judged by its table of contents."""
    file = Path(path)
    try:
        if file.suffix.lower() == ".npz":
            with zipfile.ZipFile(file) as archive:
                return f"{METADATA_KEY}.npy" in archive.namelist()
        return file.suffix.lower() == ".safetensors" and METADATA_KEY in _safetensors_metadata(file)
    except (OSError, ValueError, zipfile.BadZipFile):  # whoever reads the file says what is wrong with it
        return False


def read_model_file(path: Path) -> tuple[dict[str, Array], dict[str, Any]]:
    """The arrays of a model file, and its description."""
    arrays = read_arrays(path)
    try:
        if path.suffix.lower() == ".npz":
            text: Any = bytes(arrays.pop(METADATA_KEY))
        else:
            text = _safetensors_metadata(path)[METADATA_KEY]
        return arrays, dict(json.loads(text))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise FileError(
            f"{path.name} is not a model file: {type(error).__name__}: {error}.",
            hint="It must have been written by recsys.models.save_model.",
        ) from error


def _safetensors_metadata(file: Path) -> dict[str, str]:
    with file.open("rb") as stream:
        size = min(int.from_bytes(stream.read(8), "little"), file.stat().st_size)
        header = json.loads(stream.read(size))
    metadata = header.get("__metadata__") if isinstance(header, dict) else None
    return metadata if isinstance(metadata, dict) else {}
