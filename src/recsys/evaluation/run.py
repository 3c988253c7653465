"""One pass over the cases: truth settled, judged, measured, by group; at once, or block by block.

Wiring only: each step lives in the module named after it.
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
    case_weights_of,
    clusters_of,
    item_weights_of,
    settle_truth,
)
from recsys.evaluation.stopping import RaceEntry, SteppedEvaluation, StopWhen, only, until
from recsys.evaluation.strata import with_strata
from recsys.metrics.requests import Request
from recsys.ranks.counting import CountedTruth, RankedTruth
from recsys.ranks.matching import MatchedTruth, pair
from recsys.ranks.sources import Source
from recsys.types import Context, Ids, Interactions, Lists, Partial


def one_pass(
    ranked: Lists | Source,
    truth: Interactions,
    requests: Sequence[Request],
    conventions: Conventions,
    options: EvaluationOptions,
) -> Partial:
    """Every request for every case of the lists and the truth, by group where `by` asks for groups."""
    judged, context = judged_of(ranked, truth, conventions, options)
    partial = measure(judged, requests, conventions, context)
    if options.by is not None:
        partial = with_strata(
            partial, judged, requests, conventions=conventions, context=context, by=options.by
        )
    return _warned_of_ties(partial, judged, conventions)


def judged_of(
    ranked: Lists | Source, truth: Interactions, conventions: Conventions, options: EvaluationOptions
) -> tuple[MatchedTruth | CountedTruth, Context]:
    """Where the judged items landed, and all that is known besides."""
    catalogue = options.catalogue if isinstance(ranked, Lists) else ranked.catalogue
    truth, counts = settle_truth(truth, catalogue, options.asked.seen, conventions)
    judged: MatchedTruth | CountedTruth
    if isinstance(ranked, Lists):
        asked = options.asked
        judged = pair(
            ranked,
            truth,
            complete=options.complete,
            backend=asked.backend,
            threads=asked.threads,
            shared=options.shared,
        )
    else:
        judged = ranked.judge(truth, options.asked)
        if options.shared and len(truth.cases) and not judged.n_candidates.any():
            _check_known(ranked, truth)
    judged.counts.update(counts)
    if options.item_weights is not None:
        judged = replace(judged, item_weights=item_weights_of(judged, options.item_weights), _found={})
    if options.clusters is not None:
        judged = replace(judged, clusters=clusters_of(judged, options.clusters))
    weights = None if options.case_weights is None else case_weights_of(judged, options.case_weights)
    n_items = options.n_items if isinstance(ranked, Lists) else ranked.n_items
    complete = options.complete or not isinstance(ranked, Lists)
    if catalogue is None and not isinstance(ranked, Lists):
        catalogue = Ids(np.arange(ranked.n_items), is_range=True)
    context = replace(
        options.context, catalogue=catalogue, n_items=n_items, case_weights=weights, complete=complete
    )
    return judged, context


def _check_known(ranked: Source, truth: Interactions) -> None:
    """Nobody has a candidate: where that is because nobody is known, the ids are of two kinds."""
    rows = getattr(ranked, "user_rows", None)
    if rows is not None and rows.size and (rows.row_of(truth.cases.values, table="truth") < 0).all():
        raise InputError(
            f"no user of the truth ({truth.cases.name(0)!r}, …) has a row in the model "
            f"({rows.ids.name(0)!r}, …).",
            column="user",
            hint="Check that both sides use the same user ids.",
        )


def until_clear(
    ranked: Lists | Source,
    truth: Interactions,
    requests: Sequence[Request],
    conventions: Conventions,
    *,
    options: EvaluationOptions,
    stop_when: float | StopWhen | RaceEntry,
) -> tuple[Partial, dict[str, Any]]:
    """The result of as many cases as it takes, and what is to be said about that."""
    cases, each = truth.cases, copy(options)
    if isinstance(ranked, Lists):
        pair(ranked, truth)
        cases = ranked.cases.union(truth.cases, what="user")[0]
    each.shared, each.asked = False, replace(options.asked, progress=None)

    def partial(block: Ids) -> Partial:
        lists = only(ranked, block) if isinstance(ranked, Lists) else ranked
        return one_pass(lists, only(truth, block), requests, conventions, each)

    weights = options.case_weights
    largest = None if weights is None else max(map(float, weights.values()), default=None)
    steps = SteppedEvaluation(cases, truth.cases, partial, requests, conventions, largest)
    if isinstance(stop_when, RaceEntry):
        return stop_when.begin(steps)
    return until(steps, StopWhen.of(stop_when), options.asked.progress)


def _warned_of_ties(partial: Partial, judged: RankedTruth, conventions: Conventions) -> Partial:
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
