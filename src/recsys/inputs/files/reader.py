"""One file to Lists or Interactions: what it is, which columns count, ids as asked, errors with their line.

Columns are found by the rule tables in memory go by. Text becomes numbers only where a number is meant, and
ids stay text unless asked otherwise: leading zeros and ids spelled NA or null are kept.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any, Literal, NamedTuple, overload

import numpy as np

from recsys.errors import FileError, IdTypeError, InputError, UnknownNameError
from recsys.inputs.files.content import FileContent, format_of, open_source
from recsys.inputs.files.json_records import read_json
from recsys.inputs.files.parquet import read_parquet
from recsys.inputs.files.text import TextTable, decoded, split_table, split_trec
from recsys.inputs.frames import find_columns, read_interactions, read_lists
from recsys.inputs.ids import encode_ints, encode_strings
from recsys.inputs.rows import Rows, to_interactions, to_lists
from recsys.types import Array, Codes, Float, Ids, Interactions, Lists

FORMATS = ("csv", "tsv", "parquet", "trec", "inter", "ratings", "json", "jsonl")
ROLES = {
    "lists": ("case", "user", "item", "score", "rank"),
    "truth": ("case", "user", "item", "grade", "time"),
}
RATING_COLUMNS = ("user_id", "item_id", "rating", "timestamp")
IdKind = Literal["str", "int", "auto"]
_WHOLE = re.compile(r"[+-]?[0-9]{1,19}")
_CANONICAL = re.compile(r"0|-?[1-9][0-9]{0,17}")
_UNJUDGED = -2.0
_NAMES, _NUMBERS = ("case", "user", "item"), ("score", "rank", "grade")
_AS_TEXT = "Read the ids as text: ids='str'."


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
    format: str | None = None,  # noqa: A002 - what a reader would call it
    ids: IdKind = "str",
    encoding: str = "utf-8",
) -> Lists | Interactions:
    r"""Read recommendation lists, or the truth, from a file.

    Args:
        path: a file, gzipped or not; "-" for standard input.
        kind: "lists", or "truth" for relevant, seen or training items.
        columns: names where detection fails: {"user": "uid", "item": "sku"}.
        format: one of csv, tsv, parquet, trec (run or judgements), inter (RecBole), ratings (user, item,
            rating and time without a header, as MovieLens and Amazon write them), json, jsonl; told by the
            name's ending, else by the content, when not given.
        ids: "str" keeps ids as text, so "007" is not "7" and two files always match each other; "int" reads
            whole numbers, as tables in memory often hold; "auto" keeps what a typed file stores and makes
            text a number where every id is one.
        encoding: of text files; UTF-8 unless said.

    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "lists.csv"
    >>> _ = path.write_text("user_id,item_id,score\n007,NA,0.9\n007,b,0.5\n")
    >>> lists = read_file(path)
    >>> lists.cases.values.tolist(), lists.items.values.tolist()
    (['007'], ['NA', 'b'])
    """
    for what, value, known in (("kind", kind, ROLES), ("ids", ids, ("str", "int", "auto"))):
        if value not in known:
            raise UnknownNameError(f"value of {what}", value, known)
    source = open_source(path)
    form = format or format_of(source)
    if form not in FORMATS:
        raise UnknownNameError("file format", form, FORMATS)
    asked = _ReadOptions(kind, columns, ids)
    read = _typed(source, asked) if form == "parquet" else _text(source, form, encoding, asked)
    return replace(read, notes={**read.notes, "file": source.name, "format": form})


class _ReadOptions(NamedTuple):
    """What a file is read as."""

    kind: str
    columns: Mapping[str, str] | None
    ids: IdKind

    @property
    def roles(self) -> tuple[str, ...]:
        return ROLES[self.kind]

    def finish(self, data: Any, columns: Mapping[str, str] | None, name: str) -> Lists | Interactions:
        """From a table or container in memory, the way all of them are read."""
        if self.kind == "lists":
            return read_lists(data, columns=columns, table=name)
        return read_interactions(data, columns=columns, table=name)


def _typed(source: FileContent, asked: _ReadOptions) -> Lists | Interactions:
    frame, found = read_parquet(source, asked.roles, asked.columns)
    for role in ("case", "user", "item"):
        if role in found and asked.ids != "auto":
            made = _written(frame[found[role]]) if asked.ids == "str" else None
            if made is None:
                made = retyped(frame, found[role], asked.ids, source.name)
            frame = frame.with_columns(made)
    with naming(source.name):
        return asked.finish(frame.to_native(), found, source.name)


def _written(series: Any) -> Any:
    """Whole numbers that Arrow has read as text, each different one written once; None of anything else."""
    native = series.to_native()
    if not series.dtype.is_integer() or not hasattr(native, "dictionary_encode"):
        return None
    import narwhals.stable.v2 as nw
    import pyarrow as pa

    coded = native.combine_chunks().dictionary_encode()
    made = pa.DictionaryArray.from_arrays(coded.indices, coded.dictionary.cast(pa.string()))
    return nw.from_native(pa.chunked_array([made]), series_only=True).alias(series.name)


def _text(source: FileContent, form: str, encoding: str, asked: _ReadOptions) -> Lists | Interactions:
    name = source.name
    data = decoded(source.data, name, encoding)
    if form in ("json", "jsonl"):
        made = read_json(data, name, asked.roles, asked.columns, lines=form == "jsonl", ids=asked.ids)
        with naming(name):
            return asked.finish(made, asked.columns, name)
    header = RATING_COLUMNS if form == "ratings" else None
    table = split_trec(data, name, asked.kind) if form == "trec" else split_table(data, name, form, header)
    given = {role: role for role in table.names if role in asked.roles and role != "rank"}
    found = given if form == "trec" else find_columns(table.names, asked.roles, asked.columns, name)
    with naming(name, table):
        rows = _rows(table, found, asked.ids, trec=form == "trec")
        return to_lists(rows) if asked.kind == "lists" else to_interactions(rows)


def _rows(table: TextTable, found: Mapping[str, str], ids: IdKind, *, trec: bool) -> Rows:
    picked = dict(zip(found, table.pick(list(found.values())), strict=True))
    if len(next(iter(picked.values()))) == 0:
        raise FileError(f"{table.name} has a header and no rows.", hint="Check what wrote it.")
    extra: dict[str, Any] = {r: numbers_of(c, r, table) for r, c in picked.items() if r in _NUMBERS}
    if "time" in picked:
        extra["time"] = times_of(picked["time"])
    notes: dict[str, Any] = {"read": {f"{role}_column": name for role, name in found.items()}, **table.notes}
    if trec and "grade" in extra:
        picked, extra, n_unjudged = _judged(picked, extra, table)
        notes |= {"unjudged": n_unjudged} if n_unjudged else {}
    coded = {r: coded_text(c, r, ids, table, notes) for r, c in picked.items() if r in _NAMES}
    cases, case = coded["case"] if "case" in coded else coded["user"]
    items, item = coded["item"]
    if "case" in coded and "user" in coded:
        extra["user_ids"], extra["users"] = coded["user"]
    return Rows(table.name, cases, case, items, item, notes=notes, **extra)


def _judged(
    picked: dict[str, Any], extra: dict[str, Any], table: TextTable
) -> tuple[dict[str, Any], dict[str, Any], int]:
    """TREC writes -1 (and -2) for what nobody judged; such rows are left out and counted."""
    grade = extra["grade"]
    if len(grade) and float(grade.min()) < _UNJUDGED:
        row = int(np.argmin(grade))
        raise FileError(
            f"{table.name}, line {table.line(row)}: the judgement {grade[row]:g} is negative.",
            hint="-1 and -2 say that nobody judged the item; grades start at 0.",
        )
    keep = grade >= 0
    if keep.all():
        return picked, extra, 0
    if not keep.any():
        raise FileError(f"{table.name} holds no judgement: every line is -1.", hint="Check what wrote it.")
    ids = {role: np.asarray(picked[role], dtype=object)[keep] for role in ("user", "item")}
    return {**picked, **ids}, {"grade": grade[keep]}, int((~keep).sum())


def coded_text(
    column: Any, role: str, ids: IdKind, table: TextTable, notes: dict[str, Any]
) -> tuple[Ids, Codes]:
    """A column of ids, as asked; an empty cell is an error."""
    values = column if hasattr(column, "combine_chunks") else np.asarray(column, dtype=object)
    made, codes = encode_strings(values, table=table.name, column=role)
    if len(made) and made.values[0] == "":
        row = int(np.argmax(codes == 0))
        raise FileError(
            f"{table.name}, line {table.line(row)}: the {role} id is missing.",
            hint="Give the row an id, or take it out.",
        )
    padded = [value for value in made.values.tolist() if value != value.strip()]
    if padded:
        notes[f"padded_{role}_ids"] = len(padded)
    return retyped_ids(
        made, codes, ids, f"{role} ids of {table.name}", lambda row: f", line {table.line(row)}"
    )


def retyped_ids(ids: Ids, codes: Codes, wanted: IdKind, what: str, place: Any) -> tuple[Ids, Codes]:
    """Text ids as whole numbers where wanted; the work is done once an id, not once a row."""
    texts = ids.values.tolist()
    form = _WHOLE if wanted == "int" else _CANONICAL
    wrong = wanted == "str" or next((i for i, text in enumerate(texts) if not form.fullmatch(text)), None)
    if wanted == "str" or (wanted == "auto" and wrong is not None):
        return ids, codes
    if wrong is not None:
        where = f"{what}{place(int(np.argmax(codes == wrong)))}"
        raise IdTypeError(
            f"{where}: {texts[wrong]!r} is not a whole number of 64 bits.",
            hint=_AS_TEXT,
        )
    values = [int(text) for text in texts]
    if not -(1 << 63) <= min(values, default=0) <= max(values, default=0) < 1 << 63:
        raise IdTypeError(f"{what}: an id lies outside 64 bits.", hint=_AS_TEXT)
    made, moved = encode_ints(np.array(values, dtype=np.int64))
    if len(made) < len(ids):
        raise IdTypeError(f"{what}: two are the same whole number, such as '7' and '007'.", hint=_AS_TEXT)
    return made, moved[codes]


def retyped(frame: Any, name: str, ids: IdKind, file: str) -> Any:
    """A stored id column as text or whole numbers; what is neither is left to the check of all ids."""
    import narwhals.stable.v2 as nw

    series = frame[name]
    if ids == "str" and series.dtype.is_integer():
        return series.cast(nw.String)
    if ids == "int" and series.dtype in (nw.String, nw.Categorical, nw.Enum) and not series.is_null().any():
        text = np.asarray(series.cast(nw.String).to_list(), dtype=object)
        made, codes = encode_strings(text, table=file, column=name)
        made, codes = retyped_ids(made, codes, "int", f"{name} ids of {file}", lambda row: f", row {row}")
        return nw.new_series(name, made.values[codes], nw.Int64, backend=frame.implementation)
    return series


def numbers_of(column: Any, role: str, table: TextTable) -> Float:
    """Text as numbers, or an error naming the first line that holds none."""
    if hasattr(column, "cast"):
        import pyarrow as pa

        try:
            return np.asarray(column.cast(pa.float64()).to_numpy(), dtype=np.float64)
        except pa.ArrowException:
            column = column.to_pylist()
    # float("1_000") is Python's own spelling, not a file's.
    if "_" not in "".join(column):
        with suppress(ValueError):
            return np.fromiter(map(float, column), dtype=np.float64, count=len(column))
    row = next(i for i, text in enumerate(column) if not _is_number(text))
    raise FileError(
        f"{table.name}, line {table.line(row)}: the {role} {column[row]!r} is not a number.",
        hint=f"Every row needs a {role}; mend the line, or name another column for it.",
    )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text


def times_of(column: Any) -> Array:
    """Whole numbers where all are, else the text."""
    if hasattr(column, "cast"):
        import pyarrow as pa
        import pyarrow.compute as pc

        # Arrow takes 0x10 for a number, which no time is.
        with suppress(pa.ArrowException):
            made = column.cast(pa.int64()).to_numpy()
            if not pc.any(pc.match_substring(column, "x", ignore_case=True)).as_py():
                return np.asarray(made)
    texts = column.to_pylist() if hasattr(column, "to_pylist") else column
    try:
        return np.array(texts, dtype=np.int64)
    except (ValueError, OverflowError):
        return np.array(texts, dtype=object)


@contextmanager
def naming(name: str, table: TextTable | None = None) -> Iterator[None]:
    """Errors about a row say which file and line it stands on."""
    try:
        yield
    except InputError as error:
        if name not in error.message:
            line = f", line {table.line(error.row)}" if table and isinstance(error.row, int) else ""
            error.message = f"{name}{line}: {error.message}"
        error.table = None
        raise
