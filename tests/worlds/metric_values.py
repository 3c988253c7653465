"""Per-user values as recommenders have them (mostly zeros, tied, heavy), and evaluations that hold them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from scipy.special import ndtr, ndtri

import recsys
from recsys.evaluation.results import Evaluation
from recsys.records.arrays import PerCase

DISCOUNTS = 1 / np.log2(np.arange(2, 12))  # of the places 1 to 10


@dataclass(frozen=True)
class Marginal:
    """The distribution of one user's value: 0 with chance `zeros`, else one of `values` or a lognormal.

    `tail` is the sigma of the lognormal, `level` its median; 0 for a metric that has `values`.
    """

    metric: str
    zeros: float
    values: tuple[float, ...] = (1.0,)
    tail: float = 0.0
    level: float = 1.0

    @property
    def mean(self) -> float:
        inside = self.level * np.exp(self.tail**2 / 2) if self.tail else np.mean(self.values)
        return float((1 - self.zeros) * inside)

    def times(self, factor: float) -> Marginal:
        """The same values for `factor` times as many users, so the mean is `factor` times as large."""
        return replace(self, zeros=1 - factor * (1 - self.zeros))

    def at(self, scores: np.ndarray) -> np.ndarray:
        """The values at standard normal scores, lowest first."""
        shown = scores > ndtri(self.zeros)
        out = np.zeros(scores.shape)
        place = np.clip((ndtr(scores[shown]) - self.zeros) / (1 - self.zeros), 0, 1 - 1e-16)
        grid = np.sort(np.asarray(self.values))
        out[shown] = (
            self.level * np.exp(self.tail * ndtri(place))
            if self.tail
            else grid[(place * len(grid)).astype(int)]
        )
        return out


MARGINALS = {
    "ndcg@10, 70% zeros": Marginal("ndcg", 0.7, tuple(DISCOUNTS)),
    "ndcg@10, 90% zeros": Marginal("ndcg", 0.9, tuple(DISCOUNTS)),
    "ndcg@10, 95% zeros": Marginal("ndcg", 0.95, tuple(DISCOUNTS)),
    "hit, 0.5%": Marginal("hit", 0.995),
    "hit, 2%": Marginal("hit", 0.98),
    "hit, 10%": Marginal("hit", 0.9),
    "recall, 80% zeros": Marginal("recall", 0.8, (0.25, 0.5, 0.75, 1.0)),
    "heavy, 80% zeros": Marginal("value", 0.8, tail=1.5),
}
# Equal means, other shapes: few users gain much, many lose little.
SKEWED = {
    "ndcg@10, other shape": (
        Marginal("ndcg", 1 - 0.05 / DISCOUNTS[-1], (DISCOUNTS[-1],)),
        Marginal("ndcg", 0.95),
    ),
    "heavy, other shape": (
        Marginal("value", 0.8, tail=0.5, level=float(np.exp(1.0))),
        Marginal("value", 0.8, tail=1.5),
    ),
}


def correlated(rng: np.random.Generator, shape: tuple[int, ...], correlation: float) -> list[np.ndarray]:
    """Standard normal scores of two models on the same users."""
    shared, own = rng.standard_normal(shape), rng.standard_normal(shape)
    return [shared, correlation * shared + np.sqrt(1 - correlation**2) * own]


@cache
def _evaluated(metric: str, columns: int, aggregate: str) -> Evaluation:
    names = [f"{metric}@{k}" for k in range(1, columns + 1)]
    items = {"items": {"price": {0: 1.0, 1: 1.0}}} if metric == "value" else {}
    return recsys.evaluate({0: [0], 1: [0]}, {0: [0], 1: [1]}, names, aggregate=aggregate, **items)


def evaluation_of(
    metric: str,
    rows: np.ndarray,
    *,
    clusters: np.ndarray | None = None,
    weights: np.ndarray | None = None,
    first_id: int = 0,
    aggregate: str = "mean",
) -> Evaluation:
    """An evaluation whose columns, `metric`@1, @2, …, are these rows: as many worlds in one call."""
    base = _evaluated(metric, len(rows), aggregate)
    columns = dict(zip(base, rows, strict=True))
    ids = np.arange(first_id, first_id + rows.shape[1])
    per_case = PerCase(ids, columns, clusters, weights)
    return Evaluation(replace(base.partial, per_case=per_case), base.requests, base.conventions)
