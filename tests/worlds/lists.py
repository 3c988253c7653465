"""Small worlds for Hypothesis, full of what goes wrong in real data, and the containers they may come in.

A world is a few cases with short lists and a truth: repeats, ties, cases on one side only, unknown items,
grades that are 0 or broken, cut-offs beyond the list and the catalogue, ids of every awkward spelling.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from oracles.shown import Known

SMALL_INTS = tuple(range(12))
AWKWARD_INTS = (-(2**62), -7, -1, 0, 1, 7, 10, 2**31 - 1, 2**31, 2**53 + 1, 2**62 - 1, 2**62)
AWKWARD_STRS = ("7", "07", "007", "10", "NA", "nan", "None", "a b", "Zürich", "été", "日本", "🎬", "\ufffd")
LEVELS = (3.0, 1.5, 1.0, 0.0, -0.0, -2.0, 1e-300)
PLAIN_STRS = tuple("abcdefghijkl")
POOLS = (SMALL_INTS, AWKWARD_INTS, AWKWARD_STRS, PLAIN_STRS)

GRADES = {
    "binary": (1.0,),
    "judged": (0.0, 1.0),
    "graded": (0.0, 1.0, 2.0, 3.0, 4.0),
    "fractional": (0.0, 0.5, 1.0, 1.5, 2.25, 0.1),
}
MOST_TIED = 4
WEIGHTS = (2.0, 0.5, 1.0, 3.25, 0.1)
SIDES = ("both", "both", "both", "list", "truth", "blank")


@dataclass(frozen=True)
class World:
    """Lists (of items, or of pairs with a score) and truths by case, and what else a metric may need."""

    lists: Mapping[Any, Sequence[Any]]
    truth: Mapping[Any, Mapping[Any, float]]
    k: int
    catalogue: Sequence[Any]
    case_weights: Mapping[Any, float]
    item_weights: Mapping[Any, float]
    clusters: Mapping[Any, Any]
    scored: bool = False

    @property
    def cases(self) -> list[Any]:
        return sorted(set(self.lists) | set(self.truth))

    def list_rows(self) -> list[tuple[Any, ...]]:
        """(case, item, place) or (case, item, score), one row per entry."""
        if self.scored:
            return [(case, item, score) for case, pairs in self.lists.items() for item, score in pairs]
        return [
            (case, item, at) for case, items in self.lists.items() for at, item in enumerate(items, start=1)
        ]

    def truth_rows(self) -> list[tuple[Any, Any, float]]:
        return [(case, item, grade) for case, wanted in self.truth.items() for item, grade in wanted.items()]


def id_pools(least: int) -> st.SearchStrategy[tuple[Any, ...]]:
    """A handful of ids of one kind, in no particular order."""
    return st.sampled_from(POOLS).flatmap(
        lambda pool: st.permutations(pool).flatmap(
            lambda ids: st.integers(least, 8).map(lambda n: tuple(ids[:n])),
        )
    )


@st.composite
def scored_lists(draw: st.DrawFn, items: Sequence[Any]) -> list[tuple[Any, float]]:
    """The items with scores, the best not always first, at most MOST_TIED of them equal."""
    levels = draw(st.lists(st.sampled_from(LEVELS), min_size=len(items), max_size=len(items)))
    spare = iter(range(100, 100 + len(items)))
    scores: list[float] = []
    for level in levels:
        scores.append(level if scores.count(level) < MOST_TIED else float(next(spare)))
    return list(zip(items, scores, strict=True))


@st.composite
def worlds(
    draw: st.DrawFn,
    *,
    scored: bool | None = None,
    repeats: bool = True,
    complete: bool = False,
    one_sided: bool = True,
    grades: str | None = None,
) -> World:
    """A world of at most five cases and nine items."""
    items = draw(id_pools(3))
    cases = draw(id_pools(1))[:5]
    catalogue = items[: draw(st.integers(2, len(items)))]
    scored = draw(st.booleans()) if scored is None else scored
    levels = st.sampled_from(GRADES[grades or draw(st.sampled_from(sorted(GRADES)))])

    def one_list(least: int) -> list[Any]:
        if complete:
            ranking = list(draw(st.permutations(catalogue)))
        else:
            ranking = draw(st.lists(st.sampled_from(items), min_size=least, max_size=6, unique=not repeats))
        return draw(scored_lists(ranking)) if scored else ranking

    def one_truth(least: int) -> dict[Any, float]:
        return draw(st.dictionaries(st.sampled_from(items), levels, min_size=least, max_size=5))

    present = (
        st.sampled_from(("both", "both", "both", "list", "truth", "blank")) if one_sided else st.just("both")
    )
    lists: dict[Any, Any] = {}
    truth: dict[Any, dict[Any, float]] = {}
    for case in cases:
        first = case == cases[0]  # a world where no case has both sides is refused as a whole
        side = "both" if first else draw(present)
        if side in ("both", "list"):
            lists[case] = one_list(int(first))
        if side in ("both", "truth"):
            truth[case] = one_truth(int(first))
        if side == "blank":
            lists[case], truth[case] = [], {}
    return World(
        lists=lists,
        truth=truth,
        k=draw(st.sampled_from((1, 2, 3, 4, 5, 10, 1000))),
        catalogue=catalogue,
        case_weights=dict(zip(cases, cycle(WEIGHTS), strict=False)),
        item_weights=dict(zip(items, cycle(WEIGHTS), strict=False)),
        clusters={case: cases[at // 2] for at, case in enumerate(cases)},
        scored=scored,
    )


def known_of(world: World) -> Known:
    """What metrics about the items shown need: items without a vector, a kind or a price, and zero vectors.

    It depends on the order of the world's items only, so renaming them changes nothing.
    """
    items, cases = list(world.item_weights), list(world.case_weights)
    kinds = ("a", "b|a", "", "c", "b", "a|b|c")
    vectors = ((1.0, 0.0, 2.0), (0.0, 0.0, 0.0), (-1.0, 0.5, 0.0), (0.25, 3.0, 1.0))
    return Known(
        train={
            c: [i for at, i in enumerate(items) if (at * 5 + u * 3) % 4 > 1]
            for u, c in enumerate(cases)
            if u != 3
        },
        embeddings={i: vectors[at % 4] for at, i in enumerate(items) if at % 5 != 3},
        kinds={i: kinds[at % 6] for at, i in enumerate(items) if at % 7 != 6},
        price={i: 1.5 * at - 1 for at, i in enumerate(items) if at % 4 != 3},
        reference={c: [*items[u:], *items[:u]][: 5 - u] for u, c in enumerate(cases)},
    )


def list_frame(world: World, *, case: str = "user", item: str = "item") -> pd.DataFrame:
    """A pandas table of the lists; ids keep their kind even when there are no rows."""
    return _frame(world.list_rows(), [case, item, "score" if world.scored else "rank"], world)


def truth_frame(world: World, *, case: str = "user", item: str = "item") -> pd.DataFrame:
    return _frame(world.truth_rows(), [case, item, "grade"], world)


def _frame(rows: list[tuple[Any, ...]], columns: list[str], world: World) -> pd.DataFrame:
    frame = pd.DataFrame(rows, columns=columns)
    kinds = (world.cases, world.item_weights)
    for column, ids in zip(columns, kinds, strict=False):
        text = any(isinstance(value, str) for value in ids)
        frame[column] = frame[column].astype(object if text else np.int64)
    return frame
