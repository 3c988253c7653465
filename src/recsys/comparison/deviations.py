"""What evaluators do beyond our decisions: common mistakes and habits of libraries, as options of parts.

An evaluator reads a list in some way, makes a number of it with some formula, and brings the users together.
Each of these has parts, such as what a repeated item counts, and a part has options: a value of a decision or
a mistake. A hypothesis takes one option of each part, so that several mistakes at once are described
without being listed anywhere. A mistake is added as one option here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby, islice, permutations, product
from math import factorial, prod
from typing import Any, NamedTuple

import numpy as np

from recsys.conventions.presets import PRESETS
from recsys.records.arrays import cached_property

Rows = Sequence[Sequence[Any]]
Grades = Mapping[str, float]
_MOST_ORDERS = 120
_LIKELY, _RARE, _UNLIKELY = 1.0, 1.25, 1.5
_UNCUT = 1 << 30


class Habit(NamedTuple):
    """One way to do one thing: the words of what is done differently, and the decision that it is a value of.

    `known_of` are presets whose library is known to do it; `cost` says how much it excuses.
    """

    words: str = ""
    decision: str = ""
    value: Any = None
    known_of: tuple[str, ...] = ()
    excuse: float = _LIKELY

    @property
    def cost(self) -> float:
        return self.excuse if self.words else 0.0


def _decided(decision: str, *values: Any) -> tuple[Habit, ...]:
    return tuple(Habit("", decision, value) for value in values)


def _option(written: str | Habit) -> Habit:
    """Return an option written as "decision=value", or as the words of a mistake."""
    if isinstance(written, Habit):
        return written
    name, is_decision, value = written.partition("=")
    return Habit("", name, value) if is_decision else Habit(written)


def _options(*several: str | Habit) -> tuple[Habit, ...]:
    return tuple(map(_option, several))


def _table(*rows: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return rows whose first cell is written as an option."""
    return tuple((_option(first), *rest) for first, *rest in rows)


# Values that are tried where a decision or a parameter is a number.
NUMBERS: dict[str, tuple[Any, ...]] = {
    "relevant_from": (None, 2.0, 3.0),
    "max_grade": (None, 2.0, 3.0, 4.0, 5.0),
    "beta": (0.5, 1.0, 2.0),
    "p": (0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.99),
    "alpha": (0.5,),
}
# How a list and a truth are read. The order is that in which the parts are applied.
READING: dict[str, tuple[Habit, ...]] = {
    "items": _options(
        "judged_only=no",
        "judged_only=yes",
        Habit("items judged not relevant (grade 0) count as relevant", "judged_only", "no"),
        Habit("relevant items that are not listed are put at the end of the list", "judged_only", "no",
              ("torchmetrics", "evidently")),
        Habit("only the first item of the truth is relevant", "judged_only", "no", (), _RARE),
        Habit("relevant items that are not listed are taken out of the truth", "judged_only", "no",
              excuse=_RARE),
    ),
    "direction": _options("", "lists are read from their end: the lowest score comes first"),
    "ties": (
        *_decided("ties", "given", "by_id", "by_id_desc", "expected", "best", "worst"),
        Habit("equal scores are in the reverse of the order they were given in",
              known_of=("torchmetrics",)),  # as torch.topk leaves some
        Habit("equal scores are in an order that follows no rule known here", excuse=_UNLIKELY,
              known_of=("torchmetrics", "recpack", "warprec", "recometrics", "ncf_evaluator")),
    ),
    "repeats": _options(
        *_decided("duplicates", "first", "all", "collapse"),
        Habit("an item listed twice enters the truth twice as well",
              known_of=("rectools", "torchmetrics", "evidently")),
        "an item listed twice is kept at its last place only, and the list closes up",
        Habit("an item that is listed n times counts n times at each of its places", known_of=("microsoft",)),
        Habit("repeats are taken out of the first k places, which then close up", excuse=_RARE),
    ),
    "relevant": _decided("relevant_from", *NUMBERS["relevant_from"]),
    "cut": _options(
        "",
        # Most libraries can be asked without a cut-off.
        Habit("the cut-off k is not used: whole lists are read", known_of=tuple(PRESETS)),
        "the first k + 1 places are read in place of k",
        "the first k - 1 places are read in place of k",
        Habit("items that tie with the one at place k are read, too", excuse=_RARE),
        Habit("a list that ends before k counts as 0", excuse=_RARE),
    ),
}  # fmt: skip
ITEMS, DIRECTION, TIES, REPEATS, RELEVANT, CUT = range(len(READING))
AT_END = 3  # the option of items that puts those not listed at the end of the list, where they tie

