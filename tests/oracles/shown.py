"""Every metric about the items shown a second time: in plain Python, straight from its definition.

Like ranking.py it shares no definition with the engine. `Known` is what evaluate gets
besides lists and truth, as dicts.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from oracles.ranking import (
    Request,
    discount,
    is_relevant,
    judged_part,
    request_conventions,
    without_negatives,
)
from recsys.conventions.decisions import Conventions
from recsys.metrics.registry import METRICS


@dataclass(frozen=True)
class Known:
    """What metrics about the items shown need besides lists and truth."""

    train: Mapping[Any, Sequence[Any]] = field(default_factory=dict)
    embeddings: Mapping[Any, Sequence[float]] = field(default_factory=dict)
    kinds: Mapping[Any, str] = field(default_factory=dict)
    price: Mapping[Any, float] = field(default_factory=dict)
    reference: Mapping[Any, Sequence[Any]] = field(default_factory=dict)
    catalogue: Sequence[Any] | None = None
    never: Sequence[Any] = ()

    def keywords(self) -> dict[str, Any]:
        """These data as keywords of evaluate."""
        return {
            "train": dict(self.train),
            "embeddings": dict(self.embeddings),
            "items": {"kind": dict(self.kinds), "price": dict(self.price)},
            "reference": dict(self.reference),
            "intents": "kind",
            "catalogue": self.catalogue,
        }

    def popularity(self, item: Any) -> int:
        return sum(item in set(had) for had in self.train.values())

    @property
    def n_users(self) -> int:
        return sum(bool(had) for had in self.train.values())

    def labels(self, item: Any) -> list[str]:
        return sorted({part for part in self.kinds.get(item, "").split("|") if part})


@dataclass(frozen=True)
class List:
    """One case: what it was shown, what was relevant to it, and what is known."""

    case: Any
    listed: Sequence[Any]
    truth: Mapping[Any, float]
    k: int | None
    rules: Conventions
    params: Mapping[str, Any]
    known: Known
    given_none: bool = False

    @property
    def first(self) -> list[Any]:
        """The items in the first k places, with their repeats."""
        return list(self.listed if self.k is None else self.listed[: self.k])

    @property
    def shown(self) -> list[Any]:
        """The items in the first k places that count."""
        return self.first if self.rules.duplicates == "all" else list(dict.fromkeys(self.first))

    @property
    def places(self) -> list[tuple[int, Any]]:
        """Places and items that count, in the first k."""
        repeats_count = self.rules.duplicates == "all"
        return [(r, i) for r, i in enumerate(self.first, 1) if repeats_count or i not in self.first[: r - 1]]

    @property
    def hits(self) -> list[tuple[int, Any]]:
        return [(r, i) for r, i in self.places if i in self.relevant]

    @property
    def relevant(self) -> list[Any]:
        return [item for item, grade in self.truth.items() if is_relevant(grade, self.rules)]

    def param(self, name: str, default: Any) -> Any:
        return self.params.get(name, default)


def mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else 0.0


def ordered(entries: Sequence[Any], rules: Conventions) -> list[Any]:
    """A list as it is shown: equal scores by id, unless the conventions say given or by_id_desc."""
    if not entries or not isinstance(entries[0], tuple):
        return list(entries)
    if rules.ties == "given":
        return [item for item, _ in sorted(entries, key=lambda pair: -pair[1])]
    by_id = sorted(entries, key=lambda pair: pair[0], reverse=rules.ties == "by_id_desc")
    return [item for item, _ in sorted(by_id, key=lambda pair: -pair[1])]


def novelty(x: List) -> float | None:
    everyone = x.known.n_users
    if x.param("over", "users") == "events":
        everyone = sum(len(set(had)) for had in x.known.train.values())
    counts = [x.known.popularity(i) for i in x.shown]
    if x.param("cold", "one") == "drop":
        counts = [n for n in counts if n > 0]
        if x.shown and not counts:
            return None
    if x.param("cold", "one") == "zero":
        counts = [n or max(everyone, 1) for n in counts]
    return mean([math.log2(max(everyone, 1) / max(n, 1)) for n in counts])


def surprisal(x: List) -> float:
    filled = len(x.shown) / x.k if x.k and x.param("over", "list") == "k" else 1.0
    bits = [math.log2(x.known.n_users / max(x.known.popularity(i), 1)) for i in x.shown]
    return mean(bits) / math.log2(x.known.n_users) * filled if x.known.n_users > 1 else 0.0


def average_popularity(x: List) -> float:
    if x.param("over", "none") == "events":
        return mean([sum(list(had).count(i) for had in x.known.train.values()) for i in x.shown])
    over = x.known.n_users if x.param("over", "none") == "users" else 1
    return mean([x.known.popularity(i) for i in x.shown]) / max(over, 1)


def attention(x: List, place: int, *, weight: str, p: float) -> float:
    """The weight of a place by the name and the p of the request, else by these."""
    weight, p = x.param("weight", weight), x.param("p", p)
    named = {"none": lambda _: 1.0, "geometric": lambda r: p ** (r - 1)}
    return (named.get(weight) or (lambda r: discount(r, x.rules.but(discount=weight))))(place)


def epc(x: List) -> float:
    users = x.param("users", None) or x.known.n_users
    weights = [attention(x, r, weight="log2", p=0.85) for r, _ in x.places]
    total = math.fsum(
        w * (1 - x.known.popularity(i) / max(users, 1))
        for w, (_, i) in zip(weights, x.places, strict=True)
        if x.param("relevance", "yes") == "no" or i in x.relevant
    )
    return total / math.fsum(weights) if weights else 0.0


def mean_popularities(x: List) -> tuple[float, float] | None:
    """Of the items shown and of those the user had; None if there are none on one side."""
    had = set(x.known.train.get(x.case, ()))
    if not had or not x.shown:
        return None
    return mean([x.known.popularity(i) for i in x.shown]), mean([x.known.popularity(i) for i in had])


def popularity_lift(x: List) -> float | None:
    means = mean_popularities(x)
    return None if means is None else means[0] / means[1] - 1


def group_amounts(x: List, amounts: Mapping[Any, float]) -> dict[Any, float]:
    """Amounts of items summed by group, if the request names a column; in equal parts for each of several."""
    if x.param("by", None) is None:
        return dict(amounts)
    out: Counter[str] = Counter()
    for item, amount in amounts.items():
        for label in x.known.labels(item):
            out[label] += amount / len(x.known.labels(item))
    return dict(out)


def exposures(x: List) -> tuple[dict[Any, float], dict[Any, float]]:
    """What the list gives to each item or group, and what it is due: the mean over all best rankings."""
    system: Counter[Any] = Counter()
    for r, i in x.places:
        system[i] += attention(x, r, weight="geometric", p=0.5)
    target: dict[Any, float] = {}
    for grade in {x.truth[i] for i in x.relevant}:
        above = sum(x.truth[i] > grade for i in x.relevant)
        equal = [i for i in x.relevant if x.truth[i] == grade]
        places = range(above + 1, above + len(equal) + 1)
        weights = [attention(x, r, weight="geometric", p=0.5) for r in places if x.k is None or r <= x.k]
        target |= dict.fromkeys(equal, math.fsum(weights) / len(equal))
    return group_amounts(x, system), group_amounts(x, target)


def ee_d(x: List) -> float:
    return math.fsum(v * v for v in exposures(x)[0].values())


def ee_r(x: List) -> float:
    system, target = exposures(x)
    return math.fsum(v * target.get(i, 0.0) for i, v in system.items())


def ee_l(x: List) -> float:
    system, target = exposures(x)
    return math.fsum((system.get(i, 0.0) - target.get(i, 0.0)) ** 2 for i in {*system, *target})


def awrf(x: List) -> float | None:
    amounts: Counter[Any] = Counter()
    for r, i in x.places:
        amounts[i] += attention(x, r, weight="geometric", p=0.5)
    shares = to_shares(group_amounts(x, amounts))
    if not shares:
        return None
    target = x.param("target", "catalogue")
    if ":" in target:
        due = {part.split(":")[0]: float(part.split(":")[1]) for part in target.split("|")}
    else:
        population = x.known.kinds if x.known.catalogue is None else x.known.catalogue
        each = {i: x.known.popularity(i) if target == "train" else 1.0 for i in population}
        due = group_amounts(x, each)
        if target == "equal":
            due = {g: 1.0 for g, v in due.items() if v}
    due = to_shares(due)
    pairs = [(shares.get(g, 0.0), due.get(g, 0.0)) for g in {*shares, *due}]
    name = x.param("distance", "total_variation")
    if name == "total_variation":
        return math.fsum(abs(a - b) for a, b in pairs) / 2
    if name == "hellinger":
        return math.sqrt(math.fsum((math.sqrt(a) - math.sqrt(b)) ** 2 for a, b in pairs) / 2)
    parts = [(one, (a + b) / 2) for a, b in pairs for one in (a, b) if one]
    return math.fsum(v * math.log2(v / m) for v, m in parts) / 2


def to_shares(amounts: Mapping[Any, float]) -> dict[Any, float]:
    total = math.fsum(amounts.values())
    return {g: v / total for g, v in amounts.items()} if total else {}


def popularity_percentile(x: List) -> float:
    counts = list(Counter(i for had in x.known.train.values() for i in set(had)).values())

    def percentile(item: Any) -> float:
        own = x.known.popularity(item)
        if not own:
            return 0.0
        places = [at for at, n in enumerate(sorted(counts), 1) if n == own]
        return mean(places) / len(counts)

    return mean([percentile(i) for i in x.shown])


def tail_share(x: List) -> float:
    counts = sorted(Counter(i for had in x.known.train.values() for i in set(had)).values(), reverse=True)
    reached, least = 0, 1
    for n in counts:
        reached, least = reached + n, n
        if reached >= x.param("head", 0.2) * sum(counts):
            break
    return mean([float(x.known.popularity(i) < least) for i in x.shown])


def unseen(x: List) -> float:
    return mean([float(i not in x.known.train.get(x.case, ())) for i in x.shown])


def cosine(a: Sequence[float], b: Sequence[float]) -> float:
    length = math.sqrt(math.fsum(x * x for x in a)) * math.sqrt(math.fsum(x * x for x in b))
    return math.fsum(x * y for x, y in zip(a, b, strict=True)) / length if length else 0.0


def jaccard(a: Sequence[float], b: Sequence[float]) -> float:
    either = sum(bool(x) or bool(y) for x, y in zip(a, b, strict=True))
    return sum(bool(x) and bool(y) for x, y in zip(a, b, strict=True)) / either if either else 1.0


def bounded(a: Sequence[float], b: Sequence[float]) -> float:
    return 1 - 1 / (1 + math.dist(a, b))


DISTANCES: dict[str, Callable[[Sequence[float], Sequence[float]], float]] = {
    "cosine": lambda a, b: 1 - cosine(a, b),
    "euclidean": math.dist,
    "bounded_euclidean": bounded,
    "jaccard": lambda a, b: 1 - jaccard(a, b),
    "hamming": lambda a, b: sum(bool(x) != bool(y) for x, y in zip(a, b, strict=True)),
}


def ild(x: List) -> float:
    zero = [0.0] * len(next(iter(x.known.embeddings.values())))
    fill = {} if x.param("missing", "drop") == "drop" else dict.fromkeys(x.shown, zero)
    vectors = [x.known.embeddings.get(i, fill.get(i)) for i in x.shown]
    distance = DISTANCES[x.param("distance", "cosine")]
    return mean([distance(a, b) for a, b in combinations([v for v in vectors if v is not None], 2)])


def ils(x: List) -> float | None:
    pairs = combinations(
        [i for i in x.shown if i in x.known.embeddings or x.param("missing", "drop") == "zero"], 2
    )
    zero = [0.0] * len(next(iter(x.known.embeddings.values())))
    near = [cosine(x.known.embeddings.get(a, zero), x.known.embeddings.get(b, zero)) for a, b in pairs]
    return mean(near) if near else None


def alignment(x: List) -> float | None:
    had = [
        x.known.embeddings[i] for i in sorted(set(x.known.train.get(x.case, ()))) if i in x.known.embeddings
    ]
    if not had or not any(map(any, zip(*had, strict=True))):
        return None
    user = [math.fsum(column) for column in zip(*had, strict=True)]
    near = [cosine(x.known.embeddings[i], user) for i in x.shown if i in x.known.embeddings]
    return mean(near) if near and any(user) else None


def unexpectedness(x: List) -> float | None:
    had = [
        x.known.embeddings[i] for i in sorted(set(x.known.train.get(x.case, ()))) if i in x.known.embeddings
    ]
    far = [
        1 - mean([cosine(x.known.embeddings[i], vector) for vector in had])
        if i in x.known.embeddings
        else 1.0
        for i in x.shown
        if i in x.known.embeddings or x.param("missing", "drop") == "zero"
    ]
    return mean(far) if had and far else None


def serendipity(x: List) -> float:
    k = x.k or len(x.listed)
    others = [list(items)[: x.k] for items in x.known.reference.values() if items]
    own = list(x.known.reference.get(x.case, ()))[: x.k]

    def expected(item: Any) -> float:
        if x.param("expected", "frequency") == "own":
            return float(item in own)
        return mean([float(item in items) for items in others])

    return math.fsum(1 - expected(i) for _, i in x.hits) / k if k else 0.0


def other_list(x: List) -> list[Any]:
    return list(x.known.reference.get(x.case, ()))[: x.k]


def overlap(x: List) -> float:
    other = other_list(x)
    shared = sum(i in other for i in x.shown)
    union = len(x.shown) + len(other) - shared
    over = union if x.param("over", "k") == "union" else (x.k or max(len(x.first), len(other)))
    return shared / over if over else 0.0


def shared_at(x: List, depth: int) -> int:
    """How many items are in the first places of both lists; a repeat takes a place and does not count."""
    return sum(i in other_list(x)[:depth] for r, i in x.places if r <= depth)


def average_overlap(x: List) -> float:
    depth = x.k or max(len(x.first), len(other_list(x)))
    return mean([shared_at(x, d) / d for d in range(1, depth + 1)])


def rbo(x: List) -> float:
    p = x.param("p", 0.9)
    short, long = sorted((len(x.first), len(other_list(x))))
    if not long:
        return 0.0
    total = math.fsum(shared_at(x, d) / d * p**d for d in range(1, long + 1))
    if x.param("form", "ext") == "sum":
        return (1 - p) / p * total
    at_short, at_long = shared_at(x, short), shared_at(x, long)
    share = at_short / short if short else 0.0
    total += math.fsum(share * (d - short) / d * p**d for d in range(short + 1, long + 1))
    return (1 - p) / p * total + ((at_long - at_short) / long + share) * p**long


def mixture(x: List, items: Sequence[Any]) -> dict[str, float]:
    out: Counter[str] = Counter()
    for item in items:
        for label in x.known.labels(item):
            out[label] += 1 / len(x.known.labels(item))
    return {label: amount / math.fsum(out.values()) for label, amount in out.items()}


def miscalibration(x: List) -> float | None:
    p, q = mixture(x, sorted(set(x.known.train.get(x.case, ())))), mixture(x, x.shown)
    if not p or not q:
        return None
    labels = sorted({*p, *q})

    def kl(one: Mapping[str, float], other: Mapping[str, float]) -> float:
        return math.fsum(v * math.log(v / other[g]) for g, v in one.items() if v)

    name, alpha = x.param("divergence", "kl"), x.param("alpha", 0.01)
    if name == "kl":
        return kl(p, {g: (1 - alpha) * q.get(g, 0) + alpha * p.get(g, 0) for g in labels})
    if name == "js":
        middle = {g: (p.get(g, 0) + q.get(g, 0)) / 2 for g in labels}
        return (kl(p, middle) + kl(q, middle)) / 2 / math.log(2)
    return math.sqrt(math.fsum((math.sqrt(p.get(g, 0)) - math.sqrt(q.get(g, 0))) ** 2 for g in labels) / 2)


def user_coverage(x: List) -> float:
    return float(len(x.shown) >= x.param("least", 1))


def valid(x: List) -> float:
    good = [
        (x.known.catalogue is None or i in x.known.catalogue)
        and i not in x.known.never
        and i not in x.first[:at]
        for at, i in enumerate(x.first)
    ]
    return mean([float(g) for g in good])


def value(x: List) -> float:
    return math.fsum(x.known.price.get(i, 0.0) for _, i in x.hits)


def shown_value(x: List) -> float:
    return math.fsum(x.known.price.get(i, 0.0) for i in x.shown)


def filled(x: List) -> float:
    return min(len(x.shown) / (x.k or 1), 1.0)


def kinds(x: List) -> float:
    return len({label for item in x.shown for label in x.known.labels(item)}) / (x.k or 1)


def popularity_serendipity(x: List) -> float:
    n = len(x.known.catalogue or ())
    levels = sorted({x.known.popularity(i) for had in x.known.train.values() for i in had}, reverse=True)

    def usual(item: Any) -> float:
        own = x.known.popularity(item)
        return (n + 1 - levels.index(own) - 1) / n if own else 0.0

    total = math.fsum(max((n + 1 - r) / n - usual(i), 0) for r, i in x.hits)
    size = len(x.shown) if x.param("over", "k") == "list" else x.k or 1
    return total / size if size else 0.0


def intents(x: List) -> dict[Any, list[str]]:
    return {item: x.known.labels(item) for item in x.relevant if x.known.labels(item)}


def gains(x: List, order: Sequence[Any]) -> list[float]:
    """The gain at each place: each time an intent is served, its next gain is (1 - alpha) of the last."""
    served: Counter[str] = Counter()
    out = []
    for item in order:
        labels = intents(x).get(item, [])
        out.append(math.fsum((1 - x.param("alpha", 0.5)) ** served[label] for label in labels))
        served.update(labels)
    return out


def first_places(x: List) -> list[Any]:
    """The items of the first k places, None for a repeat that does not count."""
    by_place = dict(x.places)
    return [by_place.get(r) for r in range(1, len(x.first) + 1)]


def greedy(x: List) -> list[Any]:
    left, order = sorted(intents(x)), []
    while left and (x.k is None or len(order) < x.k):
        best = max(left, key=lambda item: (gains(x, [*order, item])[-1], left.index(item)))
        left.remove(best)
        order.append(best)
    return order


def n_intents(x: List) -> int:
    return len({label for labels in intents(x).values() for label in labels})


Weight = Callable[[List, int], float]
WEIGHTS: dict[str, Weight] = {
    "dcg": lambda _, r: 1 / math.log2(r + 1),
    "err": lambda _, r: 1 / r,
    "rbp": lambda x, r: x.param("beta", 0.5) ** (r - 1),
}


def weighted_gains(x: List, order: Sequence[Any], weight: Weight) -> float:
    return math.fsum(gain * weight(x, r) for r, gain in enumerate(gains(x, order), 1))


def collection_independent(weight: Weight) -> Callable[[List], float | None]:
    def body(x: List) -> float | None:
        alpha, depth = x.param("alpha", 0.5), x.k or len(x.listed)
        if not n_intents(x):
            return None
        most = math.fsum((1 - alpha) ** (r - 1) * weight(x, r) for r in range(1, depth + 1)) * n_intents(x)
        return weighted_gains(x, first_places(x), weight) / most if most else 0.0

    return body


def collection_dependent(weight: Weight) -> Callable[[List], float | None]:
    def body(x: List) -> float | None:
        best = weighted_gains(x, greedy(x), weight)
        return weighted_gains(x, first_places(x), weight) / best if n_intents(x) else None

    return body


def nrbp(x: List) -> float | None:
    if not n_intents(x):
        return None
    norm = 1 - (1 - x.param("alpha", 0.5)) * x.param("beta", 0.5)
    return weighted_gains(x, first_places(x), WEIGHTS["rbp"]) * norm / n_intents(x)


def per_intent(body: Callable[[List, list[Any]], float]) -> Callable[[List], float | None]:
    """The mean over the intents of a value computed for the relevant items of one intent."""

    def mean_over_intents(x: List) -> float | None:
        labels = sorted({label for own in intents(x).values() for label in own})
        values = [body(x, [i for i, own in intents(x).items() if label in own]) for label in labels]
        return mean(values) if values else None

    return mean_over_intents


def intent_ap(x: List, relevant: list[Any]) -> float:
    places = [r for r, item in x.places if item in relevant]
    return math.fsum(n / r for n, r in enumerate(places, 1)) / len(relevant)


PER_CASE: dict[str, Callable[[List], float | None]] = {
    "novelty": novelty,
    "surprisal": surprisal,
    "average_popularity": average_popularity,
    "epc": epc,
    "popularity_lift": popularity_lift,
    "ee_d": ee_d,
    "ee_r": ee_r,
    "ee_l": ee_l,
    "awrf": awrf,
    "ils": ils,
    "popularity_percentile": popularity_percentile,
    "tail_share": tail_share,
    "unseen": unseen,
    "ild": ild,
    "alignment": alignment,
    "unexpectedness": unexpectedness,
    "serendipity": serendipity,
    "overlap": overlap,
    "average_overlap": average_overlap,
    "rbo": rbo,
    "miscalibration": miscalibration,
    "user_coverage": user_coverage,
    "filled": filled,
    "kinds": kinds,
    "popularity_serendipity": popularity_serendipity,
    "valid": valid,
    "value": value,
    "shown_value": shown_value,
    "alpha_dcg": collection_independent(WEIGHTS["dcg"]),
    "alpha_ndcg": collection_dependent(WEIGHTS["dcg"]),
    "err_ia": collection_independent(WEIGHTS["err"]),
    "nerr_ia": collection_dependent(WEIGHTS["err"]),
    "nrbp": nrbp,
    "nnrbp": collection_dependent(WEIGHTS["rbp"]),
    "map_ia": per_intent(intent_ap),
    "precision_ia": per_intent(lambda x, relevant: sum(i in relevant for _, i in x.places) / (x.k or 1)),
    "subtopic_recall": per_intent(lambda x, relevant: float(any(i in relevant for _, i in x.places))),
}
ABOUT_TRUTH = frozenset(name for name in PER_CASE if METRICS[name].population != "listed")
LEFT_OUT = frozenset(
    name for name in PER_CASE if METRICS[name].empty is not None and math.isnan(METRICS[name].empty)
)


@dataclass(frozen=True)
class AllLists:
    """The lists of all cases, and the catalogue."""

    lists: Sequence[List]
    catalogue: Sequence[Any]

    @property
    def exposure(self) -> Counter[Any]:
        return Counter(i for x in self.lists for i in x.shown if i in self.catalogue)

    @property
    def params(self) -> Mapping[str, Any]:
        return self.lists[0].params

    def weighted_exposure(self, weight: str) -> dict[Any, float]:
        """Exposure of each item, each showing counted by the weight of its place."""
        rules = self.lists[0].rules
        p = self.params.get("p", 0.85)
        weights: dict[str, Callable[[int], float]] = {
            "none": lambda _: 1.0,
            "geometric": lambda r: p ** (r - 1),
        }
        by_name = weights.get(weight) or (lambda r: discount(r, rules.but(discount=weight)))
        out = dict.fromkeys(self.catalogue, 0.0)
        for x in self.lists:
            for place, item in x.places:
                if item in out:
                    out[item] += by_name(place)
        return out


def gini(s: AllLists) -> float:
    amounts = sorted(s.weighted_exposure(s.params.get("weight", "none")).values())
    if s.lists[0].rules.gini_over == "recommended":
        amounts = [a for a in amounts if a > 0]
    n = len(amounts)
    if n < 2 or not sum(amounts):
        return 0.0
    pairs = math.fsum(abs(a - b) for a in amounts for b in amounts)
    value = pairs / (2 * n * math.fsum(amounts))
    return value * n / (n - 1) if s.params.get("corrected") == "yes" else value


def entropy(s: AllLists) -> float:
    amounts = [a for a in s.weighted_exposure(s.params.get("weight", "none")).values() if a > 0]
    total = math.fsum(amounts)
    return -math.fsum(a / total * math.log(a / total) for a in amounts) / math.log(s.params.get("base", 2))


def cold_coverage(s: AllLists) -> float:
    cold = [i for i in s.catalogue if s.lists[0].known.popularity(i) < s.params.get("below", 5)]
    return sum(s.exposure[i] > 0 for i in cold) / len(cold) if cold else 0.0


def personalisation(s: AllLists) -> float:
    lists = [set(x.shown) for x in s.lists if x.shown]
    similar = [len(one & other) / math.sqrt(len(one) * len(other)) for one, other in combinations(lists, 2)]
    return 1 - mean(similar) if similar else 0.0


def group_shares(s: AllLists) -> tuple[dict[str, float], dict[str, float]]:
    known, exposure = s.lists[0].known, s.weighted_exposure(s.params.get("weight", "log2"))
    merit = s.params.get("merit", "catalogue")
    amounts: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
    for item in s.catalogue:
        labels = known.labels(item)
        for label in labels:
            amounts[0][label] += exposure[item] / len(labels)
            amounts[1][label] += (known.popularity(item) if merit == "train" else 1) / len(labels)
    if merit == "equal":
        amounts = (amounts[0], Counter({label: 1 for label, v in amounts[1].items() if v}))
    shares = [{g: v / sum(a.values()) if sum(a.values()) else 0.0 for g, v in a.items()} for a in amounts]
    return shares[0], shares[1]


def exposure_gap(s: AllLists) -> float:
    shown, due = group_shares(s)
    return math.fsum(abs(shown.get(g, 0) - due.get(g, 0)) for g in {*shown, *due}) / 2


def exposure_ratio(s: AllLists) -> float:
    shown, due = group_shares(s)
    rates = [shown.get(g, 0) / share for g, share in due.items() if share]
    return min(rates) / max(rates) if rates and max(rates) else 0.0


CATALOGUE: dict[str, Callable[[AllLists], float]] = {
    "coverage": lambda s: len(s.exposure) / len(s.catalogue),
    "distinct_items": lambda s: float(len(s.exposure)),
    "gini": gini,
    "entropy": entropy,
    "cold_coverage": cold_coverage,
    "personalisation": personalisation,
    "exposure_gap": exposure_gap,
    "exposure_ratio": exposure_ratio,
}
NAMES = frozenset(PER_CASE) | frozenset(CATALOGUE)


def evaluate(
    lists: Mapping[Any, Sequence[Any]],
    truth: Mapping[Any, Mapping[Any, float]],
    request: Request,
    conventions: Conventions,
    known: Known,
) -> tuple[float | None, dict[Any, float | None]]:
    """The value over all cases and, for a metric per case, of each case; None for what is left out."""
    rules = request_conventions(
        request.name, {n: v for n, v in request.params.items() if n in ("gini_over", "average")}, conventions
    )[0]
    truth = without_negatives(truth, rules)
    cases = [
        List(
            case,
            judged_part(ordered(lists.get(case, ()), rules), truth.get(case, {}), rules),
            truth.get(case, {}),
            request.k,
            rules,
            request.params,
            known,
            given_none=not lists.get(case),
        )
        for case in sorted(set(lists) | set(truth))
    ]
    if request.name in CATALOGUE:
        items = {i for x in cases for i in (*ordered(lists.get(x.case, ()), rules), *x.truth)} | {
            i for h in known.train.values() for i in h
        }
        catalogue = sorted(items) if known.catalogue is None else sorted(known.catalogue)
        anything = any(x.shown for x in cases)
        return (CATALOGUE[request.name](AllLists(cases, catalogue)) if anything else None), {}
    per_case = {x.case: one_case(x, request.name) for x in cases}
    values = [v for v in per_case.values() if v is not None]
    if request.name == "popularity_lift" and rules.average == "pooled" and values:
        shown, had = zip(*filter(None, map(mean_popularities, cases)), strict=True)
        return mean(shown) / mean(had) - 1, per_case
    return (mean(values) if values else None), per_case


def one_case(x: List, name: str) -> float | None:
    if name in ABOUT_TRUTH and not x.relevant:
        if x.rules.no_truth == "zero" or (x.rules.no_truth == "unjudged" and x.truth):
            return None if x.rules.no_list == "skip" and x.given_none else 0.0
        return None
    if not x.listed:
        skipped = x.rules.no_list == "skip" and x.given_none
        if skipped or METRICS[name].empty is not None:
            return None if name in LEFT_OUT or skipped else 0.0
    return PER_CASE[name](x)
