"""A protocol file from what a table of interactions shows, with the reasons as comments."""

from __future__ import annotations

import json
import os
import re
import textwrap
from pathlib import Path
from typing import Any

from recsys.benching.bench_plan import BenchPlan
from recsys.benching.protocol.keys import as_key
from recsys.display.cells import UNPRINTABLE
from recsys.errors import worded
from recsys.metrics.registry import metric_set, set_requests
from recsys.models.trainable import TRAINABLE


def protocol_text(plan: BenchPlan, data: str, target: Path, *, draws: dict[str, int], **reading: Any) -> str:
    """Return the protocol of a plan, as TOML.

    Args:
        plan: what the data is and how it is split.
        data: the file of the interactions.
        target: where the protocol will be; the file is named relative to it.
        draws: the seed of all draws, and how many seeds models are trained with that draw.
        reading: how the file is read: ids, format and encoding, None where that is the default.
    """
    border = plan.ratings.relevant_from
    explained = (f"{heading}: " + text for heading, text in plan.explain())
    data_line, relevance, split, *remarks = (worded(text, as_key) for text in explained)
    columns = {**plan.columns, "grade": plan.rating_column}
    untuned = "Nothing is tuned here, so the rows for validation are trained on."
    place = os.path.relpath(Path(data).absolute(), target.absolute().parent)
    metrics = [metric.name for metric in metric_set("bench")]
    headline = set_requests("bench", 10)[0]
    sections = [
        _section("", {"title": f"Baselines on {Path(data).name}", **draws}),
        _section("data", {"interactions": Path(place).as_posix(), **reading, "reading": "bench"}, data_line),
        _section("data.columns", {role: name or False for role, name in columns.items()}),
        _section("split", {"how": plan.how, **plan.parameters}, split, *remarks, untuned),
        _section("relevance", {"from": border, "every_row": True if border is None else None}, relevance),
        _section("candidates", {"seen": "exclude"}, "The whole catalogue is ranked, but for what users had."),
        _section("metrics", {"names": metrics, "k": [10]}, f"{headline} decides."),
    ]
    for name, entry in TRAINABLE.items():
        if not entry.installed:
            sections.append(_comment(f"{name}: needs the package {entry.extra}, which is not installed."))
        elif not entry.needs_times or plan.columns["time"] is not None:
            settings = {"settings.share": entry.settings["share"]} if name == "recent" else {}
            sections.append(_section(f"models.{_key(name)}", {"baseline": name, **settings}, entry.help))
    sections += [
        _comment('Your own: [models.mine] with lists = "lists.csv", or factors = ["U.npy", "V.npy"].'),
        _section("compare", {"headline": headline}, "The best model against each other, as bench compares."),
        _section("output", {"folder": "results", "report": "report.html"}),
    ]
    return "\n\n".join(sections) + "\n"


def _section(name: str, settings: dict[str, Any], *why: str) -> str:
    """Return a table of TOML below the reasons for it."""
    head = [f"[{name}]"] if name else []
    lines = [f"{key} = {_value(value)}" for key, value in settings.items() if value is not None]
    return "\n".join([*map(_comment, why), *head, *lines])


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _value(name)


def _value(value: Any) -> str:
    return _escape(json.dumps(value, ensure_ascii=False))


def _escape(text: str) -> str:
    """Return the text with control characters as TOML writes them in strings.

    Comments cannot hold them otherwise.
    """
    return UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _comment(text: str) -> str:
    return textwrap.fill(
        _escape(text), 100, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False
    )
