"""Lists of several recommenders made into one: normalisations and ways to combine, one registered row each.

All runs are laid over one table, a `Pool`: a row for each item that any run lists for a case. A method is a
function of the pool that gives every row a number; the fused lists are the rows by that number. Of equal
numbers the item of an earlier run comes first, then the one that is higher there.

A run that has no list for a case, or does not list an item, gives nothing to it, unless a method says what
such an item gets (Borda counts, BayesFuse).
"""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from itertools import product
from numbers import Real
from typing import Any, Literal

import numpy as np

from recsys.errors import (
    DuplicateError,
    Fix,
    InputError,
    Phrase,
    RecsysError,
    RecsysWarning,
    check_choice,
    warn,
)
from recsys.inputs.containers import read_lists
from recsys.kernels.exact_sums import geometric_weights
from recsys.records.arrays import (
    Array,
    Bool,
    Float,
    Ids,
    Int,
    Interactions,
    Lists,
    entries_of_cases,
    number_in_run,
    runs,
)
from recsys.records.read_facts import NOTHING_READ, ReadFacts
from recsys.records.registry import Registry

Reads = Literal["scores", "places"]
_FEW = 0.1  # the share of users in common below which ids seem to differ
_TINY = 1e-9  # what a normalisation divides by at least
_UNLISTED_ODDS = float(np.log(0.001 / 0.999))  # BayesFuse: of an item that a run does not list
_ODDS_BORDERS = (0, 5, 10, 15, 20, 30, 100, 200, 500, 1000)
_SEGMENT_BORDERS = (0, *(10 * 2**k - 5 for k in range(10)))
_CELLS = 1 << 22  # pairs of candidates that Condorcet compares at once


@dataclass(frozen=True, eq=False)
class Pool:
    """All runs over the same rows: one row per case and item that any run lists, sorted by both.

    `place` has a line per run: the place of each row in its list, from 0; -1 where the run does not list it.
    `score` is 0 there. `names` are what errors call the runs.
    """

    cases: Ids
    items: Ids
    case: Int
    item: Int
    place: Int
    score: Float
    has_scores: tuple[bool, ...]
    names: tuple[str, ...]
    clusters: Array | None = None

    @property
    def listed(self) -> Bool:
        return self.place >= 0

    @property
    def n_runs(self) -> int:
        return len(self.place)

    @property
    def votes(self) -> Int:
        """In how many runs each row is."""
        return np.asarray(self.listed.sum(axis=0), dtype=np.int64)

    @property
    def n_candidates(self) -> Int:
        """How many items any run lists for the case of each row."""
        return np.bincount(self.case, minlength=len(self.cases))[self.case]

    @property
    def lengths(self) -> Int:
        """The length of the list of the case of each row, per run."""
        return self.list_sizes[:, self.case]

    @property
    def list_sizes(self) -> Int:
        """The length of each list, per run and case."""
        sizes = [np.bincount(self.case[line], minlength=len(self.cases)) for line in self.listed]
        return np.array(sizes, dtype=np.int64).reshape(self.n_runs, len(self.cases))

    def over_lists(self, reduce: np.ufunc, values: Float, empty: float) -> Float:
        """Return a sum, minimum or maximum over the list of each row's case; 0 for a list without items.

        Rows that a run does not list count as `empty`.
        """
        starts, sizes = runs(self.case)
        if not len(starts):
            return np.zeros_like(values)
        reduced = reduce.reduceat(np.where(self.listed, values, empty), starts, axis=1)
        return np.where(self.lengths > 0, np.repeat(reduced, sizes, axis=1), 0.0)

    def best_first(self, value: Float, run: int = -1) -> Int:
        """Order the rows of each case by a number; equal ones as in `run`, then as in the first with them."""
        first = self.listed.argmax(axis=0)
        there = self.place[first, np.arange(len(first))]
        if run < 0:
            return np.lexsort((there, first, -value, self.case))
        here = np.where(self.listed[run], self.place[run], len(first))
        return np.lexsort((there, first, here, -value, self.case))

    def rescored(self, score: Float, listed: Bool) -> Pool:
        """Return the pool with other scores, and the lists in their order; equal scores stay as they were."""
        place = np.full(self.place.shape, -1, dtype=np.int64)
        for run in range(self.n_runs):
            order = self.best_first(score[run], run)
            order = order[listed[run][order]]
            place[run, order] = number_in_run(self.case[order])
        return replace(self, place=place, score=np.where(listed, score, 0.0), has_scores=(True,) * len(place))

    def to_lists(self, fused: Float, facts: ReadFacts = NOTHING_READ) -> Lists:
        """Return the rows of each case by the number that they got."""
        return self._lists(self.best_first(fused), fused, facts)

    def lists_of(self, run: int) -> Lists:
        """Return the lists of one run, with its scores."""
        order = np.lexsort((self.place[run], self.case))
        return self._lists(order[self.listed[run][order]], self.score[run], NOTHING_READ)

    def _lists(self, order: Int, scores: Float, facts: ReadFacts) -> Lists:
        indptr = np.zeros(len(self.cases) + 1, dtype=np.int64)
        np.cumsum(np.bincount(self.case[order], minlength=len(self.cases)), out=indptr[1:])
        codes = self.item[order].astype(np.int32)
        return Lists(self.cases, self.items, indptr, codes, scores[order], self.clusters, facts)


