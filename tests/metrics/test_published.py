"""Numbers that others publish in unit tests, manuals and papers, under the convention of their source.

Only the data and the numbers are theirs. A tolerance is half of the last digit printed, or what the source
itself allows; numbers the source gives as fractions must agree to 1e-12.
"""

from __future__ import annotations

import math
from math import log2
from typing import Any

import numpy as np
import pandas as pd
import pytest

import recsys

pytestmark = pytest.mark.filterwarnings("ignore::recsys.errors.TieWarning")
EXACT = 1e-12


def value(lists: Any, truth: Any, request: str, **options: Any) -> float:
    return recsys.evaluate(lists, truth, [request], **options)[request]


def values_by_user(lists: Any, truth: Any, request: str, **options: Any) -> np.ndarray:
    """The value of every user in the mean, in the order of the users."""
    values = recsys.evaluate(lists, truth, [request], **options).values_of(request)
    return values[~np.isnan(values)]


def scored(scores: list[float]) -> list[tuple[int, float]]:
    return list(enumerate(scores))


# Apache Spark, RankingMetricsSuite: three users, one without labels.
SPARK = {0: [1, 6, 2, 7, 8, 3, 9, 10, 4, 5], 1: [4, 1, 5, 6, 2, 7, 3, 8, 9, 10], 2: [1, 2, 3, 4, 5]}
SPARK_TRUTH = {0: [1, 2, 3, 4, 5], 1: [1, 2, 3], 2: []}
SPARK_GRADES = {0: {1: 3, 2: 2, 3: 1, 4: 1, 5: 1}, 1: {1: 2, 2: 0, 3: 0}, 2: {}}


@pytest.mark.parametrize(
    ("request_", "number"),
    [
        ("precision@1", 1 / 3), ("precision@4", 0.25), ("precision@5", 0.8 / 3), ("precision@15", 8 / 45),
        ("map(over=relevant)", 0.355026), ("map@1", 0.333334), ("map@2", 0.25), ("map@3", 0.24074),
        ("ndcg@3", 1 / 3), ("ndcg@5", 0.328788), ("ndcg@10", 0.487913), ("ndcg@15", 0.487913),
        ("recall@1", 1 / 15), ("recall@3", 11 / 45), ("recall@5", 16 / 45), ("recall@15", 2 / 3),
    ],
)  # fmt: skip
def test_spark(request_, number) -> None:
    assert value(SPARK, SPARK_TRUTH, request_, conventions={"no_truth": "zero"}) == pytest.approx(
        number, abs=1e-5
    )


@pytest.mark.parametrize(("k", "number"), [(3, 0.511959), (5, 0.487806), (10, 0.518700), (15, 0.518700)])
def test_spark_with_grades(k, number) -> None:
    ours = value(SPARK, SPARK_GRADES, f"ndcg(gain=exp2)@{k}", conventions={"no_truth": "zero"})
    assert ours == pytest.approx(number, abs=1e-5)


# RePlay, tests/metrics: three users, the last with a list of three.
REPLAY = pd.DataFrame(
    [(1, 3, 0.6), (1, 7, 0.5), (1, 10, 0.4), (1, 11, 0.3), (1, 2, 0.2), (2, 5, 0.6), (2, 8, 0.5),
     (2, 11, 0.4), (2, 1, 0.3), (2, 3, 0.2), (3, 4, 1.0), (3, 9, 0.5), (3, 2, 0.1)],
    columns=["user", "item", "score"],
)  # fmt: skip
REPLAY_TRUTH = {1: [5, 6, 7, 8, 9, 10], 2: [6, 7, 4, 10, 11], 3: [1, 2, 3, 4, 5]}
REPLAY_BASE = {
    1: [(3, 0.5), (7, 0.5), (10, 0.3), (11, 0.3), (2, 0.7)],
    2: [(5, 0.6), (8, 0.6), (11, 0.4), (1, 0.3), (3, 0.3)],
    3: [(4, 1.0), (9, 0.5), (2, 0.3)],
}


