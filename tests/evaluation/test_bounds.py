"""Bounds: the best attainable value and the floor of ranking metrics, and the table of both."""

from __future__ import annotations

import math
from itertools import permutations, product
from typing import Any

import numpy as np
import pandas as pd
import pytest

import recsys
from recsys.errors import RecsysError
from recsys.evaluation.bounds import Limits
from recsys.metrics import metric as register
from recsys.metrics.registry import METRICS, RATINGS, Request

RANKING = ["precision@2", "recall@2", "ndcg@2", "map@2", "mrr@2", "hit@2", "f1@2", "rbp@2", "dcg@2", "err@2"]
WHOLE = ["auc", "average_rank", "mrr", "ndcg", "map", "percentile_rank"]
TRUTH = {1: {"a": 2, "c": 1}, 2: {"b": 1}, 3: {"a": 1, "b": 3, "d": 1}}
RULES = {"max_grade": 3}


@pytest.mark.parametrize("complete", [True, False])
def test_no_ranking_beats_the_best_and_chance_is_the_mean_of_all(complete):
    asked = RANKING + (WHOLE if complete else [])
    options = {"catalogue": [*"abcd"], "full_ranking": complete, "conventions": RULES}
    length = 4 if complete else 2
    orders = [list(order[:length]) for order in permutations("abcd")]
    runs = [recsys.evaluate(dict.fromkeys(TRUTH, order), TRUTH, asked, **options) for order in orders]
    columns = {m: np.array([run.values_of(m) for run in runs]) for m in asked}
    bounds = runs[0].bounds()
    for metric in asked:
        best = columns[metric].max(axis=0) if better(metric) == "higher" else columns[metric].min(axis=0)
        assert bounds[metric].best == pytest.approx(best.mean(), rel=1e-12), metric
        assert bounds[metric].floor == pytest.approx(columns[metric].mean(), rel=1e-12), metric
        assert bounds[metric].value == runs[0][metric]


def better(metric: str) -> str:
    name = metric.split("@", maxsplit=1)[0]
    return METRICS["f" if name == "f1" else name].better


@pytest.mark.parametrize(("asked", "known"), [
    (["ndcg", "precision", "recall", "mrr", "map", "dcg", "r_precision", "ndcg@5", "precision@5"], {}),
    (["recall@2", "hits@2", "dcg@2", "ndcg@2", "dcg(gain=exp2)@2", "ndcg(gain=exp2)@2"],
     {"item_weights": {"a": 1.0, "b": 0.3, "c": 2.5, "d": 1.0}}),
    (["judged@2", "precision@2"], {}),
    (["f1@2", "precision@2", "gmap@2"], {"conventions": {"f1_of": "means", "average": "pooled"}}),
])  # fmt: skip
def test_lists_that_end_early_weights_and_summaries_that_are_no_means(asked, known):
    truth = {1: {"a": 3, "c": 1, "d": 0}, 2: {"b": 1, "c": 0}, 3: {"a": 1, "b": 3, "d": 1}}
    orders = [list(order[:2]) for order in permutations("abcd")][::2]
    options: dict[str, Any] = {"catalogue": [*"abcd"], **known}
    choices = [dict(zip(truth, one, strict=True)) for one in product(orders, repeat=3)]
    runs = [
        recsys.evaluate(lists, truth, asked, **options) for lists in choices[:: 1 if len(asked) < 5 else 7]
    ]
    bounds = runs[0].bounds()
    for metric in asked:
        values = np.array([run[metric] for run in runs])
        row = bounds[metric]
        assert row.best_how == "exact", metric
        assert row.best >= values.max() - 1e-12, metric
        error = math.hypot(
            row.floor_error, values.std() / math.sqrt(len(values)) * (len(choices) > len(runs))
        )
        assert abs(row.floor - values.mean()) <= 4.5 * error + 1e-12, metric
    alone = [recsys.evaluate(dict.fromkeys(truth, order), truth, asked, **options) for order in orders]
    for metric in asked:
        columns = np.array([run.values_of(metric) for run in alone])
        if not known.get("conventions"):
            assert bounds[metric].best == pytest.approx(columns.max(axis=0).mean(), rel=1e-12), metric


