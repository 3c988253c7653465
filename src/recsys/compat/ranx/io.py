"""Files of ranx as nested dicts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from recsys.compat.ranx.data_structures import load_lz4, save_lz4

__all__ = ["load_json", "load_lz4", "save_json", "save_lz4"]


def save_json(x: dict[str, Any], path: str) -> None:
    """Write a nested dict as JSON."""
    Path(path).write_text(json.dumps(x, indent=2), encoding="utf-8")


def load_json(path: str) -> Any:
    """Read JSON."""
    return json.loads(Path(path).read_bytes())
