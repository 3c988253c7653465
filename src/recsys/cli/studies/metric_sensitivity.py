"""Gaussian noise on the predictions, sigma growing; which metric falls first."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from recsys.cli.studies.setting import ERRORS, Predictor, Setting, ranking_metrics, rating_errors, train_model
from recsys.cli.studies.study import Study
from recsys.ranks.sources import Scores
from recsys.splits import random_ratio
from recsys.types import Float

SIGMAS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0)
RANKED = ("precision@10", "recall@10", "ndcg@10", "map@10", "mrr", "auc")


def study(setting: Setting, seed: int) -> Study:
    """Noise of nine sizes on the predictions of MF-bias; every metric as a share of its noiseless value."""
    train, test = random_ratio(setting.frame, 0.2, seed=seed)
    model = train_model("MF-bias", train, setting, seed)
    users, items = np.arange(setting.n_users), np.arange(setting.n_items)
    clean = np.stack([model.predict(np.full(len(items), user), items) for user in users.tolist()])
    noise = np.random.default_rng([seed, 5]).standard_normal(clean.shape)
    values: dict[str, list[float]] = {name: [] for name in (*ERRORS, *RANKED)}
    for sigma in SIGMAS:
        noisy = _predictor_of(clean + sigma * noise)
        metrics = {**rating_errors(noisy, test), **ranking_metrics(noisy.source, train, test, RANKED)}
        for name, by_sigma in values.items():
            by_sigma.append(metrics[name])
    table: dict[str, list[Any]] = {"sigma": list(SIGMAS), **values}
    return Study(
        "metric-sensitivity",
        "Which metrics degrade fastest when predictions get noisy?",
        f"{setting} MF-bias, whose predictions have a spread of {clean.std():.2f}.",
        table,
        _answer(values),
        lambda: _figure(values),
    )


def _predictor_of(scores: Float) -> Predictor:
    return Predictor("noisy", lambda users, items: scores[users, items], Scores(scores))


def quality(name: str, by_sigma: list[float]) -> list[float]:
    """What is left of a metric's noiseless value: 1 without noise; for an error, how much larger it got."""
    first = by_sigma[0]
    if name in ERRORS:
        return [first / value for value in by_sigma]
    floor = 0.5 if name == "auc" else 0.0
    return [(value - floor) / (first - floor) if first > floor else math.nan for value in by_sigma]


def half_point(shares: list[float]) -> float:
    """The sigma at which half is left, interpolated between those tried; infinite if never."""
    for i in range(1, len(shares)):
        if shares[i] <= 0.5:
            fallen = (shares[i - 1] - 0.5) / (shares[i - 1] - shares[i])
            return SIGMAS[i - 1] + fallen * (SIGMAS[i] - SIGMAS[i - 1])
    return math.inf


def _answer(values: dict[str, list[float]]) -> list[str]:
    halves = {name: half_point(quality(name, by_sigma)) for name, by_sigma in values.items()}
    order = sorted(halves, key=lambda name: halves[name])
    sigma = {name: "never" if math.isinf(half) else f"{half:.2f}" for name, half in halves.items()}
    slowest = ", ".join(name for name in order if halves[name] == halves[order[-1]])
    listing = ", ".join(f"{name} {sigma[name]}" for name in order)
    return [
        f"{order[0]} degrades fastest: half of it is gone at sigma {sigma[order[0]]}; {slowest} slowest.",
        f"Sigma at which half is left: {listing} (errors: at which they have doubled; auc: above 0.5).",
        "Errors grow by the noise itself, whatever it does to the order; metrics of the first ten places",
        "fall as soon as the noise exceeds the small gaps between the best items.",
    ]


def _figure(values: dict[str, list[float]]) -> Any:
    from recsys.report.figures.per_model import lines

    shares = {
        name: dict(zip(SIGMAS, quality(name, by_sigma), strict=True)) for name, by_sigma in values.items()
    }
    return lines(shares, x="sigma of the noise", y="share of the noiseless quality")
