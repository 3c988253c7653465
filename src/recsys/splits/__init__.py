"""Split one data set into parts that do not leak into each other: for training, for tuning, for testing.

Every strategy is a function of this package; `split(data, how="leave_last", ...)` calls one by its name. The
parts have the type of the data, and every row is in exactly one of them or in `excluded`, with a reason. A
function below `@strategy(...)` is one more way to split.
"""

from typing import TYPE_CHECKING, Any

from recsys.splits.eligibility import Eligible, eligible_by_time
from recsys.splits.job import STRATEGIES, Strategy, strategy
from recsys.splits.manifest import read_manifest, rerun, save, to_json
from recsys.splits.split_result import Folds, Split
from recsys.splits.split_table import Selection, min_interactions
from recsys.splits.strategies import (
    global_temporal,
    k_fold,
    leave_last,
    leave_last_folds,
    leave_one_out,
    leave_one_out_matrices,
    per_user_ratio,
    per_user_temporal,
    random_ratio,
    rolling_windows,
    split,
    unseen_users,
)

__all__ = [
    "STRATEGIES",
    "Eligible",
    "Folds",
    "Selection",
    "Split",
    "Strategy",
    "eligible_by_time",
    "global_temporal",
    "k_fold",
    "leave_last",
    "leave_last_folds",
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
    "strategy",
    "to_json",
    "unseen_users",
]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Return a strategy that is in the registry only, such as a plug-in's."""
        if not name.startswith("_") and name in STRATEGIES.load_plugins():
            return STRATEGIES[name].function
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
