"""recsys.cf.evaluation beyond the examples of document 000: edge cases, files, baselines, charts."""

from __future__ import annotations

import json
import math
import pickle
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import recsys
import recsys.cf.evaluation as cf_evaluation
from recsys.cf.evaluation.loading import load_embeddings
from recsys.errors import (
    ColumnError,
    CutoffError,
    FileError,
    IdTypeError,
    InputError,
    RecsysError,
    SwappedFactorsWarning,
    TieWarning,
    UnknownNameError,
)

ROOT = Path(__file__).resolve().parents[2]
LISTS = st.lists(st.integers(0, 9), max_size=8, unique=True)
TRUTHS = st.sets(st.integers(0, 9), max_size=6)
FUNCTIONS = {
    "recall": cf_evaluation.recall_at_k,
    "precision": cf_evaluation.precision_at_k,
    "ndcg": cf_evaluation.ndcg_at_k,
    "map": cf_evaluation.map_at_k,
    "hit": cf_evaluation.hit_rate,
}


def formula_value(name, ranked_items, relevant, k):
    """The document's formulas; average precision over min(k, relevant)."""
    if not relevant or not ranked_items:
        return 0.0
    hits = [item in relevant for item in ranked_items[:k]]
    if name == "recall":
        return sum(hits) / len(relevant)
    if name == "precision":
        return sum(hits) / k
    if name == "hit":
        return float(any(hits))
    if name == "map":
        precisions = [sum(hits[: i + 1]) / (i + 1) for i, hit in enumerate(hits) if hit]
        return sum(precisions) / min(k, len(relevant))
    ideal = sum(1 / math.log2(i + 2) for i in range(min(k, len(relevant))))
    return sum(hit / math.log2(i + 2) for i, hit in enumerate(hits)) / ideal


@given(LISTS, TRUTHS, st.integers(1, 12))
def test_the_functions_and_the_classes_are_the_formulas(ranked_items, relevant, k):
    for name, function in FUNCTIONS.items():
        expected = formula_value(name, ranked_items, relevant, k)
        assert function(ranked_items, relevant, k) == pytest.approx(expected, abs=1e-12)
        metric = cf_evaluation.MetricFactory.create("hit_rate" if name == "hit" else name, k=3)
        assert metric.compute(np.array(ranked_items, dtype=np.int64), relevant, k=k) == pytest.approx(
            expected
        )
    first = next((1 / (i + 1) for i, item in enumerate(ranked_items) if item in relevant), 0.0)
    assert cf_evaluation.mrr(ranked_items, relevant) == pytest.approx(first)


def test_graded_relevance():
    graded = {3: 1.0, 8: 3.0, 10: 2.0}
    dcg = 1 / math.log2(4) + 3 / math.log2(5)
    ideal = 3 + 2 / math.log2(3) + 1 / math.log2(4)
    assert cf_evaluation.ndcg_at_k([1, 5, 3, 8, 2], graded, 10) == pytest.approx(dcg / ideal)
    assert cf_evaluation.recall_at_k([1, 5, 3, 8, 2], graded, 10) == pytest.approx(2 / 3)


@pytest.mark.parametrize("function", [*FUNCTIONS.values(), cf_evaluation.mrr])
def test_nothing_to_score_is_zero_and_nonsense_is_an_error(function):
    assert function([], {1}) == function([1], set()) == function(None, {1}) == function([1], None) == 0.0
    with pytest.raises(InputError, match="order"):
        function({1, 2}, {1})
    with pytest.raises(InputError):
        function("ab", {"a"})
    with pytest.raises(IdTypeError):
        function([1, 2], {"1"})
    if function is not cf_evaluation.mrr:
        for k in (0, -1, 2.5, True):
            with pytest.raises(CutoffError):
                function([1], {1}, k)


def test_coverage_and_the_factory():
    assert cf_evaluation.coverage({0: [1, 2], 1: [2]}, num_total_items=4) == 0.5
    assert cf_evaluation.coverage({}, 10) == cf_evaluation.coverage({0: []}, 10) == 0.0
    with pytest.raises(InputError, match="num_total_items"):
        cf_evaluation.coverage({0: [1]}, 0)
    assert list(cf_evaluation.MetricFactory.create_standard_metrics([5, 10]))[:2] == ["recall@5", "recall@10"]
    with pytest.raises(UnknownNameError, match="ndcg"):
        cf_evaluation.MetricFactory.create("ndgc")


def small_world():
    rng = np.random.default_rng(4)
    users, items = rng.standard_normal((30, 5)), rng.standard_normal((40, 5))
    train = {u: set(rng.choice(40, 6, replace=False).tolist()) for u in range(30)}
    test = {
        u: set(rng.choice(sorted(set(range(40)) - train[u]), 3, replace=False).tolist()) for u in range(30)
    }
    return users, items, test, train


def test_tables_and_dicts_give_the_same_results():
    users, items, test, train = small_world()
    frame = pd.DataFrame(
        [(u, i, 3) for u, user_items in test.items() for i in user_items], columns=["who", "what", "rating"]
    )
    one = cf_evaluation.ModelEvaluator(users, items).evaluate(test, train)
    other = cf_evaluation.ModelEvaluator(users, items).evaluate(frame, train, user_col="who", item_col="what")
    repeated = pd.concat([frame, frame])
    again = cf_evaluation.evaluate_model(users, items, repeated, train, user_col="who", item_col="what")
    for key, value in one.items():
        if key != "evaluation_time_seconds":
            assert other[key] == again[key] == value
    with pytest.raises(ColumnError, match="who, what, rating"):
        cf_evaluation.evaluate_model(users, items, frame, train)


