"""Example users: at most 300, chosen by their metric values, with their history, lists and relevant items.

Each item is stored once and referred to by number, so that ten lists per user stay small.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import count
from typing import Any

import numpy as np

from recsys.records.arrays import Array, Float, Ids, Int, Interactions, Lists, count_entries
from recsys.report import style
from recsys.report.study import Study

MOST_USERS = 300
_MAX_SHOWN, _MAX_HISTORY, _MAX_RELEVANT, _MAX_LETTERS = 10, 12, 20, 70


def choose_users(study: Study) -> dict[int, list[str]]:
    """Return {row of the aligned table: reasons}.

    The rows are the worst, best and random users, and the largest wins and losses.
    """
    values = study.aligned.tables[study.best][study.headline]
    sign = study.sign(study.headline)
    n_relevant = _relevant_counts(study)
    rows_by_reason: dict[str, Int] = {}
    n_per_reason = MOST_USERS // (5 if study.rival is not None else 3)
    # Among equals, users with more to find come first: failing them says more.
    rows_by_reason["worst"] = _lowest(sign * values, -n_relevant, n_per_reason)
    rows_by_reason["best"] = _lowest(-sign * values, -n_relevant, n_per_reason)
    if study.rival is not None:
        gap = sign * study.aligned.differences(study.best, study.rival, study.headline)
        rows_by_reason["lost most"] = _lowest(np.where(gap < 0, gap, np.nan), -n_relevant, n_per_reason)
        rows_by_reason["won most"] = _lowest(np.where(gap > 0, -gap, np.nan), -n_relevant, n_per_reason)
    with_value = np.flatnonzero(~np.isnan(values))
    sample = np.random.default_rng(0).permutation(len(with_value))[:n_per_reason]
    rows_by_reason["random"] = with_value[np.sort(sample)]
    reasons_by_row: dict[int, list[str]] = {}
    for reason, rows in rows_by_reason.items():
        for row in rows.tolist():
            reasons_by_row.setdefault(int(row), []).append(reason)
    return dict(list(reasons_by_row.items())[:MOST_USERS])


def inspector_users(study: Study) -> dict[str, Any]:
    """Return what the user inspector shows.

    It shows users with their values, history, relevant items and lists per model.
    """
    numbers: defaultdict[Any, int] = defaultdict(count().__next__)  # items, in the order of their first use
    ids, aligned = study.aligned.ids, study.aligned
    grades = None if study.truth is None else study.truth.grades
    users = []
    for row, reasons in choose_users(study).items():
        case = ids[row]
        values = [float(aligned.tables[n][study.headline][row]) for n in study.names]
        user: dict[str, Any] = {
            "id": short(str(case)),
            "why": reasons,
            "values": [None if np.isnan(v) else round(v, 4) for v in values],
        }
        if study.truth is not None:
            relevant, n_relevant = _items_of(study.truth, case, _MAX_RELEVANT, grades)
            user |= {"wanted": [numbers[i] for i in relevant], "n_wanted": n_relevant}
        if study.history is not None:
            history, n_history = _items_of(study.history, study.users[row], _MAX_HISTORY, study.moments)
            user |= {"had": [numbers[i] for i in history], "n_had": n_history}
        if study.lists:
            shown = {n: _items_of(lists, case, _MAX_SHOWN)[0] for n, lists in study.lists.items()}
            user["lists"] = [[numbers[i] for i in shown[n]] if n in shown else None for n in study.names]
        users.append(user)
    # [title, id] of each item; the id is left out where it is the title.
    names = ((short(study.items.title(item)), short(str(item))) for item in numbers)
    items = [[title] if title == name else [title, name] for title, name in names]
    return {"users": users, "items": items, "models": [short(n) for n in study.names]}


def failures(study: Study, n: int = 12) -> list[dict[str, Any]]:
    """Return the users the best model serves worst; with a rival, those it loses most on."""
    values = study.aligned.tables[study.best][study.headline]
    sign = study.sign(study.headline)
    n_relevant = _relevant_counts(study)
    grades = None if study.truth is None else study.truth.grades
    base = study.rival
    score = (
        sign * values if base is None else sign * study.aligned.differences(study.best, base, study.headline)
    )
    rows = []
    for row in _lowest(np.where(score < 0, score, np.nan) if base else score, -n_relevant, n).tolist():
        case = study.aligned.ids[row]
        relevant, n_all_relevant = _items_of(study.truth, case, 3, grades)
        shown, _ = _items_of(study.lists.get(study.best), case, 3)
        rows.append({
            "user": str(case),
            "value": float(values[row]),
            "base": float(study.aligned.tables[base][study.headline][row]) if base else None,
            "n_wanted": n_all_relevant,
            "n_had": _items_of(study.history, study.users[row], 0)[1],
            "wanted": [study.items.title(i) for i in relevant],
            "shown": [study.items.title(i) for i in shown],
        })  # fmt: skip
    return rows


def short(text: str) -> str:
    """Return a name cut to what fits a line of the page."""
    return style.short(text, _MAX_LETTERS)


def _lowest(score: Float, then: Array, n: int) -> Int:
    """Rows of the n lowest scores, without NaN; equal scores by `then`, then by row."""
    order = np.lexsort((then, score))
    return order[~np.isnan(score[order])][:n]


def _relevant_counts(study: Study) -> Int:
    """Return the number of relevant items of each case, 0 where the truth is not given."""
    if study.truth is None:
        return np.zeros(len(study.aligned.ids), dtype=np.int64)
    return count_entries(study.truth, Ids(study.aligned.ids))


def _items_of(
    table: Interactions | Lists | None, case: Any, n_items: int, key: Array | None = None
) -> tuple[Sequence[Any], int]:
    """Return the first items of a case, or those with the highest key (grade, time), and how many it has."""
    if table is None:
        return [], 0
    at = int(table.cases.code_of(np.array([case], dtype=table.cases.values.dtype))[0])
    if at < 0:
        return [], 0
    inside = slice(int(table.indptr[at]), int(table.indptr[at + 1]))
    codes = table.codes[inside]
    if key is not None:
        codes = codes[np.argsort(-key[inside], kind="stable")]
    return [table.items.name(code) for code in codes[:n_items].tolist()], len(codes)
