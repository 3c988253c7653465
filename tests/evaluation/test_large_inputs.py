"""Inputs large enough for the fast paths give the results of the plain definitions, written in Python."""

import json
from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import recsys
from recsys.errors import FileError
from recsys.evaluation.results import Evaluation
from recsys.inputs import read_interactions, read_lists
from recsys.inputs.files import read_file
from recsys.inputs.ids import encode_ints
from recsys.ranks.sources.candidate_sets import Candidates

N_ROWS = 70_000  # beyond every limit below which inputs take the simple path


def _lists(data):
    items = data.items.values[data.codes].tolist()
    ends = data.indptr.tolist()
    return {user: items[ends[i] : ends[i + 1]] for i, user in enumerate(data.cases.values.tolist())}


def _table(seed=0, n_users=9000, n_items=700):
    """Rows in no order; lists of all lengths, scores with ties."""
    rng = np.random.default_rng(seed)
    pairs = rng.permutation(n_users * n_items)[:N_ROWS]
    return pd.DataFrame({
        "user": pairs // n_items, "item": pairs % n_items, "score": rng.integers(0, 9, N_ROWS) / 4
    })  # fmt: skip


def test_lists_of_any_length_go_by_score_and_equal_scores_as_given():
    table = _table()
    wanted = {}
    for user, item, score in table.itertuples(index=False):
        wanted.setdefault(user, []).append((item, score))
    made = {user: [item for item, _ in sorted(rows, key=lambda r: -r[1])] for user, rows in wanted.items()}
    assert _lists(read_lists(table)) == made


@pytest.mark.parametrize("grouped", [False, True])
def test_repeated_rows_keep_the_highest_grade_and_the_first_time(grouped):
    rng = np.random.default_rng(1)
    table = pd.DataFrame({
        "user": rng.integers(0, 3000, N_ROWS), "item": rng.integers(0, 60, N_ROWS),
        "rating": rng.integers(0, 6, N_ROWS), "timestamp": np.arange(N_ROWS),
    })  # fmt: skip
    table = table.sort_values("user", kind="stable") if grouped else table
    best, first, times = {}, {}, Counter()
    for user, item, rating, time in table.itertuples(index=False):
        best[user, item] = max(rating, best.get((user, item), 0))
        first.setdefault((user, item), time)
        times[user, item] += 1
    made = read_interactions(table)
    case = made.cases.values[np.repeat(np.arange(len(made.cases)), made.sizes)].tolist()
    keys = list(zip(case, made.items.values[made.codes].tolist(), strict=True))
    assert keys == sorted(best)
    assert made.grades.tolist() == [best[key] for key in keys]
    assert made.times.tolist() == [first[key] for key in keys]
    assert made.counts.tolist() == [times[key] for key in keys]
    assert made.facts.repeated_rows == N_ROWS - len(keys)
    assert made.item_counts.tolist() == np.bincount(made.codes, minlength=len(made.items)).tolist()


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_categories_are_the_text_they_stand_for(kind):
    plain = _table().assign(user=lambda t: "u" + t.user.astype(str), item=lambda t: "é" + t.item.astype(str))
    labels = ["nobody", *sorted(set(plain.user), key=lambda u: u[::-1])]  # one that does not occur, no order
    coded = plain.assign(
        user=pd.Categorical(plain.user, categories=labels), item=plain.item.astype("category")
    )
    table = {"pandas": coded, "polars": pl.from_pandas(coded), "arrow": pa.Table.from_pandas(coded)}[kind]
    assert _lists(read_lists(table)) == _lists(read_lists(plain))


def test_whole_numbers_far_apart_are_coded_in_their_order():
    values = np.random.default_rng(2).integers(-(2**62), 2**62, 2000)[
        np.random.default_rng(3).integers(0, 2000, 200_000)
    ]
    ids, codes = encode_ints(values)
    distinct, back = np.unique(values, return_inverse=True)
    assert ids.values.tolist() == distinct.tolist()
    assert codes.tolist() == back.tolist()


def test_groups_of_users_with_text_ids():
    rng = np.random.default_rng(4)
    users = [f"u{n}" for n in range(500)]
    group = dict(zip(users, rng.choice(["a", "b", "c"], 500).tolist(), strict=True))
    lists = {u: rng.permutation(30)[:5].tolist() for u in users}
    result = recsys.evaluate(lists, {u: [1, 2] for u in users}, ["hit@5", "coverage@5"], by=group)
    for group_key, mask in result.group_masks.items():
        label = group_key.label
        inside = [u for u in users if group[u] == label]
        assert sorted(inside) == result.per_case.ids[mask].tolist()
        hits = [bool({1, 2} & set(lists[u])) for u in inside]
        assert result.by[label]["hit@5"] == pytest.approx(np.mean(hits), abs=1e-12)
        shown = {item for u in inside for item in lists[u]}
        assert result.by[label]["coverage@5"] == len(shown) / 30
    fewer = recsys.evaluate({u: lists[u] for u in users[3:]}, {u: [1] for u in users[3:]}, ["hit@5"])
    assert "different users: 3 only in the first result, 0 only in the second" in str(
        recsys.explain(result, fewer)
    )


