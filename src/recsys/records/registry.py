"""The registry of whatever can be added, and packages whose names are imported when they are first used."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any, ClassVar, TypeVar

_T = TypeVar("_T")
_F = TypeVar("_F", bound=Callable[..., Any])


class Registry(dict[str, _T]):
    """Whatever can be added (metrics, splits, formats, checks, verbs, …), by name, in order of addition.

    A module of this package registers when it is imported. Another package names a module as an entry point
    in `group`; such plug-ins are loaded when a name is not found or when all names are wanted. One that fails
    to import is named in a warning and left out.

    Args:
        kind: what an entry is called in messages, such as "metric".
        group: the entry points that plug-ins are found by, such as "recsys.metrics".
    """

    _plugins: ClassVar[dict[str, str]] = {}  # by the name of the package

    def __init__(self, kind: str, group: str) -> None:
        super().__init__()
        self.kind = kind
        self.group = group
        self._plugins_loaded = False

    def load_plugins(self) -> Registry[_T]:
        """Import what other packages registered; itself, complete."""
        if not self._plugins_loaded:
            from importlib.metadata import entry_points

            for entry in entry_points(group=self.group):
                dist = getattr(entry, "dist", None)
                words = f"the plug-in {entry.name!r} ({self.group})" + (f" of {dist.name}" if dist else "")
                Registry._plugins.setdefault(getattr(entry, "value", "").partition(".")[0], words)
                try:
                    entry.load()
                except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a stranger's module raises
                    self.leave_out(words, error)
            self._plugins_loaded = True  # not before: another thread would go on without them
        return self

    @staticmethod
    def owner_of(module: str) -> str | None:
        """Return the plug-in that a module belongs to, or its name; None for a module of this package."""
        package = module.partition(".")[0]
        return None if package == "recsys" else Registry._plugins.get(package, module)

    def leave_out(self, words: str, error: BaseException) -> None:
        """Warn that something of another package fails, and is left out."""
        from recsys.errors import RecsysWarning, warn

        warn(RecsysWarning, f"{words} is left out, as it fails ({type(error).__name__}: {error}).")

    def adding(self, entry_of: Callable[[Any], _T], name: str = "") -> Callable[[_F], _F]:
        """Return a decorator that adds the entry of a function under this name, or that of the function."""

        def add(function: _F) -> _F:
            self[name or function.__name__] = entry_of(function)
            return function

        return add

    def find(self, name: Any) -> _T:
        """Return the entry of this name; UnknownNameError, with the nearest names, if there is none."""
        if not isinstance(name, str) or (name not in self and name not in self.load_plugins()):
            from recsys.errors import UnknownNameError

            raise UnknownNameError(self.kind, name, self)
        return self[name]


def lazy_names(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` of a package whose names are imported on first use.

    Its names are those that it imports for type checkers, below `if TYPE_CHECKING:`, `NAME as NAME`.
    """
    spec: Any = sys.modules[package].__spec__
    words = spec.loader.get_data(spec.origin).decode().replace("(", " ").split()
    fives = zip(*(words[at:] for at in range(5)), strict=False)
    homes = {name: home for of, home, what, name, as_ in fives if (of, what, as_) == ("from", "import", "as")}

    def __getattr__(name: str) -> Any:  # noqa: N807 - it becomes the package's own
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = homes[name]
        return import_module(f"{home}.{name}") if home == package else getattr(import_module(home), name)

    return __getattr__, lambda: sorted(homes), list(homes)
