"""What a metric is worth at each rank of a single relevant item, asked of the registry.

No metric is written down again: a case with one relevant item at rank r is made for every r, and the
registered function reads them.
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
    """A metric and its cut-off; prints as the field writes it."""

    metric: Metric
    k: int | None
    params: tuple[tuple[str, Any], ...] = ()

    def __str__(self) -> str:
        return self.metric.name + ("" if self.k is None else f"@{self.k}")


def asked(metric: Any) -> RankMetric:
    """A metric by name, or a request that was parsed.

    >>> str(asked("hit_rate@5"))
    'hit@5'
    """
    if isinstance(metric, RankMetric):
        return metric
    if hasattr(metric, "metric") and hasattr(metric, "own_params"):
        return RankMetric(metric.metric, metric.k, tuple(metric.own_params.items()))
    name, at, cut = str(metric).partition("@")
    found, preset = lookup(name.strip())
    if at and not cut.strip().isdigit():
        raise CutoffError(f"the cut-off of {metric!r} is not a whole number.", hint='Write "ndcg@10".')
    k = int(cut) if at else None
    if (k is None and found.at_k == "required") or (k is not None and (found.at_k == "never" or k < 1)):
        raise CutoffError(f"{metric!r} has a cut-off missing, too many or not positive.")
    if set(found.needs) - {"candidates"} or found.kind == "catalogue":
        raise NotDefinedError(
            f"{found.name} is no metric of where relevant items landed, so sampling does not apply.",
            hint="Use hit, ndcg, mrr, map, recall or auc.",
        )
    params = {**found.params, **preset}
    return RankMetric(found, k, tuple(params.items()))


@lru_cache(maxsize=8)
def value_of_rank(metric: RankMetric, n_candidates: int) -> Float:
    """The metric's value at ranks 1, 2, … of n candidates, one of them relevant.

    >>> value_of_rank(asked("mrr@2"), 3).tolist()
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
    found = metric.metric.body(reading, metric.k, conventions, **dict(metric.params))
    values = found.value if isinstance(found, Terms) else found
    out = np.asarray(values, dtype=np.float64)
    out.setflags(write=False)
    return out
