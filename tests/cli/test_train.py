"""`recsys train ncf`: a file in, a model that evaluates out; errors come before training."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

import recsys
from recsys.cli.app import cli
from recsys.inputs.files import write_ncf_files

pytest.importorskip("torch")

from recsys.models import load_model

QUICK = ["--epochs", "2", "--batch", "256", "--device", "cpu", "--factors", "4", "--layers", "8,4"]


@pytest.fixture
def files(tmp_path):
    """NCF's three files, and the training data as a table with text ids."""
    rng = np.random.default_rng(0)
    users = np.repeat(np.arange(30), 11)
    items = np.concatenate([rng.choice(150, 11, replace=False) for _ in range(30)])
    last = np.arange(len(users)) % 11 == 10
    rows = [f"{u}\t{i}\t5\t{t}\n" for t, (u, i) in enumerate(zip(users[~last], items[~last], strict=True))]
    (tmp_path / "m.train.rating").write_text("".join(rows))
    rows = [f"u{u},i{i},{t}\n" for t, (u, i) in enumerate(zip(users[~last], items[~last], strict=True))]
    (tmp_path / "t.csv").write_text("user,item,timestamp\n" + "".join(rows))
    negatives = [
        rng.choice(np.setdiff1d(np.arange(150), items[users == u]), 20, replace=False) for u in range(30)
    ]
    write_ncf_files(tmp_path / "m", users[last], items[last], negatives)
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(cli, ["train", "ncf", *map(str, arguments)])


@pytest.mark.parametrize("kind", ["gmf", "mlp", "neumf", "mf", "biased_mf"])
def test_every_model_is_trained_tested_and_saved(files, kind):
    out = files / "model.safetensors"
    done = run(
        files / "m.train.rating", "-o", out, "--model", kind, *QUICK, "--json",
        "--test", files / "m.test.rating", files / "m.test.negative",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    result = json.loads(done.stdout)["result"]
    assert [row["metric"] for row in result["metrics"]] == ["hit@10", "ndcg@10", "mrr", "auc"]
    assert result["counts"]["cases"] == 30
    assert "epoch 1: ndcg@10" in done.stderr
    model = load_model(out)
    assert model.n_users == 30
    assert len(model.item_ids) == model.n_items  # items of the test that training lacks have rows, too


def test_a_table_with_text_ids_gives_a_model_with_text_ids(files):
    out = files / "model.npz"
    done = run(files / "t.csv", "-o", out, *QUICK, "-q")
    assert (done.exit_code, done.output) == (0, "")
    model = load_model(out)
    assert model.user_ids[0] == "u0"
    result = recsys.evaluate(model, {"u3": ["i5"], "u7": ["i9"]}, ["mrr"])
    assert result.counts["cases"] == 2


def test_the_same_command_gives_the_same_file(files):
    for name in ("a.npz", "b.npz"):
        assert run(files / "t.csv", "-o", files / name, *QUICK, "-q").exit_code == 0
    assert (files / "a.npz").read_bytes() == (files / "b.npz").read_bytes()


def test_all_epochs_hold_nothing_out_and_need_no_time(files):
    (files / "no_time.csv").write_text("user,item\n1,1\n1,2\n2,2\n2,3\n")
    done = run(files / "no_time.csv", "-o", files / "m.npz", *QUICK)
    assert done.exit_code == 3
    assert "not known" in done.stderr
    assert run(files / "no_time.csv", "-o", files / "m.npz", *QUICK, "--all-epochs").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-o", "model.pt"], "must end in"),
        (["-o", "nowhere/model.npz"], "there is no folder"),
        (["-o", "model.npz", "--layers", "a,b"], "not a list of widths"),
        (["-o", "model.npz", "--device", "nowhere"], "cannot be used here"),
        (["-o", "model.npz", "-m", "nothing@10"], "unknown metric"),
    ],
)
def test_errors_come_before_training(files, monkeypatch, arguments, words):
    monkeypatch.chdir(files)
    done = run("t.csv", *arguments, "--epochs", "1")
    assert done.exit_code in (2, 3)
    assert words in done.stderr
    assert not (files / "model.npz").exists()


def test_an_input_is_never_overwritten(files):
    (files / "x.npz").write_bytes((files / "t.csv").read_bytes())
    done = run(files / "x.npz", "-o", files / "x.npz")
    assert done.exit_code == 2
    assert "overwrite" in done.stderr
