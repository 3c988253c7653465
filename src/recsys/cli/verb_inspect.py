"""`recsys inspect`: what one user is recommended, with names, hits and history, as a table to read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from recsys.cli import shared_options
from recsys.cli.error_messages import note, print_warnings


@click.command("inspect")
@click.argument("who", metavar="USER")
@click.argument("lists", metavar="LISTS")
@click.option("--truth", metavar="FILE", help="What was relevant: hits are marked.")
@click.option("--seen", metavar="FILE", help="Training interactions: shown beside the list.")
@click.option("--items", metavar="FILE", help="Table of the items: names and whatever is known about them.")
@click.option("-k", "k", type=click.IntRange(min=1), default=10, show_default=True, help="How many items.")
@click.option(
    "--column", "columns", multiple=True, metavar="NAME", help="Column of --items to show; repeatable."
)
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
@shared_options.file_options
@shared_options.quiet_option
def command(**options: Any) -> None:
    """Show the recommendations of USER in LISTS, best first, with what is known about the items.

    LISTS is a file of recommendations, or a factor model: a folder with *_U.npy and *_V.npy, an .npz or a
    .safetensors file, whose users and items are row numbers.
    """
    with print_warnings(quiet=options["quiet"]):
        frame = _recommendation_frame(options)
    if options["as_csv"]:
        click.echo(frame.to_csv(index=False, lineterminator="\n"), nl=False)
        return
    from recsys.evaluation import tables

    columns = {str(name): frame[name].tolist() for name in frame}
    for name in set(columns) - {"rank", "score"}:  # ids that are numbers are still names
        columns[name] = [
            "" if cell is None else str(cell) if type(cell) is int else cell for cell in columns[name]
        ]
    for name in {"hit", "seen"} & set(columns):
        columns[name] = ["yes" if flag else "" for flag in columns[name]]
    click.echo(tables.text(columns))
    if not options["quiet"]:
        parts = [f"{frame.attrs['n_history']:,} training interactions"] if options["seen"] else []
        if options["truth"]:
            parts.append(f"{int(frame['hit'].sum())} of {frame.attrs['n_relevant']} relevant items shown")
        if parts:
            note(f"user {options['who']}: {', '.join(parts)}")


def _recommendation_frame(options: dict[str, Any]) -> Any:
    from recsys.analysis import described_list, inspect_user_recommendations

    path = Path(options["lists"])
    is_model = path.is_dir() or path.suffix.lower() in (".npz", ".safetensors")
    if is_model:
        options["ids"] = "int"
    user = _parse_user(options)
    context: dict[str, Any] = {
        "history": _read_user_items(options, "seen", user),
        "truth": _read_user_items(options, "truth", user),
        "columns": options["columns"] or None,
    }
    items = None if options["items"] is None else _read_items(options)
    if is_model:
        from recsys.cf.evaluation.loading import load_model

        return inspect_user_recommendations(user, load_model(path), None, items, options["k"], **context)
    recommended, scores = _read_list(options, user)
    return described_list(recommended, items, scores=scores, **context)


def _parse_user(options: dict[str, Any]) -> Any:
    text = options["who"]
    if options["ids"] != "int":
        return text
    try:
        return int(text)
    except ValueError:
        message = f"USER {text} is not a whole number, as --ids int and models require."
        raise click.UsageError(message) from None


def _read_list(options: dict[str, Any], user: Any) -> tuple[list[Any], Any]:
    """The first k items recommended to the user, and their scores where there are scores."""
    from recsys.errors import InputError

    lists = shared_options.read(options["lists"], "lists", options)
    codes = [code for code, name in enumerate(lists.cases.values.tolist()) if name == user]
    if not codes:
        raise InputError(
            f"user {user!r} is not in {options['lists']}, which has {len(lists.cases):,} users.",
            hint="Check the id, and --ids.",
        )
    start = int(lists.indptr[codes[0]])
    part = slice(start, min(int(lists.indptr[codes[0] + 1]), start + options["k"]))
    scores = None if lists.scores is None else lists.scores[part]
    return lists.items.values[lists.codes[part]].tolist(), scores


def _read_user_items(options: dict[str, Any], name: str, user: Any) -> list[Any] | None:
    """One user's items in a file, in order of time where there are times."""
    import numpy as np

    if options[name] is None:
        return None
    rows = shared_options.read(options[name], "truth", options)
    codes = rows.cases.code_of(np.array([user], dtype=rows.cases.values.dtype))
    if len(codes) == 0 or codes[0] < 0:
        return []
    part = slice(int(rows.indptr[codes[0]]), int(rows.indptr[codes[0] + 1]))
    order = (
        slice(None) if rows.times is None else np.argsort(_comparable_times(rows.times[part]), kind="stable")
    )
    items: list[Any] = rows.items.values[rows.codes[part]][order].tolist()
    return items


def _comparable_times(times: Any) -> Any:
    """Times as seconds, whatever their time zones; all 0 where they cannot be read as times."""
    import numpy as np

    from recsys.errors import RecsysError
    from recsys.inputs.timestamps import to_seconds

    try:
        return to_seconds(times)
    except RecsysError:
        return np.zeros(len(times))


def _read_items(options: dict[str, Any]) -> Any:
    """The table of the items, with ids of the same type as in the other files."""
    from recsys.analysis.inspection import key_column
    from recsys.errors import ColumnError

    path = options["items"]
    table = shared_options.read_cells(path, options["encoding"])
    key = key_column(table)
    try:
        table[key] = table[key].astype("int64" if options["ids"] == "int" else str)
    except ValueError as error:
        raise ColumnError(f"an id is not a whole number ({error}).", table=path, column=key) from error
    for name in options["columns"]:
        if name not in table.columns:
            raise ColumnError(
                f"there is no column {name!r}.", table=path, hint=f"There are {', '.join(table.columns)}."
            )
    return table
