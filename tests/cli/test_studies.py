"""The five studies: each answers from its own numbers, and draws a figure."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from recsys.benching.studies import SIGMAS, STUDIES, half_point, places_of, quality, run_study, setting_of
from recsys.cli.app import cli
from recsys.errors import ColumnError, UnknownNameError
from recsys.report import figures
from recsys.splits import random_ratio

torch = pytest.importorskip("torch")


@pytest.fixture(scope="module")
def small():
    """Ratings with tastes in them, of 80 users on 60 items."""
    rng = np.random.default_rng(0)
    taste, trait = rng.normal(size=(80, 3)), rng.normal(size=(60, 3))
    mean = 3.2 + 0.5 * rng.normal(size=60)
    rows = []
    for user in range(80):
        weight = rng.random(60) ** 0.5 * np.linspace(2, 0.3, 60)
        for place, item in enumerate(np.argsort(-weight)[: 25 + user % 15]):
            value = np.clip(np.rint(mean[item] + taste[user] @ trait[item] + 0.4 * rng.normal()), 1, 5)
            rows.append((user, item, value, 1000 * place + user))
    return pd.DataFrame(rows, columns=["user", "item", "rating", "timestamp"])


@pytest.mark.parametrize("name", list(STUDIES))
def test_every_study_answers_and_draws(small, name, tmp_path):
    result = run_study(name, small)
    assert result.question == STUDIES[name]
    assert len(result.answer) >= 2
    assert all(len(line) > 10 for line in result.answer)
    page, picture = result.save(tmp_path)
    assert picture.stat().st_size > 5_000
    assert result.question in page.read_text()
    lengths = {len(column) for column in result.table.values()}
    assert len(lengths) == 1
    assert all(np.isfinite(v) for column in result.table.values() for v in column if isinstance(v, float))


def test_the_answers_follow_the_tables(small):
    result = run_study("metric-comparison", small)
    best = result.table["model"][int(np.argmin(result.table["rmse"]))]
    assert best in result.answer[0]
    temporal = run_study("temporal-vs-random", small)
    assert temporal.table["peeks ahead"][2:] == ["0%", "0%"]
    popular = run_study("popularity", small)
    assert popular.table["model"][:2] == ["popular by mean", "popular by count"]


def ndcg_by_hand(score, truth, seen):
    """NDCG@10 with the gain 2^rating - 1 of ratings from 4 on; popularity ranks equal scores by item."""
    ranked = sorted((item for item in range(len(score)) if item not in seen), key=lambda i: (-score[i], i))
    gain = {item: 2**rating - 1 for item, rating in truth.items() if rating >= 4}
    discount = [1 / math.log2(place + 1) for place in range(1, 11)]
    dcg = sum(gain.get(item, 0) * weight for item, weight in zip(ranked, discount, strict=False))
    ideal = sum(g * weight for g, weight in zip(sorted(gain.values(), reverse=True), discount, strict=False))
    return dcg / ideal if gain else None


def test_ndcg_has_the_gain_of_the_document(small):
    setting = setting_of(small)
    train, test = random_ratio(setting.frame, 0.2, seed=0)
    count = np.bincount(train["item"], minlength=setting.n_items)
    values = [
        ndcg_by_hand(
            count,
            dict(zip(rows["item"], rows["rating"], strict=True)),
            set(train["item"][train["user"] == user]),
        )
        for user, rows in test.groupby("user")
    ]
    expected = np.mean([value for value in values if value is not None])
    table = run_study("popularity", small).table
    assert dict(zip(table["model"], table["ndcg@10"], strict=True))["popular by count"] == pytest.approx(
        expected
    )


def test_equal_values_share_a_place_and_errors_are_better_when_lower():
    values = {"a": 1.0, "b": 2.0, "c": 2.0, "d": 3.0}
    assert places_of("mse", values) == {"a": 1, "b": 2, "c": 2, "d": 4}
    assert places_of("ndcg@10 among test items", values) == {"a": 4, "b": 2, "c": 2, "d": 1}


def test_two_models_with_the_same_predictions_have_the_same_place(small, monkeypatch):
    drawn = []
    monkeypatch.setattr(figures, "heat", lambda places, **_: drawn.append(places))
    run_study("metric-comparison", small).draw()
    (places,) = drawn
    for metric in ("mse", "rmse", "mae"):  # both predict the item's mean
        assert places["popular by mean"][metric] == places["popular by count"][metric]


@pytest.mark.parametrize("name", ["metric-comparison", "temporal-vs-random"])
def test_a_page_says_what_its_numbers_are_of(small, name, tmp_path):
    result = run_study(name, small, seed=7)
    page = result.save(tmp_path)[0].read_text()
    for text in (str(result), page):
        assert "Split: " in text
        assert "Seed 7." in text
        assert ("ratings of 4 and more are relevant" in text) == (name == "metric-comparison")
        assert ("relevant_from=4.0, gain=exp2, ties=expected" in text) == (name == "metric-comparison")


def test_counted_popularity_ranks_test_items_by_counts(small):
    table = run_study("metric-comparison", small).table
    column = next(values for name, values in table.items() if "among test" in name)
    among = dict(zip(table["model"], column, strict=True))
    assert among["popular by count"] != among["popular by mean"]


def test_users_are_thinned_where_there_are_too_few(small):
    result = run_study("per-user", small)
    assert "thinned to 3 to 9" in result.answer[-1]
    assert result.table["training ratings"][0] == "fewer than 10"
    assert result.table["users"][0] >= 80 // 3


def test_a_group_that_is_there_is_left_alone(small):
    few = small[(small.user >= 40) | (small.groupby("user").cumcount() < 8)]
    assert not any("thinned" in line for line in run_study("per-user", few).answer)


def test_noise_hurts_every_metric(small):
    result = run_study("metric-sensitivity", small)
    assert result.table["sigma"] == list(SIGMAS)
    for name in ("mse", "rmse", "mae"):
        assert result.table[name][-1] > result.table[name][0]
    assert result.table["ndcg@10"][-1] < result.table["ndcg@10"][0]
    assert half_point([1.0, 0.75, 0.25, *[0.1] * 7]) == pytest.approx(0.075)
    assert quality("mse", [1.0, 2.0]) == [1.0, 0.5]


def test_the_same_seed_gives_the_same_study(small):
    assert str(run_study("popularity", small, seed=3)) == str(run_study("popularity", small, seed=3))


def test_unknown_studies_and_missing_columns_are_errors(small):
    with pytest.raises(UnknownNameError, match="populrity"):
        run_study("populrity", small)
    with pytest.raises(ColumnError, match="time"):
        setting_of(small.drop(columns="timestamp"))


def test_the_command(small, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    small.to_csv("ratings.csv", index=False)
    listing = CliRunner().invoke(cli, ["study"])
    assert all(name in listing.stdout for name in STUDIES)
    done = CliRunner().invoke(cli, ["study", "popularity", "--data", "ratings.csv", "-o", "out"])
    assert done.exit_code == 0, done.output
    assert "popular by count" in done.stdout
    assert (tmp_path / "out" / "popularity.png").exists()
    assert CliRunner().invoke(cli, ["study", "nonsense"]).exit_code == 2


@pytest.mark.shared
@pytest.mark.slow
def test_movielens_by_path(shared_dir):
    result = run_study("popularity", shared_dir / "data" / "ml-100k")
    values = dict(zip(result.table["model"], result.table["ndcg@10"], strict=True))
    assert values["popular by count"] > 10 * values["popular by mean"]
