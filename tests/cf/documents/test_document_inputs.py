"""Inputs that users of the documents pass: arrays, tensors, Series, sparse matrices, empty lists.

Each input is one that the code of a document takes, or a simple way to make the one it shows. The expected
values are worked out by hand or by the formula of the document; the container must not change them.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import recsys.cf.evaluation as cf_evaluation
from recsys.cf.evaluation import recommender_evaluator
from recsys.errors import InputError, RecsysError, RecsysWarning
from recsys.stats import SmallSampleWarning, ZeroVarianceWarning

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

RANKED_ITEMS, RELEVANT_ITEMS = [1, 5, 3, 8, 2], [3, 8, 10]
FORMS = [list, tuple, np.array, pd.Series, torch.tensor]
TRAIN = {u: {u + 1, u + 9} for u in range(6)}
TEST = {u: {u, u + 7} for u in range(5)}
N_ITEMS = 30


def table():
    return pd.DataFrame(
        [(u, i) for u, items in TEST.items() for i in sorted(items)], columns=["u_idx", "i_idx"]
    )


def factors():
    rng = np.random.default_rng(0)
    return rng.normal(size=(6, 4)), rng.normal(size=(N_ITEMS, 4))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("name", "value"), [("recall_at_k", 2 / 3), ("precision_at_k", 0.2), ("map_at_k", (1 / 3 + 2 / 4) / 3)]
)
def test_one_list_in_any_container(form, name, value):
    function = getattr(cf_evaluation, name)
    assert function(form(RANKED_ITEMS), set(RELEVANT_ITEMS), 10) == pytest.approx(value)
    assert function(RANKED_ITEMS, form(RELEVANT_ITEMS), 10) == pytest.approx(value)


@pytest.mark.parametrize("form", [list, np.array, pd.Series, torch.tensor, set])
def test_items_of_each_user_in_any_container(form):
    history = {u: form(sorted(items)) for u, items in TRAIN.items()}
    expected_results = cf_evaluation.evaluate_model(*factors(), TEST, TRAIN)
    assert cf_evaluation.evaluate_model(
        *factors(), {u: form(sorted(i)) for u, i in TEST.items()}, history
    ) == {
        **expected_results,
        "evaluation_time_seconds": pytest.approx(0, abs=60),
    }
    popular = cf_evaluation.PopularityBaseline(np.arange(N_ITEMS))
    lists = popular.recommend_batch(np.arange(6), 3, {0: form([29, 28]), 1: form([])})
    assert (lists[0], lists[1], lists[5]) == ([27, 26, 25], [29, 28, 27], [29, 28, 27])
    assert popular.recommend(0, 1, form([29])) == [28]


def test_a_grouped_series_is_a_dict_of_users():
    grouped = table().groupby("u_idx")["i_idx"].apply(set)
    expected = cf_evaluation.evaluate_model(*factors(), table(), TRAIN)["ndcg@10"]
    assert cf_evaluation.evaluate_model(*factors(), grouped, pd.Series(TRAIN))["ndcg@10"] == expected
    matrix = sparse.lil_matrix((6, N_ITEMS))
    for user, items in TRAIN.items():
        matrix[user, sorted(items)] = 1
    popular = cf_evaluation.PopularityBaseline(np.arange(N_ITEMS))
    assert popular.recommend_batch([0, 1], 3, matrix.tocsr()) == popular.recommend_batch([0, 1], 3, TRAIN)
    assert popular.recommend_batch([0, 1], 3, pd.Series(TRAIN)) == popular.recommend_batch([0, 1], 3, TRAIN)


def test_lists_by_user_may_be_a_series_too():
    lists, relevant = {7: [1, 5, 3], 2: [2, 5, 8]}, {7: {5}, 2: {9}}
    rows = np.random.default_rng(0).normal(size=(10, 3))
    series, truth = pd.Series(lists), pd.Series(relevant)
    for compute in (
        lambda given, _: cf_evaluation.coverage(given, 10),
        lambda given, _: cf_evaluation.DiversityMetric().compute_batch(given, rows),
        lambda given, _: cf_evaluation.ColdStartCoverageMetric().compute(given, np.arange(10)),
        lambda given, relevant: cf_evaluation.SerendipityMetric().compute_batch(given, relevant, [9]),
        lambda given, relevant: recommender_evaluator.mean_average_precision_at_k(given, relevant, 3),
        lambda given, _: (
            recommender_evaluator.catalog_coverage(given, 10, 2),
            recommender_evaluator.gini_coefficient(given, 2),
        ),
    ):
        assert compute(series, truth) == compute(lists, relevant)
    profiles = {7: rows[1], 2: rows[4]}
    expected = cf_evaluation.SemanticAlignmentMetric().compute_batch(profiles, lists, rows)
    for given in (pd.Series(profiles), pd.DataFrame(profiles).T):
        assert cf_evaluation.SemanticAlignmentMetric().compute_batch(given, series, rows) == expected
    with pytest.raises(InputError, match="test_data came as list"):
        recommender_evaluator.RecommenderEvaluator([2]).evaluate(
            cf_evaluation.PopularityBaseline([1, 2]), [1, 2], 10
        )


def test_users_and_places_may_be_tensors():
    evaluator = cf_evaluation.ModelEvaluator(*(nn.Parameter(torch.tensor(side)) for side in factors()))
    expected_results = cf_evaluation.ModelEvaluator(*factors()).generate_recommendations([0, 1], TRAIN, 3)
    assert evaluator.generate_recommendations(torch.arange(2), TRAIN, 3) == expected_results
    assert evaluator._get_top_k(torch.tensor([0.1, 0.5, 0.3]), 1, torch.tensor([1])).tolist() == [2]


def test_users_who_have_everything_are_shown_nothing():
    everything = {user: set(range(N_ITEMS)) for user in range(6)}
    with pytest.warns(RecsysWarning, match="were seen by their users before"):
        both = (
            cf_evaluation.evaluate_model(*factors(), TEST, everything),
            cf_evaluation.evaluate_baseline_popularity(TEST, np.ones(N_ITEMS), everything),
        )
    for results in both:
        assert "truth_already_seen" in [one.code for one in results.cautions]
        assert "truth_already_seen" in str(results)
        assert (results["coverage"], results["recall@10"], results["mrr"]) == (0.0, 0.0, 0.0)
        assert results["num_users_evaluated"] == len(TEST)


def test_coverage_does_not_need_an_order():
    lists = {0: {1, 5, 3}, 1: torch.tensor([2, 5, 8])}
    assert cf_evaluation.coverage(lists, 10) == 0.5
    assert cf_evaluation.compute_cold_start_coverage(lists, [9, 0, 9, 9, 1, 1, 9, 9, 9], 5) == pytest.approx(
        2 / 3
    )
    assert cf_evaluation.compute_cold_start_coverage(lists, {}) == 0.0  # no items, no cold ones


def test_a_mapping_of_items_may_be_a_series():
    rows, lists = np.random.default_rng(0).normal(size=(4, 3)), {0: [10, 12], 1: [13, 11]}
    mapping = {10: 3, 11: 0, 12: 2, 13: 1}
    metric = cf_evaluation.DiversityMetric()
    expected = metric.compute_batch(lists, rows, mapping)
    assert expected["min"] > 0
    assert metric.compute_batch(lists, rows, pd.Series(mapping)) == expected
    with pytest.raises(InputError, match="columns item, count"):
        cf_evaluation.compute_cold_start_coverage(lists, pd.DataFrame({"item": [10], "count": [1]}))


@pytest.mark.parametrize("kind", ["grad", "bfloat16"])
def test_embeddings_straight_from_a_network(kind):
    expected_results = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    rows = nn.Parameter(expected_results) if kind == "grad" else expected_results.bfloat16()
    assert cf_evaluation.compute_diversity_bert(torch.tensor([0, 1, 2]), rows) == pytest.approx(2 / 3)
    assert cf_evaluation.compute_semantic_alignment(rows[0], [0, 1], rows) == pytest.approx(0.5)
    batch = cf_evaluation.SemanticAlignmentMetric().compute_batch({7: rows[0]}, {7: [0, 1]}, rows)
    assert batch["mean"] == pytest.approx(0.5)
    assert cf_evaluation.compute_all_user_profiles({7: [0, 1]}, rows)[7].tolist() == [0.5, 0.5]
    assert cf_evaluation.compute_item_similarity(rows).tolist() == [[1, 0, 1], [0, 1, 0], [1, 0, 1]]
    pairs = [(rows[0, 0] * 4, 5.0), (rows[0, 1], 1.0)]  # numbers that are still part of a graph
    assert cf_evaluation.compute_metrics({1: pairs}, ["rmse"])["rmse"] == 1.0


# Document 001


def test_relevance_may_be_a_series_by_item():
    grades = {3: 1, 8: 2}
    for name in ("dcg_at_k", "ndcg_at_k"):
        expected = getattr(recommender_evaluator, name)(RANKED_ITEMS, grades, 5)
        assert expected > 0
        assert getattr(recommender_evaluator, name)(RANKED_ITEMS, pd.Series(grades), 5) == expected
    assert recommender_evaluator.mean_ndcg_at_k({0: RANKED_ITEMS}, {0: pd.Series(grades)}, 5) == expected


def test_diversity_reads_rows_and_refuses_items_that_have_none():
    rows = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    half = 1 - math.sqrt(0.5)
    expected = (1 + half + half) / 3
    for given in (rows, sparse.csr_matrix(rows), torch.tensor(rows), rows.tolist()):
        assert recommender_evaluator.intra_list_diversity([1, 2, 3], given) == pytest.approx(expected)
    assert (
        recommender_evaluator.intra_list_diversity(np.array([0, 1]), rows) == 1.0
    )  # a vector of zeros has similarity 0, as in sklearn
    for wrong in ([1, 9], [-1, 1], [1, 2, 99]):
        with pytest.raises(InputError, match="has no features"):
            recommender_evaluator.intra_list_diversity(wrong, rows)


def test_a_model_that_shows_nothing_covers_nothing():
    class Silent:
        def recommend(self, user, n):  # noqa: ARG002
            return []

    result = recommender_evaluator.RecommenderEvaluator([5]).evaluate(Silent(), {0: {1}}, 10)
    assert result == dict.fromkeys(["precision@5", "recall@5", "f1@5", "coverage@5", "gini@5"], 0.0)


def test_a_baseline_of_the_package_is_a_model_too():
    """Its parameter is `k` where the example of document 001 has `n`."""
    popular = cf_evaluation.PopularityBaseline(np.arange(50))
    evaluator = recommender_evaluator.RecommenderEvaluator([2])
    assert evaluator.evaluate(popular, {0: {49, 3}, np.int64(1): {48}}, 50)["recall@2"] == 0.75
    assert evaluator.failures == {}


def test_functions_of_both_documents_take_the_keywords_of_either():
    for name in ("precision_at_k", "recall_at_k"):
        own = getattr(recommender_evaluator, name)(RANKED_ITEMS, set(RELEVANT_ITEMS), 3)
        assert (
            getattr(cf_evaluation, name)(recommended=RANKED_ITEMS, relevant=set(RELEVANT_ITEMS), k=3)
            == own
            == pytest.approx(1 / 3)
        )
        assert (
            getattr(cf_evaluation, name)(recommended=RANKED_ITEMS, relevant=set(RELEVANT_ITEMS), k=0) == 0.0
        )
    graded = cf_evaluation.ndcg_at_k(recommended=[1, 3], relevance_scores={3: 2.0}, k=2)
    assert graded == pytest.approx(1 / math.log2(3))


@pytest.mark.parametrize("form", ["pairs", "items", "two tensors", "rows"])
def test_recommendations_in_tensors(form):
    class Network:
        def recommend(self, user, n):  # noqa: ARG002
            scores, items = torch.arange(50.0).topk(n)
            return {
                "pairs": list(zip(items, scores, strict=True)),
                "items": items,
                "two tensors": (items, scores),
                "rows": torch.cat([items[:, None], scores[:, None]], dim=1),
            }[form]

    assert (
        recommender_evaluator.RecommenderEvaluator([2]).evaluate(Network(), {0: {48, 3}}, 50)["recall@2"]
        == 0.5
    )


@pytest.mark.parametrize("values", [[0.5, 0.5, 0.5], [0.3]])
def test_the_bootstrap_of_equal_values_is_that_value(values):
    with pytest.warns((ZeroVarianceWarning, SmallSampleWarning)):
        assert cf_evaluation.bootstrap_confidence_interval(values) == (values[0], values[0])


# Document 000: comparison


def test_values_by_user_are_paired_by_user_however_they_come():
    rng = np.random.default_rng(3)
    base = pd.Series(rng.random(40), index=range(40))
    better = base + 0.1 + 0.02 * rng.standard_normal(40)
    turned = better[::-1]  # the same users in another order
    tables = []
    for mine, other in ((better, base), (turned, base), (turned.to_dict(), base.to_dict())):
        comparator = cf_evaluation.ModelComparator()
        comparator.add_model_results("als", {"recall@10": 0.6}, {"recall@10": mine})
        comparator.add_baseline_results("popularity", {"recall@10": 0.5}, {"recall@10": other})
        tables.append(comparator.get_comparison_table()["recall@10 vs popularity"].iloc[0])
    assert tables == ["+20.0% ***"] * 3
    comparator = cf_evaluation.ModelComparator()
    with pytest.raises(AttributeError, match="items"):
        comparator.add_model_results("als", {"recall@10": 0.6}, [0.1, 0.2])


# Document 002


class Squeezed(nn.Module):
    """Ends in .squeeze(), so that the score of a single pair has no dimension."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.users, self.items = nn.Embedding(5, 3), nn.Embedding(40, 3)

    def forward(self, users, items):
        return (self.users(users) * self.items(items)).sum(1, keepdim=True).squeeze()