# How users are brought together. The second mean is that of what is divided, before it is divided.
MEAN: dict[str, tuple[Habit, ...]] = {
    "no_truth": _options(
        *_decided("no_truth", "skip", "zero", "unjudged"), "a user without relevant items counts as 1"
    ),
    "no_list": _decided("no_list", "empty", "skip"),
    "mean": _options(
        "",
        "",
        Habit("the mean is taken over the users with a value above 0 only", known_of=("microsoft",)),
        "values are added over the users, and not divided by their number",
        "the median over the users is taken in place of the mean",
    ),
    "scale": _options(
        "",
        "values are percentages: 100 times what they should be",
        "what is reported is 1 minus the value",
        "the value of each user is rounded to 2 decimals",
        "the value of each user is rounded to 3 decimals",
        Habit("the value of each user is rounded to 4 decimals", known_of=("recmetrics",)),
    ),
}


@dataclass(frozen=True)
class Ranked:
    """One user as read: the grade at each place (0 for a miss), those of relevant items, k and more.

    `asked` is the k of the question where another one is read, `items` are those listed, `again` says which
    of them were listed before, `judged` are all with a judgement, `last` is the last place of each tied
    group, and `highest` the highest grade of the truth. k is beyond any list where there is none.
    """

    whole: np.ndarray
    relevant: np.ndarray
    k: int
    asked: int
    items: tuple[str, ...]
    again: np.ndarray
    judged: frozenset[str]
    last: np.ndarray
    highest: float

    @cached_property
    def top(self) -> np.ndarray:
        return self.whole[: self.k]

    @cached_property
    def ideal(self) -> np.ndarray:
        return _descending(self.relevant)

    @cached_property
    def places(self) -> np.ndarray:
        """The places of the hits among the first k."""
        return np.flatnonzero(self.top) + 1


def read(
    rows: Rows, grades: Grades, k: int, choice: Sequence[int], highest: float
) -> tuple[str, list[Ranked]]:
    """Return how a user is read under these options of READING: several where their order is not known.

    The first of the two says what becomes of several: "expected", "best", "worst" or "any" of them.
    """
    items, direction, ties, repeats, relevant, cut = choice
    rows, grades = _under_items(rows, grades, items)
    orders, last = _orders(rows, direction, ties)
    least = READING["relevant"][relevant].value
    found: dict[tuple[Any, ...], Ranked] = {}
    for order in orders:
        listed = [item for item, _ in order if items != 1 or item in grades]
        names, judged = _under_repeats(listed, grades, k, repeats)
        own = {i: g for i, g in judged.items() if g > 0 and (least is None or g >= least)}
        again = np.array([item in names[:at] for at, item in enumerate(names)], dtype=bool)
        whole = np.array([own.get(item, 0.0) for item in names], dtype=float)
        if repeats == 0:
            whole[again] = 0.0
        elif repeats == 5:
            whole *= [names.count(item) for item in names]
        with_ties = int(last[k - 1]) if k <= len(last) else k
        used = (k, _UNCUT, k + 1, max(k - 1, 0), with_ties, k if len(names) >= k else 0)[cut]
        one = Ranked(
            whole, np.array([*own.values()]), used, k, tuple(names), again, frozenset(judged),
            last[: len(names)], highest,
        )  # fmt: skip
        found.setdefault((whole.tobytes(), again.tobytes(), tuple(i in judged for i in names)), one)
    return {3: "expected", 4: "best", 5: "worst"}.get(ties, "any"), [*found.values()]


