"""Every peer that is installed is named by its answers to the probes, on every metric it has.

A question that a peer cannot be asked (an item twice in a dict or a matrix), or that it answers with an error
or NaN, stays unanswered. Each test says which ones those are, and with what words; all others are answered.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import recsys
from recsys.comparison.probes import PROBES
from worlds.parity import peer

pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]
Evaluator = Callable[..., Any]

NONE: Mapping[str, str] = {}
TIED = ("tied, first", "tied, second", "tied, last", "tied, two")


def unanswered(probes: Iterable[str], why: str) -> dict[str, str]:
    """These probes, for which an evaluator raises a ValueError with these words."""
    return dict.fromkeys(probes, f"raised ValueError: {why}")


TWICE = unanswered(("repeated hit", "repeated miss", "repeated often"), "an item is listed twice")


def once(run: dict) -> dict[str, dict[str, float]]:
    """The lists as dicts, which cannot hold an item twice."""
    for rows in run.values():
        if len({item for item, _ in rows}) < len(rows):
            raise ValueError("an item is listed twice")
    return {user: dict(rows) for user, rows in run.items()}


def untied(run: dict, why: str) -> None:
    if any(len({score for _, score in rows}) < len(rows) for rows in run.values()):
        raise ValueError(why)


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


def named(preset: str, metric: str, evaluator: Evaluator, without: Mapping[str, str] = NONE) -> Any:
    found = recsys.identify(evaluator, metric)
    remaining = [name for names in found.presets for name in names]
    assert preset in remaining, f"{metric}\n{found}"
    assert found.unanswered == without
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

    named("ranx", metric, evaluator, TWICE)


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

    found = named("trec_eval", metric, evaluator, TWICE)
    assert bool(found.deviations) == (measure == "recip_rank")


@pytest.mark.parametrize(
    ("metric", "measure"),
    [("precision", "P@{k}"), ("recall", "R@{k}"), ("map", "AP@{k}"), ("ndcg", "nDCG@{k}"),
     ("hit", "Success@{k}"), ("err", "ERR@{k}"), ("mrr", "RR"), ("r_precision", "Rprec"), ("bpref", "Bpref"),
     ("rbp", "RBP(rel=1)")],
)  # fmt: skip
def test_ir_measures(metric, measure):
    ir_measures = peer("ir_measures")
    if metric == "err" and shutil.which("perl") is None:
        pytest.skip("ir_measures computes ERR with perl")
    if metric == "rbp":
        peer("cwl")

    def evaluator(run, truth, k):
        if metric == "rbp":
            untied(run, "cwl-eval keeps equal scores as given, all else orders them by id")
        asked = ir_measures.parse_measure(measure.format(k=k))
        number = {user: str(at) for at, user in enumerate({**run, **truth}, start=1)}  # as its ERR asks
        qrels = [
            ir_measures.Qrel(number[u], i, g) for u, own in judged(truth).items() for i, g in own.items()
        ]
        lists = {number[user]: rows for user, rows in once(run).items()}
        values = {one.query_id: one.value for one in ir_measures.iter_calc([asked], qrels, lists)}
        return {user: values[at] for user, at in number.items() if at in values}

    tied = unanswered(TIED, "cwl-eval keeps equal scores as given, all else orders them by id")
    found = named("ir_measures", metric, evaluator, {**TWICE, **(tied if metric == "rbp" else {})})
    assert bool(found.deviations) == (metric in ("mrr", "rbp"))  # it knows no cut-off of these


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

    named("recpack", metric, evaluator, TWICE)


@pytest.mark.parametrize("metric", ["precision", "recall", "hit", "mrr", "map", "ndcg"])
def test_recbole(metric, monkeypatch):
    metrics = peer("recbole.evaluator.metrics")
    monkeypatch.setattr(np, "float", float, raising=False)
    name = {"mrr": "MRR", "map": "MAP", "ndcg": "NDCG"}.get(metric, metric.capitalize())

    def evaluator(run, truth, k):
        users = [user for user in truth if relevant(truth)[user]]
        # It ranks the whole catalogue, so that misses follow where a list ends before k.
        hits = [[truth[u].get(i, 0) > 0 for i, _ in run.get(u, [])][:k] for u in users]
        found = np.array([own + [False] * (k - len(own)) for own in hits])
        wanted = np.array([len(relevant(truth)[u]) for u in users])
        measure = getattr(metrics, name)({"metric_decimal_place": 12, "topk": [k]})
        inputs = (found,) if name in ("Hit", "MRR", "Precision") else (found, wanted)
        return {u: float(v) for u, v in zip(users, measure.metric_info(*inputs)[:, k - 1], strict=True)}

    named("recbole", metric, evaluator)


@pytest.mark.parametrize("metric", ["precision", "recall", "f", "hit", "ndcg", "mrr"])
def test_cornac(metric):
    metrics = peer("cornac.metrics")
    names = {"precision": "Precision", "recall": "Recall", "f": "FMeasure", "hit": "HitRatio"}

    def evaluator(run, truth, k):
        items = sorted({i for rows in run.values() for i, _ in rows} | {i for t in truth.values() for i in t})
        measure = getattr(metrics, names.get(metric, metric.upper()))(*(() if metric == "mrr" else (k,)))
        values = {}
        for user, grades in relevant(truth).items():
            if grades:
                wanted = np.array([items.index(item) for item in grades])
                ranked = np.array([items.index(item) for item, _ in run.get(user, [])])
                values[user] = float(measure.compute(gt_pos=wanted, pd_rank=ranked))
        return values

    no_hit = "No matched between ground-truth items and recommendations"
    named(
        "cornac",
        metric,
        evaluator,
        unanswered(["three users", "below k", "no list"], no_hit) if metric == "mrr" else NONE,
    )


def test_cornac_map():
    """It reads a score of every item, so the items that a list lacks stand below it, tied."""
    measure, answers = peer("cornac.metrics").MAP(), []
    for probe in PROBES:
        if probe.name not in TWICE:
            items = sorted(
                {i for own in (*map(dict, probe.run.values()), *probe.truth.values()) for i in own}
            )
            run, value = {}, {}
            for user, grades in probe.truth.items():
                scores = dict.fromkeys(items, 1 / 1024) | dict(probe.run.get(user, []))
                run[user] = sorted(scores.items(), key=lambda one: -one[1])
                wanted = [at for at, item in enumerate(items) if grades.get(item, 0) > 0]
                if wanted:
                    order = np.arange(len(items)), np.array([scores[item] for item in items])
                    value[user] = measure.compute(*order, np.array(wanted))
            answers.append({"run": run, "truth": probe.truth, "k": probe.k, "value": value})
    found = recsys.identify(metric="map", answers=answers)
    assert found.presets == (("cornac",),), found


@pytest.mark.parametrize("metric", ["precision", "recall", "map", "ndcg"])
def test_microsoft(metric):
    evaluation = peer("recommenders.evaluation.python_evaluation")
    options = {"col_user": "user_id", "col_item": "item_id", "col_rating": "grade", "col_prediction": "score"}

    def evaluator(run, truth, k):
        lists, wanted = frames(run, truth)
        hits = lists.merge(wanted, on=["user_id", "item_id"])
        if metric == "ndcg" and hits.duplicated(["user_id", "item_id"]).any():
            raise ValueError("a hit listed n times counts n times at each of its places")
        measure = getattr(evaluation, f"{metric}_at_k")
        return measure(wanted, lists.drop(columns="rank"), relevancy_method="top_k", k=k, **options)

    twice = unanswered(
        ["repeated hit", "repeated often"],
        "a hit listed n times counts n times at each of its places",
    )
    named("microsoft", metric, evaluator, twice if metric == "ndcg" else NONE)


@pytest.mark.parametrize("metric", ["precision", "recall", "f", "hit", "mrr", "map", "ndcg"])
def test_evidently(metric):
    evidently, metrics = peer("evidently"), peer("evidently.metrics")
    names = {"precision": "PrecisionTopK", "recall": "RecallTopK", "f": "FBetaTopK", "hit": "HitRate"}
    ranking = peer("evidently.core.datasets").Recsys(recommendations_type="rank")

    def evaluator(run, truth, k):
        rows = []
        for user in {**run, **truth}:
            items = [item for item, _ in run.get(user, [])]
            missed = [item for item in relevant(truth)[user] if item not in items]  # must be rows, so below k
            places = [*enumerate(items, 1), *enumerate(missed, max(k, len(items)) + 1)]
            rows += [(user, item, truth[user].get(item, 0), place) for place, item in places]
        definition = evidently.DataDefinition(
            ranking=[ranking], numerical_columns=["target", "prediction"], categorical_columns=["user_id"]
        )
        table = pd.DataFrame(rows, columns=["user_id", "item_id", "target", "prediction"])
        data = evidently.Dataset.from_pandas(table, data_definition=definition)
        measure = getattr(metrics, names.get(metric, metric.upper()))(k=k)
        values = evidently.Report([measure]).run(data, None).dict()["metrics"][0]["value"]["value"]
        return list(values.values())[k - 1]

    no_place_k = (
        {"short list": "raised KeyError: 4"} if metric in ("precision", "recall", "f", "map") else NONE
    )
    no_hit = dict.fromkeys(("below k", "tied, last"), "answered nan") if metric == "f" else NONE
    found = named("evidently", metric, evaluator, {**no_place_k, **no_hit})
    assert bool(found.deviations) == (metric in ("recall", "f", "map", "ndcg"))  # an item listed twice


@pytest.mark.parametrize("metric", ["precision", "recall", "hit", "mrr", "map", "ndcg"])
def test_rs_metrics(metric):
    rs_metrics = peer("rs_metrics")
    name = {"hit": "hitrate", "map": "mapr"}.get(metric, metric)

    def evaluator(run, truth, k):
        users = list(truth)
        listed = {user: [item for item, _ in run.get(user, [])] for user in users}
        wanted = {user: list(relevant(truth)[user]) for user in users}
        return float(getattr(rs_metrics, name)(wanted, listed, k=k))

    no_truth = dict.fromkeys(("no truth", "nothing relevant"), "answered nan")
    without = {"recall": no_truth, "ndcg": no_truth, "precision": {"no list": "answered nan"}}
    named("rs_metrics", metric, evaluator, without.get(metric, NONE))


@pytest.mark.parametrize("metric", ["precision", "recall", "hit", "map", "ndcg"])
def test_irspack(metric):
    irspack = peer("irspack")

    def evaluator(run, truth, k):
        _, scores, grades = dense(run, truth, given=True)
        if {*truth} - {*run}:
            raise ValueError("every user has scores")
        # Its cut-off is at most the number of items: k more that nobody is shown.
        scores = np.pad(scores, ((0, 0), (0, k)), constant_values=-np.inf)
        grades = np.pad(grades, ((0, 0), (0, k)))
        judge = irspack.Evaluator(
            sparse.csr_matrix((grades > 0).astype(np.float64)),
            cutoff=k,
            n_threads=1,
            recall_with_cutoff=False,
        )
        return judge.get_score_from_score_matrix(scores)[metric]

    named("irspack", metric, evaluator, {**TWICE, **unanswered(["no list"], "every user has scores")})


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
        items = sorted({i for rows in run.values() for i, _ in rows} | {i for t in truth.values() for i in t})
        spare = range(len(items), len(items) + k)  # misses, where a list ends before k
        order = np.array([([items.index(i) for i, _ in run.get(u, [])] + [*spare])[:k] for u in users])
        test = np.zeros((len(users), len(items) + k), dtype=np.float32)
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


@pytest.mark.parametrize("metric", ["precision", "recall", "mar"])
def test_recmetrics(metric):
    metrics = peer("recmetrics.metrics")
    by_zero = "raised ZeroDivisionError: float division by zero"

    def evaluator(run, truth, k):
        values = {}  # user by user, as it rounds each one's value
        for user, grades in relevant(truth).items():
            listed, wanted = [[item for item, _ in run.get(user, [])]], [list(grades)]
            if metric == "mar":
                values[user] = metrics.mark(wanted, listed, k=k)
            else:
                values[user] = getattr(metrics, f"recommender_{metric}")(listed, wanted)
        return values

    empty = {"precision": ["no list"], "recall": ["no truth", "nothing relevant"], "mar": []}[metric]
    named("recmetrics", metric, evaluator, dict.fromkeys(empty, by_zero))


@pytest.mark.parametrize("metric", ["precision", "recall", "hit", "mrr", "map", "ndcg"])
def test_recometrics(metric):
    recometrics = peer("recometrics")
    name = {"precision": "P", "recall": "R", "hit": "Hit", "mrr": "RR", "map": "AP", "ndcg": "NDCG"}[metric]

    def evaluator(run, truth, k):
        untied(run, "equal scores are broken by noise")
        users, scores, grades = dense(run, truth)
        # It ranks the whole catalogue: k more items below each list, and all that it lacks below them.
        spare = np.tile(-np.arange(1.0, k + 1), (len(users), 1))
        scores = np.hstack([np.where(np.isfinite(scores), scores, -9.0 - np.arange(scores.shape[1])), spare])
        judged_items = sparse.csr_matrix(np.pad(grades, ((0, 0), (0, k))))
        table = recometrics.calc_reco_metrics(
            None, judged_items, scores, np.eye(scores.shape[1]), k=k, all_metrics=True, nthreads=1
        )
        return dict(zip(users, table[f"{name}@{k}"], strict=True))

    named("recometrics", metric, evaluator, TWICE | unanswered(TIED, "equal scores are broken by noise"))


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
        if metric != "ndcg":
            untied(run, "equal scores fall as torch.topk leaves them, which promises no order")
        measure = getattr(retrieval, f"retrieval_{names.get(metric, metric)}")
        values = {}
        for user, grades in relevant(truth).items():
            rows = run.get(user, [])
            listed = {item for item, _ in rows}
            rows = rows + [
                [item, 0.0] for item in truth[user] if item not in listed
            ]  # each judged item is a row
            target = torch.tensor([grades.get(item, 0) for item, _ in rows], dtype=torch.int64)
            target = target if metric == "ndcg" else target > 0
            scores = torch.tensor([score for _, score in rows], dtype=torch.float32)
            values[user] = float(measure(scores, target, top_k=k)) if target.any() else 0.0
        return values

    tied = unanswered(TIED, "equal scores fall as torch.topk leaves them, which promises no order")
    named("torchmetrics", metric, evaluator, NONE if metric == "ndcg" else tied)
