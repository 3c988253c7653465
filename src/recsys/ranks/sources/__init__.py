"""Sources of rankings besides ready lists: factors, scores, models, candidate sets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recsys.records.registry import lazy_names

if TYPE_CHECKING:
    from recsys.ranks.sources.factors import Factors as Factors
    from recsys.ranks.sources.factors import read_factors as read_factors
    from recsys.ranks.sources.fitted_models import from_model as from_model
    from recsys.ranks.sources.fitted_models import lists_from_recommender as lists_from_recommender
    from recsys.ranks.sources.history_scores import HistoryScores as HistoryScores
    from recsys.ranks.sources.random_scores import RandomScores as RandomScores
    from recsys.ranks.sources.scores import Scores as Scores
    from recsys.ranks.sources.source import UsersByItems as UsersByItems
    from recsys.ranks.sources.source import is_model_path as is_model_path
    from recsys.ranks.sources.source_files import load_model as load_model

__getattr__, __dir__, __all__ = lazy_names(__name__)
