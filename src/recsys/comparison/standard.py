"""The test vectors of the standard: small inputs, and what every metric makes of them under every decision.

docs/standard describes the metrics; these vectors are the same in numbers, for implementations in
any language. They are made from the registry when they are needed: the files in docs/standard/vectors hold
what `families` returns. An input has a run, a truth and what else is known; a vector names its input, a
metric and its parameters, k, and the decisions that differ from the default.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from itertools import islice
from typing import Any

from recsys.comparison.probes import by_user
from recsys.conventions.decisions import DECISIONS, Conventions
from recsys.errors import NotDefinedError, RecsysError, hush
from recsys.evaluation.options import EvaluationOptions
from recsys.evaluation.ratings import evaluate_ratings
from recsys.evaluation.reading import CommonInputs
from recsys.evaluation.results import Evaluation
from recsys.evaluation.run import EvaluationRun
from recsys.metrics import METRICS, RATINGS, Metric
from recsys.records.json_values import none_if_nan

VERSION = 1
TOLERANCE = 1e-12


@dataclass(frozen=True)
class Input:
    """A small input: `run` {user: [(item, score), …]}, `truth` {user: {item: grade}} and what else is known.

    `cuts` are the cut-offs it is evaluated at (None: the whole list), `shows` the decisions it is made for.
    `asks_for` is a decision that an implementation must know to read it: vectors always name its value.
    """

    run: Mapping[str, Sequence[tuple[str, float]]]
    truth: Mapping[str, Mapping[str, float]]
    cuts: tuple[int | None, ...] = (2, None)
    shows: tuple[str, ...] = ()
    context: Mapping[str, Any] = field(default_factory=dict)
    asks_for: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the input as JSON holds it."""
        run = {user: [list(entry) for entry in entries] for user, entries in self.run.items()}
        truth = {user: dict(grades) for user, grades in self.truth.items()}
        return {"run": run, "truth": truth, "context": dict(self.context)}


def _list(items: str, *scores: float) -> list[tuple[str, float]]:
    """Return one letter per item, best first; without scores they fall by 1 from the number of items."""
    return list(zip(items, scores or map(float, range(len(items), 0, -1)), strict=True))


def _written(
    run: str | Mapping[str, Sequence[tuple[str, float]]], truth: str,
    cuts: tuple[int | None, ...] = (2, None), shows: str = "", **more: Any,
) -> Input:  # fmt: skip
    """Return an input in short: lists as "u1: abc, u2: c", one letter per item, a truth as "u1: a1 x0.5"."""
    lists = {u: _list(letters) for u, letters in by_user(run)} if isinstance(run, str) else run
    grades = {
        user: {word[0]: float(word[1:]) if "." in word else int(word[1:]) for word in words.split()}
        for user, words in by_user(truth)
    }
    return Input(lists, grades, cuts, tuple(shows.split()), **more)


def _random(seed: int, cuts: tuple[int | None, ...], n_users: int = 4, items: str = "abcdefghij") -> Input:
    """Lists of 4 to 8 entries with ties and repeats, and up to 6 judged items; the same on every machine."""
    state = seed

    def draw(options: Sequence[Any]) -> Any:
        """Return one of the options, by the high bits of a linear congruential generator (Knuth's MMIX)."""
        nonlocal state
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        return options[(state >> 33) % len(options)]

    run, truth = {}, {}
    for user in (f"u{number}" for number in range(1, n_users + 1)):
        entries = [(draw(items), draw((0.0, 0.5, 1.0, 1.5, 2.0, 2.5))) for _ in range(draw(range(4, 9)))]
        # An item does not tie with its own repeat: then its first place would not be known.
        run[user] = [pair for at, pair in enumerate(entries) if pair not in entries[:at]]
        truth[user] = {draw(items): draw((0.0, 0.5, 1.0, 1.0, 2.0, 3.0)) for _ in range(draw(range(2, 7)))}
    seen = {"u1": sorted(truth["u1"])[:1]}
    return Input(run, truth, cuts, tuple(_ALL_DECISIONS), {"catalogue": [*items[:-1]], "seen": seen})


