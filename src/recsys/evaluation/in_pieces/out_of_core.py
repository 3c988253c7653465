"""Evaluation beyond memory: DuckDB brings together what belongs to a user; pieces are evaluated one by one.

Files are read as in memory: DuckDB scans those of Parquet, and the rows of others and of queries are written
once, with their types, for it to scan. The users are cut into ranges of their ids. Few ranges are read by a
filtered scan each; for many, one scan writes the rows of every range into a folder of its own first. DuckDB
computes no metric, so the numbers have the same bits as in memory. Models are cut into ranges of users, too.
"""

from __future__ import annotations

import bisect
import contextlib
import glob
import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from recsys.conventions.decisions import Conventions
from recsys.errors import (
    ColumnError,
    FileError,
    FloatIdWarning,
    InputError,
    MissingExtraError,
    Phrase,
    RecsysError,
    RecsysWarning,
    TieWarning,
    hush,
    warn,
)
from recsys.evaluation.engine import warn_of_ties
from recsys.evaluation.in_pieces.checkpoints import PieceStore, Storage
from recsys.evaluation.in_pieces.evaluator import Evaluator
from recsys.evaluation.in_pieces.pieces import name_row, refuse_no_order
from recsys.evaluation.options import EvaluationOptions, refuse_no_weight
from recsys.evaluation.reading import CommonInputs
from recsys.evaluation.results import Evaluation
from recsys.evaluation.run import EvaluationRun, RunOrigin, highest_of, with_highest_grade
from recsys.inputs.byte_sizes import format_memory
from recsys.inputs.containers import columns_for
from recsys.inputs.files.atomic_folder import remove_folder
from recsys.inputs.files.atomic_write import write_errors_of
from recsys.inputs.files.formats import FORMATS, ReadOptions, open_file
from recsys.inputs.files.reader import detect_format
from recsys.inputs.frames import find_columns, table_without_rows
from recsys.inputs.ids import convert_ids, encode_strings
from recsys.metrics.registry import Metrics, Request, parse_all
from recsys.ranks.open_ranking import ranking_kind, ranks_catalogue
from recsys.ranks.sources import UsersByItems
from recsys.records.arrays import Ids

_OF_USERS = ("lists", "truth", "seen", "eligible")
_ID_ROLES = ("case", "user", "item")
_QUERIES = ("select", "from", "with", "values")
_OF_AN_ORDER = [
    f"WINDOW_{name}"
    for name in ("ROW_NUMBER", "FIRST_VALUE", "LAST_VALUE", "NTH_VALUE", "LEAD", "LAG", "NTILE", "FILL")
]
_LOCKED = {  # a query does nothing but read files of this machine, in their order
    "preserve_insertion_order": True,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "python_enable_replacements": False,
}
# The share of the budget that DuckDB is given, which exceeds it by half; and of what is left for a piece.
_SHARE_OF_DUCKDB, _SHARE_OF_PIECE = 0.4, 0.5
# What a row takes while its piece is evaluated; text ids take more.
_BYTES_PER_ROW, _BYTES_PER_TEXT_ROW = 80, 200
_NO_ORDER = Phrase("Add a column such as rank, or leave out {memory=}.")
_FEW_SCANS = 6  # ranges; reading a file of columns so often costs less than writing its rows
_SAMPLE_ROWS, _LARGE = 1 << 18, 1 << 24
_NUMBER = "recsys_range"
_PIECE_USERS = 1 << 16  # of a model, between two checkpoints


def evaluate_beyond_memory(
    lists: Any,
    truth: Any,
    metrics: Metrics,
    conventions: Conventions,
    options: EvaluationOptions,
    *,
    memory: Any = None,
    per_user: Any = None,
    checkpoint: Any = None,
) -> Evaluation:
    """See recsys.evaluate: tables through DuckDB, a model that ranks the catalogue by ranges of its users."""
    storage = Storage.of(memory, per_user, checkpoint)
    options = options.but(ids=options.ids or "auto")
    weights = options.case_weights
    if isinstance(weights, Mapping) and weights and not any(weights.values()):
        refuse_no_weight(np.zeros(1))
    if ranking_kind(lists) == "recommender":
        raise InputError(
            f"{type(lists).__name__} is asked for one list after the other, which needs no memory=.",
            table="lists",
            hint="Leave out memory=, or write its lists to a file first.",
        )
    given: list[tuple[type[Warning], str]] = []
    try:
        with hush(RecsysWarning) as given:
            if ranks_catalogue(lists):
                inputs = CommonInputs(metrics, options)
                run = inputs.run_of(lists, truth)
                evaluation = _evaluate_model(run, inputs, conventions, storage)
            else:
                requests = parse_all(metrics, options.k)
                evaluation = _evaluate_tables(lists, truth, requests, conventions, options, storage=storage)
    finally:
        # What several pieces warn of is reported once, and ties below by the counts of all pieces.
        for category, text in dict.fromkeys(given):
            if category is not TieWarning:
                warn(category, text)
    warn_of_ties(evaluation.counts, evaluation.conventions)
    return evaluation


