"""The formulas of docs/standard/metrics.md, family by family, in the words of docs/standard/index.md.

A formula of a case takes a `Case` and gives a number, a `Ratio`, or None where the case has no value. A
formula of the whole catalogue takes the question and the cases.
"""

import math
from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction


class RefusedError(ValueError):
    """The standard says that this input is an error."""


@dataclass(frozen=True)
class Question:
    """What is asked: the data as they were given, every decision, and what the first steps found out."""

    run: dict
    truth: dict
    k: int | None
    params: dict
    conventions: dict
    context: dict
    max_grade: float = 1.0
    truth_left: dict = field(default_factory=dict)  # after steps 2 to 4


@dataclass(frozen=True)
class Ratio:
    """Numerator, denominator, and the value of one case."""

    above: float
    below: float
    value: float


@dataclass(frozen=True)
class Case:
    """One user: the items at places 1, 2, … (None at an empty place) and the judgements."""

    question: Question
    user: str
    places: list
    truth: dict
    negative: set

    @property
    def params(self):
        return self.question.params

    @property
    def context(self):
        return self.question.context

    @property
    def length(self):
        return len(self.places)

    @property
    def k(self):
        """A bare k of a formula: without a cut-off, the length of the list."""
        return self.length if self.question.k is None else self.question.k

    @property
    def relevant(self):
        """Relevant items and their grades (step 8)."""
        least = self.decided("relevant_from")
        return {
            item: grade
            for item, grade in self.truth.items()
            if grade > 0 and (least is None or grade >= least)
        }

    def decided(self, decision):
        return self.question.conventions[decision]

    def least(self, *numbers):
        """min(k, …): without a cut-off, k is no limit."""
        return min(numbers) if self.question.k is None else min(self.question.k, *numbers)

    def is_repeat(self, place):
        """Step 7: the item stands at a higher place already."""
        return self.decided("duplicates") == "first" and self.places[place - 1] in self.places[: place - 1]

    def shown(self, depth=None):
        """(place, item) of the items shown in the first `depth` places: no empty places, no repeats."""
        depth = self.k if depth is None else depth
        return [
            (place, item)
            for place, item in enumerate(self.places[:depth], 1)
            if item is not None and not self.is_repeat(place)
        ]

    def hits(self, depth=None):
        """(place, item) of the hits in the first `depth` places."""
        relevant = self.relevant
        return [(place, item) for place, item in self.shown(depth) if item in relevant]

    def all_hits(self):
        return self.hits(self.length)

    def first_places(self):
        """(place, item) of every item at its first place, whatever `duplicates` says."""
        return [
            (place, item)
            for place, item in enumerate(self.places, 1)
            if item is not None and item not in self.places[: place - 1]
        ]


@dataclass(frozen=True)
class Spec:
    """What the page says of a metric below its formula."""

    formula: object
    about: str = "relevant"  # relevant, judged or shown
    empty: object = 0  # 0, "left out" or "formula"
    expected: object = "mean"  # mean, by_id or refused
    better: str = "higher"
    bounds: tuple = (0.0, 1.0)
    overall: str = "mean"  # mean, ratio, pooled, lift, geometric, f or catalogue
    cut: str = "optional"

    def expectation(self, params):
        return self.expected(params) if callable(self.expected) else self.expected


METRICS = {}
ENDLESS = (0.0, math.inf)


def metric(name, **properties):
    def enter(formula):
        METRICS[name] = Spec(formula, **properties)
        return formula

    return enter


def shown_metric(name, **properties):
    return metric(name, about="shown", expected="by_id", **properties)


def catalogue_metric(name, **properties):
    return metric(name, about="shown", expected="by_id", overall="catalogue", **properties)


def quotient(above, below):
    """x / 0 is 0."""
    return above / below if below else 0.0


def ratio(above, below):
    return Ratio(above, below, quotient(above, below))


def mean(numbers):
    numbers = list(numbers)
    return quotient(sum(numbers), len(numbers))


def place_weight(kind, place, p=None):
    """The weight of a place, by its name or from a list of weights."""
    if isinstance(kind, list):
        return kind[place - 1] if place <= len(kind) else 0.0
    return {
        "none": lambda: 1.0,
        "log2": lambda: 1 / math.log2(place + 1),
        "log2_max2": lambda: 1 / math.log2(max(place, 2)),
        "reciprocal": lambda: 1 / place,
        "geometric": lambda: p ** (place - 1),
    }[kind]()


# What the users had


def had(context, user):
    """{item: grade} of what a user had; without grades every grade is 1."""
    items = context.get("train", {}).get(user, {})
    return dict(items) if isinstance(items, dict) else dict.fromkeys(items, 1)


def popularities(context):
    """How many users had each item."""
    if "popularity" in context:
        return dict(context["popularity"])
    if "train" not in context:
        raise RefusedError("nothing is known of what users had")
    return dict(Counter(item for user in context["train"] for item in had(context, user)))


def number_of_users(question):
    if question.params.get("users") is not None:
        return question.params["users"]
    if "train" not in question.context:
        raise RefusedError("the number of users is not known")
    return sum(1 for items in question.context["train"].values() if items)


def labels_of(context, column, item):
    """The labels of an item, and how much it counts for each."""
    labels = context["items"][column].get(item, [])
    return {label: 1 / len(labels) for label in labels}