_ALL_DECISIONS = (*DECISIONS, "relevant_from", "max_grade")
# The first input on which a decision moves a metric is that decision's vector: the smallest come first.
INPUTS: dict[str, Input] = {
    "one item": _written("u1: a", "u1: a1", (1, None), "gain max_grade"),
    "one list": _written(
        "u1: abcde", "u1: b1 d1 x1", (3, 10, None), "discount ideal recall_over precision_over ap_over"
    ),
    "grades": _written(
        "u1: abcde", "u1: a0.5 b0 c1 d3 x2", shows="gain discount ideal ap_over relevant_from max_grade"
    ),
    "short list": _written(
        "u1: ba", "u1: a1 x2 y1", (5, None), "ideal precision_over recall_over ap_over accuracy_over"
    ),
    "more relevant than places": _written(
        "u1: axb, u2: bca", "u1: a1 b2 c1 d1, u2: a1 c3",
        shows="recall_over precision_over ap_over ideal f1_of average gini_over discount",
    ),
    "no relevant items": _written(
        "u1: abc, u2: ab, u3: ba, u4: ac", "u1: b1, u2: a0, u3:", shows="no_truth relevant_from"
    ),
    "no list": _written("u1: abc, u3:", "u1: b1, u2: a1, u3: c2", shows="no_list"),
    "nobody has a list": _written("u1:", "u1: a1", (2,)),
    "repeats": _written(
        "u1: abacb, u2: ccd", "u1: a2 c1 x1 y1 z1, u2: c1 x1 y1 z1", (3, None), "duplicates"
    ),
    "tie across the cut-off": _written({"u1": _list("cab", 1, 1, 1)}, "u1: b1", (1, 2), "ties"),
    "ties": _written(
        {"u1": _list("dbcae", 3, 2, 2, 2, 1), "u2": _list("badec", 2, 2, 1, 1, 1)},
        "u1: a0 b3 d1 x1, u2: b1 c2 e0", shows="ties",
    ),
    "all items tied": _written(
        {"u1": _list("gace", 1, 1, 1, 1), "u2": _list("gedb", 2, 2, 2, 2)},
        "u1: g1 c2, u2: b0.5 d1 g0", (1, 2), "ties",
    ),
    "unsorted scores": _written({"u1": _list("abcd", 0.5, 2, -1, 1.25)}, "u1: c1 b2", shows="ties"),
    "ids that are numbers": Input(
        {"u1": [("9", 1), ("10", 1), ("2", 1)]}, {"u1": {"9": 1, "2": 2}}, (1, 2), ("ties",)
    ),
    "unknown items": _written(
        "u1: xab, u2: cba", "u1: x1 b2 y1, u2: b1 y3 x0", shows="unknown_items",
        context={"catalogue": [*"abcd"]},
    ),
    "seen items": _written(
        "u1: abc, u2: cba", "u1: a1 c2 q1, u2: b1 a1", shows="seen_truth",
        context={"seen": {"u1": ["a", "q"], "u2": ["b", "c"]}},
    ),
    "negative grades": _written(
        "u1: abc, u2: cab", "u1: a-1 b1 x-2, u2: c-1", shows="negative_grades", asks_for="negative_grades"
    ),
    "unjudged items": _written(
        "u1: abcde, u2: dc, u3:", "u1: b1 d2 c0, u2: a1, u3: a1", shows="judged_only"
    ),
    "ranks with gaps": _written(
        {"u1": [("b", 3), ("a", 1), ("c", 6)], "u2": [("c", 2)]}, "u1: b1 c2 x1, u2: c1 a1",
        shows="rank_gaps", context={"ranks": True}, asks_for="rank_gaps",
    ),
    "users of different weight": _written(
        "u1: abcd, u2: dcba, u3: ba", "u1: a1 d1, u2: b2 c1 d1 x1, u3: a1",
        shows="average f1_of gini_over recall_over",
    ),
    "random 1": _random(1, (3, None)),
    "random 2": _random(2, (2, 10)),
    "random 3": _random(3, (3, None), n_users=2, items="abcdef"),
}  # fmt: skip

