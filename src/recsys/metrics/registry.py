"""What a metric is, the only list of them, and how one is requested: from "ndcg(gain=exp2)@10" and back.

A metric is a function `(reading, k, conventions, **params)` that returns one float64 per case, or a
`Terms` where it is made of two terms that a summary may average before combining them. One of kind
"catalogue" gets a `CatalogueReading` instead, how often each item was shown to all cases, and returns one
number. Names, parsing, help, docs, bounds and tests read the registry.

The grammar of a request is a name, optional parameters in brackets and an optional cut-off; nothing is
evaluated. A request prints in one canonical way, so equal requests have equal names.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np

from recsys.conventions.decisions import DECISIONS, Conventions
from recsys.errors import (
    ConventionError,
    CutoffError,
    NotDefinedError,
    Phrase,
    UnknownNameError,
    check_choice,
)
from recsys.metrics.traits import (
    Additivity,
    Attainable,
    Between,
    EqualScores,
    ItemsShown,
    Pooling,
    TruthRead,
    records_of,
)
from recsys.records.arrays import Array, Context, Float, cached_property
from recsys.records.registry import Registry

AtK = Literal["optional", "required", "never"]
Kind = Literal["per_case", "catalogue", "pooled", "rows"]


class Terms(NamedTuple):
    """One value per case and its two terms, for summaries that average the terms first."""

    value: Float
    first: Float
    second: Float


def ratio(numerator: Float, denominator: Float) -> Terms:
    """Numerator over denominator per case; 0/0 is 0."""
    return Terms(divide_or_zero(numerator, denominator), numerator, denominator)


def divide_or_zero(values: Array, by: Array) -> Float:
    """Return values / by, and 0 where `by` is 0."""
    if len(by) and by.min() > 0:
        return values / by
    return np.divide(values, by, out=np.zeros(len(values)), where=by != 0)


def divide_or_nan(values: Array, by: Array) -> Float:
    """Return values / by, and NaN where `by` is 0."""
    return np.asarray(np.divide(values, by, out=np.full(len(values), np.nan), where=by != 0))


@dataclass(frozen=True, eq=False)
class Metric:
    """A registered metric: its function, its documentation and what the engine must know about it.

    `kind` is "catalogue" for one number over all cases; of predicted numbers, "pooled" for a function of
    two sums over all rows, and "rows" for one that reads all rows at once.
    """

    name: str
    body: Callable[..., Float | Terms | float]
    formula: str
    reference: str
    at_k: AtK = "optional"
    kind: Kind = "per_case"
    better: Literal["higher", "lower", "zero"] = "higher"
    bounds: tuple[float, float] = (0.0, 1.0)
    empty: float | None = 0.0  # of a case without a list; None: what the formula gives
    conventions: tuple[str, ...] = ()
    choices: Mapping[str, tuple[Any, ...] | Between] = field(default_factory=dict)  # what a parameter may be
    aliases: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    population: Literal["relevant", "judged", "listed"] = "relevant"
    tied: EqualScores = field(default_factory=EqualScores)
    pooling: Pooling = field(default_factory=Pooling)
    attainable: Attainable = field(default_factory=Attainable)
    shown: ItemsShown = field(default_factory=ItemsShown)
    truth: TruthRead = field(default_factory=TruthRead)
    additivity: Additivity = field(default_factory=Additivity)

    @cached_property
    def params(self) -> Mapping[str, Any]:
        """The parameters of the function, which are its keyword-only arguments, and their defaults."""
        arguments = inspect.signature(self.body).parameters.values()
        return {p.name: p.default for p in arguments if p.kind is inspect.Parameter.KEYWORD_ONLY}

    @property
    def over(self) -> str:
        """The convention that a parameter `over` stands for: the only divisor among its own."""
        divisors = [name for name in self.conventions if name.endswith("_over")]
        return divisors[0] if len(divisors) == 1 else ""

    @property
    def unpaired(self) -> str:
        """Why models cannot be compared case by case on it; empty if they can."""
        if self.better == "zero":
            return "neither more nor less of it is better"
        if self.kind != "rows":
            return ""
        return f"it is computed over all rows at once and has no value per user; ask for user_{self.name}"

    @property
    def meaning(self) -> str:
        """The first paragraph of the docstring, on one line."""
        return " ".join((inspect.getdoc(self.body) or "").split("\n\n")[0].split())

    @property
    def details(self) -> str:
        """The paragraphs between the first one and the example."""
        paragraphs = (inspect.getdoc(self.body) or "").split("\n\n")[1:]
        return " ".join(" ".join(p.split()) for p in paragraphs if not p.lstrip().startswith(">>>"))

    @property
    def measures_coverage(self) -> bool:
        """Whether it is the share of all items that anybody is shown."""
        return self.shown.counts_items == "share" and self.shown.which_items is None

    @property
    def reads(self) -> tuple[str, ...]:
        """Every convention that can change the value of this metric."""
        if "predictions" in self.needs:
            return ()
        always: tuple[str, ...] = (
            "relevant_from",
            "no_truth",
            "no_list",
            "ties",
            "duplicates",
            "rank_gaps",
            "unknown_items",
            "seen_truth",
            "judged_only",
            "negative_grades",
        )
        if self.population == "listed":
            always = ("no_list", "ties", "duplicates", "rank_gaps", "judged_only", "negative_grades")
        if self.kind == "catalogue":
            always = (
                "ties", "duplicates", "rank_gaps", "unknown_items", "seen_truth", "judged_only",
                "negative_grades",
            )  # fmt: skip
        return tuple(dict.fromkeys((*self.conventions, *always)))


METRICS: Registry[Metric] = Registry("metric", "recsys.metrics")
"""Every metric of lists, by name; `@metric(...)` adds one."""
_ALIASES: dict[str, tuple[str, Mapping[str, Any]]] = {}
HITS_ABOVE = "the value of a hit depends on the other hits above it"  # why a metric is not additive
RATINGS: Registry[Metric] = Registry("rating metric", "recsys.metrics")
"""Every metric of predicted numbers, by name: it reads rows, not places, and may share a metric's name."""
_RATING_NAMES: dict[str, str] = {}