@pytest.mark.parametrize(
    ("metric", "numbers"),
    [
        ("precision", [0.55555, 0.333333, 0.166666]), ("hit", [1, 1, 1]), ("mrr", [0.61111] * 3),
        ("map", [0.35185, 0.21111, 0.198148]), ("ndcg", [0.48975, 0.35396, 0.34018]),
    ],
)  # fmt: skip
def test_replay(metric, numbers) -> None:
    ours = [value(REPLAY, REPLAY_TRUTH, f"{metric}@{k}", conventions="replay") for k in (3, 5, 10)]
    assert ours == pytest.approx(numbers, abs=1e-5)


@pytest.mark.parametrize(
    ("train", "numbers"),
    [(REPLAY[["user", "item"]], [0.78969, 0.614294]), (REPLAY_TRUTH, [0.719586, 0.698418])],
)
def test_surprisal_of_replay_divides_by_k(train, numbers) -> None:
    """The third user has three items: three fifths of their mean at k = 5."""
    asked = [f"surprisal(over=k)@{k}" for k in (3, 5)]
    ours = recsys.evaluate(REPLAY, REPLAY_TRUTH, asked, conventions="replay", train=train)
    assert [ours[name] for name in asked] == pytest.approx(numbers, abs=1e-5)


def test_the_other_metrics_of_replay_about_items() -> None:
    options = {"conventions": "replay", "train": REPLAY_TRUTH, "reference": REPLAY_BASE}
    for k, number in ((3, 0.444444), (5, 0.577777)):
        assert value(REPLAY, REPLAY_TRUTH, f"unseen@{k}", **options) == pytest.approx(number, abs=1e-5)
    for k, number in ((2, 0.16666), (3, 0.111111), (5, 0.133333), (10, 0.566666), (20, 0.783333)):
        assert 1 - value(REPLAY, REPLAY_TRUTH, f"overlap@{k}", **options) == pytest.approx(number, abs=1e-5)
    own = {"kind": {int(item): f"kind {item}" for item in REPLAY.item}}
    for k, number in ((3, 1.0), (5, 0.866666), (10, 0.43333), (20, 0.21666)):
        ours = value(REPLAY, REPLAY_TRUTH, f"kinds(by=kind)@{k}", items=own, **options)
        assert ours == pytest.approx(number, abs=1e-5)


def test_novelty_of_evidently_leaves_out_who_is_shown_only_what_nobody_had() -> None:
    """Evidently, test_novelty.py: the first user is shown an unknown item only; 3/4 log2(3) is left."""
    lists, train = {1: [3], 2: [2, 3], 3: [1, 2]}, {1: [1, 2], 2: [1], 3: [1]}
    result = recsys.evaluate(lists, {1: [1]}, ["novelty(cold=drop)@3"], train=train, conventions="evidently")
    assert result["novelty(cold=drop)@3"] == pytest.approx(1.18872199999, abs=1e-6)
    assert result.n_cases["novelty(cold=drop)@3"] == 2


def test_evidently() -> None:
    """Evidently, tests/metrics/recsys: hits at places 1 and 3, one user of three without feedback."""
    lists = {user: [f"{user}{place}" for place in (1, 2, 3)] for user in "abc"}
    truth = {"a": ["a1"], "b": [], "c": ["c3"]}
    counted = recsys.Conventions.of("evidently").but(no_truth="zero")
    for metric, rules, numbers in (
        ("map", "evidently", [0.5, 0.5, 2 / 3]), ("map", counted, [1 / 3, 1 / 3, 4 / 9]),
        ("ndcg", "evidently", [0.5, 0.5, 0.75]), ("f1", "evidently", [0.5, 1 / 3, 0.5]),
        ("f1", counted, [1 / 3, 2 / 9, 1 / 3]),
    ):  # fmt: skip
        ours = [value(lists, truth, f"{metric}@{k}", conventions=rules) for k in (1, 2, 3)]
        assert ours == pytest.approx(numbers, abs=1e-6), metric
    shared = {1: [1, 2, 3, 4], 2: [1, 2, 3, 4], 3: [1, 3, 2, 5]}
    assert value(shared, {1: [1]}, "personalisation@4") == pytest.approx(1 / 6, abs=EXACT)