# What metrics about the items read besides lists and truth; f has no vector, e neither a kind nor a price.
_KNOWN: dict[str, Any] = {
    "train": {
        "u1": ["a", "b", "c"], "u2": ["a", "d", "g"], "u3": ["a", "b", "e", "g"], "u5": ["a", "c", "g"],
    },
    "items": {
        "kind": {"a": ["x"], "b": ["x", "y"], "c": ["z"], "d": ["y"], "f": ["x", "y", "z"], "g": ["w"]},
        "price": {"a": 1.5, "b": 4.0, "c": 0.25, "d": 10.0, "f": -2.0, "x": 3.0},
    },
    "embeddings": {
        "a": [1.0, 0.0, 2.0], "b": [0.0, 1.0, 0.0], "c": [1.0, 1.0, -1.0], "d": [0.0, 0.0, 0.0],
        "e": [0.5, 3.0, 1.0], "g": [2.0, 0.0, 4.0],
    },
    "reference": {"u1": ["b", "a", "x"], "u2": ["c", "a"], "u3": ["a", "b", "c", "d"], "u4": []},
    "intents": "kind",
}  # fmt: skip
_CATALOGUE = [*"abcdefgh"]
# Other forms of what is known, on one input each.
_OTHER_KNOWN: dict[str, dict[str, Any]] = {
    "with grades in train": {
        "train": {"u1": {"a": 3, "b": 1}, "u2": {"a": 1, "c": 2, "d": 0.5}, "u3": {"e": 1}},
        "profiles": {"u1": [1.0, 0.0, 1.0], "u2": [0.0, 0.0, 0.0]},
    },
    "without train": {
        "train": None, "popularity": {"a": 4, "b": 2, "c": 1}, "profiles": {"u1": [0.0, 2.0, 1.0]},
        "reference": ["b", "c", "a"], "intents": {"u1": {"b": ["p", "q"], "d": ["q"]}, "u2": {"c": ["r"]}},
    },
    "with repeats in train": {"train": {"u1": ["a", "a", "b"], "u2": ["a", "c", "c", "c"], "u3": ["b"]}},
    "with rules for the items": {"exclude": ["b"], "eligible": {"u1": ["a", "b", "c"], "u2": ["a", "x"]}},
    "with the number of items": {"catalogue": 12},
    "with popularity and train": {"popularity": {"a": 4, "b": 2, "c": 1, "g": 2, "q": 3}},
}  # fmt: skip
# Inputs that only the questions of _ALSO are about: an edge that few metrics see.
_EDGES: dict[str, Input] = {
    "nothing to refuse": _written(
        "u1: abc, u2: cab", "u1: b1, u2: c2 a0",
        context={"catalogue": [*"abcd"], "seen": {"u1": ["a"], "u2": ["d"]}},
    ),
    "neither list nor relevant items": _written("u1: ab, u2:", "u1: a1 x1, u2: b0"),
    "nobody is shown a judged item": _written("u1: a", "u1: b1", (1,)),
    "a relevant item twice": _written("u1: aabc, u2: ba", "u1: a2 c1, u2: a1", (3, None)),
    "a judged item ties and is repeated": _written({"u1": _list("aab", 2, 1, 1)}, "u1: a1 x1"),
    "ranks that repeat an item": _written(
        {"u1": [("b", 2), ("a", 1), ("b", 4), ("a", 5), ("c", 7)]}, "u1: b1 c2 x1", (3, None),
        context={"ranks": True}, asks_for="rank_gaps",
    ),
    "an unjudged item ties with its repeat": _written(
        {"u1": _list("caab", 2, 1, 1, 1)}, "u1: b1 x1", (3, None)
    ),
    "pooled items that nobody may see": _written(
        "u1: abc", "u1: a-1 b0 c1", context={"catalogue": ["b", "c"], "seen": {"u1": ["a"]}}
    ),
    "equally good intents": _written(
        "u1: be, u2:", "u1: b1 c1 d1, u2: e1",
        context={"intents": {"u1": {"b": ["p", "q"], "c": ["p", "r"], "d": ["q", "s"]}}},
    ),
    "cold items": _written(
        "u1: h, u2: hag, u4: afcb", "u1: h1, u2: a1, u4: b1",
        context={"train": {"u1": ["a", "f"], "u2": ["f"], "u3": [], "u4": ["a", "b"], "u5": ["a"]}},
    ),
    "one user and one item": _written(
        "u1: a", "u1: a1", (1,), context={"catalogue": ["a"], "train": {"u1": ["a"]}}
    ),
    "vectors of zeros": _written(
        "u1: dz, u2: az", "u1: d1",
        context={"embeddings": {"a": [1.0, 0.0], "d": [0.0, 0.0], "z": [0.0, 0.0]}},
    ),
    "repeats in the reference": _written(
        "u1: abc, u2: bca", "u1: a1, u2: b1", context={"reference": {"u1": ["b", "b", "a"], "u2": ["a"]}}
    ),
}  # fmt: skip
_RATINGS = {
    "stars": _written(
        {"u1": _list("abc", 3.5, 4.0, 1.0), "u2": _list("ade", 3.0, 3.25, 2.0), "u3": _list("b", 3.0)},
        "u1: a4 b4 c2, u2: a3.5 d1 e2, u3: b3", (None,),
    ),
    "clicks": _written(
        {
            "u1": _list("abcd", 0.9, 0.4, 0.4, 0.1), "u2": _list("abc", 1.0, 0.3, 0.75),
            "u3": _list("a", 0.5),
        },
        "u1: a1 b1 c0 d0, u2: a0 b0 c1, u3: a1", (None,),
    ),
    "probabilities close together": Input(
        {"u1": _list("abcdefghij", 0.12, 0.14, 0.16, 0.18, 0.52, 0.54, 0.58, 0.58, 0.96, 0.98)},
        {"u1": {item: float(item in "bdeij") for item in "abcdefghij"}}, (None,),
    ),
    "certain": _written(
        {"u1": _list("abc", 0.0, 1.0, 0.5), "u2": _list("ab", 1.0, 0.0)}, "u1: a1 b0 c1, u2: a1 b0", (None,)
    ),
    "edges of bins": _written(
        {"u1": _list("abcdefg", 0.25, 0.28, 0.3, 0.5, 0.7, 5 / 6, 0.875)},
        "u1: a1 b1 c0 d0 e1 f0 g1", (None,),
    ),
}  # fmt: skip
# Columns of items= that the parameters which name one are given, and what a value of a decision asks for.
_COLUMNS = {"by": "kind", "of": "price"}
_TOGETHER: dict[tuple[str, str], dict[str, Any]] = {("ideal", "k"): {"gain": "binary"}}
_FREE_VALUES: dict[str, tuple[Any, ...]] = {
    "relevant_from": (2.0, 0.75),
    "max_grade": (4.0,),
    "gain": (((0.0, 0.0), (0.5, 0.25), (1.0, 1.0), (2.0, 5.0), (3.0, 6.0)),),
    "discount": ((1.0, 0.5, 0.25),),
}


