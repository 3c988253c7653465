"""Factors and score blocks give the same Hits as the full ranking written out as lists."""

from __future__ import annotations

import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import recsys
from recsys.cf.evaluation import ModelEvaluator
from recsys.errors import InputError, RecsysError, TieWarning

METRICS = ["ndcg@3", "recall@2", "map@5", "mrr", "hit@1", "auc", "average_rank", "percentile_rank", "err"]
TIES = ["by_id", "by_id_desc", "best", "worst", "expected"]
BACKENDS = ["reference", *(["native"] if recsys.show_backends().native else [])]


def world(seed: int, n_users: int = 7, n_items: int = 11, n_factors: int = 2):
    """Small whole-number factors, so that many scores tie."""
    rng = np.random.default_rng(seed)
    users = rng.integers(-2, 3, (n_users, n_factors)).astype(np.float32)
    items = rng.integers(-2, 3, (n_items, n_factors)).astype(np.float32)
    truth = {
        u: {int(i): int(rng.integers(1, 4)) for i in rng.choice(n_items, 3, replace=False)}
        for u in range(n_users)
    }
    seen = {u: [int(i) for i in rng.choice(n_items, 2, replace=False)] for u in range(n_users)}
    return users, items, truth, seen


def full_lists(users, items, seen, bias=0.0):
    scores = users.astype(np.float64) @ items.astype(np.float64).T + bias
    return {
        u: [(int(i), float(scores[u, i])) for i in range(len(items)) if i not in seen.get(u, ())]
        for u in range(len(users))
    }


@pytest.mark.filterwarnings("ignore::recsys.errors.TieWarning")
@pytest.mark.parametrize("ties", TIES)
@given(seed=st.integers(0, 10_000))
def test_counting_equals_the_list_of_all_candidates(ties, seed):
    users, items, truth, seen = world(seed)
    lists = full_lists(users, items, seen)
    rules = {"ties": ties, "seen_truth": "miss", "max_grade": 3}
    by_list = recsys.evaluate(lists, truth, METRICS, conventions=rules, full_ranking=True)
    for source in (
        recsys.Factors(users, items),
        recsys.Factors(users.astype(np.float64), np.asfortranarray(items)),
        recsys.Scores(users.astype(np.float64) @ items.astype(np.float64).T),
    ):
        counted = recsys.evaluate(source, truth, METRICS, seen=seen, conventions=rules)
        assert dict(counted) == pytest.approx(dict(by_list), abs=1e-12, nan_ok=True)


@pytest.mark.filterwarnings("ignore::recsys.errors.TieWarning")
@pytest.mark.parametrize("backend", BACKENDS)
def test_ids_in_any_order_and_biases(backend):
    users, items, truth, seen = world(3)
    names = [f"i{n}" for n in np.random.default_rng(0).permutation(len(items))]
    people = [f"u{n}" for n in range(len(users))]
    bias = np.arange(len(items)) % 3 * 0.5
    model = recsys.Factors(users, items, user_ids=people, item_ids=names, item_bias=bias)
    named_truth = {people[u]: {names[i]: g for i, g in row.items()} for u, row in truth.items()}
    known = {people[u]: [names[i] for i in row] for u, row in seen.items()}
    lists = {
        people[u]: [(names[i], s) for i, s in row] for u, row in full_lists(users, items, seen, bias).items()
    }
    ours = recsys.evaluate(model, named_truth, METRICS, seen=known, backend=backend)
    theirs = recsys.evaluate(lists, named_truth, METRICS, full_ranking=True)
    assert dict(ours) == pytest.approx(dict(theirs), abs=1e-12)


@pytest.mark.filterwarnings("ignore::recsys.errors.TieWarning")
def test_never_and_eligible_choose_the_candidates():
    users, items, truth, seen = world(5)
    never, eligible = [0, 1], {u: list(range(2 + u % 2, 11)) for u in range(len(users))}
    lists = {
        u: [(i, s) for i, s in row if i not in never and i in eligible[u]]
        for u, row in full_lists(users, items, seen).items()
    }
    for source in (recsys.Factors(users, items), recsys.Scores(users @ items.T)):
        ours = recsys.evaluate(source, truth, METRICS, seen=seen, exclude=never, eligible=eligible)
        theirs = recsys.evaluate(lists, truth, METRICS, full_ranking=True)
        assert dict(ours) == pytest.approx(dict(theirs), abs=1e-12)