def _evaluate_tables(
    lists: Any,
    truth: Any,
    requests: Sequence[Request],
    conventions: Conventions,
    options: EvaluationOptions,
    *,
    storage: Storage,
) -> Evaluation:
    with contextlib.ExitStack() as stack:
        store = stack.enter_context(PieceStore(storage, requests, by=options.by))
        connection = stack.enter_context(_connect(storage, store.spill, options.threads))
        engine = _Engine(connection, storage, store.spill, stack)
        given = {"lists": lists, "truth": truth, "seen": options.seen, "eligible": options.eligible}
        tables = {
            name: _InputTable.open(engine, name, data, options)
            for name, data in given.items()
            if data is not None
        }
        n_rows = sum(table.count() for table in tables.values())
        conventions = with_highest_grade(conventions, requests, lambda: _highest_grade(tables["truth"]))
        shared = _question(options, but=(*_OF_USERS, "k", "ids"))
        evaluator = Evaluator(
            [*map(str, requests)],
            conventions=conventions,
            backend=options.backend,
            threads=options.threads,
            ids=options.ids,
            **shared,
        )
        # Users are cut by id if every table names them: a piece then holds all cases of its users.
        names_both = [{"case", "user"} <= table.column_of.keys() for table in tables.values()]
        role = "user" if all(names_both) else "case"
        whole_users = all(names_both) or not (any(names_both) or options.clusters is not None)
        per_row = _BYTES_PER_TEXT_ROW if any(t.is_text for t in tables.values()) else _BYTES_PER_ROW
        most_rows = max(1, int(_SHARE_OF_PIECE * storage.left(0) / per_row))
        if store.keeps:
            contents = {name: table.content() for name, table in tables.items()}
            store.open(metrics=[*map(str, requests)], conventions=conventions, **shared, **contents)
        ranges = _Ranges(engine, tables, role, store, most_rows)
        ranges.cut(n_rows)
        for number in range(len(ranges)):
            if not store.has(number):
                rows = ranges.read(number)
                try:
                    piece = evaluator.measured(**rows)
                except RecsysError as error:
                    name_row(error, rows)
                    raise
                del rows
                store.add(number, piece, whole_users=whole_users)
                del piece
            if options.progress is not None:
                options.progress(number + 1, len(ranges))
        return store.result(evaluator.inputs, conventions, len(ranges))


def _evaluate_model(
    run: EvaluationRun, inputs: CommonInputs, conventions: Conventions, storage: Storage
) -> Evaluation:
    storage.left()
    ranking = cast("UsersByItems", run.ranking)
    needed = int(ranking.memory_needed(run.truth, run.ranking_options) / _SHARE_OF_PIECE)
    left = storage.left(needed, f"ranking with {ranking}")
    ranking.check_users(run.truth)
    with PieceStore(storage, inputs.requests, by=inputs.options.by) as store:
        conventions = run.effective(conventions)
        store.open(
            metrics=[*map(str, inputs.requests)],
            conventions=conventions,
            model=ranking,
            truth=run.truth,
            **_question(inputs.options, but=("k", "ids", "columns")),
        )
        users = run.truth.cases.values
        progress = run.ranking_options.progress
        budget = replace(run.ranking_options, memory=int(_SHARE_OF_PIECE * left), progress=None)
        run = replace(run, ranking_options=budget)
        store.keep_plan(users=(size := store.plan.get("users", _PIECE_USERS)))
        n_pieces = max(1, math.ceil(len(users) / size))
        for number in range(n_pieces):
            if not store.has(number):
                block = Ids(users[number * size : (number + 1) * size])
                of_block = run.of_cases(block, first=number == 0)
                partial = of_block.partial(conventions)
                store.add(number, RunOrigin(of_block, partial, conventions), whole_users=run.cases_are_users)
            if progress is not None:
                progress(number + 1, n_pieces)
        return store.result(inputs, conventions, n_pieces, catalogue=ranking.catalogue, whole=run)