@dataclass(frozen=True)
class _Also:
    """A question besides those of one decision at a time: of which metrics, and at how many cut-offs."""

    input: str
    conventions: Mapping[str, Any]
    of: Callable[[Metric], bool]
    params: Mapping[str, Any] = field(default_factory=dict)
    cuts: int = 1


def _named(*names: str) -> Callable[[Metric], bool]:
    return lambda metric: metric.name in names and "predictions" not in metric.needs


def _predicted(*names: str) -> Callable[[Metric], bool]:
    return lambda metric: metric.name in names and "predictions" in metric.needs


def _readers(*decisions: str) -> Callable[[Metric], bool]:
    return lambda metric: set(decisions) <= set(metric.reads)


def _of_the_catalogue(metric: Metric) -> bool:
    return metric.kind == "catalogue"


_SOME = _named(
    "precision", "recall", "ndcg", "map", "mrr", "judged", "count", "bpref", "auc", "accuracy", "ild",
    "novelty", "kinds", "alpha_ndcg", "ee_l", "compat", "gini",
)  # fmt: skip
_REFUSING = ("no_truth", "no_list", "duplicates", "unknown_items", "seen_truth")
# What one decision at a time leaves unasked: errors, two decisions at once, edges of a formula.
_ALSO: tuple[_Also, ...] = (
    _Also("nothing to refuse", dict.fromkeys(_REFUSING, "error"), _readers("negative_grades")),
    _Also(
        "ties",
        {"ties": "expected"},
        lambda m: m.tied.ties in ("refuse", "shown") and "ties" in m.reads,
    ),
    _Also("one list", {"ties": "expected"}, lambda metric: metric.tied.ties == "refuse"),
    _Also("ties", {"ties": "expected"}, _named("epc"), {"relevance": "no"}),
    _Also("tie across the cut-off", {"ties": "best"}, _of_the_catalogue),
    _Also("ties", {"ties": "worst"}, _of_the_catalogue, cuts=2),
    _Also("a relevant item twice", {"duplicates": "all"}, _readers("duplicates")),
    _Also("a judged item ties and is repeated", {"ties": "expected"}, _SOME),
    _Also("a judged item ties and is repeated", {"ties": "worst", "duplicates": "all"}, _SOME),
    _Also("a judged item ties and is repeated", {"ties": "by_id_desc"}, _SOME),
    _Also("a judged item ties and is repeated", {"ties": "expected", "duplicates": "collapse"}, _SOME),
    _Also("ranks that repeat an item", {"rank_gaps": "kept", "duplicates": "collapse"}, _SOME, cuts=2),
    _Also("an unjudged item ties with its repeat", {"ties": "expected"}, _SOME),
    _Also(
        "an unjudged item ties with its repeat",
        {"ties": "best"},
        _named("precision", "recall", "ndcg", "mrr"),
    ),
    _Also("grades", {"max_grade": 2.0}, _readers("max_grade")),
    _Also("short list", {"max_grade": 1.0}, _readers("max_grade")),
    _Also("one list", {}, _named("sdcg", "inst", "bpm"), {"min_grade": 1.0}),
    _Also("grades", {"gain": ((0.0, 0.0), (1.0, 1.0))}, _readers("gain")),
    _Also("short list", {"ideal": "k"}, _readers("ideal")),
    _Also("one list", {"ideal": "k"}, _readers("ideal")),
    _Also("one list", {"discount": (1.0, 0.5, 0.25)}, _readers("discount"), cuts=3),
    _Also("ranks with gaps", {"rank_gaps": "kept"}, _named("auc", "pauc", "average_rank", "valid", "unseen")),
    _Also("ranks with gaps", {"rank_gaps": "kept"}, _named("surprisal"), {"over": "k"}, cuts=2),
    _Also("ranks with gaps", {"rank_gaps": "kept", "judged_only": "yes"}, _readers("rank_gaps"), cuts=1),
    _Also("unjudged items", {"judged_only": "yes", "no_list": "skip"}, _readers("judged_only", "no_list")),
    _Also("unjudged items", {"judged_only": "yes", "no_list": "error"}, _SOME),
    _Also("nobody is shown a judged item", {"judged_only": "yes"}, _SOME),
    _Also("nobody is shown a judged item", {"judged_only": "yes"}, _of_the_catalogue),
    _Also("unknown items", {"unknown_items": "drop", "judged_only": "yes"}, _readers("judged_only")),
    _Also("unknown items", {"unknown_items": "error"}, _named("ild", "kinds", "novelty", "overlap")),
    _Also("seen items", {"seen_truth": "error"}, _named("ild", "kinds", "novelty", "overlap")),
    _Also("ties", {"ties": "expected", "judged_only": "yes"}, _SOME),
    _Also("ties", {"ties": "expected", "ap_over": "hits"}, _readers("ap_over"), cuts=2),
    _Also("ties", {"ties": "expected", "average": "pooled"}, _readers("average")),
    _Also("no list", {"average": "pooled"}, _readers("average"), cuts=2),
    _Also("no relevant items", {"average": "pooled", "no_truth": "zero"}, _readers("average"), cuts=2),
    _Also("no relevant items", {"average": "pooled", "no_truth": "unjudged"}, _readers("average")),
    _Also("users of different weight", {"f1_of": "means", "precision_over": "min"}, _readers("f1_of")),
    _Also("users of different weight", {"f1_of": "means", "recall_over": "min"}, _readers("f1_of")),
    _Also("more relevant than places", {"average": "pooled", "recall_over": "min"}, _named("recall")),
    _Also("neither list nor relevant items", {"no_list": "error"}, _SOME),
    _Also("neither list nor relevant items", {"no_truth": "error"}, _SOME),
    _Also("neither list nor relevant items", {"no_truth": "zero", "no_list": "skip"}, _SOME),
    _Also("no list", {}, _named("count"), {"what": "relevant"}),
    _Also("no list", {}, _named("utility"), {"missed": -1.0}),
    _Also("no list", {"accuracy_over": "k"}, _named("accuracy", "mcc")),
    _Also("no relevant items", {}, _named("epc"), {"relevance": "no"}),
    _Also(
        "pooled items that nobody may see",
        {"negative_grades": "unjudged", "unknown_items": "error", "seen_truth": "drop"},
        _named("inf_ap", "recall", "bpref"),
    ),
    _Also("equally good intents", {}, lambda metric: "intents" in metric.needs, cuts=2),
    _Also("cold items", {}, _named("novelty"), {"cold": "drop"}, cuts=2),
    _Also("cold items", {}, _named("novelty", "surprisal", "epc", "alignment", "unexpectedness"), cuts=2),
    _Also("cold items", {}, _named("unexpectedness"), {"missing": "zero"}, cuts=2),
    _Also("cold items", {}, _named("tail_share"), {"head": 0.5}, cuts=2),
    _Also("cold items", {}, _named("cold_coverage"), {"below": 1.0}),
    _Also("cold items", {}, _named("cold_coverage"), {"below": 2.0}),
    _Also("cold items", {}, _named("exposure_gap", "exposure_ratio"), {"merit": "train"}),
    _Also("one user and one item", {}, _named("gini", "entropy", "personalisation", "surprisal", "novelty")),
    _Also("one user and one item", {}, _named("gini"), {"corrected": "yes"}),
    _Also("vectors of zeros", {}, _named("ild", "ils", "alignment", "unexpectedness"), cuts=2),
    _Also("vectors of zeros", {}, _named("ild"), {"distance": "jaccard"}),
    _Also("repeats in the reference", {}, _named("overlap", "average_overlap", "rbo", "serendipity"), cuts=2),
    _Also("repeats in the reference", {}, _named("overlap"), {"over": "union"}, cuts=2),
    _Also("repeats", {}, _named("overlap"), {"over": "union"}, cuts=2),
    _Also("repeats", {}, _named("surprisal"), {"over": "k"}, cuts=2),
    *(
        _Also(name, {}, _named(metric), params)
        for name in ("with grades in train", "with repeats in train", "with popularity and train")
        for metric, params in (
            ("novelty", {"over": "events"}),
            ("average_popularity", {"over": "events"}),
            ("average_popularity", {"over": "users"}),
            ("awrf", {"target": "train"}),
            ("exposure_gap", {"merit": "train"}),
        )
    ),
    _Also("with grades in train", {}, _named("novelty"), {"over": "events", "users": 8.0}),
    _Also("unknown items", {}, _named("awrf"), {"target": "equal"}),
    _Also("unknown items", {}, _named("awrf"), {"target": "train"}),
    _Also("unknown items", {}, _named("awrf"), {"target": "x:1|y:3"}),
    _Also("certain", {}, _predicted("ece", "mce"), {"bins": 4.0, "binning": "count"}),
    _Also("edges of bins", {}, _predicted("ece", "mce"), {"bins": 6.0}),
    _Also("edges of bins", {}, _predicted("ece", "mce"), {"bins": 25.0}),
    _Also("edges of bins", {}, _predicted("ece", "mce"), {"bins": 4.0, "binning": "count"}),
    _Also("clicks", {}, _predicted("ece", "mce"), {"bins": 3.0, "binning": "count"}),
)


