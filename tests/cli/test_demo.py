"""The demo world is reproducible, has something to learn, and is generated quickly."""

from __future__ import annotations

import sys
import time

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import recsys
from recsys.cli.app import cli
from recsys.splits.datasets.demo_world import demo_world, toy_lists


@pytest.fixture(scope="module")
def world():
    return demo_world()


def test_the_same_seed_gives_the_same_world(world):
    again, other = demo_world(0), demo_world(1)
    for name in ("events", "items", "train", "test"):
        pd.testing.assert_frame_equal(getattr(world, name), getattr(again, name))
    assert np.array_equal(world.embeddings, again.embeddings)
    assert not world.events.equals(other.events)


def test_the_world_is_whole(world):
    events, items = world.events, world.items
    assert (events["user_id"].nunique(), len(items)) == (600, 400)
    assert 25_000 < len(events) < 35_000
    assert not events.duplicated(["user_id", "item_id"]).any()
    assert set(events["item_id"]) <= set(items["item_id"])
    assert set(events["rating"]) == {1, 2, 3, 4, 5}
    assert items["title"].str.len().min() > 5
    assert items["category"].nunique() == 8
    assert world.embeddings.shape == (400, 16)
    assert np.allclose(np.linalg.norm(world.embeddings, axis=1), 1, atol=1e-6)


def test_the_tail_is_long(world):
    counts = world.events["item_id"].value_counts().to_numpy()
    assert counts[:80].sum() / counts.sum() > 0.4
    assert counts.max() > 5 * np.median(counts)


def test_the_test_is_each_users_last_events(world):
    assert len(world.train) + len(world.test) == len(world.events)
    last = world.train.groupby("user_id")["timestamp"].max()
    first = world.test.groupby("user_id")["timestamp"].min()
    assert len(first) == 600
    assert (first >= last[first.index]).all()


def test_embeddings_know_the_categories(world):
    similar = world.embeddings @ world.embeddings.T
    same = world.items["category"].to_numpy()[:, None] == world.items["category"].to_numpy()
    assert similar[same].mean() > similar[~same].mean() + 0.4


def test_lists_hold_nothing_seen_and_models_rank_as_they_should(world):
    lists = toy_lists(world)
    seen = set(zip(world.train["user_id"], world.train["item_id"], strict=True))
    for table in lists.values():
        assert len(table) == 600 * 20
        assert not table.duplicated(["user_id", "item_id"]).any()
        assert seen.isdisjoint(zip(table["user_id"], table["item_id"], strict=True))
    truth = world.test[["user_id", "item_id"]]
    ndcg = [recsys.evaluate(lists[name], truth, "ndcg@10")["ndcg@10"] for name in lists]
    assert list(lists) == ["random", "popularity", "item_knn", "svd"]
    assert ndcg == sorted(ndcg)
    assert ndcg[-1] > 1.5 * ndcg[1] > 3 * ndcg[0]


def test_the_world_is_made_in_well_under_a_second():
    start = time.process_time()
    demo_world()
    assert time.process_time() - start < 1


def test_the_command_compares_six_models_and_writes_the_report(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    began = time.process_time()  # of computing: the machine may be busy
    done = CliRunner().invoke(cli, ["demo"])
    assert (done.exit_code, done.stderr) == (0, ""), done.output
    for model in ("random", "popularity", "item similarity", "bpr", "als", "hybrid"):
        assert f"\n{model} " in done.stdout
    assert done.stdout.endswith("report: recsys-report/demo.html\n")
    page = (tmp_path / "recsys-report" / "demo.html").read_text(encoding="utf-8")
    assert len(page) > 100_000
    rows = {line[:15].strip(): line.split() for line in done.stdout.splitlines()}
    ndcg = {name: rows[name][len(name.split())] for name in ("popularity", "hybrid")}
    by_merit = ["hybrid", "als", "bpr", "item similarity", "popularity", "random"]
    assert [name for name in rows if name in by_merit] == by_merit
    assert f"ndcg@10 {ndcg['hybrid']} (popularity {ndcg['popularity']})" in page  # the audit says the same
    assert '<span class="count">0</span>' not in page
    assert 'class="caution"' not in page
    assert time.process_time() - began < 60
    again = CliRunner().invoke(cli, ["demo", "--no-report"])
    assert done.stdout.startswith(again.stdout)


def test_without_implicit_the_rest_is_compared(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "implicit.cpu.als", None)
    done = CliRunner().invoke(cli, ["demo", "--no-report"])
    assert done.exit_code == 0, done.output
    assert "als, bpr and the hybrid are left out" in done.stdout
    assert "pip install" in done.stdout
