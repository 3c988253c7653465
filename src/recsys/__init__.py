"""Evaluate recommender systems: every ranking metric, under conventions that are named."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

# Each name is imported under itself, which is how type checkers know it for public.
# isort: off
if TYPE_CHECKING:
    from recsys.audits import audit as audit
    from recsys.cli.bench import bench as bench
    from recsys.comparison.compare import Comparison as Comparison, compare as compare
    from recsys.comparison.conformance import Conformance as Conformance, conform as conform
    from recsys.comparison.explain import explain as explain
    from recsys.comparison.gate import gate as gate
    from recsys.comparison.history import history as history
    from recsys.comparison.identify import Identification as Identification, identify as identify
    from recsys.comparison.race import Race as Race, race as race
    from recsys.conventions.decisions import Conventions as Conventions
    from recsys.evaluation.candidates import (
        Candidates as Candidates,
        evaluate_candidates as evaluate_candidates,
    )
    from recsys.evaluation.evaluate import evaluate as evaluate, recommend as recommend
    from recsys.evaluation.evaluator import Evaluator as Evaluator
    from recsys.evaluation.fusion_tuning import FusionTuning as FusionTuning, tune_fusion as tune_fusion
    from recsys.evaluation.ratings import evaluate_ratings as evaluate_ratings
    from recsys.evaluation.results import Evaluation as Evaluation, load as load
    from recsys.evaluation.single import score_list as score_list
    from recsys.evaluation.stopping import StopWhen as StopWhen
    from recsys.inputs import read_interactions as read_interactions, read_lists as read_lists
    from recsys.inputs.files import read_file as read_file
    from recsys.kernels import show_backends as show_backends
    from recsys.metrics import metric as metric
    from recsys.ranks.fusion import fuse as fuse
    from recsys.ranks.sources import (
        Factors as Factors,
        Scores as Scores,
        from_model as from_model,
        read_factors as read_factors,
    )
    from recsys.splits import split as split
    from recsys.stats.online_experiments import ab as ab
    from recsys.types import Interactions as Interactions, Lists as Lists
# isort: on

__version__: str  # of the installed package, which has it from pyproject.toml; "unknown" where it is not
_T = TypeVar("_T")
_F = TypeVar("_F", bound=Callable[..., Any])

# Where each public name is defined: {module: names}. Type checkers read the imports above.
_NAMES = {
    "audit": ("audit",),
    "cli.bench": ("bench",),
    "comparison.compare": ("Comparison", "compare"),
    "comparison.conformance": ("Conformance", "conform"),
    "comparison.explain": ("explain",),
    "comparison.gate": ("gate",),
    "comparison.history": ("history",),
    "comparison.identify": ("Identification", "identify"),
    "comparison.race": ("Race", "race"),
    "conventions.decisions": ("Conventions",),
    "evaluation.candidates": ("Candidates", "evaluate_candidates"),
    "evaluation.evaluate": ("evaluate", "recommend"),
    "evaluation.evaluator": ("Evaluator",),
    "evaluation.fusion_tuning": ("FusionTuning", "tune_fusion"),
    "evaluation.ratings": ("evaluate_ratings",),
    "evaluation.results": ("Evaluation", "load"),
    "evaluation.single": ("score_list",),
    "evaluation.stopping": ("StopWhen",),
    "inputs": ("read_interactions", "read_lists"),
    "inputs.files": ("read_file",),
    "kernels": ("show_backends",),
    "metrics": ("metric",),
    "ranks.fusion": ("fuse",),
    "ranks.sources": ("Factors", "Scores", "from_model", "read_factors"),
    "splits": ("split",),
    "stats.online_experiments": ("ab",),
    "types": ("Interactions", "Lists"),
}
_HOMES = dict(sorted((name, f"recsys.{module}") for module, names in _NAMES.items() for name in names))

# Modules with a vocabulary of their own: `recsys.splits.leave_last` needs no import beside recsys.
_ROOMS = {
    "adapters": "recsys.evaluation.adapters",
    "analysis": "recsys.analysis",
    "baselines": "recsys.models.baselines",
    "callbacks": "recsys.models.callbacks",
    "cf": "recsys.cf",
    "data": "recsys.splits.datasets",
    "debias": "recsys.debias",
    "errors": "recsys.errors",
    "files": "recsys.inputs.files",
    "models": "recsys.models",
    "negatives": "recsys.splits.negatives",
    "report": "recsys.report",
    "rerank": "recsys.models.rerankers",
    "sampled": "recsys.stats.sampled",
    "spark": "recsys.spark",
    "splits": "recsys.splits",
    "stats": "recsys.stats",
    "studies": "recsys.cli.studies",
}

__all__ = list(_HOMES)


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
        """The plug-in that a module belongs to, or its name; None for a module of this package."""
        package = module.partition(".")[0]
        return None if package == __name__ else Registry._plugins.get(package, module)

    def leave_out(self, words: str, error: BaseException) -> None:
        """Warn that something of another package fails, and is left out."""
        from recsys.errors import RecsysWarning, warn

        warn(RecsysWarning, f"{words} is left out, as it fails ({type(error).__name__}: {error}).")

    def adding(self, entry_of: Callable[[Any], _T], name: str = "") -> Callable[[_F], _F]:
        """A decorator that adds the entry of a function under this name, or that of the function."""

        def add(function: _F) -> _F:
            self[name or function.__name__] = entry_of(function)
            return function

        return add

    def find(self, name: Any) -> _T:
        """The entry of this name; UnknownNameError, with the nearest names, if there is none."""
        if not isinstance(name, str) or (name not in self and name not in self.load_plugins()):
            from recsys.errors import UnknownNameError

            raise UnknownNameError(self.kind, name, self)
        return self[name]


def lazy_names(
    package: str, modules: Mapping[str, Sequence[str]], rooms: Sequence[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package whose names are imported when they are first used.

    Args:
        package: its `__name__`.
        modules: {module of the package: the names it defines}.
        rooms: modules that are public themselves.
    """
    homes = {name: f"{package}.{module}" for module, names in modules.items() for name in names}

    def __getattr__(name: str) -> Any:  # noqa: N807 - it becomes the package's own
        if name in rooms:
            return import_module(f"{package}.{name}")
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(homes[name]), name)

    def __dir__() -> list[str]:  # noqa: N807
        return sorted([*homes, *rooms])

    return __getattr__, __dir__


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that `import recsys` costs next to nothing."""
    if name in _ROOMS:
        value: Any = import_module(_ROOMS[name])
    elif name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
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


class _Package(ModuleType):
    """`recsys.audit` means the verb, also after something imported the room of that name."""

    def __setattr__(self, name: str, value: Any) -> None:
        is_room = name == "audit" and isinstance(value, ModuleType)
        super().__setattr__(name, value.audit if is_room else value)

    def __reduce__(self) -> tuple[Any, ...]:
        """A function that mentions the package can go to another process (Spark, Dask, joblib)."""
        return import_module, (self.__name__,)


sys.modules[__name__].__class__ = _Package


def __dir__() -> list[str]:
    return [*__all__, "__version__", *_ROOMS]
