"""MF, MF-bias, NCF and popularity under errors and rankings; whether the metrics agree."""

from __future__ import annotations

from typing import Any

from recsys.cli.studies.setting import (
    ERRORS,
    LEARNED,
    RANKING,
    RELEVANT_FROM,
    Predictor,
    Setting,
    popularity_model,
    ranking_metrics,
    rating_errors,
    train_model,
)
from recsys.cli.studies.study import Study
from recsys.comparison.compare import compare
from recsys.evaluation.evaluate import evaluate
from recsys.splits import random_ratio

_AMONG_TEST = "ndcg@10 among test items"


def study(setting: Setting, seed: int) -> Study:
    """Train the models on a random 80 % and compare their orders under six metrics."""
    train, test = random_ratio(setting.frame, 0.2, seed=seed)
    models = [train_model(name, train, setting, seed) for name in LEARNED]
    models += [popularity_model(by, train, setting) for by in ("mean", "count")]
    rows, rankings = {}, {}
    for model in models:
        rankings[model.name] = ranking_metrics(model.source, train, test)
        rows[model.name] = {
            **rating_errors(model, test),
            **rankings[model.name],
            _AMONG_TEST: _ndcg_among_test(model, test),
        }
    metrics = [*ERRORS, *RANKING, _AMONG_TEST]
    table: dict[str, list[Any]] = {"model": list(rows)}
    table |= {metric: [row[metric] for row in rows.values()] for metric in metrics}
    orders = {
        metric: [
            name
            for _, name in sorted(
                ((-1 if "@" in metric else 1) * row[metric], name) for name, row in rows.items()
            )
        ]
        for metric in metrics
    }
    winners = {metric: order[0] for metric, order in orders.items()}
    return Study(
        "metric-comparison",
        "Do models rank the same under every metric?",
        str(setting),
        table,
        [*_agreement(orders, winners), _significance(rankings, winners["ndcg@10"])],
        lambda: _figure(orders),
    )


def _ndcg_among_test(model: Predictor, test: Any) -> float:
    """ndcg@10 when only the user's test items are ranked, as many tutorials do."""
    users, items = test["user"].to_numpy(), test["item"].to_numpy()
    lists = test[["user", "item"]].assign(score=(model.score or model.predict)(users, items))
    decisions = {"relevant_from": RELEVANT_FROM, "ties": "expected"}
    return evaluate(lists, test[["user", "item", "rating"]], ["ndcg@10"], conventions=decisions)["ndcg@10"]


def _agreement(orders: dict[str, list[str]], winners: dict[str, str]) -> list[str]:
    distinct = {tuple(order) for order in orders.values()}
    if len(distinct) == 1:
        return [f"Yes: every metric orders them {' > '.join(next(iter(distinct)))}."]
    by_winner: dict[str, list[str]] = {}
    for metric, name in winners.items():
        by_winner.setdefault(name, []).append(metric)
    best = "; ".join(f"{name} under {', '.join(names)}" for name, names in by_winner.items())
    return [f"No: {len(distinct)} different orders under {len(orders)} metrics. Best is {best}."]


def _significance(rankings: dict[str, Any], best: str) -> str:
    others = compare(rankings, best, ["ndcg@10"])
    beaten = [row.model for row in others if row.difference < 0 and row.adjusted_p < 0.05]
    return (
        f"Under ndcg@10 over the whole catalogue, {best} is surely better than {', '.join(beaten) or 'none'} "
        f"(paired by user, Holm, 5 %). Ranking only the user's own test items, as "
        f"'{_AMONG_TEST}' does, asks an easier question and may answer it differently."
    )


def _figure(orders: dict[str, list[str]]) -> Any:
    from recsys.report import figures

    names = sorted(orders["rmse"])
    places = {
        name: {metric.replace(" among ", "\n"): order.index(name) + 1 for metric, order in orders.items()}
        for name in names
    }
    return figures.heat(places, title="Place of each model under each metric")
