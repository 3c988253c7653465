"""Every public callable of recsys.cf.evaluation, with wrong values in place of each argument.

A wrong type may raise an error of Python; a value that would give a wrong number is an error of
recsys.errors.
"""

from __future__ import annotations

import inspect
import math
import sys

import numpy as np
import pandas as pd
import pytest

import recsys
import recsys.cf.evaluation as cf_evaluation
from recsys.errors import CutoffError, InputError, RecsysError

pytest.importorskip("torch")
pytest.importorskip("matplotlib").use("Agg")
pytestmark = pytest.mark.filterwarnings("ignore")

# Nothing can be meant by these. An error of Python is enough for what has a wrong type.
MEANINGLESS = {"object": object(), "nan": math.nan}
REFUSALS = (RecsysError, TypeError, AttributeError, ValueError)
# Labels, and what is only stored, or read where another argument asks for it.
NOT_READ = frozenset(
    (
        "name",
        "model_name",
        "user_col",
        "item_col",
        "rating_col",
        "users",
        "history",
        "baseline",
        "item_embeddings",
    )
)
NOT_READ_IN = {
    "RandomBaseline": {"random_seed"},  # read when a ranking is made
}
# A number that is almost right gives a number that is almost right: these are errors of recsys.errors.
WHOLE_NUMBERS = frozenset(
    (
        "k",
        "top_k",
        "k_values",
        "catalog_size",
        "num_items",
        "num_total_items",
        "n_items",
        "n_bootstrap",
        "n_permutations",
        "batch_size",
        "random_seed",
        "seed",
    )
)
REAL_NUMBERS = frozenset(
    (
        "threshold",
        "cold_threshold",
        "significance_level",
        "alpha",
        "confidence",
        "num_users",
        "test_ratio",
        "item_counts",
        "item_popularity",
        "relevance_scores",
    )
)
FRACTIONS = {"fraction": 1.5, "nan": math.nan, "infinite": math.inf}
NOT_FINITE = {"nan": math.nan, "minus infinity": -math.inf}
LISTS, TRUTH = {0: [1, 2], 1: [2, 0]}, {0: {1}, 1: {0}}
TRAIN = {0: {0}, 1: {2}}
MATRIX = np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]])
COUNTS = [3, 1, 2]
RESULTS = {"als": {"recall@10": 0.3, "coverage": 0.2}, "pop": {"recall@10": 0.2, "coverage": 0.4}}
PER_USER = pd.DataFrame({"recall@10": [0.1, 0.2, 0.4]})
SAMPLES = {"sample1": [0.1, 0.4, 0.3, 0.8], "sample2": [0.2, 0.3, 0.3, 0.5]}
RATINGS = pd.DataFrame({"userId": [1, 1, 2], "movieId": [1, 2, 1], "rating": [5.0, 3.0, 4.0]})
PAIRS = {"ann": [(4.5, 5.0), (4.0, 2.0)], "bob": [(3.0, 4.0)]}
CASES = [(0, 1, [2, 3]), (1, 2, [0, 3])]
DATA = {"test_data": TRUTH, "user_pos_train": TRAIN}
ONE_LIST = {"predictions": [1, 2], "ground_truth": {2}, "k": 2}
OF_001 = {"recommended": [1, 2], "relevant": {2}, "k": 2}
COLUMNS = {"user_col": "u_idx", "item_col": "i_idx"}
TEST_TABLE = pd.DataFrame({"u_idx": [0, 1], "i_idx": [1, 0], "r": [1.0, 2.0]})
GRADED = {"recommended": [1, 2], "relevance_scores": {2: 3.0}, "k": 2}


def same_scores(users, items):
    return np.asarray(users) * 0.1 + np.asarray(items)


class OwnBaseline(cf_evaluation.BaselineRecommender):
    def recommend(self, user_idx, k=10, exclude_items=None):
        del user_idx, exclude_items
        return [0, 1, 2][:k]


class OwnMetric(cf_evaluation.HybridMetric):
    name = "own"

    def compute(self, all_recommendations):
        return float(len(all_recommendations))


def evaluated(evaluator, *data):
    evaluator.evaluate(*data)
    return evaluator


def model():
    return evaluated(cf_evaluation.ModelEvaluator(MATRIX, MATRIX, [1, 2]), TRUTH, TRAIN)


