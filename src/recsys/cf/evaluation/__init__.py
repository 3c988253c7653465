"""The evaluation package of the documents: import every name from here; modules are loaded on first use.

The modules translate arguments and result keys; the metrics are computed by `recsys.evaluate`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recsys.records.registry import lazy_names

if TYPE_CHECKING:
    from recsys.cf.evaluation.baseline_evaluator import BaselineComparator as BaselineComparator
    from recsys.cf.evaluation.baseline_evaluator import BaselineRecommender as BaselineRecommender
    from recsys.cf.evaluation.baseline_evaluator import ItemSimilarityBaseline as ItemSimilarityBaseline
    from recsys.cf.evaluation.baseline_evaluator import PopularityBaseline as PopularityBaseline
    from recsys.cf.evaluation.baseline_evaluator import RandomBaseline as RandomBaseline
    from recsys.cf.evaluation.baseline_evaluator import compute_item_similarity as compute_item_similarity
    from recsys.cf.evaluation.baseline_evaluator import (
        evaluate_baseline_popularity as evaluate_baseline_popularity,
    )
    from recsys.cf.evaluation.baseline_evaluator import evaluate_baseline_random as evaluate_baseline_random
    from recsys.cf.evaluation.comparison import EvaluationVisualizer as EvaluationVisualizer
    from recsys.cf.evaluation.comparison import ModelComparator as ModelComparator
    from recsys.cf.evaluation.comparison import ReportGenerator as ReportGenerator
    from recsys.cf.evaluation.comparison import compare_models as compare_models
    from recsys.cf.evaluation.comparison import generate_evaluation_report as generate_evaluation_report
    from recsys.cf.evaluation.hybrid_metrics import ColdStartCoverageMetric as ColdStartCoverageMetric
    from recsys.cf.evaluation.hybrid_metrics import DiversityMetric as DiversityMetric
    from recsys.cf.evaluation.hybrid_metrics import HybridMetric as HybridMetric
    from recsys.cf.evaluation.hybrid_metrics import HybridMetricCollection as HybridMetricCollection
    from recsys.cf.evaluation.hybrid_metrics import NoveltyMetric as NoveltyMetric
    from recsys.cf.evaluation.hybrid_metrics import SemanticAlignmentMetric as SemanticAlignmentMetric
    from recsys.cf.evaluation.hybrid_metrics import SerendipityMetric as SerendipityMetric
    from recsys.cf.evaluation.hybrid_metrics import compute_cold_start_coverage as compute_cold_start_coverage
    from recsys.cf.evaluation.hybrid_metrics import compute_diversity_bert as compute_diversity_bert
    from recsys.cf.evaluation.hybrid_metrics import compute_semantic_alignment as compute_semantic_alignment
    from recsys.cf.evaluation.loading import load_cf_model as load_cf_model
    from recsys.cf.evaluation.loading import load_model as load_model
    from recsys.cf.evaluation.loading import load_test_data as load_test_data
    from recsys.cf.evaluation.metrics import MRR as MRR
    from recsys.cf.evaluation.metrics import BaseMetric as BaseMetric
    from recsys.cf.evaluation.metrics import Coverage as Coverage
    from recsys.cf.evaluation.metrics import HitRate as HitRate
    from recsys.cf.evaluation.metrics import MAPAtK as MAPAtK
    from recsys.cf.evaluation.metrics import MetricFactory as MetricFactory
    from recsys.cf.evaluation.metrics import NDCGAtK as NDCGAtK
    from recsys.cf.evaluation.metrics import PrecisionAtK as PrecisionAtK
    from recsys.cf.evaluation.metrics import RecallAtK as RecallAtK
    from recsys.cf.evaluation.metrics import coverage as coverage
    from recsys.cf.evaluation.metrics import hit_rate as hit_rate
    from recsys.cf.evaluation.metrics import map_at_k as map_at_k
    from recsys.cf.evaluation.metrics import mrr as mrr
    from recsys.cf.evaluation.metrics import ndcg_at_k as ndcg_at_k
    from recsys.cf.evaluation.metrics import precision_at_k as precision_at_k
    from recsys.cf.evaluation.metrics import recall_at_k as recall_at_k
    from recsys.cf.evaluation.model_evaluator import BatchModelEvaluator as BatchModelEvaluator
    from recsys.cf.evaluation.model_evaluator import ModelEvaluator as ModelEvaluator
    from recsys.cf.evaluation.model_evaluator import compute_all_user_profiles as compute_all_user_profiles
    from recsys.cf.evaluation.model_evaluator import evaluate_hybrid_model as evaluate_hybrid_model
    from recsys.cf.evaluation.model_evaluator import evaluate_model as evaluate_model
    from recsys.cf.evaluation.model_evaluator import evaluate_with_reranking as evaluate_with_reranking
    from recsys.cf.evaluation.model_evaluator import load_and_evaluate as load_and_evaluate
    from recsys.cf.evaluation.ncf_evaluator import NCFEvaluator as NCFEvaluator
    from recsys.cf.evaluation.ncf_evaluator import NCFTestDataset as NCFTestDataset
    from recsys.cf.evaluation.rating_prediction import compute_metrics as compute_metrics
    from recsys.cf.evaluation.rating_prediction import compute_user_metrics as compute_user_metrics
    from recsys.cf.evaluation.rating_prediction import evaluate_ranking as evaluate_ranking
    from recsys.cf.evaluation.rating_prediction import (
        evaluate_rating_prediction as evaluate_rating_prediction,
    )
    from recsys.cf.evaluation.rating_prediction import precision_recall_at_k as precision_recall_at_k
    from recsys.cf.evaluation.recommender_evaluator import RecommenderEvaluator as RecommenderEvaluator
    from recsys.cf.evaluation.recommender_evaluator import average_precision_at_k as average_precision_at_k
    from recsys.cf.evaluation.recommender_evaluator import catalog_coverage as catalog_coverage
    from recsys.cf.evaluation.recommender_evaluator import dcg_at_k as dcg_at_k
    from recsys.cf.evaluation.recommender_evaluator import f1_at_k as f1_at_k
    from recsys.cf.evaluation.recommender_evaluator import gini_coefficient as gini_coefficient
    from recsys.cf.evaluation.recommender_evaluator import intra_list_diversity as intra_list_diversity
    from recsys.cf.evaluation.recommender_evaluator import leave_one_out_cv as leave_one_out_cv
    from recsys.cf.evaluation.recommender_evaluator import (
        mean_average_precision_at_k as mean_average_precision_at_k,
    )
    from recsys.cf.evaluation.recommender_evaluator import mean_ndcg_at_k as mean_ndcg_at_k
    from recsys.cf.evaluation.recommender_evaluator import time_based_split as time_based_split
    from recsys.cf.evaluation.statistical_tests import BootstrapEstimator as BootstrapEstimator
    from recsys.cf.evaluation.statistical_tests import StatisticalTester as StatisticalTester
    from recsys.cf.evaluation.statistical_tests import (
        bootstrap_confidence_interval as bootstrap_confidence_interval,
    )
    from recsys.cf.evaluation.statistical_tests import cohens_d as cohens_d
    from recsys.cf.evaluation.statistical_tests import paired_t_test as paired_t_test

__getattr__, __dir__, __all__ = lazy_names(__name__)
