"""`recsys train`: a file in, a model that every verb reads out; errors come before training."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import recsys
from recsys.benching.protocol import run_protocol
from recsys.cli.app import cli
from recsys.inputs.files import write_ncf_files
from recsys.models import TRAINABLE, describe_model, load_model, load_network, train_model

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
    """`recsys train ncf …`."""
    pytest.importorskip("torch")
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
    model = load_network(out)
    assert model.n_users == 30
    assert len(model.item_ids) == model.n_items  # items of the test that training lacks have rows, too


def test_a_table_with_text_ids_gives_a_model_with_text_ids(files):
    out = files / "model.npz"
    done = run(files / "t.csv", "-o", out, *QUICK, "-q")
    assert (done.exit_code, done.output) == (0, "")
    model = load_network(out)
    assert model.user_ids[0] == "u0"
    result = recsys.evaluate(model, {"u3": ["i5"], "u7": ["i9"]}, ["mrr"])
    assert result.counts["cases"] == 2


def test_the_same_command_gives_the_same_network(files):
    for name in ("a.npz", "b.npz"):
        assert run(files / "t.csv", "-o", files / name, *QUICK, "-q").exit_code == 0
    assert_same_files(files / "a.npz", files / "b.npz")


def assert_same_files(one, other):
    """All arrays are equal bit by bit, and the descriptions but for the seconds."""
    descriptions = [describe_model(path) for path in (one, other)]
    assert all(description.pop("seconds") >= 0 for description in descriptions)
    assert descriptions[0] == descriptions[1]
    with np.load(one) as first, np.load(other) as second:
        assert first.files == second.files
        for name in set(first.files) - {"recsys"}:
            assert first[name].tobytes() == second[name].tobytes()


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

    model = load_network(path)
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
    done = call("inspect", "115", out, "--train", train, "-k", "5", "--csv", "-q")
    assert done.exit_code == 0, done.output
    head, *rows = (line.split(",") for line in done.stdout.splitlines())
    shown = [(int(row[head.index("item")]), float(row[head.index("score")])) for row in rows]
    expected = plain_order(out, "115", without={str(item) for item in history})[:5]
    assert [str(item) for item, _ in shown] == [item for item, _ in expected]
    assert [score for _, score in shown] == pytest.approx([score for _, score in expected], rel=1e-5)


def test_inspect_knows_a_user_by_id_and_not_by_row(ratings):
    out = ratings / "model.npz"
    assert run(ratings / "train.csv", "-o", out, *QUICK, *LEARN).exit_code == 0
    done = call("inspect", "3", out)  # row 3 is there; user 3 is not
    assert done.exit_code == 3
    assert "user '3' is not one of the 20 users" in done.stderr
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
    seen: dict[str, set[str]] = {}
    for line in train.read_text().splitlines()[1:]:
        user, item, _ = line.split(",")
        seen.setdefault(user, set()).add(item)
    reciprocal = []
    for line in test.read_text().splitlines()[1:]:
        user, item, _ = line.split(",")
        order = [ranked for ranked, _ in plain_order(out, user, without=seen[user])]
        reciprocal.append(1 / (order.index(item) + 1) if item in order else 0.0)
    assert row["value"] == pytest.approx(np.mean(reciprocal), rel=1e-9)
    done = call("audit", train, test, "--lists", out, "--only", "popularity_baseline", "--json")
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
        with pytest.raises(recsys.errors.FileError, match="not products of factors"):
            load_factors(out)
        return
    users, items = load_factors(out)
    model, best = load_network(out), dict(plain_order(out, "115", without=()))
    scores = users[model.user_ids.tolist().index("115")] @ items.T
    assert scores.tolist() == pytest.approx([best[item] for item in model.item_ids.tolist()], rel=1e-4)


# Baselines: every row of TRAINABLE by the command, and its file in every verb.


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Ids such as 007 that are text only; users with two tastes, and a time for each row."""
    folder = tmp_path_factory.mktemp("world")
    rng = np.random.default_rng(5)
    rows, when = {"train": [], "test": []}, 0
    for user in range(40):
        taste = rng.permutation(np.arange(12) + 12 * (user % 2))[:8]
        for place, item in enumerate([*taste, int(rng.integers(24))]):
            when += 1
            part = "test" if place in (6, 7) else "train"
            rows[part].append(f"{user:03},{item:02},{when}\n")
    for part, lines in rows.items():
        (folder / f"{part}.csv").write_text("user,item,timestamp\n" + "".join(lines))
    (folder / "items.csv").write_text("item,title\n" + "".join(f"{i:02},film {i}\n" for i in range(30)))
    return folder


