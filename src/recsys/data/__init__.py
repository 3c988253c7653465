"""Data sets: readers for the formats they are published in, and the embedded demo world.

Nothing is downloaded: files are read where they lie, and where they do not, the error says where to get them.
"""

from recsys.data.amazon import amazon
from recsys.data.dataset import Dataset
from recsys.data.movielens import movielens
from recsys.data.plain import read, table
from recsys.data.recbole import recbole

__all__ = ["Dataset", "amazon", "movielens", "read", "recbole", "table"]
