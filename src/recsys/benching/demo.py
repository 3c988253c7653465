"""The demo world under evaluation: six models on it, their comparison and what a report needs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from recsys.comparison.compare import Comparison, compare
from recsys.display.cells import Columns
from recsys.display.text_tables import note_text
from recsys.errors import MissingExtraError
from recsys.evaluation.evaluate import evaluate, recommend
from recsys.evaluation.results import Evaluation, Reported
from recsys.inputs import read_interactions
from recsys.models.baselines import popularity, shuffled, similar_items, training_counts
from recsys.models.rerankers import blend, content
from recsys.ranks.sources import from_model
from recsys.splits.datasets.demo_world import DemoWorld, demo_world

_SHOWN = ("ndcg@10", "recall@10", "hit@10", "mrr", "coverage@10", "novelty@10", "ild@10")
_REPORTED = ("ndcg@5", "ndcg@10", "ndcg@20", "recall@5", "recall@10", "recall@20", "hit@10", "mrr",
             "coverage@10", "novelty@10", "ild@10")  # fmt: skip
_BASELINE = "popularity"


def _describe_world(world: DemoWorld) -> str:
    """One line on the world."""
    n_users, share = world.events["user_id"].nunique(), len(world.test) / len(world.events)
    return (
        f"Demo world: {n_users:,} users, {len(world.items):,} items, {len(world.events):,} events. "
        f"Each user's last {share:.0%} are to be predicted."
    )


@dataclass(repr=False)
class Showcase(Reported):
    """The results of the demo, and the data its report is made from."""

    world: DemoWorld
    evaluations: dict[str, Evaluation] = field(default_factory=dict)
    lists: dict[str, Any] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    comparison: Comparison | None = None

    def to_text(self) -> str:
        return "\n".join([note_text(_describe_world(self.world)), "", super().to_text()])

    def _columns(self) -> Columns:
        by_merit = sorted(self.evaluations, key=lambda name: self.evaluations[name][_SHOWN[0]], reverse=True)
        columns: dict[str, list[Any]] = {"model": by_merit}
        columns |= {m: [self.evaluations[name][m] for name in by_merit] for m in _SHOWN}
        verdicts = {row.model: row.verdict for row in self.comparison or () if row.metric == _SHOWN[0]}
        columns["verdict"] = [verdicts.get(name, "baseline") for name in by_merit]
        return columns

    def _footnotes(self) -> list[str]:
        return [f"verdict: on {_SHOWN[0]}, against {_BASELINE}", *self.left_out]

    @property
    def _results(self) -> Comparison | None:
        return self.comparison

    def _report_inputs(self) -> dict[str, Any]:
        from recsys import audit

        world = self.world
        truth, train = world.test[["user_id", "item_id"]], world.train[["user_id", "item_id"]]
        best = max(self.evaluations, key=lambda name: self.evaluations[name]["ndcg@10"])
        # As in the evaluations, ratings do not grade: every event of the test is relevant.
        known, held_out = (side.drop(columns="rating") for side in (world.train, world.test))
        findings = audit(known, held_out, lists=self.lists[best])
        vectors = dict(zip(world.items["item_id"], world.embeddings, strict=True))
        return {
            "results": self.evaluations, "baseline": _BASELINE, "metric": "ndcg@10",
            "title": "The demo world", "audit": findings, "items": world.items, "lists": self.lists,
            "truth": truth, "train": train, "embeddings": vectors,
        }  # fmt: skip


def showcase(seed: int = 0) -> Showcase:
    """Train, rank, evaluate and compare six models; a missing package leaves some out, with a note."""
    from recsys.models import als, bpr

    world = demo_world(seed)
    result = Showcase(world)
    train, truth = world.train[["user_id", "item_id"]], world.test[["user_id", "item_id"]]
    history = read_interactions(train, table="train")
    users, items = history.cases.values.tolist(), world.items["item_id"].tolist()
    sources: dict[str, Any] = {
        "random": shuffled(users=users, item_ids=items, seed=seed),
        _BASELINE: popularity(training_counts(history, catalogue=items), users=users),
        "item similarity": similar_items(history, embeddings=world.embeddings, item_ids=items),
    }
    try:
        # One thread: the same numbers on every machine.
        options = {"factors": 16, "seed": seed, "num_threads": 1}
        als_factors: Any = from_model(als(history, iterations=15, regularization=5.0, **options))
        sources["bpr"] = from_model(bpr(history, iterations=150, **options))
        sources["als"] = als_factors
        known = als_factors.item_rows.ids.values.tolist()
        row = {item: number for number, item in enumerate(items)}
        vectors = world.embeddings[[row[item] for item in known]]
        users = als_factors.user_rows.ids.values.tolist()
        near = content(history, vectors, users=users, item_ids=known)
        sources["hybrid"] = blend(als_factors, near, 0.8)
    except MissingExtraError as error:
        result.left_out.append(f"als, bpr and the hybrid are left out: {error}")
    for name, source in sources.items():
        result.lists[name] = recommend(source, 20, seen=history)
        result.evaluations[name] = evaluate(
            source, truth, _REPORTED, seen=history, train=train, embeddings=(items, world.embeddings)
        )
    result.comparison = compare(result.evaluations, _BASELINE, ["ndcg@10", "recall@10"])
    return result
