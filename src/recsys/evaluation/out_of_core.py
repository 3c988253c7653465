"""Evaluation beyond memory: DuckDB brings together what belongs to a user; pieces are evaluated one by one.

The users are cut into ranges of their ids. Few ranges are read by a filtered scan each; for many, one scan
writes the rows of every range into a folder of its own first. DuckDB computes no metric, so the numbers have
the same bits as in memory. Models are cut into ranges of users, too.
"""

from __future__ import annotations

import bisect
import contextlib
import csv
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from recsys.conventions.decisions import Conventions
from recsys.errors import (
    ColumnError,
    FileError,
    InputError,
    MissingExtraError,
    RecsysError,
    RecsysWarning,
    TieWarning,
    hush,
    warn,
)
from recsys.evaluation.checkpoints import PieceStore, Storage
from recsys.evaluation.engine import warn_of_ties
from recsys.evaluation.evaluator import Evaluator
from recsys.evaluation.options import EvaluationOptions, refuse_no_weight
from recsys.evaluation.pieces import name_row
from recsys.evaluation.results import Evaluation
from recsys.evaluation.run import (
    MODEL_ATTRIBUTES,
    CommonInputs,
    EvaluationRun,
    check_user_ids,
    columns_for,
    highest_of,
    with_highest_grade,
)
from recsys.inputs.byte_sizes import format_memory
from recsys.inputs.files.atomic_folder import remove_folder
from recsys.inputs.files.atomic_write import write_errors_of
from recsys.inputs.files.formats import ROLES, open_file
from recsys.inputs.files.reader import detect_format
from recsys.inputs.files.text import delimiter_of
from recsys.inputs.frames import find_columns, first_repeated
from recsys.metrics.registry import Metrics, Request, parse_all
from recsys.ranks.sources import Source, UsersByItems, from_model, is_model_path
from recsys.types import Ids

_OF_USERS = ("lists", "truth", "seen", "eligible")
_QUERIES = ("select", "from", "with", "values")
# The share of the budget that DuckDB is told, which exceeds it by half; and of what is left for a piece.
_SHARE_OF_DUCKDB, _SHARE_OF_PIECE = 0.4, 0.5
# What a row takes while its piece is evaluated; text ids take more.
_BYTES_PER_ROW, _BYTES_PER_TEXT_ROW = 80, 200
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
    options = replace(options, ids=options.ids or "auto")
    weights = options.case_weights
    if isinstance(weights, Mapping) and weights and not any(weights.values()):
        refuse_no_weight(np.zeros(1))
    if callable(getattr(lists, "recommend", None)) and not hasattr(lists, "user_factors"):
        raise InputError(
            f"{type(lists).__name__} is asked for one list after the other, which needs no memory=.",
            table="lists",
            hint="Leave out memory=, or write its lists to a file first.",
        )
    is_table = hasattr(lists, "__arrow_c_stream__")
    if not is_table and (callable(lists) or any(hasattr(lists, name) for name in MODEL_ATTRIBUTES)):
        lists = from_model(lists)
    given: list[tuple[type[Warning], str]] = []
    try:
        with hush(RecsysWarning) as given:
            if isinstance(lists, UsersByItems) or is_model_path(lists):
                inputs = CommonInputs(metrics, options)
                run = inputs.run_of(lists, truth, row_ids=(options.user_ids, options.item_ids))
                evaluation = _evaluate_model(run, inputs, conventions, storage)
            else:
                requests = parse_all(metrics, options.k)
                evaluation = _evaluate_tables(lists, truth, requests, conventions, options, storage=storage)
    finally:
        # What several pieces warn of is said once, and ties below by the counts of all pieces.
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
        given = {"lists": lists, "truth": truth, "seen": options.seen, "eligible": options.eligible}
        tables = {
            name: _InputTable.open(connection, name, data, options)
            for name, data in given.items()
            if data is not None
        }
        n_rows = sum(table.count() for table in tables.values())
        conventions = with_highest_grade(conventions, requests, lambda: _highest_grade(tables["truth"]))
        shared = _question(options, but=(*_OF_USERS, "k", "ids", "user_ids", "item_ids"))
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
        ranges = _Ranges(connection, tables, role, store, most_rows)
        ranges.cut(n_rows)
        for number in range(len(ranges)):
            if not store.has(number):
                rows = ranges.read(number)
                try:
                    partial, run = evaluator.partial(
                        rows["lists"],
                        rows["truth"],
                        **{name: rows[name] for name in ("seen", "eligible") if name in rows},
                    )
                except RecsysError as error:
                    name_row(error, rows)
                    raise
                del rows
                store.add(number, partial, run, conventions, whole_users=whole_users)
                del partial, run
            if options.progress is not None:
                options.progress(number + 1, len(ranges))
        return store.result(evaluator.inputs, conventions, len(ranges))


