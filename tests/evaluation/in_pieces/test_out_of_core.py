"""Beyond memory every number has the bits of one call in memory, whatever the cut and wherever it stopped."""

from __future__ import annotations

import builtins
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import recsys
from recsys.errors import (
    ColumnError,
    FileError,
    IdTypeError,
    InputError,
    MissingExtraError,
    NoRowsError,
    NotDefinedError,
    RecsysError,
)
from recsys.evaluation.files.digests import digest
from recsys.evaluation.in_pieces import checkpoints, out_of_core
from recsys.evaluation.in_pieces.checkpoints import Storage
from recsys.metrics.registry import METRICS
from worlds.lists import World, known_of
from worlds.processes import large_tables, run_python

duckdb = pytest.importorskip("duckdb")
# The worlds are full of ties, and too small for some methods.
pytestmark = pytest.mark.filterwarnings("ignore::recsys.errors.RecsysWarning")

N_USERS, N_ITEMS, K = 40, 12, 3
BROAD = ["recall@3", "ndcg@3", "map@3", "mrr", "hit@1", "precision@3", "f1@3", "err@3"]
OF_ALL = ["coverage@3", "gini@3", "distinct_items@3", "personalisation@3"]
BIG = "64GB"  # no test below is about the limit unless it says so


@pytest.fixture
def pieces_of(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Pieces of about so many rows, read by filtered scans or from folders of ranges."""

    def cut(n_rows: int, *, folders: bool = False, users: int = 7) -> None:
        # What is left for pieces is asked without a least size; DuckDB takes its part of the rest.
        monkeypatch.setattr(Storage, "left", lambda _, needed=1, *__: 1 << 30 if needed else n_rows)
        for name in ("_SHARE_OF_PIECE", "_BYTES_PER_ROW", "_BYTES_PER_TEXT_ROW"):
            monkeypatch.setattr(out_of_core, name, 1)
        monkeypatch.setattr(out_of_core, "_FEW_SCANS", 1 if folders else 10**6)
        monkeypatch.setattr(out_of_core, "_PIECE_USERS", users)

    return cut


@pytest.fixture(autouse=True)
def nothing_is_left(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Spill and hidden folders are gone, whatever happened."""
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    yield
    left = [path for path in tmp_path.rglob("*") if path.name.startswith(".") or path.name == "spill"]
    assert not left
    assert not any(place.iterdir())


def small_world(*, text: bool = False) -> World:
    """Every list ranks all items; some users have no list, some no truth, one has all its items."""
    rng = np.random.default_rng(5)
    user = (lambda at: f"u{at}") if text else (lambda at: 3 * at - 20)
    item = (lambda at: f"i'{at}é") if text else (lambda at: 100 + at)
    users, items = [user(at) for at in range(N_USERS)], [item(at) for at in range(N_ITEMS)]
    lists = {u: [items[at] for at in rng.permutation(N_ITEMS)] for n, u in enumerate(users) if n % 9 != 4}
    truth = {
        u: {items[at]: float(rng.integers(0, 4)) for at in rng.permutation(N_ITEMS)[: 1 + n % 5]}
        for n, u in enumerate(users)
        if n % 7 != 3
    }
    weights = {u: float(rng.integers(1, 4)) for u in users}
    clusters = {u: users[n // 3] for n, u in enumerate(users)}
    return World(lists, truth, K, items, weights, dict.fromkeys(items, 1.0), clusters)


def tables(world: World) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Lists and truth in no order."""
    lists = pd.DataFrame(world.list_rows(), columns=["user", "item", "rank"])
    truth = pd.DataFrame(world.truth_rows(), columns=["user", "item", "grade"])
    return lists.sample(frac=1, random_state=1), truth.sample(frac=1, random_state=2)


def written(folder: Path, form: str = "parquet", *, text: bool = False, n_files: int = 3) -> tuple[str, str]:
    """Globs of lists and truth, each dealt to some files."""
    for name, table in zip(("lists", "truth"), tables(small_world(text=text)), strict=True):
        (folder / name).mkdir(parents=True)
        for number in range(n_files):
            part = table.iloc[number::n_files]
            if form == "parquet":
                part.to_parquet(folder / name / f"{number}.parquet", index=False)
            else:
                part.to_csv(folder / name / f"{number}.csv", index=False)
    return str(folder / "lists" / f"*.{form}"), str(folder / "truth" / f"*.{form}")


def assert_same(found: Any, whole: Any, *, per_user: bool = True) -> None:
    """The same bits of every number, overall, by group and per user, the same counts and the same hash."""
    assert [(name, value.hex()) for name, value in found.items()] == [
        (name, value.hex()) for name, value in whole.items()
    ]
    assert dict(found.counts) == dict(whole.counts)
    assert repr(found.by) == repr(whole.by)
    assert found.by_sizes == whole.by_sizes
    assert found.n_cases == whole.n_cases
    assert found.conventions == whole.conventions
    assert json.loads(found.to_json())["sha256"] == json.loads(whole.to_json())["sha256"]
    if not per_user:
        return
    one, other = found.per_case, whole.per_case
    assert one.ids.tolist() == other.ids.tolist()
    assert list(one.columns) == list(other.columns)
    for name in other.columns:
        assert one.columns[name].tobytes() == other.columns[name].tobytes(), name
    for name, terms in whole.partial.terms.items():
        for term, same in zip(terms, found.partial.terms[name], strict=True):
            assert term.tobytes() == same.tobytes(), name
    for column in ("clusters", "weights"):
        same, expected = getattr(one, column), getattr(other, column)
        assert (same is None) == (expected is None)
        assert same is None or same.tolist() == expected.tolist()
    assert found.truth_keys.tolist() == whole.truth_keys.tolist()


def all_requests() -> list[str]:
    return [name if metric.at_k == "never" else f"{name}@{K}" for name, metric in METRICS.items()]


# ---- every metric, every kind of input


@pytest.mark.parametrize("folders", [False, True], ids=["scans", "folders"])
@pytest.mark.parametrize("text", [False, True], ids=["numbers", "text"])
def test_every_metric_has_the_bits_of_one_call_in_memory(tmp_path, pieces_of, text, folders):
    world = small_world(text=text)
    known = known_of(world)
    worth = {item: float(len(kind)) for item, kind in known.kinds.items()}
    asked = {
        "metrics": all_requests(),
        "full_ranking": True,
        "ids": "auto",
        **known.keywords(),
        "items": {"worth": worth},
        "intents": "worth",
        "catalogue": world.catalogue,
    }
    lists, truth = written(tmp_path / "data", text=text)
    whole = recsys.evaluate(lists, truth, **asked)
    pieces_of(90, folders=folders)
    found = recsys.evaluate(lists, truth, **asked, memory=BIG, per_user=tmp_path / "out")
    assert len(list((tmp_path / "out").glob("*.parquet"))) > 4
    assert_same(found, whole)
    assert_same(recsys.load(tmp_path / "out"), whole)
    assert found.notes["ids"] == whole.notes["ids"]
    frame, expected = found.intervals().to_frame(), whole.intervals().to_frame()
    assert frame["interval"].tolist() == expected["interval"].tolist()
    np.testing.assert_allclose(frame["standard_error"], expected["standard_error"], rtol=1e-12, atol=1e-16)
    np.testing.assert_allclose(frame["low"], expected["low"], rtol=1e-9, atol=1e-9)


def test_presets_change_what_they_change_in_memory(tmp_path, pieces_of):
    lists, truth = written(tmp_path / "data")
    for preset in ("trec_eval", "rectools", {"average": "pooled", "f1_of": "means", "no_list": "skip"}):
        asked = {"metrics": BROAD, "conventions": preset, "ids": "auto"}
        whole = recsys.evaluate(lists, truth, **asked)
        with pytest.MonkeyPatch.context():
            pieces_of(120)
            found = recsys.evaluate(lists, truth, **asked, memory=BIG, per_user=tmp_path / "out")
        assert_same(found, whole)


@pytest.mark.parametrize("folders", [False, True], ids=["scans", "folders"])
def test_lists_without_their_unjudged_items(tmp_path, pieces_of, folders):
    """A judged item below k of its list may be among the first k judged ones: nothing is cut at k before."""
    model = recsys.Scores(np.random.default_rng(2).random((30, 20)))
    graded = {user: {(3 * user) % 20: 1, (3 * user + 7) % 20: 0} for user in range(30)}
    for (lists, truth), n_rows in ((written(tmp_path / "data"), 120), ((model, graded), 1 << 30)):
        pieces_of(n_rows, folders=folders)
        asked = ["ndcg@2", "ndcg(judged_only=yes)@2", "mrr(judged_only=yes)@1", "coverage(judged_only=yes)@1"]
        whole = recsys.evaluate(lists, truth, asked, ids="auto")
        assert whole["ndcg@2"] != whole["ndcg(judged_only=yes)@2"]
        found = recsys.evaluate(lists, truth, asked, ids="auto", memory=BIG, per_user=tmp_path / "out")
        assert_same(found, whole)
        rules = {"judged_only": "yes"}
        whole = recsys.evaluate(lists, truth, BROAD, ids="auto", conventions=rules)
        assert_same(
            recsys.evaluate(lists, truth, BROAD, ids="auto", conventions=rules, memory=BIG),
            whole,
            per_user=False,
        )


def containers(folder: Path, lists: pd.DataFrame, truth: pd.DataFrame) -> dict[str, Callable[[], Any]]:
    """Lists and truth in everything that may hold them."""
    lists.to_parquet(folder / "lists.parquet", index=False)
    truth.to_parquet(folder / "truth.parquet", index=False)
    connection = duckdb.connect()
    paths = folder / "lists.parquet", folder / "truth.parquet"
    return {
        "path": lambda: paths,
        "relation": lambda: tuple(connection.read_parquet(str(path)) for path in paths),
        "query": lambda: tuple(f"SELECT * FROM '{path}'" for path in paths),  # noqa: S608
        "query with": lambda: tuple(f" with t as (from '{path}')\nselect * from t" for path in paths),
        "pandas": lambda: (lists, truth),
        "polars": lambda: (pl.from_pandas(lists), pl.from_pandas(truth)),
        "Arrow": lambda: (pa.table(lists), pa.table(truth)),
        "mixed": lambda: (paths[0], pl.from_pandas(truth)),
    }


@pytest.mark.parametrize("text", [False, True], ids=["numbers", "text"])
def test_tables_queries_and_relations_are_alike(tmp_path, pieces_of, text):
    lists, truth = tables(small_world(text=text))
    whole = recsys.evaluate(lists, truth, BROAD)
    pieces_of(200)
    for name, make in containers(tmp_path, lists, truth).items():
        found = recsys.evaluate(*make(), BROAD, memory=BIG)
        assert_same(found, whole, per_user=False)
        assert found.notes["ids"] == whole.notes["ids"], name


@pytest.mark.parametrize("ids", ["auto", "str", "int", None])
@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_ids_are_read_as_in_memory(tmp_path, pieces_of, ids, form):
    lists, truth = written(tmp_path / "data", form)
    pieces_of(150)
    found = recsys.evaluate(lists, truth, BROAD, ids=ids, memory=BIG, per_user=tmp_path / "out")
    whole = recsys.evaluate(lists, truth, BROAD, ids=ids or "auto")
    assert_same(found, whole)
    kind = "int" if ids == "int" or (form == "parquet" and ids in ("auto", None)) else "str"
    assert found.notes["ids"] == whole.notes["ids"] == {"user": kind, "item": kind}


@pytest.mark.parametrize(
    "kind",
    [
        "INTEGER",
        "UTINYINT",
        "UBIGINT",
        "HUGEINT",
        "DOUBLE",
        "UUID",
        "DATE",
        "BOOLEAN",
        "DECIMAL(9,0)",
        "BLOB",
    ],
)
def test_user_ids_of_other_types_are_taken_or_refused_as_in_memory(tmp_path, pieces_of, kind):
    make = {
        "UUID": "('00000000-0000-0000-0000-0000000000' || (10 + u))::uuid",
        "DATE": "date '2020-01-01' + u::int",
        "BOOLEAN": "u % 2 = 0",
        "BLOB": "encode('b' || u)",
    }.get(kind, f"u::{kind}")
    source = f"select {make} as user, i as item, i + 1 as rank from range(30) a(u), range(4) b(i)"  # noqa: S608
    if kind == "BOOLEAN":
        source = f"select distinct on (user, item) * from ({source})"  # noqa: S608
    connection = duckdb.connect()
    for name in ("lists", "truth"):
        drop = "" if name == "lists" else " where item % 3 = 1"
        connection.sql(f"select * from ({source}){drop}").write_parquet(str(tmp_path / f"{name}.parquet"))  # noqa: S608
    paths = str(tmp_path / "lists.parquet"), str(tmp_path / "truth.parquet")
    outcomes = []
    for more in ({"memory": BIG}, {}):
        if more:
            pieces_of(40)
        try:
            outcome: Any = recsys.evaluate(*paths, ["recall@2", "mrr"], ids="auto", **more)
            outcome = (dict(outcome), outcome.notes["ids"])
        except RecsysError as error:
            outcome = type(error)
        outcomes.append(outcome)
    assert outcomes[0] == outcomes[1]


def test_users_of_different_types_are_matched_or_refused_as_in_memory(tmp_path, pieces_of):
    lists, truth = tables(small_world())
    pieces_of(90)
    for kind in ("int32", "float64"):
        lists.astype({"user": kind}).to_parquet(tmp_path / "lists.parquet")
        truth.to_parquet(tmp_path / "truth.parquet")
        paths = str(tmp_path / "lists.parquet"), str(tmp_path / "truth.parquet")
        assert_same_with(tmp_path, *paths, BROAD)
        assert json.loads((tmp_path / "out" / "manifest.json").read_text())["sorted"] is True
    lists.astype({"user": str}).to_parquet(tmp_path / "lists.parquet")
    with pytest.raises(IdTypeError, match=r"the user ids are str in one table .* and int in the other"):
        recsys.evaluate(*paths, BROAD, memory=BIG)


# ---- every option


def assert_same_with(tmp_path: Path, lists: Any, truth: Any, metrics: list[str], **asked: Any) -> Any:
    whole = recsys.evaluate(lists, truth, metrics, ids="auto", **asked)
    found = recsys.evaluate(lists, truth, metrics, ids="auto", **asked, memory=BIG, per_user=tmp_path / "out")
    assert_same(found, whole)
    assert [one.code for one in found.cautions] == [one.code for one in whole.cautions]
    return found


@pytest.mark.parametrize("folders", [False, True], ids=["scans", "folders"])
def test_groups_histories_weights_and_clusters(tmp_path, pieces_of, folders):
    world = small_world()
    lists, truth = written(tmp_path / "data")
    train = {user: world.catalogue[: 1 + at % 8] for at, user in enumerate(world.cases)}
    seen = pd.DataFrame([(u, i) for u, had in train.items() for i in had[:2]], columns=["user", "item"])
    seen.to_parquet(tmp_path / "seen.parquet")
    groups = {user: "abc"[at % 3] for at, user in enumerate(world.cases)}
    kinds = {item: "xy"[at % 2] for at, item in enumerate(world.catalogue)}
    pieces_of(130, folders=folders)
    for asked in (
        {"by": groups},
        {"by": lambda user: user % 2, "catalogue": world.catalogue},
        {"by": "activity", "train": train},
        {"by": "popularity", "train": train},
        {"by": "popularity", "train": str(tmp_path / "seen.parquet")},
        {"by": "kind", "items": {"kind": kinds}, "catalogue": 500},
        {"seen": str(tmp_path / "seen.parquet"), "conventions": {"seen_truth": "drop"}},
        {"case_weights": world.case_weights, "by": groups},
        {"clusters": world.clusters},
    ):
        found = assert_same_with(tmp_path, lists, truth, [*BROAD, *OF_ALL], **asked)
        assert ("by" in asked) == bool(found.by)


def test_eligible_items_are_cut_with_their_users(tmp_path, pieces_of):
    world = small_world()
    lists, truth = written(tmp_path / "data")
    allowed = [(u, i) for n, u in enumerate(world.cases) for i in world.catalogue[n % 4 :]]
    pd.DataFrame(allowed, columns=["user", "item"]).to_parquet(tmp_path / "eligible.parquet")
    needs = [name for name, metric in METRICS.items() if "eligible" in metric.needs]
    pieces_of(130)
    for name in needs:
        request = name if METRICS[name].at_k == "never" else f"{name}@3"
        assert_same_with(tmp_path, lists, truth, [request], eligible=str(tmp_path / "eligible.parquet"))
    with pytest.raises(InputError, match="choose candidates"):
        recsys.evaluate(lists, truth, BROAD, eligible=str(tmp_path / "eligible.parquet"), memory=BIG)


@pytest.mark.parametrize("on", ["both", "truth"])
def test_cases_of_users_stay_together_where_both_tables_name_them(tmp_path, pieces_of, on):
    lists, truth = (table.rename(columns={"user": "case"}) for table in tables(small_world()))
    for table in (lists, truth) if on == "both" else (truth,):
        table["user"] = table["case"] % 11
    if on == "truth":
        lists = lists[lists["case"].isin(truth["case"])]
    lists.to_parquet(tmp_path / "lists.parquet")
    truth.to_parquet(tmp_path / "truth.parquet")
    paths = str(tmp_path / "lists.parquet"), str(tmp_path / "truth.parquet")
    whole = recsys.evaluate(*paths, BROAD, ids="auto")
    pieces_of(130)
    found = recsys.evaluate(*paths, BROAD, ids="auto", memory=BIG, per_user=tmp_path / "out")
    assert_same(found, whole)
    small = recsys.evaluate(*paths, BROAD, ids="auto", memory=BIG)
    assert_same(small, whole, per_user=False)
    if on == "both":
        assert "11 users" in str(small)
        np.testing.assert_allclose(
            small.intervals().to_frame()["standard_error"],
            whole.intervals().to_frame()["standard_error"],
            rtol=1e-12,
        )
    else:
        with pytest.raises(NoRowsError, match="several pieces"):
            small.intervals()
    np.testing.assert_allclose(
        found.intervals().to_frame()["low"], whole.intervals().to_frame()["low"], rtol=1e-9
    )


def test_equal_scores_are_ordered_as_in_memory(tmp_path, pieces_of):
    lists, truth = tables(small_world())
    lists["score"] = (N_ITEMS - lists.pop("rank")) // 4
    lists.to_csv(tmp_path / "lists.csv", index=False)
    truth.to_csv(tmp_path / "truth.csv", index=False)
    pieces_of(130)
    for ties in ("by_id", "by_id_desc", "expected", "best", "worst"):
        metrics = ["recall@3", "mrr@5"] if ties in ("best", "worst") else ["recall@3", "ndcg@3", "mrr@5"]
        found = assert_same_with(
            tmp_path,
            str(tmp_path / "lists.csv"),
            str(tmp_path / "truth.csv"),
            metrics,
            conventions={"ties": ties},
        )
        assert found.counts["tied"]
    given = {"metrics": ["recall@3"], "conventions": {"ties": "given"}, "memory": "8GB"}
    with pytest.raises(InputError, match=r"user .* has equal scores .* and beyond memory .* rows have none"):
        recsys.evaluate(str(tmp_path / "lists.csv"), str(tmp_path / "truth.csv"), **given)
    lists["score"] = lists["score"] + np.arange(len(lists)) / len(lists)
    lists.to_csv(tmp_path / "lists.csv", index=False)
    assert_same_with(
        tmp_path, str(tmp_path / "lists.csv"), str(tmp_path / "truth.csv"), BROAD, conventions="ranx"
    )


def test_notes_warnings_and_cautions_count_all_pieces_and_come_once(tmp_path, pieces_of):
    world = small_world()
    lists, truth = tables(world)
    lists, tied = lists[lists["rank"] != 2], lists.rename(columns={"rank": "score"}).assign(score=1.0)
    truth = truth.astype({"user": float})
    truth.to_parquet(tmp_path / "truth.parquet")
    asked = {"metrics": ["mrr"], "by": {user: "a" if at % 9 else None for at, user in enumerate(world.cases)}}
    pieces_of(130)
    for name, table in {"lists": lists, "tied": tied}.items():
        table.to_parquet(tmp_path / f"{name}.parquet")
        files = str(tmp_path / f"{name}.parquet"), str(tmp_path / "truth.parquet")
        said = []
        for given, memory in (((table, truth), {}), (files, {"memory": BIG})):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                result = recsys.evaluate(*given, **asked, **memory)
            said.append((sorted(str(w.message) for w in caught), result.to_text(), result.cautions))
        assert said[0] == said[1]
        assert [one.code for one in result.cautions] == ["groups_left_out"]
        assert len(said[0][0]) == (2 if name == "tied" else 1)
        assert (f"ranks of {lists['user'].nunique()} users leave" in said[1][1]) == (name == "lists")


def test_one_user_with_most_of_the_rows_is_a_piece_of_its_own(tmp_path, pieces_of):
    world = small_world()
    lists, truth = tables(world)
    one = pd.DataFrame({"user": 1, "item": np.arange(1000, 3000), "rank": np.arange(2000) + 50})
    lists = pd.concat([lists, one]).sample(frac=1, random_state=3)
    lists.to_parquet(tmp_path / "lists.parquet")
    truth.to_parquet(tmp_path / "truth.parquet")
    pieces_of(100, folders=True)
    assert_same_with(tmp_path, str(tmp_path / "lists.parquet"), str(tmp_path / "truth.parquet"), BROAD)
    assert len(list((tmp_path / "out").glob("*.parquet"))) > 3


def test_a_piece_that_came_out_too_large_is_cut_again(tmp_path, pieces_of, monkeypatch):
    lists, truth = written(tmp_path / "data")
    pieces_of(60, folders=True)
    monkeypatch.setattr(out_of_core, "_SAMPLE_ROWS", 20)  # the ranges are far from equal
    cuts: list[Any] = []
    keep_plan = checkpoints.PieceStore.keep_plan
    monkeypatch.setattr(
        checkpoints.PieceStore, "keep_plan", lambda store, **f: (cuts.append(f), keep_plan(store, **f))[1]
    )
    assert_same_with(tmp_path, lists, truth, BROAD)
    assert len(cuts[-1]["edges"]) > len(cuts[-1]["folders"])


def test_awkward_columns_and_ids(tmp_path, pieces_of):
    lists, truth = tables(small_world(text=True))
    for table in (lists, truth):
        table["user"] += "\"'; drop table x; -- 日本\n"
    names = {"user": 'the "user" of', "item": "it'em, id", "rank": "select"}
    lists.rename(columns=names).to_parquet(tmp_path / "lists.parquet")
    truth.to_parquet(tmp_path / "truth.parquet")
    columns = {"lists": names, "truth": {}}
    pieces_of(130, folders=True)
    assert_same_with(
        tmp_path, str(tmp_path / "lists.parquet"), str(tmp_path / "truth.parquet"), BROAD, columns=columns
    )


# ---- errors


def test_what_memory_refuses_is_refused_beyond_it(tmp_path, pieces_of):
    lists, truth = tables(small_world())
    pieces_of(130)

    def outcome(lists: Any, truth: Any, metrics: Any = ("recall@3",), **more: Any) -> Any:
        paths = []
        for name, table in (("lists", lists), ("truth", truth)):
            table.to_parquet(tmp_path / f"{name}.parquet", index=False)
            paths.append(str(tmp_path / f"{name}.parquet"))
        found = []
        for beyond in ({}, {"memory": BIG}):
            with pytest.raises(RecsysError) as caught:
                recsys.evaluate(*paths, list(metrics), ids="auto", **more, **beyond)
            found.append(caught.value)
        return found

    no_user = truth.astype({"user": "Int64"})
    no_user.iloc[3, 0] = pd.NA
    inside, beyond = outcome(lists, no_user)
    assert type(inside) is type(beyond)
    strangers = truth.assign(user=truth["user"] + 10_000)
    inside, beyond = outcome(lists, strangers)
    assert type(inside) is type(beyond) is InputError
    assert str(inside).split("(")[0] == str(beyond).split("(")[0]
    assert "same user ids" in str(beyond)
    for empty in ((lists[:0], truth), (lists, truth[:0]), (lists[:0], truth[:0])):
        inside, beyond = outcome(*empty)
        assert type(inside) is type(beyond) is InputError, (inside, beyond)
    inside, beyond = outcome(lists.rename(columns={"item": "thing"}), truth)
    assert type(inside) is type(beyond) is ColumnError
    assert str(inside).split("[")[0] == str(beyond).split("[")[0]
    inside, beyond = outcome(lists, truth, conventions={"no_list": "error"})
    assert type(inside) is type(beyond) is InputError
    inside, beyond = outcome(lists, truth, ["auc"])
    assert type(inside) is type(beyond)
    inside, beyond = outcome(lists, truth.astype({"item": str}))
    assert type(inside) is type(beyond)
    inside, beyond = outcome(lists, truth, case_weights=dict.fromkeys(range(-20, 100), 0.0))
    assert type(inside) is type(beyond)


def test_an_error_about_a_row_names_its_user_and_item(tmp_path, pieces_of):
    lists, truth = tables(small_world())
    truth.loc[truth.index[7], "grade"] = np.inf
    wrong = truth.loc[truth.index[7]]
    pieces_of(90)
    with pytest.raises(InputError, match=r"the grade inf of user") as caught:
        recsys.evaluate(lists, truth, BROAD[:-1], memory=BIG)
    assert f"user {int(wrong['user'])}, item {int(wrong['item'])}" in str(caught.value)
    (tmp_path / "lists.csv").write_text("user,item,rank\n1,2,one\n")
    with pytest.raises(FileError, match=r"lists\.csv, line 2: the rank 'one'"):
        recsys.evaluate(str(tmp_path / "lists.csv"), truth.astype(str), BROAD, memory=BIG)
    (tmp_path / "lists.csv").write_text("user,item,rank,rank\n1,2,1,2\n")
    with pytest.raises(ColumnError, match="the column 'rank' occurs twice"):
        recsys.evaluate(str(tmp_path / "lists.csv"), truth, BROAD, memory=BIG)


def test_what_cannot_be_beyond_memory_says_so(tmp_path):
    lists, truth = written(tmp_path / "data")
    ask = {"metrics": BROAD, "memory": BIG}
    table, known = tables(small_world())
    with pytest.raises(ColumnError, match=r"no rank and no score.*leave out memory="):
        recsys.evaluate(table[["user", "item"]], known, **ask)
    with pytest.raises(InputError, match="dict, which is in memory already"):
        recsys.evaluate({1: [2]}, truth, **ask)
    with pytest.raises(InputError, match="dict, which is in memory already"):
        recsys.evaluate(lists, {1: [2]}, **ask)
    with pytest.raises(InputError, match="stop_when= draws from all users"):
        recsys.evaluate(lists, truth, stop_when=0.1, **ask)
    for name in ("per_user", "checkpoint"):
        with pytest.raises(InputError, match=f"{name}= is for an evaluation beyond memory"):
            recsys.evaluate(lists, truth, BROAD, **{name: tmp_path / "out"})
        with pytest.raises(InputError, match=f"{name}=3 is not a path"):
            recsys.evaluate(lists, truth, **ask, **{name: 3})
    with pytest.raises(InputError, match="not a size of memory"):
        recsys.evaluate(lists, truth, BROAD, memory="much")
    with pytest.raises(InputError, match="cannot run the query"):
        recsys.evaluate("select * from nothing", truth, **ask)
    with pytest.raises(FileError, match="there is no file"):
        recsys.evaluate(str(tmp_path / "none.parquet"), truth, **ask)
    (tmp_path / "lists.json").write_text('{"1": [2, 3]}')
    with pytest.raises(FileError, match="Parquet and CSV files are read"):
        recsys.evaluate(str(tmp_path / "lists.json"), truth, **ask)
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 and no more PAR1")
    with pytest.raises(FileError):
        recsys.evaluate(str(tmp_path / "broken.parquet"), truth, **ask)


def test_too_little_memory_is_an_error_that_says_how_much(tmp_path):
    lists, truth = written(tmp_path / "data")
    match = r"memory='1MB' is too little: .* needs (\S+) on top of what the process held"
    with pytest.raises(InputError, match=match) as caught:
        recsys.evaluate(lists, truth, BROAD, memory="1MB")
    needed = str(caught.value).split("Write memory='")[1].split("'")[0]
    assert dict(recsys.evaluate(lists, truth, BROAD, memory=needed))


def test_without_duckdb_the_error_names_the_extra(tmp_path, monkeypatch):
    lists, truth = written(tmp_path / "data")
    real = builtins.__import__

    def fake(name: str, *arguments: Any, **more: Any) -> Any:
        if name == "duckdb":
            raise ImportError(name)
        return real(name, *arguments, **more)

    monkeypatch.setattr(builtins, "__import__", fake)
    with pytest.raises(MissingExtraError, match=r"recsys-evaluation\[duckdb\]"):
        recsys.evaluate(lists, truth, BROAD, memory=BIG)


def test_a_metric_whose_summary_is_no_mean_needs_the_rows(tmp_path, pieces_of):
    lists, truth = written(tmp_path / "data")
    pieces_of(130)
    with pytest.raises(NoRowsError, match="gmap@3"):
        recsys.evaluate("nothing.parquet", "nothing.parquet", ["recall@3", "gmap@3"], memory=BIG)
    assert_same_with(tmp_path, lists, truth, ["recall@3", "gmap@3"])
    with pytest.raises(NotDefinedError, match=r"gmap@3.*no values by group"):
        recsys.evaluate(lists, truth, ["gmap@3"], by=len, memory=BIG, per_user=tmp_path / "out")


def test_a_folder_that_holds_something_else_is_left_alone(tmp_path):
    lists, truth = written(tmp_path / "data")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("keep")
    for name in ("per_user", "checkpoint"):
        with pytest.raises(FileError, match=r"notes\.txt"):
            recsys.evaluate(lists, truth, BROAD, memory=BIG, **{name: tmp_path / "mine"})
        assert [file.name for file in (tmp_path / "mine").iterdir()] == ["notes.txt"]
    (tmp_path / "file").write_text("a file")
    for name in ("per_user", "checkpoint"):
        with pytest.raises(FileError, match="file"):
            recsys.evaluate(lists, truth, BROAD, memory=BIG, **{name: tmp_path / "file"})


def test_a_saved_result_finds_its_rows_from_where_it_lies(tmp_path, pieces_of, monkeypatch):
    pieces_of(130)
    lists, truth = written(tmp_path / "data")
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    monkeypatch.chdir(tmp_path)
    results = {}
    for name, metrics in (("a", ["mrr", "hit@3"]), ("b", ["mrr", "hit@2"])):
        results[name] = recsys.evaluate(lists, truth, metrics, memory=BIG, per_user=f"here/rows_{name}")
        results[name].save(f"here/{name}.json", name=name)
    whole = recsys.compare(results)
    monkeypatch.chdir(here)
    assert repr(recsys.compare({"a": "a.json", "b": "b.json"})) == repr(whole)
    monkeypatch.chdir(tmp_path)
    here.rename(there)
    saved = {name: there / f"{name}.json" for name in results}
    assert repr(recsys.compare(saved)) == repr(whole)
    recsys.load(saved["a"]).save(tmp_path / "copy.json")
    assert_same(recsys.load(tmp_path / "copy.json"), recsys.load(saved["a"]))
    (there / "rows_a").rename(tmp_path / "away")
    lost = recsys.load(saved["a"])
    assert dict(lost) == dict(results["a"])
    lost.save(tmp_path / "copy.json")  # where the rows should be is known all the same
    for path in (saved["a"], tmp_path / "copy.json"):
        for call in (lambda p: recsys.load(p).per_user, lambda p: recsys.compare([p, saved["b"]])):
            with pytest.raises(NoRowsError, match=f"their folder {there / 'rows_a'} is not there"):
                call(path)
    shutil.copytree(there / "rows_b", there / "rows_a")
    with pytest.raises(NoRowsError, match=r"rows_a holds another result by now\. Put that folder back"):
        recsys.gate(saved["a"], saved["b"], {"mrr": "5%"})
    (there / "rows_a" / "manifest.json").write_text("{")
    with pytest.raises(NoRowsError, match=r"cannot be used: .*rows_a.* is not a manifest"):
        recsys.compare(saved)
    (tmp_path / "away").rename(there / "again")
    assert_same(recsys.load(there / "again"), recsys.evaluate(lists, truth, ["mrr", "hit@3"], ids="auto"))


def test_a_folder_that_looks_like_a_checkpoint_is_left_alone(tmp_path):
    lists, truth = written(tmp_path / "data")
    for names in (["part-00000.parquet"], ["part-00000.parquet", "plan.json"], ["piece-00000"]):
        folder = tmp_path / "-".join(names)
        folder.mkdir()
        for name in names:
            (folder / name).write_text("{}")
        with pytest.raises(FileError, match="not the folder of a checkpoint"):
            recsys.evaluate(lists, truth, BROAD, memory=BIG, checkpoint=folder)
        assert sorted(file.name for file in folder.iterdir()) == sorted(names)


def test_a_checkpoint_of_nothing_is_removed_and_what_a_killed_process_left_is_taken(tmp_path):
    lists, truth = written(tmp_path / "data")
    folder = tmp_path / "checkpoint"
    with pytest.raises(ColumnError):
        recsys.evaluate(
            tables(small_world())[0][["user", "item"]], truth, BROAD, memory=BIG, checkpoint=folder
        )
    assert not folder.exists()
    folder.mkdir()
    (folder / ".plan.json.0123.part").write_text('{"recsys"')
    assert dict(recsys.evaluate(lists, truth, BROAD, memory=BIG, checkpoint=folder))
    assert not folder.exists()


def test_an_error_in_a_piece_leaves_nothing_behind(tmp_path, pieces_of, monkeypatch):
    lists, truth = written(tmp_path / "data")
    recsys.evaluate(lists, truth, BROAD, memory=BIG, per_user=tmp_path / "out")
    before = sorted((file.name, file.read_bytes()) for file in (tmp_path / "out").iterdir())
    pieces_of(60, folders=True)
    for error in (RuntimeError("no"), KeyboardInterrupt()):
        with stopped_after(3, error), pytest.raises(type(error)):
            recsys.evaluate(lists, truth, BROAD, memory=BIG, per_user=tmp_path / "out")
    assert sorted((file.name, file.read_bytes()) for file in (tmp_path / "out").iterdir()) == before


# ---- stopping and going on


class stopped_after:  # noqa: N801 - reads as a statement
    """The evaluation stops with an error after so many pieces; `added` counts them."""

    def __init__(self, n_pieces: float, error: BaseException | None = None) -> None:
        self.left, self.error, self.added = n_pieces, error or RuntimeError("stopped"), 0

    def __enter__(self) -> Self:
        self.original = checkpoints.PieceStore.add

        def add(store: Any, *arguments: Any, **more: Any) -> None:
            if self.added >= self.left:
                raise self.error
            self.original(store, *arguments, **more)
            self.added += 1

        checkpoints.PieceStore.add = add
        return self

    def __exit__(self, *_: object) -> None:
        checkpoints.PieceStore.add = self.original


def factors() -> tuple[Any, pd.DataFrame]:
    rng = np.random.default_rng(2)
    model = recsys.Factors(rng.standard_normal((60, 4)), rng.standard_normal((30, 4)))
    truth = pd.DataFrame({"user": np.repeat(np.arange(60), 3), "item": rng.integers(0, 30, 180)})
    return model, truth.drop_duplicates()


@pytest.mark.parametrize("how", ["scans", "folders", "model"])
@pytest.mark.parametrize("per_user", [False, True])
def test_a_stopped_evaluation_goes_on_where_it_was(tmp_path, pieces_of, how, per_user):
    asked = {"metrics": [*BROAD, *OF_ALL], "memory": BIG, "ids": "auto"}
    data = factors() if how == "model" else written(tmp_path / "data")
    pieces_of(1 << 30 if how == "model" else 90, folders=how == "folders")
    rows = {"per_user": tmp_path / "whole"} if per_user else {}
    with stopped_after(np.inf) as count:
        whole = recsys.evaluate(*data, **asked, **rows)
    assert count.added > 5
    asked["checkpoint"] = tmp_path / "checkpoint"
    rows = {"per_user": tmp_path / "resumed"} if per_user else {}
    done = 0
    for n_pieces in (2, 0, 1, 2):
        with stopped_after(n_pieces) as stop, pytest.raises(RuntimeError, match="stopped"):
            recsys.evaluate(*data, **asked, **rows)
        done += stop.added
        assert not (tmp_path / "resumed").exists()
    with stopped_after(np.inf) as rest:
        found = recsys.evaluate(*data, **asked, **rows)
    assert done + rest.added == count.added
    assert done == 5
    assert_same(found, whole, per_user=per_user)
    assert found.cautions == whole.cautions
    assert not (tmp_path / "checkpoint").exists()
    if per_user:
        stored = [json.loads((tmp_path / n / "manifest.json").read_text()) for n in ("whole", "resumed")]
        assert stored[0]["content"] == stored[1]["content"]
        recsys.load(tmp_path / "resumed")


def test_a_checkpoint_belongs_to_one_question(tmp_path, pieces_of):
    world = small_world()
    lists, truth = written(tmp_path / "data")
    groups = {user: user % 2 for user in world.cases}
    asked = {"lists": lists, "truth": truth, "metrics": BROAD, "by": groups, "ids": "auto"}
    asked |= {"memory": BIG, "checkpoint": tmp_path / "checkpoint"}
    pieces_of(90)
    with stopped_after(3), pytest.raises(RuntimeError):
        recsys.evaluate(**asked)
    other = pd.read_parquet(tmp_path / "data" / "truth" / "0.parquet")
    other.iloc[0, 2] += 1
    (tmp_path / "other").mkdir()
    other.to_parquet(tmp_path / "other" / "0.parquet", index=False)
    for number in (1, 2):
        (tmp_path / "other" / f"{number}.parquet").write_bytes(
            (tmp_path / "data" / "truth" / f"{number}.parquet").read_bytes()
        )
    for change, name in (
        ({"truth": str(tmp_path / "other" / "*.parquet")}, "truth"),
        ({"metrics": ["recall@3"]}, "metrics"),
        ({"conventions": {"no_list": "skip"}}, "conventions"),
        ({"by": {**groups, world.cases[0]: 7}}, "by"),
        ({"ids": "str"}, "lists"),
        ({"case_weights": world.case_weights}, "case_weights"),
        ({"per_user": tmp_path / "out"}, "per_user"),
    ):
        with pytest.raises(FileError, match=rf"\b{name}\b.* changed since the checkpoint"):
            recsys.evaluate(**(asked | change))
    with stopped_after(np.inf) as rest:  # the cut of rows and the number of threads may change
        pieces_of(300)
        found = recsys.evaluate(**asked, threads=1)
    assert rest.added > 0
    del asked["memory"], asked["checkpoint"]
    assert_same(found, recsys.evaluate(**asked), per_user=False)


def test_the_same_rows_in_other_files_are_the_same_question(tmp_path, pieces_of):
    lists, truth = written(tmp_path / "one")
    others = written(tmp_path / "two", n_files=1)
    pieces_of(90)
    asked = {"metrics": BROAD, "memory": BIG, "checkpoint": tmp_path / "checkpoint"}
    with stopped_after(3), pytest.raises(RuntimeError):
        recsys.evaluate(lists, truth, **asked)
    with stopped_after(np.inf) as rest:
        found = recsys.evaluate(*others, **asked)
    assert_same(found, recsys.evaluate(lists, truth, BROAD, ids="auto"), per_user=False)
    assert rest.added > 1


def test_a_damaged_checkpoint_is_no_result(tmp_path, pieces_of):
    lists, truth = written(tmp_path / "data")
    pieces_of(90)
    asked = {"metrics": BROAD, "memory": BIG, "checkpoint": tmp_path / "checkpoint"}
    with stopped_after(3), pytest.raises(RuntimeError):
        recsys.evaluate(lists, truth, **asked)
    piece = next((tmp_path / "checkpoint").glob("piece-*"))
    good = piece.read_bytes()
    for bad in (good[:-40], b"{}", b"", b'{"piece": "AAAA", "rows": null}'):
        piece.write_bytes(bad)
        with pytest.raises(FileError, match="damaged"):
            recsys.evaluate(lists, truth, **asked)
    plan = tmp_path / "checkpoint" / "plan.json"
    changed = {**json.loads(plan.read_text()), "edges": [0]}
    for bad in ("{", "[" * 100_000, json.dumps(changed)):
        plan.write_text(bad)
        with pytest.raises(FileError, match="damaged"):
            recsys.evaluate(lists, truth, **asked)


def test_a_changed_checkpoint_names_no_file_outside_its_folder(tmp_path, pieces_of):
    lists, truth = written(tmp_path / "data")
    pieces_of(90)
    folder = tmp_path / "checkpoint"
    asked = {"metrics": ["mrr"], "memory": BIG, "checkpoint": folder, "per_user": tmp_path / "rows"}
    with stopped_after(3), pytest.raises(RuntimeError):
        recsys.evaluate(lists, truth, **asked)
    stored = json.loads((folder / "piece-00000").read_text())
    stored["rows"][1] = "../../elsewhere.parquet"
    (folder / "piece-00000").write_text(json.dumps(stored))
    recsys.evaluate(lists, truth, **asked)
    assert not [*tmp_path.rglob("elsewhere*")]
    assert recsys.load(tmp_path / "rows").per_case.columns["mrr"].size


def test_whatever_duckdb_says_of_a_damaged_file_is_an_error_of_ours(tmp_path):
    table = pd.DataFrame({"user": [1, 2], "item": [1, 2], "score": [0.5, 0.25]})
    table.to_parquet(tmp_path / "a.parquet")
    good = (tmp_path / "a.parquet").read_bytes()
    for at in range(4, len(good), 97):
        (tmp_path / "b.parquet").write_bytes(good[:at] + b"\x0f" + good[at + 1 :])
        with contextlib.suppress(RecsysError):
            recsys.evaluate(tmp_path / "b.parquet", tmp_path / "a.parquet", ["mrr"], memory=BIG)
    (tmp_path / "a.csv").write_text("user,item\n1,2\n")
    for header in (b"user,item,\xff\n", b"user,item," + b"x" * 200_000 + b"\n", b'user,item,"\n'):
        (tmp_path / "b.csv").write_bytes(header + b"1,2,3\n")
        with contextlib.suppress(RecsysError):
            recsys.evaluate(tmp_path / "b.csv", tmp_path / "a.csv", ["mrr"], memory=BIG)


def failing(original: Callable[..., Any], name: str) -> Callable[..., Any]:
    """A method of paths that fails on those of a name."""

    def call(path: Path, *arguments: Any, **more: Any) -> Any:
        if path.name.startswith(name):
            raise OSError(5, "Input/output error")
        return original(path, *arguments, **more)

    return call


@pytest.mark.parametrize(
    ("method", "name"),
    [("mkdir", "spill"), ("iterdir", "checkpoint"), ("unlink", "part-"), ("open", "part-")],
)
def test_a_folder_that_fails_is_an_error_of_ours(tmp_path, monkeypatch, method, name):
    data = written(tmp_path / "data")
    kept = {"checkpoint": tmp_path / "checkpoint", "per_user": tmp_path / "out"}
    with monkeypatch.context() as patch:
        patch.setattr(Path, method, failing(getattr(Path, method), name))
        with pytest.raises(FileError, match=r"checkpoint.*: Input/output error"):
            recsys.evaluate(*data, BROAD, memory=BIG, **kept)
    assert not (tmp_path / "out").exists()


def test_memory_that_ends_while_duckdb_starts_is_an_error_of_ours(tmp_path, monkeypatch):
    class Connection:
        closed = 0

        def execute(self, _query: str) -> None:
            raise duckdb.OutOfMemoryException("could not allocate block")

        def close(self) -> None:
            self.closed += 1

    connection = Connection()
    monkeypatch.setattr(duckdb, "connect", lambda **_settings: connection)
    with pytest.raises(InputError, match="could not allocate block"):
        recsys.evaluate(*written(tmp_path / "data"), BROAD, memory=BIG)
    assert connection.closed == 1


def test_a_folder_of_ranges_that_cannot_be_made_is_an_error_of_ours(tmp_path, pieces_of, monkeypatch):
    data = written(tmp_path / "data")
    pieces_of(90, folders=True)
    monkeypatch.setattr(Path, "mkdir", failing(Path.mkdir, "ranges"))
    with pytest.raises(FileError, match="ranges could not be written"):
        recsys.evaluate(*data, BROAD, memory=BIG, checkpoint=tmp_path / "checkpoint")


def test_a_checkpoint_that_cannot_be_removed_does_not_withhold_the_result(tmp_path, pieces_of, monkeypatch):
    data = written(tmp_path / "data")
    asked = {"metrics": BROAD, "memory": BIG, "checkpoint": tmp_path / "checkpoint"}
    pieces_of(90)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", failing(Path.unlink, "piece-"))
        patch.setattr(shutil, "rmtree", lambda *_args, **_options: None)
        found = recsys.evaluate(*data, **asked)
    assert (tmp_path / "checkpoint").exists()
    with stopped_after(np.inf) as count:
        assert_same(recsys.evaluate(*data, **asked), found, per_user=False)
    assert count.added > 5  # nothing of it was believed
    assert not (tmp_path / "checkpoint").exists()


def test_two_processes_do_not_share_a_checkpoint(tmp_path, pieces_of):
    lists, truth = written(tmp_path / "data")
    pieces_of(90)
    asked = {"metrics": BROAD, "memory": BIG, "checkpoint": tmp_path / "checkpoint"}
    code = (
        "import sys, time; from pathlib import Path\n"
        "from recsys.inputs.files.atomic_folder import lock_folder\n"
        "lock = lock_folder(Path(sys.argv[1])); print('locked', flush=True); sys.stdin.read()"
    )
    (tmp_path / "checkpoint").mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", code, tmp_path / "checkpoint"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"locked\n"
        with pytest.raises(FileError, match="another process"):
            recsys.evaluate(lists, truth, **asked)
        assert other.stdin is not None
        other.stdin.close()
    assert dict(recsys.evaluate(lists, truth, **asked))


def test_digests_tell_values_apart_and_are_the_same_in_every_process():
    code = """
import numpy as np, pandas as pd, polars as pl, scipy.sparse as sp, recsys, json, sys
from recsys.evaluation.files.digests import digest
from recsys.ranks.rankings import RankingOptions
from recsys.inputs import read_lists
rng = np.random.default_rng(0)
U, V = rng.standard_normal((9, 3)), rng.standard_normal((70000, 3)).astype(np.float32)
last = V.copy(); last[-1, -1] += 1
names = np.array([f"u{n}" for n in range(9)], dtype=object)
used = recsys.Factors(U, V); used.top(None, 3, RankingOptions())
lists = read_lists({1: [2, 3], 4: [5]})
print(json.dumps({name: digest(value) for name, value in {
    "factors": recsys.Factors(U, V), "same factors": used, "last": recsys.Factors(U, last),
    "ids": recsys.Factors(U, V, user_ids=names), "other ids": recsys.Factors(U, V, user_ids=names[::-1]),
    "scores": recsys.Scores(U), "scores of": recsys.Scores(U + 1),
    "frame": pd.DataFrame({"a": [1, 2]}), "frame of": pd.DataFrame({"a": [1, 3]}),
    "frame b": pd.DataFrame({"b": [1, 2]}), "text": pl.DataFrame({"a": ["x", "y"]}),
    "texts": pl.DataFrame({"a": ["x", "z"]}), "csr": sp.csr_matrix(U), "csr of": sp.csr_matrix(2 * U),
    "dict": {"a": {1, 2}, "b": [1.0]}, "list": [1, [2]], "flat": [1, 2], "text 1": ["1"], "one": [1],
    "lists": lists, "function": len, "other function": max, "lambda": (lambda u: u),
    "lambda of 2": (lambda u: u + 2), "nested": [[1], [2]], "nested otherwise": [[1, 2], []],
}.items()}))
"""
    runs = []
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True)
        runs.append(json.loads(done.stdout))
    assert runs[0] == runs[1]
    assert runs[0].pop("same factors") == runs[0]["factors"]
    assert len(set(runs[0].values())) == len(runs[0])
    assert digest({1: "a", 2: "b"}) == digest({2: "b", 1: "a"})


# ---- models


def test_factors_of_memory_mapped_arrays(tmp_path, pieces_of):
    rng = np.random.default_rng(1)
    for name, shape in (("U", (60, 4)), ("V", (30, 4))):
        np.save(tmp_path / f"{name}.npy", rng.standard_normal(shape).astype(np.float32))
    model = recsys.Factors(*(np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in "UV"))
    truth = pd.DataFrame({"user": np.repeat(np.arange(60), 3), "item": rng.integers(0, 30, 180)})
    truth = truth.drop_duplicates()
    truth.to_parquet(tmp_path / "truth.parquet")
    seen = {user: [user % 30] for user in range(0, 60, 2)}
    asked = {"metrics": [*BROAD, "auc", "coverage@3"], "seen": seen, "ids": "auto"}
    asked["by"] = {user: user % 3 for user in range(60)}
    whole = recsys.evaluate(model, truth, **asked)
    pieces_of(1 << 30, users=7)
    calls: list[Any] = []
    for known in (truth, str(tmp_path / "truth.parquet")):
        found = recsys.evaluate(
            model, known, **asked, memory=BIG, per_user=tmp_path / "out", progress=lambda *n: calls.append(n)
        )
        assert_same(found, whole)
        assert_same(recsys.load(tmp_path / "out"), whole)
        assert calls[-1] == (9, 9)


def test_negative_grades_are_unjudged_in_every_piece(pieces_of):
    rng = np.random.default_rng(3)
    model = recsys.Scores(rng.random((40, 12)))
    grades = rng.integers(-2, 3, (40, 6)).tolist()
    truth = {user: dict(zip(range(user % 6, 12), row, strict=False)) for user, row in enumerate(grades)}
    asked = {"metrics": ["ndcg@3", "bpref"], "seen": {}, "conventions": {"negative_grades": "unjudged"}}
    whole = recsys.evaluate(model, truth, **asked)
    pieces_of(1 << 30, users=7)
    found = recsys.evaluate(model, truth, **asked, memory=BIG)
    assert (dict(found), dict(found.counts)) == (dict(whole), dict(whole.counts))


def test_cautions_about_a_model_are_those_of_all_its_users(pieces_of):
    model = recsys.Scores(np.random.default_rng(0).random((40, 12)))
    truth = {user: [user % 11 + 1] for user in range(1, 40)}  # they count from 1
    whole = recsys.evaluate(model, truth, ["mrr"], seen={})
    pieces_of(1 << 30, users=7)
    assert [one.code for one in whole.cautions] == ["ids_are_not_rows"]
    assert recsys.evaluate(model, truth, ["mrr"], seen={}, memory=BIG).cautions == whole.cautions


def test_scores_and_other_models(tmp_path, pieces_of):
    rng = np.random.default_rng(1)
    matrix = rng.standard_normal((30, 20))
    truth = {user: [int(user) % 20, (3 * user) % 20] for user in range(30)}
    asked = {"metrics": ["recall@3", "ndcg@3", "mrr@5"]}
    pieces_of(1 << 30, users=7)
    for model in (recsys.Scores(matrix), Fitted(matrix)):
        whole = recsys.evaluate(model, truth, **asked)
        found = recsys.evaluate(model, truth, **asked, memory=BIG, per_user=tmp_path / "out")
        assert_same(found, whole)
    assert dict(recsys.evaluate(Recommender(), truth, **asked))
    with pytest.raises(InputError, match="one list after the other, which needs no memory="):
        recsys.evaluate(Recommender(), truth, **asked, memory=BIG)
    model = recsys.Factors(matrix[:, :3], matrix[:, 3:6], user_ids=[f"u{n}" for n in range(30)])
    for beyond in ({}, {"memory": BIG}):
        with pytest.raises(InputError, match="no user of the truth"):
            recsys.evaluate(model, {"x": [3]}, **asked, **beyond)


class Fitted:
    """What `from_model` takes: the factors of a fitted model."""

    def __init__(self, matrix: Any) -> None:
        self.user_factors, self.item_factors = matrix[:, :3], matrix[:20, 3:6]


class Recommender:
    """What has only lists to offer."""

    def recommend(self, user: int, k: int) -> list[int]:
        return [(user + at) % 20 for at in range(k)]


# ---- processes


def test_ctrl_c_leaves_nothing_behind(tmp_path):
    lists, truth = written(tmp_path / "data")
    code = """
import sys, time, tempfile, recsys
from recsys.evaluation.in_pieces import checkpoints, out_of_core
tempfile.tempdir = sys.argv[4]
out_of_core._BYTES_PER_ROW, out_of_core._FEW_SCANS = 10**7, 1
add = checkpoints.PieceStore.add
def slowly(store, *arguments, **more):
    add(store, *arguments, **more)
    print("piece", flush=True)
    time.sleep(0.5)
checkpoints.PieceStore.add = slowly
recsys.evaluate(sys.argv[1], sys.argv[2], ["recall@3"], memory="2GB", per_user=sys.argv[3])
"""
    place = tmp_path / "spilled"
    place.mkdir()
    with run_python(code, lists, truth, tmp_path / "out", place) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"piece\n"
        assert any(path.name.startswith(".") for path in tmp_path.iterdir())
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=600)
    assert process.returncode != 0
    assert b"KeyboardInterrupt" in errors
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]
    assert not any(place.iterdir())
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="VmHWM is of Linux")
@pytest.mark.parametrize("kind", ["tables", "factors"])
def test_a_process_that_holds_more_than_memory_takes_that_much_besides(tmp_path, kind):
    """The peak during the call, less what was there before it."""
    large_tables(tmp_path, 400_000)
    code = """
import sys, re, recsys, pathlib
import numpy as np

def status(name):
    return int(re.search(name + r":\\s+(\\d+) kB", pathlib.Path("/proc/self/status").read_text())[1]) * 1024

budget, truth = 450_000_000, sys.argv[2]
held = np.ones(60_000_000)  # 480 MB
lists, metrics = sys.argv[1], [f"{n}@10" for n in "recall ndcg map mrr hit precision".split()]
if sys.argv[4] == "factors":
    lists = recsys.Factors(np.ones((400_000, 8), np.float32), np.ones((5000, 8), np.float32))
    truth = {user: [user % 5000] for user in range(2000)}
pathlib.Path("/proc/self/clear_refs").write_text("5")  # VmHWM, the peak of VmRSS, starts again
before = status("VmRSS")
assert before > budget
options = {} if sys.argv[4] == "factors" else {"conventions": {"duplicates": "first"}}
found = recsys.evaluate(lists, truth, metrics, memory=budget, per_user=sys.argv[3], **options)
assert len(found.partial.sums) == 6
print(status("VmHWM") - before, len(recsys.load(sys.argv[3]).per_case))
"""
    paths = tmp_path / "lists.parquet", tmp_path / "truth.parquet", tmp_path / "out"
    with run_python(code, *paths, kind) as process:
        out, errors = process.communicate(timeout=600)
    assert process.returncode == 0, errors.decode()
    grown, n_users = map(int, out.split())
    assert grown < 450e6
    assert n_users == (400_000 if kind == "tables" else 2000)


@pytest.mark.parametrize(
    ("per_user", "checkpoint"), [("kept/rows", "kept"), ("rows", "rows/kept"), ("both", "both")]
)
def test_the_values_per_user_cannot_be_in_the_folder_of_the_checkpoint(tmp_path, per_user, checkpoint):
    (tmp_path / "link").symlink_to(tmp_path)
    places = {"per_user": tmp_path / per_user, "checkpoint": tmp_path / "link" / checkpoint}
    lists, truth = written(tmp_path / "data")
    for _ in range(2):
        with pytest.raises(InputError, match=r"per_user=.* and checkpoint=.* one is inside the other"):
            recsys.evaluate(lists, truth, ["mrr"], memory=BIG, **places)
    assert not any(path.exists() for path in places.values())


def test_a_folder_of_rows_gets_a_name_and_facts(tmp_path):
    lists, truth = written(tmp_path)
    rows = tmp_path / "rows"
    result = recsys.evaluate(lists, truth, ["recall@3"], memory="64GB", per_user=rows)
    assert recsys.load(rows).name is None
    finished = recsys.load(rows).run["finished"]
    result.save(rows, name="als", commit="1f3a")
    named = recsys.load(rows)
    assert (named.name, named.run["commit"], named.run["finished"]) == ("als", "1f3a", finished)
    assert named == result
    with pytest.raises(InputError, match="the fact loss=nan"):
        named.save(rows, name="als", loss=float("nan"))
    recsys.evaluate(lists, truth, ["recall@2"], memory="64GB", per_user=rows)
    with pytest.raises(FileError, match="holds another result by now"):
        named.save(rows, name="als")
    assert recsys.load(rows).name is None


def test_names_of_columns_that_are_no_letters_are_an_error_of_the_file(tmp_path):
    path = tmp_path / "lists.parquet"
    pd.DataFrame({"user": [1], "item": [2], "score": [1.0], "qqqq": [0]}).to_parquet(path, index=False)
    path.write_bytes(path.read_bytes().replace(b"qqqq", b"q\xff\xfeq"))
    with pytest.raises(FileError):
        recsys.evaluate(str(path), str(path), ["mrr"], memory="8GB")


# ---- queries


def test_a_query_is_one_select_and_nothing_else(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = pd.DataFrame({"user": [1, 1, 2], "item": [7, 8, 7], "score": [0.5, 0.25, 1.0]})
    table.to_parquet("t.parquet")
    query = "select * from 't.parquet'"
    asked = {"truth": table[1:2], "metrics": ["mrr"], "memory": BIG}
    assert recsys.evaluate(f"{query} where {'1 = 1 and ' * 40} 1 = 1", **asked)["mrr"] == 0.5
    assert recsys.evaluate(f"{query};", **asked)["mrr"] == 0.5
    for wrong in (
        f"select 1; copy (select 'x') to 'written.csv'; {query}",
        f"{query}; {query}",
        "with x as (select 1) insert into t from x",
        "from 'http://localhost:9/x.csv'",
        "select * from 'https://localhost:9/x.parquet'",
        "select * from enable_logging(storage = 'file', storage_path = 'written.csv')",
        "select * from enable_profiling(save_location = 'written.csv')",
        "from data",
        "select",
        "from t.parquet where",
    ):
        with pytest.raises(InputError):
            recsys.evaluate(wrong, **asked)
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["t.parquet"]
    (tmp_path / "select me.csv").write_text(table.to_csv(index=False))
    assert recsys.evaluate("select me.csv", table[1:2].astype(str), ["mrr"], memory=BIG)["mrr"] == 0.5


@pytest.mark.parametrize("how", ["limit", "row_number", "average"])
def test_a_query_without_an_order_keeps_that_of_the_file(tmp_path, pieces_of, how):
    rng = np.random.default_rng(3)
    users, items = np.repeat(rng.permutation(60_000), 10), rng.integers(0, 40, 600_000)
    lists = pd.DataFrame({"user": users, "item": items, "score": rng.random(600_000)})
    lists = lists.drop_duplicates(["user", "item"])
    lists.to_parquet(tmp_path / "lists.parquet", row_group_size=20_000)
    truth = pd.DataFrame({"user": np.arange(60_000), "item": rng.integers(0, 40, 60_000)})
    place = "row_number() over (partition by user order by score desc, item) as rank"
    query = {
        "limit": f"select * from '{tmp_path}/lists.parquet' limit 200000",  # noqa: S608
        "row_number": f"select user, item, {place} from '{tmp_path}/lists.parquet'",  # noqa: S608
        "average": f"select user, item % 5 as item, sum(score) as score from '{tmp_path}/lists.parquet'"  # noqa: S608
        " group by all",
    }[how]
    expected = {
        "limit": lists[:200_000],
        "row_number": lists,
        "average": None,
    }[how]
    pieces_of(300_000)
    found = [
        recsys.evaluate(query, truth, ["mrr", "ndcg@5"], memory="2GB", threads=n, cautions="ignore")
        for n in (1, 2, 4)
    ]
    assert dict(found[0]) == dict(found[1]) == dict(found[2])
    if expected is not None:
        assert dict(found[0]) == dict(recsys.evaluate(expected, truth, ["mrr", "ndcg@5"], cautions="ignore"))


@pytest.mark.parametrize("function", ["row_number()", "lag(i)", "first_value(i)", "ntile(2)"])
def test_places_in_no_order_are_refused(function):
    for over in ("()", "(partition by u)", "w"):
        query = (
            f"select u as user, i as item, {function} over {over} as rank "  # noqa: S608
            "from range(3) a(u), range(2) b(i) window w as (partition by u)"
        )
        with pytest.raises(InputError, match=r"in the query is over rows without an order.*order by"):
            recsys.evaluate(query, pd.DataFrame({"user": [1], "item": [1]}), ["mrr"], memory=BIG)


def test_a_query_and_a_relation_are_asked_once(tmp_path, pieces_of):
    tables(small_world())[0].to_parquet(tmp_path / "lists.parquet")
    query = f"select *, random() as score from '{tmp_path}/lists.parquet' using sample 200 rows"  # noqa: S608
    columns = {"lists": {"score": "score", "rank": None}, "truth": {}}
    pieces_of(40)
    for lists in (query, duckdb.connect().sql(query)):
        truth = tables(small_world())[1]
        found = recsys.evaluate(lists, truth, ["mrr"], memory=BIG, columns=columns, catalogue=N_ITEMS)
        assert 0 < found["mrr"] < 1


def test_whole_numbers_of_128_bits_in_a_query_stay_exact(tmp_path, pieces_of):
    query = f"select 1 as user, i as item, ({2**70} + i)::hugeint as score from range(1, 4) t(i)"  # noqa: S608
    truth = pd.DataFrame({"user": [1], "item": [3]})
    assert recsys.evaluate(query, truth, ["mrr"], memory=BIG)["mrr"] == 1.0


def test_ids_of_text_in_a_query_are_whole_numbers_or_an_error(tmp_path):
    truth = pd.DataFrame({"user": [1], "item": [8]})
    for item, error in (
        ("7.5", "not a whole"),
        ("1_0", "not a whole"),
        (" 7", "not a whole"),
        ("008", "same"),
    ):
        query = f"select 1 as user, x as item, 1 as rank from (values ('{item}'), ('8')) t(x)"  # noqa: S608
        with pytest.raises(IdTypeError, match=error):
            recsys.evaluate(query, truth, ["mrr"], ids="int", memory=BIG)


def test_folders_of_results_may_have_any_name(tmp_path, pieces_of):
    lists, truth = written(tmp_path / "data[1]")
    pieces_of(60, folders=True)
    for name in ("out[1]", "what?", "st*r"):
        (tmp_path / name).mkdir()
        kept = {"per_user": tmp_path / name / "rows", "checkpoint": tmp_path / name / "checkpoint"}
        lists_, truth_ = (str(Path(path).parent) for path in (lists, truth))
        found = recsys.evaluate(lists_, truth_, BROAD, memory=BIG, **kept)
        assert_same(found, recsys.evaluate(lists_, truth_, BROAD, ids="auto"))


def test_columns_that_differ_in_case_only_are_not_mixed_up(tmp_path):
    path, truth = tmp_path / "lists.parquet", pd.DataFrame({"user": [1], "item": [8]})
    pd.DataFrame({"user": [1, 1], "item": [7, 8], "ITEM": [8, 7], "rank": [1, 2]}).to_parquet(path)
    whole = recsys.evaluate(
        path, truth, ["mrr"], ids="auto", columns={"lists": {"item": "item"}, "truth": {}}
    )
    columns = {"lists": {"item": "item"}, "truth": {}}
    assert dict(recsys.evaluate(path, truth, ["mrr"], columns=columns, memory=BIG)) == dict(whole)
    columns = {"lists": {"item": "ITEM"}, "truth": {}}
    with pytest.raises(ColumnError, match="'ITEM' differs from another by the case of letters only"):
        recsys.evaluate(path, truth, ["mrr"], columns=columns, memory=BIG)
