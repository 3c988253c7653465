"""scripts/decision_rules.py judges as the package does, and the picture of docs/statistics.md is current."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import numpy as np
import pytest

import recsys
from recsys.errors import notes_only
from worlds.metric_values import evaluation_of

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def rules():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "scripts")
        yield importlib.import_module("decision_rules")
    for name in ("decision_rules", "proofs"):
        sys.modules.pop(name, None)


def test_the_picture_shows_the_rates_of_today(rules):
    data = rules.PICTURE.read_bytes()
    start = data.index(b"Description\0") + len(b"Description\0")
    stored, _ = json.JSONDecoder().raw_decode(data[start : data.index(b"}}", start) + 2].decode())
    assert list(stored) == list(rules.SIZES)
    for title, size in rules.SIZES.items():
        for differing in (5, 6, 12, 19, 20, 31):
            found = rules.verdict_rates(size, [differing])
            for rule, (rate,) in found.items():
                assert stored[title][rule][differing - 1] == pytest.approx(rate, abs=1e-9)


def test_the_rule_of_sign_flips_has_no_cliff_and_the_one_before_had(rules):
    small = rules.SIZES["small differences (0.04)"]
    rates = rules.verdict_rates(small, range(15, 26))
    assert max(abs(np.diff(rates["before"]))) > 0.9
    assert max(abs(np.diff(rates["after"]))) < 0.12


def test_the_candidates_of_today_are_compare_and_the_gate(rules):
    rng = np.random.default_rng(0)
    draw = rules.few(24, 0.8, graded=True)
    worlds = [draw(rng, 300) for _ in range(12)]
    sides = [np.stack(side) for side in zip(*worlds, strict=True)]
    old, new = (evaluation_of("ndcg", side) for side in sides)
    with notes_only():
        rows = recsys.compare({"old": old, "new": new}, "old", correction="none", cautions="ignore")
    judged = [rules.judge(*world)["sign flips"] for world in worlds]
    assert [row.p_value < rules.ALPHA for row in rows] == judged
    assert 0 < sum(judged) < 12
    checks = recsys.gate(new, old, dict.fromkeys(new, 0.012)).checks
    gated = [rules.gate(*world, 0.012, rng, relative=False)["Gaffke"] for world in worlds]
    assert [check.passed for check in checks] == gated


def test_every_cell_runs(rules):
    cells = rules.cells()
    assert len({cell.name for cell in cells}) == len(cells)
    questions = {cell.question: cell for cell in cells if cell.n <= 1000}
    lines = [cell.run(2) for cell in questions.values()]
    assert {line["question"] for line in lines} == {
        "equal",
        "finds",
        "gate at the margin",
        "gate of equals",
        "interval misses",
    }
    assert rules.show(lines).count("\n") == 1 + len(lines)
