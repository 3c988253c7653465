"""trec_eval, through pytrec_eval-terrier: every user, to 1e-12, ties included."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

import recsys
from worlds.parity import SEEDS, THOROUGH, World, agree, make_world, peer, per_user, worlds

pytrec_eval = peer("pytrec_eval")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]

OF = {
    "P_3": "precision@3",
    "P_10": "precision@10",
    "recall_3": "recall@3",
    "recall_10": "recall@10",
    "map": "map",
    "map_cut_3": "map@3",
    "map_cut_10": "map@10",
    "ndcg": "ndcg",
    "ndcg_cut_3": "ndcg@3",
    "ndcg_cut_10": "ndcg@10",
    "recip_rank": "mrr",
    "success_1": "hit@1",
    "success_5": "hit@5",
    "Rprec": "r_precision",
    "bpref": "bpref",
    "num_rel_ret": "hits",
    "set_P": "set_precision",
    "set_recall": "set_recall",
    "set_F": "set_f",
    "set_map": "set_map",
    "set_relative_P": "set_relative_precision",
    "infAP": "inf_ap",
    "11pt_avg": "eleven_point",
    **{
        f"iprec_at_recall_{level / 10:.2f}": f"iprec(recall={level / 10:g})"
        for level in range(11)
        if level != 5
    },
    "iprec_at_recall_0.50": "iprec",
}
# Whole numbers and simple quotients: equal to the last bit.
TO_THE_BIT = [name for name in OF if name.startswith(("set_", "iprec", "infAP", "11pt"))]
MEASURES = {
    "P.3,10",
    "recall.3,10",
    "map",
    "map_cut.3,10",
    "ndcg",
    "ndcg_cut.3,10",
    "recip_rank",
    "success.1,5",
    "Rprec",
    "bpref",
    "num_rel_ret",
    "gm_map",
    "set_P",
    "set_recall",
    "set_F",
    "set_map",
    "set_relative_P",
    "infAP",
    "11pt_avg",
    "iprec_at_recall",
}


def compare(world: World) -> None:
    run = {user: dict(rows) for user, rows in world.lists.items()}
    theirs = pytrec_eval.RelevanceEvaluator(world.truth, MEASURES).evaluate(run)
    requests = [*OF.values(), "gmap"]
    result = recsys.evaluate(world.lists, world.truth, requests, conventions="trec_eval")
    for measure, request in OF.items():
        agree(result, request, {user: values[measure] for user, values in theirs.items()})
        if measure in TO_THE_BIT:
            assert per_user(result, request) == {user: values[measure] for user, values in theirs.items()}
    if theirs:
        logs = [values["gm_map"] for values in theirs.values()]
        assert result["gmap"] == pytest.approx(np.exp(np.mean(logs)), rel=0, abs=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("levels", [None, 4])
@pytest.mark.parametrize("judged", [0, 5])
def test_a_few_hundred_users(seed, levels, judged):
    compare(make_world(seed, levels=levels, judged=judged, without_list=0.1))


@THOROUGH
@given(worlds(ties=True, judged=2))
def test_small_worlds(world):
    compare(world)


def test_a_user_with_judgements_but_none_relevant_counts_zero_there():
    truth, lists = {"u": {"a": 1}, "v": {"a": 0}}, {"u": [("a", 1.0)], "v": [("a", 1.0)]}
    run = {user: dict(rows) for user, rows in lists.items()}
    theirs = pytrec_eval.RelevanceEvaluator(truth, {"map"}).evaluate(run)
    theirs = {user: values["map"] for user, values in theirs.items()}
    rules = recsys.Conventions.named("trec_eval")
    agree(recsys.evaluate(lists, truth, ["map"], conventions=rules), "map", theirs)
    assert recsys.evaluate(lists, truth, ["map"], conventions=rules.but(no_truth="skip"))["map"] == 1.0


def test_scores_are_compared_as_float32():
    """Two scores that only a float64 tells apart are tied there, so the larger id comes first; not here."""
    evaluator = pytrec_eval.RelevanceEvaluator({"u": {"b": 1}}, {"recip_rank"})
    run = {"a": 1.0 + 1e-9, "b": 1.0}
    assert evaluator.evaluate({"u": run})["u"]["recip_rank"] == 1.0
    ours = recsys.evaluate({"u": list(run.items())}, {"u": {"b": 1}}, ["mrr"], conventions="trec_eval")
    assert ours["mrr"] == 0.5


def test_a_number_of_hits_for_a_recall_is_rounded_up_from_a_tenth_on():
    truth = {"u": {f"i{n:02}": 1 for n in range(13)}}
    run = {"u": {f"{kind}{n:02}": 1000.0 - n * (n + 3) - (kind == "x") for n in range(13) for kind in "ix"}}
    lists = {"u": sorted(run["u"].items(), key=lambda row: -row[1])}
    for level in range(0, 101, 5):
        (theirs,) = (
            pytrec_eval.RelevanceEvaluator(truth, {f"iprec_at_recall_{level / 100:.2f}"})
            .evaluate(run)["u"]
            .values()
        )
        request = f"iprec(recall={level / 100})"
        assert recsys.score_list([item for item, _ in lists["u"]], truth["u"], request) == theirs, request


@pytest.mark.parametrize("beta", [0.5, 2.0, 4.0])
def test_the_weight_of_set_f_is_not_squared(beta):
    world = make_world(3)
    run = {user: dict(rows) for user, rows in world.lists.items()}
    theirs = pytrec_eval.RelevanceEvaluator(world.truth, {f"set_F.{beta}"}).evaluate(run)
    request = str(recsys.metrics.registry.Request.parse(f"set_f(beta={beta})"))
    result = recsys.evaluate(world.lists, world.truth, [request], conventions="trec_eval")
    assert per_user(result, request) == {user: values["set_F"] for user, values in theirs.items()}


@pytest.mark.parametrize("seed", SEEDS)
def test_the_relevance_level(seed):
    """-l 2: the measures that count take grades from 2 on, ndcg takes every grade for its gain."""
    world = make_world(seed)
    run = {user: dict(rows) for user, rows in world.lists.items()}
    theirs = pytrec_eval.RelevanceEvaluator(world.truth, MEASURES, relevance_level=2).evaluate(run)
    of = {name: request.replace("ndcg", "ndcg(relevant_from=none)") for name, request in OF.items()}
    rules = recsys.Conventions.named("trec_eval").but(relevant_from=2)
    result = recsys.evaluate(world.lists, world.truth, [*of.values()], conventions=rules)
    for measure, request in of.items():
        agree(result, request, {user: values[measure] for user, values in theirs.items()})
