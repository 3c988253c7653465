"""Unjudged items taken out of the lists, and negative grades: against the oracle, and where refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import recsys
from evaluation.test_engine import EXAMPLES, ON_LISTS, WHOLE, assert_agrees, everything, settled
from recsys.conventions.decisions import DECISIONS, Conventions
from recsys.debias import evaluate as evaluate_unbiased
from recsys.errors import ConventionError, InputError, TieWarning
from worlds.lists import World, worlds

pytestmark = pytest.mark.filterwarnings("ignore::recsys.errors.TieWarning")
LISTS = {"u": ["z", "b", "y", "a"], "v": ["z"], "w": []}
TRUTH = {"u": {"a": 1, "b": 0, "c": -1}, "v": {"a": 1}, "w": {"a": 1}}


def with_negatives(world: World, every: int) -> World:
    """The world with every so many of its judgements turned into negative ones."""
    pairs = [(case, item) for case, grades in world.truth.items() for item in grades]
    chosen = set(pairs[::every])
    truth = {
        case: {i: -1 - g if (case, i) in chosen else g for i, g in grades.items()}
        for case, grades in world.truth.items()
    }
    return replace(world, truth=truth)


@settings(max_examples=EXAMPLES // 3)
@given(
    world=worlds(),
    every=st.integers(1, 4),
    ties=st.sampled_from(sorted(DECISIONS["ties"])),
    judged_only=st.sampled_from(["no", "yes"]),
    no_list=st.sampled_from(["empty", "skip"]),
    negative_grades=st.sampled_from(["unjudged", "error"]),
)
def test_every_ranking_metric_agrees_with_its_oracle(
    world, every, ties, judged_only, no_list, negative_grades
):
    assume(settled(world, ties))
    rules = Conventions(ties=ties, judged_only=judged_only, no_list=no_list, negative_grades=negative_grades)
    names = [name for name in ON_LISTS if name != "inst"]  # a thousand places of every list, one by one
    assert_agrees(with_negatives(world, every), everything(world, names), rules)


@settings(max_examples=EXAMPLES // 4)
@given(world=worlds(complete=True, repeats=False), ties=st.sampled_from(["by_id", "given", "worst"]))
def test_whole_rankings_of_the_judged_items(world, ties):
    rules = Conventions(ties=ties, judged_only="yes")
    assert_agrees(world, everything(world, sorted(WHOLE)), rules, full_ranking=True)


@settings(max_examples=EXAMPLES // 4, deadline=None)
@given(seed=st.integers(0, 10**6), ties=st.sampled_from(sorted(DECISIONS["ties"])))
def test_a_model_is_ranked_like_its_whole_list(seed, ties):
    """Places among judged items, counted from the candidates above them; equal scores too."""
    random = np.random.default_rng(seed)
    scores = random.integers(0, 4, (5, 9)).astype(float)
    truth = {u: {int(i): int(random.integers(0, 3)) for i in random.permutation(9)[:4]} for u in range(5)}
    asked = ["mrr@2", "ndcg@3", "map", "bpref", "hits@1", "average_rank", "coverage@2"]
    asked = [name for name in asked if name != "bpref" or ties != "expected"]
    asked = [name for name in asked if name != "coverage@2" or ties in ("by_id", "given")]
    rules = {"judged_only": "yes", "ties": ties}
    lists = {u: [(i, scores[u, i]) for i in range(9)] for u in range(5)}
    model = recsys.evaluate(recsys.Scores(scores), truth, asked, conventions=rules)
    ready = recsys.evaluate(
        lists, truth, asked, conventions=rules, full_ranking=True, catalogue=list(range(9))
    )
    assert dict(model) == dict(ready)


def test_one_request_may_take_them_out_and_another_keep_them():
    asked = ["mrr", "mrr(judged_only=yes)", "coverage@1", "coverage(judged_only=yes)@1"]
    rules = {"negative_grades": "unjudged"}
    result = recsys.evaluate(LISTS, TRUTH, asked, conventions=rules, catalogue=["a", "b", "y", "z"])
    assert dict(result) == {
        "mrr": 1 / 4 / 3,
        "mrr(judged_only=yes)": 1 / 2 / 3,
        "coverage@1": 1 / 4,
        "coverage(judged_only=yes)@1": 1 / 4,
    }
    assert result.values_of("mrr(judged_only=yes)").tolist() == [0.5, 0.0, 0.0]
    assert recsys.score_list(LISTS["u"], TRUTH["u"], asked[1], conventions=rules) == 0.5
    scored = [(item, -place) for place, item in enumerate(LISTS["u"])]
    assert recsys.score_list(scored, TRUTH["u"], asked[1], conventions=rules) == 0.5


def test_a_list_of_unjudged_items_is_a_list():
    """no_list is about the list that was given: v was shown something, w nothing."""
    rules = {"negative_grades": "unjudged", "judged_only": "yes", "no_list": "skip"}
    values = recsys.evaluate(LISTS, TRUTH, "mrr", conventions=rules).values_of("mrr")
    assert values[:2].tolist() == [0.5, 0.0]
    assert np.isnan(values[2])
    with pytest.raises(InputError, match=r"user 'w' has no recommendations \(1 such users\)"):
        recsys.evaluate(LISTS, TRUTH, "mrr", conventions={**rules, "no_list": "error"})


def test_negative_grades_are_one_decision_for_dicts_and_files(tmp_path):
    run, qrels, table = tmp_path / "a.run", tmp_path / "a.qrels", tmp_path / "a.csv"
    run.write_text("q Q0 d1 1 2 t\nq Q0 d2 2 1 t\n")
    qrels.write_text("q 0 d1 -1\nq 0 d2 1\nq 0 d3 -7\n")
    table.write_text("user,item,grade\nq,d1,-1\nq,d2,1\nq,d3,-7\n")
    for truth in (qrels, table, {"q": {"d1": -1, "d2": 1, "d3": -7}}):
        with pytest.raises(InputError, match=r"the grade -7 of item 'd3' for user 'q' is negative.*unjudged"):
            recsys.evaluate(run, truth, "mrr")
        rules = {"negative_grades": "unjudged", "judged_only": "yes"}
        result = recsys.evaluate(run, truth, ["mrr", "judged"], conventions=rules)
        assert dict(result) == {"mrr": 1.0, "judged": 1.0}
        assert "2 items of a negative grade read as unjudged" in str(result)
    with pytest.raises(InputError, match="negative"):
        recsys.evaluate(run, table, "novelty@1", train=recsys.read_file(table, "truth"))


def test_what_is_undefined_without_unjudged_items_says_so():
    truth = {"u": {"a": 1, "b": 0}}
    rules = {"judged_only": "yes"}
    result = recsys.evaluate({"u": LISTS["u"]}, truth, ["mrr", "coverage@2"], conventions=rules, catalogue=9)
    assert "lists without their unjudged items" in result.bounds()["mrr"].why
    with pytest.raises(ConventionError, match="negatives are not judged"):
        recsys.evaluate_candidates(np.array([[0.9, 0.1]]), [(0, 3, [1])], "mrr", conventions=rules)
    with pytest.raises(ConventionError, match="of unjudged items"):
        evaluate_unbiased({"u": ["a"]}, {"u": ["a"]}, "recall@1", propensities={"a": 1}, conventions=rules)


@pytest.mark.filterwarnings("error::recsys.errors.TieWarning")
def test_a_tie_with_an_unjudged_item_is_none():
    lists, truth = {"u": {"a": 1.0, "z": 1.0}}, {"u": {"a": 1}}
    assert recsys.evaluate(lists, truth, "mrr", conventions={"judged_only": "yes"})["mrr"] == 1.0
    with pytest.warns(TieWarning):
        recsys.evaluate(lists, truth, "mrr")


def test_pieces_and_batches_give_the_same_result():
    rules = {"negative_grades": "unjudged", "judged_only": "yes"}
    asked = ["ndcg@3", "coverage@2"]
    whole = recsys.evaluate(LISTS, TRUTH, asked, conventions=rules, catalogue=["a", "b", "y", "z"])
    evaluator = recsys.Evaluator(asked, conventions=rules, catalogue=["a", "b", "y", "z"])
    for user, listed in LISTS.items():
        evaluator.update({user: listed}, {user: TRUTH[user]})
    assert dict(evaluator.result()) == dict(whole)


@pytest.mark.parametrize("grades", [{"a": 0}, {"a": -2, "b": -1}, {"a": -1, "b": 0}])
def test_where_no_grade_is_above_0_the_highest_one_stays_unset(grades):
    rules = {"negative_grades": "unjudged", "no_truth": "zero"}
    asked = ["err@2", "sdcg@2", "bpm@2"]
    as_table = pd.DataFrame({"user": "u", "item": [*grades], "grade": [*grades.values()]})
    for truth in ({"u": grades}, as_table):
        result = recsys.evaluate({"u": ["a", "b"]}, truth, asked, conventions=rules)
        assert result.conventions.max_grade is None
        assert dict(result) == dict.fromkeys(asked, 0.0)
    assert [recsys.score_list(["a", "b"], grades, m, conventions=rules) for m in asked] == [0.0] * 3
    graded = recsys.evaluate({"u": ["a"]}, {"u": {"a": 2, "b": -1}}, asked, conventions=rules)
    assert graded.conventions.max_grade == 2.0