Body = TypeVar("Body", bound=Callable[..., "Float | Terms | float"])


def metric(name: str, *, formula: str, reference: str, **facts: Any) -> Callable[[Body], Body]:
    """Register a function as a metric. Its docstring is its documentation; see CONTRIBUTING.md.

    Args:
        name: how the metric is requested, such as "ndcg".
        formula: its definition in one line.
        reference: the paper or program it comes from.
        facts: other fields of `Metric` and of its records (traits.py); `aliases` may also be a sequence of
            names. With `range`, the bounds are 0 and infinity unless they are given.

    Raises:
        ConventionError: a metric of this name or alias exists.
    """

    def register(body: Body) -> Body:
        aliases = facts.pop("aliases", {})
        if not isinstance(aliases, Mapping):
            aliases = {alias: {} for alias in aliases}
        if facts.get("population") == "listed":
            facts.setdefault("tie_order", "items" if facts.get("mean_of_items") else "unknown")
        if "range" in facts:
            facts.setdefault("bounds", (0.0, math.inf))
        if isinstance(rule := facts.get("combine_if"), tuple):
            facts["conventions"] = (*facts.get("conventions", ()), rule[0])
        registered = Metric(name, body, formula, reference, aliases=aliases, **records_of(facts))
        for key in (name, *aliases):
            if key in METRICS or key in _ALIASES:
                raise ConventionError(f"a metric called {key!r} is registered already.")
        METRICS[name] = registered
        _ALIASES.update({alias: (name, preset) for alias, preset in aliases.items()})
        return body

    return register


def chained_metric(name: str, **facts: Any) -> Callable[[Body], Body]:
    """Register a metric of whole lists in which the hits above a hit decide what that one is worth."""
    return metric(name, **{"at_k": "never", "ties": "refuse", "not_additive": HITS_ABOVE, **facts})


