"""Every peer that is installed is named by its answers to the probes, on every metric it has.

A question that a peer cannot be asked (an item twice in a dict or a matrix, a user without a list where there
must be one) is answered with an error, as its own user would meet it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import recsys
from worlds.parity import peer

pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]
Evaluator = Callable[..., Any]


def once(run: dict) -> dict[str, dict[str, float]]:
    """The lists as dicts, which cannot hold an item twice."""
    for rows in run.values():
        if len({item for item, _ in rows}) < len(rows):
            raise ValueError("an item is listed twice")
    return {user: dict(rows) for user, rows in run.items()}


def relevant(truth: dict) -> dict[str, dict[str, int]]:
    return {user: {i: int(g) for i, g in grades.items() if g > 0} for user, grades in truth.items()}


def judged(truth: dict) -> dict[str, dict[str, int]]:
    return {user: {i: int(g) for i, g in grades.items()} for user, grades in truth.items()}


def frames(run: dict, truth: dict) -> tuple[pd.DataFrame, pd.DataFrame]:
    lists = [(u, i, s, r) for u, rows in run.items() for r, (i, s) in enumerate(rows, start=1)]
    wanted = [(u, i, g) for u, grades in relevant(truth).items() for i, g in grades.items()]
    return (
        pd.DataFrame(lists, columns=["user_id", "item_id", "score", "rank"]),
        pd.DataFrame(wanted, columns=["user_id", "item_id", "grade"]),
    )


def dense(run: dict, truth: dict, *, given: bool = False) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Users of the truth, scores (-inf where not listed) and grades; columns by id or in the order given."""
    once(run)
    users = list(truth)
    items = sorted({i for rows in run.values() for i, _ in rows} | {i for t in truth.values() for i in t})
    if given:
        items = list(dict.fromkeys([i for rows in run.values() for i, _ in rows] + items))
    scores, grades = np.full((len(users), len(items)), -np.inf), np.zeros((len(users), len(items)))
    for row, user in enumerate(users):
        for item, score in run.get(user, []):
            scores[row, items.index(item)] = score
        for item, grade in truth[user].items():
            grades[row, items.index(item)] = grade
    return users, scores, grades


def named(preset: str, metric: str, evaluator: Evaluator) -> Any:
    found = recsys.identify(evaluator, metric)
    remaining = [name for names in found.presets for name in names]
    assert preset in remaining, f"{metric}\n{found}"
    assert found.answered >= 6
    return found


@pytest.mark.parametrize(
    "metric", ["precision", "recall", "f", "hit", "mrr", "map", "ndcg", "dcg", "r_precision"]
)
def test_ranx(metric):
    ranx = peer("ranx")
    names = {"f": "f1@{k}", "hit": "hit_rate@{k}", "r_precision": "r-precision"}
    name = names.get(metric, metric + "@{k}")

    def evaluator(run, truth, k):
        measure = name.format(k=k)
        qrels, lists = ranx.Qrels(judged(truth)), ranx.Run(once(run))
        return float(ranx.evaluate(qrels, lists, measure, make_comparable=True))

    named("ranx", metric, evaluator)


@pytest.mark.parametrize(
    ("metric", "measure"),
    [("precision", "P"), ("recall", "recall"), ("map", "map_cut"), ("ndcg", "ndcg_cut"), ("hit", "success"),
     ("mrr", "recip_rank"), ("r_precision", "Rprec"), ("bpref", "bpref")],
)  # fmt: skip
def test_trec_eval(metric, measure):
    pytrec_eval = peer("pytrec_eval")
    cut = measure not in ("recip_rank", "Rprec", "bpref")

    def evaluator(run, truth, k):
        asked = f"{measure}.{k}" if cut else measure
        values = pytrec_eval.RelevanceEvaluator(judged(truth), {asked}).evaluate(once(run))
        return {user: own[asked.replace(".", "_")] for user, own in values.items()}

    found = named("trec_eval", metric, evaluator)
    assert bool(found.deviations) == (measure == "recip_rank")


@pytest.mark.parametrize(
    ("metric", "measure"),
    [
        ("precision", "P"),
        ("recall", "R"),
        ("map", "AP"),
        ("ndcg", "nDCG"),
        ("hit", "Success"),
        ("err", "ERR"),
    ],
)
def test_ir_measures(metric, measure):
    ir_measures = peer("ir_measures")

    def evaluator(run, truth, k):
        asked = getattr(ir_measures, measure) @ k
        qrels = [ir_measures.Qrel(u, i, g) for u, own in judged(truth).items() for i, g in own.items()]
        return ir_measures.calc_aggregate([asked], qrels, once(run))[asked]

    if measure == "ERR":
        pytest.importorskip("cwl_eval", reason="ERR needs a provider that is not installed")
    named("ir_measures", metric, evaluator)


@pytest.mark.parametrize("metric", ["precision", "recall", "f", "hit", "mrr", "map", "ndcg"])
def test_rectools(metric):
    metrics = peer("rectools.metrics")
    names = {"precision": "Precision", "recall": "Recall", "f": "F1Beta", "hit": "HitRate", "mrr": "MRR"}

    def evaluator(run, truth, k):
        lists, wanted = frames(run, truth)
        return getattr(metrics, names.get(metric, metric.upper()))(k).calc_per_user(lists, wanted).to_dict()

    named("rectools", metric, evaluator)