# Microsoft Recommenders, tests of python_evaluation; its tolerance is relative.
MS_USERS = [1, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 1, 1]
MS_TRUTH = pd.DataFrame(
    {
        "user": MS_USERS,
        "item": [3, 1, 4, 5, 6, 7, 2, 5, 6, 8, 9, 10, 11, 12, 13, 14, 1, 2],
        "rating": [3, 5, 5, 3, 3, 1, 5, 5, 5, 4, 4, 3, 3, 3, 2, 1, 5, 4],
    }
)
MS_LISTS = pd.DataFrame(
    {
        "user": MS_USERS,
        "item": [12, 10, 3, 5, 11, 13, 4, 10, 7, 13, 1, 3, 5, 2, 11, 14, 3, 10],
        "score": [12, 14, 13, 12, 11, 10, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 14, 13],
    }
)
MS_TRAIN = {1: [1, 2, 4], 2: [3, 4], 3: [3, 4, 5]}
MS_SHOWN = {1: [3, 5], 2: [2, 5], 3: [1, 2]}


def test_recommenders() -> None:
    for request, number in (
        ("ndcg@10", 0.38172), ("map@10", 0.23613), ("map(over=relevant)@10", 0.23613),
        ("precision@10", 0.26666), ("recall@10", 0.37777),
    ):  # fmt: skip
        ours = value(MS_LISTS, MS_TRUTH, request, conventions="microsoft")
        assert ours == pytest.approx(number, rel=1e-4), request
    for k, number in ((3, 0.21111), (5, 0.24444), (10, 0.37777)):
        cut = MS_LISTS.sort_values("score", ascending=False).groupby("user").head(k)
        ours = value(cut, MS_TRUTH, "r_precision", conventions="microsoft")
        assert ours == pytest.approx(number, rel=1e-4), k


def test_ratings_of_recommenders() -> None:
    both = MS_TRUTH.merge(MS_LISTS, on=["user", "item"]).rename(columns={"score": "prediction"})
    asked = {"rmse": 7.254309, "mae": 6.375, "r2": -31.699029, "explained_variance": -6.4466}
    ours = recsys.evaluate_ratings(both, metrics=list(asked))
    assert {name: ours[name] for name in asked} == pytest.approx(asked, rel=1e-4)
    low, high = MS_LISTS.score.min(), MS_LISTS.score.max()
    clicks = pd.DataFrame(
        {"user": both.user, "click": (both.rating >= 3) * 1, "pctr": (both.prediction - low) / (high - low)}
    )
    ours = recsys.evaluate_ratings(clicks, metrics=["auc", "log_loss"])
    assert ours["auc"] == 0.75
    assert ours["log_loss"] == pytest.approx(0.7835, rel=1e-4)


def test_recommenders_about_items() -> None:
    nobody = {user: [4] for user in MS_SHOWN}
    assert value(MS_SHOWN, nobody, "coverage", catalogue=5) == 0.8
    assert value(MS_SHOWN, nobody, "entropy") == pytest.approx(1.9183, abs=5e-5)
    ours = value(MS_SHOWN, nobody, "novelty(over=events)", train=MS_TRAIN)
    assert ours == pytest.approx(2.83333, abs=5e-6)
    had = {item: [float(item in MS_TRAIN[user]) for user in MS_TRAIN] for item in range(1, 6)}
    assert values_by_user(MS_SHOWN, nobody, "ild", embeddings=had) == pytest.approx([0.29289, 1, 0], abs=5e-6)


# RecTools, tests/metrics.
def test_rectools_where_lists_are_short() -> None:
    lists = {1: [1, 2, 3], 2: [1, 2], 3: [1], 4: [1]}
    truth = {1: [4, 2, 3], 3: [1], 4: [2], 5: [2]}
    for request, numbers in (
        ("precision@2", [0.5, 0.5, 0, 0]), ("precision(over=min)@2", [0.5, 1, 0, 0]),
        ("recall@2", [1 / 3, 1, 0, 0]), ("hit@2", [1, 1, 0, 0]),
    ):  # fmt: skip
        assert values_by_user(lists, truth, request, conventions="rectools") == pytest.approx(
            numbers, abs=EXACT
        )
    # Its accuracy is 0.7, 0.9, 0.7 and its MCC 1/sqrt(21), 2/3, -1/6: an empty place is wrong there. Two
    # items nobody wants in the empty places give them.
    full = {1: [1, 2], 3: [1, 8], 4: [1, 8], 5: [8, 9]}
    options = {"conventions": "rectools", "catalogue": list(range(10))}
    assert values_by_user(full, truth, "accuracy@2", **options) == pytest.approx(
        [0.7, 0.9, 0.7, 0.7], abs=EXACT
    )
    numbers = [1 / math.sqrt(21), 2 / 3, -1 / 6, -1 / 6]
    assert values_by_user(full, truth, "mcc@2", **options) == pytest.approx(numbers, abs=EXACT)


