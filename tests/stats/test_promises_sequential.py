"""Looking while it runs, on metrics without declared bounds: what is printed holds, or is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest

import recsys
from recsys.errors import NotDefinedError
from recsys.evaluation.stopping import StopWhen
from recsys.metrics.registry import Request
from recsys.stats.sequential import ConfidenceSequence, betting_limits
from worlds.statistics import ALPHA, upper

N_USERS, ORDERS = 1000, 40


def lists_that_hit(hits: np.ndarray) -> recsys.Lists:
    """Lists of four items; user u's only relevant item, u, stands first where u hits."""
    return recsys.read_lists({u: [u if hit else -1, -2, -3, -4] for u, hit in enumerate(hits.tolist())})


def mixed(n_hits: int) -> np.ndarray:
    """Which users hit; any set will do, as users are taken in random order."""
    return np.arange(N_USERS) < n_hits


TRUTH = recsys.read_interactions({u: [u] for u in range(N_USERS)})


@pytest.mark.parametrize("n_hits", [10, 3])
@pytest.mark.parametrize("metric", ["dcg@4", "hits@4"])
def test_stopping_on_rare_hits_holds(metric, n_hits) -> None:
    lists, missed = lists_that_hit(mixed(n_hits)), 0
    for seed in range(ORDERS):
        stop = StopWhen(half_width=0.02, block=100, rng=seed, about="these users")
        stopped = recsys.evaluate(lists, TRUTH, [metric], stop_when=stop).notes["stopped"]
        one = stopped["intervals"][metric]
        assert one["low"] < one["high"] - 1e-3
        assert "hold together, at all times" in stopped["says"]
        missed += not one["low"] <= n_hits / N_USERS <= one["high"]
    assert missed / ORDERS <= upper(ALPHA, ORDERS)


def test_a_race_on_rare_hits_holds() -> None:
    """The models differ on 12 of 1,000 users, so that few of the first blocks show it."""
    models = {"some": lists_that_hit(mixed(14)), "few": lists_that_hit(mixed(2))}
    missed = 0
    for seed in range(ORDERS):
        stop = StopWhen(half_width=0.03, block=100, rng=seed, about="these users")
        (leg,) = recsys.race(models, TRUTH, ["dcg@4"], stop_when=stop).legs
        assert leg.interval.low < leg.interval.high - 1e-3
        missed += not leg.interval.low <= 0.012 <= leg.interval.high
    assert missed / ORDERS <= upper(ALPHA, ORDERS)


def test_heavy_values_hold_when_it_stops() -> None:
    """A lognormal price for a fifth of the users; the range is that of the prices, known beforehand."""
    rng = np.random.default_rng(0)
    values = np.where(rng.random(N_USERS) < 0.8, 0.0, rng.lognormal(0, 1.5, N_USERS))
    lists, items = lists_that_hit(values > 0), {"price": {u: float(v) for u, v in enumerate(values)}}
    missed = 0
    for seed in range(ORDERS):
        stop = StopWhen(half_width=0.4, block=100, rng=seed, about="these users")
        result = recsys.evaluate(lists, TRUTH, ["value@4"], items=items, stop_when=stop)
        one = result.notes["stopped"]["intervals"]["value@4"]
        missed += not one["low"] <= values.mean() <= one["high"]
        assert result.notes["stopped"]["share_saved"] > 0
    assert result.ranges["value@4"] == (0.0, pytest.approx(values.max()))
    assert missed / ORDERS <= upper(ALPHA, ORDERS)