@given(st.integers(0, 2**32 - 1))
def test_the_evaluator_counts_what_a_sort_would_find(seed):
    """The factors are small integers, so that scores tie; ties are ranked by index."""
    rng = np.random.default_rng(seed)
    users, items = rng.integers(-2, 3, (6, 2)), rng.integers(-2, 3, (9, 2))
    train = {u: set(rng.choice(9, int(rng.integers(0, 5)), replace=False).tolist()) for u in range(6)}
    test = {
        u: set(rng.choice(9, int(rng.integers(0, 4)), replace=False).tolist()) - train[u] for u in range(6)
    }
    scores = (users @ items.T).astype(float)
    ranked = {
        u: [i for i in np.argsort(-scores[u], kind="stable").tolist() if i not in train[u]] for u in range(6)
    }
    evaluator = cf_evaluation.ModelEvaluator(users, items, k_values=[2, 5])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TieWarning)
        results = evaluator.evaluate(test, train)
    evaluated = [u for u in range(6) if test[u]]
    assert results["num_users_evaluated"] == len(evaluated)
    for k in (2, 5):
        for name in ("recall", "precision", "ndcg", "map"):
            values = [formula_value(name, ranked[u], test[u], k) for u in evaluated]
            if evaluated:
                assert results[f"{name}@{k}"] == pytest.approx(np.mean(values), abs=1e-12)
                table = evaluator.get_per_user_metrics()
                assert table[f"{name}@{k}"].tolist() == pytest.approx(values, abs=1e-12)
    assert evaluator.generate_recommendations(range(6), train, 3) == {u: ranked[u][:3] for u in range(6)}


def test_no_option_of_the_signature_changes_a_result():
    users, items, test, train = small_world()
    one = cf_evaluation.ModelEvaluator(users, items, [5]).evaluate(test, train)
    other = cf_evaluation.ModelEvaluator(users, items, [5], batch_size=1, use_argpartition=False).evaluate(
        test, train
    )
    assert {k: v for k, v in one.items() if k != "evaluation_time_seconds"} == {
        k: v for k, v in other.items() if k != "evaluation_time_seconds"
    }
    wider = cf_evaluation.ModelEvaluator(users, items, [5, 40]).evaluate(test, train)
    assert wider["mrr"] == one["mrr"]  # over the whole ranking, whatever k_values


def test_users_without_test_items_are_left_out_and_counted():
    users, items, test, train = small_world()
    evaluator = cf_evaluation.ModelEvaluator(users, items, [5])
    results = evaluator.evaluate(test | {3: set()}, train)
    assert (results["num_users_evaluated"], results["num_users_skipped"]) == (29, 1)
    assert 3 not in evaluator.get_per_user_metrics().index


def test_the_documented_steps():
    users, items, test, train = small_world()
    evaluator = cf_evaluation.ModelEvaluator(users, items, [5])
    frame = pd.DataFrame(
        [(u, i) for u, user_items in test.items() for i in user_items], columns=["u_idx", "i_idx"]
    )
    assert evaluator._prepare_ground_truth(frame) == test == evaluator._prepare_ground_truth(test)
    lists = evaluator.generate_recommendations(range(30), train, 5)
    metrics = evaluator._compute_metrics(lists, test, [5])
    assert metrics["recall@5"] == evaluator.evaluate(test, train)["recall@5"]
    scores = np.array([0.1, 0.9, 0.5, 0.7])
    assert evaluator._get_top_k(scores, 2).tolist() == [1, 3]
    assert evaluator._get_top_k(scores, 9, exclude_indices={1}).tolist() == [3, 2, 0]
    assert evaluator.generate_recommendations([], train) == {}


def test_results_before_an_evaluation_are_an_error():
    evaluator = cf_evaluation.ModelEvaluator([[1.0]], [[1.0]])
    with pytest.raises(InputError, match="yet"):
        evaluator.get_per_user_metrics()


def test_indices_outside_the_model_are_errors():
    users, items, _, train = small_world()
    with pytest.raises(InputError, match="does not exist in the model"):
        cf_evaluation.evaluate_model(users, items, {0: {99}}, train)
    with pytest.raises(InputError, match="does not exist in the model"):
        cf_evaluation.evaluate_model(users, items, {99: {1}}, train)


def test_models_side_by_side():
    users, items, test, train = small_world()
    batch = cf_evaluation.BatchModelEvaluator([5])
    with pytest.raises(InputError, match="no model"):
        batch.evaluate_all(test, train)
    batch.add_model("als", users, items, {"factors": 5})
    batch.add_model("noise", users, -items)
    results = batch.evaluate_all(test, train)
    assert (
        results["als"]["recall@5"] == cf_evaluation.evaluate_model(users, items, test, train, [5])["recall@5"]
    )
    table = batch.get_comparison_table()
    assert table["model"].tolist() == ["als", "noise"]
    assert table["factors"].tolist()[0] == 5
    assert table.columns[1] == "factors"
    late = cf_evaluation.BatchModelEvaluator([5])
    late.add_model("noise", users, -items)
    late.add_model("als", users, items, {"factors": 5})
    late.evaluate_all(test, train)
    assert late.get_comparison_table().columns.tolist() == table.columns.tolist()
    assert len(results["als"].per_user()) == 30


@pytest.fixture
def model(tmp_path):
    users, items, test, train = small_world()
    return users, items, test, train, tmp_path