def batch():
    made = cf_evaluation.BatchModelEvaluator([1])
    made.add_model("als", MATRIX, MATRIX)
    made.evaluate_all(TRUTH, TRAIN)
    return made


def comparator():
    made = cf_evaluation.ModelComparator()
    made.add_model_results("als", RESULTS["als"], PER_USER)
    made.add_baseline_results("pop", RESULTS["pop"], PER_USER / 2)
    return made


def baselines():
    made = cf_evaluation.BaselineComparator([1])
    made.add_baseline("popularity", cf_evaluation.PopularityBaseline(COUNTS))
    return made


def reports():
    made = cf_evaluation.ReportGenerator("reports")
    made.add_results("als", RESULTS["als"], {"reg": 1e-5})
    return made


def ncf(**options):
    return cf_evaluation.NCFEvaluator(same_scores, CASES, top_k=2, **options)


def metric_calls():
    """Metrics of one list, document 000."""
    one_list = ("RecallAtK", "PrecisionAtK", "NDCGAtK", "MAPAtK", "HitRate", "MRR")
    yield from ((name, getattr(cf_evaluation, name), {} if name == "MRR" else {"k": 3}) for name in one_list)
    for name in one_list:
        yield f"{name}.compute", getattr(cf_evaluation, name)().compute, ONE_LIST
        pair = {name: ONE_LIST[name] for name in ("predictions", "ground_truth")}
        yield f"{name}.validate_inputs", getattr(cf_evaluation, name)().validate_inputs, pair
    for name in ("recall_at_k", "precision_at_k", "ndcg_at_k", "map_at_k", "hit_rate"):
        yield name, getattr(cf_evaluation, name), ONE_LIST
    yield "recall_at_k of document 001", cf_evaluation.recall_at_k, OF_001
    yield "ndcg_at_k of document 001", cf_evaluation.ndcg_at_k, GRADED
    yield "mrr", cf_evaluation.mrr, {"predictions": [1, 2], "ground_truth": {2}}
    covered = {"recommendations": LISTS, "num_total_items": 5}
    yield "Coverage", cf_evaluation.Coverage, {"name": "coverage"}
    yield "Coverage.compute", cf_evaluation.Coverage().compute, covered
    yield (
        "Coverage.validate_inputs",
        cf_evaluation.Coverage().validate_inputs,
        {"predictions": [1], "ground_truth": [1]},
    )
    yield "coverage", cf_evaluation.coverage, covered
    yield "MetricFactory", cf_evaluation.MetricFactory, {}
    yield "MetricFactory.create", cf_evaluation.MetricFactory.create, {"metric_name": "recall", "k": 3}
    yield (
        "MetricFactory.create_standard_metrics",
        cf_evaluation.MetricFactory.create_standard_metrics,
        {"k_values": [3]},
    )


def recommender_calls():
    """Document 001."""
    for name in ("f1_at_k", "average_precision_at_k"):
        yield name, getattr(cf_evaluation, name), OF_001
    yield "dcg_at_k", cf_evaluation.dcg_at_k, GRADED
    means = {"recommendations": LISTS, "ground_truth": TRUTH, "k": 2}
    yield "mean_average_precision_at_k", cf_evaluation.mean_average_precision_at_k, means
    grades = {"recommendations": LISTS, "relevance_scores": {0: {1: 2.0}}, "k": 2}
    yield "mean_ndcg_at_k", cf_evaluation.mean_ndcg_at_k, grades
    yield (
        "catalog_coverage",
        cf_evaluation.catalog_coverage,
        {"recommendations": LISTS, "catalog_size": 5, "k": 2},
    )
    yield "gini_coefficient", cf_evaluation.gini_coefficient, {"recommendations": LISTS, "k": 2}
    diversity = {"recommended": [0, 1], "item_features": MATRIX}
    yield "intra_list_diversity", cf_evaluation.intra_list_diversity, diversity
    rows = np.array([[0, 1, 5], [0, 2, 6], [1, 1, 7], [1, 3, 8]])
    cut = {"interactions": rows, "timestamp_col": 2, "test_ratio": 0.5, "on_tie": "together"}
    yield "time_based_split", cf_evaluation.time_based_split, cut
    left_out = {"user_item_matrix": np.array([[1, 1, 0], [0, 1, 1]]), "seed": 1}
    yield "leave_one_out_cv", lambda **given: list(cf_evaluation.leave_one_out_cv(**given)), left_out
    yield "RecommenderEvaluator", cf_evaluation.RecommenderEvaluator, {"k_values": [1]}
    asked = {"model": cf_evaluation.PopularityBaseline(COUNTS), "test_data": TRUTH, "catalog_size": 3}
    yield "RecommenderEvaluator.evaluate", cf_evaluation.RecommenderEvaluator([1]).evaluate, asked