def _names_of(lists: Sequence[Lists]) -> tuple[str, ...]:
    """Return what errors call some runs: the files they were read from, else their numbers."""
    return tuple(run.facts.file or f"runs[{number}]" for number, run in enumerate(lists))


def pool_runs(lists: Sequence[Lists], cases: Ids | None = None) -> Pool:
    """Return the pool of some runs, of these cases or of all that any run has.

    Raises:
        DuplicateError: a run lists an item twice for a case.
    """
    items = Ids(np.zeros(0, np.int64))
    every = Ids(np.zeros(0, np.int64))
    for run in lists:
        items, _, _ = items.union(run.items, what="item")
        every, _, _ = every.union(run.cases, what="user")
    cases = every if cases is None else cases
    keys, places, scores = [], [], []
    for number, run in enumerate(lists):
        case, position = entries_of_cases(run, cases)
        code = items.code_of(run.items.values)[run.codes[position]]
        key = case * max(len(items), 1) + code
        if len(np.unique(key)) < len(key):
            sorted_key = np.sort(key)
            twice = int(sorted_key[1:][sorted_key[1:] == sorted_key[:-1]][0])
            user, code_of_item = divmod(twice, max(len(items), 1))
            raise DuplicateError(
                f"{_names_of(lists)[number]} lists item {items.name(code_of_item)!r} twice for user "
                f"{cases.name(user)!r}.",
                table="lists",
                hint="An item may occur once in a list that is fused.",
            )
        keys.append(key)
        places.append(number_in_run(case))
        scores.append(np.zeros(len(case)) if run.scores is None else run.scores[position])
    distinct = np.unique(np.concatenate(keys))
    case, item = np.divmod(distinct, max(len(items), 1))
    place = np.full((len(lists), len(distinct)), -1, dtype=np.int64)
    score = np.zeros((len(lists), len(distinct)))
    for number, key in enumerate(keys):
        row = np.searchsorted(distinct, key)
        place[number, row] = places[number]
        score[number, row] = scores[number]
    has_scores = tuple(run.scores is not None or len(run.codes) == 0 for run in lists)
    return Pool(cases, items, case, item, place, score, has_scores, _names_of(lists), _clusters(lists, cases))


def _clusters(lists: Sequence[Lists], cases: Ids) -> Array | None:
    """Return the user of each case, where the cases are not users themselves."""
    user_of: dict[Any, Any] = {}
    for run in lists:
        if run.clusters is not None:
            user_of.update(zip(run.cases.values.tolist(), run.clusters.tolist(), strict=True))
    if not user_of:
        return None
    without = [case for case in cases.values.tolist() if case not in user_of]
    if without:
        raise InputError(
            f"case {without[0]!r} has a user in no run, and other cases have one.",
            table="lists",
            hint="Give every run the columns case and user.",
        )
    users = [user_of[case] for case in cases.values.tolist()]
    return np.array(users, dtype=object if isinstance(users[0], str) else np.int64)


@dataclass(frozen=True, eq=False)
class JudgedPool:
    """What a method is trained on: runs, which rows are relevant, and each run's mean average precision."""

    pool: Pool
    relevant: Bool
    average_precision: Callable[[], list[float]]

    @classmethod
    def of(
        cls, pool: Pool, truth: Interactions, relevant: Bool, average_precision: Callable[[], list[float]]
    ) -> JudgedPool:
        """Make it with `relevant` per entry of the truth, whose cases are those of the pool."""
        case = np.repeat(np.arange(len(truth.cases)), truth.sizes)[relevant]
        item = pool.items.code_of(truth.items.values)[truth.codes[relevant]]
        width = max(len(pool.items), 1)
        wanted = case[item >= 0] * width + item[item >= 0]
        return cls(pool, np.isin(pool.case * width + pool.item, wanted), average_precision)


@dataclass(frozen=True)
class Fusion:
    """One way to combine runs, and how its parameters are found.

    `reads` says what of the runs it looks at. `tuned` is the parameter that trials vary, `trials` their
    values for so many runs; `trained` is the parameter that `train` estimates from a JudgedPool.
    """

    name: str
    combine: Callable[..., Float]
    reads: Reads
    reference: str
    aliases: tuple[str, ...] = ()
    tuned: str = ""
    trials: Callable[[int], list[Any]] | None = None
    trained: str = ""
    train: Callable[..., list[Any]] | None = None

    @property
    def summary(self) -> str:
        """What it does, in one line."""
        return (inspect.getdoc(self.combine) or "").partition("\n")[0].rstrip(".")

    @property
    def parameters(self) -> dict[str, Any]:
        """Its parameters and their defaults; `inspect.Parameter.empty` where there is none."""
        return {p.name: p.default for p in list(inspect.signature(self.combine).parameters.values())[1:]}


