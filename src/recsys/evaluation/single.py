"""One user's list, scored in tens of microseconds by the same metric functions as everything else.

Small inputs need no table, kernel or thread: a dict finds the hits.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from recsys.conventions.decisions import AnyConventions, Conventions
from recsys.errors import IdTypeError, InputError, NotDefinedError, UnknownNameError, came_as, verb
from recsys.evaluation.engine import measure, summarise
from recsys.evaluation.options import check_flag, check_n_items
from recsys.evaluation.run import apply_truth_rules, with_pooled
from recsys.evaluation.who_counts import value_without_truth
from recsys.inputs import read_interactions, read_lists
from recsys.metrics import Terms
from recsys.metrics.readings import Reading
from recsys.metrics.registry import Request, check_needs
from recsys.ranks.ranked_truth import match_truth
from recsys.records.arrays import Context, Hits

_parse_request = lru_cache(maxsize=1024)(Request.parse)
_USUAL_GRADES = {int, float, np.float64}  # any other kind of number is read by the engine


@verb
def score_list(
    recommended: Iterable[Any],
    relevant: Iterable[Any] | Mapping[Any, float],
    metric: str,
    *,
    conventions: AnyConventions = None,
    catalogue: int | None = None,
    full_ranking: bool = False,
) -> float:
    """One metric of one list; 0.0 (NaN for ranks and AUC) if nothing is relevant.

    >>> round(score_list([1, 5, 3, 8, 2], {3, 8, 10}, "ndcg@10"), 4)
    0.4367
    """
    name: Any = metric
    if not isinstance(name, str):
        hint = 'Name one, such as "ndcg@10"; recsys.evaluate takes several.'
        raise UnknownNameError("metric", name, [], hint=hint)
    request, chosen = _parse_request(name), Conventions.of(conventions)
    listed = recommended if type(recommended) is list else _read_list(recommended)
    grades = _read_relevant(relevant)
    rules = request.conventions(chosen) if request.params or chosen.per_metric else chosen
    listed, all_grades, grades = _without_unjudged(listed, grades, rules)
    context = Context(n_items=check_n_items(catalogue), complete=check_flag("full_ranking", full_ranking))
    check_needs(request, context)
    if "lists" in request.metric.needs:
        raise NotDefinedError(
            f"{request.metric.name} is about the items shown to all users.", hint="Use recsys.evaluate."
        )
    scored = bool(listed) and isinstance(listed[0], tuple)
    if not grades:
        if scored:
            read_lists({0: listed})
        else:
            _check_ids(listed, grades)
        return _value_without_truth(request, rules)
    usual = len(all_grades) == len(grades) and {*map(type, grades.values())} <= _USUAL_GRADES
    if scored or rules.duplicates == "error" or not usual:
        return _score_with_engine(listed, all_grades, request, chosen, context)
    _check_ids(listed, grades)
    if rules.duplicates == "collapse":
        listed = list(dict.fromkeys(listed))
    reading = Reading(
        _hits(listed, grades, complete=context.complete), rules.relevant_from, rules.duplicates, context
    )
    graded = reading.hits.truth_grade is not None
    if graded and rules.max_grade is None and "max_grade" in request.metric.conventions:
        rules = rules.but(max_grade=float(max(grades.values())))
    values = request.metric.body(reading, request.k, rules, **request.own_params)
    value = float((values.value if isinstance(values, Terms) else np.asarray(values))[0])
    if not listed and request.metric.empty is not None:
        value = request.metric.empty
    if request.metric.pooling.summary is not None:
        value = request.metric.pooling.summary(np.array([value]), None, **request.own_params)
    if reading.without_truth(request.metric.population) is not None:
        return _value_without_truth(request, rules)
    low, high = request.metric.bounds
    if value > high or value < low or math.isinf(value):
        return _score_with_engine(listed, all_grades, request, chosen, context)
    return value


def _without_unjudged(
    listed: list[Any], grades: Mapping[Any, Any], rules: Conventions
) -> tuple[list[Any], Mapping[Any, float], Mapping[Any, float]]:
    """Return the list as the rule for unjudged items leaves it; all grades, and those that are judgements."""
    all_grades = grades
    if rules.negative_grades == "unjudged":
        grades = {i: g for i, g in grades.items() if not (isinstance(g, int | float | np.number) and g < 0)}
    if rules.judged_only == "yes":
        listed = [entry for entry in listed if (entry[0] if isinstance(entry, tuple) else entry) in grades]
    return listed, all_grades, grades


def _read_list(recommended: Any) -> list[Any]:
    if isinstance(recommended, set | frozenset):
        raise InputError("the list came as a set, which has no order.", hint="Pass a list, best item first.")
    return list(recommended.items()) if isinstance(recommended, Mapping) else _id_list(recommended, "list")


def _read_relevant(relevant: Any) -> Mapping[Any, float]:
    """Return the relevant items and their grades; 1 if there are none."""
    if isinstance(relevant, Mapping):
        return relevant
    ids = _id_list(relevant, "relevant items")
    try:
        return dict.fromkeys(ids, 1.0)
    except TypeError as error:
        raise IdTypeError(
            f"a relevant item is not an id ({error}).", column="item", hint="Ids are all int or all str."
        ) from error


def _id_list(ids: Any, what: str) -> list[Any]:
    """Ids as a list; those of arrays and tensors become Python's own types."""
    # Text is a sequence of letters, a table one of column names, a matrix one of rows: none is a list of ids.
    one_row = not isinstance(ids, str | bytes | type) and len(getattr(ids, "shape", (0,))) == 1
    values: Any = None
    if one_row and hasattr(ids, "tolist"):
        values = ids.tolist()
    elif one_row and isinstance(ids, Iterable):
        values = list(ids)
    if not isinstance(values, list):
        raise came_as(f"the {what}", ids, hint="Pass item ids: [3, 8, 10], or a 1-D array.")
    return values


