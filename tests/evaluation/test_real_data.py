"""MovieLens 100K, if it is available: the engine against the plain definitions, through every entry point."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

import recsys
from oracles import ranking as oracle
from oracles import shown as oracle_shown
from recsys.conventions.decisions import Conventions

pytestmark = pytest.mark.shared

METRICS = [
    "precision@10",
    "recall@20",
    "ndcg@10",
    "map@10",
    "mrr",
    "hit@5",
    "f1@10",
    "rbp",
    "err@10",
    "r_precision",
]


@pytest.fixture(scope="module")
def split(shared_dir) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The last five ratings of each user are held out; equal times are ordered by item."""
    events = pd.read_parquet(shared_dir / "data" / "ml-100k" / "interactions.parquet")
    events = events.sort_values(["user", "timestamp", "item"], kind="stable").astype(
        {"user": int, "item": int}
    )
    late = events.groupby("user").cumcount(ascending=False) < 5
    return events[~late], events[late]


@pytest.fixture(scope="module")
def popular(split) -> pd.DataFrame:
    """The most rated items the user had not seen, with how often they were rated."""
    train, _ = split
    counts = train["item"].value_counts()
    order = sorted(counts.index, key=lambda i: (-counts[i], i))
    seen = train.groupby("user")["item"].agg(set)
    rows = []
    for user, had in seen.items():
        fresh = [i for i in order if i not in had][:20]
        rows += [(user, item, place, float(counts[item])) for place, item in enumerate(fresh, 1)]
    return pd.DataFrame(rows, columns=["user", "item", "rank", "score"])


def test_every_user_agrees_with_the_plain_definition(split, popular):
    truth = split[1][["user", "item", "rating"]]
    result = recsys.evaluate(popular.drop(columns="score"), truth, METRICS)
    lists = popular.groupby("user")["item"].agg(list).to_dict()
    grades = {u: dict(zip(g["item"], g["rating"], strict=True)) for u, g in truth.groupby("user")}
    for request in result.requests:
        own = {"beta": 1} if request.metric.name == "f" else {}
        plain = oracle.Request(request.metric.name, request.k, own)
        overall, per_case = oracle.evaluate(lists, grades, plain, Conventions(max_grade=5))
        assert result[str(request)] == pytest.approx(overall, rel=1e-12), str(request)
        ours = dict(zip(result.per_case.ids.tolist(), result.values_of(str(request)), strict=True))
        assert ours == pytest.approx(per_case, rel=1e-12, nan_ok=True)
    assert result.counts["cases"] == 943


@pytest.mark.filterwarnings("ignore::recsys.errors.TieWarning")
def test_every_container_gives_the_same_bytes(split, popular):
    truth = split[1][["user", "item", "rating"]]
    scored = popular.drop(columns="rank")
    whole = recsys.evaluate(scored, truth, METRICS)
    as_dict = {u: list(zip(g["item"], g["score"], strict=True)) for u, g in scored.groupby("user")}
    wanted = {u: dict(zip(g["item"], g["rating"], strict=True)) for u, g in truth.groupby("user")}
    assert recsys.evaluate(as_dict, wanted, METRICS) == whole
    assert (
        recsys.evaluate(pl.from_pandas(scored.sample(frac=1, random_state=0)), pl.from_pandas(truth), METRICS)
        == whole
    )
    parts = recsys.Evaluator(METRICS, conventions={"max_grade": 5})
    for users in np.array_split(scored["user"].unique(), 7)[::-1]:
        parts.update(scored[scored["user"].isin(users)], truth[truth["user"].isin(users)])
    assert dict(parts.result()) == dict(whole)


@pytest.mark.filterwarnings("ignore::recsys.errors.TieWarning")
def test_popularity_as_factors_ranks_as_its_lists_do(split, popular):
    train, test = split
    items = np.sort(train["item"].unique())
    counts = train["item"].value_counts().reindex(items).to_numpy(dtype=np.float64)
    users = np.sort(train["user"].unique())
    model = recsys.Factors(np.ones((len(users), 1)), counts[:, None], user_ids=users, item_ids=items)
    asked = ["ndcg@10", "recall@20", "hit@5"]
    seen = train[["user", "item"]]
    by_count = recsys.evaluate(model, test[["user", "item"]], asked, seen=seen)
    by_list = recsys.evaluate(popular.drop(columns="rank"), test[["user", "item"]], asked)
    assert dict(by_count) == dict(by_list)
    listed = recsys.recommend(model, 20, seen=seen)
    assert listed.items.values[listed.codes].tolist() == popular["item"].tolist()


def test_the_stored_golden_numbers_are_those_handed_over(shared_dir):
    for name in ("cases.json", "results.json"):
        ours = Path(__file__).parents[1] / "golden" / name
        theirs = shared_dir / "golden" / "conventions" / name
        assert json.loads(ours.read_text()) == json.loads(theirs.read_text())


SHOWN = {
    "coverage": {}, "gini": {}, "entropy": {}, "personalisation": {}, "novelty": {}, "average_popularity": {},
    "tail_share": {}, "ild": {}, "alignment": {}, "unexpectedness": {}, "unseen": {}, "alpha_ndcg": {},
    "subtopic_recall": {}, "kinds": {"by": "genres"}, "exposure_gap": {"by": "genres"},
    "miscalibration": {"by": "genres"}, "miscalibration ": {"by": "genres", "divergence": "js"},
}  # fmt: skip


def test_metrics_about_the_items_shown_agree_with_the_plain_definition(split, popular, shared_dir):
    train, test = split
    folder = shared_dir / "data" / "ml-100k"
    items = pd.read_parquet(folder / "items.parquet")
    stored = np.load(folder / "item_text_embeddings.npz")
    some = sorted(train["user"].unique())[:30]
    lists = {int(u): rows["item"].tolist()[:10] for u, rows in popular.groupby("user") if u in some}
    truth = {
        int(u): dict.fromkeys(rows["item"].tolist(), 1.0) for u, rows in test.groupby("user") if u in some
    }
    requests = [oracle.Request(name.strip(), 10, params) for name, params in SHOWN.items()]
    result = recsys.evaluate(
        lists,
        truth,
        [str(r) for r in requests],
        train=train[["user", "item"]],
        items=items,
        embeddings=(stored["item"], stored["embedding"]),
        intents="genres",
    )
    known = oracle_shown.Known(
        train={int(u): rows["item"].tolist() for u, rows in train.groupby("user")},
        embeddings={
            int(i): [float(x) for x in v] for i, v in zip(stored["item"], stored["embedding"], strict=True)
        },
        kinds=dict(zip(items["item"].tolist(), items["genres"], strict=True)),
    )
    counts = train["item"].value_counts().to_dict()
    with pytest.MonkeyPatch.context() as patch:  # counted once: the plain way is too plain for 100,000 rows
        patch.setattr(oracle_shown.Known, "popularity", lambda _, item: counts.get(item, 0))
        for request in requests:
            wanted, _ = oracle_shown.evaluate(lists, truth, request, Conventions(), known)
            assert result[str(request)] == pytest.approx(wanted, rel=1e-9), str(request)
