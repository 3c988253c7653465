"""Worlds so small that every list there is can be tried, and what each metric makes of all of them."""

from __future__ import annotations

import math
from itertools import permutations, product
from typing import Any, NamedTuple

import numpy as np

import recsys
from recsys.metrics.registry import METRICS
from recsys.metrics.requests import Request

VARIANTS = (
    "gini(weight=log2)", "entropy(weight=reciprocal)", "exposure_gap(merit=equal)",
    "exposure_gap(weight=none)", "exposure_ratio(merit=train)", "rbo(form=sum)", "overlap(over=union)",
    "serendipity(expected=own)", "ild(distance=euclidean)", "ild(distance=jaccard, missing=zero)",
    "novelty(cold=drop)", "novelty(cold=zero)", "unexpectedness(missing=zero)", "calibration_js",
    "calibration_hellinger", "cold_coverage(below=2)", "user_coverage(least=3)", "alpha_dcg(alpha=1)",
    "surprisal(over=k)",
)  # fmt: skip


class Small(NamedTuple):
    """A few users with truths and histories, and what evaluate is told besides."""

    users: list[int]
    truth: dict[int, dict[str, int]]
    known: dict[str, Any]
    candidates: dict[int, list[str]]
    k: int

    def lists(self, user: int) -> list[list[str]]:
        """Every full list of candidates."""
        return [list(order) for order in permutations(self.candidates[user], self.k)]

    def evaluate(self, lists: dict[int, list[str]], asked: list[str]) -> Any:
        return recsys.evaluate(lists, self.truth, asked, **self.known)


class Tried(NamedTuple):
    """The best value of a metric over all lists, and its mean over them."""

    best: float
    mean: float


def small_world(seed: int, n_users: int, n_items: int, k: int) -> Small:
    """Even worlds: items with one label each, all with a vector; odd ones: several labels, none, gaps."""
    rng = np.random.default_rng(seed)
    items, users, plain = list("abcdefg"[:n_items]), list(range(n_users)), seed % 2 == 0

    def some(size: int) -> list[str]:
        return rng.choice(items, size, replace=False).tolist()

    seen = {u: some(int(rng.integers(0, 2))) for u in users}
    truth = {u: {i: int(rng.integers(0, 4)) for i in some(3)} | {some(1)[0]: 2} for u in users}
    train = {u: some(int(rng.integers(1, 4))) for u in [*users, 7, 8]}
    labels = ("x", "y", "z") if plain else ("x", "x|y", "y|z", "z", "")
    kinds = {i: str(rng.choice(labels)) for i in items}
    known = {
        "seen": seen,
        "train": train,
        "catalogue": items,
        "items": {"kind": {i: kind for i, kind in kinds.items() if kind}},
        "intents": "kind",
        "embeddings": {i: rng.normal(size=3).round(2) for i in items if plain or rng.random() < 0.8},
        "reference": {u: some(3) for u in users},
        "conventions": {"max_grade": 3},
    }
    return Small(users, truth, known, {u: [i for i in items if i not in seen[u]] for u in users}, k)


def metrics_at(k: int) -> list[str]:
    """Every metric of lists that end, with the variants above; values of items have a world of their own."""
    out = []
    for name in (*METRICS, *VARIANTS):
        metric = Request.parse(
            f"{name}@{k}" if METRICS.get(name, METRICS["hit"]).at_k != "never" else name
        ).metric
        if "candidates" not in metric.needs and metric.name not in ("value", "shown_value"):
            out.append(name if metric.at_k == "never" else f"{name}@{k}")
    return out


def try_all(world: Small, asked: list[str]) -> dict[str, Tried]:
    """Every list of every user for metrics with a value a user, every choice of lists for the others."""
    of_all = [a for a in asked if Request.parse(a).metric.kind == "catalogue"]
    of_users = [a for a in asked if a not in of_all]
    own = {u: world.lists(u) for u in world.users}
    runs = [
        world.evaluate({u: own[u][turn % len(own[u])] for u in world.users}, of_users)
        for turn in range(max(map(len, own.values())))
    ]
    out = {}
    for asked_for in of_users:
        columns = np.array([run.values_of(asked_for) for run in runs])
        per_user = [columns[: len(own[u]), at] for at, u in enumerate(world.users)]
        out[asked_for] = _of_users(Request.parse(asked_for), per_user)
    choices = product(*own.values())
    every = (
        [world.evaluate(dict(zip(world.users, one, strict=True)), of_all) for one in choices]
        if of_all
        else []
    )
    for asked_for in of_all:
        values = np.array([run[asked_for] for run in every])
        out[asked_for] = Tried(float(_best(Request.parse(asked_for), values)), float(values.mean()))
    return out


def _of_users(request: Request, per_user: list[Any]) -> Tried:
    told = [column[~np.isnan(column)] for column in per_user]
    told = [column for column in told if len(column)]
    if not told:
        return Tried(math.nan, math.nan)
    best = np.array([_best(request, column) for column in told])
    if request.metric.summary is None:
        return Tried(float(best.mean()), float(np.mean([column.mean() for column in told])))
    made = [request.metric.summary(np.array(one), None, **request.own_params) for one in product(*told)]
    return Tried(request.metric.summary(best, None, **request.own_params), float(np.mean(made)))


def _best(request: Request, values: Any) -> Any:
    return values.min() if request.metric.better == "lower" else values.max()