def _question(options: EvaluationOptions, *, but: Sequence[str]) -> dict[str, Any]:
    """Return the options that the result depends on, by name."""
    return {
        name: value
        for name, value in vars(options).items()
        if name not in (*but, "progress", "backend", "threads")
    }


@contextlib.contextmanager
def _connect(storage: Storage, spill: Path, threads: int | None, **more: bool) -> Iterator[Any]:
    """A connection of DuckDB that keeps to its part of the memory; its errors become ours."""
    try:
        import duckdb
        import pandas  # noqa: F401, ICN001 - what pyarrow loads with a first column
        import pyarrow  # noqa: F401, ICN001 - what DuckDB returns
        import scipy.sparse  # noqa: F401 - what sorts the rows of a piece
    except ImportError as error:
        raise MissingExtraError("duckdb", "duckdb", "an evaluation beyond memory") from error
    settings: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": f"{int(_SHARE_OF_DUCKDB * storage.left() / 1e6)}MB",
        "temp_directory": str(spill),
        "preserve_insertion_order": False,
        "threads": int(threads or os.cpu_count() or 1),
        **more,
    }
    try:
        with contextlib.closing(duckdb.connect(config=settings)) as connection:
            connection.execute("set enable_progress_bar = false")
            connection.execute("set partitioned_write_flush_threshold = 65536")
            yield connection
    except duckdb.OutOfMemoryException as error:
        raise InputError(
            Phrase("DuckDB needs more than its part of {memory=}: ", memory=format_memory(storage.memory))
            + str(error).splitlines()[0],
            hint=Phrase("Write {memory=}.", memory=format_memory(2 * storage.memory)),
        ) from error
    except (duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException) as error:
        raise InputError(f"DuckDB cannot run the query: {str(error).splitlines()[0]}") from error
    except (duckdb.Error, RuntimeError) as error:
        if "interrupted" in str(error).lower():  # what DuckDB makes of Ctrl-C
            raise KeyboardInterrupt from error
        # DuckDB's binding says so of names in a file that are not text.
        if not isinstance(error, duckdb.Error) and "conversion error" not in str(error):
            raise
        words = " ".join(str(error).splitlines()[:3])
        raise FileError(f"DuckDB cannot read the input: {words}", hint="Check the files.") from error


class _Engine(NamedTuple):
    """A connection of DuckDB, what it may use, a folder for what goes at the end, and the end."""

    connection: Any
    storage: Storage
    spill: Path
    stack: contextlib.ExitStack

    def scan(self, files: Sequence[Path]) -> Any:
        """Parquet files as one table: exactly these, whatever their names would mean to DuckDB."""
        names = [str(file.absolute()) for file in files]
        escaped = [glob.escape(name) for name in names]
        return self.connection.read_parquet(escaped, union_by_name=len(names) > 1, hive_partitioning=False)

    def query(self, text: str) -> Any:
        """Return the rows of one SELECT, which may read local files and do nothing else.

        One thread reads them in their order, so that equal queries of equal files have equal rows.
        """
        import duckdb

        locked = _connect(self.storage, self.spill / "query", 1, **_LOCKED)
        connection = self.stack.enter_context(locked)
        connection.execute("set lock_configuration = true")
        kinds = [statement.type.name for statement in connection.extract_statements(text)]
        if kinds != [duckdb.StatementType.SELECT.name]:
            raise InputError(
                f"the query is not one SELECT statement, but {', '.join(kinds)}.",
                hint="Write one SELECT, or pass a relation of your own connection.",
            )
        syntax = connection.execute("select json_serialize_sql(?)", [text]).fetchall()[0][0]
        json.loads(syntax, object_hook=_refuse_unordered)
        return connection.sql(text)

    def keep(self, name: str, relation: Any) -> Any:
        """Return the rows of a relation as they are now."""
        file = self.spill / f"{name}.parquet"
        relation.write_parquet(str(file), compression="lz4")
        return self.scan([file])

    def read(self, path: Any, name: str, options: ReadOptions) -> tuple[Any, dict[str, str]]:
        """Return the rows of files and which column has which role, as the readers of files find them."""
        source, kept = open_file(path), self.spill / f"{name}.parquet"
        entry = FORMATS.find(detect_format(source))
        if entry.read_blocks is None:
            raise FileError(
                f"{source.name} is {entry.name}, and beyond memory Parquet and CSV files are read, and "
                "others with one row in a line.",
                table=name,
                hint=Phrase("Leave out {memory=}, or write it as Parquet."),
            )
        column_of, blocks = entry.read_blocks(source, options)
        refuse_no_order(name, column_of, _NO_ORDER)
        if blocks is None:
            return self.scan([part.path for part in source.parts or (source,) if part.path]), column_of
        if not _write_alike(kept, blocks):
            # Some scores are compared digit by digit, so all are.
            again = entry.read_blocks(source, replace(options, text=True))[1]
            _write_alike(kept, again or iter(()))
        return self.scan([kept]), column_of


