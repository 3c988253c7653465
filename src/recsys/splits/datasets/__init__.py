"""Data sets: readers for the formats they are published in, and the embedded demo world.

Nothing is downloaded: local files are read, and the error for a missing file says where to get it.
"""

from recsys.splits.datasets.dataset_readers import Dataset, amazon, movielens, read, recbole, table

__all__ = ["Dataset", "amazon", "movielens", "read", "recbole", "table"]


def __dir__() -> list[str]:
    return __all__
