"""What to type, in the words of a protocol file: its keys and the tables they belong to."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from importlib.resources import files
from typing import Any

from recsys.conventions.decisions import Conventions
from recsys.errors import Fix

# Parameters whose key is not their own name, by function.
_KEYS = {("bench", "relevant_from"): "from in [relevance]"}
# Where the parameters of a function are set; of all others, where there is such a key.
_TABLES = {"compare": ("compare",), "split": ("split",), "columns": ("data.columns", "models.NAME.columns")}
_OTHER_TABLES = ("data", "candidates", "conventions", "metrics", "models.NAME")


def read_schema() -> dict[str, Any]:
    """Return the JSON schema of a protocol file."""
    text = files("recsys.benching.protocol").joinpath("schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


def as_key(fix: Fix) -> str:
    """Word a fix as it is written in a protocol file.

    >>> print(as_key(Fix("ties", "best")), as_key(Fix("train")), as_key(Fix("memory", "2GB")), sep="; ")
    ties = "best" in [conventions]; train in [data]; memory='2GB' in Python
    >>> print(as_key(Fix("columns", {"user": ...})))
    user = "COLUMN" in [data.columns] or [models.NAME.columns]
    """
    if not fix.parameter or (fix.of, fix.parameter) in _KEYS:
        return _KEYS.get((fix.of, fix.parameter), f"recsys {fix.of}")
    keys = {fix.parameter: fix.example}
    if fix.parameter == "columns" and isinstance(fix.example, dict):
        keys = {
            name: {...: "COLUMN", None: False}.get(column, column) for name, column in fix.example.items()
        }
    known = _keys()
    own = _TABLES.get(fix.parameter) or _TABLES.get(fix.of, _OTHER_TABLES)
    settings = []
    for name, value in keys.items():
        tables = [f"[{table}]" for table in own if name in known[table]]
        if not tables:
            return f"{fix} in Python"
        written = isinstance(value, str | int | float)
        setting = f"{name} = {json.dumps(value, ensure_ascii=False)}" if written else name
        settings.append(f"{setting} in {' or '.join(tables)}")
    return ", ".join(settings)


def _keys() -> Mapping[str, Collection[str]]:
    """Return the keys of each table of a protocol file, by its name."""
    from recsys.splits import STRATEGIES
    from recsys.splits.job import DEFAULTS

    tables = read_schema()["properties"]
    tables["models.NAME"] = tables["models"]["additionalProperties"]
    tables |= {f"{name}.columns": tables[name]["properties"]["columns"] for name in ("data", "models.NAME")}
    keys = {name: table.get("properties", {}) for name, table in tables.items()}
    of_splits = {name for strategy in STRATEGIES.values() for name in strategy.parameters}
    return keys | {"conventions": Conventions.__dataclass_fields__, "split": of_splits | DEFAULTS.keys()}
