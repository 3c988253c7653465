"""A metric over users: its distribution, its means by activity, and the users a better model loses on."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from recsys.errors import InputError, RecsysWarning, warn
from recsys.evaluation.results import Evaluation, evaluation_of
from recsys.inputs import read_interactions
from recsys.inputs.ids import encode, ids_from_sequence
from recsys.records.arrays import Array, Bool, Ids, Int, count_entries
from recsys.records.checks import to_floats


def number_summary(values: Any) -> dict[str, float]:
    """Return count, mean, standard deviation (of the population), quartiles and extremes; NaN are left out.

    >>> number_summary([1.0, 2.0, 6.0])["median"], number_summary([])["count"]
    (2.0, 0)
    """
    numbers = np.asarray(values, dtype=np.float64)
    numbers = numbers[~np.isnan(numbers)]
    names = ("mean", "std", "min", "q25", "median", "q75", "max")
    if len(numbers) == 0:
        return {"count": 0, **dict.fromkeys(names, math.nan)}
    quartiles = np.quantile(numbers, [0.0, 0.25, 0.5, 0.75, 1.0])
    statistics = (numbers.mean(), numbers.std(), *quartiles)
    return {"count": len(numbers), **{name: float(s) for name, s in zip(names, statistics, strict=True)}}


def improvement(value: float, base: float) -> dict[str, float]:
    """Return how far a value is above `base`, absolute and relative; the latter is NaN unless `base` > 0.

    >>> improvement(0.5, 0.25)["relative_percent"]
    100.0
    """
    gap = float(value) - float(base)
    relative = gap / float(base) if base > 0 else math.nan
    return {"absolute": gap, "relative": relative, "relative_percent": 100.0 * relative}


def pareto_front(points: Mapping[str, tuple[float, float]]) -> list[str]:
    """Return the names of the points that no other point dominates; higher is better in both numbers.

    Points with NaN are left out.

    >>> pareto_front({"a": (0.1, 0.9), "b": (0.5, 0.5), "c": (0.4, 0.4)})
    ['a', 'b']
    """
    if not isinstance(points, Mapping):
        raise InputError(f"the points came as {type(points).__name__}.", hint="Pass {name: (x, y)}.")
    pairs = {name: to_floats(point, f"the point of {name!r}") for name, point in points.items()}
    for name, pair in pairs.items():
        if pair.shape != (2,):
            raise InputError(
                f"the point of {name!r} has shape {pair.shape}; a point is a pair of numbers.",
                hint="Pass {name: (x, y)}.",
            )
    return [
        name
        for name, (x, y) in pairs.items()
        if not (math.isnan(x) or math.isnan(y))
        and not any(u >= x and v >= y and (u > x or v > y) for u, v in pairs.values())
    ]


def activity_of(ids: Array, counts: Any) -> Int:
    """Return how many training interactions each user has; 0 for a user without a count.

    `counts` is {user: number}, a Series, a sequence with one number per user index, or the training data.
    """
    numbers = int | float | np.number
    if isinstance(counts, np.ndarray):
        is_sequence = counts.ndim == 1 and counts.dtype.kind in "iuf"
    else:
        is_sequence = isinstance(counts, list | tuple) and all(isinstance(n, numbers) for n in counts)
    if is_sequence:
        counts = dict(enumerate(counts))
    is_mapping = hasattr(counts, "items") and not hasattr(counts, "columns") and not hasattr(counts, "indptr")
    if not (is_mapping and all(isinstance(n, numbers) for n in dict(counts).values())):
        return count_entries(read_interactions(counts, table="train"), Ids(ids))
    if not np.isfinite([float(n) for n in dict(counts).values()]).all():
        raise InputError(
            "the counts hold NaN or an infinite number.", hint="Leave out users without a count."
        )
    by_user = {(k.item() if isinstance(k, np.generic) else k): int(v) for k, v in counts.items()}
    users = ids_from_sequence(list(by_user), table="counts", column="user")
    known, _ = encode(users, table="counts", column="user")
    known.same_kind(Ids(ids), what="user")
    if not is_sequence and len(ids) and by_user and (known.code_of(ids) < 0).all():
        found = f"the counts name {len(by_user):,} users"
        warn(RecsysWarning, f"{found}, and none of the {len(ids):,} evaluated ones.")
    return np.array([by_user.get(user, 0) for user in ids.tolist()], dtype=np.int64)


def by_activity(
    evaluation: Evaluation, counts: Any, bins: Sequence[tuple[float, float]] | None = None
) -> dict[str, dict[str, float]]:
    """Return {bin: {metric: mean, "num_users": how many}} by training interactions; only per-user metrics.

    Args:
        evaluation: what was evaluated.
        counts: {user: number of training interactions}, a sequence with one number per user index, or the
            training data.
        bins: (from, below) pairs; by default thirds of the users, called low, medium and high.

    >>> import recsys
    >>> result = recsys.evaluate({1: [5], 2: [6], 3: [7]}, {1: [5], 2: [9], 3: [7]}, ["hit@1"])
    >>> {name: row["hit@1"] for name, row in by_activity(result, {1: 2, 2: 4, 3: 90}).items()}
    {'low': 1.0, 'medium': 0.0, 'high': 1.0}
    """
    evaluation = evaluation_of(evaluation)
    groups = _activity_groups(activity_of(evaluation.per_case.ids, counts), bins)
    values = evaluation.values_by(groups)
    columns = evaluation.per_case.columns
    evaluated = ~np.isnan(np.column_stack([*columns.values()])).all(axis=1)
    return {
        label: {
            "num_users": int((mask & evaluated).sum()),
            **{name: value for name, value in values[label].items() if name in columns},
        }
        for label, mask in groups.items()
    }


def _activity_groups(activity: Int, bins: Sequence[Any] | None) -> dict[str, Bool]:
    """Return which users are in each third, or in each bin; "other" are those in none."""
    if bins is None:
        first, second = np.quantile(activity, [1 / 3, 2 / 3]) if len(activity) else (0.0, 0.0)
        middle = (activity > first) & (activity <= second)
        return {"low": activity <= first, "medium": middle, "high": activity > second}
    groups = {}
    for pair in bins:
        if isinstance(pair, str) or not hasattr(pair, "__len__") or len(pair) != 2:
            raise InputError(
                f"{pair!r} is not a bin.", hint="Bins are (from, below): bins=[(0, 5), (5, 20)]."
            )
        low, high = pair
        if not low < high:
            raise InputError(f"the bin ({low}, {high}) is empty.", hint="Bins are (from, below).")
        name = f"{low:g}+" if math.isinf(high) else f"{low:g}-{high:g}"
        groups[name] = (activity >= low) & (activity < high)
    rest = ~np.logical_or.reduce(list(groups.values())) if groups else np.ones(len(activity), dtype=bool)
    return groups | ({"other": rest} if rest.any() else {})


def per_user_distribution(evaluation: Evaluation, metric: str, *, bins: int = 20) -> dict[str, Any]:
    """Return the histogram of a metric over its users, its summary, and how many users are at 0.

    >>> import recsys
    >>> result = recsys.evaluate({1: [5], 2: [6]}, {1: [5], 2: [9]}, ["hit@1"])
    >>> made = per_user_distribution(result, "hit@1", bins=2)
    >>> made["counts"].tolist(), made["n_at_zero"], made["mean"]
    ([1, 1], 1, 0.5)
    """
    return distribution(evaluation_of(evaluation).values_of(metric), bins=bins)


def distribution(values: Any, *, bins: int = 20) -> dict[str, Any]:
    """Return the histogram of some values, how many are 0, and their summary; NaN are left out.

    >>> distribution([0.0, 0.5, float("nan"), 1.0], bins=2)["counts"].tolist()
    [1, 2]
    """
    numbers = np.asarray(values, dtype=np.float64)
    numbers = numbers[~np.isnan(numbers)]
    in_unit_interval = len(numbers) > 0 and numbers.min() >= 0 and numbers.max() <= 1
    counts, edges = np.histogram(numbers, bins=bins, range=(0.0, 1.0) if in_unit_interval else None)
    n_at_zero = int((numbers == 0).sum())
    return {
        "values": numbers, "counts": counts, "edges": edges, "n_at_zero": n_at_zero, **number_summary(numbers)
    }  # fmt: skip


def lower_is_better(evaluation: Evaluation, metric: str) -> bool:
    """Return whether lower values of an evaluated metric are better."""
    name = evaluation._key(metric)  # noqa: SLF001
    return next(r for r in evaluation.requests if str(r) == name).metric.better == "lower"


def losing_users(
    winner: Evaluation, other: Evaluation, metric: str, *, counts: Any = None, most: int | None = 20
) -> Any:
    """Return the users the better model serves worse, largest loss first: a frame by user id.

    Columns: `winner`, `other` and `difference` of the metric, and with `counts` the number of training
    interactions. Users without a value in both are left out; `frame.attrs` counts them as `unpaired`, and the
    users won, tied and lost.

    >>> import recsys
    >>> truth = {1: [5], 2: [6], 3: [7]}
    >>> a = recsys.evaluate({1: [5], 2: [6], 3: [0]}, truth, ["hit@1"])
    >>> b = recsys.evaluate({1: [0], 2: [6], 3: [7]}, truth, ["hit@1"])
    >>> frame = losing_users(a, b, "hit@1")
    >>> frame.index.tolist(), frame.attrs["won"], frame.attrs["tied"], frame.attrs["lost"]
    ([3], 1, 1, 1)
    """
    import pandas as pd

    winner, other = evaluation_of(winner), evaluation_of(other)
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
