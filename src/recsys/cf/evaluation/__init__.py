"""The evaluation package of the documents: import every name from here; modules are loaded on first use.

The modules translate arguments and result keys; the metrics are computed by `recsys.evaluate`.
"""

from __future__ import annotations

from recsys.records.registry import lazy_names

# {module: its public names}
_MODULES: dict[str, tuple[str, ...]] = {
    "statistical_tests": (
        "BootstrapEstimator",
        "StatisticalTester",
        "bootstrap_confidence_interval",
        "cohens_d",
        "paired_t_test",
    ),
    "recommender_evaluator": (
        "RecommenderEvaluator",
        "average_precision_at_k",
        "catalog_coverage",
        "dcg_at_k",
        "f1_at_k",
        "gini_coefficient",
        "intra_list_diversity",
        "leave_one_out_cv",
        "mean_average_precision_at_k",
        "mean_ndcg_at_k",
        "time_based_split",
    ),
    "ncf_evaluator": ("NCFEvaluator", "NCFTestDataset"),
    "rating_prediction": (
        "compute_metrics",
        "compute_user_metrics",
        "evaluate_ranking",
        "evaluate_rating_prediction",
        "precision_recall_at_k",
    ),
    "metrics": (
        "BaseMetric",
        "Coverage",
        "HitRate",
        "MAPAtK",
        "MRR",
        "MetricFactory",
        "NDCGAtK",
        "PrecisionAtK",
        "RecallAtK",
        "coverage",
        "hit_rate",
        "map_at_k",
        "mrr",
        "ndcg_at_k",
        "precision_at_k",
        "recall_at_k",
    ),
    "model_evaluator": (
        "BatchModelEvaluator",
        "ModelEvaluator",
        "compute_all_user_profiles",
        "evaluate_hybrid_model",
        "evaluate_model",
        "evaluate_with_reranking",
        "load_and_evaluate",
    ),
    "loading": ("load_cf_model", "load_model", "load_test_data"),
    "baseline_evaluator": (
        "BaselineComparator",
        "BaselineRecommender",
        "ItemSimilarityBaseline",
        "PopularityBaseline",
        "RandomBaseline",
        "compute_item_similarity",
        "evaluate_baseline_popularity",
        "evaluate_baseline_random",
    ),
    "hybrid_metrics": (
        "ColdStartCoverageMetric",
        "DiversityMetric",
        "HybridMetric",
        "HybridMetricCollection",
        "NoveltyMetric",
        "SemanticAlignmentMetric",
        "SerendipityMetric",
        "compute_cold_start_coverage",
        "compute_diversity_bert",
        "compute_semantic_alignment",
    ),
    "comparison": (
        "EvaluationVisualizer",
        "ModelComparator",
        "ReportGenerator",
        "compare_models",
        "generate_evaluation_report",
    ),
}
__all__ = [name for names in _MODULES.values() for name in names]
__getattr__, __dir__ = lazy_names(__name__, _MODULES)