def same_factors(pair, users, items):
    return np.array_equal(pair.U, users) and np.array_equal(pair.V, items)


def test_models_are_read_from_every_layout(model):
    users, items, _, _, folder = model
    np.save(folder / "als_U.npy", users)
    np.save(folder / "als_V.npy", items)
    assert same_factors(cf_evaluation.load_model(folder), users, items)
    assert same_factors(cf_evaluation.load_cf_model(f"{folder}/"), users, items)
    np.savez(folder / "one.npz", user_factors=users, item_factors=items)
    assert same_factors(cf_evaluation.load_model(folder / "one.npz"), users, items)
    (folder / "st").mkdir()
    numpy = pytest.importorskip("safetensors.numpy")
    numpy.save_file({"U": users, "V": items}, folder / "st" / "model.safetensors")
    (folder / "st" / "meta.json").write_text('{"shape": {"num_users": 30, "num_items": 40}}')
    assert same_factors(cf_evaluation.load_model(folder / "st"), users, items)
    torch = pytest.importorskip("torch")
    state = {"user_embedding.weight": torch.tensor(users), "item_embedding.weight": torch.tensor(items)}
    torch.save(state, folder / "model.pt")
    assert same_factors(cf_evaluation.load_model(folder / "model.pt"), users, items)  # float64 stays float64


def test_exchanged_matrices_are_swapped_back_with_a_warning(model):
    users, items, test, train, folder = model
    np.save(folder / "als_U.npy", items)
    np.save(folder / "als_V.npy", users)
    with pytest.warns(SwappedFactorsWarning, match="40 user rows and 30 item rows"):
        results = cf_evaluation.load_and_evaluate(folder, test, train)
    assert results["recall@10"] == cf_evaluation.evaluate_model(users, items, test, train)["recall@10"]
    with pytest.warns(SwappedFactorsWarning):
        assert same_factors(cf_evaluation.load_model(folder, n_users=30, n_items=40), users, items)
    (folder / "metadata.json").write_text('{"num_users": 30, "num_items": 40}')
    with pytest.warns(SwappedFactorsWarning):
        assert same_factors(cf_evaluation.load_model(folder), users, items)
    np.savez(folder / "one.npz", U=items, V=users)
    (folder / "other.json").write_text("not JSON, and none of the file's business")
    with pytest.warns(SwappedFactorsWarning):
        assert same_factors(cf_evaluation.load_model(folder / "one.npz"), users, items)
    (folder / "other.json").unlink()
    (folder / "one.npz").unlink()
    with pytest.raises(InputError, match="do not fit"):
        cf_evaluation.load_model(folder, n_users=31)


class _Dangerous:
    def __reduce__(self):
        return (Path.touch, (Path("touched"),))


def test_nothing_is_ever_unpickled(model, monkeypatch):
    users, items, _, _, folder = model
    monkeypatch.chdir(folder)
    np.save(folder / "V.npy", items)
    np.save(folder / "U.npy", np.array([_Dangerous()], dtype=object), allow_pickle=True)
    with pytest.raises(FileError, match="pickle"):
        cf_evaluation.load_model(folder)
    (folder / "U.npy").write_bytes(pickle.dumps(_Dangerous()))
    with pytest.raises(FileError):
        cf_evaluation.load_model(folder)
    np.savez(folder / "m.npz", U=np.array([_Dangerous()], dtype=object), V=items)
    with pytest.raises(FileError):
        cf_evaluation.load_model(folder / "m.npz")
    torch = pytest.importorskip("torch")
    torch.save({"U": _Dangerous(), "V": torch.ones(2, 2)}, folder / "m.pt")
    with pytest.raises(FileError):
        cf_evaluation.load_model(folder / "m.pt")
    assert not (folder / "touched").exists()
    del users


def test_damaged_and_ambiguous_folders_are_errors(model):
    users, items, _, _, folder = model
    with pytest.raises(FileError, match="no model"):
        cf_evaluation.load_model(folder / "none")
    with pytest.raises(FileError, match="no user matrix"):
        cf_evaluation.load_model(folder)
    np.save(folder / "als_U.npy", users)
    with pytest.raises(FileError, match="no item matrix"):
        cf_evaluation.load_model(folder)
    np.save(folder / "als_V.npy", items)
    np.save(folder / "bpr_U.npy", users)
    np.save(folder / "bpr_V.npy", -items)
    with pytest.raises(FileError, match="several user matrices"):
        cf_evaluation.load_model(folder)
    assert same_factors(cf_evaluation.load_model(folder, name="bpr"), users, -items)
    (folder / "als_U.npy").write_bytes((folder / "als_U.npy").read_bytes()[:60])
    with pytest.raises(FileError):
        cf_evaluation.load_model(folder, name="als")
    for text in ("{", "[1]"):
        (folder / "x.json").write_text(text)
        with pytest.raises(RecsysError):
            cf_evaluation.load_model(folder, name="als")
    np.savez(folder / "w.npz", U=users, V=items[:, :3])
    (folder / "x.json").unlink()
    with pytest.raises(InputError, match="shapes"):
        cf_evaluation.load_model(folder / "w.npz")


@pytest.mark.shared
def test_a_published_checkpoint_with_exchanged_matrices(shared_dir, tmp_path):
    """The published checkpoint calls this item matrix als_U and the matrix of 26,050 users als_V."""
    with np.load(shared_dir / "data" / "cosmetics-factors" / "item_factors.npz") as file:
        items = file["als_item"]
    users = np.random.default_rng(0).standard_normal((26_050, 64)).astype(np.float32)
    np.save(tmp_path / "als_U.npy", items)
    np.save(tmp_path / "als_V.npy", users)
    with pytest.warns(SwappedFactorsWarning):
        results = cf_evaluation.load_and_evaluate(tmp_path, {26_049: {3}, 5: {1_422}}, {5: {2}})
    assert results["num_users_evaluated"] == 2


