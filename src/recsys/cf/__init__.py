"""Collaborative filtering as the seeds write it: names and words of theirs over the engine of `recsys`."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    """`recsys.cf.evaluation` and `recsys.cf.metrics` without importing them by name first."""
    if name not in ("evaluation", "metrics"):
        raise AttributeError(f"module 'recsys.cf' has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")
