"""recsys identify: a command is named, questions are written and answers read, what fits nothing fails."""

from __future__ import annotations

import json
import sys

import pytest

from recsys.comparison.implementations import answers_of

EVALUATOR = """
import json, sys
for line in sys.stdin:
    q = json.loads(line)
    values = {}
    for user, grades in q["truth"].items():
        good = {item for item, grade in grades.items() if grade > 0}
        shown = [item for item, _ in q["run"].get(user, [])][: q["k"]]
        if good:
            values[user] = sum(item in good for item in shown) / len(good)
    print(json.dumps({"value": sum(values.values()) / len(values)}))
"""


@pytest.fixture
def run(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    (tmp_path / "evaluator.py").write_text(EVALUATOR)
    return command


def test_a_command_is_named(run):
    done = run("identify", "-m", "recall", "--", sys.executable, "evaluator.py")
    assert done.exit_code == 0
    assert "recall divides by the number of relevant items" in done.stdout
    assert "recbole = cornac = evidently" in done.stdout
    found = json.loads(run("identify", "-m", "recall", "--json", f"{sys.executable} evaluator.py").stdout)
    assert found["fixed"]["recall_over"] == "relevant"
    assert ["recbole", "cornac", "evidently", "rating_threshold"] in found["presets"]


def test_questions_are_written_and_their_answers_read(run, tmp_path):
    assert run("identify", "-m", "recall", "--probes", "probes.jsonl").exit_code == 0
    lines = [json.loads(line) for line in (tmp_path / "probes.jsonl").read_text().splitlines()]
    assert {"probe", "version", "run", "truth", "k"} == set(lines[0])
    values = answers_of(
        [sys.executable, "evaluator.py"], [{n: q[n] for n in ("run", "truth", "k")} for q in lines]
    )
    rows = [{**line, "value": value} for line, value in zip(lines, values, strict=True)]
    (tmp_path / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = run("identify", "-m", "recall", "--answers", "answers.jsonl")
    assert "recbole = cornac = evidently" in done.stdout


def test_one_published_number_is_a_file_of_one_line(run, tmp_path):
    row = {"run": {"u": [["a", 0.9], ["b", 0.8]]}, "truth": {"u": {"b": 1, "c": 1, "d": 1}}, "k": 2}
    (tmp_path / "a.jsonl").write_text(json.dumps({**row, "value": 0.25}))
    done = run("identify", "-m", "map", "--answers", "a.jsonl")
    assert done.exit_code == 0
    assert "map: 1 probe answered" in done.stdout
    (tmp_path / "a.jsonl").write_text(json.dumps({**row, "k": 0, "value": 0.25}))
    assert run("identify", "-m", "map", "--answers", "a.jsonl").exit_code == 3


def test_what_fits_nothing_fails_and_says_where(run):
    done = run("identify", "-m", "mrr", "--", sys.executable, "evaluator.py")
    assert done.exit_code == 1
    assert "nothing known fits" in done.stdout
    assert "another metric: " in done.stdout
    assert "recall" in done.stdout


def test_usage(run):
    for arguments in ((), ("--answers", "a.jsonl", "--probes", "b.jsonl"), ("--answers", "a.jsonl", "cat")):
        assert run("identify", *arguments).exit_code == 2
    assert run("identify", "-m", "nonsense", "cat").exit_code == 2
    assert run("identify", "--answers", "missing.jsonl").exit_code == 3
    assert run("identify", "no-such-program").exit_code == 3