def test_rectools_about_items() -> None:
    train = {"u1": ["i1", "i2"], "u2": ["i1", "i2"], "u3": ["i1"]}
    truth = {"u1": ["i1", "i2"], "u2": ["i2", "i3"], "u3": ["i2"], "u4": ["i2"]}
    lists = {"u1": ["i1", "i2"], "u2": ["i2", "i3"], "u3": ["i3"], "u4": ["i2", "i3"]}
    for k, numbers in ((1, [0, 0.25, 0, 0.25]), (2, [0, 0.5, 0, 0.125])):
        asked = f"popularity_serendipity@{k}"
        ours = values_by_user(lists, truth, asked, train=train, catalogue=["i1", "i2", "i3", "i4"])
        assert ours == pytest.approx(numbers, abs=EXACT)
    known = {"u1": ["i1", "i2"], "u2": ["i1"], "u3": ["i1"]}
    shown = {"u1": ["i3"], "u2": ["i2", "i3"], "u3": ["i1", "i2"]}
    for k, numbers in ((1, [log2(3), log2(3), 0]), (2, [log2(3), log2(3), log2(3) / 2])):
        ours = values_by_user(shown, truth, f"miuf@{k}", train=known, conventions="rectools")
        assert ours[:3] == pytest.approx(numbers, abs=EXACT)


def test_lenskit() -> None:
    """LensKit, tests/eval: the first two places count in full; gain= takes the ratings."""
    wanted = {0: {1: 3.0, 2: 5.0, 3: 4.0}}
    for items, request, number in (
        ([2, 3, 1], "ndcg", 1), ([1, 2], "ndcg", 2 / (2 + 1 / log2(3))), ([1, 2], "ndcg@2", 1),
        ([1, 2], "ndcg(gain=grade)", 8 / (9 + 3 / log2(3))), ([1, 3], "ndcg(gain=grade)@2", 7 / 9),
        ([2, 3, 1], "dcg", 2 + 1 / log2(3)), ([1, 3], "dcg(gain=grade)@2", 7), ([1], "rbp(p=0.85)", 0.15),
        ([1, 2], "rbp(p=0.5)", 0.75), ([4], "ndcg", 0), ([1, 9, 3], "map", (1 + 2 / 3) / 3),
    ):  # fmt: skip
        assert value({0: items}, wanted, request, conventions="lenskit") == pytest.approx(number, abs=EXACT)


