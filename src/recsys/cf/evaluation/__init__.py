"""The evaluation package of the seeds: every name can be imported from here, and is loaded when first used.

The modules hold signatures and docstrings; they translate words and compute nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

# One line a module, so that two people adding names do not touch the same line.
_ROOMS: dict[str, tuple[str, ...]] = {
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
    "threshold": ("compute_metrics", "compute_user_metrics"),
    "rating_prediction": ("evaluate_ranking", "evaluate_rating_prediction", "precision_recall_at_k"),
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
        "evaluate_model",
        "load_and_evaluate",
        "load_cf_model",
        "load_model",
        "load_test_data",
    ),
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
    "hybrid": ("compute_all_user_profiles", "evaluate_hybrid_model", "evaluate_with_reranking"),
    "comparison": (
        "EvaluationVisualizer",
        "ModelComparator",
        "ReportGenerator",
        "compare_models",
        "generate_evaluation_report",
    ),
}
_HOMES = {name: f"{__name__}.{room}" for room, names in _ROOMS.items() for name in names}

__all__ = [*_HOMES]  # noqa: PLE0604 - the names are those of the table above


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
