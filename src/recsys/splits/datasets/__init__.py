"""Data sets: readers for the formats they are published in, and the embedded demo world.

Nothing is downloaded: local files are read, and the error for a missing file says where to get it.
"""

from recsys.splits.datasets.amazon_reviews import amazon
from recsys.splits.datasets.dataset import Dataset
from recsys.splits.datasets.generic import read, table
from recsys.splits.datasets.movielens_files import movielens
from recsys.splits.datasets.recbole_files import recbole

__all__ = ["Dataset", "amazon", "movielens", "read", "recbole", "table"]


def __dir__() -> list[str]:
    return __all__