def label_sums(context, column, weights):
    """The sums of the weights of (item, weight) pairs by label."""
    sums = {}
    for item, weight in weights:
        for label, share in labels_of(context, column, item).items():
            sums[label] = sums.get(label, 0.0) + weight * share
    return sums


def shares(sums):
    total = sum(sums.values())
    return {label: quotient(amount, total) for label, amount in sums.items()}


# The catalogue


def occurring_items(question):
    """Every item of a list as given, of the truth after steps 2 to 4, or of train."""
    items = {item for entries in question.run.values() for item, _ in entries}
    items |= {item for grades in question.truth_left.values() for item in grades}
    return items | {i for user in question.context.get("train", {}) for i in had(question.context, user)}


def catalogue_of(question):
    """The items of the catalogue, and how many more there are of which only the number is known."""
    given = question.context.get("catalogue")
    if isinstance(given, list):
        return set(given), 0
    items = occurring_items(question)
    return items, 0 if given is None else max(0, int(given) - len(items))


def catalogue_size(question):
    given = question.context.get("catalogue")
    if given is None or isinstance(given, list):
        return len(catalogue_of(question)[0])
    return int(given)


def exposures(question, cases, kind="none"):
    """{item: exposure} of the items of the catalogue; weights in whole multiples of 2^-36."""
    items, _ = catalogue_of(question)
    exposure = dict.fromkeys(items, 0.0)
    for case in cases:
        for place, item in case.shown():
            if item in exposure:
                exposure[item] += rounded(place_weight(kind, place, question.params.get("p")))
    return exposure


def rounded(weight):
    """The nearest whole multiple of 2^-36, of two equally near the even one."""
    return round(Fraction(weight) * 2**36) / 2**36


# Family catalogue


@catalogue_metric("coverage")
def coverage(question, cases):
    return quotient(distinct_items(question, cases), catalogue_size(question))


@catalogue_metric("distinct_items", bounds=ENDLESS)
def distinct_items(question, cases):
    return sum(1 for exposure in exposures(question, cases).values() if exposure > 0)


@catalogue_metric("gini", better="lower")
def gini(question, cases):
    x = list(exposures(question, cases, question.params["weight"]).values())
    x += [0.0] * catalogue_of(question)[1]
    if question.conventions["gini_over"] == "recommended":
        x = [exposure for exposure in x if exposure > 0]
    n = len(x)
    if n < 2:
        return 0.0
    above = sum((2 * i - n - 1) * exposure for i, exposure in enumerate(sorted(x), 1))
    return quotient(above, (n - 1 if question.params["corrected"] == "yes" else n) * sum(x))


@catalogue_metric("entropy", bounds=ENDLESS)
def entropy(question, cases):
    parts = shares(exposures(question, cases, question.params["weight"])).values()
    return -sum(share * math.log(share) for share in parts if share > 0) / math.log(question.params["base"])


@catalogue_metric("cold_coverage")
def cold_coverage(question, cases):
    known, unknown = catalogue_of(question)
    popularity = popularities(question.context)
    cold = {item for item in known if popularity.get(item, 0) < question.params["below"]}
    exposure = exposures(question, cases)
    return quotient(sum(1 for item in cold if exposure[item] > 0), len(cold) + unknown)


@catalogue_metric("personalisation")
def personalisation(question, cases):
    users = [{item for _, item in case.shown()} for case in cases if case.shown()]
    n = len(users)
    if n < 2:
        return 0.0
    e = {}
    for items in users:
        for item in items:
            e[item] = e.get(item, 0.0) + rounded(1 / math.sqrt(len(items)))
    value = 1 - (sum(amount**2 for amount in e.values()) - n) / (n * (n - 1))
    return min(max(value, 0.0), 1.0)  # rounding may take it out of its bounds


# Family calibration


def kl(p, q, base=math.e):
    return sum(share * math.log(share / q[label], base) for label, share in p.items() if share > 0)


def divergence(name, p, q, alpha=None):
    labels = set(p) | set(q)
    p = {label: p.get(label, 0.0) for label in labels}
    q = {label: q.get(label, 0.0) for label in labels}
    if name == "kl":
        return kl(p, {label: (1 - alpha) * q[label] + alpha * p[label] for label in labels})
    if name == "js":
        m = {label: (p[label] + q[label]) / 2 for label in labels}
        return (kl(p, m, 2) + kl(q, m, 2)) / 2
    if name == "hellinger":
        return math.sqrt(sum((math.sqrt(p[label]) - math.sqrt(q[label])) ** 2 for label in labels) / 2)
    return sum(abs(p[label] - q[label]) for label in labels) / 2


@shown_metric("miscalibration", empty="left out", better="lower", bounds=ENDLESS)
def miscalibration(case):
    column = case.params["by"]
    p = label_sums(case.context, column, had(case.context, case.user).items())
    q = label_sums(case.context, column, [(item, 1.0) for _, item in case.shown()])
    if not p or not q:
        return None
    return divergence(case.params["divergence"], shares(p), shares(q), case.params["alpha"])


@shown_metric("kinds", bounds=ENDLESS, cut="required")
def kinds(case):
    found = label_sums(case.context, case.params["by"], [(item, 1.0) for _, item in case.shown()])
    return len(found) / case.k