def _value_without_truth(request: Request, rules: Conventions) -> float:
    if rules.no_truth == "error":
        raise InputError("nothing is relevant.", hint="Leave such users out, or set no_truth='skip'.")
    return value_without_truth(request.metric, "zero")  # one list is in no mean that could leave it out


def _hits(listed: list[Any], grades: Mapping[Any, float], *, complete: bool) -> Hits:
    ranks = [place for place, item in enumerate(listed, 1) if item in grades]
    found = [listed[place - 1] for place in ranks]
    size = len(listed)
    binary = True
    for grade in grades.values():
        if grade != 1:
            binary = False
            if not 0 <= grade <= sys.float_info.max:
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
        grade=None if binary else np.array([grades[item] for item in found], dtype=np.float64),
        n_listed=np.array([size]),
        truth_indptr=np.array([0, len(grades)]),
        truth_grade=None if binary else np.sort(np.array(list(grades.values()), dtype=np.float64))[::-1],
        repeat=repeat,
        n_candidates=np.array([size]) if complete else None,
    )


def _check_ids(listed: list[Any], grades: Mapping[Any, float]) -> None:
    types = {*map(type, listed), *map(type, grades)}
    if len(types) <= 1 and types <= {int, str}:
        return
    all_str = all(issubclass(kind, str) for kind in types)
    if not all_str and not all(issubclass(kind, int | np.integer) and kind is not bool for kind in types):
        raise IdTypeError(
            f"the list and the relevant items hold {' and '.join(sorted(k.__name__ for k in types))} ids.",
            column="item",
            hint="Ids are all int or all str.",
        )


def _score_with_engine(
    listed: list[Any], grades: Mapping[Any, float], request: Request, chosen: Conventions, context: Context
) -> float:
    """Score the list with the ordinary engine: for scores, strict duplicates, and full error messages."""
    given = read_interactions({0: dict(grades)}, negatives=True)
    truth, _ = apply_truth_rules(given, None, None, chosen)
    if "max_grade" in request.metric.conventions and chosen.max_grade is None:
        chosen = chosen.but(max_grade=1.0 if truth.grades is None else float(truth.grades.max(initial=0.0)))
    paired = match_truth(read_lists({0: listed}), truth, complete=context.complete)
    context = with_pooled(context, paired, given)
    partial = measure(paired, [request], chosen.but(no_truth="skip"), context)
    value = summarise(partial, [request])[str(request)]
    return _value_without_truth(request, chosen) if math.isnan(value) else value
