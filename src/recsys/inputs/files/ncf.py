r"""Test sets in the format of the NCF paper: one positive per case, and the negatives it is ranked among.

There are two layouts, distinguished by content: the authors' own (`user\titem\trating\ttime`, and
`(user,item)\tnegative\tnegative…`) and tables with a header, whose negatives are a list in one cell,
columns of their own, or one per row. Users and items are whole numbers.
"""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from recsys.errors import FileError, InputError
from recsys.inputs.files.atomic_write import write_text
from recsys.inputs.files.formats import open_file
from recsys.inputs.files.split_text import decode
from recsys.inputs.frames import ROLES
from recsys.records.arrays import Array, Int

_COLUMN_NAMES = {
    "user": ROLES["user"],
    "item": (*ROLES["item"], "positive", "positiveitem", "positem"),
    "rating": ROLES["grade"],
    "time": ROLES["time"],
}
_PUNCTUATION = str.maketrans(dict.fromkeys("()[]{}\"',;|\t", " "))
_PAIR_START = re.compile(r"\s*\(\s*[+-]?\d+\s*,\s*[+-]?\d+\s*\)")
_FORMAT_HINT = (
    "Expected lines such as '(0,25)\\t1064\\t174' or a table with user, item and negative columns; "
    "users and items are whole numbers."
)


@dataclass(frozen=True, eq=False)
class NcfTest:
    """Users, positives, negatives (a matrix, or rows of different lengths), ratings and times if known."""

    users: Int
    items: Int
    negatives: Array | list[Int]
    ratings: Array | None = None
    times: Array | None = None
    counts: dict[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.users)


def read_ncf_files(rating_path: str | os.PathLike[str], negative_path: str | os.PathLike[str]) -> NcfTest:
    r"""Read the positives and their negatives, in either layout.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "t.test.rating").write_text("0\t25\t5\t978824351\n1\t133\t3\t978300174\n")
    >>> _ = (folder / "t.test.negative").write_text("(0,25)\t1064\t174\n(1,133)\t1072\t3154\n")
    >>> test = read_ncf_files(folder / "t.test.rating", folder / "t.test.negative")
    >>> test.users.tolist(), test.items.tolist(), test.negatives.tolist()
    ([0, 1], [25, 133], [[1064, 174], [1072, 3154]])
    """
    users, items, ratings, times = read_pairs(rating_path)
    keys, rows = _read_negatives(negative_path)
    rows_by_case = _align_negatives(users, items, keys, rows, str(negative_path))
    lengths = {len(row) for row in rows_by_case}
    negatives: Array | list[Int] = np.stack(rows_by_case) if len(lengths) == 1 else rows_by_case
    n_twins = sum(int((row == item).sum()) for row, item in zip(rows_by_case, items.tolist(), strict=True))
    n_repeated = sum(len(row) - len(np.unique(row)) for row in rows_by_case)
    counts = {"positive_among_negatives": n_twins, "repeated_negatives": n_repeated}
    return NcfTest(users, items, negatives, ratings, times, counts)


def write_ncf_files(  # noqa: PLR0917 - the columns of the files, in their order
    target: str | os.PathLike[str] | tuple[str | os.PathLike[str], str | os.PathLike[str]],
    users: Any,
    items: Any,
    negatives: Iterable[Any],
    ratings: Any = None,
    times: Any = None,
) -> tuple[Path, Path]:
    """Write the authors' layout; `target` is two paths, or one path that both endings are appended to."""
    if isinstance(target, tuple):
        paths = (Path(target[0]), Path(target[1]))
    else:
        paths = (Path(f"{os.fspath(target)}.test.rating"), Path(f"{os.fspath(target)}.test.negative"))
    rows = [np.asarray(row).tolist() for row in negatives]
    user_list, item_list = np.asarray(users).tolist(), np.asarray(items).tolist()
    if not len(user_list) == len(item_list) == len(rows):
        raise InputError(
            f"{len(user_list)} users, {len(item_list)} items and {len(rows)} rows of negatives do not pair."
        )
    grades = [1] * len(user_list) if ratings is None else np.asarray(ratings).tolist()
    stamps = [0] * len(user_list) if times is None else np.asarray(times).tolist()
    lines = (f"{u}\t{i}\t{g}\t{t}\n" for u, i, g, t in zip(user_list, item_list, grades, stamps, strict=True))
    write_text(paths[0], "".join(lines))
    lines = (
        f"({u},{i})\t" + "\t".join(map(str, row)) + "\n"
        for u, i, row in zip(user_list, item_list, rows, strict=True)
    )
    write_text(paths[1], "".join(lines))
    return paths