def _under_items(rows: Rows, grades: Grades, items: int) -> tuple[Rows, Grades]:
    """Return which items are listed and judged under an option of READING["items"], but for the second."""
    listed = {item for item, _ in rows}
    if items == 2:
        return rows, {item: max(grade, 1.0) for item, grade in grades.items()}
    if items == AT_END:
        lowest = min((score for _, score in rows), default=0.0) - 1.0
        return [*rows, *([item, lowest] for item in grades if item not in listed)], grades
    if items == 4:
        return rows, dict(islice(((item, grade) for item, grade in grades.items() if grade > 0), 1))
    return rows, {item: grade for item, grade in grades.items() if items != 5 or item in listed}


def _orders(rows: Rows, direction: int, ties: int) -> tuple[list[Rows], np.ndarray]:
    """Return the orders that equal scores may be in, and the last place of each group of them."""
    if ties in (1, 2):
        rows = sorted(rows, key=lambda row: row[0], reverse=ties == 2)
    rows = sorted(rows, key=lambda row: row[1] if direction else -row[1])
    groups = [list(group) for _, group in groupby(rows, key=lambda row: row[1])]
    sizes = [len(group) for group in groups]
    orders: list[Rows] = [rows]
    if ties == 6:
        orders = [[row for group in groups for row in group[::-1]]]
    elif ties in (3, 4, 5, 7) and prod(map(factorial, sizes)) <= _MOST_ORDERS:
        every = product(*(permutations(group) for group in groups))
        orders = [[row for group in one for row in group] for one in every]
    return orders, np.repeat(np.cumsum(sizes, dtype=int), sizes)


def _under_repeats(names: list[str], grades: Grades, k: int, repeats: int) -> tuple[list[str], Grades]:
    """Return the items of a list, and all judgements, under an option of READING["repeats"]."""
    if repeats == 3:
        counted = [f"{i}\0{names[:at].count(i)}" if i in names[:at] else i for at, i in enumerate(names)]
        pairs = zip(counted, names, strict=True)
        return counted, {**grades, **{one: grades[item] for one, item in pairs if item in grades}}
    if repeats == 4:
        return list(dict.fromkeys(names[::-1]))[::-1], grades
    if repeats in (2, 6):
        return list(dict.fromkeys(names if repeats == 2 else names[:k])), grades
    return names, grades


@dataclass(frozen=True)
class Formulas:
    """All formulas known of a metric: the options that each one takes, and what they make of a user.

    `parts` returns two arrays or more, with one value for each formula; `value` makes the metric of them, of
    one user or of their means over the users, which is `pooled`, a value of a decision.
    """

    options: tuple[tuple[Habit, ...], ...]
    parts: Callable[[Ranked], tuple[np.ndarray, ...]]
    value: Callable[..., np.ndarray]
    pooled: tuple[str, Any, Any] | None = None


def over(a: Any, b: Any) -> np.ndarray:
    """Return quotients, 0 where nothing is divided by."""
    quotient: np.ndarray = np.divide(
        a, b, out=np.zeros(np.broadcast_shapes(np.shape(a), np.shape(b))), where=np.not_equal(b, 0)
    )
    return quotient


_Row = tuple[Habit, Callable[[Ranked], Any], Callable[[Ranked], Any]]


def _quotients(rows: Sequence[_Row], *, pooled: bool = False) -> Formulas:
    """One option for each formula, which is a quotient."""

    def parts(r: Ranked) -> tuple[np.ndarray, ...]:
        return np.array([a(r) for _, a, _ in rows], float), np.array([b(r) for *_, b in rows], float)

    rule = ("average", "macro", "pooled") if pooled else None
    return Formulas(tuple((option,) for option, *_ in rows), parts, over, rule)


def _one(_: Ranked) -> float:
    return 1.0


def _hits(r: Ranked) -> float:
    return len(r.places)


def _shown(r: Ranked) -> float:
    return len(r.top)


def _relevant(r: Ranked) -> float:
    return len(r.relevant)