def test_recbole() -> None:
    """RecBole, tests/metrics: places of the hits, numbers of relevant items, and the items shown."""
    lists = {0: [11, 12, 13], 1: [1, 2, 3], 2: [1, 12, 2], 3: [11, 12, 1]}
    truth = {0: [1], 1: [1, 2, 3], 2: [1, 2, 3, 4], 3: [1, 2]}
    for request, numbers in (
        ("ndcg@2", [0, 1, 1 / (1 + 1 / log2(3)), 0]), ("map@3", [0, 1, (1 + 2 / 3) / 3, 1 / 6]),
        ("ndcg@3", [0, 1, 1.5 / (1.5 + 1 / log2(3)), 0.5 / (1 + 1 / log2(3))]),
        ("recall@3", [0, 1, 0.5, 0.5]), ("mrr@3", [0, 1, 1, 1 / 3]), ("precision@3", [0, 1, 2 / 3, 1 / 3]),
    ):  # fmt: skip
        assert values_by_user(lists, truth, request, conventions="recbole") == pytest.approx(
            numbers, abs=EXACT
        )
    shown = {0: [5, 7, 3], 1: [4, 5, 2], 2: [2, 3, 5], 3: [1, 4, 6], 4: [5, 3, 7]}
    options = {
        "conventions": "recbole",
        "catalogue": 8,
        "popularity": {item: item - 1 for item in range(1, 7)},
    }
    assert value(shown, truth, "coverage@3", **options) == 7 / 8
    assert value(shown, truth, "gini@3", **options) == pytest.approx(41 / 120, abs=EXACT)
    ours = values_by_user(shown, truth, "average_popularity@3", **options)
    assert ours == pytest.approx([2, 8 / 3, 7 / 3, 8 / 3, 2], abs=EXACT)
    ranked = {0: [1, 2], 1: [1, 9, 2], 2: [1, 8, 2, 9, 3]}
    wanted = {0: [1], 1: [1, 2], 2: [1, 2, 3]}
    ours = value(ranked, wanted, "gauc(weight=relevant)", full_ranking=True)
    assert ours == pytest.approx((1 * 1 + 2 * 0.5 + 3 * 0.5) / 6, abs=EXACT)


def test_warprec() -> None:
    """WarpRec, test_metrics_golden.py: three users, the last without relevant items: left out, of F1 too."""
    lists = {0: [4, 3, 0], 1: [1, 4, 2], 2: [1, 2, 3]}
    truth = {0: {0: 5, 3: 5}, 1: {4: 5}, 2: {}}
    ndcg = ((1 / log2(3) + 0.5) / (1 + 1 / log2(3)) + 1 / log2(3)) / 2
    later = recsys.Conventions.of("warprec").but(per_metric=())
    for request, number in (
        ("ndcg@3", ndcg), ("recall@3", 1), ("precision@3", 0.5), ("mrr@3", 0.5), ("map@3", 13 / 24),
        ("f1@3", 0.65),
    ):  # fmt: skip
        assert value(lists, truth, request, conventions=later) == pytest.approx(number, abs=EXACT), request
    two = {user: lists[user] for user in (0, 1)}
    options = {"train": {0: [1, 2], 1: [0, 3], 2: [4, 0]}, "catalogue": 5}
    assert value(two, truth, "average_popularity@3", **options) == pytest.approx(7 / 6, abs=EXACT)
    ours = value(two, truth, "gini(gini_over=recommended, corrected=yes)@3", **options)
    assert ours == pytest.approx(1 / 6, abs=EXACT)


def test_average_precision_of_ml_metrics() -> None:
    """ml_metrics, test_average_precision.py, and the same in its R package: repeats count once."""
    five = list(range(1, 6))
    assert value({0: [6, 4, 7, 1, 2]}, {0: five}, "map@2") == 0.25
    assert value({0: [1, 1, 1, 1, 1]}, {0: five}, "map@5") == 0.2
    assert value({0: [*range(1, 21), *range(200, 600)]}, {0: range(1, 100)}, "map@20") == 1
    lists, truth = dict.fromkeys(range(3), five), {0: [1, 3, 4], 1: [1, 2, 4], 2: [1, 3]}
    assert value(lists, truth, "map@3") == pytest.approx(37 / 54, abs=EXACT)
    lists, truth = {0: five, 1: [1, 1, 1], 2: [1, 2, 1]}, {0: [1, 3], 1: [1, 2, 3], 2: [1, 2, 3]}
    assert value(lists, truth, "map@3") == pytest.approx(11 / 18, abs=EXACT)


def test_partial_auc_of_rectools() -> None:
    """RecTools, test_auc.py, with the gaps of its rank column filled; the last user hits at 3, 7 and 9."""
    lists = {1: [*"abcdefgh", "1", "i"], 3: [*"123", *"abc"], 4: [*"1abc"], 5: [*"5a1bcd2e3f4"]}
    truth = {1: ["1"], 3: ["1", "2", "3"], 4: ["1"], 5: ["1", "2", "3", "4"]}
    for k, numbers in ((1, [0, 1, 1, 0]), (3, [0, 1, 1, 1 / 12])):
        assert values_by_user(lists, truth, f"pauc@{k}", full_ranking=True) == pytest.approx(
            numbers, abs=EXACT
        )


