"""Random users, lists and truths for a peer and for us, and the comparison of the results."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st

EXACT = 1e-12
# The last place of a float32 near 1 is 1.2e-7; a sum of some tens of terms may lose a few of them.
FLOAT32 = 2e-6
SEEDS = (0, 1, 2)
THOROUGH = settings(max_examples=500, deadline=None)

Lists = dict[str, list[tuple[str, float]]]
Truth = dict[str, dict[str, int]]


@dataclass(frozen=True)
class World:
    """Lists with scores, best first, and a graded truth. Ids are text: some peers order ties by it."""

    lists: Lists
    truth: Truth
    n_items: int


def peer(name: str) -> ModuleType:
    """The peer's module, or a skip that says what to do."""
    if importlib.util.find_spec(name.partition(".")[0]) is None:
        pytest.skip(
            f"{name} is not installed here; `make parity` runs beside the peers", allow_module_level=True
        )
    return importlib.import_module(name)


def make_world(
    seed: int,
    *,
    n_users: int = 300,
    n_items: int = 30,
    length: tuple[int, int] = (1, 15),
    n_relevant: tuple[int, int] = (1, 12),
    grades: int = 3,
    judged: int = 0,
    levels: int | None = None,
    without_list: float = 0.0,
) -> World:
    """A world from a seed: `levels` different scores make ties, `judged` items of grade 0 join each truth."""
    rng = np.random.default_rng(seed)
    lists: Lists = {}
    truth: Truth = {}
    for user in range(n_users):
        items = rng.permutation(n_items)[: rng.integers(length[0], length[1] + 1)]
        scores = rng.permutation(len(items)) if levels is None else rng.integers(0, levels, len(items))
        # Multiples of 1/64 above 0: a float32 holds them, and no peer takes them for a missing score.
        rows = sorted(
            ((f"i{i:03}", (s + 1) / 64) for i, s in zip(items, scores, strict=True)), key=lambda r: -r[1]
        )
        if user == 0 or rng.random() >= without_list:
            lists[f"u{user:04}"] = rows
        relevant = rng.permutation(n_items)[: rng.integers(n_relevant[0], n_relevant[1] + 1) + judged]
        marks = [*rng.integers(1, grades + 1, len(relevant) - judged), *[0] * judged]
        truth[f"u{user:04}"] = {f"i{i:03}": int(g) for i, g in zip(relevant, marks, strict=True)}
    return World(lists, truth, n_items)


def worlds(
    *, ties: bool = False, judged: int = 0, grades: int = 3, full: bool = False
) -> st.SearchStrategy[World]:
    """Small worlds for Hypothesis; it draws sizes and a seed, the rest follows from them."""
    return st.builds(
        lambda seed, n_users, n_items, levels, without: make_world(
            seed,
            n_users=n_users,
            n_items=n_items,
            length=(n_items, n_items) if full else (1, n_items),
            n_relevant=(1, n_items - judged - 1),
            grades=grades,
            judged=judged,
            levels=levels if ties else None,
            without_list=0.0 if full or not without else 0.3,
        ),
        seed=st.integers(0, 2**32 - 1),
        n_users=st.integers(1, 5),
        n_items=st.integers(judged + 3, 14),
        levels=st.integers(1, 5),
        without=st.booleans(),
    )


def per_user(result: object, request: str) -> dict[str, float]:
    """Our value of each user that is in the mean."""
    values = result.values_of(request)
    return {user: float(v) for user, v in zip(result.per_case.ids, values, strict=True) if not np.isnan(v)}


def agree(result: object, request: str, theirs: Mapping[str, float], within: float = EXACT) -> None:
    """The same users, the same value of each of them, the same mean."""
    mine = per_user(result, request)
    assert set(mine) == set(theirs), (request, set(mine) ^ set(theirs))
    differing = [(u, mine[u], theirs[u]) for u in mine if not abs(mine[u] - theirs[u]) <= within]
    assert not differing, (
        f"{request}: {len(differing)} users differ, first (user, ours, theirs): {differing[0]}"
    )
    if mine:
        assert abs(result[request] - float(np.mean(list(theirs.values())))) <= within, request


def matrices(world: World) -> tuple[list[str], list[str], np.ndarray, np.ndarray]:
    """Users, items, scores (-inf where not listed) and grades as dense arrays."""
    users, items = sorted(world.truth), [f"i{i:03}" for i in range(world.n_items)]
    scores = np.full((len(users), len(items)), -np.inf)
    grades = np.zeros((len(users), len(items)))
    for row, user in enumerate(users):
        for item, score in world.lists.get(user, []):
            scores[row, int(item[1:])] = score
        for item, grade in world.truth[user].items():
            grades[row, int(item[1:])] = grade
    return users, items, scores, grades