def _size(r: Ranked) -> int:
    """Return k, or where there is none the length of the list."""
    return r.k if r.k < _UNCUT else len(r.items)


def _grades(r: Ranked) -> float:
    return float(np.sum(r.top))


def _places(function: Callable[[np.ndarray], np.ndarray]) -> Callable[[Ranked], float]:
    return lambda r: float(np.sum(function(r.places))) if len(r.places) else 0.0


_GAINS: tuple[tuple[Habit, Callable[[np.ndarray], np.ndarray]], ...] = _table(
    ("gain=binary", lambda g: (g > 0) * 1.0),
    ("gain=grade", lambda g: g),
    ("gain=exp2", lambda g: 2**g - 1),
    ("gain=exp2_next", lambda g: (2 ** (g + 1) - 1) * (g > 0)),
    ("the gain of a hit is 2^grade", lambda g: 2**g * (g > 0)),
    ("the gain of a hit is grade + 1", lambda g: (g + 1) * (g > 0)),
    ("the gain of a hit is the square of its grade", lambda g: g**2),
    ("the gain of a hit is log2(grade + 1)", lambda g: np.log2(g + 1)),
    ("the gain is 2^grade, so that a miss has the gain 1", lambda g: 2**g),
)
_BINARY, _GRADE, _EXP2, _NEXT = range(4)
_UNLIKE_GAINS = _table(
    *(
        (Habit("the ideal list holds hits of gain 1, whatever the gains of the list", "gain", name), own, 0)
        for own, name in ((_GRADE, "grade"), (_EXP2, "exp2"), (_NEXT, "exp2_next"))
    ),
    ("the gain is 2^grade - 1 in the ideal list, the grade in the list", _GRADE, _EXP2),
    ("the gain is the grade in the ideal list, 2^grade - 1 in the list", _EXP2, _GRADE),
    ("the gain is the grade in the ideal list, 1 in the list", _BINARY, _GRADE),
)
_DISCOUNTS: tuple[tuple[Habit, str, Callable[[np.ndarray], np.ndarray]], ...] = _table(
    ("discount=log2", "log2(r + 1)", lambda r: np.log2(r + 1)),
    ("discount=log2_max2", "log2(max(r, 2))", lambda r: np.log2(np.maximum(r, 2))),
    ("discount=reciprocal", "r", lambda r: r),
    ("place r is discounted by log2(r + 2)", "log2(r + 2)", lambda r: np.log2(r + 2)),
    ("places from 2 on are discounted by 1 + log2(r)", "1 + log2(r)", lambda r: 1 + np.log2(r)),
    ("places are not discounted", "1", lambda r: r**0.0),
    ("place r is discounted by r + 1", "r + 1", lambda r: r + 1),
    ("place r is discounted by the square root of r", "the square root of r", lambda r: r**0.5),
    ("place r is discounted by ln(r + 1)", "ln(r + 1)", lambda r: np.log(r + 1)),
    ("place r is discounted by log10(r + 1)", "log10(r + 1)", lambda r: np.log10(r + 1)),
)
_N_UNLIKE_SCALE = 8  # what follows is log2(r + 1) up to a factor, which cancels out of a quotient


@lru_cache(maxsize=64)
def _weights(n: int) -> np.ndarray:
    """Return what each place weighs under each discount."""
    places = np.arange(1.0, n + 1)
    return np.array([1 / discount(places) for *_, discount in _DISCOUNTS]).reshape(len(_DISCOUNTS), n)


def _sums(grades: np.ndarray) -> np.ndarray:
    """Return the discounted sums of a list of grades, by gain and discount."""
    gains = np.array([gain(grades) for _, gain in _GAINS]).reshape(len(_GAINS), len(grades))
    sums: np.ndarray = gains @ _weights(len(grades)).T
    return sums


def _ones(n: int) -> np.ndarray:
    """Return the discounted sums of n hits of gain 1, by discount."""
    ones: np.ndarray = _weights(n).sum(axis=1)
    return ones


def _alone(grades: np.ndarray) -> np.ndarray:
    """Return the first hit, with misses before it."""
    hits = np.flatnonzero(grades)
    return np.where(np.arange(len(grades)) == hits[0], grades, 0.0) if len(hits) else grades


