"""ir_measures: every user in the truth, to 1e-12; ERR, which it rounds, to half of the fifth place."""

from __future__ import annotations

import shutil

import pytest
from hypothesis import given, settings

import recsys
from worlds.parity import SEEDS, THOROUGH, World, agree, make_world, peer, worlds

ir_measures = peer("ir_measures")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]

OF = {
    "P@3": "precision@3",
    "P@10": "precision@10",
    "R@3": "recall@3",
    "R@10": "recall@10",
    "AP": "map",
    "AP@3": "map@3",
    "AP@10": "map@10",
    "nDCG": "ndcg",
    "nDCG@3": "ndcg@3",
    "nDCG@10": "ndcg@10",
    "RR": "mrr",
    "Success@1": "hit@1",
    "Success@5": "hit@5",
    "Rprec": "r_precision",
    "Bpref": "bpref",
    "SetP": "precision",
    "SetR": "recall",
    "SetF": "f1",
    "SetAP": "set_map",
    "SetRelP": "set_relative_precision",
    "IPrec@0.3": "iprec(recall=0.3)",
    "IPrec@1.0": "iprec(recall=1)",
    "infAP": "inf_ap",
}
# Asked for in a call of its own: beside a plain nDCG the two get each other's values.
EXP2 = {"nDCG(gains={0:0,1:1,2:3,3:7})@5": "ndcg(gain=exp2)@5"}
# Equal scores are ordered the other way round in these; see the preset.
OTHER_TIES = {"RR@3": "mrr@3", "Judged@3": "judged@3", "Judged@10": "judged@10"}
RULES = recsys.Conventions.named("ir_measures")


def compare(
    world: World, measures: dict[str, str], rules: recsys.Conventions = RULES, within: float = 1e-12
) -> None:
    asked = {ir_measures.parse_measure(name): request for name, request in measures.items()}
    run = {user: dict(rows) for user, rows in world.lists.items()}
    theirs: dict[object, dict[str, float]] = {measure: {} for measure in asked}
    for metric in ir_measures.iter_calc(list(asked), world.truth, run):
        theirs[metric.measure][metric.query_id] = metric.value
    result = recsys.evaluate(world.lists, world.truth, list(asked.values()), conventions=rules)
    for measure, request in asked.items():
        agree(result, request, theirs[measure], within)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("levels", [None, 4])
@pytest.mark.parametrize("judged", [0, 5])
def test_a_few_hundred_users(seed, levels, judged):
    world = make_world(seed, levels=levels, judged=judged, without_list=0.1)
    compare(world, OF)
    compare(world, EXP2)
    compare(world, OTHER_TIES, RULES.but(ties="by_id"))


@THOROUGH
@given(worlds(ties=True, judged=2))
def test_small_worlds(world):
    compare(world, OF)
    compare(world, EXP2)
    compare(world, OTHER_TIES, RULES.but(ties="by_id"))


@pytest.mark.skipif(shutil.which("perl") is None, reason="ir_measures computes ERR with perl")
@pytest.mark.parametrize("seed", SEEDS)
def test_err_with_a_highest_grade_of_four(seed):
    world = make_world(seed, n_users=200)
    numbered = World(
        {user[1:]: rows for user, rows in world.lists.items()},
        {user[1:]: wanted for user, wanted in world.truth.items()},
        world.n_items,
    )
    compare(numbered, {"ERR@3": "err@3", "ERR@10": "err@10"}, within=5.1e-6)


COMPAT = {"Compat": "compat", "Compat(p=0.8)": "compat(p=0.8)"}


@pytest.mark.parametrize("seed", SEEDS)
def test_compatibility(seed):
    """Without ties: of equal scores its ideal list has the order of the judgements, ours that of the list."""
    world = make_world(seed, judged=5, without_list=0.1)
    not_normalised = {"Compat(p=0.9,normalize=False)": "compat(p=0.9, over=weights)"}
    compare(world, {**COMPAT, **not_normalised}, RULES.but(ties="by_id"))


@THOROUGH
@given(worlds(judged=2))
def test_compatibility_of_small_worlds(world):
    compare(world, COMPAT, RULES.but(ties="by_id"))


OF_CWL_EVAL = {
    "RBP(p=0.8,rel=1)": "rbp",
    "RBP(p=0.5,rel=1)": "rbp(p=0.5)",
    "INST(max_rel=3)": "inst(max_grade=3)",
    "INST(T=2.0,min_rel=1,max_rel=2)": "inst(target=2, min_grade=1, max_grade=2)",
    "BPM(max_rel=3)@5": "bpm(max_grade=3)@5",
    "BPM(T=2.0,max_rel=4)@10": "bpm(target=2)@10",
    "SDCG(max_rel=3)@10": "sdcg(max_grade=3)@10",
    "SDCG(min_rel=1,max_rel=2)@10": "sdcg(min_grade=1, max_grade=2)@10",
}


def test_models_of_readers():
    """Computed by cwl-eval, to which ir_measures hands these."""
    peer("cwl")
    for seed in SEEDS:
        compare(make_world(seed, n_users=50, judged=3), OF_CWL_EVAL)


def test_two_kinds_of_gain_asked_for_at_once_are_each_what_it_says_of_them_alone():
    truth, run = {"1": {"a": 1, "b": 3, "c": 2}}, {"1": {"c": 3.0, "a": 2.0, "x": 1.0}}
    plain, exp2 = (ir_measures.parse_measure(f"nDCG{gains}@5") for gains in ("", "(gains={0:0,1:1,2:3,3:7})"))
    alone = [ir_measures.calc_aggregate([measure], truth, run)[measure] for measure in (plain, exp2)]
    ours = recsys.evaluate({"1": ["c", "a", "x"]}, truth, ["ndcg@5", "ndcg(gain=exp2)@5"])
    assert list(ours.values()) == pytest.approx(alone, rel=0, abs=1e-12)


@settings(max_examples=50, deadline=None)
@given(worlds(ties=True))
def test_its_two_reciprocal_ranks_order_ties_differently(world):
    """RR and RR@k of a list no longer than k differ only where the first hit is tied; ours never do."""
    ours = recsys.evaluate(world.lists, world.truth, ["mrr", "mrr@99"], conventions="ir_measures")
    assert ours["mrr"] == ours["mrr@99"]
