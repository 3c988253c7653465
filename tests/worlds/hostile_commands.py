"""Every verb of the command with odd options, words and files, called in this process."""

from __future__ import annotations

import json
import os
import random
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import click
import numpy as np
from click.testing import CliRunner

import recsys
from recsys.cli.app import VERBS, cli
from recsys.cli.error_messages import INTERNAL
from recsys.comparison.identify import probe_lines
from recsys.errors import RecsysError
from worlds import hostile_files

# Calls that end well, by verb. Words that are files exist.
CALLS: dict[str, list[str]] = {
    "audit": ["audit train.csv test.csv --lists lists.csv", "audit train.csv test.csv --json"],
    "bench": ["bench events.csv --trials 1 --baselines popularity -q"],
    "board": ["board results -o out/board.html", "board a.json b.json -o out/board.html"],
    "compare": [
        "compare a.json b.json -m mrr",
        "compare lists.csv other.csv --truth test.csv -m ndcg@5 --json",
    ],
    "conform": ["conform -m mrr -- cat", "conform -m mrr --default-only -- true"],
    "conventions": ["conventions", "conventions trec_eval", "conventions default ranx --json"],
    "demo": ["demo --no-report"],
    "doctor": ["doctor", "doctor --json"],
    "evaluate": [
        "evaluate lists.csv test.csv -m ndcg@5 -m mrr",
        "evaluate lists.csv test.csv -k 2 --train train.csv --by activity --json",
        "evaluate --factors U.npy V.npy --truth test.csv --user-ids users.txt --item-ids items.txt",
        "evaluate lists.csv test.csv --save out/x.json --per-user out/u.csv",
    ],
    "explain": ["explain default ranx --lists lists.csv --truth test.csv -m ndcg@5", "explain a.json b.json"],
    "fuse": ["fuse lists.csv other.csv -o out/fused.csv", "fuse lists.csv other.csv --method comb_sum"],
    "gate": ["gate a.json --against b.json -m mrr", "gate a.json --against b.json -m mrr=2% --json"],
    "history": ["history results", "history results --csv -m mrr"],
    "identify": ["identify -m mrr --answers answers.jsonl", "identify -m mrr --probes out/p.jsonl"],
    "init": ["init events.csv -o out/p.toml"],
    "inspect": ["inspect u01 lists.csv --truth test.csv", "inspect u02 lists.csv --items items.csv --csv"],
    "metrics": ["metrics", "metrics ndcg", "metrics --json"],
    "ratings": ["ratings predictions.csv", "ratings predictions.csv --scale 1 5 --clip --json"],
    "rank": ["rank a.json b.json", "rank a.json b.json -m mrr --json", "rank a.json b.json --by-folder"],
    "report": ["report a.json -o out/r.html"],
    "run": ["run protocol.toml --check", "run protocol.toml -o out/results"],
    "split": ["split events.csv --how leave_last -o out/s", "split events.csv --how random_ratio -o out/t"],
    "study": ["study"],
    "train": [
        "train popularity train.csv -o out/m.npz",
        "train item-knn train.csv -o out/m.npz --set neighbours=3",
    ],
}
# Verbs that take seconds are tried less often.
SLOW = {"bench": 30, "demo": 1000, "identify": 20, "report": 20, "run": 5, "conform": 10, "study": 3}
# --watch waits until Ctrl-C, and a study takes minutes by design.
LEFT_OUT = {"--watch", "--help", "--data"}
FILES = """
    lists.csv other.csv test.csv train.csv events.csv items.csv predictions.csv a.json b.json U.npy V.npy
    users.txt items.txt protocol.toml answers.jsonl results empty.csv binary.bin model.npz missing.csv out
    - . .. /dev/null /dev/zero loop *.csv
""".split()  # noqa: SIM905 - a list of words
WORDS = """
    nan inf -1 0 1 2 0.5 1e999 9223372036854775807 99999999999999999999 1_0 mrr ndcg@5 ndcg@0 ndcg@ rbp(p=2)
    u01 user item score é abc a=b =1+1 ../x <script> 10% -5% 1,2 , ; [] {} ndcg@5=1% by_id ties=best gain=exp2
    activity int str
""".split()  # noqa: SIM905
WORDS += ["", " ", "a b", "x" * 5000, "\udcff", "\x1b[31m"]