def _descending(grades: np.ndarray) -> np.ndarray:
    return -np.sort(-grades)


# What the sum over the list is divided by, for every gain and discount or for each the same.
_IDEALS: tuple[tuple[Habit, Callable[[Ranked], Any]], ...] = _table(
    ("ideal=reachable", lambda r: _sums(r.ideal[: r.k])),
    ("ideal=all", lambda r: _sums(r.ideal)),
    ("ideal=list", lambda r: _sums(r.ideal[: min(r.k, len(r.items))])),
    ("ideal=k", lambda r: _ones(_size(r))),
    ("the ideal list is the given list in its best order: relevant items it lacks are forgotten",
     lambda r: _sums(_descending(r.top))),
    ("the ideal list is the whole given list in its best order, cut at k",
     lambda r: _sums(_descending(r.whole)[: r.k])),
    ("the ideal list is the whole given list in its best order", lambda r: _sums(_descending(r.whole))),
    ("the ideal list holds k hits of the highest gain", lambda r: _sums(np.repeat(r.ideal[:1], _size(r)))),
    ("the ideal list holds a hit of gain 1 at every place that the list has", lambda r: _ones(len(r.top))),
    ("the ideal list is in the order of the truth, not sorted", lambda r: _sums(r.relevant[: r.k])),
    ("the ideal list is cut at k + 1", lambda r: _sums(r.ideal[: r.k + 1])),
    ("the ideal list is cut at k - 1", lambda r: _sums(r.ideal[: max(r.k - 1, 0)])),
    ("the sum is not divided by that of an ideal list (dcg)", _one),
    ("the sum is divided by k in place of that of an ideal list", _size),
    ("the sum is divided by the length of the list in place of that of an ideal list", _shown),
    ("the sum is divided by the number of relevant items in place of that of an ideal list", _relevant),
    ("the sum is divided by the number of hits in place of that of an ideal list", _hits),
)  # fmt: skip


def _ndcg() -> Formulas:
    uncut = Habit("the list is not cut at k, the ideal list is", excuse=_RARE)
    counted = _options("", "only the first hit counts", uncut)
    gains = [(option, at, at) for at, (option, _) in enumerate(_GAINS)] + [*_UNLIKE_GAINS]
    discounts = [(option, at, at) for at, (option, *_) in enumerate(_DISCOUNTS[:_N_UNLIKE_SCALE])]
    for at, (_, words, _) in enumerate(_DISCOUNTS[1:], start=1):
        for mine, theirs in ((at, 0), (0, at)):
            ideal = "log2(r + 1)" if theirs == 0 else words
            own = words if theirs == 0 else "log2(r + 1)"
            text = f"place r is discounted by {own} in the list, by {ideal} in the ideal list"
            discounts.append((Habit(text, excuse=_RARE), mine, theirs))
    gains_at, discounts_at = (np.array([row[1:] for row in rows]).T for rows in (gains, discounts))

    def parts(r: Ranked) -> tuple[np.ndarray, ...]:
        lists = np.array([_sums(r.top), _sums(_alone(r.top)), _sums(r.whole)])
        divisors = np.empty((len(_IDEALS), len(_GAINS), len(_DISCOUNTS)))
        for at, (_, ideal) in enumerate(_IDEALS):
            divisors[at] = ideal(r)
        shape = (len(counted), len(_IDEALS), len(gains), len(discounts))
        above = lists[:, None, gains_at[0][:, None], discounts_at[0]]
        below = divisors[None, :, gains_at[1][:, None], discounts_at[1]]
        return np.broadcast_to(above, shape).reshape(-1), np.broadcast_to(below, shape).reshape(-1)

    every = product(counted, (o for o, _ in _IDEALS), (o for o, *_ in gains), (o for o, *_ in discounts))
    return Formulas(tuple(every), parts, over)


def _dcg() -> Formulas:
    every = product((option for option, _ in _GAINS), (option for option, *_ in _DISCOUNTS))
    return Formulas(tuple(every), lambda r: (_sums(r.top).reshape(-1), np.ones(1)), over)


