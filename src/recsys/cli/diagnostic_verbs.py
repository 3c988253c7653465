"""`recsys audit` and `recsys inspect`: what is wrong with a split, and what one user is recommended."""

from __future__ import annotations

import sys
from contextlib import suppress
from dataclasses import replace
from typing import Any

import click

from recsys.cli import shared_options
from recsys.cli.error_messages import FAILED, note, print_warnings
from recsys.cli.output import print_csv, print_page, print_table
from recsys.cli.shared_options import FileOptions
from recsys.cli.verb_options import COUNT, INPUT, METRICS, OUTPUT, Given, argument, command, option
from recsys.errors import ColumnError, FileError, InputError, RecsysError


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
    option("-m, --metric TEXT ...", "For the checks that evaluate; repeatable.", METRICS, name="metrics"),
    shared_options.preset_option,
    option(
        "--set DECISION=VALUE ...",
        "Change one decision, such as relevant_from=4; repeatable.",
        METRICS,
        name="changes",
    ),
    option("--only CHECK ...", "Run this check only; repeatable."),
    option(
        "--fail-on",
        "The least severity that makes the exit code 1.",
        type=click.Choice(["error", "warning", "info"]),
        default="error",
    ),
    shared_options.file_options_for("--lists", "TRAIN and TEST"),
    shared_options.column_option("time", "times, in TRAIN and TEST"),
    option("--markdown", "Print Markdown.", OUTPUT),
    shared_options.json_option,
    shared_options.quiet_option,
)
def audit_command(given: Given) -> None:
    """Exit with 0 if nothing makes the numbers measured on TRAIN and TEST wrong, else with 1.

    TRAIN and TEST are interactions with user, item and, if possible, time columns (see --format). Every
    finding says what was seen, how often, and what to do.
    """
    from recsys import audit
    from recsys.inputs.files import read_file

    files = given.gather(FileOptions)
    shared_options.refuse_both(json=given.json, markdown=given.markdown)
    path_of: dict[str, str] = {}
    for text in given.model:
        name, sign, path = text.partition("=")
        if not (name and sign and path):
            raise click.UsageError(f"--model {text} is not NAME=FILE.")
        if name in path_of:
            raise click.UsageError(f"--model {name} is given twice: give each model a name of its own.")
        path_of[name] = path
    columns = files.interaction_columns() | ({"time": given.time} if given.time is not None else {})
    reading: dict[str, Any] = {
        "columns": columns or None,
        "format": files.form,
        "ids": files.ids,
        "encoding": files.encoding,
    }
    with print_warnings(quiet=given.quiet):
        report = audit(
            read_file(given.train, "truth", **reading),
            read_file(given.test, "truth", **reading),
            None if given.lists is None else files.read_ranked(given.lists),
            None if given.items is None else _read_catalogue(given.items, files),
            models={name: files.read_ranked(path) for name, path in path_of.items()} or None,
            sampled=given.sampled,
            k=given.k,
            metrics=given.metrics or None,
            conventions=shared_options.chosen_conventions(given.preset, given.changes),
            checks=given.only or None,
        )
    print_page(report, as_json=given.json, markdown=given.markdown)
    if not report.passes(given.fail_on):
        if report.passed:  # no errors, but --fail-on is stricter
            note(f"there are findings, and --fail-on {given.fail_on} was asked for.", head="error")
        sys.exit(FAILED)