@dataclass(frozen=True)
class Normalisation:
    """One way to make the scores of runs comparable, list by list."""

    name: str
    apply: Callable[[Pool], Pool]
    reads: Reads = "scores"
    aliases: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        """What it does, in one line."""
        return (inspect.getdoc(self.apply) or "").partition("\n")[0].rstrip(".")


FUSIONS: Registry[Fusion] = Registry("fusion method", "recsys.fusions")
NORMALISATIONS: Registry[Normalisation] = Registry("normalisation", "recsys.fusions")


def fusion(name: str, **facts: Any) -> Callable[[Callable[..., Float]], Callable[..., Float]]:
    """Register the function below as a way to combine runs; `facts` are the fields of `Fusion`."""
    return FUSIONS.adding(lambda combine: Fusion(name, combine, **facts), name)


def normalisation(name: str, **facts: Any) -> Callable[[Callable[[Pool], Pool]], Callable[[Pool], Pool]]:
    """Register the function below as a way to make scores comparable; `facts` as in `Normalisation`."""
    return NORMALISATIONS.adding(lambda apply: Normalisation(name, apply, **facts), name)


def find_fusion(name: Any) -> Fusion:
    """Return the method of this name or alias."""
    row: Fusion = _find(FUSIONS, name)
    return row


def find_normalisation(name: Any) -> Normalisation:
    """Return the normalisation of this name or alias."""
    row: Normalisation = _find(NORMALISATIONS, name)
    return row


def _find(registry: Registry[Any], name: Any) -> Any:
    for row in registry.load_plugins().values() if isinstance(name, str) else ():
        if name.lower().replace("-", "_") in {known.replace("-", "_") for known in (row.name, *row.aliases)}:
            return row
    return registry.find(name)


def fuse(
    runs: Sequence[Any],
    method: str = "rrf",
    norm: str | None = "default",
    *,
    missing: Literal["empty", "error"] = "empty",
    columns: Mapping[str, str] | None = None,
    **parameters: Any,
) -> Lists:
    """Make one list per user from the lists of several recommenders.

    Args:
        runs: at least two of what `evaluate` takes as lists: dicts, tables, files, `Lists`. Methods that read
            places, such as "rrf", need no scores.
        method: a name of `recsys.ranks.fusion.FUSIONS`; docs/fusion.md has them all.
        norm: how scores are made comparable first, a name of `NORMALISATIONS` or None for not at all. The
            default is "min-max" for methods that read scores, and None for those that read places.
        missing: what it means that a run has no list for a user that another run has: an "empty" list, or an
            "error".
        columns: column names of tables, as in `evaluate`.
        parameters: those of the method, such as `k=60` of "rrf" or `weights=[0.7, 0.3]` of "wsum".
            `tune_fusion` finds them on validation data.

    Returns:
        The fused lists, with every item that any run lists, ready for `evaluate`. Of equal fused scores the
        item of the earlier run comes first, then the one that is higher there.

    Raises:
        InputError: fewer than two runs, lists without scores where the method reads them, an item twice.
        UnknownNameError: no method, normalisation or parameter has this name.

    Warns:
        RecsysWarning: a run and all others share fewer than 10% of the users of either side.

    >>> import recsys
    >>> fused = recsys.fuse([{"ann": ["a", "b", "c"]}, {"ann": ["b", "d"]}], "rrf", k=60)
    >>> fused.items.values[fused.codes].tolist()
    ['b', 'a', 'd', 'c']
    """
    row = find_fusion(method)
    pool = pool_runs(read_runs(runs, columns, missing))
    has_list = np.zeros((pool.n_runs, len(pool.cases)), dtype=bool)
    for number, place in enumerate(pool.place):
        has_list[number, pool.case[place >= 0]] = True
    for number, own in enumerate(has_list):
        others = np.delete(has_list, number, axis=0).any(axis=0)
        n_shared = int((own & others).sum())
        if n_shared < _FEW * min(own.sum(), others.sum()):
            examples = (pool.cases.name(int(of.argmax())) for of in (own & ~others, others & ~own))
            shared = f"only {n_shared:,}" if n_shared else "none"
            warn(
                RecsysWarning,
                f"{shared} of the {own.sum():,} users of {pool.names[number]} have a list in another run, so "
                "nearly nothing is fused; check that all runs have the same user ids ({!r} there, {!r} "
                "elsewhere).".format(*examples),
            )
            break
    pool = normalise(pool, row, norm)
    fused = combine(pool, row, parameters)
    how = {"method": row.name, "norm": norm_of(row, norm), "runs": len(runs)}
    return pool.to_lists(fused, ReadFacts(fused=how))