def test_a_last_batch_of_one_pair_is_scored():
    cases = [(torch.tensor(2), 3, torch.arange(10, 19))]
    model = Squeezed()
    whole = cf_evaluation.NCFEvaluator(model, cases).evaluate()
    assert cf_evaluation.NCFEvaluator(model, cases, batch_size=3).evaluate() == whole
    alone = pd.DataFrame({"userId": [2], "movieId": [3], "rating": [4.0]})
    error = model(torch.tensor([2]), torch.tensor([3])).item() - 4.0
    assert cf_evaluation.evaluate_rating_prediction(model, alone)["MAE"] == pytest.approx(
        abs(error), rel=1e-6
    )


def test_training_goes_on_after_an_evaluation():
    class Caching(Squeezed):
        """Caches what it computes from its items, as graph models do."""

        cached = None

        def forward(self, users, items):
            if self.cached is None:
                self.cached = torch.tanh(self.items.weight)
            return (self.users(users) @ self.cached.T).gather(1, items[:, None]).squeeze(1)

    model = Caching()
    cf_evaluation.NCFEvaluator(model, [(0, 3, [1, 2]), (1, 2, [5])]).evaluate()
    model(torch.tensor([1]), torch.tensor([2])).sum().backward()
    assert model.users.weight.grad is not None


