"""The arrays everything else passes around; frozen, checked once on entry, never changed.

A case is what gets one ranking (usually a user; a session or one of a user's events otherwise), a
cluster is the user it belongs to. Codes are int32 and follow the sorted ids, so no result depends on
the order of rows. Products of cases and items are always taken in int64.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from recsys.errors import IdTypeError

Int = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]
Float = npt.NDArray[np.float64]
Bool = npt.NDArray[np.bool_]
Array = npt.NDArray[Any]
ExposureKey = tuple[int | None, str]


@dataclass(frozen=True, eq=False)
class Ids:
    """What the user typed, sorted and unique: int64, or str in an object array. The code is the place.

    `is_range`: the values are 0, 1, 2, … so that an id is its own code; not all of them need occur.
    """

    values: Array
    is_range: bool = False

    @property
    def kind(self) -> str:
        return "str" if self.values.dtype == object else "int"

    def __len__(self) -> int:
        return len(self.values)

    def name(self, code: Any) -> int | str:
        """What the user typed, as a plain Python value."""
        value = self.values[int(code)]
        return value if isinstance(value, str) else int(value)

    def code_of(self, wanted: Array) -> Int:
        """Codes of ids, -1 for an unknown one."""
        if len(self.values) == 0 or len(wanted) == 0:
            return np.full(len(wanted), -1, dtype=np.int64)
        at = np.searchsorted(self.values, wanted)
        at[at == len(self.values)] = 0
        return np.where(self.values[at] == wanted, at, -1).astype(np.int64)

    def union(self, other: Ids, *, what: str) -> tuple[Ids, Codes | None, Codes | None]:
        """Both sets in one, and where the codes of each go (None: they stay)."""
        if len(other) == 0 or other is self:
            return self, None, None
        if len(self) == 0:
            return other, None, None
        self.same_kind(other, what=what)
        if self.is_range and other.is_range:
            return (self if len(self) >= len(other) else other), None, None
        if len(self) == len(other) and np.array_equal(self.values, other.values):
            return self, None, None
        both = np.concatenate([self.values, other.values])
        order = np.argsort(both, kind="stable")  # two sorted runs: merged in one pass
        merged = both[order]
        new = np.concatenate([[True], merged[1:] != merged[:-1]])
        moves = np.empty(len(both), dtype=np.int32)
        moves[order] = np.cumsum(new) - 1
        mine, theirs = moves[: len(self)], moves[len(self) :]
        size = int(new.sum())
        return Ids(merged[new]), None if size == len(self) else mine, None if size == len(other) else theirs

    def same_kind(self, other: Ids, *, what: str) -> None:
        if self.kind != other.kind and len(self) and len(other):
            raise IdTypeError(
                f"the {what} ids are {self.kind} in one table ({self.name(-1)!r}, …) and {other.kind} in "
                f"the other ({other.name(-1)!r}, …), so none of them would match.",
                column=what,
                hint="Make both the same type, for example with .astype(str).",
            )


@dataclass(frozen=True, eq=False, repr=False)
class Interactions:
    """Truth, training data, seen items or judgements: CSR by case, items ascending and unique in a case."""

    cases: Ids
    items: Ids
    indptr: Int
    codes: Codes
    grades: Float | None = None
    times: Array | None = None
    counts: Int | None = None
    clusters: Array | None = None
    notes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def sizes(self) -> Int:
        return np.diff(self.indptr)

    @cached_property
    def item_counts(self) -> Int:
        """How many cases have each item; counted once, however many batches are held against it."""
        return np.bincount(self.codes, minlength=len(self.items))

    def kept(self, keep: Bool) -> Interactions:
        """The same without some entries; every case stays."""
        case = np.repeat(np.arange(len(self.cases)), self.sizes)[keep]
        sizes = np.bincount(case, minlength=len(self.cases))
        return replace(
            self,
            indptr=np.concatenate([[0], np.cumsum(sizes)]),
            codes=self.codes[keep],
            grades=None if self.grades is None else self.grades[keep],
            times=None if self.times is None else self.times[keep],
            counts=None if self.counts is None else self.counts[keep],
        )

    def __repr__(self) -> str:
        has = [name for name in ("grades", "times") if getattr(self, name) is not None]
        return _in_short(self, f", with {' and '.join(has)}" if has else "")


@dataclass(frozen=True, eq=False, repr=False)
class Lists:
    """Rankings, best first: CSR by case. Equal scores are ties; without scores the order is the answer."""

    cases: Ids
    items: Ids
    indptr: Int
    codes: Codes
    scores: Float | None = None
    clusters: Array | None = None
    notes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def sizes(self) -> Int:
        return np.diff(self.indptr)

    def to_frame(self) -> Any:
        """A pandas table that evaluate reads as the same lists: user, item, and score (rank without one)."""
        import pandas as pd

        columns: dict[str, Array] = {"user": np.repeat(self.cases.values, self.sizes)}
        if self.clusters is not None:
            columns = {"case": columns["user"], "user": np.repeat(self.clusters, self.sizes)}
        columns["item"] = self.items.values[self.codes]
        if self.scores is None:
            columns["rank"] = positions(np.ones(len(self.cases), dtype=np.int64), self.sizes)
        else:
            columns["score"] = self.scores
        return pd.DataFrame(columns)

    def __repr__(self) -> str:
        return _in_short(self, ", with scores" if self.scores is not None else "")


def _in_short(data: Interactions | Lists, more: str) -> str:
    """What there is, in one line: the arrays themselves may be of any size."""
    n_items = int(np.count_nonzero(np.bincount(data.codes)))
    held = {"case": len(data.cases), "item": n_items, "row": len(data.codes)}
    sizes = ", ".join(f"{n:,} {name}{'' if n == 1 else 's'}" for name, n in held.items())
    return f"{type(data).__name__}({sizes}{more})"


def positions(starts: Array, sizes: Array) -> Int:
    """Where the entries of several runs stand, one run after the other.

    >>> positions(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    before = np.cumsum(sizes) - sizes
    return np.asarray(np.arange(int(sizes.sum())) + np.repeat(starts - before, sizes), dtype=np.int64)


def entries_of(data: Interactions | Lists, cases: Ids) -> tuple[Int, Int]:
    """The entries of these cases, in their order: the place of each one's case, and where it stands."""
    data.cases.same_kind(cases, what="user")
    of_case = data.cases.code_of(cases.values)
    sizes = (
        np.where(of_case >= 0, data.sizes[of_case], 0) if len(data.cases) else np.zeros(len(cases), np.int64)
    )
    starts = data.indptr[np.maximum(of_case, 0)] if len(data.cases) else sizes
    return np.repeat(np.arange(len(cases)), sizes), positions(starts, sizes)


@dataclass(frozen=True, eq=False)
class Hits:
    """Where the judged items landed: all a ranking metric may look at.

    One entry a judged item that was found, sorted by case then rank; `rank` is 1 + the number of items
    strictly above, `tied` how many share its score (None: no ties left), `repeat` marks an item that
    the list had already shown. The truth's own grades stand per case, sorted from the highest.
    """

    n_cases: int
    case: Codes
    item: Codes
    rank: Int
    grade: Float | None
    n_listed: Int
    truth_indptr: Int
    truth_grade: Float | None
    tied: Int | None = None
    repeat: Bool | None = None
    weight: Float | None = None
    truth_weight: Float | None = None
    n_candidates: Int | None = None

    @property
    def n_judged(self) -> Int:
        return self.truth_indptr[1:] - self.truth_indptr[:-1]

    def of_cases(self, start: int, stop: int) -> Hits:
        """Those of some neighbouring cases, which then count from 0."""
        found = slice(*np.searchsorted(self.case, (start, stop)).tolist())
        cases, truth = slice(start, stop), slice(*self.truth_indptr[[start, stop]].tolist())
        rows = {"n_listed": cases, "n_candidates": cases, "truth_grade": truth, "truth_weight": truth}
        columns = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "n_cases"}
        part: dict[str, Any] = {
            name: None if c is None else c[rows.get(name, found)] for name, c in columns.items()
        }
        part["case"] = part["case"] - self.case.dtype.type(start)
        part["truth_indptr"] = self.truth_indptr[start : stop + 1] - truth.start
        return Hits(n_cases=stop - start, **part)


