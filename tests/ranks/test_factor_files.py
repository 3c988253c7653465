"""One file of factors with the ids of its rows: every function and every verb takes it."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import recsys
from recsys.cli.app import cli
from recsys.errors import FileError, InputError
from recsys.ranks.sources import is_model_path, load_model

USERS, ITEMS = [f"u{n}" for n in range(30)], [f"i{n}" for n in range(20)]
METRICS = ["ndcg@10", "recall@5"]


@pytest.fixture
def model(tmp_path, monkeypatch):
    """The factors in memory, beside mine.npz, a folder of two .npy, interactions and their parts."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    arrays = {"user_factors": rng.normal(size=(30, 4)), "item_factors": rng.normal(size=(20, 4))}
    ids = {"user_ids": np.array(USERS), "item_ids": np.array(ITEMS)}
    np.savez("mine.npz", **arrays, **ids)
    Path("folder").mkdir()
    for name, values in {"als_U": arrays["user_factors"], "als_V": arrays["item_factors"], **ids}.items():
        np.save(Path("folder", f"{name}.npy"), values)
    rows = [(u, i, t) for u in USERS for t, i in enumerate(rng.choice(ITEMS, 6, replace=False))]
    frame = pd.DataFrame(rows, columns=["user", "item", "time"])
    frame.to_csv("ratings.csv", index=False)
    frame[frame.time < 4].to_csv("train.csv", index=False)
    frame[frame.time >= 4].to_csv("test.csv", index=False)
    return recsys.Factors(*arrays.values(), **ids)


def run(*arguments):
    done = CliRunner().invoke(cli, list(map(str, arguments)), prog_name="recsys")
    assert done.exit_code == 0, done.output
    return done


@pytest.mark.parametrize("place", ["mine.npz", "folder"])
def test_evaluate_takes_it_as_the_factors_themselves(model, place):
    expected = dict(recsys.evaluate(model, "test.csv", METRICS, seen="train.csv"))
    assert dict(recsys.evaluate(place, "test.csv", METRICS, seen="train.csv")) == expected
    assert dict(recsys.evaluate(Path(place), "test.csv", METRICS, seen="train.csv")) == expected
    done = run("evaluate", place, "test.csv", "--seen", "train.csv", "-m", "ndcg@10", "--json", "-q")
    assert json.loads(done.stdout)["result"]["metrics"][0]["value"] == expected["ndcg@10"]


def test_both_matrices_may_be_in_one_file_of_factors(model):
    expected = recsys.evaluate(model, "test.csv", METRICS)["ndcg@10"]
    assert recsys.evaluate(recsys.read_factors("mine.npz", "mine.npz"), "test.csv")["ndcg@10"] == expected
    done = run(
        "evaluate", "--factors", "mine.npz", "mine.npz", "--truth", "test.csv", "-m", "ndcg@10", "--json"
    )
    assert json.loads(done.stdout)["result"]["metrics"][0]["value"] == expected


def test_compare_report_audit_and_inspect_take_it(model):
    recsys.recommend(model, 10, seen="train.csv").to_frame().to_csv("lists.csv", index=False)
    done = run(
        "compare", "mine.npz", "lists.csv", "--truth", "test.csv", "--train", "train.csv", "-m", "ndcg@10"
    )
    assert "identical in this sample" in done.stdout
    run("report", "mine.npz", "lists.csv", "--truth", "test.csv", "--train", "train.csv", "-o", "r.html")
    assert "mine" in Path("r.html").read_text("utf-8")
    run("audit", "train.csv", "test.csv", "--lists", "mine.npz", "--model", "mine=mine.npz")
    assert "i" in run("inspect", "u1", "mine.npz", "-q").stdout


def test_a_comparison_of_results_says_that_it_is_a_model(model):
    with pytest.raises(InputError, match=r"mine.npz holds a model.* Evaluate it first: recsys.evaluate"):
        recsys.compare({"a": "mine.npz", "b": "mine.npz"})


def test_bench_takes_it(model):
    models = {"path": "mine.npz", "folder": "folder", "memory": model}
    results = recsys.bench("ratings.csv", models=models, baselines=[]).evaluations
    assert dict(results["path"]) == dict(results["folder"]) == dict(results["memory"])
    done = run(
        "bench", "ratings.csv", "--models", "folder", "--baselines", "popularity", "--json", "--no-report"
    )
    assert json.loads(done.stdout)["models"]["folder"] == dict(results["memory"])


def test_a_folder_of_tables_is_not_a_model(model):
    Path("parts").mkdir()
    Path("test.csv").rename("parts/one.csv")
    assert [is_model_path(p) for p in ("parts", "folder", "mine.npz", "lists.csv", "x" * 300)] == [
        False, True, True, False, False,
    ]  # fmt: skip
    Path("empty").mkdir()
    with pytest.raises(FileError, match="holds no user matrix; found no matrix at all"):
        load_model("empty")
