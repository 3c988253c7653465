"""Input that would give a number without a word: each is an error or a warning of recsys.errors."""

from __future__ import annotations

import json
import time

import numpy as np
import pandas as pd
import pytest
from scipy.sparse.linalg import svds

import recsys
import recsys.cf.evaluation as cf_evaluation
from recsys.cf.evaluation import recommender_evaluator
from recsys.cf.evaluation.loading import load_embeddings, load_item_rows
from recsys.errors import FileError, IdTypeError, InputError, RecsysWarning, TieWarning

SET, TRUTH = {"a", "b", "c"}, {"a"}
EYE, ITEMS = np.eye(4), np.random.default_rng(0).standard_normal((4, 4))


class SetModel:
    def recommend(self, user, n):
        return {user, *range(n)}


RANKINGS = {
    "average_precision": lambda: cf_evaluation.average_precision_at_k(SET, TRUTH, 3),
    "f1": lambda: cf_evaluation.f1_at_k(SET, TRUTH, 3),
    "precision": lambda: recommender_evaluator.precision_at_k(SET, TRUTH, 3),
    "recall": lambda: recommender_evaluator.recall_at_k(SET, TRUTH, 3),
    "dcg": lambda: cf_evaluation.dcg_at_k(SET, {"a": 1}, 3),
    "ndcg": lambda: recommender_evaluator.ndcg_at_k(SET, {"a": 1}, 3),
    "mean_average_precision": lambda: cf_evaluation.mean_average_precision_at_k({0: SET}, {0: TRUTH}, 3),
    "mean_ndcg": lambda: cf_evaluation.mean_ndcg_at_k({0: SET}, {0: {"a": 1}}, 3),
    "serendipity": lambda: cf_evaluation.SerendipityMetric(3).compute(SET, TRUTH, ["b"]),
    "novelty": lambda: cf_evaluation.NoveltyMetric(2).compute(SET, {"a": 1}, 5),
    "catalog_coverage": lambda: cf_evaluation.catalog_coverage({0: SET}, 10, 2),
    "gini": lambda: cf_evaluation.gini_coefficient({0: SET}, 2),
    "RecommenderEvaluator": lambda: cf_evaluation.RecommenderEvaluator([2]).evaluate(
        SetModel(), {0: {1}}, 10
    ),
    "getNDCG": lambda: cf_evaluation.NCFEvaluator(None, []).getNDCG({1, 2}, 1),
}


@pytest.mark.parametrize("name", RANKINGS)
def test_a_set_is_not_a_ranking(name):
    with pytest.raises(InputError, match="a set, which has no order"):
        RANKINGS[name]()


KINDS = {
    "cold": lambda: cf_evaluation.ColdStartCoverageMetric().compute({0: ["1"]}, {1: 1, 2: 2}),
    "cold of a Series": lambda: cf_evaluation.ColdStartCoverageMetric().compute(
        {0: ["1"]}, pd.Series([1, 2])
    ),
    "cold of an array": lambda: cf_evaluation.ColdStartCoverageMetric().compute({0: ["1"]}, np.array([1, 2])),
    "diversity": lambda: cf_evaluation.DiversityMetric().compute(["1", "3"], EYE, {1: 1, 3: 3}),
    "alignment": lambda: cf_evaluation.SemanticAlignmentMetric().compute(EYE[0], ["1"], EYE, {1: 1, 3: 3}),
    "map": lambda: cf_evaluation.mean_average_precision_at_k({0: [1]}, {"0": {1}}, 5),
    "ndcg": lambda: cf_evaluation.mean_ndcg_at_k({0: [1]}, {"0": {1: 2}}, 5),
    "strata": lambda: recsys.analysis.by_activity(evaluated()._last_results, {"0": 5, "1": 50}),
}


def evaluated(test=None, train=None):
    evaluator = cf_evaluation.ModelEvaluator(EYE, ITEMS, [1, 2])
    evaluator.evaluate({0: {1}, 1: {3}} if test is None else test, train)
    return evaluator