@dataclass(frozen=True, eq=False)
class _InputTable:
    """One table of the input: a relation of DuckDB with the columns that count, under their own names."""

    name: str
    relation: Any
    column_of: Mapping[str, str]

    @classmethod
    def open(cls, engine: _Engine, name: str, data: Any, options: EvaluationOptions) -> _InputTable:
        """Return a path, a query, a relation or a table in memory."""
        kind = "lists" if name == "lists" else "truth"
        asked = ReadOptions(kind, columns_for(name, options.columns), options.ids)
        is_path, is_query = isinstance(data, str | os.PathLike), _is_query(data)
        if is_path and not is_query:
            relation, found = engine.read(data, name, asked)
        else:
            relation = engine.query(data) if is_query else _relation_of(engine.connection, name, data)
            found = find_columns(relation.columns, asked.roles, asked.columns, name)
            refuse_no_order(name, found, _NO_ORDER)
        column_of = {
            role: column
            for role, column in found.items()
            if role != "time" and (role != "score" or "rank" not in found)
        }
        types = dict(zip(relation.columns, map(str, relation.types), strict=True))
        cells = []
        for role, column in column_of.items():
            if (
                column not in types
            ):  # DuckDB does not tell names apart by their case, and has given it another
                problem = f"the column {column!r} differs from another by the case of letters only."
                raise ColumnError(problem, table=name, column=column, hint="Rename one of the two.")
            wanted = types[column]
            if role in _ID_ROLES and options.ids == "str" and _is_whole(wanted):
                wanted = "VARCHAR"
            elif role in _ID_ROLES and options.ids == "int" and wanted == "VARCHAR":
                _refuse_ids(relation, column, f"{role} ids of {name}")
                wanted = "BIGINT"
            elif wanted.endswith("HUGEINT"):  # which Parquet files have not
                wanted = "DECIMAL(38, 0)"
            cells.append(f"cast({_quoted(column)} as {wanted}) as {_quoted(column)}")
        relation = relation.project(", ".join(dict.fromkeys(cells)))
        # What is asked again may answer otherwise.
        is_kept = is_query or type(data).__name__ == "DuckDBPyRelation"
        return cls(name, engine.keep(name, relation) if is_kept else relation, column_of)

    def type_of(self, role: str) -> str:
        return str(self.relation.types[self.relation.columns.index(self.column_of[role])])

    @property
    def is_text(self) -> bool:
        """Whether some ids are text."""
        return any(self.type_of(role) == "VARCHAR" for role in _ID_ROLES if role in self.column_of)

    def count(self) -> int:
        """Return the number of rows; an error if there are none, as in memory."""
        n_rows = _n_rows(self.relation)
        if not n_rows:
            raise table_without_rows(self.name)
        return n_rows

    def content(self) -> list[str]:
        """Return what tells its rows from others, in any order: their number and the sum of their hashes."""
        columns = ", ".join(map(_quoted, self.relation.columns))
        sums = self.relation.aggregate(f"count(*), sum(hash({columns})::hugeint)").fetchall()[0]
        return [*map(str, sums), *map(str, self.relation.types), *self.relation.columns]


def _is_query(data: Any) -> bool:
    """Return whether a text is a query of DuckDB, and not the name of a file."""
    words = data.split(None, 1) if isinstance(data, str) else []
    return bool(words) and words[0].lower() in _QUERIES and not os.path.exists(data)  # noqa: PTH110 - of any length


