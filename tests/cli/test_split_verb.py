"""`recsys split`: parts as they were read, a manifest that makes them again, a folder whole or not at all."""

from __future__ import annotations

import hashlib
import json

import pandas as pd
import pytest
from click.testing import CliRunner

from recsys.cli import split_verb
from recsys.cli.app import cli
from recsys.cli.error_messages import as_option
from recsys.errors import Fix
from recsys.splits import STRATEGIES
from recsys.splits.job import DEFAULTS

CSV = (
    "user_id,item_id,rating,timestamp,note\n"
    '007,a,5,10,"x, y"\n007,b,4,20,\n007,NA,3,30,z\n8,a,1,10,\n8,c,2,15,\n9,a,3,5,one\n'
)


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "r.csv").write_text(CSV)

    def call(*arguments):
        return CliRunner().invoke(cli, ["split", *arguments], prog_name="recsys")

    return call


def test_parts_are_written_as_they_were_read(run, tmp_path):
    done = run("r.csv", "--how", "leave_last", "-o", "out")
    assert done.exit_code == 0, done.output
    assert "leave_last: 6 rows" in done.stdout
    assert "excluded: 1 row, user with too few rows" in done.stdout
    assert (
        tmp_path / "out" / "test.csv"
    ).read_text() == "user_id,item_id,rating,timestamp,note\n007,NA,3,30,z\n8,c,2,15,\n"
    assert (tmp_path / "out" / "train.csv").read_text().splitlines()[1] == '007,a,5,10,"x, y"'
    assert "one,user with too few rows" in (tmp_path / "out" / "excluded.csv").read_text()
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    for name, expected in manifest["files"].items():
        assert hashlib.sha256((tmp_path / "out" / name).read_bytes()).hexdigest() == expected
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out", "r.csv"]


def test_a_manifest_makes_the_same_bytes_again(run, tmp_path):
    assert run("r.csv", "--how", "k_fold", "--folds", "2", "--seed", "5", "-o", "out", "-q").stdout == ""
    again = run("r.csv", "--rerun", "out/fold-2/manifest.json", "-o", "again")
    assert again.exit_code == 0, again.output
    for name in ("train.csv", "test.csv", "manifest.json"):
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "out" / "fold-2" / name).read_bytes()
    (tmp_path / "r.csv").write_text(CSV.replace("8,c,2", "8,c,3"))
    other = run("r.csv", "--rerun", "out/fold-2/manifest.json", "-o", "third")
    assert other.exit_code == 3
    assert "not what the manifest describes" in other.stderr
    assert not (tmp_path / "third").exists()


@pytest.mark.parametrize("to", ["csv", "tsv", "inter", "parquet"])
def test_formats(run, tmp_path, to):
    done = run("r.csv", "--how", "random_ratio", "--test-share", "2", "--to", to, "-o", "out", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["counts"]["rows"]["test"] == 2
    written = tmp_path / "out" / f"test.{to}"
    frame = (
        pd.read_parquet(written)
        if to == "parquet"
        else pd.read_csv(written, sep="," if to == "csv" else "\t")
    )
    assert len(frame) == 2
    second = run(str(written), "--how", "random_ratio", "--test-share", "1", "-o", "more")
    assert second.exit_code == 0, second.output
    assert (tmp_path / "more" / f"test.{to}").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--how", "leave_last", "--folds", "3"], 3, "--folds means nothing to --how leave_last"),
        (["--how", "rolling_windows"], 3, "needs --length"),
        ([], 2, "Say --how"),
        (["--how", "leave_first"], 2, "leave_first"),
        (["--how", "leave_last", "--on-tie", "sometimes"], 2, "on_tie"),
        (["--how", "random_ratio", "--test-share", "1.5"], 3, "--test-share 1.5"),
        (["--how", "global_temporal", "--at", "2026-01-01"], 3, "--unit s"),
        (["--how", "leave_last", "--time", "when"], 3, "there is no column 'when'"),
        (["--how", "leave_last", "--scale", "1", "4"], 3, "--bad-rows exclude"),
        (["--how", "leave_last", "--short", "error"], 3, "--short exclude"),
        (["--how", "leave_last", "--min-user", "9"], 3, "no row is left"),
    ],
)
def test_errors_name_options_and_leave_nothing_behind(run, tmp_path, arguments, code, words):
    done = run("r.csv", *arguments, "-o", "out")
    assert done.exit_code == code, done.output
    assert words in done.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["r.csv"]


