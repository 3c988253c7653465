"""Evaluate recommender systems: every ranking metric, under conventions that are named."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from recsys.ab import ab
    from recsys.api import evaluate, recommend
    from recsys.audit import audit
    from recsys.candidates import Candidates, evaluate_candidates
    from recsys.comparison import Comparison, compare
    from recsys.conventions import Conventions
    from recsys.evaluator import Evaluator
    from recsys.explanation import explain
    from recsys.files import read_file
    from recsys.frames import read_interactions, read_lists
    from recsys.gate import gate
    from recsys.history import history
    from recsys.kernels import show_backends
    from recsys.metrics import metric
    from recsys.race import Race, race
    from recsys.ratings import evaluate_ratings
    from recsys.results import Evaluation, load
    from recsys.single import score_list
    from recsys.sources import Factors, Scores, from_model, read_factors
    from recsys.splits import split
    from recsys.stopping import StopWhen
    from recsys.types import Interactions, Lists

__version__ = "0.1.0"

_HOMES = {
    "Candidates": "recsys.candidates",
    "Comparison": "recsys.comparison",
    "Conventions": "recsys.conventions",
    "Evaluation": "recsys.results",
    "Evaluator": "recsys.evaluator",
    "Interactions": "recsys.types",
    "Lists": "recsys.types",
    "Factors": "recsys.sources",
    "Race": "recsys.race",
    "Scores": "recsys.sources",
    "StopWhen": "recsys.stopping",
    "ab": "recsys.ab",
    "audit": "recsys.audit",
    "compare": "recsys.comparison",
    "evaluate": "recsys.api",
    "evaluate_candidates": "recsys.candidates",
    "evaluate_ratings": "recsys.ratings",
    "from_model": "recsys.sources",
    "race": "recsys.race",
    "recommend": "recsys.api",
    "explain": "recsys.explanation",
    "gate": "recsys.gate",
    "history": "recsys.history",
    "load": "recsys.results",
    "metric": "recsys.metrics",
    "read_factors": "recsys.sources",
    "read_file": "recsys.files",
    "read_interactions": "recsys.frames",
    "read_lists": "recsys.frames",
    "score_list": "recsys.single",
    "show_backends": "recsys.kernels",
    "split": "recsys.splits",
}

# Modules with a vocabulary of their own: `recsys.splits.leave_last` needs no import beside recsys.
_ROOMS = (
    "adapters",
    "analysis",
    "baselines",
    "callbacks",
    "cf",
    "data",
    "debias",
    "errors",
    "files",
    "models",
    "negatives",
    "report",
    "rerank",
    "sampled",
    "splits",
    "stats",
    "studies",
)

__all__ = [
    "Candidates",
    "Comparison",
    "Conventions",
    "Evaluation",
    "Evaluator",
    "Factors",
    "Interactions",
    "Lists",
    "Race",
    "Scores",
    "StopWhen",
    "ab",
    "audit",
    "compare",
    "evaluate",
    "evaluate_candidates",
    "evaluate_ratings",
    "explain",
    "from_model",
    "gate",
    "history",
    "load",
    "metric",
    "race",
    "read_factors",
    "read_file",
    "read_interactions",
    "read_lists",
    "recommend",
    "score_list",
    "show_backends",
    "split",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that `import recsys` costs next to nothing."""
    if name in _ROOMS:
        return import_module(f"recsys.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'recsys' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


class _Face(ModuleType):
    """A verb and the module it lives in may share a name (recsys.gate); the name means the verb."""

    def __setattr__(self, name: str, value: Any) -> None:
        shared = isinstance(value, ModuleType) and _HOMES.get(name) == value.__name__
        super().__setattr__(name, getattr(value, name, value) if shared else value)

    def __reduce__(self) -> tuple[Any, ...]:
        """A function that mentions the package can go to another process (Spark, Dask, joblib)."""
        return import_module, (self.__name__,)


sys.modules[__name__].__class__ = _Face


def __dir__() -> list[str]:
    return [*__all__, "__version__", *_ROOMS]
