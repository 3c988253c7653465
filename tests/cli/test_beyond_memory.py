"""`recsys evaluate --memory`: files are read piece by piece, rows go to a folder, a stopped run goes on."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import recsys
from recsys.display import text_tables
from recsys.evaluation.in_pieces import checkpoints, out_of_core

pytest.importorskip("duckdb")
METRICS = ["recall@3", "ndcg@3", "coverage@3"]
MEMORY = ("--memory", "64GB")
COLUMNS = {"lists": {"user": "uid", "item": "sku"}, "truth": {}, "seen": {}}


@pytest.fixture
def run(tmp_path, monkeypatch, command):
    """The command in a folder with lists, truth and a history of 40 users, cut into several pieces."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(checkpoints.Storage, "left", lambda _, needed=1, *__: 1 << 30 if needed else 120)
    for name in ("_SHARE_OF_PIECE", "_BYTES_PER_ROW", "_BYTES_PER_TEXT_ROW"):
        monkeypatch.setattr(out_of_core, name, 1)
    rng = np.random.default_rng(0)
    users = np.repeat(np.arange(40), 5)
    items = np.concatenate([rng.permutation(20)[:5] for _ in range(40)])
    lists = pd.DataFrame({"uid": users, "sku": items, "rank": np.tile(np.arange(1, 6), 40)})
    truth = pd.DataFrame({"user": np.repeat(np.arange(40), 2), "item": rng.integers(0, 20, 80)})
    (tmp_path / "lists").mkdir()
    for number in range(2):
        lists[number::2].to_parquet(tmp_path / "lists" / f"{number}.parquet", index=False)
    truth.drop_duplicates().to_parquet(tmp_path / "truth.parquet", index=False)
    truth.drop_duplicates().to_csv(tmp_path / "truth.csv", index=False)
    lists[["uid", "sku"]].head(30).rename(columns={"uid": "user", "sku": "item"}).to_parquet("seen.parquet")
    columns = ("--user", "uid", "--item", "sku", "--truth-user", "user", "--truth-item", "item")
    metrics = [part for metric in METRICS for part in ("-m", metric)]

    def call(*arguments):
        return command("evaluate", *arguments, *columns, *metrics)

    call.command = command
    return call


def expected(**more):
    return recsys.evaluate("lists", "truth.parquet", METRICS, columns=COLUMNS, ids="auto", **more)


def test_files_are_evaluated_piece_by_piece(run, tmp_path):
    whole = expected(seen="seen.parquet")
    done = run("lists/*.parquet", "truth.parquet", *MEMORY, "--seen", "seen.parquet", "--json")
    assert (done.exit_code, done.stderr) == (0, "")
    assert json.loads(done.stdout)["sha256"] == json.loads(whole.to_json())["sha256"]
    with text_tables.fitted(120):
        assert run("lists", "truth.parquet", *MEMORY).stdout == f"{expected().to_text(intervals=None)}\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "lists", "seen.parquet", "truth.csv", "truth.parquet",
    ]  # fmt: skip


def test_ids_are_those_of_the_files_unless_named(run):
    for ids, kind in (((), "int"), (("--ids", "str"), "str"), (("--ids", "int"), "int")):
        for memory in (MEMORY, ()):
            done = run("lists", "truth.parquet", *memory, *ids, "--save", "out.json", "-q")
            assert (done.exit_code, done.stderr) == (0, ""), done.output
            assert recsys.load("out.json").notes["ids"] == {"user": kind, "item": kind}
    for memory in (MEMORY, ()):  # where one file is text, all ids are
        mixed = run("lists", "truth.csv", *memory, "--save", "out.json", "-q")
        assert (mixed.exit_code, mixed.stderr) == (0, "")
        assert recsys.load("out.json").notes["ids"] == {"user": "str", "item": "str"}
    mixed = run("lists", "truth.csv", *MEMORY, "--ids", "auto")  # numbers on one side, text on the other
    assert mixed.exit_code == 3
    assert "--ids str" in mixed.stderr


def test_rows_go_to_a_folder_and_the_result_says_where(run):
    done = run("lists", "truth.parquet", *MEMORY, "--per-user-to", "rows", "--save", "out.json")
    assert done.exit_code == 0, done.output
    assert "out.json holds sums; the values per user are in rows." in done.stderr
    whole = expected()
    assert recsys.load("rows").per_user.equals(whole.per_user)
    assert recsys.load("out.json") == whole
    assert recsys.load("out.json").run["per_user"] == "rows"
    kept = run("lists", "truth.parquet", *MEMORY, "--save", "out.json")
    assert "were not kept (--per-user-to FOLDER)" in kept.stderr
    whole.save("memory.json")
    for arguments in (
        ("gate", "rows", "--against", "memory.json", "-m", "recall@3=50%"),
        ("compare", "rows", "memory.json"),
        ("history", "."),
    ):
        done = run.command(*arguments)
        assert done.exit_code == 0, done.output
        assert "recall@3" in done.stdout
    page = run.command("report", "rows", "-o", "page.html")
    assert page.exit_code == 0, page.output


