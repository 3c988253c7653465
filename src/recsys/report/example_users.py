"""Users worth looking at: at most 300, chosen by how they fared, with what they were shown and wanted.

Items are kept once and named by number, so that ten lists of a user cost little.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from recsys.report import style
from recsys.report.report_data import ReportData
from recsys.types import Array, Float, Int, Interactions, Lists

MOST_USERS = 300
_SHOWN, _HISTORY, _WANTED, _LETTERS = 10, 12, 20, 70


class _Titles:
    """Numbers for items in the order they are first met, and what to call them."""

    def __init__(self, material: ReportData) -> None:
        self.names = material.items
        self.numbers: dict[Any, int] = {}

    def of(self, items: Iterable[Any]) -> list[int]:
        return [self.numbers.setdefault(item, len(self.numbers)) for item in items]

    def table(self) -> list[list[str]]:
        """[title, id] a number; the id is left out where it is the title."""
        rows = ([short(self.names.title(item)), short(str(item))] for item in self.numbers)
        return [[title] if title == name else [title, name] for title, name in rows]


def chosen(material: ReportData) -> dict[int, list[str]]:
    """{row of the aligned table: why}: worst, best and random users, and those won and lost most."""
    values = material.aligned.tables[material.best][material.metric]
    sign = -1.0 if material.lower_is_better(material.metric) else 1.0
    wanted = _sizes(material.truth, material.aligned.ids)
    picks: dict[str, Int] = {}
    share = MOST_USERS // (5 if material.baseline in material.names[:] and len(material.names) > 1 else 3)
    # Among equals, users with more to find come first: failing them says more.
    picks["worst"] = _lowest(sign * values, -wanted, share)
    picks["best"] = _lowest(-sign * values, -wanted, share)
    if material.baseline is not None and material.baseline != material.best:
        gap = sign * material.aligned.differences(material.best, material.baseline, material.metric)
        picks["lost most"] = _lowest(np.where(gap < 0, gap, np.nan), -wanted, share)
        picks["won most"] = _lowest(np.where(gap > 0, -gap, np.nan), -wanted, share)
    with_value = np.flatnonzero(~np.isnan(values))
    draw = np.random.default_rng(0).permutation(len(with_value))[:share]
    picks["random"] = with_value[np.sort(draw)]
    out: dict[int, list[str]] = {}
    for why, rows in picks.items():
        for row in rows.tolist():
            out.setdefault(int(row), []).append(why)
    return dict(list(out.items())[:MOST_USERS])


def people(material: ReportData) -> dict[str, Any]:
    """What the inspector shows: users with their values, history, wanted items and lists, by model."""
    titles = _Titles(material)
    rows = chosen(material)
    ids, aligned = material.aligned.ids, material.aligned
    grades = None if material.truth is None else material.truth.grades
    out = []
    for row, why in rows.items():
        case, user = ids[row], material.users[row]
        wanted = _items_of(material.truth, case, _WANTED, grades)
        person: dict[str, Any] = {
            "id": short(str(case)),
            "why": why,
            "values": [_number(aligned.tables[n][material.metric][row]) for n in material.names],
        }
        if material.truth is not None:
            person |= {"wanted": titles.of(wanted[0]), "n_wanted": wanted[1]}
        if material.train is not None:
            had = _items_of(material.train, user, _HISTORY, material.moments)
            person |= {"had": titles.of(had[0]), "n_had": had[1]}
        if material.lists:
            person["lists"] = [
                titles.of(_list_of(material.lists[n], case)) if n in material.lists else None
                for n in material.names
            ]
        out.append(person)
    return {"users": out, "items": titles.table(), "models": [short(n) for n in material.names], "k": _SHOWN}


def failures(material: ReportData, n: int = 12) -> list[dict[str, Any]]:
    """The users the best model served worst (lost most against the baseline where there is one)."""
    values = material.aligned.tables[material.best][material.metric]
    sign = -1.0 if material.lower_is_better(material.metric) else 1.0
    wanted = _sizes(material.truth, material.aligned.ids)
    grades = None if material.truth is None else material.truth.grades
    base = material.baseline if material.baseline not in (None, material.best) else None
    score = (
        sign * values
        if base is None
        else sign * material.aligned.differences(material.best, base, material.metric)
    )
    out = []
    for row in _lowest(np.where(score < 0, score, np.nan) if base else score, -wanted, n).tolist():
        case = material.aligned.ids[row]
        liked = _items_of(material.truth, case, 3, grades)
        shown = _list_of(material.lists[material.best], case)[:3] if material.best in material.lists else []
        out.append({
            "user": str(case),
            "value": float(values[row]),
            "base": float(material.aligned.tables[base][material.metric][row]) if base else None,
            "n_wanted": liked[1],
            "n_had": _items_of(material.train, material.users[row], 0, None)[1],
            "wanted": [material.items.title(i) for i in liked[0]],
            "shown": [material.items.title(i) for i in shown],
        })  # fmt: skip
    return out


def short(text: str) -> str:
    """A name cut to what fits a line of the page."""
    return style.short(text, _LETTERS)


def _lowest(score: Float, then: Array, n: int) -> Int:
    """Places of the n lowest scores; NaN never; ties by `then`, then by place."""
    order = np.lexsort((then, score))
    return order[~np.isnan(score[order])][:n]


def _sizes(table: Interactions | None, cases: Array) -> Int:
    if table is None:
        return np.zeros(len(cases), dtype=np.int64)
    at = table.cases.code_of(cases)
    return np.where(at >= 0, table.sizes[at], 0)


def _items_of(
    table: Interactions | None, case: Any, most: int, key: Array | None
) -> tuple[Sequence[Any], int]:
    """Some items of a case, those with the highest key (grade or time) first, and how many there are."""
    if table is None:
        return [], 0
    at = int(table.cases.code_of(np.array([case], dtype=table.cases.values.dtype))[0])
    if at < 0:
        return [], 0
    inside = slice(int(table.indptr[at]), int(table.indptr[at + 1]))
    codes = table.codes[inside]
    if key is not None:
        codes = codes[np.argsort(-key[inside], kind="stable")]
    return [table.items.name(code) for code in codes[:most].tolist()], len(codes)


def _list_of(lists: Lists, case: Any) -> list[Any]:
    at = int(lists.cases.code_of(np.array([case], dtype=lists.cases.values.dtype))[0])
    if at < 0:
        return []
    codes = lists.codes[lists.indptr[at] : lists.indptr[at + 1]][:_SHOWN]
    return [lists.items.name(code) for code in codes.tolist()]


def _number(value: float) -> float | None:
    return None if np.isnan(value) else round(float(value), 4)
