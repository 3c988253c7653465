"""Lists from any object with recommend(), called once per user of the truth.

Libraries disagree on the name of the second argument and on the type of the result; the common ones are
recognised, any other result is an error.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from recsys.errors import InputError
from recsys.ranks.sources.foreign_arrays import as_array

_COUNT_PARAMETERS = ("k", "n", "N", "top_k", "topk", "top_n", "n_items", "num_items", "n_recommendations")


def recommends(model: Any) -> bool:
    """Whether an object gives only lists: it has recommend(), is no table and has no factors."""
    if isinstance(model, np.ndarray | dict | list | tuple) or hasattr(model, "__dataframe__"):
        return False
    return callable(getattr(model, "recommend", None)) and not hasattr(model, "user_factors")


def recommended(model: Any, users: Iterable[Any], k: int) -> dict[Any, list[Any]]:
    """{user: items recommended by the model}, best first, at most k items.

    >>> class Popular:
    ...     def recommend(self, user, n):
    ...         return [("b", 3.0), ("a", 1.0)][:n]
    >>> recommended(Popular(), [1, 2], 2)
    {1: ['b', 'a'], 2: ['b', 'a']}
    """
    recommend = _recommend_call(model, k)
    user_ids = (user.item() if isinstance(user, np.generic) else user for user in users)
    return {user: _listed_items(recommend(user), user)[:k] for user in user_ids}


def _recommend_call(model: Any, k: int) -> Callable[[Any], Any]:
    try:
        names = list(inspect.signature(model.recommend).parameters)
    except (TypeError, ValueError):  # compiled without a signature
        names = []
    name = next((n for n in _COUNT_PARAMETERS if n in names), None)
    return lambda user: model.recommend(user, k) if name is None else model.recommend(user, **{name: k})


def _listed_items(answer: Any, user: Any) -> list[Any]:
    """Items of a list, of (item, score) pairs, or of a pair of arrays (items, scores)."""
    if isinstance(answer, tuple) and len(answer) == 2 and all(isinstance(a, np.ndarray) for a in answer):
        answer = answer[0]
    if isinstance(answer, np.ndarray) or hasattr(answer, "detach"):
        answer = as_array(answer).tolist()
    if not isinstance(answer, list | tuple):
        raise InputError(
            f"recommend() gave {type(answer).__name__} for user {user!r}.",
            table="lists",
            hint="It must give a list of items, best first, or of (item, score) pairs.",
        )
    return [entry[0] if isinstance(entry, tuple | list) else entry for entry in answer]
