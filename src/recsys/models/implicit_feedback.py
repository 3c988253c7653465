"""Implicit feedback: the (user, item) pairs a model learns from, and ALS and BPR through implicit.

Pairs are row numbers of a model's embeddings, in plain NumPy, so that data can be prepared without PyTorch.
ALS and BPR become factors with the ids they belong to, which evaluate, recommend and compare accept.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import numpy as np

from recsys.errors import InputError, Phrase, needs_extra
from recsys.records.arrays import Array, Bool, Int, Interactions, positions


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of a user's and an item's row; `order` says which came later, where that is known.

    >>> pairs = Pairs.of([0, 0, 1], [2, 1, 2], order=[5, 9, 1])
    >>> rest, last = pairs.without_last()
    >>> last.users.tolist(), last.items.tolist(), len(rest)
    ([0], [1], 2)
    """

    users: Int
    items: Int
    n_users: int
    n_items: int
    order: Array | None = None
    user_ids: Array | None = None
    item_ids: Array | None = None

    @classmethod
    def of(
        cls,
        users: Any,
        items: Any,
        *,
        n_users: int | None = None,
        n_items: int | None = None,
        order: Any = None,
    ) -> Pairs:
        """Pairs of row numbers; repeated ones are kept as given."""
        rows, columns = _row_numbers(users, "users"), _row_numbers(items, "items")
        if len(rows) != len(columns) or (order is not None and len(order) != len(rows)):
            raise InputError(
                f"{len(rows)} users and {len(columns)} items make no pairs.", hint="Give one item per user."
            )
        if len(rows) == 0:
            raise InputError("there is nothing to learn from: no pairs.")
        n_rows = (int(rows.max()) + 1, int(columns.max()) + 1)
        for what, given, least in (("users", n_users, n_rows[0]), ("items", n_items, n_rows[1])):
            if given is not None and given < least:
                raise InputError(
                    f"n_{what}={given}, but row {least - 1} occurs.", hint=f"Pass n_{what}={least} or more."
                )
        times = None if order is None else np.asarray(order)
        return cls(rows, columns, n_users or n_rows[0], n_items or n_rows[1], times)

    @classmethod
    def from_interactions(cls, data: Interactions) -> Pairs:
        """Return one pair per interaction; rows follow the sorted ids."""
        users = np.repeat(np.arange(len(data.cases), dtype=np.int64), data.sizes)
        pairs = cls.of(users, data.codes, n_users=len(data.cases), n_items=len(data.items), order=data.times)
        return replace(pairs, user_ids=data.cases.values, item_ids=data.items.values)

    @classmethod
    def of_ids(
        cls, users: Any, items: Any, *, order: Any = None, more_users: Any = (), more_items: Any = ()
    ) -> Pairs:
        """Pairs of ids; rows follow the sorted ids, `more_users` and `more_items` get rows without a pair.

        >>> pairs = Pairs.of_ids([30, 10], [7, 5], more_items=[6])
        >>> pairs.users.tolist(), pairs.items.tolist(), pairs.item_ids.tolist()
        ([1, 0], [2, 0], [5, 6, 7])
        """
        rows = []
        for what, given, more in (("users", users, more_users), ("items", items, more_items)):
            paired, extra = np.asarray(given), np.asarray(more)
            if len(extra) and (paired.dtype.kind in "iu") != (extra.dtype.kind in "iu"):
                one, other = paired.tolist()[0], extra.tolist()[0]
                raise InputError(
                    f"some {what} are whole numbers ({one!r} or {other!r}) and some are not.",
                    hint="Read all ids the same way.",
                )
            ids = np.unique(np.concatenate([paired, extra]) if len(extra) else paired)
            rows.append((ids, np.searchsorted(ids, paired)))
        (user_ids, user_rows), (item_ids, item_rows) = rows
        pairs = cls.of(user_rows, item_rows, n_users=len(user_ids), n_items=len(item_ids), order=order)
        return replace(pairs, user_ids=user_ids, item_ids=item_ids)

    def rows_of(self, ids: Any, what: str) -> Int:
        """Return the rows of "users" or "items" by their ids."""
        known = self.user_ids if what == "users" else self.item_ids
        values = np.asarray(ids)
        if known is None:
            return _row_numbers(values.reshape(-1), what).reshape(values.shape)
        rows = np.minimum(np.searchsorted(known, values), len(known) - 1)
        unknown = known[rows] != values
        if unknown.any():
            raise InputError(
                f"{int(unknown.sum())} {what} are unknown, {values[unknown].tolist()[0]!r} for one.",
                hint="Train on data that holds them, or name them as more_users= and more_items=.",
            )
        return rows

    def __len__(self) -> int:
        return len(self.users)

    def where(self, keep: Bool) -> Pairs:
        """Some of the pairs; users and items keep their rows."""
        order = None if self.order is None else self.order[keep]
        return replace(self, users=self.users[keep], items=self.items[keep], order=order)

    def without_last(self) -> tuple[Pairs, Pairs]:
        """Return all but each user's latest pair, and those latest pairs, for stopping and tuning.

        A user with one pair keeps it. Of equal times, the pair with the largest item row is the last.
        """
        if self.order is None:
            hint = Phrase("Pass {models.Pairs.of_ids.order=} (times, or places in time).")
            raise InputError("which pair is a user's last is not known.", hint=hint)
        by_time = np.lexsort((self.items, self.order, self.users))
        ordered = self.users[by_time]
        is_last = np.append(ordered[1:] != ordered[:-1], True)
        has_several = np.bincount(self.users, minlength=self.n_users) > 1
        last = np.zeros(len(self), dtype=bool)
        last[by_time[is_last & has_several[ordered]]] = True
        return self.where(~last), self.where(last)

    def tied_last(self) -> int:
        """Count users with several pairs at their latest time, so that the last one is arbitrary."""
        if self.order is None:
            return 0
        by_time = np.lexsort((self.order, self.users))
        users, times = self.users[by_time], self.order[by_time]
        ends = np.flatnonzero(np.append(users[1:] != users[:-1], True))
        ends = ends[ends > 0]
        return int(((users[ends - 1] == users[ends]) & (times[ends - 1] == times[ends])).sum())

    def unseen(self, users: Int, n: int, *, seed: int = 0) -> Int:
        """Draw `n` different items without a pair with the user, for each of `users`: one row per user."""
        rng = np.random.default_rng(seed)
        indptr = np.concatenate([[0], np.cumsum(np.bincount(self.users, minlength=self.n_users))])
        items = self.items[np.argsort(self.users, kind="stable")]
        out = np.empty((len(users), n), dtype=np.int64)
        step = max(1, (1 << 24) // self.n_items)
        for start in range(0, len(users), step):
            part = users[start : start + step]
            keys = rng.random((len(part), self.n_items), dtype=np.float32)
            sizes = indptr[part + 1] - indptr[part]
            keys[np.repeat(np.arange(len(part)), sizes), items[positions(indptr[part], sizes)]] = np.inf
            short = np.flatnonzero((keys < np.inf).sum(axis=1) < n)
            if len(short):
                raise InputError(
                    f"user row {int(part[short[0]])} has fewer than {n} items it has no pair with.",
                    hint="Ask for fewer negatives.",
                )
            out[start : start + step] = np.argpartition(keys, n - 1, axis=1)[:, :n]
        return out


def _row_numbers(values: Any, what: str) -> Int:
    array = np.asarray(values)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise InputError(
            f"{what} came as {array.dtype} with shape {array.shape}.",
            hint="Rows are whole numbers from 0; Pairs.of_ids makes them of ids.",
        )
    if len(array) and int(array.min()) < 0:
        raise InputError(f"{what} hold {int(array.min())}.", hint="Rows count from 0.")
    return array.astype(np.int64, copy=False)


@dataclass(frozen=True, eq=False)
class FactorModel:
    """Factors, and the ids of their rows where there are some; `model` is the library's own object."""

    user_factors: Array
    item_factors: Array
    user_ids: Array | None
    item_ids: Array | None
    model: Any


def als(train: Interactions | Pairs, *, factors: int = 64, seed: int = 0, **options: Any) -> FactorModel:
    """Alternating least squares; `options` are those of implicit's AlternatingLeastSquares."""
    return _fit_implicit("als", "AlternatingLeastSquares", train, {"factors": factors, **options}, seed)


def bpr(train: Interactions | Pairs, *, factors: int = 64, seed: int = 0, **options: Any) -> FactorModel:
    """Bayesian personalised ranking; `options` are those of implicit's BayesianPersonalizedRanking."""
    return _fit_implicit("bpr", "BayesianPersonalizedRanking", train, {"factors": factors, **options}, seed)


def _fit_implicit(
    module: str, name: str, train: Interactions | Pairs, options: dict[str, Any], seed: int
) -> FactorModel:
    with needs_extra("implicit", "implicit", name):
        # The CPU classes: implicit's factory functions may choose a GPU build.
        kind = getattr(import_module(f"implicit.cpu.{module}"), name)
    from scipy.sparse import csr_matrix

    pairs = train if isinstance(train, Pairs) else Pairs.from_interactions(train)
    counts = np.ones(len(pairs), dtype=np.float32)
    matrix = csr_matrix((counts, (pairs.users, pairs.items)), shape=(pairs.n_users, pairs.n_items))
    # implicit has its own threads; BLAS threads would compete with them.
    with import_module("threadpoolctl").threadpool_limits(1, "blas"):
        model = kind(random_state=seed, **options)
        model.fit(matrix, show_progress=False)
    factors = np.asarray(model.user_factors), np.asarray(model.item_factors)
    return FactorModel(*factors, pairs.user_ids, pairs.item_ids, model)
