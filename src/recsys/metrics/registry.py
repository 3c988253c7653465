"""What a metric is, and the only list of them: names, parsing, help, docs, bounds and tests read it.

A metric is a function `(reading, k, conventions, **params)` that returns one float64 per case, or a
`Terms` where it is made of two terms that a summary may average before combining them. One of kind
"catalogue" gets a `CatalogueReading` instead, how often each item was shown to all cases, and returns one
number.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np

from recsys.errors import ConventionError, UnknownNameError
from recsys.types import Array, Bool, Float, Registry

AtK = Literal["optional", "required", "never"]
TieRule = Literal["linear", "own", "refuse", "shown"]
Kind = Literal["per_case", "ratio", "derived", "catalogue"]


class Terms(NamedTuple):
    """One value per case and its two terms, for summaries that average the terms first."""

    value: Float
    first: Float
    second: Float


def ratio(numerator: Float, denominator: Float) -> Terms:
    """Numerator over denominator per case; 0/0 is 0."""
    return Terms(divide_or_zero(numerator, denominator), numerator, denominator)


def divide_or_zero(values: Array, by: Array) -> Float:
    """Values / by, and 0 where `by` is 0."""
    if len(by) and by.min() > 0:
        return values / by
    return np.divide(values, by, out=np.zeros(len(values)), where=by != 0)


def divide_or_nan(values: Array, by: Array) -> Float:
    """Values / by, and NaN where `by` is 0."""
    return np.asarray(np.divide(values, by, out=np.full(len(values), np.nan), where=by != 0))


def quotient(numerator: float, denominator: float, **params: Any) -> float:
    """A ratio from its averaged terms; parameters of the metric are ignored."""
    del params
    return numerator / denominator if denominator else 0.0


@dataclass(frozen=True, eq=False)
class Metric:
    """A registered metric: its function, its documentation and what the engine must know about it."""

    name: str
    body: Callable[..., Float | Terms | float]
    formula: str
    reference: str
    at_k: AtK = "optional"
    kind: Kind = "per_case"
    better: Literal["higher", "lower", "zero"] = "higher"
    bounds: tuple[float, float] = (0.0, 1.0)
    empty: float = 0.0
    conventions: tuple[str, ...] = ()
    params: Mapping[str, Any] = field(default_factory=dict)
    aliases: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    ties: TieRule = "linear"
    weighted: bool = False
    grows_with_k: bool = False
    population: Literal["relevant", "judged", "listed"] = "relevant"
    exposure: str = "none"
    mean_of_items: bool = False
    zero_of_none: bool = False
    summary: Callable[..., float] | None = None
    combine: Callable[..., float] = quotient
    combine_if: tuple[str, str] | Literal["always"] | None = None
    unpaired: str = ""  # why models cannot be compared case by case on it
    # What other rooms know of a metric is said here, and nowhere else by its name.
    over: str = ""  # the convention that a parameter `over` stands for
    usual_k: int | None = 10  # the cut-off where a set names the metric without one
    sets: Mapping[str, int] = field(default_factory=dict)  # its place in sets of metrics; see `metric_set`
    sum_over_places: bool = False  # a cut-off beyond the end of the list changes nothing
    additive: bool | Literal["one item"] = False  # a sum over relevant items, or over the only one
    not_additive: str = ""  # why it is none
    against_others: bool = False  # it compares the relevant items with all others
    counts_items: Literal["", "number", "share"] = ""  # it is the number or share of different items shown
    which_items: Callable[..., Bool] | None = None  # those that count, of `ItemFacts`; None if all do
    best_lists: str | Callable[..., Any] = ""  # how to build them, a name of evaluation/bounds/best_lists.py
    punishes_certainty: bool = False  # a wrong prediction of 0 or 1 weighs almost without limit

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
        return self.counts_items == "share" and self.which_items is None

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
            "unknown_items",
            "seen_truth",
        )
        if self.population == "listed":
            always = ("no_list", "ties", "duplicates")
        if self.kind == "catalogue":
            always = ("ties", "duplicates", "unknown_items", "seen_truth")
        return tuple(dict.fromkeys((*self.conventions, *always)))


METRICS: Registry[Metric] = Registry("metric", "recsys.metrics")
_ALIASES: dict[str, tuple[str, Mapping[str, Any]]] = {}
# Metrics of predicted numbers read rows, not places, and may share a name with a metric of lists.
RATINGS: Registry[Metric] = Registry("rating metric", "recsys.metrics")
_RATING_NAMES: dict[str, str] = {}


Body = TypeVar("Body", bound=Callable[..., "Float | Terms | float"])


def metric(name: str, *, formula: str, reference: str, **facts: Any) -> Callable[[Body], Body]:
    """Register a function as a metric. Its docstring is its documentation; see CONTRIBUTING.md.

    Args:
        name: how the metric is requested, such as "ndcg".
        formula: its definition in one line.
        reference: the paper or program it comes from.
        facts: other fields of `Metric`; `aliases` may also be a sequence of names.

    Raises:
        ConventionError: a metric of this name or alias exists.
    """

    def register(body: Body) -> Body:
        aliases = facts.pop("aliases", {})
        if not isinstance(aliases, Mapping):
            aliases = {alias: {} for alias in aliases}
        params = {
            p.name: p.default
            for p in list(inspect.signature(body).parameters.values())[3:]
            if p.kind is inspect.Parameter.KEYWORD_ONLY
        }
        registered = Metric(name, body, formula, reference, params=params, aliases=aliases, **facts)
        for key in (name, *aliases):
            if key in METRICS or key in _ALIASES:
                raise ConventionError(f"a metric called {key!r} is registered already.")
        METRICS[name] = registered
        _ALIASES.update({alias: (name, preset) for alias, preset in aliases.items()})
        return body

    return register


def shown_metric(name: str, *, needs: tuple[str, ...] = (), **facts: Any) -> Callable[[Body], Body]:
    """Register a metric of the items shown to each user: it reads the lists and needs no relevant items."""
    return metric(name, needs=("lists", *needs), ties="shown", population="listed", **facts)


def catalogue_metric(name: str, **facts: Any) -> Callable[[Body], Body]:
    """Register a metric of the items shown to all users; its function gets a `CatalogueReading`."""
    return shown_metric(name, kind="catalogue", **facts)


def lookup(name: str) -> tuple[Metric, Mapping[str, Any]]:
    """The metric of this name or alias, and the parameters the alias stands for.

    Raises:
        UnknownNameError: no metric has this name.

    >>> lookup("f1")[0].name, dict(lookup("hit_rate")[1])
    ('f', {})
    """
    key = name.lower()
    if not any(key in names for names in (METRICS, _ALIASES, _RATING_NAMES)):
        METRICS.load_plugins()
    target, preset = _ALIASES.get(key, (key, {}))
    if target in METRICS:
        return METRICS.find(target), preset
    if key in _RATING_NAMES:
        return RATINGS.find(_RATING_NAMES[key]), {}
    raise UnknownNameError("metric", name, [*METRICS, *_ALIASES], hint="`recsys metrics` lists them all.")


def register_rating(rating_metric: Metric) -> None:
    """Add a metric of predicted numbers; see predictions.py."""
    name = rating_metric.name
    RATINGS[name] = rating_metric
    _RATING_NAMES.update(dict.fromkeys((name, *rating_metric.aliases), name))


def lookup_rating(name: str) -> tuple[Metric, Mapping[str, Any]]:
    """The metric of predicted numbers of this name or alias.

    Raises:
        UnknownNameError: no such metric has this name.

    >>> lookup_rating("NE")[0].name
    'normalised_entropy'
    """
    key = name.lower()
    if key not in _RATING_NAMES:
        RATINGS.load_plugins()
    if key in _RATING_NAMES:
        return RATINGS.find(_RATING_NAMES[key]), {}
    hint = "Metrics of lists go to recsys.evaluate." if key in METRICS or key in _ALIASES else None
    raise UnknownNameError("rating metric", name, [*RATINGS], hint=hint)


def metric_set(name: str) -> list[Metric]:
    """The metrics that declare a place in this set, in the order of their places.

    The sets are: "default" (recsys.evaluate without metrics), "candidates" (evaluate_candidates), "ratings"
    and "clicks" (evaluate_ratings), "headline" and "curves" (the report), and "audit", "popularity" and
    "sampling" (checks of the audit).

    >>> [metric.name for metric in metric_set("headline")]
    ['ndcg', 'map', 'mrr', 'recall', 'hit']
    """
    members = [m for registry in (METRICS, RATINGS) for m in registry.values() if name in m.sets]
    return sorted(members, key=lambda m: m.sets[name])


def set_requests(name: str, k: int | None = None) -> tuple[str, ...]:
    """The metrics of a set as requests: at cut-off k, or each at its usual one.

    >>> set_requests("default")
    ('precision@10', 'recall@10', 'ndcg@10', 'map@10', 'hit@10', 'mrr')
    """
    cuts = {m.name: None if m.at_k == "never" else k or m.usual_k for m in metric_set(name)}
    return tuple(member if cut is None else f"{member}@{cut}" for member, cut in cuts.items())