@dataclass(frozen=True)
class Vector:
    """One question of the standard and its answer."""

    family: str
    input: str
    metric: str
    k: int | None
    params: Mapping[str, Any]
    conventions: Mapping[str, Any]
    expected: Mapping[str, Any]  # {"value": …, "cases": {…}}, without cases, or {"error": True}

    @property
    def name(self) -> str:
        """How the vector is called: metric, input and the decisions that differ."""
        cut = "" if self.k is None else f"@{self.k}"
        changed = "".join(f" {name}={value}" for name, value in self.conventions.items())
        own = ", ".join(f"{name}={value}" for name, value in self.params.items() if value is not None)
        return f"{self.metric}{f'({own})' if own else ''}{cut} of {self.input!r}{changed}"

    def question(self) -> dict[str, Any]:
        """Return what an implementation is asked.

        That is the input, the metric, its parameters, k and the decisions.
        """
        asked = {n: getattr(self, n) for n in ("family", "metric", "k", "params", "conventions")}
        return inputs(self.family)[self.input].to_dict() | asked

    def to_dict(self) -> dict[str, Any]:
        """Return the vector as the files hold it; its input is stored apart."""
        names = ("input", "metric", "k", "params", "conventions", "expected")
        return {name: getattr(self, name) for name in names}


