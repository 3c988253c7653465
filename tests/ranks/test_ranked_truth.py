"""Lists and truth brought together: matched once, whatever is asked and in whatever order."""

import numpy as np
import pytest

from recsys import kernels
from recsys.conventions.decisions import DECISIONS
from recsys.errors import DuplicateError
from recsys.inputs import read_interactions, read_lists
from recsys.ranks.ranked_truth import match_truth

TRUTH = {1: {"a": 1, "c": 2}, 2: {"b": 1}}
TIED = {1: [("c", 0.5), ("b", 0.5), ("a", 0.5)], 2: [("b", 0.9), ("a", 0.4)]}
REPEATED = {1: [("c", 0.9), ("a", 0.5), ("c", 0.2)], 2: [("b", 0.9)]}


def matched(lists, truth=TRUTH):
    return match_truth(read_lists(lists), read_interactions(truth))


@pytest.mark.parametrize(("lists", "n_repeated"), [(TIED, 0), (REPEATED, 1)])
def test_what_is_counted_does_not_depend_on_what_was_asked_before(lists, n_repeated):
    fresh, used = matched(lists), matched(lists)
    used.hits("given", "first")
    for judged in (fresh, used):
        assert judged.shown("by_id").repeated == (n_repeated > 0)
        assert judged.counts == {"repeated_items": n_repeated}


def test_lists_are_matched_once_for_all_rules(monkeypatch):
    calls = []
    found = kernels.match_lists
    monkeypatch.setattr(kernels, "match_lists", lambda *data, **how: calls.append(1) or found(*data, **how))
    judged = matched(TIED)
    for ties in DECISIONS["ties"]:
        judged.hits(ties, "first")
        judged.shown(ties)
    judged.n_undecided()
    assert len(calls) == 1


@pytest.mark.parametrize(
    ("ties", "items", "ranks", "repeat"),
    [
        ("by_id", ["a", "a", "c"], [1, 2, 4], [False, True, False]),
        ("by_id_desc", ["c", "a", "a"], [1, 3, 4], [False, False, True]),
        ("given", ["a", "c", "a"], [1, 2, 4], [False, False, True]),
    ],
)
def test_the_entry_that_comes_first_under_a_rule_is_not_the_repeat(ties, items, ranks, repeat):
    judged = matched({1: [("a", 0.5), ("c", 0.5), ("b", 0.5), ("a", 0.5)]}, {1: {"a", "c"}})
    hits = judged.hits(ties, "first")
    assert judged.items.values[hits.item].tolist() == items
    assert hits.rank.tolist() == ranks
    assert hits.repeat is not None
    assert hits.repeat.tolist() == repeat


def test_the_error_names_the_item_that_is_repeated_in_the_lists_as_they_came():
    judged = matched({1: [("c", 0.5), ("b", 0.5), ("a", 0.5), ("b", 0.2)]}, {1: {"a"}})
    with pytest.raises(DuplicateError, match="item 'b' more than once"):
        judged.hits("by_id", "error")


def test_among_judged_items_every_entry_that_is_one_stays():
    judged = matched(REPEATED | {3: [("z", 1.0)]}).of_judged()
    assert judged.items.values[judged.listed].tolist() == ["c", "a", "c", "b"]
    assert judged.list_indptr.tolist() == [0, 3, 4, 4]
    assert judged.given_none is not None
    assert judged.given_none.tolist() == [False, False, False]
    assert judged.hits("given", "first").rank.tolist() == [1, 2, 3, 1]
    assert judged.counts == {"repeated_items": 1}
    assert np.array_equal(judged.matches.at, np.arange(4))
