"""The metrics of ranx by its names, on arrays: one array per query, a row (document, number) per document.

The documents of a run are taken in their order; their numbers are not read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from recsys.compat.ranx import add_modules
from recsys.compat.ranx.data_structures import finite
from recsys.conventions.decisions import Conventions
from recsys.errors import InputError, UnknownNameError
from recsys.evaluation.case_values import plain_values, values_by_case
from recsys.records.arrays import Array, Float

# What `evaluate` calls a metric, what its function is called, and the metric here.
_NAMES = {
    "hits": ("hits", "hits"),
    "hit_rate": ("hit_rate", "hit"),
    "precision": ("precision", "precision"),
    "recall": ("recall", "recall"),
    "f1": ("f1", "f1"),
    "r-precision": ("r_precision", "r_precision"),
    "mrr": ("reciprocal_rank", "mrr"),
    "map": ("average_precision", "map"),
    "dcg": ("dcg", "dcg"),
    "dcg_burges": ("dcg_burges", "dcg(gain=exp2)"),
    "ndcg": ("ndcg", "ndcg"),
    "ndcg_burges": ("ndcg_burges", "ndcg(gain=exp2)"),
    "bpref": ("bpref", "bpref"),
}
_WITHOUT_CUT = ("r-precision", "bpref")
_RANX = Conventions.named("ranx").but(negative_grades="unjudged")


def read_metric(metric: str) -> tuple[str, int]:
    """The metric here and the least grade that is relevant, of what ranx writes.

    >>> read_metric("ndcg_burges@10-l2"), read_metric("rbp.95")
    (('ndcg(gain=exp2)@10', 2), ('graded_rbp(p=0.95)', 1))
    """
    name, dash, least = metric.partition("-l")
    level = int(least) if dash else 1
    if "rbp" in name:
        _, cut, digits = name.partition("." if "." in name else "@")
        if not cut:
            raise InputError("rbp needs a persistence.", hint='Write "rbp.95" for p = 0.95.')
        return f"graded_rbp(p={float(f'0.{digits}')!r})", level
    name, at, cut = name.partition("@")
    if name not in _NAMES:
        raise UnknownNameError("metric of ranx", name, (*_NAMES, "rbp.95"))
    k = int(cut) if at else 0
    return _NAMES[name][1] + (f"@{k}" if k and name not in _WITHOUT_CUT else ""), level


def conventions(level: int) -> Conventions:
    """The decisions of ranx, with this least grade that is relevant."""
    return _RANX if level == 1 else _RANX.but(relevant_from=level)


def values(
    qrels: Mapping[str, Mapping[str, float]], run: Mapping[str, Mapping[str, float]], metrics: Sequence[str]
) -> dict[str, Float]:
    """One array per metric, as ranx writes it, in the order of the queries of the run."""
    out: dict[str, Float] = {}
    requests = {metric: read_metric(metric) for metric in metrics}
    for level in sorted({level for _, level in requests.values()}):
        wanted = {metric: request for metric, (request, least) in requests.items() if least == level}
        rules = conventions(level)
        if level < 1:  # gains stay what they are; the other metrics count what is relevant from there on
            counted = {m: r for m, r in wanted.items() if not r.startswith(("dcg", "ndcg", "graded_rbp"))}
            raised = {q: {d: grade + 1 - level for d, grade in row.items()} for q, row in qrels.items()}
            found = _by_query(run, raised, list(counted.values()), _RANX) if counted else {}
            out |= {metric: found[request] for metric, request in counted.items()}
            wanted = {metric: request for metric, request in wanted.items() if metric not in counted}
        # To ranx a negative grade is a judgement, which bpref alone can tell.
        plain = [request for request in wanted.values() if request != "bpref"]
        found = _by_query(run, qrels, plain, rules) if plain else {}
        if len(plain) < len(wanted):
            clipped = {q: {d: max(grade, 0) for d, grade in row.items()} for q, row in qrels.items()}
            found = {**found, **_by_query(run, clipped, ["bpref"], rules)}
        out |= {metric: found[request] for metric, request in wanted.items()}
    return {metric: out[metric] for metric in metrics}


def _by_query(
    run: Mapping[str, Mapping[str, float]],
    qrels: Mapping[str, Mapping[str, float]],
    requests: Sequence[str],
    rules: Conventions,
) -> dict[str, Float]:
    """The values of each request; scores may be infinite, which the quick way does not take."""
    found = plain_values(run, qrels, requests, rules) or values_by_case(finite(run), qrels, requests, rules)
    return found[1]


def as_dicts(arrays: Any, *, is_run: bool) -> dict[str, dict[str, float]]:
    """Arrays as nested dicts: a run's documents numbered down; one that is listed again is irrelevant."""
    nested = {}
    for query, rows in enumerate(arrays):
        found: dict[str, float] = {}
        for at, (document, number) in enumerate(np.asarray(rows, dtype=np.float64).reshape(-1, 2).tolist()):
            name = repr(document)
            if not is_run:
                found[name] = number
            else:
                found[name if name not in found else f"{name} again, at {at}"] = -float(at)
        nested[str(query)] = found
    return nested


