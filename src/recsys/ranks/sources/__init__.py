"""Sources of rankings besides ready lists: factors, scores, models, candidate sets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recsys.records.registry import lazy_names

if TYPE_CHECKING:
    from recsys.ranks.sources.factors import Factors, read_factors
    from recsys.ranks.sources.fitted_models import from_model, lists_from_recommender
    from recsys.ranks.sources.history_scores import HistoryScores
    from recsys.ranks.sources.random_scores import RandomScores
    from recsys.ranks.sources.scores import Scores
    from recsys.ranks.sources.source import RankingOptions, Source, UsersByItems, is_model_path
    from recsys.ranks.sources.source_files import load_model

__all__ = [
    "Factors",
    "HistoryScores",
    "RandomScores",
    "RankingOptions",
    "Scores",
    "Source",
    "UsersByItems",
    "from_model",
    "is_model_path",
    "lists_from_recommender",
    "load_model",
    "read_factors",
]
__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "factors": ("Factors", "read_factors"),
        "fitted_models": ("from_model", "lists_from_recommender"),
        "history_scores": ("HistoryScores",),
        "random_scores": ("RandomScores",),
        "scores": ("Scores",),
        "source": ("RankingOptions", "Source", "UsersByItems", "is_model_path"),
        "source_files": ("load_model",),
    },
)
