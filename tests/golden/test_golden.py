"""Every stored number of a peer library is reproduced, or refused for a stated reason that still holds."""

from __future__ import annotations

import math
from collections import Counter
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from golden import page
from golden.refused import REFUSED
from golden.table import CASES, PRESET_OF, RESULTS, TOLERANCE, Entry, conventions_of, entries, ours
from golden.ways import way_of
from recsys.conventions.decisions import DECISIONS, Conventions
from recsys.conventions.presets import PRESETS, preset
from recsys.errors import RecsysError
from recsys.metrics.registry import Request

pytestmark = pytest.mark.golden

ENTRIES = list(entries())
SHARE_WANTED = 0.90


@pytest.fixture(scope="module")
def judged() -> list[tuple[Entry, str]]:
    return page.judged()


@pytest.mark.parametrize("library", RESULTS)
def test_every_number_is_reproduced_or_refused_for_a_reason_that_holds(library, judged):
    wrong = [
        f"{entry}: {said}"
        for entry, said in judged
        if entry.library == library and said not in ("reproduced", "refused")
    ]
    assert not wrong, "\n".join(wrong)


def test_at_least_nine_numbers_in_ten_are_reproduced(judged):
    count = Counter(said for entry, said in judged if entry.is_number)
    assert count["reproduced"] / sum(count.values()) >= SHARE_WANTED, count


@pytest.mark.parametrize("rule", REFUSED, ids=lambda rule: "/".join(rule[:3]))
def test_every_refusal_is_about_something(rule):
    library, case, key, reason = rule
    assert reason
    assert any(
        library == e.library and fnmatchcase(e.case, case) and fnmatchcase(e.key, key) for e in ENTRIES
    ), "no stored value matches"


@pytest.mark.parametrize("entry", [e for e in ENTRIES if "(default)" in e.key], ids=str)
def test_ranx_and_no_list_error_refuse_the_same_input(entry):
    assert not entry.is_number
    with pytest.raises(RecsysError):
        ours(entry)


FAILED = [e for e in ENTRIES if not e.is_number and "(default)" not in e.key]


@pytest.mark.parametrize("entry", FAILED, ids=str)
def test_where_the_library_fails_we_answer_within_bounds(entry):
    value = ours(entry)
    low, high = Request.parse(way_of(entry.library, entry.key, entry.case).request.format(k=1)).metric.bounds
    assert math.isfinite(value)
    assert low <= value <= high


@pytest.mark.parametrize("library", RESULTS)
def test_the_preset_names_the_version_the_numbers_came_from(library):
    row = preset(PRESET_OF.get(library, library))
    stored = RESULTS[library]["version"]
    assert row.version == stored or ("document" in row.library and stored == "from source")


def test_every_preset_has_stored_numbers():
    assert {PRESET_OF.get(library, library) for library in RESULTS} == set(PRESETS)


RANKING_DECISIONS = (
    "gain", "discount", "ideal", "recall_over", "precision_over", "ap_over", "f1_of", "no_truth", "no_list",
    "ties", "duplicates", "average", "gini_over",
)  # fmt: skip


@pytest.mark.parametrize("decision", RANKING_DECISIONS)
def test_each_decision_moves_a_stored_number(decision):
    """The cases are worth having: under some preset, another choice would be seen."""
    assert any(moves(entry, decision) for entry in ENTRIES if worth_trying(entry))


def worth_trying(entry: Entry) -> bool:
    small = entry.case != "docstring" and not entry.case.startswith("Z")
    return small and entry.is_number and entry.reason is None


def moves(entry: Entry, decision: str) -> bool:
    row = conventions_of(entry.library)
    others = [c for c in DECISIONS[decision] if c not in ("error", getattr(row, decision))]
    return any(differs(entry, row.but(**{decision: choice}, per_metric=())) for choice in others)


# What a row decides without a stored number to show it, and where it comes from.
ELSEWHERE = {
    ("ir_measures", "max_grade"): "live parity: ERR",
    ("ir_measures", "no_truth"): "live parity: judged, none relevant",
    ("trec_eval", "no_truth"): "live parity: judged, none relevant",
    ("trec_eval", "negative_grades"): "live parity: negative grades",
    ("ir_measures", "negative_grades"): "live parity: negative grades of trec_eval, which it calls",
    ("rectools", "accuracy_over"): "live parity: short lists",
    ("rectools", "rank_gaps"): "live parity: gaps in the rank column",
    ("lenskit", "ap_over"): "average precision came with 2026",
    ("replay", "dcg"): "the sum inside its NDCG",
    ("microsoft", "dcg"): "the sum inside its NDCG",
    ("cf_evaluation", "dcg"): "the sum inside its NDCG",
    ("cf_evaluation_code", "dcg"): "the sum inside its NDCG",
    ("rating_and_ranking", "dcg"): "the sum inside its NDCG",
    ("rs_metrics", "capped_recall"): "counts as its recall does",
    ("evidently", "ties"): "no order of ties gives its numbers",
    ("recometrics", "ties"): "one draw of noise is refused, its expectation taken",
    (
        "cf_evaluation",
        "map",
    ): "a repeat moves neither the sum over hits nor its quotient in this case",
    ("ncf_evaluator", "gain"): "one positive of grade 1",
    ("ncf_evaluator", "ties"): "a constant scorer would get 1",
    ("rating_threshold", "hit"): "the run held no user without relevant items",
    ("rating_threshold", "precision"): "the run held no user without relevant items",
}


@pytest.mark.parametrize("name", PRESETS)
def test_every_decision_of_a_row_shows_in_a_stored_number(name):
    row, plain = PRESETS[name].conventions, Conventions()
    mine = [e for e in ENTRIES if PRESET_OF.get(e.library, e.library) == name and worth_trying(e)]
    without = {d: row.but(**{d: getattr(plain, d)}) for d in row.diff(plain) if d != "per_metric"}
    for metric, _ in row.per_metric:
        without[metric] = row.but(per_metric=tuple(o for o in row.per_metric if o[0] != metric))
    idle = {(name, what) for what, rules in without.items() if not any(differs(e, rules) for e in mine)}
    assert idle == {key for key in ELSEWHERE if key[0] == name}


def differs(entry: Entry, rules: Conventions) -> bool:
    try:
        value = ours(entry, rules)
    except RecsysError:  # refused under these rules: seen as well as a number
        return True
    return abs(value - float(entry.theirs)) > TOLERANCE


def test_the_cases_are_those_of_the_results():
    known = {*CASES["cases"], "beyond", "docstring"}
    assert {e.case for e in ENTRIES} <= known


def test_the_page_is_up_to_date(judged):
    stored = Path(__file__).parents[2] / "docs" / "parity.md"
    assert stored.read_text("utf-8") == page.page(judged), "run: python tests/golden/page.py"