def _read_lines(path: str | os.PathLike[str]) -> list[tuple[int, str]]:
    """Return the lines that are not blank, with their line numbers."""
    source = open_file(path)
    text = decode(source.data, source.name, "utf-8").decode()
    lines = [(at, line) for at, line in enumerate(text.splitlines(), start=1) if line.strip()]
    if not lines:
        raise FileError(f"{source.name} is empty.", hint=_FORMAT_HINT)
    return lines


def _has_header(line: str) -> bool:
    return re.search(r"[A-Za-z]", line) is not None


def _split_cells(lines: Iterable[str], sample: str) -> Iterable[list[str]]:
    delimiter = next((d for d in ("\t", "::", ",", ";", "|") if d in sample), None)
    if delimiter == "::":
        return (line.split("::") for line in lines)
    if delimiter is None:
        return (line.split() for line in lines)
    return (_split_quoted(line, delimiter) for line in lines)


def _split_quoted(line: str, delimiter: str) -> list[str]:
    """Return the cells of one line: a quotation mark that is not closed does not swallow the next one."""
    try:
        return next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:  # a cell of more than 131,072 letters, or a NUL
        return line.split(delimiter)


def _column_positions(header: Sequence[str]) -> dict[str, int]:
    names = [re.sub(r"[^a-z0-9]", "", name.lower()) for name in header]
    return {role: names.index(next(n for n in names if n in known)) for role, known in _COLUMN_NAMES.items()
            if any(n in known for n in names)}  # fmt: skip


class RatedPairs(NamedTuple):
    """Pairs of user and item, with rating and time where the file has them."""

    users: Int
    items: Int
    ratings: Array | None
    times: Array | None


def has_no_header(path: str | os.PathLike[str]) -> bool:
    """Return whether a file holds numbers without a header, as the NCF authors' files do."""
    head = open_file(path).head[:1000].lstrip()
    return re.fullmatch(rb"[0-9\s:,;|.+-]+", head.split(b"\n")[0] or b"x") is not None


def read_pairs(path: str | os.PathLike[str]) -> RatedPairs:
    """Return a table of user, item, rating and time; without a header, in this order."""
    lines = _read_lines(path)
    column_of = {"user": 0, "item": 1, "rating": 2, "time": 3}
    if _has_header(lines[0][1]):
        header = next(iter(_split_cells([lines[0][1]], lines[0][1])))
        column_of = _column_positions(header)
        lines = lines[1:]
        if not {"user", "item"} <= column_of.keys() or not lines:
            raise FileError(f"{path}: no user and item among the columns {header}.", hint=_FORMAT_HINT)
    rows = list(_split_cells([line for _, line in lines], lines[0][1]))
    ids = {
        role: np.array(
            [_parse_int(row, column_of[role], path, at) for row, (at, _) in zip(rows, lines, strict=True)]
        )
        for role in ("user", "item")
    }
    extra: dict[str, Array | None] = {}
    for role in ("rating", "time"):
        at = column_of.get(role)
        try:
            values = None if at is None else [float(row[at]) for row in rows]
        except (IndexError, ValueError):
            values = None
        extra[role] = None if values is None else np.array(values)
    times = extra["time"]
    return RatedPairs(
        ids["user"], ids["item"], extra["rating"], None if times is None else times.astype(np.int64)
    )


