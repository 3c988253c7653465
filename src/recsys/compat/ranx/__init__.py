"""ranx over this library: `from recsys.compat import ranx`, or under its own name for code that imports it.

    import sys
    import recsys.compat.ranx

    sys.modules["ranx"] = recsys.compat.ranx  # before anything imports ranx

Modules below it resolve too: `from ranx.fusion import rrf` then finds the one here. Metrics are those of the
preset "ranx"; nothing is compiled at the first call. docs/drop-in.md says what differs.

>>> qrels = Qrels({"q1": {"d1": 5, "d2": 3}, "q2": {"d3": 1}})
>>> run = Run({"q1": {"d1": 0.9, "d9": 0.8, "d2": 0.7}, "q2": {"d9": 0.4, "d3": 0.3}}, name="bm25")
>>> {name: round(float(value), 4) for name, value in evaluate(qrels, run, ["map@5", "mrr"]).items()}
{'map@5': 0.6667, 'mrr': 0.75}
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


class _Mirror(ModuleType):
    """A package in which a function keeps its name when the module of that name is imported."""

    def __setattr__(self, name: str, value: Any) -> None:
        kept = self.__dict__.get(name)
        if not (isinstance(value, ModuleType) and callable(kept)):
            super().__setattr__(name, value)


def add_modules(package: str, modules: dict[str, dict[str, Any]]) -> None:
    """Give a module of this package the small modules that ranx has below it: {module: {name: value}}."""
    parent = sys.modules[package]
    parent.__class__ = _Mirror
    parent.__dict__.setdefault("__path__", [])
    for name, values in modules.items():
        module = ModuleType(f"{package}.{name}", f"What `{name}` of ranx holds.")
        module.__dict__.update(values)
        sys.modules[module.__name__] = module
        setattr(parent, name, module)


class _UnderAnotherName(MetaPathFinder, Loader):
    """Finds `ranx.fusion` where `ranx` is this package: the module here, not a second copy of it."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        del path, target
        parent, _, name = fullname.rpartition(".")
        home = getattr(sys.modules.get(parent), "__name__", "")
        if parent == home or not (home == __name__ or home.startswith(f"{__name__}.")):
            return None
        return ModuleSpec(fullname, self, origin=f"{home}.{name}")

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = import_module(str(spec.origin))
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec  # the import system has put the other name there


if not any(type(finder).__name__ == "_UnderAnotherName" for finder in sys.meta_path):
    sys.meta_path.insert(0, _UnderAnotherName())

from recsys.compat.ranx import io, utils  # noqa: E402, F401 - ranx has them as attributes too
from recsys.compat.ranx.data_structures import Qrels, Report, Run  # noqa: E402 - they need the above
from recsys.compat.ranx.meta import compare, evaluate, fuse, normalize, optimize_fusion, plot  # noqa: E402

__all__ = ["Qrels", "Report", "Run", "compare", "evaluate", "fuse", "normalize", "optimize_fusion", "plot"]
