"""Rows of a model and ids of the data: the model has user_ids= and item_ids=, or row numbers."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix

import recsys
from recsys.errors import FileError, IdTypeError, InputError
from recsys.records.arrays import Ids, Interactions

N_USERS, N_ITEMS = 30, 40
RNG = np.random.default_rng(5)
U, V = RNG.normal(size=(N_USERS, 4)), RNG.normal(size=(N_ITEMS, 4))
TRAIN, TEST = (
    {u: sorted(RNG.choice(N_ITEMS, size, replace=False).tolist()) for u in range(N_USERS)} for size in (8, 5)
)
USER_IDS, ITEM_IDS = list(range(1, N_USERS + 1)), [f"item {n}" for n in RNG.permutation(N_ITEMS)]
METRICS = ["ndcg@10", "recall@5", "mrr", "auc"]


def by_id(data):
    return {USER_IDS[u]: [ITEM_IDS[i] for i in items] for u, items in data.items()}


class Predicts:
    def predict(self, users, items):
        return (U[users] * V[items]).sum(axis=1)


MODELS = {
    "factors": lambda: recsys.Factors(U, V),
    "scores": lambda: recsys.Scores(U @ V.T),
    "factor model": lambda: SimpleNamespace(user_factors=U, item_factors=V),
    "representations": lambda: SimpleNamespace(
        get_user_representations=lambda: (np.zeros(N_USERS), U),
        get_item_representations=lambda: (np.zeros(N_ITEMS), V),
    ),
    "predictions": Predicts,
    "function": lambda: Predicts().predict,
}


@pytest.mark.parametrize("name", MODELS)
def test_ids_of_rows_change_no_number(name):
    expected = recsys.evaluate(recsys.Factors(U, V), TEST, METRICS, seen=TRAIN)
    ids = {"user_ids": USER_IDS, "item_ids": np.array(ITEM_IDS)}
    model, seen = recsys.from_model(MODELS[name](), **ids), by_id(TRAIN)
    found = recsys.evaluate(model, by_id(TEST), METRICS, seen=seen)
    assert dict(found) == pytest.approx(dict(expected), abs=1e-12)
    assert found.counts == expected.counts
    rows = recsys.recommend(recsys.Factors(U, V), 3, seen=TRAIN).to_frame()
    lists = recsys.recommend(model, 3, seen=seen).to_frame()
    assert lists["user"].tolist() == [USER_IDS[u] for u in rows["user"]]
    assert lists["item"].tolist() == [ITEM_IDS[i] for i in rows["item"]]


@pytest.mark.filterwarnings("ignore:OpenBLAS is configured:RuntimeWarning")
def test_a_model_of_implicit_with_ids_from_1_in_one_call():
    als = pytest.importorskip("implicit.als")
    rng = np.random.default_rng(1)
    pairs = pd.DataFrame({"user_id": rng.integers(1, 61, 900), "item_id": rng.integers(1, 41, 900)})
    pairs = pairs.drop_duplicates()
    train, test = pairs.iloc[:600], pairs.iloc[600:]
    user_ids, user = np.unique(train["user_id"], return_inverse=True)
    item_ids, item = np.unique(train["item_id"], return_inverse=True)
    matrix = csr_matrix((np.ones(len(train), dtype=np.float32), (user, item)))
    model = als.AlternatingLeastSquares(factors=8, iterations=3, random_state=0, num_threads=1)
    model.fit(matrix, show_progress=False)
    named = recsys.from_model(model, user_ids=user_ids, item_ids=item_ids)
    found = recsys.evaluate(named, test, METRICS, seen=train)

    row_of_user = {name: row for row, name in enumerate(user_ids.tolist())}
    row_of_item = {name: row for row, name in enumerate(item_ids.tolist())}
    known = test[test["user_id"].isin(row_of_user) & test["item_id"].isin(row_of_item)]
    assert len(known) == len(test)
    truth = known.groupby("user_id")["item_id"].agg(lambda items: [row_of_item[i] for i in items])
    by_hand = {row_of_user[u]: items for u, items in truth.items()}
    expected = recsys.evaluate(
        recsys.Factors(model.user_factors, model.item_factors), by_hand, METRICS, seen=matrix
    )
    assert dict(found) == dict(expected)
    shifted = {u + 1 if u + 1 < len(user_ids) else 0: i for u, i in by_hand.items()}
    assert dict(recsys.evaluate(model, shifted, METRICS, seen=matrix)) != dict(expected)

    # What implicit itself recommends, filtered by its own training items, is the same lists: nothing is
    # filtered twice, whether the factors are ranked here or the lists of recommend() are read.
    items, scores = model.recommend(np.arange(len(user_ids)), matrix, N=10)
    lists = recsys.adapters.from_implicit(user_ids.tolist(), items, scores, item_ids=item_ids)
    for seen in (None, train):
        again = recsys.evaluate(lists, test, ["ndcg@10", "recall@5"], seen=seen)
        assert dict(again) == pytest.approx({m: found[m] for m in again}, abs=1e-6)


def test_a_recommender_that_filters_itself_is_not_filtered_again():
    class Filters:
        def recommend(self, user, k):
            return [i for i in range(N_ITEMS) if i not in TRAIN[user]][:k]

    plain = recsys.evaluate(Filters(), TEST, ["recall@5", "mrr@10"])
    counted = recsys.evaluate(Filters(), TEST, ["recall@5", "mrr@10"], seen=TRAIN)
    assert dict(plain) == dict(counted)
    assert counted.counts["seen_truth"] == sum(len(set(TRAIN[u]) & set(TEST[u])) for u in TEST)


def test_a_recommender_that_needs_more_says_so():
    class NeedsMatrix:
        def recommend(self, userid, user_items, N=10):  # noqa: N803
            return [userid, user_items, N]

    with pytest.raises(InputError, match=r"NeedsMatrix.recommend needs user_items besides"):
        recsys.evaluate(NeedsMatrix(), {0: [1]}, ["mrr@5"])


def test_every_verb_over_models_reads_their_ids():
    ids = {"user_ids": USER_IDS, "item_ids": ITEM_IDS}
    truth, seen = by_id(TEST), by_id(TRAIN)
    expected = recsys.evaluate(recsys.Factors(U, V), TEST, ["ndcg@10"], seen=TRAIN)["ndcg@10"]
    plain = {"a": recsys.Factors(U, V), "b": SimpleNamespace(user_factors=U, item_factors=V)}
    models = {name: recsys.from_model(model, **ids) for name, model in plain.items()}
    by_row = recsys.debias.evaluate(plain["a"], TEST, "recall@10", seen=TRAIN, train=TRAIN)
    named = recsys.debias.evaluate(models["a"], truth, "recall@10", seen=seen, train=seen)
    assert named["recall@10", "snips"].value == pytest.approx(by_row["recall@10", "snips"].value, abs=1e-12)
    race = recsys.race(models, truth, ["ndcg@10"], seen=seen)
    assert [e["ndcg@10"] for e in race.evaluations.values()] == [expected] * 2
    scorer = recsys.adapters.scorer("ndcg@10", seen=seen)
    assert scorer(models["b"], None, truth) == expected
    whole = recsys.evaluate(recsys.Factors(U, V), TEST, ["ndcg@10"])["ndcg@10"]
    assert recsys.Evaluator(["ndcg@10"]).update(models["a"], truth).result()["ndcg@10"] == whole
    options = {"train": seen, "seen": {}}
    alike = recsys.evaluate(models["a"], truth, ["overlap@5"], reference=models["b"], **options)
    assert alike["overlap@5"] == 1.0
    named = recsys.Scores(U @ V.T, **ids)
    alike = recsys.evaluate(models["a"], truth, ["overlap@5"], reference=named, **options)
    assert alike["overlap@5"] == 1.0


REFUSED = {
    "user of seen": ({"seen": {30: [1]}}, "user 30 of seen= does not exist in the model, which has 30 users"),
    "negative user of seen": ({"seen": {-1: [1], 3: [2]}}, "user -1 of seen="),
    "item of seen": ({"seen": {3: [40]}}, "item 40 of seen= .* ids 0 to 39.*give the model item_ids="),
    "user of eligible": ({"eligible": {0: [1], 31: [2]}}, "user 31 of eligible=.*give the model user_ids="),
    "item of eligible": ({"eligible": {0: [-2, 1]}}, "item -2 of eligible="),
    "item of exclude": ({"exclude": [1, 99]}, "item 99 of exclude="),
    "text in seen": ({"seen": {0: ["a"]}}, "item ids of seen= are strings .* Give the model item_ids="),
    "rows of seen": (
        {"seen": csr_matrix(np.eye(31, 40))},
        "seen came as a matrix of 31 users x 40 items and the model has 30 users x 40 items",
    ),
    "columns of eligible": (
        {"eligible": csr_matrix(np.eye(30, 41))},
        "30 users x 41 items and the model has 30 users",
    ),
    "pairs as lists": ({"seen": [[0, 1]] * 31}, r"seen came as 31 rows, one per user, .*\{user: \[items\]\}"),
}
ONLY_EVALUATED = {
    "user of train": ({"train": {30: [1]}}, "user 30 of train="),
    "item of train": ({"train": {0: [40]}}, "item 40 of train="),
    "matrix of train": (
        {"train": csr_matrix(np.eye(31, 41))},
        "train came as a matrix of 31 users x 41 items",
    ),
    "text in train": ({"train": {"ann": [1]}}, "user ids of train= are strings .* Give the model user_ids="),
}


@pytest.mark.parametrize("make", [lambda: recsys.Factors(U, V), lambda: recsys.Scores(U @ V.T)])
@pytest.mark.parametrize("name", [*REFUSED, *ONLY_EVALUATED])
def test_an_id_that_is_no_row_is_an_error_wherever_it_is(name, make):
    options, words = {**REFUSED, **ONLY_EVALUATED}[name]
    with pytest.raises(InputError, match=words):
        recsys.evaluate(make(), {0: [1]}, ["mrr"], **options)
    with pytest.raises(InputError, match=words):
        recsys.evaluate(make(), {0: [1], 1: [2]}, ["mrr"], stop_when=0.1, **options)
    if name in REFUSED:
        with pytest.raises(InputError, match=words):
            recsys.recommend(make(), 2, users=[0], **options)


@pytest.mark.parametrize("users", [[30], [-1], [0, 99]])
def test_users_to_recommend_to_are_rows(users):
    with pytest.raises(InputError, match="of users= does not exist in the model"):
        recsys.recommend(recsys.Factors(U, V), 2, users=users)


def test_a_truth_larger_than_the_model_is_told_by_its_shape():
    with pytest.raises(InputError, match="matrix of 30 users x 41 items and the model has 30 users"):
        recsys.evaluate(recsys.Factors(U, V), csr_matrix(np.eye(30, 41)), ["mrr"])
    smaller = csr_matrix(np.eye(20, 30))
    assert recsys.evaluate(recsys.Factors(U, V), smaller, ["mrr"], seen=smaller).counts["cases"] == 20


def test_only_ids_that_occur_must_be_rows():
    items = Ids(np.arange(N_ITEMS + 5), is_range=True)  # as a part of larger data has them
    part = Interactions(Ids(np.array([0, 2])), items, np.array([0, 1, 2]), np.array([3, 4], dtype=np.int32))
    options = {"seen": part, "train": part}
    found = recsys.evaluate(recsys.Factors(U, V), part, ["mrr"], **options)
    assert found == recsys.evaluate(recsys.Factors(U, V), {0: [3], 2: [4]}, ["mrr"], seen={0: [3], 2: [4]})
    beyond = Interactions(Ids(np.array([0])), items, np.array([0, 1]), np.array([N_ITEMS], dtype=np.int32))
    with pytest.raises(InputError, match="item 40 of the truth"):
        recsys.evaluate(recsys.Factors(U, V), beyond, ["mrr"])


def test_cases_are_rows_and_users_of_train_are_not():
    truth = pd.DataFrame({"case": [0, 1, 2], "user": [500, 500, 700], "item": [3, 4, 5]})
    train = {500: [1], 700: [2], 900: [39]}
    model = recsys.Factors(U, V)
    result = recsys.evaluate(model, truth, ["novelty@3"], train=train, seen={})
    assert (result.counts["cases"], result.cautions) == (3, ())
    with pytest.raises(InputError, match="item 40 of train="):
        recsys.evaluate(model, truth, ["novelty@3"], train={500: [40]}, seen={})


@pytest.mark.parametrize(
    ("ids", "words"),
    [
        ({"user_ids": USER_IDS}, "the rows of the Factors have user ids already.*out user_ids="),
        ({"item_ids": ITEM_IDS}, "the rows of the Factors have item ids already.*out item_ids="),
    ],
)
def test_ids_are_given_once(ids, words):
    named = recsys.Factors(U, V, user_ids=USER_IDS, item_ids=ITEM_IDS)
    with pytest.raises(InputError, match=words):
        recsys.from_model(named, **ids)


@pytest.mark.parametrize(
    ("ids", "words"),
    [
        ([*USER_IDS[1:], USER_IDS[1]], r"30 ids \(29 different\) for 30 rows"),
        (dict.fromkeys(USER_IDS), "came as dict; expected one id per row, in their order"),
        (set(USER_IDS), "came as set"),
        ("abc", "came as str"),
        (7, "came as int"),
        (np.ones((30, 2), dtype=int), r"came as ndarray of shape \(30, 2\)"),
    ],
)
@pytest.mark.parametrize("name", ["factors", "factor model", "predictions"])
def test_ids_come_one_per_row_in_order(name, ids, words):
    with pytest.raises(InputError, match=words):
        recsys.from_model(MODELS[name](), user_ids=ids, item_ids=ITEM_IDS)


@pytest.mark.parametrize("form", ["series", "index", "polars", "arrow", "tensor", "generator", "range"])
def test_ids_come_in_any_sequence(form):
    make = {
        "series": pd.Series,
        "index": pd.Index,
        "polars": lambda ids: pytest.importorskip("polars").Series(list(ids)),
        "arrow": lambda ids: pytest.importorskip("pyarrow").array(list(ids)),
        "tensor": lambda ids: pytest.importorskip("torch").tensor(list(ids)),
        "generator": iter,
        "range": lambda ids: ids,
    }[form]
    truth = {u + 1: [i + 1 for i in items] for u, items in TEST.items()}
    user_ids, item_ids = make(range(1, N_USERS + 1)), make(range(1, N_ITEMS + 1))
    found = recsys.evaluate(recsys.Factors(U, V, user_ids=user_ids, item_ids=item_ids), truth, METRICS)
    assert dict(found) == dict(recsys.evaluate(recsys.Factors(U, V), TEST, METRICS))


@pytest.mark.parametrize("table", ["seen", "train", "truth", "embeddings"])
def test_a_matrix_does_not_know_the_ids_of_a_model(table):
    matrix = csr_matrix(np.eye(N_USERS, N_ITEMS))
    options: dict[str, object] = {"seen": {}}
    options[table] = V if table == "embeddings" else matrix
    truth = options.pop("truth", {1: [2]})
    model = recsys.Factors(U, V, user_ids=USER_IDS, item_ids=range(1, N_ITEMS + 1))
    with pytest.raises(InputError, match=f"{table} has no (user|item) ids, it counts (30|40) .* have ids"):
        recsys.evaluate(model, truth, ["mrr"], **options)
    numbered = recsys.Factors(U, V, user_ids=range(N_USERS), item_ids=range(N_ITEMS))
    assert recsys.evaluate(numbered, matrix, ["mrr"], seen=csr_matrix(np.eye(N_USERS, N_ITEMS, 1)))["mrr"]


def test_a_reference_without_ids_must_fit_the_truth():
    with pytest.raises(InputError, match=r"user 77 of the truth .*Give the reference its ids"):
        recsys.evaluate({77: [1]}, {77: [1]}, ["overlap@3"], reference=recsys.Factors(U, V), catalogue=40)


def test_a_candidate_below_0_is_no_row():
    torch = pytest.importorskip("torch")

    def score(users, items):
        return torch.as_tensor((U[users.numpy()] * V[items.numpy()]).sum(axis=1))

    cases = {"negative -1": (0, 1, [2, -1]), "positive -3": (0, -3, [2]), "user -2": (-2, 1, [2])}
    for what, case in cases.items():
        with pytest.raises(InputError, match=f"the {what} of the test set is not a row of a model"):
            recsys.evaluate_candidates(score, [case])
    ready = recsys.evaluate_candidates(np.array([[0.9, 0.1]]), [(0, -3, [2])], ["hit@1"])
    assert ready["hit@1"] == 1.0


def test_an_audit_leaves_out_what_the_model_has_no_rows_for():
    train = pd.DataFrame({"user": [0, 1, 99, 0], "item": [1, 2, 3, 77]})
    test = pd.DataFrame({"user": [0, 1, 98], "item": [3, 4, 5]})
    report = recsys.audit(train, test, lists=recsys.Factors(U, V))
    assert "users_outside_the_model" in {finding.name for finding in report.findings}


UNFILTERED = "no seen items were given, so training items are ranked too"


def test_a_note_says_that_nothing_seen_was_left_out():
    model, scores = recsys.Factors(U, V), recsys.Scores(U @ V.T)
    assert str(recsys.evaluate(model, TEST, ["mrr"])).splitlines()[-2] == UNFILTERED
    assert f"{UNFILTERED}, unless their score is -inf" in str(recsys.evaluate(scores, TEST, ["mrr"]))
    assert UNFILTERED in recsys.evaluate(model, TEST, ["mrr"])._repr_html_()
    assert UNFILTERED in str(recsys.evaluate(model, TEST, ["mrr"], stop_when=0.2))


@pytest.mark.parametrize("options", [{"seen": TRAIN}, {"seen": {}}, {"eligible": TEST}, {"train": TRAIN}])
def test_the_note_is_silent_where_it_was_said(options):
    result = recsys.evaluate(recsys.Factors(U, V), TEST, ["mrr"], **options)
    assert UNFILTERED not in str(result)


def test_the_note_is_not_for_lists():
    assert UNFILTERED not in str(recsys.evaluate(TEST, TEST, ["mrr"]))
    model = SimpleNamespace(recommend=lambda user, k: TEST[user][:k])
    assert UNFILTERED not in str(recsys.evaluate(model, TEST, ["mrr@3"]))


def test_text_ids_of_a_model_without_ids_are_told_by_their_keyword():
    with pytest.raises(IdTypeError, match=r"user ids of the truth are strings .* Give the model user_ids="):
        recsys.evaluate(recsys.Factors(U, V), {"ann": [1]}, ["mrr"])


def test_row_numbers_as_text_are_row_numbers(tmp_path):
    """Files have ids as text, and so have then the rows that are only counted: any other id is an error."""
    np.save(tmp_path / "U.npy", U), np.save(tmp_path / "V.npy", V)
    saved = recsys.models.save_model(tmp_path / "m.npz", recsys.Factors(U, V))
    text = {str(u): [str(i) for i in items] for u, items in TEST.items()}
    expected = recsys.evaluate(recsys.Factors(U, V), TEST, METRICS)
    for model in (
        recsys.read_factors(tmp_path / "U.npy", tmp_path / "V.npy", ids="str"),
        recsys.models.load_model(saved, ids="str"),
    ):
        assert dict(recsys.evaluate(model, text, METRICS)) == dict(expected)
        for truth, words in (
            ({"30": ["1"]}, "user '30' of the truth does not exist in the model, which has 30 users"),
            (
                {"1": ["40"]},
                "item '40' of the truth .* keep the id of each row in the model's file, as an array",
            ),
        ):
            with pytest.raises(InputError, match=words):
                recsys.evaluate(model, truth, ["mrr"])
        with pytest.raises(InputError, match="item '40' of seen= does not exist"):
            recsys.evaluate(model, {"1": ["2"]}, ["mrr"], seen={"1": ["40"]})
        one_based = {str(u): ["1", "2"] for u in range(1, N_USERS)}
        cautions = recsys.evaluate(model, one_based, ["mrr"]).cautions
        assert [caution.code for caution in cautions] == ["ids_are_not_rows"]
        with_ids = recsys.from_model(model, user_ids=USER_IDS, item_ids=ITEM_IDS)
        named = recsys.evaluate(with_ids, by_id(TEST), METRICS)
        assert dict(named) == pytest.approx(dict(expected), abs=1e-12)


@pytest.mark.parametrize("kind", ["str", "int", "auto", None])
def test_ids_beside_a_matrix_are_those_of_its_rows(kind, tmp_path):
    np.savez(tmp_path / "U.npz", U=U, user_ids=np.array(USER_IDS))
    np.savez(tmp_path / "V.npz", V=V, item_ids=np.arange(1, N_ITEMS + 1).astype(str))
    model = recsys.read_factors(tmp_path / "U.npz", tmp_path / "V.npz", ids=kind)
    as_user, as_item = (str if kind == "str" else int), (int if kind == "int" else str)
    truth = {as_user(u + 1): [as_item(i + 1) for i in items] for u, items in TEST.items()}
    expected = recsys.evaluate(recsys.Factors(U, V), TEST, METRICS)
    assert dict(recsys.evaluate(model, truth, METRICS)) == pytest.approx(dict(expected), abs=1e-12)
    np.savez(tmp_path / "U.npz", U=U, user_ids=np.ones((N_USERS, 1)))
    with pytest.raises(FileError, match=r"U\.npz holds float64 values of shape \(30, 1\), not ids"):
        recsys.read_factors(tmp_path / "U.npz", tmp_path / "V.npz", ids=kind)
    np.savez(tmp_path / "U.npz", U=U, user_ids=np.ones(N_USERS))
    with pytest.raises(
        FileError, match=r"user_ids in .*U\.npz holds float64 values of shape \(30,\), not ids"
    ):
        recsys.read_factors(tmp_path / "U.npz", tmp_path / "V.npz", ids=kind)