def test_many_small_batches_add_up_to_one():
    rng = np.random.default_rng(5)
    lists = {f"u{n}": [f"i{i}" for i in rng.permutation(400)[:6]] for n in range(300)}
    truth = {u: [f"i{i}" for i in rng.integers(0, 400, 3)] for u in lists}
    metrics = ["ndcg@5", "coverage@5", "gini@5", "entropy@5"]
    evaluator = recsys.Evaluator(metrics)
    for user, shown in lists.items():  # one batch per user: each knows a handful of items
        evaluator.update({user: shown}, {user: truth[user]})
    whole, parts = recsys.evaluate(lists, truth, metrics), evaluator.result()
    assert dict(parts) == dict(whole)
    key = next(iter(whole.partial.exposure))
    mine, theirs = parts.partial.exposure[key], whole.partial.exposure[key]
    made, wanted = (
        Counter(dict(zip(e.items.values.tolist(), e.total.tolist(), strict=True))) for e in (mine, theirs)
    )
    assert +made == +wanted  # items that were never shown may be unknown to the parts


@pytest.mark.parametrize("quotes", ["none", "header", "text", "all"])
def test_quotes_do_not_change_what_a_file_says(tmp_path, quotes):
    table = _table().assign(user=lambda t: "u" + t.user.astype(str))
    mark = {"none": ("", ""), "header": ("", ""), "text": ('"', ""), "all": ('"', '"')}[quotes]
    names = ["user", "item", "score"] if quotes == "none" else ['"user"', '"item"', '"score"']
    rows = (f"{mark[0]}{u}{mark[0]},{mark[1]}{i}{mark[1]},{s}" for u, i, s in table.itertuples(index=False))
    (tmp_path / "lists.csv").write_text("\n".join([",".join(names), *rows]) + "\n", encoding="utf-8")
    assert _lists(read_file(tmp_path / "lists.csv")) == _lists(read_lists(table.astype({"item": str})))


@pytest.mark.parametrize(
    ("line", "says"), [('"a"b,c,1', "line 70002"), ('"a","c"', "2 columns"), ("a,c,one", "is not a number")]
)
def test_a_wrong_line_far_into_a_quoted_file_is_named(tmp_path, line, says):
    rows = [f'"u{n}","i",{n}' for n in range(N_ROWS)]
    (tmp_path / "lists.csv").write_text("\n".join(['"user","item","score"', *rows, line]), encoding="utf-8")
    with pytest.raises(FileError, match=says):
        read_file(tmp_path / "lists.csv")


@pytest.mark.parametrize(("cell", "kind"), [("17", "i"), ("0x11", "O"), ("2020-02-03", "O"), (" 17", "i")])
def test_times_are_whole_numbers_or_stay_text(tmp_path, cell, kind):
    text = "user,item,timestamp\n" + "".join(f"u{n},i{n},{cell}\n" for n in range(N_ROWS))
    (tmp_path / "truth.csv").write_text(text, encoding="utf-8")
    times = read_file(tmp_path / "truth.csv", "truth").times
    assert times.dtype.kind == kind
    assert set(times.tolist()) == {int(cell) if kind == "i" else cell}


def test_stored_whole_numbers_as_text(tmp_path):
    table = _table()
    table.to_parquet(tmp_path / "lists.parquet", index=False)
    assert _lists(read_file(tmp_path / "lists.parquet")) == _lists(
        read_lists(table.assign(user=table.user.astype(str), item=table.item.astype(str)))
    )


def test_json_ids_of_several_kinds_are_looked_at_one_by_one(tmp_path):
    lines = [{"user": 1, "items": [7, "8"]}, {"user": "2", "items": [9, 10]}, {"user": 3, "items": []}]
    (tmp_path / "lists.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    assert _lists(read_file(tmp_path / "lists.jsonl")) == {"1": ["7", "8"], "2": ["9", "10"], "3": []}
    assert _lists(read_file(tmp_path / "lists.jsonl", ids="int")) == {1: [7, 8], 2: [9, 10], 3: []}


@pytest.mark.parametrize("most", [12, 10**6, 2**62])
def test_repeated_negatives_in_rows_of_all_lengths(most):
    rng = np.random.default_rng(6)
    rows = [rng.integers(-3, most, rng.integers(0, 9)) for _ in range(300)]
    cases = Candidates.of(np.arange(300), np.zeros(300, dtype=np.int64), rows)
    flat = [(case, item) for case, row in enumerate(rows) for item in row.tolist()]
    again = [at for at, pair in enumerate(flat) if pair in flat[:at]]
    assert cases.repeats.tolist() == again


def test_ratings_and_times_of_seen_items_are_not_read():
    lists, truth = {u: [1, 2, 3] for u in range(5)}, {u: [1, u + 2] for u in range(5)}
    seen = pd.DataFrame({"user": [0, 1, 1], "item": [1, 3, 1]})
    more = seen.assign(rating=[-1.0, np.nan, 2.0], timestamp=["x", "y", "z"])
    plain = recsys.evaluate(lists, truth, ["recall@3"], seen=seen)
    assert dict(recsys.evaluate(lists, truth, ["recall@3"], seen=more)) == dict(plain)
    assert plain.counts["seen_truth"] == 3


def test_a_report_works_each_interval_out_once(tmp_path, monkeypatch):
    asked = Counter()
    original = Evaluation.intervals

    def counted(self, *args, **choices):
        asked.update(choices.get("metrics") or ())
        return original(self, *args, **choices)

    monkeypatch.setattr(Evaluation, "intervals", counted)
    lists, truth = {u: [u, u + 1] for u in range(40)}, {u: [u + u % 2] for u in range(40)}
    recsys.evaluate(lists, truth, ["ndcg@1", "ndcg@2", "gini@2"]).report(tmp_path / "page.html")
    assert asked == Counter({"ndcg@1": 1, "ndcg@2": 1, "gini@2": 1})