def model_calls():
    """Models and files."""
    shapes = {"U": MATRIX, "V": MATRIX, "k_values": [1, 2], "user_ids": [5, 6, 7], "item_ids": [1, 2, 3]}
    yield "ModelEvaluator", cf_evaluation.ModelEvaluator, shapes
    yield "ModelEvaluator.evaluate", model().evaluate, {**DATA, **COLUMNS, "rating_col": None}
    of_table = {"test_data": TEST_TABLE, "user_pos_train": TEST_TABLE, **COLUMNS, "rating_col": "r"}
    yield "ModelEvaluator.evaluate of a table", model().evaluate, of_table
    wanted = {"test_users": [0], "user_pos_train": TRAIN, "k": 2}
    yield "ModelEvaluator.generate_recommendations", model().generate_recommendations, wanted
    yield "ModelEvaluator.get_per_user_metrics", model().get_per_user_metrics, {}
    yield "BatchModelEvaluator", cf_evaluation.BatchModelEvaluator, {"k_values": [1]}
    added = {"name": "bpr", "U": MATRIX, "V": MATRIX, "hyperparams": {"reg": 0.1}}
    yield "BatchModelEvaluator.add_model", batch().add_model, added
    yield "BatchModelEvaluator.evaluate_all", batch().evaluate_all, {**DATA, **COLUMNS}
    yield "BatchModelEvaluator.get_comparison_table", batch().get_comparison_table, {}
    factors = {"U": MATRIX, "V": MATRIX}
    yield "evaluate_model", cf_evaluation.evaluate_model, {**factors, **DATA, "k_values": [1]}
    load = {"model_dir": "model", **DATA, "k_values": [1], "name": None}
    yield "load_and_evaluate", cf_evaluation.load_and_evaluate, load
    embedded = {"bert_embeddings": MATRIX, "item_to_idx": {0: 0, 1: 1, 2: 2}}
    yield (
        "compute_all_user_profiles",
        cf_evaluation.compute_all_user_profiles,
        {"test_data": TRAIN, **embedded},
    )
    hybrid = {**factors, **embedded, **DATA, "user_profiles": {0: [1.0, 0.0], 1: [0.0, 1.0]}}
    hybrid |= {"item_counts": COUNTS, "k": 2, "cold_threshold": 2}
    yield "evaluate_hybrid_model", cf_evaluation.evaluate_hybrid_model, hybrid
    reranked = {**hybrid, "alpha": 0.5, "diversity": 0.3}
    yield "evaluate_with_reranking", cf_evaluation.evaluate_with_reranking, reranked
    files = {"path": "model", "name": None, "n_users": 3, "n_items": 3}
    yield "load_model", cf_evaluation.load_model, files
    yield "load_cf_model", cf_evaluation.load_cf_model, files
    yield "load_test_data", cf_evaluation.load_test_data, {"path": "data", **COLUMNS, "n_items": 3}


