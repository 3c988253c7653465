"""Failure cases: users with too little history, cold and niche items, the worst users and why.

A user gets the first reason that applies, in the order a person would look. Among equally bad users, those
whose first relevant item is ranked lowest come first if MRR was evaluated, else those with more test items.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from recsys.analysis.users import lower_is_better
from recsys.display.number_words import plural
from recsys.evaluation.results import Evaluation, evaluation_of
from recsys.inputs import read_interactions, read_lists
from recsys.records.arrays import Array, Bool, Float, Ids, Int, Interactions, Lists, count_entries

COLD_USER, NICHE_ITEM = 3, 10


@dataclass(frozen=True, eq=False)
class FailureCases:
    """Frames of the failures, and `summary`: how many there are and what they cost."""

    cold_users: Any
    niche_items: Any
    worst: Any
    summary: dict[str, float]

    def __repr__(self) -> str:
        from recsys.display.text_tables import text_table

        lines = text_table({"what": list(self.summary), "value": list(self.summary.values())})
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
    """Find cold-start users, niche items and the worst users, with a reason.

    Args:
        evaluation: what was evaluated: an evaluation, the path of one, or results that carry theirs.
        train: the training interactions.
        truth: the test set that was evaluated against.
        lists: the recommendations, for how often niche items are shown.
        metric: which metric; by default the first one evaluated.
        cold_user: users with fewer training interactions are cold.
        niche_item: items with fewer training interactions are niche.
        most: how many of the worst users (worse than the mean) to list.

    Returns:
        The frames `cold_users`, `niche_items` and `worst`, and the dictionary `summary`.

    >>> import recsys
    >>> train, truth = {1: [5, 6, 7], 2: [5]}, {1: [8], 2: [6]}
    >>> lists = {1: [8, 9], 2: [7, 8]}
    >>> found = failure_cases(recsys.evaluate(lists, truth, ["hit@2"]), train, truth, lists, niche_item=2)
    >>> found.cold_users.index.tolist(), found.worst["reason"].tolist()
    ([2], ['cold start: 1 training interaction'])
    >>> found.summary["niche items"], found.summary["niche items never recommended"]
    (4, 1)
    """
    import pandas as pd

    evaluation = evaluation_of(evaluation)
    name = next(iter(evaluation)) if metric is None else metric
    train_rows, truth_rows = read_interactions(train, table="train"), read_interactions(truth)
    list_rows = None if lists is None else read_lists(lists)
    users = _user_frame(evaluation, name, train_rows, truth_rows, niche_item)
    cold = users[users["n_train"] < cold_user]
    tables: dict[str, Interactions | Lists] = {"n_train": train_rows, "n_relevant": truth_rows}
    if list_rows is not None:
        tables["n_recommended"] = list_rows
    ids = np.unique(np.concatenate([rows.items.values[np.unique(rows.codes)] for rows in tables.values()]))
    columns = {column: _item_counts(rows, ids) for column, rows in tables.items()}
    items = pd.DataFrame(columns, index=pd.Index(ids, name="item")).sort_values("n_train", kind="stable")
    niche = items[items["n_train"] < niche_item]
    worst = _worst_with_reasons(users, cold_user, niche_item, most, lower=lower_is_better(evaluation, name))
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
    if list_rows is not None:
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
    """Return the users furthest on the bad side of the mean, with a reason: a frame by user id.

    The arguments are those of failure_cases.
    """
    return failure_cases(
        evaluation, train, truth, metric=metric, cold_user=cold_user, niche_item=niche_item, most=most
    ).worst


def _user_frame(
    evaluation: Evaluation, metric: str, train: Interactions, truth: Interactions, niche_item: int
) -> Any:
    """Return a row per evaluated user: value, size of the history, how well known the test items are."""
    import pandas as pd

    ids, values = evaluation.per_case.ids, evaluation.values_of(metric)
    codes = truth.cases.code_of(ids)
    popularity = _item_counts(train, truth.items.values)[truth.codes]
    case = np.repeat(np.arange(len(truth.cases)), truth.sizes)
    frame = pd.DataFrame(
        {
            "value": values,
            "n_train": count_entries(train, Ids(ids)),
            "n_test": _sum_per_case(np.ones(len(case)), case, truth, codes),
            "n_test_niche": _sum_per_case(popularity < niche_item, case, truth, codes),
            "n_test_new": _sum_per_case(popularity == 0, case, truth, codes),
        },
        index=pd.Index(ids, name="user"),
    )
    if "mrr" in evaluation.per_case.columns:
        mrr = evaluation.values_of("mrr")
        frame["first_hit"] = np.divide(1.0, mrr, out=np.full(len(mrr), np.inf), where=mrr > 0)
    return frame[~np.isnan(values)]


def _sum_per_case(flags: Bool | Float, case: Int, truth: Interactions, codes: Int) -> Int:
    """Return the sum of flags of the cases with these codes; 0 for cases outside the truth."""
    total = np.bincount(case, weights=flags, minlength=max(len(truth.cases), 1)).astype(np.int64)
    return np.where(codes >= 0, total[codes], 0)


def _item_counts(rows: Interactions | Lists, items: Array) -> Int:
    """Return how often each of these items occurs."""
    total = np.bincount(rows.codes, minlength=max(len(rows.items), 1))
    codes = rows.items.code_of(items)
    return np.where(codes >= 0, total[codes], 0)


def _worst_with_reasons(users: Any, cold_user: int, niche_item: int, most: int, *, lower: bool) -> Any:
    mean = users["value"].mean()
    bad = users[users["value"] > mean if lower else users["value"] < mean]
    tie_break = "first_hit" if "first_hit" in bad else "n_test"
    frame = bad.sort_values(["value", tie_break], ascending=[not lower, False], kind="stable").head(most)
    reasons = [_reason(row, cold_user, niche_item) for row in frame.itertuples(index=False)]
    return frame.assign(reason=reasons)


def _reason(row: Any, cold_user: int, niche_item: int) -> str:
    if row.n_train == 0:
        return "no training interactions at all"
    if row.n_train < cold_user:
        return f"cold start: {plural(row.n_train, 'training interaction')}"
    if row.n_test == 0:
        return "no test items at all"
    if row.n_test_new == row.n_test:
        return "every test item is new: none was taken in training"
    if 2 * row.n_test_niche >= row.n_test:
        return f"niche taste: {row.n_test_niche} of {row.n_test} test items have < {niche_item} interactions"
    place = getattr(row, "first_hit", np.inf)
    where = f", the first at place {place:,.0f}" if np.isfinite(place) else ""
    return f"no plain reason: {row.n_train} training interactions, well-known test items{where}"
