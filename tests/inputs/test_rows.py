"""Large tables are read by other code than small ones; both must give the same arrays."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recsys
from recsys.errors import InputError
from recsys.inputs import rows
from recsys.kernels.exact_sums import exact_mean, exact_sum
from recsys.metrics.registry import METRICS
from recsys.records.arrays import Ids

needs_native = pytest.mark.skipif(
    not recsys.show_backends().native, reason="the compiled kernels are missing"
)


def table(seed: int, n_rows: int = 50_000) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"user": rng.integers(0, 3_000, n_rows), "item": rng.integers(0, 200, n_rows)})


@pytest.mark.parametrize("n_users", [3_000, 200_000], ids=["16 bits", "32 bits"])
def test_pairs_are_merged_alike_by_every_way_of_sorting(monkeypatch, n_users):
    truth = table(0)
    truth["user"] *= n_users // 3_000
    parts = [recsys.read_interactions(truth)]  # by radix
    parts.append(recsys.read_interactions(truth.assign(timestamp=1)))
    monkeypatch.setattr(rows, "_MANY_ROWS", 0)
    monkeypatch.setattr(rows, "_MANY_PAIRS", 0)
    parts.append(recsys.read_interactions(truth))  # by SciPy
    parts.append(recsys.read_interactions(truth.assign(timestamp=1)))
    monkeypatch.setattr(rows, "_SMALL", len(truth))
    parts.append(recsys.read_interactions(truth.assign(timestamp=1)))  # by a plain sort
    for part in parts[1:]:
        for name in ("indptr", "codes", "counts"):
            assert np.array_equal(getattr(parts[0], name), getattr(part, name)), name
        assert parts[0].facts.repeated_rows == part.facts.repeated_rows > 0
        assert parts[0].grades is part.grades is None


@pytest.mark.parametrize("n_codes", [1, 70_000, 1 << 20])
def test_rows_are_put_in_stable_order(monkeypatch, n_codes):
    codes = np.random.default_rng(0).integers(0, n_codes, 100_000).astype(np.int32)
    codes[-1] = 0
    by_radix = rows._stable_order(codes, n_codes)
    monkeypatch.setattr(rows, "_MANY_ROWS", 0)
    by_counting = rows._stable_order(codes, n_codes)
    expected = np.argsort(codes, kind="stable")
    if n_codes == 1:
        assert by_radix is by_counting is None
    else:
        assert np.array_equal(by_radix, expected)
        assert np.array_equal(by_counting, expected)


_FROM_DICTS = """
import sys
import recsys

users = [u * 7919 % 20_000 for u in range(20_000)]  # in no order
name = {"int": int, "str": "id{}".format}[sys.argv[1]]
items = {name(u): [name((u * 31 + i * 97) % 3_000) for i in range(10)] for u in users}
scored = {user: [(item, -at % 7) for at, item in enumerate(row)] for user, row in items.items()}
graded = {user: {item: 1 + at % 3 for at, item in enumerate(row)} for user, row in items.items()}
repeated = {user: [*row[::-1], row[0]] for user, row in items.items()}
for lists in (items, graded, scored):
    for truth in (items, graded, repeated):
        recsys.read_lists(lists), recsys.read_interactions(truth)