def test_the_ids_of_products_say_which_row_is_whose(tmp_path):
    rows = np.arange(6.0).reshape(3, 2)
    np.savez(tmp_path / "e.npz", product_ids=[2, 0, 1], embeddings=rows)
    assert load_embeddings(tmp_path / "e.npz").item_to_idx == {2: 0, 0: 1, 1: 2}
    np.savez(tmp_path / "e.npz", product_ids=[20, 30, 10], i_idx=[2, 0, 1], embeddings=rows)
    assert load_embeddings(tmp_path / "e.npz").item_to_idx == {2: 0, 0: 1, 1: 2}
    np.savez(tmp_path / "e.npz", product_ids=[2, 0, 2], embeddings=rows)
    with pytest.raises(FileError, match="1 rows in 'product_ids' by an item that has another row already"):
        load_embeddings(tmp_path / "e.npz")


def test_embeddings_come_with_or_without_ids(tmp_path):
    rows = np.arange(6.0).reshape(3, 2)
    np.save(tmp_path / "e.npy", rows)
    assert load_embeddings(tmp_path / "e.npy").item_to_idx is None
    np.savez(tmp_path / "e.npz", item=[5, 7, 2], embedding=rows)
    assert load_embeddings(tmp_path / "e.npz").item_to_idx == {5: 0, 7: 1, 2: 2}
    np.savez(tmp_path / "f.npz", a=rows, b=rows)
    with pytest.raises(FileError, match="2 matrices"):
        load_embeddings(tmp_path / "f.npz")
    for ids in ([1, 2], [0.5, 1.0, 2.0]):
        np.savez(tmp_path / "g.npz", item_ids=ids, embeddings=rows)
        with pytest.raises(FileError, match=f"names {len(ids)} items .* for 3 rows"):
            load_embeddings(tmp_path / "g.npz")


def test_ids_in_a_torch_file_are_read_exactly(tmp_path):
    torch = pytest.importorskip("torch")
    rows, large = torch.arange(6.0).reshape(3, 2), 2**24 + 1  # no float32
    for ids in (torch.tensor([large, 7, 2]), [large, 7, 2]):
        torch.save({"embeddings": rows, "item_ids": ids}, tmp_path / "e.pt")
        assert load_embeddings(tmp_path / "e.pt").item_to_idx == {large: 0, 7: 1, 2: 2}
    torch.save({"embeddings": rows, "item_ids": ["a", "b", "c"]}, tmp_path / "e.pt")
    with pytest.raises(FileError, match="names 3 items"):
        load_embeddings(tmp_path / "e.pt")


@pytest.mark.parametrize("suffix", [".pt", ".safetensors"])
def test_bfloat16_is_read_exactly(tmp_path, suffix):
    """bfloat16 is the upper half of a float32, so float32 holds it exactly."""
    torch, files = pytest.importorskip("torch"), pytest.importorskip("safetensors.torch")
    rows = torch.tensor([[0.1, -3.0], [1e30, 2.0**-126]]).bfloat16()
    arrays = {"embeddings": rows, "i_idx": torch.tensor([4, 3])}
    (torch.save if suffix == ".pt" else files.save_file)(arrays, tmp_path / f"e{suffix}")
    result = load_embeddings(tmp_path / f"e{suffix}")
    assert result.matrix.dtype == np.float32
    assert result.matrix.tolist() == rows.float().tolist()
    assert result.item_to_idx == {4: 0, 3: 1}


def test_baselines_have_the_documents_methods():
    _, _, test, train = small_world()
    counts = np.arange(40)
    baseline = cf_evaluation.PopularityBaseline(pd.Series(counts), num_items=50)
    assert baseline.recommend(3, 2) == [39, 38]
    assert baseline.recommend_batch([5, 3], 1, {3: {39}, 5: set()}) == {3: [38], 5: [39]}
    assert baseline.recommend_batch([], 1) == {}
    results = baseline.evaluate(test, train)
    assert results["baseline_name"] == "popularity"
    assert len(baseline.get_per_user_metrics()) == 30
    sold = cf_evaluation.PopularityBaseline({0: 5, 7: 9}, num_items=8)
    assert sold.recommend(0, 3) == [7, 0, 1]
    with pytest.raises(InputError, match="num_items"):
        cf_evaluation.PopularityBaseline(counts, num_items=7)
    with pytest.raises(InputError, match="numbered from 0"):
        cf_evaluation.PopularityBaseline({"a": 3})
    assert "num_items=50" in repr(baseline)


def test_bases_are_abstract_and_can_be_built_on():
    for base in (cf_evaluation.BaseMetric, cf_evaluation.HybridMetric, cf_evaluation.BaselineRecommender):
        with pytest.raises(TypeError, match="abstract"):
            base("x") if base is not cf_evaluation.BaselineRecommender else base("x", 3)

    class Popular(cf_evaluation.BaselineRecommender):
        def recommend(self, user_idx, k=10, exclude_items=None):
            del user_idx
            return [i for i in range(39, -1, -1) if i not in (exclude_items or set())][:k]

    _, _, test, train = small_world()
    own, ours = Popular("own", 40), cf_evaluation.PopularityBaseline(np.arange(40))
    got, expected = own.evaluate(test, train), ours.evaluate(test, train)
    for name in ("recall@10", "ndcg@20", "map@10", "coverage", "num_users_evaluated"):
        assert got[name] == expected[name]
    assert got["baseline_name"] == "own"

    class Zero(cf_evaluation.BaseMetric):
        def __init__(self):
            super().__init__(name="zero")

        def compute(self, *lists):
            return 0.0 * len(lists)

    assert repr(Zero()) == "Zero(name='zero')"