def read_runs(
    given: Sequence[Any],
    columns: Mapping[str, str] | None = None,
    missing: Any = "empty",
) -> list[Lists]:
    """Return each run as Lists; `missing` as in `fuse`."""
    if not isinstance(given, list | tuple) or len(given) < 2:
        size = f" of {len(given)}" if isinstance(given, list | tuple) else ""
        raise InputError(
            f"runs came as {type(given).__name__}{size}.",
            table="lists",
            hint="Pass a list of two or more runs, such as [lists_of_a, lists_of_b].",
        )
    check_choice("value of missing", missing, ("empty", "error"))
    lists = []
    for number, run in enumerate(given):
        try:
            if isinstance(run, str | os.PathLike):
                from recsys.inputs.files import read_file

                lists.append(read_file(run, "lists", columns=columns))
            else:
                lists.append(read_lists(run, columns=columns))
        except RecsysError as error:
            error.message = f"runs[{number}]: " + error.message
            raise
    if missing == "error":
        names = _names_of(lists)
        for name, run in zip(names, lists, strict=True):
            for other, against in zip(names, lists, strict=True):
                lost = np.flatnonzero(run.cases.code_of(against.cases.values) < 0)
                if len(lost):
                    raise InputError(
                        f"{name} has no list for {len(lost):,} of the users of {other}, such "
                        f"as {against.cases.name(lost[0])!r}.",
                        table="lists",
                        hint=Phrase("{fuse.missing='empty'} counts that as an empty list."),
                    )
    return lists


def norm_of(row: Fusion, norm: str | None) -> str | None:
    """Return the normalisation that a method is used with."""
    if isinstance(norm, str) and norm == "default":
        return "min-max" if row.reads == "scores" else None
    return None if norm is None else find_normalisation(norm).name


def normalise(pool: Pool, row: Fusion, norm: str | None) -> Pool:
    """Return the pool as the method reads it."""
    chosen = norm_of(row, norm)
    way = None if chosen is None else NORMALISATIONS.find(chosen)
    reads = row.reads if way is None else way.reads
    if reads == "scores" and not all(pool.has_scores):
        reader = row.name if way is None else Fix("norm", chosen, of="fuse")
        raise InputError(
            Phrase("{} reads scores, and {} has none.", reader, pool.names[pool.has_scores.index(False)]),
            table="lists",
            hint="Pass (item, score) pairs, choose a method that reads places, such as rrf, or make scores "
            + Phrase("of the places with {fuse.norm='rank'} or borda."),
        )
    return pool if way is None else way.apply(pool)


def as_list(values: Any) -> Any:
    """Return an array or a series as a list; anything else as it is."""
    if isinstance(values, np.ndarray):
        return values.tolist()
    return values.to_list() if hasattr(values, "to_list") else values


def combine(pool: Pool, row: Fusion, parameters: Mapping[str, Any]) -> Float:
    """Return one number for each row of the pool."""
    known = row.parameters
    for name in parameters:
        check_choice(f"parameter of {row.name}", name, known)
    for name, default in known.items():
        if default is inspect.Parameter.empty and name not in parameters:
            tuned = Phrase("{tune_fusion()} finds it on validation data.")
            needed = Fix(name, of="fuse")
            raise InputError(
                Phrase("{} needs {}.", row.name, needed),
                hint=tuned if row.trials or row.train else Phrase("Pass {}.", needed),
            )
    checked = dict(parameters)
    for name, value in parameters.items():
        values = as_list(value)
        is_many = isinstance(values, list | tuple)
        numbers = values if is_many and name == "weights" else [] if is_many else [value]
        if is_many != (name in ("weights", row.trained)) or not all(isinstance(n, Real) for n in numbers):
            many = "one number for each run" if name == "weights" else "what tune_fusion found"
            raise InputError(
                f"{name} of {row.name} came as {type(value).__name__ if is_many else repr(value)}.",
                hint=f"Pass {many if name in ('weights', row.trained) else 'a number'}.",
            )
        if is_many:  # something for each run
            if len(values) != pool.n_runs:
                raise InputError(
                    f"{name} has {len(values)} entries for {pool.n_runs} runs.", hint="Pass one for each run."
                )
            checked[name] = list(values)
    try:
        fused = np.asarray(row.combine(pool, **checked), dtype=np.float64)
    except Exception as error:  # of many types where a parameter is not what it should be
        if isinstance(error, RecsysError) or not parameters:
            raise
        raise InputError(
            f"{row.name} cannot use its parameters {', '.join(parameters)} ({error}).",
            hint="Pass numbers, and of a method that is trained what tune_fusion found.",
        ) from error
    if not np.isfinite(fused).all():
        at = int(np.flatnonzero(~np.isfinite(fused))[0])
        raise InputError(
            f"{row.name} gives {fused[at]} for item {pool.items.name(pool.item[at])!r} of user "
            f"{pool.cases.name(pool.case[at])!r}.",
            hint="Pass finite numbers as its parameters, and finite scores.",
        )
    return fused


# --------------------------------------------------------------------------------------- normalisations
@normalisation("min-max", aliases=("min_max",))
def min_max(pool: Pool) -> Pool:
    """(score - least) / (greatest - least) of the list."""
    least = pool.over_lists(np.minimum, pool.score, np.inf)
    greatest = pool.over_lists(np.maximum, pool.score, -np.inf)
    return _with_scores(pool, (pool.score - least) / np.maximum(greatest - least, _TINY))


