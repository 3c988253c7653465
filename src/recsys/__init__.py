"""Evaluate recommender systems: every ranking metric, under conventions that are named."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

# Each name is imported under itself, which is how type checkers know it for public.
# isort: off
if TYPE_CHECKING:
    from recsys.audits import audit as audit
    from recsys.benching.bench import bench as bench
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
    from recsys.records.arrays import Interactions as Interactions, Lists as Lists
# isort: on

__version__: str  # of the installed package, which has it from pyproject.toml; "unknown" where it is not

# Where each public name is defined: {module: names}. Type checkers read the imports above.
_NAMES = {
    "audits": ("audit",),
    "benching.bench": ("bench",),
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
    "records.arrays": ("Interactions", "Lists"),
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
    "studies": "recsys.benching.studies",
}

__all__ = list(_HOMES)


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
    def __reduce__(self) -> tuple[Any, ...]:
        """A function that mentions the package can go to another process (Spark, Dask, joblib)."""
        return import_module, (self.__name__,)


sys.modules[__name__].__class__ = _Package


def __dir__() -> list[str]:
    return [*__all__, "__version__", *_ROOMS]