def candidates_metric(name: str, **facts: Any) -> Callable[[Body], Body]:
    """Register a metric of lists that rank every candidate; a case without a list has no value."""
    return metric(name, **{"at_k": "never", "empty": math.nan, "needs": ("candidates",), **facts})


def shown_metric(name: str, *, needs: tuple[str, ...] = (), **facts: Any) -> Callable[[Body], Body]:
    """Register a metric of the items shown to each user: it reads the lists and needs no relevant items."""
    return metric(name, needs=("lists", *needs), ties="shown", population="listed", **facts)


def catalogue_metric(name: str, **facts: Any) -> Callable[[Body], Body]:
    """Register a metric of the items shown to all users; its function gets a `CatalogueReading`."""
    return shown_metric(name, kind="catalogue", **facts)


def lookup(name: str) -> tuple[Metric, Mapping[str, Any]]:
    """Return the metric of this name or alias, and the parameters the alias stands for.

    Raises:
        UnknownNameError: no metric has this name.

    >>> lookup("f1")[0].name, dict(lookup("hit_rate")[1])
    ('f', {})
    """
    key = name.lower()
    if key not in METRICS and key not in _ALIASES and key not in _RATING_NAMES:
        METRICS.load_plugins()
    target, preset = _ALIASES.get(key, (key, {}))
    if target in METRICS:
        return METRICS[target], preset
    if key in _RATING_NAMES:
        return RATINGS[_RATING_NAMES[key]], {}
    raise UnknownNameError("metric", name, [*METRICS, *_ALIASES], hint="`recsys metrics` lists them all.")


def register_rating(rating_metric: Metric) -> None:
    """Add a metric of predicted numbers; see predictions.py."""
    name = rating_metric.name
    RATINGS[name] = rating_metric
    _RATING_NAMES.update(dict.fromkeys((name, *rating_metric.aliases), name))


def lookup_rating(name: str) -> tuple[Metric, Mapping[str, Any]]:
    """Return the metric of predicted numbers of this name or alias.

    Raises:
        UnknownNameError: no such metric has this name.

    >>> lookup_rating("NE")[0].name
    'normalised_entropy'
    """
    key = name.lower()
    if key not in _RATING_NAMES:
        RATINGS.load_plugins()
    if key in _RATING_NAMES:
        return RATINGS[_RATING_NAMES[key]], {}
    hint = "Metrics of lists go to recsys.evaluate." if key in METRICS or key in _ALIASES else None
    raise UnknownNameError("rating metric", name, [*RATINGS], hint=hint)


# What is measured where no metric is named: by evaluate, evaluate_candidates and evaluate_ratings (also of
# clicks), the curves of the report, the audit and two of its checks, and recsys.bench, its headline first.
SETS: dict[str, list[str]] = {
    "default": ["precision@10", "recall@10", "ndcg@10", "map@10", "hit@10", "mrr"],
    "candidates": ["hit@10", "ndcg@10", "mrr", "auc"],
    "ratings": ["mse", "rmse", "mae", "r2", "explained_variance", "bias", "user_rmse", "user_mae"],
    "clicks": ["log_loss", "normalised_entropy", "ece", "mce", "auc", "gauc", "user_auc"],
    "curves": ["recall@10", "precision@10"],
    "audit": ["precision@10", "recall@10", "ndcg@10", "map@10", "mrr", "hit@10"],
    "popularity": ["recall@10", "ndcg@10"],
    "sampling": ["ndcg@10", "hit@10"],
    "bench": ["ndcg@10", "recall@10", "hit@10", "mrr", "coverage@10", "novelty@10"],
}


def metric_set(name: str) -> list[Metric]:
    """Return the metrics of a set of lists, in their order.

    >>> [metric.name for metric in metric_set("bench")]
    ['ndcg', 'recall', 'hit', 'mrr', 'coverage', 'novelty']
    """
    return [lookup(request.partition("@")[0])[0] for request in SETS[name]]


