"""The published vectors are what the library answers today: every metric, parameter and decision in them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from recsys.comparison import standard

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "standard" / "vectors"


def question(vector: dict[str, Any]) -> str:
    return json.dumps({name: part for name, part in vector.items() if name != "expected"}, sort_keys=True)


@pytest.mark.parametrize("family", sorted(path.stem for path in FOLDER.glob("*.json")))
def test_the_answers_are_those_that_were_published(family):
    file = json.loads((FOLDER / f"{family}.json").read_text("utf-8"))
    metrics = [metric.name for metric in standard.standard_metrics() if standard.family_of(metric) == family]
    vectors = [vector for vector in standard.vectors(metrics) if vector.family == family]
    inputs = {v.input: standard.inputs(family)[v.input].to_dict() for v in vectors}
    made = json.loads(json.dumps([inputs, [vector.to_dict() for vector in vectors]]))
    assert made[0] == file["inputs"]
    answers = {question(vector): vector["expected"] for vector in made[1]}
    published = {question(vector): vector["expected"] for vector in file["vectors"]}
    assert answers.keys() == published.keys()
    assert [name for name, answer in answers.items() if answer != published[name]] == []