def test_a_model_that_only_predicts_is_evaluated():
    class Predicts:
        def predict(self, users, items):
            assert isinstance(users, np.ndarray)
            return items.astype(float).tolist()

    hits, ndcgs = cf_evaluation.NCFEvaluator(Predicts(), [(0, 9, [1, 2]), (1, 2, [5, 3])], top_k=1).evaluate()
    assert (hits, ndcgs) == ([1.0, 0.0], [1.0, 0.0])


# Document 003


@pytest.mark.parametrize(
    "form",
    [
        lambda pairs: zip(*zip(*pairs, strict=True), strict=True),
        iter,
        np.array,
        torch.tensor,
        pd.DataFrame,
        lambda pairs: [tuple(map(torch.tensor, pair)) for pair in pairs],
    ],
    ids=["zip", "iterator", "array", "tensor", "table", "tensors"],
)
def test_pairs_in_any_container(form):
    pairs = [(4.5, 5.0), (4.0, 2.0), (1.0, 4.0)]
    expected = {"precision": 0.5, "recall": 0.5, "rmse": math.sqrt((0.25 + 4 + 9) / 3)}
    assert cf_evaluation.compute_metrics({1: form(pairs)}, list(expected), k=2) == pytest.approx(expected)
    assert cf_evaluation.compute_user_metrics({1: form(pairs)}, list(expected), k=2)[1] == pytest.approx(
        expected
    )
    if form is not iter:
        series = pd.Series({1: list(pairs)})
        assert cf_evaluation.compute_metrics(series, list(expected), k=2) == pytest.approx(expected)