def set_requests(name: str, k: int | None = None) -> tuple[str, ...]:
    """Return the requests of a set of lists: at cut-off k, or each at its usual one.

    >>> set_requests("default")
    ('precision@10', 'recall@10', 'ndcg@10', 'map@10', 'hit@10', 'mrr')
    """
    if k is None:
        return tuple(SETS[name])
    return tuple(m.name if m.at_k == "never" else f"{m.name}@{k}" for m in metric_set(name))


class Need(NamedTuple):
    """The description of a need, what to pass, and whether a context provides it."""

    words: str
    hint: str
    is_met: Callable[[Context], bool]


NEEDS: dict[str, Need] = {
    "candidates": Need(
        Phrase("lists that rank every candidate ({full_ranking=True})"),
        Phrase("If each list ranks every candidate, pass {full_ranking=True}; else use a metric with @k."),
        lambda c: c.complete,
    ),
    "catalogue": Need(
        "the size of the catalogue",
        Phrase("Pass {catalogue=} (ids, or how many)."),
        lambda c: c.n_items is not None,
    ),
    "predictions": Need(
        "predicted ratings", "Use recsys.evaluate_ratings, or a metric of lists.", lambda _: False
    ),
    "lists": Need("the lists themselves", "Use recsys.evaluate.", lambda _: True),
    "train": Need(
        Phrase("what the users had before ({train=})"),
        Phrase("Pass {train=}, a table, dict or matrix of interactions."),
        lambda c: c.train is not None,
    ),
    "popularity": Need(
        Phrase("how many users had each item before ({train=} or {popularity=})"),
        Phrase("Pass {train=}, or {{item: users}} by {popularity=}."),
        lambda c: c.train is not None or c.popularity is not None,
    ),
    "embeddings": Need(
        Phrase("a vector for each item ({embeddings=})"),
        Phrase("Pass {embeddings=}: {{item: vector}}, (ids, matrix), or a matrix whose row is the item."),
        lambda c: c.embeddings is not None,
    ),
    "profiles": Need(
        Phrase("a vector for each user ({profiles=}, or {train=} to make one of the items the user had)"),
        Phrase("Pass {profiles=}, {{user: vector}}, or {train=}."),
        lambda c: c.profiles is not None or c.train is not None,
    ),
    "items": Need(
        Phrase("what is known about the items ({items=})"),
        Phrase("Pass {items=}, a table with an item column, or {{column: {{item: value}}}}."),
        lambda c: c.items is not None,
    ),
    "reference": Need(
        Phrase("lists to compare these with ({reference=})"),
        Phrase("Pass {reference=}, another model's lists, or one list that everybody would get."),
        lambda c: c.reference is not None,
    ),
    "eligible": Need(
        Phrase("which items may be shown ({catalogue=}, {exclude=}, {eligible=}), unless all may"),
        "",
        lambda _: True,
    ),
    "intents": Need(
        Phrase("what each relevant item is relevant for ({intents=})"),
        Phrase("Pass {intents=}, a column of {items=}, or {{user: {{item: [intents]}}}}."),
        lambda c: c.intents is not None,
    ),
}


# Blanks are taken possessively: a name full of them would otherwise take cubic time.
_REQUEST = re.compile(r"\s*+([A-Za-z_][\w-]*+)\s*+(?:\(([^()]*)\))?\s*+(?:@\s*+([^@\s]++))?\s*+")
_NAMES = re.compile(r"(?:[^,(]++|\([^()]*\)|\()+")  # between the commas outside of brackets