# What the precisions at the hits are, where the h-th hit is at place p, and what their sum is divided by.
_PRECISIONS: tuple[tuple[Habit, Callable[[np.ndarray, np.ndarray, Ranked], np.ndarray]], ...] = _table(
    ("", lambda h, p, _: h / p),
    ("places are counted from 2: precision at place r divides by r + 1", lambda h, p, _: h / (p + 1)),
    ("places are counted from 0: precision at place r divides by r - 1, at place 1 by 1",
     lambda h, p, _: h / np.maximum(p - 1, 1)),
    ("1 / r of each hit is added in place of the precision there", lambda _h, p, _: 1 / p),
    ("the precision at a hit is multiplied by the grade of the hit", lambda h, p, r: r.top[p - 1] * h / p),
    ("an item listed twice is one hit, and the precision at its second place is added, too",
     lambda _, p, r: np.cumsum(~r.again[p - 1]) / p),
)  # fmt: skip
_AP_OVER: tuple[tuple[Habit, Callable[[Ranked], Any]], ...] = _table(
    ("ap_over=min", lambda r: min(r.k, len(r.relevant))),
    ("ap_over=relevant", _relevant),
    ("ap_over=hits", _hits),
    ("ap_over=k", _size),
    ("ap_over=list", lambda r: min(r.k, len(r.relevant), len(r.items))),
    ("the sum of precisions is divided by the length of the list", _shown),
    ("the sum of precisions is divided by the length of the whole list", lambda r: len(r.items)),
    ("the sum of precisions is divided by max(k, relevant)", lambda r: max(_size(r), len(r.relevant))),
    ("the sum of precisions is not divided", _one),
    ("the sum of precisions is divided by the relevant items of the whole list",
     lambda r: np.count_nonzero(r.whole)),
    ("the sum of precisions is divided by one more than the relevant items", lambda r: len(r.relevant) + 1),
)  # fmt: skip


def _at_last_place(r: Ranked) -> float:
    """Average precision where every hit of a tied group has the group's last place."""
    found = r.last[np.flatnonzero(r.whole)]
    return sum(float(np.sum(found <= place) / place) for place in found) / max(len(found), 1)


_WHOLE_AP: tuple[_Row, ...] = _table(
    (Habit("it is the mean of precision@1 to precision@k, hit or not", known_of=("elliot",)),
     lambda r: float(sum(np.sum(r.places <= n) / n for n in range(1, _size(r) + 1))), _size),
    (Habit("all relevant items of equal score have the last of their places, and k is not used",
            known_of=("cornac",)), _at_last_place, _one),
    ("it is the precision at the last hit only", _hits, _places(np.max)),
)  # fmt: skip


def _map() -> Formulas:
    special = _quotients(_WHOLE_AP)

    def parts(r: Ranked) -> tuple[np.ndarray, ...]:
        h = np.arange(1, len(r.places) + 1)
        above = np.array([np.sum(precision(h, r.places, r)) for _, precision in _PRECISIONS])
        below = np.array([float(divisor(r)) for _, divisor in _AP_OVER])
        both = np.broadcast_arrays(above[:, None], below[None, :])
        return tuple(np.append(a, b) for a, b in zip(both, special.parts(r), strict=True))

    every = product((option for option, _ in _PRECISIONS), (option for option, _ in _AP_OVER))
    return Formulas((*every, *special.options), parts, over)