def test_what_cannot_be_shown_cannot_be_reached():
    lists = {1: ["a", "b"], 2: ["b", "c"]}
    truth = {1: {"a", "z"}, 2: {"b", "c"}}
    plain = recsys.evaluate(lists, truth, "recall@2", catalogue=[*"abcd"]).bounds()["recall@2"]
    assert plain.best == pytest.approx((0.5 + 1.0) / 2)  # z is not in the catalogue
    seen = recsys.evaluate(lists, truth, "recall@2", catalogue=[*"abcd"], seen={2: ["c"]}).bounds()[
        "recall@2"
    ]
    assert seen.best == pytest.approx((0.5 + 0.5) / 2)
    assert seen.floor == pytest.approx((0.5 * 2 / 4 + 0.5 * 2 / 3) / 2)


def test_factors_and_their_lists_have_the_same_limits():
    rng = np.random.default_rng(0)
    model = recsys.Factors(rng.normal(size=(30, 4)), rng.normal(size=(20, 4)))
    truth = {u: rng.choice(20, 3, replace=False).tolist() for u in range(30)}
    seen = {u: rng.choice(20, 4, replace=False).tolist() for u in range(30)}
    asked = [
        "recall@5",
        "ndcg@5",
        "map@5",
        "mrr@5",
        "coverage@1",
        "novelty@5",
        "tail_share@5",
        "gini@5",
        "unseen@5",
    ]
    one = recsys.evaluate(model, truth, asked, seen=seen, train=seen).bounds()
    lists = recsys.recommend(model, 5, seen=seen)
    two = recsys.evaluate(lists, truth, asked, seen=seen, train=seen, catalogue=range(20)).bounds()
    for metric in asked:
        assert one[metric][:3] == pytest.approx(two[metric][:3], rel=1e-12), metric
        assert one[metric][3:5] == two[metric][3:5]


def test_chance_is_what_drawing_gives():
    rng = np.random.default_rng(1)
    truth = {u: rng.choice(25, rng.integers(1, 6), replace=False).tolist() for u in range(40)}
    seen = {u: rng.choice(25, 4, replace=False).tolist() for u in range(40)}
    asked = ["recall@5", "ndcg@5", "map@5", "mrr", "gmap@5", "coverage@1", "novelty@5", "tail_share@5",
             "gini@5", "personalisation@5", "pauc@5", "bpref"]  # fmt: skip
    runs = [
        recsys.evaluate(recsys.Scores(rng.random((40, 25))), truth, asked, seen=seen, train=seen)
        for _ in range(200)
    ]
    bounds = runs[0].bounds()
    for metric in asked:
        drawn = np.array([run[metric] for run in runs])
        off = abs(drawn.mean() - bounds[metric].floor)
        error = math.hypot(drawn.std() / math.sqrt(len(drawn)), bounds[metric].floor_error)
        assert off < 4 * error + 1e-12, metric


def test_candidates_that_scores_took_away_are_said_to_be_unknown():
    scores = np.random.default_rng(0).random((6, 9))
    scores[:, 0] = -np.inf
    asked = ["recall@2", "gini@2", "ild@2"]
    truth = {u: [u + 1] for u in range(6)}
    bounds = recsys.evaluate(recsys.Scores(scores), truth, asked, embeddings=np.eye(9)).bounds()
    assert bounds["recall@2"].best_how == "exact"
    assert bounds["recall@2"].floor == pytest.approx(2 / 8)
    assert math.isnan(bounds["gini@2"].best)
    assert "-inf" in bounds["gini@2"].why
    assert "-inf" in repr(bounds)


def test_lists_that_show_what_they_may_not_are_told_apart():
    known = {"catalogue": [*"abcd"], "seen": {1: ["a"]}}
    free = recsys.evaluate({1: ["a", "b"]}, {1: {"a", "b"}}, "recall@2", **known).bounds()
    assert (free["recall@2"].value, free["recall@2"].best, free["recall@2"].reached) == (1.0, 0.5, 4.0)
    assert any(str(note).startswith("items listed that are not candidates") for note in free.notes)
    assert "beyond the best" in repr(free)
    kept = recsys.evaluate({1: ["c", "b"]}, {1: {"a", "b"}}, "recall@2", **known).bounds()
    assert kept.notes == ()


