"""From "ndcg(gain=exp2)@10" to a request and back, and from many requests to what they need.

The grammar is a name, optional parameters in brackets and an optional cut-off; nothing is evaluated.
A request prints in one canonical way, so equal requests have equal names.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from recsys.conventions.decisions import DECISIONS, Conventions
from recsys.errors import ConventionError, CutoffError, UnknownNameError
from recsys.metrics import Metric, lookup

_FORM = re.compile(r"\s*([A-Za-z_][\w-]*)\s*(?:\(([^()]*)\))?\s*(?:@\s*([^@\s]+))?\s*")
_OVER = {"precision": "precision_over", "recall": "recall_over", "map": "ap_over", "gmap": "ap_over"}
DEFAULT_METRICS = ("precision@10", "recall@10", "ndcg@10", "map@10", "hit@10", "mrr")


@dataclass(frozen=True)
class Request:
    """A metric, its parameters and its cut-off: what one column of a result is.

    >>> str(Request.parse("NDCG( gain = exp2 )@10")), Request.parse("f1@5").k
    ('ndcg(gain=exp2)@10', 5)
    """

    metric: Metric
    k: int | None
    params: tuple[tuple[str, Any], ...] = ()

    @classmethod
    def parse(
        cls, text: str | Request, find: Callable[[str], tuple[Metric, Mapping[str, Any]]] = lookup
    ) -> Request:
        """A request as it is written; `find` says which metrics are known."""
        if isinstance(text, Request):
            return text
        match = _FORM.fullmatch(str(text))
        if match is None:
            raise UnknownNameError(
                "metric", text, [], hint='A metric is written like "ndcg@10" or "ndcg(gain=exp2)@10".'
            )
        name, inside, cut = match.groups()
        metric, preset = find(name.replace("-", "_"))
        given = dict(preset) | _parse_params(metric, inside or "")
        return cls(metric, check_k(metric, _whole(cut, text) if cut else None), _ordered(metric, given))

    @classmethod
    def of(cls, text: str | Request, **params: Any) -> Request:
        """A request with parameters that text cannot say, such as a function.

        >>> str(Request.of("ild@10", distance=max))
        'ild(distance=max)@10'
        """
        made = cls.parse(text)
        for name in params:
            if name not in made.metric.params:
                raise UnknownNameError(f"parameter of {made.metric.name}", name, made.metric.params)
        return cls(made.metric, made.k, _ordered(made.metric, {**dict(made.params), **params}))

    def at(self, k: int) -> Request:
        """The same metric at another cut-off."""
        return Request(self.metric, check_k(self.metric, k), self.params)

    @property
    def own_params(self) -> dict[str, Any]:
        """Parameters of the metric's function, defaults filled in."""
        given = dict(self.params)
        return {name: given.get(name, default) for name, default in self.metric.params.items()}

    def conventions(self, given: Conventions) -> Conventions:
        """The conventions as this request sees them: the preset's exceptions, then its own parameters."""
        changes = {n: v for n, v in self.params if n not in self.metric.params}
        base = given.for_metric(self.metric.name)
        return base.but(**changes) if changes else base

    def __str__(self) -> str:
        return self._name

    @cached_property
    def _name(self) -> str:
        name, params = self._shortest()
        inside = ", ".join(f"{n}={_written(v)}" for n, v in params)
        return name + (f"({inside})" if inside else "") + ("" if self.k is None else f"@{self.k}")

    def _shortest(self) -> tuple[str, tuple[tuple[str, Any], ...]]:
        """f(beta=1) is better known as f1: an alias that stands for exactly these parameters."""
        own = self.own_params
        for alias, preset in self.metric.aliases.items():
            if preset and all(own[n] == v for n, v in preset.items()):
                return alias, tuple((n, v) for n, v in self.params if n not in preset)
        return self.metric.name, self.params


Metrics = str | Request | Iterable[str | Request] | None


