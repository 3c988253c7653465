"""Where a recommender fails, and on whom: one user at a time, groups of users, items, and maps of both.

Reads evaluations, training data and lists; computes no metric of its own. Tables come back as pandas frames,
which the command prints.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recsys.records.registry import lazy_names

if TYPE_CHECKING:
    from recsys.analysis.failures import FailureCases as FailureCases
    from recsys.analysis.failures import failure_cases as failure_cases
    from recsys.analysis.failures import worst_users as worst_users
    from recsys.analysis.inspection import described_list as described_list
    from recsys.analysis.inspection import inspect_user_recommendations as inspect_user_recommendations
    from recsys.analysis.maps import item_map as item_map
    from recsys.analysis.users import by_activity as by_activity
    from recsys.analysis.users import distribution as distribution
    from recsys.analysis.users import improvement as improvement
    from recsys.analysis.users import losing_users as losing_users
    from recsys.analysis.users import number_summary as number_summary
    from recsys.analysis.users import pareto_front as pareto_front
    from recsys.analysis.users import per_user_distribution as per_user_distribution

__getattr__, __dir__, __all__ = lazy_names(__name__)
