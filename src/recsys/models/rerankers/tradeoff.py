"""The trade-off between accuracy and other metrics when re-ranking: evaluates every setting."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from recsys.errors import UnknownNameError
from recsys.evaluation.evaluate import evaluate, recommend
from recsys.inputs import read_interactions
from recsys.metrics.requests import parse_all
from recsys.models.rerankers.blending import blend
from recsys.models.rerankers.diversification import diversify
from recsys.models.rerankers.profiles import vector_rows
from recsys.ranks.sources import Factors
from recsys.types import Lists


@dataclass(frozen=True, eq=False)
class Sweep:
    """One row per setting in `frame`: alpha, diversity and every metric; `front` has the best trade-offs.

    `lower` names the metrics for which lower is better.
    """

    frame: Any
    accuracy: str
    lower: frozenset[str] = frozenset()

    def front(self, other: str) -> Any:
        """The settings that no other setting beats both in accuracy and in the metric `other`."""
        a, b = self._as_higher_is_better(self.accuracy), self._as_higher_is_better(other)
        beaten = ((a[:, None] <= a) & (b[:, None] <= b) & ((a[:, None] < a) | (b[:, None] < b))).any(axis=1)
        return self.frame[~beaten]

    def rising(self, metrics: Sequence[str]) -> Any:
        """The settings at which all these metrics are above those of the model alone (the first row)."""
        first = self.frame.iloc[0]
        up = np.all([self._column(name) > first[name] for name in metrics], axis=0)
        return self.frame[up]

    def _column(self, name: str) -> Any:
        if name not in self.frame:
            raise UnknownNameError("metric of the sweep", name, map(str, self.frame))
        return self.frame[name].to_numpy()

    def _as_higher_is_better(self, name: str) -> Any:
        """A metric's column, with its sign changed where lower is better."""
        return -self._column(name) if name in self.lower else self._column(name)

    def plot(self, other: str, *, every: bool = False, ax: Any = None) -> Any:
        """Accuracy over another metric, one point per setting: the best trade-offs, or `every` setting."""
        from recsys.report import figures

        shown = self.frame if every else self.front(other)
        points = {
            f"alpha {row['alpha']:g}" + (f", MMR {row['diversity']:g}" if row["diversity"] else ""): (
                float(row[other]),
                float(row[self.accuracy]),
            )
            for _, row in shown.iterrows()
        }
        return figures.tradeoff(points, x=other, y=self.accuracy, ax=ax)

    def __repr__(self) -> str:
        from recsys.evaluation import tables

        return tables.text({str(name): self.frame[name].tolist() for name in self.frame})


def sweep(
    model: Factors,
    other: Factors,
    truth: Any,
    metrics: str | Sequence[str] = ("recall@10", "ndcg@10"),
    *,
    k: int = 10,
    alphas: Sequence[float] = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.3, 0.0),
    diversities: Sequence[float] = (0.0,),
    embeddings: Any = None,
    item_ids: Iterable[Any] | None = None,
    seen: Any = None,
    pool: int = 100,
    **facts: Any,
) -> Sweep:
    """The trade-off curve: every blend and every strength of diversification, evaluated.

    Args:
        model: the model to re-rank.
        other: what to blend in.
        truth: what turned out to be relevant.
        metrics: what to evaluate; the first is the accuracy of the trade-off.
        k: the length of the lists.
        alphas: the blends; 1, the model alone, always comes first.
        diversities: the strengths of MMR; 0 is none.
        embeddings: for MMR and metrics of diversity, one row per item; by default the items of `other`.
        item_ids: the id of each row of `embeddings`.
        seen: what users had already.
        pool: how many candidates MMR picks from, at least k.
        facts: what metrics need (train=, profiles=, catalogue=, …), passed on to evaluate.
    """
    import pandas as pd

    relevant = read_interactions(truth)
    history = None if seen is None else read_interactions(seen, table="seen")
    vectors = vector_rows(other.items if embeddings is None else embeddings)
    names = np.arange(len(vectors)) if item_ids is None else np.asarray(list(item_ids))
    has_vector = vectors.any(axis=1)
    facts["embeddings"] = (names[has_vector], vectors[has_vector])
    requests = parse_all(metrics, None)
    rows = []
    for alpha in dict.fromkeys([1.0, *alphas]):
        blended = model if alpha == 1.0 else blend(model, other, alpha)
        depth = max(pool, k) if any(diversities) else k
        candidates = recommend(blended, depth, users=relevant.cases.values, seen=history)
        for diversity in dict.fromkeys([0.0, *diversities]):
            shown = (
                _first_k(candidates, k)
                if diversity == 0
                else diversify(candidates, vectors, k, diversity=diversity, item_ids=names)
            )
            result = evaluate(shown, relevant, requests, **facts)
            rows.append({"alpha": alpha, "diversity": diversity, **result})
    lower = frozenset(str(request) for request in requests if request.metric.better == "lower")
    return Sweep(pd.DataFrame(rows), str(requests[0]), lower)


def _first_k(lists: Lists, k: int) -> Lists:
    """The first k of each list."""
    case = np.repeat(np.arange(len(lists.cases)), lists.sizes)
    keep = np.arange(len(lists.codes)) - lists.indptr[case] < k
    indptr = np.concatenate([[0], np.cumsum(np.minimum(lists.sizes, k))])
    scores = None if lists.scores is None else lists.scores[keep]
    return Lists(lists.cases, lists.items, indptr, lists.codes[keep], scores)
