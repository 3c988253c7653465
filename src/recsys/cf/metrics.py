"""Where seed 000's comparison script imports its evaluation from."""

from recsys.cf.evaluation.hybrid import (
    compute_all_user_profiles,
    evaluate_hybrid_model,
    evaluate_with_reranking,
)

__all__ = ["compute_all_user_profiles", "evaluate_hybrid_model", "evaluate_with_reranking"]
