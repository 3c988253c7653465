"""What is known about a result: it becomes notes and lines, comes back from notes, and parts add up."""

from __future__ import annotations

import json

import pytest

import recsys
from recsys.conventions.decisions import Conventions
from recsys.evaluation.result_facts import IdKinds, ResultFacts, StopFacts, Watched
from recsys.records.read_facts import ReadFacts

STOPPED = StopFacts(
    n_seen=400,
    n_total=1000,
    confidence=0.95,
    about="these users",
    reason="what was asked is clear",
    intervals={"mrr": Watched(0.5, 0.4, 0.6, "betting"), "ap": Watched(0.1, 0.0, 0.2, "betting", "worse")},
    says="stopped after 400\nmrr for all",
)
FACTS = [
    ResultFacts(),
    ResultFacts(lists=ReadFacts(n_rows=2), truth=ReadFacts(), ids=IdKinds("str", "int")),
    ResultFacts(truth=ReadFacts(repeated_rows=1), training_items="ranked", catalogue_of=("lists", "truth")),
    ResultFacts(training_items="with a score", stopped=STOPPED, n_users=7, backend="on the CPU"),
    ResultFacts(ratings=ReadFacts(columns={"actual": "stars"}), sampled="among 99"),
]


@pytest.mark.parametrize("facts", FACTS)
def test_notes_of_the_facts_are_read_back(facts):
    assert ResultFacts.of_notes(facts.to_notes()) == facts
    assert ResultFacts.of_notes(json.loads(json.dumps(facts.to_notes()))) == facts


def test_a_stop_says_how_much_was_saved():
    assert (STOPPED.share_saved, FACTS[3].stopped_early) == (0.6, True)
    assert STOPPED.seen == "400 of 1,000 users (60.0% of the work saved)"
    notes = STOPPED.to_notes()
    assert notes["says"] == "stopped after 400\nmrr for all"
    found = {"value": 0.1, "low": 0.0, "high": 0.2, "method": "betting", "verdict": "worse"}
    assert notes["intervals"]["ap"] == found
    assert not ResultFacts().stopped_early


def test_facts_of_parts_add_up_and_the_rest_is_of_the_first():
    one = ResultFacts(truth=ReadFacts(repeated_rows=1), ids=IdKinds("str", "str"), n_users=2)
    other = ResultFacts(
        lists=ReadFacts(file="b"),
        truth=ReadFacts(repeated_rows=2),
        ids=IdKinds("int", "str"),
        n_users=3,
        catalogue_of=("a",),
    )
    assert one.joined(other) == ResultFacts(
        lists=ReadFacts(file="b"),
        truth=ReadFacts(repeated_rows=3),
        ids=IdKinds("str", "str"),
        n_users=5,
        catalogue_of=("a",),
    )
    assert ResultFacts().joined(one) == one == one.joined(ResultFacts())


def test_the_notes_and_the_footnotes_of_a_result_show_the_same_facts():
    result = recsys.evaluate(recsys.Scores([[0.9, 0.1, 0.5]]), {0: [2]}, ["mrr"])
    assert result.facts.training_items == "with a score"
    assert result.facts.lines(Conventions()) == [result.notes["seen"]]
    assert result.notes["seen"] in str(result)
    assert (
        result.notes
        == result.facts.to_notes()
        == recsys.evaluate(recsys.Scores([[0.9, 0.1, 0.5]]), {0: [2]}, ["mrr"]).under("trec_eval").notes
    )