def train_by_command(world, name, *options):
    if not TRAINABLE[name].installed:
        pytest.skip(f"{name} needs {TRAINABLE[name].extra}")
    out = world / f"{name}.npz"
    done = call("train", name, world / "train.csv", "-o", out, "-q", *options)
    assert (done.exit_code, done.output) == (0, "")
    return out


def printed_values(done):
    assert done.exit_code == 0, done.output
    return {row["metric"]: row["value"] for row in json.loads(done.stdout)["result"]["metrics"]}


@pytest.mark.filterwarnings("ignore::recsys.errors.TieWarning")
@pytest.mark.parametrize("suffix", ["npz", "safetensors"])
@pytest.mark.parametrize("name", list(TRAINABLE))
def test_the_command_gives_the_number_of_the_fitted_source(world, name, suffix):
    if suffix == "safetensors":
        pytest.importorskip("safetensors")
    if not TRAINABLE[name].installed:
        pytest.skip(f"{name} needs {TRAINABLE[name].extra}")
    out, metrics = world / f"round_{name}.{suffix}", ["ndcg@5", "recall@10", "auc"]
    assert call("train", name, world / "train.csv", "-o", out, "--seed", "3", "-q").exit_code == 0
    history = recsys.read_file(world / "train.csv", "truth")
    source = train_model(name, history, seed=3)
    fitted = recsys.evaluate(source, world / "test.csv", metrics, seen=history)
    asked = [option for metric in metrics for option in ("-m", metric)]
    done = call("evaluate", out, world / "test.csv", "--train", world / "train.csv", *asked, "--json", "-q")
    assert printed_values(done) == dict(fitted)
    assert fitted.counts["cases"] == 40
    by_path = recsys.evaluate(out, world / "test.csv", metrics, seen=world / "train.csv")
    assert dict(by_path) == dict(fitted)
    assert recsys.recommend(str(out), 3).codes.tolist() == recsys.recommend(source, 3).codes.tolist()


@pytest.mark.parametrize("name", ["popularity", "random"])
def test_a_protocols_baseline_is_the_trained_model_also_for_new_users(world, tmp_path, name):
    cold = tmp_path / "cold.csv"
    cold.write_text((world / "test.csv").read_text() + "new,01,999\nnewer,13,999\n")
    (tmp_path / "protocol.toml").write_text(
        f"""seed = 4
[data]
train = {str(world / "train.csv")!r}
test = {str(cold)!r}
[candidates]
seen = "exclude"
[metrics]
names = ["ndcg", "mrr", "coverage"]
k = [5]
[models.{name}]
baseline = "{name}"
"""
    )
    expected = run_protocol(tmp_path / "protocol.toml").evaluations[name]
    assert (expected.counts["cases"], expected.counts.get("without_list", 0)) == (42, 0)
    out = train_by_command(world, name, "--seed", "4")
    asked = [option for metric in expected for option in ("-m", metric)]
    done = call("evaluate", out, cold, "--train", world / "train.csv", *asked, "--json", "-q")
    assert printed_values(done) == dict(expected)


@pytest.mark.parametrize("name", ["ease", "bpr"])
def test_the_same_command_gives_the_same_model(world, name):
    first = train_by_command(world, name).rename(world / f"first_{name}.npz")
    assert_same_files(first, train_by_command(world, name))


