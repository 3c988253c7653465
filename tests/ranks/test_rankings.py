"""Ready lists and models in one shape: each member means the same for both."""

import numpy as np
import pytest

import recsys
from recsys.errors import InputError
from recsys.inputs import read_interactions, read_lists
from recsys.ranks.rankings import ALL, ELIGIBLE, LISTS, SCORED, ListRanking, RankingOptions
from recsys.records.arrays import Context, Ids

MODEL = recsys.Scores([[0.9, 0.1, 0.5], [0.2, 0.3, 0.8]])
READY = ListRanking(read_lists({0: [0, 2, 1], 1: [2, 1, 0], 5: [1]}))
TRUTH = read_interactions({0: {2}, 1: {0}, 7: {1}})
OF_MODEL = read_interactions({0: {2}, 1: {0}})
RANKINGS = pytest.mark.parametrize("ranking", [MODEL, READY], ids=["model", "lists"])


@RANKINGS
def test_both_give_the_judged_items_the_same_places(ranking):
    hits = ranking.rank(OF_MODEL, RankingOptions()).hits("by_id", "first")
    assert hits.rank.tolist() == [2, 3]
    assert ranking.n_places == 3


@RANKINGS
def test_a_ranking_of_some_cases_is_that_of_all_for_these(ranking):
    cases = Ids(np.array([1]))
    truth = read_interactions({1: {0}})
    hits = ranking.of_cases(cases).rank(truth, RankingOptions()).hits("by_id", "first")
    assert hits.rank.tolist() == [3]


def test_cases_are_those_of_the_truth_and_of_the_lists():
    assert READY.covered(TRUTH).values.tolist() == [0, 1, 5]
    assert READY.cases_with(TRUTH)[0].values.tolist() == [0, 1, 5, 7]
    assert MODEL.covered(TRUTH) is MODEL.cases_with(TRUTH)[0] is TRUTH.cases


def test_a_model_knows_its_candidates_and_lists_are_given_them():
    catalogue = Ids(np.arange(4))
    known = READY.among(catalogue, 4, complete=True, source=ALL)
    assert (known.catalogue, known.n_items, known.complete) == (catalogue, 4, True)
    assert (READY.catalogue, READY.n_items, READY.complete) == (None, None, False)
    assert MODEL.among(None, None, complete=False, source=LISTS) is MODEL
    assert MODEL.catalogue.values.tolist() == [0, 1, 2]
    assert MODEL.complete
    with pytest.raises(InputError, match="the items of the model are the catalogue"):
        MODEL.among(catalogue, 4, complete=False, source=LISTS)


def test_what_items_were_chosen_from():
    assert READY.chosen_from(RankingOptions()) == LISTS
    assert MODEL.chosen_from(RankingOptions()) == ALL
    assert MODEL.chosen_from(RankingOptions(eligible=TRUTH)) == ELIGIBLE
    assert recsys.Scores([[1.0, -np.inf]]).chosen_from(RankingOptions()) == SCORED


def test_facts_say_what_a_result_has_to_say():
    assert READY.facts(RankingOptions(backend="cuda"), Context()).backend is not None
    assert READY.facts(RankingOptions(), Context()) == (None, None)
    assert MODEL.facts(RankingOptions(), Context()).training_items == "with a score"
    assert recsys.Factors([[1.0]], [[1.0]]).facts(RankingOptions(), Context()).training_items == "ranked"
    assert MODEL.facts(RankingOptions(), Context(train=TRUTH)) == (None, None)


def test_a_truth_without_a_user_of_the_model_is_an_error_unless_it_is_a_block():
    named = recsys.Scores([[1.0, 0.5]], user_ids=["ann"], item_ids=["a", "b"])
    truth = read_interactions({"bob": {"a"}})
    named.rank(truth, RankingOptions())
    with pytest.raises(InputError, match="no user of the truth"):
        named.rank(truth, RankingOptions(shared=True))
