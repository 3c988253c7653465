"""How results leave the command: a table, JSON or CSV on standard output, per-user rows in a file."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click

_KINDS = (".csv", ".tsv", ".parquet")


def print_result(result: Any, *, as_json: bool, as_csv: bool) -> None:
    """One result, for people or for programs; files and programs get every digit."""
    if as_json:
        click.echo(result.to_json())
    elif as_csv:
        rows = [(name, repr(value), result.n_cases[name]) for name, value in result.items()]
        click.echo(separated(["metric", "value", "cases"], rows), nl=False)
    else:
        click.echo(str(result))


def check_target(path: Path) -> None:
    """Say that a file cannot be written before the work is done, not after."""
    if path.suffix.lower() not in _KINDS:
        raise click.UsageError(f"--per-user {path}: the name must end in {', '.join(_KINDS)}.")
    if not path.parent.is_dir():
        raise click.UsageError(f"--per-user {path}: there is no folder {path.parent}.")


def write_per_user(result: Any, path: Path) -> None:
    """One row a user, sorted by id; an empty cell says the user is not in that mean."""
    from recsys.files import write_bytes, write_text

    if path.suffix.lower() == ".parquet":
        write_bytes(path, _parquet(result))
        return
    frame = result.per_user
    names = [frame.index.name, *frame.columns]
    rows = (
        [index, *map(_digits, row)] for index, row in zip(frame.index, frame.to_numpy().tolist(), strict=True)
    )
    write_text(path, separated(names, rows, "\t" if path.suffix.lower() == ".tsv" else ","))


def separated(names: Sequence[Any], rows: Iterable[Sequence[Any]], delimiter: str = ",") -> str:
    """Rows as CSV text."""
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, lineterminator="\n")
    writer.writerow(names)
    writer.writerows(rows)
    return out.getvalue()


def _digits(value: Any) -> Any:
    if isinstance(value, float):
        return "" if value != value else repr(value)  # noqa: PLR0124 - NaN
    return value


def _parquet(result: Any) -> bytes:
    from recsys.errors import MissingExtraError

    try:
        from pyarrow import parquet
    except ImportError as error:
        raise MissingExtraError("pyarrow", "arrow", "Writing Parquet") from error
    out = io.BytesIO()
    parquet.write_table(result.per_user_frame("arrow"), out, write_page_checksum=True)
    return out.getvalue()


def console() -> Any:
    """A rich console on standard output that honours NO_COLOR and never reads names as markup."""
    from rich.console import Console

    return Console(markup=False, highlight=False, emoji=False)
