"""Tables and containers of any kind to Lists and Interactions.

Frames come through narwhals (pandas, polars, Arrow and more), columns are found by name or named by
the caller, and nothing is copied that need not be. What is not a frame goes to containers.py.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from recsys import kernels
from recsys.errors import ColumnError, InputError
from recsys.inputs.containers import rows_of_container
from recsys.inputs.ids import encode, encode_categories, encode_strings, range_limit, refuse_missing
from recsys.inputs.rows import Rows, to_interactions, to_lists
from recsys.types import Array, Codes, Ids, Int, Interactions, Lists

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
    "rank": ("rank", "position", "place"),
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


def read_lists(data: Any, *, columns: Mapping[str, str] | None = None, table: str = "lists") -> Lists:
    """Recommendation lists from whatever holds them."""
    if isinstance(data, Lists):
        return data
    return to_lists(_rows(data, ("case", "user", "item", "score", "rank"), columns, table, place=True))


def read_interactions(
    data: Any, *, columns: Mapping[str, str] | None = None, table: str = "truth", bare: bool = False
) -> Interactions:
    """Truth, training data or seen items from whatever holds them; `bare`: without grades and times."""
    if isinstance(data, Interactions):
        return data
    roles = ("case", "user", "item") if bare else ("case", "user", "item", "grade", "time")
    return to_interactions(_rows(data, roles, columns, table, place=True))


def read_rows(
    data: Any, roles: tuple[str, ...], *, columns: Mapping[str, str] | None = None, table: str
) -> Rows:
    """A table as it came: coded ids, every row kept, the columns of these roles beside them."""
    return _rows(data, roles, columns, table)


def _rows(
    data: Any,
    roles: tuple[str, ...],
    columns: Mapping[str, str] | None,
    table: str,
    *,
    place: bool = False,
) -> Rows:
    """Coded rows; `place`: they may be put in order on the way."""
    frame = as_frame(data)
    if frame is None:
        return rows_of_container(data, ordered="rank" in roles, table=table)
    found = find_columns(list(frame.columns), roles, columns, table)
    if "rank" in roles and "rank" not in found and "score" not in found:
        _refuse_unused_score(frame, found, table)
    if len(frame) == 0:
        raise InputError(
            f"the {table} table has no rows.", table=table, hint="Check the filter or the file it came from."
        )
    placed = _placed(frame, found, table, ranked="rank" in roles) if place else None
    return _rows_of_frame(frame, found, table) if placed is None else placed


def _refuse_unused_score(frame: Any, found: Mapping[str, str], table: str) -> None:
    """Lists without a rank or a score are read in row order, unless a column looks like the score."""
    for name in frame.columns:
        if name not in found.values() and frame[name].dtype.is_float():
            raise ColumnError(
                f"no column was recognised as the score or the rank, and {name!r} holds numbers.",
                table=table,
                column=name,
                hint=f"Say columns={{'score': {name!r}}}, or leave the column out to keep the rows' order.",
            )


def _rows_of_frame(frame: Any, found: Mapping[str, str], table: str) -> Rows:
    case_name = found.get("case", found.get("user", ""))
    cases, case, indptr = _grouped(frame, case_name, table)
    items, item = coded_column(frame, found["item"], table, as_range=True)
    user_ids, users = None, None
    if "case" in found and "user" in found:
        user_ids, users = coded_column(frame, found["user"], table)
    extra: dict[str, Any] = {
        role: _plain(frame, found[role]) for role in ("score", "rank", "grade", "time") if role in found
    }
    return Rows(
        table,
        cases,
        case,
        items,
        item,
        **extra,
        user_ids=user_ids,
        users=users,
        indptr=indptr,
        notes=_as_read(found),
    )


def _as_read(found: Mapping[str, str]) -> dict[str, Any]:
    """Which column was taken for what."""
    read = {f"{role}_column": name for role, name in found.items()}
    if "rank" in found and "score" in found:
        read["order"] = f"ordered by {found['rank']!r}; {found['score']!r} was not used"
    return {"read": read}


def _placed(frame: Any, found: Mapping[str, str], table: str, *, ranked: bool) -> Rows | None:
    """Rows of whole numbers put in their last order by one kernel; None where columns or values forbid it."""
    apart = ("case" in found) == ("user" in found)
    if apart or "grade" in found or "time" in found or ("score" in found and "rank" not in found):
        return None
    names = [found.get("case", found.get("user", "")), found["item"]]
    columns = [_whole_numbers(frame, name) for name in [*names, *filter(None, [found.get("rank")])]]
    if any(column is None for column in columns):
        return None
    way: kernels.Order = "by_rank" if "rank" in found else "given" if ranked else "ascending"
    placed = kernels.place_rows(*columns, order=way, limit=range_limit(len(frame)))
    if placed is None:
        return None
    items = Ids(np.arange(placed.highest + 1), is_range=True)
    return Rows(
        table,
        Ids(placed.case_ids),
        None,
        items,
        placed.items,
        indptr=placed.indptr,
        ordered=True,
        notes=_as_read(found),
    )


def _whole_numbers(frame: Any, name: str) -> Array | None:
    """A column of whole numbers that fit 64 bits, none missing; None otherwise."""
    series = frame.get_column(name)
    column = series.to_native()
    kind = getattr(column, "dtype", None)
    values: Array
    if isinstance(kind, np.dtype):  # pandas without its own types: nothing can be missing among whole numbers
        if kind.kind not in "iu":
            return None
        values = column.to_numpy()
    elif series.dtype.is_integer() and not series.is_null().any():
        values = series.to_numpy()
    else:
        return None
    fits = values.dtype.kind == "i" or (values.dtype.kind == "u" and values.dtype.itemsize < 8)
    return values if fits else None


def find_columns(
    names: list[str],
    roles: tuple[str, ...],
    given: Mapping[str, str] | None,
    table: str,
    *,
    needed: tuple[str, ...] = ("user", "item"),
) -> dict[str, str]:
    """Which column plays which role.

    >>> find_columns(["userId", "movieId", "rating"], ("user", "item", "grade"), None, "truth")
    {'user': 'userId', 'item': 'movieId', 'grade': 'rating'}
    """
    found = known_columns(names, roles, given, table)
    _require(found, names, table, needed)
    return found


def known_columns(
    names: list[str], roles: tuple[str, ...], given: Mapping[str, str] | None, table: str
) -> dict[str, str]:
    """Which column plays which role; roles nobody plays are left out."""
    if given is not None and not isinstance(given, Mapping):
        raise ColumnError(
            f"columns= came as {type(given).__name__}.",
            table=table,
            hint="Pass a dict: columns={'user': 'uid'}.",
        )
    if not all(isinstance(n, str) for n in names):
        raise ColumnError(
            f"the columns {names} have names that are not text.",
            table=table,
            hint="Name them: table.columns = ['user', 'item', …].",
        )
    given = dict(given or {})
    unknown = [role for role in given if role not in ROLES]
    if unknown:
        raise ColumnError(
            f"columns= names the role {unknown[0]!r}.", table=table, hint=f"Roles are {', '.join(ROLES)}."
        )
    found: dict[str, str] = {}
    for role in roles:
        name = given[role] if role in given else _detect(names, role, given, table)
        if name is not None and name not in names:
            raise ColumnError(
                f"there is no column {name!r} for the {role}.",
                table=table,
                column=name,
                hint=f"The columns are: {', '.join(map(str, names))}.",
            )
        if name is not None and names.count(name) > 1:
            raise ColumnError(
                f"the column {name!r} stands twice.", table=table, column=name, hint="Rename one of the two."
            )
        if name is not None:
            found[role] = name
    return found


def _detect(names: list[str], role: str, given: Mapping[str, str], table: str) -> str | None:
    taken = set(given.values())
    matches = [n for n in names if n not in taken and _bare(n) in ROLES[role]]
    if len(matches) > 1:
        exact = [n for n in matches if n == role]
        if len(exact) == 1 or len(set(matches)) == 1:
            return (exact or matches)[0]
        raise ColumnError(
            f"the columns {', '.join(map(repr, matches))} could all be the {role}.",
            table=table,
            column=role,
            hint=f"Say which: columns={{{role!r}: {matches[0]!r}}}.",
        )
    return matches[0] if matches else None


def _require(found: Mapping[str, str], names: list[str], table: str, needed: tuple[str, ...]) -> None:
    for role in needed:
        if role not in found and not (role == "user" and "case" in found):
            raise ColumnError(
                f"no column was recognised as the {role}.",
                table=table,
                column=role,
                hint=f"The columns are: {', '.join(map(str, names))}. Say which: columns={{{role!r}: ...}}.",
            )


def _bare(name: Any) -> str:
    """userId, user_id, user-id and RecBole's user_id:token are one name."""
    return re.sub(r"[\s_\-]", "", str(name).split(":")[0]).lower()


