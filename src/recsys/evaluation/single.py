"""One user's list, scored in tens of microseconds by the same metric functions as everything else.

Small inputs meet no table, no kernel and no thread: the hits are found with a dict.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from recsys.conventions.decisions import AnyConventions, Conventions
from recsys.errors import IdTypeError, InputError, NotDefinedError, UnknownNameError
from recsys.evaluation.engine import check_needs, measure
from recsys.evaluation.partials import summarise
from recsys.inputs.frames import read_interactions, read_lists
from recsys.metrics import Terms
from recsys.metrics.case_reading import Reading
from recsys.metrics.requests import Request
from recsys.ranks.matching import pair
from recsys.types import Context, Hits

_DEFAULT = Conventions()


def score_list(
    recommended: Iterable[Any],
    relevant: Iterable[Any] | Mapping[Any, float],
    metric: str,
    *,
    conventions: AnyConventions = None,
    catalogue: int | None = None,
    complete: bool = False,
) -> float:
    """One metric of one list; 0.0 (NaN for ranks and AUC) where nothing is relevant.

    >>> round(score_list([1, 5, 3, 8, 2], {3, 8, 10}, "ndcg@10"), 4)
    0.4367
    """
    request = _request(metric)
    chosen = _DEFAULT if conventions is None else Conventions.of(conventions)
    if isinstance(recommended, set | frozenset):
        raise InputError("the list came as a set, which has no order.", hint="Pass a list, best item first.")
    if isinstance(recommended, Mapping):
        recommended = list(recommended.items())
    listed = recommended if isinstance(recommended, list) else _plain(recommended)
    grades = relevant if isinstance(relevant, Mapping) else dict.fromkeys(_plain(relevant), 1.0)
    here = request.conventions(chosen) if request.params or chosen.per_metric else chosen
    context = Context(n_items=catalogue, complete=complete)
    check_needs(request, context)
    _refuse_shown(request)
    scored = bool(listed) and isinstance(listed[0], tuple)
    if not grades:
        _check_ids([pair[0] for pair in listed] if scored else listed, grades)
        return _nothing_relevant(request, here)
    if scored or here.duplicates == "error":
        return _through_tables(listed, grades, request, chosen, context)
    _check_ids(listed, grades)
    reading = Reading(_hits(listed, grades, complete=complete), here.relevant_from, here.duplicates, context)
    graded = reading.hits.truth_grade is not None
    if graded and here.max_grade is None and "max_grade" in request.metric.conventions:
        here = here.but(max_grade=float(max(grades.values())))
    values = request.metric.body(reading, request.k, here, **request.own_params)
    value = float((values.value if isinstance(values, Terms) else np.asarray(values))[0])
    if not listed:
        value = request.metric.empty
    if request.metric.summary is not None:
        value = request.metric.summary(np.array([value]), None, **request.own_params)
    if reading.nothing_wanted(request.metric.population) is not None:
        return _nothing_relevant(request, here)
    low, high = request.metric.bounds
    if value > high or value < low:
        return _through_tables(listed, grades, request, chosen, context)
    return value


def _plain(ids: Any) -> list[Any]:
    """Ids in a list; those of arrays and tensors are Python's own."""
    made: list[Any] = ids.tolist() if hasattr(ids, "tolist") else list(ids)
    return made


def _refuse_shown(request: Request) -> None:
    if "lists" in request.metric.needs:
        raise NotDefinedError(
            f"{request.metric.name} is about the items shown to all users.", hint="Use recsys.evaluate."
        )


def _nothing_relevant(request: Request, here: Conventions) -> float:
    if here.no_truth == "error":
        raise InputError("nothing is relevant.", hint="Leave such users out, or set no_truth='skip'.")
    return math.nan if math.isnan(request.metric.empty) else 0.0


def _request(metric: Any) -> Request:
    if not isinstance(metric, str):
        hint = 'Name one, such as "ndcg@10"; recsys.evaluate takes several.'
        raise UnknownNameError("metric", metric, [], hint=hint)
    return _parsed(metric)


@lru_cache(maxsize=1024)
def _parsed(metric: str) -> Request:
    return Request.parse(metric)


def _hits(listed: list[Any], grades: Mapping[Any, float], *, complete: bool) -> Hits:
    ranks = [place for place, item in enumerate(listed, 1) if item in grades]
    found = [listed[place - 1] for place in ranks]
    size = len(listed)
    flat = True
    for grade in grades.values():
        if grade != 1:
            flat = False
            if not 0 <= grade < math.inf:
                raise InputError(
                    f"the grade {grade!r} is not a finite number of at least 0.",
                    column="grade",
                    hint="Grades start at 0 (judged, not relevant).",
                )
    repeat = None
    if len(set(found)) < len(found):
        first: set[Any] = set()
        repeat = np.zeros(len(found), dtype=bool)
        for at, item in enumerate(found):
            repeat[at] = item in first
            first.add(item)
    return Hits(
        n_cases=1,
        case=np.zeros(len(ranks), dtype=np.int32),
        item=np.zeros(len(ranks), dtype=np.int32),
        rank=np.array(ranks, dtype=np.int64),
        grade=None if flat else np.array([grades[item] for item in found], dtype=np.float64),
        n_listed=np.array([size]),
        truth_indptr=np.array([0, len(grades)]),
        truth_grade=None if flat else np.sort(np.array(list(grades.values()), dtype=np.float64))[::-1],
        repeat=repeat,
        n_candidates=np.array([size]) if complete else None,
    )


def _check_ids(listed: list[Any], grades: Mapping[Any, float]) -> None:
    kinds = {*map(type, listed), *map(type, grades)}
    if len(kinds) <= 1 and kinds <= {int, str}:
        return
    words = {_kind(k) for k in kinds}
    if len(words) > 1 or "other" in words:
        raise IdTypeError(
            f"the list and the relevant items hold {' and '.join(sorted(k.__name__ for k in kinds))} ids.",
            column="item",
            hint="Ids are all int or all str.",
        )


def _kind(kind: type) -> str:
    if issubclass(kind, str):
        return "str"
    return "int" if issubclass(kind, int | np.integer) and kind is not bool else "other"


def _through_tables(
    listed: list[Any], grades: Mapping[Any, float], request: Request, chosen: Conventions, context: Context
) -> float:
    """Scores, repeats as errors, range errors: the long way round, which says what is wrong."""
    truth = read_interactions({0: dict(grades)})
    if "max_grade" in request.metric.conventions and chosen.max_grade is None:
        chosen = chosen.but(max_grade=float(max(grades.values())))
    paired = pair(read_lists({0: listed}), truth, complete=context.complete)
    partial = measure(paired, [request], chosen.but(no_truth="skip"), context)
    value = summarise(partial, [request])[str(request)]
    return _nothing_relevant(request, chosen) if math.isnan(value) else value
