"""What a parameter may be, and the records that a declaration is put into."""

from __future__ import annotations

import math

import pytest

import recsys
from recsys.errors import ConventionError
from recsys.metrics import METRICS, RATINGS
from recsys.metrics.registry import Request, lookup, lookup_rating
from recsys.metrics.traits import Between, EqualScores, Pooling, records_of

CHOICES = [
    (find, metric, name, choices)
    for find, registry in ((lookup, METRICS), (lookup_rating, RATINGS))
    for metric in registry.values()
    for name, choices in metric.choices.items()
]


def parse(find, metric, inside):
    return Request.parse(f"{metric.name}({inside})" + ("@3" if metric.at_k == "required" else ""), find)


@pytest.mark.parametrize(("find", "metric", "name", "choices"), CHOICES)
def test_a_parameter_takes_what_is_declared_and_nothing_else(find, metric, name, choices):
    assert name in metric.params
    if isinstance(choices, Between):
        inside, outside = [metric.params[name]], [choices.low - 1, math.nan]
        inside += [choices.low] if choices.closed else []
        outside += [] if choices.closed else [choices.low]
        outside += [choices.low + 0.25] if choices.whole else []
        outside += [choices.high + 1] if math.isfinite(choices.high) else []
    else:
        inside = [word for word in choices if word is not callable]
        # Text may name a function by which a result is asked for.
        is_closed = callable not in choices and all(str(word).isidentifier() for word in inside)
        outside = ["another"] if is_closed else []
    for value in inside:
        assert parse(find, metric, f"{name}={value}").own_params[name] == value
    for value in outside:
        with pytest.raises(ConventionError, match=rf"Write {metric.name}\({name}="):
            parse(find, metric, f"{name}={value}")


def test_a_function_is_a_choice_only_where_functions_are():
    assert Request.of("ild@2", distance=max).own_params["distance"] is max
    assert str(Request.parse("ild(distance=max)@2")) == str(Request.of("ild@2", distance=max))
    with pytest.raises(ConventionError, match="ild got distance='another'"):
        recsys.evaluate({1: [3, 4]}, {1: [3]}, "ild(distance=another)@2", embeddings={3: [1.0], 4: [2.0]})
    with pytest.raises(ConventionError, match="got weight="):
        Request.of("gini@2", weight=max)


def test_the_facts_of_a_declaration_go_to_their_records():
    found = records_of({"at_k": "never", "tie_order": "set", "combine_if": "always"})
    expected = {
        "at_k": "never",
        "tied": EqualScores(tie_order="set"),
        "pooling": Pooling(combine_if="always"),
    }
    assert found == expected