def as_frame(data: Any) -> Any:
    """A narwhals frame where the data is a table of any kind, None where it is not."""
    if isinstance(data, dict | list | tuple | set | frozenset | np.ndarray | str):
        return None
    import narwhals.stable.v2 as nw
    from narwhals.exceptions import DuplicateError

    try:
        frame = nw.from_native(data, pass_through=True, eager_only=True)
    except DuplicateError as error:
        raise ColumnError(
            f"a column name occurs twice: {error}", hint="Rename one of the columns."
        ) from error
    if isinstance(frame, nw.DataFrame):
        return frame
    if hasattr(data, "collect") and hasattr(data, "collect_schema"):
        return nw.from_native(data.collect(), eager_only=True)
    # Record batches and their readers. A column alone has the same door, and is no table.
    if hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
        with suppress(ImportError, TypeError, ValueError):
            import pyarrow as pa

            return nw.from_native(pa.table(data), eager_only=True)
    return None


def _grouped(frame: Any, name: str, table: str) -> tuple[Ids, Codes | None, Int | None]:
    """The cases of a table; where they stand in ascending groups, as borders instead of a code a row."""
    series = frame[name]
    values = series.to_numpy() if series.dtype.is_integer() and not series.is_null().any() else None
    if values is not None and values.dtype.kind == "i":
        starts = np.concatenate([[0], np.flatnonzero(values[1:] != values[:-1]) + 1])
        firsts = values[starts].astype(np.int64)
        if (firsts[1:] > firsts[:-1]).all():
            return Ids(firsts), None, np.concatenate([starts, [len(values)]])
    ids, codes = coded_column(frame, name, table)
    return ids, codes, None