def _evaluate_model(
    run: EvaluationRun, inputs: CommonInputs, conventions: Conventions, storage: Storage
) -> Evaluation:
    storage.left()
    ranking = cast("Source", run.ranking)
    needed = int(ranking.memory_needed(run.truth, run.ranking_options) / _SHARE_OF_PIECE)
    left = storage.left(needed, f"ranking with {ranking}")
    check_user_ids(ranking, run.truth)
    with PieceStore(storage, inputs.requests, by=inputs.options.by) as store:
        conventions = run.effective(conventions)
        store.open(
            metrics=[*map(str, inputs.requests)],
            conventions=conventions,
            model=ranking,
            truth=run.truth,
            **_question(inputs.options, but=("k", "ids", "user_ids", "item_ids", "columns")),
        )
        users = run.truth.cases.values
        progress = run.ranking_options.progress
        budget = replace(run.ranking_options, memory=int(_SHARE_OF_PIECE * left), progress=None)
        run = replace(run, ranking_options=budget)
        store.keep_plan(users=(size := store.plan.get("users", _PIECE_USERS)))
        n_pieces = max(1, math.ceil(len(users) / size))
        for number in range(n_pieces):
            if not store.has(number):
                of_block = run.of_cases(Ids(users[number * size : (number + 1) * size]))
                if number:  # what was counted while the truth was read is of all pieces together
                    of_block = replace(of_block, truth=replace(of_block.truth, notes={}))
                partial = of_block.partial(conventions)
                store.add(number, partial, of_block, conventions, whole_users=run.cases_are_users)
            if progress is not None:
                progress(number + 1, n_pieces)
        items = ranking.catalogue
        items = Ids(np.arange(ranking.n_items), is_range=True) if items is None else items
        return store.result(inputs, conventions, n_pieces, catalogue=items, whole=run)


def _question(options: EvaluationOptions, *, but: Sequence[str]) -> dict[str, Any]:
    """The options that the result depends on, by name."""
    return {
        name: value
        for name, value in vars(options).items()
        if name not in (*but, "progress", "backend", "threads")
    }


@contextlib.contextmanager
def _connect(storage: Storage, spill: Path, threads: int | None) -> Iterator[Any]:
    """A connection of DuckDB that keeps to its part of the memory; its errors become ours."""
    try:
        import duckdb
        import pandas  # noqa: F401, ICN001 - what pyarrow loads with a first column
        import pyarrow  # noqa: F401, ICN001 - what DuckDB returns
        import scipy.sparse  # noqa: F401 - what sorts the rows of a piece
    except ImportError as error:
        raise MissingExtraError("duckdb", "duckdb", "memory=, an evaluation beyond memory,") from error
    settings: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": f"{int(_SHARE_OF_DUCKDB * storage.left() / 1e6)}MB",
        "temp_directory": str(spill),
        "preserve_insertion_order": False,
        "threads": int(threads or os.cpu_count() or 1),
    }
    try:
        with contextlib.closing(duckdb.connect(config=settings)) as connection:
            connection.execute("set enable_progress_bar = false")
            connection.execute("set partitioned_write_flush_threshold = 65536")
            yield connection
    except duckdb.OutOfMemoryException as error:
        raise InputError(
            f"DuckDB needs more than its part of memory={format_memory(storage.memory)!r}: "
            f"{str(error).splitlines()[0]}",
            hint=f"Write memory={format_memory(2 * storage.memory)!r}.",
        ) from error
    except (duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException) as error:
        raise InputError(f"DuckDB cannot run the query: {str(error).splitlines()[0]}") from error
    except (duckdb.Error, RuntimeError) as error:
        if "interrupted" in str(error).lower():  # what DuckDB makes of Ctrl-C
            raise KeyboardInterrupt from error
        # DuckDB's binding says so of names in a file that are no letters.
        if not isinstance(error, duckdb.Error) and "conversion error" not in str(error):
            raise
        words = " ".join(str(error).splitlines()[:3])
        raise FileError(f"DuckDB cannot read the input: {words}", hint="Check the files.") from error