@shown_metric("awrf", empty="left out", better="lower")
def awrf(case):
    column, context, params = case.params["by"], case.context, case.params
    attention = label_sums(
        context,
        column,
        [(item, place_weight(params["weight"], place, params["p"])) for place, item in case.shown()],
    )
    if not attention:
        return None
    given = context.get("catalogue")
    items = given if isinstance(given, list) else list(context["items"][column])
    due = label_sums(context, column, [(item, 1.0) for item in items])
    if params["target"] == "train":
        popularity = popularities(context)
        due = label_sums(context, column, [(item, popularity.get(item, 0)) for item in items])
    elif params["target"] == "equal":
        due = dict.fromkeys(due, 1.0)
    elif params["target"] != "catalogue":
        written = (part.rpartition(":") for part in params["target"].split("|"))
        due = {group: float(share) for group, _, share in written}
    return divergence(params["distance"], shares(attention), shares(due))


def exposure_and_merit(question, cases):
    """The shares of the exposure and of the merit, by group."""
    column, context, params = question.params["by"], question.context, question.params
    items, _ = catalogue_of(question)
    got = label_sums(context, column, exposures(question, cases, params["weight"]).items())
    due = label_sums(context, column, [(item, 1.0) for item in items])
    if params["merit"] == "train":
        popularity = popularities(context)
        due = label_sums(context, column, [(item, popularity.get(item, 0)) for item in items])
    if params["merit"] == "equal":
        due = dict.fromkeys(due, 1.0)
    return shares(got), shares(due)


@catalogue_metric("exposure_gap", better="lower")
def exposure_gap(question, cases):
    got, due = exposure_and_merit(question, cases)
    return divergence("total_variation", got, due)


@catalogue_metric("exposure_ratio")
def exposure_ratio(question, cases):
    got, due = exposure_and_merit(question, cases)
    per_merit = [got.get(group, 0.0) / share for group, share in due.items() if share > 0]
    return quotient(min(per_merit, default=0.0), max(per_merit, default=0.0))


# Family discounted


def gain_of(case, grade):
    """What `gain` makes of the grade of a relevant item."""
    kind = case.decided("gain")
    if isinstance(kind, list):
        table = dict(map(tuple, kind))
        if grade not in table:
            raise RefusedError("a grade that the table of gains does not hold")
        return table[grade]
    return {"grade": grade, "binary": 1.0, "exp2": 2**grade - 1, "exp2_next": 2 ** (grade + 1) - 1}[kind]


def gains_down(case):
    """The gains of all relevant items, listed or not, highest first."""
    return sorted((gain_of(case, grade) for grade in case.relevant.values()), reverse=True)


@metric("dcg", bounds=ENDLESS)
def dcg(case):
    kind, relevant = case.decided("discount"), case.relevant
    return sum(gain_of(case, relevant[item]) * place_weight(kind, place) for place, item in case.hits())


@metric("ndcg")
def ndcg(case):
    kind, ideal, gains = case.decided("discount"), case.decided("ideal"), gains_down(case)
    if ideal == "k":
        if any(gain > 1 for gain in gains):
            raise RefusedError("ideal=k with a gain above 1")
        gains = [1.0] * case.k
    else:
        count = {
            "reachable": case.least(len(gains)),
            "list": case.least(len(gains), case.length),
            "all": len(gains),
        }
        gains = gains[: count[ideal]]
    best = sum(gain * place_weight(kind, place) for place, gain in enumerate(gains, 1))
    return quotient(dcg(case), best)


def scaled_gain(case, item):
    """(grade - min_grade) / (max_grade - min_grade), within 0 and 1."""
    low, high = case.params["min_grade"], case.question.max_grade
    return min(max(quotient(case.truth[item] - low, high - low), 0.0), 1.0)


@metric("sdcg", cut="required")
def sdcg(case):
    got = sum(scaled_gain(case, item) / math.log2(place + 1) for place, item in case.hits())
    return got / sum(1 / math.log2(place + 1) for place in range(1, case.k + 1))


@metric("rbp")
def rbp(case):
    p = case.params["p"]
    return (1 - p) * sum(p ** (place - 1) for place, _ in case.hits())


@metric("graded_rbp", bounds=ENDLESS)
def graded_rbp(case):
    p, relevant = case.params["p"], case.relevant
    return (1 - p) * sum(gain_of(case, relevant[item]) * p ** (place - 1) for place, item in case.hits())


@metric("err")
def err(case):
    highest = case.question.max_grade
    if any(case.truth[item] > highest for _, item in case.all_hits()):
        raise RefusedError("a grade above the highest")
    value, still_reading = 0.0, 1.0
    for place, item in case.hits():
        satisfied = (2 ** case.truth[item] - 1) / 2**highest
        value += still_reading * satisfied / place
        still_reading *= 1 - satisfied
    return value


# Family diversity


def dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def cosine(a, b):
    return quotient(dot(a, b), math.sqrt(dot(a, a)) * math.sqrt(dot(b, b)))


def euclidean(a, b):
    return math.sqrt(sum((x - y) ** 2 for x, y in zip(a, b, strict=True)))


def jaccard(a, b):
    both = sum(1 for x, y in zip(a, b, strict=True) if x != 0 and y != 0)
    either = sum(1 for x, y in zip(a, b, strict=True) if x != 0 or y != 0)
    return 1 - both / either if either else 0.0


DISTANCES = {
    "cosine": lambda a, b: 1 - cosine(a, b),
    "euclidean": euclidean,
    "bounded_euclidean": lambda a, b: euclidean(a, b) / (1 + euclidean(a, b)),
    "jaccard": jaccard,
    "hamming": lambda a, b: sum(1 for x, y in zip(a, b, strict=True) if (x != 0) != (y != 0)),
}