@dataclass(frozen=True)
class Request:
    """A metric, its parameters and its cut-off: one column of a result.

    >>> str(Request.parse("NDCG( gain = exp2 )@10")), Request.parse("f1@5").k
    ('ndcg(gain=exp2)@10', 5)
    """

    metric: Metric
    k: int | None
    params: tuple[tuple[str, Any], ...] = ()
    aggregate: Callable[..., float] | None = None  # of the values per case, where it is not their mean

    @classmethod
    def parse(
        cls, text: str | Request, find: Callable[[str], tuple[Metric, Mapping[str, Any]]] = lookup
    ) -> Request:
        """Return the request that `text` names; `find` looks up a metric by name."""
        if isinstance(text, Request):
            return text
        is_text: bool = isinstance(text, str)
        match = _REQUEST.fullmatch(text) if is_text else None
        if match is None:
            raise UnknownNameError(
                "metric", text, [], hint='A metric is written like "ndcg@10" or "ndcg(gain=exp2)@10".'
            )
        name, inside, cut = match.groups()
        name = name.replace("-", "_")
        return _parse_parts(find(name)[0], name.lower(), inside or "", cut, str(text))

    @classmethod
    def of(cls, text: str | Request, **params: Any) -> Request:
        """Return a request with parameters that text cannot express, such as a function.

        >>> str(Request.of("ild@10", distance=max))
        'ild(distance=max)@10'
        """
        request = cls.parse(text)
        metric = request.metric
        for name in params:
            check_choice(f"parameter of {metric.name}", name, metric.params)
        return cls(metric, request.k, _canonical_params(metric, {**dict(request.params), **params}))

    def at(self, k: int) -> Request:
        """Return the same metric at another cut-off."""
        return replace(self, k=check_k(self.metric, k))

    @property
    def family(self) -> str:
        """Its name without a cut-off, the same at every k."""
        return str(replace(self, k=None))

    @property
    def summary(self) -> Callable[..., float] | None:
        """What makes one number of the values per case; None for their mean, and for the whole catalogue."""
        return None if self.metric.kind == "catalogue" else self.metric.pooling.summary or self.aggregate

    @cached_property
    def own_params(self) -> Mapping[str, Any]:
        """Parameters of the metric's function, defaults filled in."""
        params = dict(self.params)
        return {name: params.get(name, default) for name, default in self.metric.params.items()}

    def conventions(self, base: Conventions | None = None) -> Conventions:
        """Return `base`, by default the defaults, with exceptions for its metric, then its own parameters."""
        changes = {n: v for n, v in self.params if n not in self.metric.params}
        own = (base or Conventions()).for_metric(self.metric.name)
        return own.but(**changes) if changes else own

    def __str__(self) -> str:
        return self._name

    @cached_property
    def _name(self) -> str:
        name, params = self.metric.name, self.params
        own = self.own_params
        for alias, preset in self.metric.aliases.items():
            # f(beta=1) is better known as f1: an alias that stands for exactly these parameters.
            if preset and all(own[n] == v for n, v in preset.items()):
                name, params = alias, tuple((n, v) for n, v in params if n not in preset)
                break
        inside = ", ".join(f"{n}={_format_value(v)}" for n, v in params)
        return name + (f"({inside})" if inside else "") + ("" if self.k is None else f"@{self.k}")


def check_needs(request: Request, context: Context) -> None:
    """Raise NotDefinedError, which names the missing keyword, if the context lacks a need of the metric."""
    for need in request.metric.needs:
        if not NEEDS[need].is_met(context):
            cut = need == "candidates"
            what = "every candidate's place, and the lists are cut off" if cut else NEEDS[need].words
            raise NotDefinedError(f"{request.metric.name} needs " + what + ".", hint=NEEDS[need].hint)


def check_same_decisions(
    requests: Iterable[Request], first: tuple[str, Conventions], second: tuple[str, Conventions]
) -> None:
    """Raise ConventionError if two results, each with its name, differ in a decision that a metric reads."""
    (name, ours), (other_name, theirs) = first, second
    if ours == theirs:
        return
    for request in requests:
        differs = request.conventions(ours).diff(request.conventions(theirs))
        decisive = [decision for decision in request.metric.reads if decision in differs]
        if decisive:
            raise ConventionError(
                f"{other_name} was evaluated under other conventions ({theirs}) than {name} ({ours}): they "
                f"differ in {', '.join(decisive)}, so a difference in {request} would be theirs.",
                hint=Phrase("{explain()} says what differs."),
            )