_PRECISION: tuple[_Row, ...] = _table(
    ("precision_over=k", _hits, _size),
    ("precision_over=list", _hits, _shown),
    ("precision_over=min", _hits, lambda r: min(r.k, len(r.relevant))),
    ("hits are divided by the length of the whole list", _hits, lambda r: len(r.items)),
    ("hits are divided by k + 1", _hits, lambda r: _size(r) + 1),
    ("hits are divided by k - 1", _hits, lambda r: _size(r) - 1),
    (Habit("hits are divided by k all the same", excuse=0.75), _hits, lambda r: r.asked),
    ("hits are divided by the different items among the first k", _hits,
     lambda r: len(r.top) - np.count_nonzero(r.again[: r.k])),
    ("hits are divided by the judged items among the first k", _hits,
     lambda r: sum(item in r.judged for item in r.items[: r.k])),
    ("hits are divided by max(k, relevant)", _hits, lambda r: max(_size(r), len(r.relevant))),
    ("items count by their grade: grades of the hits over k", _grades, _size),
    ("items count by their grade: grades of the hits over the length of the list", _grades, _shown),
    ("hits are not divided (hits)", _hits, _one),
)  # fmt: skip
_RECALL: tuple[_Row, ...] = _table(
    ("recall_over=relevant", _hits, _relevant),
    ("recall_over=min", _hits, lambda r: min(r.k, len(r.relevant))),
    ("hits are divided by the length of the list", _hits, _shown),
    ("hits are divided by max(k, relevant)", _hits, lambda r: max(_size(r), len(r.relevant))),
    ("hits are divided by the relevant items of the list", _hits, lambda r: np.count_nonzero(r.whole)),
    ("hits are divided by all judged items, relevant or not", _hits, lambda r: len(r.judged)),
    ("hits are divided by one more than the relevant items", _hits, lambda r: len(r.relevant) + 1),
    ("items count by their grade: grades of the hits over grades of all relevant items",
     _grades, lambda r: np.sum(r.relevant)),
    ("it is 1 where there is a hit (hit)", lambda r: r.top.any(), _one),
    ("hits are not divided (hits)", _hits, _one),
)  # fmt: skip
_MRR: tuple[_Row, ...] = _table(
    ("", _places(lambda p: 1 / p[0]), _one),
    ("places are counted from 2: the first hit at place r gives 1 / (r + 1)",
     _places(lambda p: 1 / (p[0] + 1)), _one),
    ("places are counted from 0: the first hit at place r gives 1 / (r - 1), at place 1 it gives 1",
     _places(lambda p: 1 / max(p[0] - 1, 1)), _one),
    ("the first hit at place r gives 1 / log2(r + 1)", _places(lambda p: 1 / np.log2(p[0] + 1)), _one),
    ("it is the mean of 1 / r over all hits", _places(lambda p: 1 / p), _hits),
    ("it is the sum of 1 / r over all hits", _places(lambda p: 1 / p), _one),
    ("it is the sum of 1 / r over all hits, divided by the relevant items",
     _places(lambda p: 1 / p), _relevant),
    ("it is 1 / r of the last hit", lambda r: r.top.any(), _places(np.max)),
)  # fmt: skip
_HIT: tuple[_Row, ...] = _table(
    ("", lambda r: r.top.any(), _one),
    ("it is the number of hits (hits)", _hits, _one),
    ("it is 1 only where every relevant item is found", lambda r: len(r.places) == len(r.relevant), _one),
    ("only the first place is read", lambda r: r.top[:1].any(), _one),
    ("hits are divided by the relevant items (recall)", _hits, _relevant),
)  # fmt: skip
_HITS: tuple[_Row, ...] = _table(
    ("", _hits, _one), ("it is 1 where there is a hit (hit)", lambda r: r.top.any(), _one)
)
_CAPPED_RECALL: tuple[_Row, ...] = _table(
    ("", _hits, lambda r: min(r.k, len(r.relevant))),
    ("hits are divided by the relevant items (recall)", _hits, _relevant),
    ("hits are divided by k (precision)", _hits, _size),
)
_R_PRECISION: tuple[_Row, ...] = _table(
    ("", lambda r: np.count_nonzero(r.whole[: len(r.relevant)]), _relevant),
    ("k is used as well: places beyond it are not read",
     lambda r: np.count_nonzero(r.top[: len(r.relevant)]), _relevant),
)  # fmt: skip