def _relation_of(connection: Any, name: str, data: Any) -> Any:
    if type(data).__name__ == "DuckDBPyRelation":
        return data
    if not hasattr(data, "__arrow_c_stream__"):
        raise InputError(
            f"{name} came as {type(data).__name__}, which is in memory already.",
            table=name,
            hint="Leave out memory=, or pass a file, a query, a DuckDB relation or a table.",
        )
    import pyarrow as pa

    return connection.from_arrow(pa.table(data))


def _refuse_unordered(node: dict[str, Any]) -> dict[str, Any]:
    """Raise an error for a part of a query that numbers rows which have no order."""
    if str(node.get("type")) in _OF_AN_ORDER and not (node.get("orders") or node.get("arg_orders")):
        raise InputError(
            f"{node['function_name']}() in the query is over rows without an order.",
            hint="Say which comes first: over (partition by user order by score desc, item).",
        )
    return node


def _write_alike(file: Path, blocks: Iterator[Any]) -> bool:
    """Write tables as one Parquet file, as long as their types are those of the first; whether all are."""
    from pyarrow import parquet

    first = next(blocks)
    with (
        write_errors_of(file),
        file.open("wb") as out,
        parquet.ParquetWriter(out, first.schema, compression="lz4") as writer,
    ):
        writer.write_table(first)
        for block in blocks:
            if block.schema != first.schema:
                return False
            writer.write_table(block)
    return True


def _refuse_ids(relation: Any, column: str, what: str) -> None:
    """Raise an error if ids of text are not whole numbers, or if two of them are the same one."""
    quoted = _quoted(column)
    known = relation.filter(f"{quoted} is not null").project(f"{quoted} as id").distinct()

    def convert(texts: Any) -> None:
        convert_ids(*encode_strings(texts, table=what, column=column), "int", what, lambda _: "")

    with hush(FloatIdWarning) as given:
        for batch in known.to_arrow_reader(_SAMPLE_ROWS):
            convert(batch.column(0))
        same = known.aggregate("min(id) as low, max(id) as high", "cast(id as bigint)").filter("low <> high")
        for pair in same.limit(1).fetchall():
            convert(np.array(pair, dtype=object))
    for category, text in given[:1]:
        warn(category, text)


def _n_rows(relation: Any) -> int:
    return int(relation.count("*").fetchall()[0][0])


def _is_whole(kind: str) -> bool:
    """Return whether a type of DuckDB is one of whole numbers."""
    return kind.removeprefix("U") in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")


def _quoted(name: str, mark: str = '"') -> str:
    return mark + name.replace(mark, 2 * mark) + mark


def _highest_grade(truth: _InputTable) -> float | None:
    if "grade" not in truth.column_of:
        return None
    grade = f"cast({_quoted(truth.column_of['grade'])} as double)"
    return highest_of(*truth.relation.aggregate(f"min({grade}), max({grade})").fetchall()[0])