Metrics = str | Request | Iterable[str | Request] | None


def split_names(text: str) -> list[str]:
    """Return the names in "ndcg@10, f(beta=2)@5", apart."""
    return [part for part in _NAMES.findall(text) if part.strip()]


def parse_all(metrics: Metrics, k: int | Sequence[int] | None) -> list[Request]:
    """Requests in the order of `metrics`, without repeats; `k` applies to those without a cut-off.

    Raises:
        UnknownNameError: a metric or parameter is unknown, or no metric is named.
        CutoffError: a cut-off is missing, not allowed or not a positive whole number.
    """
    names = metrics
    if metrics is None:
        names = set_requests("default") if k is None else [m.name for m in metric_set("default")]
    if isinstance(names, str):
        names = split_names(names)
    is_one = getattr(names, "ndim", 1) == 0
    is_table = isinstance(names, Mapping) or hasattr(names, "tocsr")
    if is_table or not isinstance(names, Request | Iterable) or is_one:
        raise UnknownNameError(
            "metric list", metrics, [], hint='Pass names such as ["ndcg@10", "recall@10"].'
        )
    cuts: Any = []
    if k is not None:
        is_one = isinstance(k, str | bytes) or hasattr(k, "tocsr") or getattr(k, "ndim", 1) != 1
        cuts = list(k) if isinstance(k, Iterable) and not is_one else [k]
    requests: dict[str, Request] = {}
    for text in [names] if isinstance(names, Request) else names:
        for request in _parse_at_cuts(text, cuts):
            requests.setdefault(str(request), request)
    if not requests:
        raise UnknownNameError(
            "metric list", metrics, [], hint='Ask for at least one metric, such as "ndcg@10".'
        )
    return list(requests.values())


def _parse_at_cuts(text: str | Request, cuts: list[Any]) -> list[Request]:
    """Return the request at each cut-off, or once where it names its own or may have none."""
    has_cut = not isinstance(text, str) or "@" in text
    match = None if has_cut or not cuts else _REQUEST.fullmatch(text)  # type: ignore[arg-type]
    if match is None or lookup(match.group(1).replace("-", "_"))[0].at_k == "never":
        return [Request.parse(text)]
    requests = []
    for cut in cuts:
        is_time = isinstance(cut, bool | np.timedelta64)
        is_number = isinstance(cut, int | np.integer | float | np.floating) and not is_time
        if not is_number or not abs(cut) < 1e300 or cut != int(cut):
            raise CutoffError(
                f"the cut-off k={cut!r} is not a whole number.", hint="Use k >= 1, such as k=10."
            )
        requests.append(Request.parse(f"{text}@{int(cut)}"))
    return requests


def check_k(metric: Metric, k: int | None) -> int | None:
    """Return `k` itself, or raise an error where the metric may not have it.

    Raises:
        CutoffError: the metric needs a cut-off, has none, or `k` is not positive.
    """
    if k is None and metric.at_k == "required":
        raise CutoffError(f"{metric.name} needs a cut-off.", hint=f'Write "{metric.name}@10".')
    if k is not None and metric.at_k == "never":
        raise CutoffError(
            f"{metric.name} has no cut-off, but came with @{k}.", hint=f'Write "{metric.name}".'
        )
    if k is not None and k < 1:
        raise CutoffError(f"the cut-off k={k} of {metric.name} is not positive.", hint="Use k >= 1.")
    return k


def largest_k(requests: Iterable[Request]) -> int | None:
    """Return the longest list these requests read; None if one of them reads whole lists."""
    cuts = [r.k for r in requests]
    return None if not cuts or None in cuts else max(c for c in cuts if c is not None)


