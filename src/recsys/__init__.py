"""Evaluate recommender systems: every ranking metric, under conventions that are named."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from recsys.api import Evaluator, evaluate, recommend
    from recsys.comparison import Comparison, compare
    from recsys.conventions import Conventions
    from recsys.explanation import explain
    from recsys.files import read_file
    from recsys.frames import read_interactions, read_lists
    from recsys.kernels import show_backends
    from recsys.metrics import metric
    from recsys.results import Evaluation
    from recsys.single import score_list
    from recsys.sources import Factors, Scores, from_model
    from recsys.types import Interactions, Lists

__version__ = "0.1.0"

_HOMES = {
    "Comparison": "recsys.comparison",
    "Conventions": "recsys.conventions",
    "Evaluation": "recsys.results",
    "Evaluator": "recsys.api",
    "Interactions": "recsys.types",
    "Lists": "recsys.types",
    "Factors": "recsys.sources",
    "Scores": "recsys.sources",
    "compare": "recsys.comparison",
    "evaluate": "recsys.api",
    "from_model": "recsys.sources",
    "recommend": "recsys.api",
    "explain": "recsys.explanation",
    "metric": "recsys.metrics",
    "read_file": "recsys.files",
    "read_interactions": "recsys.frames",
    "read_lists": "recsys.frames",
    "score_list": "recsys.single",
    "show_backends": "recsys.kernels",
}

__all__ = [
    "Comparison",
    "Conventions",
    "Evaluation",
    "Evaluator",
    "Factors",
    "Interactions",
    "Lists",
    "Scores",
    "compare",
    "evaluate",
    "explain",
    "from_model",
    "metric",
    "read_file",
    "read_interactions",
    "read_lists",
    "recommend",
    "score_list",
    "show_backends",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that `import recsys` costs next to nothing."""
    if name not in _HOMES:
        raise AttributeError(f"module 'recsys' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__", "errors"]
