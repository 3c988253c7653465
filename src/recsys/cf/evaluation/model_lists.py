"""What a model answers when seed 001's evaluator asks it for lists.

It may be asked user by user or once for all, may name the length otherwise than the seed, and may answer in
pairs, arrays or tensors. An error costs its user only, and is kept.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from inspect import Parameter, signature
from typing import Any

import numpy as np

from recsys.errors import InputError
from recsys.ranks.sources import recommended

logger = logging.getLogger(__name__)

_BATCH_CALLS = ("recommend_batch", "batch_recommend", "recommend_many", "recommend_all")


def recommended_lists(
    model: Any, users: list[Any], n: int
) -> tuple[dict[Any, list[Any]], dict[Any, Exception]]:
    """Each user's items, best first, and the error of each user for whom there are none."""
    lists: dict[Any, list[Any]] = {}
    failures: dict[Any, Exception] = {}
    if not hasattr(model, "recommend") and _batch_call(model) is None:
        raise InputError(
            f"{type(model).__name__} has no recommend(user, n=…).",
            hint="Wrap the model, or hand its factors or lists to recsys.evaluate.",
        )
    batch = _batch_call(model)
    if batch is not None and _takes_n(batch):
        try:
            answer = batch(users, n=n)
            pairs = answer.items() if isinstance(answer, Mapping) else zip(users, answer, strict=True)
            lists = {user: _entries(entries) for user, entries in pairs}
        except Exception as error:
            if not hasattr(model, "recommend"):
                raise
            # One bad user must not cost the others: asked one by one, the failures get names.
            logger.warning("The batch call failed (%r); users are asked one by one.", error)
            lists = {}
    for user in [] if lists else users:
        try:
            lists[user] = _entries(_asked(model, user, n))
        except Exception as error:  # noqa: BLE001 - whatever the model raises is reported, not swallowed
            failures[user] = error
    for user in users:
        if user not in lists and user not in failures:
            failures[user] = InputError("the batch call gave this user no list.", row=user)
    return {user: lists[user] for user in users if user in lists}, failures


def _asked(model: Any, user: Any, n: int) -> Any:
    """The seed's call; a model that names the length otherwise, as `k`, is asked by its own name for it."""
    return model.recommend(user, n=n) if _takes_n(model.recommend) else recommended(model, [user], n)[user]


def _takes_n(call: Callable[..., Any]) -> bool:
    try:
        takes = signature(call).parameters
    except (TypeError, ValueError):  # compiled without a signature
        return True
    return "n" in takes or any(one.kind is Parameter.VAR_KEYWORD for one in takes.values())


def _batch_call(model: Any) -> Callable[..., Any] | None:
    return next((getattr(model, name) for name in _BATCH_CALLS if callable(getattr(model, name, None))), None)


def _entries(answer: Any) -> list[Any]:
    """The items of one answer: (item, score) pairs, a row of an array each, or bare items, best first."""
    if isinstance(answer, tuple) and len(answer) == 2 and all(_is_array(part) for part in answer):
        answer = answer[0]  # (items, scores), as some libraries give them
    return [_item(entry) for entry in answer]


def _is_array(part: Any) -> bool:
    return hasattr(part, "__array__") and np.ndim(part) == 1


def _item(entry: Any) -> Any:
    item = entry[0] if isinstance(entry, tuple | list) or np.ndim(entry) else entry
    item = item.item() if hasattr(item, "detach") else item  # a number still in its tensor
    # An array of (item, score) rows made a float of the item.
    return int(item) if isinstance(item, float | np.floating) and item == int(item) else item
