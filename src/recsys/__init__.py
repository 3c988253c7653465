"""Evaluate recommender systems: every ranking metric, under conventions that are named.

The public names are listed in one place, `__init__.pyi`. Type checkers and editors read that stub anyway,
since they do not follow names that are imported on first use. Its lines are simple enough to be the table
that `__getattr__` needs as well, and reading them costs less than the import of `typing` would. A dictionary
in this file would have to be repeated for type checkers, and imports under TYPE_CHECKING for Python.
"""

from __future__ import annotations

import sys
from importlib import import_module
from os.path import dirname

_NAMES: dict[str, str] = {}  # {function or class: the module that defines it}
_ROOMS: dict[str, str] = {}  # {module: its full name}; `recsys.splits.leave_last` needs no second import
_TABLE = dirname(__file__) + "/__init__.pyi"  # noqa: PTH120 - pathlib is slow to import

for _line in __spec__.loader.get_data(_TABLE).decode().splitlines():
    match _line.split():
        case ["from", _home, "import", _name, "as", _] if _home.startswith("."):
            _ROOMS[_name] = f"recsys{_home.rstrip('.')}.{_name}"
        case ["from", _home, "import", _name, "as", _]:
            _NAMES[_name] = _home

__all__ = list(_NAMES)


def __getattr__(name: str) -> object:
    """Import a public name when it is first used, so that `import recsys` costs next to nothing."""
    if name in _ROOMS:
        value = import_module(_ROOMS[name])
    elif name in _NAMES:
        value = getattr(import_module(_NAMES[name]), name)
    elif name == "__version__":
        from importlib.metadata import PackageNotFoundError, version

        try:
            value = version("recsys-evaluation")
        except PackageNotFoundError:
            value = "unknown"
    else:
        raise AttributeError(f"module 'recsys' has no attribute {name!r}")
    globals()[name] = value
    return value


class _Package(type(sys)):
    def __reduce__(self) -> tuple[object, ...]:
        """A function that mentions the package can go to another process (Spark, Dask, joblib)."""
        return import_module, (self.__name__,)


sys.modules[__name__].__class__ = _Package


def __dir__() -> list[str]:
    return [*__all__, "__version__", *_ROOMS]