def coded_column(frame: Any, name: str, table: str, *, as_range: bool = False) -> tuple[Ids, Codes]:
    """The ids of a column and the code of each row."""
    import narwhals.stable.v2 as nw

    series = frame[name]
    kind = getattr(series.to_native(), "dtype", None)
    if isinstance(kind, np.dtype) and kind.kind == "O":
        # Strings in pandas before 3: looking at every object's type finds the missing ones too.
        return encode(series.to_numpy(), table=table, column=name, as_range=as_range)
    if series.is_null().any():
        refuse_missing(int(np.argmax(series.is_null().to_numpy())), table, name)
    labels = getattr(getattr(kind, "categories", None), "dtype", None)
    if series.dtype in (nw.Categorical, nw.Enum) and getattr(labels, "kind", None) not in ("i", "u"):
        coded = encode_categories(series, table=table, column=name)
        if coded is not None:
            return coded
        series = series.cast(nw.String)
    if series.dtype == nw.String:
        return encode_strings(_arrow_or_numpy(series), table=table, column=name)
    values = series.to_numpy()
    return encode(values, table=table, column=name, as_range=as_range)


def _arrow_or_numpy(series: Any) -> Any:
    try:
        return series.to_arrow()
    except ImportError:
        return series.to_numpy().astype(object)


def _plain(frame: Any, name: str) -> Array:
    return np.asarray(frame[name].to_numpy())
