"""Tables of any kind to Rows.

Frames are read through narwhals (pandas, polars, Arrow and more). Columns are found by name or named by
the caller; copies are avoided.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from recsys import kernels
from recsys.errors import ColumnError, InputError, Phrase
from recsys.inputs.ids import (
    encode,
    encode_categories,
    encode_strings,
    object_array,
    range_limit,
    refuse_missing,
)
from recsys.inputs.rows import PLAIN_NUMBER, Rows, no_rows
from recsys.records.arrays import Array, Codes, Ids, Int
from recsys.records.read_facts import ReadFacts

ROLES: dict[str, tuple[str, ...]] = {
    "case": ("case", "caseid"),
    "user": (
        "user", "userid", "uidx", "uid", "u", "useridx", "query", "queryid", "qid", "q",
        "customer", "customerid", "visitor", "visitorid", "member", "memberid", "session", "sessionid",
    ),
    "item": (
        "item", "itemid", "iidx", "iid", "i", "itemidx", "doc", "docid", "docno", "document", "documentid",
        "movie", "movieid", "product", "productid", "article", "articleid", "track", "trackid",
        "song", "songid",
    ),
    "score": (
        "score", "prediction", "predicted", "pred", "predictedrating", "sim", "relevancescore",
        "rating", "weight",
    ),
    "entry": (
        "entry", "code", "sid", "semanticid", "chunk", "chunkid", "passage", "passageid", "title", "text",
        "name",
    ),
    "rank": ("rank", "position", "place"),
    "task": ("task", "taskname", "dataset", "datasetname", "benchmark"),
    "system": ("system", "model", "modelname", "run", "algorithm", "method"),
    "value": ("value", "score", "metricvalue", "result"),
    "grade": ("grade", "relevance", "rel", "rating", "label", "gain"),
    "time": ("timestamp", "time", "ts", "date", "datetime", "unixtime"),
    "prediction": (
        "prediction", "predicted", "pred", "predictedrating", "ratingpred", "ypred", "yhat", "est",
        "estimate", "estimated", "score", "probability", "prob", "pctr", "ctr",
    ),
    "actual": (
        "actual", "truth", "true", "truerating", "ytrue", "y", "target", "rui", "rating", "label", "click",
        "clicked", "grade",
    ),
}  # fmt: skip

# What public data sets call them, where no column has a name above; of several the first.
_NAMES_OF_DATA_SETS: dict[str, tuple[str, ...]] = {
    "user": ("reviewerid",),
    "item": (
        "parentasin", "asin", "artistid", "bookid", "isbn", "businessid", "sku", "stockcode", "videoid",
        "gameid", "appid", "newsid", "listingid", "recipeid", "corpusid",
    ),
}  # fmt: skip

_OTHER_WORDS = {"rating": "grade"}  # of roles, in columns=

# Of a table without ranks and scores so many rows show whether those of each user are together.
_ARRANGEMENT_ROWS = (1 << 10, 1 << 16)


def rows_of_frame(
    frame: Any,
    roles: tuple[str, ...],
    columns: Mapping[str, str] | None,
    table: str,
    *,
    allow_empty: bool = False,
) -> Rows:
    """Coded ids and the columns of these roles; a kernel puts whole numbers in their final order at once."""
    column_of = find_columns(list(frame.columns), roles, columns, table)
    facts = column_facts(column_of, frame.columns)
    ranked = "rank" in roles
    if ranked and "rank" not in column_of and "score" not in column_of:
        # The order of the rows counts, unless an unused column looks like a score.
        for name in facts.unused or ():
            if frame[name].dtype.is_float():
                raise unnamed_score(name, table)
    if len(frame) == 0 and allow_empty:
        return no_rows(table, facts)
    if len(frame) == 0:
        raise table_without_rows(table)
    ordered_rows = _kernel_rows(frame, column_of, table, facts, ranked=ranked)
    if ordered_rows is not None:
        return ordered_rows
    cases, case, indptr = _encode_cases(frame, column_of.get("case", column_of.get("user", "")), table)
    if ranked and not {"score", "rank"} & column_of.keys():
        facts = replace(facts, arrangement="grouped" if case is None else row_arrangement(case))
    items, item = encode_column(frame, column_of["item"], table, as_range=True)
    extra: dict[str, Any] = {
        role: column_array(frame[column_of[role]])
        for role in ("score", "rank", "grade", "time")
        if role in column_of
    }
    if "case" in column_of and "user" in column_of:
        extra["user_ids"], extra["users"] = encode_column(frame, column_of["user"], table)
    return Rows(table, cases, case, items, item, **extra, indptr=indptr, facts=facts)


def table_without_rows(table: str) -> InputError:
    """Return what to raise for a table that must have some."""
    return InputError(
        f"the {table} table has no rows.", table=table, hint="Check the filter or the file it came from."
    )


def column_facts(column_of: Mapping[str, str], names: Iterable[str]) -> ReadFacts:
    """Return which column plays which role, and which play none."""
    unused = tuple(name for name in names if name not in column_of.values())
    return ReadFacts(columns=column_of, unused=unused)


def unnamed_score(name: str, table: str) -> ColumnError:
    """Return the error about lists without a score and a rank where an unused column looks like one."""
    return ColumnError(
        f"no column was recognised as the score or the rank, and {name!r} holds numbers.",
        table=table,
        column=name,
        hint=Phrase("Say {columns=}, or leave the column out to keep the order.", columns={"score": name}),
    )


def row_arrangement(users: Array) -> str:
    """Return "grouped" if the rows of each user are together, or "interleaved", judged by the first rows.

    >>> row_arrangement(np.array([7, 7, 2, 2, 5])), row_arrangement(np.array([7, 2, 7]))
    ('grouped', 'interleaved')
    """
    for n_rows in _ARRANGEMENT_ROWS:
        first_rows = users[:n_rows]
        run_starts = np.sort(first_rows[1:][first_rows[1:] != first_rows[:-1]])
        is_repeated = run_starts[1:] == run_starts[:-1]
        if is_repeated.any() or first_rows[0] in run_starts:
            return "interleaved"
    return "grouped"


def _kernel_rows(
    frame: Any, column_of: Mapping[str, str], table: str, facts: ReadFacts, *, ranked: bool
) -> Rows | None:
    """Put rows of whole numbers in their final order by one kernel; None if it cannot read the columns."""
    ambiguous_case = ("case" in column_of) == ("user" in column_of)
    if (
        ambiguous_case
        or "grade" in column_of
        or "time" in column_of
        or ("score" in column_of and "rank" not in column_of)
    ):
        return None
    names = [column_of.get("case", column_of.get("user", "")), column_of["item"]]
    columns = [_whole_numbers(frame, name) for name in [*names, *filter(None, [column_of.get("rank")])]]
    if any(column is None for column in columns):
        return None
    order: kernels.Order = "by_rank" if "rank" in column_of else "given" if ranked else "ascending"
    ordered_rows = kernels.place_rows(*columns, order=order, limit=range_limit(len(frame)))
    if ordered_rows is None:
        return None
    if order == "given":
        facts = replace(facts, arrangement=row_arrangement(np.asarray(columns[0])))
    items = Ids(np.arange(ordered_rows.highest + 1), is_range=True)
    return Rows(
        table,
        Ids(ordered_rows.case_ids),
        None,
        items,
        ordered_rows.items,
        indptr=ordered_rows.indptr,
        ordered=True,
        facts=facts,
    )


def _whole_numbers(frame: Any, name: str) -> Array | None:
    """Return a column of 64-bit integers without missing values; None for any other column."""
    series = frame.get_column(name)
    column = series.to_native()
    native_dtype = getattr(column, "dtype", None)
    values: Array
    if isinstance(native_dtype, np.dtype):  # pandas without its own types: integers have no missing values
        if native_dtype.kind not in "iu":
            return None
        values = column.to_numpy()
    elif series.dtype.is_integer() and not series.is_null().any():
        values = column_array(series)
    else:
        return None
    fits_int64 = values.dtype.kind == "i" or (values.dtype.kind == "u" and values.dtype.itemsize < 8)
    return values if fits_int64 else None


def find_columns(
    names: list[str],
    roles: tuple[str, ...],
    requested: Mapping[str, str] | None,
    table: str,
    *,
    needed: tuple[str, ...] = ("user", "item"),
) -> dict[str, str]:
    """Return which column plays which role; a needed role without a column is an error.

    >>> find_columns(["userId", "movieId", "rating"], ("user", "item", "grade"), None, "truth")
    {'user': 'userId', 'item': 'movieId', 'grade': 'rating'}
    """
    column_of = detect_columns(names, roles, requested, table)
    for role in needed:
        if role not in column_of and not (role == "user" and "case" in column_of):
            raise ColumnError(
                f"no column was recognised as the {role}.",
                table=table,
                column=role,
                hint=missing_column_hint(names, role, "score" if "score" in roles else "grade"),
            )
    return column_of


def missing_column_hint(names: list[str], role: str, value: str) -> str:
    """Return what to do where no column has a role; `value` is the role of a third column.

    >>> missing_column_hint(["uid", "iid"], "user", "score")
    "The columns are: uid, iid. Say which: columns={'user': ...}."
    """
    known = f"The columns are: {', '.join(names)}."
    if not names or not all(map(PLAIN_NUMBER.fullmatch, names)):
        return known + Phrase(" Say which: {columns=}.", columns={role: ...})
    header = ["user", "item", value][: len(names)] + ["…"] * (len(names) > 3)
    return (
        f"{known} These are numbers, so the header line seems to be missing: write {','.join(header)} above "
        "the first line; or, if no file has such a line, read all with "
        + Phrase("{read_file.format='ratings'}, which takes the columns as user, item and {}.", value)
    )


def detect_columns(
    names: list[str], roles: tuple[str, ...], requested: Mapping[str, str] | None, table: str
) -> dict[str, str]:
    """Return which column plays which role; roles without a column are left out."""
    if requested is not None and not isinstance(requested, Mapping):
        raise ColumnError(
            f"columns= came as {type(requested).__name__}.",
            table=table,
            hint=Phrase("Pass a dict: {columns.user='uid'}."),
        )
    if not all(isinstance(n, str) for n in names):
        raise ColumnError(
            f"the columns {names} have names that are not text.",
            table=table,
            hint="Name them: table.columns = ['user', 'item', …].",
        )
    named = dict[str, Any](requested or {})
    requested = dict[str, Any]({_OTHER_WORDS.get(role, role): name for role, name in named.items()})
    unknown = [role for role in requested if role not in ROLES]
    if unknown:
        raise ColumnError(
            f"columns= names the role {unknown[0]!r}.", table=table, hint=f"Roles are {', '.join(ROLES)}."
        )
    no_name = [role for role, name in requested.items() if name is not None and not isinstance(name, str)]
    if no_name:
        raise ColumnError(
            f"columns= names {requested[no_name[0]]!r} as the {no_name[0]}, which is not text.",
            table=table,
            hint=Phrase("Pass the name of a column: {columns.user='uid'}."),
        )
    column_of: dict[str, str] = {}
    for role in roles:
        name = requested[role] if role in requested else _detect(names, role, requested, table)
        if name is not None and name not in names:
            raise ColumnError(
                f"there is no column {name!r} for the {role}.",
                table=table,
                column=name,
                hint=f"The columns are: {', '.join(map(str, names))}.",
            )
        if name is not None and names.count(name) > 1:
            raise ColumnError(
                f"the column {name!r} occurs twice.", table=table, column=name, hint="Rename one of the two."
            )
        if name is not None:
            column_of[role] = name
    return column_of


def first_repeated(names: Iterable[str]) -> str | None:
    """Return the first name that was there before, None if there is none."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def _detect(names: list[str], role: str, requested: Mapping[str, str], table: str) -> str | None:
    taken_columns = set(requested.values())
    # userId, user_id, user-id and RecBole's user_id:token are the same name.
    plain = {name: re.sub(r"[\s_\-]", "", name.split(":")[0]).lower() for name in names}
    matches = [n for n in names if n not in taken_columns and plain[n] in ROLES[role]]
    if len(matches) > 1:
        exact = [n for n in matches if n == role]
        if len(exact) == 1 or len(set(matches)) == 1:
            return (exact or matches)[0]
        raise ColumnError(
            f"the columns {', '.join(map(repr, matches))} could all be the {role}.",
            table=table,
            column=role,
            hint=Phrase("Say which: {columns=}.", columns={role: matches[0]}),
        )
    column_of = {plain[name]: name for name in names if name not in taken_columns}
    others = (column_of[n] for n in _NAMES_OF_DATA_SETS.get(role, ()) if n in column_of)
    if role == "grade" and "corpusid" in column_of:  # BEIR and MTEB call the grade of a judgement its score
        others = (column_of[n] for n in ("score",) if n in column_of)
    return matches[0] if matches else next(others, None)