def shown_vectors(case):
    """The vectors of the items shown; an item without one is left out, or has the vector 0."""
    known = case.context["embeddings"]
    zero = [0.0] * len(next(iter(known.values())))
    keep = case.params.get("missing") == "zero"
    return [known.get(item, zero) for _, item in case.shown() if keep or item in known]


def pairs_of(vectors):
    return [(a, b) for at, a in enumerate(vectors) for b in vectors[at + 1 :]]


@shown_metric("ild", bounds=ENDLESS)
def ild(case):
    distance = DISTANCES[case.params["distance"]]
    return mean(distance(a, b) for a, b in pairs_of(shown_vectors(case)))


@shown_metric("ils", empty="left out", better="lower", bounds=(-1.0, 1.0))
def ils(case):
    pairs = pairs_of(shown_vectors(case))
    return mean(cosine(a, b) for a, b in pairs) if pairs else None


def user_vector(case):
    """The profile of the user; without profiles the mean of what the user had, weighted by the grades."""
    known = case.context["embeddings"]
    if "profiles" in case.context:
        return case.context["profiles"].get(case.user)
    own = {item: grade for item, grade in had(case.context, case.user).items() if item in known}
    total = sum(own.values())
    if not total:
        return None
    size = len(next(iter(known.values())))
    return [sum(grade * known[item][i] for item, grade in own.items()) / total for i in range(size)]


@shown_metric("alignment", empty="left out", bounds=(-1.0, 1.0))
def alignment(case):
    user, vectors = user_vector(case), shown_vectors(case)
    if user is None or not any(user) or not vectors:
        return None
    return mean(cosine(vector, user) for vector in vectors)


@shown_metric("unexpectedness", empty="left out", bounds=(0.0, 2.0))
def unexpectedness(case):
    known = case.context["embeddings"]
    own = [known[item] for item in had(case.context, case.user) if item in known]
    vectors = shown_vectors(case)
    if not own or not vectors:
        return None
    return mean(1 - mean(cosine(vector, other) for other in own) for vector in vectors)


# Family expected_exposure


def case_exposure(case):
    """{item or group: exposure} in one list."""
    weight, p = case.params["weight"], case.params["p"]
    exposure = {}
    for place, item in case.shown():
        exposure[item] = exposure.get(item, 0.0) + place_weight(weight, place, p)
    return grouped(case, exposure)


def grouped(case, exposure):
    by = case.params["by"]
    return exposure if by is None else label_sums(case.context, by, exposure.items())


def target_exposure(case):
    """{item or group: exposure} that relevance wants; items of one grade share their places' weights."""
    weight, p, relevant = case.params["weight"], case.params["p"], case.relevant
    target, place = {}, 0
    for grade in sorted(set(relevant.values()), reverse=True):
        equals = [item for item in relevant if relevant[item] == grade]
        their_places = range(place + 1, place + len(equals) + 1)
        within = [r for r in their_places if case.question.k is None or r <= case.question.k]
        for item in equals:
            target[item] = sum(place_weight(weight, r, p) for r in within) / len(equals)
        place += len(equals)
    return grouped(case, target)


@metric("ee_d", expected="by_id", better="lower", bounds=ENDLESS)
def ee_d(case):
    return sum(exposure**2 for exposure in case_exposure(case).values())


@metric("ee_r", expected="by_id", bounds=ENDLESS)
def ee_r(case):
    target = target_exposure(case)
    return sum(exposure * target.get(item, 0.0) for item, exposure in case_exposure(case).items())


@metric("ee_l", expected="by_id", better="lower", empty="formula", bounds=ENDLESS)
def ee_l(case):
    got, target = case_exposure(case), target_exposure(case)
    return sum((got.get(item, 0.0) - target.get(item, 0.0)) ** 2 for item in set(got) | set(target))


# Family full_rank


@metric("bpref", expected="refused", cut="none")
def bpref(case):
    relevant = case.relevant
    others = len(case.truth) - len(relevant)
    value, bad_above = 0.0, 0
    for _, item in case.shown(case.length):
        if item in relevant:
            value += 1 - quotient(min(bad_above, len(relevant)), min(len(relevant), others))
        elif item in case.truth:
            bad_above += 1
    return quotient(value, len(relevant))


@metric("average_rank", empty="left out", better="lower", bounds=(1.0, math.inf), overall="ratio", cut="none")
def average_rank(case):
    hits = case.all_hits()
    return ratio(sum(place for place, _ in hits), len(hits)) if hits else None


@metric("percentile_rank", empty="left out", better="lower", overall="ratio", cut="none")
def percentile_rank(case):
    hits = case.all_hits()
    above = sum(quotient(place - 1, case.length - 1) for place, _ in hits)
    return ratio(above, len(hits)) if hits else None


@metric("expected_percentile_rank", empty="left out", better="lower", overall="pooled", cut="none")
def expected_percentile_rank(case):
    hits, relevant = case.all_hits(), case.relevant
    above = sum(relevant[item] * quotient(place - 1, case.length - 1) for place, item in hits)
    return ratio(above, sum(relevant[item] for _, item in hits)) if hits else None


@metric("auc", empty="left out", cut="none")
def auc(case):
    hit_places = {place for place, _ in case.all_hits()}
    others = [place for place in range(1, case.length + 1) if place not in hit_places]
    if not hit_places or not others:
        return None
    right = sum(1 for hit in hit_places for other in others if hit < other)
    return right / (len(hit_places) * len(others))


