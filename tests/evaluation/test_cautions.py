"""Every caution speaks where its row says so, and stays silent where its row says so."""

from __future__ import annotations

import json
import pickle
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import recsys
from recsys.errors import InputError, UnknownNameError
from recsys.evaluation.cautions import CAUTIONS

pytestmark = pytest.mark.filterwarnings("ignore::recsys.stats.results.StatisticsWarning")
RNG = np.random.default_rng(7)
N = 40


def codes(result) -> list[str]:
    return [caution.code for caution in result.cautions]


def frame(users, items, **columns) -> pd.DataFrame:
    return pd.DataFrame({"user": users, "item": items, **columns})


def factors(n_users=N, n_items=30) -> recsys.Factors:
    return recsys.Factors(RNG.normal(size=(n_users, 4)), RNG.normal(size=(n_items, 4)))


def padded(n: int, width: int) -> np.ndarray:
    """Rows of an embedding whose row 0 stands for no id."""
    return np.vstack([np.zeros(width), RNG.normal(size=(n - 1, width))])


def world(first: int, n_users=N, n_items=30):
    """(truth, seen): ids from `first` on, the last row of each side left out if they start at 1."""
    users, items = np.arange(first, n_users), np.arange(first, n_items)
    truth = frame(
        np.repeat(users, 2), items[(np.repeat(users, 2) * 7 + np.tile([0, 3], len(users))) % len(items)]
    )
    seen = frame(
        np.repeat(users, 3), items[(np.repeat(users, 3) * 5 + np.tile([1, 2, 4], len(users))) % len(items)]
    )
    return truth, seen


def lists_of(length: int, n_users: int = 12, n_items: int = 100) -> dict[int, list[int]]:
    return {u: [(u * 13 + 7 * j) % n_items for j in range(length)] for u in range(n_users)}


def truth_of(n_users: int = 12, n_items: int = 100) -> dict[int, set[int]]:
    return {u: {(u * 13 + 7 * j) % n_items for j in (u % 7, 5, 60)} for u in range(n_users)}


def interleaved(length: int = 4, n_users: int = 10) -> pd.DataFrame:
    """Row j of every user, then row j + 1 of every user."""
    users = np.tile(np.arange(n_users), length)
    return frame(users, (users * 13 + 7 * np.repeat(np.arange(length), n_users)) % 50)


RATINGS = frame(
    np.repeat(np.arange(12), 5), np.tile(np.arange(5), 12) * 7, rating=np.tile([1, 2, 3, 4, 5], 12)
)
LISTS = {u: [0, 7, 14, 21, 28] for u in range(12)}
TEXT = {f"u{n}": [f"item {n}", f"item {n + 1}"] for n in range(20)}


def stars(grades, name, **keywords):
    """150 users with six relevant items each, whose grades come in turn."""
    users, items = np.repeat(np.arange(150), 6), np.tile(np.arange(6), 150)
    given = np.resize(np.asarray(grades, dtype=float), len(users))
    truth = frame(users, items, **{name or "grade": given})
    if name is None:
        truth = {u: dict(zip(rows["item"], rows["grade"], strict=True)) for u, rows in truth.groupby("user")}
    lists = {u: [(u + j) % 20 for j in range(6)] for u in range(150)}
    return recsys.evaluate(lists, truth, ["ndcg@5"], **keywords)


def by_group(missing):
    users = list(range(12))
    return recsys.evaluate(
        lists_of(5), truth_of(), ["recall@5"], by={u: missing if u < 3 else "a" for u in users}
    )


def model_with_train(**keywords):
    truth, train = world(0)
    return recsys.evaluate(factors(), truth, ["recall@5"], train=train, **keywords)


def with_coverage(**keywords):
    """Two results, of which one shows items of the lower half of the catalogue only."""
    return {
        name: recsys.evaluate(
            lists_of(5, 60, n_items=n), truth_of(60, n_items=50), ["recall@5", "coverage@5"], **keywords
        )
        for name, n in (("a", 50), ("b", 100))
    }


def with_factors(*, truth=None, n_items=30, **options) -> recsys.Evaluation:
    model = recsys.Factors(np.arange(1.0, N + 1)[:, None], np.sin(np.arange(1.0, n_items + 1))[:, None])
    return recsys.evaluate(model, world(0)[0] if truth is None else truth, ["recall@5"], **options)


def compared(first, second):
    """Two results of about the same model that were asked with these options."""
    return recsys.compare({"a": with_factors(**first), "b": with_factors(**second)})


def of_users(n: int, lists: int | None = None) -> recsys.Evaluation:
    return recsys.evaluate(lists_of(5, lists or n), truth_of(n), ["recall@5"])


def with_lists_for(*sizes, users=None):
    """Results of the same truth, with lists for so many users."""
    n = max(sizes) if users is None else users
    return {f"of {size}": recsys.evaluate(lists_of(5, size), truth_of(n), ["recall@5"]) for size in sizes}


def seen_before(n: int, model=None, **keywords):
    """An evaluation in which each user has seen n of the four relevant items."""
    truth, seen = ({u: set(range(size)) for u in range(12)} for size in (4, n))
    return recsys.evaluate(factors() if model is None else model, truth, ["recall@5"], seen=seen, **keywords)