def as_frame(data: Any) -> Any:
    """Return a narwhals frame of any kind of table; None if the data is not a table."""
    if isinstance(data, dict | list | tuple | set | frozenset | np.ndarray | str):
        return None
    import narwhals.stable.v2 as nw
    from narwhals.exceptions import DuplicateError, InvalidOperationError

    try:
        frame = nw.from_native(data, pass_through=True, eager_only=True)
        if isinstance(frame, nw.DataFrame) and frame.implementation.is_pyarrow():
            _ = frame.schema  # Arrow has types that narwhals refuses
    except InvalidOperationError as error:
        raise ColumnError(f"a column's type cannot be read: {error}.", hint="Cast it first.") from error
    except DuplicateError as error:
        raise ColumnError(
            f"a column name occurs twice: {' '.join(str(error).split())}", hint="Rename one of the columns."
        ) from error
    except TypeError as error:
        raise ColumnError(
            f"{type(data).__name__} has column names that cannot be read ({error}).",
            hint="Name the columns by text.",
        ) from error
    if isinstance(frame, nw.DataFrame):
        return frame
    if hasattr(data, "collect") and hasattr(data, "collect_schema"):
        return nw.from_native(data.collect(), eager_only=True)
    # Record batches and their readers. A single column has the same interface but is not a table.
    if hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
        with suppress(ImportError, TypeError, ValueError):
            import pyarrow as pa

            return nw.from_native(pa.table(data), eager_only=True)
    return None


