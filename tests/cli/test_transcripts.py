"""What the verbs print and write on a small world, word for word: nothing users read moves unnoticed.

`transcripts.json` has the help and the output of each command, with files shortened to hashes of their parts.
After an intended change, `make restate` writes it anew; read the difference.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import shutil
import tempfile
import warnings
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from recsys.cli.app import cli

STATED = Path(__file__).with_name("transcripts.json")
USERS, ITEMS = 60, 40
SCORED = "-m ndcg@10 -m recall@5 -m map@10 -m mrr -m hit@3 -m precision@5"
# {name: command}; FILE.SUFFIX and `folder` stand in the folder of the world.
COMMANDS = {
    "evaluate": f"evaluate als.csv test.csv {SCORED} --intervals",
    "evaluate about items": """evaluate als.csv test.csv --train train.csv --items items.csv --catalogue 40
        -m coverage@5 -m gini@5 -m novelty@5 -m kinds(by=kind)@5 -m serendipity@5 --reference pop.csv""",
    "evaluate more about items": """evaluate als.csv test.csv --train train.csv --items items.csv
        -m tail_share@5 -m miscalibration(by=kind)@5 -m value(of=price)@5 -m average_popularity@5""",
    "evaluate by groups": """evaluate als.csv test.csv --train train.csv -m ndcg@10 -m recall@5 --by activity
        --bounds""",
    "evaluate by item groups": """evaluate als.csv test.csv --train train.csv --items items.csv -m recall@5
        --by kind""",
    "evaluate as json": f"evaluate als.csv test.csv {SCORED} --json --intervals --bounds --catalogue 40",
    "evaluate as csv": f"evaluate pop.csv test.csv {SCORED} --csv",
    "evaluate per user": "evaluate als.csv test.csv -m ndcg@10 -m mrr --per-user users.csv",
    "evaluate the median": "evaluate als.csv test.csv -m ndcg@10 --aggregate median --conventions recbole",
    "evaluate swapped": "evaluate test.csv als.csv -m recall@5",
    "evaluate a model": "evaluate knn.npz --truth test.csv --train train.csv -m ndcg@10 -m auc",
    "evaluate every preset": "evaluate als.csv test.csv -m ndcg@10 -m map@10 --conventions rectools -q",
    "compare": f"compare als.csv pop.csv --truth test.csv {SCORED} --baseline pop",
    "compare saved": """compare als.json pop.json mix.json -m ndcg@10 -m recall@5 --correction bh
        --effect cliffs_delta""",
    "compare by permutation": "compare als.json pop.json -m ndcg@10 --statistic permutation --rope 1e-2",
    "compare by max-t": """compare als.json pop.json mix.json -m ndcg@10 -m mrr --baseline pop
        --headline mrr --correction max-t""",
    "compare by ranks": "compare als.json pop.json -m ndcg@10 --statistic wilcoxon --margin 2e-2 --csv",
    "compare bootstrapped": """compare als.json pop.json -m ndcg@10 --statistic studentised
        --no-worse-than 1e-2""",
    "compare as json": """compare als.json mix.json -m ndcg@10 -m mrr --statistic sign --effect hedges_g
        --json""",
    "compare in words": "compare als.json pop.json -m ndcg@10 --methods methods.md",
    "gate": "gate als.json --against pop.json -m ndcg@10 -m recall@5",
    "gate as markdown": "gate mix.json --against als.json -m ndcg@10=2% -m recall@5=1e-2 --better --markdown",
    "gate as json": "gate pop.json --against als.json -m ndcg@10 -m mrr --json --comment comment.md",
    "explain": "explain recbole trec_eval --lists als.csv --truth test.csv -m ndcg@10 -m map@10",
    "explain results": "explain als.json mix.json",
    "inspect": "inspect u3 als.csv --truth test.csv --train train.csv --items items.csv",
    "audit": "audit train.csv test.csv --lists als.csv --items items.csv",
    "audit as json": "audit test.csv train.csv --lists pop.csv --json",
    "audit as markdown": "audit ratings.csv test.csv --markdown",
    "split the last": "split ratings.csv --how leave_last -n 2 -o folder",
    "split by time": """split ratings.csv --how global_temporal --test-share 2e-1 --validation 1e-1 --json
        -o folder""",
    "split each user": """split ratings.csv --how per_user_ratio --test-share 25e-2 --min-user 3 -o folder
        --seed 3""",
    "split into folds": "split ratings.csv --how k_fold --folds 3 --split-by users -o folder",
    "split windows": "split ratings.csv --how rolling_windows --length 3d --windows 2 --gap 1d -o folder",
    "split users": "split ratings.csv --how unseen_users --test-share 10 --known 5e-1 -o folder",
    "fuse": "fuse als.csv pop.csv --method rrf -o fused.csv",
    "fuse with weights": """fuse als.csv pop.csv --method wsum --norm min-max --tune-on als.csv
        --tune-on pop.csv --truth test.csv -m ndcg@10 -o fused.csv""",
    "ratings": "ratings predicted.csv --user user --actual rating --prediction predicted",
    "ratings per user": """ratings predicted.csv --user user --actual rating --prediction predicted
        -m rmse -m fcp --per-user users.csv --json""",
    "clicks": """ratings clicks.csv --user user --actual click --prediction p -m log_loss -m auc -m gauc
        -m ece""",
    "train": "train popularity train.csv -o popularity.npz",
    "init": "init ratings.csv -o protocol.toml",
    "history": "history . -m ndcg@10 --name als",
    "history as json": "history . -m ndcg@10 --json",
    "history as csv": "history . -m ndcg@10 -m mrr --csv",
    "metrics": "metrics",
    "a metric": "metrics ndcg",
    "metrics as json": "metrics recall --json",
    "conventions": "conventions",
    "a preset": "conventions recbole",
    "two presets": "conventions recbole trec_eval --json",
    "report": "report als.json pop.json mix.json -o page.html --baseline pop --title Three",
    "report of lists": """report als.csv --truth test.csv --train train.csv --items items.csv -o page.html
        -m ndcg@10 -m recall@5 -m recall@10 -m coverage@5""",
    "report of two": """report als.csv pop.csv --truth test.csv --train train.csv --items items.csv
        -o page.html -m ndcg@5 -m ndcg@10 -m map@10 -m novelty@10 --headline map@10""",
    "board": "board als.json -o board.html --title All",
    "an unknown metric": "evaluate als.csv test.csv -m ndgc@10",
    "an unknown file": "evaluate als.cvs test.csv -m ndcg@10",
    "a wrong column": "evaluate als.csv test.csv -m ndcg@10 --user usr",
    "no cut-off of 0": "evaluate als.csv test.csv -m ndcg@0",
    "an unknown preset": "evaluate als.csv test.csv -m ndcg@10 --conventions recbol",
    "a wrong decision": "evaluate als.csv test.csv -m ndcg@10 --set ties=never",
}


def chance(*numbers: int) -> float:
    """A number between 0 and 1 that looks random, the same everywhere."""
    state = 12345
    for number in numbers:
        state = (state * 6364136223846793005 + number * 1442695040888963407 + 7) % 2**64
    return (state >> 11) / 2**53


def write_world(folder: Path) -> None:
    """Ratings of 60 users, split by time, lists of two models, predictions and clicks."""
    ratings, train, test, lists, popular, predicted, clicks = ([] for _ in range(7))
    for user in range(USERS):
        had = sorted(range(ITEMS), key=lambda item, user=user: chance(user, item) * (1 + item / 8))[
            : 8 + user % 5
        ]
        for at, item in enumerate(had):
            rating, day = 1 + int(5 * chance(user, item, 1)), at + user % 7
            row = f"u{user},i{item},{rating},{1_600_000_000 + 86_400 * day}"
            ratings.append(row)
            (test if at >= len(had) - 3 else train).append(row)
        kept = {int(row.split(",")[1][1:]) for row in train if row.startswith(f"u{user},")}
        wanted = {int(row.split(",")[1][1:]) for row in test if row.startswith(f"u{user},")}
        rest = [item for item in range(ITEMS) if item not in kept]
        scores = {item: round(chance(user, item, 2) + 0.5 * (item in wanted), 3) for item in rest}
        lists += [f"u{user},i{item},{scores[item]}" for item in sorted(rest, key=lambda i: -scores[i])[:10]]
        popular += [f"u{user},i{item},{40 - item}" for item in rest[:10]]
        for item in had[:4]:
            actual = 1 + int(5 * chance(user, item, 1))
            predicted.append(f"u{user},i{item},{actual},{actual + chance(user, item, 3) - 0.5:.3f}")
            clicks.append(f"u{user},{int(actual > 3)},{0.2 * actual - 0.1:.3f}")
    mixed = [row for at, row in enumerate(lists) if at % 7] + popular[: len(popular) // 5]
    rated = "user,item,rating,timestamp"
    tables = {
        "ratings.csv": (rated, ratings),
        "train.csv": (rated, train),
        "test.csv": (rated, test),
        "als.csv": ("user,item,score", lists),
        "pop.csv": ("user,item,score", popular),
        "mix.csv": ("user,item,score", sorted(set(mixed))),
        "predicted.csv": ("user,item,rating,predicted", predicted),
        "clicks.csv": ("user,click,p", clicks),
        "items.csv": ("item,kind,price", [f"i{i},{'abc'[i % 3]},{10 + i % 9}" for i in range(ITEMS)]),
    }
    for name, (head, rows) in tables.items():
        (folder / name).write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")
    for name in ("als", "pop", "mix"):
        run(f"evaluate {name}.csv test.csv {SCORED} --save {name}.json --name {name}", folder)
    run("train item-knn train.csv -o knn.npz", folder)


def run(command: str, folder: Path) -> tuple[int, str]:
    """Exit status and output of a command whose words with a dot are files of the folder."""
    words = [
        str(folder / word) if re.fullmatch(r"\w+\.[a-z]+|\.|folder", word) else word
        for word in command.split()
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = CliRunner().invoke(cli, words, prog_name="recsys")
    return result.exit_code, result.output


def plain(text: str, folder: Path) -> str:
    """A text without the folder, days, seconds and versions, its numbers with six digits."""
    text = text.replace(str(folder), "FOLDER")
    text = re.sub(r"\d+\.\d{7,}(e-?\d+)?", lambda found: f"{float(found[0]):.6g}", text)
    text = re.sub(r"\d{4}-\d\d-\d\d[T ]?(\d\d:\d\d(:\d\d)?(\.\d+)?)?(\+00:00|Z| UTC)?", "DAY", text)
    text = re.sub(r"\b\d+(\.\d+)? ?(s|ms|seconds?|minutes?)\b", "TIME", text)
    return re.sub(r"\b\d+\.\d+\.\d+(\.\w+)?\b", "VERSION", text)


def transcript(name: str, folder: Path) -> list[str]:
    """The exit status, the lines of the output, and the hashes of the parts of every file it wrote."""
    before = {path for path in folder.rglob("*") if path.is_file()}
    status, output = run(COMMANDS[name], folder)
    lines = [f"exit {status}", *plain(output, folder).splitlines()]
    for path in sorted({path for path in folder.rglob("*") if path.is_file()} - before):
        content = path.read_bytes()
        if path.suffix in {".html", ".csv", ".toml", ".md"}:
            text = re.sub(r"<script>.{50000,}?</script>", "", content.decode(), flags=re.DOTALL)
            text = re.sub(r";base64,[\w+/=]+|\b[0-9a-f]{40,}\b", "", text)
            parts = re.split(r"(?=<section|<figure)", plain(text, folder))
            kept = [part for part in parts if "Result, versions and machine" not in part]
            hashes = [hashlib.sha256(part.encode()).hexdigest()[:6] for part in kept]
            lines.append(f"{path.relative_to(folder)}: {' '.join(hashes)}")
        path.unlink()
    shutil.rmtree(folder / "folder", ignore_errors=True)
    return lines


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("world")
    write_world(folder)
    return folder


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_says_what_it_said(name, world):
    assert transcript(name, world) == json.loads(STATED.read_text("utf-8"))[name]


def helps(group: click.Command, name: str = "") -> dict[str, list[str]]:
    """{"help of VERB": what its --help prints}, of a command and those below it."""
    found = {f"help of recsys{name}": run(f"{name} --help", Path())[1].splitlines()}
    if isinstance(group, click.Group):
        context = click.Context(group)
        for verb in group.list_commands(context):
            command = group.get_command(context, verb)
            assert command is not None
            found |= helps(command, f"{name} {verb}")
    return found


def test_help_says_what_it_said():
    stated = json.loads(STATED.read_text("utf-8"))
    found = helps(cli)
    assert found.keys() == {name for name in stated if name.startswith("help of ")}
    for name, lines in found.items():
        assert lines == stated[name], name


def test_the_world_is_a_world():
    assert 0.45 < math.fsum(chance(user, item) for user in range(40) for item in range(40)) / 1600 < 0.55


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        write_world(Path(place))
        everything = helps(cli) | {name: transcript(name, Path(place)) for name in COMMANDS}
    STATED.write_text(json.dumps(everything, indent=0, ensure_ascii=False) + "\n", encoding="utf-8")