@metric("gauc", empty="left out", overall="pooled", cut="none")
def gauc(case):
    value = auc(case)
    if value is None:
        return None
    weight = case.length if case.params["weight"] == "candidates" else len(case.all_hits())
    return Ratio(weight * value, weight, value)


@metric("pauc", empty="left out", expected="refused", cut="required")
def pauc(case):
    hits = case.all_hits()
    c = min(case.k, case.length - len(hits))
    if not hits or not c:
        return None
    others_above = [place - number for number, (place, _) in enumerate(hits, 1)]
    return sum(max(0, c - above) for above in others_above) / (len(hits) * c)


def confusion(case):
    """TP, FP, FN, TN."""
    tp = len(case.hits())
    fp = (case.k if case.decided("accuracy_over") == "k" else min(case.k, case.length)) - tp
    fn = len(case.relevant) - tp
    return tp, fp, fn, catalogue_size(case.question) - tp - fp - fn


@metric("accuracy", empty="formula", cut="required")
def accuracy(case):
    tp, _, _, tn = confusion(case)
    return quotient(tp + tn, catalogue_size(case.question))


@metric("mcc", empty="formula", bounds=(-1.0, 1.0), cut="required")
def mcc(case):
    tp, fp, fn, tn = confusion(case)
    inside = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
    return quotient(tp * tn - fp * fn, math.sqrt(inside)) if inside > 0 else 0.0


# Family intents


def intents_of(case, item):
    """What a relevant item is relevant for."""
    given = case.context["intents"]
    table = case.context["items"][given] if isinstance(given, str) else given.get(case.user, {})
    return set(table.get(item, []))


def intents(case):
    return {label for item in case.relevant for label in intents_of(case, item)}


def intent_gain(case, item, served):
    return sum((1 - case.params["alpha"]) ** served.get(label, 0) for label in intents_of(case, item))


def serve(case, item, served):
    for label in intents_of(case, item):
        served[label] = served.get(label, 0) + 1


def list_gains(case):
    """(place, gain_r) of the hits."""
    served, gains = {}, []
    for place, item in case.hits():
        gains.append((place, intent_gain(case, item, served)))
        serve(case, item, served)
    return gains


def greedy_gains(case):
    """(place, gain_r) of the greedy list: of equally good items the one with the last id."""
    served, gains = {}, []
    left = {item for item in case.relevant if intents_of(case, item)}
    for place in range(1, case.least(len(left)) + 1):
        chosen = max(left, key=lambda item: (intent_gain(case, item, served), item))
        gains.append((place, intent_gain(case, chosen, served)))
        serve(case, chosen, served)
        left.remove(chosen)
    return gains


def highest_intent_value(case, weight):
    """The value if every item served every intent."""
    stays = 1 - case.params["alpha"]
    return len(intents(case)) * sum(stays ** (r - 1) * weight(r) for r in range(1, case.k + 1))


def weighed(gains, weight):
    return sum(gain * weight(place) for place, gain in gains)


def log2_weight(place):
    return 1 / math.log2(place + 1)


def reciprocal_weight(place):
    return 1 / place


@metric("alpha_dcg", expected="refused", empty="formula")
def alpha_dcg(case):
    if not intents(case):
        return None
    return quotient(weighed(list_gains(case), log2_weight), highest_intent_value(case, log2_weight))


@metric("alpha_ndcg", expected="refused", empty="formula", bounds=ENDLESS)
def alpha_ndcg(case):
    if not intents(case):
        return None
    return quotient(weighed(list_gains(case), log2_weight), weighed(greedy_gains(case), log2_weight))


@metric("err_ia", expected="refused", empty="formula")
def err_ia(case):
    if not intents(case):
        return None
    return quotient(
        weighed(list_gains(case), reciprocal_weight), highest_intent_value(case, reciprocal_weight)
    )


@metric("nerr_ia", expected="refused", empty="formula", bounds=ENDLESS)
def nerr_ia(case):
    if not intents(case):
        return None
    return quotient(
        weighed(list_gains(case), reciprocal_weight), weighed(greedy_gains(case), reciprocal_weight)
    )


@metric("nrbp", expected="refused", empty="formula")
def nrbp(case):
    if not intents(case):
        return None
    alpha, beta = case.params["alpha"], case.params["beta"]
    found = weighed(list_gains(case), lambda place: beta ** (place - 1))
    return (1 - (1 - alpha) * beta) / len(intents(case)) * found


@metric("nnrbp", expected="refused", empty="formula", bounds=ENDLESS)
def nnrbp(case):
    if not intents(case):
        return None
    beta = case.params["beta"]
    return quotient(
        weighed(list_gains(case), lambda place: beta ** (place - 1)),
        weighed(greedy_gains(case), lambda place: beta ** (place - 1)),
    )


@metric("map_ia", expected="refused", empty="formula")
def map_ia(case):
    if not intents(case):
        return None
    values = []
    for label in intents(case):
        places = [place for place, item in case.hits() if label in intents_of(case, item)]
        wanted = sum(1 for item in case.relevant if label in intents_of(case, item))
        values.append(sum(number / place for number, place in enumerate(places, 1)) / wanted)
    return mean(values)


@metric("precision_ia", expected="refused", empty="formula", cut="required")
def precision_ia(case):
    if not intents(case):
        return None
    return mean(
        sum(1 for _, item in case.hits() if label in intents_of(case, item)) / case.k
        for label in intents(case)
    )