def column_array(series: Any) -> Array:
    """Return the values of a column; whole numbers of 128 bits, which NumPy lacks, as objects."""
    import narwhals.stable.v2 as nw

    if series.dtype in (nw.Int128, nw.UInt128):
        return object_array(series.to_list())
    try:
        values: Array = np.asarray(series.to_numpy())
    except IndexError:  # Arrow's, of a dictionary without words: every value is missing
        return object_array(series.to_list())
    if values.ndim != 1:
        raise ColumnError(
            f"the cells of {series.name!r} hold several values ({series.dtype}).",
            column=series.name,
            hint="Write one value per row.",
        )
    return values


def _encode_cases(frame: Any, name: str, table: str) -> tuple[Ids, Codes | None, Int | None]:
    """Return ids of cases, and a code per row; rows in ascending groups get an indptr instead of codes."""
    series = frame[name]
    values = column_array(series) if series.dtype.is_integer() and not series.is_null().any() else None
    if values is not None and values.dtype.kind == "i":
        starts = np.concatenate([[0], np.flatnonzero(values[1:] != values[:-1]) + 1])
        firsts = values[starts].astype(np.int64)
        if (firsts[1:] > firsts[:-1]).all():
            return Ids(firsts), None, np.concatenate([starts, [len(values)]])
    ids, codes = encode_column(frame, name, table)
    return ids, codes, None