def test_what_nothing_limits_is_not_watched() -> None:
    far = Request.of("ild@2", distance=lambda a, b: float(np.exp(abs(a - b).sum())))
    options = {"embeddings": np.random.default_rng(0).normal(size=(N_USERS, 2))}
    lists = {u: [u, (u + 1) % N_USERS] for u in range(N_USERS)}
    with pytest.raises(NotDefinedError, match="nothing limits the value of one user") as refusal:
        recsys.evaluate(lists, TRUTH, [far, "ndcg@2"], stop_when=StopWhen(1.0, metrics=[str(far)]), **options)
    assert refusal.value.hint == "These can: ndcg@2."
    with pytest.raises(NotDefinedError, match="could move the mean anywhere") as refusal:
        recsys.evaluate(lists, TRUTH, [far], stop_when=1.0, **options)
    assert "fixed beforehand" in refusal.value.hint
    found = recsys.evaluate(lists, TRUTH, [far, "ndcg@2"], stop_when=0.1, **options)
    assert list(found.notes["stopped"]["intervals"]) == ["ndcg@2"]
    assert f"not watched, as nothing limits the value of one user: {far}" in repr(found)
    models = {"a": lists, "b": {u: one[::-1] for u, one in lists.items()}}
    raced = recsys.race(models, TRUTH, [far, "ndcg@2"], **options)
    assert {leg.metric for leg in raced.legs} == {"ndcg@2"}
    assert f"not watched, as nothing limits the value of one user: {far}" in repr(raced)
    with pytest.raises(NotDefinedError, match="nothing limits"):
        recsys.race(models, TRUTH, [far], **options)


def test_a_result_to_be_held_against_brings_its_own_range() -> None:
    """Where nothing limits the other model's values, they are known: all of them have been seen."""
    lists = lists_that_hit(mixed(500))
    other = recsys.evaluate(lists_that_hit(mixed(10)), TRUTH, ["dcg@4"])
    parts = recsys.Evaluation(other.partial, other.requests, other.conventions)
    assert parts.ranges == {"dcg@4": (0.0, np.inf)}
    found = recsys.evaluate(lists, TRUTH, ["dcg@4"], stop_when=StopWhen(against=parts))
    one = found.notes["stopped"]["intervals"]["dcg@4"]
    assert one["verdict"] == "better"
    assert one["low"] <= 0.49 <= one["high"]


def drawn(rng: np.random.Generator, n: int, *shares: float) -> list[recsys.Lists]:
    """Models whose hits are alike, of users drawn from a population in which so many hit."""
    shared = rng.random(n)
    scores = [np.where(rng.random(n) < 0.8, shared, rng.random(n)) for _ in shares]
    return [lists_that_hit(own < share) for own, share in zip(scores, shares, strict=True)]


def test_equal_models_have_no_winner_and_a_better_one_wins_early() -> None:
    """Equal among users at large; in the test set one of two nearly always has more hits."""
    rng, n, worlds = np.random.default_rng(0), 500, 40
    wrong = {"race": 0, "against": 0, "these users": 0}
    truth = recsys.read_interactions({u: [u] for u in range(n)})
    for world in range(worlds):
        one, other = drawn(rng, n, 0.3, 0.3)
        models, stop = {"one": one, "other": other}, StopWhen(rng=world)
        found = recsys.race(models, truth, ["hit@4"], stop_when=stop)
        wrong["race"] += found.decided
        if not found.decided:
            assert set(found.n_seen.values()) == {n}
        against = StopWhen(against=recsys.evaluate(other, truth, ["hit@4"]), rng=world)
        stopped = recsys.evaluate(one, truth, ["hit@4"], stop_when=against).notes["stopped"]
        wrong["against"] += stopped["intervals"]["hit@4"]["verdict"] != "undecided"
        stop = StopWhen(rng=world, about="these users")
        wrong["these users"] += recsys.race(models, truth, ["hit@4"], stop_when=stop).decided
    assert max(wrong["race"], wrong["against"]) / worlds <= upper(ALPHA, worlds)
    assert wrong["these users"] / worlds > 0.9
    truth = recsys.read_interactions({u: [u] for u in range(10_000)})
    read = []
    for world in range(8):
        models = dict(zip(("new", "old"), drawn(rng, 10_000, 0.39, 0.3), strict=True))
        found = recsys.race(models, truth, ["hit@4"], stop_when=StopWhen(rng=world))
        assert found.winner == {"hit@4": "new"}
        read.append(found.n_seen["new"])
    assert np.mean(read) < 1500


