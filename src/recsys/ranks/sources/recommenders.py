"""Lists of any object with recommend(): asked user by user, for those in the truth only.

Libraries disagree on the second argument's name and on what comes back; both are recognised, and anything
else is an error that shows what came.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from recsys.errors import InputError
from recsys.ranks.sources.foreign_arrays import as_array

_HOW_MANY = ("k", "n", "N", "top_k", "topk", "top_n", "n_items", "num_items", "n_recommendations")


def recommends(model: Any) -> bool:
    """Whether an object can only be asked for lists: it has recommend(), and no factors and no table."""
    if isinstance(model, np.ndarray | dict | list | tuple) or hasattr(model, "__dataframe__"):
        return False
    return callable(getattr(model, "recommend", None)) and not hasattr(model, "user_factors")


def recommended(model: Any, users: Iterable[Any], k: int) -> dict[Any, list[Any]]:
    """What the model recommends to each user, best first, k items at most.

    >>> class Popular:
    ...     def recommend(self, user, n):
    ...         return [("b", 3.0), ("a", 1.0)][:n]
    >>> recommended(Popular(), [1, 2], 2)
    {1: ['b', 'a'], 2: ['b', 'a']}
    """
    ask = _asking(model, k)
    plain = (user.item() if isinstance(user, np.generic) else user for user in users)
    return {user: _items(ask(user), user)[:k] for user in plain}


def _asking(model: Any, k: int) -> Callable[[Any], Any]:
    try:
        names = list(inspect.signature(model.recommend).parameters)
    except (TypeError, ValueError):  # compiled without a signature
        names = []
    name = next((n for n in _HOW_MANY if n in names), None)
    return lambda user: model.recommend(user, k) if name is None else model.recommend(user, **{name: k})


def _items(answer: Any, user: Any) -> list[Any]:
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