@dataclass(frozen=True, eq=False)
class _InputTable:
    """One table of the input: a relation of DuckDB with the columns that count, under their own names."""

    name: str
    relation: Any
    column_of: Mapping[str, str]
    is_columnar: bool

    @classmethod
    def open(cls, connection: Any, name: str, data: Any, options: EvaluationOptions) -> _InputTable:
        """A path, a query, a relation or a table in memory."""
        relation, is_text, is_columnar = _relation_of(connection, name, data)
        kind = "lists" if name == "lists" else "truth"
        roles = [role for role in ROLES[kind] if role != "time"]
        column_of = find_columns(relation.columns, tuple(roles), columns_for(name, options.columns), name)
        if name == "lists" and not {"rank", "score"} & column_of.keys():
            raise ColumnError(
                "the lists have no rank and no score, and beyond memory rows have no order.",
                table="lists",
                column="rank",
                hint="Add a column such as rank, or leave out memory=.",
            )
        if "rank" in column_of:
            column_of.pop("score", None)
        types = dict(zip(relation.columns, map(str, relation.types), strict=True))
        cells = []
        for role, column in column_of.items():
            wanted = types[column]
            if role in ("case", "user", "item"):
                if options.ids == "str" and _is_whole(wanted):
                    wanted = "VARCHAR"
                elif options.ids == "int" and wanted == "VARCHAR":
                    wanted = "BIGINT"
            elif is_text:
                wanted = "DOUBLE"
            quoted = _quoted(column)
            cells.append(quoted if wanted == types[column] else f"cast({quoted} as {wanted}) as {quoted}")
        return cls(name, relation.project(", ".join(cells)), column_of, is_columnar)

    def type_of(self, role: str) -> str:
        return str(self.relation.types[self.relation.columns.index(self.column_of[role])])

    @property
    def is_text(self) -> bool:
        """Whether some ids are text."""
        return any(self.type_of(r) == "VARCHAR" for r in ("case", "user", "item") if r in self.column_of)

    def count(self) -> int:
        """The number of rows; an error if there are none, as in memory."""
        n_rows = int(self.relation.count("*").fetchall()[0][0])
        if not n_rows:
            raise InputError(
                f"the {self.name} table has no rows.",
                table=self.name,
                hint="Check the filter or the file it came from.",
            )
        return n_rows

    def content(self) -> list[str]:
        """What tells its rows from others, in any order: their number and the sum of their hashes."""
        columns = ", ".join(map(_quoted, self.relation.columns))
        sums = self.relation.aggregate(f"count(*), sum(hash({columns})::hugeint)").fetchall()[0]
        return [*map(str, sums), *map(str, self.relation.types), *self.relation.columns]


