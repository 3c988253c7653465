"""The fusion methods of ranx by its names: runs in, a run out; and how they are trained."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from recsys.compat.ranx import add_modules
from recsys.compat.ranx.data_structures import Qrels, Run
from recsys.compat.ranx.metrics import values
from recsys.compat.ranx.normalization import pool_of, run_of
from recsys.errors import InputError, UnknownNameError
from recsys.inputs.containers import read_interactions
from recsys.ranks.fusion import FUSIONS, Fusion, JudgedPool, Pool, combine, find_fusion, log_odds
from recsys.records.arrays import Float, Interactions

# What ranx calls a method where it is not what it is called here.
_RUN_NAMES = {"wsum": "weighted_sum"}


def fused(pool: Pool, row: Fusion, queries: Sequence[str], parameters: Mapping[str, Any]) -> Run:
    """The fused run; its name is that of the method, or `name` of the parameters."""
    rest = dict(parameters)
    name = rest.pop("name", _RUN_NAMES.get(row.name, row.name))
    try:
        scores = combine(pool, row, rest)
    except (InputError, UnknownNameError) as error:
        raise ParameterError(str(error)) from error
    return run_of(pool.to_lists(scores), queries, name)


class ParameterError(InputError, TypeError):
    """A method lacks a parameter or has none of this name; ranx raises TypeError."""


def _method(row: Fusion) -> Callable[..., Run]:
    def method(runs: Sequence[Run], *arguments: Any, **keywords: Any) -> Run:
        bound = signature.bind(runs, *arguments, **keywords).arguments
        given = bound.pop("runs")
        return fused(pool_of(given), row, sorted(given[0].keys()), bound)

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    own = list(inspect.signature(row.combine).parameters.values())[1:]
    name = inspect.Parameter("name", kind, default=_RUN_NAMES.get(row.name, row.name))
    signature = inspect.Signature([inspect.Parameter("runs", kind), *own, name])
    method.__name__ = method.__qualname__ = row.name
    method.__doc__ = f"{row.summary}: {row.reference}."
    method.__signature__ = signature  # type: ignore[attr-defined]
    return method


def judged(qrels: Qrels) -> Interactions:
    """The grades, none of them negative."""
    return read_interactions(
        {q: {d: max(grade, 0) for d, grade in row.items()} for q, row in qrels.nested.items()}
    )


def _training(row: Fusion) -> Callable[..., Any]:
    def train(qrels: Qrels, runs: Sequence[Run], *settings: Any, **named: Any) -> Any:
        truth = judged(qrels)
        relevant = np.ones(len(truth.codes), dtype=bool) if truth.grades is None else truth.grades >= 1

        def mean_average_precision() -> list[float]:
            return [float(np.mean(values(qrels.nested, run.nested, ["map"])["map"])) for run in runs]

        training = JudgedPool.of(pool_of(runs, truth.cases), truth, relevant, mean_average_precision)
        found = row.train(training, *settings, **named) if row.train is not None else None
        return np.array(found) if row.name == "probfuse" else found

    train.__name__ = train.__qualname__ = f"{row.name}_train"
    train.__doc__ = f"`{row.trained}` of {row.name}, from what is relevant."
    return train


def _estimate_log_odds(hit_lists: Sequence[Any], cut_offs: Sequence[int]) -> Float:
    """BayesFuse's log odds for each place, from hit lists; ranx's own tests ask for it."""
    borders = list(cut_offs)
    means = np.zeros(len(borders) - 1)
    for part, (start, stop) in enumerate(pairwise(borders)):
        for hits in hit_lists:
            means[part] += float(np.sum(np.asarray(hits)[start:stop])) / (stop - start) / len(hit_lists)
    return log_odds(means, borders)


def get_candidates(runs: Sequence[Mapping[str, Mapping[str, float]]]) -> list[list[str]]:
    """For each query of the first run: every document that any run lists."""
    return [list(dict.fromkeys(d for run in runs for d in run[query])) for query in runs[0]]


def get_results(runs: Sequence[Mapping[str, Mapping[str, float]]]) -> list[list[list[str]]]:
    """For each query of the first run and each run: its documents, best first."""
    return [[list(run[query]) for run in runs] for query in runs[0]]


def fusion_switch(method: str) -> Callable[..., Run]:
    """The function of a method, by the name that `fuse` takes."""
    return _METHODS[find_fusion(method).name]


_METHODS = {name: _method(row) for name, row in FUSIONS.items()}
_TRAININGS = {f"{name}_train": _training(row) for name, row in FUSIONS.items() if row.train is not None}
globals().update(_METHODS | _TRAININGS)
__all__ = [*_METHODS, *_TRAININGS]  # noqa: PLE0604 - what the line above defines
_MODULES: dict[str, dict[str, Any]] = {name: {name: function} for name, function in _METHODS.items()}
for _name, _function in _TRAININGS.items():
    _MODULES[_name.removesuffix("_train")][_name] = _function
_MODULES["bayesfuse"]["_estimate_log_odds"] = _estimate_log_odds
_MODULES["condorcet"] |= {"get_candidates": get_candidates, "get_results": get_results}
_MODULES["bordafuse"] |= {"get_candidates": get_candidates}
add_modules(__name__, _MODULES)
