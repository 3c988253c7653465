"""What readers noticed: it becomes notes and comes back, and two parts of a table add up."""

from __future__ import annotations

import json

import pytest

from recsys.records.read_facts import ReadFacts

FACTS = [
    ReadFacts(),
    ReadFacts(n_rows=3, n_columns=7, conflicting_grades=0, repeated_rows=2, negative_grades=1),
    ReadFacts(columns={"user": "u", "item": "i"}, unused=("title",), arrangement="grouped", comments=2),
    ReadFacts(columns={"rank": "r", "score": "s"}, unused=(), users_with_gaps=4, padded_item_ids=1),
    ReadFacts(columns={"actual": "stars"}, file="a.csv", format="csv", n_files=2, fused={"method": "rrf"}),
]


@pytest.mark.parametrize("facts", FACTS)
def test_notes_of_the_facts_are_read_back(facts):
    assert ReadFacts.of_notes(facts.to_notes()) == facts
    assert ReadFacts.of_notes(json.loads(json.dumps(facts.to_notes()))) == facts


def test_notes_name_what_there_is():
    assert FACTS[0].to_notes() == {}
    assert FACTS[3].to_notes() == {
        "read": {
            "rank_column": "r",
            "score_column": "s",
            "unused": (),
            "order": "ordered by 'r'; 's' was not used",
            "users_with_gaps": 4,
        },
        "padded_item_ids": 1,
    }


def test_counts_of_two_parts_add_up_and_the_rest_is_of_the_first():
    one = ReadFacts(columns={"item": "i"}, unused=(), n_rows=3, n_columns=7, repeated_rows=2)
    other = ReadFacts(columns={"item": "j"}, n_rows=4, n_columns=7, comments=1, format="csv")
    joined = ReadFacts(
        columns={"item": "i"}, unused=(), n_rows=7, n_columns=7, repeated_rows=2, comments=1, format="csv"
    )
    assert one.joined(other) == joined
    assert ReadFacts().joined(one) == one == one.joined(ReadFacts())
