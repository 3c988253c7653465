"""Text files: comma- and tab-separated tables, `.inter`, ratings without a header, TREC runs and judgements.

Of their columns (`split_text`) only scores, ranks, grades and times become numbers; ids stay text by default,
so leading zeros and ids spelled NA or null are kept.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from typing import Any

import numpy as np

from recsys.errors import ColumnError, FileError, InputError, RecsysWarning, hush
from recsys.inputs.files.formats import FileContent, Format, ReadOptions, add_format, check_same_columns
from recsys.inputs.files.split_text import (
    TextColumn,
    TextFiles,
    TextRows,
    TextTable,
    decode,
    find_delimiter,
    is_number,
    read_text,
    split_rows,
)
from recsys.inputs.frames import (
    column_facts,
    detect_columns,
    find_columns,
    first_repeated,
    row_arrangement,
    unnamed_score,
)
from recsys.inputs.ids import IdKind, convert_ids, encode_strings
from recsys.inputs.rows import PLAIN_NUMBER, WHOLE_NUMBER, Rows, to_interactions, to_lists
from recsys.records.arrays import Codes, Float, Ids, Interactions, Lists

_RECBOLE_NAMES = {
    "user": "user_id", "item": "item_id", "score": "score", "grade": "rating", "time": "timestamp",
}  # fmt: skip
_ID_ROLES, _NUMBER_ROLES = ("case", "user", "item"), ("score", "rank", "grade")
_EXACT_NUMBERS = 2.0**53  # whole numbers below it are exact in float64

_BLOCK_BYTES = 1 << 23  # of text, read at a time where the whole may not fit into memory
_FIRST_LINE = re.compile(rb"(?:\xef\xbb\xbf)?[\r\n]*[^\r\n]*(?:\r\n|\r|\n)?")
_ROWS_LOOKED_AT = 1000  # to tell what a column without a role holds


def _find_columns(form: str, names: list[str], source: FileContent, options: ReadOptions) -> dict[str, str]:
    if form == "trec":
        return {role: role for role in names if role in options.roles and role != "rank"}
    return find_columns(names, options.roles, options.columns, source.name)


def _read_blocks(
    form: str, source: FileContent, options: ReadOptions
) -> tuple[dict[str, str], Iterator[Any]]:
    """Read the columns with a role, in Arrow tables of some rows each: ids as text, others as numbers."""
    import pyarrow as pa

    blocks = _blocks_of(form, source, options.kind)
    first = next(blocks)
    column_of = _find_columns(form, first.names, source, options)

    def columns_of(rows: TextRows) -> dict[str, Any]:
        check_same_columns((source.parts or (source,))[0], first.names, rows.name, rows.names)
        with locate_errors(rows.name, rows.line), hush(RecsysWarning):
            cells = dict(zip(column_of, rows.columns(list(column_of.values())), strict=True))
            cells.pop("time", None)
            numbers = _parse_cells(cells, options, rows)[0] if len(cells["item"]) else {}
        texts = {role: column.packed() for role, column in cells.items()}
        return texts | {role: pa.array(values) for role, values in numbers.items()}

    def tables() -> Iterator[Any]:
        n_rows = 0
        for columns in map(columns_of, chain([first], blocks)):
            if len(columns["item"]):
                yield pa.table({column_of[role]: values for role, values in columns.items()})
            n_rows += len(columns["item"])
        if not n_rows:
            raise _no_rows(source.name)

    return column_of, tables()


def _blocks_of(form: str, source: FileContent, kind: str) -> Iterator[TextRows]:
    """Yield the files in blocks of whole rows."""
    for file in source.parts or (source,):
        first, rest, lines, before = b"", b"", 0, 0
        for chunk in chain(file.chunks(_BLOCK_BYTES), (b"",)):
            rest += chunk
            line = first or _FIRST_LINE.match(rest)[0]  # type: ignore[index]
            end = _end_of_rows(rest, form, line) if chunk else len(rest)
            if end:
                above = lines - _n_lines(first, form)  # the first line is split again with every block
                data = decode(first + rest[:end], file.name, "utf-8", before - len(first), above)
                yield split_rows(data, file.name, form, kind, below_first=bool(first), lines=above)
                lines, before = lines + _n_lines(rest[:end], form), before + end
                first, rest = b"" if form == "trec" else line, rest[end:]


def _end_of_rows(data: bytes, form: str, first: bytes) -> int:
    """Return where the last row that is whole ends; 0 if that cannot be known yet."""
    # A return at the very end may be the first half of a line end.
    end = 1 + max(data.rfind(b"\n"), data.rfind(b"\r", 0, -1) if form != "trec" else -1)
    if form in ("csv", "tsv") and b'"' in data[:end]:  # cells in quotes may hold line ends
        if first.count(b'"') % 2:
            return 0
        lines, done = [*io.StringIO(data[:end].decode("latin-1"), newline="")], 0
        reader = csv.reader(lines, delimiter=find_delimiter(first.decode("latin-1"), form), strict=True)
        try:
            for _ in reader:
                done = reader.line_num
        except csv.Error as error:
            if "unexpected end" in str(error):
                return sum(map(len, lines[:done]))
    return end


def _n_lines(data: bytes, form: str) -> int:
    """Return how many lines end in the data."""
    returns = data.count(b"\r") - data.count(b"\r\n") if form != "trec" else 0
    return data.count(b"\n") + returns


def _no_rows(name: str) -> FileError:
    return FileError(f"{name} has a header and no rows.", hint="Check what wrote it.")


def _read(form: str, source: FileContent, options: ReadOptions) -> Lists | Interactions:
    """Lists or interactions from the columns that have a role; errors name the line."""
    table = read_text(source, form, options)
    column_of = _find_columns(form, table.names, source, options)
    with locate_errors(table.name, table.line):
        if options.ranked_by_rows(column_of):
            _refuse_unnamed_score(table, column_of)
        cells = dict(zip(column_of, table.columns(list(column_of.values())), strict=True))
        if len(next(iter(cells.values()))) == 0:
            raise _no_rows(table.name)
        extra, coded, padded = _parse_cells(cells, options, table)
        if "case" in coded and "user" in coded:
            extra["user_ids"], extra["users"] = coded["user"]
        cases, case = coded.get("case") or coded["user"]
        arrangement = row_arrangement(case) if options.ranked_by_rows(column_of) else None
        facts = column_facts(column_of, table.names)
        facts = replace(facts, arrangement=arrangement, comments=table.n_comments or None, **padded)
        rows = Rows(table.name, cases, case, *coded["item"], facts=facts, **extra)
        return to_lists(rows) if options.kind == "lists" else to_interactions(rows, negatives=True)


def _parse_cells(
    cells: Mapping[str, TextColumn], options: ReadOptions, table: TextTable
) -> tuple[dict[str, Any], dict[str, tuple[Ids, Codes]], dict[str, Any]]:
    """Return the columns of numbers and times by role, the ids with their codes, and how many are padded."""
    extra: dict[str, Any] = {
        role: _parse_numbers(column, role, table) for role, column in cells.items() if role in _NUMBER_ROLES
    }
    if "score" in extra and (options.text or not np.abs(extra["score"]).max() < _EXACT_NUMBERS):
        # Whole numbers that are compared digit by digit.
        extra["score"] = np.array(cells["score"].texts(), dtype=object)
    if "time" in cells:
        extra["time"] = cells["time"].times()
    ids = {role: column for role, column in cells.items() if role in _ID_ROLES}
    padded: dict[str, Any] = {}
    coded = {role: _encode_text(column, role, options.ids, table, padded) for role, column in ids.items()}
    return extra, coded, padded


def _refuse_unnamed_score(table: TextRows | TextFiles, column_of: Mapping[str, str]) -> None:
    """Raise an error if the first rows of an unused column are decimal numbers, as scores are."""
    first_rows = [cells for _, cells in islice(table.rows(), _ROWS_LOOKED_AT)]
    for at, name in enumerate(table.names):
        column = [cells[at] for cells in first_rows]
        whole = all(map(WHOLE_NUMBER.fullmatch, column))
        if name not in column_of.values() and not whole and TextColumn(column).numbers() is not None:
            raise unnamed_score(name, table.name)


def _encode_text(
    column: TextColumn, role: str, ids: IdKind | None, table: TextTable, padded: dict[str, int]
) -> tuple[Ids, Codes]:
    """Return ids, of the type asked for, and codes of a column of text; raise an error at an empty cell."""
    text_ids, codes = encode_strings(column.array, table=table.name, column=role)
    if len(text_ids) and text_ids.values[0] == "":
        row = int(np.argmax(codes == 0))
        raise FileError(
            f"{table.name}, {table.line(row)}: the {role} id is missing.",
            hint="Give the row an id, or take it out.",
        )
    n_padded = sum(value != value.strip() for value in text_ids.values.tolist())
    if n_padded:
        padded[f"padded_{role}_ids"] = n_padded
    return convert_ids(
        text_ids, codes, ids, f"{role} ids of {table.name}", lambda row: f", {table.line(row)}"
    )


def _parse_numbers(column: TextColumn, role: str, table: TextTable) -> Float:
    """Return text as numbers, or raise an error that names the first line without a number."""
    numbers = column.numbers()
    if numbers is not None:
        return numbers
    row, text = next((row, text) for row, text in enumerate(column.texts()) if not is_number(text))
    raise FileError(
        f"{table.name}, {table.line(row)}: the {role} {text!r} is not a number.",
        hint=f"Every row needs a {role}; fix the line, or name another column for it.",
    )


@contextmanager
def locate_errors(name: str, line: Callable[[int], str] | None = None) -> Iterator[None]:
    """Errors about a row name its file and, where `line` finds it, its line."""
    try:
        yield
    except InputError as error:
        if name not in error.message:
            place = f", {line(error.row)}" if line and isinstance(error.row, int) else ""
            error.message = f"{name}{place}: " + error.message
        error.table = None
        raise


def _read_whole(form: str, source: FileContent, options: ReadOptions) -> tuple[Any, dict[str, str]]:
    """Return every column; of TREC files only judgements are tables of interactions."""
    table = read_text(source, form, options)
    return typed_table(table, ["user", "item", "grade"] if form == "trec" else table.names, options)


def typed_table(table: TextTable, names: list[str], options: ReadOptions) -> tuple[Any, dict[str, str]]:
    """Return a pandas table, and {role: column}: columns with a role are typed, all others stay text.

    So a table written again equals the one read.
    """
    import pandas as pd

    repeated = first_repeated(names)
    if repeated is not None:
        raise FileError(f"{table.name}: the column {repeated!r} occurs twice.", hint="Rename one of the two.")
    column_of = detect_columns(names, ("user", "item", "grade", "time"), options.columns, table.name)
    if not names:
        raise FileError(f"{table.name} has no columns.", hint="Check what wrote it.")
    cells_by_name = dict(zip(names, table.columns(names), strict=True))
    if len(next(iter(cells_by_name.values()))) == 0:
        raise _no_rows(table.name)
    cells = {} if options.text else {role: cells_by_name[name] for role, name in column_of.items()}
    numbers, coded, _ = _parse_cells(cells, options, table)
    typed = numbers | {role: ids.values[codes] for role, (ids, codes) in coded.items()}
    if "time" in typed and typed["time"].dtype == object:  # dates are parsed where they are needed
        decimals = cells["time"].numbers()
        typed["time"] = typed["time"] if decimals is None else decimals
    values = {column_of[role]: column for role, column in typed.items()}
    columns = {
        name: values[name] if name in values else np.array(column.texts(), dtype=object)
        for name, column in cells_by_name.items()
    }
    return pd.DataFrame(columns), column_of


def _write_separated(separator: str, frame: Any, _name: str) -> bytes:
    text: str = frame.to_pandas().to_csv(sep=separator, index=False, lineterminator="\n")
    return text.encode()


def _write_inter(frame: Any, name: str) -> bytes:
    """Without quotes: a cell is the text between two tabs.

    RecBole finds columns by name and type: a column that has no type yet gets the name it looks for.
    """
    table = frame.to_pandas()
    role_of: dict[str, str] = {}
    for role in _RECBOLE_NAMES:
        with suppress(ColumnError):  # several columns could have this role, so none of them is renamed
            role_of |= dict.fromkeys(detect_columns([*table], (role,), None, name).values(), role)
    names = []
    for column in table:
        cells = table[column].tolist()
        texts = [column, *(cell for cell in cells if isinstance(cell, str))]
        _refuse_cells(texts, name, "no tabs or line breaks in cells", r"[\t\r\n]")
        if role_of.get(column) in ("user", "item"):
            _refuse_cells(cells, name, "no empty ids", r"^$")
        names.append(_recbole_name(str(column), role_of.get(column), cells))
    text: str = table.to_csv(sep="\t", index=False, header=names, lineterminator="\n", quoting=csv.QUOTE_NONE)
    return text.encode()


def _recbole_name(column: str, role: str | None, cells: list[Any]) -> str:
    """Return the header of a column: the name RecBole gives its role by default, and its type."""
    if ":" in column:
        return column
    is_id = role in ("user", "item")
    kind = "float" if not is_id and all(is_number(str(cell)) for cell in cells) else "token"
    return f"{_RECBOLE_NAMES[role] if role else column}:{kind}"


def _refuse_cells(cells: Any, name: str, what: str, pattern: str) -> None:
    """Raise an error that names the first text a format has no way to write; a missing id is empty."""
    for cell in cells:
        is_missing = cell is None or (isinstance(cell, float) and np.isnan(cell))
        text = "" if is_missing else str(cell)
        if re.search(pattern, text):
            raise FileError(
                f"{text!r} cannot be written to {name}: the format allows {what}.",
                hint="Write .csv, .tsv or .parquet, or give the rows other ids.",
            )


def _write_trec(frame: Any, name: str) -> bytes:
    """Return a run, best first, or judgements, by the ending of the name."""
    kind = "truth" if name.lower().endswith((".qrels", ".qrel")) else "lists"
    known = ("user", "item", "grade") if kind == "truth" else ("user", "item", "score", "rank")
    table = frame.to_pandas()
    column_of = find_columns([*map(str, table)], known, None, name)
    extra = [column for column in map(str, table) if column not in column_of.values()]
    if extra:
        raise FileError(
            f"the column {extra[0]!r} has no place in {name}, a TREC file.",
            hint=f"Drop it, or name it {' or '.join(known[2:])}; .csv and .parquet hold every column.",
        )
    columns = {role: table[column].tolist() for role, column in column_of.items()}
    for role in ("user", "item"):
        _refuse_cells(columns[role], name, "no empty ids and no blanks in them", r"^$|\s")
    _refuse_cells(columns["user"], name, "no user that begins with #, as comments do", "^#")
    lines = _judgement_lines(columns, name) if kind == "truth" else _run_lines(columns, name)
    return "".join(f"{line}\n" for line in lines).encode()


def _judgement_lines(columns: dict[str, list[Any]], name: str) -> Iterator[str]:
    users, items = columns["user"], columns["item"]
    for user, item, grade in zip(users, items, columns.get("grade", [1] * len(users)), strict=True):
        if not is_number(str(grade)) or not float(grade).is_integer():
            raise FileError(
                f"the grade {grade!r} of item {item!r} cannot be written to {name}: judgements of TREC are "
                "whole numbers.",
                hint="Round the grades, or write .csv or .parquet.",
            )
        yield f"{user} 0 {item} {int(float(grade))}"


def _run_lines(columns: dict[str, list[Any]], name: str) -> Iterator[str]:
    """Yield lines by user, as they first occur; a run without scores gets falling whole numbers."""
    if not {"score", "rank"} & columns.keys():
        raise FileError(
            f"{name} is a TREC run, and the table has neither scores nor ranks.",
            hint="Add a column score or rank; judgements are written to .qrels.",
        )
    numbers = {
        role: _finite_cells(columns[role], role, name) for role in ("score", "rank") if role in columns
    }
    user_of_row = columns["user"]
    turn = {user: n for n, user in enumerate(dict.fromkeys(user_of_row))}
    key = [-score for score in numbers["score"]] if "rank" not in numbers else numbers["rank"]
    order = sorted(range(len(key)), key=lambda row: (turn[user_of_row[row]], key[row]))
    last = int(max(numbers.get("rank", [0]), default=0))
    place, before = 0, None
    for row in order:
        user = user_of_row[row]
        place = place + 1 if before is not None and user == user_of_row[before] else 1
        score = numbers["score"][row] if "score" in numbers else last + 1 - int(numbers["rank"][row])
        if "score" in numbers and place > 1 and score > numbers["score"][before or 0]:
            raise FileError(
                f"the ranks and the scores of user {user!r} disagree, and {name} is ordered by scores.",
                hint="Drop one of the two columns.",
            )
        yield f"{user} Q0 {columns['item'][row]} {place} {score!r} recsys"
        before = row


def _finite_cells(cells: list[Any], role: str, name: str) -> list[float]:
    for cell in cells:
        if not is_number(str(cell)) or not np.isfinite(float(cell)):
            raise FileError(
                f"the {role} {cell!r} cannot be written to {name}.", hint=f"Every {role} is a number."
            )
    return [float(cell) for cell in cells]


def first_lines(head: bytes) -> list[bytes]:
    """Return the lines at the beginning of a file that are not blank; at least one, which may be empty."""
    return [line for line in head.removeprefix(codecs.BOM_UTF8).splitlines() if line.strip()] or [b""]


def _begins_like_trec(head: bytes) -> bool:
    """Six columns between blanks with rank and score (a run), or four with a judgement."""
    cells = next((line.split() for line in first_lines(head) if not line.lstrip().startswith(b"#")), [])
    if len(cells) == 6:
        return _is_number_cell(cells[3]) and _is_number_cell(cells[4])
    return len(cells) == 4 and _is_number_cell(cells[3]) and b"," not in cells[0]


def _begins_like_ratings(head: bytes) -> bool:
    """Return whether the first line is user, item, rating and a time since 1970, so that there is no header.

    TREC judgements have four columns too, but their last column is not a time.
    """
    line = head.removeprefix(codecs.BOM_UTF8).lstrip(b"\r\n").split(b"\n", 1)[0].strip()
    cells = line.split(next((mark for mark in (b"::", b"\t", b",", b";") if mark in line), b"\t"))
    if len(cells) == 3 and b"::" in line:
        return _is_number_cell(cells[2])
    return len(cells) == 4 and _is_number_cell(cells[2]) and re.fullmatch(rb"\d{9,13}", cells[3]) is not None


def _is_number_cell(cell: bytes) -> bool:
    return PLAIN_NUMBER.fullmatch(cell.decode("latin-1")) is not None


def _add(form: str, **facts: Any) -> None:
    facts["read_blocks"] = partial(_read_blocks, form)
    add_format(Format(form, partial(_read, form), partial(_read_whole, form), **facts))


_add(
    "csv",
    write=partial(_write_separated, ","),
    suffixes=(".csv",),
    help=r"none of the others; the separator is that of the header: `,` tab `;` `\|`",
)
_add(
    "tsv",
    write=partial(_write_separated, "\t"),
    suffixes=(".tsv", ".tab"),
    recognises=lambda head: b"\t" in first_lines(head)[0] and b"," not in first_lines(head)[0],
    help="tabs and no commas in the header",
)
_add(
    "inter",
    write=_write_inter,
    suffixes=(".inter",),
    recognises=lambda head: b":token" in first_lines(head)[0],
    help="a header such as `user_id:token`",
    lists="RecBole's columns",
    truth="the same",
)
_add(
    "trec",
    write=_write_trec,
    suffixes=(".qrels", ".qrel", ".run", ".trec"),
    recognises=_begins_like_trec,
    help="six or four columns between blanks",
    lists="run: `qid Q0 docno rank score tag`",
    truth="qrels: `qid 0 docno judgement`",
)
_add(
    "ratings",
    suffixes=(".csv", ".tsv", ".tab"),
    recognises=_begins_like_ratings,
    help="no header, and a line such as `196⇥242⇥3⇥881250949`, `1::1193::5::978300760` or "
    "`A2CX…,0321732944,5.0,1341100800`",
    lists="user, item, score",
    truth="user, item, grade, time",
)