@pytest.mark.parametrize(
    ("relevant", "number"),
    [([1, 2, 3], 1), ([4], 0), ([3], 1 / 3), ([2], 2 / 3), ([1, 3], 0.75), ([2, 4], 0.25)],
)
def test_auc_of_mymedialite(relevant, number) -> None:
    assert value({0: [1, 2, 3, 4]}, {0: relevant}, "auc", full_ranking=True) == pytest.approx(
        number, abs=EXACT
    )


# expeval (Diaz et al., 2020), run unnormalised under RBP: a query with grades and one without.
EXPEVAL = {"q1": ["d", "a", "c", "e"], "q2": ["b", "a", "e"]}
EXPEVAL_TRUTH = {"q1": {"a": 2, "b": 1, "c": 1, "d": 0}, "q2": {"b": 1, "e": 1}}


@pytest.mark.parametrize(
    ("request_", "numbers"),
    [
        ("ee_d", [1.328125, 1.312500]), ("ee_r", [0.593750, 0.937500]), ("ee_l", [1.421875, 0.562500]),
        ("ee_d(p=0.8)", [2.311744, 2.049600]), ("ee_r(p=0.8)", [1.260800, 1.476000]),
        ("ee_l(p=0.8)", [1.826944, 0.717600]),
    ],
)  # fmt: skip
def test_expeval(request_, numbers) -> None:
    assert values_by_user(EXPEVAL, EXPEVAL_TRUTH, request_) == pytest.approx(numbers, abs=5e-7)


@pytest.mark.parametrize(
    ("request_", "number"),
    [
        ("awrf(by=author, target=F:0.4|M:0.6)", 0.11428571428571432),
        ("awrf(by=author, target=F:4|M:6, weight=log2_max2)", 0.019906233284065766),
    ],
)
def test_attention_weighted_rank_fairness_of_raj_and_ekstrand(request_, number) -> None:
    """The code of their comparison of fair ranking metrics (2022): two groups, one book without an author."""
    items = {"author": {"i": "M", "j": "F", "k": "M"}}
    assert value({1: ["i", "j", "k", "l"]}, {1: ["i"]}, request_, items=items) == pytest.approx(
        number, abs=EXACT
    )


ELLIOT = {1: [13, 15, 14], 2: [11, 14, 12], 3: [13, 12, 14], 4: [13, 12, 15]}
ELLIOT_TRUTH = {1: [13, 14], 2: [11, 12], 3: [15, 13], 4: [12]}
ELLIOT_TRAIN = {1: [10, 11, 12], 2: [10, 13], 3: [10, 11], 4: [11, 14, 10]}


@pytest.mark.parametrize(
    ("k", "numbers"),
    [
        (2, [0.45986039457409383, 0.15328679819136462, 0.45986039457409383, 0.29013960542590617]),
        (3, [0.5279385667756011, 0.2932992037642228, 0.3519590445170674, 0.22206143322439892]),
    ],
)
def test_epc_of_elliot(k, numbers) -> None:
    ours = values_by_user(ELLIOT, ELLIOT_TRUTH, f"epc@{k}", train=ELLIOT_TRAIN)
    assert ours == pytest.approx(numbers, abs=EXACT)


def test_popularity_counted_in_events() -> None:
    """A user who had an item twice is one user and two events, in tables and in dicts."""
    rows = [(1, 3), (1, 3), (2, 3), (2, 5), (2, 5), (2, 5)]
    for train in (pd.DataFrame(rows, columns=["user", "item"]), {1: [3, 3], 2: [3, 5, 5, 5]}):
        assert value({1: [3]}, {1: [3]}, "average_popularity@1", train=train) == 2.0
        assert value({1: [3]}, {1: [3]}, "average_popularity(over=events)@1", train=train) == 3.0
        assert value({1: [3, 5]}, {1: [3]}, "average_popularity(over=events)@2", train=train) == 3.0
    with pytest.raises(recsys.errors.NotDefinedError, match="train="):
        value({1: [3]}, {1: [3]}, "average_popularity(over=events)@1", popularity={3: 2})
