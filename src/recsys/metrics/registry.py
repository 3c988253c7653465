"""What a metric is, and the only list of them: names, parsing, help, docs, bounds and tests read it.

A metric is a function `(reading, k, conventions, **params)` that returns one float64 per case, or a
`Terms` where it is made of two terms that a summary may average before combining them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np

from recsys.errors import ConventionError, UnknownNameError
from recsys.types import Float

AtK = Literal["optional", "required", "never"]
TieRule = Literal["linear", "own", "refuse"]
Kind = Literal["per_case", "ratio", "derived"]


class Terms(NamedTuple):
    """A value per case and the two terms it is made of, for summaries that average the terms first."""

    value: Float
    first: Float
    second: Float


def ratio(numerator: Float, denominator: Float) -> Terms:
    """Numerator over denominator per case; 0/0 is 0."""
    return Terms(divided(numerator, denominator), numerator, denominator)


def divided(values: Float, by: Float) -> Float:
    """Values / by, and 0 where there is nothing to divide by."""
    return np.divide(values, by, out=np.zeros(len(values)), where=by != 0)


def quotient(numerator: float, denominator: float, **params: Any) -> float:
    """How a ratio is made of its averaged terms, whatever the metric's own parameters."""
    del params
    return numerator / denominator if denominator else 0.0


@dataclass(frozen=True, eq=False)
class Metric:
    """A registered metric and everything that is known about it."""

    name: str
    body: Callable[..., Float | Terms]
    formula: str
    reference: str
    at_k: AtK = "optional"
    kind: Kind = "per_case"
    better: Literal["higher", "lower"] = "higher"
    bounds: tuple[float, float] = (0.0, 1.0)
    empty: float = 0.0
    conventions: tuple[str, ...] = ()
    params: Mapping[str, Any] = field(default_factory=dict)
    aliases: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    ties: TieRule = "linear"
    weighted: bool = False
    grows_with_k: bool = False
    population: Literal["relevant", "judged"] = "relevant"
    summary: Callable[..., float] | None = None
    combine: Callable[..., float] = quotient
    combine_if: tuple[str, str] | Literal["always"] | None = None

    @property
    def meaning(self) -> str:
        """The first paragraph of the docstring, on one line."""
        return " ".join((inspect.getdoc(self.body) or "").split("\n\n")[0].split())

    @property
    def reads(self) -> tuple[str, ...]:
        """Every convention that can move this metric."""
        always = ("relevant_from", "no_truth", "no_list", "ties", "duplicates", "unknown_items", "seen_truth")
        return tuple(dict.fromkeys((*self.conventions, *always)))


METRICS: dict[str, Metric] = {}
_ALIASES: dict[str, tuple[str, Mapping[str, Any]]] = {}


Body = TypeVar("Body", bound=Callable[..., "Float | Terms"])


def metric(name: str, *, formula: str, reference: str, **facts: Any) -> Callable[[Body], Body]:
    """Register a function as a metric. Its docstring is its documentation; see CONTRIBUTING.md."""

    def register(body: Body) -> Body:
        aliases = facts.pop("aliases", {})
        if not isinstance(aliases, Mapping):
            aliases = {alias: {} for alias in aliases}
        params = {
            p.name: p.default
            for p in list(inspect.signature(body).parameters.values())[3:]
            if p.kind is inspect.Parameter.KEYWORD_ONLY
        }
        made = Metric(name, body, formula, reference, params=params, aliases=aliases, **facts)
        for known in (name, *aliases):
            if known in METRICS or known in _ALIASES:
                raise ConventionError(f"a metric called {known!r} is registered already.")
        METRICS[name] = made
        _ALIASES.update({alias: (name, preset) for alias, preset in aliases.items()})
        return body

    return register


def lookup(name: str) -> tuple[Metric, Mapping[str, Any]]:
    """The metric of this name or alias, and the parameters the alias stands for.

    >>> lookup("f1")[0].name, dict(lookup("hit_rate")[1])
    ('f', {})
    """
    key = name.lower()
    if key in METRICS:
        return METRICS[key], {}
    if key in _ALIASES:
        target, preset = _ALIASES[key]
        return METRICS[target], preset
    raise UnknownNameError("metric", name, [*METRICS, *_ALIASES], hint="`recsys metrics` lists them all.")
