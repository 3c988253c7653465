"""DataFrames of Spark: which of their columns play which role, and the rows of several under one header."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from recsys.errors import ColumnError, IdTypeError, InputError
from recsys.evaluation.in_pieces.pieces import refuse_no_order
from recsys.inputs.containers import columns_for
from recsys.inputs.files.formats import ROLES
from recsys.inputs.frames import find_columns

MOST_ROWS = 5_000_000
"""The most rows of a DataFrame that is sent to all workers whole: train, items, users, popularity, …"""
_FACTORS = {"user_factors": "user", "item_factors": "item"}
_IDS = ("case", "user", "item")
_ROLES = {**ROLES, "seen": _IDS, "eligible": _IDS}
_WHOLE_TYPES = ("tinyint", "smallint", "int", "bigint")
_MARK = -(2**63)
_MARKS = 16
"""A rank is above 0. The lowest 64-bit numbers in its column are the tables of rows without one: a column
less to shuffle, and a missing rank in the lists stays one."""
_CAST = "Cast the column to bigint or string, for example df.withColumn('user', df.user.cast('string'))."


def is_frame(data: Any) -> bool:
    """Return whether it is a DataFrame of Spark, classic or Connect."""
    if type(data).__module__.partition(".")[0] != "pyspark":
        return False
    from pyspark.sql import DataFrame

    return isinstance(data, DataFrame)


def check_session(session: Any) -> None:
    """Raise an error if a session, classic or Connect, has been stopped."""
    is_connect = hasattr(session, "is_stopped")
    if session.is_stopped if is_connect else session.sparkContext._jsc is None:  # noqa: SLF001
        raise InputError(
            "the session of Spark has been stopped.", hint="Start another one, and read the tables with it."
        )


def check_partitions(partitions: Any) -> None:
    """Raise an error for a number of pieces that Spark cannot make."""
    if partitions is not None and (type(partitions) is not int or partitions < 1):
        raise InputError(
            f"partitions={partitions!r} is not a number of pieces.",
            hint="Pass 1 or more, such as 200, or leave it out.",
        )


def collect(frame: Any, name: str) -> Any:
    """Return a DataFrame that all workers need whole, as an Arrow table."""
    rows = frame.limit(MOST_ROWS + 1).toArrow()
    if rows.num_rows > MOST_ROWS:
        raise InputError(
            f"{name} has more than {MOST_ROWS:,} rows, and is sent to all workers whole.",
            table=name,
            hint="Pass popularity= (how many users had each item) instead of train=, or leave out "
            "the metrics that need each user's own history."
            if name == "train"
            else "Select the rows and columns that are needed.",
        )
    return rows


@dataclass(frozen=True, eq=False)
class UserFrame:
    """A DataFrame with rows of users, and which of its columns plays which role."""

    name: str
    frame: Any
    column_of: Mapping[str, str]

    @classmethod
    def open(cls, name: str, frame: Any, columns: Mapping[str, Any] | None) -> UserFrame:
        """Find the columns; of factors, the array of numbers, and the only other column whatever its name."""
        check_session(frame.sparkSession)
        found = cls._find(name, frame, columns)
        lower = [column.lower() for column in frame.columns]
        equal = [column for column in found.column_of.values() if lower.count(column.lower()) > 1]
        if equal and frame.sparkSession.conf.get("spark.sql.caseSensitive") != "true":
            raise ColumnError(
                f"the column {equal[0]!r} and another differ in capital letters only, which Spark ignores.",
                table=name,
                column=equal[0],
                hint="Rename one of them, or set spark.sql.caseSensitive to true.",
            )
        return found

    @classmethod
    def _find(cls, name: str, frame: Any, columns: Mapping[str, Any] | None) -> UserFrame:
        if name in _FACTORS:
            arrays = [column for column, kind in frame.dtypes if kind in ("array<float>", "array<double>")]
            others = [column for column in frame.columns if column not in arrays]
            if len(arrays) != 1:
                raise ColumnError(
                    f"{name} has {len(arrays)} columns of arrays of numbers, and one is needed.",
                    table=name,
                    column="vector",
                    hint=f"The columns are: {', '.join(f'{n} ({kind})' for n, kind in frame.dtypes)}.",
                )
            role = _FACTORS[name]
            known = {role: others[0]} if len(others) == 1 else columns_for(name, columns)
            return cls(
                name,
                frame,
                find_columns(others, (role,), known, name, needed=(role,)) | {"vector": arrays[0]},
            )
        column_of = find_columns(frame.columns, _ROLES[name], columns_for(name, columns), name)
        known = f"The columns are: {', '.join(frame.columns)}."
        hint = f"Add a rank, or say which column it is: columns={{'rank': …}}. {known}"
        refuse_no_order(name, column_of, hint)
        return cls(name, frame, column_of)

    @property
    def sent(self) -> dict[str, str]:
        """The columns that the workers get, by role; lists are ordered by rank if they have both."""
        unused = {"time", "score"} if "rank" in self.column_of else {"time"}
        return {role: name for role, name in self.column_of.items() if role not in unused}

    @property
    def has_cases(self) -> bool:
        """Whether users have several cases, with ids of their own."""
        return {"case", "user"} <= self.column_of.keys()

    def type_of(self, role: str) -> str:
        return str(dict(self.frame.dtypes)[self.column_of[role]])

    def cells(self, role: str, ids: str | None) -> Any:
        """Return the column of a role, ids as whole numbers or as text."""
        from pyspark.sql import functions as F  # noqa: N812 - its usual name

        name, kind = self.column_of[role], self.type_of(role)
        cells = F.col("`" + name.replace("`", "``") + "`")
        if role not in _IDS:
            return cells
        is_text = kind == "string" or kind.startswith(("varchar", "char"))
        if (kind not in _WHOLE_TYPES and not is_text) or (is_text and ids == "int"):
            wanted = "whole numbers or text" if ids != "int" else "whole numbers"
            raise IdTypeError(
                f"the {role} ids are of type {kind}, and not {wanted}.",
                table=self.name,
                column=name,
                hint=_CAST,
            )
        return cells.cast("string" if is_text or ids == "str" else "bigint")


def union_rows(tables: Sequence[UserFrame], ids: str | None) -> tuple[Any, dict[str, str]]:
    """Put the rows of all tables under one header, with the table of each row; return types of ids, too."""
    from pyspark.sql import functions as F  # noqa: N812

    own: list[dict[str, Any]] = []
    kinds: dict[str, tuple[str, str]] = {}
    types = {role: table.type_of(role) for table in tables for role in table.sent if role not in _IDS}
    for table in tables:
        case = "case" if "case" in table.column_of else "user"
        cells = {"case": table.cells(case, ids)}
        if table.has_cases:
            cells["user"] = table.cells("user", ids)
        if "item" in table.column_of:
            cells["item"] = table.cells("item", ids)
        for role, cell in cells.items():
            kind = dict(table.frame.select(cell.alias(role)).dtypes)[role]
            known = kinds.setdefault(role, (kind, table.name))
            if known[0] != kind:
                what = "item" if role == "item" else "user"
                raise IdTypeError(
                    f"the {what} ids are {known[0]} in {known[1]} and {kind} in {table.name}, so none of "
                    "them would match.",
                    column=what,
                    hint="Make both the same type, or pass ids='str'.",
                )
        own.append({**cells, **{role: table.cells(role, ids) for role in table.sent if role in types}})
    header = {role: kind for role, (kind, _) in kinds.items()} | types
    # Arrow writes missing arrays in a time that grows with the square of the batch; empty ones are quick.
    nothing = {role: F.array() if kind.startswith("array") else F.lit(None) for role, kind in header.items()}
    in_ranks = header.get("rank") in _WHOLE_TYPES
    rows = []
    for number, (table, cells) in enumerate(zip(tables, own, strict=True)):
        columns = {role: cells.get(role, nothing[role]).cast(kind) for role, kind in header.items()}
        if in_ranks:
            rank = F.greatest(columns["rank"].cast("bigint"), F.lit(_MARK + _MARKS))
            columns["rank"] = F.coalesce(F.when(columns["rank"].isNotNull(), rank), F.lit(_MARK + number))
        else:
            columns["table"] = F.lit(number).cast("tinyint")
        rows.append(table.frame.select(*(column.alias(role) for role, column in columns.items())))
    return reduce(lambda one, other: one.unionByName(other), rows), header


def split_rows(batches: Iterator[Any], sent: Mapping[str, Mapping[str, str]]) -> dict[str, Any]:
    """Return the rows of each table of `union_rows`, by its own column names; nothing without rows."""
    import pyarrow as pa
    import pyarrow.compute as pc

    ranked = next((at for at, columns in enumerate(sent.values()) if "rank" in columns), None)
    parts: dict[str, list[Any]] = {name: [] for name in sent}
    schema = None
    for batch in batches:
        if "table" in batch.schema.names:
            number = batch.column("table")
        else:
            rank = batch.column("rank")
            is_mark = pc.less(rank, _MARK + _MARKS)
            number = pc.if_else(is_mark, pc.bit_wise_xor(rank, _MARK), ranked)
            rank = pc.if_else(is_mark, None, rank)
            batch = batch.set_column(batch.schema.get_field_index("rank"), "rank", rank)  # noqa: PLW2901
        schema = batch.schema
        for at, name in enumerate(sent):
            parts[name].append(batch.filter(pc.equal(number, at)))
    tables = {}
    for name, columns in sent.items() if schema is not None else ():
        role_of = {"case" if role == "user" and "case" not in columns else role: role for role in columns}
        table = pa.Table.from_batches(parts.pop(name), schema).select([*role_of])
        tables[name] = table.rename_columns([columns[role] for role in role_of.values()])
    return tables
