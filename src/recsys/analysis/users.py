"""A metric over the users: its distribution, by activity, and who a better model loses on."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from recsys.errors import InputError
from recsys.evaluation.results import Evaluation
from recsys.inputs.frames import read_interactions
from recsys.types import Array, Bool, Float, Int

_THIRDS = ("low", "medium", "high")


def number_summary(values: Any) -> dict[str, float]:
    """Count, mean, standard deviation (of these values, not of a sample), quartiles, extremes; without NaN.

    >>> number_summary([1.0, 2.0, 6.0])["median"], number_summary([])["count"]
    (2.0, 0)
    """
    given = np.asarray(values, dtype=np.float64)
    kept = given[~np.isnan(given)]
    names = ("mean", "std", "min", "q25", "median", "q75", "max")
    if len(kept) == 0:
        return {"count": 0, **dict.fromkeys(names, math.nan)}
    quarters = np.quantile(kept, [0.0, 0.25, 0.5, 0.75, 1.0])
    numbers = (kept.mean(), kept.std(), *quarters)
    return {"count": len(kept), **{name: float(n) for name, n in zip(names, numbers, strict=True)}}


def improvement(value: float, base: float) -> dict[str, float]:
    """How far a value lies above another, and in percent of it; NaN percent of what is not above 0.

    >>> improvement(0.5, 0.25)["relative_percent"]
    100.0
    """
    gap = float(value) - float(base)
    relative = gap / float(base) if base > 0 else math.nan
    return {"absolute": gap, "relative": relative, "relative_percent": 100.0 * relative}


def pareto_front(points: Mapping[str, tuple[float, float]]) -> list[str]:
    """The names no other point beats in one number without losing in the other; higher is better.

    A point that lacks a number is never one of them.

    >>> pareto_front({"a": (0.1, 0.9), "b": (0.5, 0.5), "c": (0.4, 0.4)})
    ['a', 'b']
    """
    return [
        name
        for name, (x, y) in points.items()
        if not (math.isnan(x) or math.isnan(y))
        and not any(u >= x and v >= y and (u > x or v > y) for u, v in points.values())
    ]


def activity_of(ids: Array, counts: Any) -> Int:
    """How many training interactions each user has; a user nobody counted has none.

    `counts` is {user: number}, a Series, one number a user by index, or the training data itself.
    """
    if _are_by_index(counts):
        counts = dict(enumerate(counts))
    if not _are_numbers(counts):
        counts = read_interactions(counts, table="train")
    if hasattr(counts, "indptr"):
        at = counts.cases.code_of(ids)
        return (
            np.where(at >= 0, counts.sizes[at], 0)
            if len(counts.cases)
            else np.zeros(len(ids), dtype=np.int64)
        )
    held = {(k.item() if isinstance(k, np.generic) else k): int(v) for k, v in counts.items()}
    return np.array([held.get(user, 0) for user in ids.tolist()], dtype=np.int64)


def _are_by_index(counts: Any) -> bool:
    if isinstance(counts, np.ndarray):
        return counts.ndim == 1 and counts.dtype.kind in "iuf"
    return isinstance(counts, list | tuple) and all(isinstance(n, int | float | np.number) for n in counts)


def _are_numbers(counts: Any) -> bool:
    if not hasattr(counts, "items") or hasattr(counts, "columns") or hasattr(counts, "indptr"):
        return False
    return all(isinstance(held, int | float | np.number) for held in dict(counts).values())


def by_activity(
    evaluation: Evaluation, counts: Any, bins: Sequence[tuple[float, float]] | None = None
) -> dict[str, dict[str, float]]:
    """{bin: {metric: mean, "num_users": how many}} by training interactions; only metrics that are by user.

    Args:
        evaluation: what was evaluated.
        counts: {user: number of training interactions}, one number a user by index, or the training data.
        bins: (from, below) pairs; without, thirds of the users called low, medium and high.

    >>> import recsys
    >>> result = recsys.evaluate({1: [5], 2: [6], 3: [7]}, {1: [5], 2: [9], 3: [7]}, ["hit@1"])
    >>> {name: row["hit@1"] for name, row in by_activity(result, {1: 2, 2: 4, 3: 90}).items()}
    {'low': 1.0, 'medium': 0.0, 'high': 1.0}
    """
    activity = activity_of(evaluation.per_case.ids, counts)
    groups = _thirds(activity) if bins is None else _binned(activity, bins)
    grouped = evaluation.values_by(groups)
    inside = _evaluated(evaluation)
    names = evaluation.per_case.columns
    return {
        label: {
            "num_users": int((mask & inside).sum()),
            **{name: value for name, value in grouped[label].items() if name in names},
        }
        for label, mask in groups.items()
    }


def _evaluated(evaluation: Evaluation) -> Bool:
    columns = [*evaluation.per_case.columns.values()]
    return np.asarray(~np.isnan(np.column_stack(columns)).all(axis=1))


def _thirds(activity: Int) -> dict[str, Bool]:
    first, second = np.quantile(activity, [1 / 3, 2 / 3]) if len(activity) else (0.0, 0.0)
    masks = (activity <= first, (activity > first) & (activity <= second), activity > second)
    return dict(zip(_THIRDS, masks, strict=True))


def _binned(activity: Int, bins: Sequence[Any]) -> dict[str, Bool]:
    groups = {}
    for one in bins:
        if isinstance(one, str) or not hasattr(one, "__len__") or len(one) != 2:
            raise InputError(f"{one!r} is no bin.", hint="Bins are (from, below): bins=[(0, 5), (5, 20)].")
        low, high = one
        if not low < high:
            raise InputError(f"the bin ({low}, {high}) is empty.", hint="Bins are (from, below).")
        name = f"{low:g}+" if math.isinf(high) else f"{low:g}-{high:g}"
        groups[name] = (activity >= low) & (activity < high)
    rest = ~np.logical_or.reduce(list(groups.values())) if groups else np.ones(len(activity), dtype=bool)
    return groups | ({"other": rest} if rest.any() else {})


def per_user_distribution(evaluation: Evaluation, metric: str, *, bins: int = 20) -> dict[str, Any]:
    """The histogram of a metric over its users, its summary, and how many users get nothing.

    >>> import recsys
    >>> result = recsys.evaluate({1: [5], 2: [6]}, {1: [5], 2: [9]}, ["hit@1"])
    >>> made = per_user_distribution(result, "hit@1", bins=2)
    >>> made["counts"].tolist(), made["n_at_zero"], made["mean"]
    ([1, 1], 1, 0.5)
    """
    return distribution(evaluation.values_of(metric), bins=bins)


def distribution(values: Any, *, bins: int = 20) -> dict[str, Any]:
    """The histogram of some values, how many are 0, and their summary; NaN are left out.

    >>> distribution([0.0, 0.5, float("nan"), 1.0], bins=2)["counts"].tolist()
    [1, 2]
    """
    given = np.asarray(values, dtype=np.float64)
    kept = given[~np.isnan(given)]
    counts, edges = np.histogram(kept, bins=bins, range=(0.0, 1.0) if _in_unit(kept) else None)
    found = {"counts": counts, "edges": edges, "n_at_zero": int((kept == 0).sum())}
    return {"values": kept, **found, **number_summary(kept)}


def _in_unit(values: Float) -> bool:
    return bool(len(values)) and bool(values.min() >= 0 and values.max() <= 1)


def lower_is_better(evaluation: Evaluation, metric: str) -> bool:
    """Whether a lower value of an evaluated metric is the better one."""
    name = evaluation._key(metric)  # noqa: SLF001
    return next(r for r in evaluation.requests if str(r) == name).metric.better == "lower"


def losing_users(
    winner: Evaluation, other: Evaluation, metric: str, *, counts: Any = None, most: int | None = 20
) -> Any:
    """The users the better model serves worse, largest loss first: a frame by user id.

    Columns: `winner`, `other` and `difference` of the metric, and with `counts` the number of training
    interactions. Users who have no value in both are left out; `frame.attrs` says how many, and how many
    users win, tie and lose.

    >>> import recsys
    >>> truth = {1: [5], 2: [6], 3: [7]}
    >>> a = recsys.evaluate({1: [5], 2: [6], 3: [0]}, truth, ["hit@1"])
    >>> b = recsys.evaluate({1: [0], 2: [6], 3: [7]}, truth, ["hit@1"])
    >>> frame = losing_users(a, b, "hit@1")
    >>> frame.index.tolist(), frame.attrs["won"], frame.attrs["tied"], frame.attrs["lost"]
    ([3], 1, 1, 1)
    """
    import pandas as pd

    sides = [pd.Series(e.values_of(metric), index=e.per_case.ids) for e in (winner, other)]
    both = pd.concat(sides, axis=1, keys=["winner", "other"])
    paired = both.dropna()
    gap = paired["winner"] - paired["other"]
    worse, better = (gap > 0, gap < 0) if lower_is_better(winner, metric) else (gap < 0, gap > 0)
    frame = paired.assign(difference=gap)[worse]
    frame = frame.iloc[np.argsort(-frame["difference"].abs().to_numpy(), kind="stable")]
    if counts is not None:
        frame = frame.assign(n_train=activity_of(frame.index.to_numpy(), counts))
    frame.index.name = "user"
    frame = frame if most is None else frame.head(most)
    frame.attrs.update(won=int(better.sum()), tied=int((gap == 0).sum()), lost=int(worse.sum()))
    frame.attrs["unpaired"] = len(both) - len(paired)
    return frame