@normalisation("min-max-inverted", aliases=("min_max_inverted",))
def min_max_inverted(pool: Pool) -> Pool:
    """(greatest - score) / (greatest - least), for distances: less is better, so lists are turned round."""
    least = pool.over_lists(np.minimum, pool.score, np.inf)
    greatest = pool.over_lists(np.maximum, pool.score, -np.inf)
    return pool.rescored((greatest - pool.score) / np.maximum(greatest - least, _TINY), pool.listed)


@normalisation("max")
def maximum(pool: Pool) -> Pool:
    """Score / greatest of the list."""
    return _with_scores(
        pool, pool.score / np.maximum(pool.over_lists(np.maximum, pool.score, -np.inf), _TINY)
    )


@normalisation("sum")
def summed(pool: Pool) -> Pool:
    """(score - least) / (sum of the list, each score less the least)."""
    least = pool.over_lists(np.minimum, pool.score, np.inf)
    total = pool.over_lists(np.add, pool.score, 0.0) - least * pool.lengths
    return _with_scores(pool, (pool.score - least) / np.maximum(total, _TINY))


@normalisation("zmuv")
def zero_mean_unit_variance(pool: Pool) -> Pool:
    """(score - mean) / standard deviation of the list."""
    n = np.maximum(pool.lengths, 1)
    above = pool.score - pool.over_lists(np.add, pool.score, 0.0) / n
    deviation = np.sqrt(pool.over_lists(np.add, above**2, 0.0) / n)
    return _with_scores(pool, above / np.maximum(deviation, _TINY))


@normalisation("rank", reads="places")
def rank(pool: Pool) -> Pool:
    """1 for the first place, less 1 / length for every further one."""
    return _with_scores(pool, 1 - pool.place / np.maximum(pool.lengths, 1))


@normalisation("borda", reads="places")
def borda(pool: Pool) -> Pool:
    """Borda points over the number of candidates; every run then lists every item that any run lists."""
    n = pool.n_candidates
    points = np.where(pool.listed, 1 - pool.place / n, 0.5 - (pool.lengths - 1) / (2 * n))
    return pool.rescored(points, np.ones(pool.place.shape, dtype=bool))


def _with_scores(pool: Pool, score: Float) -> Pool:
    """Return the pool with other scores that leave the lists in order."""
    return replace(pool, score=np.where(pool.listed, score, 0.0), has_scores=(True,) * pool.n_runs)


# ---------------------------------------------------------------------------- what methods are built from
def _total(lines: Iterable[Float]) -> Float:
    """Return the sum of the runs, one after the other."""
    total: Any = 0.0
    for line in lines:
        total = total + line
    return np.asarray(total, dtype=np.float64)


def _per_place(pool: Pool, value: Callable[[Int], Float]) -> Float:
    """Return a number for each listed row that follows from its place; 0 where a run does not list it."""
    return np.where(pool.listed, value(np.maximum(pool.place, 0)), 0.0)


def _weighted(lines: Float, weights: Sequence[float]) -> Float:
    return _total(weight * line for weight, line in zip(weights, lines, strict=True))


def _from_table(places: Int, table: Any, beyond: float) -> Float:
    """Return the entry of a table for each place, or `beyond` where it ends."""
    known: Float = np.asarray(table, dtype=np.float64)
    if not len(known):
        return np.full(places.shape, beyond)
    return np.where(places < len(known), known[np.minimum(places, len(known) - 1)], beyond)


def weight_trials(n_runs: int, steps: int = 10) -> list[tuple[float, ...]]:
    """Return all weights in steps of 1 / `steps` that sum to 1.

    >>> weight_trials(2, 2)
    [(0.0, 1.0), (0.5, 0.5), (1.0, 0.0)]
    """
    return [
        tuple(part / steps for part in parts)
        for parts in product(range(steps + 1), repeat=n_runs)
        if sum(parts) == steps
    ]


def _hundredths(_n_runs: int) -> list[float]:
    return [n / 100 for n in range(1, 101)]


_FOX = "Fox and Shaw (1994), Combination of Multiple Searches"
_MOURAO = "Mourão, Martins and Magalhães (2015), Multimodal medical information retrieval"
_ASLAM = "Aslam and Montague (2001), Models for Metasearch"
_MONTAGUE = "Montague and Aslam (2002), Condorcet fusion for improved retrieval"
_LILLIS = "Lillis et al. (2010), Estimating probabilities for effective data fusion"
_WU = "Wu and Crestani (2002), Data fusion with estimated weights"
_LEE = "Lee (1997), Analyses of multiple evidence combination"
_CORMACK = "Cormack, Clarke and Büttcher (2009), Reciprocal rank fusion"
_BAILEY = "Bailey et al. (2017), Retrieval consistency in the presence of query variations"
_PROBFUSE = "Lillis et al. (2006), ProbFuse: a probabilistic approach to data fusion"
_SLIDEFUSE = "Lillis et al. (2008), Extending probabilistic data fusion using sliding windows"
_SEGFUSE = "Shokouhi (2007), Segmentation of search engine results for effective data-fusion"


# ------------------------------------------------------------------------------------ sums of scores
@fusion("comb_sum", reads="scores", reference=_FOX, aliases=("sum",))
def comb_sum(pool: Pool) -> Float:
    """The sum of the scores."""
    return _total(pool.score)


