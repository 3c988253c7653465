"""Every ranking metric a second time: one case at a time, in plain Python, straight from its definition.

Nothing here is fast, and the engine shares only the `Conventions` value and what a metric declares (its needs
and parameters, not its definition), so that agreement of the two is evidence. Ties under `expected`,
`best` and `worst` are the mean, the best and the worst of every order, computed one by one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from itertools import groupby, permutations, product
from typing import Any

from recsys.conventions.decisions import DECISIONS, Conventions
from recsys.metrics.registry import METRICS

MISS = object()
UNJUDGED = object()

ALIASES = {
    "p": "precision",
    "prec": "precision",
    "r": "recall",
    "hitrate": "hit",
    "hit_rate": "hit",
    "hr": "hit",
    "success": "hit",
    "rr": "mrr",
    "ap": "map",
    "f1": "f",
    "fbeta": "f",
    "rprec": "r_precision",
    "mean_rank": "average_rank",
}
OVER = {"precision": "precision_over", "recall": "recall_over", "map": "ap_over", "gmap": "ap_over"}
COLUMNS = {"by": "kind", "of": "price"}  # what a parameter that names a column of items= is given
TOGETHER = {("ideal", "k"): {"gain": "binary"}}  # what a value of a decision asks for


class RefusedError(Exception):
    """The definition does not cover this request, or the conventions call the input an error."""


@dataclass(frozen=True)
class Request:
    """A metric with its parameters and cut-off, and how a user would type it."""

    name: str
    k: int | None = None
    params: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __str__(self) -> str:
        inside = ", ".join(
            f"{n}={v:g}" if isinstance(v, float) else f"{n}={v}" for n, v in self.params.items()
        )
        return self.name + (f"({inside})" if inside else "") + (f"@{self.k}" if self.k is not None else "")


@dataclass(frozen=True)
class Case:
    """One case with its ties resolved: the items at places 1, 2, …, and the truth they are compared with."""

    places: Sequence[Any]
    truth: Mapping[Any, float]
    k: int | None
    rules: Conventions
    params: Mapping[str, Any]
    n_items: int | None = None
    max_grade: float | None = None
    weights: Mapping[Any, float] | None = None

    @property
    def length(self) -> int:
        return len(self.places)

    @property
    def n_relevant(self) -> int:
        return sum(is_relevant(grade, self.rules) for grade in self.truth.values())

    @property
    def cut(self) -> int:
        """How many places are looked at."""
        return self.length if self.k is None else min(self.k, self.length)

    def relevant_at(self, place: int) -> bool:
        item = self.places[place - 1]
        return item in self.truth and is_relevant(self.truth[item], self.rules)

    def hit_places(self, k: int | None = None) -> list[int]:
        last = self.cut if k is None else min(k, self.length)
        return [place for place in range(1, last + 1) if self.relevant_at(place)]

    def weight(self, item: Any) -> float:
        return 1 if self.weights is None else self.weights[item]


def is_relevant(grade: float, rules: Conventions) -> bool:
    return grade > 0 and (rules.relevant_from is None or grade >= rules.relevant_from)


def gain(grade: float, rules: Conventions) -> float:
    if rules.gain == "grade":
        return grade
    if rules.gain == "binary":
        return 1
    if rules.gain == "exp2":
        return 2**grade - 1
    if rules.gain == "exp2_next":
        return 2 ** (grade + 1) - 1
    if isinstance(rules.gain, tuple):
        return dict(rules.gain)[grade]
    return float(rules.gain(grade))


def discount(place: int, rules: Conventions) -> float:
    if rules.discount == "log2":
        return 1 / math.log2(place + 1)
    if rules.discount == "log2_max2":
        return 1 / math.log2(max(place, 2))
    if rules.discount == "reciprocal":
        return 1 / place
    if isinstance(rules.discount, tuple):
        return rules.discount[place - 1] if place <= len(rules.discount) else 0.0
    return float(rules.discount(place))


def share(part: Any, whole: Any) -> Any:
    """A quotient, kept exact while both are whole; 0/0 is 0."""
    if whole == 0:
        return 0
    if isinstance(part, int | Fraction) and isinstance(whole, int | Fraction):
        return Fraction(part) / Fraction(whole)
    return part / whole


def hits(case: Case) -> Any:
    if case.weights is None:
        return len(case.hit_places())
    return math.fsum(case.weight(case.places[r - 1]) for r in case.hit_places())


def hit(case: Case) -> int:
    return 1 if case.hit_places() else 0


def precision_terms(case: Case) -> tuple[Any, Any]:
    k = case.length if case.k is None else case.k
    over = {"k": k, "list": min(k, case.length), "min": min(k, case.n_relevant)}
    return len(case.hit_places()), over[case.rules.precision_over]


def recall_terms(case: Case) -> tuple[Any, Any]:
    if case.weights is not None:
        if case.rules.recall_over == "min":
            raise RefusedError("min(k, relevant) counts items and cannot weigh them")
        weights = [case.weight(i) for i, grade in case.truth.items() if is_relevant(grade, case.rules)]
        return hits(case), math.fsum(weights)
    if case.rules.recall_over == "min":
        return capped_recall_terms(case)
    return len(case.hit_places()), case.n_relevant


def capped_recall_terms(case: Case) -> tuple[Any, Any]:
    return len(case.hit_places()), case.n_relevant if case.k is None else min(case.k, case.n_relevant)


def judged_terms(case: Case) -> tuple[Any, Any]:
    return sum(item in case.truth for item in case.places[: case.cut]), case.cut


def f_of(precision: Any, recall: Any, beta: float) -> Any:
    b2 = Fraction(beta) ** 2
    if not isinstance(precision, int | Fraction) or not isinstance(recall, int | Fraction):
        b2 = float(b2)
    return share((1 + b2) * precision * recall, b2 * precision + recall)


def f(case: Case) -> Any:
    return f_of(share(*precision_terms(case)), share(*recall_terms(case)), case.params.get("beta", 1))


def mrr(case: Case) -> Any:
    places = case.hit_places()
    return Fraction(1, places[0]) if places else 0


def sum_of_precisions(case: Case) -> Any:
    return sum(Fraction(n, place) for n, place in enumerate(case.hit_places(), start=1))


def average_precision(case: Case) -> Any:
    n_relevant, k = case.n_relevant, case.k
    over = {
        "min": n_relevant if k is None else min(k, n_relevant),
        "relevant": n_relevant,
        "hits": len(case.hit_places()),
        "k": case.length if k is None else k,
        "list": min(n_relevant, case.cut),
    }
    return share(sum_of_precisions(case), over[case.rules.ap_over])


def mar(case: Case) -> Any:
    return share(sum_of_precisions(case), case.n_relevant)


def dcg(case: Case) -> float:
    hits_and_places = [(case.places[place - 1], place) for place in case.hit_places()]
    return math.fsum(
        gain(case.truth[item], case.rules) * case.weight(item) * discount(place, case.rules)
        for item, place in hits_and_places
    )


def ideal_dcg(case: Case) -> float:
    if case.rules.ideal == "k":
        k = case.length if case.k is None else case.k
        return math.fsum(discount(place, case.rules) for place in range(1, k + 1))
    gains = sorted(
        (gain(g, case.rules) * case.weight(i) for i, g in case.truth.items() if is_relevant(g, case.rules)),
        reverse=True,
    )
    n = len(gains)
    if case.rules.ideal in ("reachable", "list") and case.k is not None:
        n = min(n, case.k)
    if case.rules.ideal == "list":
        n = min(n, case.length)
    return math.fsum(g * discount(place, case.rules) for place, g in enumerate(gains[:n], start=1))


def ndcg(case: Case) -> float:
    return share(dcg(case), ideal_dcg(case))


def rbp(case: Case) -> float:
    p = case.params.get("p", 0.8)
    return (1 - p) * math.fsum(p ** (place - 1) for place in case.hit_places())


def err(case: Case) -> float:
    value, still_looking = 0.0, 1.0
    for place in range(1, case.cut + 1):
        if not case.relevant_at(place):
            continue
        stops = (2 ** case.truth[case.places[place - 1]] - 1) / 2**case.max_grade
        value += still_looking * stops / place
        still_looking *= 1 - stops
    return value


def r_precision(case: Case) -> Any:
    return share(len(case.hit_places(case.n_relevant)), case.n_relevant)


def bpref(case: Case) -> Any:
    n_relevant = case.n_relevant
    most = min(n_relevant, len(case.truth) - n_relevant)
    total, above = Fraction(0), set()
    for place, item in enumerate(case.places, start=1):
        if case.relevant_at(place):
            total += 1 - (Fraction(min(len(above), most), most) if above else 0)
        elif item in case.truth:
            above.add(item)
    return share(total, n_relevant)


def rank_terms(case: Case) -> tuple[Any, Any]:
    return sum(case.hit_places()), len(case.hit_places())


def percentile_terms(case: Case) -> tuple[Any, Any]:
    return sum(share(place - 1, case.length - 1) for place in case.hit_places()), len(case.hit_places())


def expected_percentile_terms(case: Case) -> tuple[Any, Any]:
    grades = [case.truth[case.places[place - 1]] for place in case.hit_places()]
    shares = [share(place - 1, case.length - 1) for place in case.hit_places()]
    weighted = [float(part) * grade for part, grade in zip(shares, grades, strict=True)]
    return math.fsum(weighted), math.fsum(grades)


def auc(case: Case) -> Any:
    """Pair by pair: is the relevant one above the other one?"""
    ups = case.hit_places()
    downs = [place for place in range(1, case.length + 1) if place not in ups]
    return Fraction(sum(up < down for up in ups for down in downs), len(ups) * len(downs))


def pauc(case: Case) -> Any:
    """The relevant items against the best k of the others."""
    ups = case.hit_places(case.length)
    downs = [place for place in range(1, case.length + 1) if place not in ups]
    downs = downs if case.k is None else downs[: case.k]
    return Fraction(sum(up < down for up in ups for down in downs), len(ups) * len(downs))


def gauc_terms(case: Case) -> tuple[Any, Any]:
    by = {"candidates": case.length, "relevant": len(case.hit_places())}
    weight = by[case.params.get("weight", "candidates")]
    return weight * auc(case), weight


def confusion(case: Case) -> tuple[int, int, int, int]:
    tp = len(case.hit_places())
    fp = case.cut - tp
    fn = case.n_relevant - tp
    return tp, fp, fn, case.n_items - case.cut - fn


def accuracy(case: Case) -> Any:
    tp, _, _, tn = confusion(case)
    return Fraction(tp + tn, case.n_items)


def mcc(case: Case) -> float:
    tp, fp, fn, tn = confusion(case)
    return share(float(tp * tn - fp * fn), math.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)))


VALUES: dict[str, Callable[[Case], Any]] = {
    "f": f,
    "hit": hit,
    "hits": hits,
    "mrr": mrr,
    "map": average_precision,
    "gmap": average_precision,
    "mar": mar,
    "dcg": dcg,
    "ndcg": ndcg,
    "rbp": rbp,
    "err": err,
    "r_precision": r_precision,
    "bpref": bpref,
    "auc": auc,
    "pauc": pauc,
    "accuracy": accuracy,
    "mcc": mcc,
}
RATIOS: dict[str, Callable[[Case], tuple[Any, Any]]] = {
    "precision": precision_terms,
    "recall": recall_terms,
    "capped_recall": capped_recall_terms,
    "judged": judged_terms,
    "gauc": gauc_terms,
    "average_rank": rank_terms,
    "percentile_rank": percentile_terms,
    "expected_percentile_rank": expected_percentile_terms,
}
NAMES = frozenset(VALUES) | frozenset(RATIOS)
NEED_CANDIDATES = frozenset(name for name in NAMES if "candidates" in METRICS[name].needs)
NEED_CATALOGUE = frozenset(name for name in NAMES if "catalogue" in METRICS[name].needs)
NO_EXPECTATION = frozenset(name for name in NAMES if METRICS[name].ties == "refuse")
ALWAYS_POOLED = ("gauc", "expected_percentile_rank")
WEIGHABLE = frozenset(name for name in NAMES if METRICS[name].weighted)


def parameters_to_try(name: str) -> list[dict[str, Any]]:
    """None (or the column a metric cannot do without), and every other value of each decision it names."""
    columns = {n: COLUMNS[n] for n, default in METRICS[name].params.items() if n in COLUMNS and not default}
    default = Conventions()
    decisions = [d for d in METRICS[name].conventions if d in DECISIONS]
    others = [(d, value) for d in decisions for value in DECISIONS[d] if value != getattr(default, d)]
    return [columns, *({**columns, d: value, **TOGETHER.get((d, value), {})} for d, value in others)]


def request_conventions(
    name: str, params: Mapping[str, Any], conventions: Conventions
) -> tuple[Conventions, dict[str, Any]]:
    """The conventions as one request sees them, and the parameters that are its own."""
    own = {n: v for n, v in params.items() if n in METRICS[name].params}
    changes = [(OVER[name] if n == "over" else n, v) for n, v in params.items() if n not in own]
    return _apply_changes(conventions, name, tuple(changes)), own


@cache
def _apply_changes(conventions: Conventions, name: str, changes: tuple[tuple[str, Any], ...]) -> Conventions:
    return conventions.for_metric(name).but(**dict(changes))


def resolve(ranking: Sequence[Any], truth: Mapping[Any, float], rules: Conventions) -> list[list[Any]]:
    """Every order the ranking may stand for, all equally likely: one, unless ties are left open."""
    if not ranking or not isinstance(ranking[0], tuple):
        return [list(ranking)]
    best_first = sorted(ranking, key=lambda pair: -pair[1])
    groups = [[item for item, _ in tied] for _, tied in groupby(best_first, key=lambda pair: pair[1])]
    if rules.ties in ("expected", "best", "worst"):
        # Unjudged items are interchangeable; each distinct arrangement stands for equally many orders.
        known = [[item if item in truth else UNJUDGED for item in group] for group in groups]
        arrangements = [set(permutations(group)) for group in known]
        return [[item for group in order for item in group] for order in product(*arrangements)]
    return [[item for group in groups for item in order_of_ties(group, rules)]]


def has_ties(ranking: Sequence[Any]) -> bool:
    scores = [entry[1] for entry in ranking if isinstance(entry, tuple)]
    return len(set(scores)) < len(scores)


def order_of_ties(group: list[Any], rules: Conventions) -> list[Any]:
    if rules.ties == "given":
        return group
    if rules.ties == "by_id":
        return sorted(group)
    return sorted(group, reverse=rules.ties == "by_id_desc")


def count_repeats(order: list[Any], rules: Conventions) -> list[Any]:
    """An item listed twice: both count, or the second one is a miss that keeps its place."""
    if rules.duplicates == "all":
        return order
    places: list[Any] = []
    for item in order:
        repeat = item is not UNJUDGED and item in places
        if repeat and rules.duplicates == "error":
            raise RefusedError(f"{item!r} is listed twice")
        places.append(MISS if repeat else item)
    return places


def terms(
    name: str,
    params: Mapping[str, Any],
    k: int | None,
    ranking: Sequence[Any],
    truth: Mapping[Any, float],
    conventions: Conventions,
    *,
    n_items: int | None = None,
    complete: bool = False,
    max_grade: float | None = None,
    item_weights: Mapping[Any, float] | None = None,
) -> tuple[Any, tuple[Any, Any]] | None:
    """The value of one case and, for a ratio, its numerator and denominator; None leaves the case out."""
    rules, own = request_conventions(name, params, conventions)
    if name in NEED_CANDIDATES and not complete:
        raise RefusedError(f"{name} needs the whole ranking")
    if name in NEED_CATALOGUE and n_items is None:
        raise RefusedError(f"{name} needs the size of the catalogue")
    if name in NO_EXPECTATION and rules.ties == "expected" and has_ties(ranking):
        raise RefusedError(f"{name} has no expectation over ties")
    if item_weights is not None and name not in WEIGHABLE:
        raise RefusedError(f"{name} takes no item weights")
    top = rules.max_grade if rules.max_grade is not None else max_grade
    if top is None:
        top = max(truth.values(), default=0)
    cases = [
        Case(count_repeats(order, rules), truth, k, rules, own, n_items, top, item_weights)
        for order in resolve(ranking, truth, rules)
    ]
    empty = population(cases[0], name, rules)
    if empty is None:
        return None
    if rules.ties in ("best", "worst"):
        cases = [extreme_case(cases, name, rules)]
    if name in RATIOS and name not in NEED_CANDIDATES:
        pairs = [RATIOS[name](case) for case in cases]
        mean_pair = mean([n for n, _ in pairs]), mean([d for _, d in pairs])
        return (0 if empty else mean([share(*pair) for pair in pairs])), mean_pair
    if empty:
        return 0, (0, 0)
    if name in RATIOS:
        pairs = [RATIOS[name](case) for case in cases]
        return mean([share(*p) for p in pairs]), (mean([n for n, _ in pairs]), mean([d for _, d in pairs]))
    return mean([VALUES[name](case) for case in cases]), (0, 0)


def extreme_case(cases: list[Case], name: str, rules: Conventions) -> Case:
    """The order of equal scores with the best (worst) value, found by trying all of them."""

    def value(case: Case) -> Any:
        return share(*RATIOS[name](case)) if name in RATIOS else VALUES[name](case)

    highest = (rules.ties == "best") == (METRICS[name].better == "higher")
    return (max if highest else min)(cases, key=value)


def population(case: Case, name: str, rules: Conventions) -> bool | None:
    """None: not in the mean. True: in it, with the value 0. False: in it, with its own value."""
    no_truth, no_list = case.n_relevant == 0, case.length == 0
    if name == "judged":  # it counts every judgement, also those that are not relevant
        no_truth = not case.truth
    if (no_truth and rules.no_truth == "error") or (no_list and rules.no_list == "error"):
        raise RefusedError("a case without relevant items or without a list")
    if rules.no_truth == "unjudged" and not case.truth:
        return None
    if (no_truth and rules.no_truth == "skip") or (no_list and rules.no_list == "skip"):
        return None
    if name in NEED_CANDIDATES:
        n_hits = len(case.hit_places(case.length))
        pairs_needed = name in ("auc", "gauc", "pauc")
        if n_hits == 0 or (pairs_needed and n_hits == case.length):
            return None
    return no_truth or (no_list and name not in ("accuracy", "mcc"))  # those two have a value without a list


def mean(values: Iterable[Any], weights: Iterable[float] | None = None) -> Any:
    values = list(values)
    if weights is not None:
        weights = list(weights)
        return math.fsum(float(v) * w for v, w in zip(values, weights, strict=True)) / math.fsum(weights)
    if all(isinstance(v, int | Fraction) for v in values):
        return Fraction(sum(values)) / len(values)
    return math.fsum(float(v) for v in values) / len(values)


def score(
    name: str,
    params: Mapping[str, Any],
    k: int | None,
    ranking: Sequence[Any],
    truth: Mapping[Any, float],
    conventions: Conventions,
    *,
    n_items: int | None = None,
    complete: bool = False,
    max_grade: float | None = None,
    item_weights: Mapping[Any, float] | None = None,
) -> float | None:
    """The value of one case; None where it is not in the mean."""
    result = terms(
        name, params, k, ranking, truth, conventions,
        n_items=n_items, complete=complete, max_grade=max_grade, item_weights=item_weights,
    )  # fmt: skip
    return None if result is None else float(result[0])


def refuse_high_gains(truth: Mapping[Any, Mapping[Any, float]], rules: Conventions, weights: Any) -> None:
    for grades in truth.values():
        for item, grade in grades.items():
            if is_relevant(grade, rules) and gain(grade, rules) * weights.get(item, 1) > 1:
                raise RefusedError("an ideal of k gains of 1 is no ideal for higher gains")


def evaluate(
    lists: Mapping[Any, Sequence[Any]],
    truth: Mapping[Any, Mapping[Any, float]],
    request: Request,
    conventions: Conventions,
    *,
    n_items: int | None = None,
    catalogue: Iterable[Any] | None = None,
    complete: bool = False,
    case_weights: Mapping[Any, float] | None = None,
    item_weights: Mapping[Any, float] | None = None,
) -> tuple[float | None, dict[Any, float | None]]:
    """The value over all cases and of each case, None for what is not in the mean."""
    rules, own = request_conventions(request.name, request.params, conventions)
    max_grade = max((g for grades in truth.values() for g in grades.values()), default=0)
    known = None if catalogue is None else set(catalogue)
    if known is not None:
        n_items = len(known)
        truth = {case: restrict_truth(grades, known, rules) for case, grades in truth.items()}
    options = {
        "n_items": n_items, "complete": complete, "max_grade": max_grade, "item_weights": item_weights,
    }  # fmt: skip

    def over_cases(name: str, params: Mapping[str, Any], under: Conventions) -> dict[Any, Any]:
        return {
            case: terms(name, params, request.k, lists.get(case, ()), truth.get(case, {}), under, **options)
            for case in sorted(set(lists) | set(truth))
        }

    if request.name == "ndcg" and rules.ideal == "k":
        refuse_high_gains(truth, rules, item_weights or {})
    results = over_cases(request.name, request.params, conventions)
    weights = {case: 1 if case_weights is None else case_weights[case] for case in results}
    in_mean = {case: result for case, result in results.items() if result is not None}
    per_case = {case: None if result is None else float(result[0]) for case, result in results.items()}
    if not in_mean:
        return None, per_case
    mean_weights = None if case_weights is None else [weights[case] for case in in_mean]
    values = [value for value, _ in in_mean.values()]
    if request.name == "gmap":
        logs = [math.log(max(float(v), own.get("eps", 1e-5))) for v in values]
        return math.exp(mean(logs, mean_weights)), per_case
    if request.name == "f" and rules.f1_of == "means":
        parts = [
            mean([v for v, _ in filter(None, over_cases(part, {}, rules).values())], mean_weights)
            for part in ("precision", "recall")
        ]
        return float(f_of(*parts, own.get("beta", 1))), per_case
    if request.name in ALWAYS_POOLED or (request.name in RATIOS and rules.average == "pooled"):
        numerator, denominator = (
            math.fsum(float(pair[side]) * weights[case] for case, (_, pair) in in_mean.items())
            for side in (0, 1)
        )
        return float(share(numerator, denominator)), per_case
    return float(mean(values, mean_weights)), per_case


def restrict_truth(grades: Mapping[Any, float], known: set[Any], rules: Conventions) -> dict[Any, float]:
    """The truth of one case; items outside the catalogue stay, are dropped, or are refused."""
    outside = [item for item in grades if item not in known]
    if outside and rules.unknown_items == "error":
        raise RefusedError(f"{outside[0]!r} is not in the catalogue")
    return {i: g for i, g in grades.items() if rules.unknown_items == "miss" or i in known}
