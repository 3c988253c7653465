"""Read lists, truth and histories into the types of the engine.

Lists may be ready, a file, a model's answers or a source that ranks the whole catalogue; a history may be a
file. The metrics decide how long the lists must be.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from recsys.errors import CutoffError
from recsys.inputs.files import read_file
from recsys.inputs.frames import read_interactions, read_lists
from recsys.metrics.attributes import read_reference
from recsys.metrics.requests import Request, largest_k
from recsys.ranks.sources import Factors, RankingOptions, Scores, Source, from_model, recommended
from recsys.types import Interactions, Lists

_PAIRS_ONLY = ("seen", "eligible")  # only (user, item) pairs are read of these, which is much faster


def load_ranking(lists: Any, columns: Mapping[str, Any] | None = None) -> Lists | Source:
    """Ready lists, or a source that ranks the catalogue."""
    if isinstance(lists, Factors | Scores):
        return lists
    if hasattr(lists, "user_factors") and hasattr(lists, "item_factors"):
        return from_model(lists)
    if isinstance(lists, str | Path):
        return read_file(lists, "lists", columns=_columns_for("lists", columns))
    return read_lists(lists, columns=_columns_for("lists", columns))


def load_interactions(data: Any, table: str, columns: Mapping[str, Any] | None) -> Interactions:
    """The items each user had; `table` is the name in errors and in `columns`."""
    if isinstance(data, str | Path):
        data = read_file(data, "truth", columns=_columns_for(table, columns))
    return read_interactions(
        data, table=table, columns=_columns_for(table, columns), bare=table in _PAIRS_ONLY
    )


def load_optional_interactions(
    data: Any, table: str, columns: Mapping[str, Any] | None = None
) -> Interactions | None:
    """The same, or None if there is no history."""
    return None if data is None else load_interactions(data, table, columns)


def _columns_for(table: str, columns: Any) -> Any:
    """The column names of one table, if each table has its own."""
    if (
        columns is None
        or not isinstance(columns, Mapping)
        or not any(isinstance(v, Mapping) for v in columns.values())
    ):
        return columns
    return columns.get(table)


def ask_model(lists: Any, truth: Interactions, requests: Sequence[Request]) -> Any:
    """The lists of a model that can only recommend, for the users of the truth."""
    longest = largest_k(requests)
    if longest is None:
        raise CutoffError(
            f"{type(lists).__name__} has to be asked for lists of some length, and a metric has no cut-off.",
            hint='Give every metric one, such as "mrr@10".',
        )
    return recommended(lists, truth.cases.values, longest)


def read_reference_lists(reference: Any, requests: Sequence[Request]) -> Lists:
    """The lists of another model, as long as the metrics read them."""
    if isinstance(reference, Factors | Scores) or hasattr(reference, "item_factors"):
        ranked = reference if isinstance(reference, Factors | Scores) else from_model(reference)
        of_reference = [r for r in requests if "reference" in r.metric.needs]
        return ranked.top(None, list_length(of_reference or requests, ranked), RankingOptions())
    return read_reference(reference)


def list_length(requests: Sequence[Request], ranked: Lists | Source) -> int:
    """The length the lists must have for the metrics about the items shown."""
    longest = largest_k(r for r in requests if "lists" in r.metric.needs)
    if longest is not None:
        return longest
    return 1 if isinstance(ranked, Lists) else ranked.n_items