def family_of(metric: Metric) -> str:
    """Return the family of a metric, which is a file of vectors: the module it is defined in."""
    return metric.body.__module__.rpartition(".")[2]


def standard_metrics() -> list[Metric]:
    """Return the metrics the standard describes: those of this package, not those of plug-ins."""
    metrics = [*METRICS.values(), *RATINGS.values()]
    return [metric for metric in metrics if metric.body.__module__.startswith("recsys.")]


@cache
def inputs(family: str) -> dict[str, Input]:
    """Return the inputs of a family; if its metrics are about items, with what is known about the items."""
    if family == "predictions":
        return _RATINGS
    needs = {need for metric in standard_metrics() if family_of(metric) == family for need in metric.needs}
    known = dict(_KNOWN) if "lists" in needs else {}
    known |= {"full_ranking": True} if "candidates" in needs else {}
    known |= {"catalogue": _CATALOGUE} if "catalogue" in needs else {}
    found = dict(INPUTS)
    if "lists" in needs:
        source = replace(INPUTS["users of different weight"], shows=())
        found |= {name: replace(source, context=changes) for name, changes in _OTHER_KNOWN.items()}
    for name, source in (found | _EDGES).items():
        context = {key: value for key, value in {**known, **source.context}.items() if value is not None}
        found[name] = replace(source, context=context)
    return found