SPEAKS = {
    "ids_are_not_rows": [
        lambda: recsys.evaluate(factors(), world(1)[0], ["recall@5"], seen=world(1)[1]),
        lambda: recsys.evaluate(factors(), world(1)[0], ["recall@5"], seen={}, train=world(1)[1]),
        lambda: recsys.evaluate(
            recsys.Scores(RNG.normal(size=(N, 30))), world(1)[0], ["recall@5"], seen=world(1)[1]
        ),
    ],
    "k_beyond_lists": [
        lambda: recsys.evaluate(lists_of(20), truth_of(), ["ndcg@50"]),
        lambda: recsys.evaluate(lists_of(20), truth_of(), ["recall@10", "ndcg@50"], catalogue=1000),
        lambda: recsys.evaluate({**lists_of(20), 3: [1, 2], 4: []}, truth_of(), ["ndcg@21"]),
        lambda: recsys.evaluate({**lists_of(10), 3: list(range(11))}, truth_of(), ["hit@50"]),
    ],
    "codes_of_several_items": [
        lambda: recsys.evaluate(
            {1: ["x", "y"]},
            {1: ["a"]},
            ["mrr"],
            items_of={"x": ["a", "b"], "y": "c"},
            conventions={"ties": "expected"},
        ),
    ],
    "relevant_from_unset": [
        lambda: recsys.evaluate(LISTS, RATINGS, ["ndcg@5"]),
        lambda: recsys.evaluate(
            LISTS, RATINGS.rename(columns={"rating": "Stars"}), ["ndcg@5"], columns={"grade": "Stars"}
        ),
        lambda: recsys.evaluate(LISTS, RATINGS, ["ndcg@5", "ndcg(relevant_from=4)@5"]),
        lambda: recsys.evaluate(LISTS, RATINGS, ["ndcg@5"], conventions={"gain": "exp2"}),
        lambda: stars([1, 2, 3, 4, 5], "grade"),
        lambda: stars([1, 5], "grade"),
        lambda: stars([1, 2], "rating"),
        lambda: stars([0.5, 2, 3.5, 5], None),
    ],
    "row_order_as_rank": [
        lambda: recsys.evaluate(interleaved(), {u: {u * 13 % 50} for u in range(10)}, ["mrr"]),
        lambda: recsys.evaluate(
            frame(np.repeat(np.arange(10), 4), np.tile([1, 5, 9, 30], 10)),
            {u: {5} for u in range(10)},
            ["mrr"],
        ),
    ],
    "lists_and_truth_swapped": [
        lambda: recsys.evaluate(RATINGS, RATINGS, ["ndcg@5"]),
        lambda: recsys.evaluate(
            RATINGS,
            frame(np.repeat(np.arange(12), 2), np.tile([0, 7], 12), score=np.tile([0.9, 0.1], 12)),
            ["ndcg@5"],
        ),
        lambda: recsys.evaluate(
            RATINGS.assign(timestamp=1).drop(columns="rating"),
            frame(np.arange(12), np.zeros(12, dtype=int), rank=1),
            ["ndcg@5"],
        ),
    ],
    "few_ids_shared": [
        lambda: recsys.evaluate(
            {u: v for u, v in lists_of(5, 120).items() if u % 3 == 0}, truth_of(120), ["mrr"]
        ),
        lambda: recsys.evaluate(
            lists_of(5, 12), {**{u: {7} for u in range(1, 3)}, **{u: {7} for u in range(100, 200)}}, ["mrr"]
        ),
        lambda: recsys.evaluate(
            lists_of(5, 120), {u: {500 + u} for u in range(119)} | {119: {119 * 13 % 100}}, ["mrr"]
        ),
        lambda: recsys.evaluate(
            TEXT, {u: {items[0] + " "} for u, items in TEXT.items()} | {"u0": {"item 0"}}, ["mrr"]
        ),
        lambda: recsys.evaluate(
            {"a": [str(n) for n in range(20)]}, {"a": ["3", *(f"{n}.0" for n in range(4, 9))]}, ["mrr"]
        ),
        lambda: recsys.evaluate({"Jose\u0301": ["a"], "b": ["b"]}, {"Jos\u00e9": {"a"}, "b": {"b"}}, ["mrr"]),
    ],
    "training_items_ranked": [
        model_with_train,
        lambda: recsys.evaluate(lists_of(5), {u: {5} for u in range(12)}, ["mrr"], train=lists_of(5)),
        lambda: recsys.evaluate(lists_of(5), {u: {5} for u in range(12)}, ["mrr"], seen=lists_of(5)),
        lambda: recsys.evaluate(
            lists_of(10, 120),
            {u: {(u * 13 + 1) % 100} for u in range(120)},
            ["mrr"],
            train={u: items[:2] for u, items in lists_of(10, 120).items()},
        ),
    ],
    "truth_already_seen": [
        lambda: seen_before(2),
        lambda: recsys.evaluate(lists_of(5, 120), truth_of(120), ["mrr"], train=truth_of(120)),
        lambda: seen_before(4, lists_of(5)),
        lambda: recsys.evaluate(
            factors(),
            RATINGS,
            ["recall@5"],
            conventions={"relevant_from": 4},
            seen=RATINGS[RATINGS["rating"] > 3],
        ),
    ],
    "pairs_read_as_lists": [
        lambda: recsys.evaluate(
            {u: [1, 2] for u in range(1000, 1040)},
            {u: {1} for u in range(1000, 1040)},
            ["novelty@2"],
            train=[[u, u % 5] for u in range(1000, 1040)],
        ),
        lambda: recsys.evaluate(
            {u: [1, 2] for u in range(1000, 1040)},
            {u: {1} for u in range(1000, 1040)},
            ["novelty@2"],
            train=np.array([[u, u % 5] for u in range(1000, 1040)]),
        ),
    ],
    "groups_left_out": [
        lambda: by_group(None),
        lambda: by_group(float("nan")),
        lambda: by_group(pd.NA),
        lambda: by_group(pd.NaT),
        lambda: recsys.evaluate(
            lists_of(5),
            truth_of(),
            ["recall@5"],
            by="g",
            users=pd.DataFrame({"user": range(12), "g": ["a"] * 9 + [None] * 3}),
        ),
        lambda: recsys.evaluate(
            lists_of(5),
            truth_of(),
            ["recall@5"],
            by="g",
            items=pd.DataFrame({"item": range(50), "g": ["a", "b"] * 25}),
        ),
    ],
    "different_questions": [
        lambda: recsys.compare(
            {
                "a": recsys.evaluate(lists_of(5, 60), truth_of(60), ["recall@5"]),
                "b": recsys.evaluate(lists_of(5, 60), {u: {u % 100} for u in range(60)}, ["recall@5"]),
            }
        ),
        lambda: recsys.compare(
            {
                "a": recsys.evaluate(lists_of(5, 60), truth_of(60), ["recall@5"]),
                "b": recsys.evaluate(
                    lists_of(5, 60), {u: v for u, v in truth_of(60).items() if u < 20}, ["recall@5"]
                ),
            }
        ),
        lambda: recsys.compare(
            {
                "a": recsys.evaluate(lists_of(5, 60), truth_of(60), ["recall@5"]),
                "b": recsys.evaluate(
                    lists_of(5, 60), {u: dict.fromkeys(v, 2) for u, v in truth_of(60).items()}, ["recall@5"]
                ),
            }
        ),
        lambda: recsys.compare({"a": of_users(120), "b": of_users(72)}),
        lambda: recsys.gate(of_users(72), of_users(120), {"recall@5": "5%"}),
    ],
    "catalogues_differ": [
        lambda: recsys.compare(with_coverage()),
        lambda: recsys.compare(with_coverage(), metrics=["coverage@5"]),
        lambda: recsys.gate(*with_coverage().values(), {"coverage@5": "5%"}),
    ],
    "candidates_differ": [
        lambda: compared({}, {"eligible": world(0)[0]}),
        lambda: compared({"eligible": world(0)[0]}, {"eligible": pd.concat(world(0))}),
        lambda: compared({}, {"exclude": [3]}),
        lambda: compared({"seen": {}}, {"seen": {}, "eligible": world(0)[0], "truth": world(0)[0][2:]}),
    ],
    "ranked_items_differ": [
        lambda: compared({}, {"n_items": 31}),
        lambda: recsys.gate(with_factors(n_items=31), with_factors(), {"recall@5": "5%"}),
    ],
    "seen_differs": [
        lambda: compared({}, {"seen": world(0)[1]}),
        lambda: compared({"seen": world(0)[1]}, {"seen": world(0)[1][3:]}),
        lambda: recsys.gate(
            with_factors(seen=world(0)[1]), with_factors(seen=world(0)[1][3:]), {"recall@5": "5%"}
        ),
    ],
    "trains_differ": [
        lambda: compared({"train": world(0)[1]}, {"train": world(0)[1][3:]}),
        lambda: recsys.gate(
            with_factors(train=world(0)[1]), with_factors(train=world(0)[1][3:]), {"recall@5": "5%"}
        ),
    ],
    "weights_differ": [lambda: compared({}, {"item_weights": {item: 1 + item % 2 for item in range(30)}})],
    "lists_are_missing": [
        lambda: recsys.compare(with_lists_for(150, 50)),
        lambda: recsys.compare(with_lists_for(150, 134)),
        lambda: recsys.gate(*with_lists_for(50, 150).values(), {"recall@5": "5%"}),
    ],
}

