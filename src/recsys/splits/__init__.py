"""Split one data set into parts that do not leak into each other: for training, for tuning, for testing.

Every strategy is a function of this package; `split(data, how="leave_last", ...)` calls one by its name. The
parts have the type of the data, and every row is in exactly one of them or in `excluded`, with a reason.
"""

from __future__ import annotations

from typing import Any

from recsys.errors import UnknownNameError
from recsys.splits.eligibility import Eligible, eligible_by_time
from recsys.splits.folds import k_fold, leave_one_out_matrices, rolling_windows
from recsys.splits.manifest import read_manifest, rerun, to_json
from recsys.splits.selection import Selection, min_interactions
from recsys.splits.split_files import save
from recsys.splits.split_result import Folds, Split
from recsys.splits.strategies import (
    global_temporal,
    leave_last,
    leave_one_out,
    per_user_ratio,
    per_user_temporal,
    random_ratio,
    unseen_users,
)

STRATEGIES: dict[str, Any] = {
    strategy.__name__: strategy
    for strategy in (
        random_ratio, per_user_ratio, k_fold, leave_one_out, leave_last, per_user_temporal, global_temporal,
        rolling_windows, unseen_users,
    )
}  # fmt: skip


def split(data: Any, how: str = "random_ratio", *arguments: Any, **parameters: Any) -> Any:
    """Split interactions by the name of a strategy.

    Args:
        data: a table, a sparse matrix, a dict, a 2-D array or `Interactions`.
        how: a name in `STRATEGIES`.
        arguments: positional arguments of that strategy.
        parameters: keyword arguments of that strategy.

    Returns:
        A `Split`; `Folds` of several for "k_fold" and "rolling_windows".

    Raises:
        UnknownNameError: there is no such strategy.

    >>> split({"ann": ["a", "b", "c"], "bob": ["a", "d"]}, "leave_last").test
    {'ann': ['c'], 'bob': ['d']}
    """
    if how not in STRATEGIES:
        raise UnknownNameError("way to split", how, STRATEGIES)
    return STRATEGIES[how](data, *arguments, **parameters)


__all__ = [
    "STRATEGIES",
    "Eligible",
    "Folds",
    "Selection",
    "Split",
    "eligible_by_time",
    "global_temporal",
    "k_fold",
    "leave_last",
    "leave_one_out",
    "leave_one_out_matrices",
    "min_interactions",
    "per_user_ratio",
    "per_user_temporal",
    "random_ratio",
    "read_manifest",
    "rerun",
    "rolling_windows",
    "save",
    "split",
    "to_json",
    "unseen_users",
]


def __dir__() -> list[str]:
    return __all__