@metric("subtopic_recall", expected="refused", empty="formula")
def subtopic_recall(case):
    if not intents(case):
        return None
    return len({label for _, item in case.hits() for label in intents_of(case, item)}) / len(intents(case))


# Family ranking


@metric("precision", overall="ratio")
def precision(case):
    over = {
        "k": lambda: case.k,
        "list": lambda: case.least(case.length),
        "min": lambda: min(case.k, len(case.relevant)),
    }
    return ratio(len(case.hits()), over[case.decided("precision_over")]())


@metric("recall", overall="ratio")
def recall(case):
    wanted = len(case.relevant)
    return ratio(len(case.hits()), case.least(wanted) if case.decided("recall_over") == "min" else wanted)


@metric("capped_recall", overall="ratio")
def capped_recall(case):
    return ratio(len(case.hits()), case.least(len(case.relevant)))


def f_of(p, r, beta):
    return quotient((1 + beta**2) * p * r, beta**2 * p + r)


@metric("f", overall="f")
def f(case):
    p, r = precision(case).value, recall(case).value
    return Ratio(p, r, f_of(p, r, case.params["beta"]))


@metric("hit")
def hit(case):
    return 1.0 if case.hits() else 0.0


@metric("hits", bounds=ENDLESS)
def number_of_hits(case):
    return float(len(case.hits()))


@metric("mrr")
def mrr(case):
    return 1 / case.hits()[0][0] if case.hits() else 0.0


def precisions_at_hits(case):
    return sum(number / place for number, (place, _) in enumerate(case.hits(), 1))


@metric("map")
def average_precision(case):
    wanted = len(case.relevant)
    over = {
        "min": case.least(wanted),
        "relevant": wanted,
        "hits": len(case.hits()),
        "k": case.k,
        "list": case.least(wanted, case.length),
    }
    return quotient(precisions_at_hits(case), over[case.decided("ap_over")])


@metric("gmap", overall="geometric")
def gmap(case):
    return average_precision(case)


@metric("mar")
def mar(case):
    return quotient(precisions_at_hits(case), len(case.relevant))


@metric("r_precision", cut="none")
def r_precision(case):
    return quotient(len(case.hits(len(case.relevant))), len(case.relevant))


@metric("judged", about="judged", overall="ratio")
def judged(case):
    return ratio(sum(1 for _, item in case.shown() if item in case.truth), case.least(case.length))


# Family reference_lists


def reference_lists(case):
    """The reference's lists by user; one list is everybody's (None)."""
    given = case.context["reference"]
    return given if isinstance(given, dict) else {None: given}


def own_reference(case):
    """The entries of the reference list of the user in its first k places."""
    lists = reference_lists(case)
    own = lists[None] if None in lists else lists.get(case.user, [])
    return own[: case.question.k]


@metric("serendipity")
def serendipity(case):
    lists = [own for own in reference_lists(case).values() if own]

    def chance(item):
        if case.params["expected"] == "own":
            return 1.0 if item in own_reference(case) else 0.0
        return mean(1.0 if item in own[: case.question.k] else 0.0 for own in lists)

    return quotient(sum(1 - chance(item) for _, item in case.hits()), case.k)


@metric("popularity_serendipity", expected="refused", cut="required")
def popularity_serendipity(case):
    n = catalogue_size(case.question)
    popularity = popularities(case.context)
    different = sorted(set(popularity.values()), reverse=True)

    def by_popularity(item):
        return (n + 1 - (different.index(popularity[item]) + 1)) / n if popularity.get(item) else 0.0

    found = sum(max((n + 1 - place) / n - by_popularity(item), 0.0) for place, item in case.hits())
    over = min(case.k, len(case.shown())) if case.params["over"] == "list" else case.k
    return quotient(found, over)


def common(case, depth):
    """How many items shown in the first `depth` places are in the first `depth` of the reference too."""
    return sum(1 for _, item in case.shown(depth) if item in own_reference(case)[:depth])


def both_lengths(case):
    return case.least(case.length), len(own_reference(case))


@shown_metric("overlap")
def overlap(case):
    ours, theirs = both_lengths(case)
    deepest = max(ours, theirs) if case.question.k is None else case.k
    if case.params["over"] == "k":
        return quotient(common(case, deepest), deepest)
    return quotient(common(case, deepest), len(case.shown()) + theirs - common(case, deepest))


@shown_metric("average_overlap")
def average_overlap(case):
    deepest = max(both_lengths(case)) if case.question.k is None else case.k
    return mean(common(case, depth) / depth for depth in range(1, deepest + 1))


@shown_metric("rbo")
def rbo(case):
    p = case.params["p"]
    s, l = sorted(both_lengths(case))  # noqa: E741
    x = {depth: common(case, depth) for depth in range(l + 1)}
    value = (1 - p) * sum(p ** (d - 1) * x[d] / d for d in range(1, l + 1))
    if case.params["form"] == "sum":
        return value
    value += (1 - p) * sum(p ** (d - 1) * quotient(x[s] * (d - s), s * d) for d in range(s + 1, l + 1))
    return value + (quotient(x[l] - x[s], l) + quotient(x[s], s)) * p**l


# Family retrieval


def interpolated(case, level):
    first = max(math.floor(level * len(case.relevant) + 0.9), 1)
    precisions = [number / place for number, (place, _) in enumerate(case.all_hits(), 1)]
    return max(precisions[first - 1 :], default=0.0)