def _metric(name: str, function: str) -> Callable[..., Float]:
    def metric(qrels: Any, run: Any, k: int = 0, rel_lvl: int = 1) -> Float:
        asked = f"{name}@{k}-l{rel_lvl}"
        return values(as_dicts(qrels, is_run=False), as_dicts(run, is_run=True), [asked])[asked]

    metric.__name__ = metric.__qualname__ = function
    metric.__doc__ = f"{_NAMES[name][1]} of each query; k=0 looks at whole lists."
    return metric


def rank_biased_precision(qrels: Any, run: Any, p: float, rel_lvl: int = 1) -> Float:
    """Rank-biased precision of each query; a hit counts its grade."""
    return _values_of(qrels, run, [f"graded_rbp(p={p!r})"], rel_lvl)[0]


def interpolated_precision_at_recall(qrels: Any, run: Any, rel_lvl: int = 1) -> Float:
    """Eleven columns per query: the best precision at recall 0, 0.1, … 1 or beyond."""
    levels = [f"iprec(recall={level / 10})" for level in range(11)]
    return np.column_stack(_values_of(qrels, run, levels, rel_lvl))


def _values_of(qrels: Any, run: Any, requests: Sequence[str], rel_lvl: int) -> list[Float]:
    nested = as_dicts(run, is_run=True), as_dicts(qrels, is_run=False)
    _, found = values_by_case(*nested, requests, conventions(rel_lvl))
    return [found[request] for request in requests]


def get_hit_lists(qrels: Any, run: Any, k: int = 0, rel_lvl: int = 1) -> list[Float]:
    """1 where the document at a place is relevant: one array per query."""
    return _marked(qrels, run, k, lambda found, judged: np.isin(found, judged[judged[:, 1] >= rel_lvl, 0]))


def get_non_rel_lists(qrels: Any, run: Any, k: int = 0) -> list[Float]:
    """1 where the document at a place is judged and not relevant."""
    return _marked(qrels, run, k, lambda found, judged: np.isin(found, judged[judged[:, 1] == 0, 0]))


def get_unjudged_lists(qrels: Any, run: Any, k: int = 0) -> list[Float]:
    """1 where the document at a place is not judged."""
    return _marked(qrels, run, k, lambda found, judged: ~np.isin(found, judged[:, 0]))


def _marked(qrels: Any, run: Any, k: int, rule: Callable[[Array, Array], Array]) -> list[Float]:
    marks = []
    for judged, found in zip(qrels, run, strict=True):
        grades, ranked = (np.asarray(rows, dtype=np.float64).reshape(-1, 2) for rows in (judged, found))
        marks.append(rule(ranked[: k or None, 0], grades).astype(np.float64))
    return marks


def metric_switch(metric: str) -> Callable[..., Float]:
    """The function of a metric that `evaluate` knows by this name."""
    if metric == "rbp":
        return rank_biased_precision
    if metric not in _NAMES:
        raise UnknownNameError("metric of ranx", metric, (*_NAMES, "rbp"))
    return _FUNCTIONS[_NAMES[metric][0]]


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    function: _metric(name, function) for name, (function, _) in _NAMES.items()
}
for _own in (
    rank_biased_precision, interpolated_precision_at_recall,
    get_hit_lists, get_non_rel_lists, get_unjudged_lists,
):  # fmt: skip
    _FUNCTIONS[_own.__name__] = _own
globals().update(_FUNCTIONS)
__all__ = sorted(_FUNCTIONS)  # noqa: PLE0605 - names of functions above
add_modules(
    __name__,
    {name: _FUNCTIONS if name == "ndcg" else {name: function} for name, function in _FUNCTIONS.items()},
)
