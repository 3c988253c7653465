"""What a result can be asked later: by itself, stored, merged, copied to another process, of candidates."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import recsys
from recsys.errors import RecsysError, TieWarning
from recsys.evaluation.origin import StoredOrigin


def known_of(result):
    keys = None if result.truth_keys is None else result.truth_keys.tolist()
    return result.facts, result.cautions, result.asked, result.ranges, keys


@pytest.fixture(scope="module")
def result():
    lists = {user: [user + 1, user + 2, user + 3] for user in range(5)}
    return recsys.evaluate(lists, {0: {2}, 4: {9}}, ["recall@20", "hits@2"])


def test_a_result_of_lists_computes_what_it_is_asked_once(result):
    origin = result.origin
    assert origin.has_lists
    assert [one.code for one in result.cautions] == ["k_beyond_lists"]
    for name in ("facts", "cautions", "truth_keys", "asked", "ranges"):
        assert getattr(origin, name) is getattr(origin, name)
    assert dict(result.under("trec_eval")).keys() == dict(result).keys()
    assert result.bounds()


@pytest.mark.parametrize("kept", ["saved", "copied", "merged"])
def test_what_is_known_without_the_lists_stays(result, kept, tmp_path):
    if kept == "saved":
        result.save(tmp_path / "a.json")
        found = recsys.load(tmp_path / "a.json")
    elif kept == "copied":
        found = copy.copy(result)
    else:
        found = result.merge()
    assert isinstance(found.origin, StoredOrigin)
    assert (known_of(found), found.has_lists) == (known_of(result), False)
    with pytest.raises(RecsysError, match="the lists behind it are gone"):
        found.under("trec_eval")
    with pytest.raises(RecsysError, match="the lists behind it are gone"):
        found.bounds()


def test_ranks_among_candidates_are_measured_again_and_have_no_bounds():
    scores = np.array([[0.9, 0.1, 0.9], [0.5, 0.7, 0.1]])
    with pytest.warns(TieWarning):
        found = recsys.evaluate_candidates(scores, [(0, 3, [1, 2]), (1, 2, [0, 3])], ["hit@1"])
    assert (found["hit@1"], found.under({"ties": "best"})["hit@1"], found.has_lists) == (0.25, 0.5, True)
    assert found.asked.candidates == "sampled items"
    assert (found.cautions, found.truth_keys, found.ranges) == ((), None, {"hit@1": (0.0, 1.0)})
    with pytest.raises(RecsysError, match="made of sampled candidates"):
        found.bounds()


def test_what_readers_noticed_of_merged_results_adds_up():
    lists = {user: [1, 2] for user in range(8)}
    truth = [[1, 1, 2], [3, 3]] * 4
    parts = [{user: truth[user] for user in range(start, start + 4)} for start in (0, 4)]
    one, other = (recsys.evaluate({user: lists[user] for user in part}, part, ["mrr"]) for part in parts)
    assert one.merge(other).notes == recsys.evaluate(lists, dict(enumerate(truth)), ["mrr"]).notes
    assert one.merge(other).notes["truth"]["repeated_rows"] == 8
