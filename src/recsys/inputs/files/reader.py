"""Files to Lists and Interactions, files to whole tables, and whole tables to files.

Columns are found as in tables in memory. Ids stay text by default. What is special about a format is in the
module that registers it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, overload

from recsys.errors import FileError, RecsysError, UnknownNameError, check_choice
from recsys.inputs.files import columnar, json_records  # noqa: F401 - with text, they register their formats
from recsys.inputs.files.atomic_write import write_bytes
from recsys.inputs.files.formats import (
    FORMATS,
    ROLES,
    FileContent,
    ReadOptions,
    files_of,
    format_by_magic,
    open_file,
    read_text_file,
)
from recsys.inputs.frames import as_frame, find_columns
from recsys.inputs.ids import ID_KINDS, IdKind, ids_of_texts
from recsys.records.arrays import Interactions, Lists


@overload
def read_file(
    path: str | os.PathLike[str], kind: Literal["lists"] = ..., *, columns: Mapping[str, str] | None = ...,
    format: str | None = ..., ids: IdKind = ..., encoding: str = ...,
) -> Lists: ...  # fmt: skip
@overload
def read_file(
    path: str | os.PathLike[str], kind: Literal["truth"], *, columns: Mapping[str, str] | None = ...,
    format: str | None = ..., ids: IdKind = ..., encoding: str = ...,
) -> Interactions: ...  # fmt: skip
def read_file(
    path: str | os.PathLike[str],
    kind: Literal["lists", "truth"] = "lists",
    *,
    columns: Mapping[str, str] | None = None,
    format: str | None = None,  # noqa: A002 - the usual name
    ids: IdKind = "str",
    encoding: str = "utf-8",
) -> Lists | Interactions:
    r"""Read recommendation lists, or the truth, from a file.

    Args:
        path: a file, gzipped or not; "-" for standard input. A glob such as "recs/*.parquet" or a folder is
            read as one table: the rows of its files, which have one format and the same columns, in the order
            of their names. Files whose names begin with "_" or "." are left out.
        kind: "lists", or "truth" for relevant, seen or training items.
        columns: names where detection fails: {"user": "uid", "item": "sku"}.
        format: a name of recsys.files.FORMATS, such as csv, parquet, trec (run or judgements), inter
            (RecBole) or ratings (user, item, rating and time without a header, as MovieLens and Amazon write
            them); by default it follows from the ending of the name, else from the content.
        ids: "str" keeps ids as text, so "007" is not "7" and two files always match each other; "int" reads
            whole numbers, as tables in memory often hold; "auto" keeps the types of a Parquet or Arrow file,
            and ids of text files stay text.
        encoding: of text files.

    Returns:
        Lists for kind="lists", Interactions for kind="truth".

    Raises:
        FileError: the file is missing, damaged, unsafe or of another format; the message names the line.
        ColumnError: a column is missing or ambiguous.
        IdTypeError: ids are not of the type asked for.

    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "lists.csv"
    >>> _ = path.write_text("user_id,item_id,score\n007,NA,0.9\n007,b,0.5\n")
    >>> lists = read_file(path)
    >>> lists.cases.values.tolist(), lists.items.values.tolist()
    (['007'], ['NA', 'b'])
    """
    for what, value, known in (("kind", kind, ROLES), ("ids", ids, ID_KINDS)):
        check_choice(f"value of {what}", value, known)
    source = open_file(path)
    if kind == "lists" and source.path is not None and source.path.parent.name == "qrels":
        raise FileError(f"{source.name} holds judgements, not lists.", hint="Pass it as the truth.")
    name = format or detect_format(source)
    result = FORMATS.find(name).read(source, ReadOptions(kind, columns, ids, encoding))
    n_files = len(source.parts) if source.parts else None
    return replace(result, facts=replace(result.facts, file=source.name, format=name, n_files=n_files))


def detect_format(source: FileContent) -> str:
    """Return the format by magic bytes, then by the ending of the name, then by the first lines."""
    if source.parts:
        found = {part.name: detect_format(part) for part in source.parts}
        first, *others = found
        other = next((name for name in others if found[name] != found[first]), None)
        if other is not None:
            raise FileError(
                f"{source.name} has files of different formats: {first} is {found[first]}, "
                f"{other} is {found[other]}.",
                hint="Name those of one format by a glob, such as 'folder/*.parquet', or say which it is.",
            )
        return found[first]
    suffixes = [s.lower() for s in Path(source.name).suffixes if s.lower() != ".gz"]
    suffix = suffixes[-1] if suffixes else None
    by_magic = format_by_magic(source.head, FORMATS.values())
    if by_magic is None and not any(suffix in f.suffixes for f in FORMATS.values()):
        by_magic = format_by_magic(source.head, FORMATS.load_plugins().values())
    if by_magic is not None:
        return by_magic.name
    candidates = [f for f in FORMATS.values() if suffix in f.suffixes]
    for entry in reversed(candidates or list(FORMATS.values())):
        if entry.recognises is not None and entry.recognises(source.head):
            return entry.name
    return candidates[0].name if candidates else "csv"


def stored_ids(*paths: Any) -> IdKind | None:
    """Return how to read ids of several files by default: as stored if each stores types, else as text.

    What is not the path of a table that can be opened decides nothing; None if nothing is.
    """
    kinds = {_id_kind(path) for path in paths if isinstance(path, str | os.PathLike)} - {None}
    return "str" if "str" in kinds else next(iter(kinds), None)


def _id_kind(path: str | os.PathLike[str]) -> IdKind | None:
    """Return "auto" for a file, or the first of several, that tells numbers from text, otherwise "str"."""
    try:
        first = files_of(path)[0]
        if str(path) == "-" or (first.exists() and not first.is_file()):  # a pipe can be read once
            return "str"
        return "auto" if FORMATS[detect_format(open_file(first))].typed else "str"
    except (RecsysError, OSError, ValueError):  # whatever reads it says why
        return None


def read_table(
    path: str | os.PathLike[str] | FileContent,
    *,
    columns: Mapping[str, str] | None = None,
    format: str | None = None,  # noqa: A002 - the usual name
    ids: IdKind | None = None,
    encoding: str = "utf-8",
    header: Sequence[str] | None = None,
    text: bool = False,
) -> tuple[Any, dict[str, str]]:
    r"""Return a pandas table of all columns, and {role: column} for user, item, grade and time.

    `ids` as in read_file; by default text is read as whole numbers if every id of the column is one. `header`
    names the columns of a file that has none; `text` leaves every cell of a text file as it is.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "u.data"
    >>> _ = path.write_text("196\t242\t3\t881250949\n186\t302\t3\t891717742\n")
    >>> table, roles = read_table(path)
    >>> table["rating"].tolist(), roles["time"]
    ([3.0, 3.0], 'timestamp')
    """
    source = path if isinstance(path, FileContent) else open_file(path)
    name = format or detect_format(source)
    entry = FORMATS.get(name) or FORMATS.load_plugins().get(name)
    if entry is None or entry.read_whole is None:
        tables = [f.name for f in FORMATS.values() if f.read_whole is not None]
        raise UnknownNameError("format of a table", name, tables)
    options = ReadOptions(columns=columns, ids=ids, encoding=encoding, header=header, text=text)
    return entry.read_whole(source, options)


def read_attributes(
    path: str | os.PathLike[str],
    role: Literal["user", "item"],
    *,
    column: str | None = None,
    ids: IdKind = "str",
    encoding: str = "utf-8",
    text: bool = False,
) -> tuple[Any, str]:
    r"""Return a pandas table of what is known about users or items, and its column of ids.

    Args:
        path: a table, or item ids alone, one per line (.txt).
        role: what its rows are about.
        column: the ids where they are not recognised, if the table has this column; it is then called `role`.
        ids: as in read_file.
        encoding: of text files.
        text: whether other cells stay text; by default columns are numbers where every cell is one.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "items.csv"
    >>> _ = path.write_text("sku,price\n007,12\n008,\n")
    >>> read_attributes(path, "item", column="sku")[0].values.tolist()
    [['007', 12.0], ['008', nan]]
    """
    import pandas as pd

    if Path(path).suffix == ".txt":
        lines = read_text_file(path, encoding).splitlines()
        frame = pd.DataFrame({role: [line for line in lines if line]})
    else:
        frame, _ = read_table(path, encoding=encoding, text=True)
    named: dict[str, str] | None = None
    if column is not None and column in frame.columns:
        named = {role: column}
    own = find_columns([*map(str, frame.columns)], (role,), named, str(path), needed=(role,))[role]
    for name in frame.columns:
        cells = frame[name]
        if name == own and ids == "str":
            frame[name] = cells.astype(str) if cells.dtype.kind in "iu" else cells
        elif name == own and ids == "int" and cells.dtype.kind not in "iu":
            frame[name] = ids_of_texts(cells.astype(str), "int", str(path), name)
        elif name != own and not text:
            numbers = pd.to_numeric(cells.replace("", None), errors="coerce")
            frame[name] = numbers if numbers.notna().sum() == (cells != "").sum() else cells
    return (frame, own) if named is None else (frame.rename(columns={own: role}), role)


def write_table(path: str | os.PathLike[str], data: Any) -> None:
    """Write a pandas, polars or Arrow table, Lists or Interactions by the ending of `path`.

    Endings are .csv, .tsv, .parquet, .arrow, .inter (RecBole), .run and .qrels (TREC), and more.

    Raises:
        UnknownNameError: no format that is written has this ending.
        FileError: `data` is not a table, or holds what the format has no way to write.

    >>> import tempfile, recsys
    >>> path = Path(tempfile.mkdtemp()) / "lists.run"
    >>> write_table(path, recsys.read_lists({"ann": [("tent", 0.9), ("stove", 0.4)]}))
    >>> print(path.read_text(), end="")
    ann Q0 tent 1 0.9 recsys
    ann Q0 stove 2 0.4 recsys
    """
    target = Path(path)
    data = data.to_frame() if isinstance(data, Lists | Interactions) else data
    writers = {
        suffix: f.write
        for f in reversed(FORMATS.load_plugins().values())
        if f.write is not None
        for suffix in f.suffixes
    }
    if target.suffix.lower() not in writers:
        raise UnknownNameError("ending of a table's file", target.suffix, writers)
    frame = as_frame(data)
    if frame is None:
        raise FileError(
            f"{type(data).__name__} is not a table.", hint="Pass a pandas, polars or Arrow table."
        )
    write_bytes(target, writers[target.suffix.lower()](frame, target.name))