def baseline_calls():
    """Baselines."""
    recommended = {"user_idx": 0, "k": 2, "exclude_items": {1}}
    many = {"user_indices": [0, 1], "k": 2, "user_exclude_items": {0: {1}}}
    tested = {**DATA, "k_values": [1], **COLUMNS}
    made = {
        "PopularityBaseline": (
            cf_evaluation.PopularityBaseline(COUNTS),
            {"item_popularity": COUNTS, "num_items": 4, "name": "p"},
        ),
        "RandomBaseline": (
            cf_evaluation.RandomBaseline(3),
            {"num_items": 3, "random_seed": 1, "name": "r"},
        ),
        "ItemSimilarityBaseline": (
            cf_evaluation.ItemSimilarityBaseline(np.eye(3) + 0.1),
            {"similarity_matrix": np.eye(3), "num_items": 3},
        ),
        "BaselineRecommender": (OwnBaseline("own", 3), {"name": "own", "num_items": 3}),
    }
    for name, (baseline, arguments) in made.items():
        yield name, OwnBaseline if name == "BaselineRecommender" else getattr(cf_evaluation, name), arguments
        if name != "BaselineRecommender":  # abstract there
            yield f"{name}.recommend", baseline.recommend, recommended
        yield f"{name}.recommend_batch", baseline.recommend_batch, many
        yield f"{name}.evaluate", baseline.evaluate, tested
        yield f"{name}.get_per_user_metrics", evaluated(baseline, TRUTH, TRAIN, [1]).get_per_user_metrics, {}
        if name != "BaselineRecommender":
            sources = {"users": np.array([0, 1]), "history": None}
            yield f"{name}.source", lambda **_: None, sources  # takes what the package itself has read
    embeddings = {"item_embeddings": MATRIX}
    yield "ItemSimilarityBaseline of embeddings", cf_evaluation.ItemSimilarityBaseline, embeddings
    yield "BaselineComparator", cf_evaluation.BaselineComparator, {"k_values": [1]}
    own = {"name": "own", "baseline": OwnBaseline("own", 3)}
    yield "BaselineComparator.add_baseline", baselines().add_baseline, own
    yield "BaselineComparator.evaluate_all", baselines().evaluate_all, {**DATA, **COLUMNS}
    yield "BaselineComparator.get_comparison_table", baselines().get_comparison_table, {}
    popular = {"test_data": TRUTH, "item_popularity": COUNTS, "user_pos_train": TRAIN, "k_values": [1]}
    yield (
        "evaluate_baseline_popularity",
        cf_evaluation.evaluate_baseline_popularity,
        {**popular, "num_items": 4},
    )
    chance = {"num_items": 3, "random_seed": 1, "k_values": [1]}
    yield "evaluate_baseline_random", cf_evaluation.evaluate_baseline_random, {**DATA, **chance}
    yield "compute_item_similarity", cf_evaluation.compute_item_similarity, {"embeddings": MATRIX}


def hybrid_calls():
    """Hybrid metrics."""
    vectors = {"embeddings": MATRIX, "item_to_idx": {0: 0, 1: 1, 2: 2}}
    profile = {"user_profile_emb": [1.0, 0.5], "recommendations": [0, 1]}
    profiles = {"user_profiles": {0: [1.0, 0.0], 1: [0.0, 1.0]}, "all_recommendations": LISTS}
    cold = {"all_recommendations": LISTS, "item_counts": COUNTS, "cold_threshold": 2}
    novel = {"item_popularity": COUNTS, "num_users": 5, "k": 2}
    surprise = {"ground_truth": {1}, "baseline_recommendations": [0], "k": 2}
    surprises = {"ground_truth": TRUTH, "baseline_recommendations": {0: [0]}, "k": 2}
    one_list, lists = {"recommendations": [0, 1]}, {"all_recommendations": LISTS}
    arguments = {
        "DiversityMetric": ({"similarity_type": "cosine"}, one_list | vectors, lists | vectors),
        "SemanticAlignmentMetric": ({}, profile | vectors, profiles | vectors),
        "ColdStartCoverageMetric": ({"cold_threshold": 2}, cold, None),
        "NoveltyMetric": ({"k": 2}, one_list | novel, lists | novel),
        "SerendipityMetric": ({"k": 2}, one_list | surprise, lists | surprises),
    }
    for name, (made, of_one, of_many) in arguments.items():
        metric = getattr(cf_evaluation, name)
        yield name, metric, made
        yield f"{name}.compute", metric().compute, of_one
        if of_many is not None:
            yield f"{name}.compute_batch", metric().compute_batch, of_many
    yield "HybridMetric", OwnMetric, {"name": "own"}
    own = type("Own", (cf_evaluation.BaseMetric,), {"compute": OwnMetric.compute})
    yield "BaseMetric", own, {"name": "own"}
    every = [getattr(cf_evaluation, name)() for name in arguments]
    yield "HybridMetricCollection", cf_evaluation.HybridMetricCollection, {"metrics": every}
    everything = {**profiles, **vectors, "item_counts": COUNTS, "item_popularity": COUNTS, "num_users": 5}
    everything |= {"ground_truth": TRUTH, "baseline_recommendations": [0]}
    collection = cf_evaluation.HybridMetricCollection(every)
    yield "HybridMetricCollection.evaluate_all", collection.evaluate_all, everything
    bert = {"recommendations": [0, 1], "bert_embeddings": MATRIX, "item_to_idx": None}
    yield "compute_diversity_bert", cf_evaluation.compute_diversity_bert, bert
    aligned = {**profile, "item_embeddings": MATRIX, "item_to_idx": None}
    yield "compute_semantic_alignment", cf_evaluation.compute_semantic_alignment, aligned
    yield "compute_cold_start_coverage", cf_evaluation.compute_cold_start_coverage, cold


