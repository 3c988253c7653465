"""The provider of `recsys.compat.ir_measures` inside ir_measures: the numbers of its other providers."""

from __future__ import annotations

import shutil

import pytest
from hypothesis import given, settings

import recsys.compat.ir_measures as face
from worlds.parity import SEEDS, World, make_world, peer, worlds

ir_measures = peer("ir_measures")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]

MEASURES = [
    "P@3", "P(rel=2)@5", "P(judged_only=True)@3", "RR", "RR@3", "RR(rel=2)", "Rprec", "AP", "AP@5",
    "AP(rel=2,judged_only=True)", "nDCG", "nDCG@5", "nDCG(judged_only=True)@5", "R@5", "Bpref",
    "Bpref(rel=2)", "NumRet", "NumRet(rel=1)", "NumRel", "SetAP", "SetF", "SetF(beta=2.0)", "SetP",
    "SetP(relative=True)", "SetR", "Success@2", "IPrec@0.1", "IPrec@0.55", "infAP", "Judged@3", "Judged@50",
]  # fmt: skip
# Theirs orders relevant items of one grade and one score as the judgements come, ours as the list does.
WITHOUT_TIES = ["Compat", "Compat(p=0.8)", "Compat(normalize=False)"]


def others():
    """The default pipeline without ours."""
    known = [p for p in ir_measures.DefaultPipeline.providers if p.NAME != "recsys"]
    return ir_measures.providers.FallbackProvider(known)


def compare(world: World, names: list[str], within: float = 1e-12) -> None:
    run = {user: dict(rows) for user, rows in world.lists.items()}
    asked = [ir_measures.parse_measure(name) for name in names]
    provider = face.register()
    for measure in asked:
        assert provider.supports(measure), measure
        found = [
            {m.query_id: m.value for m in pipeline.iter_calc([measure], world.truth, run)}
            for pipeline in (provider, others())
        ]
        assert found[0] == pytest.approx(found[1], rel=0, abs=within), measure
        mean = ir_measures.calc_aggregate([measure], world.truth, run)[measure]
        assert mean == pytest.approx(
            others().calc_aggregate([measure], world.truth, run)[measure], abs=within
        )


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("levels", [None, 4])
def test_a_few_hundred_queries(seed, levels):
    names = [*MEASURES, *(WITHOUT_TIES if levels is None else [])]
    compare(make_world(seed, levels=levels, judged=4, without_list=0.1), names)


@settings(max_examples=60, deadline=None)
@given(worlds(ties=True, judged=2))
def test_small_worlds(world):
    compare(world, MEASURES)


def test_gains():
    world = make_world(0, n_users=50)
    compare(world, ["nDCG(gains={0:0,1:1,2:3,3:7})@5"])
    assert not face.register().supports(ir_measures.parse_measure("nDCG(gains={0:1,1:2})"))


@pytest.mark.skipif(shutil.which("perl") is None, reason="ir_measures computes ERR with perl")
def test_err_that_the_other_provider_rounds():
    world = make_world(1, n_users=50)
    numbered = World(
        {user[1:]: rows for user, rows in world.lists.items()},
        {user[1:]: wanted for user, wanted in world.truth.items()},
        world.n_items,
    )
    compare(numbered, ["ERR@3", "ERR@10"], within=5.1e-6)


def test_a_second_call_changes_nothing_and_the_pipeline_asks_ours_first():
    provider = face.register()
    assert face.register() is provider is ir_measures.providers.registry["recsys"]
    assert [p.NAME for p in ir_measures.DefaultPipeline.providers].count("recsys") == 1
    assert ir_measures.DefaultPipeline.providers[0] is provider
    graded = ir_measures.parse_measure("RBP(p=0.8)")
    assert not provider.supports(graded)


READERS = ["RBP(p=0.8,rel=1)", "BPM(max_rel=3)@5", "SDCG(max_rel=3)@5", "INST(max_rel=3)"]


@pytest.mark.parametrize("levels", [None, 4])
def test_models_of_readers_as_cwl_eval_has_them(levels):
    """It keeps equal scores as they are given."""
    peer("cwl")
    compare(make_world(3, n_users=100, levels=levels, judged=4, without_list=0.1), READERS)


def test_measures_of_programs_that_are_not_needed_then():
    provider, world = face.register(), make_world(2, n_users=20)
    run = {user: dict(rows) for user, rows in world.lists.items()}
    for name in READERS:
        measure = ir_measures.parse_measure(name)
        values = [m.value for m in provider.iter_calc([measure], world.truth, run)]
        assert len(values) == len(world.truth)
        assert 0 < sum(values) / len(values) < 1
