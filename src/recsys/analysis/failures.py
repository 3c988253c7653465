"""Failure cases: users with too little history, items with too few interactions, the worst users and why.

Everything is counted on arrays; a reason is the first that applies, in the order a person would look. Among
equally bad users those whose first relevant item stands lowest come first, where MRR was evaluated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from recsys.analysis.users import lower_is_better
from recsys.evaluation.results import Evaluation
from recsys.inputs.frames import read_interactions, read_lists
from recsys.types import Array, Bool, Float, Int, Interactions, Lists

COLD_USER, NICHE_ITEM = 3, 10


@dataclass(frozen=True, eq=False)
class FailureCases:
    """Frames of the failures, and `summary`: how many there are and what they cost."""

    cold_users: Any
    niche_items: Any
    worst: Any
    summary: dict[str, float]

    def __repr__(self) -> str:
        from recsys.evaluation import tables

        lines = tables.text({"what": list(self.summary), "value": list(self.summary.values())})
        return f"{lines}\n\nworst users\n{self.worst.to_string()}"


def failure_cases(
    evaluation: Evaluation,
    train: Any,
    truth: Any,
    lists: Any = None,
    *,
    metric: str | None = None,
    cold_user: int = COLD_USER,
    niche_item: int = NICHE_ITEM,
    most: int = 20,
) -> FailureCases:
    """Cold-start users, niche items and the worst users with a reason.

    Args:
        evaluation: what was evaluated.
        train: the training interactions.
        truth: the test set that was evaluated against.
        lists: the recommendations, for how often niche items are shown.
        metric: which metric; the first evaluated without.
        cold_user: users with fewer training interactions are cold.
        niche_item: items with fewer are niche.
        most: how many of the worst users (worse than the mean) to name.

    >>> import recsys
    >>> train, truth = {1: [5, 6, 7], 2: [5]}, {1: [8], 2: [6]}
    >>> lists = {1: [8, 9], 2: [7, 8]}
    >>> found = failure_cases(recsys.evaluate(lists, truth, ["hit@2"]), train, truth, lists, niche_item=2)
    >>> found.cold_users.index.tolist(), found.worst["reason"].tolist()
    ([2], ['cold start: 1 training interaction'])
    >>> found.summary["niche items"], found.summary["niche items never recommended"]
    (4, 1)
    """
    name = next(iter(evaluation)) if metric is None else metric
    taken, wanted = read_interactions(train, table="train"), read_interactions(truth)
    shown = None if lists is None else read_lists(lists)
    users = _users(evaluation, name, taken, wanted, niche_item)
    cold = users[users["n_train"] < cold_user]
    items = _items(taken, wanted, shown)
    niche = items[items["n_train"] < niche_item]
    worst = _worst(users, cold_user, niche_item, most, lower=lower_is_better(evaluation, name))
    rest = users[users["n_train"] >= cold_user]
    summary: dict[str, float] = {
        "users": len(users),
        "cold users": len(cold),
        f"{name} of cold users": float(cold["value"].mean()),
        f"{name} of the others": float(rest["value"].mean()),
        "users at zero": int((users["value"] == 0).sum()),
        "items": len(items),
        "niche items": len(niche),
        "test interactions on niche items": int(niche["n_relevant"].sum()),
    }
    if shown is not None:
        summary["niche items never recommended"] = int((niche["n_recommended"] == 0).sum())
    return FailureCases(cold, niche, worst, summary)


def worst_users(
    evaluation: Evaluation,
    train: Any,
    truth: Any,
    *,
    metric: str | None = None,
    cold_user: int = COLD_USER,
    niche_item: int = NICHE_ITEM,
    most: int = 20,
) -> Any:
    """The users furthest on the bad side of the mean and why, as far as data tells: a frame by user id."""
    name = next(iter(evaluation)) if metric is None else metric
    taken, wanted = read_interactions(train, table="train"), read_interactions(truth)
    users = _users(evaluation, name, taken, wanted, niche_item)
    return _worst(users, cold_user, niche_item, most, lower=lower_is_better(evaluation, name))


def _users(
    evaluation: Evaluation, metric: str, taken: Interactions, wanted: Interactions, niche_item: int
) -> Any:
    """One row an evaluated user: value, history, and how familiar the test items are."""
    import pandas as pd

    ids, values = evaluation.per_case.ids, evaluation.values_of(metric)
    at = wanted.cases.code_of(ids)
    popularity = _counts_in(taken, wanted.items.values)[wanted.codes]
    case = np.repeat(np.arange(len(wanted.cases)), wanted.sizes)
    frame = pd.DataFrame(
        {
            "value": values,
            "n_train": _sizes_of(taken, ids),
            "n_test": _per_case(np.ones(len(case)), case, wanted, at),
            "n_test_niche": _per_case(popularity < niche_item, case, wanted, at),
            "n_test_new": _per_case(popularity == 0, case, wanted, at),
        },
        index=pd.Index(ids, name="user"),
    )
    if "mrr" in evaluation.per_case.columns:
        first = evaluation.values_of("mrr")
        frame["first_hit"] = np.divide(1.0, first, out=np.full(len(first), np.inf), where=first > 0)
    return frame[~np.isnan(values)]


def _per_case(flags: Bool | Float, case: Int, wanted: Interactions, at: Int) -> Int:
    total = np.bincount(case, weights=flags, minlength=max(len(wanted.cases), 1)).astype(np.int64)
    return np.where(at >= 0, total[at], 0)


def _sizes_of(taken: Interactions, ids: Array) -> Int:
    at = taken.cases.code_of(ids)
    return np.where(at >= 0, taken.sizes[at], 0) if len(taken.cases) else np.zeros(len(ids), dtype=np.int64)


def _counts_in(rows: Interactions | Lists, items: Array) -> Int:
    """How often each of these items occurs."""
    total = np.bincount(rows.codes, minlength=max(len(rows.items), 1))
    at = rows.items.code_of(items)
    return np.where(at >= 0, total[at], 0)


def _items(taken: Interactions, wanted: Interactions, shown: Lists | None) -> Any:
    """One row an item that occurs anywhere: how often taken, relevant and recommended."""
    import pandas as pd

    held = [rows for rows in (taken, wanted, shown) if rows is not None]
    ids = np.unique(np.concatenate([rows.items.values[np.unique(rows.codes)] for rows in held]))
    columns = {"n_train": _counts_in(taken, ids), "n_relevant": _counts_in(wanted, ids)}
    if shown is not None:
        columns["n_recommended"] = _counts_in(shown, ids)
    return pd.DataFrame(columns, index=pd.Index(ids, name="item")).sort_values("n_train", kind="stable")


def _worst(users: Any, cold_user: int, niche_item: int, most: int, *, lower: bool) -> Any:
    mean = users["value"].mean()
    bad = users[users["value"] > mean if lower else users["value"] < mean]
    later = "first_hit" if "first_hit" in bad else "n_test"
    frame = bad.sort_values(["value", later], ascending=[not lower, False], kind="stable").head(most)
    reasons = [_reason(row, cold_user, niche_item) for row in frame.itertuples(index=False)]
    return frame.assign(reason=reasons)


def _reason(row: Any, cold_user: int, niche_item: int) -> str:
    if row.n_train == 0:
        return "no training interactions at all"
    if row.n_train < cold_user:
        return f"cold start: {row.n_train} training interaction{'' if row.n_train == 1 else 's'}"
    if row.n_test == 0:
        return "no test items at all"
    if row.n_test_new == row.n_test:
        return "every test item is new: nobody took one in training"
    if 2 * row.n_test_niche >= row.n_test:
        return f"niche taste: {row.n_test_niche} of {row.n_test} test items have < {niche_item} interactions"
    place = getattr(row, "first_hit", np.inf)
    where = f", the first at place {place:,.0f}" if np.isfinite(place) else ""
    return f"no plain reason: {row.n_train} training interactions, well-known test items{where}"