def test_every_verb_reads_the_model(world, tmp_path):
    knn, ease = train_by_command(world, "item-knn"), train_by_command(world, "ease")
    train, test = world / "train.csv", world / "test.csv"
    source = load_model(knn)
    best = recsys.recommend(source, 3, users=["007"], seen=train)
    done = call(
        "inspect", "007", knn, "--train", train, "--items", world / "items.csv", "-k", "3", "--csv", "-q"
    )
    assert done.exit_code == 0, done.output
    head, *rows = (line.split(",") for line in done.stdout.splitlines())
    assert [row[head.index("item")] for row in rows] == best.to_frame()["item"].tolist()
    assert rows[0][head.index("title")] == f"film {int(rows[0][head.index('item')])}"
    value = recsys.evaluate(source, test, ["ndcg@5"], seen=train)["ndcg@5"]
    done = call("compare", knn, ease, "--truth", test, "--train", train, "-m", "ndcg@5", "--csv", "-q")
    assert done.exit_code == 0, done.output
    head, row = (line.split(",") for line in done.stdout.splitlines())
    assert float(row[head.index("baseline_value")]) == value
    done = call("audit", train, test, "--lists", knn, "--only", "popularity_baseline", "--json", "-q")
    assert [finding["name"] for finding in json.loads(done.stdout)["findings"]] == ["popularity_baseline"]
    done = call(
        "report",
        knn,
        ease,
        "--truth",
        test,
        "--train",
        train,
        "-m",
        "ndcg@5",
        "-o",
        tmp_path / "r.html",
        "-q",
    )
    assert done.exit_code == 0, done.output
    assert f"{value:.4f}" in (tmp_path / "r.html").read_text()
    (tmp_path / "protocol.toml").write_text(
        f"""[data]
train = '{train}'
test = '{test}'
[metrics]
names = ['ndcg@5']
[models.knn]
lists = '{knn}'
[models.popularity]
baseline = 'popularity'
"""
    )
    done = call("run", tmp_path / "protocol.toml", "--json", "-q")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["result"]["models"]["knn"]["metrics"][0]["value"] == value


def test_the_documents_loader_takes_the_factors_of_a_baseline(world):
    from recsys.cf.evaluation import load_model as load_factors

    out = train_by_command(world, "popularity")
    users, items = load_factors(out)
    assert np.array_equal(users @ items.T, load_model(out).users @ load_model(out).items.T)
    with pytest.raises(recsys.errors.FileError, match="of the kind 'history', whose scores are not products"):
        load_factors(train_by_command(world, "ease"))


def test_settings_are_read_kept_and_used(world):
    out = train_by_command(
        world, "item-knn", "--set", "neighbours=2", "--set", "weighting=tf-idf", "--set", "shrinkage=1"
    )
    about = describe_model(out)
    assert about["name"] == "item-knn"
    assert about["settings"] == {"neighbours": 2, "weighting": "tf-idf", "shrinkage": 1.0}
    history = recsys.read_file(world / "train.csv", "truth")
    assert about["data"]["interactions"] == len(history.codes)
    source = load_model(out)
    assert np.diff(source.weights.tocsc().indptr).max() == 2
    fitted = train_model("item-knn", history, neighbours=2, weighting="tf-idf", shrinkage=1.0)
    assert np.array_equal(source.weights.toarray(), fitted.weights.toarray())


def test_recent_takes_a_length_or_a_share_and_needs_times(world, tmp_path):
    by_length, by_number, by_share = (
        load_model(train_by_command(world, "recent", *options)).items[:, 0].tolist()
        for options in (
            ("--set", "half_life=30s", "--set", "unit=s"),
            ("--set", "half_life=30"),
            ("--set", "share=0.9"),
        )
    )
    assert by_length == by_number != by_share
    (tmp_path / "plain.csv").write_text("user,item\n1,2\n")
    done = call("train", "recent", tmp_path / "plain.csv", "-o", tmp_path / "m.npz")
    assert done.exit_code == 3
    assert "needs times" in done.stderr