@metric("iprec", expected="refused", cut="none")
def iprec(case):
    return interpolated(case, case.params["recall"])


@metric("eleven_point", expected="refused", cut="none")
def eleven_point(case):
    return mean(interpolated(case, tenth / 10) for tenth in range(11))


@metric("set_precision", cut="none")
def set_precision(case):
    return quotient(len(case.all_hits()), case.length)


@metric("set_recall", cut="none")
def set_recall(case):
    return quotient(len(case.all_hits()), len(case.relevant))


@metric("set_f", cut="none")
def set_f(case):
    p, r, beta = set_precision(case), set_recall(case), case.params["beta"]
    return quotient((1 + beta) * p * r, beta * p + r)


@metric("set_map", cut="none")
def set_map(case):
    return quotient(len(case.all_hits()) ** 2, case.length * len(case.relevant))


@metric("set_relative_precision", cut="none")
def set_relative_precision(case):
    return quotient(len(case.all_hits()), min(case.length, len(case.relevant)))


@metric("inf_ap", expected="refused", cut="none")
def inf_ap(case):
    e, value = 0.00001, 0.0
    relevant_above = judged_above = pooled_above = 0
    for place, item in case.shown(case.length):
        if item in case.relevant:
            chance = (relevant_above + e) / (judged_above + 2 * e)
            value += (1 + (judged_above + pooled_above) * chance) / place
            relevant_above += 1
        judged_above += item in case.truth
        pooled_above += item in case.negative
    return quotient(value, len(case.relevant))


@metric("compat", expected="refused")
def compat(case):
    p, relevant = case.params["p"], case.relevant
    first = {item: place for place, item in case.first_places()}
    ideal = sorted(relevant, key=lambda item: (-relevant[item], first.get(item, math.inf)))
    deepest = max(case.length, len(ideal)) if case.question.k is None else case.k
    value = best = weights = 0.0
    for d in range(1, deepest + 1):
        both = sum(1 for item in ideal[:d] if first.get(item, math.inf) <= d)
        value += p ** (d - 1) * both / d
        best += p ** (d - 1) * min(d, len(ideal)) / d
        weights += p ** (d - 1)
    return quotient(value, best if case.params["over"] == "best" else weights)


def scaled_gains(case, depth):
    """The gains at places 1 … depth, also beyond the end of the list."""
    gains = [0.0] * depth
    for place, item in case.hits(depth):
        gains[place - 1] = scaled_gain(case, item)
    return gains


@metric("inst", expected="refused", cut="none")
def inst(case):
    target, so_far, weight = case.params["target"], 0.0, 1.0
    weights, found = 0.0, 0.0
    for i, gain in enumerate(scaled_gains(case, int(case.params["depth"])), 1):
        weights += weight
        found += weight * gain
        so_far += gain
        weight *= ((i - 1 + 2 * target - so_far) / (i + 2 * target - so_far)) ** 2
    return quotient(found, weights)


@metric("bpm", expected="refused", cut="required")
def bpm(case):
    so_far = 0.0
    for place, gain in enumerate(scaled_gains(case, case.k), 1):
        so_far += gain
        if so_far >= case.params["target"]:
            return so_far / place
    return so_far / case.k


# Family shown_items


@shown_metric("user_coverage")
def user_coverage(case):
    return 1.0 if len(case.shown()) >= case.params["least"] else 0.0


@shown_metric("filled", cut="required")
def filled(case):
    return min(len(case.shown()) / case.k, 1.0)


@shown_metric("valid")
def valid(case):
    context = case.context
    entries = [item for item in case.places[: case.k] if item is not None]

    def may_be_shown(item):
        if isinstance(context.get("catalogue"), list) and item not in context["catalogue"]:
            return False
        if item in context.get("exclude", []):
            return False
        return "eligible" not in context or item in context["eligible"].get(case.user, [])

    good = [item for at, item in enumerate(entries) if may_be_shown(item) and item not in entries[:at]]
    return quotient(len(good), len(entries))


@metric("value", bounds=(-math.inf, math.inf))
def value_of_hits(case):
    values = case.context["items"][case.params["of"]]
    return sum(values.get(item, 0.0) for _, item in case.hits())


@shown_metric("shown_value", bounds=(-math.inf, math.inf))
def shown_value(case):
    values = case.context["items"][case.params["of"]]
    return sum(values.get(item, 0.0) for _, item in case.shown())


def number_of_events(context):
    return sum(popularities(context).values())


@shown_metric("novelty", bounds=ENDLESS)
def novelty(case):
    popularity = popularities(case.context)
    over_events = case.params.get("over") == "events"
    users = number_of_events(case.context) if over_events else number_of_users(case.question)
    cold, found = case.params.get("cold", "one"), []
    for _, item in case.shown():
        count = popularity.get(item, 0)
        if count or cold == "one":
            found.append(math.log2(users / max(count, 1)))
        elif cold == "zero":
            found.append(0.0)
    return mean(found) if found or cold != "drop" else None


@shown_metric("surprisal")
def surprisal(case):
    popularity, users = popularities(case.context), number_of_users(case.question)
    if users <= 1:
        return 0.0
    bits = mean(math.log2(users / max(popularity.get(item, 0), 1)) for _, item in case.shown())
    if case.params["over"] == "k" and case.question.k is not None:
        bits *= quotient(len(case.shown()), case.k)
    return bits / math.log2(users)


