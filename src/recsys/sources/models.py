"""Models other people wrote: recognised by what they offer, never by importing their library.

Factor models hand over their matrices; anything with predict or a call gives score blocks; anything
with recommend gives lists.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from recsys.errors import InputError
from recsys.sources.factors import Factors
from recsys.sources.scores import Scores
from recsys.types import Array, Int


def from_model(
    model: Any,
    *,
    user_ids: Iterable[Any] | None = None,
    item_ids: Iterable[Any] | None = None,
    n_users: int | None = None,
    n_items: int | None = None,
    batch: int = 1 << 16,
) -> Factors | Scores:
    """A source made of a fitted model.

    Taken in this order: factors (implicit's `user_factors` and `item_factors`, LightFM-like
    `get_user_representations`), a torch module `(users, items) -> scores`, an object with
    `predict(users, items)`. The last two need `n_users` and `n_items` (or ids).
    """
    if hasattr(model, "user_factors") and hasattr(model, "item_factors"):
        users, items = _as_array(model.user_factors), _as_array(model.item_factors)
        return Factors(users, items, user_ids=user_ids, item_ids=item_ids)
    user_ids, item_ids = _listed(user_ids), _listed(item_ids)
    n_users = len(user_ids) if n_users is None and user_ids is not None else n_users
    n_items = len(item_ids) if n_items is None and item_ids is not None else n_items
    if n_users is None or n_items is None:
        raise InputError(
            f"{type(model).__name__} has no factors, so its users and items must be counted.",
            hint="Pass n_users= and n_items=, or user_ids= and item_ids=.",
        )
    scorer = _torch_scorer(model) if hasattr(model, "state_dict") else _predict_scorer(model)
    block = _pairwise(scorer, n_items, batch)
    return Scores(block, n_users=n_users, n_items=n_items, user_ids=user_ids, item_ids=item_ids)


def _listed(ids: Iterable[Any] | None) -> list[Any] | None:
    return None if ids is None else list(ids)


def _as_array(factors: Any) -> Array:
    return factors.to_numpy() if hasattr(factors, "to_numpy") else np.asarray(factors)


def _pairwise(scorer: Any, n_items: int, batch: int) -> Any:
    def block(rows: Int) -> Array:
        users = np.repeat(rows, n_items)
        items = np.tile(np.arange(n_items), len(rows))
        parts = [scorer(users[s : s + batch], items[s : s + batch]) for s in range(0, len(users), batch)]
        return np.concatenate(parts).reshape(len(rows), n_items)

    return block


def _predict_scorer(model: Any) -> Any:
    predict = getattr(model, "predict", model if callable(model) else None)
    if predict is None:
        raise InputError(
            f"{type(model).__name__} offers neither factors nor predict(users, items).",
            hint="Wrap it in recsys.Scores(function, n_users=…, n_items=…), or evaluate its lists.",
        )

    def score(users: Int, items: Int) -> Array:
        return np.asarray(predict(users, items)).reshape(-1)

    return score


def _torch_scorer(module: Any) -> Any:
    import torch

    device = next((p.device for p in module.parameters()), torch.device("cpu"))

    def score(users: Int, items: Int) -> Array:
        was_training = module.training
        module.eval()
        try:
            with torch.inference_mode():
                out = module(torch.as_tensor(users, device=device), torch.as_tensor(items, device=device))
        finally:
            module.train(was_training)
        return np.asarray(out.detach().float().cpu().numpy()).reshape(-1)

    return score
