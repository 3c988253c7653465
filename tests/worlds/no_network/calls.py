"""Every module, every verb of the command and a tour of the public functions, in the current folder.

A call that does not end well is the last one.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
import warnings
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from click.testing import CliRunner

import recsys
from recsys.cli.app import VERBS, cli
from recsys.report import write_board, write_report
from worlds.hostile_commands import CALLS, write_files

MORE = [
    "bench --help",
    "conform -m mrr --vectors",
    "demo -o out/demo.html",
    "report a.json b.json --truth test.csv --items items.csv -o out/two.html",
]
if find_spec("duckdb"):
    MORE.append("evaluate lists.csv test.csv -m ndcg@5 --memory 1GB")


def import_modules() -> None:
    """All but those that run when imported, or need a package that is not installed (Triton, pyspark)."""
    for module in pkgutil.walk_packages(recsys.__path__, "recsys."):
        if not module.name.endswith("__main__"):
            try:
                importlib.import_module(module.name)
            except ImportError as error:
                if error.name is None or error.name.partition(".")[0] == "recsys":
                    raise


def call_verbs() -> None:
    """Each verb in calls that end well: with 0, or with 1 where the answer of gate or identify is no."""
    assert set(CALLS) == set(VERBS)
    # conform asks programs of the system there, which do not answer.
    for words in [call for verb, calls in CALLS.items() for call in calls if verb != "conform"] + MORE:
        done = CliRunner().invoke(cli, ["--debug", *words.split()], prog_name="recsys")
        if done.exit_code > 1:
            sys.exit(f"recsys {words} ended with {done.exit_code}:\n{done.output}")


def call_functions() -> None:
    """What the verbs do not reach: sources of scores, exports and pictures of every renderer."""
    rng = np.random.default_rng(0)
    truth = {user: [user % 7, 9] for user in range(30)}
    lists = {user: rng.permutation(12)[:5].tolist() for user in truth}
    one = recsys.evaluate(lists, truth, ["ndcg@5", "mrr"], catalogue=12)
    two = recsys.evaluate({u: row[::-1] for u, row in lists.items()}, truth, ["ndcg@5", "mrr"], catalogue=12)
    comparison = recsys.compare({"one": one, "two": two})
    factors = recsys.Factors(rng.normal(size=(30, 4)), rng.normal(size=(12, 4)))
    recsys.evaluate(factors, truth, "recall@5")
    recsys.recommend(factors, k=3)
    recsys.fuse([lists, lists])
    recsys.explain("default", "ranx", lists=lists, truth=truth, metrics="ndcg@5")
    recsys.gate(one, two, {"ndcg@5": 0.1})
    recsys.split(truth, "leave_last")
    recsys.audit(truth, truth)
    recsys.show_backends()
    recsys.evaluate_ratings({1: {2: 3.5}}, {1: {2: 3.0}})
    write_report("out/functions.html", {"one": one, "two": two})
    write_board("out/functions-board.html", ["a.json", "b.json"])
    for kind in ("svg", "png", "pdf", "html"):
        comparison.chart.forest().save(f"out/chart.{kind}")
    comparison.plot.forest()[0].figure.savefig("out/plot.png")
    assert all(map(str, (one, one.to_markdown(), one.to_latex(), comparison)))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    write_files(Path.cwd())
    import_modules()
    call_functions()
    call_verbs()
