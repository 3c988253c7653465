"""Sources of rankings besides ready lists: factors, scores, models, candidate sets."""

from recsys.ranks.sources.factor_files import read_factors
from recsys.ranks.sources.factors import Factors
from recsys.ranks.sources.fitted_models import from_model
from recsys.ranks.sources.recommenders import recommended, recommends
from recsys.ranks.sources.scores import Scores
from recsys.ranks.sources.source import RankingOptions, Source

__all__ = [
    "Factors",
    "RankingOptions",
    "Scores",
    "Source",
    "from_model",
    "read_factors",
    "recommended",
    "recommends",
]


def __dir__() -> list[str]:
    return __all__
