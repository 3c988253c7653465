"""rank(): results, runs, data sets and tables of others, in every form; what is refused by name."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import recsys
from recsys.errors import ColumnError, InputError, UnknownNameError


def results(shares, n=300, seed=0, metrics=("hit@1",), users=None):
    """One result per model: each finds what a share of the users want."""
    rng = np.random.default_rng(seed)
    users = range(n) if users is None else users
    truth = {u: {u} for u in users}
    return {
        name: recsys.evaluate({u: [u if rng.random() < share else -1] for u in truth}, truth, list(metrics))
        for name, share in shares.items()
    }


SHARES = {"weak": 0.1, "good": 0.5, "same": 0.5, "best": 0.9}


@pytest.fixture
def long():
    """Values per query of three systems on two tasks."""
    rng = np.random.default_rng(1)
    means = {"x": 0.1, "y": 0.3, "z": 0.3}
    rows = [
        (t, m, f"q{q}", rng.random() * 0.2 + at) for t in "ab" for m, at in means.items() for q in range(60)
    ]
    return pd.DataFrame(rows, columns=["task", "model", "case", "value"])


def test_places_in_order_best_first():
    ranks = recsys.rank(results(SHARES))
    assert next(iter(ranks)) == "best"
    assert ranks["best"] == (1, 1)
    assert ranks["good"] == ranks["same"] == (2, 3)
    assert ranks["weak"] == (4, 4)
    assert ranks.may_be_first == ("best",)
    assert ranks.n_users == 300


def test_lower_is_better_turns_the_places_round():
    rng = np.random.default_rng(0)
    actual = {u: {1: float(rng.integers(1, 6))} for u in range(200)}
    guesses = {
        name: {u: {1: of[1] + error * rng.normal()} for u, of in actual.items()}
        for name, error in {"close": 0.3, "far": 2.0}.items()
    }
    named = {name: recsys.evaluate_ratings(one, actual, ["mae"]) for name, one in guesses.items()}
    ranks = recsys.rank(named)
    assert [*ranks] == ["close", "far"]
    assert ranks["close"] == (1, 1)


def test_paths_comparisons_and_lists_are_taken(tmp_path):
    found = results(SHARES)
    paths = []
    for name, result in found.items():
        paths.append(tmp_path / f"{name}.json")
        result.save(paths[-1])
    expected = dict(recsys.rank(found))
    assert dict(recsys.rank(paths)) == expected
    assert dict(recsys.rank(recsys.compare(found))) == expected
    assert dict(recsys.rank(found, "hit@1")) == expected
    assert next(iter(recsys.rank([*found.values()]))) == "model 4"


def test_the_users_that_all_models_share_decide():
    found = results({"a": 0.9, "b": 0.1}, n=200)
    found |= results({"c": 0.5}, users=range(100, 300))
    ranks = recsys.rank(found)
    assert ranks.n_users == 100
    assert [note.code for note in ranks.notes] == ["missing_cases"]


def test_several_data_sets_have_the_same_weight():
    tasks = {"one": results({"a": 0.9, "b": 0.5}, n=400), "two": results({"a": 0.5, "b": 0.9}, n=100, seed=5)}
    ranks = recsys.rank(tasks)
    assert ranks["a"] == ranks["b"] == (1, 2)
    assert sum(ranks.wins.values()) == 2
    assert ranks.n_users == 500
    means = {m: np.mean([tasks[t][m]["hit@1"] for t in tasks]) for m in "ab"}
    assert ranks.values_by_model == pytest.approx(means)


def test_runs_are_ranked_by_the_spread_between_them():
    def runs(share):
        return [results({"m": share}, seed=s)["m"] for s in range(5)]

    ranks = recsys.rank({"a": runs(0.6), "b": runs(0.2), "c": runs(0.2)})
    assert ranks["a"] == (1, 1)
    assert ranks["b"] == ranks["c"] == (2, 3)


def test_metrics_that_are_no_means_over_users_are_compared_pair_by_pair():
    truth = {u: {u} for u in range(300)}
    lists = {"wide": {u: [u, u + 1] for u in truth}, "narrow": {u: [0, 1] for u in truth}}
    found = {name: recsys.evaluate(one, truth, ["coverage@2"]) for name, one in lists.items()}
    assert recsys.rank(found) == {"wide": (1, 1), "narrow": (2, 2)}


def test_a_table_of_others(long, tmp_path):
    ranks = recsys.rank(long)
    assert ranks["x"] == (3, 3)
    assert ranks["y"] == ranks["z"] == (1, 2)
    for name in ("board.csv", "board.parquet", "board.jsonl"):
        path = tmp_path / name
        if name.endswith("csv"):
            long.to_csv(path, index=False)
        elif name.endswith("parquet"):
            long.to_parquet(path)
        else:
            long.to_json(path, orient="records", lines=True)
        assert dict(recsys.rank(path)) == dict(ranks), name
    own = long.rename(columns={"model": "who", "case": "topic"})
    assert dict(recsys.rank(own, columns={"system": "who", "case": "topic"})) == dict(ranks)
    upside_down = recsys.rank(long, lower_is_better=True)
    assert upside_down["x"] == (1, 1)


def test_a_table_of_several_metrics_is_asked_for_one(long):
    both = pd.concat([long.assign(metric="ndcg"), long.assign(metric="mrr", value=-long.value)])
    assert recsys.rank(both, "ndcg")["x"] == (3, 3)
    assert recsys.rank(both, "mrr")["x"] == (1, 1)
    with pytest.raises(UnknownNameError, match="metric of the table"):
        recsys.rank(both)


def test_means_of_tasks_alone_exclude_no_place(long):
    means = long.groupby(["task", "model"], as_index=False)["value"].mean()
    ranks = recsys.rank(means)
    assert set(ranks.values()) == {(1, 3)}
    assert ranks.wins["x"] == 0
    assert "no place is excluded" in str(ranks)


def test_the_table_exports_everything(long):
    ranks = recsys.rank(long)
    frame = ranks.to_frame()
    assert frame.columns.tolist() == ["model", "value", "best", "worst", "wins"]
    document = json.loads(ranks.to_json())
    assert document["confidence"] == 0.95
    assert [row["worst"] for row in document["rows"]] == [2, 2, 3]
    assert "| x |" in ranks.to_markdown()
    assert "1-2" in ranks._repr_html_()


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (lambda _: results({"a": 0.5}), "at least two models"),
        (lambda _: 5, "came as int"),
        (lambda _: {"t": results({"a": 0.5, "b": 0.1}), "u": results({"a": 0.5})}, "'b' is not on both"),
        (lambda _: {"t": results({"a": 0.5, "b": 0.1}), "u": 3}, "not a mapping of models"),
        (lambda t: pd.concat([t, t]), "case 'q0' twice"),
        (lambda t: t[(t.model != "x") | (t.task != "b")], "'x' has no row on 'b'"),
        (lambda t: t[t.model == "x"], "at least two models"),
        (lambda t: t.assign(value="high"), "value"),
        (lambda t: t[(t.model == "x") == (t.case == "q1")], "no case"),
    ],
)  # fmt: skip
def test_what_is_refused(long, given, says):
    with pytest.raises((InputError, ColumnError), match=says):
        recsys.rank(given(long))


def test_options_of_tables_are_refused_of_results():
    with pytest.raises(InputError, match="lower_is_better"):
        recsys.rank(results(SHARES), lower_is_better=True)
    with pytest.raises(UnknownNameError):
        recsys.rank(results(SHARES))["nobody"]


def test_places_are_drawn(long):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from recsys.report import charts, figures

    ranks = recsys.rank(long)
    assert figures.places(ranks, metric="value").get_xlabel() == "place on value"
    assert "1 to" not in str(charts.places(ranks).spec["description"])
    assert recsys.compare(results(SHARES)).plot.places() is not None
