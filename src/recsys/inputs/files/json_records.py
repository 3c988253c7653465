"""JSON to containers: {user: [items]}, {user: {item: number}}, or rows.

Python's parser keeps the last of two equal keys and accepts NaN as a number; both are errors here, because
either would change a result silently.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

from recsys.errors import FileError, Phrase
from recsys.inputs.containers import numbers_to_array
from recsys.inputs.files.formats import FileContent, Format, ReadOptions, add_format, check_same_columns
from recsys.inputs.files.split_text import TextColumn, decode
from recsys.inputs.files.text import first_lines, locate_errors, typed_table
from recsys.inputs.frames import find_columns, first_repeated
from recsys.records.arrays import Interactions, Lists

_EXPECTED = (
    'Expected {"user": ["item", …]}, {"user": {"item": score}}, a list of rows such as '
    '{"user": "u1", "item": "i1", "score": 0.5}, or one such row per line, '
    'or {"user": "u1", "items": [...]} on each line.'
)


def _read(source: FileContent, options: ReadOptions, *, lines: bool) -> Lists | Interactions:
    """Lists or interactions from a dict by user or from rows; `lines`: one JSON text per line."""
    name = source.name
    content, unused = _parse(source, options, lines=lines), []
    if isinstance(content, dict):
        if not content:
            raise FileError(f"{name} holds no users.", hint=_EXPECTED)
        if content.keys() >= {"result", "cases", "run"}:
            raise FileError(
                f"{name} is a result that recsys saved, which holds values and no lists.",
                hint="Name the lists, or the model, that it is a result of.",
            )
        data: Any = _users_to_dict(content.items(), options.ids, name)
    elif isinstance(content, list) and content and all(isinstance(row, dict) for row in content):
        data = _rows_to_table(content, name, options)
        unused = [] if isinstance(data, dict) else [key for key in content[0] if key not in data.columns]
    else:
        raise FileError(f"{name} holds JSON of another form.", hint=_EXPECTED)
    with locate_errors(name):
        return options.finish(data, options.columns, name, unused=unused)


def _read_whole(source: FileContent, options: ReadOptions, *, lines: bool) -> tuple[Any, dict[str, str]]:
    """Return rows of JSON objects as a table with every column."""
    rows = _parse(source, options, lines=lines)
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise FileError(
            f"{source.name} is not a table.", hint="A table in JSON is a list of objects, or one per line."
        )
    return typed_table(_Records(source.name, rows), _check_same_keys(rows, source.name), options)


class _Records(NamedTuple):
    """Rows of JSON as a table of text."""

    name: str
    records: list[dict[str, Any]]

    def columns(self, names: Sequence[str]) -> list[TextColumn]:
        """Return the values of some keys as text."""
        return [TextColumn([self._cell(record[name]) for record in self.records]) for name in names]

    def line(self, row: int) -> str:
        """Return the place of a row, for errors."""
        return f"line {row + 1}"

    def _cell(self, value: Any) -> str:
        if isinstance(value, list | dict):
            raise FileError(
                f"{self.name}: {value!r} is not a cell of a table.", hint="Give every row plain values."
            )
        return "" if value is None else str(value)


def _parse(source: FileContent, options: ReadOptions, *, lines: bool) -> Any:
    """Return what the file says; of several files their rows, or their users, together."""
    whole: Any = None
    for part in source.parts:
        content = _parse(part, options, lines=lines)
        if whole is None:
            whole = content
            continue
        if type(content) is not type(whole) or not isinstance(whole, list | dict):
            raise FileError(
                f"{part.name} holds JSON of another form than {source.parts[0].name}.", hint=_EXPECTED
            )
        if isinstance(whole, list):
            if whole and content and all(isinstance(rows[0], dict) for rows in (whole, content)):
                check_same_columns(source.parts[0], list(whole[0]), part.name, list(content[0]))
            whole += content
            continue
        repeated = next((user for user in content if user in whole), None)
        if repeated is not None:
            raise FileError(
                f"{part.name}: the user {repeated!r} occurs in a file before it, too.", hint="Merge the two."
            )
        whole |= content
    if source.parts:
        return whole
    data, parse = decode(source.data, source.name, options.encoding), _parser(source.name)
    if not lines:
        return parse(data.decode(), "")
    return [
        parse(line.decode(), f", line {number}")
        for number, line in enumerate(data.split(b"\n"), 1)
        if line.strip()
    ]


def _check_same_keys(rows: list[dict[str, Any]], name: str) -> list[str]:
    keys = list(rows[0])
    for number, row in enumerate(rows, 1):
        if row.keys() != rows[0].keys():
            raise FileError(
                f"{name}, row {number} has the keys {', '.join(row)}, the first row {', '.join(keys)}.",
                hint="Give every row the same keys.",
            )
    return keys


def _parser(name: str) -> Callable[[str, str], Any]:
    """Return a function (text, location) -> value that parses strict JSON; errors name the location."""
    location = [""]

    def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        content = dict(pairs)
        if len(content) < len(pairs):
            repeated = first_repeated(key for key, _ in pairs)
            raise FileError(f"{name}{location[0]}: the key {repeated!r} occurs twice.", hint="Merge the two.")
        return content

    def refuse_constant(word: str) -> Any:
        raise FileError(
            f"{name}{location[0]}: {word} is not a number.", hint="Drop it, or fix what wrote it."
        )

    decoder = json.JSONDecoder(object_pairs_hook=unique_keys, parse_constant=refuse_constant)

    def parse(text: str, where: str) -> Any:
        location[0] = where
        try:
            value = decoder.decode(text)
            if (
                "\\u" in text
            ):  # half of a pair of surrogates is not a letter, and no id could be written again
                json.dumps(value, ensure_ascii=False).encode()
        except json.JSONDecodeError as error:
            place = where or f", line {error.lineno}"
            raise FileError(
                f"{name}{place}: not valid JSON ({error.msg}, column {error.colno}).",
                hint=Phrase("The file may be cut off; one row per line is {read_file.format='jsonl'}."),
            ) from error
        except (RecursionError, ValueError) as error:
            if isinstance(error, FileError):
                raise
            raise FileError(
                f"{name}{where}: JSON that cannot be parsed ({error}).", hint=_EXPECTED
            ) from error
        return value

    return parse


def _rows_to_table(rows: list[dict[str, Any]], name: str, options: ReadOptions) -> Any:
    ids, keys = options.ids, _check_same_keys(rows, name)
    list_key = next((key for key in keys if all(isinstance(row[key], list | dict) for row in rows)), None)
    if list_key is not None and len(keys) == 2:
        user = next(key for key in keys if key != list_key)
        return _users_to_dict(((row[user], row[list_key]) for row in rows), ids, name)
    import pandas as pd

    column_of = find_columns(keys, options.roles, options.columns, name)
    id_columns = {column_of[role] for role in ("case", "user", "item") if role in column_of}
    table = {}
    for key in keys if options.ranked_by_rows(column_of) else dict.fromkeys(column_of.values()):
        values = [row[key] for row in rows]
        table[key] = pd.Series(_convert_ids(values, ids) if key in id_columns else numbers_to_array(values))
    return pd.DataFrame(table)


def _users_to_dict(entries: Iterable[tuple[Any, Any]], ids: str | None, name: str) -> dict[Any, Any]:
    by_user: dict[Any, Any] = {}
    for user, entry in entries:
        key = _convert_id(user, ids)
        if isinstance(key, list | dict) or key in by_user:
            raise FileError(
                f"{name}: the user {user!r} occurs twice, or is not an id.", hint="Merge the two."
            )
        if isinstance(entry, dict):
            by_user[key] = dict(zip(_convert_ids(list(entry), ids), entry.values(), strict=True))
            if len(by_user[key]) < len(entry):
                raise FileError(
                    f"{name}: two items of {user!r} are the same whole number.", hint="Read ids as text."
                )
        elif not isinstance(entry, list):
            raise FileError(f"{name}: the user {user!r} holds {entry!r}.", hint=_EXPECTED)
        elif list not in set(map(type, entry)):
            by_user[key] = _convert_ids(entry, ids)
        else:
            by_user[key] = [
                (_convert_id(x[0], ids), x[1]) if isinstance(x, list) and len(x) == 2 else _convert_id(x, ids)
                for x in entry
            ]
    return by_user


def _convert_ids(values: list[Any], ids: str | None) -> list[Any]:
    """Return a list of ids; the usual case, all of one type, is not checked id by id."""
    kinds = set(map(type, values))
    if ids != "int" and kinds == {int}:
        return list(map(str, values))
    return values if ids != "int" and kinds <= {str} else [_convert_id(value, ids) for value in values]


def _convert_id(value: Any, ids: str | None) -> Any:
    """Return text as numbers for ids="int", else numbers as text; other values are checked later."""
    if ids != "int" and isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if ids == "int" and isinstance(value, str) and re.fullmatch(r"[+-]?[0-9]{1,18}(\.0+)?", value):
        return int(value.partition(".")[0])
    return value


def _begins_like_lines(head: bytes) -> bool:
    lines = first_lines(head)
    return lines[0].lstrip().startswith(b"{") and lines[0].rstrip().endswith(b"}") and len(lines) > 1


add_format(
    Format(
        "json",
        read=partial(_read, lines=False),
        read_whole=partial(_read_whole, lines=False),
        suffixes=(".json",),
        recognises=lambda head: first_lines(head)[0].lstrip().startswith((b"{", b"[")),
        help="a first `{` or `[`",
        lists="`{user: [items]}`, `{user: {item: score}}`, a list of rows",
        truth="`{user: [items]}`, `{user: {item: grade}}`, a list of rows",
    )
)
add_format(
    Format(
        "jsonl",
        read=partial(_read, lines=True),
        read_whole=partial(_read_whole, lines=True),
        suffixes=(".jsonl", ".ndjson"),
        recognises=_begins_like_lines,
        help="one object per line",
        lists='one row per line, or `{"user": …, "items": […]}`',
        truth="the same",
    )
)
