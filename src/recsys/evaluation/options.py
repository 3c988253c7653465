"""The options of evaluate, and values keyed by id (weights, clusters) as arrays over its cases and items.

A missing entry is an error that names the id.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from numbers import Real
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import numpy as np

from recsys.errors import InputError, UnknownNameError, came_as
from recsys.evaluation.evaluate_keywords import DEFAULTS, RunKeywords
from recsys.inputs.ids import encode, ids_to_array
from recsys.ranks.ranked_truth import RankedTruth
from recsys.records.arrays import Array, Float, Ids
from recsys.records.checks import is_whole


class CandidateKeywords(TypedDict, total=False):
    """The keywords of evaluate_candidates that training callbacks hand on."""

    k: int | Sequence[int] | None
    conventions: Any
    duplicates: str
    device: Any
    autocast: Any
    batch: int | None


class EvaluationOptions:
    """What decides what an evaluation reads and ranks: a value for each of `RunKeywords`."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def __init__(self, **options: Unpack[RunKeywords]) -> None:
        if not options.keys() <= DEFAULTS.keys():
            wrong = next(name for name in options if name not in DEFAULTS)
            raise UnknownNameError("keyword of an evaluation", wrong, DEFAULTS)
        vars(self).update(DEFAULTS)
        vars(self).update(options)

    def but(self, **options: Unpack[RunKeywords]) -> EvaluationOptions:
        """The same options but for these."""
        return EvaluationOptions(**{**vars(self), **options})

    @property
    def given(self) -> list[str]:
        """The names of the options that are not left as they are by default."""
        return [name for name, value in vars(self).items() if value is not DEFAULTS[name]]


def check_flag(name: str, value: Any) -> bool:
    """A keyword that says yes or no; a text such as "no" would count as yes."""
    if value is None or isinstance(value, bool | np.bool_) or (type(value) is int and value in (0, 1)):
        return bool(value)
    raise InputError(
        f"{name}={value!r} is neither True nor False.", hint=f"Write {name}=True or leave it out."
    )


def check_ids(ids: Any, name: str, expected: str) -> None:
    """Raise an error if a keyword that takes ids in a row came as text, a number, a table or a matrix."""
    if isinstance(ids, str | bytes | type) or not isinstance(ids, Iterable):
        raise InputError(f"{name}={ids!r} is not a list of ids.", hint=f"Pass {expected}.")
    shape = getattr(ids, "shape", (0,))
    if len(shape) != 1:
        raise InputError(
            f"{name} came as {type(ids).__name__} of shape {tuple(shape)}.",
            hint=f"Pass {expected}: a list, a set or a 1-D array.",
        )


def check_n_items(n_items: Any) -> int | None:
    """A number of items, None if it is not known."""
    if n_items is None:
        return None
    if not is_whole(n_items, 1):
        raise InputError(
            f"catalogue={n_items!r} is not a number of items.",
            hint="Pass how many items there are, at least 1.",
        )
    return int(n_items)


def cluster_by_case(cases: Ids, values_by_id: Mapping[Any, Any]) -> Array:
    """The user of each case."""
    labels = [look_up(values_by_id, i, "clusters") for i in cases.values.tolist()]
    ids, codes = encode(
        ids_to_array(labels, table="clusters", column="user"), table="clusters", column="user"
    )
    return ids.values[codes]


def weight_by_item(judged: RankedTruth, values_by_id: Mapping[Any, float]) -> Float:
    """The weight of each judged item; 0 for the others, which are never read."""
    out = np.zeros(len(judged.items))
    for code in np.unique(judged.judged).tolist():
        out[code] = read_weight(values_by_id, judged.items.values[code], "item_weights")
    return out


def weight_by_case(cases: Ids, values_by_id: Mapping[Any, float]) -> Float:
    """The weight of each case."""
    return np.array(
        [read_weight(values_by_id, i, "case_weights") for i in cases.values.tolist()],
        dtype=np.float64,
    )


def refuse_no_weight(weights: Float | None) -> None:
    """Raise an error if no case counts."""
    if weights is not None and len(weights) and not weights.any():
        raise InputError("every weight in case_weights is 0.", hint="Give some user a weight above 0.")


def read_weight(values_by_id: Mapping[Any, float], name: Any, what: str) -> float:
    """The weight of one id; `what` is the keyword that brought the weights."""
    given: Any = look_up(values_by_id, name, what)
    value = -1.0
    is_number = isinstance(given, float | int | Real | Decimal) or getattr(given, "shape", None) == ()
    if is_number and not isinstance(given, np.timedelta64):
        with contextlib.suppress(
            TypeError, ValueError, OverflowError
        ):  # no number after all, or beyond 1.8e308
            value = float(given)
    if not 0 <= value < float("inf"):
        raise InputError(
            f"{what} holds {given!r} for {name!r}.", hint="Weights are finite numbers of at least 0."
        )
    return value


def look_up(values_by_id: Mapping[Any, Any], name: Any, what: str) -> Any:
    """The value of one id; `what` is the keyword that brought the values."""
    if not hasattr(values_by_id, "items"):
        raise came_as(what, values_by_id, hint="Pass a dict with an entry for every id.")
    key = name.item() if isinstance(name, np.generic) else name
    try:
        return values_by_id[key]
    except (KeyError, IndexError, TypeError):
        raise InputError(
            f"{what} has no entry for {key!r}.", row=key, hint=f"Give {what} for every id."
        ) from None
