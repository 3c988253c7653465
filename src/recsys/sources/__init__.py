"""What produces a ranking besides ready lists: factors, score blocks, models."""

from recsys.sources.asked import Asked, Source
from recsys.sources.factors import Factors
from recsys.sources.models import from_model
from recsys.sources.recommender import recommended, recommends
from recsys.sources.scores import Scores
from recsys.sources.stored import read_factors

__all__ = [
    "Asked",
    "Factors",
    "Scores",
    "Source",
    "from_model",
    "read_factors",
    "recommended",
    "recommends",
]
