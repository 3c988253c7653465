"""JSON to the containers the library reads anyway: {user: [items]}, {user: {item: number}}, or rows.

Python's parser keeps the last of two equal keys and takes NaN for a number; both are errors here, because
either would change a result without a word.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from recsys.errors import FileError
from recsys.inputs.files.text import TextTable
from recsys.inputs.frames import find_columns

_EXPECTED = (
    'Expected {"user": ["item", …]}, {"user": {"item": score}}, a list of rows such as '
    '{"user": "u1", "item": "i1", "score": 0.5}, or one such row, or {"user": "u1", "items": [...]}, a line.'
)


def read_json(
    data: bytes,
    name: str,
    roles: tuple[str, ...],
    columns: Mapping[str, str] | None,
    *,
    lines: bool,
    ids: str,
) -> Any:
    """What frames.py reads: a dict of containers, or a table of rows."""
    content = _lines(data, name) if lines else _parser(name)(data.decode(), "")
    if isinstance(content, dict):
        if not content:
            raise FileError(f"{name} holds no users.", hint=_EXPECTED)
        return _of_users(((user, entry) for user, entry in content.items()), ids, name)
    if isinstance(content, list) and content and all(isinstance(row, dict) for row in content):
        return _of_rows(content, name, roles, columns, ids)
    raise FileError(f"{name} holds JSON of another form.", hint=_EXPECTED)


def json_table(data: bytes, name: str, *, lines: bool) -> TextTable:
    """Rows of JSON objects as a table of text, for those who read every column."""
    rows = _lines(data, name) if lines else _parser(name)(data.decode(), "")
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise FileError(f"{name} is no table.", hint="A table in JSON is a list of objects, or one a line.")
    keys = _same_keys(rows, name)

    def cell(value: Any) -> str:
        if isinstance(value, list | dict):
            raise FileError(f"{name}: {value!r} is no cell of a table.", hint="Give every row plain values.")
        return "" if value is None else str(value)

    def pick(wanted: Sequence[str]) -> list[Any]:
        return [[cell(row[key]) for row in rows] for key in wanted]

    return TextTable(
        name, keys, pick, lambda: ((i, [*map(cell, row.values())]) for i, row in enumerate(rows, 1))
    )


def _same_keys(rows: list[dict[str, Any]], name: str) -> list[str]:
    keys = list(rows[0])
    for number, row in enumerate(rows, 1):
        if row.keys() != rows[0].keys():
            raise FileError(
                f"{name}, row {number} has the keys {', '.join(row)}, the first row {', '.join(keys)}.",
                hint="Give every row the same keys.",
            )
    return keys


def _lines(data: bytes, name: str) -> list[Any]:
    parsed = _parser(name)
    return [
        parsed(line.decode(), f", line {number}")
        for number, line in enumerate(data.split(b"\n"), 1)
        if line.strip()
    ]


def _parser(name: str) -> Callable[[str, str], Any]:
    """Reads one JSON text after the other; each comes with the place that errors name."""
    here = [""]

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(found)
        if len(made) < len(found):
            keys = [key for key, _ in found]
            twice = next(key for key in keys if keys.count(key) > 1)
            raise FileError(f"{name}{here[0]}: the key {twice!r} stands twice.", hint="Merge the two.")
        return made

    def constant(word: str) -> Any:
        raise FileError(f"{name}{here[0]}: {word} is not a number.", hint="Drop it, or mend what wrote it.")

    decoder = json.JSONDecoder(object_pairs_hook=pairs, parse_constant=constant)

    def parsed(text: str, where: str) -> Any:
        here[0] = where
        try:
            return decoder.decode(text)
        except json.JSONDecodeError as error:
            place = where or f", line {error.lineno}"
            raise FileError(
                f"{name}{place}: not valid JSON ({error.msg}, column {error.colno}).",
                hint="The file may be cut off; one row a line is format='jsonl'.",
            ) from error
        except (RecursionError, ValueError) as error:
            if isinstance(error, FileError):
                raise
            raise FileError(f"{name}{where}: JSON beyond reason ({error}).", hint=_EXPECTED) from error

    return parsed


def _entry(entry: Any, ids: str, name: str, user: Any) -> Any:
    if isinstance(entry, dict):
        made = dict(zip(_ids(list(entry), ids), entry.values(), strict=True))
        if len(made) < len(entry):
            raise FileError(f"{name}: two items of {user!r} are one whole number.", hint="Read ids as text.")
        return made
    if not isinstance(entry, list):
        raise FileError(f"{name}: the user {user!r} holds {entry!r}.", hint=_EXPECTED)
    if list not in set(map(type, entry)):
        return _ids(entry, ids)
    return [(_id(x[0], ids), x[1]) if isinstance(x, list) and len(x) == 2 else _id(x, ids) for x in entry]


def _of_rows(
    rows: list[dict[str, Any]], name: str, roles: tuple[str, ...], columns: Mapping[str, str] | None, ids: str
) -> Any:
    keys = _same_keys(rows, name)
    whole = next((key for key in keys if all(isinstance(row[key], list | dict) for row in rows)), None)
    if whole is not None and len(keys) == 2:
        user = next(key for key in keys if key != whole)
        return _of_users(((row[user], row[whole]) for row in rows), ids, name)
    import pandas as pd

    found = find_columns(keys, roles, columns, name)
    id_columns = {found[role] for role in ("case", "user", "item") if role in found}
    made = {}
    for key in dict.fromkeys(found.values()):
        values = [row[key] for row in rows]
        made[key] = pd.Series(_ids(values, ids) if key in id_columns else values)
    return pd.DataFrame(made)


def _of_users(entries: Iterable[tuple[Any, Any]], ids: str, name: str) -> dict[Any, Any]:
    made: dict[Any, Any] = {}
    for user, entry in entries:
        key = _id(user, ids)
        if isinstance(key, list | dict) or key in made:
            raise FileError(f"{name}: the user {user!r} stands twice, or is no id.", hint="Merge the two.")
        made[key] = _entry(entry, ids, name, user)
    return made


def _ids(values: list[Any], ids: str) -> list[Any]:
    """Several ids; all of one kind, as they mostly are, they are not looked at one by one."""
    kinds = set(map(type, values))
    if ids == "str" and kinds == {int}:
        return list(map(str, values))
    return values if ids == "str" and kinds <= {str} else [_id(value, ids) for value in values]


def _id(value: Any, ids: str) -> Any:
    """JSON's own numbers as text, or text as numbers, where asked; the rest is left to the check of ids."""
    if ids == "str" and isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if ids == "int" and isinstance(value, str) and re.fullmatch(r"[+-]?[0-9]{1,18}", value):
        return int(value)
    return value
