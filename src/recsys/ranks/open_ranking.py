"""Open whatever an evaluation may be handed as lists: the only place that guesses what it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np

from recsys.inputs.containers import open_lists
from recsys.inputs.ids import IdKind
from recsys.ranks.rankings import ListRanking, Ranking
from recsys.records.arrays import Lists

RankingKind = Literal["ranking", "model file", "file", "table", "recommender", "model"]
MODELS: tuple[RankingKind, ...] = ("model", "model file")  # these rank the whole catalogue, as sources do
_MODEL_ATTRIBUTES = ("user_factors", "get_user_representations", "predict", "state_dict")
_CONTAINERS = (Lists, np.ndarray, dict, list, tuple)


def ranking_kind(data: Any) -> RankingKind:
    """Return what was handed over.

    A table or container is one whatever its columns are called. A recommender can only be asked for lists;
    a model has factors, or scores pairs of a user and an item.
    """
    if isinstance(data, _CONTAINERS):
        return "table"
    from recsys.ranks.sources import UsersByItems, is_model_path

    if isinstance(data, ListRanking | UsersByItems):
        return "ranking"
    if isinstance(data, str | Path):
        return "model file" if is_model_path(data) else "file"
    if hasattr(data, "__dataframe__") or hasattr(data, "__arrow_c_stream__"):
        return "table"
    if callable(getattr(data, "recommend", None)) and not hasattr(data, "user_factors"):
        return "recommender"
    return "model" if _scores_pairs(data) else "table"


def _scores_pairs(data: Any) -> bool:
    return callable(data) or any(hasattr(data, name) for name in _MODEL_ATTRIBUTES)


def ranks_catalogue(data: Any) -> bool:
    """Return whether it ranks a whole catalogue, with rows of its own for users and items."""
    kind = ranking_kind(data)
    return kind in MODELS or (kind == "ranking" and not isinstance(data, ListRanking))


def open_ranking(
    data: Any,
    columns: Mapping[str, Any] | None = None,
    *,
    ids: IdKind | None = None,
    allow_empty: bool = False,
    asks: Callable[[], tuple[Iterable[Any], int]] | None = None,
) -> Ranking:
    """Return ready lists, or what ranks the catalogue.

    Args:
        data: lists, a table or container of them, a file, a model or its file, a Ranking.
        columns: the names of columns, by role or by table and role.
        ids: the type of the ids of files.
        allow_empty: whether lists may be without rows.
        asks: for which users a recommender is asked, and for how many items.
    """
    kind = ranking_kind(data)
    if kind == "ranking":
        ranking: Ranking = data
        return ranking
    if kind == "model" or (kind == "recommender" and asks is None and _scores_pairs(data)):
        from recsys.ranks.sources import from_model

        return from_model(data)
    if kind == "model file":
        from recsys.ranks.sources import load_model

        return load_model(data, ids=ids or "str")
    if kind == "recommender" and asks is not None:
        from recsys.ranks.sources import lists_from_recommender

        users, k = asks()
        data, ids = lists_from_recommender(data, users, k), None
    return ListRanking(open_lists(data, "lists", columns, ids=ids, allow_empty=allow_empty))
