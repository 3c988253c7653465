"""Worlds so small that every possible list can be evaluated, and the best and mean value of each metric."""

from __future__ import annotations

import math
from itertools import permutations, product
from typing import Any, NamedTuple

import numpy as np

import recsys
from recsys.metrics.registry import METRICS, Request

VARIANTS = (
    "gini(weight=log2)", "entropy(weight=reciprocal)", "exposure_gap(merit=equal)",
    "exposure_gap(weight=none)", "exposure_ratio(merit=train)", "rbo(form=sum)", "overlap(over=union)",
    "serendipity(expected=own)", "ild(distance=euclidean)", "ild(distance=jaccard, missing=zero)",
    "novelty(cold=drop)", "novelty(cold=zero)", "unexpectedness(missing=zero)", "calibration_js",
    "calibration_hellinger", "cold_coverage(below=2)", "user_coverage(least=3)", "alpha_dcg(alpha=1)",
    "surprisal(over=k)",
)  # fmt: skip


class Small(NamedTuple):
    """A few users with truths and histories, and the other keywords of evaluate."""

    users: list[int]
    truth: dict[int, dict[str, int]]
    known: dict[str, Any]
    candidates: dict[int, list[str]]
    k: int

    def lists(self, user: int) -> list[list[str]]:
        """Every full list of candidates."""
        return [list(order) for order in permutations(self.candidates[user], self.k)]

    def evaluate(self, lists: dict[int, list[str]], names: list[str]) -> Any:
        return recsys.evaluate(lists, self.truth, names, **self.known)


class BestAndMean(NamedTuple):
    """The best value of a metric over all lists, and its mean over them."""

    best: float
    mean: float


def small_world(seed: int, n_users: int, n_items: int, k: int) -> Small:
    """Even worlds: items with one label each, all with a vector; odd ones: several labels, none, gaps."""
    rng = np.random.default_rng(seed)
    items, users, plain = list("abcdefg"[:n_items]), list(range(n_users)), seed % 2 == 0

    def sample_items(size: int) -> list[str]:
        return rng.choice(items, size, replace=False).tolist()

    seen = {u: sample_items(int(rng.integers(0, 2))) for u in users}
    truth = {
        u: {i: int(rng.integers(0, 4)) for i in sample_items(3)} | {sample_items(1)[0]: 2} for u in users
    }
    train = {u: sample_items(int(rng.integers(1, 4))) for u in [*users, 7, 8]}
    labels = ("x", "y", "z") if plain else ("x", "x|y", "y|z", "z", "")
    kinds = {i: str(rng.choice(labels)) for i in items}
    known = {
        "seen": seen,
        "train": train,
        "catalogue": items,
        "items": {"kind": {i: kind for i, kind in kinds.items() if kind}},
        "intents": "kind",
        "embeddings": {i: rng.normal(size=3).round(2) for i in items if plain or rng.random() < 0.8},
        "reference": {u: sample_items(3) for u in users},
        "conventions": {"max_grade": 3},
    }
    return Small(users, truth, known, {u: [i for i in items if i not in seen[u]] for u in users}, k)


def metrics_at(k: int) -> list[str]:
    """Every metric that can read cut-off lists, with the variants above, but not those of item values."""
    out = []
    for name in (*METRICS, *VARIANTS):
        metric = Request.parse(
            f"{name}@{k}" if METRICS.get(name, METRICS["hit"]).at_k != "never" else name
        ).metric
        if "candidates" not in metric.needs and metric.name not in ("value", "shown_value"):
            out.append(name if metric.at_k == "never" else f"{name}@{k}")
    return out


def try_all(world: Small, names: list[str]) -> dict[str, BestAndMean]:
    """Every list of every user for metrics with a value per user, every combination of lists for others."""
    of_all = [a for a in names if Request.parse(a).metric.kind == "catalogue"]
    of_users = [a for a in names if a not in of_all]
    own = {u: world.lists(u) for u in world.users}
    runs = [
        world.evaluate({u: own[u][turn % len(own[u])] for u in world.users}, of_users)
        for turn in range(max(map(len, own.values())))
    ]
    out = {}
    for name in of_users:
        columns = np.array([run.values_of(name) for run in runs])
        per_user = [columns[: len(own[u]), at] for at, u in enumerate(world.users)]
        out[name] = _summarise_users(Request.parse(name), per_user)
    choices = product(*own.values())
    runs_of_all = (
        [world.evaluate(dict(zip(world.users, lists, strict=True)), of_all) for lists in choices]
        if of_all
        else []
    )
    for name in of_all:
        values = np.array([run[name] for run in runs_of_all])
        out[name] = BestAndMean(float(_best(Request.parse(name), values)), float(values.mean()))
    return out


def _summarise_users(request: Request, per_user: list[Any]) -> BestAndMean:
    defined = [column[~np.isnan(column)] for column in per_user]
    columns = [column for column in defined if len(column)]
    if not columns:
        return BestAndMean(math.nan, math.nan)
    best = np.array([_best(request, column) for column in columns])
    summary, params = request.metric.pooling.summary, request.own_params
    if summary is None:
        return BestAndMean(float(best.mean()), float(np.mean([column.mean() for column in columns])))
    summaries = [summary(np.array(values), None, **params) for values in product(*columns)]
    return BestAndMean(summary(best, None, **params), float(np.mean(summaries)))


def _best(request: Request, values: Any) -> Any:
    return values.min() if request.metric.better == "lower" else values.max()
