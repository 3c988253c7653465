"""Blending and diversification compared with straightforward implementations."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import recsys
from recsys.errors import InputError, UnknownNameError
from recsys.models.rerankers import blend, content, diversify, rerank, sweep, user_profiles
from recsys.ranks.sources import Factors


def top(source, k, **more):
    lists = recsys.recommend(source, k, **more)
    return lists.items.values[lists.codes].reshape(len(lists.cases), k).tolist()


def world(seed, n_users=6, n_items=15):
    rng = np.random.default_rng(seed)
    return rng, rng.standard_normal((n_users, 4)), rng.standard_normal((n_items, 4)), rng.random((n_items, 3))


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.2, 0.5, 0.9, 1.0]))
def test_a_blend_is_the_weighted_sum_of_standardised_scores(seed, alpha):
    rng, users, items, rows = world(seed)
    profiles = rng.standard_normal((6, 3))
    bias = rng.standard_normal(15)
    model_scores, content_scores = users @ items.T + bias, profiles @ rows.T
    scaled = [s / s.std(axis=1, keepdims=True) for s in (model_scores, content_scores)]
    expected = np.argsort(-(alpha * scaled[0] + (1 - alpha) * scaled[1]), axis=1)[:, :5].tolist()
    blended = blend(Factors(users, items, item_bias=bias), Factors(profiles, rows), alpha)
    assert top(blended, 5) == expected
    unscaled = blend(Factors(users, items, item_bias=bias), Factors(profiles, rows), alpha, scale="none")
    assert (
        top(unscaled, 5)
        == np.argsort(-(alpha * model_scores + (1 - alpha) * content_scores), axis=1)[:, :5].tolist()
    )


def test_a_blend_goes_by_ids_whatever_the_order_of_rows():
    rng, users, items, rows = world(1)
    profiles = rng.standard_normal((6, 3))
    names = [f"i{n:02d}" for n in range(15)]
    people = [f"u{n}" for n in range(6)]
    straight = blend(
        Factors(users, items, user_ids=people, item_ids=names),
        Factors(profiles, rows, user_ids=people, item_ids=names),
        0.5,
    )
    o, p = rng.permutation(15), rng.permutation(6)
    turned = blend(
        Factors(users, items, user_ids=people, item_ids=names),
        Factors(profiles[p], rows[o], user_ids=[people[n] for n in p], item_ids=[names[n] for n in o]),
        0.5,
    )
    assert top(straight, 5) == top(turned, 5)


def test_a_user_without_content_keeps_the_models_ranking():
    _, users, items, rows = world(2)
    model = Factors(users, items)
    blended = blend(model, content({0: [1, 2]}, rows), 0.5)
    assert top(blended, 5)[1:] == top(model, 5)[1:]
    assert top(blended, 5)[0] != top(model, 5)[0]


def test_cold_items_are_reached_through_content():
    items = np.array([[2.0], [1.0], [0.0]])  # nobody took item 2: its factors are zero
    rows = np.array([[1.0, 0.0], [0.0, 1.0], [0.98, 0.2]])
    model = Factors(np.array([[1.0]]), items)
    assert top(model, 1, seen={0: [0]}) == [[1]]
    assert top(blend(model, content({0: [0]}, rows), 0.3), 1, seen={0: [0]}) == [[2]]


def test_blends_refuse_what_does_not_fit():
    model = Factors([[1.0]], [[1.0], [2.0]])
    for alpha in (-0.1, 1.1, float("nan")):
        with pytest.raises(InputError, match="between 0 and 1"):
            blend(model, model, alpha)
    with pytest.raises(UnknownNameError):
        blend(model, model, 0.5, scale="ranks")
    with pytest.raises(InputError, match="items"):
        blend(model, Factors([[1.0]], [[1.0]]), 0.5)


def mmr(scores, rows, k, diversity):
    """One list, pick by pick."""
    low, high = min(scores), max(scores)
    relevance = [(s - low) / ((high - low) or 1.0) for s in scores]
    unit = [r / (np.linalg.norm(r) or 1.0) for r in rows]
    picked = []
    while len(picked) < min(k, len(scores)):
        values = {}
        for i in range(len(scores)):
            if i not in picked:
                similarity = max((float(unit[i] @ unit[j]) for j in picked), default=0.0)
                values[i] = (1 - diversity) * relevance[i] - diversity * similarity
        picked.append(max(values, key=lambda i: (round(values[i], 9), -i)))
    return picked


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.3, 0.7, 1.0]), st.integers(1, 8))
def test_diversification_is_mmr_pick_by_pick(seed, diversity, k):
    rng = np.random.default_rng(seed)
    rows = np.round(rng.standard_normal((9, 3)), 2)
    rows[4] = 0.0
    pools = {}
    for user in range(5):
        size = int(rng.integers(1, 8))
        items = rng.choice(9, size, replace=False).tolist()
        pools[user] = sorted(zip(items, rng.random(size).tolist(), strict=True), key=lambda pair: -pair[1])
    lists = diversify(pools, rows, k, diversity=diversity)
    for user, pool in pools.items():
        items = [pair[0] for pair in pool]
        expected = mmr([pair[1] for pair in pool], rows[items], k, diversity)
        got = lists.codes[lists.indptr[user] : lists.indptr[user + 1]]
        assert lists.items.values[got].tolist() == [items[at] for at in expected]


def test_diversification_does_not_depend_on_the_block(monkeypatch):
    rng = np.random.default_rng(0)
    rows, pools = rng.standard_normal((30, 4)), {u: rng.permutation(30)[:12].tolist() for u in range(9)}
    whole = diversify(pools, rows, 5, diversity=0.4)
    monkeypatch.setattr("recsys.models.rerankers._BLOCK_BYTES", 1)
    assert diversify(pools, rows, 5, diversity=0.4).codes.tolist() == whole.codes.tolist()


def test_lists_are_reranked_within_themselves():
    near = Factors([[1.0]], [[0.0], [1.0], [0.0], [9.0]], user_ids=["u"], item_ids=list("abcd"))
    pool = {"u": [("a", 3.0), ("b", 2.0), ("c", 1.0)]}
    for alpha, expected in ((1.0, ["a", "b"]), (0.0, ["b", "a"])):
        lists = rerank(pool, near, 2, alpha=alpha)
        assert lists.items.values[lists.codes].tolist() == expected
    with pytest.raises(InputError, match="no scores"):
        rerank({"u": ["a", "b"]}, near, 2)


def test_a_sweep_starts_with_the_model_and_finds_the_front():
    rng, users, items, rows = world(4, n_users=40, n_items=60)
    truth = {u: rng.choice(60, 5, replace=False).tolist() for u in range(40)}
    history = {u: rng.choice(60, 5, replace=False).tolist() for u in range(40)}
    model, near = Factors(users, items), content(history, rows)
    metrics, settings = ["ndcg@5", "ild@5", "alignment@5"], {"alphas": [0.5], "diversities": [0.0, 0.6]}
    result = sweep(model, near, truth, metrics, k=5, seen=history, train=history, **settings)
    assert result.frame[["alpha", "diversity"]].to_numpy().tolist() == [
        [1, 0],
        [1, 0.6],
        [0.5, 0],
        [0.5, 0.6],
    ]
    alone = recsys.evaluate(recsys.recommend(model, 5, seen=history), truth, ["ndcg@5"])
    assert result.frame["ndcg@5"].iloc[0] == alone["ndcg@5"]
    by_setting = result.frame.set_index(["alpha", "diversity"])
    assert by_setting.loc[(1.0, 0.6), "ild@5"] > by_setting.loc[(1.0, 0.0), "ild@5"]
    assert by_setting.loc[(0.5, 0.0), "alignment@5"] > by_setting.loc[(1.0, 0.0), "alignment@5"]
    front = result.front("ild@5")
    for _, row in front.iterrows():
        better = (result.frame["ndcg@5"] >= row["ndcg@5"]) & (result.frame["ild@5"] > row["ild@5"])
        assert not better.any()
    assert len(result.rising(["alignment@5"])) >= 1
    assert "alpha" in repr(result)
    pytest.importorskip("matplotlib").use("Agg")
    axes = result.plot("ild@5", every=True)
    assert (axes.get_xlabel(), axes.get_ylabel(), len(axes.texts)) == ("ild@5", "ndcg@5", 4)


def test_a_sweep_says_which_metrics_it_has():
    _, users, items, rows = world(0)
    train = {user: [user, user + 1] for user in range(6)}
    result = sweep(Factors(users, items), content(train, rows), {0: [3]}, ["ndcg@10"], alphas=[0.5])
    for call in (lambda: result.front("ildd@10"), lambda: result.rising(["ildd@10"])):
        with pytest.raises(UnknownNameError, match="ndcg@10"):
            call()


def test_the_front_of_a_metric_where_less_is_better():
    rng, users, items, rows = world(4, n_users=40, n_items=60)
    truth = {u: rng.choice(60, 5, replace=False).tolist() for u in range(40)}
    history = {u: rng.choice(60, 5, replace=False).tolist() for u in range(40)}
    settings = {"alphas": [0.8, 0.5, 0.2, 0.0], "diversities": [0.0, 0.3, 0.6]}
    result = sweep(Factors(users, items), content(history, rows), truth, "ndcg@5, gini@5", k=5, **settings)
    assert result.accuracy == "ndcg@5"
    points = result.frame[["ndcg@5", "gini@5"]].to_numpy().tolist()
    best = [
        at
        for at, (a, g) in enumerate(points)
        if not any(b >= a and h <= g and (b > a or h < g) for b, h in points)
    ]
    assert result.front("gini@5").index.tolist() == best
    first = points[0][1]
    assert result.rising(["gini@5"]).index.tolist() == [at for at, (_, g) in enumerate(points) if g < first]
    assert result.frame["gini@5"].idxmin() in best


def test_a_sweep_never_shows_fewer_than_k_items():
    _, users, items, rows = world(0, n_users=5, n_items=30)
    near = content({u: [u] for u in range(5)}, rows)
    result = sweep(
        Factors(users, items), near, {0: [3]}, ["filled@20"], k=20, alphas=[], diversities=[0.5], pool=4
    )
    assert result.frame["filled@20"].tolist() == [1.0, 1.0]


def test_embeddings_that_are_no_matrix_are_named():
    for wrong in ((["a", "b"], [[1.0], [2.0]]), [["x"], ["y"]], [[1.0], [1.0, 2.0]]):
        with pytest.raises(InputError, match="not a matrix of numbers"):
            diversify({1: [0, 1]}, wrong, 1)


def test_what_cannot_be_reranked_is_told():
    near = Factors([[1.0]], [[0.0], [1.0]])
    with pytest.raises(InputError, match=r"alpha=1.5 does not lie between 0 and 1"):
        rerank({0: [(0, 0.9), (1, 0.8)]}, near, 2, alpha=1.5)
    with pytest.raises(InputError, match="the lists have no scores to blend"):
        rerank({0: [0, 1]}, near, 2)
    with pytest.raises(InputError, match=r"items are texts and the embeddings have no ids.*item_ids="):
        diversify({0: ["a", "b"]}, [[1.0], [0.5]], 1)
    with pytest.raises(InputError, match="diversity=2 does not lie between 0 and 1"):
        diversify({0: [0, 1]}, [[1.0], [0.5]], 1, diversity=2)
    with pytest.raises(InputError, match="item_ids holds 2 different ids for 3 rows of embeddings"):
        content({0: [0]}, [[1.0], [0.5], [0.2]], item_ids=[7, 8, 8])


def test_a_profile_of_nothing_is_zero_and_named():
    found = user_profiles({3: [5, 6]}, [[1.0, 0.0], [0.0, 1.0]], aggregation="max")
    assert (found.ids.tolist(), found.vectors.tolist()) == ([3], [[0.0, 0.0]])
    assert (found.n_missing, found.without.tolist()) == (2, [3])
