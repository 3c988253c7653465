"""Data sets: readers for the formats they are published in, and the embedded demo world.

Nothing is downloaded: files are read where they lie, and where they do not, the error says where to get them.
"""

from recsys.splits.datasets.amazon_reviews import amazon
from recsys.splits.datasets.dataset import Dataset
from recsys.splits.datasets.generic import read, table
from recsys.splits.datasets.movielens_files import movielens
from recsys.splits.datasets.recbole_files import recbole

__all__ = ["Dataset", "amazon", "movielens", "read", "recbole", "table"]


def __dir__() -> list[str]:
    return __all__