def test_a_folder_that_holds_something_is_not_touched(run, tmp_path):
    (tmp_path / "out").mkdir()
    assert run("r.csv", "--how", "leave_last", "-o", "out").exit_code == 0
    again = run("r.csv", "--how", "leave_last", "-o", "out")
    assert again.exit_code == 2
    assert "already exists" in again.stderr
    assert run("r.csv", "--how", "leave_last", "-o", "no/such/out").exit_code == 2
    assert run("none.csv", "--how", "leave_last", "-o", "new").exit_code == 3


def test_every_parameter_has_an_option():
    with split_verb.split_command.make_context("split", ["x", "-o", "y"]) as context:
        options = {name for option in split_verb.split_command.get_params(context) for name in option.opts}
    for strategy in STRATEGIES.values():
        for name in strategy.parameters:
            assert as_option(Fix(name, of="split")) in options
    assert {as_option(Fix(name, of="split")) for name in set(DEFAULTS) - {"columns"}} <= options


def test_folds_of_last_rows_and_pairs_that_train_has(run, tmp_path):
    rows = [(u, i, 10 * u + i) for u in range(3) for i in range(4)] + [(0, 0, 99)]
    lines = ["user,item,time", *(",".join(map(str, row)) for row in rows)]
    (tmp_path / "again.csv").write_text("\n".join(lines) + "\n")
    done = run("again.csv", "--how", "leave_last_folds", "--folds", "2", "--new-pairs", "-o", "out")
    assert done.exit_code == 0, done.output
    assert "excluded: 1 row, user has the item in train" in done.stdout
    tests = [(tmp_path / "out" / f"fold-{at}" / "test.csv").read_text().split()[1:] for at in (1, 2)]
    assert tests == [["0,3,3", "1,2,12", "2,2,22"], ["1,3,13", "2,3,23"]]
    assert run("r.csv", "--how", "leave_last", "--short", "test", "-o", "short").exit_code == 0


def test_windows_and_unseen_users(run, tmp_path):
    done = run("r.csv", "--how", "rolling_windows", "--length", "10", "--windows", "2", "-o", "out")
    assert done.exit_code == 0, done.output
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["fold-1", "fold-2"]
    done = run(
        "r.csv",
        "--how",
        "unseen_users",
        "--test-share",
        "1",
        "--known",
        "0.5",
        "--min-user",
        "2",
        "-o",
        "users",
    )
    assert done.exit_code == 0, done.output
    assert {p.stem for p in (tmp_path / "users").iterdir()} >= {"train", "known", "test", "manifest"}


@pytest.mark.parametrize("ending", ["json", "jsonl"])
def test_rows_of_json_are_split_like_any_table(tmp_path, monkeypatch, ending):
    monkeypatch.chdir(tmp_path)
    rows = [{"user": u, "item": i, "timestamp": 10 * u + i, "note": None} for u in range(4) for i in range(3)]
    text = json.dumps(rows) if ending == "json" else "\n".join(map(json.dumps, rows))
    (tmp_path / f"events.{ending}").write_text(text)
    done = CliRunner().invoke(cli, ["split", f"events.{ending}", "--how", "leave_last", "-o", "parts"])
    assert done.exit_code == 0, done.output
    test = (tmp_path / "parts" / "test.csv").read_text().splitlines()
    assert test == ["user,item,timestamp,note", "0,2,2,", "1,2,12,", "2,2,22,", "3,2,32,"]
    (tmp_path / "odd.json").write_text('[{"user": 1, "item": [2], "timestamp": 3}]')
    assert CliRunner().invoke(cli, ["split", "odd.json", "--how", "leave_last", "-o", "x"]).exit_code == 3


def test_every_strategy_has_its_own_line_in_the_help(run):
    lines = run("--help").output.splitlines()
    for name in STRATEGIES:
        assert sum(line.split()[:1] == [name] for line in lines) == 1