def test_recommend_gives_the_lists_that_counting_saw():
    users, items, truth, seen = world(8)
    model = recsys.Factors(users, items)
    lists = recsys.recommend(model, 4, seen=seen)
    again = recsys.recommend(recsys.Scores(users.astype(float) @ items.astype(float).T), 4, seen=seen)
    assert lists.codes.tolist() == again.codes.tolist()
    assert lists.scores.tolist() == again.scores.tolist()
    with pytest.warns(recsys.errors.TieWarning):
        cut = recsys.evaluate(lists, truth, ["recall@4"])
    with pytest.warns(recsys.errors.TieWarning):
        counted = recsys.evaluate(model, truth, ["recall@4"], seen=seen)
    assert cut["recall@4"] == counted["recall@4"]


def test_mrr_is_over_the_whole_ranking():
    model = recsys.Factors([[1.0]], [[float(-i)] for i in range(100)])
    assert recsys.evaluate(model, {0: [99]}, ["mrr", "recall@5"])["mrr"] == 1 / 100


def test_a_user_without_factors_has_no_list():
    model = recsys.Factors([[1.0]], [[1.0], [2.0]], user_ids=["a"], item_ids=["x", "y"])
    result = recsys.evaluate(model, {"a": ["y"], "b": ["y"]}, ["recall@1"])
    assert result["recall@1"] == 0.5
    assert result.counts["without_list"] == 1


def test_an_item_the_model_never_saw_is_a_miss_and_counted():
    model = recsys.Factors([[1.0]], [[1.0], [2.0]], user_ids=["a"], item_ids=["x", "y"])
    result = recsys.evaluate(model, {"a": ["y", "new"]}, ["recall@1"])
    assert (result["recall@1"], result.counts["unknown_items"]) == (0.5, 1)
    dropped = recsys.evaluate(model, {"a": ["y", "new"]}, ["recall@1"], conventions={"unknown_items": "drop"})
    assert dropped["recall@1"] == 1.0


def test_a_relevant_item_that_was_seen_is_a_miss_and_counted():
    model = recsys.Factors([[1.0]], [[1.0], [2.0], [3.0]])
    result = recsys.evaluate(model, {0: [1, 2]}, ["recall@1", "mrr"], seen={0: [2]})
    assert (result["recall@1"], result.counts["seen_truth"]) == (0.5, 1)
    dropped = recsys.evaluate(
        model, {0: [1, 2]}, ["recall@1"], seen={0: [2]}, conventions={"seen_truth": "drop"}
    )
    assert dropped["recall@1"] == 1.0
    with pytest.raises(InputError, match="seen by the user before"):
        recsys.evaluate(model, {0: [2]}, ["mrr"], seen={0: [2]}, conventions={"seen_truth": "error"})


def test_implicit_like_models_are_recognised():
    model = SimpleNamespace(
        user_factors=np.eye(2, dtype=np.float32), item_factors=np.eye(2, dtype=np.float32)
    )
    assert recsys.evaluate(model, {0: [0], 1: [1]}, ["hit@1"])["hit@1"] == 1.0


def test_a_model_that_predicts_pairs():
    model = SimpleNamespace(predict=lambda users, items: (users == items).astype(float))
    source = recsys.from_model(model, n_users=3, n_items=3, batch=2)
    assert recsys.evaluate(source, {u: [u] for u in range(3)}, ["hit@1"])["hit@1"] == 1.0


def test_a_function_of_blocks_is_called_only_for_the_users_in_the_truth():
    scored: list[int] = []

    def block(rows):
        scored.extend(rows.tolist())
        return np.eye(5)[rows] + np.arange(5) / 100

    source = recsys.Scores(block, n_users=5, n_items=5)
    assert recsys.evaluate(source, {1: [1], 3: [0]}, ["hit@1"])["hit@1"] == 0.5
    assert scored == [1, 3]