def test_a_table_of_predictions_is_an_error_with_a_hint():
    with pytest.raises(InputError, match=r"recsys\.evaluate_ratings"):
        cf_evaluation.compute_metrics(pd.DataFrame({"user": [1], "prediction": [2.0], "rating": [3.0]}))


# Document 004


@pytest.fixture
def ratings():
    rng = np.random.default_rng(0)
    pairs = rng.permutation(5 * 40)[:120]
    frame = pd.DataFrame(
        {"userId": pairs // 40, "movieId": pairs % 40, "rating": rng.integers(1, 11, 120) / 2}
    )
    return frame[:80], frame[80:]


def test_the_columns_of_the_document_are_preferred(ratings):
    train, test = ratings
    model = Squeezed()
    expected = (
        cf_evaluation.evaluate_rating_prediction(model, test),
        cf_evaluation.precision_recall_at_k(model, test, train),
    )
    more = test.assign(user="ann", user_id="x", item=0, product=1, label=0, target=9.0, prediction=1.0)
    assert cf_evaluation.evaluate_rating_prediction(model, more) == expected[0]
    assert cf_evaluation.precision_recall_at_k(model, more, train.assign(user_id="x", item=3)) == expected[1]


def test_the_training_table_only_says_who_had_what(ratings):
    train, test = ratings
    model = Squeezed()
    expected = cf_evaluation.precision_recall_at_k(model, test, train)
    for seen in (train[["userId", "movieId"]], train.assign(rating=np.nan)):
        assert cf_evaluation.precision_recall_at_k(model, test, seen) == expected
    free = cf_evaluation.precision_recall_at_k(model, test, train[:0])
    assert free == cf_evaluation.precision_recall_at_k(model, test, train.assign(movieId=10_000))
    assert free == cf_evaluation.precision_recall_at_k(model, test, train[:0], candidates="catalogue")


def test_something_around_a_module_is_called_as_the_document_calls_it(ratings):
    train, test = ratings

    class Around:
        """Not a module itself: it has eval() and can be called, which is all the document needs."""

        def __init__(self):
            self.inner = Squeezed().train()

        def eval(self):
            self.inner.eval()

        def __call__(self, users, items):
            assert not self.inner.training
            return self.inner(users, items)

    around = Around()
    inner = around.inner
    errors = cf_evaluation.evaluate_rating_prediction(around, test)
    assert errors == cf_evaluation.evaluate_rating_prediction(inner, test)
    result = cf_evaluation.precision_recall_at_k(around, test, train)
    assert result == cf_evaluation.precision_recall_at_k(inner, test, train)


def test_a_network_cannot_take_texts_and_says_so(ratings):
    _, test = ratings
    with pytest.raises(RecsysError, match="ids are strings"):
        cf_evaluation.evaluate_rating_prediction(Squeezed(), test.assign(userId="ann"))