@fusion("comb_min", reads="scores", reference=_FOX, aliases=("min",))
def comb_min(pool: Pool) -> Float:
    """The least score of the runs that list the item."""
    return np.asarray(np.where(pool.listed, pool.score, np.inf).min(axis=0))


@fusion("comb_max", reads="scores", reference=_FOX, aliases=("max",))
def comb_max(pool: Pool) -> Float:
    """The greatest score of the runs that list the item."""
    return np.asarray(np.where(pool.listed, pool.score, -np.inf).max(axis=0))


@fusion("comb_med", reads="scores", reference=_FOX, aliases=("med",))
def comb_med(pool: Pool) -> Float:
    """The median score of the runs that list the item."""
    ordered = np.sort(np.where(pool.listed, pool.score, np.inf), axis=0)
    middle = np.array([(pool.votes - 1) // 2, pool.votes // 2])
    low, high = np.take_along_axis(ordered, middle, axis=0)
    return np.asarray((low + high) / 2)


@fusion("comb_anz", reads="scores", reference=_FOX, aliases=("anz",))
def comb_anz(pool: Pool) -> Float:
    """The mean score of the runs that list the item."""
    return _total(pool.score) / pool.votes


@fusion("comb_mnz", reads="scores", reference=_FOX, aliases=("mnz",))
def comb_mnz(pool: Pool) -> Float:
    """The sum of the scores times the number of runs that list the item."""
    return _total(pool.score) * pool.votes


@fusion("comb_gmnz", reads="scores", reference=_LEE, aliases=("gmnz",), tuned="gamma", trials=_hundredths)
def comb_gmnz(pool: Pool, gamma: float) -> Float:
    """The sum of the scores times (the number of runs that list the item) ** gamma."""
    return _total(pool.score) * _rounded(lambda votes: votes ** Decimal(gamma), pool.votes)


@fusion("wsum", reads="scores", reference=_WU, tuned="weights", trials=weight_trials,
        aliases=("weighted_sum",))  # fmt: skip
def wsum(pool: Pool, weights: Sequence[float]) -> Float:
    """The sum of weight times score."""
    return _weighted(pool.score, weights)


@fusion("wmnz", reads="scores", reference=_WU, tuned="weights", trials=weight_trials)
def wmnz(pool: Pool, weights: Sequence[float]) -> Float:
    """The sum of the scores times the sum of the weights of the runs that list the item."""
    return _total(pool.score) * _weighted(pool.listed.astype(np.float64), weights)


@fusion("mixed", reads="scores", reference=_WU, tuned="weights", trials=weight_trials)
def mixed(pool: Pool, weights: Sequence[float]) -> Float:
    """The sum of weight times score, times the square root of the number of runs that list the item."""
    return _weighted(pool.score, weights) * np.sqrt(pool.votes)


def _rounded(function: Callable[[Decimal], Decimal], values: Array) -> Float:
    """Apply a function to each number, correctly rounded; NumPy's own depend on the processor."""
    distinct, place = np.unique(values, return_inverse=True)
    with localcontext() as context:
        context.prec = 40
        context.clear_traps()  # too large is infinite
        found = [float(function(Decimal(value))) for value in distinct.tolist()]
    return np.array(found, dtype=np.float64)[place]


# ------------------------------------------------------------------------------------ sums over places
def _inverse_squares(pool: Pool) -> Float:
    return _total(_per_place(pool, lambda place: 1 / (place + 1) ** 2))


@fusion("isr", reads="places", reference=_MOURAO)
def isr(pool: Pool) -> Float:
    """The sum of 1 / place ** 2, times the number of runs that list the item."""
    return _inverse_squares(pool) * pool.votes


@fusion("log_isr", reads="places", reference=_MOURAO)
def log_isr(pool: Pool) -> Float:
    """The sum of 1 / place ** 2, times the logarithm of the number of runs that list the item."""
    return _inverse_squares(pool) * _rounded(Decimal.ln, pool.votes)


@fusion("logn_isr", reads="places", reference=_MOURAO, tuned="sigma", trials=_hundredths)
def logn_isr(pool: Pool, sigma: float = 0.01) -> Float:
    """The sum of 1 / place ** 2, times log(sigma + the number of runs that list the item)."""
    if not 0 <= sigma <= 1:
        raise InputError(f"sigma={sigma!r} is not between 0 and 1.", hint="Pass sigma=0.01.")
    return np.asarray(_inverse_squares(pool) * _rounded(Decimal.ln, pool.votes + sigma))


@fusion("rrf", reads="places", reference=_CORMACK, tuned="k", trials=lambda _: [*range(10, 101, 10)])
def rrf(pool: Pool, k: float = 60) -> Float:
    """The sum of 1 / (k + place)."""
    if not k > -1:
        raise InputError(f"k={k!r} would divide by zero.", hint="Pass k=60, as the authors do.")
    return _total(_per_place(pool, lambda place: 1 / (k + place + 1)))


@fusion("rbc", reads="places", reference=_BAILEY, tuned="phi", trials=_hundredths)
def rbc(pool: Pool, phi: float) -> Float:
    """The sum of (1 - phi) phi ** (place - 1): rank-biased centroids."""
    if not 0 <= phi <= 1:
        raise InputError(f"phi={phi!r} is not between 0 and 1.", hint="Pass phi=0.8.")
    weights = (1 - phi) * geometric_weights(float(phi), int(pool.place.max(initial=0)) + 1)
    return _total(_per_place(pool, lambda place: weights[place]))


# ------------------------------------------------------------------------------------ votes
def _borda_points(pool: Pool) -> Float:
    unlisted = (pool.n_candidates - pool.lengths + 1) / 2
    return np.where(pool.listed, pool.n_candidates - pool.place, unlisted)


@fusion("bordafuse", reads="places", reference=_ASLAM)
def bordafuse(pool: Pool) -> Float:
    """Borda points: a run gives n to its first of n candidates, n - 1 to the next; others share the rest."""
    return _total(_borda_points(pool))


@fusion("weighted_bordafuse", reads="places", reference=_ASLAM, tuned="weights", trials=weight_trials,
        aliases=("w_bordafuse",))  # fmt: skip
def weighted_bordafuse(pool: Pool, weights: Sequence[float]) -> Float:
    """The sum of weight times Borda points."""
    return _weighted(_borda_points(pool), weights)


@fusion("condorcet", reads="places", reference=_MONTAGUE)
def condorcet(pool: Pool) -> Float:
    """Majorities between pairs: n for the item that beats all n - 1 others, 1 for the one that beats none.

    Items are put in order by how many others they beat; half a point for a draw. Where majorities form no
    circle this is their order. An item that a run does not list is below all that it lists.
    """
    return weighted_condorcet(pool, [1.0] * pool.n_runs)


@fusion("weighted_condorcet", reads="places", reference=_MONTAGUE, tuned="weights", trials=weight_trials,
        aliases=("w_condorcet",))  # fmt: skip
def weighted_condorcet(pool: Pool, weights: Sequence[float]) -> Float:
    """Condorcet with a vote of each run that weighs its weight."""
    place = np.where(pool.listed, pool.place, np.iinfo(np.int64).max)
    starts, sizes = runs(pool.case)
    wins = np.zeros(len(pool.case))
    for size in np.unique(sizes).tolist():
        of_size = starts[sizes == size]
        for block in np.array_split(of_size, max(1, -(-len(of_size) * size * size // _CELLS))):
            rows = block[:, None] + np.arange(size)
            ahead = np.zeros((len(block), size, size))
            for weight, line in zip(weights, place, strict=True):
                mine, theirs = line[rows][:, :, None], line[rows][:, None, :]
                ahead += weight * ((mine < theirs).astype(np.int8) - (mine > theirs).astype(np.int8))
            wins[rows] = (np.sign(ahead).sum(axis=2) + size - 1) / 2
    points = np.empty(len(wins))
    points[pool.best_first(wins)] = np.repeat(starts + sizes, sizes) - np.arange(len(wins))
    return points


# ------------------------------------------------------------------------------------ trained on a truth
def hits_by_place(judged: JudgedPool, run: int, width: int) -> Float:
    """Mark with 1 the relevant items of lists: a line per case, as wide as the longest list or `width`."""
    pool = judged.pool
    shown = pool.listed[run]
    hits = np.zeros((len(pool.cases), max(width, int(pool.place[run].max(initial=-1)) + 1)))
    hits[pool.case[shown], pool.place[run][shown]] = judged.relevant[shown]
    return hits


def train_place_probabilities(judged: JudgedPool) -> list[Float]:
    """Return, by run and place, the share of the lists that reach it whose item there is relevant."""
    probabilities = []
    for run, sizes in enumerate(judged.pool.list_sizes):
        shorter = np.searchsorted(np.sort(sizes), np.arange(sizes.max(initial=0)), side="right")
        probabilities.append(hits_by_place(judged, run, 0).sum(axis=0) / (len(sizes) - shorter))
    return probabilities


def train_segment_probabilities(judged: JudgedPool, n_segments: int = 10) -> list[Float]:
    """Return, by run and by `n_segments` equal parts of a list, the mean share of relevant items."""
    probabilities = []
    for run, sizes in enumerate(judged.pool.list_sizes):
        shown = judged.pool.listed[run]
        case, place = judged.pool.case[shown], judged.pool.place[run][shown]
        part = case * n_segments + _segments(place, sizes[case], n_segments)
        shape = (len(sizes), n_segments)
        counts = np.bincount(part, minlength=shape[0] * n_segments).reshape(shape)
        hits = np.bincount(part, judged.relevant[shown], minlength=shape[0] * n_segments).reshape(shape)
        probabilities.append((hits / np.maximum(counts, 1)).sum(axis=0) / max(len(sizes), 1))
    return probabilities


def _segments(place: Int, length: Int, n_segments: int) -> Int:
    """Return the part of a list that a place is in, from 0; all parts but the last are of one size."""
    return place // np.maximum(-(-length // n_segments), 1)


def train_border_probabilities(judged: JudgedPool) -> list[Float]:
    """Return, by run and by ten parts that double in size, the mean share of relevant items."""
    return [_means_between(judged, run, _SEGMENT_BORDERS) for run in range(judged.pool.n_runs)]


def _means_between(judged: JudgedPool, run: int, borders: Sequence[int]) -> Float:
    hits = hits_by_place(judged, run, borders[-1])
    starts, stops = np.array(borders[:-1]), np.array(borders[1:])
    found = np.add.reduceat(hits[:, : borders[-1]], starts, axis=1)
    return np.asarray((found / (stops - starts)).sum(axis=0) / max(len(hits), 1))


def train_log_odds(judged: JudgedPool) -> list[Float]:
    """Return, by run, the log odds that an item is relevant for each of the first 1,000 places."""
    means = [_means_between(judged, run, _ODDS_BORDERS) for run in range(judged.pool.n_runs)]
    return [log_odds(mean, _ODDS_BORDERS) for mean in means]


def log_odds(mean: Float, borders: Sequence[int]) -> Float:
    """Return the logarithm of p / (1 - p) for each place between borders; 0.001 in place of 0."""
    chance = np.where(mean == 0, 0.001, mean)
    against = np.where(chance == 1, 0.001, 1 - chance)
    return np.repeat(_rounded(Decimal.ln, chance / against), np.diff(np.array(borders)))


@fusion("mapfuse", reads="places", reference=_LILLIS, trained="map_scores",
        train=lambda judged: judged.average_precision())  # fmt: skip
def mapfuse(pool: Pool, map_scores: Sequence[float]) -> Float:
    """The sum of the mean average precision of the run / place."""
    by_run = zip(map_scores, pool.place, strict=True)
    return _total(np.where(place >= 0, score / (np.maximum(place, 0) + 1), 0.0) for score, place in by_run)


@fusion("posfuse", reads="places", reference=_LILLIS, trained="probs", train=train_place_probabilities)
def posfuse(pool: Pool, probs: Sequence[Any]) -> Float:
    """The sum of the probabilities that the item at this place of the run is relevant."""
    return _total(
        np.where(place >= 0, _from_table(place, table, 0.0), 0.0)
        for place, table in zip(pool.place, probs, strict=True)
    )


@fusion("probfuse", reads="places", reference=_PROBFUSE, trained="probs", train=train_segment_probabilities,
        tuned="n_segments", trials=lambda _: [*range(1, 101)])  # fmt: skip
def probfuse(pool: Pool, probs: Sequence[Any]) -> Float:
    """The sum of the probability of the part of the list that the item is in / the number of that part."""
    lines = []
    for place, length, table in zip(pool.place, pool.lengths, probs, strict=True):
        part = _segments(np.maximum(place, 0), length, len(table))
        lines.append(np.where(place >= 0, _from_table(part, table, 0.0) / (part + 1), 0.0))
    return _total(lines)


@fusion("segfuse", reads="scores", reference=_SEGFUSE, trained="probs", train=train_border_probabilities)
def segfuse(pool: Pool, probs: Sequence[Any]) -> Float:
    """The sum of the probability of the part of the list times (score + 1); parts double in size."""
    lines = []
    for place, score, table in zip(pool.place, pool.score, probs, strict=True):
        part = np.searchsorted(np.array(_SEGMENT_BORDERS[1:]), np.maximum(place, 0), side="right")
        lines.append(np.where(place >= 0, _from_table(part, table, 0.0) * (score + 1), 0.0))
    return _total(lines)


@fusion("slidefuse", reads="places", reference=_SLIDEFUSE, trained="probs", train=train_place_probabilities,
        tuned="w", trials=lambda _: [*range(1, 101)])  # fmt: skip
def slidefuse(pool: Pool, probs: Sequence[Any], w: int) -> Float:
    """The sum of the mean probability of the places at most w from that of the item."""
    lines = []
    for place, length, table in zip(pool.place, pool.lengths, probs, strict=True):
        known: list[float] = np.asarray(table, dtype=np.float64).tolist()
        line = np.zeros(len(place))
        shown = np.flatnonzero(place >= 0)
        start = np.maximum(place[shown] - w, 0)
        stop = np.minimum(place[shown] + w, length[shown] - 1) + 1
        windows, which = np.unique(np.stack([start, stop]), axis=1, return_inverse=True)
        means = [math.fsum(known[a:b]) / (b - a) for a, b in windows.T.tolist()]
        line[shown] = np.array(means)[which.reshape(-1)] if means else 0.0
        lines.append(line)
    return _total(lines)


@fusion("bayesfuse", reads="places", reference=_ASLAM, trained="log_odds", train=train_log_odds)
def bayesfuse(pool: Pool, log_odds: Sequence[Any]) -> Float:
    """The sum of the log odds of the places; log(0.001 / 0.999) where a run does not list the item.

    Places beyond the table count as not listed.
    """
    return _total(
        np.where(place >= 0, _from_table(place, table, _UNLISTED_ODDS), _UNLISTED_ODDS)
        for place, table in zip(pool.place, log_odds, strict=True)
    )
