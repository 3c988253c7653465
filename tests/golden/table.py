"""The table of every stored number beside ours: reproduced, or refused with a reason."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import recsys
from golden.refused import REFUSED
from golden.ways import DOCSTRINGS, PRESET_OF, Way, way_of
from recsys.conventions.decisions import Conventions
from recsys.conventions.presets import preset
from recsys.errors import TieWarning

HERE = Path(__file__).parent
CASES: dict[str, Any] = json.loads((HERE / "cases.json").read_text("utf-8"))
RESULTS: dict[str, Any] = json.loads((HERE / "results.json").read_text("utf-8"))
TOLERANCE = 5e-7
IMPLICIT_ITEMS = 400


@dataclass(frozen=True)
class Entry:
    """One stored number or failure."""

    library: str
    case: str
    key: str
    theirs: float | str

    @property
    def is_number(self) -> bool:
        return not isinstance(self.theirs, str)

    @property
    def reason(self) -> str | None:
        """Why we refuse it, None if we do not."""
        rules = (
            why
            for library, case, key, why in REFUSED
            if library == self.library and fnmatchcase(self.case, case) and fnmatchcase(self.key, key)
        )
        return next(rules, None)

    def __str__(self) -> str:
        return f"{self.library}/{self.case}/{self.key}"


def entries() -> Iterator[Entry]:
    """Everything in results.json but the remarks."""
    for library, run in RESULTS.items():
        for case, numbers in run["results"].items():
            for key, value in numbers.items():
                if key != "note":
                    yield Entry(library, case, key, value)


def conventions_of(library: str) -> Conventions:
    return preset(PRESET_OF.get(library, library)).conventions


def ours(entry: Entry, conventions: Conventions | None = None) -> float:
    """Our number for this entry, under the library's preset or the conventions given."""
    way = way_of(entry.library, entry.key, entry.case)
    if entry.case == "beyond":
        case = CASES["beyond"]
    else:
        case = DOCSTRINGS[entry.key] if entry.case == "docstring" else CASES["cases"][entry.case]
    k = case["k"]
    lists = {int(user): [(item, score) for item, score in rows] for user, rows in case["recs"].items()}
    truth = {
        int(user): {int(item): float(grade) for item, grade in wanted.items()}
        for user, wanted in case["truth"].items()
    }
    request = way.request.format(k=k)
    rules = (conventions or conventions_of(entry.library)).but(**way.but)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TieWarning)  # some cases are about ties
        result = recsys.evaluate(
            in_form(way, lists, truth, k),
            truth,
            metrics=[request],
            conventions=rules,
            full_ranking=way.form == "padded",
            **about(way, case),
        )
    return way.then(result[request])


def about(way: Way, case: dict[str, Any]) -> dict[str, Any]:
    """What the library was told besides lists and truth."""
    train: dict[int, list[int]] = {}
    for user, item in case.get("train", []):
        train.setdefault(user, []).append(item)
    trained = sorted({item for items in train.values() for item in items})
    forms: dict[str, tuple[str, Any]] = {
        "catalogue": ("catalogue", CASES["catalog"]),
        "train_catalogue": ("catalogue", trained),
        "columns": ("catalogue", [0, *CASES["catalog"]]),
        "train": ("train", train),
        "train_columns": ("embeddings", {i: [float(i in had) for had in train.values()] for i in trained}),
        "features": ("embeddings", {int(i): v for i, v in case.get("features", {}).items()}),
        "boolean": ("embeddings", {int(i): v for i, v in case.get("boolean_features", {}).items()}),
    }
    return dict(forms[name] for name in way.given)


Rows = dict[int, list[tuple[int, float]]]


def in_form(way: Way, lists: Rows, truth: dict[int, dict[int, float]], k: int) -> Rows:
    """The lists as the library was handed them; see Way."""
    if way.form == "given":
        return lists
    if way.form == "cut":
        return {user: rows[:k] for user, rows in lists.items()}
    users = list(truth)
    if way.form == "rows":
        return {u: below(lists.get(u, []), sorted(truth[u])) for u in users}
    if way.form == "catalogue":
        known = catalogue(lists, truth)
        return {u: below(once(lists.get(u, [])), known) for u in users}
    every = range(IMPLICIT_ITEMS)
    filled = {u: fill(lists.get(u, []), truth[u], k) for u in users}
    return {u: below(rows, every) for u, rows in filled.items()}


def below(rows: list[tuple[int, float]], items: Any) -> list[tuple[int, float]]:
    """The list with the items it lacks tied below it."""
    listed = {item for item, _ in rows}
    return rows + [(item, 0.0) for item in items if item not in listed]


def once(rows: list[tuple[int, float]]) -> list[tuple[int, float]]:
    """The list as a vector of scores holds it: each item one time."""
    return list(dict(reversed(rows)).items())[::-1]


def fill(rows: list[tuple[int, float]], wanted: dict[int, float], k: int) -> list[tuple[int, float]]:
    """The first k items in the order given, with misses where there are fewer, at falling scores."""
    items = [item for item, _ in rows[:k]]
    spare = (item for item in range(IMPLICIT_ITEMS) if item not in items and item not in wanted)
    items += [next(spare) for _ in range(k - len(items))]
    return [(item, 1.0 / place) for place, item in enumerate(items, start=1)]


def catalogue(lists: Rows, truth: dict[int, dict[int, float]]) -> list[int]:
    met = {item for rows in lists.values() for item, _ in rows} | {i for t in truth.values() for i in t}
    return sorted(met | set(CASES["catalog"]))


def verdict(entry: Entry) -> str:
    """`reproduced`, `refused`, or what is wrong."""
    if not entry.is_number:
        return "refused" if entry.reason else f"{entry.theirs!r} has no reason in refused.py"
    value = ours(entry)
    near = math.isclose(value, float(entry.theirs), rel_tol=0.0, abs_tol=TOLERANCE)
    if near and entry.reason:
        return f"refused, though ours is {value:.7f} too: {entry.reason}"
    if near:
        return "reproduced"
    return "refused" if entry.reason else f"ours is {value:.7f}, theirs {entry.theirs}"
