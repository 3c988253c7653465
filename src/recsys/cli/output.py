"""How results leave the command: a table, JSON or CSV on standard output, per-user rows in a file."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from glob import glob
from pathlib import Path
from typing import Any

import click

from recsys.cli.error_messages import as_options, note

_HTML = (".html", ".htm")
_SUFFIXES = {"per-user": (".csv", ".tsv", ".parquet"), "save": (".json",), "report": _HTML, "output": _HTML}


def print_result(result: Any, *, as_json: bool, as_csv: bool, quiet: bool, raw: bool = False) -> None:
    """Print one result as a table, or with every digit as JSON or CSV."""
    if as_json:
        print_json(result.to_json())
    elif as_csv:
        columns = result.to_frame("pandas").to_dict("list")  # with a group column where there are groups
        print_csv(list(columns), zip(*columns.values(), strict=True), raw=raw)
        note_cautions(result, quiet=quiet)
    else:
        print_text(result)


def print_text(result: Any, notes: Sequence[str] = ()) -> None:
    """Print a result; its cautions and these notes, which are lines below it, in the words of the command."""
    text = str(result)
    for line in (*notes, *map(str, result.cautions)):
        text = text.replace(line, as_options(line))
    click.echo(text)


def note_cautions(result: Any, *, quiet: bool) -> None:
    """Print the cautions of a result on standard error, where what is printed cannot hold them."""
    for caution in () if quiet else result.cautions:
        note(f"{as_options(caution.sentence)} [{caution.code}]", head="caution")


def print_json(text: str) -> None:
    """Print JSON; characters that a terminal would obey are escaped, so nothing is lost."""
    from recsys.evaluation.tables import UNPRINTABLE

    escaped = UNPRINTABLE.sub(lambda char: char[0] if char[0] == "\n" else f"\\u{ord(char[0]):04x}", text)
    click.echo(escaped)


def print_csv(names: Sequence[Any], rows: Iterable[Sequence[Any]], *, raw: bool = False) -> None:
    """Print CSV; in a terminal without what the terminal would obey."""
    from recsys.evaluation.tables import csv_text, printable

    if sys.stdout.isatty():
        names, rows = (
            [printable(str(name)) for name in names],
            [[printable(cell) if isinstance(cell, str) else cell for cell in row] for row in rows],
        )
    click.echo(csv_text(names, rows, raw=raw), nl=False)


def print_table(names: Sequence[str], rows: Iterable[Sequence[str]], *, wrapped: Sequence[str]) -> None:
    """Print a table as wide as the terminal, in which only the columns `wrapped` break their lines.

    It honours NO_COLOR and never reads names as markup.
    """
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in names:
        table.add_column(name, no_wrap=name not in wrapped)
    for row in rows:
        table.add_row(*row)
    Console(markup=False, highlight=False, emoji=False).print(table)


def check_target(
    path: Path, option: str, *, inputs: Iterable[str | None] = (), makes_folder: bool = False
) -> None:
    """Refuse a file that cannot be written, before the work is done.

    Args:
        path: the file to write.
        option: the option that named it, without dashes.
        inputs: the files that are read, which it must not overwrite.
        makes_folder: whether a missing folder will be created.
    """
    suffixes = _SUFFIXES.get(option, ())
    if suffixes and path.suffix.lower() not in suffixes:
        raise click.UsageError(f"--{option} {path}: the name must end in {', '.join(suffixes)}.")
    if not makes_folder and not path.parent.is_dir():
        raise click.UsageError(f"--{option} {path}: there is no folder {path.parent}.")
    for input_path in inputs:
        if input_path in (None, "-"):
            continue
        place = Path(str(input_path))
        found = place.iterdir() if place.is_dir() else map(Path, glob(str(place), recursive=True))  # noqa: PTH207
        if path.resolve() in {file.resolve() for file in (place, *found)}:
            raise click.UsageError(f"--{option} {path} would overwrite an input file.")


@contextmanager
def progress_bar(what: str, *, quiet: bool) -> Iterator[Callable[[int, int], None] | None]:
    """A progress bar on standard error; None where that is no terminal, or with --quiet."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)

        def show(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield show


def write_per_user(result: Any, path: Path, *, raw: bool) -> None:
    """Write one row per user, sorted by id; an empty cell means the user is not in that mean."""
    from recsys.evaluation.tables import csv_text
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