@pytest.mark.parametrize("name", KINDS)
def test_text_and_numbers_never_match(name):
    with pytest.raises(IdTypeError):
        KINDS[name]()


WRONG = {
    "a threshold": lambda: cf_evaluation.compute_metrics({0: [(1, 5)]}, threshold=float("nan")),
    "a cold threshold": lambda: cf_evaluation.ColdStartCoverageMetric(float("nan")),
    "ten and a bit": lambda: cf_evaluation.RandomBaseline(10.7),
    "ten as text": lambda: cf_evaluation.RandomBaseline("10"),
    "less than none": lambda: cf_evaluation.RandomBaseline(-1),
    "popularity": lambda: cf_evaluation.PopularityBaseline([1, 2, 3], num_items=5.7),
    "coverage": lambda: cf_evaluation.coverage({0: [1]}, 100.9),
    "a seed": lambda: cf_evaluation.RandomBaseline(10, random_seed="x").recommend(0, 3),
    "a batch": lambda: cf_evaluation.ModelEvaluator(EYE, EYE, batch_size=-1),
    "a batch as text": lambda: cf_evaluation.ModelEvaluator(EYE, EYE, batch_size="x"),
    "NaN": lambda: list(cf_evaluation.leave_one_out_cv([[1, np.nan, 2]])),
    "too few": lambda: cf_evaluation.NoveltyMetric().compute_batch({0: [5, 6]}, np.array([3, 4]), 100),
    "too few, one list": lambda: cf_evaluation.NoveltyMetric().compute([5, 6], [3, 4], 100),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_number_that_cannot_be_meant_is_an_error(name):
    with pytest.raises(InputError):
        WRONG[name]()


def test_tied_predictions_are_said():
    for rows, expected in (([(1, 5), (1, 1)], 1.0), ([(1, 1), (1, 5)], 0.0)):
        with pytest.warns(TieWarning, match="keep the order they came in"):
            assert cf_evaluation.compute_metrics({0: rows}, ["precision"], k=1) == {"precision": expected}


def test_ties_of_a_model_come_with_advice_that_works():
    evaluator = cf_evaluation.ModelEvaluator(np.ones((3, 1)), np.ones((4, 1)), [2])
    with pytest.warns(TieWarning, match=r"results.evaluation.under\(\{'ties': 'expected'\}\)"):
        results = evaluator.evaluate({0: {1}, 1: {2}, 2: {3}})
    assert results.evaluation.under({"ties": "expected"})["recall@2"] == 0.5


def test_activity_of_users_that_were_not_evaluated_is_said():
    with pytest.warns(RecsysWarning, match="none of the 2 evaluated ones"):
        recsys.analysis.by_activity(evaluated()._last_results, {5: 3})


def test_pairs_are_not_lists_of_items():
    with pytest.warns(RecsysWarning, match="read as the items of users 0, 1, 2"):
        cf_evaluation.ModelEvaluator(EYE, ITEMS, [1]).evaluate([(0, 1), (1, 2)])


def test_a_test_set_that_was_trained_on_warns_and_stays_with_the_results(tmp_path):
    everything = {0: {1}, 1: {2}}
    evaluator = cf_evaluation.ModelEvaluator(EYE, ITEMS, [1])
    with pytest.warns(RecsysWarning, match="2 of 2 relevant items were seen by their users before"):
        results = evaluator.evaluate(everything, everything)
    assert [one.code for one in results.cautions] == ["truth_already_seen"]
    assert "[truth_already_seen]" in str(results)
    assert json.loads(json.dumps(results)).keys() == results.keys()
    report = cf_evaluation.ReportGenerator(tmp_path)
    report.add_results("als", results)
    assert "- als: caution: 2 of 2" in report.generate_markdown_report().read_text()
    assert "truth_already_seen" in report.generate_json_report().read_text()


def hybrid_world():
    rng = np.random.default_rng(0)
    users, items, rows = (rng.standard_normal(shape) for shape in ((20, 4), (30, 4), (30, 6)))
    test = pd.DataFrame({"u_idx": np.arange(20), "i_idx": np.arange(20)})
    return users, items, rows, test


def test_profiles_that_know_the_answers_are_said():
    *model, test = hybrid_world()
    train = {user: {user + 5, user + 8} for user in range(20)}
    with pytest.warns(RecsysWarning, match="made of 20 of the 20 test items"):
        cf_evaluation.evaluate_with_reranking(
            *model, test, cf_evaluation.compute_all_user_profiles(test, model[2])
        )
    with pytest.warns(RecsysWarning, match="know the answers"):
        cf_evaluation.evaluate_hybrid_model(*model, test)
    both = {user: {*items, user} for user, items in train.items()}
    profiles = cf_evaluation.compute_all_user_profiles(both, model[2])
    with pytest.warns(RecsysWarning, match="know the answers"):
        cf_evaluation.evaluate_hybrid_model(*model, test, profiles, user_pos_train=train)
    profiles = cf_evaluation.compute_all_user_profiles(train, model[2])
    results = cf_evaluation.evaluate_hybrid_model(*model, test, profiles, user_pos_train=train)
    assert results.evaluation["recall@10"] == results["recall@10"]


def test_embeddings_for_other_items_are_said():
    users, items, rows, test = hybrid_world()
    train = {user: {user + 5} for user in range(20)}
    with pytest.warns(RecsysWarning, match="5 of its 30 rows have none"):
        cf_evaluation.evaluate_hybrid_model(users, items, rows[:25], test, user_pos_train=train)
    shop_ids = {100 * item: item for item in range(1, 30)} | {7: 7, 5: 5}
    with pytest.warns(RecsysWarning, match="29 of 31 items with an embedding are not rows of V"):
        cf_evaluation.evaluate_hybrid_model(
            users, items, rows, test, user_pos_train={0: {7}}, item_to_idx=shop_ids
        )


class TestProductIds:
    """Embeddings of a shop: more products than the model has, in the shop's order."""

    @pytest.fixture
    def shop(self, tmp_path):
        _, _, rows, _ = hybrid_world()
        products = [1000 + 7 * number for number in range(40)]
        of_model = np.random.default_rng(1).permutation(40)[:30]
        embeddings = np.random.default_rng(2).standard_normal((40, 6))
        embeddings[of_model] = rows
        np.savez(tmp_path / "shop.npz", embeddings=embeddings, product_ids=products)
        mapping = {str(row): products[at] for row, at in enumerate(of_model.tolist())}
        (tmp_path / "mappings.json").write_text(json.dumps({"idx_to_item": mapping, "about": "a shop"}))
        return tmp_path, rows

    def test_they_are_mapped_to_the_rows_of_the_model(self, shop):
        folder, rows = shop
        with pytest.warns(RecsysWarning, match="10 of 40 product ids .* 0 of its 30 items have no row"):
            matrix, item_to_idx = load_embeddings(folder / "shop.npz", load_item_rows(folder), n_items=30)
        assert sorted(item_to_idx) == list(range(30))
        assert np.array_equal(matrix[[item_to_idx[row] for row in range(30)]], rows)

    @pytest.mark.shared
    def test_a_part_of_movielens_gives_what_its_own_rows_give(self, shared_dir, tmp_path):
        """A file of all 1,682 products and a model of those taken five times; taken as rows, recall falls."""
        data = pd.read_parquet(shared_dir / "data/ml-100k/interactions.parquet").sort_values("timestamp")
        is_test = data.groupby("user").cumcount(ascending=False) < 5
        taken = data[~is_test]["item"].value_counts()
        items = np.sort(taken[taken >= 5].index.to_numpy())
        parts = []
        for events in (data[is_test], data[~is_test]):
            kept = events[events["item"].isin(items)]
            rows = pd.DataFrame({"u": kept["user"], "i": np.searchsorted(items, kept["item"])})
            parts.append({user: set(own) for user, own in rows.groupby("u")["i"]})
        counts = np.zeros((944, len(items)))
        for user, own in parts[1].items():
            counts[user, sorted(own)] = 1
        left, sizes, right = svds(counts, 16, rng=0)
        with np.load(shared_dir / "data/ml-100k/item_text_embeddings.npz") as file:
            products, vectors = file["item"], file["embedding"]
        order = np.random.default_rng(0).permutation(len(products))
        np.savez(tmp_path / "all.npz", embeddings=vectors[order], product_ids=products[order])
        (tmp_path / "mappings.json").write_text(json.dumps({"idx_to_item": items.tolist()}))

        def recall(embeddings, item_to_idx=None):
            test, train = parts
            found = cf_evaluation.evaluate_with_reranking(
                left * sizes, right.T, embeddings, test, user_pos_train=train, item_to_idx=item_to_idx
            )
            return found["recall@10"]

        with pytest.warns(RecsysWarning, match=r"of 1,682 product ids .* 0 of its 1,3\d\d items have no row"):
            loaded = load_embeddings(tmp_path / "all.npz", load_item_rows(tmp_path), n_items=len(items))
        assert recall(*loaded) == recall(vectors[np.searchsorted(products, items)])
        assert recall(vectors[: len(items)]) < 0.97 * recall(*loaded)

    def test_both_directions_of_a_mapping_are_read(self, shop, tmp_path):
        folder, _ = shop
        expected = load_item_rows(folder)
        (tmp_path / "other.json").write_text(json.dumps({"item_to_idx": expected}))
        assert load_item_rows(tmp_path / "other.json") == expected
        (tmp_path / "list.json").write_text(json.dumps({"idx_to_item": ["a", "b"]}))
        assert load_item_rows(tmp_path / "list.json") == {"a": 0, "b": 1}
        (tmp_path / "empty").mkdir()
        assert load_item_rows(tmp_path / "empty") is None
        (tmp_path / "broken.json").write_text("{")
        with pytest.raises(FileError, match="not JSON"):
            load_item_rows(tmp_path / "broken.json")

    def test_missing_items_are_counted(self, shop):
        folder, _ = shop
        with pytest.warns(RecsysWarning, match="39 of 40 product ids .* 1 of its 2 items have no row"):
            _, item_to_idx = load_embeddings(folder / "shop.npz", {"1000": 1, "x": 0})
        assert item_to_idx == {1: 0}

    def test_without_a_mapping_only_the_order_of_the_model_is_possible(self, shop):
        folder, _ = shop
        with pytest.raises(FileError, match="the model has 30 items, and no mapping says which are which"):
            load_embeddings(folder / "shop.npz", n_items=30)
        with pytest.warns(RecsysWarning, match="taken in the order of the model's items"):
            assert load_embeddings(folder / "shop.npz", n_items=40).item_to_idx is None


@pytest.mark.filterwarnings("ignore::recsys.stats.SmallSampleWarning")
def test_results_of_the_documents_are_evaluations_elsewhere():
    evaluator = evaluated()
    results, train, truth = evaluator._last_results, {0: [2], 1: [2]}, {0: [1], 1: [3]}
    assert recsys.analysis.failure_cases(results, train, truth).summary["users"] == 2
    assert len(recsys.analysis.worst_users(results, train, truth)) <= 2
    assert set(recsys.analysis.by_activity(results, {0: 1, 1: 2})) == {"low", "medium", "high"}
    assert recsys.analysis.per_user_distribution(results, "recall@1")["count"] == 2
    assert recsys.analysis.losing_users(results, results, "recall@1").attrs["tied"] == 2
    other = evaluated({0: {2}, 1: {0}})._last_results
    rows = recsys.compare({"a": results, "b": other.evaluation}, metrics="mrr", cautions="ignore").rows
    assert {rows[0].model, rows[0].baseline} == {"a", "b"}


def test_hints_name_parameters_that_exist():
    with pytest.raises(InputError, match="change test_ratio="):
        cf_evaluation.time_based_split(np.array([[0, 1, 3.0], [1, 1, 3.0]]), 2)
    rows = np.array([[0, 1, np.nan], [1, 1, 3.0], [1, 2, 4.0]])
    with pytest.raises(InputError, match="bad_rows='exclude'"):
        cf_evaluation.time_based_split(rows, 2)
    assert len(cf_evaluation.time_based_split(rows, 2, bad_rows="exclude")[1]) == 1
    with pytest.raises(InputError, match="Pass num_total_items="):
        cf_evaluation.coverage({0: [1, 2, 3]}, 2)
    with pytest.raises(ValueError, match="7 users, but the number of all users is 3"):
        cf_evaluation.NoveltyMetric().compute([1], [5, 7], 3)
    with pytest.raises(InputError, match="item 77 of the excluded items"):
        cf_evaluation.PopularityBaseline([1, 2, 3]).recommend(0, 2, exclude_items={77})


def test_a_table_prints_all_its_columns():
    names = [f"{metric}@{k}" for metric in ("recall", "ndcg", "precision", "map") for k in (5, 10, 20)]
    results = {"als": dict.fromkeys(names, 0.25), "bpr": dict.fromkeys(names, 0.2)}
    table = cf_evaluation.compare_models(results, {"popularity": dict.fromkeys(names, 0.1)})
    assert isinstance(table, pd.DataFrame)
    assert all(name in str(table).split() for name in names)
    batch = cf_evaluation.BatchModelEvaluator([5, 10])
    batch.add_model("als", EYE, ITEMS)
    batch.evaluate_all({0: {1}})
    assert all(name in str(batch.get_comparison_table()) for name in ("recall@5", "ndcg@10", "coverage"))


def test_marks_are_explained_where_something_was_tested(tmp_path):
    report = cf_evaluation.ReportGenerator(tmp_path)
    report.add_results("als", {"recall@10": 0.3, "coverage": 0.2})
    report.add_results("popularity", {"recall@10": 0.2, "coverage": 0.1, "baseline_name": "popularity"})
    text = report.generate_markdown_report().read_text()
    assert "+50.0%" in text
    assert "p below" not in text
    test, train = {user: {user % 4} for user in range(8)}, None
    popular = cf_evaluation.PopularityBaseline([4, 3, 2, 1])
    report.add_results("als", cf_evaluation.RandomBaseline(4).evaluate(test, train, [1]) | {})
    tested = cf_evaluation.ReportGenerator(tmp_path)
    random = cf_evaluation.RandomBaseline(4).evaluate(test, train, [1])
    del random["baseline_name"]
    tested.add_results("als", random)
    tested.add_results("popularity", popular.evaluate(test, train, [1]))
    text = tested.generate_markdown_report().read_text()
    assert "p below 0.05" in text
    assert "Tested: recall@1, ndcg@1" in text
    assert "coverage" not in text.partition("Tested:")[2]


def test_reports_are_written_where_they_were_asked_for(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    report = cf_evaluation.ReportGenerator(output_dir="reports/")
    report.add_results("als", {"recall@10": 0.3})
    for name in ("../x.csv", str(tmp_path / "y.csv")):
        with pytest.raises(FileError, match="is outside output_dir"):
            report.generate_csv_report(name)
    with pytest.raises(TypeError, match="output_path"):
        cf_evaluation.generate_evaluation_report({"als": {"recall@10": 0.3}})
    with pytest.raises(TypeError, match="output_dir"):
        cf_evaluation.ReportGenerator()
    assert [path.name for path in tmp_path.rglob("*")] == ["reports"]


def test_the_time_of_an_evaluation_covers_the_lists():
    class Slow(cf_evaluation.BaselineRecommender):
        def recommend(self, user_idx, k=10, exclude_items=None):
            del user_idx, exclude_items
            time.sleep(0.01)
            return list(range(k))

    assert Slow("slow", 20).evaluate({user: {1} for user in range(10)}, {})["evaluation_time_seconds"] >= 0.1
