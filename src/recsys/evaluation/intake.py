"""What was handed in as lists, truth or history, read into what the engine takes.

Lists may be ready, a file, a model's answers or something that ranks the whole catalogue; a history may be a
file. How long the lists have to be follows from the metrics.
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

_BARE = ("seen", "eligible")  # who had what is all that is asked of these, and it is read much quicker


def ranked_of(lists: Any, columns: Mapping[str, Any] | None = None) -> Lists | Source:
    """Ready lists, or what ranks the catalogue."""
    if isinstance(lists, Factors | Scores):
        return lists
    if hasattr(lists, "user_factors") and hasattr(lists, "item_factors"):
        return from_model(lists)
    if isinstance(lists, str | Path):
        return read_file(lists, "lists", columns=_columns_for("lists", columns))
    return read_lists(lists, columns=_columns_for("lists", columns))


def history_of(data: Any, table: str, columns: Mapping[str, Any] | None) -> Interactions:
    """Who had what; `table` is what it is called in errors and in `columns`."""
    if isinstance(data, str | Path):
        data = read_file(data, "truth", columns=_columns_for(table, columns))
    return read_interactions(data, table=table, columns=_columns_for(table, columns), bare=table in _BARE)


def history_if_given(data: Any, table: str, columns: Mapping[str, Any] | None = None) -> Interactions | None:
    """The same of what may be left out."""
    return None if data is None else history_of(data, table, columns)


def _columns_for(table: str, columns: Any) -> Any:
    """Names for one table, where each table has names of its own."""
    if (
        columns is None
        or not isinstance(columns, Mapping)
        or not any(isinstance(v, Mapping) for v in columns.values())
    ):
        return columns
    return columns.get(table)


def asked_of(lists: Any, truth: Interactions, requests: Sequence[Request]) -> Any:
    """What a model recommends to the users of the truth, where lists are all that it gives."""
    longest = largest_k(requests)
    if longest is None:
        raise CutoffError(
            f"{type(lists).__name__} has to be asked for lists of some length, and a metric has no cut-off.",
            hint='Give every metric one, such as "mrr@10".',
        )
    return recommended(lists, truth.cases.values, longest)


def reference_of(reference: Any, requests: Sequence[Request]) -> Lists:
    """The lists of another model, as long as the metrics read them."""
    if isinstance(reference, Factors | Scores) or hasattr(reference, "item_factors"):
        ranked = reference if isinstance(reference, Factors | Scores) else from_model(reference)
        wanted = [r for r in requests if "reference" in r.metric.needs]
        return ranked.top(None, list_length(wanted or requests, ranked), RankingOptions())
    return read_reference(reference)


def list_length(requests: Sequence[Request], ranked: Lists | Source) -> int:
    """How long the lists have to be for the metrics about the items shown."""
    longest = largest_k(r for r in requests if "lists" in r.metric.needs)
    if longest is not None:
        return longest
    return 1 if isinstance(ranked, Lists) else ranked.n_items
