"""How results leave the command: a table, JSON, CSV, … on standard output, per-user rows in a file.

Tables are as wide as the terminal at most; in a pipe as COLUMNS says, else 120. Colours are for terminals.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import click

from recsys.cli.error_messages import is_quiet, note


class Listing(NamedTuple):
    """Columns that are printed as they are."""

    columns: Mapping[str, Sequence[Any]]

    def to_text(self) -> str:
        from recsys.display.text_tables import text_table

        return text_table(self.columns)


def show(
    result: Any, form: str | None = None, *, raw: bool = False, err: bool = False, **options: Any
) -> None:
    """Print a result in one form, or a text, or values as JSON.

    Args:
        result: what has `to_text`, and `to_json`, `to_frame` and so on; a text; lists and dicts are JSON.
        form: "json", "csv", "markdown" or "latex"; None for a table as wide as the terminal at most.
        raw: whether text that a spreadsheet takes for a formula stays as it is in CSV.
        err: whether it goes to standard error.
        options: what `to_text` takes.
    """
    from recsys.display.text_tables import fitted, within_screen

    if form is None and not isinstance(result, dict | list):
        width = max(shutil.get_terminal_size(fallback=(120, 24)).columns, 40)
        colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        with fitted(width, colour=colour):
            is_text = not hasattr(result, "to_text")
            click.echo(within_screen(str(result)) if is_text else result.to_text(**options), err=err)
        return
    if form == "csv":
        print_csv(result.to_frame("pandas").to_dict("list"), raw=raw)
        text = ""
    else:
        text = getattr(result, f"to_{form}")() if form in ("markdown", "latex") else _json_text(result)
        click.echo(text)
    for caution in getattr(result, "cautions", ()):  # a plain table has none
        if caution.code not in text.replace("\\", ""):
            note(caution.sentence + f" [{caution.code}]", head="caution")


def _json_text(document: Any) -> str:
    """JSON, with the characters that a terminal would obey escaped; none is lost."""
    from recsys.display.cells import UNPRINTABLE

    is_result = hasattr(document, "to_json")
    text = document.to_json() if is_result else json.dumps(document, indent=2, ensure_ascii=False)
    return UNPRINTABLE.sub(lambda char: char[0] if char[0] == "\n" else f"\\u{ord(char[0]):04x}", text)


def print_csv(columns: Mapping[Any, Sequence[Any]], *, raw: bool = False) -> None:
    """Print columns as CSV; in a terminal without what the terminal would obey."""
    from recsys.display.cells import printable
    from recsys.display.exports import csv_text

    if sys.stdout.isatty():
        columns = {
            printable(str(name)): [printable(cell) if isinstance(cell, str) else cell for cell in cells]
            for name, cells in columns.items()
        }
    click.echo(csv_text(columns, zip(*columns.values(), strict=True), raw=raw), nl=False)


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[..., None] | None]:
    """A progress bar on standard error; None where that is not a terminal, or with --quiet.

    It is called with the steps done and the steps in all, and with other words for what is being done.
    """
    if is_quiet() or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)

        def show(done: int, total: int, doing: str = what) -> None:
            bar.update(task, completed=done, total=total, description=doing)

        yield show


def write_per_user(result: Any, path: Path, *, raw: bool) -> None:
    """Write one row per user, sorted by id; an empty cell means the user is not in that mean."""
    from recsys.display.exports import csv_text
    from recsys.inputs.files import write_bytes, write_text
    from recsys.inputs.files.columnar import parquet_bytes

    if path.suffix.lower() == ".parquet":
        write_bytes(path, parquet_bytes(result.per_user_frame("arrow")))
        return
    frame = result.per_user.reset_index()
    columns = {name: frame[name].tolist() for name in frame}  # whole numbers stay whole
    rows = (["" if cell != cell else cell for cell in row] for row in zip(*columns.values(), strict=True))  # noqa: PLR0124 - NaN
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    write_text(path, csv_text(columns, rows, delimiter=delimiter, raw=raw))
