"""Re-ranking: blending a model with content, diversifying lists, and the trade-off between the two."""

from recsys.models.rerankers.blending import blend, content, rerank
from recsys.models.rerankers.diversification import diversify
from recsys.models.rerankers.profiles import Profiles, cosine_matrix, unit_rows, user_profiles, vector_rows
from recsys.models.rerankers.tradeoff import Sweep, sweep

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


def __dir__() -> list[str]:
    return __all__
