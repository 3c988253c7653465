"""Evaluate rankings of one positive among its own candidates: by a model, a function, or ready scores.

`ranks.sources` counts the candidates above each positive, the engine measures. The result says that the
candidates were sampled; `recsys.sampled` says what that hides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from recsys.conventions.decisions import Conventions
from recsys.errors import ConventionError, InputError, Phrase, TieWarning, verb, warn
from recsys.evaluation.asked import Asked, Content
from recsys.evaluation.engine import measure, ties_matter
from recsys.evaluation.origin import StoredOrigin
from recsys.evaluation.result_facts import ResultFacts
from recsys.evaluation.results import Evaluation
from recsys.metrics import METRICS
from recsys.metrics.registry import Metrics, Request, parse_all, set_requests
from recsys.ranks.ranked_truth import CountedTruth
from recsys.ranks.rankings import SAMPLED
from recsys.ranks.sources.candidate_sets import Candidates, read_candidates
from recsys.ranks.sources.fitted_models import scoring
from recsys.records.arrays import Context, Ids

__all__ = ["Candidates", "count_candidates", "evaluate_candidates", "rank_metrics"]


@verb
def evaluate_candidates(
    model: Any,
    cases: Any,
    metrics: Metrics = None,
    *,
    k: int | Sequence[int] | None = None,
    conventions: Any = None,
    duplicates: str = "collapse",
    device: Any = None,
    autocast: Any = None,
    batch: int | None = None,
) -> Evaluation:
    """Rank each positive among its candidates.

    Args:
        model: a torch module or any callable `(users, items) -> scores`, or the scores themselves: a pair of
            arrays (of the positives, of the negatives), or one matrix with the positives' column first.
        cases: a Dataset, DataLoader or iterable of (user, positive, negatives), or Candidates.
        metrics: as for `evaluate`; by default hit@10, ndcg@10, mrr and auc.
        k: cut-offs for the metrics that name none.
        conventions: as for `evaluate`; by default equal scores count with their expected value.
        duplicates: a negative that is the case's positive, or repeats another, is the same item
            ("collapse"), or a candidate of its own that comes before the positive ("pessimistic").
        device: where a module computes; by default where it is. It is moved back afterwards.
        autocast: "bfloat16" or "float16" for mixed precision.
        batch: pairs in one forward pass; by default as many as the memory allows.

    >>> cases = [(0, 3, [1, 2]), (1, 2, [0, 3])]
    >>> result = evaluate_candidates(np.array([[0.9, 0.1, 0.2], [0.5, 0.7, 0.1]]), cases, ["hit@1", "mrr"])
    >>> dict(result)
    {'hit@1': 0.5, 'mrr': 0.75}
    """
    candidates = read_candidates(cases)
    counted = count_candidates(
        model, candidates, duplicates=duplicates, device=device, autocast=autocast, batch=batch
    )
    chosen = Conventions(ties="expected") if conventions is None else Conventions.of(conventions)
    requests = parse_all(set_requests("candidates") if metrics is None and k is None else metrics, k)
    return evaluate_counted(counted, requests, chosen)


def count_candidates(
    model: Any,
    cases: Candidates,
    *,
    duplicates: str = "collapse",
    device: Any = None,
    autocast: Any = None,
    batch: int | None = None,
) -> CountedTruth:
    """Return the rank of each positive: how many negatives score higher, and how many the same."""
    if isinstance(model, tuple) and len(model) == 2:
        return cases.judge_scores(*model, duplicates=duplicates)
    if isinstance(model, np.ndarray):
        if model.ndim != 2:
            raise InputError(
                f"the scores came with shape {model.shape}.",
                table="scores",
                hint="Pass one row per case, the score of the positive first.",
            )
        return cases.judge_scores(model[:, 0], model[:, 1:], duplicates=duplicates)
    with scoring(model, device=device, autocast=autocast, batch=batch) as score:
        return cases.judge(score, duplicates=duplicates)


def evaluate_counted(
    counted: CountedTruth, requests: Sequence[Request], conventions: Conventions
) -> Evaluation:
    """Evaluate every request for counted ranks; warns of tied positives."""
    tied = _n_tied(counted)
    if ties_matter(tied, len(counted.tied)):
        warn(
            TieWarning,
            f"{tied:,} of {len(counted.tied):,} positives ({tied / len(counted.tied):.1%}) have the same "
            f"score as a negative; they count by the rule "
            + Phrase("{ties=}. {ties='best'} and {ties='worst'} give the range.", ties=conventions.ties),
        )
    largest = int(counted.n_candidates.max(initial=0))
    smallest = int(counted.n_candidates.min(initial=largest))
    span = f"{smallest:,}" if smallest == largest else f"{smallest:,} to {largest:,}"
    how = f"each positive was ranked among {span} candidates, not among the whole catalogue"
    return CountedOrigin(counted, requests, facts=ResultFacts(sampled=how)).under(conventions)


@dataclass(frozen=True, eq=False)
class CountedOrigin(StoredOrigin):
    """What can be asked of the result of counted ranks: the ranks were kept, not the lists of candidates."""

    counted: CountedTruth
    requests: Sequence[Request]
    has_lists: ClassVar[bool] = True

    def under(self, conventions: Conventions, /) -> Evaluation:
        """Return the same ranks under other conventions."""
        if any(request.conventions(conventions).judged_only == "yes" for request in self.requests):
            raise ConventionError(
                Phrase("negatives are not judged, so {judged_only='yes'} would leave every positive first."),
                hint="Leave out judged_only.",
            )
        partial = measure(self.counted, self.requests, conventions, Context(complete=True))
        if tied := _n_tied(self.counted):
            partial = replace(partial, counts={**partial.counts, "tied": tied})
        pairs = Content(int(self.counted.n_candidates.sum()), "")
        asked = Asked(SAMPLED, eligible=pairs, users=Content.of(Ids(partial.rows.ids)))
        return Evaluation(partial, self.requests, conventions, origin=replace(self, asked=asked))


def _n_tied(counted: CountedTruth) -> int:
    """Return the number of positives with the score of a negative."""
    return int(((counted.tied > 1) & (counted.above >= 0)).sum())


def rank_metrics(k: Sequence[int], *, tied: bool) -> list[Request]:
    """Return every registered metric that depends on ranks only, at every cut-off if it has one.

    The negatives were not judged, so metrics about judged items are left out: bpref would always be 1.
    """
    usable = [
        metric
        for metric in METRICS.load_plugins().values()
        if set(metric.needs) <= {"candidates"}
        and not (tied and metric.tied.ties == "refuse")
        and metric.kind == "per_case"
        and not metric.truth.reads_judgements
    ]
    requests = []
    for metric in usable:
        if metric.at_k != "never":
            requests += [Request.parse(f"{metric.name}@{cut}") for cut in k]
        if metric.at_k != "required":
            requests.append(Request.parse(metric.name))
    return requests
