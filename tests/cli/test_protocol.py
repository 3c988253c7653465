"""A protocol file: executed as written, twice to the same bytes; mistakes in it are named with their line."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import recsys
from recsys.benching.protocol import read_protocol, run_protocol
from recsys.benching.protocol.keys import as_key
from recsys.cli.app import cli
from recsys.errors import FileError, MissingFileError, ProtocolError, RecsysError, wording

PROTOCOL = """\
title = "Tiny"
seed = 7

[data]
interactions = "events.csv"

[split]
how = "leave_last"
n = 2

[relevance]
from = 3

[conventions]
ties = "expected"

[metrics]
names = ["ndcg", "recall", "coverage"]
k = [2, 5]

[models.popularity]
baseline = "popularity"

[models.random]
baseline = "random"

[models.mine]
factors = ["U.npy", "V.npy"]
user_ids = "users.txt"
item_ids = "items.txt"

[models.listed]
lists = "lists.csv"

[compare]
baseline = "popularity"
metrics = ["ndcg@5"]

[output]
folder = "results"
"""


@pytest.fixture
def place(tmp_path):
    rng = np.random.default_rng(0)
    rows = [
        (f"u{u:02d}", f"i{i:02d}", int(rng.integers(1, 6)), 1000 * u + t)
        for u in range(40)
        for t, i in enumerate(rng.permutation(25)[:9])
    ]
    events = pd.DataFrame(rows, columns=["user", "item", "rating", "timestamp"])
    events.to_csv(tmp_path / "events.csv", index=False)
    np.save(tmp_path / "U.npy", rng.normal(size=(40, 4)))
    np.save(tmp_path / "V.npy", rng.normal(size=(25, 4)))
    (tmp_path / "users.txt").write_text("".join(f"u{u:02d}\n" for u in range(40)))
    (tmp_path / "items.txt").write_text("".join(f"i{i:02d}\n" for i in range(25)))
    shown = [(f"u{u:02d}", f"i{(u + j) % 25:02d}", j + 1) for u in range(40) for j in range(5)]
    pd.DataFrame(shown, columns=["user", "item", "rank"]).to_csv(tmp_path / "lists.csv", index=False)
    (tmp_path / "protocol.toml").write_text(PROTOCOL)
    return tmp_path


def test_it_does_what_the_same_calls_do(place):
    outcome = run_protocol(place / "protocol.toml")
    events = pd.read_csv(place / "events.csv")
    train, test = recsys.split(events, "leave_last", n=2, seed=7)
    had = set(zip(train["user"], train["item"], strict=True))
    lists = pd.read_csv(place / "lists.csv")
    new = [pair not in had for pair in zip(lists["user"], lists["item"], strict=True)]
    assert not all(new)  # what users had is left out, as models leave it out
    expected = recsys.evaluate(
        lists[new], test, ["ndcg@5", "recall@2", "coverage@5"], train=train,
        conventions={"relevant_from": 3, "ties": "expected"}, seen=train,
    )  # fmt: skip
    for name, value in expected.items():
        assert outcome.evaluations["listed"][name] == value
    assert list(outcome.evaluations) == ["popularity", "random", "mine", "listed"]
    assert {row.model for row in outcome.comparison} == {"random", "mine", "listed"}
    assert "Tiny" in str(outcome)
    assert len(list((place / "results").glob("*.json"))) == 4


def test_cautions_of_a_single_model_say_which_key_to_write(place):
    truth = pd.DataFrame({"user": ["a", "b", "c"], "item": [1, 2, 3], "rating": [1, 3, 5]})
    result = recsys.evaluate({"a": [1], "b": [2], "c": [3]}, truth, ["ndcg@1"])
    alone = replace(run_protocol(place / "protocol.toml"), evaluations={"mine": result}, comparison=None)
    assert "relevant_from=5 would leave" in str(alone)
    with wording(as_key):
        assert "relevant_from = 5 in [conventions] would leave" in str(alone)


def test_an_aggregate_is_that_of_evaluate(place):
    text = PROTOCOL.replace("k = [2, 5]", 'k = [2, 5]\naggregate = "p75"')
    (place / "protocol.toml").write_text(text)
    found = run_protocol(place / "protocol.toml").evaluations["listed"]
    values = np.sort(found.values_of("ndcg@5"))[: found.n_cases["ndcg@5"]]
    assert found.aggregate.name == "p75"
    assert found["ndcg@5"] == values[int(np.ceil(0.75 * len(values))) - 1]
    (place / "protocol.toml").write_text(text.replace("p75", "mode"))
    with pytest.raises(RecsysError, match=r"protocol.toml, line \d+: unknown aggregate 'mode'"):
        read_protocol(place / "protocol.toml")


def test_twice_the_same_result_bytes(place):
    first, second = (json.loads(run_protocol(place / "protocol.toml").to_json()) for _ in range(2))
    assert json.dumps(first["result"]) == json.dumps(second["result"])
    assert first["sha256"] == second["sha256"]


def test_baselines_know_the_training_side_only(place):
    before = run_protocol(place / "protocol.toml").evaluations["popularity"]
    protocol = read_protocol(place / "protocol.toml")
    events = pd.read_csv(place / "events.csv")
    train, test = recsys.split(events, "leave_last", n=2, seed=7)
    counts = train.groupby("item").size().to_dict()
    from recsys.models.baselines import popularity

    again = recsys.evaluate(
        popularity(counts, users=sorted(test.user.unique())), test, protocol.requests,
        conventions=protocol.conventions, seen=train, train=train,
    )  # fmt: skip
    assert dict(before) == dict(again)


def test_files_that_are_split_already(place):
    events = pd.read_csv(place / "events.csv")
    train, test = recsys.split(events, "leave_last", n=2, seed=7)
    train.to_csv(place / "train.csv", index=False)
    test.to_csv(place / "test.csv", index=False)
    text = PROTOCOL.replace('interactions = "events.csv"', 'train = "train.csv"\ntest = "test.csv"')
    (place / "ready.toml").write_text(text.replace('[split]\nhow = "leave_last"\nn = 2\n', ""))
    ready, whole = (run_protocol(place / name).evaluations for name in ("ready.toml", "protocol.toml"))
    assert {name: dict(e) for name, e in ready.items()} == {name: dict(e) for name, e in whole.items()}


def test_fingerprints_are_checked(place):
    digest = hashlib.sha256((place / "events.csv").read_bytes()).hexdigest()
    stated = PROTOCOL.replace("[split]", f'[data.sha256]\n"events.csv" = "{digest}"\n\n[split]')
    (place / "stated.toml").write_text(stated)
    run_protocol(place / "stated.toml")
    (place / "events.csv").write_text((place / "events.csv").read_text() + "u00,i99,5,9\n")
    with pytest.raises(FileError, match="not the file the protocol was written for"):
        run_protocol(place / "stated.toml")


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("k = [2, 5]", "k = [0]", 19, "minimum"),
        ("k = [2, 5]", "cutoff = [5]", 19, "no setting 'cutoff'"),
        ('"coverage"]', '"covrage"]', None, "covrage"),
        ('ties = "expected"', 'ties = "sometimes"', None, "sometimes"),
        ('baseline = "popularity"\nmetrics', 'baseline = "pop"\nmetrics', None, "pop"),
        ('metrics = ["ndcg@5"]', 'metrics = ["ndcg@7"]', None, "ndcg@7"),
        ('[models.random]\nbaseline = "random"', "[models.random]", 24, "exactly one of"),
        ('baseline = "random"', 'baseline = "best"', 25, "best"),
        ("seed = 7", "seed = ", 2, "line 2"),
        ("[relevance]", "[relevanz]", 11, "relevanz"),
        ('"leave_last"', '"leave_lats"', 7, "leave_lats"),
        ('"leave_last"\nn = 2', '"k_fold"', 7, "k_fold"),
        ("n = 2", "m = 2", 7, "'m'"),
        ("n = 2", "seed = 2", 7, "top of the file"),
        ("n = 2", 'columns = "x"', 7, "data.columns"),
        ('interactions = "events.csv"', 'test = "events.csv"', 7, "nothing to split"),
        ('[split]\nhow = "leave_last"\nn = 2\n', "", 4, "no [split]"),
        ("[split]", 'repeats = "last"\n[split]', 7, "repeats"),
        (
            'interactions = "events.csv"\n\n[split]\nhow = "leave_last"\nn = 2\n',
            'test = "events.csv"\nrepeats = "first"\n',
            4,
            "repeats is for interactions",
        ),
        ('baseline = "random"', 'baseline = "random"\nhalf_life = 3', 21, "half_life"),
        ('baseline = "random"', 'baseline = "recent"', 21, "half_life"),
        ('lists = "lists.csv"', 'lists = "lists.csv"\nuser_ids = "users.txt"', 21, "user_ids"),
        ("from = 3", "from = 3\nevery_row = true", 11, "too many properties"),
        ("[split]", 'reading = "bench"\nrepeats = "first"\n[split]', 9, "Take repeats out of [data]"),
        ("[split]", "[data.columns]\ngrade = true\n[split]", 8, "grade"),
    ],
)
def test_mistakes_are_named_with_their_line(place, old, new, line, words):
    assert old in PROTOCOL
    text = PROTOCOL.replace(old, new, 1)
    (place / "wrong.toml").write_text(text)
    with pytest.raises(RecsysError) as caught:
        read_protocol(place / "wrong.toml")
    message = str(caught.value)
    assert "wrong.toml" in message
    assert words in message
    if line is not None:
        assert f"line {line}" in message


def test_known_rows_of_unseen_users_are_not_recommended_again(place):
    text = PROTOCOL.replace('how = "leave_last"\nn = 2', 'how = "unseen_users"').partition("[models.random]")[
        0
    ]
    (place / "unseen.toml").write_text(text)
    lines = []
    result = run_protocol(place / "unseen.toml", progress=lines.append).evaluations["popularity"]
    parts = recsys.split(pd.read_csv(place / "events.csv"), "unseen_users", seed=7)
    counts = parts.train.groupby("item").size()
    users = parts.test["user"].unique().tolist()
    history = pd.concat([parts.train, parts.known])
    source = recsys.baselines.popularity(counts.to_dict(), users=users)
    names = ["ndcg@2", "ndcg@5"]
    conventions = {"ties": "expected", "relevant_from": 3}
    by_hand = recsys.evaluate(source, parts.test, names, seen=history, conventions=conventions)
    assert {name: result[name] for name in names} == dict(by_hand)
    assert any(line.startswith("known") for line in lines)


def test_a_folder_that_cannot_be_made(place):
    with pytest.raises(FileError, match="cannot be made"):
        run_protocol(place / "protocol.toml", folder=place / "events.csv")


def test_tables_of_several_files(place):
    """The result is that of one file; the fingerprint is that of `cd FOLDER && sha256sum * | sha256sum`."""
    expected = run_protocol(place / "protocol.toml")
    for name in ("events", "lists"):
        (place / name).mkdir()
        rows = pd.read_csv(place / f"{name}.csv")
        for at, part in enumerate((rows[:70], rows[70:])):
            part.to_csv(place / name / f"part-{at}.csv", index=False)
    text = PROTOCOL.replace("events.csv", "events/*.csv").replace("lists.csv", "lists")
    (place / "parts.toml").write_text(text)
    found = run_protocol(place / "parts.toml")
    assert {name: dict(r) for name, r in found.evaluations.items()} == {
        name: dict(r) for name, r in expected.evaluations.items()
    }
    lines = "".join(
        f"{hashlib.sha256((place / 'lists' / name).read_bytes()).hexdigest()}  {name}\n"
        for name in ("part-0.csv", "part-1.csv")
    )
    assert found.inputs["lists"] == hashlib.sha256(lines.encode()).hexdigest()
    (place / "lists" / "part-1.csv").write_text("user,item,rank\nu00,i01,6\n")
    changed = text.replace("[split]", f'[data.sha256]\nlists = "{found.inputs["lists"]}"\n\n[split]')
    (place / "parts.toml").write_text(changed)
    with pytest.raises(FileError, match="lists is not the file the protocol was written for"):
        run_protocol(place / "parts.toml")


def test_a_missing_file(place):
    (place / "wrong.toml").write_text(PROTOCOL.replace("U.npy", "gone.npy"))
    with pytest.raises(FileError, match=r"gone\.npy"):
        run_protocol(place / "wrong.toml")
    with pytest.raises(MissingFileError, match="there is no file"):
        read_protocol(place / "nowhere.toml")


def test_the_command(place, monkeypatch):
    monkeypatch.chdir(place)

    def run(*arguments):
        return CliRunner().invoke(cli, ["run", *arguments], prog_name="recsys")

    assert "4 models, 6 metrics" in run("protocol.toml", "--check").stdout
    assert '"events.csv" = "' in run("protocol.toml", "--fingerprints").stdout
    done = run("protocol.toml", "-o", "kept", "--report", "page.html")
    assert done.exit_code == 0, done.output
    assert "popularity" in done.stdout
    assert len(list((place / "kept").glob("*.json"))) == 4
    assert (place / "page.html").stat().st_size > 10_000
    quiet = run("protocol.toml", "-q", "--json")
    assert json.loads(quiet.stdout)["sha256"]
    cautions = json.loads(quiet.stdout)["cautions"]
    assert list(cautions) == ["popularity", "random", "mine", "listed"]
    codes = {caution["code"] for of_model in cautions.values() for caution in of_model}
    assert all(f"[{code}]" in done.stdout for code in codes)
    silent = json.loads(run("protocol.toml", "-q", "--json", "--cautions", "ignore").stdout)
    assert not any(silent["cautions"].values())
    assert silent["sha256"] == json.loads(quiet.stdout)["sha256"]
    assert run("protocol.toml", "--cautions", "nothing").exit_code == 2
    assert quiet.stderr == ""
    stale = PROTOCOL.replace("[split]", f'[data.sha256]\n"events.csv" = "{"0" * 64}"\n\n[split]')
    (place / "stale.toml").write_text(stale)
    assert run("stale.toml", "--check").exit_code == 3
    assert '"events.csv" = "' in run("stale.toml", "--fingerprints").stdout
    (place / "wrong.toml").write_text("data = 1")
    assert run("wrong.toml").exit_code == 3


def test_a_wrong_value_of_the_split_is_named_with_its_line(place):
    (place / "wrong.toml").write_text(PROTOCOL.replace("n = 2", "n = 0"))
    with pytest.raises(RecsysError, match=r"wrong\.toml, line 7: "):
        run_protocol(place / "wrong.toml")


def run_changed(place, old, new, *more):
    (place / "protocol.toml").write_text(PROTOCOL.replace(old, new))
    return CliRunner().invoke(cli, ["run", str(place / "protocol.toml"), *more])


def test_columns_of_other_names(place):
    """Whatever the columns are called, in the data and in lists, the result is the same."""
    expected = run_protocol(place / "protocol.toml").to_json()
    names = {"user": "who", "item": "what", "rating": "stars", "timestamp": "moment"}
    pd.read_csv(place / "events.csv").rename(columns=names).to_csv(place / "events.csv", index=False)
    renamed = pd.read_csv(place / "lists.csv").rename(columns={"user": "who", "item": "sku", "rank": "nth"})
    renamed.to_csv(place / "lists.csv", index=False)
    columns = '[data.columns]\nuser = "who"\nitem = "what"\ngrade = "stars"\ntime = "moment"\n'
    text = PROTOCOL.replace("[split]", columns + "[split]")
    own = 'lists = "lists.csv"\ncolumns = {user = "who", item = "sku", rank = "nth"}'
    (place / "protocol.toml").write_text(text.replace('lists = "lists.csv"', own))
    outcome = run_protocol(place / "protocol.toml").to_json()
    assert json.loads(outcome)["result"]["models"] == json.loads(expected)["result"]["models"]


def test_a_half_life_may_be_a_length_of_time(place):
    def recent(*settings):
        text = "\n".join(['baseline = "recent"', *settings])
        (place / "protocol.toml").write_text(PROTOCOL.replace('baseline = "random"', text))
        return json.loads(run_protocol(place / "protocol.toml").to_json())["result"]["models"]["random"]

    assert recent('half_life = "50min"', 'unit = "s"') == recent("half_life = 3000")
    with pytest.raises(recsys.errors.RecsysError, match="half_life='50min' is a length of time"):
        recent('half_life = "50min"')
    text = PROTOCOL.replace('baseline = "random"', 'baseline = "random"\nunit = "s"')
    (place / "protocol.toml").write_text(text)
    with pytest.raises(recsys.errors.RecsysError, match="unit is for models with half_life only"):
        run_protocol(place / "protocol.toml")


def test_dates_as_times(place):
    """Dates give what the seconds they stand for give, also for the recency baseline and in the report."""
    recent = PROTOCOL.replace('baseline = "random"', 'baseline = "recent"\nhalf_life = 3000')
    (place / "protocol.toml").write_text(recent + 'report = "report.html"\n')
    expected = run_protocol(place / "protocol.toml")
    events = pd.read_csv(place / "events.csv")
    events["timestamp"] = pd.to_datetime(events["timestamp"], unit="s", utc=True).astype(str)
    events.to_csv(place / "events.csv", index=False)
    outcome = run_protocol(place / "protocol.toml")
    for name, evaluation in outcome.evaluations.items():
        assert dict(evaluation) == dict(expected.evaluations[name])
    assert outcome.report.is_file()


def test_a_threshold_nothing_reaches(place):
    done = run_changed(place, "from = 3", "from = 9")
    assert done.exit_code == 3
    assert "line 12: nothing is relevant: the test has no grade above 5" in done.stderr


def test_errors_speak_of_settings_and_name_the_model(place):
    """`recsys run` has no --user-ids: the protocol has user_ids."""
    done = run_changed(place, 'user_ids = "users.txt"\n', "")
    assert done.exit_code == 3
    assert "line 27: user 'u00' of the truth does not exist in the model, which has 40" in done.stderr
    assert "as an array user_ids, or give the model user_ids in [models.NAME] with" in done.stderr
    pd.read_csv(place / "lists.csv").rename(columns={"user": "who"}).to_csv(place / "lists.csv", index=False)
    done = run_changed(place, "seed = 7", "seed = 8")
    assert "[models.NAME.columns]" in done.stderr
    assert "--user" not in done.stderr


def test_lists_are_taken_as_they_are_with_a_note(place):
    done = run_changed(place, "[conventions]", '[candidates]\nexclude = ["i00"]\n[conventions]')
    assert done.exit_code == 0, done.output
    assert "note: listed: candidates.exclude was not applied" in done.stderr


def test_ids_as_numbers_are_numbers_in_every_file(place):
    """ids = "int" holds for the files of ids beside factors, too."""
    for name in ("events.csv", "lists.csv", "users.txt", "items.txt"):
        text = (place / name).read_text()
        (place / name).write_text(re.sub(r"\b[ui](\d\d)\b", r"\1", text))
    expected = run_protocol(place / "protocol.toml").evaluations
    (place / "protocol.toml").write_text(PROTOCOL.replace("[split]", 'ids = "int"\n[split]'))
    outcome = run_protocol(place / "protocol.toml").evaluations
    for name in ("popularity", "mine", "listed"):
        assert dict(outcome[name]) == dict(expected[name])


def test_grades_that_are_counts_are_not_read(place):
    """Every row is relevant, whatever its grade, as if the column were not there."""
    counts = PROTOCOL.replace("from = 3", "every_row = true")
    (place / "counts.toml").write_text(counts)
    bare = PROTOCOL.replace("[relevance]\nfrom = 3\n", "").replace(
        "[split]", "[data.columns]\ngrade = false\n[split]"
    )
    (place / "bare.toml").write_text(bare)
    found, graded = (run_protocol(place / f"{name}.toml").evaluations for name in ("counts", "protocol"))
    assert {m: dict(e) for m, e in found.items()} != {m: dict(e) for m, e in graded.items()}
    bare = run_protocol(place / "bare.toml").evaluations
    pd.read_csv(place / "events.csv").drop(columns="rating").to_csv(place / "events.csv", index=False)
    for name, evaluation in run_protocol(place / "counts.toml").evaluations.items():
        assert dict(evaluation) == dict(found[name]) == dict(bare[name])


def _everything(folder):
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('report = "../page.html"', "outside the folder of the protocol"),
        ('report = "/tmp/page.html"', "outside the folder of the protocol"),
        ('report = "link/page.html"', "outside the folder of the protocol"),
        ('report = "linked.html"', "outside the folder of the protocol"),
        ('folder = "../../there"', "outside the folder of the protocol"),
        ('folder = "link"', "outside the folder of the protocol"),
        ('folder = "results/../../there"', "outside the folder of the protocol"),
        ('report = "events.csv"', "is not a page"),
        ('report = "protocol.toml"', "is not a page"),
        ('report = "nul\\u0000.html"', "is not a path"),
        ('report = "lists.html"', "would overwrite what the protocol reads"),
        ('report = "same.html"', "would overwrite what the protocol reads"),
        ('report = "events/page.html"', "would overwrite what the protocol reads"),
        ('folder = "events"', "would overwrite what the protocol reads"),
        ('folder = "events/deeper"', "would overwrite what the protocol reads"),
    ],
)
def test_a_protocol_writes_below_its_folder_and_over_no_input(place, line, words):
    inside = place / "study"
    inside.mkdir()
    for path in list(place.iterdir()):
        if path != inside:
            path.rename(inside / path.name)
    (inside / "events").mkdir()
    (inside / "events.csv").rename(inside / "events" / "events.csv")
    (inside / "lists.csv").rename(inside / "lists.html")
    (inside / "same.html").symlink_to("lists.html")
    (inside / "linked.html").symlink_to(place / "mine.html")
    (inside / "link").symlink_to(place, target_is_directory=True)
    (place / "mine.html").write_text("mine")
    text = PROTOCOL.replace("events.csv", "events").replace("lists.csv", "lists.html")
    (inside / "protocol.toml").write_text(text.partition("[output]")[0] + f"[output]\n{line}\n")
    before = _everything(place)
    with pytest.raises(ProtocolError, match=words) as caught:
        run_protocol(inside / "protocol.toml")
    assert caught.value.hint
    assert _everything(place) == before
    done = CliRunner().invoke(cli, ["run", str(inside / "protocol.toml")], prog_name="recsys")
    assert done.exit_code == 3
    assert words.split()[-1] in done.stderr


def test_asked_outputs_may_be_anywhere_but_over_an_input(place, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    outcome = run_protocol(place / "protocol.toml", folder=elsewhere, report=elsewhere / "page.html")
    assert outcome.report.is_file()
    assert {path.parent for path in outcome.paths.values()} == {elsewhere}
    for name in ("events.csv", "protocol.toml", "U.npy"):
        with pytest.raises(ProtocolError, match="would overwrite what the protocol reads"):
            run_protocol(place / "protocol.toml", report=place / name)
