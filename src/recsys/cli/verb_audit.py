"""`recsys audit`: what is wrong with a split, or with what was recommended for it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from recsys.cli import shared_options
from recsys.cli.error_messages import FAILED, note, print_warnings


@click.command("audit")
@click.argument("train", metavar="TRAIN")
@click.argument("test", metavar="TEST")
@click.option("--lists", metavar="FILE", help="What was recommended for TEST.")
@click.option("--model", "models", multiple=True, metavar="NAME=FILE",
              help="Lists of a model, to see whether metrics agree on the best one; repeatable.")  # fmt: skip
@click.option(
    "--items", metavar="FILE", help="The catalogue: a table with an item column, or one id per line (.txt)."
)
@click.option(
    "--sampled", type=click.IntRange(min=1), metavar="N", help="Candidates were N sampled negatives."
)
@click.option("-k", "k", type=click.IntRange(min=1), default=10, show_default=True, help="The cut-off.")
@click.option("-m", "--metric", "metrics", multiple=True, help="For the checks that evaluate; repeatable.")
@click.option("--conventions", "preset", metavar="NAME", default="default", help="See `recsys conventions`.")
@click.option("--set", "changes", multiple=True, metavar="DECISION=VALUE",
              help="Change one decision, such as relevant_from=4; repeatable.")  # fmt: skip
@click.option("--check", "checks", multiple=True, metavar="NAME", help="Run this check only; repeatable.")
@click.option("--fail-on", type=click.Choice(["error", "warning", "info"]), default="error",
              show_default=True,
              help="The least severity that makes the exit code 1.")  # fmt: skip
@shared_options.file_options
@click.option("--time", metavar="COLUMN", help="Column of the times, in TRAIN and TEST.")
@click.option("--markdown", is_flag=True, help="Print Markdown.")
@shared_options.json_option
@shared_options.quiet_option
def command(**options: Any) -> None:
    """Exit with 0 if nothing makes the numbers measured on TRAIN and TEST wrong, else with 1.

    TRAIN and TEST are interactions with user, item and, if possible, time columns (see --format). Every
    finding says what was seen, how often, and what to do.
    """
    from recsys.audit import audit

    if options["as_json"] and options["markdown"]:
        raise click.UsageError("--json and --markdown exclude each other.")
    models = {}
    for text in options["models"]:
        name, sign, path = text.partition("=")
        if not (name and sign and path):
            raise click.UsageError(f"--model {text} is not NAME=FILE.")
        if name in models:
            raise click.UsageError(f"--model {name} is given twice: give each model a name of its own.")
        models[name] = path
    with print_warnings(quiet=options["quiet"]):
        report = audit(
            _read_interactions(options["train"], options),
            _read_interactions(options["test"], options),
            None if options["lists"] is None else shared_options.read(options["lists"], "lists", options),
            None if options["items"] is None else _read_items(options["items"], options),
            models={name: shared_options.read(path, "lists", options) for name, path in models.items()}
            or None,
            sampled=options["sampled"],
            k=options["k"],
            metrics=options["metrics"] or None,
            conventions=shared_options.chosen_conventions(options),
            checks=options["checks"] or None,
        )
    if options["as_json"]:
        click.echo(report.to_json())
    elif options["markdown"]:
        click.echo(report.to_markdown())
    else:
        click.echo(_with_option_names(str(report)))
    if not report.passes(options["fail_on"]):
        if report.passed:  # no errors, but --fail-on is stricter
            note(f"there are findings, and --fail-on {options['fail_on']} was asked for.", head="error")
        sys.exit(FAILED)


def _with_option_names(text: str) -> str:
    """The report with options of the command in place of keyword arguments."""
    for keyword, option in (
        ("pass lists=", "pass --lists"),
        ("pass items=", "pass --items"),
        ("pass models={name: lists} with at least two", "pass --model NAME=FILE at least twice"),
    ):
        text = text.replace(keyword, option)
    return text


def _read_interactions(path: str, options: dict[str, Any]) -> Any:
    """Interactions with their times."""
    from recsys.inputs.files import read_file

    roles = ("user", "item", "grade", "case", "time")
    columns = {role: options[role] for role in roles if options[role] is not None}
    return read_file(
        path, "truth", columns=columns or None, format=options["form"], ids=options["ids"],
        encoding=options["encoding"],
    )  # fmt: skip


def _read_items(path: str, options: dict[str, Any]) -> Any:
    """Item ids: one per line (.txt), or a table with an item column."""
    import pandas as pd

    from recsys.errors import FileError
    from recsys.inputs.frames import find_columns
    from recsys.inputs.ids import convert_ids, encode_strings

    try:
        if path.endswith(".txt"):
            lines = Path(path).read_text(encoding=options["encoding"]).splitlines()
            frame = pd.DataFrame({"item": [line for line in lines if line]})
        else:
            frame = shared_options.read_cells(path, options["encoding"])
    except (OSError, ValueError) as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"{path} cannot be read as items ({error}).", hint="Check the path.") from error
    named = {"item": options["item"]} if options["item"] in frame.columns else None
    column = find_columns(list(frame.columns), ("item",), named, path, needed=("item",))["item"]
    texts = frame[column].astype(str)
    if options["ids"] != "int":
        return frame.assign(**{column: texts})
    ids, codes = encode_strings(texts.to_numpy(dtype=object), table=path, column=column)
    ids, codes = convert_ids(ids, codes, "int", f"{column} ids of {path}", lambda row: f", row {row}")
    return frame.assign(**{column: ids.values[codes]})