def test_a_table_of_items_is_the_catalogue(world):
    few, all_items = (
        load_model(train_by_command(world, "popularity", *options))
        for options in ((), ("--items", world / "items.csv"))
    )
    assert few.n_items == 24
    assert all_items.n_items == 30
    assert all_items.catalogue.values.tolist() == [f"{item:02}" for item in range(30)]


def test_ids_are_read_as_by_all_verbs(world, tmp_path):
    (tmp_path / "t.csv").write_text("user,item\n1,10\n1,20\n2,20\n")
    for ids, kept in (("str", ["1", "2"]), ("int", [1, 2])):
        out = tmp_path / f"{ids}.npz"
        assert call("train", "popularity", tmp_path / "t.csv", "-o", out, "--ids", ids, "-q").exit_code == 0
        assert load_model(out).user_rows.ids.values.tolist() == kept
        # Whatever is kept, a verb reads it as it reads its other files.
        values = [
            printed_values(call("evaluate", out, tmp_path / "t.csv", "-m", "hit@1", "--json", "-q", *more))
            for more in ((), ("--ids", "int"))
        ]
        assert values[0] == values[1] == {"hit@1": 1.0}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["eaze", "train.csv", "-o", "m.npz"], "Did you mean 'ease'?"),
        (["ease", "train.csv", "-o", "m.csv"], "must end in .npz or .safetensors"),
        (["ease", "train.csv", "-o", "m.npz", "--set", "lambda=3"], "unknown setting of ease"),
        (["ease", "train.csv", "-o", "m.npz", "--set", "regularisation"], "is not SETTING=VALUE"),
        (["ease", "train.csv", "-o", "m.npz", "--set", "regularisation=much"], "is a number, such as"),
        (["ease", "train.csv", "-o", "m.npz", "--set", "regularisation=0"], "is not above 0"),
        (["item-knn", "train.csv", "-o", "m.npz", "--set", "neighbours=1.5"], "is a whole number, such as"),
        (["item-knn", "train.csv", "-o", "m.npz", "--set", "weighting=none"], "unknown weighting"),
        (["random", "train.csv", "-o", "m.npz", "--set", "neighbours=1"], "unknown setting of random"),
        (["ease", "nowhere.csv", "-o", "m.npz"], "there is no file"),
    ],
)
def test_what_cannot_be_trained_is_said_first(world, monkeypatch, arguments, words):
    monkeypatch.chdir(world)
    done = call("train", *arguments)
    assert done.exit_code in (2, 3, 4)
    assert words in done.stderr
    assert not (world / "m.npz").exists()


def test_ease_that_does_not_fit_is_refused(world, monkeypatch, tmp_path):
    needed = TRAINABLE["ease"].memory(24)
    for free, code in ((needed - 1, 3), (needed, 0), (None, 0)):
        monkeypatch.setattr("recsys.models.trainable.free_memory", lambda free=free: free)
        done = call("train", "ease", world / "train.csv", "-o", tmp_path / "m.npz", "-q")
        assert done.exit_code == code, done.output
        assert ("ease of 24 items takes 13.9KB" in done.stderr) == (code == 3)


def test_help_lists_the_models_and_their_settings():
    done = call("train", "--help")
    for name, entry in TRAINABLE.items():
        assert f"  {name}" in done.stdout
        assert entry.help in done.stdout
    assert "  ncf" in done.stdout
    assert "regularisation=500.0" in call("train", "ease", "--help").stdout


