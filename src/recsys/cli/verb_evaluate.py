"""`recsys evaluate`: two files in, a table (or JSON, or CSV) out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from recsys.cli.faults import note, told_warnings
from recsys.conventions import Conventions
from recsys.errors import ConventionError

_NUMBERS = ("relevant_from", "max_grade")
_ROLES = ("user", "item", "score", "rank", "grade", "case")
_SAID = {
    "comments": "comment lines skipped",
    "unjudged": "rows without a judgement (-1) left out",
    "padded_user_ids": "user ids that begin or end with a blank",
    "padded_item_ids": "item ids that begin or end with a blank",
}


_Function = TypeVar("_Function", bound=Callable[..., Any])


def _column(role: str, what: str) -> Callable[[_Function], _Function]:
    return click.option(f"--{role}", metavar="COLUMN", help=f"Column of the {what}.")


@click.command("evaluate", short_help="Score recommendation lists against the truth.")
@click.argument("lists", metavar="LISTS")
@click.argument("truth", metavar="TRUTH")
@click.option(
    "-m", "--metric", "metrics", multiple=True, help="Such as ndcg@10 or 'ndcg(gain=exp2)@10'; repeatable."
)
@click.option("-k", "cuts", multiple=True, type=int, help="Cut-off for metrics that name none; repeatable.")
@click.option("--conventions", "preset", metavar="NAME", default="default", help="See `recsys conventions`.")
@click.option(
    "--set", "changes", multiple=True, metavar="DECISION=VALUE", help="Change one decision; repeatable."
)
@_column("user", "users")
@_column("item", "items")
@_column("score", "scores, in LISTS")
@_column("rank", "ranks from 1 on, in LISTS")
@_column("grade", "grades, in TRUTH")
@_column("case", "cases, where a user has several rankings")
@click.option(
    "--truth-user", metavar="COLUMN", help="Column of the users in TRUTH, if it has another name there."
)
@click.option(
    "--truth-item", metavar="COLUMN", help="Column of the items in TRUTH, if it has another name there."
)
@click.option("--ids", type=click.Choice(["str", "int", "auto"]), default="str", show_default=True,
              help="Read ids as text or as whole numbers.")  # fmt: skip
@click.option(
    "--format",
    "form",
    metavar="FORMAT",
    help="csv, tsv, parquet, trec, inter, json or jsonl, if the files' names do not say.",
)
@click.option("--encoding", default="utf-8", show_default=True, help="Of text files.")
@click.option(
    "--seen", metavar="FILE", help="Training interactions: counts relevant items a user had already seen."
)
@click.option("--catalogue", type=click.IntRange(min=1), metavar="N", help="How many items there are.")
@click.option("--complete", is_flag=True, help="Each list ranks every candidate (for auc, average_rank, …).")
@click.option("--per-user", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
              help="Write one row a user: .csv, .tsv or .parquet.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print JSON: all digits, counts and conventions.")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV: metric, value, cases, all digits.")
@click.option("-q", "--quiet", is_flag=True, help="No notes and warnings.")
def command(**options: Any) -> None:
    """Score the recommendation lists in LISTS against what was relevant, in TRUTH.

    Both are CSV, TSV, Parquet, TREC (run and qrels), RecBole .inter or JSON, gzipped or not; - is standard
    input. Columns are found by name (user_id, itemId, score, rank, rating, …).
    """
    from recsys.cli.output import check_target, print_result, write_per_user

    if options["as_json"] and options["as_csv"]:
        raise click.UsageError("--json and --csv exclude each other.")
    if options["per_user"] is not None:
        check_target(options["per_user"])
        for given in (options["lists"], options["truth"], options["seen"]):
            if given not in (None, "-") and Path(given).resolve() == options["per_user"].resolve():
                raise click.UsageError(f"--per-user {given} would overwrite an input file.")
    with told_warnings(quiet=options["quiet"]):
        result = _evaluated(options)
    if options["per_user"] is not None:
        write_per_user(result, options["per_user"])
    print_result(result, as_json=options["as_json"], as_csv=options["as_csv"])


def _evaluated(options: dict[str, Any]) -> Any:
    from recsys.api import evaluate
    from recsys.plan import parse_all

    # What was asked is checked before any file is read.
    conventions = _conventions(options["preset"], options["changes"])
    requests = parse_all(",".join(options["metrics"]) or None, list(options["cuts"]) or None)
    lists = _read(options["lists"], "lists", options)
    truth = _read(options["truth"], "truth", options)
    seen = None if options["seen"] is None else _read(options["seen"], "truth", options)
    return evaluate(
        lists, truth, requests, conventions=conventions, seen=seen,
        catalogue=options["catalogue"], complete=options["complete"],
    )  # fmt: skip


def _read(path: str, kind: Any, options: dict[str, Any]) -> Any:
    from recsys.files import read_file

    columns = {role: options[role] for role in _ROLES if options[role] is not None}
    if kind == "truth":
        columns |= {r: options[f"truth_{r}"] for r in ("user", "item") if options[f"truth_{r}"] is not None}
    read = read_file(
        path,
        kind,
        columns=columns or None,
        format=options["form"],
        ids=options["ids"],
        encoding=options["encoding"],
    )
    if not options["quiet"]:
        for name, words in _SAID.items():
            if read.notes.get(name):
                note(f"{path}: {words}: {read.notes[name]:,}")
    return read


def _conventions(name: str, changes: tuple[str, ...]) -> Conventions:
    made: dict[str, Any] = {}
    for change in changes:
        decision, sign, value = (part.strip() for part in change.partition("="))
        if not sign or decision == "per_metric":
            raise ConventionError(f"--set {change} is not decision=value.", hint="Write --set ties=expected.")
        made[decision] = _value(decision, value)
    return Conventions.of(name).but(**made)


def _value(decision: str, text: str) -> Any:
    if decision not in _NUMBERS:
        return text
    if text.lower() == "none":
        return None
    try:
        return float(text)
    except ValueError:
        raise ConventionError(
            f"--set {decision}={text} is not a number.", hint="Give a number, or none."
        ) from None
