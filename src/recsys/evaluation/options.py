"""What evaluate is told besides lists, truth and metrics, brought onto the cases and items at hand.

Catalogue, seen items, weights, clusters and groups come keyed by id; what is missing is an error that
names the id. Truth items outside the catalogue or already seen are settled here, before judging.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from recsys.conventions.decisions import Conventions
from recsys.errors import IdTypeError, InputError
from recsys.inputs.ids import encode, of_any
from recsys.metrics.requests import Request
from recsys.ranks.counting import RankedTruth
from recsys.ranks.sources import RankingOptions
from recsys.types import Array, Bool, Context, Float, Ids, Interactions


class EvaluationOptions:
    """What evaluate was told besides lists, truth and metrics."""

    def __init__(
        self,
        *,
        catalogue: int | Iterable[Any] | None = None,
        asked: RankingOptions | None = None,
        shared: bool = True,
        complete: bool = False,
        clusters: Mapping[Any, Any] | None = None,
        case_weights: Mapping[Any, float] | None = None,
        item_weights: Mapping[Any, float] | None = None,
        context: Context | None = None,
        by: Any = None,
    ) -> None:
        self.catalogue, self.n_items = _catalogue(catalogue)
        self.context = context or Context()
        self.by = by
        self.asked = asked or RankingOptions()
        self.shared = shared
        self.complete = complete
        self.clusters = clusters
        self.case_weights = case_weights
        self.item_weights = item_weights


def clusters_of(judged: RankedTruth, given: Mapping[Any, Any]) -> Array:
    """The user of each case."""
    labels = [_looked_up(given, i, "clusters") for i in judged.cases.values.tolist()]
    one_of_each = list({type(label): label for label in labels}.values())
    try:
        sorted(one_of_each)
    except TypeError:
        raise IdTypeError(
            f"clusters holds ids of different types: {one_of_each}.", hint="Make them all int or all str."
        ) from None
    out = np.empty(len(labels), dtype=np.int64 if _all_int(labels) else object)
    out[:] = labels
    return out


def _catalogue(given: int | Iterable[Any] | None) -> tuple[Ids | None, int | None]:
    if isinstance(given, float | str):
        raise InputError(
            f"catalogue={given!r} is neither ids nor a number of items.", hint="Pass all item ids."
        )
    if given is None or isinstance(given, int | np.integer):
        if given is not None and (isinstance(given, bool) or given < 1):
            raise InputError(
                f"catalogue={given!r} is not a number of items.", hint="Pass all item ids, or their number."
            )
        return None, None if given is None else int(given)
    values = of_any(given, table="catalogue", column="item")
    if len(values) == 0:
        raise InputError(
            "the catalogue is empty.", table="catalogue", hint="Pass all item ids, or their number."
        )
    ids, _ = encode(values, table="catalogue", column="item")
    return ids, len(ids)


def settle_truth(
    truth: Interactions, catalogue: Ids | None, seen: Interactions | None, conventions: Conventions
) -> tuple[Interactions, dict[str, int]]:
    """Truth items outside the catalogue or already seen: counted, dropped where the conventions say so."""
    counts = {n: truth.notes[n] for n in ("repeated_rows", "conflicting_grades") if truth.notes.get(n)}
    for name, outside in (("unknown_items", catalogue), ("seen_truth", seen)):
        if outside is None:
            continue
        marks = _unknown(truth, outside) if isinstance(outside, Ids) else _seen(truth, outside)
        rule, n_marked = getattr(conventions, name), int(marks.sum())
        if rule == "error" and n_marked:
            item = truth.items.name(truth.codes[np.argmax(marks)])
            why = "outside the catalogue" if name == "unknown_items" else "seen by the user before"
            raise InputError(
                f"{n_marked} relevant items are {why}, {item!r} for one.",
                table="truth",
                hint=f"Use {name}='miss' or {name}='drop'.",
            )
        if rule == "drop" and n_marked:
            truth = truth.kept(~marks)
        if n_marked:
            counts[name] = n_marked
    return truth, counts


def with_max_grade(conventions: Conventions, requests: Sequence[Request], truth: Interactions) -> Conventions:
    """Conventions that know the highest grade, where a metric reads it and nobody said it."""
    graded = truth.grades is not None and len(truth.grades) > 0
    if (
        conventions.max_grade is not None
        or not graded
        or not any("max_grade" in r.metric.conventions for r in requests)
    ):
        return conventions
    return conventions.but(max_grade=float(truth.grades.max()))  # type: ignore[union-attr]


def _unknown(truth: Interactions, catalogue: Ids) -> Bool:
    catalogue.same_kind(truth.items, what="item")
    known = catalogue.code_of(truth.items.values) >= 0
    return np.asarray(~known[truth.codes])


def _seen(truth: Interactions, seen: Interactions) -> Bool:
    seen.cases.same_kind(truth.cases, what="user")
    seen.items.same_kind(truth.items, what="item")
    width = max(len(seen.items), 1)
    have = np.repeat(np.arange(len(seen.cases), dtype=np.int64), seen.sizes) * width + seen.codes
    case = np.repeat(seen.cases.code_of(truth.cases.values), truth.sizes)
    item = seen.items.code_of(truth.items.values)[truth.codes]
    known = (case >= 0) & (item >= 0)
    if len(have) == 0:
        return np.zeros(len(known), dtype=bool)
    want = case * width + item
    at = np.minimum(np.searchsorted(have, want), len(have) - 1)  # pairs of a history stand in order
    return np.asarray(known & (have[at] == want))


def item_weights_of(judged: RankedTruth, given: Mapping[Any, float]) -> Float:
    """The weight of each item that is judged; 0 for others, which nobody reads."""
    out = np.zeros(len(judged.items))
    for code in np.unique(judged.judged).tolist():
        out[code] = _weight(given, judged.items.values[code], "item_weights")
    return out


def case_weights_of(judged: RankedTruth, given: Mapping[Any, float]) -> Float:
    """The weight of each case."""
    return np.array(
        [_weight(given, i, "case_weights") for i in judged.cases.values.tolist()], dtype=np.float64
    )


def _weight(given: Mapping[Any, float], name: Any, what: str) -> float:
    if not hasattr(given, "items"):
        raise InputError(f"{what} came as {type(given).__name__}.", hint="Pass a dict {id: weight}.")
    value = float(_looked_up(given, name, what))
    if not 0 <= value < float("inf"):
        raise InputError(
            f"{what} holds {value!r} for {name!r}.", hint="Weights are finite numbers of at least 0."
        )
    return value


def _looked_up(given: Mapping[Any, Any], name: Any, what: str) -> Any:
    key = name.item() if isinstance(name, np.generic) else name
    try:
        return given[key]
    except (KeyError, IndexError):
        raise InputError(
            f"{what} has no entry for {key!r}.", row=key, hint=f"Give {what} for every id."
        ) from None


def groups_by(ids: Array, by: Mapping[Any, Any] | Callable[[Any], Any]) -> dict[Any, Bool]:
    """Which cases belong to each group, groups in order."""
    keyed = hasattr(by, "items") and hasattr(by, "__getitem__")
    if not keyed and not callable(by):
        raise InputError(
            f"by= came as {type(by).__name__}.", hint="Pass {user: group}, or a function of the user id."
        )
    labels = [_looked_up(by, i, "by") if keyed else by(i) for i in ids.tolist()]  # type: ignore[arg-type, operator]
    odd = next(
        (x for x in labels if isinstance(x, list | dict | set | np.ndarray) or hasattr(x, "iloc")), None
    )
    if odd is not None:
        raise InputError(
            f"by= holds the group {odd!r}.", hint="A group is a text or a number, one for each user."
        )
    masks = {label: np.zeros(len(labels), dtype=bool) for label in sorted(set(labels), key=_sortable)}
    for at, label in enumerate(labels):
        masks[label][at] = True
    return masks


def _sortable(label: Any) -> tuple[str, Any]:
    number = isinstance(label, int | float)
    return ("", label) if number else (type(label).__name__, str(label))


def _all_int(labels: list[Any]) -> bool:
    return all(isinstance(x, int | np.integer) for x in labels)