def test_chance_is_seeded_and_its_mean_is_exact():
    _, _, test, train = small_world()
    draws = [
        cf_evaluation.evaluate_baseline_random(test, 40, train, [5], random_seed=s)["recall@5"]
        for s in range(40)
    ]
    exact = recsys.baselines.random_expectation(test, ["recall@5"], n_items=40, seen=train)["recall@5"]
    assert exact == pytest.approx(5 / 34)
    assert abs(np.mean(draws) - exact) < 4 * np.std(draws) / np.sqrt(40)


def test_item_similarity_needs_a_history():
    rows = np.eye(4) + 0.1
    with pytest.raises(InputError, match="similarity_matrix= or item_embeddings="):
        cf_evaluation.ItemSimilarityBaseline()
    with pytest.raises(InputError, match="exclude_items"):
        cf_evaluation.ItemSimilarityBaseline(rows).recommend(0, 2)
    baseline = cf_evaluation.ItemSimilarityBaseline(item_embeddings=rows)
    assert baseline.recommend_batch([0, 9], 1, {0: [1]})[9] == []


def test_baselines_are_compared():
    _, _, test, train = small_world()
    comparator = cf_evaluation.BaselineComparator([5])
    comparator.add_baseline("popularity", cf_evaluation.PopularityBaseline(np.arange(40)))
    comparator.add_baseline("random", cf_evaluation.RandomBaseline(40, 1))
    results = comparator.evaluate_all(test, train)
    table = comparator.get_comparison_table()
    assert table["baseline"].tolist() == ["popularity", "random"]
    assert table["recall@5"].tolist() == [results[n]["recall@5"] for n in ("popularity", "random")]


def test_comparisons_pair_by_user_and_mark_significance():
    rng = np.random.default_rng(1)
    index = pd.Index([f"u{n}" for n in range(200)], name="user")
    base = pd.DataFrame({"recall@10": rng.random(200) * 0.5}, index=index)
    better = (base + 0.1 * rng.random((200, 1))).sample(frac=1, random_state=0)
    comparator = cf_evaluation.ModelComparator()
    comparator.add_model_results(
        "als", {"recall@10": float(better["recall@10"].mean()), "coverage": 0.4}, better
    )
    comparator.add_baseline_results(
        "pop", {"recall@10": float(base["recall@10"].mean()), "coverage": 0.2}, base
    )
    comparator.add_baseline_results("bare", {"recall@10": 0.1})
    table = comparator.get_comparison_table()
    assert table["type"].tolist() == ["model", "baseline", "baseline"]
    row = table.iloc[0]
    assert row["recall@10 vs pop"].endswith(" ***")
    assert row["coverage vs pop"] == "+100.0%"
    assert row["recall@10 vs bare"][-1] == "%"
    assert table.attrs["tested"] == ["recall@10"]
    summary = comparator.get_improvement_summary("pop", ["recall@10"])
    assert summary["significant"].tolist() == [True]
    with pytest.raises(UnknownNameError):
        comparator.get_improvement_summary("top", ["recall@10"])
    with pytest.raises(UnknownNameError):
        comparator.compute_improvement("als", "pop", "recall@11")
    with pytest.raises(UnknownNameError):
        comparator.compute_improvement("asl", "pop", "recall@10")
    with pytest.raises(InputError, match="both"):
        comparator.add_baseline_results("als", {})


def test_reports_in_every_format(tmp_path):
    results = {"a_b": {"recall@10": 0.25, "ndcg@10": np.float64(0.5)}, "c": {"recall@10": float("nan")}}
    for name, ending in (("csv", "csv"), ("json", "json"), ("markdown", "md"), ("latex", "tex")):
        path = cf_evaluation.generate_evaluation_report(
            results, output_path=tmp_path / f"r.{ending}", format=name
        )
        assert (
            path.read_text()
            == cf_evaluation.generate_evaluation_report(results, tmp_path / f"s.{ending}").read_text()
            or name == "json"
        )
    assert (tmp_path / "r.csv").read_text().splitlines()[2] == "c,NA,NA"
    assert json.loads((tmp_path / "r.json").read_text())["models"]["c"]["results"]["recall@10"] is None
    assert r"a\_b" in (tmp_path / "r.tex").read_text()
    with pytest.raises(UnknownNameError):
        cf_evaluation.generate_evaluation_report(results, tmp_path / "r.docx")
    generator = cf_evaluation.ReportGenerator(tmp_path)
    with pytest.raises(InputError, match="no results"):
        generator.generate_csv_report()


@pytest.mark.parametrize("kind", ["markdown", "latex"])
def test_hyperparameters_keep_their_digits_and_small_metrics_are_not_zero(tmp_path, kind):
    generator = cf_evaluation.ReportGenerator(tmp_path)
    metadata = {"reg": 1e-5, "alpha": 0.00015, "training_time": 45.2, "factors": 64}
    generator.add_results("bpr", {"recall@10": 0.2, "map@10": 0.00002}, metadata)
    text = getattr(generator, f"generate_{kind}_report")().read_text()
    for cell in ("1e-05", "0.00015", "45.2", "64", "0.2000", "2.0e-05"):
        assert f" {cell} " in text
    assert "0.0000" not in text
    assert "45.2000" not in text


