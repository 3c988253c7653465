"""Where a recommender fails, and on whom: one user at a time, groups of users, items, and maps of both.

Reads evaluations, training data and lists; computes no metric of its own. Tables come back as pandas frames,
which the command prints.
"""

from recsys.analysis.failures import FailureCases, failure_cases, worst_users
from recsys.analysis.inspection import described_list, inspect_user_recommendations
from recsys.analysis.maps import item_map
from recsys.analysis.users import (
    by_activity,
    distribution,
    improvement,
    losing_users,
    number_summary,
    pareto_front,
    per_user_distribution,
)

__all__ = [
    "FailureCases",
    "by_activity",
    "described_list",
    "distribution",
    "failure_cases",
    "improvement",
    "inspect_user_recommendations",
    "item_map",
    "losing_users",
    "number_summary",
    "pareto_front",
    "per_user_distribution",
    "worst_users",
]


def __dir__() -> list[str]:
    return __all__
