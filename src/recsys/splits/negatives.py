"""Items a user has nothing to do with, drawn to be ranked against what they took.

Drawn without replacement and never a positive, whatever n is. A draw belongs to the seed and the user's id,
so it depends neither on the order of rows nor on who else is asked for, and blocks may be of any size. Users
are never looped over: all draw at once, and draw again where they hit a positive or an earlier draw.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from recsys.errors import InputError, SplitError, UnknownNameError
from recsys.inputs.frames import read_interactions
from recsys.inputs.ids import encode, of_any
from recsys.kernels.keyed_random import Keys, fractions, id_keys, mixed, pair_keys
from recsys.types import Array, Bool, Codes, Float, Ids, Int, Interactions

__all__ = [
    "Negatives",
    "sample",
]

HOW = {
    "uniform": "every item that is no positive of the user is as likely as any other",
    "popularity": "an item is as likely as its number of interactions (to the power of `power`) says",
    "batch_free": "uniform, without the judged items of anyone in the same batch of users",
}
_ODD = np.uint64(0xD1342543DE82EF95)  # steps from one draw of a user to the next
_CELLS = 1 << 20  # drawn at a time
_ROUNDS = 10  # of drawing again, before the few users left are drawn by sorting all their candidates


@dataclass(frozen=True, eq=False)
class Negatives:
    """Drawn items: CSR by user (ids ascending), in the order they were drawn.

    `counts` says how many users got fewer than asked, and how many cells were drawn.
    """

    cases: Ids
    items: Ids
    indptr: Int
    codes: Codes
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def users(self) -> Array:
        """The user ids, ascending."""
        return self.cases.values

    @property
    def matrix(self) -> Array:
        """One row a user, one column a negative; an error where users got different numbers."""
        sizes = np.diff(self.indptr)
        if len(sizes) and (sizes != sizes[0]).any():
            raise InputError(
                f"users have between {sizes.min()} and {sizes.max()} negatives, which is no matrix.",
                hint="Use to_dict() or to_frame(), or ask for fewer.",
            )
        return self.items.values[self.codes].reshape(len(sizes), -1)

    def to_dict(self) -> dict[Any, list[Any]]:
        """{user: [items]}."""
        flat, ends = self.items.values[self.codes].tolist(), self.indptr.tolist()
        return {user: flat[ends[i] : ends[i + 1]] for i, user in enumerate(self.cases.values.tolist())}

    def to_frame(self) -> Any:
        """A pandas table with the columns user_id and item_id."""
        import pandas as pd

        user = np.repeat(self.cases.values, np.diff(self.indptr))
        return pd.DataFrame({"user_id": user, "item_id": self.items.values[self.codes]})


def sample(
    positives: Any,
    n: int = 99,
    *,
    also: Any = None,
    users: Iterable[Any] | None = None,
    catalogue: Iterable[Any] | None = None,
    how: str = "uniform",
    seed: int = 0,
    power: float = 1.0,
    batch_size: int = 256,
    too_few: str = "error",
) -> Negatives:
    """Draw n negatives for each user, never one of their positives.

    Args:
        positives: what users took (train): anything that `evaluate` takes as truth.
        n: how many a user.
        also: more positives (test); users that occur only here are drawn for too.
        users: for whom; everyone in `also`, else everyone in `positives`, unless said.
        catalogue: all item ids; the items of `positives` and `also` unless said.
        how: "uniform", "popularity" (counted on `positives`) or "batch_free", which also leaves out the items
            of `also` (else of `positives`) of every user in the same batch.
        seed: a whole number; the draws of a user depend on it and on the user's id.
        power: of the popularity; 1 unless said, 0.75 is common.
        batch_size: how many users make a batch, in the order of their ids, for "batch_free".
        too_few: what becomes of users with fewer than n candidates: "error", or "fewer", which counts them.

    >>> drawn = sample({"ann": ["a", "b"], "bob": ["c"]}, n=2, catalogue="abcdef")
    >>> drawn.matrix.shape, set(drawn.to_dict()["ann"]) & {"a", "b"}
    ((2, 2), set())
    """
    _check(how, n, too_few, power, batch_size)
    given = _SamplingInputs(positives, also, users, catalogue)
    weights = _popularity(given, power) if how == "popularity" else None
    pool = given.pool if weights is None else given.pool[weights[given.pool] > 0]
    bars = _Exclusions(given, batch_size if how == "batch_free" else None)
    limit = len(pool) - bars.count(pool)
    takes = np.minimum(limit, n)
    counts = {"users": len(given.cases), "candidates": len(pool), "drawn": int(takes.sum())}
    short = takes < n
    if short.any():
        if too_few == "error":
            worst = int(np.argmin(takes))
            raise SplitError(
                f"{int(short.sum()):,} of {len(short):,} users have fewer than {n} candidates, "
                f"{given.cases.name(worst)!r} only {int(takes[worst])}.",
                hint="Ask for fewer, pass the whole catalogue=, or use too_few='fewer', which counts them.",
            )
        counts["users_with_fewer"] = int(short.sum())
    drawing = _Sampler(bars, pool, None if weights is None else weights[pool])
    keys = id_keys(given.cases, seed, purpose=f"negatives {how}")
    indptr = np.concatenate([[0], np.cumsum(takes)])
    codes = np.empty(int(indptr[-1]), dtype=np.int32)
    step = max(1, _CELLS // n)
    for start in range(0, len(takes), step):
        cases = np.arange(start, min(start + step, len(takes)))
        codes[indptr[start] : indptr[cases[-1] + 1]] = drawing.block(
            cases, keys[cases], takes[cases], limit[cases]
        )
    return Negatives(given.cases, given.items, indptr, codes, counts)


class _SamplingInputs:
    """Positives brought onto one set of users and items; `pool` are the codes of the catalogue."""

    def __init__(self, positives: Any, also: Any, users: Any, catalogue: Any) -> None:
        first = read_interactions(positives, table="positives")
        second = None if also is None else read_interactions(also, table="also")
        self.parts = [part for part in (first, second) if part is not None]
        self.items = _occurring(first)
        if second is not None:
            self.items, _, _ = self.items.union(_occurring(second), what="item")
        named = self.items if catalogue is None else _ids(catalogue, "item", "catalogue")
        self.items, _, _ = self.items.union(named, what="item")
        self.pool: Int = self.items.code_of(named.values)
        self.cases = self.parts[-1].cases if users is None else _ids(users, "user", "users")

    def keys_of(self, part: Interactions) -> Int:
        """The key (case * items + item) of each entry whose user is asked for."""
        part.cases.same_kind(self.cases, what="user")
        case = np.repeat(self.cases.code_of(part.cases.values), part.sizes)
        item = self.items.code_of(part.items.values)[part.codes]
        asked = case >= 0
        return _ascending(case[asked] * len(self.items) + item[asked])


class _Exclusions:
    """Which items are barred for whom: their own positives, and those of their batch."""

    def __init__(self, given: _SamplingInputs, batch_size: int | None) -> None:
        self.n_cases, self.width, self.batch = len(given.cases), len(given.items), batch_size
        self.own = _ascending(np.concatenate([given.keys_of(part) for part in given.parts]))
        self.shared = np.zeros(0, dtype=np.int64)
        if batch_size is not None:
            judged = given.keys_of(given.parts[-1])
            self.shared = _ascending(judged // self.width // batch_size * self.width + judged % self.width)

    def barred(self, case: Int, item: Int) -> Bool:
        """One flag a pair; the cases lie close together, and so do their positives."""
        ends = np.array([case.min(), case.max() + 1]) * self.width if len(case) else np.zeros(2)
        low, high = np.searchsorted(self.own, ends)
        made = _among(case * self.width + item, self.own[low:high])
        if self.batch is not None:
            made |= _among(case // self.batch * self.width + item, self.shared)
        return made

    def count(self, pool: Int) -> Int:
        """How many items of the pool are barred for each case."""
        inside = np.zeros(self.width, dtype=bool)
        inside[pool] = True
        own = self.own[inside[self.own % self.width]]
        case = own // self.width
        if self.batch is None:
            return np.bincount(case, minlength=self.n_cases)
        both = _among(case // self.batch * self.width + own % self.width, self.shared)
        shared = self.shared[inside[self.shared % self.width]] // self.width
        batches = np.bincount(shared, minlength=self.n_cases // self.batch + 1)
        return (
            np.bincount(case[~both], minlength=self.n_cases) + batches[np.arange(self.n_cases) // self.batch]
        )


class _Sampler:
    """Draws from a pool of items, with weights or without."""

    def __init__(self, bars: _Exclusions, pool: Int, weights: Float | None) -> None:
        self.bars, self.pool, self.weights = bars, pool, weights
        self.bounds = None if weights is None else np.cumsum(weights) / weights.sum()

    def block(self, cases: Int, keys: Keys, takes: Int, limit: Int) -> Codes:
        """The draws of some cases, one after the other."""
        width = int(takes.max(initial=0))
        cells = np.full((len(cases), width), -1, dtype=np.int64)  # places in the pool, -1: still to be drawn
        room = np.arange(width) < takes[:, None]
        drawn = np.zeros(len(cases), dtype=np.int64)
        # Who takes most of what there is would hit earlier draws again and again.
        open_rows = np.flatnonzero((takes > 0) & (2 * takes <= limit))
        for _ in range(_ROUNDS):
            if len(open_rows) == 0:
                break
            self._round(open_rows, cells, room, (cases, keys, drawn))
            open_rows = open_rows[((cells[open_rows] < 0) & room[open_rows]).any(axis=1)]
        left = np.flatnonzero(((cells < 0) & room).any(axis=1))
        step = max(1, _CELLS // len(self.pool)) if len(left) else 1
        for start in range(0, len(left), step):
            self._sorted(left[start : start + step], cells, room, (cases, keys))
        return self.pool[cells[room]].astype(np.int32)

    def _round(self, rows: Int, cells: Int, room: Bool, state: tuple[Int, Keys, Int]) -> None:
        """Fill what is open with new draws; drop those that are barred or were drawn before."""
        cases, keys, drawn = state
        mine = cells[rows]
        at, column = np.nonzero((mine < 0) & room[rows])
        sizes = np.bincount(at, minlength=len(rows))
        turn = drawn[rows][at] + np.arange(len(at)) - (np.cumsum(sizes) - sizes)[at]
        drawn[rows] += sizes
        place = self._places(mixed(keys[rows][at] + turn.astype(np.uint64) * _ODD))
        place[self.bars.barred(cases[rows][at], self.pool[place])] = -1
        mine[at, column] = place
        cells[rows] = _without_repeats(mine, len(self.pool))

    def _places(self, keys: Keys) -> Int:
        if self.bounds is None:
            return (fractions(keys) * len(self.pool)).astype(np.int64)
        return np.minimum(np.searchsorted(self.bounds, fractions(keys), side="right"), len(self.pool) - 1)

    def _sorted(self, rows: Int, cells: Int, room: Bool, state: tuple[Int, Keys]) -> None:
        """Give every candidate a number (exponential, by weight) and take the smallest: exact for any n."""
        cases, keys = state
        shape = (len(rows), len(self.pool))
        item = np.broadcast_to(np.arange(len(self.pool)), shape)
        case = np.broadcast_to(cases[rows][:, None], shape)
        numbers = fractions(pair_keys(np.repeat(keys[rows], shape[1]), item.ravel().astype(np.uint64)))
        numbers = -np.log1p(-numbers).reshape(shape)
        if self.weights is not None:
            numbers = numbers / self.weights
        numbers[self.bars.barred(case.ravel(), self.pool[item.ravel()]).reshape(shape)] = np.inf
        at, column = np.nonzero(cells[rows] >= 0)
        numbers[at, cells[rows][at, column]] = np.inf
        order = np.argsort(numbers, axis=1, kind="stable")
        mine = cells[rows]
        at, column = np.nonzero((mine < 0) & room[rows])
        sizes = np.bincount(at, minlength=len(rows))
        mine[at, column] = order[at, np.arange(len(at)) - (np.cumsum(sizes) - sizes)[at]]
        cells[rows] = mine


def _without_repeats(cells: Int, n_pool: int) -> Int:
    """Rows in which each place stands once, the first time it was drawn; -1 elsewhere."""
    width = cells.shape[1]
    kind = "i4" if (n_pool + 1) * width < 1 << 31 else "i8"
    packed: Array = np.where(cells < 0, n_pool, cells).astype(kind)
    packed *= width
    packed += np.arange(width, dtype=kind)
    packed.sort(axis=1)  # by place, then by column: what follows its like is a repeat
    place, column = packed // width, packed % width
    repeat = np.zeros(cells.shape, dtype=bool)
    repeat[:, 1:] = (place[:, 1:] == place[:, :-1]) & (place[:, 1:] < n_pool)
    at, which = np.nonzero(repeat)
    made = cells
    made[at, column[at, which]] = -1
    return made


def _occurring(part: Interactions) -> Ids:
    """The items there are; small whole numbers may be their own codes without all of them occurring."""
    return Ids(part.items.values[np.bincount(part.codes, minlength=len(part.items)) > 0])


def _ascending(keys: Int) -> Int:
    """Sorted, each once; histories mostly come so."""
    if (keys[1:] > keys[:-1]).all():
        return keys
    made = np.sort(keys, kind="stable")  # two sorted runs are merged in one pass
    return made[np.concatenate([[True], made[1:] != made[:-1]])] if len(made) else made


def _among(keys: Int, known: Int) -> Bool:
    """Which keys occur among ascending ones."""
    if len(known) == 0:
        return np.zeros(len(keys), dtype=bool)
    at = np.searchsorted(known, keys)
    at[at == len(known)] = 0
    return np.asarray(known[at] == keys)


def _check(how: Any, n: Any, too_few: Any, power: Any, batch_size: Any) -> None:
    if how not in HOW:
        raise UnknownNameError("way to sample negatives", how, HOW)
    if too_few not in ("error", "fewer"):
        raise UnknownNameError("value of too_few", too_few, ("error", "fewer"))
    for name, value in (("n", n), ("batch_size", batch_size)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
            raise SplitError(
                f"{name}={value!r} is not a whole number of at least 1.", hint=f"Pass {name}=99."
            )
    if not 0 <= power < float("inf"):
        raise SplitError(f"power={power!r} is not a number of at least 0.", hint="Pass power=0.75.")


def _ids(values: Any, column: str, table: str) -> Ids:
    array = of_any(values, table=table, column=column)
    if len(array) == 0:
        raise InputError(f"{table} is empty.", table=table, hint=f"Pass {column} ids.")
    return encode(array, table=table, column=column)[0]


def _popularity(given: _SamplingInputs, power: float) -> Float:
    part = given.parts[0]
    counts = part.counts if part.counts is not None else np.ones(len(part.codes))
    item = given.items.code_of(part.items.values)[part.codes]
    popular = np.bincount(item, weights=counts, minlength=len(given.items))
    return np.where(popular > 0, popular**power, 0.0)


def __dir__() -> list[str]:
    return __all__