def comparison_calls():
    """Comparisons, reports and chart data."""
    yield "ModelComparator", cf_evaluation.ModelComparator, {"significance_level": 0.05}
    new = {"name": "bpr", "results": RESULTS["als"], "per_user_metrics": PER_USER}

    def tabled(add):
        def call(**given):
            made = comparator()
            getattr(made, add)(**given)
            return made.get_comparison_table(["recall@10"])

        return call

    yield "ModelComparator.add_model_results", tabled("add_model_results"), new
    yield "ModelComparator.add_baseline_results", tabled("add_baseline_results"), new
    pair = {"model_name": "als", "baseline_name": "pop", "metric": "recall@10"}
    yield "ModelComparator.compute_improvement", comparator().compute_improvement, pair
    shown = {"metrics": ["recall@10"]}
    yield "ModelComparator.get_comparison_table", comparator().get_comparison_table, shown
    summary = {"baseline_name": "pop", **shown}
    yield "ModelComparator.get_improvement_summary", comparator().get_improvement_summary, summary
    models = {"models": {"als": RESULTS["als"]}, "baselines": {"pop": RESULTS["pop"]}, **shown}
    yield "compare_models", cf_evaluation.compare_models, {**models, "significance_level": 0.05}
    yield "ReportGenerator", cf_evaluation.ReportGenerator, {"output_dir": "reports"}
    added = {"name": "a", "results": RESULTS["als"], "metadata": {"reg": 0.1}}
    yield "ReportGenerator.add_results", reports().add_results, added
    for kind in ("csv", "json", "markdown", "latex"):
        name = f"generate_{kind}_report"
        yield f"ReportGenerator.{name}", getattr(reports(), name), {"filename": "x"}
    written = {"results": RESULTS, "output_path": "x.csv", "format": "csv", "metadata": {"als": {"reg": 0.1}}}
    yield "generate_evaluation_report", cf_evaluation.generate_evaluation_report, written
    charts = {
        "bar_chart": {"results": RESULTS, "metrics": ["recall@10"]},
        "k_sensitivity": {"results": RESULTS, "metric": "recall", "k_values": [10]},
        "tradeoff": {"results": RESULTS, "accuracy_metric": "recall@10", "coverage_metric": "coverage"},
    }
    yield "EvaluationVisualizer", cf_evaluation.EvaluationVisualizer, {}
    for name, arguments in charts.items():
        prepare = getattr(cf_evaluation.EvaluationVisualizer, f"prepare_{name}_data")
        yield f"EvaluationVisualizer.prepare_{name}_data", prepare, arguments


def statistics_calls():
    """Statistics."""
    tester, bootstrap = cf_evaluation.StatisticalTester(), cf_evaluation.BootstrapEstimator(50)
    yield "StatisticalTester", cf_evaluation.StatisticalTester, {"significance_level": 0.05}
    for test in ("paired_t_test", "wilcoxon_test"):
        yield f"StatisticalTester.{test}", getattr(tester, test), {**SAMPLES, "alternative": "less"}
    yield "StatisticalTester.wilcoxon_test by method", tester.wilcoxon_test, {**SAMPLES, "method": "exact"}
    for test in ("cohens_d", "glass_delta"):
        yield f"StatisticalTester.{test}", getattr(tester, test), SAMPLES
    interval = {"sample": SAMPLES["sample1"], "confidence": 0.9}
    yield "StatisticalTester.confidence_interval", tester.confidence_interval, interval
    for name in ("bonferroni_correction", "holm_bonferroni_correction"):
        yield f"StatisticalTester.{name}", getattr(tester, name), {"p_values": [0.1, 0.01], "alpha": 0.05}
    yield (
        "BootstrapEstimator",
        lambda **given: cf_evaluation.BootstrapEstimator(**given).bootstrap_ci(SAMPLES["sample1"]),
        {"n_bootstrap": 50, "random_seed": 1},
    )
    drawn = {"sample": SAMPLES["sample1"], "confidence": 0.9, "method": "percentile"}
    yield "BootstrapEstimator.bootstrap_ci", bootstrap.bootstrap_ci, drawn
    flips = {**SAMPLES, "n_permutations": 50, "alternative": "less"}
    yield "BootstrapEstimator.permutation_test", bootstrap.permutation_test, flips
    yield "paired_t_test", cf_evaluation.paired_t_test, {**SAMPLES, "alternative": "less", "alpha": 0.1}
    yield "cohens_d", cf_evaluation.cohens_d, SAMPLES
    values = {"metric_values": SAMPLES["sample1"], "n_bootstrap": 50, "confidence": 0.9, "random_seed": 1}
    yield "bootstrap_confidence_interval", cf_evaluation.bootstrap_confidence_interval, values


