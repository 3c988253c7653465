"""The names that the comparison script of document 000 imports from `recsys.cf.metrics`."""

from recsys.cf.evaluation.model_evaluator import (
    compute_all_user_profiles,
    evaluate_hybrid_model,
    evaluate_with_reranking,
)

__all__ = ["compute_all_user_profiles", "evaluate_hybrid_model", "evaluate_with_reranking"]