@shown_metric("average_popularity", empty="left out", better="lower", bounds=ENDLESS)
def average_popularity(case):
    over, context = case.params["over"], case.context
    popularity = popularities(context)
    if over == "events":
        popularity = Counter(item for items in context["train"].values() for item in items)
    value = mean(popularity.get(item, 0) for _, item in case.shown())
    return quotient(value, number_of_users(case.question)) if over == "users" else value


@metric("epc", expected=lambda params: "mean" if params["relevance"] == "yes" else "by_id")
def epc(case):
    kind, p, popularity = case.params["weight"], case.params["p"], popularities(case.context)
    users = number_of_users(case.question)
    counted = case.hits() if case.params["relevance"] == "yes" else case.shown()
    found = sum(
        place_weight(kind, place, p) * (1 - quotient(popularity.get(item, 0), users))
        for place, item in counted
    )
    return quotient(found, sum(place_weight(kind, place, p) for place, _ in case.shown()))


@shown_metric("popularity_lift", empty="left out", better="lower", bounds=(-1.0, math.inf), overall="lift")
def popularity_lift(case):
    popularity, own = popularities(case.context), had(case.context, case.user)
    if not own:
        return None
    now = mean(popularity.get(item, 0) for _, item in case.shown())
    before = mean(popularity.get(item, 0) for item in own)
    return Ratio(now, before, quotient(now, before) - 1)


@shown_metric("popularity_percentile", empty="left out", better="lower")
def popularity_percentile(case):
    known = {item: count for item, count in popularities(case.context).items() if count}
    counts = sorted(known.values())

    def percentile(item):
        places = [place for place, count in enumerate(counts, 1) if count == known.get(item)]
        return mean(places) / len(counts) if places else 0.0

    return mean(percentile(item) for _, item in case.shown())


@shown_metric("tail_share")
def tail_share(case):
    popularity = popularities(case.context)
    so_far, last = 0, math.inf
    for count in sorted(popularity.values(), reverse=True):
        if so_far >= case.params["head"] * number_of_events(case.context):
            break
        so_far, last = so_far + count, count
    return mean(1.0 if popularity.get(item, 0) < last else 0.0 for _, item in case.shown())


@shown_metric("unseen")
def unseen(case):
    own = had(case.context, case.user)
    return mean(1.0 if item not in own else 0.0 for _, item in case.shown())


# Family trec_measures


@metric("count", about="judged", empty="formula", bounds=ENDLESS, cut="none")
def count(case):
    not_relevant = [
        item for _, item in case.shown(case.length) if item in case.truth and item not in case.relevant
    ]
    counts = {"listed": case.length, "relevant": len(case.relevant), "not_relevant": len(not_relevant)}
    return float(counts[case.params["what"]])


@metric("utility", about="judged", empty="formula", bounds=(-math.inf, math.inf), cut="none")
def utility(case):
    weights, hits, wanted = case.params, len(case.all_hits()), len(case.relevant)
    catalogue = 0 if "catalogue" not in case.context else catalogue_size(case.question)
    return (
        weights["a"] * hits
        + weights["b"] * (case.length - hits)
        + weights["missed"] * (wanted - hits)
        + weights["rest"] * (catalogue - case.length - wanted + hits)
    )


@metric("r_precision_at", cut="none")
def r_precision_at(case):
    n = math.floor(case.params["multiple"] * len(case.relevant) + 0.9)
    return quotient(len(case.hits(n)), n)


@metric("binary_g", expected="refused", cut="none")
def binary_g(case):
    others_above = [place - number for number, (place, _) in enumerate(case.all_hits(), 1)]
    return quotient(sum(1 / math.log2(2 + above) for above in others_above), len(case.relevant))


def first_hits(case):
    """{place: gain} of the relevant items at their first places."""
    relevant = case.relevant
    return {p: gain_of(case, relevant[item]) for p, item in case.first_places() if item in relevant}


@metric("g", expected="refused", cut="none")
def g(case):
    gains, best = first_hits(case), gains_down(case)
    value = cost = so_far = 0.0
    for place in range(1, case.length + 1):
        cost += max(1.0, best[place - 1] if place <= len(best) else 0.0)
        if place in gains:
            so_far += gains[place]
            value += gains[place] / math.log2(2 + cost - so_far)
    return quotient(value, sum(best))


def dcg_share(case, depth):
    """dcg(depth) / best dcg(depth)."""
    got = sum(gain / math.log2(place + 1) for place, gain in first_hits(case).items() if place <= depth)
    best = sum(gain / math.log2(place + 1) for place, gain in enumerate(gains_down(case)[:depth], 1))
    return quotient(got, best)


def dcg_share_at_the_end(case):
    """The whole list over all relevant items."""
    return dcg_share(case, max(case.length, len(case.relevant)))


@metric("ndcg_rel", expected="refused", cut="none")
def ndcg_rel(case):
    gains = first_hits(case)
    missing = len(case.relevant) - len(gains)
    found = sum(dcg_share(case, place) for place in gains) + missing * dcg_share_at_the_end(case)
    return quotient(found, len(case.relevant))


@metric("r_ndcg", expected="refused", cut="none")
def r_ndcg(case):
    gains = gains_down(case)
    depths = [sum(1 for gain in gains if gain >= least) for least in set(gains)]
    values = [dcg_share(case, depth) for depth in depths]
    if case.length >= len(gains) + 2:
        values.append(dcg_share_at_the_end(case))
    return mean(values)