def rating_calls():
    """Ratings (003, 004) and candidates (002)."""
    rated = {"user_pred_true": PAIRS, "metrics": ["recall", "rmse"], "k": 2, "threshold": 3.5}
    yield "compute_metrics", cf_evaluation.compute_metrics, rated
    yield "compute_user_metrics", cf_evaluation.compute_user_metrics, rated
    predicted = {"model": same_scores, "df_test": RATINGS}
    yield (
        "evaluate_rating_prediction",
        cf_evaluation.evaluate_rating_prediction,
        {**predicted, "metrics": ["mse"], "columns": None},
    )
    ranked = {**predicted, "df_train": RATINGS.iloc[:1], "k": 2, "threshold": 4.0, "candidates": "test"}
    yield "precision_recall_at_k", cf_evaluation.precision_recall_at_k, ranked
    yield "evaluate_ranking", cf_evaluation.evaluate_ranking, {**ranked, "metrics": ["ndcg"], "columns": None}
    sampled = {"model": same_scores, "test_negative_dataset": CASES, "top_k": 2, "device": "cpu"}
    sampled |= {"ties": "expected", "duplicates": "collapse", "autocast": None, "batch_size": None}
    yield "NCFEvaluator", lambda **given: cf_evaluation.NCFEvaluator(**given).evaluate(), sampled
    yield "NCFEvaluator.evaluate", ncf().evaluate, {}
    yield "NCFEvaluator.cases", lambda: ncf().cases, {}
    yield "NCFEvaluator.evaluate_all", ncf().evaluate_all, {"metrics": ["hit"], "k": [1], "conventions": None}
    yield "NCFEvaluator.evaluate_all of all", ncf().evaluate_all, {"k": [1]}
    full = {"n_items": 40, "metrics": ["hit@1"], "methods": ["cls"], "replacement": False}
    yield "NCFEvaluator.estimate_full", ncf().estimate_full, full
    for name in ("getHitRate", "getNDCG"):
        yield f"NCFEvaluator.{name}", getattr(ncf(), name), {"ranklist": [1, 2], "get_item": 2}
    yield "NCFTestDataset", cf_evaluation.NCFTestDataset, {"test_csv": "t.csv", "test_negative_csv": "n.csv"}


def calls():
    """(name, callable, valid arguments) of everything; methods belong to an object made for the call."""
    yield from metric_calls()
    yield from recommender_calls()
    yield from model_calls()
    yield from baseline_calls()
    yield from hybrid_calls()
    yield from comparison_calls()
    yield from statistics_calls()
    yield from rating_calls()


def public_callables():
    """Every public name, and every public method of every public class."""
    for name in cf_evaluation.__all__:
        yield name
        value = getattr(cf_evaluation, name)
        if inspect.isclass(value):
            own = {m for kind in value.__mro__ if kind.__module__.startswith("recsys") for m in vars(kind)}
            yield from (f"{name}.{method}" for method in own
                        if not method.startswith("_") and callable(getattr(value, method)))  # fmt: skip


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A model, a test set and a place for files, in the working directory."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model").mkdir()
    np.save("model/U.npy", MATRIX)
    np.save("model/V.npy", MATRIX)
    (tmp_path / "data").mkdir()
    for part, rows in (("train", TRAIN), ("test", TRUTH)):
        pairs = [(user, item) for user, items in rows.items() for item in items]
        pd.DataFrame(pairs, columns=["u_idx", "i_idx"]).to_csv(f"data/{part}.csv", index=False)
    return tmp_path


