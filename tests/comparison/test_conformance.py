"""conform(): right evaluators pass, wrong ones are told where, commands in other languages take part."""

from __future__ import annotations

import json
import math
import shutil
import sys
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner

import recsys
from recsys.cli.app import cli
from recsys.comparison.conformance import ask_for
from recsys.errors import InputError, RecsysError, UnknownNameError
from recsys.metrics import METRICS

ROOT = Path(__file__).resolve().parents[2]
JAVASCRIPT = ROOT / "examples" / "conformance" / "evaluator.mjs"
PYTHON = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    top = {u: {i for i, s in sorted(own, key=lambda e: (-e[1], e[0]))[: asked["k"]]}
           for u, own in asked["run"].items()}
    good = {u: {i for i, g in own.items() if g > 0} for u, own in asked["truth"].items()}
    value = {u: len(own & top.get(u, set())) / len(own) for u, own in good.items() if own}
    print(json.dumps({"value": value}))
"""


def ours(run, truth, k, *, metric, params, conventions, context, family):
    """This package, asked as a stranger is."""
    inside = ", ".join(f"{name}={value}" for name, value in params.items() if value is not None)
    request = metric + (f"({inside})" if inside else "") + ("" if k is None else f"@{k}")
    if family == "predictions":
        lists = {user: dict(entries) for user, entries in run.items()}
        return recsys.evaluate_ratings(lists, truth, request)[request]
    rules = dict(conventions)
    if isinstance(rules.get("gain"), list):
        rules["gain"] = dict(rules["gain"])
    lists = {user: [tuple(entry) for entry in entries] for user, entries in run.items()}
    if context.pop("ranks", False):
        rows = [(user, *entry) for user, entries in run.items() for entry in entries]
        lists = pd.DataFrame(rows, columns=["user", "item", "rank"])
    value = recsys.evaluate(lists, truth, request, conventions=rules, cautions="ignore", **context)[request]
    return None if math.isnan(value) else value


def recall(run, truth, k, **asked):
    return {
        user: sum(item in grades for item, _ in sorted(run.get(user, []), key=lambda e: (-e[1], e[0]))[:k])
        / len(grades)
        for user, grades in truth.items()
    }


def a_half(*question, **asked):
    return 0.5


@pytest.mark.filterwarnings("ignore")
def test_this_package_conforms_to_its_own_standard():
    result = recsys.conform(ours, ["ndcg", "gini", "novelty", "rmse", "auc"])
    assert result, result
    assert {"rmse", "auc", "auc of predictions", "gini"} <= set(result.by_metric)
    assert result.by_decision["gain=exp2"]["passed"]
    assert result.smallest_failure is None


def test_a_wrong_evaluator_is_told_the_smallest_question_it_fails_on():
    result = recsys.conform(recall, "recall", decisions=[])
    assert not result
    failure = result.smallest_failure
    assert failure.verdict == "failed"
    assert failure.size == min(o.size for o in result.results if o.verdict == "failed")
    told = result.to_dict()
    assert told["conforms"] is False
    assert told["smallest_failure"]["question"] == failure.vector.question()
    assert sum(told["metrics"]["recall"].values()) == told["vectors"]
    text = result.to_text()
    assert "begin with" not in text
    assert "begin with decisions=[]" in recsys.conform(recall, "recall").to_text()
    assert failure.vector.name in text
    assert '"expected"' not in text.split("question")[0]
    assert json.dumps(failure.vector.expected) in text


@pytest.mark.filterwarnings("ignore")
def test_errors_are_right_where_the_standard_has_no_number_and_refusals_elsewhere():
    def default_only(run, truth, k, **asked):
        if asked["conventions"]:
            raise NotImplementedError("the default only")
        return ours(run, truth, k, **asked)

    result = recsys.conform(default_only, "hit", decisions=["ties", "no_truth"])
    counts = result.by_decision
    assert counts["default"] == {"passed": counts["default"]["passed"], "failed": 0, "refused": 0}
    assert counts["ties=given"]["refused"]
    assert counts["no_truth=error"] == {
        "passed": counts["no_truth=error"]["passed"],
        "failed": 0,
        "refused": 0,
    }
    assert not result
    assert result.smallest_failure.verdict == "refused"


@pytest.mark.filterwarnings("ignore")
def test_one_number_or_one_per_user_is_compared_with_what_the_standard_has_of_it():
    per_user = recsys.conform(a_half, "recall", decisions=[])
    expected = [outcome for outcome in per_user.results if outcome.vector.expected["value"] == 0.5]
    assert [outcome for outcome in per_user.results if outcome.verdict == "passed"] == expected
    near = recsys.conform(
        lambda run, truth, k, **asked: ours(run, truth, k, **asked) or 0.0,
        "recall",
        decisions=[],
        tolerance=0.1,
    )
    assert not [o for o in near.results if o.verdict == "failed" and o.vector.expected["value"] is not None]

    def everybody(run, truth, k, **asked):
        return dict.fromkeys({*run, *truth}, 1.0)

    worst = recsys.conform(everybody, "hit", decisions=[])
    for outcome in worst.results:
        same = dict.fromkeys(outcome.answer, 1.0) == outcome.vector.expected["cases"]
        assert (outcome.verdict == "passed") == same


@pytest.mark.parametrize("tolerance", [math.inf, math.nan, -1e-9, "1e-9"])
def test_a_tolerance_is_a_finite_number(tolerance):
    with pytest.raises(InputError, match="tolerance is"):
        recsys.conform(a_half, "recall", decisions=[], tolerance=tolerance)
    with pytest.raises(InputError, match="tolerance is"):
        recsys.identify(a_half, "recall", tolerance=tolerance)


def test_which_vectors_are_asked_is_checked():
    assert {vector.metric for vector in ask_for("f1, hit_rate", ())} == {"f", "hit"}
    assert {*ask_for(["user_rmse"], None)[0].params} == set()
    assert all(not vector.conventions for vector in ask_for("ndcg", []))
    with pytest.raises(UnknownNameError, match="ndgc"):
        recsys.conform(ours, "ndgc")
    with pytest.raises(UnknownNameError, match="gains"):
        recsys.conform(ours, "ndcg", decisions=["gains"])
    with pytest.raises(InputError, match="none of"):
        recsys.conform(lambda: 0.0, "ndcg", decisions=[])


def test_a_command_in_python(tmp_path):
    program = tmp_path / "recall.py"
    program.write_text(PYTHON, encoding="utf-8")
    result = recsys.conform([sys.executable, str(program)], "recall", decisions=[])
    assert result, result


@pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed")
def test_the_evaluator_in_javascript_conforms_in_what_it_knows():
    command = f"node {JAVASCRIPT}"
    known = [part for name in ("gain", "discount") for part in ("--decision", name)]
    run = CliRunner().invoke(cli, ["conform", command, "-m", "ndcg", "-m", "recall", *known, "--json"])
    told = json.loads(run.stdout)
    assert run.exit_code == 0, run.output
    assert told["conforms"]
    assert told["decisions"]["gain=exp2"]["passed"]
    more = CliRunner().invoke(cli, ["conform", "-m", "ndcg", "--", "node", str(JAVASCRIPT)])
    assert more.exit_code == 1
    assert "not as the standard says: negative_grades (1 of 3: unjudged), " in more.stdout
    assert "begin with" not in more.stdout


def test_the_verb_prints_the_vectors_and_says_what_is_missing():
    printed = CliRunner().invoke(cli, ["conform", "--vectors", "-m", "hits", "--default-only"])
    assert printed.exit_code == 0, printed.output
    lines = [json.loads(line) for line in printed.stdout.splitlines()]
    assert {line["metric"] for line in lines} == {"hits"}
    assert all(line["expected"]["value"] is not None or line["truth"] for line in lines)
    assert CliRunner().invoke(cli, ["conform"]).exit_code == 2
    unclosed = CliRunner().invoke(cli, ["conform", "node 'evaluator.mjs"])
    assert (unclosed.exit_code, "Close its quotes" in unclosed.stderr) == (3, True)
    both = CliRunner().invoke(cli, ["conform", "true", "--default-only", "--decision", "gain"])
    assert both.exit_code == 2
    with pytest.raises(RecsysError, match="cannot be started"):
        recsys.conform("no-such-program-here", "hits", decisions=[])


def test_a_metric_of_ones_own_is_not_in_the_standard():
    @recsys.metric("own_hit", formula="0", reference="none")
    def own_hit(h, k, c):
        """Nothing is a hit."""
        del k, c
        return 0.0 * h.rank

    try:
        with pytest.raises(UnknownNameError, match="unknown metric of the standard 'own_hit'"):
            recsys.conform(lambda *_, **__: 0.0, metrics=["own_hit"])
    finally:
        del METRICS["own_hit"]
