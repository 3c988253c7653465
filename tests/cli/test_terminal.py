"""What a terminal shows: tables within its width, colours by verdict, grouped help, one word per thing."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import click
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import recsys
from recsys.cli.app import VERBS, Verb, cli

N_USERS = 60
METRICS = "ndcg@5,recall@5,coverage@5,gini@5,mrr,novelty@5,ndcg(gain=exp2)@5"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Three models with long names, their saved results, and items with long titles."""
    place = tmp_path_factory.mktemp("terminal")
    rng = np.random.default_rng(0)
    users, items = np.repeat(np.arange(N_USERS), 5), rng.integers(0, 40, N_USERS * 5)
    truth = pd.DataFrame({"user": users, "item": items}).drop_duplicates()
    truth.to_csv(place / "truth.csv", index=False)
    truth.sample(frac=0.6, random_state=1).to_csv(place / "train.csv", index=False)
    people = pd.DataFrame({"user": np.arange(N_USERS), "land": ["a", "b"] * (N_USERS // 2)})
    people.to_csv(place / "people.csv", index=False)
    titles = [f"A film number {i} with quite a long title, and how it came about" for i in range(40)]
    kinds = ["Action|Adventure|Romance|Sci-Fi|War|Documentary|Film-Noir"] * 40
    about = pd.DataFrame({"item": np.arange(40), "title": titles, "genres": kinds})
    about.to_csv(place / "items.csv", index=False)
    train = pd.read_csv(place / "train.csv")
    for name, n in (("popularity", 8), ("als_with_128_factors_and_more", 20), ("映画の推薦モデル", 40)):
        rows = [(u, i, r) for u in range(N_USERS) for r, i in enumerate(rng.permutation(n)[:5], 1)]
        lists = pd.DataFrame(rows, columns=["user", "item", "rank"])
        lists.to_csv(place / f"{name}.csv", index=False)
        recsys.evaluate(lists, truth, METRICS, train=train).save(place / f"{name}.json")
    return place


def shown(folder, command, width=None, **environment):
    """What a command prints, in a pipe of this width; the default of the command without one."""
    runner = CliRunner(env={"COLUMNS": None if width is None else str(width), **environment})
    before = Path.cwd()
    os.chdir(folder)
    try:
        done = runner.invoke(cli, command.split(), prog_name="recsys")
    finally:
        os.chdir(before)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.output
    return done.stdout


def columns_of(line):
    """How wide a line is: the film characters of the third model take two columns each."""
    return sum(2 if ord(char) > 0x2E80 else 1 for char in line)


RESULTS = "popularity.json als_with_128_factors_and_more.json 映画の推薦モデル.json"
COMMANDS = [
    f"compare {RESULTS} --baseline popularity",
    f"compare {RESULTS} -m ndcg@5 --no-worse-than 0.01 --rope 0.01",
    "inspect 7 popularity.csv --items items.csv --truth truth.csv --train train.csv",
    f"evaluate popularity.csv truth.csv --train train.csv --users people.csv --by land -m {METRICS} --bounds",
    "history .",
    "gate popularity.json --against 映画の推薦モデル.json -m ndcg@5 -m recall@5",
    "audit train.csv truth.csv --lists popularity.csv --ids int",
    "explain default rectools --lists popularity.csv --truth truth.csv -m ndcg@5",
    "metrics",
    "metrics ndcg",
    "conventions",
    "conventions rectools",
    "study",
]


@pytest.mark.parametrize("command", COMMANDS)
def test_no_line_is_wider_than_the_terminal_and_nothing_is_lost(folder, command):
    whole = Counter(re.sub(r"[\s-]", "", shown(folder, command, 1000)))
    assert whole.total() > 100
    for width in (80, 100, 120):
        text = shown(folder, command, width)
        assert max(map(columns_of, text.splitlines())) <= width, text
        assert not whole - Counter(re.sub(r"[\s-]", "", text))
    assert shown(folder, command) == shown(folder, command, 120)  # the width of a pipe


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a terminal")
def test_a_terminal_adds_colours_only(folder):
    arguments = f"compare {RESULTS} --baseline popularity".split()
    environment = {**os.environ, "COLUMNS": "100", "TERM": "xterm"}
    environment.pop("NO_COLOR", None)
    texts = {}
    for name, more in (("colour", {}), ("plain", {"NO_COLOR": "1"})):
        reader, terminal = os.openpty()
        subprocess.run(
            [sys.executable, "-m", "recsys.cli", *arguments], cwd=folder, stdout=terminal, check=True,
            stderr=subprocess.DEVNULL, env=environment | more,
        )  # fmt: skip
        os.close(terminal)
        parts = []
        while True:
            try:
                part = os.read(reader, 65536)
            except OSError:  # Linux: the other end is closed
                part = b""
            if not part:
                break
            parts.append(part)
        os.close(reader)
        texts[name] = b"".join(parts).decode().replace("\r\n", "\n")
    assert re.search(r"\x1b\[2m(higher|lower): ", texts["colour"])  # of what is shown: no merit as such
    assert re.search(r"\x1b\[2mbaseline\x1b\[0m", texts["colour"])
    assert "\x1b" not in texts["plain"]
    assert re.sub(r"\x1b\[\d+m", "", texts["colour"]) == texts["plain"]
    assert texts["plain"] == shown(folder, " ".join(arguments), 100)


def test_comparisons_go_metric_by_metric_with_the_best_first(folder):
    text = shown(folder, f"compare {RESULTS} --baseline popularity -m ndcg@5 -m recall@5", 200)
    blocks = text.split("\n\n")
    assert [block.splitlines()[at] for block, at in ((blocks[0], 2), (blocks[1], 0))] == [
        "ndcg@5",
        "recall@5 (secondary)",
    ]
    values = [float(line.split()[1]) for line in blocks[1].splitlines()[1:]]
    assert len(values) == 3
    assert values == sorted(values, reverse=True)
    assert sum(line.endswith("baseline") for line in text.splitlines()) == 2
    assert "p_holm and intervals: corrected for all comparisons of the family" in text
    swapped = shown(
        folder, f"compare {RESULTS} --baseline popularity -m ndcg@5 -m recall@5 --headline recall@5", 200
    )
    assert [line for line in swapped.splitlines() if "@5" in line][:2] == ["recall@5", "ndcg@5 (secondary)"]


def test_values_have_intervals_where_they_are_quick_and_all_on_request(folder):
    command = "evaluate popularity.csv truth.csv --train train.csv -m ndcg@5,gini@5 --ids int"
    result = recsys.evaluate(
        pd.read_csv(folder / "popularity.csv"), pd.read_csv(folder / "truth.csv"), "ndcg@5,gini@5",
        train=pd.read_csv(folder / "train.csv"),
    )  # fmt: skip
    cells = {name: f"[{e.interval.low:.4f}, {e.interval.high:.4f}]" for name, e in result.intervals().items()}
    text = shown(folder, command)
    assert cells["ndcg@5"] in text
    assert cells["gini@5"] not in text
    assert "the interval of gini@5 takes longer: --intervals gives it" in text
    assert all(cell in shown(folder, f"{command} --intervals") for cell in cells.values())
    assert shown(folder, f"{command} --csv").startswith("metric,value,cases\n")  # for programs, as ever


def test_help_has_the_verbs_in_groups_and_plug_ins_in_their_own(monkeypatch):
    monkeypatch.setitem(VERBS, "mine", Verb("Do what I do.", "nowhere"))
    done = CliRunner().invoke(cli, [], prog_name="recsys")
    assert done.exit_code == 0
    assert done.stdout == CliRunner().invoke(cli, ["--help"], prog_name="recsys").stdout
    groups = re.findall(r"^(\w[\w -]*):\n((?:  .+\n)+)", done.stdout, re.MULTILINE)
    verbs = {name: re.findall(r"^  (\S+)", body, re.MULTILINE) for name, body in groups}
    assert verbs.pop("Options")
    assert verbs["Plug-ins"] == ["mine"]
    assert sorted(name for own in verbs.values() for name in own) == sorted(VERBS)


def test_the_options_of_a_long_help_stand_under_headings():
    text = CliRunner().invoke(cli, ["evaluate", "--help"], prog_name="recsys").stdout
    headings = re.findall(r"^(\w[\w ]+):$", text, re.MULTILINE)
    assert headings == [
        "Input", "Columns and file formats", "Metrics and conventions", "Tables larger than memory", "Output",
    ]  # fmt: skip
    assert text.count("--metric") == 1
    for verb, words in (
        ("audit", ("LISTS", "TRUTH")),
        ("explain", ("LISTS", "TRUTH")),
        ("compare", ("TRUTH",)),
    ):
        text = CliRunner().invoke(cli, [verb, "--help"], prog_name="recsys").stdout
        assert not [word for word in words if word in text], verb  # its own arguments only


# How a network is made: not the files of another verb.
OF_A_NETWORK = {("train ncf", "--factors"), ("train ncf", "--model")}


def every_option():
    """(verb, option) of every verb and of the verbs below it."""
    context = click.Context(cli)
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        below = {"": command}
        if isinstance(command, click.Group):
            below = {sub: command.get_command(context, sub) for sub in command.list_commands(context)}
        for sub, one in below.items():
            for param in one.get_params(click.Context(one)):
                if isinstance(param, click.Option) and not param.hidden:
                    yield f"{name} {sub}".strip(), param


def meaning(option):
    """What an option takes: nothing, a path, a column, a number, one of some words, …"""
    if option.is_flag:
        return "flag"
    if isinstance(option.type, type(click.INT) | type(click.FLOAT)):
        return f"{option.nargs} number"
    metavar = option.metavar or option.type.name
    kinds = {"FILE": "path", "FOLDER": "path", "PATH": "path", "SETTING=VALUE": "DECISION=VALUE"}
    return f"{option.nargs} {kinds.get(metavar, metavar)}"


def test_an_option_means_the_same_in_every_verb():
    found = {}
    for verb, option in every_option():
        for name in option.opts:
            if (verb, name) not in OF_A_NETWORK:
                found.setdefault(name, {}).setdefault(meaning(option), []).append(verb)
    assert not {name: kinds for name, kinds in found.items() if len(kinds) > 1}
    assert "--out" not in found  # --output everywhere
    assert not {verb for verbs in found.get("--test", {}).values() for verb in verbs} & {"split", "compare"}


def test_a_model_does_not_rank_again_what_train_holds(folder, tmp_path):
    rng = np.random.default_rng(3)
    np.save(folder / "U.npy", rng.normal(size=(N_USERS, 4)))
    np.save(folder / "V.npy", rng.normal(size=(40, 4)))
    command = "evaluate --factors U.npy V.npy --truth truth.csv -m ndcg@5 --csv --cautions ignore"
    seen, train = (shown(folder, f"{command} {option} train.csv") for option in ("--seen", "--train"))
    assert seen == train
    nothing = shown(folder, f"{command} --train train.csv --seen none")
    assert nothing == shown(folder, command) != train
    os.chdir(folder)
    done = CliRunner().invoke(cli, [*command.split(), "--train", "train.csv"])
    assert "items of train.csv (--train) are left out of the rankings; --seen none keeps them" in done.stderr
    lists = "evaluate popularity.csv truth.csv -m ndcg@5 --csv"
    assert shown(folder, lists) == shown(folder, f"{lists} --train train.csv")  # lists stay as they are
