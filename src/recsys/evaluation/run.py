"""Run one evaluation: truth rules, ranks, metrics, groups; over all cases at once, or block by block.

Every step lives in the module named after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from recsys.conventions.decisions import Conventions
from recsys.errors import InputError, TieWarning, warn
from recsys.evaluation.engine import measure
from recsys.evaluation.options import (
    EvaluationOptions,
    apply_truth_rules,
    cluster_by_case,
    weight_by_case,
    weight_by_item,
)
from recsys.evaluation.stopping import (
    RaceEntry,
    SteppedEvaluation,
    StopWhen,
    evaluate_until,
    restrict_to_cases,
)
from recsys.evaluation.strata import with_strata
from recsys.metrics.requests import Request
from recsys.ranks.counting import CountedTruth, RankedTruth
from recsys.ranks.matching import MatchedTruth, match_truth
from recsys.ranks.sources import Source
from recsys.types import Context, Ids, Interactions, Lists, Partial


def run_once(
    ranked: Lists | Source,
    truth: Interactions,
    requests: Sequence[Request],
    conventions: Conventions,
    options: EvaluationOptions,
) -> Partial:
    """Every request for every case of the lists and the truth, by group if `by` is set."""
    judged, context = rank_truth(ranked, truth, conventions, options)
    partial = measure(judged, requests, conventions, context)
    if options.by is not None:
        partial = with_strata(
            partial, judged, requests, conventions=conventions, context=context, by=options.by
        )
    return _count_ties(partial, judged, conventions)


def rank_truth(
    ranked: Lists | Source, truth: Interactions, conventions: Conventions, options: EvaluationOptions
) -> tuple[MatchedTruth | CountedTruth, Context]:
    """The ranks of the judged items, and the context of the metrics."""
    catalogue = options.catalogue if isinstance(ranked, Lists) else ranked.catalogue
    truth, counts = apply_truth_rules(truth, catalogue, options.ranking_options.seen, conventions)
    judged: MatchedTruth | CountedTruth
    if isinstance(ranked, Lists):
        ranking_options = options.ranking_options
        judged = match_truth(
            ranked,
            truth,
            complete=options.complete,
            backend=ranking_options.backend,
            threads=ranking_options.threads,
            shared=options.shared,
        )
    else:
        judged = ranked.judge(truth, options.ranking_options)
        if options.shared and len(truth.cases) and not judged.n_candidates.any():
            _check_user_ids(ranked, truth)
    judged.counts.update(counts)
    if options.item_weights is not None:
        judged = replace(judged, item_weights=weight_by_item(judged, options.item_weights), _hits_by_rule={})
    if options.clusters is not None:
        judged = replace(judged, clusters=cluster_by_case(judged, options.clusters))
    weights = None if options.case_weights is None else weight_by_case(judged, options.case_weights)
    n_items = options.n_items if isinstance(ranked, Lists) else ranked.n_items
    complete = options.complete or not isinstance(ranked, Lists)
    if catalogue is None and not isinstance(ranked, Lists):
        catalogue = Ids(np.arange(ranked.n_items), is_range=True)
    context = replace(
        options.context, catalogue=catalogue, n_items=n_items, case_weights=weights, complete=complete
    )
    return judged, context


def _check_user_ids(ranked: Source, truth: Interactions) -> None:
    """Raise an error if no user of the truth is known to the model, so that the ids must differ."""
    rows = getattr(ranked, "user_rows", None)
    if rows is not None and rows.size and (rows.row_of(truth.cases.values, table="truth") < 0).all():
        raise InputError(
            f"no user of the truth ({truth.cases.name(0)!r}, …) has a row in the model "
            f"({rows.ids.name(0)!r}, …).",
            column="user",
            hint="Check that both sides use the same user ids.",
        )


def run_until_clear(
    ranked: Lists | Source,
    truth: Interactions,
    requests: Sequence[Request],
    conventions: Conventions,
    *,
    options: EvaluationOptions,
    stop_when: float | StopWhen | RaceEntry,
) -> tuple[Partial, dict[str, Any]]:
    """The result of as many cases as needed, and the note about stopping."""
    cases, block_options = truth.cases, copy(options)
    if isinstance(ranked, Lists):
        match_truth(ranked, truth)
        cases = ranked.cases.union(truth.cases, what="user")[0]
    block_options.shared = False
    block_options.ranking_options = replace(options.ranking_options, progress=None)

    def partial(block: Ids) -> Partial:
        lists = restrict_to_cases(ranked, block) if isinstance(ranked, Lists) else ranked
        return run_once(lists, restrict_to_cases(truth, block), requests, conventions, block_options)

    weights = options.case_weights
    largest = None if weights is None else max(map(float, weights.values()), default=None)
    steps = SteppedEvaluation(cases, truth.cases, partial, requests, conventions, largest)
    if isinstance(stop_when, RaceEntry):
        return stop_when.begin(steps)
    return evaluate_until(steps, StopWhen.of(stop_when), options.ranking_options.progress)


def _count_ties(partial: Partial, judged: RankedTruth, conventions: Conventions) -> Partial:
    found, undecided = judged.n_undecided()
    if not undecided:
        return partial
    if conventions.ties in ("by_id", "by_id_desc", "given"):
        warn(
            TieWarning,
            f"{undecided:,} of {found:,} judged items found ({undecided / found:.1%}) share their score with "
            f"another item, so the result depends on how ties are ordered (here: {conventions.ties}). "
            "ties='expected' gives the mean over all orders, ties='best' and ties='worst' the range.",
        )
    return replace(partial, counts={**partial.counts, "tied": undecided})