def _rbp() -> Formulas:
    kinds = _options("", "the sum is not multiplied by 1 - p", "place r weighs p^r in place of p^(r - 1)")
    p = np.array(NUMBERS["p"])

    def parts(r: Ranked) -> tuple[np.ndarray, ...]:
        sums = (p[:, None] ** (r.places - 1)).sum(axis=1)
        return np.array([(1 - p) * sums, sums, (1 - p) * p * sums]).reshape(-1), np.ones(1)

    return Formulas(tuple(product(kinds, _decided("p", *NUMBERS["p"]))), parts, over)


def _err() -> Formulas:
    kinds = _options("", "the user never stops: hits at earlier places take nothing from later ones")

    def parts(r: Ranked) -> tuple[np.ndarray, ...]:
        highest = np.array([r.highest if h is None else h for h in NUMBERS["max_grade"]])[:, None]
        stops = (2.0**r.top - 1) / 2**highest
        places = np.arange(1, len(r.top) + 1)
        goes_on = np.cumprod(1 - stops, axis=1) / np.where(stops < 1, 1 - stops, 1.0)
        values = np.array([(stops * goes_on / places).sum(axis=1), (stops / places).sum(axis=1)])
        return values.reshape(-1), np.ones(1)

    return Formulas(tuple(product(kinds, _decided("max_grade", *NUMBERS["max_grade"]))), parts, over)


# What F makes of precision and recall; of their hits over all items that are listed, relevant or both.
_F_OF: tuple[tuple[Habit, Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]], ...] = _table(
    *((Habit("", "beta", b), lambda p, q, _, b=b: over((1 + b * b) * p * q, b * b * p + q))
      for b in NUMBERS["beta"]),
    (Habit("a constant of 1e-6 is added to the divisor", known_of=("cornac",)),
     lambda p, q, _: 2 * p * q / (p + q + 1e-6)),
    ("it is the arithmetic mean of precision and recall", lambda p, q, _: (p + q) / 2),
    ("it is the geometric mean of precision and recall", lambda p, q, _: (p * q) ** 0.5),
    ("it is the smaller of precision and recall", lambda p, q, _: np.minimum(p, q)),
    ("it is precision times recall", lambda p, q, _: p * q),
    ("it is hits over the items that are listed, relevant or both (Jaccard)", lambda _p, _q, j: j),
    ("the factor 2 is missing", lambda p, q, _: over(p * q, p + q)),
)  # fmt: skip


def _f() -> Formulas:
    precisions, recalls = _quotients(_PRECISION), _quotients(_RECALL)

    def parts(r: Ranked) -> tuple[np.ndarray, ...]:
        union = len(set(r.items[: r.k])) + len(r.relevant) - len(r.places)
        p, q = over(*precisions.parts(r)), over(*recalls.parts(r))
        return (*np.broadcast_arrays(p[:, None], q[None, :]), over(len(r.places), union))

    def value(p: np.ndarray, q: np.ndarray, j: np.ndarray) -> np.ndarray:
        j = np.broadcast_to(np.reshape(j, (1, 1)), p.shape)
        return np.array([mean(p, q, j) for _, mean in _F_OF]).reshape(-1)

    every = product((o for o, _ in _F_OF), (o for o, *_ in _PRECISION), (o for o, *_ in _RECALL))
    return Formulas(tuple(every), parts, value, ("f1_of", "case", "means"))


_FORMULAS: dict[str, Callable[[], Formulas]] = {
    "ndcg": _ndcg,
    "dcg": _dcg,
    "map": _map,
    "mrr": lambda: _quotients(_MRR),
    "precision": lambda: _quotients(_PRECISION, pooled=True),
    "recall": lambda: _quotients(_RECALL, pooled=True),
    "f": _f,
    "capped_recall": lambda: _quotients(_CAPPED_RECALL, pooled=True),
    "hit": lambda: _quotients(_HIT),
    "hits": lambda: _quotients(_HITS),
    "r_precision": lambda: _quotients(_R_PRECISION),
    "rbp": _rbp,
    "err": _err,
}


@lru_cache(maxsize=len(_FORMULAS))
def formulas_of(metric: str) -> Formulas | None:
    """Return the formulas known of a metric, None if mistakes with it are not."""
    return _FORMULAS[metric]() if metric in _FORMULAS else None