@dataclass(frozen=True, eq=False)
class Shown:
    """The lists themselves, equal scores put in order: CSR by case, item codes, best first.

    `places` where entries were left out in between; without it they count up from 1.
    """

    indptr: Int
    codes: Codes
    places: Codes | None = None
    repeated: bool = False

    @property
    def sizes(self) -> Int:
        return np.diff(self.indptr)


@dataclass(frozen=True, eq=False)
class Catalogue:
    """All items there are, by `how` they are known: all `ids` given, their `number`, or those `found`.

    The ids of the last two are those that occurred, which further parts may add to.
    """

    ids: Ids
    n: int
    how: str = "ids"


@dataclass(frozen=True, eq=False)
class Table:
    """What is known about items or users: one row an id, columns by name, cells as they came."""

    ids: Ids
    columns: Mapping[str, Array]


@dataclass(frozen=True, eq=False)
class Vectors:
    """One vector an id: `rows` says which row of the matrix belongs to each id."""

    ids: Ids
    rows: Int
    matrix: Array


@dataclass(frozen=True, eq=False)
class Context:
    """What metrics about more than places need, by name; a missing need is an error that says which."""

    catalogue: Ids | None = None
    n_items: int | None = None
    case_weights: Float | None = None
    complete: bool = False
    train: Interactions | None = None
    popularity: Table | None = None
    items: Table | None = None
    users: Table | None = None
    embeddings: Vectors | None = None
    profiles: Vectors | None = None
    reference: Lists | None = None
    intents: Table | str | None = None
    seen: Interactions | None = None
    eligible: Interactions | None = None
    never: Ids | None = None


@dataclass(frozen=True, eq=False)
class Exposure:
    """How often each item was shown, by group of cases: CSR over the groups, whole numbers of `unit`.

    Whole numbers add up to the same total in any order, so the exposures of parts merge exactly.
    """

    items: Ids
    indptr: Int
    codes: Codes
    counts: Int
    cases: Int
    unit: float = 1.0

    @property
    def total(self) -> Int:
        """Shown how often, per item."""
        out = np.zeros(len(self.items), dtype=np.int64)
        np.add.at(out, self.codes, self.counts)
        return out


@dataclass(frozen=True, eq=False)
class PerCase:
    """One row a case, sorted by id; NaN: not in that metric's mean. Join by id, never by place."""

    ids: Array
    columns: Mapping[str, Float]
    clusters: Array | None = None
    weights: Float | None = None

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, eq=False)
class Partial:
    """The result of some cases; two of them merge into the result of all their cases.

    `terms` holds numerator and denominator per case of a metric that is pooled or built from others;
    `exposure` what metrics of the whole catalogue are made of, `context` what they are held against.
    """

    per_case: PerCase
    terms: Mapping[str, tuple[Float, Float]]
    counts: Mapping[str, int]
    exposure: Mapping[ExposureKey, Exposure] = field(default_factory=dict)
    catalogue: Catalogue | None = None
    context: Context = field(default_factory=Context)
    strata: Mapping[Any, Stratum] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Stratum:
    """The result of one group: of users (their ids and exposure), or of items (all its values)."""

    of: str
    partial: Partial
