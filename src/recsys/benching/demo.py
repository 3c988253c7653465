"""The demo world under evaluation: six models on it, their comparison and what a report needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from recsys.audits import audit
from recsys.conventions.decisions import Conventions
from recsys.display.cells import Columns
from recsys.display.text_tables import note_text
from recsys.errors import MissingExtraError
from recsys.evaluation.options import EvaluationOptions
from recsys.evaluation.reading import CommonInputs
from recsys.evaluation.results import Evaluation
from recsys.inputs import read_interactions
from recsys.models.baselines import popularity, shuffled, similar_items, training_counts
from recsys.models.rerankers import blend, content
from recsys.ranks.sources import from_model
from recsys.records.arrays import Lists
from recsys.report.study import Study, make_study
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


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Showcase(Study):
    """The study of the demo: its world, and what was left out."""

    world: DemoWorld
    left_out: Sequence[str]

    def to_text(self) -> str:
        return "\n".join([note_text(_describe_world(self.world)), "", super().to_text()])

    def _columns(self) -> Columns:
        columns: dict[str, list[Any]] = {"model": self.names}
        columns |= {m: [self.value(name, m) for name in self.names] for m in _SHOWN}
        rows = {name: self.rows.get((name, _BASELINE, self.headline)) for name in self.names}
        columns["verdict"] = ["baseline" if row is None else row.verdict for row in rows.values()]
        return columns

    def _footnotes(self) -> list[str]:
        return [f"verdict: on {_SHOWN[0]}, against {_BASELINE}", *self.left_out]

    def _report_inputs(self) -> dict[str, Any]:
        return {"results": self, "title": "The demo world"}


def showcase(seed: int = 0) -> Showcase:
    """Train, rank, evaluate and compare six models; a missing package leaves some out, with a note."""
    from recsys.models import als, bpr

    world, left_out = demo_world(seed), list[str]()
    # Ratings do not grade: every event of the test is relevant.
    train, test = (side.drop(columns="rating") for side in (world.train, world.test))
    history = read_interactions(train[["user_id", "item_id"]], table="train")
    truth = read_interactions(test[["user_id", "item_id"]], table="truth")
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
        left_out.append(f"als, bpr and the hybrid are left out: {error}")
    evaluations, lists = dict[str, Evaluation](), dict[str, Lists]()
    asked = EvaluationOptions(seen=history, train=history, embeddings=(items, world.embeddings))
    inputs = CommonInputs(_REPORTED, asked)
    for name, source in sources.items():
        listed = inputs.run_of(source, truth).evaluate_with_lists(Conventions(), 20)
        evaluations[name], lists[name] = listed.evaluation, listed.lists
    best = max(evaluations, key=lambda name: evaluations[name][_SHOWN[0]])
    study = make_study(
        evaluations, baseline=_BASELINE, headline=_SHOWN[0], lists=lists, truth=truth, train=history,
        items=world.items, audit=audit(train, test, lists=lists[best]),
        embeddings=dict(zip(world.items["item_id"], world.embeddings, strict=True)),
    )  # fmt: skip
    return Showcase.of(study, world=world, left_out=left_out)