def test_results_in_the_wrong_shape_are_errors(tmp_path):
    for call in (
        cf_evaluation.compare_models,
        lambda results: cf_evaluation.generate_evaluation_report(results, tmp_path / "x.csv"),
    ):
        with pytest.raises(TypeError, match="float"):
            call({"recall@10": 0.2})
        with pytest.raises(InputError, match="the results of 'models' hold no number"):
            call({"models": {"als": {"recall@10": 0.2}}})
    assert not (tmp_path / "x.csv").exists()
    with pytest.raises(ValueError, match="could not convert string to float: 'x'"):
        cf_evaluation.EvaluationVisualizer.prepare_bar_chart_data({"als": {"recall@10": "x"}}, "recall@10")


def test_the_best_model_is_the_one_with_the_lowest_error():
    results = {"a": {"rmse": 0.95, "gini@10": 0.5, "bias": -0.1, "training_time": 9.0},
               "b": {"rmse": 0.91, "gini@10": 0.7, "bias": 0.3, "training_time": 5.0},
               "c": {"rmse": 0.96, "gini@10": 0.6, "bias": 0.2, "training_time": 7.0}}  # fmt: skip
    data = cf_evaluation.EvaluationVisualizer.prepare_bar_chart_data(results, list(results["a"]))
    assert data["best"] == {"rmse": "b", "gini@10": "a", "bias": "a", "training_time": "b"}
    front = cf_evaluation.EvaluationVisualizer.prepare_tradeoff_data(results, "rmse", "gini@10")
    assert front["pareto"] == ["a", "b"]
    assert front["accuracy"] == [0.95, 0.91, 0.96]


def test_a_lower_error_is_better_in_the_summary_too():
    rng = np.random.default_rng(0)
    base = pd.DataFrame({"rmse": 1 + rng.random(200)})
    comparator = cf_evaluation.ModelComparator()
    lower = base - 0.2 - 0.1 * rng.random((200, 1))
    comparator.add_model_results("als", {"rmse": float(lower["rmse"].mean())}, lower)
    comparator.add_baseline_results("pop", {"rmse": float(base["rmse"].mean())}, base)
    (row,) = comparator.get_improvement_summary().itertuples(index=False)
    assert row.relative_percent < 0
    assert row.verdict.startswith("better")


def test_errors_speak_of_what_the_caller_passed():
    users, items, _, train = small_world()
    evaluator = cf_evaluation.ModelEvaluator(users, items)
    popular = cf_evaluation.PopularityBaseline(np.arange(40))
    rows = r"Rows count from 0. ModelEvaluator\(U, V, user_ids=..., item_ids=...\) takes the id of each row."
    mapped = r"Rows count from 0. Map ids to row numbers first; recsys.baselines takes ids."
    for model, advice in ((evaluator, rows), (popular, mapped)):
        with pytest.raises(InputError, match=rf"item 99 of the truth .*{advice} \[table 'test_data'"):
            model.evaluate({0: {99}}, train)
        with pytest.raises(InputError, match=f"item 99 of user_pos_train does not exist.*{advice}") as raised:
            model.evaluate({0: {1}}, {0: {99}})
        assert raised.value.table == "user_pos_train"
    with pytest.raises(InputError, match="test_data came as int"):
        evaluator.evaluate(5)
    with pytest.raises(InputError, match="item 99 of user_pos_train"):
        evaluator.generate_recommendations([0], {0: {99}})


def test_reports_show_the_gains_over_baselines(tmp_path):
    users, items, test, train = small_world()
    generator = cf_evaluation.ReportGenerator(tmp_path)
    generator.add_results("als", cf_evaluation.evaluate_model(users, items, test, train))
    generator.add_results(
        "popularity", cf_evaluation.evaluate_baseline_popularity(test, np.arange(40), train)
    )
    text = generator.generate_markdown_report().read_text()
    assert "## Gains over baselines" in text
    assert "recall@10 vs popularity" in text
    document = json.loads(generator.generate_json_report().read_text())
    assert document["gains"][0]["model"] == "als"
    assert "baseline_name" not in generator.generate_csv_report().read_text()


def test_any_kind_of_table_is_a_test_set():
    users, items, test, train = small_world()
    rows = {
        "u_idx": [u for u, user_items in test.items() for _ in user_items],
        "i_idx": [i for user_items in test.values() for i in user_items],
    }
    expected = cf_evaluation.evaluate_model(users, items, test, train)["ndcg@10"]
    polars, arrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    for table in (polars.DataFrame(rows), arrow.table(rows), pd.DataFrame(rows)):
        assert cf_evaluation.evaluate_model(users, items, table, train)["ndcg@10"] == expected


def test_the_cutoffs_of_a_chart_are_those_of_the_results():
    users, items, test, train = small_world()
    results = {"als": cf_evaluation.evaluate_model(users, items, test, train, [5, 10, 20, 40])}
    chart = cf_evaluation.EvaluationVisualizer()
    data = chart.prepare_k_sensitivity_data(results)
    assert data["k_values"] == [5, 10, 20, 40]
    assert data["series"]["als"] == sorted(data["series"]["als"])
    with pytest.raises(InputError, match="k_values"):
        chart.prepare_k_sensitivity_data({"a": {"mrr": 1.0}})


