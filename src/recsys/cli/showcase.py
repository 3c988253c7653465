"""The demo world with real models: six of them are ranked, compared and reported on, in seconds.

Models whose package is not installed are left out, with a note.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from recsys.cli.demo import describe_world
from recsys.comparison.compare import Comparison, compare
from recsys.errors import MissingExtraError
from recsys.evaluation import tables
from recsys.evaluation.evaluate import evaluate, recommend
from recsys.evaluation.results import Evaluation
from recsys.inputs import read_interactions
from recsys.models.baselines import popularity, shuffled, similar_items, training_counts
from recsys.models.rerankers import blend, content
from recsys.ranks.sources import from_model
from recsys.splits.datasets.demo_world import DemoWorld, demo_world

METRICS = ("ndcg@5", "ndcg@10", "ndcg@20", "recall@5", "recall@10", "recall@20", "hit@10", "mrr",
           "coverage@10", "novelty@10", "ild@10")  # fmt: skip
SHOWN = ("ndcg@10", "recall@10", "hit@10", "mrr", "coverage@10", "novelty@10", "ild@10")
BASELINE = "popularity"
_DEPTH = 20


@dataclass
class Showcase:
    """The results of the demo, and the data its report is made from."""

    world: DemoWorld
    evaluations: dict[str, Evaluation] = field(default_factory=dict)
    lists: dict[str, Any] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    comparison: Comparison | None = None

    def __str__(self) -> str:
        columns: dict[str, list[Any]] = {"model": list(self.evaluations)}
        columns |= {m: [result[m] for result in self.evaluations.values()] for m in SHOWN}
        rows = [row for row in self.comparison or () if row.metric == "ndcg@10"]
        columns[f"ndcg@10 against {BASELINE}"] = [
            next((row.verdict for row in rows if row.model == name), "") for name in self.evaluations
        ]
        return "\n".join([describe_world(self.world), "", tables.text(columns), *self.left_out])

    def write(self, path: Path) -> Path:
        """Write the report and return its path."""
        from recsys.audit import audit
        from recsys.report import write_report

        world = self.world
        truth, train = world.test[["user_id", "item_id"]], world.train[["user_id", "item_id"]]
        best = max(self.evaluations, key=lambda name: self.evaluations[name]["ndcg@10"])
        findings = audit(world.train, world.test, lists=self.lists[best])
        vectors = dict(zip(world.items["item_id"], world.embeddings, strict=True))
        return write_report(
            path, self.evaluations, baseline=BASELINE, metric="ndcg@10", title="The demo world",
            audit=findings, items=world.items, lists=self.lists, truth=truth, train=train, embeddings=vectors,
        )  # fmt: skip


def showcase(seed: int = 0, say: Callable[[str], object] = lambda _: None) -> Showcase:
    """Train, rank, evaluate and compare the models; `say` is called with each name."""
    world = demo_world(seed)
    result = Showcase(world)
    train, truth = world.train[["user_id", "item_id"]], world.test[["user_id", "item_id"]]
    history = read_interactions(train, table="train")
    vectors = (world.items["item_id"].tolist(), world.embeddings)
    for name, source in _sources(world, history, seed, result.left_out):
        say(name)
        result.lists[name] = recommend(source, _DEPTH, seen=history)
        result.evaluations[name] = evaluate(
            source, truth, METRICS, seen=history, train=train, embeddings=vectors
        )  # fmt: skip
    result.comparison = compare(result.evaluations, BASELINE, ["ndcg@10", "recall@10"])
    return result


def _sources(world: DemoWorld, history: Any, seed: int, left_out: list[str]) -> list[tuple[str, Any]]:
    users, items = history.cases.values.tolist(), world.items["item_id"].tolist()
    sources: list[tuple[str, Any]] = [
        ("random", shuffled(users=users, item_ids=items, seed=seed)),
        (BASELINE, popularity(training_counts(history, catalogue=items), users=users)),
        ("item similarity", similar_items(history, embeddings=world.embeddings, item_ids=items)),
    ]
    from recsys.models import als, bpr

    try:
        # One thread: the same numbers on every machine.
        options = {"factors": 16, "seed": seed, "num_threads": 1}
        als_factors: Any = from_model(als(history, iterations=15, regularization=5.0, **options))
        sources.append(("bpr", from_model(bpr(history, iterations=150, **options))))
        sources.append(("als", als_factors))
        known = als_factors.item_rows.ids.values.tolist()
        row = {item: number for number, item in enumerate(items)}
        vectors = world.embeddings[[row[item] for item in known]]
        users = als_factors.user_rows.ids.values.tolist()
        near = content(history, vectors, users=users, item_ids=known)
        sources.append(("hybrid", blend(als_factors, near, 0.8)))
    except MissingExtraError as error:
        left_out += ["", f"als, bpr and the hybrid are left out: {error}"]
    return sources
