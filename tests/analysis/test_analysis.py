"""Error analysis: one user, failure cases, who a winner loses on, maps of items, and the command's view."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import recsys
from recsys import analysis
from recsys.cli.app import cli
from recsys.errors import ColumnError, IdTypeError, InputError, MissingExtraError, UnknownNameError

PRODUCTS = pd.DataFrame(
    {"product_id": list("abcd"), "product_name": ["Ash", "Bay", "Cob", "Dot"], "brand": "x"}
)
MAPS = {"user_to_idx": {"ann": 0, "bob": 1}, "idx_to_item": dict(enumerate("abcd"))}
U, V = np.array([[1.0], [-1.0]]), np.array([[4.0], [3.0], [2.0], [1.0]])


@pytest.mark.parametrize(
    "model",
    [
        (U, V),
        SimpleNamespace(U=U, V=V),
        SimpleNamespace(user_factors=U, item_factors=V),
        recsys.Factors(U, V),
        recsys.Scores(U @ V.T),
    ],
)
def test_inspection_takes_any_model_and_keeps_the_order(model):
    frame = analysis.inspect_user_recommendations("bob", model, MAPS, PRODUCTS, k=3)
    assert frame["product_id"].tolist() == ["d", "c", "b"]
    assert frame["rank"].tolist() == [1, 2, 3]
    assert frame["product_name"].tolist() == ["Dot", "Cob", "Bay"]


def test_inspection_leaves_out_the_history_and_shows_it_beside():
    frame = analysis.inspect_user_recommendations(
        "ann", (U, V), MAPS, PRODUCTS, k=2, history=["d", "a"], truth={"c"}
    )
    assert frame["product_id"].tolist() == ["b", "c"]
    assert frame["hit"].tolist() == [False, True]
    assert frame["history_product_id"].tolist() == ["a", "d"]  # newest first
    assert frame.attrs["history"]["product_id"].tolist() == ["d", "a"]
    frame = analysis.inspect_user_recommendations("ann", (U, V), MAPS, k=1, history=["a"], exclude_seen=False)
    assert frame["seen"].tolist() == [True]


def test_inspection_without_mappings_and_with_unknown_products():
    frame = analysis.inspect_user_recommendations(
        0, (U, V), None, PRODUCTS.assign(product_id=[7, 8, 9, 0]), k=2
    )
    assert frame["product_id"].tolist() == [0, 1]
    assert frame["product_name"].tolist()[0] == "Dot"
    assert pd.isna(frame["product_name"].tolist()[1])
    listed = analysis.inspect_user_recommendations("ann", (U, V), MAPS | {"idx_to_item": list("abcd")}, k=1)
    assert listed["item"].tolist() == ["a"]
    texts = {str(row): name for row, name in enumerate("abcd")}
    assert analysis.inspect_user_recommendations("ann", (U, V), MAPS | {"idx_to_item": texts}, k=1)[
        "item"
    ].tolist() == ["a"]


def test_inspection_says_what_is_missing():
    with pytest.raises(InputError, match="user_to_idx"):
        analysis.inspect_user_recommendations("zoe", (U, V), MAPS)
    with pytest.raises(InputError, match="idx_to_item has no entry for 3"):
        analysis.inspect_user_recommendations("ann", (U, V), MAPS | {"idx_to_item": {0: "a", 1: "b", 2: "c"}})
    with pytest.raises(InputError, match="idx_to_item has 3 entries for 4 items"):
        analysis.inspect_user_recommendations("ann", (U, V), MAPS | {"idx_to_item": ["a", "b", "c"]})
    with pytest.raises(ColumnError, match="item ids"):
        analysis.inspect_user_recommendations("ann", (U, V), MAPS, PRODUCTS[["brand"]])


def failing_world():
    train = {0: [1], 1: [1, 2, 3, 4], 2: [1, 2, 3], 3: [2, 3, 4, 5], 4: [1, 2, 4]}
    truth = {0: [2], 1: [9], 2: [5], 3: [1], 4: [3], 5: [1]}
    lists = {0: [4], 1: [6], 2: [4], 3: [1], 4: [1], 5: [2]}
    return train, truth, lists, recsys.evaluate(lists, truth, ["hit@1"])


def test_failure_cases_name_the_reason():
    train, truth, lists, result = failing_world()
    cases = analysis.failure_cases(result, train, truth, lists, niche_item=2)
    assert cases.cold_users.index.tolist() == [0, 5]
    reasons = cases.worst["reason"].to_dict()
    assert reasons[0] == "cold start: 1 training interaction"
    assert reasons[1] == "every test item is new: none was taken in training"
    assert reasons[2] == "niche taste: 1 of 1 test items have < 2 interactions"
    assert reasons[4].startswith("no plain reason: 3 training interactions")
    assert reasons[5] == "no training interactions at all"
    assert 3 not in reasons
    assert cases.niche_items["n_train"].to_dict() == {5: 1, 6: 0, 9: 0}
    assert cases.summary["niche items never recommended"] == 2
    assert cases.summary["hit@1 of cold users"] == 0.0
    assert cases.summary["hit@1 of the others"] == 0.25
    assert "worst users" in repr(cases)
    alone = analysis.worst_users(result, train, truth, niche_item=2)
    assert alone["reason"].to_dict() == reasons


def test_the_worst_of_equally_bad_users_is_the_one_whose_item_stands_lowest():
    scores = recsys.Scores([[5.0, 4.0, 3.0, 2.0]] * 3)
    truth, train = {0: [2], 1: [3], 2: [0]}, {u: [90, 91, 92] for u in range(3)}
    result = recsys.evaluate(scores, truth, ["hit@1", "mrr"])
    worst = analysis.worst_users(result, train | {9: [0, 1, 2, 3]}, truth, niche_item=1)
    assert worst.index.tolist() == [1, 0]
    assert worst["reason"].iloc[0].endswith("the first at place 4")


def test_activity_bins():
    _, _, _, result = failing_world()
    counts = {0: 1, 1: 4, 2: 3, 3: 4, 4: 3}
    groups = analysis.by_activity(result, counts, bins=[(0, 2), (2, 4), (4, float("inf"))])
    assert {name: row["num_users"] for name, row in groups.items()} == {"0-2": 2, "2-4": 2, "4+": 2}
    assert groups["4+"]["hit@1"] == 0.5
    assert "other" in analysis.by_activity(result, counts, bins=[(0, 2)])
    thirds = analysis.by_activity(result, pd.Series(counts))
    assert list(thirds) == ["low", "medium", "high"]
    assert sum(row["num_users"] for row in thirds.values()) == 6
    same = analysis.by_activity(result, {u: list(range(n)) for u, n in counts.items()})
    assert same == thirds
    with pytest.raises(InputError, match="bin"):
        analysis.by_activity(result, counts, bins=[(3, 3)])


def test_losing_users_are_paired_by_id():
    truth = {u: [u] for u in range(6)}
    a = recsys.evaluate({0: [0], 1: [9], 2: [2], 3: [9], 4: [4]}, truth, ["hit@1", "mrr"])
    b = recsys.evaluate(
        {5: [5], 1: [1], 0: [9], 3: [3], 2: [2]}, {u: [u] for u in (5, 1, 0, 3, 2)}, ["hit@1"]
    )
    frame = analysis.losing_users(a, b, "hit@1", counts={1: 12})
    assert frame.index.tolist() == [1, 3, 5]
    assert frame["n_train"].tolist() == [12, 0, 0]
    assert (frame.attrs["won"], frame.attrs["tied"], frame.attrs["lost"], frame.attrs["unpaired"]) == (
        1,
        1,
        3,
        1,
    )


def test_losing_users_of_a_metric_where_less_is_better():
    truth = {0: [0], 1: [1]}
    good = recsys.evaluate(recsys.Scores([[2.0, 1.0, 0.5], [0.0, 2.0, 3.0]]), truth, ["average_rank"])
    bad = recsys.evaluate(recsys.Scores([[0.0, 1.0, 2.0], [0.0, 3.0, 2.0]]), truth, ["average_rank"])
    assert analysis.losing_users(good, bad, "average_rank").index.tolist() == [1]


def test_distributions_and_summaries():
    _, _, _, result = failing_world()
    histogram = analysis.per_user_distribution(result, "hit@1", bins=4)
    assert (histogram["counts"].sum(), histogram["n_at_zero"], histogram["max"]) == (6, 5, 1.0)
    summary = analysis.number_summary([1.0, np.nan, 3.0])
    assert (summary["count"], summary["mean"], summary["std"]) == (2, 2.0, 1.0)
    assert np.isnan(analysis.number_summary([np.nan])["mean"])
    assert np.isnan(analysis.improvement(1.0, 0.0)["relative_percent"])


@pytest.mark.parametrize("method", ["tsne", "pca"])
def test_maps_put_like_with_like(method):
    pytest.importorskip("sklearn")
    rng = np.random.default_rng(0)
    centres = 8 * rng.standard_normal((3, 10))
    rows = centres[np.arange(60) % 3] + rng.standard_normal((60, 10))
    rows[7] = 0.0
    frame = analysis.item_map(rows, method=method, labels=np.arange(60) % 3, item_ids=range(100, 160))
    assert frame.index[0] == 100
    assert frame[["x", "y"]].isna().any(axis=1).sum() == 1
    assert frame.attrs["without_embedding"] == 1
    assert frame.attrs["neighbours"]["same label"] > 0.95 > 2 * frame.attrs["neighbours"]["by chance"]
    again = analysis.item_map(rows, method=method, seed=0)
    assert np.allclose(frame[["x", "y"]], again, equal_nan=True)


def test_maps_take_any_method_and_refuse_unknown_ones():
    own = SimpleNamespace(fit_transform=lambda rows: rows[:, :2])
    rows = np.arange(12.0).reshape(4, 3) + 1
    assert analysis.item_map(rows, method=own)["x"].tolist() == rows[:, 0].tolist()
    with pytest.raises(UnknownNameError):
        analysis.item_map(rows, method="magic")
    with pytest.raises(InputError, match="three"):
        analysis.item_map(np.zeros((5, 2)))
    with pytest.raises(InputError, match="two columns"):
        analysis.item_map(rows, method=SimpleNamespace(fit_transform=lambda matrix: matrix[:, :1]))


@pytest.mark.parametrize(
    ("method", "command"),
    [("tsne", "'recsys-evaluation[embed]'"), ("umap", "umap-learn"), ("pacmap", "pacmap")],
)
def test_maps_say_what_to_install(method, command, monkeypatch):
    import importlib

    def absent(name, *rest):
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", absent)
    with pytest.raises(MissingExtraError) as raised:
        analysis.item_map(np.ones((4, 3)) + np.arange(4)[:, None], method=method)
    assert raised.value.hint == f"Install it with: pip install {command}"


FILES = {
    "lists.csv": "user_id,item_id,score\nann,a,0.9\nann,b,0.8\nbob,c,0.7\n",
    "truth.csv": "user_id,item_id\nann,b\nbob,c\n",
    "seen.csv": "user_id,item_id,timestamp\nann,c,1\nann,d,3\n",
    "items.csv": "item_id,title,category\na,Tent,camp\nb,Rope,climb\nc,Lamp,camp\nd,Boots,walk\n",
}


@pytest.fixture
def invoke(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    np.save(tmp_path / "als_U.npy", U)
    np.save(tmp_path / "als_V.npy", V)
    return lambda *arguments: CliRunner().invoke(cli, ["inspect", *arguments])


def test_the_command_prints_the_list_and_the_history(invoke):
    done = invoke("ann", "lists.csv", "--truth", "truth.csv", "--train", "seen.csv", "--items", "items.csv")
    assert done.exit_code == 0, done.output
    rows = [line.split() for line in done.stdout.splitlines()]
    shown, had = rows.index(["1", "a", "Tent", "camp", "0.9000"]), rows.index(["d", "Boots", "walk"])
    assert rows[shown + 1] == ["2", "b", "Rope", "climb", "0.8000", "yes"]
    assert rows[had + 1] == ["c", "Lamp", "camp"]
    assert shown < had
    assert "1 of 1 relevant items shown" in done.stderr


def test_the_command_reads_models_and_writes_csv(invoke):
    done = invoke("1", ".", "-k", "2", "--csv")
    assert done.exit_code == 0, done.output
    assert [line.split(",")[1] for line in done.stdout.splitlines()] == ["item", "3", "2"]


def test_the_command_says_what_is_wrong(invoke):
    assert invoke("zoe", "lists.csv").exit_code == 3
    assert "zoe" in invoke("zoe", "lists.csv").stderr
    no_row = invoke("x", ".")
    assert (no_row.exit_code, "'x'" in no_row.stderr) == (3, True), no_row.stderr
    assert invoke("ann", "lists.csv", "--items", "none.csv").exit_code == 3


def test_bins_that_are_no_pairs_are_an_error():
    result = recsys.evaluate({1: [5]}, {1: [5]}, ["hit@1"])
    for bins in ({"low": (0, 5)}, [3, 5], [(0, 5, 9)]):
        with pytest.raises(InputError, match="is not a bin"):
            analysis.by_activity(result, {1: 2}, bins)


def test_a_map_refuses_what_its_methods_cannot_do_and_takes_labels_by_id():
    rows = np.random.default_rng(0).normal(size=(12, 3))
    for bad in (np.ones((30, 4)), rows[:, :1]):
        with pytest.raises(InputError, match="same embedding"):
            analysis.item_map(bad)
    with pytest.raises(InputError, match="12 items and 2 labels"):
        analysis.item_map(rows, method="pca", labels=["a", "b"])
    ids = [f"i{i}" for i in range(12)]
    labels = {name: "even" if i % 2 == 0 else "odd" for i, name in enumerate(ids)}
    frame = analysis.item_map(rows, method="pca", labels=labels, item_ids=ids)
    assert frame["label"].tolist() == ["even", "odd"] * 6


def test_the_worst_users_of_a_metric_where_less_is_better():
    scores = np.tile(np.arange(10.0, 0.0, -1.0), (3, 1))
    truth = {0: [0], 1: [9], 2: [3]}  # average ranks 1, 10 and 4
    train = {user: [1, 2, 4] for user in truth}
    result = recsys.evaluate(recsys.Scores(scores), truth, ["average_rank", "mrr"])
    worst = analysis.worst_users(result, train, truth, metric="average_rank")
    assert worst["value"].to_dict() == {1: 10.0}
    assert analysis.failure_cases(result, train, truth).worst.index.tolist() == [1]
    assert analysis.worst_users(result, train, truth, metric="mrr").index.tolist() == [1, 2]


def test_a_user_without_test_items_is_no_user_whose_items_are_new():
    lists, train = {0: [1, 2], 1: []}, {0: [1, 2, 3], 1: [1, 2, 3]}
    result = recsys.evaluate(lists, {0: [1], 1: []}, ["user_coverage@2"])
    worst = analysis.worst_users(result, train, {0: [1], 1: []})
    assert worst["reason"].to_dict() == {1: "no test items at all"}


def test_inspection_says_which_mapping_column_or_kind_of_id_is_missing():
    for maps in ({}, {"user_to_idx": {"ann": 0}}):
        with pytest.raises(InputError, match="mappings has no"):
            analysis.inspect_user_recommendations("ann", (U, V), maps, PRODUCTS)
    with pytest.raises(UnknownNameError, match="product_name"):
        analysis.inspect_user_recommendations("ann", (U, V), MAPS, PRODUCTS, columns=["product_nam"])
    with pytest.raises(IdTypeError, match="product_id is int64, and the list holds 'a'"):
        analysis.inspect_user_recommendations("ann", (U, V), MAPS, PRODUCTS.assign(product_id=range(4)))


def test_items_without_a_label_say_nothing_about_neighbours():
    rows = np.repeat([[0.0, 0.0], [9.0, 1.0], [0.0, 9.0]], 4, axis=0) + np.random.default_rng(1).random(
        (12, 2)
    )
    labels = dict(enumerate("aaaabbbb"))
    neighbours = analysis.item_map(rows, method="pca", labels=labels).attrs["neighbours"]
    assert neighbours == {"same label": 1.0, "by chance": pytest.approx(3 / 7)}  # of the other 7 labelled, 3
    neighbours = analysis.item_map(rows, method="pca", labels={0: "a"}).attrs["neighbours"]
    assert np.isnan(list(neighbours.values())).all()


@pytest.mark.parametrize("points", [{"a": (1, 2, 3)}, {"a": (1,)}, {"a": 5}, {"a": "xy"}, [(1, 2)], None])
def test_points_that_are_no_pairs_are_refused(points):
    with pytest.raises(InputError, match=r"name: \(x, y\)|must hold numbers"):
        analysis.pareto_front(points)


@pytest.mark.parametrize(
    ("rows", "shape"), [([1.0, 2.0, 3.0], r"\(3,\)"), ([[1.0], [math.inf], [2.0]], r"\(3, 1\)")]
)
def test_a_map_is_of_a_finite_matrix(rows, shape):
    with pytest.raises(InputError, match=f"the embeddings must be a finite matrix; got shape {shape}"):
        analysis.item_map(rows)


def test_inspection_takes_lists_and_interactions():
    lists = recsys.read_lists({"ann": ["c", "a", "d"]})
    history = pd.DataFrame({"user": ["ann", "bob", "ann"], "item": ["b", "a", "a"], "time": [2, 1, 1]})
    before = recsys.read_interactions(history)
    frame = analysis.inspect_user_recommendations(
        "ann", lists, None, PRODUCTS, 2, history=before, truth=recsys.read_interactions({"ann": ["a"]})
    )
    assert frame["product_id"].tolist() == ["c", "a"]
    assert frame["history_product_id"].tolist() == ["b", "a"]  # newest first
    assert frame["hit"].tolist() == [False, True]
    assert analysis.inspect_user_recommendations("bob", recsys.read_lists({"bob": ["a"]}), truth=before)[
        "hit"
    ].tolist() == [True]
    with pytest.raises(InputError, match="user 'zoe' is not one of the 1 users"):
        analysis.inspect_user_recommendations("zoe", lists)
    model = recsys.Factors(U, V, user_ids=["ann", "bob"], item_ids=list("abcd"))
    shown = analysis.inspect_user_recommendations("ann", model, k=2, history=before)
    assert shown["item"].tolist() == ["c", "d"]
    with pytest.raises(InputError, match="user 'zoe' is not one of the 2 users"):
        analysis.inspect_user_recommendations("zoe", model)
