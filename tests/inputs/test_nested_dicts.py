"""Nested dicts of text as lists and truth: columns are made when they are first looked at."""

from dataclasses import replace

import numpy as np
import pytest

import recsys
from recsys import kernels
from recsys.errors import IdTypeError
from recsys.inputs import nested_dicts, read_interactions, read_lists
from recsys.inputs.nested_dicts import read_dicts

pytestmark = pytest.mark.skipif(not kernels.backends().native, reason="compiled kernels are not installed")
RUN = {f"q{q}": {"b": 0.5, "a": q / 41, "é": 1} for q in range(40)} | {"of the run": {"z": 1.0}}
TRUTH = {"of the truth": {"y": 1}, "q1": {}} | {f"q{q}": {"b": q % 4 - 1, "a": 1} for q in range(2, 40)}


def assert_equal(found, expected, names):
    for name in names:
        one, other = getattr(found, name), getattr(expected, name)
        values = (one.values, other.values) if name in ("cases", "items") else (one, other)
        assert values[0].dtype == values[1].dtype, name
        assert values[0].tolist() == values[1].tolist(), name


def test_both_sides_are_what_reading_them_like_any_container_gives():
    lists, truth = read_dicts(RUN, TRUTH)
    assert_equal(lists, read_lists(RUN), ("cases", "items", "indptr", "codes", "scores"))
    expected = read_interactions(TRUTH, negatives=True)
    for found, other in ((truth, expected), (truth.without_negatives(), expected.without_negatives())):
        assert found.highest_grade == other.highest_grade
        assert found.n_negative == other.n_negative
        assert found.id_kinds == other.id_kinds
        assert_equal(found, other, ("cases", "items", "indptr", "codes", "grades"))
    assert truth.facts == expected.facts


def test_a_changed_copy_has_columns_of_its_own_and_no_walk():
    lists, truth = read_dicts(RUN, TRUTH)
    for side in (lists, truth):
        users = np.arange(len(side.cases))
        copy = replace(side, clusters=users)
        assert copy.walk is None
        assert copy.clusters is users
        assert copy.codes is side.codes
    kept = truth.kept(truth.codes == 0)
    assert kept.n_negative == np.count_nonzero(kept.grades < 0)
    assert kept.highest_grade == kept.grades.max()


def test_places_need_no_codes_of_items(monkeypatch):
    expected = recsys.evaluate(RUN, TRUTH, ["ndcg@2", "map"], conventions="trec_eval")
    text = str(expected)
    with monkeypatch.context() as patch:
        patch.setattr(nested_dicts, "encode", lambda *_, **__: pytest.fail("an id got a code"))
        result = recsys.evaluate(RUN, TRUTH, ["ndcg@2", "map"], conventions="trec_eval")
        assert dict(result) == dict(expected)
        assert result.per_case.columns["map"].tobytes() == expected.per_case.columns["map"].tobytes()
    assert str(result) == text


def test_the_reference_backend_matches_lists_itself(monkeypatch):
    expected = recsys.evaluate(RUN, TRUTH, ["ndcg@2"], conventions="trec_eval")
    calls = []
    match = kernels.match_lists
    monkeypatch.setattr(kernels, "match_lists", lambda *data, **how: calls.append(1) or match(*data, **how))
    found = recsys.evaluate(RUN, TRUTH, ["ndcg@2"], conventions="trec_eval", backend="reference")
    assert dict(found) == dict(expected)
    assert calls


@pytest.mark.parametrize(
    "options",
    [
        {"by": lambda user: user[-1]},
        {"item_weights": {"a": 2.0, "b": 1.0, "y": 1.0}},
        {"clusters": {case: case[:2] for case in {**RUN, **TRUTH}}},
        {"full_ranking": True},
        {"seen": {"q3": ["a"]}},
        {"catalogue": ["a", "b", "é", "z"]},
        {"train": {"q3": ["a"]}},
    ],
    ids=lambda options: next(iter(options)),
)
def test_options_that_need_items_give_the_same_as_other_containers(options, monkeypatch):
    def result():
        return recsys.evaluate(RUN, TRUTH, ["ndcg@2", "hits@3"], conventions="trec_eval", **options)

    walked = result()
    monkeypatch.setattr(nested_dicts, "rank_dicts", lambda *_, **__: None)
    general = result()
    assert dict(walked) == dict(general)
    assert walked.counts == general.counts
    assert walked.notes == general.notes
    assert str(walked) == str(general)


@pytest.mark.parametrize("ids", ["int", "str", "auto"])
def test_ids_are_held_to_what_was_asked(ids):
    if ids == "int":
        with pytest.raises(IdTypeError, match="user ids of data in memory are str"):
            recsys.evaluate(RUN, TRUTH, ["map"], conventions="trec_eval", ids=ids)
    else:
        assert recsys.evaluate(RUN, TRUTH, ["map"], conventions="trec_eval", ids=ids)["map"] > 0