SILENT = {
    "ids_are_not_rows": [
        lambda: recsys.evaluate(factors(), world(0)[0], ["recall@5"], seen=world(0)[1]),
        lambda: recsys.evaluate(
            recsys.Factors(padded(N, 4), padded(30, 4)), world(1)[0], ["recall@5"], seen=world(1)[1]
        ),
        lambda: recsys.evaluate(
            factors(),
            sp.csr_matrix((np.ones(N - 1), (np.arange(1, N), 1 + np.arange(N - 1) % 29)), shape=(N, 30)),
            ["recall@5"],
            seen={},
        ),
        lambda: recsys.evaluate(factors(), {u: {3, 4} for u in range(1, N // 2)}, ["recall@5"], seen={}),
        lambda: recsys.evaluate(
            recsys.Factors(
                RNG.normal(size=(N, 4)),
                RNG.normal(size=(30, 4)),
                user_ids=range(1, N + 1),
                item_ids=range(1, 31),
            ),
            world(1)[0],
            ["recall@5"],
            seen=world(1)[1],
        ),
    ],
    "k_beyond_lists": [
        lambda: recsys.evaluate(lists_of(20), truth_of(), ["ndcg@20"]),
        lambda: recsys.evaluate(lists_of(5), truth_of(), ["ndcg@10", "hit@10"]),
        lambda: recsys.evaluate({**lists_of(20), 3: list(range(50))}, truth_of(), ["ndcg@50"]),
        lambda: recsys.evaluate(
            lists_of(20, n_items=20), truth_of(n_items=20), ["ndcg@50"], full_ranking=True
        ),
        lambda: recsys.evaluate(lists_of(20, n_items=20), truth_of(n_items=20), ["ndcg@50"]),
        lambda: recsys.evaluate(lists_of(20, n_items=30), truth_of(n_items=30), ["ndcg@50"], catalogue=30),
        lambda: recsys.evaluate({u: list(range(u + 1)) for u in range(12)}, truth_of(), ["ndcg@50"]),
        lambda: recsys.evaluate(factors(), world(0)[0], ["ndcg@50"], seen={}),
        lambda: recsys.evaluate(lists_of(20), truth_of(), ["mrr"]),
    ],
    "codes_of_several_items": [
        lambda: recsys.evaluate({1: ["x", "y"]}, {1: ["a"]}, ["mrr"], items_of={"x": "a", "y": "a"}),
        lambda: recsys.evaluate(
            {u: ["x"] if u else ["y"] for u in range(11)},
            {1: ["a"]},
            ["mrr"],
            items_of={"x": "a", "y": ["b", "c"]},
        ),
    ],
    "relevant_from_unset": [
        lambda: recsys.evaluate(LISTS, RATINGS, ["ndcg@5"], conventions={"relevant_from": 4}),
        lambda: recsys.evaluate(LISTS, RATINGS, ["ndcg@5"], conventions={"relevant_from": 1}),
        lambda: recsys.evaluate(LISTS, RATINGS, ["ndcg(relevant_from=4)@5"]),
        lambda: recsys.evaluate(LISTS, RATINGS, ["ndcg@5"], conventions="trec_eval"),
        lambda: recsys.evaluate(LISTS, RATINGS.rename(columns={"rating": "grade"}), ["ndcg@5"]),
        lambda: recsys.evaluate(LISTS, RATINGS.assign(rating=RATINGS["rating"] % 2), ["ndcg@5"]),
        lambda: recsys.evaluate(LISTS, {u: {0: 1, 7: 3, 14: 5} for u in range(12)}, ["ndcg@5"]),
        lambda: stars([0, 1, 2, 3, 4, 5], "grade"),  # qrels have a grade for what is not relevant
        lambda: stars([1, 2, 3], "grade"),
        lambda: stars([1, 1, 1, 2, 1, 5], "grade"),  # counts
        lambda: stars([1, 2, 3, 4, 5], "grade", conventions={"relevant_from": 4}),
    ],
    "row_order_as_rank": [
        lambda: recsys.evaluate(
            interleaved().assign(score=1.0 / np.arange(1, 41)), {u: {u * 13 % 50} for u in range(10)}, ["mrr"]
        ),
        lambda: recsys.evaluate(
            frame(np.repeat(np.arange(10), 4), np.tile([9, 5, 1, 30], 10)),
            {u: {5} for u in range(10)},
            ["mrr"],
        ),
        lambda: recsys.evaluate(frame([3, 3, 1, 1], [1, 2, 5, 4]), {3: {1}, 1: {5}}, ["mrr"]),
        lambda: recsys.evaluate({u: [1, 5, 9, 30] for u in range(10)}, {u: {5} for u in range(10)}, ["mrr"]),
    ],
    "lists_and_truth_swapped": [
        lambda: recsys.evaluate(
            frame(np.repeat(np.arange(12), 2), np.tile([0, 7], 12), score=np.tile([0.9, 0.1], 12)),
            RATINGS,
            ["ndcg@5"],
        ),
        lambda: recsys.evaluate(LISTS, RATINGS.assign(score=0.5), ["ndcg@5"]),
        lambda: recsys.evaluate(
            frame(np.arange(12), np.arange(12) % 5, score=0.5, date="2020-01-01"),
            frame(np.arange(12), np.arange(12), rank=3),
            ["mrr"],
        ),
        lambda: recsys.evaluate(
            frame(np.arange(12), np.arange(12) % 3, score=0.5, timestamp=7),
            frame(np.arange(12), np.arange(12), score=2),
            ["mrr"],
            columns={"truth": {"grade": "score"}},
        ),
    ],
    "few_ids_shared": [
        lambda: recsys.evaluate(lists_of(5, 100), {u: {4, 9} for u in range(10)}, ["mrr"]),
        lambda: recsys.evaluate(lists_of(5, 400), {u: truth_of(400)[u] for u in range(20)}, ["mrr"]),
        lambda: recsys.evaluate(lists_of(5, 12, 10_000), {u: {5000 + u} for u in range(12)}, ["mrr"]),
        lambda: recsys.evaluate(
            {u: v for u, v in lists_of(5, 120).items() if u % 3 == 0},
            truth_of(120),
            ["mrr"],
            conventions={"no_list": "skip"},
        ),
        lambda: recsys.evaluate(
            {u: [1, 2, 3] for u in range(50)}, {u: {u, 1, 2, 3} for u in range(50)}, ["mrr"]
        ),
        lambda: recsys.evaluate(TEXT, {u: {items[0]} for u, items in TEXT.items()}, ["mrr"]),
        lambda: recsys.evaluate({"a": ["v1", "v2", "3.0"]}, {"a": {"v1.0", "v2", "3.0"}}, ["mrr"]),
        lambda: recsys.evaluate(factors(), world(0)[0], ["recall@5"], seen={}),
    ],
    "training_items_ranked": [
        lambda: model_with_train(seen=world(0)[1]),
        lambda: model_with_train(seen={}),
        lambda: recsys.evaluate(factors(), world(0)[0], ["recall@5"]),
        lambda: recsys.evaluate(lists_of(5), truth_of(), ["novelty@5"], train=truth_of()),
    ],
    "truth_already_seen": [
        lambda: seen_before(1),
        lambda: seen_before(4, conventions={"seen_truth": "drop"}),
        lambda: seen_before(4, {u: range(4) for u in range(12)}),
        lambda: recsys.evaluate(
            factors(),
            RATINGS,
            ["recall@5"],
            conventions={"relevant_from": 4},
            seen=RATINGS[RATINGS["rating"] < 4],
        ),
    ],
    "pairs_read_as_lists": [
        lambda: recsys.evaluate(
            lists_of(5), truth_of(), ["novelty@5"], train=[[u, u + 1] for u in range(12)]
        ),
        lambda: recsys.evaluate(
            {u: [1, 2] for u in range(1000, 1040)},
            {u: {1} for u in range(1000, 1040)},
            ["novelty@2"],
            train={u: [u % 5, 1] for u in range(1000, 1040)},
        ),
    ],
    "groups_left_out": [lambda: by_group("b"), lambda: by_group(0)],
    "different_questions": [
        lambda: recsys.compare(
            {
                "a": recsys.evaluate(lists_of(5, 60), truth_of(60), ["recall@5"]),
                "b": recsys.evaluate(lists_of(6, 60), truth_of(60), ["recall@5"]),
            }
        ),
        lambda: recsys.compare(
            {
                "a": recsys.evaluate(lists_of(5, 60), truth_of(60), ["recall@5"]),
                "b": recsys.evaluate(
                    lists_of(5, 50), {u: v for u, v in truth_of(60).items() if u < 50}, ["recall@5"]
                ),
            }
        ),
        lambda: recsys.compare({"a": of_users(120), "b": of_users(110)}),
        lambda: recsys.compare({"a": of_users(60), "b": of_users(36)}),
        lambda: recsys.compare({"a": of_users(60), "b": of_users(60, lists=900)}),
    ],
    "catalogues_differ": [
        lambda: recsys.compare(with_coverage(), metrics=["recall@5"]),
        lambda: recsys.compare(with_coverage(catalogue=100)),
        lambda: recsys.gate(*with_coverage().values(), {"recall@5": "5%"}),
    ],
    "candidates_differ": [
        lambda: compared({}, {}),
        lambda: compared({"eligible": world(0)[0]}, {"eligible": world(0)[0][::-1]}),
        lambda: compared({"exclude": [3, 4]}, {"exclude": [4, 3, 3]}),
        lambda: compared(
            {"eligible": world(0)[0]}, {"eligible": pd.concat(world(0)), "truth": world(0)[0][2:]}
        ),
        lambda: recsys.compare(
            {
                "a": with_factors(eligible=world(0)[0]),
                "b": recsys.evaluate(lists_of(5), world(0)[0], ["recall@5"]),
            }
        ),
    ],
    "ranked_items_differ": [
        lambda: compared({}, {}),
        lambda: compared({}, {"n_items": 31, "truth": world(0)[0][2:]}),
        lambda: recsys.compare(
            {"a": with_factors(), "b": recsys.evaluate(lists_of(5), world(0)[0], ["recall@5"], catalogue=31)}
        ),
    ],
    "seen_differs": [
        lambda: compared({"seen": world(0)[1]}, {"seen": world(0)[1][::-1]}),
        lambda: compared({}, {"seen": {}}),
        lambda: compared({"seen": world(0)[1]}, {"seen": world(0)[1][3:], "truth": world(0)[0][2:]}),
        lambda: recsys.compare(
            {
                "a": with_factors(seen=world(0)[1]),
                "b": recsys.evaluate(lists_of(5), world(0)[0], ["recall@5"]),
            }
        ),
    ],
    "trains_differ": [
        lambda: compared({"train": world(0)[1]}, {}),
        lambda: compared({"train": world(0)[1]}, {"train": world(0)[1][::-1]}),
        lambda: compared({"train": world(0)[1]}, {"train": world(0)[1][3:], "truth": world(0)[0][2:]}),
    ],
    "weights_differ": [
        lambda: compared(*[{"item_weights": {item: 1 + item % 2 for item in range(30)}}] * 2),
        lambda: compared(
            {"case_weights": dict.fromkeys(range(N), 2)}, {"case_weights": dict.fromkeys(range(N), 2.0)}
        ),
    ],
    "lists_are_missing": [
        lambda: recsys.compare(with_lists_for(150, 140)),
        lambda: recsys.compare(with_lists_for(90, 20)),
        lambda: recsys.compare(with_lists_for(150, 50, users=50)),
    ],
}


def calls(table):
    return [
        pytest.param(code, call, id=f"{code}-{n}")
        for code, rows in table.items()
        for n, call in enumerate(rows)
    ]


def test_every_rule_is_tried_both_ways():
    of_chance = {code for code, _ in MISTAKES.values()} - set(SPEAKS)
    assert set(CAUTIONS) - of_chance == set(SPEAKS) == set(SILENT)
    assert all(rule.find.__doc__.count("Silent:") == 1 for rule in CAUTIONS.values())


@pytest.mark.parametrize(("code", "call"), calls(SPEAKS))
def test_it_speaks_and_is_printed(code, call):
    result = call()
    assert code in codes(result)
    caution = next(c for c in result.cautions if c.code == code)
    assert caution.page == f"cautions.md#{code}"
    assert caution.sentence in repr(result)
    assert caution.to_dict() in json.loads(result.to_json())["cautions"]


@pytest.mark.parametrize(("code", "call"), calls(SILENT))
def test_it_stays_silent(code, call):
    assert code not in codes(call())


def test_the_numbers_in_the_sentences():
    sentence = {c.code: c.sentence for c in recsys.evaluate(LISTS, RATINGS, ["ndcg@5"]).cautions}
    assert sentence["relevant_from_unset"] == (
        "grades 1 to 5 of 'rating' all count as relevant; relevant_from=4 would leave 40% of them"
    )
    result = recsys.evaluate(lists_of(20), truth_of(), ["ndcg@50", "recall@100", "recall@5"])
    assert result.cautions[0].sentence == (
        "no list is longer than 20, so ndcg@50, recall@100 look no further; make longer lists, or lower k"
    )


@pytest.mark.parametrize("choice", ["ignore", "k_beyond_lists", ["k_beyond_lists"], ("k_beyond_lists",)])
def test_cautions_are_silenced(choice):
    result = recsys.evaluate(lists_of(20), truth_of(), ["ndcg@50"], cautions=choice)
    assert result.cautions == ()
    assert "caution" not in repr(result)
    pair = {
        "a": recsys.evaluate(lists_of(20, 60), truth_of(60), ["ndcg@50"]),
        "b": recsys.evaluate(lists_of(19, 60), truth_of(60), ["ndcg@50"]),
    }
    assert codes(recsys.compare(pair)) == ["k_beyond_lists"] * 2
    assert recsys.compare(pair, cautions=choice).cautions == ()
    assert recsys.compare(pair, cautions=choice).pairs().cautions == ()


def test_ids_that_look_alike_are_told_apart_by_their_code_points():
    lists, truth = {"Jose\u0301": ["a"], "b": ["b"]}, {"Jos\u00e9": {"a"}, "b": {"b"}}
    (caution,) = recsys.evaluate(lists, truth, ["mrr"]).cautions
    assert "which differ in their Unicode form ('Jos\\xe9' and 'Jose\\u0301')" in caution.sentence
    (caution,) = recsys.evaluate({"a ": ["x"], "b": ["x"]}, {"a": {"x"}, "b": {"x"}}, ["mrr"]).cautions
    assert caution.sentence.endswith("such as 'a' and 'a '")


def test_other_silences_are_errors():
    with pytest.raises(UnknownNameError, match="k_beyond_lists"):
        recsys.evaluate(lists_of(20), truth_of(), ["ndcg@50"], cautions=["k_beyond_list"])
    with pytest.raises(InputError, match="cautions= came as int"):
        recsys.evaluate(lists_of(20), truth_of(), ["ndcg@50"], cautions=3)


def test_cautions_and_truth_survive_files_merging_and_processes(tmp_path: Path):
    result = recsys.evaluate(lists_of(20), truth_of(), ["ndcg@50"])
    result.save(tmp_path / "a.json")
    loaded = recsys.load(tmp_path / "a.json")
    assert loaded.cautions == result.cautions
    assert np.array_equal(loaded.truth_keys, result.truth_keys)
    assert pickle.loads(pickle.dumps(result)).cautions == result.cautions  # noqa: S301 - our own bytes
    longer = recsys.evaluate(lists_of(21), truth_of(), ["ndcg@50"])
    low = recsys.evaluate(
        {u: v for u, v in lists_of(20).items() if u < 5},
        {u: v for u, v in truth_of().items() if u < 5},
        ["ndcg@50"],
    )
    high = recsys.evaluate(
        {u: v for u, v in lists_of(20).items() if u > 4},
        {u: v for u, v in truth_of().items() if u > 4},
        ["ndcg@50"],
    )
    assert low.merge(high).cautions == result.cautions
    assert np.array_equal(high.merge(low).truth_keys, result.truth_keys)
    assert "different_questions" not in codes(recsys.compare({"a": low.merge(high), "b": longer}))


def test_a_changed_caution_in_a_file_is_refused(tmp_path: Path):
    path = tmp_path / "a.json"
    recsys.evaluate(lists_of(20), truth_of(), ["ndcg@50"]).save(path)
    document = json.loads(path.read_text())
    document["cautions"] = []
    path.write_text(json.dumps(document))
    with pytest.raises(recsys.errors.FileError):
        recsys.load(path)


def test_compare_names_the_models_a_caution_is_about():
    pair = {
        "short": recsys.evaluate(lists_of(20, 60), truth_of(60), ["ndcg@50"]),
        "long": recsys.evaluate(lists_of(50, 60), truth_of(60), ["ndcg@50"]),
    }
    comparison = recsys.compare(pair)
    assert [c.sentence.split(":")[0] for c in comparison.cautions] == ["short"]
    gate = recsys.gate(pair["long"], pair["short"], {"ndcg@50": "1%"})
    assert codes(gate) == ["k_beyond_lists"]
    assert gate.cautions[0].sentence in repr(gate)


def test_intervals_of_groups_say_whose_they_are():
    grouped = recsys.evaluate(lists_of(5, 60), truth_of(60), ["recall@5"], by=lambda u: u % 2)
    assert "of all users together, not of the groups" in repr(grouped.intervals())
    assert "groups" not in repr(recsys.evaluate(lists_of(5, 60), truth_of(60), ["recall@5"]).intervals())


def test_an_evaluation_does_not_wait_for_its_cautions():
    result = recsys.evaluate(lists_of(20), truth_of(), ["ndcg@50"])
    assert "cautions" not in vars(result)


class Shop:
    """A world of users in groups with a taste: what they had, what is relevant, and the lists of a model."""

    def __init__(self, seed: int, n_users: int = 400, n_items: int = 200, skew: float = 0.5) -> None:
        self.rng = rng = np.random.default_rng(seed)
        self.n_users, self.n_items = n_users, n_items
        popularity = (1 / np.arange(1, n_items + 1) ** skew)[rng.permutation(n_items)]
        is_liked = rng.integers(8, size=n_users)[:, None] == rng.integers(8, size=n_items)
        self.taste = np.log(popularity * np.where(is_liked, 12.0, 1.0)) + rng.normal(size=is_liked.shape)
        order = np.argsort(-(self.taste + rng.gumbel(size=is_liked.shape)), axis=1)
        self.train, self.truth = self.frame(order[:, :10]), self.frame(order[:, 10:13])
        self.had = order[:, :10]
        self.popularity = np.tile(popularity, (n_users, 1))
        self.model = self.taste + 0.3 * rng.gumbel(size=is_liked.shape)

    def frame(self, rows) -> pd.DataFrame:
        users = np.repeat(np.arange(self.n_users), [len(row) for row in rows])
        return frame(users + 1, np.concatenate([np.asarray(row) for row in rows]) + 1)

    def lists(self, scores, k: int = 20, *, seen: bool = False) -> pd.DataFrame:
        """The k best of every user, without what they had."""
        scores, k = scores.copy(), min(k, self.n_items)
        if not seen:
            np.put_along_axis(scores, self.had, -np.inf, axis=1)
        table = self.frame(np.argsort(-scores, axis=1, kind="stable")[:, :k])
        return table.assign(score=-1.0 * np.tile(np.arange(k), self.n_users))

    @property
    def good(self) -> pd.DataFrame:
        return self.lists(self.model)

    def random(self) -> np.ndarray:
        return self.rng.normal(size=self.model.shape)


def _sampled(shop: Shop):
    """Each user's relevant items among 50 others, ranked by the model."""
    drawn = shop.random()
    wanted = shop.truth["item"].to_numpy().reshape(-1, 3) - 1
    np.put_along_axis(drawn, wanted, np.inf, axis=1)
    kept = np.argsort(-drawn, axis=1)[:, :53]
    scores = np.take_along_axis(shop.model, kept, axis=1)
    return shop.frame(np.take_along_axis(kept, np.argsort(-scores, axis=1), axis=1)).assign(
        score=-1.0 * np.tile(np.arange(53), shop.n_users)
    )


def _with_a_hit(shop: Shop):
    lists = shop.lists(shop.random())
    users = lists.merge(shop.truth, on=["user", "item"])["user"].unique()
    return lists[lists["user"].isin(users)], shop.truth[shop.truth["user"].isin(users)]


def _recoded(shop: Shop, column: str):
    codes = shop.rng.permutation(shop.n_items if column == "item" else shop.n_users) + 1
    return shop.good.assign(**{column: codes[shop.good[column] - 1]})


def _other_split(shop: Shop):
    rows = pd.concat([shop.truth, shop.train]).sample(frac=1, random_state=3)
    return rows.groupby("user").head(3)


MISTAKES = {
    "items one lower": ("ids_off_by_one", lambda s: (s.good.assign(item=s.good["item"] - 1), s.truth)),
    "text one higher": (
        "ids_off_by_one",
        lambda s: (s.good.assign(item=(s.good["item"] + 1).astype(str)), s.truth.astype({"item": str})),
    ),
    "reversed": ("worse_than_chance", lambda s: (s.good.assign(score=-s.good["score"]), s.truth)),
    "the worst": ("worse_than_chance", lambda s: (s.lists(-s.taste), s.truth)),
    "truth is train": ("worse_than_chance", lambda s: (s.good, s.train)),
    "items coded anew": ("hits_as_by_chance", lambda s: (_recoded(s, "item"), s.truth)),
    "users coded anew": ("hits_as_by_chance", lambda s: (_recoded(s, "user"), s.truth)),
    "training items": ("training_items_ranked", lambda s: (s.lists(s.model, seen=True), s.truth, s.train)),
    "other split": ("truth_already_seen", lambda s: (s.good, _other_split(s), s.train)),
    "train is the test": ("truth_already_seen", lambda s: (s.good, s.truth, s.truth)),
    "sampled": ("everybody_has_a_hit", lambda s: (_sampled(s), s.truth)),
    "users with a hit": ("everybody_has_a_hit", _with_a_hit),
    "leak": (
        "truth_leads_every_list",
        lambda s: (pd.concat([s.truth.assign(score=9.0), s.good]).drop_duplicates(["user", "item"]), s.truth),
    ),
}


def _repeats(shop: Shop):
    """Half of what is relevant was bought before, and the lists show such items, too."""
    truth = pd.concat([shop.truth, shop.train.groupby("user").head(3)])
    return shop.lists(shop.model, seen=True), truth, shop.train


def _advertised(shop: Shop, share: float):
    """Lists that begin with other items than the model's best."""
    first = shop.lists(shop.random(), int(20 * share))
    lists = pd.concat([first.assign(score=first["score"] + 99), shop.good]).drop_duplicates(["user", "item"])
    return lists.groupby("user").head(20), shop.truth


def _filtered(shop: Shop):
    """Each user can have half of the items, drawn at random, and had no others; lists are cut to them.

    The same data as the model's lists joined with relevant items and a sample of others.
    """
    wanted = shop.good.merge(shop.truth, on=["user", "item"], how="left", indicator=True)["_merge"] == "both"
    return shop.good[wanted.to_numpy() | (shop.rng.random(len(wanted)) < 0.5)], shop.truth


def _lucky(rng, n_users: int = 500, length: int = 20, hit: float = 0.62):
    """Lists whose every fifth has a hit with this chance: a world where nobody misses, and ten are late."""
    places = np.zeros(n_users)
    while places.max() > length or (places > 0.8 * length).sum() < 10:
        places = rng.geometric(1 - (1 - hit) ** (5 / length), size=n_users)
    lists = {u: [*range(u * 100, u * 100 + length)] for u in range(n_users)}
    return lists, {u: [lists[u][place - 1], -u - 1] for u, place in enumerate(places.tolist())}


LEGITIMATE = {
    "good": lambda s: (s.good, s.truth),
    "good, with train": lambda s: (s.good, s.truth, s.train),
    "weak": lambda s: (s.lists(s.taste * 0.4 + s.rng.gumbel(size=s.taste.shape)), s.truth, s.train),
    "random": lambda s: (s.lists(s.random()), s.truth, s.train),
    "random, nothing left out": lambda s: (s.lists(s.random(), seen=True), s.truth),
    "popular": lambda s: (s.lists(s.popularity), s.truth, s.train),
    "popular, the same for all": lambda s: (s.lists(s.popularity, seen=True), s.truth),
    "cold items": lambda s: (
        s.good,
        s.truth.assign(item=s.truth["item"].where(s.rng.random(len(s.truth)) < 0.5, s.truth["item"] + 1000)),
        s.train,
    ),
    "repeat purchases": _repeats,
    "all items": lambda s: (s.lists(s.model, s.n_items, seen=True), s.truth),
    "100 of 200": lambda s: (s.lists(s.model, 100), s.truth),
    "graded": lambda s: (s.good, s.truth.assign(grade=s.rng.integers(1, 4, len(s.truth)))),
    "counts": lambda s: (s.good, s.truth.assign(grade=s.rng.geometric(0.5, len(s.truth)))),
    "leave one out": lambda s: (s.good, s.truth.groupby("user").head(1)),
    "unequal lengths": lambda s: (s.good.sample(frac=0.7, random_state=1), s.truth),
    "one user too many": lambda s: (s.good, s.truth[s.truth["user"] != 5]),
    "rare items only": lambda s: (
        s.lists(s.model - 99 * (s.popularity > np.median(s.popularity))),
        s.truth,
    ),
    "advertised items first": lambda s: _advertised(s, 0.2),
    "half advertised": lambda s: _advertised(s, 0.5),
    "what was seen first": lambda s: (s.lists(s.taste, seen=True), s.truth),
    "half of the items available": _filtered,
    "new items only": lambda s: (s.lists(s.random() + 99 * (np.arange(s.n_items) % 5 == 0)), s.truth),
}


def _cautions_of(lists, truth, train=None):
    return recsys.evaluate(lists, truth, ["ndcg@5", "recall@5"], train=train).cautions


class TestChance:
    """Rules that rest on chance: they speak of mistakes and not of what is as it should be."""

    @pytest.mark.parametrize("seed", range(3))
    @pytest.mark.parametrize("mistake", MISTAKES)
    def test_a_mistake_is_noticed(self, mistake, seed):
        code, make = MISTAKES[mistake]
        assert [caution.code for caution in _cautions_of(*make(Shop(seed, n_users=1000)))] == [code]

    @pytest.mark.parametrize("seed", range(4))
    def test_the_worst_of_a_weak_model_are_noticed_where_they_find_nothing(self, seed):
        shop = Shop(seed, n_users=1000, n_items=1000, skew=1.0)
        weak = 0.4 * shop.taste + shop.rng.gumbel(size=shop.taste.shape)
        assert [c.code for c in _cautions_of(shop.lists(-weak), shop.truth)] == ["worse_than_chance"]
        assert _cautions_of(shop.lists(weak), shop.truth) == ()

    @pytest.mark.parametrize("skew", [0.5, 1.0])
    @pytest.mark.parametrize("seed", range(3))
    def test_the_reverse_order_of_a_weak_model_is_noticed(self, seed, skew):
        shop = Shop(seed, n_users=1000, skew=skew)
        lists = shop.lists(1.2 * shop.taste + shop.rng.gumbel(size=shop.taste.shape))
        (caution,) = _cautions_of(lists.assign(score=-lists["score"]), shop.truth)
        last, before = (
            int(text.replace(",", "")) for text in re.findall(r"[\d,]+(?= in the)", caution.sentence)
        )
        place = 20 + lists.merge(shop.truth, on=["user", "item"])["score"]  # 1 to 20, from the end
        assert (last, before) == ((place > 10).sum(), (place <= 10).sum())
        assert _cautions_of(lists, shop.truth) == ()

    @pytest.mark.parametrize("seed", range(5))
    def test_a_world_in_which_nobody_happens_to_miss_is_not_a_selection(self, seed):
        lists, truth = _lucky(np.random.default_rng(seed))
        assert recsys.evaluate(lists, truth, ["recall@20"]).cautions == ()

    def test_a_model_may_find_everybody_right_after_what_is_advertised(self):
        places = [*range(1, 11)] * 24 + [11] * 120 + [13] * 40
        lists = {u: [*range(u * 100, u * 100 + 20)] for u in range(400)}
        truth = {u: [u * 100 + place - 1, -u - 1] for u, place in enumerate(places)}
        assert recsys.evaluate(lists, truth, ["recall@20"]).cautions == ()

    @pytest.mark.parametrize("seed", range(5))
    def test_random_lists_of_most_items_may_miss_nobody(self, seed):
        rng = np.random.default_rng(seed)
        places = np.full((1, 2), 40)
        while places.min(axis=1).max() >= 34:
            places = rng.random((400, 40)).argsort(axis=1)[:, :3]
        lists = {u: [(u + j) % 40 for j in range(34)] for u in range(400)}
        truth = {u: [(u + place) % 40 for place in of_user] for u, of_user in enumerate(places.tolist())}
        assert recsys.evaluate(lists, truth, ["recall@20"]).cautions == ()

    def test_the_users_of_a_model_that_misses_nobody_are_all_users(self):
        shop = Shop(1, n_items=100)
        lists = shop.lists(shop.taste, 40)
        found = lists.merge(shop.truth, on=["user", "item"])["user"].unique()
        assert len(found) == shop.n_users  # to keep users with a hit changes nothing that could be noticed
        assert _cautions_of(lists, shop.truth) == ()

    @pytest.mark.parametrize(
        "world",
        [{}, {"skew": 0.0}, {"n_items": 60, "skew": 1.0}, {"n_users": 120}, {"n_items": 1000, "skew": 1.0}],
    )
    @pytest.mark.parametrize("setup", LEGITIMATE)
    def test_what_is_as_it_should_be_is_not(self, setup, world):
        for seed in range(10, 12):
            assert _cautions_of(*LEGITIMATE[setup](Shop(seed, **world))) == ()

    @pytest.mark.parametrize(
        "mistake", ["items one lower", "reversed", "items coded anew", "sampled", "leak"]
    )
    def test_nothing_is_said_of_few_users(self, mistake):
        code, make = MISTAKES[mistake]
        assert code not in {caution.code for caution in _cautions_of(*make(Shop(1, n_users=90)))}

    def test_one_user_in_so_many_is_looked_at(self):
        shop = Shop(5, n_users=4500, n_items=100)
        shifted = shop.good.assign(item=shop.good["item"] - 1)
        (caution,) = _cautions_of(shifted, shop.truth)
        assert caution.code == "ids_off_by_one"
        n_hits = len(shop.good.merge(shop.truth, on=["user", "item"]))
        n_said = int(caution.sentence.split(" and ")[1].split()[0].replace(",", ""))
        assert 0.25 * n_hits < n_said < 0.45 * n_hits  # every third user

    def test_a_caution_that_explains_another_silences_it(self):
        shop = Shop(2)
        result = recsys.evaluate(
            shop.lists(shop.model, seen=True).groupby("user").head(5), shop.truth, ["mrr"], train=shop.train
        )
        assert codes(result) == ["training_items_ranked"]

    def test_lists_that_end_with_their_hit_are_no_order_in_reverse(self):
        lengths = np.random.default_rng(1).integers(1, 11, size=1000)
        lists = {u: [*range(-n, 0), u] for u, n in enumerate(lengths.tolist())}
        assert recsys.evaluate(lists, {u: [u] for u in lists}, ["ndcg@10"]).cautions == ()

    def test_a_rank_in_the_wrong_direction(self):
        shop = Shop(3, n_users=1000)
        ranks = shop.good.assign(rank=20 + shop.good["score"].astype(int))[["user", "item", "rank"]]
        assert [c.code for c in _cautions_of(ranks, shop.truth)] == ["worse_than_chance"]


def test_swapped_tables_without_ratings_are_noticed():
    lists = frame(np.repeat(np.arange(20), 3), np.tile([0, 7, 9], 20))
    truth = frame(
        np.repeat(np.arange(20), 10), np.tile(np.arange(10), 20), score=np.tile(np.arange(10.0, 0.0, -1), 20)
    )
    result = recsys.evaluate(lists, truth, ["ndcg@3"])
    assert "lists_and_truth_swapped" in codes(result)
    assert "neither score nor rank" in str(result)