recsys.evaluate(items, repeated, ["ndcg@10"])
print([m for m in ("scipy", "pandas", "narwhals", "pyarrow", "recsys.inputs.files") if m in sys.modules])
"""


@pytest.mark.parametrize("ids", ["int", pytest.param("str", marks=needs_native)])  # else pandas codes them
def test_dicts_of_20_000_users_import_no_large_package(ids):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _FROM_DICTS, ids], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_times_and_grades_stay_with_their_pair():
    truth = (
        table(1).drop_duplicates().assign(grade=lambda t: t["item"] % 5, timestamp=lambda t: t["item"] * 10)
    )
    read = recsys.read_interactions(truth.sample(frac=1, random_state=0))
    assert (read.items.values[read.codes] % 5 == read.grades).all()
    assert (read.items.values[read.codes] * 10 == read.times).all()


@pytest.mark.parametrize("how", ["rank", "float rank", "score", "gapped rank"])
def test_shuffled_lists_come_back_in_order(how):
    lists = table(2).drop_duplicates()
    place = lists.groupby("user").cumcount() + 1
    lists = lists.assign(
        **{
            "rank": {"rank": place},
            "float rank": {"rank": place.astype(float)},
            "gapped rank": {"rank": place * 3},
            "score": {"score": -place.astype(float)},
        }[how]
    )
    expected = {user: group["item"].tolist() for user, group in lists.groupby("user")}
    for frame in (lists, lists.sort_values("user", kind="stable"), lists.sample(frac=1, random_state=3)):
        read = recsys.read_lists(frame)
        found = {
            int(user): read.items.values[read.codes[read.indptr[c] : read.indptr[c + 1]]].tolist()
            for c, user in enumerate(read.cases.values)
        }
        assert found == expected


def test_ids_of_any_range_are_joined():
    a, b = Ids(np.array([-5, 3, 2**40])), Ids(np.array([0, 3]))
    whole, mine, theirs = a.union(b, what="item")
    assert whole.values.tolist() == [-5, 0, 3, 2**40]
    assert (whole.values[mine].tolist(), whole.values[theirs].tolist()) == ([-5, 3, 2**40], [0, 3])
    short, long = Ids(np.arange(3), is_range=True), Ids(np.arange(9), is_range=True)
    assert short.union(long, what="item")[0] is long.union(short, what="item")[0] is long


def test_exact_sums_of_any_size():
    rng = np.random.default_rng(0)
    for scale in (1.0, 1e-300, 1e300, 2.0**-1074):
        values = rng.random(1_000) * scale
        assert float(exact_sum(values)) == pytest.approx(float(values.sum()), rel=1e-12)
        assert exact_sum(values) == exact_sum(values[::-1]) == sum(exact_sum(values[i::7]) for i in range(7))
    assert exact_mean(np.full(10, 0.1), within=1.0) == exact_mean(np.full(10, 0.1)) == 0.1


def test_the_place_of_an_error_comes_after_the_hint():
    with pytest.raises(recsys.errors.ColumnError) as caught:
        recsys.read_lists(pd.DataFrame({"who": [1], "item": [2]}))
    assert str(caught.value) == (
        "no column was recognised as the user. The columns are: who, item. Say which: "
        "columns={'user': ...}. [table 'lists', column 'user']"
    )


@pytest.mark.parametrize("backend", [pytest.param("native", marks=needs_native), "reference"])
def test_users_times_items_beyond_32_bits(backend):
    n = 70_000  # n * n passes 2^32: a key that wrapped round would match another user's item
    users = np.arange(n)
    lists = pd.DataFrame({"user": users, "item": users[::-1], "rank": 1})
    truth = pd.DataFrame({"user": users, "item": np.where(users % 2 == 0, users[::-1], users)})
    result = recsys.evaluate(lists.sample(frac=1, random_state=0), truth, ["hit@1"], backend=backend)
    assert result["hit@1"] == 0.5
    assert result.values_of("hit@1").tolist() == (users % 2 == 0).astype(float).tolist()


@pytest.mark.parametrize(("ranks", "who"), [([1, 2, 5, 3], "2 users leave"), ([2, 1, 3, 4], "1 user leaves")])
def test_gaps_between_ranks_are_reported(ranks, who):
    table = pd.DataFrame({"user": [1, 1, 1, 2], "item": [5, 6, 7, 8], "rank": ranks})
    result = recsys.evaluate(table, {1: [7], 2: [8]}, ["mrr"])
    assert f"lists closed up where the ranks of {who} places out" in str(result)
    assert result["mrr"] == (1 / 3 + 1) / 2


PLACES_ONLY = sorted(
    {"optional": f"{name}@4", "required": f"{name}@4", "never": name}[metric.at_k]
    for name, metric in METRICS.items()
    if not metric.needs and metric.kind != "catalogue"
)


@settings(max_examples=settings.default.max_examples // 4)
@given(data=st.data())
def test_gaps_that_are_kept_are_places_of_items_nobody_wants(data):
    """A list with empty places is one with an unjudged item at each of them, up to its last rank."""
    ranks = {user: data.draw(st.sets(st.integers(1, 9), min_size=1, max_size=4)) for user in (1, 2, 3)}
    rows = [(user, 10 * user + rank, rank) for user, some in ranks.items() for rank in some]
    table = pd.DataFrame(data.draw(st.permutations(rows)), columns=["user", "item", "rank"])
    filled = {user: [10 * user + place for place in range(1, max(some) + 1)] for user, some in ranks.items()}
    grades = st.integers(0, 3)
    truth = {user: {item: data.draw(grades) for _, item, _ in rows if item // 10 == user} for user in ranks}
    truth[1][99] = 2
    kept = recsys.evaluate(table, truth, PLACES_ONLY, conventions={"rank_gaps": "kept"})
    again = recsys.read_lists(table).to_frame()
    for same in (
        recsys.evaluate(filled, truth, PLACES_ONLY),
        recsys.evaluate(again, truth, PLACES_ONLY, conventions={"rank_gaps": "kept"}),
    ):
        for name in kept:
            np.testing.assert_array_equal(same.values_of(name), kept.values_of(name), err_msg=name)


def test_gaps_that_are_kept_reach_everything_that_reads_places():
    table = pd.DataFrame({"user": [1, 1, 2], "item": [5, 6, 8], "rank": [2, 5, 1]})
    truth, rules = {1: [5, 6], 2: [8]}, {"rank_gaps": "kept"}
    result = recsys.evaluate(table, truth, ["mrr", "coverage@2", "precision(over=list)@3"], conventions=rules)
    assert result["mrr"] == (1 / 2 + 1) / 2
    assert result["coverage@2"] == 2 / 3
    assert result["precision(over=list)@3"] == (1 / 3 + 1) / 2
    assert "lists with empty places where the ranks of 1 user leaves places out" in str(result)
    assert recsys.evaluate(table, truth, "mrr", conventions={**rules, "judged_only": "yes"})["mrr"] == 1.0
    with pytest.raises(InputError, match="do not rank every candidate"):
        recsys.evaluate(table, truth, "auc", full_ranking=True, conventions=rules)
    with pytest.raises(InputError, match="rank of 999,999,999"):
        recsys.evaluate(table.assign(rank=[2, 999_999_999, 1]), truth, "mrr", conventions=rules)


def test_ranks_without_gaps_are_not_reported():
    table = pd.DataFrame({"user": [1, 1, 2], "item": [5, 6, 8], "rank": [2, 1, 1]})
    assert "closed up" not in str(recsys.evaluate(table, {1: [5], 2: [8]}, ["mrr"]))


def test_an_empty_history_hides_nothing():
    rng = np.random.default_rng(3)
    model = recsys.Factors(rng.normal(size=(4, 3)), rng.normal(size=(6, 3)))
    truth = {0: [1], 2: [3]}
    assert recsys.evaluate(model, truth, ["ndcg"], seen={}) == recsys.evaluate(model, truth, ["ndcg"])
    assert np.array_equal(recsys.recommend(model, 6, seen={}).codes, recsys.recommend(model, 6).codes)
    for name in ("train", "eligible"):
        with pytest.raises(InputError, match="empty"):
            recsys.evaluate(model, truth, ["ndcg"], **{name: {}})
    with pytest.raises(InputError, match="truth is empty"):
        recsys.evaluate(model, {}, ["ndcg"], seen={})
