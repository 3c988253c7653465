"""Every ranking metric a second time: one case at a time, in plain Python, straight from its definition.

Nothing here is fast, and the engine shares only the `Conventions` value and what a metric declares (its needs
and parameters, not its definition), so that agreement of the two is evidence. Ties under `expected`,
`best` and `worst` are the mean, the best and the worst of every order, computed one by one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
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
    "set_p": "set_precision",
    "infap": "inf_ap",
}
OVER = {
    "precision": "precision_over", "recall": "recall_over", "map": "ap_over", "gmap": "ap_over",
    "accuracy": "accuracy_over", "mcc": "accuracy_over",
}  # fmt: skip
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
    pooled: Collection[Any] = ()

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
        if grade not in dict(rules.gain):
            raise RefusedError(f"the table has no gain for {grade}")
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


def count(case: Case) -> int:
    what = case.params.get("what", "listed")
    if what == "not_relevant":
        listed = [item for item in case.places if item in case.truth]
        return sum(not is_relevant(case.truth[item], case.rules) for item in listed)
    return case.length if what == "listed" else case.n_relevant


def utility(case: Case) -> float:
    tp = len(case.hit_places())
    fp, fn = case.length - tp, case.n_relevant - tp
    weights = [case.params.get(n, 0.0) for n in ("missed", "rest")]
    others = weights[0] * fn + weights[1] * ((case.n_items or 0) - tp - fp - fn)
    return case.params.get("a", 1.0) * tp + case.params.get("b", -1.0) * fp + others


def r_precision_at(case: Case) -> Any:
    cut = int(case.params.get("multiple", 1.0) * case.n_relevant + 0.9)
    return share(len(case.hit_places(cut)), cut)


def first_hits(case: Case) -> list[tuple[int, float]]:
    """Place and gain of every relevant item that was found, at its first place only."""
    firsts = {case.places[place - 1]: place for place in reversed(case.hit_places())}
    return sorted((place, gain(case.truth[item], case.rules)) for item, place in firsts.items())


def best_gains(case: Case) -> list[float]:
    grades = [grade for grade in case.truth.values() if is_relevant(grade, case.rules)]
    return sorted((gain(grade, case.rules) for grade in grades), reverse=True)


def binary_g(case: Case) -> float:
    places = case.hit_places()
    total = math.fsum(1 / math.log2(2 + place - number) for number, place in enumerate(places, start=1))
    return share(total, case.n_relevant)


def g_measure(case: Case) -> float:
    best, total, so_far = best_gains(case), 0.0, 0.0
    for place, own in first_hits(case):
        so_far += own
        cost = math.fsum(max(1, one) for one in best[:place]) + max(0, place - len(best))
        total += own / math.log2(2 + cost - so_far)
    return share(total, math.fsum(best))


def ndcg_after(case: Case, place: int, ideal_places: int) -> float:
    found = math.fsum(own / math.log2(at + 1) for at, own in first_hits(case) if at <= place)
    best = best_gains(case)[:ideal_places]
    return share(found, math.fsum(own / math.log2(at + 1) for at, own in enumerate(best, start=1)))


def ndcg_rel(case: Case) -> float:
    places = [place for place, _ in first_hits(case)]
    values = [ndcg_after(case, place, place) for place in places]
    values += [ndcg_after(case, case.length, case.n_relevant)] * (case.n_relevant - len(places))
    return share(math.fsum(values), case.n_relevant)


def r_ndcg(case: Case) -> float:
    best = best_gains(case)
    ends = [at for at in range(1, len(best) + 1) if at == len(best) or best[at] < best[at - 1]]
    values = [ndcg_after(case, end, end) for end in ends]
    if case.length >= len(best) + 2:
        values.append(ndcg_after(case, case.length, len(best)))
    return share(math.fsum(values), len(values))


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
    shown = case.k if case.rules.accuracy_over == "k" else case.cut
    tp = len(case.hit_places())
    fn = max(case.n_relevant - tp, 0)
    if case.n_items < shown + fn:
        raise RefusedError("more items are shown or relevant than there are")
    return tp, shown - tp, case.n_relevant - tp, case.n_items - shown - (case.n_relevant - tp)


def accuracy(case: Case) -> Any:
    tp, _, _, tn = confusion(case)
    return Fraction(tp + tn, case.n_items)


def mcc(case: Case) -> float:
    tp, fp, fn, tn = confusion(case)
    return share(float(tp * tn - fp * fn), math.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)))


def precisions_from(case: Case, recall: float) -> list[Fraction]:
    """Precision at every place by which enough hits for this recall have been seen."""
    needed = int(recall * case.n_relevant + 0.9)
    hits_by = [len(case.hit_places(place)) for place in range(1, case.length + 1)]
    return [Fraction(n, place) for place, n in enumerate(hits_by, start=1) if n >= needed]


def iprec(case: Case) -> Any:
    return max(precisions_from(case, case.params.get("recall", 0.5)), default=0)


def eleven_point(case: Case) -> Any:
    return sum(max(precisions_from(case, tenths / 10), default=0) for tenths in range(11)) / Fraction(11)


def hits_of_set(case: Case) -> int:
    return len(case.hit_places(case.length))


def set_f(case: Case) -> Any:
    root = math.sqrt(case.params.get("beta", 1))  # f of the same weight
    n = hits_of_set(case)
    return f_of(float(share(n, case.length)), float(share(n, case.n_relevant)), root)


def inf_ap(case: Case) -> float:
    """Each hit counts itself and the relevant items above it, as the judged ones suggest, over its place."""
    total, relevant, other, pooled = 0.0, 0, set(), 0
    for place, item in enumerate(case.places, start=1):
        if case.relevant_at(place):
            judged = relevant + len(other)
            inferred = (judged + pooled) * (relevant + 1e-5) / (judged + 2e-5)
            total += (1 + inferred) / place
            relevant += 1
        elif item in case.truth:
            other.add(item)
        elif item in case.pooled:
            pooled += 1
    return share(total, case.n_relevant)


def compat(case: Case) -> float:
    p = case.params.get("p", 0.95)
    wanted = [item for item, grade in case.truth.items() if is_relevant(grade, case.rules)]
    places = [*case.places]
    found = {item: places.index(item) if item in places else len(places) for item in wanted}
    ideal = sorted(wanted, key=lambda item: (-case.truth[item], found[item]))
    depth = max(len(places), len(ideal)) if case.k is None else case.k

    def overlap(one: Sequence[Any], other: Sequence[Any]) -> float:
        common = [len(set(one[:d]) & set(other[:d])) / d for d in range(1, depth + 1)]
        return math.fsum(p ** (d - 1) * part for d, part in enumerate(common, start=1))

    if case.params.get("over") == "weights":
        return share(overlap(places, ideal), math.fsum(p**d for d in range(depth)))
    return share(overlap(places, ideal), overlap(ideal, ideal))


def gain_at(case: Case, place: int) -> float:
    """From 0 for the least grade to 1 for the highest one."""
    if place > case.length or not case.relevant_at(place):
        return 0.0
    least, grade = case.params.get("min_grade", 0.0), case.truth[case.places[place - 1]]
    if case.max_grade <= least:
        raise RefusedError("the highest grade is not above the lowest")
    return (min(max(grade, least), case.max_grade) - least) / (case.max_grade - least)


def inst(case: Case) -> float:
    target, depth = case.params.get("target", 1.0), int(case.params.get("depth", 1000))
    gains = [gain_at(case, place) for place in range(1, depth + 1)]
    reach, seen = [1.0], 0.0
    for place in range(1, depth):
        seen += gains[place - 1]
        missing = target - seen
        reach.append(reach[-1] * ((place + target + missing - 1) / (place + target + missing)) ** 2)
    return math.fsum(w * g for w, g in zip(reach, gains, strict=True)) / math.fsum(reach)


def bpm(case: Case) -> float:
    gained = 0.0
    for place in range(1, case.k + 1):
        gained += gain_at(case, place)
        if gained >= case.params.get("target", 1.0):
            break
    return gained / place


def sdcg(case: Case) -> float:
    weights = {place: 1 / math.log2(place + 1) for place in range(1, case.k + 1)}
    return math.fsum(gain_at(case, r) * w for r, w in weights.items()) / math.fsum(weights.values())


def graded_rbp(case: Case) -> float:
    p = case.params.get("p", 0.8)
    shown = [(place, case.truth[case.places[place - 1]]) for place in case.hit_places()]
    return (1 - p) * math.fsum(gain(grade, case.rules) * p ** (place - 1) for place, grade in shown)


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
    "count": count,
    "utility": utility,
    "r_precision_at": r_precision_at,
    "binary_g": binary_g,
    "g": g_measure,
    "ndcg_rel": ndcg_rel,
    "r_ndcg": r_ndcg,
    "auc": auc,
    "pauc": pauc,
    "accuracy": accuracy,
    "mcc": mcc,
    "iprec": iprec,
    "eleven_point": eleven_point,
    "set_precision": lambda case: share(hits_of_set(case), case.length),
    "set_recall": lambda case: share(hits_of_set(case), case.n_relevant),
    "set_f": set_f,
    "set_map": lambda case: share(hits_of_set(case) ** 2, case.length * case.n_relevant),
    "set_relative_precision": lambda case: share(hits_of_set(case), min(case.length, case.n_relevant)),
    "inf_ap": inf_ap,
    "compat": compat,
    "inst": inst,
    "bpm": bpm,
    "sdcg": sdcg,
    "graded_rbp": graded_rbp,
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
NO_EXPECTATION = frozenset(name for name in NAMES if METRICS[name].tied.ties == "refuse")
NO_ORDER = frozenset(name for name in VALUES if METRICS[name].tied.tie_order == "unknown")
ALWAYS_POOLED = ("gauc", "expected_percentile_rank")
WEIGHABLE = frozenset(name for name in NAMES if METRICS[name].truth.weighted)


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


def resolve(
    ranking: Sequence[Any], truth: Mapping[Any, float], rules: Conventions, pooled: Collection[Any] = ()
) -> list[list[Any]]:
    """Every order the ranking may stand for, all equally likely: one, unless ties are left open."""
    if not ranking or not isinstance(ranking[0], tuple):
        return [list(ranking)]
    best_first = sorted(ranking, key=lambda pair: -pair[1])
    groups = [[item for item, _ in tied] for _, tied in groupby(best_first, key=lambda pair: pair[1])]
    if rules.ties in ("expected", "best", "worst"):
        # Unjudged items are interchangeable; each distinct arrangement stands for equally many orders.
        known = [[i if i in truth or i in pooled else UNJUDGED for i in group] for group in groups]
        arrangements = [set(permutations(group)) for group in known]
        return [[item for group in order for item in group] for order in product(*arrangements)]
    return [[item for group in groups for item in order_of_ties(group, rules)]]


def judged_part(ranking: Sequence[Any], truth: Mapping[Any, float], rules: Conventions) -> Sequence[Any]:
    """The ranking as places are given: without unjudged items, if the rules take them out."""
    if rules.duplicates == "collapse":
        ranking = collapsed(ranking)
    if rules.judged_only == "no":
        return ranking
    return [entry for entry in ranking if (entry[0] if isinstance(entry, tuple) else entry) in truth]


def collapsed(ranking: Sequence[Any]) -> list[Any]:
    """The list without the repeats: of several entries of an item the one with the highest score stays."""
    if ranking and isinstance(ranking[0], tuple):
        ranking = sorted(ranking, key=lambda entry: -entry[1])
        return [e for at, e in enumerate(ranking) if e[0] not in [item for item, _ in ranking[:at]]]
    return list(dict.fromkeys(ranking))


def without_negatives(truth: Mapping[Any, Any], rules: Conventions) -> dict[Any, dict[Any, float]]:
    """The truth of all cases; a negative grade is refused, or is no judgement."""
    if rules.negative_grades == "error" and any(g < 0 for grades in truth.values() for g in grades.values()):
        raise RefusedError("a negative grade")
    return {case: {i: g for i, g in grades.items() if g >= 0} for case, grades in truth.items()}


def has_ties(ranking: Sequence[Any]) -> bool:
    scores = [entry[1] for entry in ranking if isinstance(entry, tuple)]
    return len(set(scores)) < len(scores)


def refuse_ties(name: str, ranking: Sequence[Any], rules: Conventions) -> None:
    if name in NO_EXPECTATION and rules.ties == "expected" and has_ties(ranking):
        raise RefusedError(f"{name} has no expectation over ties")
    if name in NO_ORDER and rules.ties in ("best", "worst") and has_ties(ranking):
        raise RefusedError(f"nothing is known of the best and the worst order of {name}")


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


def refuse_small_catalogue(name: str, k: int | None, rules: Conventions, n_items: int | None) -> None:
    if name in NEED_CATALOGUE and n_items is None:
        raise RefusedError(f"{name} needs the size of the catalogue")
    if OVER.get(name) == "accuracy_over" and rules.accuracy_over == "k" and k > n_items:
        raise RefusedError(f"{name} cannot show more items than there are")


def terms(
    name: str,
    params: Mapping[str, Any],
    k: int | None,
    ranking: Sequence[Any],
    truth: Mapping[Any, float],
    conventions: Conventions,
    *,
    n_items: int | None = None,
    full_ranking: bool = False,
    max_grade: float | None = None,
    item_weights: Mapping[Any, float] | None = None,
    pooled: Collection[Any] = (),
) -> tuple[Any, tuple[Any, Any]] | None:
    """The value of one case and, for a ratio, its numerator and denominator; None leaves the case out."""
    rules, own = request_conventions(name, params, conventions)
    given_none, ranking = not ranking, judged_part(ranking, truth, rules)
    if name in NEED_CANDIDATES and not full_ranking:
        raise RefusedError(f"{name} needs the whole ranking")
    refuse_small_catalogue(name, k, rules, n_items)
    refuse_ties(name, ranking, rules)
    if item_weights is not None and name not in WEIGHABLE:
        raise RefusedError(f"{name} takes no item weights")
    top = rules.max_grade if rules.max_grade is not None else max_grade
    if top is None:
        top = max(truth.values(), default=0)
    cases = [
        Case(count_repeats(order, rules), truth, k, rules, own, n_items, top, item_weights, pooled)
        for order in resolve(ranking, truth, rules, pooled)
    ]
    empty = population(cases[0], name, rules, given_none=given_none)
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


def population(case: Case, name: str, rules: Conventions, *, given_none: bool) -> bool | None:
    """None: not in the mean. True: in it, with the value 0. False: in it, with its own value."""
    no_truth, no_list = case.n_relevant == 0, case.length == 0
    if METRICS[name].population == "judged":  # it counts every judgement, also those that are not relevant
        no_truth = not case.truth
    if (no_truth and rules.no_truth == "error") or (given_none and rules.no_list == "error"):
        raise RefusedError("a case without relevant items or without a list")
    if rules.no_truth == "unjudged" and not case.truth:
        return None
    if (no_truth and rules.no_truth == "skip") or (given_none and rules.no_list == "skip"):
        return None
    if name in NEED_CANDIDATES:
        n_hits = len(case.hit_places(case.length))
        pairs_needed = name in ("auc", "gauc", "pauc")
        if n_hits == 0 or (pairs_needed and n_hits == case.length):
            return None
    return no_truth or (no_list and METRICS[name].empty is not None)  # some have a value without a list


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
    full_ranking: bool = False,
    max_grade: float | None = None,
    item_weights: Mapping[Any, float] | None = None,
) -> float | None:
    """The value of one case; None where it is not in the mean."""
    result = terms(
        name, params, k, ranking, truth, conventions,
        n_items=n_items, full_ranking=full_ranking, max_grade=max_grade, item_weights=item_weights,
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
    full_ranking: bool = False,
    case_weights: Mapping[Any, float] | None = None,
    item_weights: Mapping[Any, float] | None = None,
) -> tuple[float | None, dict[Any, float | None]]:
    """The value over all cases and of each case, None for what is not in the mean."""
    rules, own = request_conventions(request.name, request.params, conventions)
    pooled = {case: {i for i, g in grades.items() if g < 0} for case, grades in truth.items()}
    truth = without_negatives(truth, rules)
    max_grade = max((g for grades in truth.values() for g in grades.values()), default=0)
    known = None if catalogue is None else set(catalogue)
    if known is not None:
        n_items = len(known)
        truth = {case: restrict_truth(grades, known, rules) for case, grades in truth.items()}
    options = {
        "n_items": n_items, "full_ranking": full_ranking, "max_grade": max_grade,
        "item_weights": item_weights,
    }  # fmt: skip

    cases = [
        (case, lists.get(case, ()), truth.get(case, {}), pooled.get(case, ()))
        for case in sorted(set(lists) | set(truth))
    ]

    def over_cases(name: str, params: Mapping[str, Any], under: Conventions) -> dict[Any, Any]:
        return {
            case: terms(name, params, request.k, listed, grades, under, pooled=unjudged, **options)
            for case, listed, grades, unjudged in cases
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
