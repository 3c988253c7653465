"""Values per case of nested dicts, {case: {item: number}}, as pytrec_eval and ranx return them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from recsys.conventions.decisions import AnyConventions, Conventions
from recsys.errors import InputError
from recsys.evaluation.engine import measure
from recsys.evaluation.options import EvaluationOptions
from recsys.evaluation.reading import CommonInputs
from recsys.evaluation.run import reads_places_only, with_highest_grade
from recsys.inputs.ids import ids_from_sequence
from recsys.inputs.nested_dicts import has_data, is_graded
from recsys.kernels import rank_dicts
from recsys.metrics.registry import Request
from recsys.ranks.ranked_truth import WalkedTruth
from recsys.records.arrays import Context, Float, Ids

NestedDicts = Mapping[str, Mapping[str, float]]


def values_by_case(
    run: NestedDicts, truth: NestedDicts, metrics: Sequence[str], conventions: AnyConventions = None
) -> tuple[list[str], dict[str, Float]]:
    """Return the cases that are in both, in the order of `run`, and the values of each metric.

    NaN says that the conventions leave a case out of the mean of that metric. Equal scores cause no warning.

    >>> cases, values = values_by_case(
    ...     {"q2": {"d1": 0.5, "d2": 0.7}, "q1": {"d3": 0.1}}, {"q1": {"d3": 1}, "q2": {"d1": 1}}, ["mrr"]
    ... )
    >>> cases, values["mrr"].tolist()
    (['q2', 'q1'], [0.5, 1.0])
    """
    requests = {name: Request.parse(name) for name in metrics}
    for name, request in requests.items():
        if request.metric.kind == "catalogue":
            raise InputError(f"{name} is about all lists together and has no value per case.")
    found = plain_values(run, truth, metrics, conventions)
    if found is not None:
        return found
    cases, asked = [case for case in run if case in truth], list(requests.values())
    if not cases or not asked:
        return cases, {name: np.zeros(len(cases)) for name in requests}
    sides = ({case: side[case] for case in cases} for side in (run, truth))
    read = CommonInputs(asked, EvaluationOptions()).run_of(*sides)
    rules = read.effective(Conventions.of(conventions))
    judged, context = read.rank_truth(rules)
    rows = measure(judged, asked, rules, context).rows
    at = Ids(rows.ids).code_of(ids_from_sequence(cases, table="lists", column="user"))
    return cases, {name: rows.columns[str(request)][at] for name, request in requests.items()}


def plain_values(
    run: NestedDicts,
    truth: Any,
    metrics: Sequence[str],
    conventions: AnyConventions = None,
    *,
    float32: bool = False,
) -> tuple[list[str], dict[str, Float]] | None:
    """`values_by_case` where a walk over the dicts suffices, and None else.

    `truth` may be what `kernels.hold_truth` made of it. `float32` rounds scores to 32 bits first, and takes
    numbers of Python only.
    """
    requests = {name: Request.parse(name) for name in metrics}
    rules, asked = Conventions.of(conventions), list(requests.values())
    if not asked or not reads_places_only(asked, rules, 0):
        return None
    walk = rank_dicts(run, truth, shared=True, float32=float32)
    if walk is None or not has_data(walk) or not reads_places_only(asked, rules, walk.n_negative):
        return None
    if walk.n_negative and rules.negative_grades == "error":
        return None  # the general way says which
    rules = with_highest_grade(rules, asked, lambda: walk.highest if is_graded(walk) else None)
    rows = measure(WalkedTruth(walk), asked, rules, Context()).rows
    return walk.cases, {name: rows.columns[str(request)][walk.codes] for name, request in requests.items()}