def vectors(metrics: Iterable[str] | None = None) -> list[Vector]:
    """Return every vector of the standard, or those of some metrics, in the order of the registry."""
    wanted = None if metrics is None else set(metrics)
    chosen = (metric for metric in standard_metrics() if wanted is None or metric.name in wanted)
    return [vector for metric in chosen for vector in _vectors_of(metric)]


@cache
def families() -> dict[str, dict[str, Any]]:
    """Return the files of vectors, by the name of the family: what they hold, ready for JSON."""
    files: dict[str, dict[str, Any]] = {}
    for vector in vectors():
        file = files.setdefault(
            vector.family, {"standard": VERSION, "family": vector.family, "inputs": {}, "vectors": []}
        )
        file["inputs"].setdefault(vector.input, inputs(vector.family)[vector.input].to_dict())
        file["vectors"].append(vector.to_dict())
    return files


def _vectors_of(metric: Metric) -> list[Vector]:
    """Ask for the metric by default on every input, then with each parameter and decision that moves it."""
    every = [name for name in inputs(family_of(metric)) if name not in _EDGES]
    columns = _COLUMNS if "items" in metric.needs else {}
    base = {n: columns.get(n, default) for n, default in metric.params.items()}
    found: list[Vector] = []
    defaults: dict[tuple[str, int | None], Mapping[str, Any]] = {}
    for name in every:
        source = inputs(family_of(metric))[name]
        named = {n: getattr(Conventions(), n) for n in [source.asks_for] if n in metric.reads}
        asked = _ask(metric, name, base, named)
        defaults |= {(name, vector.k): vector.expected for vector in asked}
        found += [v for v in asked if "error" in named.values() or "error" not in v.expected]
    for name, value in _other_params(metric):
        found += _that_differ(defaults, metric, base | {name: value}, {}, every)
    for decision in metric.reads:
        shows = [name for name in every if decision in inputs(family_of(metric))[name].shows]
        for value in decision_values(decision):
            together = _TOGETHER.get((decision, value), {}) if isinstance(value, str) else {}
            against = defaults
            if together:
                against = {(v.input, v.k): v.expected for n in shows for v in _ask(metric, n, base, together)}
            found += _that_differ(against, metric, base, {decision: value, **together}, shows)
    questions = {_key(vector) for vector in found}
    for also in _ALSO:
        if also.of(metric) and also.input in inputs(family_of(metric)):
            more = _ask(metric, also.input, {**base, **also.params}, also.conventions)
            found += [v for v in more[: also.cuts] if _key(v) not in questions]
            questions |= {_key(vector) for vector in more[: also.cuts]}
    return found


def _key(vector: Vector) -> str:
    return repr((vector.input, vector.k, sorted(vector.params.items()), sorted(vector.conventions.items())))