def test_a_half_width_holds_for_users_at_large() -> None:
    """Most of these users are read, so that an interval for them alone says too much about others."""
    rng, n, worlds = np.random.default_rng(0), 500, 100
    missed, narrow = {"users at large": 0, "these users": 0}, 0
    truth = recsys.read_interactions({u: [u] for u in range(n)})
    for world in range(worlds):
        (lists,) = drawn(rng, n, 0.3)
        for about in missed:
            stop = StopWhen(half_width=0.02, rng=world, about=about)
            stopped = recsys.evaluate(lists, truth, ["hit@4"], stop_when=stop).notes["stopped"]
            one = stopped["intervals"]["hit@4"]
            missed[about] += not one["low"] <= 0.3 <= one["high"]
            narrow += one["high"] - one["low"] <= 0.04
    assert missed["users at large"] / worlds <= upper(ALPHA, worlds)
    assert missed["these users"] / worlds > 0.2
    assert narrow == worlds
    truth = recsys.read_interactions({u: [u] for u in range(20_000)})
    (lists,) = drawn(rng, 20_000, 0.3)
    assert recsys.evaluate(lists, truth, ["hit@4"], stop_when=0.04).notes["stopped"]["share_saved"] > 0.5


def test_a_sequence_of_units_at_large_holds_at_every_time_and_never_ends() -> None:
    """Weighted, and heavier units are better, so that a plain mean would be wrong."""
    rng, worlds, missed = np.random.default_rng(8), 200, 0
    for _ in range(worlds):
        weights = 0.1 + 0.9 * rng.random(400)
        values = np.where(rng.random(400) < weights, 0.5, -0.5)
        sequence = ConfidenceSequence(bounds=(-1.0, 1.0))
        blocks = range(0, 400, 40)
        intervals = [sequence.update(values[at : at + 40], weights[at : at + 40]) for at in blocks]
        # The mean of w (w - 0.5) over that of w, for w even between 0.1 and 1.
        missed += not all(0.37 / 0.55 - 0.5 in interval for interval in intervals)
        assert 0.05 < intervals[-1].high - intervals[-1].low < 0.3
    assert missed / worlds <= upper(ALPHA, worlds)


# (values, seen, of so many, alpha) and the interval of hedged_cs(..., breaks=20000) of confseq 0.0.11, on a
# grid of 1/20000 rounded outwards by one step.
CONFSEQ = [
    ("even", 100, 1000, 0.05, 0.41050, 0.57275),
    ("even", 300, 1000, 0.005, 0.43920, 0.55390),
    ("even", 300, None, 0.05, 0.44355, 0.54885),
    ("rare", 100, 1000, 0.05, 0.00300, 0.10405),
    ("rare", 100, None, 0.05, 0.00000, 0.10730),
    ("rare", 300, 1000, 0.05, 0.00975, 0.05215),
    ("rare", 300, None, 0.005, 0.00060, 0.07015),
    ("ndcg", 100, 1000, 0.005, 0.06010, 0.25755),
    ("ndcg", 300, 1000, 0.05, 0.09560, 0.17960),
    ("ndcg", 300, None, 0.05, 0.09120, 0.18585),
    ("ones", 100, 1000, 0.05, 0.93360, 1.00000),
    ("ones", 300, None, 0.005, 0.96120, 1.00000),
    ("zeros", 100, 1000, 0.005, 0.00000, 0.10440),
    ("zeros", 300, None, 0.05, 0.00000, 0.02415),
]


@pytest.mark.parametrize(("values", "n_seen", "n_total", "alpha", "low", "high"), CONFSEQ)
def test_betting_agrees_with_confseq(values, n_seen, n_total, alpha, low, high) -> None:
    at = np.arange(n_seen) * 0.6180339887498949 % 1.0
    seen = {
        "even": at,
        "rare": (at < 0.02).astype(np.float64),
        "ndcg": np.where(at < 0.7, 0.0, 1 / np.log2(2 + np.floor(at * 1000) % 10)),
        "ones": np.ones(n_seen),
        "zeros": np.zeros(n_seen),
    }[values]
    assert betting_limits(seen, n_total or math.inf, alpha) == pytest.approx((low, high), abs=1.5e-4)
    sequence = ConfidenceSequence(n_total or math.inf, bounds=(-2.0, 4.0), alpha=alpha)
    interval = sequence.update(6.0 * seen - 2.0)
    assert (interval.low, interval.high) == pytest.approx((6 * low - 2, 6 * high - 2), abs=1e-3)
