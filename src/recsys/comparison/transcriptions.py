"""What evaluators outside the field decide and do differently: facts read in their sources, one row each.

A row is not a preset: it says nothing about ties or users where the evaluator is handed one list at a time.
Where it has no cut-off of its own, it is handed the first k.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Transcription(NamedTuple):
    """An evaluator at a commit or version, the file that was read, and what it does by metric.

    What it does is written as decisions, such as "gain=exp2", and the words of deviations.
    """

    name: str
    repository: str
    version: str
    file: str
    metrics: Mapping[str, tuple[str, ...]]

    def decisions(self, metric: str) -> dict[str, str]:
        """Return the values of decisions on a metric."""
        texts = (text for part in self.metrics[metric] if "=" in part for text in part.split())
        return dict(text.split("=") for text in texts)

    def deviations(self, metric: str) -> tuple[str, ...]:
        """Return what it does beyond decisions."""
        return tuple(part for part in self.metrics[metric] if "=" not in part)


_NO_TRUTH_IS_1 = "a user without relevant items counts as 1"
_DISTINCT = "hits are divided by the different items among the first k"
_ROWS_ONLY = "relevant items that are not listed are taken out of the truth"
_ROUNDED = "the value of each user is rounded to 2 decimals"
_ONE = "only the first item of the truth is relevant"
_BEST_ORDER = "the ideal list is the whole given list in its best order"
_BEST_ORDER_CUT = f"{_BEST_ORDER}, cut at k"
_FULL = "a list that ends before k counts as 0"
_TWICE = "an item listed twice enters the truth twice as well"
_ZERO_COUNTS = "items judged not relevant (grade 0) count as relevant"
_PLACES = "the ideal list holds a hit of gain 1 at every place that the list has"

_ROWS = (
    Transcription(
        "LlamaIndex", "run-llama/llama_index", "1945bfb",
        "llama-index-core/llama_index/core/evaluation/retrieval/metrics.py",
        {
            "hit": (), "mrr": (), "precision": ("duplicates=first", _DISTINCT),
            "recall": ("recall_over=relevant duplicates=first",),
            "map": (
                "ap_over=relevant",
                "an item listed twice is one hit, and the precision at its second place is added, too",
            ),
            "ndcg": ("gain=binary duplicates=all", _PLACES),
        },
    ),
    Transcription(
        "Haystack", "deepset-ai/haystack", "3.2.0-rc0", "haystack/components/evaluators/document_*.py",
        {
            "recall": ("recall_over=relevant duplicates=first no_truth=zero",), "mrr": ("no_truth=zero",),
            "map": ("ap_over=relevant duplicates=first no_truth=zero",),
            "ndcg": ("gain=grade ideal=all duplicates=first no_truth=zero",),
        },
    ),
    Transcription(
        "Haystack before 3.2", "deepset-ai/haystack", "06935f4",
        "haystack/components/evaluators/document_*.py",
        {
            "map": ("ap_over=hits duplicates=all no_truth=zero",),
            "ndcg": ("gain=grade ideal=all duplicates=all no_truth=zero",),
        },
    ),
    Transcription(
        "MLflow", "mlflow/mlflow", "001cc17", "mlflow/metrics/metric_definitions.py",
        {
            "precision": ("precision_over=list duplicates=all no_truth=zero",),
            "recall": ("recall_over=relevant duplicates=first no_truth=zero",),
            "ndcg": ("gain=binary ideal=list no_truth=zero", _TWICE),
        },
    ),
    Transcription(
        "TruLens", "truera/trulens", "97f531a", "src/feedback/trulens/feedback/groundtruth.py",
        {
            "ndcg": ("gain=grade ideal=reachable duplicates=all no_truth=unjudged",),
            "precision": ("precision_over=list duplicates=all", _ZERO_COUNTS),
            "recall": ("recall_over=relevant duplicates=all", _ZERO_COUNTS),
            "hit": (_ZERO_COUNTS,),
        },
    ),
    Transcription(
        "ragas", "explodinggradients/ragas", "3e28e9d",
        "src/ragas/metrics/_context_precision.py, _context_recall.py",
        {
            "precision": ("duplicates=first", _DISTINCT),
            "recall": ("recall_over=relevant duplicates=first no_truth=skip",),
            "map": ("ap_over=hits duplicates=all",),
        },
    ),
    Transcription(
        "ignite", "pytorch/ignite", "de08e79", "ignite/metrics/rec_sys/*.py",
        {"hit": ("no_truth=skip",), "ndcg": ("gain=exp2 ideal=reachable no_truth=skip",)},
    ),
    Transcription(
        "metrax", "google/metrax", "1f11510", "src/metrax/ranking_metrics.py",
        {
            "precision": ("precision_over=k no_truth=zero",),
            "recall": ("recall_over=relevant no_truth=zero",),
            "map": ("ap_over=relevant no_truth=zero",), "mrr": ("no_truth=zero",),
            "ndcg": ("gain=exp2 ideal=reachable no_truth=zero",),
        },
    ),
    Transcription(
        "keras-rs", "keras-team/keras-rs", "812d35b", "keras_rs/src/metrics/*.py",
        {
            "precision": ("precision_over=list no_truth=zero no_list=skip",),
            "recall": ("no_truth=zero no_list=skip", "hits are divided by the relevant items of the list"),
            "map": (
                "no_truth=zero no_list=skip",
                "the sum of precisions is divided by the relevant items of the whole list",
            ),
            "mrr": ("no_truth=zero no_list=skip",),
            "ndcg": ("gain=exp2 no_truth=zero no_list=skip", _BEST_ORDER_CUT),
        },
    ),
    Transcription(
        "torchrec", "pytorch/torchrec", "a48cef7", "torchrec/metrics/ndcg.py, recall_session.py",
        {
            "ndcg": (
                "gain=grade no_truth=zero no_list=skip", _BEST_ORDER,
                "the cut-off k is not used: whole lists are read",
                "what is reported is 1 minus the value",
            ),
            "recall": (
                "average=pooled ties=best", "hits are divided by the relevant items of the list",
            ),
        },
    ),
    Transcription(
        "OpenSearch", "opensearch-project/search-relevance", "0b75cf8",
        "src/main/java/org/opensearch/searchrelevance/metrics/calculator/Evaluation.java",
        {
            "precision": ("precision_over=list duplicates=all no_truth=zero", _ROUNDED),
            "recall": ("recall_over=relevant duplicates=all no_truth=zero", _ROUNDED),
            "map": ("ap_over=relevant duplicates=all no_truth=zero", _ROUNDED),
            "mrr": ("no_truth=zero", _ROUNDED),
            "ndcg": ("gain=exp2 ideal=reachable duplicates=all no_truth=zero", _ROUNDED),
        },
    ),
    Transcription(
        "Spark RankingMetrics", "apache/spark", "075aa42",
        "mllib/src/main/scala/org/apache/spark/mllib/evaluation/RankingMetrics.scala",
        {
            "precision": ("precision_over=k duplicates=all no_truth=zero",),
            "recall": ("recall_over=relevant duplicates=all no_truth=zero",),
            "map": ("ap_over=min duplicates=all no_truth=zero",),
            "ndcg": ("gain=binary ideal=reachable duplicates=all no_truth=zero",),
        },
    ),
    Transcription(
        "Spark RankingMetrics with relevance", "apache/spark", "075aa42",
        "mllib/src/main/scala/org/apache/spark/mllib/evaluation/RankingMetrics.scala",
        {
            "ndcg": (
                "gain=exp2 duplicates=all no_truth=zero",
                "the ideal list is in the order of the truth, not sorted",
            )
        },
    ),
    Transcription(
        "XGBoost", "dmlc/xgboost", "379b29f", "src/metric/rank_metric.cc, src/common/ranking_utils.h",
        {
            "precision": (
                "no_list=skip", "items count by their grade: grades of the hits over the length of the list"
            ),
            "map": ("ap_over=min no_list=skip", _ROWS_ONLY, _NO_TRUTH_IS_1),
            "ndcg": ("gain=exp2 ideal=reachable no_list=skip", _ROWS_ONLY, _NO_TRUTH_IS_1),
        },
    ),
    Transcription(
        "LightGBM", "microsoft/LightGBM", "bae0b7b",
        "src/metric/map_metric.hpp, rank_metric.hpp, dcg_calculator.cpp",
        {
            "map": ("ap_over=list no_list=skip", _ROWS_ONLY, _NO_TRUTH_IS_1),
            "ndcg": ("gain=exp2 ideal=reachable no_list=skip", _ROWS_ONLY, _NO_TRUTH_IS_1),
        },
    ),
    Transcription(
        "scikit-learn", "scikit-learn/scikit-learn", "1.9.1", "sklearn/metrics/_ranking.py",
        {"ndcg": ("gain=grade ties=expected no_truth=zero no_list=skip", _BEST_ORDER_CUT)},
    ),
    Transcription(
        "GRID", "snap-research/GRID", "63e19a8", "src/components/eval_metrics.py",
        {
            "recall": ("recall_over=min no_truth=zero",),
            "ndcg": ("gain=binary ideal=reachable no_truth=zero",),
        },
    ),
    Transcription(
        "MIMIGenRec", "cocoshe/MIMIGenRec", "e843fd6", "evaluate.py",
        {
            "hit": ("no_truth=zero", _ONE, _FULL),
            "ndcg": ("gain=binary ideal=reachable no_truth=zero", _ONE, _FULL),
        },
    ),
    Transcription(
        "MiniOneRec", "AkaliKong/MiniOneRec", "81b4ba9", "calc.py",
        {
            "hit": ("no_truth=zero", _ONE),
            "ndcg": ("gain=binary ideal=reachable duplicates=first no_truth=zero", _ONE),
        },
    ),
    Transcription(
        "OneRec-Think", "wangshy31/OneRec-Think", "4c573ac", "test/test_model_hitrate.py",
        {
            "hit": ("no_truth=zero", _ONE, _FULL),
            "ndcg": ("gain=binary ideal=reachable duplicates=all no_truth=zero", _ONE),
        },
    ),
    Transcription(
        "AutoRAG", "Marker-Inc-Korea/AutoRAG", "0964abb", "autorag/evaluation/metric/retrieval.py",
        {
            "precision": ("precision_over=list duplicates=first",),
            "recall": ("recall_over=relevant duplicates=first",),
            "ndcg": ("gain=binary ideal=list duplicates=all",),
            "mrr": (
                "duplicates=first", "it is the sum of 1 / r over all hits, divided by the relevant items"
            ),
            "map": ("ap_over=hits duplicates=all",),
        },
    ),
    Transcription(
        "BEIR", "beir-cellar/beir", "ef83d29", "beir/retrieval/custom_metrics.py",
        {"mrr": ("no_truth=zero no_list=empty",), "hit": ("no_truth=zero",), "recall": ("recall_over=min",)},
    ),
)  # fmt: skip
EVALUATORS = {row.name: row for row in _ROWS}
