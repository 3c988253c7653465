"""`recsys audit` and `recsys inspect`: what is wrong with a split, and what one user is recommended."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import click

from recsys.cli import shared_options
from recsys.cli.error_messages import FAILED, note
from recsys.cli.output import Listing, print_csv, show
from recsys.cli.shared_options import FileOptions
from recsys.cli.verb_options import (
    COUNT,
    INPUT,
    METRICS,
    OUTPUT,
    Given,
    argument,
    command,
    option,
)


@command(
    "audit",
    argument("train", "TRAIN"),
    argument("test", "TEST"),
    option("--lists FILE", "What was recommended for TEST; or a model of `recsys train`.", INPUT),
    option(
        "--model NAME=FILE ...",
        "Lists of a model, to see whether metrics agree on the best one; repeatable.",
        INPUT,
    ),
    option("--items FILE", "The catalogue: a table with an item column, or one id per line (.txt).", INPUT),
    option("--sampled N", "Candidates were N sampled negatives.", INPUT, type=COUNT),
    option("-k", "The cut-off.", METRICS, type=COUNT, default=10),
    shared_options.metrics_option("For the checks that evaluate; repeatable."),
    shared_options.preset_option,
    shared_options.changes_option,
    option("--only CHECK ...", "Run this check only; repeatable."),
    option(
        "--fail-on",
        "The least severity that makes the exit code 1.",
        type=click.Choice(["error", "warning", "info"]),
        default="error",
    ),
    shared_options.file_options_for("--lists", "TRAIN and TEST"),
    shared_options.column_option("time", "times, in TRAIN and TEST"),
    shared_options.markdown_option,
    shared_options.json_option,
    shared_options.quiet_option,
)
def audit_command(given: Given) -> None:
    """Exit with 0 if nothing makes the numbers measured on TRAIN and TEST wrong, else with 1.

    TRAIN and TEST are interactions with user, item and, if possible, time columns (see --format). Every
    finding says what was seen, how often, and what to do.
    """
    from recsys import audit

    files, path_of = (
        given.gather(FileOptions),
        shared_options.assignments("--model", given.model, "NAME=FILE"),
    )
    report = audit(
        files.read(given.train, "truth"),
        files.read(given.test, "truth"),
        None if given.lists is None else files.read_ranked(given.lists),
        files.read_attributes(given.items, "item"),
        models={name: files.read_ranked(path) for name, path in path_of.items()} or None,
        metrics=given.metrics or None,
        conventions=shared_options.conventions_of(given),
        checks=given.only or None,
        **given.pick("sampled", "k"),
    )
    show(report, given.shown_as)
    if not report.passes(given.fail_on):
        if report.passed:  # no errors, but --fail-on is stricter
            note(f"there are findings, and --fail-on {given.fail_on} was asked for.", head="error")
        sys.exit(FAILED)


@command(
    "inspect",
    argument("who", "USER"),
    argument("lists", "LISTS"),
    option("--truth FILE", "What was relevant: hits are marked.", INPUT),
    option("--train FILE", "What users had before: shown below, not ranked again by a model.", INPUT),
    option("--items FILE", "Table of the items: names and whatever is known about them.", INPUT),
    option("-k", "How many items.", METRICS, type=COUNT, default=10),
    option("--column NAME ...", "Column of --items to show; repeatable."),
    option("--csv", "Print CSV.", OUTPUT),
    shared_options.raw_option,
    shared_options.row_id_options,
    shared_options.file_options_for("LISTS", "--truth and --train"),
    shared_options.quiet_option,
)
def inspect_command(given: Given) -> None:
    """Show the recommendations of USER in LISTS, best first, with what is known about the items.

    LISTS is a file of recommendations, a model of `recsys train`, or other factors: a folder with *_U.npy and
    *_V.npy, an .npz or .safetensors of both. Their ids are the arrays user_ids and item_ids next to them or
    those of --user-ids and --item-ids, else row numbers, which count from 0.
    """
    from recsys.analysis import inspect_user_recommendations
    from recsys.ranks.sources import is_model_path

    files = given.gather(FileOptions)
    before, known = (files.read(path, "truth") for path in (given.train, given.truth))
    ranked = files.read_ranked(given.lists, user_ids=given.user_ids, item_ids=given.item_ids)
    sides = (ranked.user_rows, ranked.item_rows) if is_model_path(given.lists) else ()
    users, its_items = (rows.ids for rows in sides) if sides else (ranked.cases, ranked.items)
    for rows in sides:
        if rows.numbered:
            note(
                f"{given.lists} holds no {rows.what} ids, so {rows.what}s are rows, which count from 0; "
                f"--{rows.what}-ids FILE names them"
            )
    if users.kind == "int" and not given.who.removeprefix("-").isdecimal():
        raise click.UsageError(f"USER {given.who} is not a whole number, as the users of {given.lists} are.")
    files = replace(files, ids=its_items.kind)
    frame = inspect_user_recommendations(
        given.who if users.kind == "str" else int(given.who),
        ranked,
        None,
        files.read_attributes(given.items, "item", given.column, text=True),
        given.k,
        history=before,
        truth=known,
        columns=given.column or None,
    )
    if given.csv:
        shown = {str(name): frame[name].astype(object).where(frame[name].notna(), "") for name in frame}
        print_csv({name: cells.tolist() for name, cells in shown.items()}, raw=given.raw)
        return
    of_history = [name for name in frame if str(name).startswith("history_")]
    show(_shown_cells(frame.drop(columns=of_history)))
    history = frame[of_history].dropna(how="all")
    if len(history):
        click.echo("\nbefore, newest first")
        show(_shown_cells(history.rename(columns=lambda name: name.removeprefix("history_"))))
    parts = [f"{frame.attrs['n_history']:,} training interactions"] if given.train else []
    if given.truth:
        parts.append(f"{int(frame['hit'].sum())} of {frame.attrs['n_relevant']} relevant items shown")
    if parts:
        note(f"user {given.who}: {', '.join(parts)}")


def _shown_cells(frame: Any) -> Listing:
    """The columns of a table as they are printed: ids that are numbers are still names."""
    shown = {str(name): frame[name].tolist() for name in frame}
    for name, cells in shown.items():
        if name in {"hit", "seen"}:
            shown[name] = ["yes" if flag else "" for flag in cells]
        elif name not in {"rank", "score"}:
            shown[name] = ["" if c is None else str(c) if type(c) is int else c for c in cells]
    return Listing(shown)