def max_place_read(requests: Iterable[Request]) -> int | None:
    """Return the last place at which these requests look for relevant items; None if one reads all places."""
    per_case = [r for r in requests if r.metric.kind != "catalogue"]
    return None if any("candidates" in r.metric.needs for r in per_case) else largest_k(per_case)


@lru_cache(maxsize=1024)
def _parse_parts(metric: Metric, alias: str, inside: str, cut: str | None, text: str) -> Request:
    """Return the request for a metric found by `alias`, from the brackets and what follows @ in `text`."""
    params, known = dict(metric.aliases.get(alias, {})), _param_names(metric)
    named: set[str] = set()
    for part in filter(str.strip, inside.split(",")):
        name, sign, value = (x.strip() for x in part.partition("="))
        full = metric.over or name if name == "over" else name
        if not sign or full not in known:
            raise UnknownNameError(f"parameter of {metric.name}", name, known, hint="Write name=value.")
        if full in named:
            raise ConventionError(
                f"parameter {name!r} of {metric.name} is given twice.", hint="Give it once."
            )
        named.add(full)
        params[full] = _parse_value(full, value)
        if isinstance(metric.params.get(full), float) and not isinstance(params[full], float):
            raise ConventionError(
                f"parameter {name!r} of {metric.name} is {value!r}, not a number.",
                hint=f"Write {metric.name}({name}={metric.params[full]:g}).",
            )
    if cut is not None and not re.fullmatch(r"[+-]?[0-9]{1,18}", cut):
        problem = "is beyond every catalogue" if re.fullmatch(r"\+?[0-9]+", cut) else "is not a whole number"
        raise CutoffError(
            f"the cut-off {cut!r} in {text!r} {problem}.",
            hint='Write "@10", a positive whole number.',
        )
    return Request(metric, check_k(metric, int(cut) if cut else None), _canonical_params(metric, params))


def _param_names(metric: Metric) -> list[str]:
    """Return the metric's own parameters and the conventions that may differ from one request to the next."""
    same_for_all = {
        "no_truth", "no_list", "ties", "rank_gaps", "unknown_items", "seen_truth", "negative_grades"
    }  # fmt: skip
    return [*metric.params, *(c for c in metric.reads if c not in same_for_all)]


def _parse_value(name: str, text: str) -> Any:
    if name in DECISIONS:
        Conventions().but(**{name: text})
        return text
    if text in ("None", "") or (text.lower() == "none" and getattr(Conventions(), name, "") is None):
        return None
    try:
        return float(text)
    except ValueError:
        return text


def _canonical_params(metric: Metric, params: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """Parameters in declared order, the metric's own defaults left out."""
    changed = {n: v for n, v in params.items() if n not in metric.params or v != metric.params[n]}
    for name, value in changed.items():
        _check_param(metric, name, value)
    return tuple((n, changed[n]) for n in _param_names(metric) if n in changed)


def _check_param(metric: Metric, name: str, value: Any) -> None:
    """Raise ConventionError unless a parameter may have this value.

    Choices that are not names are examples of what may be written. With `callable` among them the text may
    be the name of a function, by which a result is asked for: the metric refuses what it does not know.
    """
    allowed = metric.choices.get(name, ())
    if isinstance(allowed, Between):
        if value not in allowed:
            hint = f"Write {metric.name}({name}={metric.params[name]:g})."
            raise ConventionError(f"{metric.name} needs {allowed} as {name}, got {value!r}.", hint=hint)
        return
    if callable in allowed:
        return
    if value not in allowed and allowed and all(str(word).isidentifier() for word in allowed):
        hint = f"Write {metric.name}({name}={' or '.join(allowed)})."
        raise ConventionError(f"{metric.name} got {name}={value!r}.", hint=hint)


def _format_value(value: Any) -> str:
    if callable(value):
        return str(getattr(value, "__name__", type(value).__name__))
    if not isinstance(value, float):
        return "none" if value is None else str(value)
    short = f"{value:g}"
    return short if float(short) == value else repr(value)