def _parse_int(row: Sequence[str], at: int, path: Any, line: int) -> int:
    if at >= len(row) or not re.fullmatch(r"\s*[+-]?[0-9]{1,30}\s*", row[at]):
        raise FileError(f"{path}, line {line}: no whole number in place {at + 1}.", hint=_FORMAT_HINT)
    value = int(row[at])
    if not -(1 << 63) <= value < 1 << 63:
        raise FileError(f"{path}, line {line}: {value} is too large for an id.")
    return value


def _read_negatives(path: str | os.PathLike[str]) -> tuple[list[tuple[int, ...]], list[Int]]:
    """Return (user, item) or (user,) of each case, and its negatives; rows with the same key are joined."""
    lines = _read_lines(path)
    width = 2
    by_key: dict[tuple[int, ...], list[int]] = {}
    if _has_header(lines[0][1]) and not _PAIR_START.match(lines[0][1]):
        width, entries = _negatives_with_header(path, lines)
    else:
        entries = [_parse_ints(line, path, at) for at, line in lines]
    for (at, _), numbers in zip(lines[-len(entries) :], entries, strict=True):
        if len(numbers) <= width:
            raise FileError(f"{path}, line {at}: no negative items.", hint=_FORMAT_HINT)
        by_key.setdefault(tuple(numbers[:width]), []).extend(numbers[width:])
    rows = [np.array(values, dtype=np.int64) for values in by_key.values()]
    return list(by_key), rows


def _negatives_with_header(path: Any, lines: list[tuple[int, str]]) -> tuple[int, list[list[int]]]:
    head = lines[0][1]
    header = next(iter(_split_cells([head], head)))
    column_of = _column_positions(header)
    negative_columns = [at for at, name in enumerate(header) if "neg" in name.lower()]
    if "user" not in column_of or (not negative_columns and "item" not in column_of):
        raise FileError(f"{path}: no user and negative items among the columns {header}.", hint=_FORMAT_HINT)
    # Without a column of negatives the items of the file are the negatives, one per row.
    first = min(negative_columns, default=column_of.get("item", 1))
    keys = [column_of["user"]]
    if negative_columns and "item" in column_of and column_of["item"] not in negative_columns:
        keys.append(column_of["item"])
    stop = None if negative_columns else first + 1
    out = []
    for (at, _), cells in zip(lines[1:], _split_cells([line for _, line in lines[1:]], head), strict=True):
        rest = " ".join(
            cell for place, cell in enumerate(cells[:stop]) if place >= first and place not in keys
        )
        out.append([*(_parse_int(cells, key, path, at) for key in keys), *_parse_ints(rest, path, at)])
    return len(keys), out


def _parse_ints(text: str, path: Any, line: int) -> list[int]:
    cells = text.translate(_PUNCTUATION).split()
    return [_parse_int(cells, at, path, line) for at in range(len(cells))]


def _align_negatives(
    users: Int, items: Int, keys: list[tuple[int, ...]], rows: list[Int], name: str
) -> list[Int]:
    """Return the negatives of each positive, in the order of the positives."""
    with_item = len(keys[0]) == 2
    columns = (users.tolist(), items.tolist()) if with_item else (users.tolist(),)
    test_keys: list[tuple[int, ...]] = list(zip(*columns, strict=True))
    if test_keys == keys:
        return rows
    by_key = dict(zip(keys, rows, strict=True))
    missing = next((key for key in test_keys if key not in by_key), None)
    if missing is not None:
        case = f"user {missing[0]}" + (f" and item {missing[1]}" if with_item else "")
        raise FileError(
            f"{name} has no negatives for {case} of the test file.", hint="Check that they belong together."
        )
    n_unmatched = len(by_key.keys() - set(test_keys))
    if n_unmatched:
        raise FileError(f"{name} has negatives of {n_unmatched} cases that are not in the test file.",
                        hint="Check that they belong together.")  # fmt: skip
    return [by_key[key] for key in test_keys]
