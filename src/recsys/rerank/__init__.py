"""Re-ranking: blending a model with content, diversifying lists, and the trade-off between the two."""

from recsys.rerank.blending import blend, content, rerank
from recsys.rerank.diversification import diversify
from recsys.rerank.profiles import Profiles, cosine_matrix, unit_rows, user_profiles, vector_rows
from recsys.rerank.tradeoff import Sweep, sweep

__all__ = [
    "Profiles",
    "Sweep",
    "blend",
    "content",
    "cosine_matrix",
    "diversify",
    "rerank",
    "sweep",
    "unit_rows",
    "user_profiles",
    "vector_rows",
]