def test_memory_mapped_factors(tmp_path):
    users, items, truth, seen = world(2)
    np.save(tmp_path / "u.npy", users)
    np.save(tmp_path / "v.npy", items)
    mapped = recsys.Factors(
        np.load(tmp_path / "u.npy", mmap_mode="r"), np.load(tmp_path / "v.npy", mmap_mode="r")
    )
    rules = {"ties": "expected"}
    in_memory = recsys.evaluate(recsys.Factors(users, items), truth, METRICS, seen=seen, conventions=rules)
    assert recsys.evaluate(mapped, truth, METRICS, seen=seen, conventions=rules) == in_memory


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("threads", [1, 2, 8])
def test_threads_and_backends_give_the_same_bytes(threads, backend):
    rng = np.random.default_rng(0)
    users, items = (
        rng.standard_normal((300, 16), dtype=np.float32),
        rng.standard_normal((500, 16), dtype=np.float32),
    )
    truth = {u: [int(i) for i in rng.choice(500, 5, replace=False)] for u in range(300)}
    one = recsys.evaluate(recsys.Factors(users, items), truth, METRICS[:-1], backend="reference")
    many = recsys.evaluate(
        recsys.Factors(users, items), truth, METRICS[:-1], backend=backend, threads=threads
    )
    assert one == many


BAD = {
    "shapes": (lambda: recsys.Factors(np.ones((2, 3)), np.ones((2, 4))), "do not fit"),
    "one dimension": (lambda: recsys.Factors(np.ones(3), np.ones((2, 3))), "must be a matrix"),
    "index outside": (
        lambda: recsys.evaluate(recsys.Factors(np.ones((1, 1)), np.ones((4, 1))), {0: [9]}, ["mrr"]),
        "item 9 of the truth does not exist in the model, which has 4 items, ids 0 to 3.*item_ids=",
    ),
    "index outside one row": (
        lambda: recsys.evaluate(recsys.Factors(np.ones((1, 1)), np.ones((2, 1))), {3: [1]}, ["mrr"]),
        "user 3 of the truth does not exist in the model, which has 1 user, id 0",
    ),
    "strings without ids": (
        lambda: recsys.evaluate(recsys.Factors(np.ones((1, 1)), np.ones((2, 1))), {0: ["a"]}, ["mrr"]),
        "item_ids=",
    ),
    "ids twice": (
        lambda: recsys.Factors(np.ones((1, 1)), np.ones((2, 1)), item_ids=[1, 1]),
        "one id of its own",
    ),
    "nan factor": (
        lambda: recsys.evaluate(recsys.Factors([[np.nan]], np.ones((2, 1))), {0: [1]}, ["mrr"]),
        "row 0",
    ),
    "nan score": (lambda: recsys.evaluate(recsys.Scores([[0.1, np.nan]]), {0: [1]}, ["mrr"]), "nan"),
    "inf score": (lambda: recsys.evaluate(recsys.Scores([[0.1, np.inf]]), {0: [1]}, ["mrr"]), "inf"),
    "function without shape": (lambda: recsys.Scores(lambda rows: rows), "n_users="),
    "model of nothing": (
        lambda: recsys.from_model(object(), n_users=1, n_items=1),
        "neither factors nor predict",
    ),
    "model without size": (lambda: recsys.from_model(SimpleNamespace(predict=max)), "n_users="),
    "nothing recommended": (lambda: recsys.recommend(object(), 5), "neither factors nor predict"),
    "recommended without size": (
        lambda: recsys.recommend(SimpleNamespace(predict=max), 5),
        r"Wrap it: recsys\.from_model\(model, n_users=",
    ),
    "k of nothing": (lambda: recsys.recommend(recsys.Factors([[1.0]], [[1.0]]), 0), "positive"),
    "candidates of lists": (lambda: recsys.evaluate({0: [1]}, {0: [1]}, ["mrr"], exclude=[1]), "ready lists"),
}


@pytest.mark.parametrize("make", [lambda m, **ids: recsys.Factors(m, np.eye(3), **ids), recsys.Scores])
def test_a_user_the_model_does_not_know_gets_no_list_of_another(make):
    model = make([[1.0, 2.0, 3.0], [9.0, 8.0, 7.0]], user_ids=["b", "d"], item_ids=["x", "y", "z"])
    lists = recsys.recommend(model, 1, users=["d", "b"])
    assert (lists.cases.values.tolist(), lists.codes.tolist()) == (["b", "d"], [2, 0])
    with pytest.raises(InputError, match="'a' is unknown to the model"):
        recsys.recommend(model, 1, users=["a", "b", "d"])


