"""The demo: lists -> metrics -> a table of models, and one model's lists under several presets.

Needs neither click nor rich, so that `python -m recsys.splits.datasets.demo_world` runs on a bare
installation.
"""

from __future__ import annotations

from recsys.conventions.decisions import Conventions
from recsys.evaluation import tables
from recsys.evaluation.evaluate import evaluate
from recsys.splits.datasets.demo_world import DemoWorld, demo_world, toy_lists

METRICS = ("precision@10", "recall@10", "ndcg@10", "map@10", "hit@10", "mrr")
PRESETS = ("default", "trec_eval", "rectools", "lenskit", "recbole")


def demo_text(seed: int = 0) -> str:
    """What the demo prints; the same seed gives the same text."""
    world = demo_world(seed)
    truth = world.test[["user_id", "item_id"]]
    results = {name: evaluate(lists, truth, METRICS) for name, lists in toy_lists(world).items()}
    by_model: dict[str, list[object]] = {"model": list(results)}
    by_model |= {metric: [result[metric] for result in results.values()] for metric in METRICS}
    best = max(results, key=lambda name: results[name]["ndcg@10"])
    results_by_preset = {name: results[best].under(name) for name in PRESETS}
    by_preset: dict[str, list[object]] = {"conventions": list(PRESETS)}
    by_preset |= {metric: [result[metric] for result in results_by_preset.values()] for metric in METRICS}
    n_users = results[best].counts["cases"]
    return "\n".join([
        describe_world(world),
        "",
        tables.text(by_model),
        "",
        f"{n_users:,} users, conventions: {Conventions()}",
        "",
        f"The lists of {best}, unchanged, as other libraries would score them:",
        "",
        tables.text(by_preset),
        "",
        "recsys conventions default rectools says which decisions differ.",
    ])  # fmt: skip


def describe_world(world: DemoWorld) -> str:
    """One line on the world."""
    n_users, share = world.events["user_id"].nunique(), len(world.test) / len(world.events)
    return (
        f"Demo world: {n_users:,} users, {len(world.items):,} items, {len(world.events):,} events. "
        f"Each user's last {share:.0%} are to be predicted."
    )
