"""What there is: `recsys metrics`, `recsys conventions` and `recsys doctor`.

Metrics and presets are made into plain data first: the verbs print it, and the docs are written from it.
"""

from __future__ import annotations

import math
import os
import platform
import re
from importlib.metadata import PackageNotFoundError, metadata, version
from typing import TYPE_CHECKING, Any

import click

import recsys
from recsys.cli.output import Listing, show
from recsys.cli.shared_options import json_option
from recsys.cli.verb_options import Given, argument, command, option
from recsys.conventions.decisions import DECISIONS, Conventions, describe

if TYPE_CHECKING:
    from recsys.conventions.presets import Preset
    from recsys.metrics import Metric

_AT_K = {"optional": "optional", "required": "yes", "never": "no"}
_TIE_WORDS = {
    "linear": "exact expectation: the mean weight over the places of a group of equal scores",
    "own": "exact expectation, by its own formula",
    "shown": "none: the items shown are those of one order, by id unless the conventions say otherwise",
    "refuse": "no expectation; ties='best' and ties='worst' give the range",
}
_TIE_ORDER_WORDS = {
    "relevance": "the items that are worth most come first or last: no order is better or worse",
    "number": "the relevant items come first or last; over hits, every number of them above the cut is tried",
    "items": "by the value of each item; every choice of at most 8 is tried where that does not decide",
    "set": "every choice of at most 8 items that share the score at place k is tried, more are refused",
    "unknown": "refused where the order of equal scores matters",
    "": "by an order of its own, proven or searched among at most 8 different items",
}
_REQUIREMENT = re.compile(r"^([A-Za-z0-9_.-]+).*extra\s*==\s*['\"]([\w-]+)['\"]")
_DISTRIBUTION = "recsys-evaluation"
_plain_json_option = option("--json", "Print JSON.")


@command("metrics", argument("name", required=False), _plain_json_option)
def metrics_command(given: Given) -> None:
    """List the metrics; with NAME (ndcg, f1, …) describe one."""
    from recsys.metrics import RATINGS, lookup

    if given.name is not None:
        facts = metric_facts(lookup(re.split(r"[(@]", given.name)[0].strip().replace("-", "_"))[0])
        show(facts if given.json else _metric_text(facts))
        return
    rows = all_metrics()
    if given.json:
        show(rows)
        return
    columns = {"name": "name", "@k": "at_k", "better": "better", "bounds": "bounds", "meaning": "meaning"}
    shown = [row | {"bounds": bounds_text(row)} for row in rows]
    show(Listing({heading: [row[name] for row in shown] for heading, name in columns.items()}))
    rating_metrics = [name for name in RATINGS.load_plugins() if not name.startswith("user_")]
    click.echo()
    show(f"of predicted ratings and clicks, for `recsys ratings`: {', '.join(rating_metrics)}")


def _metric_text(facts: dict[str, Any]) -> str:
    """One metric in full, as lines."""
    lines = [
        f"{facts['name']}: {facts['meaning']}",
        *([facts["details"]] if facts["details"] else []),
        "",
        f"formula     {facts['formula']}",
        f"@k          {facts['at_k']}",
        f"better      {facts['better']}",
        f"bounds      {bounds_text(facts)}",
    ]
    if facts["conventions"]:  # a metric of predicted numbers has neither places nor decisions
        lines.append(f"ties        {facts['ties']}")
        lines.append(f"best, worst {facts['tie_order']}")
    if facts["parameters"]:
        lines.append("parameters  " + ", ".join(parameter_texts(facts)))
    if facts["aliases"]:
        lines.append("also called " + ", ".join(facts["aliases"]))
    lines += [f"needs       {need}" for need in facts["needs"]]
    lines.append(f"reference   {facts['reference']}")
    lines += ["", "conventions that move it:"] if facts["conventions"] else []
    for decision in facts["conventions"]:
        lines.append(f"  {decision}")
        if decision in facts["own_conventions"]:
            lines += [f"    {value}: {words}" for value, words in choices(decision).items()]
    return "\n".join(lines)


@command(
    "conventions", argument("first", required=False), argument("second", required=False), _plain_json_option
)
def conventions_command(given: Given) -> None:
    """List the presets; with FIRST describe one; with SECOND say which decisions differ between the two."""
    from recsys.conventions.presets import preset

    if given.first is None and given.json:
        show(all_presets())
        return
    if given.first is None:
        names = ("name", "library", "version", "differs from the default in")
        cells = zip(*map(_preset_row, all_presets()), strict=True)
        show(Listing({name: list(column) for name, column in zip(names, cells, strict=True)}))
        return
    if given.second is not None:
        changes = Conventions.of(given.first).diff(Conventions.of(given.second))
        facts = {n: {"from": a, "to": b, "words": describe(n, b)} for n, (a, b) in changes.items()}
        lines = [f"{given.first} -> {given.second}{'' if facts else ': no decision differs'}"]
        for name, change in facts.items():
            values = "" if name == "per_metric" else f" {change['from']} -> {change['to']},"
            lines.append(f"- {name}:{values} {change['words']}")
    elif given.first == "default":
        decided = decisions(Conventions(), every=True)
        facts = {"name": given.first, "decisions": decided}
        lines = _decision_lines(facts)
    else:
        facts = preset_facts(preset(given.first))
        lines = [f"{facts['name']}: {facts['library']} {facts['version']}, checked {facts['checked']}", ""]
        lines += _decision_lines(facts)
        for metric, own in facts["per_metric"].items():
            lines.append(f"for {metric} only: " + ", ".join(f"{n}={v}" for n, v in own.items()))
        lines += [f"not copied: {defect}" for defect in facts["defects"]]
        lines += [f"note: {fact}" for fact in facts["facts"]]
    show(facts if given.json else "\n".join(lines))


