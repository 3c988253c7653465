"""How results leave the command: a table, JSON or CSV on standard output, per-user rows in a file.

Tables are as wide as the terminal at most; in a pipe as COLUMNS says, else 120. Colours are for terminals.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from glob import glob
from pathlib import Path
from typing import Any

import click

from recsys.cli.error_messages import as_option, note
from recsys.errors import Face

_HTML = (".html", ".htm")
_SUFFIXES = {
    "per-user": (".csv", ".tsv", ".parquet"),
    "save": (".json",),
    "report": _HTML,
    "output": _HTML,
    "methods": (".md", ".tex", ".txt"),
}


def print_result(
    result: Any, *, as_json: bool, as_csv: bool, quiet: bool, raw: bool = False, intervals: bool | None = None
) -> None:
    """Print one result as a table, or with every digit as JSON or CSV.

    `intervals`: whether values have their intervals beside them, None: where that takes no time.
    """
    if as_json:
        print_json(result.to_json())
    elif as_csv:
        print_csv(result.to_frame("pandas").to_dict("list"), raw=raw)  # with a column of groups if there are
        note_cautions(result, quiet=quiet)
    else:
        with screen():
            click.echo(result.to_text(intervals=intervals))


def print_page(
    result: Any,
    *,
    as_json: bool = False,
    markdown: bool = False,
    err: bool = False,
    face: Face = as_option,
) -> None:
    """Print a result, or a text, within the width of the terminal; a result also as JSON or Markdown.

    `face` as in `screen`.
    """
    from recsys.display.text_tables import within_screen

    if as_json:
        print_json(result.to_json())
        return
    if markdown:
        click.echo(result.to_markdown())
        return
    with screen(face):
        text = result.to_text() if hasattr(result, "to_text") else within_screen(str(result))
        click.echo(text, err=err)


def screen(face: Face = as_option) -> AbstractContextManager[None]:
    """Within it, tables are as wide as the terminal at most, and notes word their fixes by `face`."""
    from recsys.display.text_tables import fitted

    width = max(shutil.get_terminal_size(fallback=(120, 24)).columns, 40)
    colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return fitted(width, colour=colour, face=face)


def note_cautions(result: Any, *, quiet: bool) -> None:
    """Print the cautions of a result on standard error, where what is printed cannot hold them."""
    for caution in () if quiet else result.cautions:
        note(caution.sentence + f" [{caution.code}]", head="caution")


def print_json(document: Any) -> None:
    """Print JSON text, or values as JSON; characters that a terminal would obey are escaped, none is lost."""
    from recsys.display.cells import UNPRINTABLE

    text = document if isinstance(document, str) else json.dumps(document, indent=2, ensure_ascii=False)
    escaped = UNPRINTABLE.sub(lambda char: char[0] if char[0] == "\n" else f"\\u{ord(char[0]):04x}", text)
    click.echo(escaped)


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


def print_table(columns: Mapping[str, Sequence[Any]]) -> None:
    """Print columns as a table, within the width of the terminal."""
    from recsys.display.text_tables import text_table

    with screen():
        click.echo(text_table(columns))


def check_target(
    path: Path,
    option: str,
    *,
    inputs: Iterable[str | None] = (),
    makes_folder: bool = False,
    suffixes: Sequence[str] | None = None,
) -> None:
    """Refuse a file that cannot be written, before the work is done.

    Args:
        path: the file to write.
        option: the option that named it, without dashes.
        inputs: the files that are read, which it must not overwrite.
        makes_folder: whether a missing folder will be created.
        suffixes: how its name may end, if not as the option's files do; none if whoever writes it checks.
    """
    suffixes = _SUFFIXES.get(option, ()) if suffixes is None else suffixes
    if suffixes and path.suffix.lower() not in suffixes:
        raise click.UsageError(f"--{option} {path}: the name must end in {', '.join(suffixes)}.")
    if not makes_folder and not path.parent.is_dir():
        raise click.UsageError(f"--{option} {path}: there is no folder {path.parent}.")
    for input_path in inputs:
        if input_path in (None, "-"):
            continue
        place = Path(str(input_path))
        found = place.iterdir() if place.is_dir() else map(Path, glob(str(place), recursive=True))  # noqa: PTH207
        # Not Path.resolve: a link that leads to itself is an error there.
        if os.path.realpath(path) in {os.path.realpath(file) for file in (place, *found)}:
            raise click.UsageError(f"--{option} {path} would overwrite an input file.")


@contextmanager
def progress_bar(what: str, *, quiet: bool) -> Iterator[Callable[..., None] | None]:
    """A progress bar on standard error; None where that is no terminal, or with --quiet.

    It is called with the steps done and the steps in all, and with other words for what is being done.
    """
    if quiet or not sys.stderr.isatty():
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
    frame = result.per_user
    columns = [frame.index.tolist(), *(frame[name].tolist() for name in frame)]  # whole numbers stay whole
    rows = (
        ["" if value != value else value for value in row]  # noqa: PLR0124 - NaN
        for row in zip(*columns, strict=True)
    )
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    names = [frame.index.name, *frame.columns]
    write_text(path, csv_text(names, rows, delimiter=delimiter, raw=raw))