class _Ranges:
    """The users cut into ranges of their ids, and the rows of each."""

    def __init__(
        self, engine: _Engine, tables: Mapping[str, _InputTable], role: str, store: PieceStore, most_rows: int
    ) -> None:
        self._engine, self._store, self._most_rows = engine, store, most_rows
        self._tables = tables
        self._keys: dict[str, str] = {}
        known = Ids(np.zeros(0, dtype=np.int64))
        for name, table in tables.items():
            own_role = next(r for r in (role, "case", "user") if r in table.column_of)
            self._keys[name], kind = _quoted(table.column_of[own_role]), table.type_of(own_role)
            if kind in ("FLOAT", "DOUBLE") or kind.startswith(("DECIMAL", "HUGEINT", "UHUGEINT")):
                self._keys[name] = f"try_cast({self._keys[name]} as bigint)"
            elif not _is_whole(kind) and kind != "VARCHAR":
                self._keys[name] = f"cast({self._keys[name]} as varchar)"
            one = table.relation.project(f"{self._keys[name]} as key").limit(1).fetchall()[0][0]
            ids = Ids(np.array([one], dtype=object if isinstance(one, str) else None))
            if one is not None:
                known.same_kind(ids, what="user")
                known = ids

    def __len__(self) -> int:
        return len(self._store.plan["edges"]) + 1

    def cut(self, n_rows: int) -> None:
        """Decide on the ranges; where there are many, write the rows of each into a folder of its own."""
        if "edges" in self._store.plan:
            return
        n_ranges = math.ceil(n_rows / self._most_rows)
        edges = self._edges({name: table.relation for name, table in self._tables.items()}, n_ranges)
        if len(edges) < _FEW_SCANS:
            self._store.keep_plan(edges=edges, folders=None)
            return
        folder = self._store.folder / "ranges"
        remove_folder(folder)
        with write_errors_of(folder):
            folder.mkdir()
        for name, table in self._tables.items():
            numbered = table.relation.project(f"*, {_range_number(self._keys[name], edges)} as {_NUMBER}")
            numbered.write_parquet(str(folder / name), partition_by=[_NUMBER], compression="lz4")
        all_edges = list(edges)
        for number in range(len(edges) + 1):
            written = {name: self._files(name, number) for name in self._tables}
            relations = {name: self._engine.scan(files) for name, files in written.items() if files}
            size = sum(map(_n_rows, relations.values()))
            if size > 1.5 * self._most_rows:
                all_edges += self._edges(relations, math.ceil(size / self._most_rows))
        self._store.keep_plan(edges=sorted(set(all_edges)), folders=edges)

    def _edges(self, relations: Mapping[str, Any], n_ranges: int) -> list[Any]:
        """Ids that cut the rows into about equal ranges, from a sample of them; ascending."""
        if n_ranges <= 1:
            return []
        sample: list[Any] = []
        n_rows = sum(map(_n_rows, relations.values()))
        share, how = 100.0 * _SAMPLE_ROWS / max(n_rows, 1), "bernoulli"
        if n_rows > _LARGE:
            share, how = 8 * share, "system"  # whole blocks: cheap, and less precise
        clause = "" if share >= 50.0 else f" using sample {share:.6f}% ({how}, 1)"
        for name, relation in relations.items():
            users = relation.project(f"{self._keys[name]} as key")
            drawn = users.query("users", f"select key from users{clause}")  # noqa: S608 - our own numbers
            sample += drawn.to_arrow_table()["key"].to_pylist()
        known = sorted(key for key in sample if key is not None)
        places = [math.ceil(number * len(known) / n_ranges) for number in range(1, n_ranges)]
        return sorted({known[place] for place in places if 0 < place < len(known)} - set(known[:1]))

    def _files(self, name: str, number: int) -> list[Path]:
        """Return the files of a range that was written, none if it has no rows."""
        return sorted((self._store.folder / "ranges" / name / f"{_NUMBER}={number}").glob("*.parquet"))

    def read(self, number: int) -> dict[str, Any]:
        """Return the rows of a range, by table, as Arrow tables."""
        edges, folders = self._store.plan["edges"], self._store.plan["folders"]
        low, high = ([None, *edges][number], [*edges, None][number])
        rows = {}
        for name, table in self._tables.items():
            relation = table.relation
            if folders is not None:
                files = self._files(name, 0 if low is None else bisect.bisect_right(folders, low))
                relation = self._engine.scan(files) if files else relation.limit(0)
                relation = relation.project(", ".join(map(_quoted, table.relation.columns)))
            if folders is None or low not in (None, *folders) or high not in (None, *folders):
                key = self._keys[name]
                from_low = "true" if low is None else f"{key} >= {_literal(low)}"
                # A row without a user is in the last range, which refuses it.
                upwards = f"or {key} is null" if high is None else f"and {key} < {_literal(high)}"
                relation = relation.filter(f"{from_low} {upwards}")
            rows[name] = relation.to_arrow_table()
        if folders is not None and not self._store.keeps and high in (None, *folders):
            place = 0 if low is None else bisect.bisect_right(folders, low)
            for name in self._tables:
                remove_folder(self._store.folder / "ranges" / name / f"{_NUMBER}={place}")
        return rows


def _literal(key: int | str) -> str:
    return str(key) if isinstance(key, int) else _quoted(key, "'")


def _range_number(key: str, edges: Sequence[int | str], first: int = 0) -> str:
    """Return the number of the range that a user is in: a tree of comparisons."""
    if not edges:
        return str(first)
    middle = len(edges) // 2
    below = _range_number(key, edges[:middle], first)
    above = _range_number(key, edges[middle + 1 :], first + middle + 1)
    return f"case when {key} < {_literal(edges[middle])} then {below} else {above} end"