def write_files(here: Path) -> None:
    """What the calls read."""
    rng = np.random.default_rng(0)
    (here / "out").mkdir()
    (here / "results").mkdir()
    rows = [(f"u{u:02d}", f"i{i:02d}", int(rng.integers(1, 6)), 1000 * u + t)
            for u in range(12) for t, i in enumerate(rng.permutation(15)[:6])]  # fmt: skip
    texts = {name: ["user,item,rating,timestamp\n"] for name in ("events", "train", "test")}
    for n, row in enumerate(rows):
        line = ",".join(map(str, row)) + "\n"
        texts["events"].append(line)
        texts["test" if n % 6 == 5 else "train"].append(line)
    for name, shift in (("lists", 1), ("other", 4)):
        shown = [f"u{u:02d},i{(u * shift + j) % 15:02d},{5 - j}\n" for u in range(12) for j in range(5)]
        texts[name] = ["user,item,score\n", *shown]
    texts["items"] = ["item,title,category\n", *(f"i{i:02d},Title {i},c{i % 3}\n" for i in range(15))]
    texts["predictions"] = [
        "user,item,rating,prediction\n",
        *(f"{u},{i},{r},{r / 2 + 1}\n" for u, i, r, _ in rows),
    ]
    texts["empty"] = []
    for name, lines in texts.items():
        (here / f"{name}.csv").write_text("".join(lines))
    (here / "users.txt").write_text("".join(f"u{u:02d}\n" for u in range(12)))
    (here / "items.txt").write_text("".join(f"i{i:02d}\n" for i in range(15)))
    (here / "binary.bin").write_bytes(bytes(range(256)))
    (here / "protocol.toml").write_bytes(hostile_files.PROTOCOL)
    (here / "loop").symlink_to("loop")
    np.save(here / "U.npy", rng.normal(size=(12, 3)))
    np.save(here / "V.npy", rng.normal(size=(15, 3)))
    recsys.models.save_model(
        here / "model.npz", recsys.Factors(rng.normal(size=(12, 3)), rng.normal(size=(15, 3)))
    )
    for name, lists in (("a", "lists"), ("b", "other")):
        found = recsys.evaluate(here / f"{lists}.csv", here / "test.csv", ["mrr", "ndcg@5"])
        found.save(here / f"{name}.json", name=name)
        found.save(here / "results" / f"{name}.json", name="model")
    answers = (json.dumps(line | {"value": 0.5}) + "\n" for line in probe_lines("mrr"))
    (here / "answers.jsonl").write_text("".join(answers))


@cache
def option_names(verb: str) -> list[click.Option]:
    """The options of a verb, and of the verbs below it."""
    command = cli.get_command(click.Context(cli), verb)
    if command is None:
        raise KeyError(verb)
    commands = [command]
    if isinstance(command, click.Group):
        context = click.Context(command)
        commands += [c for n in command.list_commands(context) if (c := command.get_command(context, n))]
    options = [p for c in commands for p in c.params if isinstance(p, click.Option)]
    return [p for p in options if not LEFT_OUT & {*p.opts}]


def draw_words(rng: random.Random, parameter: click.Parameter) -> list[str]:
    """Values for an option: often ones it takes."""
    if getattr(parameter, "is_flag", False):
        return []
    n = parameter.nargs if parameter.nargs > 0 else 1
    choices = list(getattr(parameter.type, "choices", ()))
    return [
        str(rng.choice(choices if choices and rng.random() < 0.7 else [*FILES, *WORDS])) for _ in range(n)
    ]


def draw_command(rng: random.Random) -> list[str]:
    """A call that ends well with words lost, replaced, doubled and options added."""
    verb = rng.choice([*VERBS])
    while rng.random() * SLOW.get(verb, 1) > 1:
        verb = rng.choice([*VERBS])
    words = rng.choice(CALLS[verb]).split()
    for _ in range(rng.choice((0, 1, 1, 2, 3))):
        how, at = rng.randrange(5), rng.randrange(1, len(words) + 1)
        if how == 0:
            del words[at : at + 1]
        elif how == 1 and at < len(words) and words[at] not in ("cat", "true"):
            words[at] = rng.choice([*FILES, *WORDS])
        elif how == 2:
            words.insert(at, rng.choice([*FILES, *WORDS]))
        else:
            options = option_names(verb)
            if options:
                option = rng.choice(options)
                words[1:1] = [rng.choice(option.opts), *draw_words(rng, option)]
    if verb == "conform" and "-m" not in words:
        words[1:1] = ["-m", "mrr"]  # every metric of the standard takes ten seconds by design
    return words


class CommandCases:
    """Calls of the command within a folder of files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "a" / "b"
        self.folder.mkdir(parents=True)
        write_files(self.folder)
        self.runner = CliRunner()

    def case(self, rng: random.Random) -> Callable[[], Any]:
        words = draw_command(rng)
        given = rng.choice((b"", b"user,item\nu01,i02\n", b"\xff\x00", b'{"u01": ["i01"]}'))

        def call() -> int:
            os.chdir(self.folder)
            return run(self.runner, words, given)

        call.what, call.file = words[0], "words.txt"  # type: ignore[attr-defined]
        call.data = "\n".join(words).encode(errors="replace")  # type: ignore[attr-defined]
        return call


def run(runner: CliRunner, words: list[str], given: bytes = b"") -> int:
    """The exit code of a call; an error of ours where that is what it printed.

    Raises:
        RuntimeError: the call ended in a defect of ours.
    """
    done = runner.invoke(cli, ["--debug", *words], input=given)
    printed = done.output
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    if done.exit_code == INTERNAL or "This is a defect" in printed:
        lines = re.findall(r'recsys/(\S+)", line (\d+)', printed)
        raise RuntimeError(
            f"{':'.join(lines[-1]) if lines else ''} {printed.strip().splitlines()[-1]} {words}"
        )
    if done.exit_code > 1:
        raise RecsysError(printed.strip().splitlines()[-1] if printed.strip() else "")
    return done.exit_code
