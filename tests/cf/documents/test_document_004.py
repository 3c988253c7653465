"""Document 004: its functions as oracles on a torch model, and its split protocols as written."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from recsys import splits  # noqa: E402
from recsys.cf.evaluation import evaluate_rating_prediction, precision_recall_at_k  # noqa: E402
from recsys.cf.evaluation.rating_prediction import evaluate_ranking  # noqa: E402
from recsys.errors import InputError, UnknownNameError  # noqa: E402

FENCE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
N_USERS, N_ITEMS = 30, 40


@pytest.fixture(scope="module")
def blocks(shared_dir):
    (path,) = (shared_dir / "seeds").glob("004_*.txt")
    return FENCE.findall(path.read_text("utf-8"))


@pytest.fixture(scope="module")
def document(blocks):
    """The two functions that the document defines, executed from its text."""
    names = {"torch": torch, "F": torch.nn.functional, "np": np}
    for code in blocks[:2]:
        exec(code, names)  # noqa: S102 - the document's own code
    return names


class Factors(torch.nn.Module):
    """Matrix factorisation with biases; `column` returns (n, 1), as some models of the document do."""

    def __init__(self, seed=0, *, column=False):
        super().__init__()
        torch.manual_seed(seed)
        self.user = torch.nn.Embedding(N_USERS, 4)
        self.item = torch.nn.Embedding(N_ITEMS, 4)
        self.column = column

    def forward(self, users, items):
        score = (self.user(users) * self.item(items)).sum(1) + 3.5
        return score.unsqueeze(1) if self.column else score


@dataclass
class World:
    data: pd.DataFrame
    train: pd.DataFrame
    test: pd.DataFrame


def random_world(seed=0, share=0.7):
    rng = np.random.default_rng(seed)
    pairs = rng.permutation(N_USERS * N_ITEMS)[:500]
    data = pd.DataFrame({
        "userId": pairs // N_ITEMS,
        "movieId": pairs % N_ITEMS,
        "rating": rng.integers(1, 11, 500) / 2,
        "timestamp": rng.permutation(500),
    })  # fmt: skip
    mask = rng.random(500) < share
    return World(data, data[mask].copy(), data[~mask].copy())


pytestmark = pytest.mark.shared


# The document makes tensors of pandas' own arrays, which are not writable.
@pytest.mark.filterwarnings("ignore:The given NumPy array is not writable")
@settings(max_examples=15)
@given(seed=st.integers(0, 1000), column=st.booleans())
def test_rating_errors_agree_with_the_document(document, seed, column):
    world, model = random_world(seed), Factors(seed, column=column)
    expected = document["evaluate_rating_prediction"](model, world.test, unsqueeze=column)
    got = evaluate_rating_prediction(model, world.test, unsqueeze=column)
    assert list(got) == ["MSE", "RMSE", "MAE"]
    assert got == pytest.approx(expected, rel=1e-5)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 1000), k=st.integers(1, 45), threshold=st.sampled_from([0.5, 2.0, 4.0, 5.0]))
def test_precision_and_recall_agree_with_the_document(document, seed, k, threshold):
    world, model = random_world(seed), Factors(seed)
    expected = document["precision_recall_at_k"](model, world.test, world.train, k, threshold)
    assert precision_recall_at_k(model, world.test, world.train, k, threshold) == pytest.approx(expected)


def test_the_catalogue_is_a_harder_choice():
    world, model = random_world(1, share=0.95), Factors(1)
    narrow = precision_recall_at_k(model, world.test, world.train, k=5, threshold=3.0)
    wide = precision_recall_at_k(model, world.test, world.train, k=5, threshold=3.0, candidates="catalogue")
    assert wide[1] <= narrow[1]
    n_items = world.data.movieId.nunique()
    counted = evaluate_ranking(
        model, world.test, world.train, 5, 3.0, metrics=["recall"], candidates="catalogue"
    )
    assert world.test.movieId.nunique() < n_items
    assert counted["recall@5"] == wide[1]


def mean_ndcg_and_ap(model, test, train, k, threshold):
    """Means over users of NDCG (gain 2^rating - 1) and AP by the formulas of the document."""
    values = {}
    items = np.unique(test.movieId)
    for user, rows in test.groupby("userId"):
        grades = dict(zip(rows.movieId, rows.rating, strict=True))
        relevant = {i: g for i, g in grades.items() if g >= threshold}
        if not relevant:
            continue
        seen = set(train[train.userId == user].movieId)
        candidates = [i for i in items if i not in seen]
        with torch.no_grad():
            scores = model(torch.tensor([user] * len(candidates)), torch.tensor(candidates)).numpy()
        top = [candidates[i] for i in np.argsort(-scores, kind="stable")[:k]]
        gain = [2 ** relevant.get(i, 0.0) - 1 for i in top]
        best = sorted((2**g - 1 for g in relevant.values()), reverse=True)[:k]
        dcg = sum(g / math.log2(p + 2) for p, g in enumerate(gain))
        ideal = sum(g / math.log2(p + 2) for p, g in enumerate(best))
        hits = [i in relevant for i in top]
        ap = sum(sum(hits[: p + 1]) / (p + 1) for p in range(len(hits)) if hits[p]) / min(k, len(relevant))
        values[user] = (dcg / ideal, ap)
    return np.mean(list(values.values()), axis=0)


@pytest.mark.parametrize("k", [1, 5, 10])
def test_ndcg_and_map_are_the_formulas(k):
    world, model = random_world(5), Factors(5)
    got = evaluate_ranking(model, world.test, world.train, k, 3.0)
    assert [got[f"ndcg@{k}"], got[f"map@{k}"]] == pytest.approx(
        mean_ndcg_and_ap(model, world.test, world.train, k, 3.0)
    )
    precision, recall = precision_recall_at_k(model, world.test, world.train, k, 3.0)
    assert (got[f"precision@{k}"], got[f"recall@{k}"]) == (precision, recall)


def test_the_random_and_the_temporal_split_run_as_written(blocks):
    world = random_world()
    for code in blocks[2:4]:
        names = {"np": np, "data": world.data}
        exec(code, names)  # noqa: S102 - the document's own code
        assert len(names["train"]) + len(names["val"]) == 500
        assert 350 <= len(names["train"]) <= 450


def test_the_leave_one_out_block_loses_the_user_column(blocks):
    """Since pandas 3 its groupby.apply leaves out the grouping column; splits.leave_last does the job."""
    world = random_world()
    names = {"data": world.data}
    if int(pd.__version__.split(".")[0]) < 3:
        pytest.skip("before pandas 3 the block works as written")
    exec(blocks[4], names)  # noqa: S102 - the document's own code
    assert "userId" not in names["test"].columns
    train, test = splits.leave_last(world.data)
    assert sorted(test.columns) == sorted(world.data.columns)
    assert len(names["test"]) == len(test) == world.data.userId.nunique()
    assert set(names["test"].index.get_level_values(1)) == set(test.index)
    assert len(train) + len(test) == 500


def test_the_model_is_left_in_the_mode_it_was_in():
    world, model = random_world(), Factors()
    model.train()
    evaluate_rating_prediction(model, world.test)
    precision_recall_at_k(model, world.test, world.train)
    assert model.training


def test_more_metrics_and_other_models():
    world = random_world()
    test = world.test.rename(columns={"userId": "uid", "movieId": "sku", "rating": "stars"})
    middle = float(test.stars.mean())
    got = evaluate_rating_prediction(
        lambda users, _: np.full(len(users), middle), test, metrics=["mse", "r2", "bias", "user_rmse"],
        columns={"user": "uid", "item": "sku", "rating": "stars"},
    )  # fmt: skip
    assert got["R2"] == pytest.approx(0.0, abs=1e-12)
    assert got["bias"] == pytest.approx(0.0, abs=1e-12)
    assert got["MSE"] == pytest.approx(test.stars.var(ddof=0))
    assert got["user_rmse"] > 0


def test_invalid_input_is_an_error():
    world, model = random_world(), Factors()
    with pytest.raises(InputError, match="threshold 9"):
        precision_recall_at_k(model, world.test, world.train, threshold=9.0)
    with pytest.raises(UnknownNameError):
        precision_recall_at_k(model, world.test, world.train, candidates="all")
    with pytest.raises(InputError, match="rating"):
        evaluate_rating_prediction(model, world.test.assign(rating=np.nan))
    with pytest.raises(InputError, match="scores for"):
        evaluate_rating_prediction(lambda *_: np.zeros(3), world.test)