def test_the_best_is_never_worse_than_the_lists_that_were_evaluated():
    vectors = {"a": [0.0], "b": [9.0], "c": [1.0], "d": [2.0]}
    asked = "ild(distance=euclidean)@3"
    known = {"embeddings": vectors, "catalogue": [*"abcd"]}
    # One list ends after its two most distant items, which no full list can match.
    row = recsys.evaluate({1: ["a", "b"], 2: ["a", "b", "c"]}, {1: {"a"}, 2: {"a"}}, asked, **known).bounds()[
        asked
    ]
    assert row.value == (9.0 + 6.0) / 2
    assert row.best == row.value
    assert row.best_how == "found"


def test_a_metric_of_ones_own_has_limits_too():
    def first_letter(h: Any, k: Any, c: Any) -> Any:
        """The place of the first item among all ids."""
        del k, c
        entries = h.shown(1)
        return np.bincount(entries.case, weights=entries.item * 1.0, minlength=h.n_cases)

    facts: dict[str, Any] = {
        "needs": ("lists",),
        "ties": "shown",
        "population": "listed",
        "bounds": (0.0, math.inf),
    }
    register("first_letter", formula="", reference="", **facts)(first_letter)
    try:
        row = recsys.evaluate({1: ["b"]}, {1: {"a"}}, "first_letter@1", catalogue=[*"abcd"]).bounds()[
            "first_letter@1"
        ]
    finally:
        del METRICS["first_letter"]
    assert abs(row.floor - 1.5) < 5 * row.floor_error
    assert (row.best, row.best_how) == (3.0, "found")


def test_limits_of_the_items_shown():
    result = recsys.evaluate(
        {1: ["a"], 2: ["a"]}, {1: {"a"}}, ["coverage@1", "novelty@1", "gini@1", "bpref"],
        catalogue=[*"abcd"], train={1: ["a"], 2: ["a"], 3: ["b"], 4: ["a"]},
    )  # fmt: skip
    bounds = result.bounds()
    assert bounds["coverage@1"].best == 0.5
    assert bounds["coverage@1"].floor == pytest.approx(1 - (3 / 4) ** 2)
    assert bounds["novelty@1"].best == 2.0
    assert bounds["novelty@1"].floor == pytest.approx((math.log2(4 / 3) + 2 + 2 + 2) / 4)
    assert (bounds["gini@1"].best, bounds["gini@1"].best_how) == (0.5, "exact")
    assert abs(bounds["gini@1"].floor - (1 / 4 * 0.75 + 3 / 4 * 0.5)) < 5 * bounds["gini@1"].floor_error
    assert bounds["bpref"].floor_how == "drawn"
    assert "drawn 50 times for each user" in repr(bounds)
    assert bounds.to_frame().columns.tolist() == [
        "metric", "value", "floor", "best", "reached", "floor_how", "best_how", "floor_error", "why",
    ]  # fmt: skip
    assert "| gini@1 |" in bounds.to_markdown()
    assert "drawn: the mean over random rankings" in bounds.to_markdown()


def test_what_a_user_has_seen_is_no_candidate_for_a_mean_over_items():
    train = {1: ["a"], 2: ["a"], 3: ["b"], 4: ["a"]}
    known = {"train": train, "seen": {1: ["a"], 2: ["b", "c", "d"]}, "catalogue": [*"abcd"]}
    row = recsys.evaluate({1: ["b"], 2: ["a"]}, {1: {"a"}}, "novelty@1", **known).bounds()["novelty@1"]
    assert row.best == pytest.approx((2.0 + math.log2(4 / 3)) / 2)
    assert row.floor == pytest.approx((2.0 + math.log2(4 / 3)) / 2)


