"""Verbs on small files: what --quiet leaves out, what a user without rows gets, and files that do not fit."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pandas as pd
import pytest

from recsys.benching.bench_plan import make_plan
from recsys.benching.protocol import run_protocol
from recsys.errors import ColumnError, FileError, InputError

FILES = {
    "lists.csv": "user_id,item_id,score\nann,a,0.9\nann,b,0.8\nbob,b,0.9\nbob,d,0.1\n",
    "other.csv": "user_id,item_id,score\nann,b,0.9\nann,c,0.8\nbob,d,0.9\n",
    "truth.csv": "user_id,item_id,rating\nann,a,1\nann,c,3\nbob,d,2\n",
    "train.csv": "user_id,item_id,timestamp\nann,x,2\nann,y,1\n",
    "items.csv": "item_id,title,year\na,Aha,1999\nb,Bah,2000\nd,Dada,1916\n",
}


@pytest.fixture
def run(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return command


TUNED = "--method wsum --truth truth.csv --tune-on lists.csv --tune-on other.csv -m mrr"


@pytest.mark.parametrize(
    ("arguments", "written", "words"),
    [
        ("fuse lists.csv other.csv -o", "f.csv", "f.csv: 5 rows, 2 users, rrf of 2 files"),
        (f"fuse lists.csv other.csv {TUNED} -o", "f.csv", "wsum of 2 files"),
        ("identify -m mrr --probes", "p.jsonl", "questions about mrr. Add a value to each line; then:"),
        ("train popularity train.csv -o", "m.npz", "m.npz: popularity of 1 users and 2 items, trained in"),
    ],
)
def test_quiet_leaves_out_the_note_and_nothing_else(run, tmp_path, arguments, written, words):
    loud = run(*arguments.split(), written)
    assert loud.exit_code == 0, loud.output
    assert words in " ".join(loud.stderr.split())
    (tmp_path / written).rename(tmp_path / "loud")
    quiet = run(*arguments.split(), written, "--quiet")
    assert (quiet.exit_code, quiet.stderr, quiet.stdout) == (0, "", loud.stdout)
    if written != "m.npz":  # a model says how long it took
        assert (tmp_path / written).read_bytes() == (tmp_path / "loud").read_bytes()


def test_a_user_without_a_history_is_shown_with_chosen_columns(run):
    asked = ["lists.csv", "--train", "train.csv", "--items", "items.csv", "--column", "year"]
    shown = run("inspect", "bob", *asked)
    assert shown.exit_code == 0, shown.output
    assert "1916" in shown.stdout
    assert "Dada" not in shown.stdout
    wrong = run("inspect", "bob", "lists.csv", "--items", "items.csv", "--column", "yaer")
    assert wrong.exit_code == 3
    assert "there is no column 'yaer'. There are item_id, title, year." in " ".join(wrong.stderr.split())


def test_metrics_of_ratings_have_no_ties_and_presets_tell_what_differs_by_metric(run):
    rated, ranked = run("metrics", "rmse").stdout, run("metrics", "mrr").stdout
    assert "needs       predicted ratings" in rated
    assert "ties  " not in rated
    assert "ties  " in ranked
    facts = json.loads(run("conventions", "replay", "--json").stdout)
    text = " ".join(run("conventions", "replay").stdout.split())
    assert facts["per_metric"]
    for metric, own in facts["per_metric"].items():
        assert f"for {metric} only: " + ", ".join(f"{name}={value}" for name, value in own.items()) in text


def test_a_report_takes_one_matrix_of_embeddings(run, tmp_path):
    assert run("evaluate", "lists.csv", "truth.csv", "-m", "ndcg@2", "--save", "r.json").exit_code == 0
    np.savez(tmp_path / "two.npz", a=np.ones((3, 2)), b=np.ones((3, 2)))
    done = run("report", "r.json", "-o", "r.html", "--embeddings", "two.npz")
    assert done.exit_code == 3
    assert "two.npz holds 2 matrices, expected one. Save" in " ".join(done.stderr.split())
    assert not (tmp_path / "r.html").exists()


def test_a_plan_leaves_out_short_users_and_empty_columns():
    rng = np.random.default_rng(0)
    pairs = [(u, i) for u in range(40) for i in rng.permutation(30)[: 1 if u < 3 else 6]]
    rows = pd.DataFrame(pairs, columns=["user", "item"])
    assert dict(make_plan(rows).remarks)["Only trained on"] == "3 users with too few rows for a test."
    empty = rows.assign(timestamp=np.nan, rating=np.nan)
    assert [text for what, text in make_plan(empty).remarks if what == "Not read"] == [
        "the column 'timestamp', which is empty.",
        "the column 'rating', which is empty.",
    ]
    text = rows.assign(rating=np.where(rows.index % 2, "2", "5"))
    assert make_plan(text).ratings.relevant_from == 5.0
    with pytest.raises(ColumnError, match="the ratings are not numbers"):
        make_plan(rows.assign(rating="good"))


def test_a_protocol_of_test_data_and_lists_alone(run, tmp_path):
    protocol = """
        title = "Small"
        [data]
        test = "truth.csv"
        [metrics]
        names = ["mrr", "ndcg"]
        [models.mine]
        {model}
        """
    path = tmp_path / "protocol.toml"
    path.write_text(protocol.format(model='lists = "lists.csv"'))
    outcome = run_protocol(path)
    assert outcome.comparison is None
    assert str(outcome).splitlines()[0] == "Small"
    assert "against" not in str(outcome)
    assert outcome.evaluations["mine"]["mrr"] == 0.75
    path.write_text(protocol.format(model='baseline = "popularity"'))
    with pytest.raises(
        InputError, match="a baseline is made from the training data, and \\[data\\] names none"
    ):
        run_protocol(path)
    digests = f'sha256 = {{ "truth.csv" = "{hashlib.sha256(FILES["truth.csv"].encode()).hexdigest()}" }}'
    whole = protocol.format(model='lists = "lists.csv"').replace("[metrics]", f"{digests}\n[metrics]")
    path.write_text(whole)
    assert run_protocol(path).evaluations["mine"]["mrr"] == 0.75
    path.write_text(whole.replace('"truth.csv" = ', '"train.csv" = '))
    with pytest.raises(FileError, match=r"data\.sha256 names 'train.csv', which the protocol does not read"):
        run_protocol(path)


def test_a_table_of_users_has_the_column_that_all_files_have(run, tmp_path):
    (tmp_path / "l.csv").write_text("who,item,score\nann,a,2\nbob,b,1\n")
    (tmp_path / "t.csv").write_text("who,item\nann,a\nbob,c\n")
    (tmp_path / "users.csv").write_text("who,age,kind\nann,30,new\nbob,,old\n")
    by_kind = ["--user", "who", "--users", "users.csv", "--by", "kind", "--json"]
    done = run("evaluate", "l.csv", "t.csv", "-m", "hit@1", *by_kind)
    assert done.exit_code == 0, done.output
    assert [(row["group"], row["metrics"]) for row in json.loads(done.stdout)["result"]["by"]] == [
        ("new", {"hit@1": 1.0}),
        ("old", {"hit@1": 0.0}),
    ]


def test_a_format_that_cannot_be_written_is_told_with_those_that_can(run, tmp_path):
    done = run("split", "truth.csv", "--how", "random_ratio", "--to", "xls", "-o", "out")
    assert done.exit_code == 2
    assert "'xls' is not one of" in done.stderr
    assert "parquet" in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_name_of_bytes_that_are_no_letters_is_printed(run, tmp_path):
    rows = "".join(f"{user},{item},{1 + user % 5},{user + item}\n" for user in range(9) for item in range(9))
    (tmp_path / "events.csv").write_text("user,item,rating,time\n" + rows)
    written = run("init", "events.csv", "-o", "\udcff")
    assert (written.exit_code, written.stdout) == (0, "\\udcff\n"), written.output
