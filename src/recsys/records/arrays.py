"""The frozen arrays that all rooms pass around: checked once on entry, never changed.

A case is what gets one ranking: usually a user, otherwise a session or one of a user's events. A cluster is
the user a case belongs to. Codes are int32 and follow the sorted ids, so no result depends on the order of
rows. Products of cases and items are always computed in int64.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Generic, TypeVar, overload

import numpy as np
import numpy.typing as npt

from recsys.errors import IdTypeError, InputError, NoRowsError, Phrase
from recsys.records.read_facts import NOTHING_READ, ReadFacts

Int = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]
Float = npt.NDArray[np.float64]
Bool = npt.NDArray[np.bool_]
Array = npt.NDArray[Any]
ExposureKey = tuple[int | None, str]
MAX_IDS = 2**31 - 1  # codes are int32
_T = TypeVar("_T")
_Data = TypeVar("_Data", bound="Interactions | Lists")
_Record = TypeVar("_Record")


class PValue(float):
    """A probability that is never shown as 0.0000.

    >>> f"{PValue(3e-9):.4f}", f"{PValue(0.0123):.2g}"
    ('< 0.0001', '0.012')
    """

    def __format__(self, form: str) -> str:
        return "< 0.0001" if self < 1e-4 else super().__format__(form)


class cached_property(Generic[_T]):  # noqa: N801 - used like the one of functools
    """A property that is computed once per object, without a lock.

    The one of functools (Python 3.11) has a lock that all objects of a class share: threads wait for each
    other, and a process that forks while one of them holds it hangs for ever. Here two threads may both
    compute a value; the first one is kept.
    """

    def __init__(self, compute: Callable[[Any], _T]) -> None:
        self._compute = compute
        self._name = ""
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> cached_property[_T]: ...
    @overload
    def __get__(self, instance: object, owner: type | None = None) -> _T: ...
    def __get__(self, instance: object | None, owner: type | None = None) -> cached_property[_T] | _T:
        if instance is None:
            return self
        value: _T = instance.__dict__.setdefault(self._name, self._compute(instance))
        return value


@dataclass(frozen=True, eq=False)
class Ids:
    """The ids as the user wrote them, sorted and unique: int64, or str in an object array. A code is a place.

    `is_range`: the values are 0, 1, 2, … so that an id is its own code; not all of them need to occur.
    """

    values: Array
    is_range: bool = False

    def __post_init__(self) -> None:
        """Raise an error if there are more ids than codes."""
        if len(self.values) > MAX_IDS:
            raise InputError(
                f"there are {len(self.values):,} different ids, and at most {MAX_IDS:,} go together.",
                hint="Evaluate pieces of the users, and keep the sums of each without its rows.",
            )

    @property
    def kind(self) -> str:
        return "str" if self.values.dtype == object else "int"

    def __len__(self) -> int:
        return len(self.values)

    def name(self, code: Any) -> int | str:
        """Return the id of a code, as the user wrote it, as a plain Python value."""
        value = self.values[int(code)]
        return value if isinstance(value, str) else int(value)

    def code_of(self, wanted: Array) -> Int:
        """Return the codes of ids, -1 for an unknown id; no text is a number."""
        mixed = (self.values.dtype == object) != (wanted.dtype == object)
        if mixed or len(self.values) == 0 or len(wanted) == 0:
            return np.full(len(wanted), -1, dtype=np.int64)
        if self.is_range:
            return np.where((wanted >= 0) & (wanted < len(self.values)), wanted, -1).astype(np.int64)
        if len(wanted) == len(self.values) and np.array_equal(wanted, self.values):
            return np.arange(len(wanted), dtype=np.int64)
        if self.values.dtype == object and len(wanted) * len(self.values).bit_length() > 2 * len(self.values):
            # Text is found faster by its hash than by comparisons, unless few of many ids are wanted.
            codes = dict(zip(self.values.tolist(), range(len(self.values)), strict=True))
            return np.fromiter((codes.get(one, -1) for one in wanted.tolist()), np.int64, len(wanted))
        place = np.searchsorted(self.values, wanted)
        place[place == len(self.values)] = 0
        return np.where(self.values[place] == wanted, place, -1).astype(np.int64)

    def union(self, other: Ids, *, what: str) -> tuple[Ids, Codes | None, Codes | None]:
        """Return the union of both sets, and the new code of each old code (None: codes do not change)."""
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
        is_new = np.concatenate([[True], merged[1:] != merged[:-1]])
        union = Ids(merged[is_new])
        new_codes = np.empty(len(both), dtype=np.int32)
        new_codes[order] = np.cumsum(is_new) - 1
        own_codes, other_codes = new_codes[: len(self)], new_codes[len(self) :]
        return (
            union,
            None if len(union) == len(self) else own_codes,
            None if len(union) == len(other) else other_codes,
        )

    def same_kind(self, other: Ids, *, what: str) -> None:
        """Raise an error if one set is int and the other str."""
        if self.kind != other.kind and len(self) and len(other):
            raise IdTypeError(
                f"the {what} ids are {self.kind} in one table ({self.name(-1)!r}, …) and {other.kind} in "
                f"the other ({other.name(-1)!r}, …), so none of them would match.",
                column=what,
                hint=Phrase("Make the ids of both text: files are read so with {ids='str'}."),
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
    facts: ReadFacts = NOTHING_READ

    @property
    def sizes(self) -> Int:
        return np.diff(self.indptr)

    @property
    def id_kinds(self) -> tuple[str, str] | None:
        """Whether ids of users, and of items, are int or str; None without entries."""
        return (self.cases.kind, self.items.kind) if len(self.codes) else None

    @cached_property
    def item_counts(self) -> Int:
        """The number of cases that have each item; counted once and reused."""
        return np.bincount(self.codes, minlength=len(self.items))

    @cached_property
    def highest_grade(self) -> float | None:
        """The highest grade; None where all are 1."""
        return None if self.grades is None or not len(self.grades) else float(self.grades.max())

    @cached_property
    def n_negative(self) -> int:
        """How many grades are negative."""
        return 0 if self.grades is None else int(np.count_nonzero(self.grades < 0))

    def without_negatives(self) -> Interactions:
        """Return the same without the entries of a negative grade; every case stays."""
        return self if self.grades is None else self.kept(self.grades >= 0)

    def kept(self, keep: Bool) -> Interactions:
        """Return the same with some entries only; every case stays."""
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

    def to_frame(self) -> Any:
        """Return a pandas table that evaluate reads as the same: user, item, and any grades and times."""
        import pandas as pd

        columns = _case_and_item(self)
        columns |= {"grade": self.grades} if self.grades is not None else {}
        columns |= {"timestamp": self.times} if self.times is not None else {}
        return pd.DataFrame(columns)

    def __repr__(self) -> str:
        has = [name for name in ("grades", "times") if getattr(self, name) is not None]
        return _short_repr(self, f", with {' and '.join(has)}" if has else "")


@dataclass(frozen=True, eq=False, repr=False)
class Lists:
    """Rankings, best first: CSR by case. Equal scores are ties; without scores the order is the ranking."""

    cases: Ids
    items: Ids
    indptr: Int
    codes: Codes
    scores: Float | None = None
    clusters: Array | None = None
    facts: ReadFacts = NOTHING_READ
    ranks: Int | None = None  # as they were given, if some are left out

    @property
    def sizes(self) -> Int:
        return np.diff(self.indptr)

    @property
    def id_kinds(self) -> tuple[str, str] | None:
        """Whether ids of users, and of items, are int or str; None without entries."""
        return (self.cases.kind, self.items.kind) if len(self.codes) else None

    def to_frame(self) -> Any:
        """Return a pandas table that evaluate reads as the same lists: user, item, and score or rank."""
        import pandas as pd

        columns = _case_and_item(self)
        if self.ranks is not None:
            columns["rank"] = self.ranks
        elif self.scores is None:
            columns["rank"] = positions(np.ones(len(self.cases), dtype=np.int64), self.sizes)
        else:
            columns["score"] = self.scores
        return pd.DataFrame(columns)

    def __repr__(self) -> str:
        return _short_repr(self, ", with scores" if self.scores is not None else "")


def _case_and_item(data: Interactions | Lists) -> dict[str, Array]:
    """Return the columns of a table of the entries: case where it is not the user, user, and item."""
    columns = {"user": np.repeat(data.cases.values, data.sizes)}
    if data.clusters is not None:
        columns = {"case": columns["user"], "user": np.repeat(data.clusters, data.sizes)}
    return columns | {"item": data.items.values[data.codes]}


def _short_repr(data: Interactions | Lists, suffix: str) -> str:
    """Return the number of cases, items and rows in one line: the arrays may have any size."""
    n_items = int(np.count_nonzero(np.bincount(data.codes)))
    counts = {"case": len(data.cases), "item": n_items, "row": len(data.codes)}
    from recsys.display.number_words import plural

    sizes = ", ".join(plural(n, name) for name, n in counts.items())
    return f"{type(data).__name__}({sizes}{suffix})"


def positions(starts: Array, sizes: Array) -> Int:
    """Return the positions of the entries of several runs, one run after the other.

    >>> positions(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    before = np.cumsum(sizes) - sizes
    return np.asarray(np.arange(int(sizes.sum())) + np.repeat(starts - before, sizes), dtype=np.int64)


def runs(*columns: Array) -> tuple[Int, Int]:
    """Return the start and the length of each run of equal entries, of columns that are sorted together.

    >>> [part.tolist() for part in runs(np.array([4, 4, 7]))]
    [[0, 2], [2, 1]]
    """
    new = np.zeros(len(columns[0]), dtype=bool)
    new[:1] = True
    for column in columns:
        new[1:] |= column[1:] != column[:-1]
    starts = np.flatnonzero(new)
    return starts, np.diff(starts, append=len(new))


def number_in_run(*columns: Array, first: int = 0) -> Int:
    """Return the number of each entry in its run of equal entries: `first`, then one more each.

    >>> number_in_run(np.array([4, 4, 7])).tolist()
    [0, 1, 0]
    """
    starts, sizes = runs(*columns)
    return np.asarray(np.arange(first, first + len(columns[0])) - np.repeat(starts, sizes))


def best_entries(case: Int, scores: Float, key: Array, k: int) -> Int:
    """Return the positions of the k best entries of each case, best first; ties by the smaller key."""
    order = np.lexsort((key, -scores, case))
    return order[number_in_run(case[order]) < k]


def sorted_unique(keys: Int) -> Int:
    """Return the distinct numbers, ascending; on long columns sorting is faster than hashing."""
    if (keys[1:] > keys[:-1]).all():
        return keys
    ordered = np.sort(keys)
    new = np.ones(len(ordered), dtype=bool)
    new[1:] = ordered[1:] != ordered[:-1]
    return ordered[new]


def is_in(keys: Array, known: Array) -> Bool:
    """Return which keys occur among ascending `known` ones.

    >>> is_in(np.array([7, 2, 9]), np.array([2, 5, 7])).tolist()
    [True, True, False]
    """
    if len(known) == 0:
        return np.zeros(len(keys), dtype=bool)
    at: Any = np.minimum(np.searchsorted(known, keys), len(known) - 1)
    return np.asarray(known[at] == keys)


def is_repeat(keys: Array) -> Bool:
    """Return which keys occurred earlier in the array.

    >>> is_repeat(np.array([4, 2, 4, 4])).tolist()
    [False, False, True, True]
    """
    order = np.argsort(keys, kind="stable")
    repeats = np.zeros(len(keys), dtype=bool)
    repeats[order[1:]] = keys[order[1:]] == keys[order[:-1]]
    return repeats


def count_entries(data: Interactions | Lists, cases: Ids) -> Int:
    """Return the number of entries of some cases, in their order; 0 for a case without any."""
    data.cases.same_kind(cases, what="user")
    if len(data.cases) == 0:
        return np.zeros(len(cases), dtype=np.int64)
    codes = data.cases.code_of(cases.values)
    return np.where(codes >= 0, data.sizes[codes], 0)


def entries_of_cases(data: Interactions | Lists, cases: Ids) -> tuple[Int, Int]:
    """Return the entries of some cases, in their order: the place of the case, and the position, of each."""
    data.cases.same_kind(cases, what="user")
    codes = data.cases.code_of(cases.values)
    sizes = np.where(codes >= 0, data.sizes[codes], 0) if len(data.cases) else np.zeros(len(cases), np.int64)
    starts = data.indptr[np.maximum(codes, 0)] if len(data.cases) else sizes
    return np.repeat(np.arange(len(cases)), sizes), positions(starts, sizes)


def changed(record: _Record, **fields: Any) -> _Record:
    """Return a dataclass with these fields; itself where it has them, which is quicker than `replace`."""
    known = vars(record)
    same = all(known[name] is value for name, value in fields.items())
    return record if same else replace(record, **fields)  # type: ignore[type-var]


def restrict_to_cases(data: _Data, cases: Ids) -> _Data:
    """Lists or interactions of these cases only; unknown cases are left out."""
    known = data.cases.code_of(cases.values)
    known_cases = Ids(cases.values[known >= 0])
    place, at = entries_of_cases(data, known_cases)
    sizes = np.bincount(place, minlength=len(known_cases))
    changes: dict[str, Any] = {
        "cases": known_cases,
        "indptr": np.concatenate([[0], np.cumsum(sizes)]),
        "codes": data.codes[at],
    }
    for name in ("grades", "times", "counts", "scores", "ranks"):
        values = getattr(data, name, None)
        if values is not None:
            changes[name] = values[at]
    if data.clusters is not None:
        changes["clusters"] = data.clusters[known[known >= 0]]
    return replace(data, **changes)


@dataclass(frozen=True, eq=False)
class Hits:
    """The ranks of the judged items: all that a ranking metric may read.

    One entry per judged item that was found, sorted by case, then rank. `rank` is 1 + the number of items
    strictly above, `tied` the number of items with its score (None: no ties are left), `repeat` marks an item
    that its list has shown before. `truth_grade` has the grades of the truth per case, highest first.
    `given_none` marks cases that were given no list, if items were taken out of the lists of others.
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
    given_none: Bool | None = None

    @property
    def n_judged(self) -> Int:
        return self.truth_indptr[1:] - self.truth_indptr[:-1]

    def of_cases(self, start: int, stop: int) -> Hits:
        """Return the hits of the cases from `start` to `stop`, which are numbered from 0 again."""
        entries = slice(*np.searchsorted(self.case, (start, stop)).tolist())
        cases, truth = slice(start, stop), slice(*self.truth_indptr[[start, stop]].tolist())
        slices = dict.fromkeys(("n_listed", "n_candidates", "given_none"), cases)
        slices |= {"truth_grade": truth, "truth_weight": truth}
        columns = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "n_cases"}
        part: dict[str, Any] = {
            name: None if c is None else c[slices.get(name, entries)] for name, c in columns.items()
        }
        part["case"] = part["case"] - self.case.dtype.type(start)
        part["truth_indptr"] = self.truth_indptr[start : stop + 1] - truth.start
        return Hits(n_cases=stop - start, **part)


@dataclass(frozen=True, eq=False)
class Shown:
    """The lists with equal scores put in order: CSR by case, item codes, best first.

    `places` has the place of each entry if entries in between were left out; otherwise they count from 1.
    Where equal scores have no order yet (ties="best" and "worst"), `above` is the number of places above the
    equal scores of each entry, and `tied` how many there are; None if no scores are equal. `ties_known` is
    False if equal scores may go on beyond the end of the lists.
    """

    indptr: Int
    codes: Codes
    places: Codes | None = None
    repeated: bool = False
    above: Int | None = None
    tied: Int | None = None
    ties_known: bool = True

    @property
    def sizes(self) -> Int:
        return np.diff(self.indptr)

    def place_of_entries(self) -> Codes:
        """Return the place of each entry."""
        if self.places is not None:
            return self.places
        return positions(np.ones_like(self.indptr[1:]), self.sizes).astype(np.int32)


@dataclass(frozen=True, eq=False)
class Catalogue:
    """All items, and `how` they are known: all "ids" were given, their "number", or those "found".

    With the last two, `ids` are those that occurred so far; further parts may add more.
    """

    ids: Ids
    n: int
    how: str = "ids"


@dataclass(frozen=True, eq=False)
class Table:
    """Attributes of items or users: one row per id, columns by name, unconverted cells."""

    ids: Ids
    columns: Mapping[str, Array]


@dataclass(frozen=True, eq=False)
class Vectors:
    """One vector per id: `rows` has the row of the matrix that belongs to each id."""

    ids: Ids
    rows: Int
    matrix: Array


@dataclass(frozen=True, eq=False)
class Context:
    """What metrics need beyond ranks, by name; the error for a missing need names it."""

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
    pooled: Int | None = None
    """Pairs (case code times number of items, plus item code) of a negative grade: pooled and not judged."""


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
        """How often each item was shown."""
        out = np.zeros(len(self.items), dtype=np.int64)
        np.add.at(out, self.codes, self.counts)
        return out


@dataclass(frozen=True, eq=False)
class PerCase:
    """One row per case, sorted by id; NaN: not in the mean of that metric. Join by id, not by place."""

    cases: Array | Ids
    columns: Mapping[str, Float]
    clusters: Array | None = None
    weights: Float | None = None

    @property
    def ids(self) -> Array:
        """One id per row; Python's strings of text ids are made when they are first looked at."""
        return self.cases.values if isinstance(self.cases, Ids) else self.cases

    def __len__(self) -> int:
        return len(self.cases)


@dataclass(frozen=True, eq=False)
class Histogram:
    """The distinct rows of some columns, in ascending order, and how often each occurs."""

    rows: Float
    counts: Int


@dataclass(frozen=True, eq=False)
class Sums:
    """What one metric comes to without its rows; the sums of different cases add up.

    A unit is a case, or all cases of a user. Its `x` is its value times its weight (of a metric that is made
    of two terms: the first one), `y` the second term times its weight, `w` its weight; `y` is left out where
    there are no terms, `w` where every unit weighs 1. `totals` has the sums of them and of their products,
    such as "xy", without rounding, as numerator and denominator; `extremes` the least and the greatest of
    each.

    `units` is the histogram of x, y and w, None beyond 2^16 distinct rows. `values` is that of the value per
    case, with its weight if there are weights, where a unit is more than a value. `n_units` counts those that
    weigh something; it is None where the cases of a user may be in several pieces.
    """

    n_cases: int
    n_units: int | None
    totals: Mapping[str, tuple[int, int]]
    extremes: Mapping[str, tuple[float, float]]
    values: Histogram | None
    units: Histogram | None

    @property
    def counted(self) -> Histogram | None:
        """How often each value of a case (with its weight, if there are weights) occurs; None: too many."""
        return self.units if self.extremes.keys() == {"x"} else self.values


@dataclass(frozen=True, eq=False)
class Partial:
    """The result of some cases; two of them merge into the result of all their cases.

    `terms` holds numerator and denominator per case of a metric that is pooled or built from others;
    metrics of the whole catalogue are computed from `exposure` and `context`. Where the rows are not kept
    (`per_case` is None), all else is computed from `sums`.
    """

    per_case: PerCase | None
    terms: Mapping[str, tuple[Float, Float]]
    counts: Mapping[str, int]
    exposure: Mapping[ExposureKey, Exposure] = field(default_factory=dict)
    catalogue: Catalogue | None = None
    context: Context = field(default_factory=Context)
    strata: Mapping[GroupKey, Stratum] = field(default_factory=dict)
    sums: Mapping[str, Sums] = field(default_factory=dict)

    @property
    def rows(self) -> PerCase:
        """The values per case.

        Raises:
            NoRowsError: they were not kept.
        """
        if self.per_case is None:
            raise NoRowsError
        return self.per_case


NO_GROUP = "(no group)"  # the label of users without one


@dataclass(frozen=True)
class GroupKey:
    """A group of users or items: the grouping that tells it from others, such as "country", and its label."""

    grouping: str
    label: Any

    @classmethod
    def of(cls, key: Any) -> GroupKey:
        """Return the group that a label stands for where the grouping has no name."""
        return key if isinstance(key, cls) else cls("group", key)

    def __str__(self) -> str:
        return f"{self.grouping}: {self.label}"


@dataclass(frozen=True, eq=False)
class Stratum:
    """The result of one group of users (their ids and exposure) or of items (all its values)."""

    of: str
    partial: Partial
