"""What evaluators do beyond our decisions: descriptions of common mistakes and of habits of libraries.

A deviation changes the question (what is read), the cut-off, how users are brought together, the scale of the
values, or the whole formula of a metric; all else is still decided by conventions. A mistake is added as one
row here.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, permutations, product
from math import factorial, log, log2, log10, prod
from typing import Any, NamedTuple

import numpy as np

from recsys.conventions.presets import PRESETS

Question = Mapping[str, Any]
Rows = list[list[Any]]
_MOST_ORDERS = 720


class Ranked(NamedTuple):
    """One user: the gain at each place of the list (0 for a miss), those of all relevant items, k, and more.

    `rows` are the items of the list with their scores, `grades` all judgements, and `values` the decisions
    and parameters that are free.
    """

    gains: Sequence[float]
    relevant: Sequence[float]
    k: int
    rows: Sequence[Sequence[Any]]
    grades: Mapping[str, float]
    values: Mapping[str, Any]

    @property
    def ideal(self) -> Sequence[float]:
        return sorted(self.relevant, reverse=True)

    @property
    def top(self) -> Sequence[float]:
        return self.gains[: self.k]

    @property
    def places(self) -> list[int]:
        """The places of the hits among the first k."""
        return [place for place, gain in enumerate(self.top, start=1) if gain]

    @property
    def n_hits(self) -> int:
        return len(self.places)

    @property
    def last(self) -> int:
        """The place of the last hit, 0 if there is none."""
        return self.places[-1] if self.places else 0

    @property
    def items(self) -> list[str]:
        """The first k items."""
        return [item for item, _ in self.rows[: self.k]]


@dataclass(frozen=True)
class Deviation:
    """One thing done differently; `known_of` are presets whose library is known to do it.

    `questions` gives what is read instead, several where any of them may be; `decides` are the decisions that
    then have no other value; `reads` are decisions and parameters of the metric that the formula still asks;
    `metrics` are those it is tried on, all if there are none.
    """

    words: str
    questions: Callable[[Question], Iterator[Question]] | None = None
    cut: Callable[[int], int | None] | None = None
    combine: Callable[[Sequence[float]], float] | None = None
    formula: Callable[[Ranked], float] | None = None
    scale: float = 1.0
    decides: Mapping[str, Any] = field(default_factory=dict)
    reads: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    known_of: tuple[str, ...] = ()
    joins: bool = False  # it also occurs together with another one

    def __str__(self) -> str:
        return self.words


def _of_lists(change: Callable[[Rows], Rows]) -> Callable[[Question], Iterator[Question]]:
    def questions(question: Question) -> Iterator[Question]:
        yield {**question, "run": {user: change(rows) for user, rows in question["run"].items()}}

    return questions


def _of_users(
    change: Callable[[Rows, Mapping[str, float]], tuple[Rows, Mapping[str, float]]],
) -> Callable[[Question], Iterator[Question]]:
    """Return the same for lists and truth of a user together."""

    def questions(question: Question) -> Iterator[Question]:
        run, truth = dict(question["run"]), dict(question["truth"])
        for user in {**run, **truth}:
            run[user], truth[user] = change(run.get(user, []), truth.get(user, {}))
        yield {**question, "run": run, "truth": truth}

    return questions


def _tie_groups(rows: Rows) -> list[Rows]:
    return [list(group) for _, group in groupby(rows, key=lambda row: row[1])]


def _every_order(question: Question) -> Iterator[Question]:
    """Yield every order of equal scores, each with scores that leave no doubt."""
    users = list(question["run"])
    orders = []
    for user in users:
        groups = _tie_groups(question["run"][user])
        if prod(factorial(len(group)) for group in groups) > _MOST_ORDERS:
            orders.append([question["run"][user]])
        else:
            choices = product(*(permutations(group) for group in groups))
            orders.append([[row for group in choice for row in group] for choice in choices])
    for choice in product(*orders):
        run = {
            user: [[item, (len(rows) - at) / 64] for at, (item, _) in enumerate(rows)]
            for user, rows in zip(users, choice, strict=True)
        }
        yield {**question, "run": run}


def _repeats_in_truth(rows: Rows, grades: Mapping[str, float]) -> tuple[Rows, Mapping[str, float]]:
    seen: dict[str, int] = {}
    named, known = [], dict(grades)
    for item, score in rows:
        seen[item] = seen.get(item, 0) + 1
        name = item if seen[item] == 1 else f"{item}#{seen[item]}"
        if name != item and item in grades:
            known[name] = grades[item]
        named.append([name, score])
    return named, known


def _once(rows: Rows) -> Rows:
    return [row for at, row in enumerate(rows) if row[0] not in {item for item, _ in rows[:at]}]


def _missed_at_end(rows: Rows, grades: Mapping[str, float]) -> tuple[Rows, Mapping[str, float]]:
    listed = {item for item, _ in rows}
    return rows + [[item, 1 / 1024] for item in grades if item not in listed], grades


AS_KNOWN = Deviation("")
"""Nothing is done differently: the conventions decide all."""
QUESTIONS = (
    Deviation(
        "equal scores are in the reverse of the order they were given in",
        _of_lists(lambda rows: [row for group in _tie_groups(rows) for row in group[::-1]]),
        decides={"ties": "given"}, known_of=("torchmetrics",), joins=True,  # as torch.topk leaves some
    ),
    Deviation(
        "an item listed twice enters the truth twice as well", _of_users(_repeats_in_truth),
        decides={"duplicates": "first"}, known_of=("rectools", "torchmetrics", "evidently"), joins=True,
    ),
    Deviation(
        "an item listed twice is kept at its last place only, and the list closes up",
        _of_lists(lambda rows: _once(rows[::-1])[::-1]), decides={"duplicates": "first"},
    ),
    Deviation(
        "items judged not relevant (grade 0) count as relevant",
        _of_users(lambda rows, grades: (rows, {item: max(grade, 1.0) for item, grade in grades.items()})),
    ),
    Deviation(
        "relevant items that are not listed are put at the end of the list", _of_users(_missed_at_end),
        known_of=("torchmetrics", "evidently"), joins=True,
    ),
    Deviation(
        "lists are read from their end: the lowest score comes first",
        _of_lists(lambda rows: [[item, -score] for item, score in sorted(rows, key=lambda row: row[1])]),
    ),
    Deviation(
        "the cut-off k is not used: whole lists are read", cut=lambda _: None,
        known_of=tuple(PRESETS), joins=True,  # most libraries can be asked without one
    ),
    *(
        Deviation(f"the gain of a hit is {words}", decides={"gain": gain}, metrics=("dcg", "ndcg"))
        for words, gain in (
            ("2^grade", lambda grades: 2.0**grades),
            ("grade + 1", lambda grades: grades + 1.0),
            ("the square of its grade", lambda grades: grades**2),
            ("log2(grade + 1)", lambda grades: np.log2(grades + 1.0)),
        )
    ),
    Deviation("the first k + 1 places are read in place of k", cut=lambda k: k + 1),
    Deviation("the first k - 1 places are read in place of k", cut=lambda k: k - 1),
    Deviation(
        "the mean is taken over the users with a value above 0 only", known_of=("microsoft",),
        combine=lambda values: statistics.fmean([v for v in values if v] or [0.0]),
    ),
    Deviation("values are added over the users, and not divided by their number", combine=sum),
    Deviation("the median over the users is taken in place of the mean", combine=statistics.median),
    Deviation("values are percentages: 100 times what they should be", scale=100.0),
    Deviation(
        "equal scores are in an order that follows no rule known here", _every_order,
        decides={"ties": "given"},
        known_of=("torchmetrics", "recpack", "warprec", "recometrics", "ncf_evaluator"),
    ),
)  # fmt: skip
"""Another question than the one that was asked, another mean or another scale."""


def _dcg(gains: Sequence[float], discount: Callable[[int], float] = lambda r: log2(r + 1)) -> float:
    return sum(gain / discount(place) for place, gain in enumerate(gains, start=1))


def _over(a: float, b: float) -> float:
    return a / b if b else 0.0


def _ndcg(discount: Callable[[int], float]) -> Callable[[Ranked], float]:
    return lambda r: _over(_dcg(r.top, discount), _dcg(r.ideal[: r.k], discount))


def _average_precision(r: Ranked, precision: Callable[[int, int], float]) -> float:
    """Return the precision of the h-th hit at place p, added and divided as `ap_over` says."""
    divisor = {
        "min": min(r.k, len(r.relevant)),
        "relevant": len(r.relevant),
        "hits": r.n_hits,
        "k": r.k,
        "list": min(r.k, len(r.relevant), len(r.gains)),
    }[r.values["ap_over"]]
    return _over(sum(precision(h, p) for h, p in enumerate(r.places, start=1)), divisor)


def _precisions(r: Ranked) -> float:
    return sum(number / place for number, place in enumerate(r.places, start=1))


def _f1(r: Ranked, mean: Callable[[float, float], float]) -> float:
    return mean(r.n_hits / r.k, _over(r.n_hits, len(r.relevant)))


def _at_last_place(r: Ranked) -> float:
    """Average precision where every hit of a tied group has the group's last place."""
    last = [sum(other >= score for _, other in r.rows) for _, score in r.rows]
    found = [place for place, gain in zip(last, r.gains, strict=True) if gain]
    return _over(sum(sum(p <= place for p in found) / place for place in found), len(found))


