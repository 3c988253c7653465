"""A protocol file from what a table of interactions says of itself, with the reasons as comments."""

from __future__ import annotations

import json
import os
import textwrap
from pathlib import Path
from typing import Any, cast

from recsys.cli.bench_plan import BenchPlan
from recsys.inputs.timestamps import Clock
from recsys.metrics.registry import metric_set, set_requests
from recsys.models.trainable import TRAINABLE
from recsys.splits import Split
from recsys.splits import split as run_split

_BASELINE = "popularity"
_DAY = 86_400 * 10**9  # in nanoseconds


def protocol_text(plan: BenchPlan, data: str, target: Path, *, ids: str, seed: int) -> str:
    """The protocol of a plan, as TOML.

    Args:
        plan: what the data is and how it is split.
        data: the file of the interactions.
        target: where the protocol will be; the file is named relative to it.
        ids: how ids are read.
        seed: of all draws.
    """
    data_line, relevance, split, *remarks = (f"{heading}: {text}" for heading, text in plan.explain())
    relevance = relevance.partition("; relevant_from=")[0].removesuffix(".") + "."
    split = split.replace("columns={'time': ...} names", 'time = "COLUMN" in [data.columns] names')
    columns = {role: name for role, name in plan.columns.items() if name is not None}
    split_settings = {name: value for name, value in plan.parameters.items() if name != "validation"}
    if plan.how == "global_temporal":
        split_settings["warm_users"] = True
    if plan.columns["time"] is not None:
        split_settings["bad_rows"] = "exclude"
    made = cast("Split", run_split(plan.table, plan.how, seed=seed, **split_settings))
    sizes = ", ".join(f"{int(made.mask(part).sum()):,} {part}" for part in ("train", "test"))
    untuned = f"Nothing is tuned here, so the rows for validation are trained on. Rows here: {sizes}."
    place = os.path.relpath(Path(data).absolute(), target.absolute().parent)
    metrics = [metric.name for metric in metric_set("bench")]
    headline = set_requests("bench", 10)[0]
    sections = [
        _section("", {"title": f"Baselines on {Path(data).name}", "seed": seed}),
        _section("data", {"interactions": Path(place).as_posix(), "ids": ids, "repeats": "first"}, data_line),
        _section("data.columns", columns),
        _section("split", {"how": plan.how, **split_settings}, split, *remarks, untuned),
    ]
    if plan.ratings.relevant_from is None:
        sections.append(_comment(relevance))
    else:
        sections.append(_section("relevance", {"from": plan.ratings.relevant_from}, relevance))
    sections += [
        _section("candidates", {"seen": "exclude"}, "The whole catalogue is ranked, but for what users had."),
        _section("metrics", {"names": metrics, "k": [10]}, f"{headline} decides."),
    ]
    for name, entry in TRAINABLE.items():
        if not entry.installed:
            sections.append(_comment(f"{name}: needs the package {entry.extra}, which is not installed."))
        elif not entry.needs_times:
            sections.append(_section(f"models.{name}", {"baseline": name}, entry.help))
        elif plan.columns["time"] is not None:
            half_life = _tenth_of_the_time(plan.table.clock(plan.columns["time"], None))
            sections.append(
                _section(f"models.{name}", {"baseline": name, "half_life": half_life}, entry.help)
            )
    sections += [
        _comment('Your own: [models.mine] with lists = "lists.csv", or factors = ["U.npy", "V.npy"].'),
        _section("compare", {"baseline": _BASELINE, "metrics": [headline]}, "Every model against it."),
        _section("output", {"folder": "results", "report": "report.html"}),
    ]
    return "\n\n".join(sections) + "\n"


def _tenth_of_the_time(clock: Clock) -> float | str:
    """A tenth of the time between the first and the last row, as a half-life: a number, or such as "7d"."""
    span = float(clock.values.max() - clock.values.min()) / 10 or 1.0
    if clock.kind == "number":
        return span if span < 1 else round(span)
    return f"{max(round(span * (clock.tick or 1) / _DAY), 1)}d"


def _section(name: str, settings: dict[str, Any], *why: str) -> str:
    """A table of TOML below the reasons for it."""
    head = [f"[{name}]"] if name else []
    lines = [f"{key} = {_value(value)}" for key, value in settings.items()]
    return "\n".join([*map(_comment, why), *head, *lines])


def _value(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _comment(text: str) -> str:
    return textwrap.fill(text, 100, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False)