@pytest.mark.parametrize("name", BAD)
def test_bad_sources_say_what_to_do(name):
    call, words = BAD[name]
    with pytest.raises(RecsysError, match=words):
        call()


def test_minus_infinity_is_no_candidate():
    result = recsys.evaluate(recsys.Scores([[-np.inf, 0.5, 0.1]]), {0: [0, 2]}, ["recall@3", "average_rank"])
    assert result["recall@3"] == 0.5
    assert result["average_rank"] == 2.0


def test_progress_is_reported():
    steps: list[tuple[int, int]] = []
    recsys.evaluate(
        recsys.Scores(np.eye(3)), {0: [0]}, ["mrr"], progress=lambda done, total: steps.append((done, total))
    )
    assert steps[-1] == (1, 1)


def test_the_items_of_a_model_are_the_catalogue():
    model = recsys.Factors([[1.0]], [[3.0], [2.0], [1.0], [0.0]])
    assert recsys.evaluate(model, {0: [0]}, ["accuracy@1"])["accuracy@1"] == 1.0
    with pytest.raises(InputError, match="catalogue"):
        recsys.evaluate(model, {0: [0]}, ["accuracy@1"], catalogue=9)


def test_a_batch_of_users_on_one_side_only_is_counted():
    evaluator = recsys.Evaluator(["recall@1"])
    evaluator.update({1: ["a"]}, {1: ["a"]}).update({2: ["a"]}, {3: ["a"]})
    result = evaluator.result()
    assert (result.counts["without_truth"], result.counts["without_list"]) == (1, 1)
    assert result["recall@1"] == 0.5


def pairs_world(n_users=40, n_items=60, seed=5):
    rng = np.random.default_rng(seed)
    users, items = rng.standard_normal((n_users, 8)), rng.standard_normal((n_items, 8))
    truth = {u: set(rng.choice(n_items, 4, replace=False).tolist()) for u in range(n_users)}
    return users.astype(np.float32), items.astype(np.float32), truth


