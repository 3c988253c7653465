"""A second implementation of the standard, which shares no code with the package, gives its vectors."""

from __future__ import annotations

import ast
import json
from functools import cache
from pathlib import Path

import pytest

from standard.second_implementation import evaluate
from standard.second_metrics import RefusedError

ROOT = Path(__file__).resolve().parents[2]
VECTORS = ROOT / "docs" / "standard" / "vectors"
MODULES = sorted(Path(__file__).parent.glob("second_*.py"))
ALLOWED = {"collections", "dataclasses", "fractions", "itertools", "math", "standard"}


@cache
def family(name):
    return json.loads((VECTORS / f"{name}.json").read_text(encoding="utf-8"))


def metrics():
    names = sorted(path.stem for path in VECTORS.glob("*.json"))
    return [
        (name, metric) for name in names for metric in sorted({v["metric"] for v in family(name)["vectors"]})
    ]


def answer(name, vector):
    given = family(name)["inputs"][vector["input"]]
    try:
        return evaluate(
            given["run"],
            given["truth"],
            vector["k"],
            metric=vector["metric"],
            params=vector["params"],
            conventions=vector["conventions"],
            context=given["context"],
            family=name,
        )
    except RefusedError:
        return {"error": True}


def agrees(found, expected):
    if found is None or expected is None:
        return found is expected
    return abs(found - expected) <= 1e-12 * max(1, abs(expected))


def same(found, expected):
    if "error" in expected or "error" in found:
        return found == expected
    cases, wanted = found.get("cases", {}), expected.get("cases", {})
    return (
        agrees(found["value"], expected["value"])
        and cases.keys() == wanted.keys()
        and all(agrees(cases[user], wanted[user]) for user in wanted)
    )


@pytest.mark.parametrize(("name", "metric"), metrics(), ids=lambda part: part)
def test_the_pages_give_the_numbers_of_the_vectors(name, metric):
    asked = [vector for vector in family(name)["vectors"] if vector["metric"] == metric]
    answers = [(vector, answer(name, vector)) for vector in asked]
    wrong = [(vector, found) for vector, found in answers if not same(found, vector["expected"])]
    assert asked
    assert not wrong, f"{len(wrong)} of {len(asked)}; the first: {wrong[0]}"


def test_an_answer_that_is_a_little_off_is_not_the_same():
    right = {"value": 0.5, "cases": {"u1": 0.5, "u2": None}}
    assert same(right, right)
    assert not same({**right, "value": 0.5 + 3e-12}, right)
    assert not same({**right, "cases": {"u1": 0.5, "u2": 0.0}}, right)
    assert not same({**right, "cases": {"u1": 0.5}}, right)
    assert not same({"error": True}, right)
    assert not same(right, {"error": True})


TWICE = {"u1": [["a", 2], ["a", 1], ["b", 0]]}
TIED = {"u1": [["a", 1], ["b", 1]]}
TIED_WITH_ITSELF = {"u1": [["a", 1], ["a", 1]]}


@pytest.mark.parametrize(
    ("run", "metric", "conventions", "context"),
    [
        (TWICE, "recall", {"duplicates": "all"}, {}),
        (TIED, "ndcg", {"ideal": "k"}, {}),
        (TIED, "err", {"max_grade": 1}, {}),
        (TIED, "bpref", {"ties": "expected"}, {}),
        (TIED_WITH_ITSELF, "recall", {"ties": "expected"}, {}),
        (TIED_WITH_ITSELF, "recall", {"ties": "best"}, {}),
        ({"u1": [["a", 1], ["b", 3]]}, "auc", {"rank_gaps": "kept"}, {"full_ranking": True, "ranks": True}),
    ],
    ids=lambda part: part if isinstance(part, str) else None,
)
def test_errors_that_the_pages_ask_for(run, metric, conventions, context):
    asked = {"params": {}, "context": context, "family": "ranking"}
    with pytest.raises(RefusedError):
        evaluate(run, {"u1": {"a": 2}}, None, metric=metric, conventions=conventions, **asked)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_it_imports_the_standard_library_and_nothing_else(path):
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            names.add((node.module or "").partition(".")[0])
    assert names <= ALLOWED
