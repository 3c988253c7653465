"""Stopping early: intervals are valid whenever it stops, the work saved is shown, nothing else changes."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import recsys
from recsys.errors import ConventionError, InputError, NotDefinedError, TieWarning, UnknownNameError
from recsys.evaluation.stopping import StopWhen
from recsys.records.arrays import Ids, restrict_to_cases
from recsys.stats.results import StatisticsWarning, StoppedWarning, UnpairedWarning


@pytest.fixture(scope="module")
def world():
    rng = np.random.default_rng(0)
    users, items = rng.normal(size=(3000, 8)), rng.normal(size=(200, 8))
    scores = users @ items.T + rng.normal(0, 3, size=(3000, 200))
    truth = {u: row.tolist() for u, row in enumerate(np.argpartition(-scores, 4, axis=1)[:, :4])}
    models = {
        "good": recsys.Factors(users, items),
        "fair": recsys.Factors(users + rng.normal(0, 0.7, users.shape), items),
        "random": recsys.Factors(rng.normal(size=users.shape), items),
    }
    return models, truth


def test_one_model_stops_when_narrow_enough(world):
    models, truth = world
    full = recsys.evaluate(models["good"], truth, ["ndcg@10", "recall@10"])
    found = recsys.evaluate(models["good"], truth, ["ndcg@10", "recall@10"], stop_when=0.03)
    stopped = found.notes["stopped"]
    assert 0 < stopped["n_seen"] < stopped["n_total"] == 3000
    assert stopped["share_saved"] == pytest.approx(1 - stopped["n_seen"] / 3000)
    assert found.counts["cases"] == stopped["n_seen"]
    for metric, one in stopped["intervals"].items():
        assert one["high"] - one["low"] <= 0.06
        assert one["low"] <= full[metric] <= one["high"]
    assert f"{stopped['share_saved']:.1%} of the work saved" in repr(found)
    assert "betting" in repr(found)


def test_rows_that_were_merged_are_counted_once(world):
    models, truth = world
    rows = {user: [*items, items[0]] for user, items in truth.items()}
    found = recsys.evaluate(models["good"], rows, ["ndcg@10"], stop_when=0.03)
    assert found.counts["repeated_rows"] == found.notes["truth"]["repeated_rows"] == 3000


def test_stopped_cases_have_the_values_of_a_whole_run(world):
    models, truth = world
    full = recsys.evaluate(models["good"], truth, ["ndcg@10"])
    part = recsys.evaluate(models["good"], truth, ["ndcg@10"], stop_when=0.05)
    at = np.searchsorted(full.per_case.ids, part.per_case.ids)
    np.testing.assert_array_equal(full.values_of("ndcg@10")[at], part.values_of("ndcg@10"))


def test_what_cannot_be_reached_evaluates_everybody(world):
    models, truth = world
    full = recsys.evaluate(models["good"], truth, ["ndcg@10"])
    found = recsys.evaluate(models["good"], truth, ["ndcg@10"], stop_when=1e-6)
    assert dict(found) == dict(full)
    stopped = found.notes["stopped"]
    assert stopped["share_saved"] == 0
    assert "(0.0% of the work saved): what was asked needs more users than there are" in repr(found)
    wide = stopped["intervals"]["ndcg@10"]
    assert wide["low"] < full["ndcg@10"] - 0.01 < full["ndcg@10"] + 0.01 < wide["high"]
    stop = StopWhen(1e-6, about="these users")
    found = recsys.evaluate(models["good"], truth, ["ndcg@10"], stop_when=stop)
    assert found.notes["stopped"]["intervals"]["ndcg@10"]["low"] == pytest.approx(full["ndcg@10"])
    assert found.notes["stopped"]["reason"] == "all users were needed"


def test_whom_the_answer_is_about_is_printed_and_stored(world, tmp_path):
    models, truth = world
    old = recsys.evaluate(models["fair"], truth, ["ndcg@10"])
    for about, whom in (("users at large", "users at large"), ("these users", "these 3,000 users")):
        alone = recsys.evaluate(
            models["good"], truth, ["ndcg@10"], stop_when=StopWhen(half_width=0.05, about=about)
        )
        assert f"ndcg@10 for {whom}: [" in repr(alone)
        alone.save(tmp_path / "a.json")
        assert recsys.load(tmp_path / "a.json").notes["stopped"]["about"] == about
        two = recsys.evaluate(
            models["good"], truth, ["ndcg@10"], stop_when=StopWhen(against=old, about=about)
        )
        assert f"ndcg@10 is better: difference for {whom} in [" in repr(two)
        raced = recsys.race(models, truth, ["ndcg@10"], stop_when=StopWhen(about=about))
        assert f"for {whom} they hold together, at all times, with 95%" in repr(raced)
        assert raced.about == raced["good"].notes["stopped"]["about"] == about
    with pytest.raises(UnknownNameError, match="'everybody'"):
        StopWhen(0.1, about="everybody")


def test_the_cases_of_a_user_count_as_one_unit(world) -> None:
    """Five cases of a user that are the same are worth no more than one."""
    truth, users = world[1], range(500)
    lists = {u: [-1, -2, -3][: u % 4] + truth[u][:1] for u in users}
    stop = StopWhen(half_width=1e-6, block=20)
    once = recsys.evaluate(lists, {u: truth[u] for u in users}, ["ndcg@10"], stop_when=stop)
    clusters = {5 * u + case: u for u in users for case in range(5)}
    cases, wanted = ({case: of[u] for case, u in clusters.items()} for of in (lists, truth))
    ask = {"stop_when": StopWhen(half_width=1e-6, block=100)}
    again = recsys.evaluate(cases, wanted, ["ndcg@10"], clusters=clusters, **ask)
    naive = recsys.evaluate(cases, wanted, ["ndcg@10"], **ask)
    one, same, narrow = (e.notes["stopped"]["intervals"]["ndcg@10"] for e in (once, again, naive))
    assert (same["low"], same["high"]) == pytest.approx((one["low"], one["high"]))
    assert narrow["high"] - narrow["low"] < 0.6 * (one["high"] - one["low"])
    # Who knows these users wants no others, and takes case after case.
    here = recsys.evaluate(
        cases, wanted, ["ndcg@10"], clusters=clusters, stop_when=StopWhen(0.02, about="these users")
    )
    assert here.notes["stopped"]["share_saved"] > 0


def test_users_of_many_cases_and_weights_end_a_block(world) -> None:
    truth = world[1]
    sizes = np.random.default_rng(0).integers(1, 60, 40)
    clusters = dict(enumerate(np.repeat(np.arange(40), sizes).tolist()))
    lists = {u: [-1, -2, -3][: u % 4] + truth[u][:1] for u in clusters}
    wanted, weights = {u: truth[u] for u in clusters}, {u: 1.0 + u % 3 for u in clusters}
    full = recsys.evaluate(lists, wanted, ["ndcg@10"], case_weights=weights)
    seen: list[int] = []
    found = recsys.evaluate(
        lists, wanted, ["ndcg@10"], case_weights=weights, clusters=clusters,
        stop_when=StopWhen(half_width=1e-6, block=100), progress=lambda done, _: seen.append(done),
    )  # fmt: skip
    assert dict(found) == pytest.approx(dict(full))
    assert seen[-1] == len(clusters)
    assert {100 <= step < 160 for step in np.diff([0, *seen])[:-1]} == {True}
    stopped = found.notes["stopped"]["intervals"]["ndcg@10"]
    assert stopped["value"] == pytest.approx(full["ndcg@10"])
    assert stopped["low"] < full["ndcg@10"] < stopped["high"]


def test_a_threshold_is_told_apart(world):
    models, truth = world
    full = recsys.evaluate(models["good"], truth, ["ndcg@10"])["ndcg@10"]
    for mark in (full - 0.1, full + 0.1):
        found = recsys.evaluate(
            models["good"], truth, ["ndcg@10", "mrr"], stop_when=StopWhen(threshold={"NDCG@10": mark})
        )
        interval = found.notes["stopped"]["intervals"]
        assert list(interval) == ["ndcg@10"]
        assert not interval["ndcg@10"]["low"] <= mark <= interval["ndcg@10"]["high"]
        assert found.notes["stopped"]["share_saved"] > 0.5


def test_ready_lists_and_groups_and_weights(world):
    models, truth = world
    lists = recsys.recommend(models["good"], 10)
    weights = {u: 1.0 + u % 3 for u in truth}
    full = recsys.evaluate(lists, truth, ["ndcg@10"], case_weights=weights, by=lambda u: u % 2)
    seen = []
    found = recsys.evaluate(
        lists,
        truth,
        ["ndcg@10"],
        case_weights=weights,
        by=lambda u: u % 2,
        stop_when=StopWhen(half_width=0.05, block=150),
        progress=lambda done, total: seen.append((done, total)),
    )
    one = found.notes["stopped"]["intervals"]["ndcg@10"]
    assert one["low"] <= full["ndcg@10"] <= one["high"]
    assert set(found.by) == {0, 1}
    assert seen[:2] == [(150, 3000), (300, 3000)]


def test_users_outside_the_mean_do_not_matter(world):
    """Users without truth are left out of the mean; the interval is about the others."""
    models, truth = world
    lists = recsys.recommend(models["good"], 10)
    half = {u: (items if u % 2 else []) for u, items in truth.items()}
    full = recsys.evaluate(lists, half, ["ndcg@10"])
    one = recsys.evaluate(lists, half, ["ndcg@10"], stop_when=0.05).notes["stopped"]["intervals"]["ndcg@10"]
    assert one["low"] <= full["ndcg@10"] <= one["high"]


def test_a_metric_without_declared_bounds_has_those_of_the_data(world):
    models, truth = world
    full = recsys.evaluate(models["good"], truth, ["dcg@10"])
    assert full.ranges["dcg@10"] == (0.0, pytest.approx((1 / np.log2(np.arange(2, 6))).sum()))
    found = recsys.evaluate(models["good"], truth, ["dcg@10"], stop_when=0.1)
    one = found.notes["stopped"]["intervals"]["dcg@10"]
    assert "betting" in one["method"]
    assert one["low"] <= full["dcg@10"] <= one["high"]
    assert found.notes["stopped"]["share_saved"] > 0.5


def test_the_order_is_seeded_and_the_result_can_be_stored(world, tmp_path):
    models, truth = world
    ask = {"stop_when": StopWhen(half_width=0.05, rng=1)}
    one = recsys.evaluate(models["good"], truth, ["ndcg@10"], **ask)
    again = recsys.evaluate(models["good"], truth, ["ndcg@10"], **ask)
    other = recsys.evaluate(models["good"], truth, ["ndcg@10"], stop_when=StopWhen(half_width=0.05, rng=2))
    assert one == again
    assert list(one.per_case.ids) != list(other.per_case.ids)
    one.save(tmp_path / "a.json")
    assert recsys.load(tmp_path / "a.json").notes["stopped"]["n_seen"] == one.notes["stopped"]["n_seen"]


def test_ties_are_said_once(world):
    _, truth = world
    flat = recsys.Scores(np.zeros((3000, 200)))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = recsys.evaluate(flat, truth, ["ndcg@10"], stop_when=0.001)
        recsys.race({"a": flat, "b": flat}, truth, ["ndcg@10"])
    words = [str(w.message).partition(" judged")[0] for w in caught if issubclass(w.category, TieWarning)]
    assert words[0] == f"{found.counts['tied']:,} of {found.counts['found']:,}"
    assert words == words[:1] * 3


def test_a_new_model_is_held_against_a_result_that_is_there(world):
    models, truth = world
    old = recsys.evaluate(models["fair"], truth, ["ndcg@10", "average_rank"])
    for name, verdict in (("good", "better"), ("random", "worse")):
        full = recsys.evaluate(models[name], truth, ["ndcg@10", "average_rank"])
        found = recsys.evaluate(
            models[name], truth, ["ndcg@10", "average_rank"], stop_when=StopWhen(against=old)
        )
        stopped = found.notes["stopped"]
        assert stopped["share_saved"] > 0.5
        for metric, one in stopped["intervals"].items():
            assert one["verdict"] == verdict
            assert one["low"] <= full[metric] - old[metric] <= one["high"]
        assert f"ndcg@10 is {verdict}: difference for users at large in [" in repr(found)
    same = recsys.evaluate(models["fair"], truth, ["ndcg@10"], stop_when=StopWhen(against=old))
    assert same.notes["stopped"]["share_saved"] == 0
    assert same.notes["stopped"]["intervals"]["ndcg@10"]["verdict"] == "undecided"
    near = recsys.evaluate(models["fair"], truth, ["ndcg@10"], stop_when=StopWhen(0.05, against=old))
    assert near.notes["stopped"]["share_saved"] > 0.5
    with pytest.raises(ConventionError, match="other conventions"):
        recsys.evaluate(
            models["good"], truth, ["ndcg@10"], stop_when=StopWhen(against=old), conventions={"gain": "exp2"}
        )
    with pytest.raises(NotDefinedError, match="has no mrr"):
        recsys.evaluate(models["good"], truth, ["mrr"], stop_when=StopWhen(against=old))
    with pytest.raises(InputError, match="came as float"):
        StopWhen(against=0.3)
    with pytest.raises(InputError, match="between two"):
        StopWhen(against=old, threshold={"ndcg@10": 0.3})
    with pytest.raises(InputError, match="between its models"):
        recsys.race(models, truth, ["ndcg@10"], stop_when=StopWhen(against=old))


def test_a_race_finds_the_winner_and_drops_the_beaten(world):
    models, truth = world
    full = {name: recsys.evaluate(model, truth, ["ndcg@10"]) for name, model in models.items()}
    found = recsys.race(models, truth, ["ndcg@10"])
    assert found.winner == {"ndcg@10": "good"}
    assert found.decided
    assert found.n_seen["random"] <= found.n_seen["good"]
    assert found.share_saved > 0.5
    for leg in found.legs:
        gap = full[leg.model]["ndcg@10"] - full[leg.against]["ndcg@10"]
        assert leg.interval.low <= gap <= leg.interval.high
    said = repr(found)
    assert "winner by ndcg@10: good" in said
    assert f"{found.share_saved:.1%} of the work saved" in said
    assert len(found.to_frame()) == 3
    assert set(found) == set(models)
    assert found["good"].counts["cases"] == found.n_seen["good"]


def test_a_race_against_a_baseline_and_lower_is_better(world):
    models, truth = world
    found = recsys.race(models, truth, ["average_rank"], baseline="fair")
    verdicts = {leg.model: leg.verdict.kind for leg in found.legs}
    assert verdicts == {"good": "better", "random": "worse"}


def test_equals_are_not_told_apart(world):
    models, truth = world
    twins = {"one": models["fair"], "two": models["fair"]}
    found = recsys.race(twins, truth, ["ndcg@10"], stop_when=0.02)
    assert found.winner == {"ndcg@10": None}
    assert "no clear winner" in repr(found)
    assert found.share_saved > 0.5


def test_models_may_list_different_users(world):
    models, truth = world
    lists = {"all": recsys.recommend(models["good"], 10)}
    lists["some"] = recsys.recommend(models["good"], 10, users=range(0, 3000, 2))
    full = {n: recsys.evaluate(one, truth, ["recall@10"])["recall@10"] for n, one in lists.items()}
    (leg,) = recsys.race(lists, truth, ["recall@10"]).legs
    assert leg.interval.low <= full["all"] - full["some"] <= leg.interval.high
    assert leg.verdict.kind == "better"


@pytest.mark.slow
def test_the_winner_is_rarely_wrong() -> None:
    """Four models x two metrics without any difference: every verdict is an error, whenever it comes."""
    rng = np.random.default_rng(5)
    worlds, wrong = 100, 0
    truth = recsys.read_interactions({u: [0] for u in range(600)})
    for world in range(worlds):
        lists = {}
        for name in "abcd":
            place = rng.permutation(np.arange(600) % 4)
            lists[name] = {u: [-1] * int(p) + [0] + [-1] * (3 - int(p)) for u, p in enumerate(place)}
        found = recsys.race(
            lists,
            truth,
            ["hit@1", "mrr"],
            stop_when=StopWhen(half_width=0.02, block=60, rng=world, about="these users"),
            conventions={"duplicates": "first"},
        )
        # The means over all users are equal by construction.
        wrong += any(leg.verdict.kind != "undecided" for leg in found.legs)
    assert wrong / worlds <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / worlds)


def test_refusals(world):
    models, truth = world
    with pytest.raises(InputError, match="neither a half-width"):
        recsys.evaluate(models["good"], truth, ["ndcg@10"], stop_when="soon")
    with pytest.raises(InputError, match="positive"):
        recsys.evaluate(models["good"], truth, ["ndcg@10"], stop_when=-1)
    with pytest.raises(InputError, match="how narrow"):
        recsys.evaluate(models["good"], truth, ["ndcg@10"], stop_when=StopWhen())
    with pytest.raises(InputError, match="block"):
        StopWhen(block=0)
    with pytest.raises(NotDefinedError, match="not a mean over users"):
        recsys.evaluate(models["good"], truth, ["ndcg@10", "gmap"], stop_when=StopWhen({"gmap": 0.1}))
    with pytest.raises(NotDefinedError, match="nothing to watch"):
        recsys.evaluate(models["good"], truth, ["coverage@10"], stop_when=0.1)
    with pytest.raises(InputError, match="at least two"):
        recsys.race({"good": models["good"]}, truth, ["ndcg@10"])
    with pytest.raises(UnknownNameError, match="baseline"):
        recsys.race(models, truth, ["ndcg@10"], baseline="nobody")
    with pytest.raises(InputError, match="threshold"):
        recsys.race(models, truth, ["ndcg@10"], stop_when=StopWhen(threshold={"ndcg@10": 0.1}))


def test_only_keeps_what_belongs_to_the_cases() -> None:
    data = recsys.read_interactions({1: {5: 1.0, 6: 2.0}, 2: {7: 3.0}, 4: {5: 4.0}})
    some = restrict_to_cases(data, Ids(np.array([1, 3, 4])))
    assert some.cases.values.tolist() == [1, 4]
    assert some.indptr.tolist() == [0, 2, 3]
    assert some.grades.tolist() == [1.0, 2.0, 4.0]


def test_a_test_of_what_was_stopped_warns(world):
    models, truth = world
    whole = recsys.evaluate(models["fair"], truth, ["ndcg@10"])
    early = recsys.evaluate(models["good"], truth, ["ndcg@10"], stop_when=StopWhen(against=whole))
    with pytest.warns(StatisticsWarning) as said:
        found = recsys.compare({"fair": whole, "good": early}, baseline="fair")
    assert {one.category for one in said} == {UnpairedWarning, StoppedWarning}
    assert "good stopped early" in repr(found)
    needed = recsys.evaluate(models["good"], truth, ["ndcg@10"], stop_when=1e-9)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        recsys.compare({"fair": whole, "good": needed}, baseline="fair")


def test_the_difference_is_over_whom_both_have(world):
    models, truth = world
    some = recsys.evaluate(models["random"], {u: truth[u] for u in range(500)}, ["ndcg@10"])
    found = recsys.evaluate(models["good"], truth, ["ndcg@10"], stop_when=StopWhen(against=some))
    assert "difference for users at large (500 are in both) in" in repr(found)


def test_a_threshold_names_its_metric() -> None:
    with pytest.raises(InputError, match="of which metric"):
        StopWhen(threshold=0.3)
    with pytest.raises(InputError, match="whole number"):
        StopWhen(0.1, block=10.5)


def test_intervals_of_a_stopped_result_say_that_they_do_not_hold(world):
    models, truth = world
    ask = ["ndcg@10", "coverage@10"]
    stopped = recsys.evaluate(models["good"], truth, ask, stop_when=0.03)
    with pytest.warns(StoppedWarning, match="not valid under optional stopping") as caught:
        found = stopped.intervals()
    assert len(caught) == 1
    seen = stopped.notes["stopped"]["n_seen"]
    for metric in ask:
        note = found[metric].notes[-1].sentence
        assert note.startswith(f"stopped early, after {seen:,} of 3,000 users")
        assert "notes['stopped']" in note
    assert repr(found).count("optional stopping") == 1
    wide = stopped.notes["stopped"]["intervals"]["ndcg@10"]
    fixed = found["ndcg@10"].interval
    assert wide["high"] - wide["low"] > fixed.high - fixed.low
    against = recsys.evaluate(
        models["random"],
        truth,
        ["ndcg@10"],
        stop_when=StopWhen(against=recsys.evaluate(models["good"], truth, ["ndcg@10"])),
    )
    with pytest.warns(StoppedWarning, match="those of the differences that are valid"):
        against.intervals()
    raced = recsys.race(
        {"good": models["good"], "random": models["random"]}, truth, ["ndcg@10"], stop_when=0.05
    )
    with pytest.warns(StoppedWarning, match="printed with the race"):
        raced.evaluations["good"].intervals()


def test_intervals_of_everybody_have_nothing_to_add(world):
    models, truth = world
    full = recsys.evaluate(models["good"], truth, ["ndcg@10"], stop_when=1e-6)
    assert full.intervals()["ndcg@10"].notes == ()


def test_a_bad_half_width_is_named_as_it_was_typed():
    with pytest.raises(InputError, match="stop_when=-1 is not a half-width"):
        recsys.evaluate({1: [2]}, {1: [2]}, ["hit@1"], stop_when=-1)


@pytest.mark.parametrize("width", [-1, 0, 10**400, float("nan"), np.float32(-0.5)])
def test_a_half_width_that_cannot_be_gets_its_own_advice(width):
    with pytest.raises(InputError, match=r"positive number, such as 0\.01"):
        StopWhen.of(width)
    with pytest.raises(InputError, match="half_width must be positive"):
        StopWhen(half_width={"hit@1": width})
    with pytest.raises(InputError, match="half_width must be positive"):
        StopWhen(half_width="0.1")


def test_a_result_of_other_users_cannot_be_held_against_these():
    other = recsys.evaluate({7: ["a"]}, {7: ["a"]}, "mrr")
    with pytest.raises(InputError, match="the result in against= has none of these users"):
        recsys.evaluate({1: ["a"]}, {1: ["a"]}, "mrr", stop_when=StopWhen(against=other))
