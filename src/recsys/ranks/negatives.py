"""Negative items of each user, drawn to be ranked against the positives.

They are drawn without replacement and are never a positive, for any n. A draw depends on the seed and the
user's id only, not on the order of rows, the other users or the size of a block. There is no loop over users:
all draw at once, and draw again where they hit a positive or an earlier draw.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from recsys.errors import InputError, SplitError, check_choice
from recsys.inputs import read_interactions
from recsys.inputs.ids import encode, ids_to_array
from recsys.kernels.keyed_random import Keys, id_keys, mix_bits, pair_keys, unit_floats
from recsys.records.arrays import Array, Bool, Codes, Float, Ids, Int, Interactions, is_in, sorted_unique
from recsys.records.checks import is_whole

__all__ = [
    "Negatives",
    "sample",
]

HOW = {
    "uniform": "every item that is not a positive of the user is equally likely",
    "popularity": "an item is drawn in proportion to its number of interactions to the power of `power`",
    "batch_free": "uniform, without the judged items of any user in the same batch",
}
_DRAW_STEP = np.uint64(0xD1342543DE82EF95)  # the step from one draw of a user to the next
_CELLS_PER_BLOCK = 1 << 20  # cells of users x draws in memory at a time
_MAX_ROUNDS = 10  # of drawing again; the few users left then sort all their candidates


@dataclass(frozen=True, eq=False)
class Negatives:
    """Drawn items: CSR by user (ids ascending), in the order of drawing.

    `counts` has the number of users, candidates and draws, and of users with fewer draws than asked for.
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
        """One row per user, one column per negative; an error if users have different numbers of them."""
        sizes = np.diff(self.indptr)
        if len(sizes) and (sizes != sizes[0]).any():
            raise InputError(
                f"users have between {sizes.min()} and {sizes.max()} negatives, which is not a matrix.",
                hint="Use to_dict() or to_frame(), or ask for fewer.",
            )
        return self.items.values[self.codes].reshape(len(sizes), -1)

    def to_dict(self) -> dict[Any, list[Any]]:
        """Return {user: [items]}."""
        flat, ends = self.items.values[self.codes].tolist(), self.indptr.tolist()
        return {user: flat[ends[i] : ends[i + 1]] for i, user in enumerate(self.cases.values.tolist())}

    def to_frame(self) -> Any:
        """Return a pandas table with the columns user_id and item_id."""
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
        positives: the positives of users (train): anything that `evaluate` takes as truth.
        n: the number of negatives per user.
        also: more positives (test).
        users: the users to draw for; by default those of `also`, or without it those of `positives`.
        catalogue: all item ids; by default the items of `positives` and `also`.
        how: "uniform", "popularity" (counted on `positives`) or "batch_free", which also leaves out the items
            in `also` (or without it in `positives`) of every user in the same batch.
        seed: a whole number; the draws of a user depend on it and on the user's id.
        power: the exponent of the popularity; 0.75 is common.
        batch_size: the number of users in a batch, in the order of their ids, for "batch_free".
        too_few: what happens to users with fewer than n candidates: "error", or "fewer", which counts them.

    Raises:
        SplitError: a user has fewer than n candidates, or an argument is out of range.

    >>> drawn = sample({"ann": ["a", "b"], "bob": ["c"]}, n=2, catalogue=list("abcdef"))
    >>> drawn.matrix.shape, set(drawn.to_dict()["ann"]) & {"a", "b"}
    ((2, 2), set())
    """
    _check_arguments(how, n, too_few, power, batch_size)
    inputs = _SamplingInputs(positives, also, users, catalogue)
    weights = _popularity_weights(inputs, power) if how == "popularity" else None
    pool = inputs.pool if weights is None else inputs.pool[weights[inputs.pool] > 0]
    exclusions = _Exclusions(inputs, batch_size if how == "batch_free" else None)
    n_available = len(pool) - exclusions.count(pool)
    n_drawn = np.minimum(n_available, n)
    counts = {"users": len(inputs.cases), "candidates": len(pool), "drawn": int(n_drawn.sum())}
    short = n_drawn < n
    if short.any():
        if too_few == "error":
            worst = int(np.argmin(n_drawn))
            raise SplitError(
                f"{int(short.sum()):,} of {len(short):,} users have fewer than {n} candidates, "
                f"{inputs.cases.name(worst)!r} only {int(n_drawn[worst])}.",
                hint="Ask for fewer, pass the whole catalogue=, or use too_few='fewer', which counts them.",
            )
        counts["users_with_fewer"] = int(short.sum())
    sampler = _Sampler(exclusions, pool, None if weights is None else weights[pool])
    keys = id_keys(inputs.cases, seed, purpose=f"negatives {how}")
    indptr = np.concatenate([[0], np.cumsum(n_drawn)])
    codes = np.empty(int(indptr[-1]), dtype=np.int32)
    step = max(1, _CELLS_PER_BLOCK // n)
    for start in range(0, len(n_drawn), step):
        cases = np.arange(start, min(start + step, len(n_drawn)))
        codes[indptr[start] : indptr[cases[-1] + 1]] = sampler.draw(
            cases, keys[cases], n_drawn[cases], n_available[cases]
        )
    return Negatives(inputs.cases, inputs.items, indptr, codes, counts)


class _SamplingInputs:
    """Positives with common codes for users and items; `pool` holds the codes of the catalogue."""

    def __init__(self, positives: Any, also: Any, users: Any, catalogue: Any) -> None:
        first = read_interactions(positives, table="positives")
        second = None if also is None else read_interactions(also, table="also")
        self.parts = [part for part in (first, second) if part is not None]
        self.items = _occurring_items(first)
        if second is not None:
            self.items, _, _ = self.items.union(_occurring_items(second), what="item")
        listed = self.items if catalogue is None else _encode_ids(catalogue, "item", "catalogue")
        self.items, _, _ = self.items.union(listed, what="item")
        self.pool: Int = self.items.code_of(listed.values)
        self.cases = self.parts[-1].cases if users is None else _encode_ids(users, "user", "users")

    def keys_of(self, part: Interactions) -> Int:
        """Return the keys (case * number of items + item) of the entries whose user is drawn for."""
        part.cases.same_kind(self.cases, what="user")
        case = np.repeat(self.cases.code_of(part.cases.values), part.sizes)
        item = self.items.code_of(part.items.values)[part.codes]
        is_wanted = case >= 0
        return sorted_unique(case[is_wanted] * len(self.items) + item[is_wanted])


class _Exclusions:
    """The items barred for each user: their own positives, and those of their batch."""

    def __init__(self, inputs: _SamplingInputs, batch_size: int | None) -> None:
        self.n_cases, self.width, self.batch = len(inputs.cases), len(inputs.items), batch_size
        self.own = sorted_unique(np.concatenate([inputs.keys_of(part) for part in inputs.parts]))
        self.shared = np.zeros(0, dtype=np.int64)
        if batch_size is not None:
            judged = inputs.keys_of(inputs.parts[-1])
            self.shared = sorted_unique(judged // self.width // batch_size * self.width + judged % self.width)

    def barred(self, case: Int, item: Int) -> Bool:
        """Return one flag per pair; only the positives from the lowest to the highest case are searched."""
        ends = np.array([case.min(), case.max() + 1]) * self.width if len(case) else np.zeros(2)
        low, high = np.searchsorted(self.own, ends)
        is_barred = is_in(case * self.width + item, self.own[low:high])
        if self.batch is not None:
            is_barred |= is_in(case // self.batch * self.width + item, self.shared)
        return is_barred

    def count(self, pool: Int) -> Int:
        """Return the number of items of the pool that are barred for each case."""
        inside = np.zeros(self.width, dtype=bool)
        inside[pool] = True
        own = self.own[inside[self.own % self.width]]
        case = own // self.width
        if self.batch is None:
            return np.bincount(case, minlength=self.n_cases)
        in_both = is_in(case // self.batch * self.width + own % self.width, self.shared)
        shared = self.shared[inside[self.shared % self.width]] // self.width
        batches = np.bincount(shared, minlength=self.n_cases // self.batch + 1)
        return (
            np.bincount(case[~in_both], minlength=self.n_cases)
            + batches[np.arange(self.n_cases) // self.batch]
        )


class _Sampler:
    """Draws from a pool of items, with weights or without.

    Cells are users x draws: each holds a place in the pool, or -1 while it is still to be drawn.
    """

    def __init__(self, exclusions: _Exclusions, pool: Int, weights: Float | None) -> None:
        self.exclusions, self.pool, self.weights = exclusions, pool, weights
        self.cumulative = None if weights is None else np.cumsum(weights) / weights.sum()

    def draw(self, cases: Int, keys: Keys, n_wanted: Int, n_available: Int) -> Codes:
        """Return the drawn items of some cases, case after case."""
        width = int(n_wanted.max(initial=0))
        cells = np.full((len(cases), width), -1, dtype=np.int64)
        room = np.arange(width) < n_wanted[:, None]
        n_drawn = np.zeros(len(cases), dtype=np.int64)
        # A user who takes most of the candidates would hit earlier draws again and again: those are sorted.
        rows = np.flatnonzero((n_wanted > 0) & (2 * n_wanted <= n_available))
        for _ in range(_MAX_ROUNDS):
            if len(rows) == 0:
                break
            # Fill open cells with new draws; drop draws that are barred or repeat an earlier one.
            block = cells[rows]
            at, column, number = _open_cells(block, room[rows])
            turn = n_drawn[rows][at] + number
            n_drawn[rows] += np.bincount(at, minlength=len(rows))
            draws = unit_floats(mix_bits(keys[rows][at] + turn.astype(np.uint64) * _DRAW_STEP))
            if self.cumulative is None:
                place = (draws * len(self.pool)).astype(np.int64)
            else:
                place = np.searchsorted(self.cumulative, draws, side="right")
                place = np.minimum(place, len(self.pool) - 1)
            place[self.exclusions.barred(cases[rows][at], self.pool[place])] = -1
            block[at, column] = place
            cells[rows] = _without_repeats(block, len(self.pool))
            rows = rows[((cells[rows] < 0) & room[rows]).any(axis=1)]
        left = np.flatnonzero(((cells < 0) & room).any(axis=1))
        step = max(1, _CELLS_PER_BLOCK // len(self.pool)) if len(left) else 1
        for start in range(0, len(left), step):
            rows = left[start : start + step]
            cells[rows] = self._draw_by_sorting(cells[rows], room[rows], cases[rows], keys[rows])
        return self.pool[cells[room]].astype(np.int32)

    def _draw_by_sorting(self, block: Int, room: Bool, cases: Int, keys: Keys) -> Int:
        """Give each candidate an exponential arrival time, by weight, and take the first: exact for any n."""
        shape = (len(block), len(self.pool))
        item = np.broadcast_to(np.arange(len(self.pool)), shape)
        case = np.broadcast_to(cases[:, None], shape)
        arrival = unit_floats(pair_keys(np.repeat(keys, shape[1]), item.ravel().astype(np.uint64)))
        arrival = -np.log1p(-arrival).reshape(shape)
        if self.weights is not None:
            arrival = arrival / self.weights
        arrival[self.exclusions.barred(case.ravel(), self.pool[item.ravel()]).reshape(shape)] = np.inf
        at, column = np.nonzero(block >= 0)
        arrival[at, block[at, column]] = np.inf
        order = np.argsort(arrival, axis=1, kind="stable")
        at, column, number = _open_cells(block, room)
        block[at, column] = order[at, number]
        return block


def _open_cells(block: Int, room: Bool) -> tuple[Int, Int, Int]:
    """Return the row and column of each cell still to be drawn, and its number among those of its row."""
    at, column = np.nonzero((block < 0) & room)
    sizes = np.bincount(at, minlength=len(block))
    return at, column, np.arange(len(at)) - (np.cumsum(sizes) - sizes)[at]


def _without_repeats(cells: Int, n_pool: int) -> Int:
    """Return the cells with each place of a row only where it was drawn first; -1 elsewhere."""
    width = cells.shape[1]
    kind = "i4" if (n_pool + 1) * width < 1 << 31 else "i8"
    packed: Array = np.where(cells < 0, n_pool, cells).astype(kind)
    packed *= width
    packed += np.arange(width, dtype=kind)
    packed.sort(axis=1)  # by place, then by column: the second of two equal places is a repeat
    place, column = packed // width, packed % width
    repeat = np.zeros(cells.shape, dtype=bool)
    repeat[:, 1:] = (place[:, 1:] == place[:, :-1]) & (place[:, 1:] < n_pool)
    at, which = np.nonzero(repeat)
    cells[at, column[at, which]] = -1
    return cells


def _occurring_items(part: Interactions) -> Ids:
    """Return the ids of the items that occur; ids that are their own codes may include others."""
    return Ids(part.items.values[np.bincount(part.codes, minlength=len(part.items)) > 0])


def _check_arguments(how: Any, n: Any, too_few: Any, power: Any, batch_size: Any) -> None:
    check_choice("way to sample negatives", how, HOW)
    check_choice("value of too_few", too_few, ("error", "fewer"))
    for name, value in (("n", n), ("batch_size", batch_size)):
        if not is_whole(value, 1):
            raise SplitError(
                f"{name}={value!r} is not a whole number of at least 1.", hint=f"Pass {name}=99."
            )
    if not 0 <= power < float("inf"):
        raise SplitError(f"power={power!r} is not a number of at least 0.", hint="Pass power=0.75.")


def _encode_ids(values: Any, column: str, table: str) -> Ids:
    array = ids_to_array(values, table=table, column=column)
    if len(array) == 0:
        raise InputError(f"{table} is empty.", table=table, hint=f"Pass {column} ids.")
    return encode(array, table=table, column=column)[0]


def _popularity_weights(inputs: _SamplingInputs, power: float) -> Float:
    """Return the weight of each item: its number of interactions to a power."""
    part = inputs.parts[0]
    counts = part.counts if part.counts is not None else np.ones(len(part.codes))
    item = inputs.items.code_of(part.items.values)[part.codes]
    popularity = np.bincount(item, weights=counts, minlength=len(inputs.items))
    return np.where(popularity > 0, popularity**power, 0.0)


def __dir__() -> list[str]:
    return __all__