@pytest.mark.parametrize("metric", ["precision", "recall", "hit", "mrr", "ndcg", "rbp"])
def test_lenskit(metric):
    metrics, data = peer("lenskit.metrics"), peer("lenskit.data")
    names = {"precision": "Precision", "recall": "Recall", "hit": "Hit", "mrr": "RecipRank"}

    def evaluator(run, truth, k):
        measure = getattr(metrics, names.get(metric, metric.upper()))(n=k)
        values = {}
        for user, rows in run.items():
            listed = data.ItemList(item_ids=[item for item, _ in rows], ordered=True)
            wanted = data.ItemList(item_ids=list(relevant(truth)[user]))
            values[user] = float(measure.measure_list(listed, wanted))
        return {user: 0.0 if math.isnan(value) else value for user, value in values.items()}

    named("lenskit", metric, evaluator)


@pytest.mark.parametrize("metric", ["precision", "recall", "hit", "mrr", "map", "ndcg"])
def test_replay(metric):
    metrics = peer("replay.metrics")
    names = {"precision": "Precision", "recall": "Recall", "hit": "HitRate"}
    columns = {"query_column": "user_id", "item_column": "item_id", "rating_column": "score"}

    def evaluator(run, truth, k):
        lists, wanted = frames(run, truth)
        measure = getattr(metrics, names.get(metric, metric.upper()))(k, mode=metrics.PerUser(), **columns)
        return next(iter(measure(lists.drop(columns="rank"), wanted[["user_id", "item_id"]]).values()))

    named("replay", metric, evaluator)


@pytest.mark.parametrize("metric", ["precision", "recall", "hits", "capped_recall", "mrr", "ndcg"])
def test_recpack(metric):
    metrics = peer("recpack.metrics")
    names = {
        "precision": "PrecisionK", "recall": "RecallK", "hits": "HitK", "capped_recall": "CalibratedRecallK",
        "mrr": "ReciprocalRankK", "ndcg": "NDCGK",
    }  # fmt: skip

    def evaluator(run, truth, k):
        users, scores, grades = dense(run, truth)
        measure = getattr(metrics, names[metric])(k)
        predicted = sparse.csr_matrix(np.where(np.isfinite(scores), scores, 0.0))
        measure.calculate(sparse.csr_matrix((grades > 0).astype(np.float64)), predicted)
        table = measure.results.groupby("user_id")["score"].sum()
        return {users[row]: float(value) for row, value in table.items()}

    named("recpack", metric, evaluator)


@pytest.mark.parametrize("metric", ["precision", "recall", "hit", "mrr", "map", "ndcg"])
def test_recbole(metric, monkeypatch):
    metrics = peer("recbole.evaluator.metrics")
    monkeypatch.setattr(np, "float", float, raising=False)
    name = {"mrr": "MRR", "map": "MAP", "ndcg": "NDCG"}.get(metric, metric.capitalize())

    def evaluator(run, truth, k):
        users = [user for user in truth if relevant(truth)[user]]
        if {*users} - {*run} or any(len(run[user]) < k for user in users):
            raise ValueError("it ranks the whole catalogue for every user")
        found = np.array([[truth[u].get(i, 0) > 0 for i, _ in run[u][:k]] for u in users])
        wanted = np.array([len(relevant(truth)[u]) for u in users])
        measure = getattr(metrics, name)({"metric_decimal_place": 12, "topk": [k]})
        inputs = (found,) if name in ("Hit", "MRR", "Precision") else (found, wanted)
        return {u: float(v) for u, v in zip(users, measure.metric_info(*inputs)[:, k - 1], strict=True)}

    named("recbole", metric, evaluator)


@pytest.mark.parametrize("metric", ["precision", "recall", "f", "hit", "ndcg", "mrr", "map"])
def test_cornac(metric):
    metrics = peer("cornac.metrics")
    names = {"precision": "Precision", "recall": "Recall", "f": "FMeasure", "hit": "HitRatio"}
    whole = metric in ("mrr", "map")

    def evaluator(run, truth, k):
        items = sorted({i for rows in run.values() for i, _ in rows} | {i for t in truth.values() for i in t})
        measure = getattr(metrics, names.get(metric, metric.upper()))(*(() if whole else (k,)))
        values = {}
        for user, grades in relevant(truth).items():
            if grades:
                wanted = np.array([items.index(item) for item in grades])
                if metric == "map":
                    scores = dict(once(run).get(user, {}))
                    if set(items) - set(scores):
                        raise ValueError("it needs a score of every item")
                    vector = np.array([scores[item] for item in items])
                    values[user] = measure.compute(
                        item_indices=np.arange(len(items)), pd_scores=vector, gt_pos=wanted
                    )
                else:
                    ranked = np.array([items.index(item) for item, _ in run.get(user, [])])
                    values[user] = float(measure.compute(gt_pos=wanted, pd_rank=ranked))
        return values

    if metric == "map":
        pytest.skip("no probe ranks every item, and its MAP is of such rankings only; see golden")
    named("cornac", metric, evaluator)


