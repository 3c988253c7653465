"""Files of ranx as nested dicts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from recsys.compat.ranx.data_structures import load_lz4, read_errors_of, save_lz4
from recsys.inputs.files import write_text
from recsys.inputs.files.formats import FileContent

__all__ = ["load_json", "load_lz4", "save_json", "save_lz4"]


def save_json(x: dict[str, Any], path: str) -> None:
    """Write a nested dict as JSON."""
    write_text(path, json.dumps(x, indent=2))


def load_json(path: str) -> Any:
    """Read JSON."""
    with read_errors_of(path):
        return json.loads(FileContent(path, Path(path)).data.decode("utf-8-sig"))
