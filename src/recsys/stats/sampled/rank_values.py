"""The value of a metric at each rank of a single relevant item, from the registered metric function.

No metric is defined twice: the function is applied to one case per rank r, with one relevant item at r.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from recsys.conventions.decisions import Conventions
from recsys.errors import CutoffError, NotDefinedError
from recsys.metrics import Metric, Terms, lookup
from recsys.metrics.case_reading import Reading
from recsys.types import Context, Float, Hits


class RankMetric(NamedTuple):
    """A metric, its cut-off and its parameters; prints as "ndcg@10"."""

    metric: Metric
    k: int | None
    params: tuple[tuple[str, Any], ...] = ()

    def __str__(self) -> str:
        return self.metric.name + ("" if self.k is None else f"@{self.k}")


def parse_rank_metric(metric: Any) -> RankMetric:
    """The RankMetric of a name such as "ndcg@10", or of a parsed request.

    >>> str(parse_rank_metric("hit_rate@5"))
    'hit@5'
    """
    if isinstance(metric, RankMetric):
        return metric
    if hasattr(metric, "metric") and hasattr(metric, "own_params"):
        return RankMetric(metric.metric, metric.k, tuple(metric.own_params.items()))
    name, separator, cutoff = str(metric).partition("@")
    registered, preset = lookup(name.strip())
    if separator and not cutoff.strip().isdigit():
        raise CutoffError(f"the cut-off of {metric!r} is not a whole number.", hint='Write "ndcg@10".')
    k = int(cutoff) if separator else None
    if (k is None and registered.at_k == "required") or (
        k is not None and (registered.at_k == "never" or k < 1)
    ):
        raise CutoffError(f"{metric!r} has a cut-off missing, too many or not positive.")
    if set(registered.needs) - {"candidates"} or registered.kind == "catalogue":
        raise NotDefinedError(
            f"{registered.name} is not a metric of the ranks of relevant items, so sampling does not apply.",
            hint="Use hit, ndcg, mrr, map, recall or auc.",
        )
    params = {**registered.params, **preset}
    return RankMetric(registered, k, tuple(params.items()))


@lru_cache(maxsize=8)
def values_by_rank(metric: RankMetric, n_candidates: int) -> Float:
    """The metric's value at ranks 1, 2, … of n candidates, one of them relevant.

    >>> values_by_rank(parse_rank_metric("mrr@2"), 3).tolist()
    [1.0, 0.5, 0.0]
    """
    n = n_candidates
    ranks = np.arange(1, n + 1)
    hits = Hits(
        n_cases=n,
        case=np.arange(n, dtype=np.int32),
        item=np.zeros(n, dtype=np.int32),
        rank=ranks,
        grade=None,
        n_listed=np.full(n, n),
        truth_indptr=np.arange(n + 1),
        truth_grade=None,
        n_candidates=np.full(n, n),
    )
    reading = Reading(hits, None, "first", Context(complete=True))
    conventions = Conventions().for_metric(metric.metric.name)
    result = metric.metric.body(reading, metric.k, conventions, **dict(metric.params))
    values = result.value if isinstance(result, Terms) else result
    array = np.asarray(values, dtype=np.float64)
    array.setflags(write=False)
    return array
