"""The options of evaluate, and values keyed by id (weights, clusters) as arrays over its cases and items.

A missing entry is an error that names the id.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np

from recsys.errors import IdTypeError, InputError
from recsys.ranks.ranked_truth import RankedTruth
from recsys.types import Array, Float


class ContextKeywords(TypedDict, total=False):
    """What is known about items and users, as editors and type checkers see the keywords of evaluate."""

    train: Any
    popularity: Any
    items: Any
    users: Any
    embeddings: Any
    profiles: Any
    reference: Any
    intents: Any


class SharedKeywords(ContextKeywords, total=False):
    """The keywords of evaluate that mean the same for every verb; defaults are in EvaluationOptions."""

    by: str | Mapping[Any, Any] | Callable[[Any], Any] | None
    columns: Mapping[str, Any] | None
    catalogue: int | Iterable[Any] | None
    complete: bool
    full_ranking: bool
    clusters: Mapping[Any, Any] | None
    case_weights: Mapping[Any, float] | None
    item_weights: Mapping[Any, float] | None
    never: Iterable[Any] | None
    exclude: Iterable[Any] | None
    eligible: Any
    backend: str
    threads: int | None
    progress: Callable[[int, int], object] | None


class EvaluateKeywords(SharedKeywords, total=False):
    """The keywords of evaluate that verbs over several models hand on."""

    k: int | Sequence[int] | None
    seen: Any


class CandidateKeywords(TypedDict, total=False):
    """The keywords of evaluate_candidates that training callbacks hand on."""

    k: int | Sequence[int] | None
    conventions: Any
    duplicates: str
    device: Any
    autocast: Any
    batch: int | None


@dataclass(frozen=True, eq=False, kw_only=True)
class EvaluationOptions:
    """What evaluate takes besides lists, truth, metrics and conventions; it says what each means."""

    k: int | Sequence[int] | None = None
    by: str | Mapping[Any, Any] | Callable[[Any], Any] | None = None
    columns: Mapping[str, Any] | None = None
    catalogue: int | Iterable[Any] | None = None
    seen: Any = None
    complete: bool = False
    full_ranking: bool = False
    clusters: Mapping[Any, Any] | None = None
    case_weights: Mapping[Any, float] | None = None
    item_weights: Mapping[Any, float] | None = None
    never: Iterable[Any] | None = None
    exclude: Iterable[Any] | None = None
    eligible: Any = None
    train: Any = None
    popularity: Any = None
    items: Any = None
    users: Any = None
    embeddings: Any = None
    profiles: Any = None
    reference: Any = None
    intents: Any = None
    backend: str = "auto"
    threads: int | None = None
    progress: Callable[[int, int], object] | None = None


def cluster_by_case(judged: RankedTruth, values_by_id: Mapping[Any, Any]) -> Array:
    """The user of each case."""
    labels = [look_up(values_by_id, i, "clusters") for i in judged.cases.values.tolist()]
    examples = list({type(label): label for label in labels}.values())
    try:
        sorted(examples)
    except TypeError:
        raise IdTypeError(
            f"clusters holds ids of different types: {examples}.", hint="Make them all int or all str."
        ) from None
    all_int = all(isinstance(label, int | np.integer) for label in labels)
    out = np.empty(len(labels), dtype=np.int64 if all_int else object)
    out[:] = labels
    return out


def weight_by_item(judged: RankedTruth, values_by_id: Mapping[Any, float]) -> Float:
    """The weight of each judged item; 0 for the others, which are never read."""
    out = np.zeros(len(judged.items))
    for code in np.unique(judged.judged).tolist():
        out[code] = _read_weight(values_by_id, judged.items.values[code], "item_weights")
    return out


def weight_by_case(judged: RankedTruth, values_by_id: Mapping[Any, float]) -> Float:
    """The weight of each case."""
    return np.array(
        [_read_weight(values_by_id, i, "case_weights") for i in judged.cases.values.tolist()],
        dtype=np.float64,
    )


def _read_weight(values_by_id: Mapping[Any, float], name: Any, what: str) -> float:
    if not hasattr(values_by_id, "items"):
        raise InputError(f"{what} came as {type(values_by_id).__name__}.", hint="Pass a dict {id: weight}.")
    value = float(look_up(values_by_id, name, what))
    if not 0 <= value < float("inf"):
        raise InputError(
            f"{what} holds {value!r} for {name!r}.", hint="Weights are finite numbers of at least 0."
        )
    return value


def look_up(values_by_id: Mapping[Any, Any], name: Any, what: str) -> Any:
    """The value of one id; `what` is the keyword that brought the values."""
    key = name.item() if isinstance(name, np.generic) else name
    try:
        return values_by_id[key]
    except (KeyError, IndexError):
        raise InputError(
            f"{what} has no entry for {key!r}.", row=key, hint=f"Give {what} for every id."
        ) from None