_AP = {"reads": ("ap_over",)}
_GRADES = {"decides": {"gain": "grade"}}

# For each metric: the words, the formula, and what else is known of the deviation.
_FORMULAS: dict[str, tuple[tuple[Any, ...], ...]] = {
    "ndcg": (
        ("place r is discounted by log2(r + 2)", _ndcg(lambda r: log2(r + 2))),
        ("place r is discounted by log2(r + 2) in the list, by log2(r + 1) in the ideal list",
         lambda r: _over(_dcg(r.top, lambda p: log2(p + 2)), _dcg(r.ideal[: r.k]))),
        ("places from 2 on are discounted by 1 + log2(r)", _ndcg(lambda r: 1 + log2(r))),
        ("place r is discounted by ln(r + 1) in the list, by log2(r + 1) in the ideal list",
         lambda r: _over(_dcg(r.top, lambda p: log(p + 1)), _dcg(r.ideal[: r.k]))),
        ("places are not discounted", _ndcg(lambda _: 1.0)),
        ("place r is discounted by r + 1", _ndcg(lambda r: r + 1)),
        ("place r is discounted by the square root of r", _ndcg(lambda r: r**0.5)),
        ("the ideal list is the given list in its best order: relevant items it lacks are forgotten",
         lambda r: _over(_dcg(r.top), _dcg(sorted(r.top, reverse=True)))),
        ("the ideal list is the whole given list in its best order, cut at k",
         lambda r: _over(_dcg(r.top), _dcg(sorted(r.gains, reverse=True)[: r.k]))),
        ("the ideal list holds k hits of the highest gain",
         lambda r: _over(_dcg(r.top), _dcg([*r.ideal[:1]] * r.k))),
        ("the ideal list holds hits of gain 1, whatever the gains of the list",
         lambda r: _over(_dcg(r.top), _dcg([1.0] * min(r.k, len(r.relevant))))),
        ("the ideal list is in the order of the truth, not sorted",
         lambda r: _over(_dcg(r.top), _dcg(r.relevant[: r.k]))),
        ("the gain is 2^grade - 1 in the ideal list, the grade in the list",
         lambda r: _over(_dcg(r.top), _dcg([2**grade - 1 for grade in r.ideal[: r.k]])), _GRADES),
        ("the list is not cut at k, the ideal list is", lambda r: _over(_dcg(r.gains), _dcg(r.ideal[: r.k]))),
        ("the ideal list is cut at k + 1", lambda r: _over(_dcg(r.top), _dcg(r.ideal[: r.k + 1]))),
        ("the ideal list is cut at k - 1", lambda r: _over(_dcg(r.top), _dcg(r.ideal[: r.k - 1]))),
        ("the sum is not divided by that of an ideal list (dcg)", lambda r: _dcg(r.top)),
        ("the sum is divided by k in place of that of an ideal list", lambda r: _dcg(r.top) / r.k),
        ("the sum is divided by the length of the list in place of that of an ideal list",
         lambda r: _over(_dcg(r.top), min(r.k, len(r.gains)))),
    ),
    "dcg": (
        ("place r is discounted by log2(r + 2)", lambda r: _dcg(r.top, lambda p: log2(p + 2))),
        ("place r is discounted by ln(r + 1)", lambda r: _dcg(r.top, lambda p: log(p + 1))),
        ("place r is discounted by log10(r + 1)", lambda r: _dcg(r.top, lambda p: log10(p + 1))),
        ("places from 2 on are discounted by 1 + log2(r)", lambda r: _dcg(r.top, lambda p: 1 + log2(p))),
        ("places are not discounted", lambda r: sum(r.top)),
        ("place r is discounted by r + 1", lambda r: _dcg(r.top, lambda p: p + 1)),
        ("place r is discounted by the square root of r", lambda r: _dcg(r.top, lambda p: p**0.5)),
    ),
    "map": (
        ("it is the mean of precision@1 to precision@k, hit or not",
         lambda r: sum(sum(p <= n for p in r.places) / n for n in range(1, r.k + 1)) / r.k,
         {"known_of": ("elliot",)}),
        ("all relevant items of equal score have the last of their places, and k is not used",
         _at_last_place, {"known_of": ("cornac",), "decides": {"ties": "worst"}}),
        ("places are counted from 2: precision at place r divides by r + 1",
         lambda r: _average_precision(r, lambda h, p: h / (p + 1)), _AP),
        ("places are counted from 0: precision at place r divides by r - 1, at place 1 by 1",
         lambda r: _average_precision(r, lambda h, p: h / max(p - 1, 1)), _AP),
        ("1 / r of each hit is added in place of the precision there",
         lambda r: _average_precision(r, lambda _, p: 1 / p), _AP),
        ("the sum of precisions is divided by the length of the list",
         lambda r: _over(_precisions(r), min(r.k, len(r.gains)))),
        ("the sum of precisions is divided by the length of the whole list",
         lambda r: _over(_precisions(r), len(r.gains))),
        ("the sum of precisions is divided by max(k, relevant)",
         lambda r: _precisions(r) / max(r.k, len(r.relevant))),
        ("the sum of precisions is not divided", _precisions),
        ("it is the precision at the last hit only", lambda r: _over(r.n_hits, r.last)),
    ),
    "mrr": (
        ("places are counted from 2: the first hit at place r gives 1 / (r + 1)",
         lambda r: 1 / (r.places[0] + 1) if r.places else 0.0),
        ("places are counted from 0: the first hit at place r gives 1 / (r - 1), at place 1 it gives 1",
         lambda r: 1 / max(r.places[0] - 1, 1) if r.places else 0.0),
        ("the first hit at place r gives 1 / log2(r + 1)",
         lambda r: 1 / log2(r.places[0] + 1) if r.places else 0.0),
        ("it is the mean of 1 / r over all hits", lambda r: _over(sum(1 / p for p in r.places), r.n_hits)),
        ("it is the sum of 1 / r over all hits", lambda r: sum(1 / p for p in r.places)),
        ("it is the sum of 1 / r over all hits, divided by the relevant items",
         lambda r: _over(sum(1 / p for p in r.places), len(r.relevant))),
        ("it is 1 / r of the last hit", lambda r: _over(1, r.last)),
    ),
    "precision": (
        ("hits are divided by the length of the whole list", lambda r: _over(r.n_hits, len(r.gains))),
        ("hits are divided by k + 1", lambda r: r.n_hits / (r.k + 1)),
        ("hits are divided by k - 1", lambda r: _over(r.n_hits, r.k - 1)),
        ("the first k + 1 places are read, and their hits divided by k",
         lambda r: sum(map(bool, r.gains[: r.k + 1])) / r.k),
        ("hits are divided by the different items among the first k",
         lambda r: r.n_hits / len(set(r.items))),
        ("hits are divided by the judged items among the first k",
         lambda r: _over(r.n_hits, sum(item in r.grades for item in r.items))),
        ("hits are not divided (hits)", lambda r: float(r.n_hits)),
    ),
    "recall": (
        ("hits are divided by the length of the list", lambda r: _over(r.n_hits, min(r.k, len(r.gains)))),
        ("hits are divided by max(k, relevant)", lambda r: r.n_hits / max(r.k, len(r.relevant))),
        ("hits are divided by the relevant items of the list",
         lambda r: _over(r.n_hits, sum(map(bool, r.gains)))),
        ("hits are divided by all judged items, relevant or not", lambda r: r.n_hits / len(r.grades)),
        ("hits are divided by one more than the relevant items", lambda r: r.n_hits / (len(r.relevant) + 1)),
        ("items count by their grade: grades of the hits over grades of all relevant items",
         lambda r: sum(r.top) / sum(r.relevant), _GRADES),
        ("hits are not divided (hits)", lambda r: float(r.n_hits)),
    ),
    "f": (
        ("a constant of 1e-6 is added to the divisor",
         lambda r: _f1(r, lambda p, q: 2 * p * q / (p + q + 1e-6)), {"known_of": ("cornac",)}),
        ("it is the arithmetic mean of precision and recall", lambda r: _f1(r, lambda p, q: (p + q) / 2)),
        ("it is the geometric mean of precision and recall", lambda r: _f1(r, lambda p, q: (p * q) ** 0.5)),
        ("it is the smaller of precision and recall", lambda r: _f1(r, min)),
        ("it is precision times recall", lambda r: _f1(r, lambda p, q: p * q)),
        ("it is hits over the items that are listed, relevant or both (Jaccard)",
         lambda r: r.n_hits / (len(set(r.items)) + len(r.relevant) - r.n_hits)),
        ("the factor 2 is missing", lambda r: _f1(r, lambda p, q: _over(p * q, p + q))),
    ),
    "hit": (
        ("it is the number of hits (hits)", lambda r: float(r.n_hits)),
        ("it is 1 only where every relevant item is found", lambda r: float(r.n_hits == len(r.relevant))),
        ("only the first place is read", lambda r: float(r.top[0] > 0)),
    ),
    "rbp": (
        ("the sum is not multiplied by 1 - p",
         lambda r: sum(r.values["p"] ** (place - 1) for place in r.places), {"reads": ("p",)}),
        ("place r weighs p^r in place of p^(r - 1)",
         lambda r: (1 - r.values["p"]) * sum(r.values["p"] ** place for place in r.places),
         {"reads": ("p",)}),
    ),
    "err": (
        ("the user never stops: hits at earlier places take nothing from later ones",
         lambda r: sum((2**g - 1) / 2 ** (r.values["max_grade"] or 1.0) / p for p, g in enumerate(r.top, 1)),
         {"reads": ("max_grade",), **_GRADES}),
    ),
}  # fmt: skip
FORMULAS = tuple(
    Deviation(words, formula=formula, metrics=(metric,), **(rest[0] if rest else {}))
    for metric, rows in _FORMULAS.items()
    for words, formula, *rest in rows
)
"""Another formula for one metric; what is relevant, gains, ties, repeats and who is in the mean are decided
as always."""


def deviations_for(metric: str, *, has_cut: bool) -> tuple[Deviation, ...]:
    """Return those that are tried on a metric, the most particular first."""
    return tuple(
        one
        for one in (*QUESTIONS, *FORMULAS)
        if (not one.metrics or metric in one.metrics) and (has_cut or one.cut is None)
    )


def both(first: Deviation, second: Deviation) -> Deviation | None:
    """Return two deviations at once; None if they are about the same thing."""
    for part in ("cut", "combine", "formula"):
        if getattr(first, part) is not None and getattr(second, part) is not None:
            return None
    one, two = first.questions, second.questions
    if (
        one is not None and two is not None and {*first.decides} & {*second.decides}
    ) or one is two is not None:
        return None

    def questions(question: Question) -> Iterator[Question]:
        for changed in [question] if one is None else one(question):
            yield from [changed] if two is None else two(changed)

    return replace(
        first,
        words=f"{first.words}; {second.words}",
        questions=questions,
        cut=first.cut or second.cut,
        combine=first.combine or second.combine,
        formula=first.formula or second.formula,
        scale=first.scale * second.scale,
        reads=first.reads + second.reads,
        decides={**first.decides, **second.decides},
        known_of=tuple(name for name in first.known_of if name in second.known_of),
    )