def parse_all(metrics: Metrics, k: int | Sequence[int] | None) -> list[Request]:
    """Requests in the order asked, without repeats; `k` is given to those that name no cut-off."""
    wanted = DEFAULT_METRICS if metrics is None and k is None else metrics
    if wanted is None:
        wanted = [name.split("@")[0] for name in DEFAULT_METRICS]
    if isinstance(wanted, str):
        wanted = [part for part in re.split(r",(?![^()]*\))", wanted) if part.strip()]
    if isinstance(wanted, Mapping) or not isinstance(wanted, Request | Iterable):
        raise UnknownNameError(
            "metric list", metrics, [], hint='Pass names such as ["ndcg@10", "recall@10"].'
        )
    cuts = [] if k is None else ([k] if isinstance(k, int | np.integer | float | bool) else list(k))
    requests: dict[str, Request] = {}
    for text in [wanted] if isinstance(wanted, Request) else wanted:
        for request in _cut(text, cuts):
            requests.setdefault(str(request), request)
    if not requests:
        raise UnknownNameError(
            "metric list", metrics, [], hint='Ask for at least one metric, such as "ndcg@10".'
        )
    return list(requests.values())


def _cut(text: str | Request, cuts: list[Any]) -> list[Request]:
    named_cut = isinstance(text, Request) or "@" in str(text)
    if cuts and not named_cut:
        form = _FORM.fullmatch(str(text))
        if form and lookup(form.group(1).replace("-", "_"))[0].at_k != "never":
            return [Request.parse(f"{text}@{_shown(cut)}") for cut in cuts]
    return [Request.parse(text)]


def check_k(metric: Metric, k: int | None) -> int | None:
    """K if this metric may have it."""
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
    """How long a list has to be for these requests; None for as long as it is."""
    cuts = [r.k for r in requests]
    return None if not cuts or None in cuts else max(c for c in cuts if c is not None)


def max_place_read(requests: Iterable[Request]) -> int | None:
    """How many places these requests look at to judge items; None where one looks at all of them."""
    judging = [r for r in requests if r.metric.kind != "catalogue"]
    return None if any("candidates" in r.metric.needs for r in judging) else largest_k(judging)


def _shown(cut: Any) -> str:
    whole = isinstance(cut, int | np.integer | float) and not isinstance(cut, bool) and math.isfinite(cut)
    if not whole or cut != int(cut):
        raise CutoffError(f"the cut-off k={cut!r} is not a whole number.", hint="Use k >= 1, such as k=10.")
    return str(int(cut))


def _whole(cut: str, text: str) -> int:
    if not re.fullmatch(r"[+-]?\d{1,18}", cut):
        raise CutoffError(
            f"the cut-off {cut!r} in {text!r} is not a whole number.",
            hint='Write "@10", a positive whole number.',
        )
    return int(cut)


def _parse_params(metric: Metric, inside: str) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for part in filter(str.strip, inside.split(",")):
        name, sign, value = (x.strip() for x in part.partition("="))
        known = _known_params(metric)
        full = _OVER.get(metric.name, name) if name == "over" else name
        if not sign or full not in known:
            raise UnknownNameError(f"parameter of {metric.name}", name, known, hint="Write name=value.")
        if full in out:
            raise ConventionError(
                f"parameter {name!r} of {metric.name} is given twice.", hint="Give it once."
            )
        out[full] = _value(full, value)
        if isinstance(metric.params.get(full), float) and not isinstance(out[full], float):
            raise ConventionError(
                f"parameter {name!r} of {metric.name} is {value!r}, not a number.",
                hint=f"Write {metric.name}({name}={metric.params[full]:g}).",
            )
    return out


def _known_params(metric: Metric) -> list[str]:
    joint = {"no_truth", "no_list", "ties", "average", "f1_of", "unknown_items", "seen_truth"}
    return [*metric.params, *(c for c in metric.reads if c not in joint or c in ("f1_of", "average"))]


def _value(name: str, text: str) -> Any:
    if name in DECISIONS:
        Conventions().but(**{name: text})
        return text
    if text in ("None", ""):
        return None
    try:
        return float(text)
    except ValueError:
        return text


def _ordered(metric: Metric, given: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """Parameters in declared order, the metric's own defaults left out."""
    kept = {n: v for n, v in given.items() if n not in metric.params or v != metric.params[n]}
    return tuple((n, kept[n]) for n in _known_params(metric) if n in kept)


def _written(value: Any) -> str:
    if callable(value):
        return str(getattr(value, "__name__", type(value).__name__))
    if not isinstance(value, float):
        return str(value)
    short = f"{value:g}"
    return short if float(short) == value else repr(value)
