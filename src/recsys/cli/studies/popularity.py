"""How close the same list for everyone comes, by highest mean rating and by number of ratings."""

from __future__ import annotations

from typing import Any

from recsys.cli.studies.setting import (
    LEARNED,
    RANKING,
    Setting,
    popularity_model,
    ranking_metrics,
    train_model,
)
from recsys.cli.studies.study import Study
from recsys.comparison.compare import compare
from recsys.splits import random_ratio


def study(setting: Setting, seed: int) -> Study:
    """Rank by popularity in two ways and by three learned models, and pair them user by user."""
    train, test = random_ratio(setting.frame, 0.2, seed=seed)
    models = [popularity_model(by, train, setting) for by in ("mean", "count")]
    models += [train_model(name, train, setting, seed) for name in LEARNED]
    results = {model.name: ranking_metrics(model.source, train, test) for model in models}
    table: dict[str, list[Any]] = {"model": list(results)}
    table |= {metric: [result[metric] for result in results.values()] for metric in RANKING}
    best = max(LEARNED, key=lambda name: results[name]["ndcg@10"])
    table[f"share of {best}'s ndcg@10"] = [
        f"{result['ndcg@10'] / results[best]['ndcg@10']:.0%}" for result in results.values()
    ]
    return Study(
        "popularity",
        "How close do the most popular items come to learned models?",
        str(setting),
        table,
        _answer(results, best),
        lambda: _figure(results),
    )


def _answer(results: dict[str, Any], best: str) -> list[str]:
    comparison = compare(results, best, ["ndcg@10"])
    lines = []
    for name in ("popular by mean", "popular by count"):
        share = results[name]["ndcg@10"] / results[best]["ndcg@10"]
        lines.append(f"{name} reaches {share:.0%} of the ndcg@10 of {best}, the best learned model here "
                     f"({comparison[name, 'ndcg@10'].verdict}).")  # fmt: skip
    by_mean, by_count = results["popular by mean"]["ndcg@10"], results["popular by count"]["ndcg@10"]
    if by_count > by_mean:
        lines.append(
            "Ranking by the highest mean rating is the weaker baseline: items with a handful of perfect "
            "ratings come first, and hardly anybody meets them. Count ratings before you call a model good."
        )
    if by_count > results[best]["ndcg@10"]:
        lines.append(
            "Models fitted to rating errors are not made to rank: none of them beats counting ratings here."
        )
    return lines


def _figure(results: dict[str, Any]) -> Any:
    from recsys.report import figures

    return figures.bars({name: dict(result) for name, result in results.items()}, baseline="popular by count")