def _that_differ(
    against: Mapping[tuple[str, int | None], Mapping[str, Any]],
    metric: Metric,
    params: Mapping[str, Any],
    changes: Mapping[str, Any],
    names: Sequence[str],
) -> list[Vector]:
    """Return the vectors of the first input and the first random one on which a change moves the metric."""
    found: list[Vector] = []
    for is_random in (False, True):
        moved = (
            vector
            for name in names
            if name.startswith("random") == is_random
            for vector in _ask(metric, name, params, changes)
            if vector.expected != against.get((name, vector.k), vector.expected)
            and ("error" in changes.values() or "error" not in vector.expected)
        )
        found += islice(moved, 1)
    return found


def decision_values(decision: str) -> list[Any]:
    """Return every value of a decision but the default: its words, and one or two that are not words."""
    default = getattr(Conventions(), decision)
    words = [value for value in DECISIONS.get(decision, {}) if value != default]
    return [*words, *_FREE_VALUES.get(decision, ())]


def _other_params(metric: Metric) -> Iterator[tuple[str, Any]]:
    """Values of the parameters other than the default: those the metric declares, else another number."""
    for name, default in metric.params.items():
        choices = metric.choices.get(name)
        if isinstance(choices, tuple):
            yield from ((name, value) for value in choices if value not in (default, callable))
        elif name in _COLUMNS and "items" not in metric.needs:
            yield name, _COLUMNS[name]
        elif isinstance(default, float):
            yield name, _other_number(default)


def _other_number(default: float) -> float:
    """Return a number near a default that moves most metrics on lists of a few items."""
    if default == 0 or default >= 100:
        return 0.25 if default == 0 else 3.0
    return default * 2 if 1 <= default <= 2 else default / 2


def _ask(metric: Metric, name: str, params: Mapping[str, Any], changes: Mapping[str, Any]) -> list[Vector]:
    """Return the vectors of one input, one per cut-off; none where the input lacks what the metric needs."""
    family = family_of(metric)
    source = inputs(family)[name]
    cuts: list[int | None] = [None]
    if metric.at_k != "never":
        cuts = [k for k in source.cuts if k is not None or metric.at_k == "optional"]
    inside = ", ".join(f"{n}={v}" for n, v in params.items() if v is not None)
    text = metric.name + (f"({inside})" if inside else "")
    requests = {k: text if k is None else f"{text}@{k}" for k in cuts}
    rules = Conventions(**changes)
    try:
        expected = _evaluate(metric, name, requests, rules)
    except NotDefinedError:
        return []
    except RecsysError:
        expected = {}
        for k, request in requests.items():  # one of them may be refused, and not the others
            try:
                expected |= _evaluate(metric, name, {k: request}, rules)
            except RecsysError:
                expected[k] = {"error": True}
    return [Vector(family, name, metric.name, k, dict(params), dict(changes), expected[k]) for k in cuts]


@lru_cache(maxsize=64)
def _read(family: str, name: str, requests: tuple[str, ...]) -> EvaluationRun:
    """Return an input as it is evaluated, under one decision after the other."""
    source = inputs(family)[name]
    lists: Any = source.run
    options = {key: value for key, value in source.context.items() if key != "ranks"}
    if "ranks" in source.context:
        import pandas as pd

        rows = [(user, *entry) for user, entries in source.run.items() for entry in entries]
        lists = pd.DataFrame(rows, columns=["user", "item", "rank"])
    return CommonInputs(requests, EvaluationOptions(**options)).run_of(lists, source.truth)


def _evaluate(
    metric: Metric, name: str, requests: Mapping[int | None, str], conventions: Conventions
) -> dict[int | None, dict[str, Any]]:
    """Return what this package answers, by k.

    That is the value over all cases and, where there are some, of the cases.
    """
    predicted = "predictions" in metric.needs
    names, source = [*requests.values()], inputs(family_of(metric))[name]
    result: Evaluation
    with hush(Warning):
        if predicted:
            run = {user: dict(entries) for user, entries in source.run.items()}
            result = evaluate_ratings(run, source.truth, names)
        else:
            result = _read(family_of(metric), name, tuple(names)).evaluate(conventions)
    answers: dict[int | None, dict[str, Any]] = {}
    for k, (column, value) in zip(requests, result.items(), strict=True):
        answers[k] = {"value": none_if_nan(value)}
        if metric.kind != "catalogue" and not (predicted and metric.kind in ("pooled", "rows")):
            rows = zip(result.per_case.ids.tolist(), result.per_case.columns[column].tolist(), strict=True)
            answers[k]["cases"] = {user: none_if_nan(number) for user, number in rows}
    return answers