def _preset_row(facts: dict[str, Any]) -> list[str]:
    changed = [f"{name}={decision['value']}" for name, decision in facts["decisions"].items()]
    if facts["per_metric"]:
        changed.append("others for " + ", ".join(facts["per_metric"]))
    return [facts["name"], facts["library"], facts["version"], ", ".join(changed) or "nothing"]


def _decision_lines(facts: dict[str, Any]) -> list[str]:
    return [
        f"{name}={decision['value']}: {decision['words']}" for name, decision in facts["decisions"].items()
    ]


@command("doctor", json_option)
def doctor_command(given: Given) -> None:
    """Show which kernels are in use and why, versions, and which optional packages are installed."""
    from recsys import show_backends

    try:
        declared = metadata(_DISTRIBUTION).get_all("Requires-Dist") or []
    except PackageNotFoundError:
        declared = []
    extras: dict[str, dict[str, str | None]] = {}
    for match in filter(None, map(_REQUIREMENT.match, declared)):
        package, extra = match.groups()
        if package != _DISTRIBUTION:
            extras.setdefault(extra, {})[package] = _version(package)
    facts: dict[str, Any] = {
        "recsys": recsys.__version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "kernels": str(show_backends()),
        "packages": {
            name: _version(name) for name in ("numpy", "scipy", "pandas", "narwhals", "click", "rich")
        },
        "extras": extras,
    }
    if given.json:
        show(facts)
        return
    lines = [f"recsys {facts['recsys']}, Python {facts['python']}, {facts['system']}", ""]
    lines += [*facts["kernels"].splitlines(), ""]
    lines += [", ".join(f"{name} {number}" for name, number in facts["packages"].items()), ""]
    for extra, packages in extras.items():
        state = ", ".join(f"{name} {number}" for name, number in packages.items())
        if None in packages.values():
            state = f"missing: pip install '{_DISTRIBUTION}[{extra}]'"
        lines.append(f"{extra:<12} {state}")
    show("\n".join(lines))


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def metric_facts(metric: Metric) -> dict[str, Any]:
    """Everything there is to know about one metric."""
    from recsys.metrics.registry import NEEDS

    order = metric.tied.tie_order
    bounds = [
        None if math.isinf(bound) else int(bound) if bound == int(bound) else bound for bound in metric.bounds
    ]
    return {
        "name": metric.name,
        "meaning": metric.meaning,
        "details": metric.details,
        "formula": metric.formula,
        "at_k": _AT_K[metric.at_k],
        "better": metric.better,
        "bounds": bounds,
        "aliases": list(metric.aliases),
        "parameters": dict(metric.params),
        "conventions": list(metric.reads),
        "own_conventions": list(metric.conventions),
        "about_lists": "lists" in metric.needs,
        "needs": [NEEDS[need].words for need in metric.needs],
        "ties": _TIE_WORDS[metric.tied.ties],
        "tie_order": _TIE_ORDER_WORDS["" if callable(order) else order],
        "item_weights": metric.truth.weighted,
        "reference": metric.reference,
    }


def all_metrics() -> list[dict[str, Any]]:
    """Every registered metric, by name."""
    from recsys.metrics import METRICS

    return [metric_facts(METRICS[name]) for name in sorted(METRICS.load_plugins())]


def parameter_texts(facts: dict[str, Any]) -> list[str]:
    """Each parameter with its default as it is written in a request; … where it has none."""
    return [f"{name}={'…' if value is None else value}" for name, value in facts["parameters"].items()]


def bounds_text(facts: dict[str, Any]) -> str:
    """[0, 1], or [0, inf) where there is no upper bound."""
    low, high = facts["bounds"]
    first = "(-inf" if low is None else f"[{low}"
    return f"{first}, inf)" if high is None else f"{first}, {high}]"


def preset_facts(row: Preset) -> dict[str, Any]:
    """Everything there is to know about one preset; its decisions where they differ from the default."""
    return {
        "name": row.name,
        "library": row.library,
        "version": row.version,
        "checked": row.checked,
        "aliases": list(row.aliases),
        "decisions": decisions(row.conventions),
        "per_metric": {m: dict(changes) for m, changes in row.conventions.per_metric},
        "defects": list(row.defects),
        "facts": list(row.facts),
    }


def all_presets() -> list[dict[str, Any]]:
    """Every preset, in the order of the registry."""
    from recsys.conventions.presets import PRESETS

    return [preset_facts(row) for row in PRESETS.values()]


def decisions(conventions: Conventions, *, every: bool = False) -> dict[str, dict[str, Any]]:
    """{decision: value, words} where these conventions depart from the default, or of `every` decision."""
    differs = conventions.diff(Conventions())
    return {
        name: {"value": value, "words": describe(name, value)}
        for name, value in conventions.items()
        if (every or name in differs) and name != "per_metric"
    }


def choices(name: str) -> dict[str, str]:
    """The values a decision may take, and what each does."""
    if name in DECISIONS:
        return DECISIONS[name]
    return {"none": describe(name, None), "a number": describe(name, 4.0).replace("4", "g")}
