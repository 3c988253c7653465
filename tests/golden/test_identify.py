"""Every library is named by its stored numbers: the golden cases as questions, results.json as the answers.

Also numbers that we refuse to copy (refused.py) name it, as known deviations, but for those in UNKNOWN. What
the library raised in place of a number is left out.
"""

from __future__ import annotations

from typing import Any

import pytest

import recsys
from golden.table import CASES, RESULTS, entries, in_form
from golden.ways import PRESET_OF, way_of
from recsys.conventions.presets import PRESETS

pytestmark = pytest.mark.golden

# Numbers we refuse whose reason is no deviation that identify knows; the other numbers of these are asked.
UNKNOWN = {
    ("recommenders", "ndcg"): "a hit listed n times counts n times at each of its places",
    ("torchmetrics", "precision (adaptive_k)"): "it divides by rows that hold no recommendation",
    ("evidently", "map"): "places go missing",
    ("recometrics", "map"): "one draw of noise for each tie looks like an order of its own",
    ("recometrics", "map (truncated)"): "as above",
    ("recometrics", "ndcg"): "as above",
    ("recometrics", "mrr"): "as above",
}
# Stored and not asked, besides options of a library that decide otherwise than its preset.
NOT_ASKED = {("recmetrics", "map (mapk)"): "it raised an error in every case"}


def answers() -> dict[str, dict[tuple[str, str], list[dict[str, Any]]]]:
    """{library: {(name of the number, request): rows}} of the small cases, as the library was asked."""
    rows: dict[str, dict[tuple[str, str], list[dict[str, Any]]]] = {}
    for entry in entries():
        small = entry.case not in ("beyond", "docstring") and not entry.case.startswith("Z")
        refused = entry.reason is not None and (entry.library, entry.key) in UNKNOWN
        if not small or not entry.is_number or refused:
            continue
        way = way_of(entry.library, entry.key, entry.case)
        if way.but:  # an option of the library that is a decision: the row is not that of its preset
            continue
        case = CASES["cases"][entry.case]
        lists = {user: [(item, score) for item, score in own] for user, own in case["recs"].items()}
        truth = {user: {int(i): g for i, g in own.items()} for user, own in case["truth"].items()}
        question = {"run": in_form(way, lists, truth, case["k"]), "truth": truth, "k": case["k"]}
        numbers = rows.setdefault(entry.library, {})
        numbers.setdefault((entry.key, way.request.replace("@{k}", "")), []).append(
            {"probe": entry.case, **question, "value": entry.theirs}
        )
    return rows


ANSWERS = answers()


@pytest.mark.parametrize("library", RESULTS)
def test_every_library_is_named_by_its_stored_numbers(library):
    preset = PRESET_OF.get(library, library)
    assert ANSWERS[library]
    for (key, metric), rows in ANSWERS[library].items():
        found = recsys.identify(metric=metric, answers=rows)
        remaining = [name for names in found.presets for name in names]
        assert preset in remaining, f"{key}\n{found}"
        if len(rows) == len([c for c in CASES["cases"] if not c.startswith("Z")]):
            assert len(remaining) < len(PRESETS), key


def test_every_stored_metric_of_lists_is_asked():
    asked = {(library, key) for library, numbers in ANSWERS.items() for key, _ in numbers}
    stored = {
        (entry.library, entry.key)
        for entry in entries()
        if entry.case not in ("beyond", "docstring") and not way_of(entry.library, entry.key, entry.case).but
    }
    assert stored - asked == {*NOT_ASKED}
    assert {*UNKNOWN} <= asked
