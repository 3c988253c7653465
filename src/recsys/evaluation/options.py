"""The options of evaluate besides lists, truth and metrics, aligned with its cases and items.

Catalogue, seen items, weights, clusters and groups are keyed by id; a missing entry is an error that names
the id. Rules for truth items outside the catalogue or already seen are applied here, before ranking.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from recsys.conventions.decisions import Conventions
from recsys.errors import IdTypeError, InputError
from recsys.inputs.ids import encode, ids_to_array
from recsys.metrics.requests import Request
from recsys.ranks.counting import RankedTruth
from recsys.ranks.sources import RankingOptions
from recsys.types import Array, Bool, Context, Float, Ids, Interactions


class EvaluationOptions:
    """The options of evaluate besides lists, truth and metrics."""

    def __init__(
        self,
        *,
        catalogue: int | Iterable[Any] | None = None,
        ranking_options: RankingOptions | None = None,
        shared: bool = True,
        complete: bool = False,
        clusters: Mapping[Any, Any] | None = None,
        case_weights: Mapping[Any, float] | None = None,
        item_weights: Mapping[Any, float] | None = None,
        context: Context | None = None,
        by: Any = None,
    ) -> None:
        self.catalogue, self.n_items = _parse_catalogue(catalogue)
        self.context = context or Context()
        self.by = by
        self.ranking_options = ranking_options or RankingOptions()
        self.shared = shared
        self.complete = complete
        self.clusters = clusters
        self.case_weights = case_weights
        self.item_weights = item_weights


def cluster_by_case(judged: RankedTruth, values_by_id: Mapping[Any, Any]) -> Array:
    """The user of each case."""
    labels = [_look_up(values_by_id, i, "clusters") for i in judged.cases.values.tolist()]
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


def _parse_catalogue(catalogue: int | Iterable[Any] | None) -> tuple[Ids | None, int | None]:
    if isinstance(catalogue, float | str):
        raise InputError(
            f"catalogue={catalogue!r} is neither ids nor a number of items.", hint="Pass all item ids."
        )
    if catalogue is None or isinstance(catalogue, int | np.integer):
        if catalogue is not None and (isinstance(catalogue, bool) or catalogue < 1):
            raise InputError(
                f"catalogue={catalogue!r} is not a number of items.",
                hint="Pass all item ids, or their number.",
            )
        return None, None if catalogue is None else int(catalogue)
    values = ids_to_array(catalogue, table="catalogue", column="item")
    if len(values) == 0:
        raise InputError(
            "the catalogue is empty.", table="catalogue", hint="Pass all item ids, or their number."
        )
    ids, _ = encode(values, table="catalogue", column="item")
    return ids, len(ids)


def apply_truth_rules(
    truth: Interactions, catalogue: Ids | None, seen: Interactions | None, conventions: Conventions
) -> tuple[Interactions, dict[str, int]]:
    """Count truth items outside the catalogue or already seen, and drop them if the conventions say so."""
    counts = {n: truth.notes[n] for n in ("repeated_rows", "conflicting_grades") if truth.notes.get(n)}
    for name, reference in (("unknown_items", catalogue), ("seen_truth", seen)):
        if reference is None:
            continue
        marks = (
            _not_in_catalogue(truth, reference)
            if isinstance(reference, Ids)
            else _in_history(truth, reference)
        )
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
    """Conventions with the highest grade of the truth, if a metric reads it and it was not set."""
    graded = truth.grades is not None and len(truth.grades) > 0
    if (
        conventions.max_grade is not None
        or not graded
        or not any("max_grade" in r.metric.conventions for r in requests)
    ):
        return conventions
    return conventions.but(max_grade=float(truth.grades.max()))  # type: ignore[union-attr]


def _not_in_catalogue(truth: Interactions, catalogue: Ids) -> Bool:
    catalogue.same_kind(truth.items, what="item")
    known = catalogue.code_of(truth.items.values) >= 0
    return np.asarray(~known[truth.codes])


def _in_history(truth: Interactions, seen: Interactions) -> Bool:
    seen.cases.same_kind(truth.cases, what="user")
    seen.items.same_kind(truth.items, what="item")
    width = max(len(seen.items), 1)
    seen_pairs = np.repeat(np.arange(len(seen.cases), dtype=np.int64), seen.sizes) * width + seen.codes
    case = np.repeat(seen.cases.code_of(truth.cases.values), truth.sizes)
    item = seen.items.code_of(truth.items.values)[truth.codes]
    known = (case >= 0) & (item >= 0)
    if len(seen_pairs) == 0:
        return np.zeros(len(known), dtype=bool)
    truth_pairs = case * width + item
    at = np.minimum(
        np.searchsorted(seen_pairs, truth_pairs), len(seen_pairs) - 1
    )  # the pairs of a history are sorted
    return np.asarray(known & (seen_pairs[at] == truth_pairs))


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
    value = float(_look_up(values_by_id, name, what))
    if not 0 <= value < float("inf"):
        raise InputError(
            f"{what} holds {value!r} for {name!r}.", hint="Weights are finite numbers of at least 0."
        )
    return value


def _look_up(values_by_id: Mapping[Any, Any], name: Any, what: str) -> Any:
    key = name.item() if isinstance(name, np.generic) else name
    try:
        return values_by_id[key]
    except (KeyError, IndexError):
        raise InputError(
            f"{what} has no entry for {key!r}.", row=key, hint=f"Give {what} for every id."
        ) from None


def masks_by_label(ids: Array, by: Mapping[Any, Any] | Callable[[Any], Any]) -> dict[Any, Bool]:
    """Which cases belong to each group, groups in order."""
    keyed = hasattr(by, "items") and hasattr(by, "__getitem__")
    if not keyed and not callable(by):
        raise InputError(
            f"by= came as {type(by).__name__}.", hint="Pass {user: group}, or a function of the user id."
        )
    labels = [_look_up(by, i, "by") if keyed else by(i) for i in ids.tolist()]  # type: ignore[arg-type, operator]
    container = next(
        (x for x in labels if isinstance(x, list | dict | set | np.ndarray) or hasattr(x, "iloc")), None
    )
    if container is not None:
        raise InputError(
            f"by= holds the group {container!r}.", hint="A group is a text or a number, one for each user."
        )
    masks = {label: np.zeros(len(labels), dtype=bool) for label in sorted(set(labels), key=_label_sort_key)}
    for at, label in enumerate(labels):
        masks[label][at] = True
    return masks


def _label_sort_key(label: Any) -> tuple[str, Any]:
    """Numbers first, then other labels by type and text."""
    return ("", label) if isinstance(label, int | float) else (type(label).__name__, str(label))
