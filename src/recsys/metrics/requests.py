"""From "ndcg(gain=exp2)@10" to a request and back, and how long the lists of many requests must be.

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
from recsys.metrics.registry import metric_set, set_requests

_REQUEST = re.compile(r"\s*([A-Za-z_][\w-]*)\s*(?:\(([^()]*)\))?\s*(?:@\s*([^@\s]+))?\s*")


@dataclass(frozen=True)
class Request:
    """A metric, its parameters and its cut-off: one column of a result.

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
        """The request that `text` names; `find` looks up a metric by name."""
        if isinstance(text, Request):
            return text
        match = _REQUEST.fullmatch(str(text))
        if match is None:
            raise UnknownNameError(
                "metric", text, [], hint='A metric is written like "ndcg@10" or "ndcg(gain=exp2)@10".'
            )
        name, inside, cut = match.groups()
        metric, preset = find(name.replace("-", "_"))
        params = dict(preset) | _parse_params(metric, inside or "")
        if cut is not None and not re.fullmatch(r"[+-]?\d{1,18}", cut):
            raise CutoffError(
                f"the cut-off {cut!r} in {text!r} is not a whole number.",
                hint='Write "@10", a positive whole number.',
            )
        k = check_k(metric, int(cut) if cut else None)
        return cls(metric, k, _canonical_params(metric, params))

    @classmethod
    def of(cls, text: str | Request, **params: Any) -> Request:
        """A request with parameters that text cannot express, such as a function.

        >>> str(Request.of("ild@10", distance=max))
        'ild(distance=max)@10'
        """
        request = cls.parse(text)
        metric = request.metric
        for name in params:
            if name not in metric.params:
                raise UnknownNameError(f"parameter of {metric.name}", name, metric.params)
        return cls(metric, request.k, _canonical_params(metric, {**dict(request.params), **params}))

    def at(self, k: int) -> Request:
        """The same metric at another cut-off."""
        return Request(self.metric, check_k(self.metric, k), self.params)

    @property
    def own_params(self) -> dict[str, Any]:
        """Parameters of the metric's function, defaults filled in."""
        params = dict(self.params)
        return {name: params.get(name, default) for name, default in self.metric.params.items()}

    def conventions(self, base: Conventions) -> Conventions:
        """`base` as this request sees it: with exceptions for its metric, then its own parameters."""
        changes = {n: v for n, v in self.params if n not in self.metric.params}
        own = base.for_metric(self.metric.name)
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


Metrics = str | Request | Iterable[str | Request] | None


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
        names = [part for part in re.split(r",(?![^()]*\))", names) if part.strip()]
    if isinstance(names, Mapping) or not isinstance(names, Request | Iterable):
        raise UnknownNameError(
            "metric list", metrics, [], hint='Pass names such as ["ndcg@10", "recall@10"].'
        )
    cuts = [] if k is None else ([k] if isinstance(k, int | np.integer | float | bool) else list(k))
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
    """The request at each cut-off, or once where it names its own or may have none."""
    has_cut = isinstance(text, Request) or "@" in str(text)
    match = None if has_cut or not cuts else _REQUEST.fullmatch(str(text))
    if match is None or lookup(match.group(1).replace("-", "_"))[0].at_k == "never":
        return [Request.parse(text)]
    requests = []
    for cut in cuts:
        number = (
            isinstance(cut, int | np.integer | float) and not isinstance(cut, bool) and math.isfinite(cut)
        )
        if not number or cut != int(cut):
            raise CutoffError(
                f"the cut-off k={cut!r} is not a whole number.", hint="Use k >= 1, such as k=10."
            )
        requests.append(Request.parse(f"{text}@{int(cut)}"))
    return requests


def check_k(metric: Metric, k: int | None) -> int | None:
    """`k` itself, or an error where the metric may not have it.

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
    """The longest list these requests read; None if one of them reads whole lists."""
    cuts = [r.k for r in requests]
    return None if not cuts or None in cuts else max(c for c in cuts if c is not None)


def max_place_read(requests: Iterable[Request]) -> int | None:
    """The last place at which these requests look for relevant items; None if one reads all places."""
    per_case = [r for r in requests if r.metric.kind != "catalogue"]
    return None if any("candidates" in r.metric.needs for r in per_case) else largest_k(per_case)


def _parse_params(metric: Metric, inside: str) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for part in filter(str.strip, inside.split(",")):
        name, sign, value = (x.strip() for x in part.partition("="))
        known = _param_names(metric)
        full = metric.over or name if name == "over" else name
        if not sign or full not in known:
            raise UnknownNameError(f"parameter of {metric.name}", name, known, hint="Write name=value.")
        if full in out:
            raise ConventionError(
                f"parameter {name!r} of {metric.name} is given twice.", hint="Give it once."
            )
        out[full] = _parse_value(full, value)
        if isinstance(metric.params.get(full), float) and not isinstance(out[full], float):
            raise ConventionError(
                f"parameter {name!r} of {metric.name} is {value!r}, not a number.",
                hint=f"Write {metric.name}({name}={metric.params[full]:g}).",
            )
    return out


def _param_names(metric: Metric) -> list[str]:
    """The metric's own parameters and the conventions that may differ from one request to the next."""
    same_for_all = {"no_truth", "no_list", "ties", "unknown_items", "seen_truth"}
    return [*metric.params, *(c for c in metric.reads if c not in same_for_all)]


def _parse_value(name: str, text: str) -> Any:
    if name in DECISIONS:
        Conventions().but(**{name: text})
        return text
    if text in ("None", ""):
        return None
    try:
        return float(text)
    except ValueError:
        return text


def _canonical_params(metric: Metric, params: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """Parameters in declared order, the metric's own defaults left out."""
    changed = {n: v for n, v in params.items() if n not in metric.params or v != metric.params[n]}
    return tuple((n, changed[n]) for n in _param_names(metric) if n in changed)


def _format_value(value: Any) -> str:
    if callable(value):
        return str(getattr(value, "__name__", type(value).__name__))
    if not isinstance(value, float):
        return str(value)
    short = f"{value:g}"
    return short if float(short) == value else repr(value)
