"""The defaults of public functions and classes, stated a second time: a number that moves changes results.

`defaults.json` has every default that is a number, a truth value or a tuple of them, of the names that there
were when it was written; a new name needs no entry. To state them anew after a change that was meant:

    python tests/test_defaults.py
"""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import recsys

STATED = Path(__file__).with_name("defaults.json")


ROOMS = sorted(found.name for found in pkgutil.iter_modules(recsys.__path__) if found.name[0] != "_")


def modules_of(room: str) -> list[str]:
    """The modules of a room, or the room itself where it is one."""
    top = importlib.import_module(f"recsys.{room}")
    below = pkgutil.walk_packages(getattr(top, "__path__", []), f"recsys.{room}.", onerror=lambda _: None)
    names = [f"recsys.{room}", *(found.name for found in below)]
    return [name for name in names if "._" not in name and "triton" not in name]


def public_callables(room: str) -> Iterator[tuple[str, Any]]:
    """Functions, classes and methods of a room, by the module that defines them."""
    for module in modules_of(room):
        try:
            members = vars(importlib.import_module(module))
        except ImportError:  # an optional package is missing
            continue
        for name, member in members.items():
            if name.startswith("_") or getattr(member, "__module__", None) != module:
                continue
            if inspect.isfunction(member) or inspect.isclass(member):
                yield f"{module}.{name}", member
            if inspect.isclass(member):
                for method, kept in vars(member).items():
                    function = getattr(kept, "__func__", kept)
                    if inspect.isfunction(function) and not method.startswith("_"):
                        yield f"{module}.{name}.{method}", function


def is_number(value: Any) -> bool:
    return isinstance(value, bool | int | float) or (
        isinstance(value, tuple) and bool(value) and all(map(is_number, value))
    )


def numbers(room: str) -> dict[str, dict[str, str]]:
    """{name: {parameter: default}} of the defaults that are numbers."""
    out = {}
    for name, member in public_callables(room):
        try:
            parameters = inspect.signature(member).parameters.values()
        except (TypeError, ValueError):  # a class of the standard library without a signature
            continue
        found = {p.name: repr(p.default) for p in parameters if is_number(p.default)}
        if found:
            out[name] = found
    return dict(sorted(out.items()))


@pytest.mark.parametrize("room", ROOMS)
def test_the_defaults_of_public_names_are_those_that_are_stated(room):
    found = numbers(room)
    for name, stated in json.loads(STATED.read_text("utf-8"))[room].items():
        assert found.get(name, stated) == stated, name


if __name__ == "__main__":
    STATED.write_text(json.dumps({room: numbers(room) for room in ROOMS}, indent=0) + "\n", encoding="utf-8")