def test_ratings_lie_between_the_mean_and_perfect_predictions():
    table = pd.DataFrame({"user": [1, 1, 2, 2], "rating": [0, 1, 1, 1], "prediction": [0.2, 0.7, 0.9, 0.6]})
    bounds = recsys.evaluate_ratings(table, metrics=[*RATINGS]).bounds()
    assert bounds["rmse"].floor == pytest.approx(math.sqrt(0.75 * 0.25))
    assert (bounds["rmse"].best, bounds["MAE"].best, bounds["auc"].best, bounds["auc"].floor) == (
        0,
        0,
        1,
        0.5,
    )
    assert bounds["r2"][1:3] == (0.0, 1.0)
    for name, row in bounds.items():
        assert row.why or (math.isfinite(row.floor) and math.isfinite(row.best)), name
    assert "the mean of all ratings" in repr(bounds)


def test_a_result_without_its_lists_has_no_limits(tmp_path):
    result = recsys.evaluate({1: ["a"]}, {1: {"a"}}, "recall@1")
    result.save(tmp_path / "r.json")
    with pytest.raises(RecsysError, match="lists behind it are gone"):
        recsys.load(tmp_path / "r.json").bounds()


def test_where_floor_and_best_differ_by_rounding_alone_there_is_no_way_to_go():
    """Predicting the mean of all ratings has no bias and is calibrated: 0 except for rounding."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"user": np.arange(400) % 40, "rating": rng.random(400) * 1e3})
    rows["prediction"] = rows.rating + rng.normal(1, 1, 400)
    assert math.isnan(recsys.evaluate_ratings(rows, metrics=["bias"]).bounds()["bias"].reached)
    clicks = pd.DataFrame({"user": np.arange(390) % 40, "click": (np.arange(390) % 7 == 0).astype(int)})
    clicks["pctr"] = rng.random(390)
    found = recsys.evaluate_ratings(clicks, metrics=["ece", "log_loss"]).bounds()
    assert math.isnan(found["ece"].reached)
    assert found["log_loss"].reached < 1
    assert "<table" in found._repr_html_()


def test_there_is_no_share_of_the_way_where_the_floor_is_nearly_the_best():
    lists = {user: list(range(10)) for user in range(120)}
    options = {"catalogue": list(range(60)), "train": {user: [user % 60] for user in range(120)}}
    result = recsys.evaluate(lists, {user: {1} for user in lists}, ["coverage@10", "ndcg@10"], **options)
    bounds = result.bounds()
    coverage = bounds["coverage@10"]
    assert coverage.floor < coverage.best == 1.0
    assert coverage.best - coverage.floor < 1e-6  # a share would read -833,000,000
    assert math.isnan(coverage.reached)
    assert "n/a" in str(bounds)
    reason = "floor 1 and best 1 are too close together for a share of the way between them"
    assert f"coverage@10: {reason}" in str(bounds)
    assert bounds.to_frame().set_index("metric")["why"].to_dict() == {"coverage@10": reason, "ndcg@10": ""}


@pytest.mark.parametrize(
    ("value", "floor", "best", "reached"),
    [
        (0.37, 0.99999, 1.0, math.nan),
        (0.37, 0.9, 1.0, -5.3),
        (0.0, 0.9, 1.0, -9.0),
        (0.79, 0.0235, 0.0, math.nan),
        (0.5, 0.5, 0.5, math.nan),
        (1e-9, 0.0, 0.0, math.nan),
        (0.6, 0.5, 1.0, 0.2),
        (1.0, 0.999, 1.0, 1.0),
    ],
)
def test_the_share_of_the_way_is_given_only_where_it_means_something(value, floor, best, reached):
    limits = Limits(value, floor, best, "exact", "exact")
    assert limits.reached == pytest.approx(reached, nan_ok=True)
    assert bool(limits.reason) == math.isnan(reached)


def test_a_discount_that_rises_is_not_said_to_be_at_its_best():
    options = {"catalogue": [*"abcd"], "conventions": {"discount": (0.2, 1.0, 0.1)}}
    result = recsys.evaluate({1: ["a", "b"]}, {1: {"b": 1}}, "dcg@2", **options)
    assert result["dcg@2"] == 1.0
    limits = result.bounds()["dcg@2"]
    assert (limits.best, limits.best_how) == (1.0, "found")
    options["conventions"] = {"discount": (1.0, 0.2, 0.1)}
    limits = recsys.evaluate({1: ["a", "b"]}, {1: {"b": 1}}, "dcg@2", **options).bounds()["dcg@2"]
    assert (limits.best, limits.best_how) == (1.0, "exact")


def test_the_best_of_a_metric_that_weighs_by_grade_puts_high_grades_on_top():
    truth = {1: {"a": 1, "c": 5}, 2: {"b": 1, "d": 2}}
    options = {"catalogue": [*"abcd"], "full_ranking": True}
    runs = [
        recsys.evaluate({1: list(one), 2: list(other)}, truth, "mpr", **options)["mpr"]
        for one, other in product(permutations("abcd"), repeat=2)
    ]
    limits = recsys.evaluate({1: [*"abcd"], 2: [*"abcd"]}, truth, "mpr", **options).bounds()["mpr"]
    assert (limits.best, limits.best_how) == (pytest.approx(min(runs), rel=1e-12), "exact")
    assert limits.floor == pytest.approx(np.mean(runs), rel=1e-12)


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (2, "the catalogue has fewer items than occur"),
        (10**8, "most items are known by their number only"),
    ],
)
def test_a_catalogue_that_is_a_number_says_why_it_is_no_catalogue(number, words):
    lists, train = {1: ["a", "b"], 2: ["b", "c"]}, {1: ["c"], 2: ["a"]}
    result = recsys.evaluate(lists, {1: ["a"], 2: ["c"]}, ["mrr", "novelty@2"], catalogue=number, train=train)
    bounds = result.bounds()
    assert bounds["mrr"].best == 1.0
    assert math.isnan(bounds["novelty@2"].best)
    assert f"{words}: pass catalogue= with" in bounds["novelty@2"].why


def test_without_a_place_there_is_no_best_list():
    result = recsys.evaluate({1: []}, {1: ["a"]}, ["gini@2", "coverage@2"], catalogue=["a", "b"])
    for name, limits in result.bounds().items():
        assert math.isnan(limits.best), name
        assert limits.why == "no list of candidates has a value here: no user is in the mean", name


def test_the_same_list_for_everyone_is_even_where_unshown_items_do_not_count():
    lists, truth = {1: ["a", "b"], 2: ["b", "c"]}, {1: ["a"], 2: ["c"]}
    rules = {"gini_over": "recommended"}
    result = recsys.evaluate(lists, truth, ["gini@2"], catalogue=["a", "b", "c", "d"], conventions=rules)
    assert result["gini@2"] == pytest.approx(1 / 6)
    assert result.bounds()["gini@2"].best == 0.0


def test_a_distance_that_is_a_function_has_a_best_list_too():
    def apart(one, other):
        return float(np.abs(one - other).max())

    vectors = {"a": [0.0, 0.0], "b": [1.0, 0.0], "c": [0.0, 5.0], "d": [0.0, 1.0]}
    request = Request.of("ild@2", distance=apart)
    result = recsys.evaluate({1: ["a", "b"]}, {1: ["a"]}, [request], embeddings=vectors, catalogue=[*vectors])
    (limits,) = result.bounds().values()
    assert (limits.value, limits.best) == (1.0, 5.0)


def test_the_floor_of_a_sum_over_places_ends_with_the_lists():
    lists, truth = {1: [*"abcde"], 2: [*"cdeab"]}, {1: {"a": 1, "f": 2}, 2: {"c": 1}}
    sums = ["hit", "hits", "dcg", "err", "graded_rbp", "mrr", "rbp"]
    asked = [f"{name}@{k}" for name in (*sums, "recall") for k in (5, 9)]
    rules = {"max_grade": 2}
    bounds = recsys.evaluate(lists, truth, asked, catalogue=[*"abcdefghijkl"], conventions=rules).bounds()
    for name in sums:
        assert bounds[f"{name}@9"].floor == bounds[f"{name}@5"].floor, name
    assert bounds["recall@9"].floor > bounds["recall@5"].floor
