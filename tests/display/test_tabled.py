"""A result in every format: what it says, the keys it offers, and names that nothing obeys."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

import recsys
from recsys.display.markup import latex_table, markdown_table
from recsys.display.notebook_html import notebook_table
from recsys.display.text_tables import text_table


@pytest.fixture(scope="module")
def models():
    """Evaluations of three models, by name."""
    rng = np.random.default_rng(0)
    truth = {u: {u % 7} for u in range(100)}
    lists = {
        name: {u: rng.permutation(size)[:2].tolist() for u in truth}
        for name, size in (("old", 20), ("new", 12), ("best", 7))
    }
    return {name: recsys.evaluate(own, truth, ["hit@2", "mrr", "coverage@2"]) for name, own in lists.items()}


def test_names_in_tables_are_neither_markup_nor_commands():
    bad = "![x](http://a.b)\x1b[31m\x9b\u202e\u2066\u200f|*"
    columns = {bad: [bad, "plain"], "n": [1, 2]}
    for shown in (
        text_table(columns),
        markdown_table(columns),
        latex_table(columns),
        notebook_table(columns, [bad]),
    ):
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]", shown)
    head, _, first, _ = markdown_table(columns).splitlines()
    assert head.startswith("| \\!\\[x\\](http:\u200b//a.b)\\[31m\\|\\* |")
    assert first.startswith("| \\!\\[x\\](http:\u200b//a.b)\\[31m\\|\\* |")


def test_notebooks_complete_keys(models):
    comparison = recsys.compare(models, baseline="old")
    assert models["new"]._ipython_key_completions_() == ["hit@2", "mrr", "coverage@2"]
    assert models["new"].intervals()._ipython_key_completions_() == ["hit@2", "mrr", "coverage@2"]
    for rows in (comparison, recsys.compare(models)):
        keys = rows._ipython_key_completions_()
        assert [rows[key] for key in keys] == list(rows)


@pytest.mark.parametrize("baseline", [None, "old"])
def test_what_a_comparison_says_is_in_every_form_of_it(models, baseline):
    comparison = recsys.compare(models, baseline, no_worse_than=0.1, rope=0.01)
    grouped, plain = comparison.to_text(), str(comparison)
    for row in comparison:
        assert str(row.verdict) in grouped
        assert str(row.verdict) in plain
        assert f"{row.value:.4f}" in grouped
        assert f"{row.baseline_value:.4f}" in grouped
    assert "d_z: the mean difference in standard deviations of the differences" in plain


def test_every_result_has_every_format(models):
    result = models["new"]
    truth = {u: [u % 7] for u in range(100)}
    made = [
        recsys.compare(models, baseline="old"),
        recsys.gate(result, models["old"], {"mrr": "1%"}),
        recsys.audit(truth, truth),
        result.intervals(),
        result.bounds(),
    ]
    for one in made:
        document = json.loads(one.to_json(indent=None))
        assert document == json.loads(json.dumps(one.to_dict()))
        assert one.to_markdown().count("|") > 3
        assert one.to_latex().startswith(r"\begin{tabular}")
        assert len(one.to_frame()) > 0
        assert "<table" in one._repr_html_()
        assert str(one) == one.to_text()
    rows, frame = json.loads(made[3].to_json())["rows"], made[3].to_frame()
    assert [row["metric"] for row in rows] == list(result)
    assert list(rows[0]) == list(frame)


def test_a_tracker_gets_the_numbers_of_every_table(models):
    compared, logged = recsys.compare(models, baseline="old"), {}
    compared.log_to(lambda name, value, step: logged.update({(name, step): value}), step=2, prefix="t/")
    for row in compared.rows:
        assert logged[f"t/{row.model}/old/{row.metric}/difference", 2] == row.difference
    logged.clear()
    recsys.gate(models["new"], models["old"], {"mrr": "1%"}).log_to(
        lambda name, value, _: logged.update({name: value})
    )
    assert logged == {"mrr/new": models["new"]["mrr"], "mrr/against": models["old"]["mrr"]}
    assert all(isinstance(value, float) for value in logged.values())