def _read_catalogue(path: str, files: FileOptions) -> Any:
    """Item ids: one per line (.txt), or a table with an item column."""
    import pandas as pd

    from recsys.inputs.files.formats import read_text_file
    from recsys.inputs.frames import find_columns
    from recsys.inputs.ids import convert_ids, encode_strings

    try:
        if path.endswith(".txt"):
            lines = read_text_file(path, files.encoding).splitlines()
            frame = pd.DataFrame({"item": [line for line in lines if line]})
        else:
            frame = shared_options.read_cells(path, files.encoding)
    except FileError:
        raise
    except (OSError, ValueError) as error:
        raise FileError(f"{path} cannot be read as items ({error}).", hint="Check the path.") from error
    named = {"item": files.item} if files.item is not None and files.item in frame.columns else None
    column = find_columns(list(frame.columns), ("item",), named, path, needed=("item",))["item"]
    if files.ids == "auto":
        return frame
    texts = frame[column].astype(str)
    if files.ids == "str":
        return frame.assign(**{column: texts})
    ids, codes = encode_strings(texts.to_numpy(dtype=object), table=path, column=column)
    ids, codes = convert_ids(ids, codes, "int", f"{column} ids of {path}", lambda row: f", row {row}")
    return frame.assign(**{column: ids.values[codes]})


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
    *_V.npy, an .npz or .safetensors of both. Their ids are the arrays user_ids and item_ids beside them or
    those of --user-ids and --item-ids, else row numbers, which count from 0.
    """
    from recsys.analysis import described_list, inspect_user_recommendations
    from recsys.ranks.sources import is_model_path

    files = given.gather(FileOptions)
    is_model = is_model_path(given.lists)
    with print_warnings(quiet=given.quiet):
        before, known = (files.read(path, "truth") for path in (given.train, given.truth))
        if is_model:
            ranked = files.read_model(given.lists, given.user_ids, given.item_ids)
            users, its_items = ranked.user_rows.ids, ranked.item_rows.ids
            for role, data in (("train", before), ("truth", known)):
                if data is not None:
                    ranked.check_ids(data, role)
            for rows in (ranked.user_rows, ranked.item_rows):
                if rows.numbered and not given.quiet:
                    note(
                        f"{given.lists} holds no {rows.what} ids, so {rows.what}s are rows, which count from "
                        f"0; --{rows.what}-ids FILE names them"
                    )
        else:
            ranked = files.read_ranked(given.lists, user_ids=given.user_ids, item_ids=given.item_ids)
            users, its_items = ranked.cases, ranked.items
        # Of row numbers the model itself says what is wrong.
        user = _known_user(given.who, users, given.lists, check=not (is_model and ranked.user_rows.numbered))
        context: dict[str, Any] = {
            "history": _user_items(before, user),
            "truth": _user_items(known, user),
            "columns": given.column or None,
        }
        table = None
        if given.items is not None:
            table = _read_described_items(given.items, replace(files, ids=its_items.kind), given.column)
        if is_model:
            frame = inspect_user_recommendations(user, ranked, None, table, given.k, **context)
        else:
            recommended, scores = _first_items(ranked, user, given.k)
            frame = described_list(recommended, table, scores=scores, **context)
    if given.csv:
        shown = {str(name): frame[name].astype(object).where(frame[name].notna(), "") for name in frame}
        print_csv({name: cells.tolist() for name, cells in shown.items()}, raw=given.raw)
        return
    of_history = [name for name in frame if str(name).startswith("history_")]
    print_table(_shown_cells(frame.drop(columns=of_history)))
    history = frame[of_history].dropna(how="all")
    if len(history):
        click.echo("\nbefore, newest first")
        print_table(_shown_cells(history.rename(columns=lambda name: name.removeprefix("history_"))))
    parts = [f"{frame.attrs['n_history']:,} training interactions"] if given.train else []
    if given.truth:
        parts.append(f"{int(frame['hit'].sum())} of {frame.attrs['n_relevant']} relevant items shown")
    if parts and not given.quiet:
        note(f"user {given.who}: {', '.join(parts)}")


def _shown_cells(frame: Any) -> dict[str, list[Any]]:
    """The columns of a table as they are printed: ids that are numbers are still names."""
    shown = {str(name): frame[name].tolist() for name in frame}
    for name, cells in shown.items():
        if name in {"hit", "seen"}:
            shown[name] = ["yes" if flag else "" for flag in cells]
        elif name not in {"rank", "score"}:
            shown[name] = ["" if c is None else str(c) if type(c) is int else c for c in cells]
    return shown


def _known_user(who: str, users: Any, path: str, *, check: bool) -> Any:
    """USER as an id of these users; an error if it is none of them, unless `check` is False."""
    user: Any = who
    if users.kind == "int":
        try:
            user = int(who)
        except ValueError:
            message = f"USER {who} is not a whole number, as the users of {path} are."
            raise click.UsageError(message) from None
    if check and user not in set(users.values.tolist()):
        raise InputError(
            f"user {user!r} is not in {path}, which has {len(users):,} users.",
            hint="Check the id, and --ids.",
        )
    return user


def _first_items(lists: Any, user: Any, k: int) -> tuple[list[Any], Any]:
    """The first k items recommended to the user, and their scores where there are scores."""
    code = lists.cases.values.tolist().index(user)
    start = int(lists.indptr[code])
    part = slice(start, min(int(lists.indptr[code + 1]), start + k))
    scores = None if lists.scores is None else lists.scores[part]
    return lists.items.values[lists.codes[part]].tolist(), scores


def _user_items(rows: Any, user: Any) -> list[Any] | None:
    """One user's items, in order of time where there are times that can be read."""
    import numpy as np

    from recsys.inputs.timestamps import to_seconds

    if rows is None:
        return None
    codes = rows.cases.code_of(np.array([user], dtype=rows.cases.values.dtype))
    if len(codes) == 0 or codes[0] < 0:
        return []
    part = slice(int(rows.indptr[codes[0]]), int(rows.indptr[codes[0] + 1]))
    items = rows.items.values[rows.codes[part]]
    if rows.times is not None:
        with suppress(RecsysError):
            items = items[np.argsort(to_seconds(rows.times[part]), kind="stable")]
    return list(items.tolist())


def _read_described_items(path: str, files: FileOptions, columns: tuple[str, ...]) -> Any:
    """The table of the items, with ids of the same type as in the other files."""
    from recsys.analysis.inspection import key_column

    table = shared_options.read_cells(path, files.encoding)
    key = key_column(table)
    try:
        table[key] = table[key].astype("int64" if files.ids == "int" else str)
    except ValueError as error:
        raise ColumnError(f"an id is not a whole number ({error}).", table=path, column=key) from error
    for name in columns:
        if name not in table.columns:
            raise ColumnError(
                f"there is no column {name!r}.", table=path, hint=f"There are {', '.join(table.columns)}."
            )
    return table