def test_the_script_compares_and_writes(model, monkeypatch):
    users, items, test, train, folder = model
    monkeypatch.chdir(folder)
    rng = np.random.default_rng(0)
    for name, part in (("train", train), ("test", test)):
        rows = [(u, i) for u, user_items in part.items() for i in sorted(user_items)]
        pd.DataFrame(rows, columns=["u_idx", "i_idx"]).to_csv(folder / f"{name}.csv", index=False)
    (folder / "als").mkdir()
    np.save(folder / "als" / "als_U.npy", users)
    np.save(folder / "als" / "als_V.npy", items)
    np.save(folder / "embeddings.npy", rng.standard_normal((40, 6)))
    command = [sys.executable, str(ROOT / "scripts" / "compare_cf_hybrid.py"), "--cf-model", "als"]
    command += [
        "--bert-embeddings",
        "embeddings.npy",
        "--test-data",
        ".",
        "--alpha",
        "0.5",
        "--diversity",
        "0.2",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = [line.split("|")[0].strip() for line in done.stdout.splitlines()]
    assert rows[2:] == [
        "recall@10",
        "ndcg@10",
        "coverage",
        "diversity@10",
        "semantic_alignment@10",
        "cold_start_coverage",
    ]
    written = pd.read_csv("reports/cf_vs_hybrid_comparison.csv", index_col=0)
    assert written.loc["CF + BERT", "semantic_alignment@10"] > written.loc["Pure CF", "semantic_alignment@10"]
    wrong = subprocess.run([*command[:3], "none", *command[4:]], capture_output=True, text=True, check=False)
    assert (wrong.returncode, wrong.stderr.splitlines()[-1][:6]) == (3, "error:")


@pytest.mark.parametrize("lists", [[[1, 2], [3]], pd.DataFrame({"u_idx": [0], "i_idx": [1]}), np.eye(2)])
def test_lists_without_users_are_an_error_that_says_so(lists):
    calls = (
        lambda: cf_evaluation.coverage(lists, 10),
        lambda: cf_evaluation.DiversityMetric().compute_batch(lists, np.eye(4)),
        lambda: cf_evaluation.NoveltyMetric().compute_batch(lists, [1, 2], 5),
    )
    for call in calls:
        with pytest.raises(InputError, match=r"\{user: \[items, best first\]\}"):
            call()


def test_a_folder_of_several_models_is_evaluated_by_name(tmp_path):
    for name, sign in (("als", 1.0), ("bpr", -1.0)):
        np.save(tmp_path / f"{name}_U.npy", np.eye(3))
        np.save(tmp_path / f"{name}_V.npy", sign * np.eye(3))
    with pytest.raises(FileError, match="name='als'"):
        cf_evaluation.load_and_evaluate(tmp_path, {0: [0]})
    result = [
        cf_evaluation.load_and_evaluate(tmp_path, {0: [0]}, k_values=[1], name=n)["recall@1"]
        for n in ("als", "bpr")
    ]
    assert result == [1.0, 0.0]


def test_a_chart_of_a_number_no_model_has_is_an_error():
    visualizer = cf_evaluation.EvaluationVisualizer()
    results = {"als": {"recall@10": 0.3, "coverage": 0.2}}
    with pytest.raises(UnknownNameError, match="recall@10"):
        visualizer.prepare_bar_chart_data(results, ["recal@10"])
    with pytest.raises(UnknownNameError, match="ndcg@10"):
        visualizer.prepare_tradeoff_data(results)


def test_similarity_takes_a_matrix_or_embeddings_not_both():
    with pytest.raises(InputError, match="either similarity_matrix="):
        cf_evaluation.ItemSimilarityBaseline(np.eye(3), item_embeddings=np.eye(3))


def test_a_models_name_is_not_the_start_of_another(tmp_path):
    users, items, *_ = small_world()
    for name, factor in (("als", 1.0), ("als2", 2.0)):
        np.save(tmp_path / f"{name}_U.npy", factor * users)
        np.save(tmp_path / f"{name}_V.npy", items)
    assert same_factors(cf_evaluation.load_model(tmp_path, name="als"), users, items)
    assert same_factors(cf_evaluation.load_model(tmp_path, name="als2"), 2 * users, items)


def test_ids_beside_the_matrices_are_no_matrices(tmp_path):
    users, items, *_ = small_world()
    ids = {"users": np.arange(30), "items": np.arange(40)}
    np.savez(tmp_path / "model.npz", U=users, V=items, **ids)
    assert same_factors(cf_evaluation.load_model(tmp_path), users, items)
    (tmp_path / "meta.json").write_text('{"num_users": true}')  # a flag, not a count of one
    assert same_factors(cf_evaluation.load_model(tmp_path), users, items)


def test_lists_are_in_the_order_of_the_users():
    users, items, _, train = small_world()
    requested_users = [7, 2, 9, 2]
    lists = cf_evaluation.ModelEvaluator(users, items).generate_recommendations(
        np.array(requested_users), train, 3
    )
    assert list(lists) == [7, 2, 9]
    popular = cf_evaluation.PopularityBaseline(np.arange(40))
    assert list(popular.recommend_batch(requested_users, 3)) == [7, 2, 9]
    assert popular.recommend_batch([9, 2], 2, {2: {39}}) == {9: [39, 38], 2: [38, 37]}
    with pytest.raises(IdTypeError, match="mixed"):
        popular.recommend_batch([1, "a"])


def test_the_summary_takes_results_with_different_metrics():
    comparator = cf_evaluation.ModelComparator()
    comparator.add_model_results("a", {"recall@10": 0.3, "recall@20": 0.4})
    comparator.add_model_results("b", {"recall@10": 0.1})
    comparator.add_baseline_results("p", {"recall@10": 0.2, "recall@20": 0.2})
    table = comparator.get_improvement_summary().set_index(["model", "metric"])["relative_percent"]
    assert table["a"].to_dict() == pytest.approx({"recall@10": 50.0, "recall@20": 100.0})
    assert table["b", "recall@10"] == pytest.approx(-50.0)
    assert ("b", "recall@20") not in table
    with pytest.raises(UnknownNameError, match="recall@20"):
        comparator.get_improvement_summary(metrics=["recall@20"])


def test_a_gain_over_a_baseline_of_zero_or_less_has_no_percentage():
    """(0.1 - -0.1) / -0.1 would call a gain a loss."""
    comparator = cf_evaluation.ModelComparator()
    comparator.add_model_results("a", {"alignment": 0.1})
    comparator.add_baseline_results("p", {"alignment": -0.1})
    gain = comparator.compute_improvement("a", "p", "alignment")
    assert gain["absolute"] == pytest.approx(0.2)
    assert math.isnan(gain["relative_percent"])
    assert comparator.get_comparison_table()["alignment vs p"][0] == "n/a"


def test_one_metric_of_a_bar_chart_may_be_named_alone():
    results = {"a": {"recall@10": 0.3}, "b": {"recall@10": 0.2}}
    charts = cf_evaluation.EvaluationVisualizer()
    expected = charts.prepare_bar_chart_data(results, ["recall@10"])
    assert charts.prepare_bar_chart_data(results, "recall@10") == expected


def test_a_model_without_a_number_is_on_no_front():
    results = {"a": {"ndcg@10": 0.1, "coverage": 0.2}, "b": {"ndcg@10": 0.9}}
    assert cf_evaluation.EvaluationVisualizer().prepare_tradeoff_data(results)["pareto"] == ["a"]


def test_baselines_are_compared_under_other_column_names():
    table = pd.DataFrame({"who": [0, 1], "what": [1, 0]})
    comparator = cf_evaluation.BaselineComparator([1])
    comparator.add_baseline("popularity", cf_evaluation.PopularityBaseline([5, 9, 2]))
    result = comparator.evaluate_all(table, {}, user_col="who", item_col="what")
    assert result["popularity"]["recall@1"] == 0.5


def test_a_history_is_read_by_the_columns_of_the_test_set():
    """A training table often holds original ids beside the row numbers."""
    users, items, test, train = small_world()
    rows = [(u, i, 500 + u, 900 - i) for u, user_items in train.items() for i in user_items]
    table = pd.DataFrame(rows, columns=["u_idx", "i_idx", "user_id", "product_id"])
    expected = cf_evaluation.evaluate_model(users, items, test, train, [5])["recall@5"]
    assert cf_evaluation.evaluate_model(users, items, test, table, [5])["recall@5"] == expected
    truth = pd.DataFrame([(u, i) for u, user_items in test.items() for i in user_items], columns=["a", "b"])
    renamed = table.rename(columns={"u_idx": "a", "i_idx": "b"})
    columns = {"user_col": "a", "item_col": "b"}
    assert cf_evaluation.evaluate_model(users, items, truth, renamed, [5], **columns)["recall@5"] == expected
    arrow = pytest.importorskip("pyarrow").Table.from_pandas(renamed)
    assert cf_evaluation.evaluate_model(users, items, truth, arrow, [5], **columns)["recall@5"] == expected
    popular = cf_evaluation.PopularityBaseline(np.arange(len(items)))
    assert popular.evaluate(truth, renamed, [5], **columns) == pytest.approx(
        {**popular.evaluate(test, train, [5]), "evaluation_time_seconds": pytest.approx(0, abs=60)}
    )


def test_numbers_outside_the_catalogue_are_refused_not_wrapped(tmp_path):
    """NumPy would write the count of item -1 over that of the last item."""
    users, items, test, _ = small_world()
    for bad in (-1, len(items)):
        pd.DataFrame({"u_idx": [0, 1], "i_idx": [3, bad]}).to_csv(tmp_path / "train.csv", index=False)
        pd.DataFrame({"u_idx": [0, 1], "i_idx": [4, 5]}).to_csv(tmp_path / "test.csv", index=False)
        with pytest.raises(InputError, match=f"names the item {bad}"):
            cf_evaluation.load_test_data(tmp_path, n_items=len(items))
        with pytest.raises(InputError, match=f"names the item {bad}"):
            cf_evaluation.evaluate_hybrid_model(
                users, items, np.eye(len(items)), test, user_pos_train={0: {3}, 1: {bad}}
            )


def test_whole_numbers_in_a_categorical_column_stay_numbers():
    users, items, test, train = small_world()
    rows = [(u, i) for u, user_items in test.items() for i in user_items]
    table = pd.DataFrame(rows, columns=["u_idx", "i_idx"]).astype("category")
    expected = cf_evaluation.evaluate_model(users, items, test, train, [5])["recall@5"]
    assert cf_evaluation.evaluate_model(users, items, table, train, [5])["recall@5"] == expected


def test_profiles_of_users_under_other_ids_are_refused():
    rows = np.eye(3)
    with pytest.raises(IdTypeError, match="user ids"):
        cf_evaluation.evaluate_with_reranking(
            rows, rows, rows, {0: {1}}, {"ann": rows[0]}, user_pos_train={0: {0}}
        )