def test_a_damaged_or_foreign_file_is_refused_with_what_was_found(world, tmp_path):
    whole = train_by_command(world, "ease").read_bytes()
    (tmp_path / "cut.npz").write_bytes(whole[: len(whole) // 2])
    np.savez(tmp_path / "others.npz", a=np.ones((2, 3)), b=np.ones((4, 3)))
    for name, words in (("cut.npz", "cannot be read"), ("others.npz", "holds no user matrix; found a, b")):
        done = call("evaluate", tmp_path / name, world / "test.csv")
        assert done.exit_code == 3
        assert words in done.stderr


def test_factors_without_ids_are_rows_and_inspect_says_so(tmp_path):
    matrices = {"U": np.eye(2), "V": np.array([[1.0, 0.0], [3.0, 1.0], [2.0, 5.0]])}
    np.savez(tmp_path / "m.npz", **matrices)
    done = call("inspect", "1", tmp_path / "m.npz", "--csv")
    assert done.stdout.splitlines()[1].startswith("1,2,5.0")
    assert "m.npz holds no user ids, so users are rows, which count from 0; --user-ids FILE" in done.stderr
    (tmp_path / "truth.csv").write_text("user,item\n1,3\n2,1\n")
    done = call("inspect", "1", tmp_path / "m.npz", "--truth", tmp_path / "truth.csv")
    assert done.exit_code == 3
    assert "user '2' of the truth does not exist in the model, which has 2 users, ids 0 to 1" in done.stderr
    for users, items in (([1, 2], [1, 2, 3]), (["1", "2"], ["1", "2", "3"])):
        np.savez(tmp_path / "ids.npz", **matrices, user_ids=np.array(users), item_ids=np.array(items))
        for kind in ("str", "int", "auto"):
            done = call("inspect", "2", tmp_path / "ids.npz", "--csv", "--ids", kind)
            assert done.stdout.splitlines()[1].startswith("1,3,5.0")
            assert done.stderr == ""


def test_evaluate_factors_takes_the_ids_beside_them(tmp_path):
    np.savez(tmp_path / "U.npz", U=np.eye(2), user_ids=np.array(["ann", "ben"]))
    np.savez(
        tmp_path / "V.npz", V=np.array([[1.0, 0.0], [3.0, 1.0], [2.0, 5.0]]), item_ids=np.array([1, 2, 3])
    )
    (tmp_path / "truth.csv").write_text("user,item\nann,1\nben,3\n")
    factors = ("--factors", tmp_path / "U.npz", tmp_path / "V.npz", "--truth", tmp_path / "truth.csv")
    done = call("evaluate", *factors, "-m", "mrr", "--csv")
    assert done.exit_code == 0, done.output
    assert float(done.stdout.splitlines()[1].split(",")[1]) == pytest.approx((1 / 3 + 1) / 2)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_rows_without_a_rating_are_left_out_and_counted(ending, tmp_path):
    rows = [
        (f"u{u}", f"i{(u + j) % 7}", np.nan if (u + j) % 4 == 0 else 3.0) for u in range(9) for j in range(5)
    ]
    frame = pd.DataFrame(rows, columns=["user", "item", "rating"])
    for name, table in (("gaps", frame), ("rated", frame.dropna())):
        path = tmp_path / f"{name}.{ending}"
        table.to_csv(path, index=False) if ending == "csv" else table.to_parquet(path, index=False)
        arguments = ["train", "popularity", str(path), "-o", str(tmp_path / f"{name}.npz")]
        done = CliRunner().invoke(cli, arguments)
        assert done.exit_code == 0, done.output
        assert ("left out: 12 rows without a rating" in done.stderr) == (name == "gaps")
        assert CliRunner().invoke(cli, [*arguments, "-q"]).stderr == ""
    about = [load_model(tmp_path / f"{name}.npz").about["data"] for name in ("gaps", "rated")]
    assert about[0] == about[1]
    frame.assign(rating="good").to_csv(tmp_path / "words.csv", index=False)
    done = CliRunner().invoke(
        cli, ["train", "popularity", str(tmp_path / "words.csv"), "-o", str(tmp_path / "w.npz")]
    )
    assert "the grade 'good' is not a number" in done.stderr