def _relation_of(connection: Any, name: str, data: Any) -> tuple[Any, bool, bool]:
    """The data as a relation, whether all its cells are text, and whether its columns are read singly."""
    if type(data).__name__ == "DuckDBPyRelation":
        return data, False, False
    if not isinstance(data, str | os.PathLike):
        if not hasattr(data, "__arrow_c_stream__"):
            raise InputError(
                f"{name} came as {type(data).__name__}, which is in memory already.",
                table=name,
                hint="Leave out memory=, or pass a file, a query, a DuckDB relation or a table.",
            )
        import pyarrow as pa

        return connection.from_arrow(pa.table(data)), False, True
    words = str(data).split(None, 1)
    if words and words[0].lower() in _QUERIES and not Path(data).exists():
        return connection.sql(str(data)), False, False
    source = open_file(data)
    form, files = detect_format(source), [str(part.path) for part in source.parts or (source,)]
    if form == "parquet":
        return connection.read_parquet(files), False, True
    if form not in ("csv", "tsv"):
        raise FileError(
            f"{source.name} is {form}, and beyond memory Parquet and CSV files are read.",
            table=name,
            hint="Leave out memory=, or write it as Parquet.",
        )
    first = (source.parts or (source,))[0]
    delimiter = delimiter_of(first, form)
    line = first.head.split(b"\n", 1)[0].decode("utf-8-sig", errors="replace")
    try:
        header = next(csv.reader([line], delimiter=delimiter))
    except csv.Error as error:
        raise FileError(f"{first.name}, line 1: {error}.", table=name, hint="Check what wrote it.") from error
    if (repeated := first_repeated(header)) is not None:
        raise ColumnError(
            f"the column {repeated!r} occurs twice.",
            table=name,
            column=repeated,
            hint="Rename one of the two.",
        )
    return connection.read_csv(files, header=True, all_varchar=True, delimiter=delimiter), True, False


def _is_whole(kind: str) -> bool:
    """Whether a type of DuckDB is one of whole numbers."""
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
        self, connection: Any, tables: Mapping[str, _InputTable], role: str, store: PieceStore, most_rows: int
    ) -> None:
        self._connection, self._store, self._most_rows = connection, store, most_rows
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
        is_columnar = all(table.is_columnar for table in self._tables.values())
        if len(edges) < (_FEW_SCANS if is_columnar else 1):
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
            written = {name: self._folder(name, number) for name in self._tables}
            relations = {n: self._connection.read_parquet(f) for n, f in written.items() if f is not None}
            size = sum(int(relation.count("*").fetchall()[0][0]) for relation in relations.values())
            if size > 1.5 * self._most_rows:
                all_edges += self._edges(relations, math.ceil(size / self._most_rows))
        self._store.keep_plan(edges=sorted(set(all_edges)), folders=edges)

    def _edges(self, relations: Mapping[str, Any], n_ranges: int) -> list[Any]:
        """Ids that cut the rows into about equal ranges, from a sample of them; ascending."""
        if n_ranges <= 1:
            return []
        sample: list[Any] = []
        sizes = {name: int(relation.count("*").fetchall()[0][0]) for name, relation in relations.items()}
        share, how = 100.0 * _SAMPLE_ROWS / max(sum(sizes.values()), 1), "bernoulli"
        if sum(sizes.values()) > _LARGE:
            share, how = 8 * share, "system"  # whole blocks: cheap, and less precise
        clause = "" if share >= 50.0 else f" using sample {share:.6f}% ({how}, 1)"
        for name, relation in relations.items():
            users = relation.project(f"{self._keys[name]} as key")
            drawn = users.query("users", f"select key from users{clause}")  # noqa: S608 - our own numbers
            sample += drawn.to_arrow_table()["key"].to_pylist()
        known = sorted(key for key in sample if key is not None)
        places = [math.ceil(number * len(known) / n_ranges) for number in range(1, n_ranges)]
        return sorted({known[place] for place in places if 0 < place < len(known)} - set(known[:1]))

    def _folder(self, name: str, number: int) -> str | None:
        """The files of a range that was written, None if it has no rows."""
        folder = self._store.folder / "ranges" / name / f"{_NUMBER}={number}"
        return str(folder / "*.parquet") if folder.is_dir() else None

    def read(self, number: int) -> dict[str, Any]:
        """The rows of a range, by table, as Arrow tables."""
        edges, folders = self._store.plan["edges"], self._store.plan["folders"]
        low, high = ([None, *edges][number], [*edges, None][number])
        rows = {}
        for name, table in self._tables.items():
            relation = table.relation
            if folders is not None:
                files = self._folder(name, 0 if low is None else bisect.bisect_right(folders, low))
                relation = relation.limit(0) if files is None else self._connection.read_parquet(files)
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
    """The number of the range that a user is in: a tree of comparisons."""
    if not edges:
        return str(first)
    middle = len(edges) // 2
    below = _range_number(key, edges[:middle], first)
    above = _range_number(key, edges[middle + 1 :], first + middle + 1)
    return f"case when {key} < {_literal(edges[middle])} then {below} else {above} end"
