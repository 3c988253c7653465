"""Outputs of other libraries, from the real packages, give the same numbers as the same plain lists."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import recsys
from recsys import adapters


def matrix(seed=0, users=60, items=40):
    rng = np.random.default_rng(seed)
    return sparse.csr_matrix(rng.random((users, items)) < 0.2, dtype=np.float32)


def test_implicit_recommendations_and_factors_agree():
    implicit = pytest.importorskip("implicit")
    train = matrix()
    model = implicit.als.AlternatingLeastSquares(factors=8, iterations=3, random_state=0, num_threads=1)
    model.fit(train, show_progress=False)
    truth = {u: [(u * 7) % 40] for u in range(60) if train[u, (u * 7) % 40] == 0}
    users = np.array(sorted(truth))
    ids, scores = model.recommend(users, train[users], N=10)
    lists = adapters.from_implicit(users.tolist(), ids, scores)
    by_list = recsys.evaluate(lists, truth, ["ndcg@10", "recall@5"])
    by_factors = recsys.evaluate(model, truth, ["ndcg@10", "recall@5"], seen=train)
    assert dict(by_list) == pytest.approx(dict(by_factors), abs=1e-12)


def test_implicit_pads_short_lists():
    lists = adapters.from_implicit([5], [[3, 1, -1]], [[0.5, 0.2, -3.4e38]])
    assert lists.sizes.tolist() == [2]


def test_lenskit():
    data = pytest.importorskip("lenskit.data")
    collection = data.ItemListCollection(["user_id"])
    collection.add(data.ItemList([1, 2, 3], scores=[0.3, 0.2, 0.1], ordered=True), user_id=5)
    collection.add(data.ItemList([4, 2], scores=[0.3, 0.2], ordered=True), user_id=6)
    result = recsys.evaluate(adapters.from_lenskit(collection), {5: [2], 6: [9]}, ["mrr"])
    assert result["mrr"] == 0.25


def test_surprise():
    surprise = pytest.importorskip("surprise")
    rng = np.random.default_rng(0)
    rows = [
        (f"u{u}", f"i{i}", float(rng.integers(1, 6))) for u in range(20) for i in rng.permutation(30)[:10]
    ]
    frame = pd.DataFrame(rows, columns=["user", "item", "rating"])
    loaded = surprise.Dataset.load_from_df(frame, surprise.Reader(rating_scale=(1, 5)))
    train = loaded.build_full_trainset()
    algorithm = surprise.BaselineOnly(verbose=False)
    predictions = algorithm.fit(train).test(train.build_testset())
    lists, truth = adapters.from_surprise(predictions)
    result = recsys.evaluate(lists, truth, ["ndcg@5"], conventions={"relevant_from": 4})
    assert 0 < result["ndcg@5"] <= 1
    table = pd.DataFrame(
        [(p.uid, p.iid, p.est, p.r_ui) for p in predictions], columns=["user", "item", "score", "rating"]
    )
    again = recsys.evaluate(
        table[["user", "item", "score"]], table[["user", "item", "rating"]], ["ndcg@5"],
        conventions={"relevant_from": 4},
    )  # fmt: skip
    assert dict(result) == dict(again)


def test_rectools_tables_need_no_adapter():
    rectools = pytest.importorskip("rectools")
    columns = rectools.Columns
    reco = pd.DataFrame(
        {
            columns.User: [1, 1, 2],
            columns.Item: [10, 20, 10],
            columns.Score: [3.0, 2.0, 1.0],
            columns.Rank: [1, 2, 1],
        }
    )
    later = pd.DataFrame({columns.User: [1, 2], columns.Item: [20, 10]})
    from rectools.metrics import Recall, calc_metrics

    theirs = calc_metrics(
        {"recall@2": Recall(k=2)}, reco=reco, interactions=later.assign(weight=1, datetime="2026")
    )
    assert (
        recsys.evaluate(reco, later, ["recall@2"], conventions="rectools")["recall@2"] == theirs["recall@2"]
    )


def test_recbole_tokens(tmp_path, monkeypatch):
    # recbole 1.2.1 uses names that NumPy 2 no longer has.
    for name, now in {"float_": np.float64, "complex_": np.complex128, "unicode_": np.str_}.items():
        monkeypatch.setattr(np, name, now, raising=False)
    pytest.importorskip("recbole")
    torch = pytest.importorskip("torch")
    from recbole.config import Config
    from recbole.data import create_dataset, data_preparation
    from recbole.model.general_recommender import BPR
    from recbole.utils.case_study import full_sort_topk

    (tmp_path / "tiny").mkdir()
    rows = [f"u{u}\ti{(u * 3 + j) % 9}" for u in range(8) for j in range(5)]
    text = "\n".join(["user_id:token\titem_id:token", *rows])
    (tmp_path / "tiny" / "tiny.inter").write_text(text)
    settings = {"data_path": str(tmp_path), "load_col": {"inter": ["user_id", "item_id"]}, "device": "cpu"}
    config = Config(model="BPR", dataset="tiny", config_dict=settings | {"embedding_size": 4})
    dataset = create_dataset(config)
    train, _, test = data_preparation(config, dataset)
    torch.manual_seed(0)
    model = BPR(config, train.dataset)
    users = dataset.token2id("user_id", ["u0", "u1"])
    _, top = full_sort_topk(users, model, test, k=2, device="cpu")
    lists = adapters.from_recbole(users, top, dataset=dataset)
    assert list(lists) == ["u0", "u1"]
    numbers = dataset.token2id("item_id", lists["u0"])
    assert np.array_equal(numbers, top[0].numpy())


def test_hugging_face_datasets():
    datasets = pytest.importorskip("datasets")
    held = datasets.Dataset.from_dict({"user_id": [1, 1, 2], "item_id": [5, 6, 5], "score": [0.9, 0.1, 0.4]})
    truth = datasets.Dataset.from_dict({"user_id": [1, 2], "item_id": [6, 5]})
    result = recsys.evaluate(held.with_format("arrow")[:], truth.to_pandas(), ["mrr"])
    assert result["mrr"] == 0.75


def test_scikit_learn_agrees_with_its_own_ndcg():
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(3)
    grades, scores = rng.integers(0, 4, (30, 12)), rng.random((30, 12))
    ours = adapters.score_function("ndcg@5", conventions={"no_truth": "zero"})
    assert ours(grades, scores) == pytest.approx(metrics.ndcg_score(grades, scores, k=5), abs=1e-12)


def test_a_scorer_takes_factors_and_scores_as_they_are():
    rng = np.random.default_rng(0)
    users, items, truth = rng.normal(size=(20, 4)), rng.normal(size=(15, 4)), {u: [u % 15] for u in range(20)}
    expected = recsys.evaluate(recsys.Factors(users, items), truth, ["ndcg@5"])["ndcg@5"]
    for estimator in (recsys.Factors(users, items), recsys.Scores(users @ items.T)):
        assert adapters.scorer("ndcg@5")(estimator, list(truth), truth) == pytest.approx(expected)


def test_scikit_learn_make_scorer_and_cross_validation():
    pytest.importorskip("sklearn")
    from sklearn.linear_model import Ridge
    from sklearn.metrics import make_scorer
    from sklearn.model_selection import GridSearchCV

    rng = np.random.default_rng(0)
    features = rng.normal(size=(80, 5))
    grades = (features @ rng.normal(size=(5, 12)) > 1).astype(int)
    search = GridSearchCV(
        Ridge(), {"alpha": [0.1, 1e6]}, scoring=make_scorer(adapters.score_function("ndcg@5")), cv=3
    ).fit(features, grades)  # fmt: skip
    assert search.best_params_ in ({"alpha": 0.1}, {"alpha": 1e6})
    assert 0 < search.best_score_ <= 1


def test_optuna_finds_the_better_blend():
    optuna = pytest.importorskip("optuna")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    rng = np.random.default_rng(1)
    good, noise = rng.random((50, 30)), rng.random((50, 30))
    truth = {u: np.argsort(-good[u])[:3].tolist() for u in range(50)}

    def objective(trial):
        share = trial.suggest_float("share", 0, 1)
        return recsys.evaluate(recsys.Scores(share * good + (1 - share) * noise), truth, ["ndcg@5"])["ndcg@5"]

    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(objective, n_trials=12)
    assert study.best_params["share"] > 0.7