@pytest.mark.parametrize("metric", ["precision", "recall", "map", "ndcg"])
def test_microsoft(metric):
    evaluation = peer("recommenders.evaluation.python_evaluation")
    options = {"col_user": "user_id", "col_item": "item_id", "col_rating": "grade", "col_prediction": "score"}

    def evaluator(run, truth, k):
        if metric == "ndcg":
            once(run)  # its ideal list grows with an item listed twice, which the preset does not copy
        lists, wanted = frames(run, truth)
        if lists.merge(wanted, on=["user_id", "item_id"]).empty:
            raise ValueError("without a single hit it returns 0 before it looks at anything")
        measure = getattr(evaluation, f"{metric}_at_k")
        return measure(wanted, lists.drop(columns="rank"), relevancy_method="top_k", k=k, **options)

    named("microsoft", metric, evaluator)


@pytest.mark.parametrize("metric", ["precision", "recall", "hit", "mrr", "map", "ndcg"])
def test_rs_metrics(metric):
    rs_metrics = peer("rs_metrics")
    name = {"hit": "hitrate", "map": "mapr"}.get(metric, metric)

    def evaluator(run, truth, k):
        users = list(truth)
        listed = {user: [item for item, _ in run[user]] for user in users}
        wanted = {user: list(relevant(truth)[user]) for user in users}
        return float(getattr(rs_metrics, name)(wanted, listed, k=k))

    named("rs_metrics", metric, evaluator)


@pytest.mark.parametrize("metric", ["precision", "recall", "hit", "map", "ndcg"])
def test_irspack(metric):
    irspack = peer("irspack")

    def evaluator(run, truth, k):
        _, scores, grades = dense(run, truth, given=True)
        if {*truth} - {*run}:
            raise ValueError("every user has scores")
        judge = irspack.Evaluator(
            sparse.csr_matrix((grades > 0).astype(np.float64)),
            cutoff=k,
            n_threads=1,
            recall_with_cutoff=False,
        )
        return judge.get_score_from_score_matrix(scores)[metric]

    named("irspack", metric, evaluator)


@pytest.mark.parametrize("metric", ["precision", "map", "ndcg"])
def test_implicit(metric):
    evaluation = peer("implicit.evaluation")

    class Ranked:
        """A model that has ranked already; it needs k items of everybody."""

        def __init__(self, order: np.ndarray) -> None:
            self.order = order

        def recommend(self, users, _user_items, N, **_options):  # noqa: N803 - implicit's name
            return self.order[users, :N].astype(np.int32), np.ones((len(users), N), dtype=np.float32)

    def evaluator(run, truth, k):
        users = list(truth)
        if any(len(run[user]) < k for user in users):
            raise ValueError("a list ends before k")
        items = sorted({i for rows in run.values() for i, _ in rows} | {i for t in truth.values() for i in t})
        order = np.array([[items.index(i) for i, _ in run[u][:k]] for u in users])
        test = np.zeros((len(users), len(items)), dtype=np.float32)
        for row, user in enumerate(users):
            for item, grade in relevant(truth)[user].items():
                test[row, items.index(item)] = grade
        nothing = sparse.csr_matrix(test.shape, dtype=np.float32)
        model = Ranked(order)
        table = evaluation.ranking_metrics_at_k(
            model, nothing, sparse.csr_matrix(test), K=k, show_progress=False
        )
        return table[metric]

    named("implicit", metric, evaluator)


@pytest.mark.parametrize("metric", ["precision", "recall", "hit", "mrr", "map", "ndcg"])
def test_torchmetrics(metric):
    torch, retrieval = peer("torch"), peer("torchmetrics.functional.retrieval")
    names = {
        "hit": "hit_rate",
        "mrr": "reciprocal_rank",
        "map": "average_precision",
        "ndcg": "normalized_dcg",
    }

    def evaluator(run, truth, k):
        once(run)
        if any(len(run.get(user, [])) < k for user in truth if relevant(truth)[user]):
            raise ValueError("each relevant item is a row, so a list that ends before k would get some more")
        if metric != "ndcg" and any(len({s for _, s in rows}) < len(rows) for rows in run.values()):
            raise ValueError("equal scores fall as torch.topk leaves them, which promises no order")
        measure = getattr(retrieval, f"retrieval_{names.get(metric, metric)}")
        values = {}
        for user, grades in relevant(truth).items():
            rows = dict(run.get(user, []))
            rows |= {item: 1 / 1024 for item in truth[user] if item not in rows}  # each judged item is a row
            target = torch.tensor([grades.get(item, 0) for item in rows], dtype=torch.int64)
            target = target if metric == "ndcg" else target > 0
            scores = torch.tensor(list(rows.values()), dtype=torch.float32)
            values[user] = float(measure(scores, target, top_k=k)) if target.any() else 0.0
        return values

    named("torchmetrics", metric, evaluator)
