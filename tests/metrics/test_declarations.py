"""What metrics declare of themselves, stated a second time: other rooms build on these facts, not on names.

`declarations.json` has every fact that differs from the usual one, for the metrics that there were when it
was written; a new metric needs no entry. To state them anew after a change that was meant:

    python tests/metrics/test_declarations.py
"""

from __future__ import annotations

import json
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from recsys.metrics.registry import METRICS, RATINGS, Metric, metric_set

STATED = Path(__file__).with_name("declarations.json")
IN_WORDS = {"name", "body", "formula", "reference", "not_additive", "unpaired"}


def declared(metric: Metric) -> dict[str, Any]:
    """The facts of a metric that differ from the usual ones, as JSON; a function is the name it has."""
    facts = {}
    for field in fields(Metric):
        usual = (
            field.default_factory()
            if field.default is MISSING and callable(field.default_factory)
            else field.default
        )
        value = getattr(metric, field.name)
        if field.name in IN_WORDS or value == usual:
            continue
        if callable(value):
            value = value.__name__
        elif isinstance(value, float | tuple):
            value = repr(value)
        elif not isinstance(value, str | bool | int | None):
            value = {key: repr(inner) for key, inner in value.items()}
        facts[field.name] = value
    return facts


def every_metric() -> dict[str, Metric]:
    return dict(METRICS) | {f"rating {name}": metric for name, metric in RATINGS.items()}


def test_every_metric_declares_what_is_stated():
    metrics = every_metric()
    for name, stated in json.loads(STATED.read_text("utf-8")).items():
        assert declared(metrics[name]) == stated, name


def test_why_a_metric_is_no_sum_is_said_of_every_metric_that_is_none():
    for metric in METRICS.values():
        assert not (metric.additive and metric.not_additive), metric.name


def test_the_places_in_a_set_are_counted_from_one():
    sets = {name for metric in every_metric().values() for name in metric.sets}
    assert len(sets) == 9
    for name in sets:
        members = metric_set(name)
        assert [metric.sets[name] for metric in members] == list(range(1, len(members) + 1)), name


if __name__ == "__main__":
    facts = {name: declared(metric) for name, metric in sorted(every_metric().items())}
    STATED.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
