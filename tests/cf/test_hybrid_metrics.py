"""The hybrid metrics of document 000 against their formulas, and both evaluations with content."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import recsys
import recsys.cf.evaluation as cf_evaluation
from recsys.cf.evaluation.translation import EvaluationData
from recsys.cf.metrics import evaluate_hybrid_model
from recsys.errors import FloatIdWarning, InputError, UnknownNameError

SEEDS = st.integers(0, 2**32 - 1)


def world(seed, n_items=9):
    rng = np.random.default_rng(seed)
    rows = np.round(rng.standard_normal((n_items, 4)), 2) * (rng.random((n_items, 4)) < 0.8)
    rows[3] = 0.0
    rows[5, 1] = np.nan
    lists = {u: rng.choice(n_items + 2, int(rng.integers(1, 8)), replace=False).tolist() for u in range(5)}
    return rng, rows, lists


def embedded_rows(rows, items_shown):
    """The vectors of the items that have an embedding, and how many items have none."""
    vectors = [
        rows[i] for i in items_shown if i < len(rows) and not np.isnan(rows[i]).any() and rows[i].any()
    ]
    return vectors, len(items_shown) - len(vectors)


def cosine(a, b):
    return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))


def jaccard(a, b):
    return float(((a != 0) & (b != 0)).sum() / ((a != 0) | (b != 0)).sum())


def inverse_distance(a, b):
    return 1 / (1 + float(np.linalg.norm(a - b)))


KINDS = {"cosine": cosine, "jaccard": jaccard, "euclidean": inverse_distance}


def diversity_by_formula(vectors, similarity):
    pairs = [similarity(vectors[i], vectors[j]) for i in range(len(vectors)) for j in range(i)]
    return 1 - sum(pairs) / len(pairs) if pairs else 0.0


@given(SEEDS, st.sampled_from([*KINDS, "callable"]))
def test_diversity_is_one_minus_the_mean_similarity_of_pairs(seed, kind):
    _, rows, lists = world(seed)
    similarity = KINDS.get(kind, cosine)
    metric = cf_evaluation.DiversityMetric(similarity if kind == "callable" else kind)
    expected, missing = {}, 0
    for user, items_shown in lists.items():
        vectors, n_missing = embedded_rows(rows, items_shown)
        missing += n_missing
        expected[user] = diversity_by_formula(vectors, similarity)
        assert metric.compute(items_shown, rows) == pytest.approx(expected[user], abs=1e-9)
        assert metric.num_missing == n_missing
    batch = metric.compute_batch(lists, rows)
    values = list(expected.values())
    assert batch == pytest.approx(
        {"mean": np.mean(values), "std": np.std(values), "min": min(values), "max": max(values)}, abs=1e-9
    )
    assert (batch.num_users, batch.num_missing) == (5, missing)


def test_empty_lists_miss_nothing_whatever_the_last_call_missed():
    rows, profile = [[1.0, 0.0], [0.0, 1.0]], [1.0, 0.0]
    diversity, alignment = cf_evaluation.DiversityMetric(), cf_evaluation.SemanticAlignmentMetric()

    def miss_one():
        diversity.compute([0, 1, 7], rows)
        alignment.compute(profile, [0, 1, 7], rows)
        assert (diversity.num_missing, alignment.num_missing) == (1, 1)

    miss_one()
    batches = [
        diversity.compute_batch({1: [], 2: []}, rows),
        alignment.compute_batch({1: profile}, {1: []}, rows),
    ]
    assert (
        [batch.num_missing for batch in batches] == [diversity.num_missing, alignment.num_missing] == [0, 0]
    )
    miss_one()
    assert alignment.compute_batch({}, {1: [0]}, rows).num_missing == alignment.num_missing == 0
    assert diversity.compute([], rows) == alignment.compute(profile, [], rows) == 0.0
    assert (diversity.num_missing, alignment.num_missing) == (0, 0)


@given(SEEDS)
def test_a_mapping_leads_to_the_same_rows(seed):
    rng, rows, lists = world(seed)
    order = rng.permutation(len(rows))
    names = {f"i{item}": int(np.flatnonzero(order == item)[0]) for item in range(len(rows))}
    named = {user: [f"i{item}" for item in items_shown] for user, items_shown in lists.items()}
    assert cf_evaluation.DiversityMetric().compute_batch(named, rows[order], names) == pytest.approx(
        cf_evaluation.DiversityMetric().compute_batch(lists, rows)
    )
    profile = rng.standard_normal(4)
    for user in lists:
        assert cf_evaluation.compute_semantic_alignment(
            profile, named[user], rows[order], names
        ) == pytest.approx(cf_evaluation.compute_semantic_alignment(profile, lists[user], rows))


@given(SEEDS)
def test_alignment_is_the_mean_cosine_with_the_profile(seed):
    rng, rows, lists = world(seed)
    profiles = {u: rng.standard_normal(4) for u in range(4)} | {7: np.ones(4)}
    metric = cf_evaluation.SemanticAlignmentMetric()
    values = []
    for user, items_shown in lists.items():
        vectors, _ = embedded_rows(rows, items_shown)
        if user in profiles:
            expected = np.mean([cosine(profiles[user], row) for row in vectors]) if vectors else 0.0
            got = metric.compute(
                user_profile_emb=profiles[user], recommendations=items_shown, embeddings=rows
            )
            assert got == pytest.approx(expected, abs=1e-9)
            values += [expected] if vectors else []
    batch = metric.compute_batch(user_profiles=profiles, all_recommendations=lists, embeddings=rows)
    assert batch.num_users == len(values)
    if values:
        assert (batch["mean"], batch["std"]) == pytest.approx((np.mean(values), np.std(values)), abs=1e-9)
    assert metric.compute(np.zeros(4), [0, 1], rows) == 0.0


def test_short_and_empty_lists():
    rows = np.eye(3)
    diversity = cf_evaluation.DiversityMetric()
    assert (
        diversity.compute([], rows) == diversity.compute([1], rows) == diversity.compute([8, 9], rows) == 0.0
    )
    assert diversity.compute_batch({}, rows) == {"mean": 0.0, "std": 0.0, "min": 0.0, "max": 0.0}
    assert diversity.compute_batch({0: []}, rows)["mean"] == 0.0
    assert diversity.compute_batch({0: [0, 1], 1: []}, rows)["mean"] == 0.5
    assert cf_evaluation.SemanticAlignmentMetric().compute_batch({}, {0: [1]}, rows)["mean"] == 0.0
    assert cf_evaluation.NoveltyMetric().compute([], [1, 2], num_users=3) == 0.0
    assert cf_evaluation.compute_cold_start_coverage({0: []}, [1]) == 0.0
    assert cf_evaluation.SerendipityMetric().compute([1], set(), [2]) == 0.0


def test_a_cut_off_reads_the_first_items_only():
    novelty = cf_evaluation.NoveltyMetric()
    assert novelty.compute([0, 1], [1, 8], num_users=8, k=1) == 3.0
    assert cf_evaluation.NoveltyMetric(k=None).compute([0, 1], [1, 8], num_users=8) == 1.5
    assert cf_evaluation.SerendipityMetric(k=4).compute([1, 2], {1, 2}, [9], k=1) == 1.0


COUNTS = np.array([9, 0, 4, 50, 1, 5])


@pytest.mark.parametrize(
    "counts", [COUNTS, COUNTS.tolist(), pd.Series(COUNTS), dict(enumerate(COUNTS.tolist()))]
)
def test_cold_coverage_takes_arrays_series_and_dicts(counts):
    lists = {0: [1, 3, 0], 1: [2, 1]}
    metric = cf_evaluation.ColdStartCoverageMetric()
    assert metric.compute(lists, counts) == pytest.approx(2 / 3)
    assert metric.compute(lists, counts, cold_threshold=2) == 0.5
    assert metric.compute(lists, counts, cold_threshold=0) == 0.0


def test_cold_coverage_of_items_with_names():
    counts = pd.Series({"a": 0, "b": 100, "c": 1})
    assert cf_evaluation.compute_cold_start_coverage({"u": ["a", "b"]}, counts) == 0.5


def test_novelty_counts_nobody_as_one_user():
    metric = cf_evaluation.NoveltyMetric(k=3)
    expected = np.mean([math.log2(64 / p) for p in (9, 1, 4)])
    assert metric.compute([0, 1, 2, 3], COUNTS, num_users=64) == pytest.approx(expected)
    batch = metric.compute_batch({0: [0, 1, 2], 1: [3]}, COUNTS, 64)
    assert batch["min"] == pytest.approx(math.log2(64 / 50))
    with pytest.raises(TypeError, match="num_users"):
        metric.compute([0], COUNTS)
    with pytest.warns(recsys.errors.RecsysWarning, match="logarithm"):
        metric.compute([0, 1], np.log1p(COUNTS), num_users=16)


def test_serendipity_discounts_items_of_the_baselines():
    metric = cf_evaluation.SerendipityMetric(k=4)
    assert metric.compute([1, 2, 3, 4], {1, 2, 9}, [1, 8]) == 0.25
    baseline_lists = {0: [1, 8], 1: [2, 1], 2: [7, 1], 3: [2, 6]}
    assert metric.compute([1, 2, 3, 4], {1, 2}, baseline_lists) == pytest.approx((0.25 + 0.5) / 4)
    batch = metric.compute_batch({0: [1, 2], 1: [3], 2: [5]}, {0: {1, 2}, 1: {3}}, [1])
    assert batch.num_users == 2
    assert batch["mean"] == pytest.approx((0.25 + 0.25) / 2)


def test_collections_name_missing_arguments():
    rows, lists = np.eye(4), {0: [0, 1], 1: [2, 3]}
    with pytest.raises(InputError, match="semantic_alignment needs user_profiles"):
        cf_evaluation.HybridMetricCollection([cf_evaluation.SemanticAlignmentMetric()]).evaluate_all(
            lists, embeddings=rows
        )
    with pytest.raises(TypeError, match="item_count"):
        cf_evaluation.HybridMetricCollection([]).evaluate_all(lists, item_count=[1])
    metrics = [
        cf_evaluation.DiversityMetric(),
        cf_evaluation.ColdStartCoverageMetric(),
        cf_evaluation.NoveltyMetric(2),
        cf_evaluation.SerendipityMetric(2),
    ]
    values = cf_evaluation.HybridMetricCollection(metrics).evaluate_all(
        lists, embeddings=rows, item_counts=[1, 9, 9, 9], item_popularity=[1, 9, 9, 9], num_users=9,
        ground_truth={0: {0}, 1: {2}}, baseline_recommendations=[0],
    )  # fmt: skip
    assert set(values) == {
        "diversity", "diversity_std", "cold_start_coverage", "novelty@2", "novelty@2_std",
        "serendipity@2", "serendipity@2_std",
    }  # fmt: skip
    assert values["serendipity@2"] == 0.25


def test_invalid_embeddings_are_errors():
    with pytest.raises(InputError, match="infinite"):
        cf_evaluation.DiversityMetric().compute([0, 1], [[np.inf, 0.0], [0.0, 1.0]])
    with pytest.raises(InputError, match="matrix"):
        cf_evaluation.DiversityMetric().compute([0, 1], [1.0, 2.0])
    with pytest.raises(InputError, match="item_to_idx"):
        cf_evaluation.DiversityMetric().compute(["a"], np.eye(2))
    with pytest.raises(InputError, match="3 numbers"):
        cf_evaluation.SemanticAlignmentMetric().compute(np.ones(3), [0, 1], np.eye(2))
    with pytest.warns(FloatIdWarning):
        assert cf_evaluation.DiversityMetric().compute([0.0, 1.0], np.eye(2)) == 1.0
    with pytest.raises(UnknownNameError):
        cf_evaluation.DiversityMetric("manhattan")


def hybrid_world():
    rng = np.random.default_rng(2)
    items = rng.standard_normal((80, 6))
    users = rng.standard_normal((50, 6))
    rows = items @ rng.standard_normal((6, 8)) + rng.standard_normal((80, 8))
    train = {u: set(rng.choice(70, 8, replace=False).tolist()) for u in range(50)}
    items[70:] *= 0.01  # nobody took them
    test = {
        u: set(rng.choice(sorted(set(range(80)) - train[u]), 3, replace=False).tolist()) for u in range(50)
    }
    counts = np.bincount([i for user_items in train.values() for i in user_items], minlength=80)
    return users, items, rows, EvaluationData(test, train, counts)


def test_the_hybrid_evaluation_is_its_parts():
    users, items, rows, data = hybrid_world()
    got = evaluate_hybrid_model(users, items, rows, data)
    evaluator = cf_evaluation.ModelEvaluator(users, items, [10])
    parts = evaluator.evaluate(data.test_data, data.user_pos_train)
    lists = evaluator.generate_recommendations(range(50), data.user_pos_train, 10)
    profiles = cf_evaluation.compute_all_user_profiles(data, rows)
    assert got["recall@10"] == parts["recall@10"]
    assert got["coverage"] == parts["coverage"]
    assert got["diversity@10"] == pytest.approx(
        cf_evaluation.DiversityMetric().compute_batch(lists, rows)["mean"]
    )
    aligned = cf_evaluation.SemanticAlignmentMetric().compute_batch(profiles, lists, rows)["mean"]
    assert got["semantic_alignment@10"] == pytest.approx(aligned)
    cold = cf_evaluation.compute_cold_start_coverage(lists, data.item_popularity)
    assert got["cold_start_coverage"] == pytest.approx(cold)
    assert got == pytest.approx(
        evaluate_hybrid_model(
            users, items, rows, data.test_data, profiles, user_pos_train=data.user_pos_train,
            item_counts=data.item_popularity,
        )
    )  # fmt: skip


def test_reranking_raises_alignment_and_reaches_cold_items():
    users, items, rows, data = hybrid_world()
    pure = evaluate_hybrid_model(users, items, rows, data, cold_threshold=1)
    last = pure
    for alpha in (0.7, 0.4, 0.0):
        mixed = cf_evaluation.evaluate_with_reranking(users, items, rows, data, alpha=alpha, cold_threshold=1)
        assert mixed["semantic_alignment@10"] > last["semantic_alignment@10"]
        assert list(mixed) == list(pure)
        last = mixed
    assert last["cold_start_coverage"] > pure["cold_start_coverage"]
    spread = cf_evaluation.evaluate_with_reranking(users, items, rows, data, alpha=0.0, diversity=0.7)
    assert spread["diversity@10"] > last["diversity@10"]
    alone = cf_evaluation.evaluate_with_reranking(users, items, rows, data, alpha=1.0, cold_threshold=1)
    assert alone == pytest.approx(pure)


def test_items_without_an_embedding_keep_the_models_score():
    users, items, rows, data = hybrid_world()
    half = {item: item for item in range(40)}
    mixed = cf_evaluation.evaluate_with_reranking(users, items, rows, data, alpha=0.5, item_to_idx=half)
    assert 0 < mixed["recall@10"] < 1
    with pytest.raises(InputError, match="profile"):
        evaluate_hybrid_model(users, items, np.zeros((80, 8)), data)


@pytest.mark.parametrize("nothing", [[], {}, {7: []}])
def test_without_a_baseline_every_hit_is_a_surprise(nothing):
    metric = cf_evaluation.SerendipityMetric(k=4)
    assert metric.compute([1, 2], {1}, nothing) == 0.25
    assert metric.compute_batch({7: [1, 2]}, {7: {1}}, nothing)["mean"] == 0.25


def test_profiles_may_be_rows_by_user():
    rng = np.random.default_rng(0)
    users, items, rows = rng.normal(size=(5, 3)), rng.normal(size=(8, 3)), rng.normal(size=(8, 4))
    profiles = rng.normal(size=(5, 4))
    history = {"user_pos_train": {u: [u] for u in range(5)}}
    truth = {u: [u + 1] for u in range(5)}
    by_row = evaluate_hybrid_model(users, items, rows, truth, profiles, **history)
    assert by_row == evaluate_hybrid_model(users, items, rows, truth, dict(enumerate(profiles)), **history)


def test_a_collection_takes_custom_metrics():
    rows, lists = np.eye(4), {0: [0, 1], 1: [2, 3]}

    class Half(cf_evaluation.DiversityMetric):
        """Derived from a metric of the package."""

        def compute_batch(self, all_recommendations, embeddings):
            result = super().compute_batch(all_recommendations, embeddings)
            return {name: value / 2 for name, value in result.items()}

    class Length(cf_evaluation.HybridMetric):
        """The mean length of a list; takes nothing but the lists."""

        name = "length"

        def compute(self, all_recommendations):
            return sum(map(len, all_recommendations.values())) / len(all_recommendations)

    class Everything(cf_evaluation.HybridMetric):
        name = "keywords"

        def compute(self, **arguments):
            return len(arguments)

    result = cf_evaluation.HybridMetricCollection([Half(), Length(), Everything()]).evaluate_all(
        lists, embeddings=rows, item_counts=[1, 1, 1, 1]
    )
    assert result == {"diversity": 0.5, "diversity_std": 0.0, "length": 2.0, "keywords": 4.0}


def test_a_strength_of_diversification_below_zero_is_refused():
    users, items = np.eye(3), np.eye(3)
    with pytest.raises(InputError, match="diversity=-1"):
        cf_evaluation.evaluate_with_reranking(
            users, items, np.eye(3), {0: {1}}, user_pos_train={0: {0}}, diversity=-1
        )
