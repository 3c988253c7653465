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


# The model in the file, used by the other verbs.

KINDS = ["gmf", "mlp", "neumf", "mf", "biased_mf"]
LEARN = ["-q", "--learning-rate", "0.05", "--all-epochs"]


def call(*arguments):
    return CliRunner().invoke(cli, [*map(str, arguments)])


@pytest.fixture
def ratings(tmp_path):
    """Ids that are not row numbers: users from 101 in steps of 7, items from 1000 in steps of 3."""
    rng = np.random.default_rng(1)
    rows = []
    for user in range(20):
        for when, item in enumerate(rng.choice(40, 8, replace=False)):
            rows.append((101 + 7 * user, 1000 + 3 * int(item), when))
    for name, part in (("train", rows), ("test", [row for row in rows if row[2] == 7])):
        kept = [row for row in part if name == "test" or row[2] < 7]
        text = "user,item,timestamp\n" + "".join(f"{u},{i},{t}\n" for u, i, t in kept)
        (tmp_path / f"{name}.csv").write_text(text)
    return tmp_path


def plain_order(path, user, without):
    """[(item, logit)] of a user, best first: one call of the network for each pair."""
    import torch

    model = load_model(path)
    row = model.user_ids.tolist().index(user)
    with torch.no_grad():
        scores = {
            item: float(model(torch.tensor([row]), torch.tensor([column])))
            for column, item in enumerate(model.item_ids.tolist())
        }
    return sorted(((i, s) for i, s in scores.items() if i not in without), key=lambda p: (-p[1], p[0]))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("suffix", ["npz", "safetensors"])
def test_inspect_shows_the_items_the_network_ranks_first(ratings, kind, suffix):
    out, train = ratings / f"model.{suffix}", ratings / "train.csv"
    assert run(train, "-o", out, "--model", kind, *QUICK, *LEARN).exit_code == 0
    history = {
        int(line.split(",")[1]) for line in train.read_text().splitlines() if line.startswith("115,")
    }  # fmt: skip
    assert len(history) == 7
    done = call("inspect", "115", out, "--seen", train, "-k", "5", "--csv", "-q")
    assert done.exit_code == 0, done.output
    head, *rows = (line.split(",") for line in done.stdout.splitlines())
    shown = [(int(row[head.index("item")]), float(row[head.index("score")])) for row in rows]
    expected = plain_order(out, 115, without=history)[:5]
    assert [item for item, _ in shown] == [item for item, _ in expected]
    assert [score for _, score in shown] == pytest.approx([score for _, score in expected], rel=1e-5)


def test_inspect_knows_a_user_by_id_and_not_by_row(ratings):
    out = ratings / "model.npz"
    assert run(ratings / "train.csv", "-o", out, *QUICK, *LEARN).exit_code == 0
    done = call("inspect", "3", out)  # row 3 is there; user 3 is not
    assert done.exit_code == 3
    assert "user '3' is not in" in done.stderr
    assert "Check the id" in done.stderr
    assert call("inspect", "101", out, "--ids", "auto").exit_code == 0
    assert call("inspect", "101", out, "--ids", "int").exit_code == 0


@pytest.mark.parametrize("kind", ["gmf", "neumf"])
def test_evaluate_and_compare_take_the_model_as_it_was_kept(ratings, kind):
    out, train, test = ratings / "model.npz", ratings / "train.csv", ratings / "test.csv"
    assert run(train, "-o", out, "--model", kind, *QUICK, *LEARN).exit_code == 0
    done = call("evaluate", out, test, "--seen", train, "-m", "mrr", "--json")
    assert done.exit_code == 0, done.output
    (row,) = json.loads(done.stdout)["result"]["metrics"]
    seen: dict[int, set[int]] = {}
    for line in train.read_text().splitlines()[1:]:
        user, item, _ = map(int, line.split(","))
        seen.setdefault(user, set()).add(item)
    reciprocal = []
    for line in test.read_text().splitlines()[1:]:
        user, item, _ = map(int, line.split(","))
        order = [ranked for ranked, _ in plain_order(out, user, without=seen[user])]
        reciprocal.append(1 / (order.index(item) + 1) if item in order else 0.0)
    assert row["value"] == pytest.approx(np.mean(reciprocal), rel=1e-9)
    done = call("audit", train, test, "--lists", out, "--check", "popularity_baseline", "--json")
    findings = json.loads(done.stdout)["findings"]
    assert [finding["name"] for finding in findings] == ["popularity_baseline"]
    done = call("evaluate", "--factors", out, out, "--truth", test)
    assert done.exit_code == 2
    assert f"recsys evaluate {out} {test}, without --factors" in done.stderr
    lists = ratings / "lists.csv"
    lists.write_text("user,item,rank\n" + "".join(f"{user},1000,1\n" for user in seen))
    done = call("compare", out, lists, "--truth", test, "--seen", train, "-m", "mrr", "--csv")
    assert done.exit_code == 0, done.output
    head, values = (line.split(",") for line in done.stdout.splitlines())
    assert values[head.index("baseline")] == "model"
    assert float(values[head.index("baseline_value")]) == pytest.approx(row["value"])


def test_ids_of_rows_are_for_models_and_may_be_given_for_factors(tmp_path):
    np.savez(tmp_path / "m.npz", U=np.eye(2), V=np.array([[1.0, 0.0], [3.0, 1.0], [2.0, 5.0]]))
    (tmp_path / "users.txt").write_text("ann\nben\n")
    (tmp_path / "items.txt").write_text("x\ny\nz\n")
    ids = ["--user-ids", tmp_path / "users.txt", "--item-ids", tmp_path / "items.txt"]
    done = call("inspect", "ben", tmp_path / "m.npz", *ids, "--csv")
    assert [line.split(",")[1] for line in done.stdout.splitlines()[1:]] == ["z", "y", "x"]
    done = call("inspect", "900", tmp_path / "m.npz")
    assert done.exit_code == 3
    assert "--user-ids" in done.stderr  # which is an option here
    (tmp_path / "lists.csv").write_text("user,item\nann,x\n")
    for verb in (["inspect", "ann"], ["evaluate"]):
        more = [tmp_path / "lists.csv"] if verb == ["evaluate"] else []
        done = call(*verb, tmp_path / "lists.csv", *more, *ids)
        assert done.exit_code == 2
        assert "name the rows of a model" in done.stderr


@pytest.mark.parametrize("kind", KINDS)
def test_the_documents_loader_takes_factors_with_their_weights_or_refuses(ratings, kind):
    from recsys.cf.evaluation import load_model as load_factors

    out = ratings / "model.npz"
    assert run(ratings / "train.csv", "-o", out, "--model", kind, *QUICK, *LEARN).exit_code == 0
    if kind in ("mlp", "neumf"):
        with pytest.raises(recsys.errors.FileError, match="no products of factors"):
            load_factors(out)
        return
    users, items = load_factors(out)
    model, best = load_model(out), dict(plain_order(out, 115, without=()))
    scores = users[model.user_ids.tolist().index(115)] @ items.T
    assert scores.tolist() == pytest.approx([best[item] for item in model.item_ids.tolist()], rel=1e-4)