def test_a_stopped_command_goes_on(run, monkeypatch, tmp_path):
    arguments = ("lists", "truth.parquet", *MEMORY, "--checkpoint", "kept", "--json")
    add, added = checkpoints.PieceStore.add, []

    def stop(store, *rest, **more):
        if len(added) == 2:
            raise KeyboardInterrupt
        added.append(add(store, *rest, **more))

    monkeypatch.setattr(checkpoints.PieceStore, "add", stop)
    assert run(*arguments).exit_code == 130
    assert (tmp_path / "kept" / "plan.json").exists()
    monkeypatch.setattr(checkpoints.PieceStore, "add", add)
    other = run(*arguments, "--set", "no_list=skip")
    assert other.exit_code == 3
    assert "conventions changed since the checkpoint" in other.stderr
    done = run(*arguments)
    assert json.loads(done.stdout)["sha256"] == json.loads(expected().to_json())["sha256"]
    assert not (tmp_path / "kept").exists()


def test_factors_are_read_from_the_disk(run, command, monkeypatch):
    monkeypatch.setattr(checkpoints.Storage, "left", lambda *_: 1 << 30)
    rng = np.random.default_rng(1)
    np.save("U.npy", rng.standard_normal((40, 4)))
    np.save("V.npy", rng.standard_normal((20, 4)))
    arguments = (
        "evaluate",
        "--factors",
        "U.npy",
        "V.npy",
        "--truth",
        "truth.parquet",
        "-m",
        "ndcg@3",
        "--json",
    )
    whole, found = command(*arguments), command(*arguments, *MEMORY, "--per-user-to", "rows")
    assert found.exit_code == 0, found.output
    assert json.loads(found.stdout)["sha256"] == json.loads(whole.stdout)["sha256"]
    assert len(recsys.load("rows").per_case) == 40


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--per-user", "rows.csv"), "--per-user-to FOLDER"),
        (("--bounds",), "--bounds does not go with --memory"),
        (("--format", "csv"), "--format does not go with --memory"),
        (("--encoding", "latin-1"), "text files are UTF-8"),
        (("--user-ids", "u.txt"), "name the rows of a model"),
    ],
)
def test_what_does_not_go_with_it_is_a_usage_error(run, options, words):
    done = run("lists", "truth.parquet", *MEMORY, *options)
    assert (done.exit_code, done.stdout) == (2, "")
    assert words in done.stderr


def test_errors_speak_of_options(run):
    for option in ("--per-user-to", "--checkpoint"):
        done = run("lists", "truth.parquet", option, "out")
        assert done.exit_code == 2
        assert "go with --memory SIZE" in done.stderr
    assert run("-", "truth.parquet", *MEMORY).exit_code == 2
    assert "--memory much is not a size" in run("lists", "truth.parquet", "--memory", "much").stderr
    needs_rows = run("lists", "truth.parquet", *MEMORY, "-m", "gmap@3")
    assert needs_rows.exit_code == 2
    assert "Evaluate again with --per-user-to folder/." in needs_rows.stderr


def test_the_folder_of_rows_keeps_the_name(run, tmp_path):
    (tmp_path / "nights").mkdir()
    for night in ("1", "2"):
        done = run(
            "lists", "truth.parquet", *MEMORY, "--per-user-to", f"nights/{night}", "--name", "als", "-q"
        )
        assert done.exit_code == 0, done.output
    assert recsys.load("nights/1").name == "als"
    nights = json.loads(run.command("history", "nights", "-m", "recall@3", "--json").stdout)["nights"]
    assert [(night["name"], night["path"]) for night in nights] == [("als", "1"), ("als", "2")]
    done = run.command("history", "nights/1", "--name", "als", "--json", "-m", "recall@3")
    assert [night["path"] for night in json.loads(done.stdout)["nights"]] == ["1"], done.output
    expected().save("bpr.json")
    done = run.command("compare", "nights/1", "bpr.json", "--baseline", "als")
    assert done.exit_code == 0, done.output
    # A saved result and the folder that it names for its rows are one night.
    done = run(
        "lists", "truth.parquet", *MEMORY, "--per-user-to", "nights/2", "--save", "nights/2.json",
        "--name", "als", "-q",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    nights = json.loads(run.command("history", "nights", "-m", "recall@3", "--json").stdout)["nights"]
    assert sorted(night["path"] for night in nights) == ["1", "2.json"]
    unkept = run("lists", "truth.parquet", *MEMORY, "--name", "als")
    assert unkept.exit_code == 2
    assert "--save FILE or --per-user-to FOLDER" in unkept.stderr