def test_every_public_callable_has_its_row(folder):
    known = {name for name, *_ in calls()}
    abstract = {"BaseMetric.compute", "BaseMetric.validate_inputs", "HybridMetric.compute"}
    assert set(public_callables()) - known - abstract - {"BaselineRecommender.recommend"} == set()


def refusal(call, arguments):
    """The error that a call ends with, None if there is none."""
    try:
        call(**arguments)
    except REFUSALS as error:
        return error
    return None


def module_of(name):
    """The module of a public name, without its package."""
    return getattr(cf_evaluation, name).__module__.rpartition(".")[2]


@pytest.mark.parametrize("module", sorted({module_of(name) for name in cf_evaluation.__all__}))
def test_what_cannot_be_meant_is_never_a_number(module, folder, caplog):
    caplog.set_level("CRITICAL")
    accepted = []
    for name, call, valid in calls():
        if module_of(name.split()[0].split(".")[0]) != module:
            continue
        if name != "NCFTestDataset":  # whose files do not exist
            call(**valid)
        for argument in valid.keys() - NOT_READ - NOT_READ_IN.get(name, set()):
            for kind, value in MEANINGLESS.items():
                if refusal(call, {**valid, argument: value}) is None:
                    accepted.append(f"{name}({argument}={kind})")
            wrong = FRACTIONS if argument in WHOLE_NUMBERS else NOT_FINITE if argument in REAL_NUMBERS else {}
            for kind, value in wrong.items():
                error = refusal(call, {**valid, argument: value})
                if not isinstance(error, RecsysError):
                    accepted.append(f"{name}({argument}={kind}): {error!r}")
    plt = sys.modules.get("matplotlib.pyplot")
    if plt is not None:
        plt.close("all")
    assert accepted == []


@pytest.mark.parametrize("name", ["RandomBaseline", "PopularityBaseline", "evaluate_baseline_random"])
@pytest.mark.parametrize("num_items", ["10", True, -1, 0, 10.7])
def test_a_number_of_items_is_a_whole_number(name, num_items):
    valid = next(arguments for known, _, arguments in calls() if known == name)
    with pytest.raises(CutoffError, match=r"num_items=.* is not a positive whole number"):
        getattr(cf_evaluation, name)(**{**valid, "num_items": num_items})


@pytest.mark.parametrize(
    "counts", [{0: math.nan, 1: 2.0}, {0: math.inf, 1: 2.0}, [math.nan, 1.0], np.array([math.nan, 1.0])]
)
def test_activity_is_finite(counts):
    with pytest.raises(InputError, match="NaN or an infinite number"):
        recsys.analysis.by_activity(model()._last_results, counts)


def test_a_list_is_not_a_mapping_of_items_to_rows():
    """Its entries would be taken for items, and its places for rows."""
    for rows in ([1, 0], [], b"\x00\x01"):
        with pytest.raises(AttributeError, match="items"):
            cf_evaluation.DiversityMetric().compute([0, 1], MATRIX, rows)


@pytest.mark.parametrize("rows", [[1.0, 2.0], np.zeros((2, 3, 4)), 5])
def test_a_matrix_has_two_dimensions(rows):
    for call in (
        lambda: cf_evaluation.intra_list_diversity([0, 1], rows),
        lambda: cf_evaluation.ItemSimilarityBaseline(item_embeddings=rows),
        lambda: cf_evaluation.ItemSimilarityBaseline(rows),
        lambda: cf_evaluation.compute_item_similarity(rows),
    ):
        with pytest.raises(InputError, match="matrix; got shape"):
            call()


def test_an_error_of_the_callers_own_code_stays_as_it_is():
    def broken(one, other):
        raise AttributeError("mine")

    with pytest.raises(AttributeError, match="mine"):
        cf_evaluation.DiversityMetric(broken).compute([0, 1], MATRIX)

    class Broken(cf_evaluation.BaselineRecommender):
        def recommend(self, user_idx, k=10, exclude_items=None):
            raise TypeError(f"mine: {user_idx}, {k}, {exclude_items}")

    with pytest.raises(TypeError, match="mine"):
        Broken("broken", 3).evaluate(TRUTH, TRAIN, [1])


def test_too_few_arguments_are_what_python_says():
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'ground_truth'"):
        cf_evaluation.map_at_k([1])