def encode_column(frame: Any, name: str, table: str, *, as_range: bool = False) -> tuple[Ids, Codes]:
    """Return the ids of a column and the code of each row."""
    import narwhals.stable.v2 as nw

    series = frame[name]
    native_dtype = getattr(series.to_native(), "dtype", None)
    if isinstance(native_dtype, np.dtype) and native_dtype.kind == "O":
        # Strings in pandas before 3: checking the type of every object also finds missing values.
        return encode(series.to_numpy(), table=table, column=name, as_range=as_range)
    if series.is_null().any():
        refuse_missing(int(np.argmax(series.is_null().to_numpy())), table, name)
    if series.dtype in (nw.Categorical, nw.Enum):
        coded = encode_categories(series, table=table, column=name)
        if coded is not None:
            return coded
        # pandas and Arrow have categories of any type.
        value_type = getattr(getattr(series.to_native(), "type", None), "value_type", None)
        if value_type is not None:
            series = nw.from_native(series.to_native().cast(value_type), series_only=True)
        elif not (hasattr(native_dtype, "categories") and hasattr(native_dtype, "ordered")):
            series = series.cast(nw.String)
    if series.dtype != nw.String:
        return encode(column_array(series), table=table, column=name, as_range=as_range)
    try:
        texts = series.to_arrow()
    except ImportError:
        texts = series.to_numpy().astype(object)
    return encode_strings(texts, table=table, column=name)