def test_a_torch_module_is_a_source():
    torch = pytest.importorskip("torch")
    users, items, truth = pairs_world()

    class Product(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.users = torch.nn.Embedding.from_pretrained(torch.from_numpy(users))
            self.items = torch.nn.Embedding.from_pretrained(torch.from_numpy(items))
            self.drop = torch.nn.Dropout(0.9)  # must be off while evaluating

        def forward(self, user, item):
            return (self.drop(self.users(user)) * self.items(item)).sum(dim=1)

    model = Product().train()
    found = recsys.evaluate(recsys.from_model(model, n_users=40, n_items=60), truth, ["ndcg@10", "mrr"])
    expected = recsys.evaluate(recsys.Factors(users, items), truth, ["ndcg@10", "mrr"])
    assert model.training
    assert dict(found) == dict(expected)


@pytest.mark.filterwarnings("ignore:OpenBLAS is configured:RuntimeWarning")
def test_a_fitted_model_of_implicit_is_a_source():
    als = pytest.importorskip("implicit.als")
    from scipy.sparse import csr_matrix

    rng = np.random.default_rng(0)
    train = csr_matrix((rng.random((50, 30)) < 0.2).astype(np.float32))
    model = als.AlternatingLeastSquares(factors=8, iterations=2, random_state=0, num_threads=1)
    model.fit(train, show_progress=False)
    truth = {u: [int(i) for i in rng.choice(30, 3, replace=False)] for u in range(50)}
    found = recsys.evaluate(model, truth, ["ndcg@5"], seen=train, conventions={"seen_truth": "drop"})
    items, _ = model.recommend(np.arange(50), train, N=5)
    kept = {u: [i for i in relevant if not train[u, i]] for u, relevant in truth.items()}
    lists = {u: row.tolist() for u, row in enumerate(items)}
    assert found["ndcg@5"] == pytest.approx(recsys.evaluate(lists, kept, ["ndcg@5"])["ndcg@5"], abs=1e-12)


@pytest.mark.parametrize("form", ["items", "pairs", "arrays"])
@pytest.mark.parametrize("name", ["k", "n", "N", "anything"])
def test_recommend_is_called_for_the_users_of_the_truth(form, name):
    answer = {
        "items": lambda k: [3, 1, 2][:k],
        "pairs": lambda k: [(3, 0.9), (1, 0.5), (2, 0.1)][:k],
        "arrays": lambda k: (np.array([3, 1, 2])[:k], np.array([0.9, 0.5, 0.1])[:k]),
    }[form]
    calls = []

    def recommend(_, user, how_many):
        calls.append((user, how_many))
        return answer(how_many)

    makers = {
        "k": lambda self, user, k: recommend(self, user, k),  # noqa: PLW0108
        "n": lambda self, user, n: recommend(self, user, n),  # noqa: PLW0108
        "N": lambda self, user, N: recommend(self, user, N),  # noqa: N803, PLW0108
        "anything": recommend,
    }
    model = type("Model", (), {"recommend": makers[name]})()
    result = recsys.evaluate(model, {7: [1], 9: [4]}, ["mrr@2", "hit@1"])
    assert calls == [(7, 2), (9, 2)]
    assert dict(result) == {"mrr@2": 0.25, "hit@1": 0.0}


def test_a_recommender_needs_a_length_and_gives_lists():
    class Odd:
        def recommend(self, user, k):
            return k if user else 0

    with pytest.raises(recsys.errors.CutoffError, match="cut-off"):
        recsys.evaluate(Odd(), {1: [2]}, ["mrr"])
    with pytest.raises(InputError, match="gave int for user 1"):
        recsys.evaluate(Odd(), {1: [2]}, ["mrr@3"])


@pytest.mark.parametrize("ties", ["by_id", "by_id_desc", "best", "worst", "expected"])
def test_places_beyond_the_cut_offs_move_nothing(ties, monkeypatch):
    from recsys.evaluation import reading
    from recsys.metrics.registry import METRICS

    rng = np.random.default_rng(1)
    users, items = (rng.integers(-2, 3, (n, 4)).astype(np.float32) for n in (60, 200))  # many exact ties
    truth = {
        u: dict(zip(rng.choice(200, 5, replace=False).tolist(), rng.integers(0, 4, 5).tolist(), strict=True))
        for u in range(60)
    }
    cut = [
        f"{name}@7"
        for name, metric in METRICS.items()
        if metric.at_k != "never"
        and not metric.needs
        and (ties != "expected" or metric.tied.ties != "refuse")
        if ties not in ("best", "worst") or metric.tied.tie_order != "unknown"
    ]
    assert len(cut) > 10
    how = {"conventions": {"ties": ties, "max_grade": 3}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        short = recsys.evaluate(recsys.Factors(users, items), truth, cut, **how)
        monkeypatch.setattr(reading, "max_place_read", lambda _: None)
        assert recsys.evaluate(recsys.Factors(users, items), truth, cut, **how) == short


@pytest.mark.filterwarnings("ignore::recsys.errors.TieWarning")
def test_the_row_of_a_bad_factor_is_that_of_the_matrix():
    users, items, _, _ = world(1)
    users[4, 1] = np.nan
    with pytest.raises(InputError, match="in row 4"):
        recsys.evaluate(recsys.Factors(users, items), {2: [1], 4: [2]}, ["mrr"])
    assert recsys.evaluate(recsys.Factors(users, items), {2: [1]}, ["mrr"])["mrr"] > 0


@pytest.mark.filterwarnings("ignore::recsys.errors.TieWarning")
def test_tensors_of_a_model_are_factors_and_scores():
    torch = pytest.importorskip("torch")
    users, items, truth, seen = world(2)
    expected = dict(recsys.evaluate(recsys.Factors(users, items), truth, METRICS, seen=seen))
    scores = torch.tensor(users) @ torch.tensor(items).T
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        pair = [torch.nn.Parameter(torch.tensor(x).to(dtype)) for x in (users, items)]
        block = scores.to(dtype).requires_grad_()
        for source in (
            recsys.Factors(*pair),
            recsys.Scores(block),
            recsys.Scores(lambda rows, block=block: block[rows], n_users=7, n_items=11),
        ):
            assert dict(recsys.evaluate(source, truth, METRICS, seen=seen)) == expected


@pytest.mark.parametrize("dtype", [np.bool_, np.uint8, np.int8, np.uint64, np.float16, np.float64])
def test_scores_of_any_type_are_listed_best_first(dtype):
    low = 0 if np.dtype(dtype).kind in "ub" else -128
    scores = np.array([[low, 1, 0, 1, low, 0]]).astype(dtype)
    order = sorted(range(6), key=lambda i: (-float(scores[0, i]), i))
    lists = recsys.recommend(recsys.Scores(scores), 6)
    assert lists.items.values[lists.codes].tolist() == order


@pytest.mark.parametrize("scores", [np.ones((2, 3)) * 1j, np.full((2, 3), "a"), np.full((2, 3), None)])
def test_scores_that_are_no_numbers_are_refused(scores):
    with pytest.raises(InputError, match="expected numbers"):
        recsys.evaluate(recsys.Scores(scores), {0: [1]}, ["mrr"])


@pytest.mark.filterwarnings("ignore::recsys.errors.TieWarning")
@pytest.mark.parametrize("ties", TIES)
def test_many_judged_items_are_counted_as_few_are(ties):
    """Few are compared with all scores, many are looked up in their order."""
    rng = np.random.default_rng(3)
    scores = rng.integers(0, 9, (6, 40)).astype(np.float32)
    scores[rng.random(scores.shape) < 0.1] = -np.inf
    truth = {u: {int(i): 1 for i in rng.permutation(40)[: 3 + 6 * u]} for u in range(6)}
    lists = {u: [(i, float(s)) for i, s in enumerate(row) if s > -np.inf] for u, row in enumerate(scores)}
    source = recsys.Scores(scores[:, ::-1], item_ids=np.arange(40)[::-1])
    found = recsys.evaluate(source, truth, METRICS, conventions={"ties": ties})
    expected = recsys.evaluate(lists, truth, METRICS, conventions={"ties": ties}, full_ranking=True)
    assert dict(found) == pytest.approx(dict(expected), abs=1e-12)


@pytest.mark.filterwarnings("ignore::recsys.errors.TieWarning")
def test_models_that_represent_users_and_items_are_factors_with_biases():
    users, items, truth, _ = world(5)
    bias = np.arange(11) / 7
    model = SimpleNamespace(
        get_user_representations=lambda: (np.arange(7) * 1.0, users),
        get_item_representations=lambda: (bias, items),
        predict=lambda _users, _items: pytest.fail("the factors say it all"),
    )
    expected = recsys.evaluate(recsys.Factors(users, items, item_bias=bias), truth, METRICS)
    assert dict(recsys.evaluate(recsys.from_model(model), truth, METRICS)) == dict(expected)


@pytest.mark.filterwarnings("ignore::recsys.errors.TieWarning")
@pytest.mark.parametrize("batch", [1, 11, 30, 1 << 16])
def test_pairs_are_scored_in_batches_of_any_size(batch):
    users, items, truth, seen = world(6)
    sizes = []

    def predict(user_rows, item_rows):
        sizes.append(len(user_rows))
        return (users[user_rows] * items[item_rows]).sum(axis=1)

    source = recsys.from_model(predict, n_users=7, n_items=11, batch=batch)
    expected = recsys.evaluate(recsys.Factors(users, items), truth, METRICS, seen=seen)
    assert dict(recsys.evaluate(source, truth, METRICS, seen=seen)) == dict(expected)
    assert max(sizes) <= batch


@pytest.mark.filterwarnings("ignore::recsys.errors.TieWarning")
def test_items_never_recommended_are_named_by_their_ids():
    users, items, truth, _ = world(7)
    for call in (
        lambda never: recsys.evaluate(recsys.Factors(users, items), truth, ["mrr"], exclude=never),
        lambda never: recsys.recommend(recsys.Factors(users, items), 3, exclude=never),
    ):
        with pytest.raises(recsys.errors.IdTypeError, match="bool"):
            call(np.ones(11, dtype=bool))


@pytest.mark.parametrize("empty", ["users", "items"])
def test_a_model_without_users_or_items_ranks_nothing(empty):
    users, items, _, _ = world(8)
    ids = {"users": "user_ids", "items": "item_ids"}[empty]
    matrices = {"users": users, "items": items, empty: np.zeros((0, 2), np.float32)}
    source = recsys.Factors(matrices["users"], matrices["items"], **{ids: []})
    assert recsys.evaluate(source, {0: [1]}, ["mrr"])["mrr"] == 0


def test_a_model_that_gives_too_few_scores_is_named():
    source = recsys.from_model(lambda _users, _items: np.zeros(3), n_users=2, n_items=5)
    with pytest.raises(InputError, match="gave 3 scores for 5 pairs of user and item"):
        recsys.evaluate(source, {0: [1]}, ["mrr"])


def test_biases_and_recommendations_may_be_tensors():
    torch = pytest.importorskip("torch")
    users, items, truth, _ = world(9)
    users += np.random.default_rng(9).random(users.shape, dtype=np.float32)  # no ties
    bias = torch.arange(11.0).requires_grad_()
    mine = recsys.Factors(users, items, item_bias=bias)
    theirs = recsys.Factors(users, items, item_bias=np.arange(11.0))
    assert dict(recsys.evaluate(mine, truth, ["ndcg@3"])) == dict(recsys.evaluate(theirs, truth, ["ndcg@3"]))
    model = SimpleNamespace(recommend=lambda user, n: torch.tensor([3, 1, user])[:n])
    assert recsys.evaluate(model, {0: [0], 2: [2]}, ["mrr@3"])["mrr@3"] == pytest.approx(1 / 3)


def _warn_by_evaluate() -> None:
    recsys.evaluate(recsys.Scores([[1, 1, 0.5]]), {0: [0]}, ["mrr"])


def _warn_by_model_evaluator() -> None:
    ModelEvaluator(np.ones((2, 2)), np.ones((3, 2)), k_values=[1]).evaluate({0: {1}, 1: {2}})


@pytest.mark.parametrize("call", [_warn_by_evaluate, _warn_by_model_evaluator])
def test_a_warning_points_at_the_line_outside_the_library(call):
    with pytest.warns(TieWarning) as caught:
        call()
    assert [warning.filename for warning in caught] == [__file__]


def test_items_are_excluded_and_lists_are_full_rankings():
    model, truth = recsys.Factors([[1.0]], [[3.0], [2.0], [1.0]]), {0: {2}}
    assert dict(recsys.evaluate(model, truth, ["mrr"], exclude=[0])) == {"mrr": 0.5}
    assert recsys.recommend(model, 1, exclude=[0]).codes.tolist() == [1]
    assert recsys.evaluate({0: [2, 0, 1]}, truth, ["auc"], full_ranking=True, catalogue=3)["auc"] == 1.0


def test_a_case_has_one_user_on_both_sides():
    lists = pd.DataFrame({"case": [1], "user": [1], "item": ["a"], "score": [1.0]})
    truth = pd.DataFrame({"case": [1], "user": [2], "item": ["a"]})
    with pytest.raises(
        InputError, match="a case belongs to one user in the lists and to another in the truth"
    ):
        recsys.evaluate(lists, truth, "mrr")


@pytest.mark.parametrize("batch", [0, -1, 1.5, True])
def test_a_batch_is_a_number_of_pairs(batch):
    with pytest.raises(InputError, match=f"batch={batch} is not a number of pairs") as caught:
        recsys.from_model(lambda users, items: users - items, n_users=2, n_items=3, batch=batch)
    assert "Use batch=1024, or leave it out." in str(caught.value)


def test_a_blocked_scan_tells_how_far_it_is():
    told = []
    model = recsys.Factors(np.eye(2), np.eye(2))
    result = recsys.evaluate(
        model, {0: [0], 1: [0]}, "mrr@1", memory="8GB", progress=lambda done, all_: told.append((done, all_))
    )
    assert result["mrr@1"] == 0.5
    assert told == [(1, 1)]


def test_users_may_come_in_any_order():
    rng = np.random.default_rng(5)
    model = recsys.Factors(rng.normal(size=(6, 3)), rng.normal(size=(9, 3)))
    truth = {user: [user, user + 2] for user in range(6)}
    ordered = recsys.evaluate(model, truth, ["ndcg", "recall@3"], seen={})
    reversed_ = recsys.evaluate(model, dict(reversed(truth.items())), ["ndcg", "recall@3"], seen={})
    pd.testing.assert_frame_equal(reversed_.per_user.sort_index(), ordered.per_user.sort_index())
